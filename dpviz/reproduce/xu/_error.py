"""The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP.

Neither error needs the rows, only A and noise. With W the first k components of
LIP (orthonormal columns) and V the exact ones:

- X - Z1 = X (I - W W'), so ||Z1 - X||^2 = n (tr A - tr W'AW).
- Z2 - X = E2 V' - X (I - VV'). The terms are orthogonal, as
  tr (E2 V')' X (I - VV') = tr E2' X (I - VV') V = 0, so
  ||Z2 - X||^2 = ||E2||^2 + n (lambda_{k+1} + ... + lambda_d).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.experiment import Chart, Series, series_of
from dpviz.reproduce.lines import Agreement, Line, beside, claim
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.xu._shared import (
    BY_KEY,
    DELTA,
    EXACT,
    LIMIT,
    LIP,
    LOP,
    RANDOM,
    Runs,
    XuData,
    below_line,
    facts_draws,
    least_k,
    moves_line,
    output_norms,
    problem_of,
)
from dpviz.run.cells import Cell, evaluate
from dpviz.values.problem import Budget, Domain, Problem, Relation
from dpviz.values.release import VERDICT_WORDS, Verdict

ETA = "eta = ||Z1 - X|| / ||Z2 - X||"
ERROR = "||Z - X|| / ||X||"
ADDED = (parse_variant("gaussian"), parse_variant("wishart_difference"))
PROJECTED = (LIP, *ADDED, RANDOM, EXACT)  # those whose components take the place of LIP's

CHOICES = (
    "Beside LIP, the same ratio is drawn with the components of Gaussian noise and of the "
    f"difference of Wisharts (delta of the Gaussian: {DELTA:g}), with a random subspace and with "
    "the exact components in the place of LIP's.",
    "Only Figure 1 is said to be below 1 when scaled; eta times the factor is shown beside the "
    "claims and is none.",
    "A second picture shows the errors themselves, divided by ||X||: the table of zeros has 1.",
)
CAUTION = (
    "Z1 = X V'V'^T, V' the components of LIP, multiplies the raw rows and is not private at any "
    "epsilon; only the noisy matrix and its components are. So eta compares a leak with a noisy "
    "table."
)


def lop_errors(
    measured: Measured, data: str, k: int, epsilon: float, seed: int, runs: range
) -> FloatArray:
    """Return ||Z2 - X||_F of LOP, shape (runs,)."""
    scale = LOP.calibrate(problem_of(measured, k), Budget(epsilon)).scale
    rest = measured.n * max(float(measured.moment.eigenvalues[k:].sum()), 0.0)
    noise = scale * output_norms(data, measured.n, k, seed, runs)
    errors: FloatArray = np.hypot(noise, math.sqrt(rest))
    return errors


def projected_errors(
    measured: Measured,
    mechanism: Mechanism,
    ks: Sequence[int],
    epsilon: float,
    seed: int,
    runs: range,
) -> FloatArray:
    """Return ||X W W' - X||_F, W the first k released components, shape (len(ks), runs).

    One release with the largest k serves all, as components come in order.
    """
    budget = Budget(epsilon, DELTA)
    cell = Cell(mechanism, problem_of(measured, max(ks)), budget, seed, runs)
    captured = np.cumsum(evaluate(cell, measured).captured_each, axis=1)
    lost = measured.moment.total - captured[:, np.array(ks) - 1].T
    errors: FloatArray = np.sqrt(measured.n * np.maximum(lost, 0.0))
    return errors


def eta_draws(
    part: Runs,
    measured: Measured,
    seed: int,
    ks: Sequence[int],
    epsilons: Sequence[float],
    factor: float,
) -> Measurements:
    """Return eta and the errors at each k and epsilon.

    The axis is whichever of the two has more than one value.

    Parameters
    ----------
    part : Runs
        Its mechanism's components take the place of LIP's.
    measured : Measured
    seed : int
    ks, epsilons : sequence
        One of them of length 1.
    factor : float
        The paper's.
    """
    mechanism, label = parse_variant(part.mechanism), BY_KEY[part.data].label
    first = mechanism == LIP and part.first == 0
    length = math.sqrt(measured.n * measured.moment.total)
    found: dict[Point, FloatArray] = {}
    for place, epsilon in enumerate(epsilons):
        if place == 0 or mechanism not in (RANDOM, EXACT):  # these do not depend on epsilon
            errors = projected_errors(measured, mechanism, ks, epsilon, seed, part.runs)
        for k, inside in zip(ks, errors, strict=True):
            x = float(k if len(epsilons) == 1 else epsilon)
            outside = lop_errors(measured, part.data, k, epsilon, seed, part.runs)
            found[Point(label, mechanism.label, ETA, x)] = inside / outside
            found[Point(label, mechanism.label, ERROR, x)] = inside / length
            if mechanism == LIP:
                found[Point(label, LOP.label, ERROR, x)] = outside / length
            if first:
                found[Point(label, LIMIT, ETA, x)] = np.array([1 / factor])
    if first:
        k = least_k(measured.moment.eigenvalues)
        found |= facts_draws(label, measured.n, measured.d, k)
    return Measurements(found)


def eta_lines(
    data: XuData, found: Measurements, along: str, sign: int, said: str, why: str
) -> list[Line]:
    """Return what the paper says of eta along k or epsilon.

    Parameters
    ----------
    data : XuData
    found : Measurements
    along : str
        ``k`` or ``epsilon``.
    sign : int
        1 where the paper says that eta rises, -1 where it falls.
    said : str
        What it says, in our words.
    why : str
        The sentence to show where eta moves the other way.
    """
    curve = found.curve(data.label, LIP.label, ETA)
    return [
        below_line(
            data.label,
            f"eta below 1 at every {along}",
            "LIP has the lower error",
            curve,
            1.0,
            why="LOP's error is the smaller where its noise is smaller than what LIP misses.",
        ),
        moves_line(
            data.label,
            f"eta {'rises' if sign > 0 else 'falls'} from each {along} to the next",
            said,
            curve,
            sign,
            why=why,
        ),
    ]


def scaled_line(data: XuData, curve: Mapping[float, FloatArray], factor: float) -> Line:
    """Return the largest eta times the paper's factor, of which the text says nothing."""
    means = {x: float(np.mean(values)) for x, values in curve.items()}
    largest = max(means, key=lambda x: means[x], default=None)
    values = None if largest is None else factor * curve[largest]
    return beside(data.label, f"largest eta times {factor:,.0f}", None, values)


def slower_line(data: XuData, found: Measurements) -> Line:
    """Return whether LIP's error falls by less than LOP's from each epsilon to the next."""
    lip, lop = (found.curve(data.label, label, ERROR) for label in (LIP.label, LOP.label))
    xs = [x for x in lip if x in lop]
    falls = [np.diff([-math.log(float(np.mean(curve[x]))) for x in xs]) for curve in (lip, lop)]
    held = int((falls[0] < falls[1]).sum())
    return claim(
        data.label,
        "LIP's error falls by a smaller factor than LOP's from each epsilon to the next",
        "LIP's error decreases slightly, LOP's greatly",
        held,
        len(falls[0]),
        why="Where LIP's components appear out of the noise, its error falls too.",
    )


def near_line(data: XuData, found: Measurements) -> Line:
    """Return whether LIP's error is nearer to the least possible than to a random subspace's."""
    lip, least, random = (
        found.curve(data.label, mechanism.label, ERROR) for mechanism in (LIP, EXACT, RANDOM)
    )
    xs = [x for x in lip if x in least and x in random]
    held = sum(
        2 * float(np.mean(lip[x])) < float(np.mean(least[x])) + float(np.mean(random[x]))
        for x in xs
    )
    return claim(
        data.label,
        "LIP's error nearer to the least possible than to that of a random subspace",
        "LIP's components are close to the exact ones, whatever epsilon is",
        held,
        len(xs),
        why="Where it is not, noise drowns the components; eta is small because LOP's noise is "
        "far larger than the data.",
    )


def place_lines(data: XuData, found: Measurements, x: float | None, at: str) -> list[Line]:
    """Return eta and the errors at one place, with what else could stand in LIP's place.

    Parameters
    ----------
    data : XuData
    found : Measurements
    x : float or None
        The place on the axis; None where the data is absent.
    at : str
        The place in words.
    """

    def draws(mechanism: Mechanism, quantity: str) -> FloatArray | None:
        return None if x is None else found.get(data.label, mechanism.label, quantity, x)

    def over_least(mechanism: Mechanism) -> FloatArray | None:
        error, least = draws(mechanism, ERROR), draws(EXACT, ERROR)
        return None if error is None or least is None else error / float(np.mean(least))

    lines = [
        beside(data.label, f"eta, {at}", None, draws(LIP, ETA)),
        beside(
            data.label,
            f"eta with a random subspace in the place of LIP's, {at}",
            None,
            draws(RANDOM, ETA),
            note="A random subspace has learned nothing of the data, so an eta below 1 does not "
            "say that LIP's components are near the exact ones.",
        ),
    ]
    lines += [
        beside(
            data.label,
            f"error of {'LIP' if mechanism == LIP else mechanism.label} over the least possible, "
            + at,
            None,
            over_least(mechanism),
        )
        for mechanism in (LIP, *ADDED, RANDOM)
    ]
    lines.append(
        beside(
            data.label,
            f"error of LOP over ||X||, {at}",
            None,
            draws(LOP, ERROR),
            note="A table of zeros, which costs no privacy, has 1.",
        )
    )
    return lines


def promise_line(found: Measurements) -> Line:
    """Return what is known of LOP's claim, in the least setting: it fails in all."""
    panel, item = "Theorem 2", "LOP's claim"
    said = "(epsilon, 0)-differentially private"
    if not found.draws:
        return claim(panel, item, said, 0, 0, why="")
    problem = Problem(2, 2, 1, Relation.REPLACE, Domain.ball(2))
    status = LOP.status(problem, Budget(1.0))
    refuted = status.verdict is Verdict.REFUTED
    return Line(
        panel,
        item,
        said,
        VERDICT_WORDS[status.verdict],
        Agreement.DIFFERS if refuted else Agreement.AGREES,
        status.evidence,
    )


# Dashed, as it may lie on LIP's line: both are then seen.
_BASELINES = (Series(RANDOM.label), Series(EXACT.label))


def eta_charts(along: str, x_label: str) -> tuple[Chart, ...]:
    """Return eta and the errors along k or epsilon, one panel for each data set."""
    return (
        Chart(
            name=f"eta-{along}",
            title=f"Error of LIP (Laplace) over that of LOP, against {along}",
            quantity=ETA,
            x_label=x_label,
            y_label="eta",
            series=(*series_of((*ADDED, LIP)), *_BASELINES, Series(LIMIT)),
            log_x=True,
            log_y=True,
        ),
        Chart(
            name=f"error-{along}",
            title=f"Error of each table over ||X||, against {along}",
            quantity=ERROR,
            x_label=x_label,
            y_label=ERROR,
            series=(*series_of((*ADDED, LIP, LOP)), *_BASELINES),
            log_x=True,
            log_y=True,
        ),
    )
