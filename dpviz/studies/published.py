"""The question `published`: a map of the rows, and whether it may be published."""

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
    Column("total", type=float, help="Total variance over all directions."),
    Column("total_std", type=float),
    Column("hidden_below", of=lambda scree: scree.level, type=float,
           help="A variance below this value cannot be distinguished from noise."),
    Column("radius", of=lambda scree: scree.radius if math.isfinite(scree.radius) else None,
           help="Length to which rows were clipped first; null if no row was clipped."),
)  # fmt: skip
"""Columns of the variances along released directions, in squared units of the rows."""


@dataclass(frozen=True)
class ReleasedPicture:
    """The released numbers of one map.

    Attributes
    ----------
    directions : list of list of float
        Directions: one list of d numbers for each axis.
    frame : list of float
        Half-width of the map along each axis.
    directions_alone : bool
        Whether coordinates are in units of each row's own length.
    counts : list
        Noisy counts by label and cell; for ellipses, noisy moments of each label.
    noise : str
        Distribution of the noise: Gaussian or Laplace.
    scree : tuple or None
        Columns of the variances along released directions, in squared units of the rows.
    drowned : list of str
        Labels that noise makes indistinguishable.
    error : float or None
        Error of the shape due to noise, as a share of the error of one dot for everybody. The error
        is at most this in 95 of 100 maps, simulated from these numbers; null for ellipses.
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
    """The map of one mechanism, if it has one.

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
        """The map; None if no claim holds, or if noise would hide the whole map."""
        return self.result.pictures[0] if self.result.pictures else None

    @cached_property
    def worth(self) -> float | None:
        """Bound on the map's shape error in 95 of 100 maps; a single dot has error 1."""
        if self.picture is None:
            return None
        # Each mechanism has its own random stream, so that repeated calls give the same number.
        return expected(self.picture, generator(0, "expected", self.result.mechanism.text))

    @property
    def released(self) -> ReleasedPicture | None:
        """All released numbers of the map."""
        picture = self.picture
        if picture is None:
            return None
        plan = picture.plan
        return ReleasedPicture(
            plan.options.form,
            self.result.components[0][:, : plan.axes].T.tolist(),
            picture.frame.tolist(),
            picture.disk,
            picture.noisy.tolist(),
            "Laplace" if plan.pure else "Gaussian",
            plan.std,
            picture.scree,
            [self.kinds[kind] for kind in drowned(picture)],
            self.worth,
        )


def _plan_value(name: str, sheet: Sheet) -> Any:
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
    Column("cells", of=partial(_plan_value, "cells"), show=_TABLE),
    Column("noise_std", of=partial(_plan_value, "std"), show=_TABLE),
    Column("error", show=_TABLE, of=lambda sheet: ABSENT if sheet.worth is None else sheet.worth),
    Column("picture", of=lambda sheet: sheet.released, type=ReleasedPicture | None, show=_JSON,
           help="The chart; null if no claim holds or noise would hide everything."),
)  # fmt: skip
"""The release of one mechanism."""


@dataclass(frozen=True, eq=False, repr=False)
class PublishedPictures(Answer):
    """Maps of the rows, one for each mechanism, without any comparison with the rows.

    The maps may be published if the table is public or was read under a schema.

    Attributes
    ----------
    table_ : str
        Name of the table.
    publishable : bool
        Whether the maps may be published.
    reading : str
        Why the maps may not be published, and what to do; empty if they may be published.
    columns_ : tuple of str
        Names of the features.
    settings : Settings
        Random seed, unused for a table that is not public: nobody can repeat the noise.
    sheets : tuple of Sheet
        One release for each mechanism, without metrics.
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
        """Return the answer with the published maps."""
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
        """Return what is published, its total cost and the public assumptions."""
        sheets = [sheet for sheet in self.results if sheet.picture]
        epsilon = self.settings.epsilon
        each = f"uses epsilon {numeral(epsilon, 6)} in total for axes and points"
        problem = self.prepared.problem(self.settings)
        if problem.unit is Unit.PERSON:
            each += f", for a person with {rows_words(problem.together)}"
        lines = ["No mechanism whose claim holds can give a chart, so nothing is published."]
        if len(sheets) == 1:
            lines = [f"This chart {each}."]
        elif sheets:
            whole = numeral(len(sheets) * epsilon, 6)
            lines = [f"Each chart {each}; all {len(sheets)} charts use at most epsilon {whole}."]
        lines += [
            f"{sheet.result.mechanism.label}: {'; '.join(self._words(sheet))}." for sheet in sheets
        ]
        if self.reading:
            lines.insert(0, self.reading)
        public = self.prepared.assumed_public
        names = ["the names of the labels"] if self.prepared.labels is not None else []
        names = [] if self.prepared.table.categories else names
        return "\n".join([*lines, "Assumed public: " + "; ".join([*public, *names]) + "."])

    @staticmethod
    def _words(sheet: Sheet) -> list[str]:
        (picture,) = sheet.result.pictures
        kinds, parts = sheet.kinds, list[str]()
        hidden = [kinds[kind] for kind in drowned(picture)]
        if hidden:
            parts.append(f"{' and '.join(hidden)} cannot be distinguished at this epsilon")
        # Count rows without labels if noise would hide every label.
        elif picture.plan.kinds == 1 < len(kinds):
            parts.append("noise would hide the labels")
        if picture.disk:
            parts.append("the chart shows directions, not lengths")
        worth = sheet.worth
        if worth is not None:
            parts.append(
                "in 95 of 100 maps, noise changes the shape by at most "
                f"{percent(min(worth, 1.0))} (one dot for everybody: {percent(1.0)})"
            )
        scree = picture.scree
        if scree is not None and scree.clear and len(scree.shares):
            shares = [
                f"{percent(share)} ± {percent(error)}"
                # The chart shows the first two components, or only one if k = 1.
                for share, error in zip(scree.shares[:2], TWO_SIDED * scree.errors, strict=False)
            ]
            first = "first component holds" if len(shares) == 1 else "first two components hold"
            parts.append(f"the {first} {' and '.join(shares)} of the variance")
        return parts or ["a model of ellipses"]

    def figure(self, name: str | None = None) -> Figure:
        """Plot the maps side by side at one scale, or the shares of the variance.

        Parameters
        ----------
        name : {"published", "scree"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        if self._figure_name(name) == "published":
            return published_figure([sheet.result for sheet in self.results], self.prepared)
        from dpviz.report.figures.side_by_side import screes
        from dpviz.report.figures.theme import panels

        results = [sheet.result for sheet in self.results if sheet.picture]
        by_key = {result.mechanism.text: result.pictures[0].scree for result in results}
        return screes({key: scree for key, scree in by_key.items() if scree}, panels(results))


def published_figure(results: Sequence[Result], prepared: Prepared) -> Figure:
    """Return the figure of the published maps; results without a map are left out."""
    from dpviz.report.figures.side_by_side import pictures
    from dpviz.report.figures.theme import panels

    with_picture = [result for result in results if result.pictures]
    kinds = () if prepared.labels is None else prepared.labels.kinds
    by_key = {result.mechanism.text: result.pictures[0] for result in with_picture}
    # With one direction, a chart is a strip. If one is a strip, draw all on one scale.
    strip = any(picture.plan.axes == 1 for picture in by_key.values())
    table = published_table(by_key, kinds, _POINTS)
    points = "points stand for people, no point is a person"
    ribbon = f"published: {points}"
    if not prepared.table.publishable:
        ribbon = f"do not publish this chart, because no schema says how to read the file; {points}"
    return pictures(table, panels(with_picture), strip=strip, ribbon=ribbon, exact=False)


@asks("make a chart that you can publish, and state its privacy cost", Settings, Publishing)
def published(
    table: Any = "digits",
    *,
    schema: str | PathLike[str] | Schema | None = None,
    ledger: str | PathLike[str] | Ledger | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Unpack[Options],
) -> PublishedPictures:
    """Publish a map of the rows: directions and noisy counts along them, under one budget.

    Parameters
    ----------
    table
        A table as in `compare`; its rows must be in memory.
    schema : path or Schema, optional
        How your own file is read, as in `release`, so that its maps may be published. Only a public
        table needs no schema.
    ledger : path or Ledger, optional
        Ledger that records the cost of the maps before anybody looks at the rows.
    progress : callable, optional
        Function that is called with (done, total, what comes next) before each mechanism.
    **options
        Options as in `compare`. By default there is one map, of the mechanism that is advised
        first, with .65 of the budget.

    Returns
    -------
    PublishedPictures
        Answer with ``figure("published")``, ``table()``, and all released numbers in ``to_json()``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        For the reasons listed in `compare`, and if the rows are not in memory.
    DpvizError
        If the schema or the ledger cannot be used, or the ledger's limit is too low.

    See Also
    --------
    compare : The same beside the truth; ``figure("published")`` there is a look and no release.

    Notes
    -----
    No number here is compared with the rows. Each call creates one map for each mechanism and costs
    its epsilon again. For a table that is not public, the noise comes from the system and not from
    ``seed``. The noise uses floating-point numbers: use `release` for real releases.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.published("wine", scale="standardize", epsilon=3, mechanisms="spherical")
    >>> print(found.summary())
    This chart uses epsilon 3 in total for axes and points.
    ...
    """
    prepared, settings = ready(table, options, schema)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "a table that fits in memory", settings.table)
    # Raise an error if k does not fit the table, before any row is counted.
    prepared.problem(settings)
    # Each published chart uses budget, so publish by default for one mechanism and not for six.
    names = settings.mechanisms or featured()[:1]
    settings = replace(
        settings, picture=settings.picture or SHARE, mechanisms=names, trials=1, post="none"
    )
    results: list[Result] = []
    variants = parse_variants(names)
    if ledger is not None:
        enter(ledger, table, schema, prepared, settings)
    for place, mechanism in enumerate(variants):
        if progress is not None:
            progress(place, len(variants), mechanism.text)
        # The seed reveals the noise, so only public tables use the seed of the settings.
        seed = settings.seed if prepared.table.public else secrets.randbelow(2**63)
        own = replace(settings, seed=seed, mechanisms=(mechanism,))
        results += compare(prepared, own, metrics=()).results
    return PublishedPictures.of(results, prepared, settings)
