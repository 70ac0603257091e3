"""Small summaries of prepared tables: d x d arrays and public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.core.allocation import is_file, numbered, of_mapping, parse_allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation, default_delta
from dpviz.core.settings import Settings
from dpviz.datasets import read_thetas
from dpviz.preparation.transform import Transform


class AsksRows(Protocol):
    """The rows or summaries of rows that a mechanism needs."""

    @property
    def passes(self) -> int:
        """How often a release reads the rows in blocks; 0 if it needs all rows in memory."""


@dataclass(frozen=True, eq=False)
class PublicLabels:
    """Labels of the rows with public categories; the label of each row is private.

    Attributes
    ----------
    kinds : tuple of str
    codes : ndarray of int, shape (n,)
        Index of each row's label in ``kinds``.
    """

    kinds: tuple[str, ...]
    codes: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Measured:
    """Second moments of a prepared table, small enough to send to workers instead of the table.

    Attributes
    ----------
    name : str
        Name of the table.
    columns : tuple of str
        The d features in use.
    domain : Domain
        Set that contains every bounded row.
    row_bound : float
        R in units of the (scaled) table. On a box R is sqrt(d), in box units. Without a declared
        bound R is 1, the table's own unit.
    moment : SecondMoment
        Moment of the bounded rows, which mechanisms see.
    reference : SecondMoment
        Moment of the rows before bounding, in the same units; results are compared with it.
    bounded_rows : int
        Number of rows longer than the bound (or outside the box).
    notes, assumed_public : tuple of str
    raw : ndarray of shape (n_rows, d) or None
        The rows before any preparation, in units of the table, if the preparation is partly
        private. Then ``moment`` is prepared exactly; mechanisms see other moments.
    public : Transform or None
        Public facts about that preparation, with placeholders for private facts.
    labels : PublicLabels or None
        Labels of the rows, if available.
    """

    name: str
    columns: tuple[str, ...]
    domain: Domain
    row_bound: float
    moment: SecondMoment
    reference: SecondMoment
    bounded_rows: int
    notes: tuple[str, ...]
    assumed_public: tuple[str, ...]
    raw: FloatArray | None = field(default=None, kw_only=True)
    public: Transform | None = field(default=None, kw_only=True)
    labels: PublicLabels | None = field(default=None, kw_only=True)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.moment.n

    @property
    def d(self) -> int:
        """Number of features."""
        return self.moment.d

    @property
    def has_rows(self) -> bool:
        """Whether mechanisms that need the rows themselves can run."""
        return self.moment.rows is not None

    @property
    def has_lengths(self) -> bool:
        """Whether mechanisms that need summaries of rows by length can run."""
        return self.moment.has_lengths

    def serves(self, mechanism: AsksRows) -> bool:
        """Return whether the table has what a mechanism needs of its rows."""
        return self.has_rows or (mechanism.passes > 0 and self.has_lengths)

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with its bounded rows or their summaries by length; see `serves`."""
        if not self.moment.has_lengths:
            raise RuntimeError(f"the rows of {self.name} are not available; call serves first")
        return self.moment

    def with_shares(
        self, settings: Settings, shares: Mapping[str, float] | None = None
    ) -> Settings:
        """Return settings with the allocation's features as numbers, or with their shares.

        Parameters
        ----------
        settings : Settings
        shares : mapping of feature to share, optional
            Shares that replace the allocation in the settings.

        Raises
        ------
        DpvizError
            If a feature is not known, or a file is not an allocation of the features.
        """
        # Settings may name a file of shares. A call from Python may pass the shares themselves.
        if shares is None and is_file(settings.allocation):
            shares = read_thetas(settings.allocation)
        if shares is None:
            written = numbered(settings.allocation, self.columns, settings.directions)
        else:
            written = of_mapping(shares, self.columns, settings.directions)
        return replace(settings, allocation=written)

    def problem(self, settings: Settings) -> Problem:
        """Return the problem that mechanisms calibrate to.

        Raises
        ------
        InvalidSetting
            If k is too large, or the allocation does not fit the features.
        """
        written = numbered(settings.allocation, self.columns, settings.directions)
        return Problem(
            self.n,
            self.d,
            settings.k,
            Relation(settings.relation),
            self.domain,
            parse_allocation(written, settings.directions),
            # If a column names persons but no number of rows is stated, a person has one row.
            settings.rows_a_person or (1 if settings.person else None),
        )

    def budget(self, settings: Settings) -> Budget:
        """Return the budget, with the default delta resolved for n."""
        delta = default_delta(self.n) if settings.delta is None else settings.delta
        return Budget(settings.epsilon, delta)


def reference_variances(measured: Measured) -> FloatArray | None:
    """Return the reference's variance along the moment's components, or None if they agree."""
    if measured.reference is measured.moment:
        return None
    V = measured.moment.eigenvectors
    along: FloatArray = np.einsum("ij,ij->j", V, measured.reference.A @ V)
    return along
