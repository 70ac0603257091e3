"""dpviz: see what differential privacy costs a principal component analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.grid import sweep

__all__ = ["sweep"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # On demand: the command line and the pages need not wait for what they do not use.
    if name == "sweep":
        from dpviz.grid import sweep

        return sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
