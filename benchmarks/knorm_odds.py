"""Write limits on K-norm noise's leakage: ``python -m benchmarks.knorm_odds [--seconds S] D ...``.

For each number of features D, the command simulates the loss of the worst neighbours for about S
seconds. It writes means and upper limits of the total variation to
``dpviz/accounting/knorm_odds.json``; `dpviz.accounting.knorm` explains them. With ``--check`` the
command writes nothing. It then simulates the odds at epsilon 1 with other samples and another
estimator, for one release and for ten of the same table, and prints the stored values beside them.
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np

from dpviz.accounting.knorm import CONFIDENCE, EPSILONS, PATH, SIGNS, most_apart
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Relation
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.nuclear import nuclear_eigenvalues
from dpviz.sampling.stiefel import uniform_frames

FRAMES = 4  # Combine each sample of eigenvalues with 4 frames, as eigenvalues are slow to sample.
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
        Eigenvectors of D, in the basis of N's eigenvectors.
    epsilon : float
    signs : tuple of float
        Eigenvalues of D over epsilon.
    """
    matrices = -(frames * (epsilon * np.array(signs))) @ frames.transpose(0, 2, 1)
    np.einsum("sii->si", matrices)[:] += values
    sums = np.abs(np.linalg.eigvalsh(matrices)).sum(axis=1)
    result: FloatArray = sums - np.abs(values).sum(axis=1)
    return result


def upper_limit(values: FloatArray, most: float, failing: float) -> float:
    """Return an upper limit of a mean, wrong with probability ``failing`` at most.

    The values are independent, in [0, most]. A bet on lower values is the product of 1 + s (m -
    value) over all values, with a stake s of at most 1/most. The bet has expectation 1 if m is the
    mean. The average over fixed stakes passes 1/failing with probability ``failing`` at most
    (Markov), and grows with m.

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
    odds: dict[tuple[str, float], list[FloatArray]] = {cell: [] for cell in cells}
    size, count = (16, 0) if d > 24 else (500, 0)
    while count < _LEAST_DRAWS or (time.process_time() < until and count < _MOST_DRAWS):
        values = np.repeat(nuclear_eigenvalues(Draws.batch(rng, size), d), FRAMES, axis=0)
        pairs = uniform_frames(Draws.batch(rng, size * FRAMES), d, 2)
        for name, epsilon in cells:
            signs = SIGNS[name]
            loss = losses(values, pairs[:, :, : len(signs)], epsilon, signs)
            # Swapped neighbours negate the loss, so |loss| has all information and less spread.
            odds[name, epsilon].append(np.tanh(np.abs(loss) / 2).reshape(-1, FRAMES).mean(axis=1))
        count += size
    failing = (1 - CONFIDENCE) / len(cells)
    answer: dict[str, object] = {"draws": count}
    for name in SIGNS:
        each = [np.concatenate(odds[name, epsilon]) for epsilon in EPSILONS]
        answer[name] = {
            "means": [float(f"{one.mean():.5g}") for one in each],
            "limits": [
                math.ceil(1e6 * upper_limit(one, math.tanh(epsilon / 2), failing)) / 1e6
                for one, epsilon in zip(each, EPSILONS, strict=True)
            ],
        }
    return answer


def checked(d: int, seconds: float) -> str:
    """Return a line of odds at epsilon 1 by E (1 - e^-L)+, for a row that replaces another."""
    rng, until = generator(1, "knorm odds", d), time.process_time() + seconds
    parts: list[FloatArray] = []
    while len(parts) < 2 or (time.process_time() < until and len(parts) < _MOST_DRAWS // 16):
        values = np.repeat(nuclear_eigenvalues(Draws.batch(rng, 16), d), 4 * FRAMES, axis=0)
        pairs = np.linalg.qr(rng.standard_normal((len(values), d, 2)))[0]
        parts.append(losses(values, pairs, 1.0, SIGNS["pair"]).reshape(16, -1))
    each = np.concatenate(parts)
    won = np.maximum(-np.expm1(-each), 0).mean(axis=1)
    error = 98 * won.std(ddof=1) / math.sqrt(len(won))
    ten = rng.choice(each.ravel(), (100_000, 10)).sum(axis=1)
    limit = most_apart(d, 1.0, Relation.REPLACE)
    return (
        f"d {d}: right {50 + 50 * won.mean():.2f} +- {error:.2f} of 100, kept limit "
        f"{50 + 50 * limit:.2f}, epsilon alone {50 + 50 * math.tanh(0.5):.2f}; ten releases "
        f"about {50 + 50 * np.maximum(-np.expm1(-ten), 0).mean():.1f}, epsilon 10 alone "
        f"{50 + 50 * math.tanh(5):.1f}"
    )


def main() -> None:
    """Measure the limits and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("d", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--check", action="store_true", help="simulate again, write nothing")
    options = parser.parse_args()
    for d in options.d:
        if options.check:
            print(checked(d, options.seconds), flush=True)
            continue
        with one_blas_thread():
            odds = measured(d, options.seconds)
        table = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
        table[str(d)] = odds
        lines = [f'"{key}": {json.dumps(table[key])}' for key in sorted(table, key=int)]
        PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(d, odds, flush=True)


if __name__ == "__main__":
    main()
