"""Make fits of another library: questions on stdin, answers as one line of JSON each.

This script runs in the other library's own environment, so it imports nothing of dpviz: ``python
worker.py FIT``. A question is a line of JSON with ``epsilon``, ``k``, ``seed`` and ``seconds`` of
CPU. If it has a ``shape``, the bytes of new rows follow, as doubles row by row. A question without
an epsilon requests samples of one eigenvector whose law is known.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

LAW_DRAWS = 4_000


def _stop(signum: int, frame: object) -> None:
    # End the whole process: an exception would be lost in a library that calls back from C.
    _say({"outcome": "time-out"})
    os._exit(0)


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _diffprivlib_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    from diffprivlib.models import PCA

    model = PCA(n_components=k, epsilon=epsilon, data_norm=1.0, centered=True, random_state=seed)
    return model.fit(rows).components_


def _diffprivlib_vector_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    """Sample one vector by the library's sampler alone, with the fit's share of its epsilon."""
    from diffprivlib.mechanisms import Bingham

    mechanism = Bingham(epsilon=epsilon, sensitivity=1.0, random_state=seed)
    return np.asarray(mechanism.randomise(rows.T @ rows))[None]


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
    return dp


def _opendp_fit(rows: Any, budget: Any, epsilon: float, k: int) -> Any:
    dp = _opendp()
    from opendp.extras.sklearn.decomposition import make_private_pca

    n, d = rows.shape
    domain = dp.numpy.array2_domain(
        size=n, num_columns=d, norm=1.0, p=2, origin=np.zeros(d), T=float
    )
    measurement = make_private_pca(domain, dp.symmetric_distance(), budget, num_components=k)
    # OpenDP counts a replaced row as two changes, for which it must report this epsilon.
    if not measurement.map(2) <= epsilon * (1 + 1e-9):
        raise RuntimeError("the peer's own account exceeds the epsilon asked for")
    return measurement(rows).Vt[:k]


def _opendp_alone_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    return _opendp_fit(rows, epsilon, epsilon, k)


def _opendp_vectors_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    from opendp.extras.sklearn.decomposition import PCAEpsilons

    values = 1e-6 * epsilon
    each = (epsilon - values) * (1 - 1e-12) / k
    return _opendp_fit(rows, PCAEpsilons(eigvals=values, eigvecs=[each] * k, mean=None), epsilon, k)


FITS: dict[str, Callable[[Any, float, int, int], Any]] = {
    "diffprivlib": _diffprivlib_fit,
    "diffprivlib_vector": _diffprivlib_vector_fit,
    "opendp": _opendp_alone_fit,
    "opendp_vectors": _opendp_vectors_fit,
}


def law(peer: str) -> dict[str, Any]:
    """Return the mean of u_1^2 over samples for C = diag(8, 0, 0) at epsilon 4: exp(8 u_1^2)."""
    C = np.diag([8.0, 0.0, 0.0])
    if peer == "diffprivlib":
        from diffprivlib.mechanisms import Bingham

        mechanism = Bingham(epsilon=4.0, sensitivity=1.0, random_state=0)
        draws = [mechanism.randomise(C)[0] ** 2 for _ in range(LAW_DRAWS)]
    else:
        dp = _opendp()
        from opendp.extras.numpy import _sscp_domain
        from opendp.extras.sklearn._make_eigenvector import make_private_eigenvector

        domain = _sscp_domain(num_features=3, norm=1.0, p=2, T=float)
        measurement = make_private_eigenvector(domain, dp.symmetric_distance(), 4.0)
        draws = [measurement(C)[0] ** 2 for _ in range(LAW_DRAWS)]
    return {
        "outcome": "law",
        "mean": float(np.mean(draws)),
        "se": float(np.std(draws, ddof=1) / np.sqrt(len(draws))),
        "draws": LAW_DRAWS,
    }


def answer(peer: str, rows: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the answer for one fit."""
    k = asked["k"]
    start = time.process_time()
    _limit(asked["seconds"])
    try:
        components = np.asarray(FITS[peer](rows, asked["epsilon"], k, asked["seed"]), dtype=float)
    except Exception as error:  # Report any failure of the library as a result.
        return {"outcome": "failure", "kind": type(error).__name__}
    finally:
        _limit(0)
    seconds = time.process_time() - start
    if components.shape != (k, rows.shape[1]) or not np.isfinite(components).all():
        return {"outcome": "failure", "kind": "not finite"}
    return {"outcome": "fit", "seconds": seconds, "components": components.tolist()}


def _limit(seconds: float) -> None:
    if hasattr(signal, "setitimer"):  # On systems without timers, the caller ends this process.
        signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    peer = sys.argv[1]
    # Run one easy fit first, and ignore its outcome: the timed fit must not include imports.
    with contextlib.suppress(ValueError):
        easy = np.random.default_rng(0).standard_normal((500, 10))
        FITS[peer](easy / np.linalg.norm(easy, axis=1).max() * (1 - 1e-9), 1.0, 2, 0)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, _stop)
    rows: Any = None
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        if "shape" in asked:
            n, d = asked["shape"]
            rows = np.frombuffer(sys.stdin.buffer.read(8 * n * d)).reshape(n, d)
        _say(law(peer) if "epsilon" not in asked else answer(peer, rows, asked))


if __name__ == "__main__":
    main()
