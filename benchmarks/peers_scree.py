"""The variances of a scree beside the three estimators of dppca: a section of docs/peers.md.

    python -m benchmarks.peers_scree

The R package dppca 0.1.0 estimates the mean of the squared scores w along each direction for
itself. Its three ways are written here anew from its documents (the article on scree estimation and
the manual), each with epsilon/k and delta/k: `clipped` (cut at C, Gaussian noise), `winsorised`
(cut at two quantiles that are found first, by noisy counts on a geometric grid) and `huber` (noisy
gradient steps with a scale that is found first). What has no default there is chosen in hindsight
for them, at each table and epsilon: C, and how many rows are trimmed. The scale of `huber` is
sought where rows of at most 1 can have it, which is far fewer places than the 81 of its documents.

Directions are the true ones, for all and for nothing. Error: sum of |estimate - true| over the sum
of the true variances, of the first `K` components; all estimates are made to descend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.isotonic import isotonic_regression

from benchmarks.peers_half import section
from benchmarks.picture import EPSILONS, TABLES
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Relation
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import MOST_SHARED, Settings
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.preparation.steps import PrivateSteps, preparation
from dpviz.simulation.picture.scree import bought, of_matrix, standard_numbers

MARKS = ("<!-- scree: start -->", "<!-- scree: end -->")
K = 3
DRAWS = 40
CLIPS = tuple(2.0**power for power in range(-9, 1))  # of squared row bounds
TRIMS = (2.0, 5.0, 10.0, 20.0)
_BASE, _LEAST = 1.001, 0.01
_SCALES = (-20, -1)  # powers of two
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "peers.md"


def classical(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the Gaussian noise that Dwork and Roth (2014) give, which dppca uses throughout."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def clipped(w: FloatArray, own: Budget, rng: np.random.Generator, clip: float) -> float:
    """Return the mean of values cut at a public clip."""
    noise = classical(clip / (len(w) - 1), own.epsilon, own.delta)
    return float(np.minimum(w, clip).sum() / (len(w) - 1) + noise * rng.standard_normal())


def _quantile(w: FloatArray, level: float, epsilon: float, rng: np.random.Generator) -> float:
    """Return where noisy counts on a grid of steps of .1 % first pass a noisy rank."""
    low = level < 0.5
    values, level = (1 - w, 1 - level) if low else (w, level)  # mirrored in [0, 1]
    place = np.floor(np.log(np.maximum(values + 1, _BASE)) / math.log(_BASE)).astype(int)
    reached = np.cumsum(np.bincount(place, minlength=int(math.log(2) / math.log(_BASE)) + 2))
    rank = level * len(w) + rng.exponential(2 / epsilon)
    above = reached + rng.exponential(2 / epsilon, len(reached)) > rank
    step = int(np.argmax(above)) if above.any() else len(reached)
    found = min(_BASE ** (step + 1) - 1, 1.0)
    return 1 - found if low else found


def winsorised(w: FloatArray, own: Budget, rng: np.random.Generator, trim: float) -> float:
    """Return the mean of one half of the values, cut at quantiles of the other."""
    n, half = len(w), len(w) // 2
    level = min(max(trim / half, _LEAST), 0.49)
    low, high = (_quantile(w[:half], one, own.epsilon / 4, rng) for one in (level, 1 - level))
    low, high = (low, high) if high >= low else (0.0, 1.0)
    kept, scale = np.clip(w[half:], low, high), n / (n - 1)
    noise = classical(scale * (high - low) / len(kept), own.epsilon / 2, own.delta)
    return float(scale * kept.mean() + noise * rng.standard_normal())


def huber(w: FloatArray, own: Budget, rng: np.random.Generator, _: float) -> float:
    """Return the Huber mean after ceil(ln n) noisy gradient steps, a quarter for its scale."""
    n = len(w)
    pairs = np.square(w[0 : 2 * (n // 2) : 2] - w[1 : 2 * (n // 2) : 2]) / 2
    blocks = np.array_split(pairs, max(1, int(math.sqrt(n) / 2)))
    medians = np.maximum([np.median(block) for block in blocks], 2.0 ** _SCALES[0])
    bins = np.clip(np.floor(np.log2(medians)), *_SCALES).astype(int) - _SCALES[0]
    size = _SCALES[1] - _SCALES[0] + 1
    counts = np.bincount(bins, minlength=size) + rng.laplace(scale=4 / own.epsilon, size=size)
    rest, steps = Budget(0.75 * own.epsilon, 0.75 * own.delta), math.ceil(math.log(n))
    reach = math.sqrt((1 + math.log(n)) * math.log(n))
    tau = math.sqrt(2.0 ** (int(counts.argmax()) + _SCALES[0]) * rest.epsilon * n / reach)
    noise, mean = classical(2 * tau / n, rest.epsilon / steps, rest.delta / steps), 0.0
    for _step in range(steps):
        mean += np.clip(w - mean, -tau, tau).mean() + noise * rng.standard_normal()
    return float(n / (n - 1) * mean)


THEIRS: dict[str, tuple[Callable[..., float], tuple[float, ...]]] = {
    "dppca, clipped": (clipped, CLIPS),
    "dppca, winsorised": (winsorised, TRIMS),
    "dppca, Huber": (huber, (0.0,)),
}


def error(found: FloatArray, true: FloatArray) -> float:
    """Return the error of estimates that are made to descend and not to be negative."""
    whole = np.zeros(K)
    whole[: len(found)] = found[:K]
    whole = np.maximum(isotonic_regression(whole, increasing=False), 0.0)
    return float(np.abs(whole - true).sum() / true.sum())


def cells() -> Iterator[tuple[str, float, dict[str, FloatArray]]]:
    """Yield the errors of all draws of each estimator, by table and epsilon."""
    for name, scale in TABLES:
        ready = prepare(load(name), Settings(table=name, scale=scale))
        rows = ready.moment_with_rows.rows
        assert rows is not None
        n, d = rows.shape
        V, true = ready.reference.top(K), ready.reference.eigenvalues[:K]
        shuffled = np.square(rows @ V)[generator(0, "order", n).permutation(n)]
        label = name if scale == "none" else f"{name}, standardised"
        for epsilon in EPSILONS:
            budget = ready.budget(Settings(table=name, epsilon=epsilon))
            problem = ready.problem(Settings(table=name, k=K))
            wanted = PrivateSteps((), variance=MOST_SHARED, radius=True)
            plan = preparation(wanted, n, d, Relation.REPLACE, budget, pure=False)
            numbers = standard_numbers(Draws.trials(0, "scree", range(DRAWS)), K, pure=False)
            mechanism = parse_variant("gaussian")
            calibration = mechanism.calibrate(problem, budget)
            released = mechanism.release_many(
                ready.moment, calibration, Draws.trials(0, "matrix", range(DRAWS))
            )
            law = mechanism.free_noise(calibration)
            assert law is not None
            assert released.eigenvalues is not None
            found = {
                "bought": [bought(rows, V, plan, one, 1.0).variances for one in numbers],
                "matrix": [of_matrix(one, law).variances for one in released.eigenvalues],
            }
            errors = {
                key: np.array([error(one, true) for one in kept]) for key, kept in found.items()
            }
            own = Budget(epsilon / K, budget.delta / K)
            for key, (estimate, tried) in THEIRS.items():
                every = []
                for value in tried:
                    rngs = [generator(draw, key, str(value)) for draw in range(DRAWS)]
                    drawn = [[estimate(w, own, rng, value) for w in shuffled.T] for rng in rngs]
                    every.append(np.array([error(np.array(one), true) for one in drawn]))
                errors[key] = min(every, key=lambda one: float(one.mean()))
            yield label, epsilon, errors


def written() -> str:
    """Return the section."""
    with one_blas_thread():
        whole = list(cells())
    names = ["bought", "matrix", *THEIRS]
    ahead = []
    for label, epsilon, errors in whole:
        for key in THEIRS:
            by = errors["bought"].mean() - errors[key].mean()
            wide = 1.96 * math.hypot(*(errors[one].std(ddof=1) for one in ("bought", key)))
            if by > wide / math.sqrt(DRAWS):
                ahead.append(f"{label}, epsilon {epsilon:g}, {key}")
    lines = [
        MARKS[0],
        "## The variances of a scree beside dppca",
        "",
        f"The error of the first {K} variances, sum of |estimate - true| over the sum of the "
        f"true ones, means of {DRAWS} draws; replace, default delta. `bought` is what a published "
        f"picture buys along its directions, here with {MOST_SHARED:g} of the budget; `matrix` the "
        "eigenvalues of the Gaussian mechanism's matrix with the noise taken out, where a variance "
        "that noise hides counts as 0: it has the directions too for the same budget. dppca's "
        "three ways (version 0.1.0) are written anew from its documents, with all of the budget "
        "for the variances and the true directions; C and the trimmed rows, which have no default "
        "there, are the best in hindsight, and the scale of the Huber mean is sought from 2^-20 "
        "to 1/2 (its documents: from 2^-40 to 2^40). `python -m benchmarks.peers_scree` writes "
        "this section.",
        "",
        f"One of dppca's is ahead of `bought` by more than the draws' error in {len(ahead)} of "
        f"{len(whole) * len(THEIRS)} comparisons" + (f": {'; '.join(ahead)}." if ahead else "."),
        "",
        "| table | epsilon | " + " | ".join(names) + " |",
        "|---" * (2 + len(names)) + "|",
    ]
    for label, epsilon, errors in whole:
        shown = " | ".join(f"{errors[name].mean():.2f}" for name in names)
        lines.append(f"| {label} | {epsilon:g} | {shown} |")
    return "\n".join([*lines, MARKS[1], ""])


def main(path: Path = _PAGE) -> None:
    """Measure, then write the section."""
    rest = path.read_text(encoding="utf-8").replace(section(path, *MARKS), "")
    path.write_text(rest + "\n" + written(), encoding="utf-8")


if __name__ == "__main__":
    main()
