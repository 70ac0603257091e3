"""The question `published`: a picture of the rows that may be shown to anybody."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import numeral, percent
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import featured, parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import without_paths
from dpviz.report.tables.projection import published_table
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import Result, run_cell
from dpviz.simulation.picture.account import SHARE
from dpviz.simulation.picture.quality import Expected, expected
from dpviz.simulation.picture.scree import TWO_SIDED, Scree
from dpviz.simulation.picture.shown import drowned
from dpviz.simulation.simulate import Cell
from dpviz.studies import Answer
from dpviz.studies.options import Options, asks, ready

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure

_POINTS = 300


class PublishedPictures(Answer):
    """Pictures of the rows, one of each mechanism, with nothing that compares with the rows.

    Attributes
    ----------
    results : tuple of dpviz.simulation.compare.Result
        One draw each, without metrics; ``pictures`` is empty where nothing may be published.
    prepared : Prepared
    settings : Settings
        Of a table that is not public without its seed: nobody draws that noise again.
    """

    figures: ClassVar[tuple[str, ...]] = ("published", "scree")

    def __init__(self, results: Sequence[Result], prepared: Prepared, settings: Settings) -> None:
        self.results, self.prepared, self.settings = tuple(results), prepared, settings

    def summary(self) -> str:
        """Return what is published, what it costs in all and what is assumed public."""
        made = [result for result in self.results if result.pictures]
        epsilon = self.settings.epsilon
        each = f"costs epsilon {numeral(epsilon, 6)} in all, axes and points together"
        lines = ["No claim that holds leaves a picture here: nothing is published."]
        if len(made) == 1:
            lines = [f"This picture {each}."]
        elif made:
            whole = numeral(len(made) * epsilon, 6)
            lines = [f"Each picture {each}; all {len(made)} cost at most epsilon {whole}."]
        lines += [f"{result.mechanism.label}: {'; '.join(self._words(result))}." for result in made]
        public = self.prepared.assumed_public
        names = ["the names of labels"] if self.prepared.labels is not None else []
        names = [] if self.prepared.table.categories else names
        return "\n".join([*lines, "Assumed public: " + "; ".join([*public, *names]) + "."])

    def _words(self, result: Result) -> list[str]:
        (picture,) = result.pictures
        kinds, said = self._kinds, []
        hidden = [kinds[kind] for kind in drowned(picture)]
        if hidden:
            said.append(f"{' and '.join(hidden)} cannot be told apart at this epsilon")
        # counted without labels, for with them noise would hide every one
        elif picture.plan.kinds == 1 < len(kinds):
            said.append("labels would drown")
        if picture.disk:
            said.append("shows directions, not lengths")
        worth = self._worth(result)
        if worth is not None:
            ends = " to ".join(percent(min(end, 1.0)) for end in worth.error)
            said.append(
                f"by simulation its shape is off by {ends} (one dot for all: {percent(1.0)})"
            )
        if worth is not None and worth.right is not None:
            ends = " to ".join(map(percent, worth.right))
            said.append(f"nearest points give {ends} of people their label")
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

    @property
    def _kinds(self) -> tuple[str, ...]:
        return () if self.prepared.labels is None else self.prepared.labels.kinds

    def _worth(self, result: Result) -> Expected | None:
        # a stream of the mechanism's own: the same words each time they are asked for
        return expected(result.pictures[0], generator(0, "expected", result.mechanism.text))

    def table(self) -> pd.DataFrame:
        """Return one row per mechanism: its claim, its cells, and what it is expected to show.

        ``error`` and ``right`` are the two ends by simulation; see
        `dpviz.simulation.picture.quality.expected`.
        """
        rows = []
        for result in self.results:
            row: dict[str, Any] = {
                "mechanism": result.mechanism.text,
                "status": str(result.status.verdict),
                "epsilon": None if result.spent is None else result.spent.epsilon,
                "published": bool(result.pictures),
            }
            for picture in result.pictures:
                worth = self._worth(result)
                row |= {"cells": picture.plan.cells, "noise_std": picture.plan.std}
                if worth is not None:
                    row |= {"error_low": worth.error[0], "error_high": worth.error[1]}
                if worth is not None and worth.right is not None:
                    row |= {"right_low": worth.right[0], "right_high": worth.right[1]}
            rows.append(row)
        return pd.DataFrame(rows)

    def data(self) -> dict[str, Any]:
        """Return everything that is released: directions, frame, noisy counts and their noise."""
        return {
            "table": self.prepared.name,
            "n": self.prepared.n,
            "columns": list(self.prepared.columns),
            "settings": without_paths(self.settings).to_json(),
            "labels": list(self._kinds),
            "assumed_public": list(self.prepared.assumed_public),
            "results": [self._released(result) for result in self.results],
        }

    def _released(self, result: Result) -> dict[str, Any]:
        spent, claimed = result.spent, result.claimed
        picture = None
        if result.pictures:
            (made,) = result.pictures
            plan, worth = made.plan, self._worth(result)
            picture = {
                "form": plan.options.form,
                "directions": result.components[0][:, : plan.axes].T.tolist(),
                "frame": made.frame.tolist(),
                "directions_alone": made.disk,
                "counts": made.noisy.tolist(),
                "noise": "Laplace" if plan.pure else "Gaussian",
                "noise_std": plan.std,
                "scree": _scree(made.scree),
                "drowned": [self._kinds[kind] for kind in drowned(made)],
                "expected": None
                if worth is None
                else {
                    "error": list(worth.error),
                    "right": None if worth.right is None else list(worth.right),
                },
            }
        return {
            "mechanism": result.mechanism.text,
            "status": str(result.status.verdict),
            "evidence": result.status.evidence,
            "claimed": claimed and {"epsilon": claimed.epsilon, "delta": claimed.delta},
            "spent": spent and spent.to_json(),
            "picture": picture,
        }

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
            return published_figure(self.results, self.prepared)
        from dpviz.report.figures.side_by_side import screes
        from dpviz.report.figures.theme import panels

        made = [result for result in self.results if result.pictures]
        known = {result.mechanism.text: result.pictures[0].scree for result in made}
        return screes({key: scree for key, scree in known.items() if scree}, panels(made))


def _scree(scree: Scree | None) -> dict[str, Any] | None:
    """Return the variances that are released, in squared units of the rows."""
    if scree is None:
        return None
    return {
        "variances": scree.variances.tolist(),
        "noise_std": scree.std.tolist(),
        "total": scree.total,
        "total_std": scree.total_std,
        "hidden_below": scree.level,
        "radius": scree.radius if math.isfinite(scree.radius) else None,
    }


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
    ribbon = "published: points stand for people, none is a person"
    return pictures(table, panels(made), strip=strip, ribbon=ribbon, exact=False)


@asks("a picture of the rows that may be shown to anybody, and what it costs", Settings)
def published(
    table: Any = "digits",
    *,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Unpack[Options],
) -> PublishedPictures:
    """Publish a picture of the rows: directions and noisy counts along them, at one cost.

    Parameters
    ----------
    table
        As in `compare`; its rows must be in memory.
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
    prepared, settings = ready(table, options)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "rows in memory, to be counted", settings.table)
    # raises where k does not fit the table, before anything is counted
    prepared.problem(settings)
    # each picture costs epsilon: who names no mechanism gets one and not six
    chosen = settings.mechanisms or featured()[:1]
    settings = replace(
        settings, picture=settings.picture or SHARE, mechanisms=chosen, trials=1, post="none"
    )
    found = []
    variants = parse_variants(chosen)
    for done, mechanism in enumerate(variants):
        if progress is not None:
            progress(done, len(variants), mechanism.text)
        # whoever knows the seed can take the noise off again: it repeats for public tables alone
        seed = settings.seed if prepared.table.public else secrets.randbelow(2**63)
        cell = cell_at(prepared, replace(settings, seed=seed), mechanism, range(1))
        if not isinstance(cell, Cell):
            # what cannot run comes back as its reason
            raise CannotRun(mechanism.text, cell)
        found.append(run_cell(cell, prepared, ()))
    return PublishedPictures(found, prepared, settings)
