"""What a caller of the front door asks for, checked and made into settings.

Every option is declared once, in `dpviz.core.settings.Settings`; `Options` repeats only the types,
for type checkers, and a test keeps the two equal.
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
"""What a command says for a table whose name is nobody else's business."""

P = ParamSpec("P")
R = TypeVar("R")

Variant = str | Mechanism | type[Mechanism]
Variants = Variant | Iterable[Variant]
_VARIANTS = {"mechanism", "mechanisms"}


Relations = Literal["replace", "zero-out"]
Domains = Literal["ball", "box"]
Steps = Literal["none", "standardize", "private"]


class Options(TypedDict, total=False):
    """The keywords of the front door: `dpviz.core.settings.Settings` without the table."""

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
"""Keywords that change no number: what made an answer does not name them."""


# A question of the front door ----------------------------------------------------------------


@dataclass(frozen=True)
class Study:
    """A function of `dpviz` as the command line and the documentation know it.

    Attributes
    ----------
    function : callable
    help : str
        Of the command, in a line.
    declared : tuple of type
        Whose fields its keywords are.
    base : Settings or None
        Its defaults, where they are not those of the settings.
    noun : str
        What its progress counts; empty where it says names and not times.
    prints_to_out : bool
        Whether ``--out`` takes what the command prints; else it takes the table.
    once : bool
        Whether it may not be asked again for the sake of it: a release spends.
    command : str
        The command, where it is not the function's name; two words where it stands under another.
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
        """Return what is declared of each keyword."""
        return {name: param for cls in self.declared for name, param in params_of(cls).items()}

    def default(self, name: str) -> Any:
        """Return what a keyword is where nothing is said."""
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
    """Make a function whose ``**options`` are declared a question of the front door.

    It refuses all else in one sentence; its signature and its help list the declared fields with
    types, defaults and ranges, after the function's own keywords; and its answer knows what it was
    asked. `question_of` gives what is said here.

    Parameters
    ----------
    help : str
        Of the command, in a line.
    *declared : type
        Whose fields the keywords are, but those that the function itself has.
    hints : mapping of str to type, optional
        Types of keywords; of others the declaration says it.
    base : Settings, optional
        Defaults that differ from the declared.
    **more
        Further attributes of `Study`.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        question = Study(function, help, declared, base, **more)
        params = question.params()
        signature, keywords = _signature(question, hints or {})
        taken = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > len(taken):
                own_first = f"{taken[0]} by position and all else" if taken else "everything"
                raise WrongArgument(
                    f"{function.__name__} takes {own_first} by name, such as "
                    f"{list(params)[bool(taken)]}=...; got {len(args)} arguments by position."
                )
            for name in kwargs:
                if name not in signature.parameters:
                    raise WrongArgument(_unknown(function.__name__, name, signature))
            # before the work, which may take hours: an answer is of the time it was asked
            date = now()
            first: Any = _with_mechanisms(zip(taken, args, strict=False))
            named: Any = _with_mechanisms(kwargs.items())
            answer = function(*first.values(), **named)
            if isinstance(answer, Answer):
                # set once, here: an answer is frozen
                object.__setattr__(answer, "_asked", _noted(question, first | named, date))
            return answer

        checked.__signature__ = signature  # type: ignore[attr-defined]
        checked.__doc__ = _with_options(function.__doc__ or "", keywords, params)
        checked.question = question  # type: ignore[attr-defined]
        return checked

    return made


def _signature(
    question: Study, hints: Mapping[str, Any]
) -> tuple[inspect.Signature, list[inspect.Parameter]]:
    """Return a question's signature with its declared keywords in it, and these alone."""
    plain = inspect.signature(question.function, eval_str=True)
    # the place of **options is taken by what is declared
    own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
    params, mine = question.params(), {p.name for p in own}
    # the types of `Options` say more than a declaration: a path, a mapping, a mechanism
    known = get_type_hints(Options) if Settings in question.declared else {}
    known |= hints
    keywords = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=question.default(name),
            annotation=known[name] if name in known else type_of(params[name]),
        )
        for name in params
        if name not in mine
    ]
    return plain.replace(parameters=[*own, *keywords]), keywords


def _with_mechanisms(given: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return arguments by name, with mechanisms where classes of them were given."""
    return {name: _made(value) if name in _VARIANTS else value for name, value in given}


def _made(given: Any) -> Any:
    """Return mechanisms where classes of them were given: what is written in a notebook."""
    if isinstance(given, type) and issubclass(given, Mechanism):
        return given()
    return [_made(one) for one in given] if isinstance(given, (list, tuple)) else given


def asking_functions() -> dict[str, Callable[..., Any]]:
    """Return every function that asks a question, by its name."""
    # walked and not listed: a question is added as one file
    files = [path.stem for path in Path(__file__).parent.glob("[!_]*.py")]
    found = {name: function_named(name) for name in sorted([*files, *_LISTS])}
    return {name: function for name, function in found.items() if function is not None}


_LISTS = {"list_datasets": "listing", "list_mechanisms": "listing"}
"""Questions that share a file; any other is asked by the file of its own name."""


def function_named(name: str) -> Callable[..., Any] | None:
    """Return the function that asks a question, importing no other; None where there is none."""
    file = _LISTS.get(name, name)
    if not (Path(__file__).parent / f"{file}.py").is_file():
        return None
    found = getattr(import_module(f"dpviz.studies.{file}"), name, None)
    return found if hasattr(found, "question") else None


def question_of(function: Callable[..., Any]) -> Study:
    """Return what a function of the front door was declared with."""
    found: Study = function.question  # type: ignore[attr-defined]
    return found


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
        # an empty list of mechanisms stands for all that apply
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
    # numpydoc has Other Parameters before Raises; Python strips indents itself from 3.13 on
    doc = inspect.cleandoc(doc)
    before, found, after = doc.partition("Raises\n------\n")
    return f"{before}{section}{found}{after}" if found else doc


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


def _unknown(function: str, name: str, signature: inspect.Signature) -> str:
    known = list(signature.parameters)
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{function} takes the keywords {', '.join(known)}; got {name[:40]!r}{hint}."


# What made an answer -------------------------------------------------------------------------


def _noted(question: Study, given: Mapping[str, Any], date: str) -> Call:
    """Return what is noted of a call: no folder, and nothing that a caller had in memory."""
    options = {
        name: _written(name, value)
        for name, value in given.items()
        if name not in ASIDE and value is not None
    }
    name = question.function.__name__
    return Call(name, options, command_of(question, options), date)


def _written(name: str, value: Any) -> Any:
    """Return the value of an option as JSON data; None for where a file lies, or a table's rows."""
    if name == "table" and not isinstance(value, (str, PathLike)):
        return None  # what was in memory is its owner's: a Bunch too, which is a mapping
    if name == "bounds" and not isinstance(value, (str, PathLike, Mapping)):
        value = bounds_of(value)
    # by feature where they have names, else one pair for all
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
            return None if name in _PLACES and _is_place(fspath(value)) else fspath(value)
        case Mapping():
            return {str(key): _written("", item) for key, item in value.items()}
        case Iterable():
            return [_written("", item) for item in value]
        case bool() | int() | float() as number:
            return number
    return None


def _is_place(written: str) -> bool:
    """Return whether a text is the path of a file that is there, or a plan's of its spectrum."""
    place = written.partition("spectrum=")[2] if written.startswith(PREFIX) else written
    return bool(place) and Path(place).is_file()


_PLACES = ("table", "bounds", "allocation", "schema", "spectrum")
"""Options that may be the path of a file: neither its name nor where it lies is noted."""


def command_of(question: Study, options: Mapping[str, Any]) -> str:
    """Return the shell command that asks the same; what was in memory has a name to fill in."""
    params = question.params()
    words = question.word.split()
    rest: list[str] = []
    for name, value in options.items():
        param = params.get(name)
        if name == "table" or (param is not None and not param.flag.startswith("-")):
            words.append(YOUR_FILE if value is None else str(value))
        # an axis and its values are one pair of flags, written by `_axes_words`
        elif name not in ("over", "values"):
            rest += _flags(name, param, value)
    return shell_command(*words, *_axes_words(options), *rest)


def _flags(name: str, param: Param | None, value: Any) -> list[str]:
    """Return one option as the command line takes it; a list's as often as it has items."""
    flag = f"--{name.replace('_', '-')}" if param is None else param.flag
    repeats = isinstance(value, list) and (param is None or param.kind == "list")
    words = []
    for item in value if repeats else [value]:
        if isinstance(item, bool):
            words += [flag] if item else []
            continue
        # what was in memory has a file's name to fill in
        unnamed = item is None or isinstance(item, (Mapping, list) if name == "bounds" else Mapping)
        text = f"{name}.csv" if unnamed else _text(param, item)
        # a negative number would be read as a flag of its own
        words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return words


def _text(param: Param | None, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(param, item) for item in value)
    if isinstance(value, float):
        return format_number(value)
    return str(value) if param is None or param.kind == "list" else str(param.format(value))


def _axes_words(options: Mapping[str, Any]) -> list[str]:
    """Return the axes of a sweep as the command line takes them."""
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
    """Return the settings that a call states of a table by its name.

    Raises
    ------
    InvalidSetting, WrongArgument
        If a value, or the kind of table, is not legal.
    """
    values = dict(options)
    if "mechanisms" in values:
        values["mechanisms"] = variants(values["mechanisms"])
    if isinstance(values.get("allocation"), Mapping):
        values["allocation"] = "uniform"  # until the features are known
    if isinstance(values.get("allocation"), PathLike):
        values["allocation"] = fspath(values["allocation"])
    return Settings(table=table, **values)


def variants(given: Variants) -> Any:
    """Return variants as settings hold them: texts, and mechanisms as they are."""
    if isinstance(given, str):
        return params_of(Settings)["mechanisms"].parse(given)
    if isinstance(given, Mechanism):
        return (given,)
    if not isinstance(given, Iterable):
        raise params_of(Settings)["mechanisms"].error(given)
    return tuple(given)


@dataclass(frozen=True)
class Measuring(Declared):
    """By what releases are measured."""

    metrics: tuple[str, ...] = texts(
        (), label="Metrics", flag="--metric", url=None, allowed_text="names of metrics",
        help="A metric to measure, such as largest_angle; repeatable. Default: all that apply.",
    )  # fmt: skip


@dataclass(frozen=True)
class Publishing(Declared):
    """How a table of one's own is read for what may be shown to anybody, and where that is paid."""

    schema: str | None = text(
        None, label="Schema", flag="--schema", url=None, optional=True, group="Table",
        help="Schema by which the table is read; dpviz schema drafts one. Each cell is read by "
        "itself, every row counts, and a typical value replaces a missing cell. Without it "
        "pictures of a file of your own are not to be published.",
    )  # fmt: skip
    ledger: str | None = text(
        None, label="Ledger", flag="--ledger", url=None, optional=True,
        help="A ledger to enter what the pictures cost in, before the rows are looked at.",
    )  # fmt: skip


def ready(table: Any, options: Mapping[str, Any]) -> tuple[BoundedTable | PlannedTable, Settings]:
    """Return the prepared table of a call, and its settings with the allocation resolved."""
    settings = settings_of(_called(table), options)
    prepared = prepared_of(table, settings)
    return prepared, prepared.with_shares(settings, shares_of(options))


def _called(table: Any) -> str:
    # what is prepared already brings its name; anything else has yet to be read
    return table.name if isinstance(table, (BoundedTable, PlannedTable)) else name_of(table)


def shares_of(options: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return the allocation of a call where it is a mapping of feature to share."""
    given = options.get("allocation")
    return given if isinstance(given, Mapping) else None


def options_of(settings: Settings) -> Options:
    """Return the keywords that state these settings; the table is the function's first argument."""
    named = {name: getattr(settings, name) for name in params_of(Settings) if name != "table"}
    return cast(Options, named)
