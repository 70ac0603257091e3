"""Shared code of the five figures of Xu, Yang and Bai 2019.

LIP is the mechanism ``laplace``, and LOP is ``laplace_output``. W and V hold the first k
eigenvectors of LIP's noisy matrix and of A. The paper's tables are Z1 = X W W' and Z2 = (X V + E2)
V'.

The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP.

Neither error needs the rows: A and the noise are enough. With W the first k components of LIP
(orthonormal columns) and V the exact components:

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
ALPHA = 0.85  # Least share of the variance that the first k components must have.

DELTA = 1e-6  # Delta in Figures 3 and 4 for mechanisms that need one. The paper states none.

LIMIT = "1 / the paper's factor"
HELD = "share of the variance that k components hold"
_ROWS, _FEATURES, _K = "rows", "features", "k for 85 % of the variance"


_FULL = 100  # Number of runs, which is the same as in the paper.
_ENTRIES = 1 << 20  # Number of noise entries simulated at a time: memory does not grow with n.


@dataclass(frozen=True)
class XuData:
    """A data set of the paper.

    Attributes
    ----------
    key : str
        Key of the remote data set.
    label : str
        Name of the data set in the paper.
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
    """Some of the simulation runs on one data set.

    Attributes
    ----------
    mechanism : str
        Text of the mechanism variant whose components or noise are simulated.
    first, count : int
        Numbers of the simulation runs.
    """

    mechanism: str = ""
    first: int = 0
    count: int = 0

    @property
    def runs(self) -> range:
        """Numbers of the simulation runs."""
        return range(self.first, self.first + self.count)


def run_parts(
    effort: Effort,
    data: Sequence[XuData] = SETS,
    mechanisms: Sequence[Mechanism] = (LIP,),
    quick: int = 5,
    block: int = 20,
) -> list[Runs]:
    """Return parts of at most ``block`` runs each; the first part of every data set comes first."""
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
    """Return a table prepared as in the paper: centred, with no row longer than 1."""
    return prepare(table, Settings(table=table.name, center="mean", row_bound="max"))


class MomentsExperiment(Experiment):
    """Base of Figures 1 to 4, which need second moments only."""

    def shared(self, data: str) -> Measured | None:
        """Return the second moment of a data set, or None if only its shape is known."""
        if not data:
            return None
        return prepared(remote.load(data, download=False)).light()


def least_k(eigenvalues: FloatArray, share: float = ALPHA) -> int:
    """Return the least k whose components have a share of the variance (paper, equation 3).

    The result is always below d, because all d components leave no variance to lose.
    """
    shares = np.cumsum(eigenvalues) / eigenvalues.sum()
    return min(int(np.searchsorted(shares, share)) + 1, len(eigenvalues) - 1)


def k_values(d: int, k: int) -> list[int]:
    """Return the k to simulate: from 1 to three times the paper's k, below d."""
    # Values of k are chosen on a log scale, because the results change most at small k.
    spread = np.geomspace(1, min(3 * k, d - 1), 7).round().astype(int)
    return sorted({*spread.tolist(), k})


def problem_of(measured: Measured, k: int, n: int | None = None) -> Problem:
    """Return the problem; the paper's neighbours differ in one record."""
    n = measured.n if n is None else n
    return Problem(n, measured.d, k, Relation.REPLACE, measured.domain)


def output_norms(data: str, n: int, k: int, seed: int, runs: range) -> FloatArray:
    """Return ||E2||_F of LOP at scale 1, shape (runs,), from all n k simulated entries."""
    squares = np.zeros(len(runs))
    for place, run in enumerate(runs):
        rng = generator(seed, "reproduce", "xu", data, LOP.key, n, k, run)
        for start in range(0, n * k, _ENTRIES):
            # The absolute value of a Laplace number is exponential. Its sign cancels in the square.
            sizes = rng.standard_exponential(min(_ENTRIES, n * k - start))
            squares[place] += sizes @ sizes
    norms: FloatArray = np.sqrt(squares)
    return norms


@dataclass(frozen=True)
class Facts:
    """Facts on a data set's table, read from its first simulation."""

    n: int
    d: int
    k: int


def facts_draws(label: str, n: int, d: int, k: int) -> dict[Point, FloatArray]:
    """Return n, d and the paper's k as simulated values, to be stored once."""
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
"""Unavailable data sets; theta needs only n, d and k, which are published."""


def input_norms(d: int, seed: int, runs: range) -> FloatArray:
    """Return ||E1||_F of LIP at scale 1, shape (runs,), of the simulated noise."""
    noise = symmetric_laplace(Draws.trials(seed, LIP.key, runs), d)
    norms: FloatArray = np.linalg.norm(noise, axis=(1, 2))
    return norms


def closed_form(n: int, d: int, k: int) -> float:
    """Return the root of E||E1||_F^2 / E||E2||_F^2, at every epsilon.

    Each of the d^2 entries of E1 has variance 2 (2d/(n epsilon))^2, and each of the n k entries of
    E2 has 2 (2d/epsilon)^2.
    """
    return d / (n * math.sqrt(n * k))


class ShapeRuns(Part):
    """Theta of a data set whose n and d are known, without the data set's table."""

    shape: str = ""
    count: int = 0

    def draws(
        self, seed: int, places: Callable[[int, int], list[tuple[int, int, int]]]
    ) -> Measurements:
        """Return theta at each place, computed from n and d."""
        data, table = BY_KEY[self.shape], remote.sets()[self.shape]
        units, found = input_norms(table.d, seed, range(self.count)), {}
        for n, k, x in places(table.n, table.d):
            problem = Problem(n, table.d, k, Relation.REPLACE, Domain.ball(table.d))
            inside, outside = (m.calibrate(problem, Budget(EPSILON)).scale for m in (LIP, LOP))
            # The norm is computed from its mean: simulated norms vary by less than 1 in 10,000.
            norm = outside * math.sqrt(2 * n * k)
            found[Point(data.label, SIMULATED, THETA, float(x))] = inside * units / norm
            closed = np.array([closed_form(n, table.d, k)])
            found[Point(data.label, CLOSED, THETA, float(x))] = closed
            limit = np.array([1 / data.noise])
            found[Point(data.label, LIMIT, THETA, float(x))] = limit
        return Measurements(found)


def shape_parts(effort: Effort) -> list[ShapeRuns]:
    """Return one part for each data set of which only the shape is known."""
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
        Rows, components, and the value on the axis.
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
"""Quantity of Figures 1 and 2, and the series that show this quantity."""


# The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP --------

ETA = "eta = ||Z1 - X|| / ||Z2 - X||"
ERROR = "||Z - X|| / ||X||"
ADDED = (parse_variant("gaussian"), parse_variant("wishart_difference"))
PROJECTED = (LIP, *ADDED, RANDOM, EXACT)  # The components of these mechanisms replace LIP's.


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
    """Return ||X W W' - X||_F for the first k released components W, shape (len(ks), runs).

    One release with the largest k serves all values of k, because components come in order.
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

    The axis is k or epsilon, whichever has more than one value.

    Parameters
    ----------
    part : Runs
        Runs of a mechanism whose components replace LIP's components.
    measured : Measured
    seed : int
    ks, epsilons : sequence
        Values of k and epsilon; one of the two tuples has length 1.
    factor : float
        Factor by which the paper multiplies eta.
    """
    mechanism, label = parse_variant(part.mechanism), BY_KEY[part.data].label
    first = mechanism == LIP and part.first == 0
    length = math.sqrt(measured.n * measured.moment.total)
    found: dict[Point, FloatArray] = {}
    for place, epsilon in enumerate(epsilons):
        if place == 0 or mechanism not in (RANDOM, EXACT):  # Epsilon does not affect these errors.
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


# Figures 3 and 4 show this quantity for these series. The lines of the baselines are dashed, so
# that one that lies on the line of LIP does not hide it.
_BASELINES = (RANDOM.label, EXACT.label)
ETAS = (ETA, *ADDED, LIP, *_BASELINES, LIMIT)
ERRORS = (ERROR, *ADDED, LIP, LOP, *_BASELINES)
