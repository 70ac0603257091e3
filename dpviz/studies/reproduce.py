"""The question `reproduce`: what the papers print, beside what is measured here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pandas as pd

from dpviz.core.files import finite
from dpviz.datasets import remote
from dpviz.papers import experiment as _experiment
from dpviz.papers import experiments, known
from dpviz.papers.experiment import Chart, Effort
from dpviz.papers.report import PAPERS, SUMMARY_KEYS, drawn, latex, lines_table, summary, tally
from dpviz.papers.run import Findings, RunStep, absent_data, work
from dpviz.simulation.jobs import Progress, Storage
from dpviz.simulation.store import Store
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE, EVERYWHERE, NUMBERS, Column, printed
from dpviz.studies.options import asks

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


_SHOWN = ("paper", "item", "verdict", "coverage", "reason")

PRINTED = tuple(
    Column(name, type=str, show=EVERYWHERE if name in _SHOWN else NUMBERS) for name in SUMMARY_KEYS
)
"""A claim that a paper prints, and our answer."""


@dataclass(frozen=True, eq=False, repr=False)
class Coverage(Answer):
    """One answer for every claim that the papers print: of all experiments, or of one.

    Attributes
    ----------
    claims : list of dict
        A row each.
    found : tuple
        What each experiment found, in a full run that ships with the package or is kept.
    """

    listed: ClassVar[str] = "claims"
    alone: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = PRINTED

    claims: list[dict[str, str]]
    found: Annotated[tuple[Findings, ...], ASIDE]

    def summary(self) -> str:
        """Return how many claims of each paper have each answer."""
        lines = []
        for name in PAPERS:
            mine = [one for one in self.found if one.experiment.info.paper == name]
            claims = [claim for one in mine for claim in one.claims]
            if claims:
                lines.append(f"{name}: {tally(claims)}")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return a line for each claim and the tallies, as the command prints them."""
        return f"{printed(self.columns, self.claims)}\n{self.summary()}"

    def latex(self) -> str:
        """Return the claims as a LaTeX table."""
        return latex(self.found)

    def to_json(self) -> str:
        """Return `data` as text, with the letters of the papers as they are."""
        return json.dumps(finite(self.data()), indent=1, ensure_ascii=False)


@dataclass(frozen=True, eq=False, repr=False)
class Reproduced(Answer):
    """What one experiment found, beside what its paper reports.

    Attributes
    ----------
    lines : DataFrame
        One row per number: what is reported and what was measured.
    found : dpviz.papers.Findings
        Every measured point, the claims with their answers, and the lines.
    charts : dict of str to Chart
        Those that have points to draw.
    progress : dpviz.simulation.jobs.Progress
        Parts that are done.
    """

    experiment: str
    effort: str
    seed: int
    claims: Annotated[list[dict[str, str]], PRINTED]
    lines: Annotated[pd.DataFrame, list[dict[str, Any]]]
    absent: tuple[str, ...]
    found: Annotated[Findings, ASIDE]
    charts: Annotated[Mapping[str, Chart], ASIDE]
    progress: Annotated[Progress, ASIDE]

    @classmethod
    def of(cls, step: RunStep) -> Reproduced:
        """Return the answer that an experiment's findings are, so far or in the end."""
        found, progress = step.reproduction, step.progress
        key, effort = found.experiment.key, str(found.effort)
        charts = {chart.name: chart for chart in drawn(found)}
        lines, absent = lines_table(found), tuple(found.absent)
        claims = summary([found])
        answer = cls(key, effort, found.seed, claims, lines, absent, found, charts, progress)
        # each experiment has charts of its own, so its answer names them and not its class
        object.__setattr__(answer, "figures", tuple(charts))
        return answer

    @property
    def share(self) -> float:
        """How much of the answer there is; of nothing that can be run all is known."""
        return self.progress.done / self.progress.total if self.progress.total else 1.0

    def summary(self) -> str:
        """Return how many claims have each answer, and what each is."""
        found = self.found
        lines = [f"{found.experiment.info.title}: {tally(found.claims)}"]
        lines += [
            f"{claim.place}: {claim.item}: {claim.answer}. {claim.reason}" for claim in found.claims
        ]
        lines += [remote.missing(name) for name in found.absent]
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return one row per number: what is reported and what was measured."""
        return self.lines

    def points(self) -> pd.DataFrame:
        """Return what was measured, one row per point."""
        return self.found.points

    def figure(self, name: str | None = None) -> Figure:
        """Draw one of the experiment's charts.

        Parameters
        ----------
        name : str, optional
            One of `figures`.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        if not self.figures:  # a set of theorems may have no chart
            return super().figure(name)
        name = self._named(name)
        from dpviz.report.figures.reproduction import chart_figure

        return chart_figure(self.found.points, self.charts[name])


@asks("redo the papers' tables and figures, reported beside measured")
def reproduce(
    experiment: str | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int = 1,
    download: bool = False,
    cache: str | PathLike[str] | Store | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Coverage | Reproduced:
    """Redo an experiment of a paper; without one, answer every claim from full runs that ship.

    Parameters
    ----------
    experiment : str, optional
        A key that ``dpviz reproduce --list`` shows.
    quick : bool
        Whether to make few runs, in seconds, and not as many as the paper's.
    seed : int
        Same seed, same bytes on the same machine.
    workers : int
        Processes that run parts, from 1.
    download : bool
        Whether data sets that are not at hand are fetched; else their parts are left out.
    cache : path or Store, optional
        Where finished parts are kept and found again; nowhere if not said.
    progress : callable, optional
        Called with a `dpviz.simulation.jobs.Progress` after each part.

    Returns
    -------
    Coverage or Reproduced
        Without an experiment ``to_json()`` writes the bytes of
        ``dpviz reproduce --summary --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is none of these, or there is no such experiment.
    NotAvailable
        If a data set cannot be fetched.

    See Also
    --------
    compare : Any setting of your own.

    Notes
    -----
    Each claim is answered once, on its fairest reading: docs/reproduction.md.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.reproduce()
    >>> len(found.table()) > 50
    True
    """
    store = cache if isinstance(cache, Store) or cache is None else Store(Path(cache))
    if experiment is None:
        return coverage(None, store)
    # nothing is fetched unasked: what is absent is said in the answer
    for name in absent_data(_experiment(experiment)) if download else ():
        remote.fetch(name)
    *_, found = steps(
        experiment, quick=quick, seed=seed, workers=workers, cache=store, progress=progress
    )
    return found


def steps(
    experiment: str,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int = 1,
    cache: Storage | None = None,
    apart: bool = False,
    absent: Sequence[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[Reproduced]:
    """Yield what is known of an experiment without running anything, and then twelve times.

    Parameters are those of `reproduce`, and:

    apart : bool
        Whether parts run in a process of their own, which ends with whoever asks.
    absent : sequence of str, optional
        Keys of the data sets that are left out; of those not at hand if not said.
    """
    effort = Effort.QUICK if quick else Effort.FULL
    item = _experiment(experiment)
    for step in work(
        item, effort, seed=seed, store=cache, workers=workers, apart=apart, absent=absent
    ):
        now = step.progress
        if progress is not None:
            progress(now)
        # claims are answered anew for each answer, which must not outweigh the work
        often = max(1, now.total // 12)
        if now.done in (now.reused, now.total) or now.done % often == 0:
            yield Reproduced.of(step)


def coverage(key: str | None, store: Store | None) -> Coverage:
    """Return what is known of the claims of one experiment, or of all, without running any."""
    chosen = list(experiments().values()) if key in (None, "all") else [_experiment(str(key))]
    found = tuple(known(item, store) for item in chosen)
    return Coverage(summary(found), found)
