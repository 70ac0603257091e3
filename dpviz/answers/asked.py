"""What a caller of the front door asks for, checked and made into settings.

Every option is declared once, in `dpviz.settings.Settings`; `Options` repeats only the types, for
type checkers, and a test keeps the two equal.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, ParamSpec, TypedDict, TypeVar, cast

from dpviz.base.number_text import numeral
from dpviz.base.params import Declared, format_number, params_of
from dpviz.claims.audit import AuditOptions
from dpviz.errors import InvalidSetting, WrongArgument
from dpviz.mechanisms import Mechanism
from dpviz.metrics import FLAT, METRICS, chance_share
from dpviz.prepare.bounding import BoundedRows, Bounds
from dpviz.prepare.given import name_of, prepare_given
from dpviz.prepare.load import resolve_allocation
from dpviz.prepare.plan import Planned
from dpviz.prepare.prepared import Measured
from dpviz.run.axes import axis_param, parse_values
from dpviz.settings import Settings
from dpviz.targets.goal import Goal
from dpviz.values.allocation_text import of_mapping

P = ParamSpec("P")
R = TypeVar("R")

Variants = str | Mechanism | Iterable[str | Mechanism]
BOUNDS_GIVEN = "given"
"""What the settings say of bounds that were passed as a mapping."""


class Options(TypedDict, total=False):
    """The keywords of the front door: `dpviz.settings.Settings` without the table."""

    epsilon: float
    delta: float | None
    k: int
    relation: str
    mechanisms: Variants
    trials: int
    seed: int
    center: str | None
    scale: str
    row_bound: str | float
    count: str
    range_share: float
    mean_share: float
    scale_share: float
    bound_share: float
    count_share: float
    domain: str
    bounds: str | PathLike[str] | Bounds
    allocation: str | PathLike[str] | Mapping[str, float]
    directions: str
    label: str | None
    categorical: str
    decimal: str
    leave_out: str
    missing: str
    name: str


class AuditKeywords(TypedDict, total=False):
    """The keywords of an audit: the fields of `AuditOptions`, without the mechanism."""

    epsilon: float
    delta: float | None
    dimension: int
    k: int
    rows: int
    relation: str
    domain: str
    seed: int
    trials: int
    confidence: float


class Goals(Options, total=False):
    """`Options`, and one metric with the value that it must reach."""

    recovery: float
    captured_share: float
    captured_total: float
    projection_distance: float
    largest_angle: float
    noise_spectral: float
    noise_frobenius: float
    low_rank_error: float


GOAL_METRICS = tuple(key for key, metric in METRICS.items() if metric.better != "neither")


def by_name(declared: type[Declared], *extra: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function whose ``**options`` are declared refuse all else in one sentence.

    Its signature then lists the declared fields with their defaults, in their order, after the
    function's own keywords.

    Parameters
    ----------
    declared : type
        Whose fields the keywords are, but the first, which is the function's first argument.
    *extra : str
        Further keywords, without a default.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        plain = inspect.signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p.name for p in own if p.kind is not p.KEYWORD_ONLY]
        params = params_of(declared)
        hints = {**Goals.__annotations__, **AuditKeywords.__annotations__}
        named = [name for name in params if name not in taken]
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=params[name].default if name in params else None,
                annotation=hints.get(name, "float"),
            )
            for name in (*extra, *named)
        ]
        signature = plain.replace(parameters=[*own, *keywords])

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > len(taken):
                second = list(params)[1]
                raise WrongArgument(
                    f"{function.__name__} takes {taken[0]} by position and all else by name, such "
                    f"as {second}=...; got {len(args)} arguments by position."
                )
            for name in kwargs:
                if name not in signature.parameters:
                    raise WrongArgument(_unknown(function.__name__, name, signature))
            return function(*args, **kwargs)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return made


def _unknown(function: str, name: str, signature: inspect.Signature) -> str:
    known = list(signature.parameters)
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{function} takes the keywords {', '.join(known)}; got {name[:40]!r}{hint}."


def settings_of(table: object, options: Mapping[str, Any]) -> tuple[Settings, Bounds | None]:
    """Return the settings that a call states, and the bounds it passes as a mapping.

    Raises
    ------
    InvalidSetting, WrongArgument
        If a value, or the kind of table, is not legal.
    """
    values = dict(options)
    if "mechanisms" in values:
        values["mechanisms"] = variants(values["mechanisms"])
    bound = values.get("row_bound")
    if isinstance(bound, (int, float)) and not isinstance(bound, bool):
        values["row_bound"] = format_number(float(bound))
    given: Bounds | None = None
    if isinstance(values.get("bounds"), Mapping):
        given = values["bounds"]
        values["bounds"] = BOUNDS_GIVEN
    if isinstance(values.get("allocation"), Mapping):
        values["allocation"] = "uniform"  # until the features are known
    for name in ("bounds", "allocation"):
        if isinstance(values.get(name), PathLike):
            values[name] = fspath(values[name])
    return Settings(table=name_of(table), **values), given


def variants(given: Variants) -> Any:
    """Return variants as settings hold them: texts, and mechanisms as they are."""
    if isinstance(given, str):
        return params_of(Settings)["mechanisms"].parse(given)
    if isinstance(given, Mechanism):
        return (given,)
    if not isinstance(given, Iterable):
        raise params_of(Settings)["mechanisms"].error(given)
    return tuple(given)


def ready(table: object, options: Mapping[str, Any]) -> tuple[BoundedRows | Planned, Settings]:
    """Return the prepared table of a call, and its settings with the allocation resolved."""
    settings, bounds = settings_of(table, options)
    prepared = prepare_given(table, settings, bounds)
    shares = options.get("allocation")
    if isinstance(shares, Mapping):
        text = of_mapping(shares, prepared.columns, settings.directions)
        return prepared, replace(settings, allocation=text)
    return prepared, resolve_allocation(settings, prepared)


def options_of(settings: Settings) -> Options:
    """Return the keywords that state these settings; the table is the function's first argument."""
    named = {name: getattr(settings, name) for name in params_of(Settings) if name != "table"}
    return cast(Options, named)


def audit_options(mechanism: str | Mechanism, options: Mapping[str, Any]) -> AuditOptions:
    """Return what to audit."""
    return AuditOptions(mechanism=mechanism, **options)


def goal_of(metric: str, value: Any, of_draws: float | None, prepared: Measured, k: int) -> Goal:
    """Return the goal that a call states; a recovery becomes the captured share that means it.

    Raises
    ------
    InvalidSetting
        If the value is not a number, or out of its range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidSetting("the goal", "a positive number", value)
    if metric != "recovery":
        return Goal(metric, float(value), of_draws)
    chance = chance_share(prepared.reference, k)
    if chance > 1 - FLAT:
        allowed = f"another measure than recovery: any {k} directions capture as much here"
        raise InvalidSetting("the goal", allowed, f"recovery {numeral(value, 6)}")
    return replace(Goal.of_recovery(float(value), chance), of_draws=of_draws)


def axes_of(over: Any, values: Any) -> dict[str, list[Any]]:
    """Return the values of each axis of a sweep, parsed.

    Parameters
    ----------
    over, values
        As in `dpviz.api.sweep`.
    """
    if isinstance(over, Mapping):
        if values is not None:
            raise InvalidSetting("values", "left out where over is a mapping", values)
        written = dict(over)
    else:
        names = [over] if isinstance(over, str) else list(over)
        items = [values] if isinstance(over, str) else values
        if isinstance(items, str) or not isinstance(items, Sequence) or len(items) != len(names):
            raise InvalidSetting("values", "given once for each axis", values)
        written = dict(zip(names, items, strict=True))
    axes: dict[str, list[Any]] = {}
    for axis, item in written.items():
        param = axis_param(axis)
        if item is None:
            allowed = "given: numbers, or a text such as 0.1:10:9 or 0.1,1,10"
            raise InvalidSetting("values", allowed, item)
        if isinstance(item, str):
            axes[axis] = parse_values(axis, item)
        else:
            alone = not isinstance(item, Iterable)
            axes[axis] = [
                format_number(float(value))
                if param.kind == "text" and isinstance(value, (int, float))
                else value
                for value in ([item] if alone else item)
            ]
    return axes


def numbers_of(spectrum: Any) -> list[float]:
    """Return eigenvalues as a list of numbers."""
    try:
        return [float(value) for value in spectrum]
    except (TypeError, ValueError):
        allowed = "a text, a path or a sequence of numbers"
        raise InvalidSetting("spectrum", allowed, type(spectrum).__name__) from None
