"""What the five figures of Xu, Yang and Bai 2019 share.

LIP is the mechanism ``laplace``, LOP is ``laplace_output``. With W the first k
eigenvectors of LIP's noisy matrix and V those of A, the paper's tables are
Z1 = X W W' and Z2 = (X V + E2) V'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Problem, Relation
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import remote
from dpviz.datasets.table import Table
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Point
from dpviz.papers.said import View
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.prepared import Measured

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
