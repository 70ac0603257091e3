"""The experiments of the four papers, redone: reported beside measured.

Every public module of this package is one experiment: a table, a figure or a
set of theorems of one paper. Nothing is registered; a new file appears on the
Papers page, on the command line, in the report and in the tests by being here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from dpviz.errors import InvalidSetting
from dpviz.reproduce._base import (
    Chart,
    Effort,
    Experiment,
    Info,
    NotMeasured,
    Part,
    Series,
    series_of,
)
from dpviz.reproduce._lines import Agreement, Line, Stated
from dpviz.reproduce._measurements import Measurements, Point
from dpviz.reproduce._report import command, drawn, heading, lines_table, markdown, write
from dpviz.reproduce._run import Reproduction, Step, absent_data, kept, reproduce, work

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
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        classes = [
            item
            for item in vars(loaded).values()
            if inspect.isclass(item)
            and issubclass(item, Experiment)
            and item.__module__ == loaded.__name__
            and not inspect.isabstract(item)
        ]
        if len(classes) != 1:
            raise TypeError(f"{loaded.__name__} must define one experiment; it has {len(classes)}")
        found[module.name] = classes[0]()
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
