"""dpviz: see what differential privacy costs a principal component analysis.

`compare` runs mechanisms side by side, `sweep` along an axis; `least` finds the
least epsilon for a goal and `predict` needs no draw; `audit` bounds what a
mechanism really costs, by attack; `mechanisms` and `datasets` list what there is.
`PrivatePCA` makes one private release as a scikit-learn estimator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.api import audit, compare, datasets, least, mechanisms, predict, sweep
    from dpviz.estimator.private_pca import PrivatePCA

__all__ = [
    "PrivatePCA", "audit", "compare", "datasets", "least", "mechanisms", "predict", "sweep",
]  # fmt: skip
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # On demand: the command line and the pages need not wait for what they do not use.
    if name in ("datasets", "mechanisms"):  # packages too: they can be called
        return import_module(f"dpviz.{name}")
    if name == "PrivatePCA":
        return import_module("dpviz.estimator.private_pca").PrivatePCA
    if name in __all__:
        return getattr(import_module("dpviz.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
