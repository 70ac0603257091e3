"""dpviz: see what differential privacy costs a principal component analysis.

`sweep` runs mechanisms over a grid of settings; `audit` bounds what a mechanism
really costs, by attack.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.claims.audit import audit
    from dpviz.run.sweep import sweep

__all__ = ["audit", "sweep"]
__version__ = "0.1.0"

_HOMES = {"audit": "dpviz.claims.audit", "sweep": "dpviz.run.sweep"}


def __getattr__(name: str) -> Any:
    # On demand: the command line and the pages need not wait for what they do not use.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
