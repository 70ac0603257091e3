"""dpviz: see what differential privacy costs a principal component analysis.

`compare` runs mechanisms side by side, `sweep` along an axis, and `board` draws them to be
scrubbed; `least` finds the least epsilon for a goal, `decide` a stakeholder's with what it risks,
and `predict` needs no draw; `audit` bounds what a mechanism really costs, by attack; `claims` says
which promises hold here, and `reproduce` which of the papers' do; `account` says what repeating
costs, `waterfall` what a private preparation does, `task` what can still be learned, and
`published` draws a picture of the rows to publish. `schema` drafts how a release reads a table,
`release` makes one, `card` files it, `verify` checks that, and
`ledger` says what releases have spent. `list_mechanisms` and `list_datasets` say what there is. An
answer is kept by its ``save``, read by `load` and asked again by `rerun`. `PrivatePCA` makes one
private release as a scikit-learn estimator; `budget` limits what several cost together, and
`spending` says it. `mechanism` and `metric` make one of a function of yours, `Mechanism` is the
base of classes; `check` runs the contract suite over it, and `dpviz.extend` has what an
author imports.
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
"""Where a name is defined, if not in the file of its own name among the questions."""


def __getattr__(name: str) -> Any:
    # On demand: the command line and the pages need not wait for what they do not use.
    if name == "__version__":
        return import_module("dpviz.core").VERSION
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, f"dpviz.studies.{name}")), name)
    near = get_close_matches(f"list_{name}" if f"list_{name}" in __all__ else name, __all__, 1)
    hint = f" (did you mean dpviz.{near[0]}?)" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
