"""Two public libraries as columns and as audits, each in an environment of its own.

``--plugin benchmarks.libraries`` brings them to any command and page; in Python they are given::

    from benchmarks import libraries

    dpviz.compare("wine", k=1, trials=5, mechanisms=[libraries.diffprivlib, "ppca"])
    dpviz.audit(libraries.diffprivlib, dimension=5, k=1, trials=2000)

The first fit makes the environment with pip, in this user's cache, of the versions stated here. No
code of theirs is part of dpviz, and no sampler of ours is tested by what they draw. A fit that uses
up its seconds is stopped, and the library then cannot run there.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.files import user_cache
from dpviz.core.number_text import numeral
from dpviz.mechanisms._function import mechanism

VERSIONS = {"diffprivlib": "0.6.6", "opendp": "0.16.0"}
"""Which version of each library labels name, pip installs, and measurements are of."""

REQUIREMENTS = {
    # this version imports names that scikit-learn removed later
    "diffprivlib": (
        f"diffprivlib=={VERSIONS['diffprivlib']}", "scikit-learn==1.5.2", "numpy==2.1.3",
        "scipy==1.14.1",
    ),
    "opendp": (
        f"opendp=={VERSIONS['opendp']}", "randomgen==2.5.1", "scikit-learn==1.9.1", "numpy==2.4.6",
        "scipy==1.17.1",
    ),
}  # fmt: skip
"""What pip installs, by library."""

SECONDS = 5.0
"""Of CPU, after which a fit is stopped."""

# A worker that uses no CPU waits for something that does not come; its imports take a few seconds.
PATIENCE = 60.0


def python_of(library: str, folder: Path) -> Path:
    """Return the interpreter of a library's environment, made if it is not there.

    Raises
    ------
    CannotRun
        If pip cannot make it, as without a network.
    """
    home = folder / library
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = home / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[library])
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder / f"{library}.lock")):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return python
        print(f"making the environment of {library} in {home}", file=sys.stderr, flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[library]]
        for words in ([sys.executable, "-m", "venv", "--clear", str(home)], pip):
            if subprocess.run(words, check=False).returncode:  # which says why by itself
                needed = f"pip could not install {REQUIREMENTS[library][0]} into its environment"
                raise CannotRun(library, needed)
        stamp.write_text(wanted, encoding="utf-8")
    return python


class Worker:
    """A process of a library's own that answers one fit after another.

    Parameters
    ----------
    python : Path
        Its interpreter.
    fit : str
        Which fit of `dpviz.extend.peers.worker` it makes.
    """

    def __init__(self, python: Path, fit: str) -> None:
        one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("worker.py")), fit],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean | one,
        )  # fmt: skip
        self._rows: FloatArray | None = None
        self._turn = threading.Lock()

    @property
    def ended(self) -> bool:
        """Whether it answers no more."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End it, and wait until it is gone."""
        self._process.kill()
        self._process.communicate()

    def ask(self, rows: Any = None, **asked: Any) -> dict[str, Any]:
        """Return its answer: an outcome of ``fit``, ``failure`` or ``time-out``, and its figures.

        Parameters
        ----------
        rows : ndarray of shape (n, d), optional
            Sent once for all questions about the same rows.
        **asked
            ``epsilon``, ``k``, ``seed``, and ``seconds`` of CPU; nothing for the known law.
        """
        with self._turn:
            process, answer = self._process, b""
            assert process.stdin is not None
            assert process.stdout is not None
            waited = PATIENCE + asked.get("seconds", 0.0)
            timer = threading.Timer(waited, process.kill)
            start = time.monotonic()
            timer.start()
            try:
                sent = b""
                if rows is not None and (
                    self._rows is None or not np.array_equal(self._rows, rows)
                ):
                    self._rows = np.array(rows, dtype=np.float64, order="C")
                    asked["shape"] = list(self._rows.shape)
                    sent = self._rows.tobytes()
                process.stdin.write(json.dumps(asked).encode() + b"\n" + sent)
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                pass
            finally:
                timer.cancel()
            if not answer:
                self.end()
                late = time.monotonic() - start >= waited
                return {"outcome": "time-out"} if late else {"outcome": "failure", "kind": "ended"}
            found: dict[str, Any] = json.loads(answer)
            if found["outcome"] == "time-out":
                self.end()
            return found


_kept: dict[tuple[str, int], Worker] = {}
"""The worker of a fit in a process; forked, it would be another's."""


@atexit.register
def _end() -> None:
    for (_, process), worker in _kept.items():
        if process == os.getpid():
            worker.end()


def _components(
    fit: str, rows: Any, epsilon: float, k: int, rng: np.random.Generator
) -> FloatArray:
    library = fit.partition("_")[0]
    mine = fit, os.getpid()
    if mine not in _kept or _kept[mine].ended:
        _kept[mine] = Worker(python_of(library, user_cache() / "peers"), fit)
    # an ulp inside the ball, so that their check does not trip on rounding
    inside = rows / max(1.0, float(np.linalg.norm(rows, axis=1).max())) * (1 - 1e-12)
    seed = int(rng.integers(2**31))
    found = _kept[mine].ask(inside, epsilon=epsilon, k=k, seed=seed, seconds=SECONDS)
    if found["outcome"] == "time-out":
        raise CannotRun(fit, f"a fit has {numeral(SECONDS)} s of CPU; it was stopped")
    if found["outcome"] == "failure":
        raise CannotRun(fit, f"a fit of the library failed ({found['kind']})")
    frame: FloatArray = np.linalg.qr(np.asarray(found["components"]).T).Q
    return frame


@mechanism(
    claim="pure",
    label=f"diffprivlib {VERSIONS['diffprivlib']}",
    paper="the library diffprivlib",
    url="https://github.com/IBM/differential-privacy-library",
    timed=True,
)
def diffprivlib(
    rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator
) -> FloatArray:
    """Call the PCA of diffprivlib, with a known row bound and centre."""
    return _components("diffprivlib", rows, epsilon, k, rng)


@mechanism(
    claim="pure",
    label=f"OpenDP {VERSIONS['opendp']}",
    paper="the library OpenDP",
    url="https://github.com/opendp/opendp",
    timed=True,
)
def opendp(rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator) -> FloatArray:
    """Call the PCA of OpenDP, which draws from the system's randomness at any seed."""
    return _components("opendp", rows, epsilon, k, rng)


@mechanism(
    claim="pure",
    label="OpenDP, all on vectors",
    paper="the library OpenDP",
    url="https://github.com/opendp/opendp",
    timed=True,
)
def opendp_vectors(
    rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator
) -> FloatArray:
    """Call the PCA of OpenDP with all but a millionth of the budget on eigenvectors."""
    return _components("opendp_vectors", rows, epsilon, k, rng)
