"""Declared parameters: one declaration per option, from which all its uses follow.

A dataclass that derives from `Declared` declares each field with `number`,
`integer`, `choice` or `text`. From that one declaration come the default, the
validation and its message, the command-line flag, the URL key, the widget's
label, help and range, and the values that generic tests use.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any, Self

import numpy as np

from dpviz.core.errors import InvalidSetting, did_you_mean, printable
from dpviz.core.number_text import number_in, numeral, parseable


@dataclass(frozen=True)
class Param:
    """Declaration of one option; the functions below make them.

    Attributes
    ----------
    name : str
        Field name.
    kind : str
        ``number``, ``integer``, ``choice``, ``text``, ``list``, or ``object`` without a text.
    default : object
        Value if the user gives none.
    label, help : str
        Widget label and explanation; the command line shows the same help.
    flag : str
        Command-line option, such as ``--row-bound``.
    url : str or None
        Key in a link, or None if links must never contain the value.
    low, high : float
        Range of numbers, inclusive.
    slider : (float, float) or None
        The narrower range a slider offers, when the legal range is wider.
    log : bool
        Whether a slider moves on a logarithmic scale.
    choices : dict
        For ``choice``: mapping from value to label, in the order shown.
    optional : bool
        Whether None is legal; None is written ``auto``. A text that is itself ``auto``, or begins
        with ``=``, is written with one more ``=`` before it.
    required : bool
        Whether a value must be stated: None then means a missing value, which has no text.
    group : str
        Heading of a group of widgets.
    check : callable or None
        Extra validation: a function from a value to the cleaned value, or to InvalidSetting. For an
        object: a test, or the accepted types.
    examples : tuple
        Legal values that generic tests use besides the default.
    objects : bool
        Whether an object with a ``text`` may replace that text. The object is passed on unchanged
        and written as its text.
    reads : callable or None
        A function that converts other spellings of a value to the canonical one, before any check.
    """

    name: str
    kind: str
    default: Any
    label: str
    help: str
    flag: str = ""
    url: str | None = ""
    low: float = -math.inf
    high: float = math.inf
    slider: tuple[float, float] | None = None
    log: bool = False
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    optional: bool = False
    required: bool = False
    allowed_text: str = ""
    group: str = ""
    check: Callable[[Any], Any] | tuple[type, ...] | None = None
    examples: tuple[Any, ...] = ()
    objects: bool = False
    reads: Callable[[Any], Any] | None = None

    @property
    def allowed(self) -> str:
        """The allowed range in words, completing "must be ..."."""
        if self.allowed_text:
            words = self.allowed_text
        elif self.kind == "choice":
            words = "one of " + ", ".join(self.choices)
        elif self.kind in ("number", "integer"):
            noun = "a whole number" if self.kind == "integer" else "a number"
            words = f"{noun} from {numeral(self.low, 6)} to {numeral(self.high, 6)}"
        else:
            words = "text"
        return words + (" (or auto)" if self.optional else "")

    def error(self, given: object) -> InvalidSetting:
        """Return the error for a value outside the allowed range."""
        return InvalidSetting(self.name, self.allowed, quotable(given), self.flag)

    def clean(self, value: Any) -> Any:
        """Return the value in canonical form, or raise InvalidSetting."""
        if self.kind == "object":
            kinds: Any = self.check
            if not (isinstance(value, kinds) if isinstance(kinds, tuple) else kinds(value)):
                raise self.error(value)
            return value
        if self.reads is not None and value is not None:
            value = self.reads(value)
        if value is None:
            if self.optional or self.required:
                return None
            raise self.error(value)
        if self.kind in ("number", "integer"):
            value = self._clean_number(value)
        elif self.kind == "choice":
            value = str(value)
            if value not in self.choices:
                raise self.error(value)
        elif self.kind == "list":
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise self.error(value)
            value = tuple(item if self._is_object(item) else str(item) for item in value)
        elif not (isinstance(value, str) or self._is_object(value)):
            raise self.error(value)
        return self.check(value) if callable(self.check) else value

    def _is_object(self, value: object) -> bool:
        return self.objects and isinstance(getattr(value, "text", None), str)

    def _clean_number(self, value: Any) -> float | int:
        # Refuse True, a number in Python, and the text "1", which float() would accept.
        if isinstance(value, (bool, str, bytes)):
            raise self.error(value)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.error(value) from None
        if self.kind == "integer" and math.isfinite(number):
            # Compare the integer, not its float: as floats, 2**63 - 1 and 2**63 are equal.
            if not (value == int(value) and self.low <= int(value) <= self.high):
                raise self.error(value)
            return int(value)
        if not (self.low <= number <= self.high):  # This condition also catches NaN.
            raise self.error(value)
        return number

    def parse(self, text: str) -> Any:
        """Return the value written as text, or raise InvalidSetting."""
        text = text.strip()
        if self.optional and text == "auto":
            return None
        if self._escapes and text.startswith("="):
            text = text[1:]
        if self.kind in ("number", "integer"):
            try:
                # Try int() first, because a float cannot store a seed such as 2**63 + 1 exactly.
                whole = self.kind == "integer" and _is_int(text)
                value: Any = int(text) if whole else number_in(text)
                return self.clean(value)
            except ValueError:  # Catch InvalidSetting too, so that the message quotes the text.
                raise self.error(text) from None
        if self.kind == "list":
            items = split_outside_brackets(text)
            if text and not items:  # Empty text means the default; a lone comma is an error.
                raise self.error(text)
            return self.clean(items)
        return self.clean(text)

    def format(self, value: Any) -> str:
        """Return the value as text that `parse` reads back exactly."""
        if value is None:
            return "auto"
        if self.kind == "list":
            return ",".join(map(text_of, value))
        if isinstance(value, float):
            return format_number(value)
        value = text_of(value)
        if self._escapes and (value == "auto" or value.startswith("=")):
            return f"={value}"
        return str(value)

    @property
    def _escapes(self) -> bool:
        """Whether the text auto is written =auto, because auto itself means None."""
        return self.kind == "text" and self.optional

    def refused(self, error: InvalidSetting, written: str) -> str:
        """Return a phrase that explains why a link's text is invalid."""
        try:
            given = number_in(written) if self.kind in ("number", "integer") else math.nan
        except ValueError:
            given = math.nan
        beyond = {given < self.low: "too small", given > self.high: "too large"}
        how = beyond.get(True, "not possible")
        hint = did_you_mean(written, self.choices)
        return f"{error.name} = {printable(error.given)} is {how}: it must be {error.allowed}{hint}"


def quotable(given: object) -> object:
    """Return a number or a word unchanged, and only the type of any other object."""
    plain = given is None or isinstance(given, (str, bytes, Real))
    return given if plain else f"a {type(given).__name__}"


def text_of(value: Any) -> Any:
    """Return an object's ``text`` if the object has one, else the value itself."""
    return value if isinstance(value, str) else getattr(value, "text", value)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    texts = (parseable(value, digits) for digits in range(6, 18))
    return next((text for text in texts if float(text) == value), repr(float(value)))


def _is_int(text: str) -> bool:
    return text.isascii() and text.lstrip("+-").isdigit()


def split_outside_brackets(text: str) -> tuple[str, ...]:
    """Split at commas that stand outside square brackets.

    ``mvg[theorem=3,tail=tight],gaussian`` has two items.
    """
    items: list[str] = []
    depth = 0
    current = ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            items.append(current)
            current = ""
        else:
            current += letter
    items.append(current)
    return tuple(item.strip() for item in items if item.strip())


def as_python(value: Any) -> Any:
    """Return a NumPy number, a fraction or a decimal as a native Python number."""
    if isinstance(value, np.generic):
        return value.item()
    native = isinstance(value, (int, float)) or not isinstance(value, (Real, Decimal))
    return value if native else float(value)


def _declare(kind: str, default: Any, label: str, help: str, **more: Any) -> Any:
    param = Param(name="", kind=kind, default=default, label=label, help=help, **more)
    return dataclasses.field(default=default, metadata={"param": param})


def number(
    default: float | None, low: float, high: float, *, label: str, help: str, **more: Any
) -> Any:
    """Declare a real-valued field in [low, high]."""
    return _declare("number", default, label, help, low=low, high=high, **more)


def integer(default: int | None, low: int, high: int, *, label: str, help: str, **more: Any) -> Any:
    """Declare a whole-number field in [low, high]."""
    return _declare("integer", default, label, help, low=low, high=high, **more)


def choice(
    default: str | None, choices: Mapping[str, str], *, label: str, help: str, **more: Any
) -> Any:
    """Declare a field with named values; ``choices`` maps value to label."""
    return _declare("choice", default, label, help, choices=dict(choices), **more)


def text(default: str | None, *, label: str, help: str, **more: Any) -> Any:
    """Declare a text field; pass ``check`` to validate it."""
    return _declare("text", default, label, help, **more)


def texts(default: tuple[str, ...], *, label: str, help: str, **more: Any) -> Any:
    """Declare a field that holds several texts."""
    return _declare("list", default, label, help, **more)


def given(default: Any, allowed: str, accepts: Callable[[Any], bool] | tuple[type, ...]) -> Any:
    """Declare a field that holds an object and is never written as text."""
    return _declare("object", default, "", "", check=accepts, allowed_text=allowed, url=None)


def inherit(cls: Any, name: str, **changed: Any) -> Any:
    """Declare a field as another class does, with some attributes changed.

    Parameters
    ----------
    cls : type
        A dataclass of declared parameters.
    name : str
        Field name.
    **changed
        Attributes of `Param` that differ, such as ``default`` or ``help``.
    """
    declared = next(field for field in dataclasses.fields(cls) if field.name == name)
    param = dataclasses.replace(declared.metadata["param"], **changed)
    return dataclasses.field(default=param.default, metadata={"param": param})


def params_of(cls: Any) -> dict[str, Param]:
    """Return the declared parameters of a class by field name, in order."""
    return _params_of(cls)


@cache
def _params_of(cls: Any) -> dict[str, Param]:
    params = {}
    for field in dataclasses.fields(cls):
        param: Param = field.metadata["param"]
        url = field.name if param.url == "" else param.url
        flag = param.flag or cls.flag_of(field.name)
        params[field.name] = dataclasses.replace(param, name=field.name, flag=flag, url=url)
    return params


@dataclass(frozen=True)
class Declared:
    """Base of frozen dataclasses whose every field is a declared parameter."""

    def __post_init__(self) -> None:
        for name, param in params_of(type(self)).items():
            object.__setattr__(self, name, param.clean(getattr(self, name)))

    @classmethod
    def flag_of(cls, name: str) -> str:
        """Return the command-line spelling of a parameter that declares none."""
        return "--" + name.replace("_", "-")

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Self:
        """Return an instance from field names and values written as text."""
        params = params_of(cls)
        for name in texts:
            if name not in params:
                names = ", ".join(params) or "no parameters"
                raise InvalidSetting("parameter", f"one of {names}", name, cls.flag_of(name))
        return cls(**{name: params[name].parse(value) for name, value in texts.items()})

    @classmethod
    def url_keys(cls) -> set[str]:
        """Return the link keys of the parameters that links may contain."""
        return {param.url for param in params_of(cls).values() if param.url is not None}

    def to_query(self, base: Self) -> dict[str, str]:
        """Return the link parameters that differ from the base."""
        params = params_of(type(self))
        query = {}
        for name, written in self.texts(base).items():
            url = params[name].url
            if url is not None:
                query[url] = written
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, str], base: Self) -> tuple[Self, list[str]]:
        """Read link parameters and report every replaced value.

        Each wrong value is replaced by the base's value, a default. The nearest allowed value would
        be an end of the range, and the program warns about such ends.

        Parameters
        ----------
        query : mapping of str to str
            Parameters of a link; other keys are ignored.
        base : instance
            Values for all parameters that the link omits or states wrongly.

        Returns
        -------
        values : instance
        notices : list of str
            One sentence for each replaced value.
        """
        params = params_of(cls)
        values = {}
        notices = []
        for name, param in params.items():
            if param.url is None or param.url not in query:
                continue
            written = query[param.url]
            try:
                values[name] = param.parse(written)
            except InvalidSetting as error:
                fallback = param.format(getattr(base, name))
                notices.append(f"In the link, {param.refused(error, written)}. Showing {fallback}.")
        try:
            # Replace all values in one step, so that their order does not matter.
            return dataclasses.replace(base, **values), notices
        except InvalidSetting:
            settings = base
        for name, value in values.items():
            try:
                settings = dataclasses.replace(settings, **{name: value})
            except InvalidSetting as error:
                fallback, why = params[name].format(getattr(settings, name)), params[name].refused
                notices.append(
                    f"In the link, {why(error, query[params[name].url or name])}."
                    f" Showing {fallback}."
                )
        return settings, notices

    def texts(self, base: Declared | None = None) -> dict[str, str]:
        """Return the values that differ from the base (the defaults) as text."""
        base = type(self)() if base is None else base
        return {
            name: param.format(getattr(self, name))
            for name, param in params_of(type(self)).items()
            if getattr(self, name) != getattr(base, name)
        }
