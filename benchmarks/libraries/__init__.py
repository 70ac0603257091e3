"""Use two public libraries as mechanisms and in audits, each in its own environment.

``--plugin benchmarks.libraries`` adds both libraries to any command and page; in Python::

    from benchmarks import libraries

    dpviz.compare("wine", k=1, trials=5, mechanisms=[libraries.diffprivlib, "ppca"])
    dpviz.audit(libraries.diffprivlib, dimension=5, k=1, trials=2000)

The first fit makes the environment with pip, in this user's cache, with the versions stated here.
No code of these libraries is part of dpviz, and no test of our samplers uses their samples. A fit
that exceeds its seconds is stopped; the library then counts as unable to run in that setting.
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
"""Version of each library, for labels, pip and measurements."""

REQUIREMENTS = {
    # This library imports names that later scikit-learn versions removed.
    "diffprivlib": (
        f"diffprivlib=={VERSIONS['diffprivlib']}", "scikit-learn==1.5.2", "numpy==2.1.3",
        "scipy==1.14.1",
    ),
    "opendp": (
        f"opendp=={VERSIONS['opendp']}", "randomgen==2.5.1", "scikit-learn==1.9.1", "numpy==2.4.6",
        "scipy==1.17.1",
    ),
}  # fmt: skip
"""Packages that pip installs, by library."""

SECONDS = 5.0
"""CPU seconds after which a fit of a library is stopped."""

# A worker that uses no CPU for this many seconds is stuck; imports take only a few seconds.
PATIENCE = 60.0


def python_of(library: str, folder: Path) -> Path:
    """Return the interpreter of a library's environment; create the environment if it is missing.

    Raises
    ------
    CannotRun
        If pip cannot create the environment, for example without a network.
    """
    home = folder / library
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = home / "requirements.txt"
    text = "\n".join(REQUIREMENTS[library])
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder / f"{library}.lock")):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == text:
            return python
        print(f"making the environment of {library} in {home}", file=sys.stderr, flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[library]]
        for words in ([sys.executable, "-m", "venv", "--clear", str(home)], pip):
            if subprocess.run(words, check=False).returncode:  # pip prints the error itself.
                rule = f"pip could not install {REQUIREMENTS[library][0]} into its environment"
                raise CannotRun(library, rule)
        stamp.write_text(text, encoding="utf-8")
    return python


class Worker:
    """A process of a library that answers one fit after another.

    Parameters
    ----------
    python : Path
        Python interpreter of the library's environment.
    fit : str
        Fit of `dpviz.extend.peers.worker` that the process makes.
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
        """Whether the process no longer answers."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End the process, and wait until it has ended."""
        self._process.kill()
        self._process.communicate()

    def ask(self, rows: Any = None, **asked: Any) -> dict[str, Any]:
        """Return the outcome (``fit``, ``failure`` or ``time-out``) and its figures.

        Parameters
        ----------
        rows : ndarray of shape (n, d), optional
            The rows, sent once for all questions about the same rows.
        **asked
            ``epsilon``, ``k``, ``seed``, and ``seconds`` of CPU; nothing for the known law.
        """
        with self._turn:
            process, answer = self._process, b""
            assert process.stdin is not None
            assert process.stdout is not None
            limit = PATIENCE + asked.get("seconds", 0.0)
            timer = threading.Timer(limit, process.kill)
            start = time.monotonic()
            timer.start()
            try:
                content = b""
                if rows is not None and (
                    self._rows is None or not np.array_equal(self._rows, rows)
                ):
                    self._rows = np.array(rows, dtype=np.float64, order="C")
                    asked["shape"] = list(self._rows.shape)
                    content = self._rows.tobytes()
                process.stdin.write(json.dumps(asked).encode() + b"\n" + content)
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                pass
            finally:
                timer.cancel()
            if not answer:
                self.end()
                late = time.monotonic() - start >= limit
                return {"outcome": "time-out"} if late else {"outcome": "failure", "kind": "ended"}
            reply: dict[str, Any] = json.loads(answer)
            if reply["outcome"] == "time-out":
                self.end()
            return reply


_kept: dict[tuple[str, int], Worker] = {}
"""Return this process's worker for a fit; a forked process needs a worker of its own."""


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
    # Shrink rows by 1e-12, so that rounding does not fail the libraries' check of row norms.
    inside = rows / max(1.0, float(np.linalg.norm(rows, axis=1).max())) * (1 - 1e-12)
    seed = int(rng.integers(2**31))
    reply = _kept[mine].ask(inside, epsilon=epsilon, k=k, seed=seed, seconds=SECONDS)
    if reply["outcome"] == "time-out":
        raise CannotRun(fit, f"a fit has {numeral(SECONDS)} s of CPU; it was stopped")
    if reply["outcome"] == "failure":
        raise CannotRun(fit, f"a fit of the library failed ({reply['kind']})")
    frame: FloatArray = np.linalg.qr(np.asarray(reply["components"]).T).Q
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
    """Call the PCA of diffprivlib, with a known row-norm bound and centre."""
    return _components("diffprivlib", rows, epsilon, k, rng)


@mechanism(
    claim="pure",
    label=f"OpenDP {VERSIONS['opendp']}",
    paper="the library OpenDP",
    url="https://github.com/opendp/opendp",
    timed=True,
)
def opendp(rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator) -> FloatArray:
    """Call the PCA of OpenDP, which uses the system's randomness and ignores the seed."""
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
