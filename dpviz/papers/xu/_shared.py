"""What the five figures of Xu, Yang and Bai 2019 share.

LIP is the mechanism ``laplace``, LOP is ``laplace_output``. With W the first k
eigenvectors of LIP's noisy matrix and V those of A, the paper's tables are
Z1 = X W W' and Z2 = (X V + E2) V'.

The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP.

Neither error needs the rows, only A and noise. With W the first k components of
LIP (orthonormal columns) and V the exact ones:

- X - Z1 = X (I - W W'), so ||Z1 - X||^2 = n (tr A - tr W'AW).
- Z2 - X = E2 V' - X (I - VV'). The terms are orthogonal, as
  tr (E2 V')' X (I - VV') = tr E2' X (I - VV') V = 0, so
  ||Z2 - X||^2 = ||E2||^2 + n (lambda_{k+1} + ... + lambda_d).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets import remote
from dpviz.datasets.table import Table
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.said import View
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.prepared import Measured
from dpviz.sampling.ensembles import symmetric_laplace
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

LIP, LOP = parse_variant("laplace"), parse_variant("laplace_output")
RANDOM, EXACT = parse_variant("random_projection"), parse_variant("non_private")
ALPHA = 0.85  # least share of the variance that k components must have

DELTA = 1e-6  # of the mechanisms that have one, in Figures 3 and 4; the paper states none

LIMIT = "1 / the paper's factor"
HELD = "share of the variance that k components hold"
_ROWS, _FEATURES, _K = "rows", "features", "k for 85 % of the variance"


_FULL = 100  # runs, as in the paper
_ENTRIES = 1 << 20  # noise entries drawn at a time, so that memory does not grow with n


@dataclass(frozen=True)
class XuData:
    """A data set of the paper.

    Attributes
    ----------
    key : str
        Of the remote data set.
    label : str
        The paper's name for it.
    noise, by_k, by_epsilon : float
        Factors by which the paper multiplies theta in Figures 1 and 2, and eta
        in Figures 3 and 4.
    """

    key: str
    label: str
    noise: float
    by_k: float
    by_epsilon: float


SETS = (
    XuData("secom", "Secom", 1, 1e3, 10),
    XuData("covertype", "Covtype", 1e5, 1e2, 10),
    XuData("musk", "Musk", 1e2, 1e3, 1e3),
    XuData("semeion", "Handwritten", 1e2, 1e2, 1e3),
    XuData("waveform", "Waveform", 1e3, 1e2, 1e2),
)
BY_KEY = {data.key: data for data in SETS}
BY_LABEL = {data.label: data for data in SETS}


class Runs(Part):
    """Some of the runs on one data set.

    Attributes
    ----------
    mechanism : str
        Text of the variant whose components or noise are drawn.
    first, count : int
        Numbers of the runs.
    """

    mechanism: str = ""
    first: int = 0
    count: int = 0

    @property
    def runs(self) -> range:
        """Numbers of the runs."""
        return range(self.first, self.first + self.count)


def run_parts(
    effort: Effort,
    data: Sequence[XuData] = SETS,
    mechanisms: Sequence[Mechanism] = (LIP,),
    quick: int = 5,
    block: int = 20,
) -> list[Runs]:
    """Return parts of at most ``block`` runs each, the first of every data set first."""
    total = quick if effort is Effort.QUICK else _FULL
    return [
        Runs(
            data=item.key,
            mechanism=mechanism.text,
            first=first,
            count=min(block, total - first),
        )
        for first in range(0, total, block)
        for item in data
        for mechanism in mechanisms
    ]


def prepared(table: Table) -> Prepared:
    """Return a table prepared as the paper says: centred, no row longer than 1."""
    return prepare(table, Settings(table=table.name, center="mean", row_bound="max"))


class MomentsExperiment(Experiment):
    """What Figures 1 to 4 have in common: they need second moments only."""

    def shared(self, data: str) -> Measured | None:
        """Return the second moment of a data set; None for what is known by its shape."""
        if not data:
            return None
        return prepared(remote.load(data, download=False)).light()


def least_k(eigenvalues: FloatArray, share: float = ALPHA) -> int:
    """Return the least k whose components have a share of the variance (paper, equation 3).

    Below d in any case: with all components there is nothing to project.
    """
    shares = np.cumsum(eigenvalues) / eigenvalues.sum()
    return min(int(np.searchsorted(shares, share)) + 1, len(eigenvalues) - 1)


def k_values(d: int, k: int) -> list[int]:
    """Return the k to draw: from 1 to three times the paper's, below d."""
    # even on a logarithm, as the first components change most
    spread = np.geomspace(1, min(3 * k, d - 1), 7).round().astype(int)
    return sorted({*spread.tolist(), k})


def problem_of(measured: Measured, k: int, n: int | None = None) -> Problem:
    """Return the problem: the paper's neighbours differ in one record."""
    n = measured.n if n is None else n
    return Problem(n, measured.d, k, Relation.REPLACE, measured.domain)


def output_norms(data: str, n: int, k: int, seed: int, runs: range) -> FloatArray:
    """Return ||E2||_F of LOP at scale 1, shape (runs,): all n k entries are drawn."""
    squares = np.zeros(len(runs))
    for place, run in enumerate(runs):
        rng = generator(seed, "reproduce", "xu", data, LOP.key, n, k, run)
        for start in range(0, n * k, _ENTRIES):
            # The size of a Lap(1) entry is a standard exponential; its sign is squared away.
            sizes = rng.standard_exponential(min(_ENTRIES, n * k - start))
            squares[place] += sizes @ sizes
    norms: FloatArray = np.sqrt(squares)
    return norms


@dataclass(frozen=True)
class Facts:
    """What the draws on a data set say of its table."""

    n: int
    d: int
    k: int


def facts_draws(label: str, n: int, d: int, k: int) -> dict[Point, FloatArray]:
    """Return n, d and the paper's k as draws, to be emitted once."""
    numbers = {_ROWS: n, _FEATURES: d, _K: k}
    return {Point(label, "table", name): np.array([float(x)]) for name, x in numbers.items()}


def facts(view: View) -> Facts:
    """Return n, d and k of a data set."""
    return Facts(*(int(view("table", name).value) for name in (_ROWS, _FEATURES, _K)))


# The ratio theta of Xu, Yang and Bai 2019, Figures 1 and 2: noise of LIP over noise of LOP ------

THETA = "theta = ||E1|| / ||E2||"
SIMULATED, CLOSED = "simulated", "closed form d/(n sqrt(n k))"
EPSILON = 1.0
BY_SHAPE = ("Secom", "Covtype")
"""Sets that are not at hand: theta needs n, d and k alone, which are published."""


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


class ShapeRuns(Part):
    """Theta of a set of which n and d are known, without its table."""

    shape: str = ""
    count: int = 0

    def draws(
        self, seed: int, places: Callable[[int, int], list[tuple[int, int, int]]]
    ) -> Measurements:
        """Return theta at places that n and d make."""
        data, table = BY_KEY[self.shape], remote.sets()[self.shape]
        units, found = input_norms(table.d, seed, range(self.count)), {}
        for n, k, x in places(table.n, table.d):
            problem = Problem(n, table.d, k, Relation.REPLACE, Domain.ball(table.d))
            inside, outside = (m.calibrate(problem, Budget(EPSILON)).scale for m in (LIP, LOP))
            # the mean of n k squared entries; drawn, they vary by less than a part in 10,000
            norm = outside * math.sqrt(2 * n * k)
            found[Point(data.label, SIMULATED, THETA, float(x))] = inside * units / norm
            closed = np.array([closed_form(n, table.d, k)])
            found[Point(data.label, CLOSED, THETA, float(x))] = closed
            limit = np.array([1 / data.noise])
            found[Point(data.label, LIMIT, THETA, float(x))] = limit
        return Measurements(found)


def shape_parts(effort: Effort) -> list[ShapeRuns]:
    """Return one part for each set that is known by its shape."""
    count = 5 if effort is Effort.QUICK else 100
    return [ShapeRuns("", data.key, count) for data in BY_KEY.values() if data.label in BY_SHAPE]


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


CURVES = (THETA, SIMULATED, CLOSED, LIMIT)
"""Of Figures 1 and 2: the quantity, and the series that show it."""


# The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP --------

ETA = "eta = ||Z1 - X|| / ||Z2 - X||"
ERROR = "||Z - X|| / ||X||"
ADDED = (parse_variant("gaussian"), parse_variant("wishart_difference"))
PROJECTED = (LIP, *ADDED, RANDOM, EXACT)  # those whose components take the place of LIP's


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


# Of Figures 3 and 4: a quantity and the series that show it. Baselines by their names are dashed,
# as one may lie on LIP's line: both are then seen.
_BASELINES = (RANDOM.label, EXACT.label)
ETAS = (ETA, *ADDED, LIP, *_BASELINES, LIMIT)
ERRORS = (ERROR, *ADDED, LIP, LOP, *_BASELINES)
