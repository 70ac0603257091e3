"""Find all mechanisms: one in each public module of this package, and all in plugins.

No registration is needed: a new file in this folder appears in lists, pages, the command line and
the contract tests. Mechanisms of packages and plugins (`dpviz.core.plugins`) appear in lists, pages
and the command line.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Declared, split_outside_brackets
from dpviz.core.plugins import from_outside, from_plugin, kept_apart, modules_of, only_class
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms._base import Mechanism

__all__ = [
    "ALL",
    "Mechanism",
    "all_mechanisms",
    "featured",
    "mechanisms_among",
    "parse_variant",
    "parse_variants",
    "with_parameter",
]

ALL = "all"


@cache
def all_mechanisms() -> dict[str, type[Mechanism]]:
    """Return every mechanism class by key: dpviz's own first, each group by ``info.order``.

    Raises
    ------
    TypeError
        If a module of this package does not define exactly one concrete mechanism.
    InvalidSetting
        If a plugin cannot be loaded, or a mechanism's name is already taken.
    """
    classes = [
        only_class(module, Mechanism, "mechanism")  # type: ignore[type-abstract]
        for module in modules_of(__name__)
    ]
    ours = {one.key: one for one in sorted(classes, key=lambda one: one.info.order)}
    return ours | _brought(ours)


def _brought(ours: Mapping[str, type[Mechanism]]) -> dict[str, type[Mechanism]]:
    """Return the mechanisms that packages and plugins offer, sorted by ``info.order``."""
    # A plugin file runs only once. Metrics are loaded first, so that they list the file's measures.
    import dpviz.core.metrics  # noqa: F401

    mechanisms = kept_apart(
        ours, ((one.key, one) for one in mechanisms_among(from_outside("mechanisms")))
    )
    return dict(sorted(mechanisms.items(), key=lambda item: item[1].info.order))


def mechanisms_among(objects: Iterable[object]) -> list[type[Mechanism]]:
    """Return the objects that are runnable mechanisms."""
    return [
        one
        for one in objects
        if inspect.isclass(one) and issubclass(one, Mechanism) and not inspect.isabstract(one)
    ]


def featured() -> tuple[str, ...]:
    """Return the keys shown before a user chooses, with recommended mechanisms first.

    The best approximate mechanism comes first, the best pure mechanism second. A plugin's
    mechanisms come between them, because somebody named the plugin.
    """
    everything = all_mechanisms()
    shown = {key: cls() for key, cls in everything.items() if cls.ours and cls.info.featured}
    brought = [key for key, cls in everything.items() if from_plugin(cls)]
    table = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    ranks = {key: one.advised_rank(table, Budget(1.0, 1e-6)) or 0.0 for key, one in shown.items()}
    ranked = sorted(shown, key=ranks.__getitem__, reverse=True)
    first = [
        next(k for k in ranked if shown[k].info.guarantee == g) for g in ("approximate", "pure")
    ]
    return (first[0], *brought, first[1], *(key for key in shown if key not in first))


def parse_variant(text: str | Declared | type[Declared]) -> Mechanism:
    """Return the mechanism with the key and the parameters that a text states.

    Parameters
    ----------
    text : str or Mechanism
        A key, or a key and parameters: ``mvg[theorem=3,tail=tight]``. A mechanism is returned
        unchanged; a class gives its default variant.

    Raises
    ------
    InvalidSetting
        If the key, a parameter or a value is not known.
    """
    if isinstance(text, Mechanism):
        return text
    if isinstance(text, type) and issubclass(text, Mechanism):
        return text()
    if not isinstance(text, str):
        raise InvalidSetting("mechanism", "a mechanism or its name", text, "--mechanism")
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


def parse_variants(texts: Sequence[str | Declared]) -> list[Mechanism]:
    """Return the mechanisms that texts name, without repeats, in the given order.

    An empty sequence means ``all``: every mechanism with its default parameters. A variant named
    beside ``all`` replaces its mechanism's default.

    Raises
    ------
    InvalidSetting
        If a text names no mechanism, or two different mechanisms have the same text.
    """
    named = list(dict.fromkeys(parse_variant(text) for text in texts if text != ALL))
    by_text: dict[str, Mechanism] = {}
    for mechanism in named:
        if by_text.setdefault(mechanism.text, mechanism) != mechanism:
            allowed = "of different names, because results are labelled by name"
            raise InvalidSetting("mechanisms", allowed, f"{mechanism.text} twice", "--mechanism")
    if texts and ALL not in texts:
        return named
    keys = {mechanism.key for mechanism in named}
    others = [cls() for key, cls in all_mechanisms().items() if key not in keys]
    return sorted(dict.fromkeys([*others, *named]), key=lambda mechanism: mechanism.info.order)


def with_parameter(texts: Sequence[str], assignment: str) -> tuple[str, ...]:
    """Return the variants with one parameter of one mechanism changed.

    Parameters
    ----------
    texts : sequence of str
        Texts of variants; an empty sequence means all.
    assignment : str
        ``mechanism.parameter=value``: an assignment that changes every listed variant of that
        mechanism; with ``all``, it adds a variant if none is listed.

    Raises
    ------
    InvalidSetting
        If the assignment has another form, or its mechanism or parameter is not available.
    """
    path, equals, value = assignment.partition("=")
    key, dot, name = path.strip().partition(".")
    if not (equals and dot):
        raise InvalidSetting("set", "written mechanism.parameter=value", assignment, "--set")
    base = parse_variant(key)
    changed = []
    for text in texts:
        mechanism = base if text == ALL else parse_variant(text)
        if text != ALL and mechanism.key == key:
            text = type(mechanism).from_texts(mechanism.texts() | {name.strip(): value}).text
        changed.append(text)
    if not any(text != ALL and parse_variant(text).key == key for text in texts):
        if texts and ALL not in texts:
            raise InvalidSetting("set", "for a mechanism that is compared", assignment, "--set")
        changed = [*(texts or (ALL,)), type(base).from_texts({name.strip(): value}).text]
    return tuple(changed)
