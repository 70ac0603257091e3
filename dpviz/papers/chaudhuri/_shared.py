"""Rows, mechanisms and citations shared by the experiments of Chaudhuri et al. 2012."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.datasets import Table, remote
from dpviz.mechanisms import parse_variant
from dpviz.preparation.passes import symmetric
from dpviz.preparation.prepared import Measured

ALPHA, DELTA = 0.1, 0.01
BUDGET = Budget(ALPHA, DELTA)

NON_PRIVATE = parse_variant("non_private")
PPCA = parse_variant("ppca")
SULQ = parse_variant("mod_sulq")
RANDOM = parse_variant("random_projection")
STUDIED = (NON_PRIVATE, PPCA, SULQ, RANDOM)
ADDED = (parse_variant("gaussian"), parse_variant("wishart_difference"))

_BLOCK_ROWS = 20_000


@dataclass(frozen=True)
class DataSet:
    """A real data set of the paper, as its section 4 describes it.

    Attributes
    ----------
    key : str
        Key of the remote table.
    n, d, k : int
        Rows, features and components, as the paper states them.
    sizes : tuple of int
        Sample sizes within the figure's axis.
    """

    key: str
    n: int
    d: int
    k: int
    sizes: tuple[int, ...]


DATA_SETS = {
    item.key: item
    for item in (
        DataSet("kddcup99", 494_021, 116, 4, (20_000, 40_000, 60_000, 80_000, 100_000)),
        DataSet("census", 199_523, 513, 8, (50_000, 100_000, 150_000)),
        DataSet("localization", 164_860, 44, 10, (20_000, 40_000, 60_000, 80_000, 100_000)),
        DataSet("insurance", 9_822, 150, 11, (2_000, 4_000, 6_000, 8_000, 9_822)),
    )
}


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows of a table, with features mapped to [0, 1] and then divided by the largest row norm.

    Rows are sparse: most entries of indicator columns are 0.

    Attributes
    ----------
    name : str
    columns : tuple of str
    rows : sparse array of shape (n, d)
        Every row's norm is at most 1.
    labels : ndarray of shape (n,) or None
    """

    name: str
    columns: tuple[str, ...]
    rows: Any
    labels: NDArray[Any] | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    @cached_property
    def moment(self) -> SecondMoment:
        """Second moment of all rows, not centred, as in the paper."""
        return SecondMoment(_scatter(self.rows) / self.n, self.n)

    def order(self, seed: int, permutation: int) -> NDArray[np.intp]:
        """Return a random permutation of the row numbers.

        Every experiment of the paper uses the same permutations of rows.
        """
        rng = generator(seed, "reproduce", "chaudhuri", self.name, "permutation", permutation)
        return rng.permutation(self.n)

    def prefixes(self, order: NDArray[np.intp], sizes: Sequence[int]) -> Iterator[SecondMoment]:
        """Yield the second moments of the first rows in an order, for each size, in one pass.

        Parameters
        ----------
        order : ndarray of shape (n,)
            Row numbers in the order to use.
        sizes : sequence of int
            Ascending sample sizes, at most n.
        """
        total, start = np.zeros((self.d, self.d)), 0
        for size in sizes:
            # The total already has the rows of the smaller sample, so only later rows are added.
            total = total + _scatter(self.rows[order[start:size]])
            start = size
            yield SecondMoment(total / size, size)

    def measured(self, moment: SecondMoment) -> Measured:
        """Return a sample's second moment, with the moment of all rows as the reference."""
        return Measured(
            name=self.name,
            columns=self.columns,
            domain=Domain.ball(self.d),
            row_bound=1.0,
            moment=moment,
            reference=self.moment,
            bounded_rows=0,
            notes=(),
            assumed_public=(),
        )

    def problem(self, n: int, k: int) -> Problem:
        """Return the problem for calibration with n rows."""
        return Problem(n, self.d, k, Relation.REPLACE, Domain.ball(self.d))


def _scatter(rows: Any) -> FloatArray:
    product: FloatArray = (rows.T @ rows).toarray()
    return symmetric(product)


def unit_rows(table: Table) -> UnitRows:
    """Return a table's rows as the paper needs them: with norms at most 1, and not centred.

    Parameters
    ----------
    table : Table
        Table with indicator columns for its categories.

    Raises
    ------
    InvalidTable
        If fewer than two columns vary.
    """
    low, high = table.rows.min(axis=0), table.rows.max(axis=0)
    keep = low < high
    if keep.sum() < 2:
        raise InvalidTable(f"{table.name} must have at least 2 columns that vary.")
    blocks = []
    for start in range(0, len(table.rows), _BLOCK_ROWS):
        block = table.rows[start : start + _BLOCK_ROWS, keep]
        # Rows are converted block by block: as doubles the whole table may not fit into memory.
        blocks.append(sparse.csr_array((block - low[keep]) / (high[keep] - low[keep])))
    rows = sparse.vstack(blocks, format="csr")
    squares = rows.multiply(rows).sum(axis=1)
    rows.data /= np.sqrt(squares.max())
    columns = tuple(name for name, kept in zip(table.columns, keep, strict=True) if kept)
    return UnitRows(table.name, columns, rows, table.labels)


def load_unit_rows(key: str, as_paper: bool = True) -> UnitRows:
    """Return the rows of one of the paper's data sets, whose file must be local.

    Parameters
    ----------
    key : str
    as_paper : bool
        Whether to use the paper's number of features, which may count the label as a feature.
    """
    return unit_rows(remote.load(key, download=False, as_paper=as_paper))
