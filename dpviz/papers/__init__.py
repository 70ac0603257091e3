"""The experiments of the four papers, with published and measured numbers.

Each folder of this package is a paper. Each public module in a folder is one experiment: a table, a
figure or a set of theorems. No list of experiments exists: a new file appears on the Papers page,
on the command line, in the report and in the tests.
"""

from __future__ import annotations

import pkgutil
from functools import cache

from dpviz.core.errors import InvalidSetting
from dpviz.core.plugins import modules_of, only_class
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.run import Findings, kept
from dpviz.papers.shipped import shipped
from dpviz.simulation.store import Store


@cache
def experiments() -> dict[str, Experiment]:
    """Return every experiment by key, sorted by ``info.order``.

    Raises
    ------
    TypeError
        If a module does not define exactly one experiment, or two experiments have the same order.
    """
    by_key: dict[str, Experiment] = {}
    papers = [one.name for one in pkgutil.iter_modules(__path__, f"{__name__}.") if one.ispkg]
    for module in (module for paper in papers for module in modules_of(paper)):
        only = only_class(module, Experiment, "experiment")()  # type: ignore[type-abstract]
        by_key[only.key] = only
    places = [item.info.order for item in by_key.values()]
    if len(set(places)) != len(places):
        raise TypeError("two experiments have the same place in the order")
    return dict(sorted(by_key.items(), key=lambda item: item[1].info.order))


def experiment(key: str) -> Experiment:
    """Return the experiment with a key.

    Raises
    ------
    InvalidSetting
        If no experiment has this key.
    """
    by_key = experiments()
    if key not in by_key:
        raise InvalidSetting("experiment", f"one of {', '.join(by_key)} or all", key, "EXPERIMENT")
    return by_key[key]


def known(item: Experiment, store: Store | None = None) -> Findings:
    """Return the best findings of an experiment that are available without a run.

    A full run stored on this machine comes first, then the results shipped with the package, then
    the finished parts of a stopped run.
    """
    step = kept(item, Effort.FULL, store)
    if step.progress.total and step.progress.done == step.progress.total:
        return step.reproduction
    return shipped(item) or step.reproduction


def all_shipped() -> list[Findings]:
    """Return the shipped findings of all experiments."""
    return [one for item in experiments().values() if (one := shipped(item)) is not None]
