"""How good published pictures are, by form, on six tables: docs/picture.md.

    python -m benchmarks.picture

Two measures of `dpviz.picture.quality`, means of `DRAWS` releases: the share of people whose label
the nearest published points tell, and the error of the shape (0 is the truth, 1 a single point).
Beside our forms stand two plain histograms, the two ways that the R package dppca is said to have
(neither its program nor its documents were used): fixed cells along each axis and Laplace noise on
every cell, or on those with people in them and above a threshold. They get .65 of epsilon, and the
directions the rest, which add up to the same total; our frame is given to them for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.blas import one_blas_thread
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.picture.account import CELLS, FORMS, PictureOptions, with_picture
from dpviz.picture.counting import Picture, PictureNoise, exact_answers, places, publish
from dpviz.picture.quality import MOST_ROWS, expected, right_share, shape_error
from dpviz.picture.shown import points, steady
from dpviz.preparation.bounding import Prepared, prepare

TABLES = (
    ("digits", "none"), ("breast_cancer", "standardize"), ("wine", "standardize"),
    ("iris", "standardize"), ("wine", "none"), ("digits", "standardize"),
)  # fmt: skip
EPSILONS = (0.3, 1.0, 3.0, 10.0)
DRAWS = 6
CLAIMS = (
    ("digits", "none", 1.0, 0.56),
    ("breast_cancer", "standardize", 1.0, 0.91),
    ("wine", "standardize", 3.0, 0.95),
)
CLAIM_DRAWS = 60
_THEIR_CELLS = 10
_REPORT = Path(__file__).parents[1] / "docs" / "picture.md"


def measured(
    ready: Prepared, picture: Picture, directions: FloatArray, chosen: np.ndarray
) -> tuple[float, float]:
    """Return the share of labels told and the error of the shape."""
    assert ready.labels is not None
    rows = ready.moment_with_rows.rows
    assert rows is not None
    true, codes = places(rows[chosen], directions, disk=picture.disk), ready.labels.codes[chosen]
    shown = points(picture, steady(len(chosen)))
    count = len(ready.labels.kinds)
    right = float(np.bincount(codes).max()) / len(codes)
    if picture.plan.kinds > 1:
        right = right_share(shown.places, shown.kinds, true, codes, count)
    return right, shape_error(shown.places, true)


def theirs(
    ready: Prepared, ours: Picture, directions: FloatArray, budget: float, delta: float, *,
    sparse: bool, seed: int,
) -> Picture:  # fmt: skip
    """Return an additive or a sparse histogram with Laplace noise, in our frame."""
    assert ready.labels is not None
    rows = ready.moment_with_rows.rows
    assert rows is not None
    kinds = len(ready.labels.kinds)
    scale = 2 / budget
    plan = replace(
        ours.plan, options=PictureOptions(form="sparse" if sparse else CELLS, kinds=kinds),
        kinds=kinds, cells=_THEIR_CELLS, pure=True, noise=scale,
    )  # fmt: skip
    along = places(rows, directions, disk=ours.disk)
    exact = exact_answers(along, ready.labels.codes, rows.any(axis=1), ours.frame, plan)
    noisy = exact + generator(seed, "theirs", str(sparse)).laplace(scale=scale, size=exact.shape)
    if sparse:
        above = 1 + scale * math.log(2 / delta)
        noisy = np.where((exact > 0) & (noisy > above), noisy, 0.0)
    return Picture(plan, ours.frame, ours.disk, noisy)


def lines() -> Iterator[str]:
    """Yield the lines of the report's table."""
    mechanism = parse_variant("spherical")
    for name, scale in TABLES:
        settings = Settings(table=name, scale=scale)
        ready = prepare(load(name), settings)
        assert ready.labels is not None
        data = ready.moment_with_rows
        assert data.rows is not None
        n, kinds = ready.n, len(ready.labels.kinds)
        chosen = np.arange(n)
        if n > MOST_ROWS:
            chosen = generator(0, "chosen").choice(n, MOST_ROWS, replace=False)
        true, codes = data.rows[chosen] @ ready.reference.top(2), ready.labels.codes[chosen]
        exact = right_share(true, codes, true, codes, kinds)
        label = name if scale == "none" else f"{name}, standardised"
        for epsilon in EPSILONS:
            problem = ready.problem(settings)
            assert problem.relation is Relation.REPLACE
            budget = ready.budget(replace(settings, epsilon=epsilon))
            cells, peers = [], ["", ""]
            for form in FORMS:
                wanted = PictureOptions(form=form, kinds=kinds)
                made = with_picture(mechanism, problem, budget, wanted)
                if not made.publishes:
                    cells += ["axes alone", *["-"] * (form == CELLS)]
                    continue
                calibration = mechanism.calibrate(problem, made.chain.rest)
                released = mechanism.release_many(
                    data, calibration, Draws.trials(0, mechanism.key, range(DRAWS))
                )
                apart = mechanism.calibrate(problem, Budget(0.35 * epsilon, budget.delta))
                split = mechanism.release_many(
                    data, apart, Draws.trials(0, mechanism.key, range(DRAWS))
                ).components
                noise = PictureNoise.drawn(made.plan, Draws.trials(0, "picture", range(DRAWS)))
                found: list[tuple[float, float]] = []
                told: list[tuple[float, ...]] = []
                other: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
                for draw, V in enumerate(released.components):
                    own = publish(data.rows, ready.labels.codes, V, made.plan, noise, draw)
                    found.append(measured(ready, own, V, chosen))
                    if form == CELLS:
                        foretold = expected(own, generator(draw, "expected"))
                        assert foretold is not None
                        told.append((*(foretold.right or (math.nan, math.nan)), *foretold.error))
                        for sparse, kept in other.items():
                            share = 0.65 * epsilon  # of epsilon, as Laplace noise is pure
                            pic = theirs(
                                ready,
                                own,
                                split[draw],
                                share,
                                budget.delta,
                                sparse=sparse,
                                seed=draw,
                            )
                            kept.append(measured(ready, pic, split[draw], chosen))
                cells.append(_pair(found))
                if form == CELLS:
                    cells.append(_ranges(told))
                    peers = [_pair(kept) for kept in other.values()]
            yield "| " + " | ".join(
                [label, f"{exact:.2f}", f"{np.bincount(codes).max() / len(codes):.2f}",
                 f"{epsilon:g}", *cells, *peers]
            ) + " |"  # fmt: skip


def _ranges(told: list[tuple[float, ...]]) -> str:
    """Return what is expected of cells: labels told and error, each from one end to the other."""
    low, high, least, most = np.mean(told, axis=0)
    right = "-" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
    return f"{right} / {least:.2f} to {most:.2f}"


def claims() -> Iterator[str]:
    """Yield a line for each of the three figures that the form `cells` was to reach."""
    mechanism = parse_variant("spherical")
    for name, scale, epsilon, goal in CLAIMS:
        settings = Settings(table=name, scale=scale, epsilon=epsilon)
        ready = prepare(load(name), settings)
        assert ready.labels is not None
        data = ready.moment_with_rows
        assert data.rows is not None
        wanted = PictureOptions(kinds=len(ready.labels.kinds))
        made = with_picture(mechanism, ready.problem(settings), ready.budget(settings), wanted)
        trials = range(CLAIM_DRAWS)
        calibration = mechanism.calibrate(ready.problem(settings), made.chain.rest)
        released = mechanism.release_many(data, calibration, Draws.trials(1, mechanism.key, trials))
        noise = PictureNoise.drawn(made.plan, Draws.trials(1, "picture", trials))
        right = np.array([
            measured(
                ready, publish(data.rows, ready.labels.codes, V, made.plan, noise, draw), V,
                np.arange(ready.n),
            )[0]
            for draw, V in enumerate(released.components)
        ])  # fmt: skip
        half = 1.96 * right.std(ddof=1) / math.sqrt(CLAIM_DRAWS)
        label = name if scale == "none" else f"{name}, standardised"
        yield (
            f"- {label}, epsilon {epsilon:g}: {right.mean():.3f}, from {right.mean() - half:.3f} "
            f"to {right.mean() + half:.3f}; wanted {goal}."
        )


def _pair(found: list[tuple[float, float]]) -> str:
    right, error = np.mean(found, axis=0)
    return f"{right:.2f} / {error:.2f}"


def main(path: Path = _REPORT) -> None:
    """Write the report."""
    head = [
        "# How good published pictures are", "",
        "Written by `python -m benchmarks.picture`. Spherical directions, replace, default delta,",
        f"means of {DRAWS} draws. Each pair: labels told by the 15 nearest published points, and",
        "the error of the shape. `exact` is from the exact picture, `chance` the largest label.",
        "The last two get .65 of epsilon, their directions the rest, our frame for nothing: cells",
        "(10 by 10) and Laplace noise, on every cell or above a threshold, the two ways that the R",
        "package dppca is said to have; neither its program nor its documents were used.",
        "`expected` is what `dpviz.picture.quality.expected` says of the cells from released",
        "numbers alone, from end to end.", "",
        "| table | exact | chance | epsilon | cells | expected | sparse | ellipses | additive "
        "| above |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with one_blas_thread():
        body = list(lines())
        reached = list(claims())
    foot = [
        "", f"Labels told by cells, means of {CLAIM_DRAWS} other draws, 95 % intervals:", "",
        *reached, "",
    ]  # fmt: skip
    path.write_text("\n".join([*head, *body, *foot]), encoding="utf-8")


if __name__ == "__main__":
    main()
