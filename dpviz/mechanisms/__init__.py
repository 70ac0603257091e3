"""Discovery: every public module of this package is one mechanism.

Nothing is registered. A new file appears in lists, pages, the command line
and the contract tests by being here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from functools import cache

from dpviz.errors import InvalidSetting
from dpviz.mechanisms._base import Mechanism
from dpviz.params import split_outside_brackets

__all__ = ["Mechanism", "all_mechanisms", "featured", "parse_variant", "parse_variants"]


@cache
def all_mechanisms() -> dict[str, type[Mechanism]]:
    """Return every mechanism class by key, in the order of their slots.

    Raises
    ------
    TypeError
        If a module does not define exactly one concrete mechanism.
    """
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        classes = [
            item
            for item in vars(loaded).values()
            if inspect.isclass(item)
            and issubclass(item, Mechanism)
            and item.__module__ == loaded.__name__
            and not inspect.isabstract(item)
        ]
        if len(classes) != 1:
            raise TypeError(f"{loaded.__name__} must define one mechanism; it has {len(classes)}")
        found[module.name] = classes[0]
    return dict(sorted(found.items(), key=lambda item: item[1].info.slot))


def featured() -> tuple[str, ...]:
    """Return the keys shown before a user chooses."""
    return tuple(key for key, cls in all_mechanisms().items() if cls.info.featured)


def parse_variant(text: str) -> Mechanism:
    """Return the mechanism a variant's text names, with its parameters set.

    Parameters
    ----------
    text : str
        A key, or a key and parameters: ``mvg[theorem=3,tail=tight]``.

    Raises
    ------
    InvalidSetting
        If the key, a parameter or a value is not known.
    """
    key, bracket, rest = text.strip().partition("[")
    mechanisms = all_mechanisms()
    if key not in mechanisms:
        raise InvalidSetting("mechanism", f"one of {', '.join(mechanisms)}", key, "--mechanism")
    if bracket and not rest.endswith("]"):
        raise InvalidSetting("mechanism", "written key[name=value,...]", text, "--mechanism")
    values = {}
    for item in split_outside_brackets(rest.removesuffix("]")):
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidSetting("mechanism", "written key[name=value,...]", text, "--mechanism")
        values[name.strip()] = value
    return mechanisms[key].from_texts(values)


def parse_variants(texts: Sequence[str]) -> list[Mechanism]:
    """Return the variants named, without repeats; all mechanisms for none named."""
    if not texts:
        return [cls() for cls in all_mechanisms().values()]
    return list(dict.fromkeys(parse_variant(text) for text in texts))
