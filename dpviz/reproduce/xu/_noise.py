"""The ratio theta of Xu, Yang and Bai 2019, Figures 1 and 2: noise of LIP over noise of LOP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import Draws
from dpviz.datasets import remote
from dpviz.noise.goe import symmetric_laplace
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Series
from dpviz.reproduce.lines import Line, Stated, beside
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.xu._shared import (
    BY_KEY,
    LIMIT,
    LIP,
    LOP,
    Facts,
    Runs,
    XuData,
    below_line,
    facts_draws,
    least_k,
    moves_line,
    output_norms,
    problem_of,
)
from dpviz.values.problem import Budget

THETA = "theta = ||E1|| / ||E2||"
SIMULATED, CLOSED = "simulated", "closed form d/(n sqrt(n k))"
EPSILON = 1.0

CHOICES = (
    "Epsilon is 1; it does not matter. E1 has d^2 entries of Lap(2d/(n epsilon)), mirrored ones "
    "included, and E2 has n k entries of Lap(2d/epsilon), so epsilon cancels, and so do the "
    "length of the rows and the factor 2d: theta is about d/(n sqrt(n k)).",
    "The paper's d^2/(n^3 k) is the ratio of the summed variances. It says that its figures show "
    "the ratio of Frobenius norms, which is the square root of that.",
)
CAUTION = (
    "E1 is noise on a d x d second moment and E2 noise on an n x k table: theta compares sizes of "
    "different things, and does not say which release is of more use."
)


def input_norms(d: int, seed: int, runs: range) -> FloatArray:
    """Return ||E1||_F of LIP at scale 1, shape (runs,): the noise that the mechanism draws."""
    noise = symmetric_laplace(Draws.trials(seed, LIP.key, runs), d)
    norms: FloatArray = np.linalg.norm(noise, axis=(1, 2))
    return norms


def closed_form(n: int, d: int, k: int) -> float:
    """Return the root of E||E1||_F^2 / E||E2||_F^2, at every epsilon.

    The d^2 entries of E1 have variance 2 (2d/(n epsilon))^2 each, and the n k of
    E2 have 2 (2d/epsilon)^2.
    """
    return d / (n * math.sqrt(n * k))


def theta_draws(
    part: Runs, measured: Measured, seed: int, places: Sequence[tuple[int, int, int]]
) -> Measurements:
    """Return theta at each place.

    Parameters
    ----------
    part : Runs
    measured : Measured
    seed : int
    places : sequence of (n, k, x)
        Rows, components, and the place on the axis.
    """
    data = BY_KEY[part.data]
    label = data.label
    d, budget, runs = measured.d, Budget(EPSILON), part.runs
    units = input_norms(d, seed, runs)
    found: dict[Point, FloatArray] = {}
    for n, k, x in places:
        problem = problem_of(measured, k, n)
        inside = LIP.calibrate(problem, budget).scale * units
        outside = LOP.calibrate(problem, budget).scale * output_norms(part.data, n, k, seed, runs)
        found[Point(label, SIMULATED, THETA, float(x))] = inside / outside
        if part.first == 0:
            expected = np.array([closed_form(n, d, k)])
            found[Point(label, CLOSED, THETA, float(x))] = expected
            found[Point(label, LIMIT, THETA, float(x))] = np.array([1 / data.noise])
    if part.first == 0:
        k = least_k(measured.moment.eigenvalues)
        found |= facts_draws(label, measured.n, measured.d, k)
    return Measurements(found)


def theta_lines(
    label: str, curve: Mapping[float, FloatArray], along: str, exponent: float
) -> list[Line]:
    """Return what the paper says of theta along k or n.

    Parameters
    ----------
    label : str
    curve : dict of float to ndarray of shape (runs,)
    along : str
        ``k`` or ``n``.
    exponent : float
        With which the paper's O(d^2/(n^3 k)) falls.
    """
    slopes = exponents(curve)
    return [
        below_line(
            label,
            f"theta below 1 at every {along}",
            "LIP adds less noise than LOP",
            curve,
            1.0,
            why="The closed form is above 1 where d^2 > n^3 k.",
        ),
        moves_line(
            label,
            f"theta falls from each {along} to the next",
            f"theta and {along} are negatively correlated",
            curve,
            -1,
            why="Two neighbouring points lie nearer together than the runs can tell.",
        ),
        beside(
            label,
            f"exponent of {along} in theta squared, the ratio of variances",
            Stated(exponent, rounding=0.05),
            None if slopes is None else 2 * slopes,
            why="The slope is another.",
            note="The paper's O(d^2/(n^3 k)) is a ratio of variances; the ratio of norms, which "
            "it says it draws, is its square root.",
        ),
    ]


def reading_lines(
    data: XuData, curve: Mapping[float, FloatArray], known: Facts | None
) -> list[Line]:
    """Return theta over its closed form, and times the factor in both readings."""
    theta = None if known is None else curve[known.k]
    at = "" if known is None else f", k = {known.k}"
    expected = 1.0 if known is None else closed_form(known.n, known.d, known.k)
    readings = (
        (f"theta over its closed form{at}", 1, 1 / expected),
        (f"theta times {data.noise:,.0f}{at}", 1, data.noise),
        (f"theta^2, the ratio of variances, times {data.noise:,.0f}{at}", 2, data.noise),
    )
    return [
        beside(data.label, item, None, None if theta is None else factor * theta**power)
        for item, power, factor in readings
    ]


def enough_rows_line(data: XuData, known: Facts | None) -> Line:
    """Return from how many rows theta times the factor is below 1, by the closed form."""
    least = None
    if known is not None:
        # factor * d/(n sqrt(n k)) < 1 where n > (factor * d/sqrt(k))^(2/3)
        least = np.ceil([(data.noise * known.d / math.sqrt(known.k)) ** (2 / 3)])
    return beside(
        data.label,
        f"rows from which theta times {data.noise:,.0f} is below 1, by the closed form",
        None,
        least,
        note="" if known is None else f"The table has {known.n:,}.",
    )


def exponents(curve: Mapping[float, FloatArray]) -> FloatArray | None:
    """Return each run's slope of log theta against log x, shape (runs,); None below two x."""
    if len(curve) < 2:
        return None
    ys = np.log(np.stack([curve[x] for x in sorted(curve)]))
    slopes: FloatArray = np.polyfit(np.log(sorted(curve)), ys, 1)[0]
    return slopes


def scaled_by_formula(data: Iterable[XuData], power: int) -> dict[str, float]:
    """Return theta to a power at k = 1 times the paper's factor, by label, from shapes alone."""
    declared = remote.sets()
    return {
        item.label: item.noise * closed_form(declared[item.key].n, declared[item.key].d, 1) ** power
        for item in data
    }


def theta_chart(along: str, x_label: str) -> Chart:
    """Return the figure along k or n, one panel for each data set."""
    return Chart(
        name=along,
        title=f"Noise of LIP over that of LOP, against {along}",
        quantity=THETA,
        x_label=x_label,
        y_label="theta",
        series=(
            Series(SIMULATED),
            Series(CLOSED),
            Series(LIMIT),
        ),
        log_x=True,
        log_y=True,
    )
