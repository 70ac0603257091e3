"""Options of the public functions, checked and converted into settings.

Every option is declared once, in `dpviz.core.settings.Settings`; `Options` repeats only the types,
for type checkers, and a test compares both.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from numpy.typing import ArrayLike

from dpviz.core.entries import FeatureBounds, Pairs, bounds_of
from dpviz.core.errors import WrongArgument
from dpviz.core.metrics import Metric
from dpviz.core.number_text import numeral
from dpviz.core.params import (
    Declared,
    Param,
    as_python,
    format_number,
    params_of,
    text,
    texts,
)
from dpviz.core.plugins import shell_command
from dpviz.core.settings import Settings
from dpviz.datasets import name_of
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.load import PREFIX, PlannedTable, prepared_of
from dpviz.studies import Answer, Call, now

YOUR_FILE = "YOUR_FILE.csv"
"""Placeholder in commands for the name of a user's table."""

P = ParamSpec("P")
R = TypeVar("R")

Variant = str | Mechanism | type[Mechanism]
Variants = Variant | Iterable[Variant]
_VARIANTS = {"mechanism", "mechanisms"}


Relations = Literal["replace", "zero-out"]
Domains = Literal["ball", "box"]
Steps = Literal["none", "standardize", "private"]


class Options(TypedDict, total=False):
    """The keywords of the public functions: `dpviz.core.settings.Settings` without the table."""

    epsilon: float
    delta: float | None
    k: int
    relation: Relations
    mechanisms: Variants
    trials: int
    post: Literal["none", "free"]
    seed: int
    center: Literal["mean", "midpoint", "none", "private"] | None
    scale: Steps
    row_bound: str | float
    count: Literal["public", "private"]
    range_share: float
    mean_share: float
    scale_share: float
    bound_share: float
    count_share: float
    picture: float
    picture_form: Literal["cells", "sparse", "ellipses"]
    domain: Domains
    bounds: str | PathLike[str] | tuple[ArrayLike, ArrayLike] | Pairs
    allocation: str | PathLike[str] | Mapping[str, float]
    directions: str
    label: str | None
    categories: str
    categorical: Literal["drop", "onehot"]
    decimal: Literal["auto", "point", "comma"]
    encoding: Literal["auto", "cp1252", "cp1250", "cp1251", "shift_jis", "gbk", "utf-16"]
    delimiter: Literal["auto", "comma", "semicolon", "tab", "bar", "space"]
    header: Literal["auto", "yes", "no"]
    sheet: str
    codes: str
    read_as: str
    levels: str
    rows_a_person: int | None
    person: str | None
    leave_out: str
    missing: Literal["drop", "median"]
    name: str


ASIDE = {
    "progress", "on_estimate", "memory", "cache",
    "workers", "executor", "out", "ledger",
}  # fmt: skip
"""Keywords that change no number, which the record of an answer omits."""


# A public function as a question -------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """A function of `dpviz` in the form that the command line and the documentation use.

    Attributes
    ----------
    function : callable
    help : str
        Help of the command, in one line.
    declared : tuple of type
        Classes whose fields are the keywords of the function.
    base : Settings or None
        Defaults of the function, if they differ from the settings' defaults.
    noun : str
        Unit of the function's progress; empty if the progress shows names, not times.
    prints_to_out : bool
        Whether ``--out`` gets the printed text; otherwise it gets the table.
    once : bool
        Whether the call must not be repeated; each release uses budget.
    command : str
        The command, if it differs from the function's name; a subcommand has two words.
    """

    function: Callable[..., Any]
    help: str
    declared: tuple[type[Declared], ...]
    base: Declared | None = None
    noun: str = ""
    prints_to_out: bool = False
    once: bool = False
    command: str = ""

    @property
    def word(self) -> str:
        """The command."""
        return self.command or str(self.function.__name__)

    def params(self) -> dict[str, Param]:
        """Return the declarations of all keywords."""
        return {name: param for cls in self.declared for name, param in params_of(cls).items()}

    def default(self, name: str) -> Any:
        """Return the default of a keyword."""
        if self.base is not None and hasattr(self.base, name):
            return getattr(self.base, name)
        return self.params()[name].default


def asks(
    help: str,
    *declared: type[Declared],
    hints: Mapping[str, Any] | None = None,
    base: Declared | None = None,
    **more: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Turn a function with declared ``**options`` into a question of the public interface.

    The function refuses unknown keywords with one sentence. Its signature and help list the
    declared fields with types, defaults and ranges, after its own keywords. Its answer records the
    call. `question_of` returns the declaration.

    Parameters
    ----------
    help : str
        Help of the command, in one line.
    *declared : type
        Classes whose fields are the keywords, except the function's own keywords.
    hints : mapping of str to type, optional
        Types of keywords, if they differ from the declared types.
    base : Settings, optional
        Defaults that differ from the declared defaults.
    **more
        Further attributes of `Study`.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        question = Study(function, help, declared, base, **more)
        params = question.params()
        signature, keywords = _signature(question, hints or {})
        names = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > len(names):
                besides = f" other than {names[0]}" if names else ""
                raise WrongArgument(
                    f"pass all arguments of {function.__name__}{besides} by name, as in "
                    f"{list(params)[bool(names)]}=...; got {len(args)} arguments by position."
                )
            for name in kwargs:
                if name not in signature.parameters:
                    raise WrongArgument(_unknown_keyword(function.__name__, name, signature))
            # Record the time before the work begins, because the work may take hours.
            date = now()
            values: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
            for name in values.keys() & set(_VARIANTS):
                values[name] = _instances(values[name])
            by_place: Any = (values[name] for name in names[: len(args)])
            by_name: Any = {name: values[name] for name in kwargs}
            answer = function(*by_place, **by_name)
            if isinstance(answer, Answer):
                # Answers are frozen dataclasses, so set the attribute by `object.__setattr__`.
                object.__setattr__(answer, "_asked", _call_record(question, values, date))
            return answer

        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = _with_options(function.__doc__ or "", keywords, params)
        checked.question = question  # type: ignore[attr-defined]
        return checked

    return made


def _signature(
    question: Study, hints: Mapping[str, Any]
) -> tuple[inspect.Signature, list[inspect.Parameter]]:
    """Return a question's signature with the declared keywords instead of ``**options``."""
    plain = inspect.signature(question.function, eval_str=True)
    own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
    params, mine = question.params(), {p.name for p in own}
    # Types in `Options` are more precise than declared types: a path, a mapping, a mechanism.
    types = get_type_hints(Options) if Settings in question.declared else {}
    types |= hints
    keywords = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=question.default(name),
            annotation=types[name] if name in types else type_of(params[name]),
        )
        for name in params
        if name not in mine
    ]
    return plain.replace(parameters=[*own, *keywords]), keywords


def _instances(value: Any) -> Any:
    """Replace mechanism classes, as a notebook defines them, by instances."""
    if isinstance(value, type) and issubclass(value, Mechanism):
        return value()
    return [_instances(one) for one in value] if isinstance(value, (list, tuple)) else value


def asking_functions() -> dict[str, Callable[..., Any]]:
    """Return every function that asks a question, by its name."""
    # Search the folder for modules, so that a new module adds its question by itself.
    files = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
    by_name = {name: function_named(name) for name in sorted([*files, *_LISTS])}
    return {name: function for name, function in by_name.items() if function is not None}


_LISTS = {"list_datasets": "listing", "list_mechanisms": "listing"}
"""Questions that share a file; every other question has its own file of its name."""


def function_named(name: str) -> Callable[..., Any] | None:
    """Return the function of a question without importing other functions, or None."""
    file = _LISTS.get(name, name)
    if not (Path(__file__).parent / f"{file}.py").is_file():
        return None
    function = getattr(import_module(f"dpviz.studies.{file}"), name, None)
    return function if hasattr(function, "question") else None


def question_of(function: Callable[..., Any]) -> Study:
    """Return the declaration of a public function."""
    question: Study = function.question  # type: ignore[attr-defined]
    return question


def type_of(param: Param) -> Any:
    """Return the type that a declared parameter has in Python."""
    kind: Any = {"number": float, "integer": int, "list": tuple[str, ...]}.get(param.kind, str)
    if param.choices and param.kind == "choice":
        kind = Literal[tuple(param.choices)]
    return kind | None if param.optional or param.required else kind


def _with_options(doc: str, keywords: Sequence[inspect.Parameter], params: Any) -> str:
    """Return a docstring with every declared option: type, default, range and help."""
    lines = []
    for keyword in keywords:
        param: Param = params[keyword.name]
        # An empty list of mechanisms means all mechanisms that apply.
        default = repr(keyword.default) if keyword.default != () else "all that apply"
        lines.append(f"{keyword.name} : {_type_words(keyword.annotation)}, default {default}")
        words = param.help
        if param.kind in ("number", "integer"):
            words += f" From {numeral(param.low, 6)} to {numeral(param.high, 6)}."
        lines += textwrap.wrap(
            words, 92, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
    if not lines:
        return doc
    section = "\n".join(["Other Parameters", "----------------", *lines, "", ""])
    # numpydoc puts Other Parameters before Raises. From 3.13 on, Python strips indents itself.
    doc = inspect.cleandoc(doc)
    before, heading, after = doc.partition("Raises\n------\n")
    return f"{before}{section}{heading}{after}" if heading else doc


def _type_words(kind: Any) -> str:
    """Return a type as a docstring writes it."""
    if get_origin(kind) is Literal:
        return "{" + ", ".join(map(repr, get_args(kind))) + "}"
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        return " or ".join(_type_words(item) for item in get_args(kind))
    if kind is type(None):
        return "None"
    if get_args(kind)[1:] == (...,):
        return f"sequence of {_type_words(get_args(kind)[0])}"
    inner = [_type_words(item) for item in get_args(kind)]
    if not inner:
        return str(kind.__name__)
    if get_origin(kind) is tuple:
        return f"({', '.join(inner)})"
    words = f"{get_origin(kind).__name__.lower()} of {' to '.join(inner)}"
    return words.replace("pathlike of str", "path")


def _unknown_keyword(function: str, name: str, signature: inspect.Signature) -> str:
    names = list(signature.parameters)
    near = difflib.get_close_matches(name, names, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{function} takes the keywords {', '.join(names)}; got {name[:40]!r}{hint}."


# Record of a call ----------------------------------------------------------------------------


def _call_record(question: Study, values: Mapping[str, Any], date: str) -> Call:
    """Return the record of a call, without folders and without data from memory."""
    options = {
        name: _json_value(name, value)
        for name, value in values.items()
        if name not in ASIDE and value is not None
    }
    name = question.function.__name__
    return Call(name, options, command_of(question, options), date)


def _json_value(name: str, value: Any) -> Any:
    """Return the value of an option as JSON data; None for a file's path or a table's rows."""
    if name == "table" and not isinstance(value, (str, PathLike)):
        return None  # Never record rows from memory. A Bunch is a mapping, not a table.
    if name == "bounds" and not isinstance(value, (str, PathLike, Mapping)):
        value = bounds_of(value)
    # Record one pair of bounds per feature if the features have names, otherwise one for all.
    if isinstance(value, FeatureBounds):
        value = value.pairs or [value.low, value.high]
    if hasattr(value, "tolist"):
        value = value.tolist()
    match as_python(value):
        case Mechanism():
            return value.text
        case Metric():
            return value.key
        case str() | PathLike():
            path = fspath(value)
            # The spectrum of a plan may come from a file, so check this file too.
            place = path.partition("spectrum=")[2] if path.startswith(PREFIX) else path
            return None if name in _PLACES and place and Path(place).is_file() else path
        case Mapping():
            return {str(key): _json_value("", item) for key, item in value.items()}
        case Iterable():
            return [_json_value("", item) for item in value]
        case bool() | int() | float() as number:
            return number
    return None


_PLACES = ("table", "bounds", "allocation", "schema", "spectrum")
"""Options that may be the path of a file, whose name and folder are never recorded."""


def command_of(question: Study, options: Mapping[str, Any]) -> str:
    """Return the shell command for the same call, with placeholder names for data from memory."""
    params = question.params()
    words = question.word.split()
    rest: list[str] = []
    for name, value in options.items():
        param = params.get(name)
        if name == "table" or (param is not None and not param.flag.startswith("-")):
            words.append(YOUR_FILE if value is None else str(value))
        # Skip the axes and their values, which `_axes_words` writes as pairs of flags.
        elif name not in ("over", "values"):
            rest += _flags(name, param, value)
    return shell_command(*words, *_axes_words(options), *rest)


def _flags(name: str, param: Param | None, value: Any) -> list[str]:
    """Return one option as command-line words; a list repeats its flag for each item."""
    flag = f"--{name.replace('_', '-')}" if param is None else param.flag
    repeats = isinstance(value, list) and (param is None or param.kind == "list")
    words = []
    for item in value if repeats else [value]:
        if isinstance(item, bool):
            words += [flag] if item else []
            continue
        # A table from memory has no file, so write a placeholder as its file name.
        unnamed = item is None or isinstance(item, (Mapping, list) if name == "bounds" else Mapping)
        text = f"{name}.csv" if unnamed else _text(param, item)
        # Join a negative number to its flag, because argparse would take a separate one for a flag.
        words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return words


def _text(param: Param | None, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(param, item) for item in value)
    if isinstance(value, float):
        return format_number(value)
    return str(value) if param is None or param.kind == "list" else str(param.format(value))


def _axes_words(options: Mapping[str, Any]) -> list[str]:
    """Return the axes of a sweep in the form of the command line."""
    over, values = options.get("over"), options.get("values")
    if over is None or (isinstance(over, str) and values is None):
        return [] if over is None else ["--over", over]
    if isinstance(over, Mapping):
        pairs = list(over.items())
    elif isinstance(over, str):
        pairs = [(over, values)]
    else:
        pairs = list(zip(over, values or (), strict=True))
    return [w for axis, item in pairs for w in ("--over", axis, "--values", _text(None, item))]


def settings_of(table: str, options: Mapping[str, Any]) -> Settings:
    """Return the settings of a call for a named table.

    Raises
    ------
    InvalidSetting, WrongArgument
        If a value, or the kind of table, is not allowed.
    """
    values = dict(options)
    if "mechanisms" in values:
        values["mechanisms"] = variants(values["mechanisms"])
    if isinstance(values.get("allocation"), Mapping):
        values["allocation"] = "uniform"  # Features are still unknown, so use equal shares.
    if isinstance(values.get("allocation"), PathLike):
        values["allocation"] = fspath(values["allocation"])
    return Settings(table=table, **values)


def variants(value: Variants) -> Any:
    """Return variants in the form of settings: texts, and unchanged mechanism objects."""
    if isinstance(value, str):
        return params_of(Settings)["mechanisms"].parse(value)
    if isinstance(value, Mechanism):
        return (value,)
    if not isinstance(value, Iterable):
        raise params_of(Settings)["mechanisms"].error(value)
    return tuple(value)


@dataclass(frozen=True)
class Measuring(Declared):
    """Metrics that measure releases."""

    metrics: tuple[str, ...] = texts(
        (), label="Metrics", flag="--metric", url=None, allowed_text="names of metrics",
        help="A metric to measure, such as largest_angle; repeatable. Default: all metrics.",
    )  # fmt: skip


@dataclass(frozen=True)
class Publishing(Declared):
    """How a user's own table is read for publication, and which ledger records the cost."""

    schema: str | None = text(
        None, label="Schema", flag="--schema", url=None, optional=True, group="Table",
        help="Schema that says how to read the table; dpviz schema drafts one. Each cell is read "
             "by itself, every row counts, and a typical value replaces a missing cell. Without a "
             "schema, do not publish charts of your own file.",
    )  # fmt: skip
    ledger: str | None = text(
        None, label="Ledger", flag="--ledger", url=None, optional=True,
        help="Ledger in which dpviz enters the cost of the charts before it reads the rows."
    )  # fmt: skip


def ready(table: Any, options: Mapping[str, Any]) -> tuple[BoundedTable | PlannedTable, Settings]:
    """Return the prepared table of a call, and its settings with the allocation resolved."""
    # A prepared table knows its name. Any other table must be read first.
    prepared_before = isinstance(table, (BoundedTable, PlannedTable))
    settings = settings_of(table.name if prepared_before else name_of(table), options)
    prepared = prepared_of(table, settings)
    return prepared, prepared.with_shares(settings, shares_of(options))


def shares_of(options: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return the allocation of a call if it is a mapping of feature to share."""
    shares = options.get("allocation")
    return shares if isinstance(shares, Mapping) else None


def options_of(settings: Settings) -> Options:
    """Return the keywords that give these settings, without the table, the first argument."""
    values = {name: getattr(settings, name) for name in params_of(Settings) if name != "table"}
    return cast(Options, values)
