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

from dpviz.errors import InvalidSetting
from dpviz.figures.report import write
from dpviz.reproduce.experiment import (
    Chart,
    Effort,
    Experiment,
    Info,
    NotMeasured,
    Part,
    Series,
    series_of,
)
from dpviz.reproduce.lines import Agreement, Line, Stated
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.report import command, drawn, heading, lines_table, markdown
from dpviz.reproduce.run import Reproduction, Step, absent_data, kept, reproduce, work

__all__ = [
    "Agreement",
    "Chart",
    "Effort",
    "Experiment",
    "Info",
    "Line",
    "Measurements",
    "NotMeasured",
    "Part",
    "Point",
    "Reproduction",
    "Series",
    "Stated",
    "Step",
    "absent_data",
    "command",
    "drawn",
    "experiment",
    "experiments",
    "heading",
    "kept",
    "lines_table",
    "markdown",
    "reproduce",
    "series_of",
    "work",
    "write",
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
