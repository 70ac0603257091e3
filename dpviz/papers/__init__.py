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
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.run import Findings, kept
from dpviz.papers.shipped import shipped
from dpviz.simulation.store import Store


@cache
def experiments() -> dict[str, Experiment]:
    """Return every experiment by key, in the order of their slots.

    Raises
    ------
    TypeError
        If a module does not define exactly one experiment, or two share a slot.
    """
    found: dict[str, Experiment] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        paper, _, name = module.name.removeprefix(f"{__name__}.").rpartition(".")
        if not paper or name.startswith("_"):
            continue
        loaded = importlib.import_module(module.name)
        classes = [
            item
            for item in vars(loaded).values()
            if inspect.isclass(item)
            and issubclass(item, Experiment)
            and item.__module__ == loaded.__name__
        ]
        if len(classes) != 1:
            raise TypeError(f"{loaded.__name__} must define one experiment; it has {len(classes)}")
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


def all_shipped() -> list[Findings]:
    """Return what ships, of all experiments."""
    return [one for item in experiments().values() if (one := shipped(item)) is not None]
