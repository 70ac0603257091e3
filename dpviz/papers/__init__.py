"""The experiments of the four papers, redone: reported beside measured.

Every folder of this package is a paper, and every public module in it one experiment: a table, a
figure or a set of theorems. Nothing is registered; a new file appears on the
Papers page, on the command line, in the report and in the tests by being here.
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
    """Return every experiment by key, in their order.

    Raises
    ------
    TypeError
        If a module does not define exactly one experiment, or two have one place.
    """
    found: dict[str, Experiment] = {}
    papers = [one.name for one in pkgutil.iter_modules(__path__, f"{__name__}.") if one.ispkg]
    for module in (module for paper in papers for module in modules_of(paper)):
        only = only_class(module, Experiment, "experiment")()  # type: ignore[type-abstract]
        found[only.key] = only
    places = [item.info.order for item in found.values()]
    if len(set(places)) != len(places):
        raise TypeError("two experiments have one place")
    return dict(sorted(found.items(), key=lambda item: item[1].info.order))


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
