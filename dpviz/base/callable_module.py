"""Rooms whose name is also a function of the front door: ``dpviz.mechanisms()`` lists them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that, when called, answers as the function of its name in `dpviz.api`."""

    def __call__(self) -> Any:
        """Return what the function of this name returns."""
        return getattr(import_module("dpviz.api"), self.__name__.rpartition(".")[2])()


def make_callable(module: str) -> None:
    """Let a module be called; Python allows a module's class to be changed for such ends."""
    sys.modules[module].__class__ = CallableModule
