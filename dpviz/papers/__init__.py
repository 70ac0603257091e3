"""The experiments of the four papers, redone: reported beside measured.

Every folder of this package is a paper, and every public module in it one experiment: a table, a
figure or a set of theorems. Nothing is registered; a new file appears on the
Papers page, on the command line, in the report and in the tests by being here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from dpviz.core.errors import InvalidSetting
from dpviz.papers.experiment import (
    Chart,
    Effort,
    Experiment,
    Info,
    Part,
    PrintedFrame,
    Series,
    series_of,
)
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.report import (
    PAPERS,
    Findings,
    Paper,
    command,
    drawn,
    heading,
    latex,
    lines_table,
    markdown,
    page,
    printing_order,
    runs,
    summary,
    tally,
)
from dpviz.papers.run import Reproduction, RunStep, absent_data, kept, reproduce, work
from dpviz.papers.said import MEANINGS, Agreement, Claim, ClaimAnswer, Line, Said, Stated, counted
from dpviz.papers.shipped import Provenance, Shipped, ship, shipped
from dpviz.simulation.store import Store

__all__ = [
    "MEANINGS",
    "PAPERS",
    "Agreement",
    "Chart",
    "Claim",
    "ClaimAnswer",
    "Effort",
    "Experiment",
    "Findings",
    "Info",
    "Line",
    "Measurements",
    "Paper",
    "Part",
    "Point",
    "PrintedFrame",
    "Provenance",
    "Reproduction",
    "RunStep",
    "Said",
    "Series",
    "Shipped",
    "Stated",
    "absent_data",
    "command",
    "counted",
    "drawn",
    "experiment",
    "experiments",
    "heading",
    "kept",
    "known",
    "latex",
    "lines_table",
    "markdown",
    "page",
    "printing_order",
    "reproduce",
    "runs",
    "series_of",
    "ship",
    "shipped",
    "summary",
    "tally",
    "work",
]


@cache
def experiments() -> dict[str, Experiment]:
    """Return every experiment by key, in the order of their slots.

    Raises
    ------
    TypeError
        If a module does not define exactly one experiment, or two share a slot.
    """
    found: dict[str, Experiment] = {}
    papers = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    for paper in papers:
        folder = importlib.import_module(f"{__name__}.{paper}")
        for module in pkgutil.iter_modules(folder.__path__):
            if module.name.startswith("_"):
                continue
            loaded = importlib.import_module(f"{folder.__name__}.{module.name}")
            classes = [
                item
                for item in vars(loaded).values()
                if inspect.isclass(item)
                and issubclass(item, Experiment)
                and item.__module__ == loaded.__name__
                and not inspect.isabstract(item)
            ]
            if len(classes) != 1:
                raise TypeError(
                    f"{loaded.__name__} must define one experiment; it has {len(classes)}"
                )
            only = classes[0]()
            found[only.key] = only
    slots = [item.info.slot for item in found.values()]
    if len(set(slots)) != len(slots):
        raise TypeError("two experiments share a slot")
    return dict(sorted(found.items(), key=lambda item: item[1].info.slot))


def experiment(key: str) -> Experiment:
    """Return the experiment with a key.

    Raises
    ------
    InvalidSetting
        If there is none.
    """
    known = experiments()
    if key not in known:
        raise InvalidSetting("experiment", f"one of {', '.join(known)} or all", key, "EXPERIMENT")
    return known[key]


def known(item: Experiment, store: Store | None = None) -> Findings:
    """Return the best that is known of an experiment without running anything.

    A full run kept on this machine comes before the results that ship with the
    package, and these before whatever a stopped run left.
    """
    step = kept(item, Effort.FULL, store)
    if step.progress.total and step.progress.done == step.progress.total:
        return step.reproduction
    return shipped(item) or step.reproduction
