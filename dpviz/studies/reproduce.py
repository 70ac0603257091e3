"""The question `reproduce`: what the papers print, and what is measured here."""

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
    """One answer for every claim that the papers print, of all experiments or of one.

    Attributes
    ----------
    claims : list of dict
        Rows of the table, one row per claim.
    found : tuple
        Findings of each experiment, from a full run that is stored or ships with the package.
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
        """Return `data` as text, without escaping the non-ASCII letters in the papers."""
        return json.dumps(finite(self.data()), indent=1, ensure_ascii=False)


@dataclass(frozen=True, eq=False, repr=False)
class Reproduced(Answer):
    """Findings of one experiment, and the values that its paper reports.

    Attributes
    ----------
    lines : DataFrame
        One row per number, with the reported value and the measured value.
    found : dpviz.papers.Findings
        Every measured point, the claims with their answers, and the lines.
    charts : dict of str to Chart
        Charts that have points to plot.
    progress : dpviz.simulation.jobs.Progress
        Number of finished parts.
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
        """Return the answer for an experiment's findings, partial or complete."""
        findings, progress = step.reproduction, step.progress
        key, effort = findings.experiment.key, str(findings.effort)
        charts = {chart.name: chart for chart in drawn(findings)}
        lines, absent = lines_table(findings), tuple(findings.absent)
        claims = summary([findings])
        answer = cls(key, effort, findings.seed, claims, lines, absent, findings, charts, progress)
        # Each experiment has its own charts, so set them on this answer and not on its class.
        object.__setattr__(answer, "figures", tuple(charts))
        return answer

    @property
    def share(self) -> float:
        """Complete share of the answer; 1 if there is nothing to run."""
        return self.progress.done / self.progress.total if self.progress.total else 1.0

    def summary(self) -> str:
        """Return how many claims have each answer, and every claim with its answer."""
        findings = self.found
        lines = [f"{findings.experiment.info.title}: {tally(findings.claims)}"]
        lines += [
            f"{claim.place}: {claim.item}: {claim.answer}. {claim.reason}"
            for claim in findings.claims
        ]
        lines += [remote.missing(name) for name in findings.absent]
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return one row per number, with the reported value and the measured value."""
        return self.lines

    def points(self) -> pd.DataFrame:
        """Return the measured values, one row per point."""
        return self.found.points

    def figure(self, name: str | None = None) -> Figure:
        """Plot one of the experiment's charts.

        Parameters
        ----------
        name : str, optional
            Name of a chart, one of `figures`.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        if not self.figures:  # Some experiments, such as sets of theorems, have no chart.
            return super().figure(name)
        name = self._figure_name(name)
        from dpviz.report.figures.reproduction import chart_figure

        return chart_figure(self.found.points, self.charts[name])


@asks("repeat the papers' tables and figures, and compare printed with measured numbers")
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
    """Repeat a paper's experiment; by default answer all claims from shipped full runs.

    Parameters
    ----------
    experiment : str, optional
        An experiment's key, as ``dpviz reproduce --list`` shows it.
    quick : bool
        Whether to make few runs, which takes seconds, instead of as many as the paper.
    seed : int
        Random seed; the same seed gives the same bytes on the same machine.
    workers : int
        Number of processes that run parts, from 1.
    download : bool
        Whether to download missing data sets; otherwise their parts are left out.
    cache : path or Store, optional
        Folder in which finished parts are saved and found again; by default none.
    progress : callable, optional
        Function that is called with a `dpviz.simulation.jobs.Progress` after each part.

    Returns
    -------
    Coverage or Reproduced
        Without an experiment ``to_json()`` writes the bytes of
        ``dpviz reproduce --summary --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is unknown, or there is no experiment of this name.
    NotAvailable
        If a data set cannot be downloaded.

    See Also
    --------
    compare : Any setting of your own.

    Notes
    -----
    docs/reproduction.md gives the rule: each claim is answered once, in its fairest reading.

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
    # Download data only on request. Otherwise the answer lists the missing data sets.
    for name in absent_data(_experiment(experiment)) if download else ():
        remote.fetch(name)
    *_, answer = steps(
        experiment, quick=quick, seed=seed, workers=workers, cache=store, progress=progress
    )
    return answer


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
    """Yield what earlier runs found in an experiment, then about twelve updates.

    The parameters of `reproduce`, and in addition:

    apart : bool
        Whether parts run in a separate process, which ends with the caller.
    absent : sequence of str, optional
        Keys of the data sets to leave out; by default those that are not available.
    """
    effort = Effort.QUICK if quick else Effort.FULL
    item = _experiment(experiment)
    for step in work(
        item, effort, seed=seed, store=cache, workers=workers, apart=apart, absent=absent
    ):
        now = step.progress
        if progress is not None:
            progress(now)
        # Every update evaluates all claims again, so limit the number of updates to about twelve.
        often = max(1, now.total // 12)
        if now.done in (now.reused, now.total) or now.done % often == 0:
            yield Reproduced.of(step)


def coverage(key: str | None, store: Store | None) -> Coverage:
    """Return the known answers to the claims of one experiment, or of all, without running any."""
    items = list(experiments().values()) if key in (None, "all") else [_experiment(str(key))]
    findings = tuple(known(item, store) for item in items)
    return Coverage(summary(findings), findings)
