"""The question `reproduce`: what the papers print, beside what is measured here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.core.files import finite
from dpviz.datasets import remote
from dpviz.papers import experiment as _experiment
from dpviz.papers import experiments, known
from dpviz.papers.experiment import Effort
from dpviz.papers.report import PAPERS, drawn, latex, lines_table, summary, tally
from dpviz.papers.run import Findings, absent_data
from dpviz.papers.run import reproduce as run_parts
from dpviz.report.sentences.phrases import text_table
from dpviz.simulation.jobs import Pool, Progress
from dpviz.simulation.store import Store
from dpviz.studies import Answer
from dpviz.studies.options import asks

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


class Coverage(Answer):
    """One answer for every claim that the papers print: of all experiments, or of one.

    Attributes
    ----------
    found : tuple
        What each experiment found, in a full run that ships with the package or is kept.
    """

    def __init__(self, found: Sequence[Findings]) -> None:
        self.found = tuple(found)

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
        columns = ("paper", "item", "verdict", "coverage", "reason")
        rows = [[row[name] for name in columns] for row in self.data()]
        table = text_table(("paper", "claim", "answer", "coverage", "reason"), rows)
        return f"{table}\n{self.summary()}"

    def latex(self) -> str:
        """Return the claims as a LaTeX table."""
        return latex(self.found)

    def table(self) -> pd.DataFrame:
        """Return one row per printed claim."""
        return pd.DataFrame(self.data())

    def data(self) -> list[dict[str, str]]:
        """Return the rows that ``dpviz reproduce --summary --format json`` prints."""
        return summary(self.found)

    def to_json(self) -> str:
        """Return `data` as text, with the letters of the papers as they are."""
        return json.dumps(finite(self.data()), indent=1, ensure_ascii=False)


class Reproduced(Answer):
    """What one experiment found, beside what its paper reports.

    Attributes
    ----------
    found : dpviz.papers.Findings
        Every measured point, the claims with their answers, and the lines.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    def __init__(self, found: Findings) -> None:
        self.found = found
        self._charts = {chart.name: chart for chart in drawn(found)}
        # each experiment has charts of its own, so its answer names them and not its class
        self.figures = tuple(self._charts)  # type: ignore[misc]

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
        return lines_table(self.found)

    def points(self) -> pd.DataFrame:
        """Return what was measured, one row per point."""
        return self.found.points

    def data(self) -> dict[str, Any]:
        """Return the claims and the lines, and with how much effort and which seed."""
        found = self.found
        return {
            "experiment": found.experiment.key,
            "effort": str(found.effort),
            "seed": found.seed,
            "claims": summary([found]),
            "lines": lines_table(found).to_dict("records"),
            "absent": list(found.absent),
        }

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

        return chart_figure(self.found.points, self._charts[name])


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
    item = _experiment(experiment)
    # nothing is fetched unasked: what is absent is said in the answer
    for name in absent_data(item) if download else ():
        remote.fetch(name)
    chosen = Effort.QUICK if quick else Effort.FULL
    found = run_parts(item, chosen, seed=seed, store=store, pool=Pool(workers), progress=progress)
    return Reproduced(found)


def coverage(key: str | None, store: Store | None) -> Coverage:
    """Return what is known of the claims of one experiment, or of all, without running any."""
    chosen = list(experiments().values()) if key in (None, "all") else [_experiment(str(key))]
    return Coverage([known(item, store) for item in chosen])
