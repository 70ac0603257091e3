"""One peer library, one cell: fit again and again, print a line of JSON for each fit.

Runs in the peer's own environment, so it imports nothing of dpviz. Called by
`benchmarks.peers`: python peers_worker.py PEER CELL.npz EPSILON K FIRST LAST SECONDS, or
PEER law for draws of one eigenvector whose law is known.
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
    # An exception would be swallowed where a library calls back from C, so the process ends.
    print(json.dumps({"outcome": "time-out"}), flush=True)
    os._exit(0)


def diffprivlib_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    from diffprivlib.models import PCA

    model = PCA(n_components=k, epsilon=epsilon, data_norm=1.0, centered=True, random_state=seed)
    return model.fit(rows).components_


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
    # a replaced row is two changes; its own map must charge the epsilon that was asked for
    if not measurement.map(2) <= epsilon * (1 + 1e-9):
        raise RuntimeError("the peer's own account exceeds the epsilon asked for")
    return measurement(rows).Vt[:k]


def opendp_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    return _opendp_fit(rows, epsilon, epsilon, k)


def opendp_vectors_fit(rows: Any, epsilon: float, k: int, seed: int) -> Any:
    from opendp.extras.sklearn.decomposition import PCAEpsilons

    values = 1e-6 * epsilon
    each = (epsilon - values) * (1 - 1e-12) / k
    return _opendp_fit(rows, PCAEpsilons(eigvals=values, eigvecs=[each] * k, mean=None), epsilon, k)


FITS: dict[str, Callable[[Any, float, int, int], Any]] = {
    "diffprivlib": diffprivlib_fit,
    "opendp": opendp_fit,
    "opendp_vectors": opendp_vectors_fit,
}


def law(peer: str) -> dict[str, float]:
    """Return the mean of u_1^2 over draws for C = diag(8, 0, 0) at epsilon 4: exp(8 u_1^2)."""
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
        "mean": float(np.mean(draws)),
        "se": float(np.std(draws, ddof=1) / np.sqrt(len(draws))),
        "draws": LAW_DRAWS,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    peer, what = sys.argv[1:3]
    if what == "law":
        print(json.dumps(law(peer)), flush=True)
        return
    epsilon, k = float(sys.argv[3]), int(sys.argv[4])
    first, last, seconds = int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7])
    rows = np.load(what)["rows"]
    # imports and caches are not the fit's: one easy fit first, whatever becomes of it
    with contextlib.suppress(ValueError):
        easy = np.random.default_rng(0).standard_normal((500, 10))
        FITS[peer](easy / np.linalg.norm(easy, axis=1).max() * (1 - 1e-9), 1.0, 2, 0)
    signal.signal(signal.SIGPROF, _stop)
    for seed in range(first, last):
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            found = np.asarray(FITS[peer](rows, epsilon, k, seed), dtype=float)
        except Exception as error:  # a peer's failure is a result, with its kind
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(json.dumps({"outcome": "failure", "kind": type(error).__name__}), flush=True)
            continue
        signal.setitimer(signal.ITIMER_PROF, 0)
        used = time.process_time() - start
        if found.shape != (k, rows.shape[1]) or not np.isfinite(found).all():
            print(json.dumps({"outcome": "failure", "kind": "not finite"}), flush=True)
            continue
        row = {"outcome": "fit", "seconds": used, "components": found.tolist()}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
