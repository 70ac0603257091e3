"""dpviz: see what differential privacy costs a principal component analysis.

`compare` runs mechanisms side by side, `sweep` varies a setting, and `board` shows mechanisms along
epsilon. `least` finds the least epsilon for a goal, `decide` the least epsilon for a stakeholder
with its risk, and `predict` needs no simulation. `audit` bounds the real privacy loss from below,
by attack; `claims` lists which privacy claims hold, and `reproduce` which results of the papers.
`account` gives the cost of repeated releases, `waterfall` of a private preparation, `task` what can
still be learned, and `published` a chart to publish. `schema` drafts how a release reads a table,
`release` makes a release, `card` its privacy card, `verify` checks the card, and `ledger` lists
what releases cost. `list_mechanisms` and `list_datasets` list what is available. An answer's
``save`` writes a file; `load` reads it, and `rerun` repeats the question. `PrivatePCA` is a
scikit-learn estimator that makes one private release; `budget` limits the total cost of several,
and `spending` reports it. `mechanism` and `metric` wrap your own functions, `Mechanism` is the base
class, `check` runs the contract suite, and `dpviz.extend` has the imports for authors.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.core.metrics._base import metric
    from dpviz.mechanisms import Mechanism
    from dpviz.mechanisms._function import mechanism
    from dpviz.releasing.budget import budget, spending
    from dpviz.releasing.declared import PrivacyWarning
    from dpviz.releasing.private_pca import PrivatePCA
    from dpviz.studies import load
    from dpviz.studies.account import account
    from dpviz.studies.audit import audit
    from dpviz.studies.board import board
    from dpviz.studies.card import card
    from dpviz.studies.check import check
    from dpviz.studies.claims import claims
    from dpviz.studies.compare import compare
    from dpviz.studies.decide import decide
    from dpviz.studies.least import least
    from dpviz.studies.ledger import ledger
    from dpviz.studies.listing import list_datasets, list_mechanisms
    from dpviz.studies.predict import predict
    from dpviz.studies.published import published
    from dpviz.studies.release import release
    from dpviz.studies.reproduce import reproduce
    from dpviz.studies.rerun import rerun
    from dpviz.studies.schema import schema
    from dpviz.studies.sweep import sweep
    from dpviz.studies.task import task
    from dpviz.studies.verify import verify
    from dpviz.studies.waterfall import waterfall

__all__ = [
    "Mechanism", "PrivacyWarning", "PrivatePCA", "account", "audit", "board", "budget", "card",
    "check", "claims", "compare", "decide", "least", "ledger", "list_datasets", "list_mechanisms",
    "load", "mechanism", "metric", "predict", "published", "release", "reproduce", "rerun",
    "schema", "spending", "sweep", "task", "verify", "waterfall",
]  # fmt: skip
__version__: str

_HOMES = {
    "Mechanism": "dpviz.mechanisms",
    "mechanism": "dpviz.mechanisms._function",
    "metric": "dpviz.core.metrics._base",
    "PrivacyWarning": "dpviz.releasing.declared",
    "PrivatePCA": "dpviz.releasing.private_pca",
    **dict.fromkeys(("budget", "spending"), "dpviz.releasing.budget"),
    "load": "dpviz.studies",
    **dict.fromkeys(("list_datasets", "list_mechanisms"), "dpviz.studies.listing"),
}
"""Modules of the public names that are not defined in a file of their own name in ``studies``."""


def __getattr__(name: str) -> Any:
    # Import on demand, so that the command line and the pages load only modules that they use.
    if name == "__version__":
        return import_module("dpviz.core").VERSION
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, f"dpviz.studies.{name}")), name)
    near = get_close_matches(f"list_{name}" if f"list_{name}" in __all__ else name, __all__, 1)
    hint = f" (did you mean dpviz.{near[0]}?)" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
