"""Write what K-norm noise tells at most: ``python -m benchmarks.knorm_odds [--seconds S] D ...``.

Of each number of features D it draws the loss of the worst neighbours for about S seconds, and puts
means and upper limits of the total variation into ``dpviz/accounting/knorm_odds.json``; what they
mean stands in `dpviz.accounting.knorm`.
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np

from dpviz.accounting.knorm import CONFIDENCE, EPSILONS, PATH, SIGNS
from dpviz.core.arrays import FloatArray
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.nuclear import nuclear_eigenvalues
from dpviz.sampling.stiefel import uniform_frames

FRAMES = 4  # of each draw of eigenvalues, which takes longer
_STAKES = np.geomspace(0.01, 0.98, 24)
_LEAST_DRAWS, _MOST_DRAWS = 64, 40_000


def losses(
    values: FloatArray, frames: FloatArray, epsilon: float, signs: tuple[float, ...]
) -> FloatArray:
    """Return ||N - D|| - ||N|| in nuclear norm.

    Parameters
    ----------
    values : ndarray of shape (size, d)
        Eigenvalues of N.
    frames : ndarray of shape (size, d, len(signs))
        D's eigenvectors, seen from those of N.
    epsilon : float
    signs : tuple of float
        D's eigenvalues over epsilon.
    """
    matrices = -(frames * (epsilon * np.array(signs))) @ frames.transpose(0, 2, 1)
    np.einsum("sii->si", matrices)[:] += values
    moved = np.abs(np.linalg.eigvalsh(matrices)).sum(axis=1)
    found: FloatArray = moved - np.abs(values).sum(axis=1)
    return found


def upper_limit(values: FloatArray, most: float, failing: float) -> float:
    """Return an upper limit of a mean, wrong with probability ``failing`` at most.

    Independent values lie in [0, most]. A bet on lower ones, 1 + s (m - value) a value for a stake
    s of at most 1/most, has expectation 1 if m is the mean; the average over fixed stakes passes
    1/failing with probability ``failing`` at most (Markov), and grows with m.

    Source
    ------
    Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting".
    """

    def refuted(m: float) -> bool:
        logs = np.log1p(_STAKES[:, None] / most * (m - values)).sum(axis=1)
        return float(np.logaddexp.reduce(logs)) - math.log(len(_STAKES)) >= -math.log(failing)

    low, high = float(values.mean()), most
    if not refuted(high):
        return most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def measured(d: int, seconds: float) -> dict[str, object]:
    """Return means and limits of the total variation at `EPSILONS`, by shape of the shift."""
    rng, until = generator(0, "knorm odds", d), time.process_time() + seconds
    cells = [(name, epsilon) for name in SIGNS for epsilon in EPSILONS]
    found: dict[tuple[str, float], list[FloatArray]] = {cell: [] for cell in cells}
    size, count = (16, 0) if d > 24 else (500, 0)
    while count < _LEAST_DRAWS or (time.process_time() < until and count < _MOST_DRAWS):
        values = np.repeat(nuclear_eigenvalues(Draws.batch(rng, size), d), FRAMES, axis=0)
        pairs = uniform_frames(Draws.batch(rng, size * FRAMES), d, 2)
        for name, epsilon in cells:
            signs = SIGNS[name]
            seen = losses(values, pairs[:, :, : len(signs)], epsilon, signs)
            # neighbours are mirrored, so that the law of |loss| says it all, with less spread
            found[name, epsilon].append(np.tanh(np.abs(seen) / 2).reshape(-1, FRAMES).mean(axis=1))
        count += size
    failing = (1 - CONFIDENCE) / len(cells)
    answer: dict[str, object] = {"draws": count}
    for name in SIGNS:
        each = [np.concatenate(found[name, epsilon]) for epsilon in EPSILONS]
        answer[name] = {
            "means": [float(f"{one.mean():.5g}") for one in each],
            "limits": [
                math.ceil(1e6 * upper_limit(one, math.tanh(epsilon / 2), failing)) / 1e6
                for one, epsilon in zip(each, EPSILONS, strict=True)
            ],
        }
    return answer


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("d", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    for d in options.d:
        with one_blas_thread():
            found = measured(d, options.seconds)
        kept = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
        kept[str(d)] = found
        lines = [f'"{key}": {json.dumps(kept[key])}' for key in sorted(kept, key=int)]
        PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(d, found, flush=True)


if __name__ == "__main__":
    main()
