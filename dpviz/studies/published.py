"""The question `published`: a picture of the rows, and whether it may be shown to anybody."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Unpack

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral, percent, rows_words
from dpviz.core.problem import Budget, Unit
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.table import NOT_PUBLISHED
from dpviz.mechanisms import featured, parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.schema import Schema
from dpviz.report.tables.projection import published_table
from dpviz.simulation.compare import Result, compare
from dpviz.simulation.picture.account import SHARE
from dpviz.simulation.picture.counting import Picture
from dpviz.simulation.picture.quality import expected
from dpviz.simulation.picture.scree import TWO_SIDED, Scree
from dpviz.simulation.picture.shown import drowned
from dpviz.studies import Answer
from dpviz.studies.columns import ABSENT, ASIDE, NUMBERS, SOURCED, Column, of_pair
from dpviz.studies.options import Options, Publishing, asks
from dpviz.studies.publishing import enter, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure

_POINTS = 300

SCREE = (
    Column("variances", type=Annotated[Any, list[float]]),
    Column("noise_std", of=lambda scree: scree.std, type=Annotated[Any, list[float]]),
    Column("total", type=float, help="Variance of all directions."),
    Column("total_std", type=float),
    Column("hidden_below", of=lambda scree: scree.level, type=float,
           help="A variance below this cannot be told from noise."),
    Column("radius", of=lambda scree: scree.radius if math.isfinite(scree.radius) else None,
           help="Rows were shortened to this length first; null where they were not."),
)  # fmt: skip
"""Variances along the released directions, in squared units of the rows."""


@dataclass(frozen=True)
class ReleasedPicture:
    """One picture, by its released numbers alone.

    Attributes
    ----------
    directions : list of list of float
        One list of d numbers an axis.
    frame : list of float
        The picture reaches from minus to plus this along each axis.
    directions_alone : bool
        Whether places are in units of each row's own length.
    counts : list
        Noisy, by label and cell; of ellipses the noisy moments of each label.
    noise : str
        Gaussian or Laplace.
    scree : tuple or None
        Variances along the released directions, in squared units of the rows.
    drowned : list of str
        Labels that cannot be told apart.
    error : float or None
        Share of one dot's error by which noise puts the shape off in 95 of 100 pictures at
        most, by simulation from these numbers; null for ellipses.
    """

    form: str
    directions: list[list[float]]
    frame: list[float]
    directions_alone: bool
    counts: list[Any]
    noise: str
    noise_std: float
    scree: Annotated[Scree, SCREE] | None
    drowned: list[str]
    error: float | None


@dataclass(frozen=True, eq=False)
class Sheet:
    """One mechanism's picture, if it has any.

    Attributes
    ----------
    result : Result
    kinds : tuple of str
        Labels of the rows.
    """

    result: Result
    kinds: tuple[str, ...]

    @property
    def picture(self) -> Picture | None:
        """The picture; None where no claim holds, or all of it would drown."""
        return self.result.pictures[0] if self.result.pictures else None

    @cached_property
    def worth(self) -> float | None:
        """By how much noise puts its shape off in 95 of 100 pictures at most."""
        if self.picture is None:
            return None
        # a stream of the mechanism's own: the same words each time they are asked for
        return expected(self.picture, generator(0, "expected", self.result.mechanism.text))

    @property
    def released(self) -> ReleasedPicture | None:
        """All numbers of it that are released."""
        made = self.picture
        if made is None:
            return None
        plan = made.plan
        return ReleasedPicture(
            plan.options.form,
            self.result.components[0][:, : plan.axes].T.tolist(),
            made.frame.tolist(),
            made.disk,
            made.noisy.tolist(),
            "Laplace" if plan.pure else "Gaussian",
            plan.std,
            made.scree,
            [self.kinds[kind] for kind in drowned(made)],
            self.worth,
        )


def _planned(name: str, sheet: Sheet) -> Any:
    return ABSENT if sheet.picture is None else getattr(sheet.picture.plan, name)


_JSON, _TABLE = frozenset({"json"}), frozenset({"table"})

PUBLISHED = (
    Column("mechanism", of=lambda sheet: sheet.result.mechanism, type=str, show=NUMBERS),
    Column("status", of=lambda sheet: sheet.result.status, type=str, show=NUMBERS),
    Column("evidence", of=lambda sheet: sheet.result.status.evidence, type=str, show=_JSON),
    Column("claimed", of=lambda sheet: sheet.result.claimed, type=Budget | None, show=_JSON),
    Column("spent", of=lambda sheet: sheet.result.spent, type=Annotated[Any, SOURCED] | None,
           show=_JSON),
    Column("epsilon", of=lambda sheet: of_pair(sheet.result.spent, "cost"), show=_TABLE),
    Column("published", of=lambda sheet: sheet.picture is not None, type=bool, show=_TABLE),
    Column("cells", of=partial(_planned, "cells"), show=_TABLE),
    Column("noise_std", of=partial(_planned, "std"), show=_TABLE),
    Column("error", show=_TABLE, of=lambda sheet: ABSENT if sheet.worth is None else sheet.worth),
    Column("picture", of=lambda sheet: sheet.released, type=ReleasedPicture | None, show=_JSON,
           help="Null where no claim holds, or all of it would drown."),
)  # fmt: skip
"""What one mechanism publishes."""


@dataclass(frozen=True, eq=False, repr=False)
class PublishedPictures(Answer):
    """Pictures of the rows, one of each mechanism, with nothing that compares with the rows.

    They may be shown to anybody where the table is public or was read under a schema.

    Attributes
    ----------
    table_ : str
        Name of the table.
    publishable : bool
        Whether they may be shown to anybody.
    reading : str
        Why they may not, and what to do; empty where they may.
    columns_ : tuple of str
        The features.
    settings : Settings
        Of a table that is not public without its seed: nobody draws that noise again.
    sheets : tuple of Sheet
        One draw each, without metrics.
    prepared : Prepared
    """

    figures: ClassVar[tuple[str, ...]] = ("published", "scree")
    columns: ClassVar[tuple[Column, ...]] = PUBLISHED

    table_: str
    publishable: bool
    reading: str
    n: int
    columns_: tuple[str, ...]
    settings: Settings
    labels: tuple[str, ...]
    assumed_public: tuple[str, ...]
    results: tuple[Sheet, ...]
    prepared: Annotated[Prepared, ASIDE]

    @classmethod
    def of(
        cls, results: Sequence[Result], prepared: Prepared, settings: Settings
    ) -> PublishedPictures:
        """Return the answer that pictures are."""
        kinds = () if prepared.labels is None else tuple(prepared.labels.kinds)
        return cls(
            prepared.name,
            prepared.table.publishable,
            "" if prepared.table.publishable else NOT_PUBLISHED,
            prepared.n,
            tuple(prepared.columns),
            settings,
            kinds,
            tuple(prepared.assumed_public),
            tuple(Sheet(result, kinds) for result in results),
            prepared,
        )

    def summary(self) -> str:
        """Return what is published, what it costs in all and what is assumed public."""
        made = [sheet for sheet in self.results if sheet.picture]
        epsilon = self.settings.epsilon
        each = f"costs epsilon {numeral(epsilon, 6)} in all, axes and points together"
        problem = self.prepared.problem(self.settings)
        if problem.unit is Unit.PERSON:
            each += f", for a person with {rows_words(problem.together)}"
        lines = ["No claim that holds leaves a picture here: nothing is published."]
        if len(made) == 1:
            lines = [f"This picture {each}."]
        elif made:
            whole = numeral(len(made) * epsilon, 6)
            lines = [f"Each picture {each}; all {len(made)} cost at most epsilon {whole}."]
        lines += [
            f"{sheet.result.mechanism.label}: {'; '.join(self._words(sheet))}." for sheet in made
        ]
        if self.reading:
            lines.insert(0, self.reading)
        public = self.prepared.assumed_public
        names = ["the names of labels"] if self.prepared.labels is not None else []
        names = [] if self.prepared.table.categories else names
        return "\n".join([*lines, "Assumed public: " + "; ".join([*public, *names]) + "."])

    @staticmethod
    def _words(sheet: Sheet) -> list[str]:
        (picture,) = sheet.result.pictures
        kinds, said = sheet.kinds, list[str]()
        hidden = [kinds[kind] for kind in drowned(picture)]
        if hidden:
            said.append(f"{' and '.join(hidden)} cannot be distinguished at this epsilon")
        # counted without labels, for with them noise would hide every one
        elif picture.plan.kinds == 1 < len(kinds):
            said.append("labels would drown")
        if picture.disk:
            said.append("shows directions, not lengths")
        worth = sheet.worth
        if worth is not None:
            said.append(
                f"in 95 of 100 pictures noise puts its shape off by at most "
                f"{percent(min(worth, 1.0))} (one dot for all: {percent(1.0)})"
            )
        scree = picture.scree
        if scree is not None and scree.clear and len(scree.shares):
            held = [
                f"{percent(share)} ± {percent(error)}"
                # the first two carry the picture; with k = 1 there is one
                for share, error in zip(scree.shares[:2], TWO_SIDED * scree.errors, strict=False)
            ]
            first = "first component holds" if len(held) == 1 else "first two components hold"
            said.append(f"its {first} {' and '.join(held)} of the variance")
        return said or ["a model of ellipses"]

    def figure(self, name: str | None = None) -> Figure:
        """Draw the pictures side by side at one scale, or the shares of the variance.

        Parameters
        ----------
        name : {"published", "scree"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        if self._named(name) == "published":
            return published_figure([sheet.result for sheet in self.results], self.prepared)
        from dpviz.report.figures.side_by_side import screes
        from dpviz.report.figures.theme import panels

        made = [sheet.result for sheet in self.results if sheet.picture]
        known = {result.mechanism.text: result.pictures[0].scree for result in made}
        return screes({key: scree for key, scree in known.items() if scree}, panels(made))


def published_figure(results: Sequence[Result], prepared: Prepared) -> Figure:
    """Return the figure of what results publish; those that publish nothing are left out."""
    from dpviz.report.figures.side_by_side import pictures
    from dpviz.report.figures.theme import panels

    made = [result for result in results if result.pictures]
    kinds = () if prepared.labels is None else prepared.labels.kinds
    known = {result.mechanism.text: result.pictures[0] for result in made}
    # one direction spans no plane: where one picture is a strip, all are, on one scale
    strip = any(picture.plan.axes == 1 for picture in known.values())
    table = published_table(known, kinds, _POINTS)
    points = "points stand for people, none is a person"
    ribbon = f"published: {points}"
    if not prepared.table.publishable:
        ribbon = f"not to be published, as no schema says how the file is read; {points}"
    return pictures(table, panels(made), strip=strip, ribbon=ribbon, exact=False)


@asks("a picture of the rows to publish, and what it costs", Settings, Publishing)
def published(
    table: Any = "digits",
    *,
    schema: str | PathLike[str] | Schema | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Unpack[Options],
) -> PublishedPictures:
    """Publish a picture of the rows: directions and noisy counts along them, at one cost.

    Parameters
    ----------
    table
        As in `compare`; its rows must be in memory.
    schema : path or Schema, optional
        How a file of one's own is read, so that its pictures may be shown to anybody: as `release`
        reads it. Only a public table needs none.
    ledger : path or Ledger, optional
        Where what the pictures cost is written down before the rows are looked at.
    progress : callable, optional
        Called with (done, total, what comes next) before each mechanism.
    **options
        As in `compare`; one picture of the mechanism that is advised first, if none are named, with
        .65 of the budget if no share is said.

    Returns
    -------
    PublishedPictures
        ``figure("published")``, ``table()``, and in ``to_json()`` all numbers that are released.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where the rows are not in memory.
    DpvizError
        If the schema or the ledger cannot be used, or the ledger does not pay.

    See Also
    --------
    compare : The same beside the truth; ``figure("published")`` there is a look and no release.

    Notes
    -----
    Nothing here compares with the rows. Each call draws one picture of each mechanism and costs its
    epsilon again. The noise of a table that is not public is drawn from the system and not from
    ``seed``, and is in floating-point numbers: `release` makes releases.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.published("wine", scale="standardize", epsilon=3, mechanisms="spherical")
    >>> print(found.summary())
    This picture costs epsilon 3 in all, axes and points together.
    ...
    """
    prepared, settings = ready(table, options, schema)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "rows in memory, to be counted", settings.table)
    # raises where k does not fit the table, before anything is counted
    prepared.problem(settings)
    # each picture costs epsilon: who names no mechanism gets one and not six
    chosen = settings.mechanisms or featured()[:1]
    settings = replace(
        settings, picture=settings.picture or SHARE, mechanisms=chosen, trials=1, post="none"
    )
    found: list[Result] = []
    variants = parse_variants(chosen)
    if ledger is not None:
        enter(ledger, table, schema, prepared, settings)
    for done, mechanism in enumerate(variants):
        if progress is not None:
            progress(done, len(variants), mechanism.text)
        # whoever knows the seed can take the noise off again: it repeats for public tables alone
        seed = settings.seed if prepared.table.public else secrets.randbelow(2**63)
        own = replace(settings, seed=seed, mechanisms=(mechanism,))
        found += compare(prepared, own, metrics=()).results
    return PublishedPictures.of(found, prepared, settings)
