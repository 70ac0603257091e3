"""Prepared tables as cells need them: d x d arrays and public facts."""

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
    """A mechanism's needs of rows."""

    @property
    def by_length(self) -> bool:
        """Whether summaries of rows by length suffice."""


@dataclass(frozen=True, eq=False)
class PublicLabels:
    """Labels of the rows with public categories; each row's label is private.

    Attributes
    ----------
    kinds : tuple of str
    codes : ndarray of int, shape (n,)
        Each row's place among them.
    """

    kinds: tuple[str, ...]
    codes: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Measured:
    """Second moments of a prepared table; small, so that a worker gets it and not the table.

    Attributes
    ----------
    name : str
        Name of the table.
    columns : tuple of str
        The d features in use.
    domain : Domain
        Where every bounded row lies.
    row_bound : float
        R in units of the (scaled) table; on a box sqrt(d), in box units; 1, the table's own unit,
        where none is declared.
    moment : SecondMoment
        Of the bounded rows: what mechanisms see.
    reference : SecondMoment
        Of the rows before bounding, in the same units: what results are
        compared with.
    bounded_rows : int
        How many rows were longer than the bound (or left the box).
    notes, assumed_public : tuple of str
    raw : ndarray of shape (n_rows, d) or None
        The rows before any preparation, in units of the table, where a part of it is paid for:
        ``moment`` is then what an exact one gives, and mechanisms see another in each draw.
    public : Transform or None
        What is public about that preparation, or stands in its place where it is bought.
    labels : PublicLabels or None
        Of the rows, where they are at hand.
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
        return self.has_rows or (mechanism.by_length and self.has_lengths)

    @property
    def moment_with_rows(self) -> SecondMoment:
        """The moment with its bounded rows or their summaries by length; see `serves`."""
        if not self.moment.has_lengths:
            raise RuntimeError(f"the rows of {self.name} are not available; ask serves first")
        return self.moment

    def with_shares(
        self, settings: Settings, shares: Mapping[str, float] | None = None
    ) -> Settings:
        """Return settings with the allocation's features as numbers, or with their shares.

        Parameters
        ----------
        settings : Settings
        shares : mapping of feature to share, optional
            What counts in the place of what the settings say.

        Raises
        ------
        DpvizError
            If a feature is not known, or a file is not an allocation of the features.
        """
        # a link or a command names a file, a call may hand the shares over
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
            # who names the column of the person and no number means one row each
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
