"""A mechanism from another package, which uses only the interface for authors."""

from typing import Any

import numpy as np

from dpviz.extend import mechanism


@mechanism(claim="pure", release="subspace", label="Rounded", paper="the outside package")
def rounded(rows: Any, epsilon: float, delta: float, k: int, rng: Any) -> Any:
    """Publish the components of a noisy, rounded second moment."""
    d = rows.shape[1]
    noisy = rows.T @ rows + rng.laplace(scale=2 * d / epsilon, size=(d, d))
    return np.linalg.eigh(np.round(noisy + noisy.T, 2))[1][:, ::-1][:, :k]
