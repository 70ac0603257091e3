"""`Settings`: every option of dpviz, declared once.

The command line, links, widgets, validation messages, the JSON ``settings``
and the command a page offers for copying all come from the fields below.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from dpviz.errors import InvalidSetting
from dpviz.params import Declared, choice, format_number, integer, number, params_of, text, texts
from dpviz.problem import EPSILON_RANGE

LINK_VERSION = "1"

_ROW_BOUND_ALLOWED = "max, a positive number, or quantile:Q with Q above 0 and at most 1"


def _check_row_bound(value: str) -> str:
    """Return the row bound in canonical text."""
    error = InvalidSetting("row bound", _ROW_BOUND_ALLOWED, value, "--row-bound")
    if value == "max":
        return value
    prefix, _, quantile = value.rpartition(":")
    try:
        level = float(quantile)
    except ValueError:
        raise error from None
    if prefix == "quantile" and 0 < level <= 1:
        return f"quantile:{format_number(level)}"
    if prefix == "" and 0 < level < math.inf:
        return format_number(level)
    raise error


@dataclass(frozen=True)
class Settings(Declared):
    """All options of one view; frozen, validated, hashable.

    ``mechanisms`` holds texts of variants; empty means all that apply. A
    ``None`` is written ``auto`` and is resolved where the data is known.
    """

    table: str = text(
        "digits",
        label="Table",
        help="Built-in table, or the path of a CSV or Parquet file.",
        flag="TABLE",
        examples=("iris", "wine"),
    )
    epsilon: float = number(
        1.0,
        *EPSILON_RANGE,
        label="Epsilon",
        help="Privacy loss each person may suffer: smaller is more private, larger more accurate.",
        slider=(0.01, 100.0),
        log=True,
        examples=(0.1, 4.0),
    )
    delta: float | None = number(
        None,
        0.0,
        math.nextafter(1.0, 0.0),
        label="Delta",
        help="Probability with which the epsilon guarantee may fail; default 1/n^1.1, rounded "
        "down to one digit.",
        optional=True,
        slider=(1e-10, 0.01),
        log=True,
        allowed_text="a number from 0 to below 1",
        examples=(1e-6, 0.01),
    )
    k: int = integer(
        2,
        1,
        100_000,
        label="Components k",
        help="Number of principal components to release.",
        examples=(1, 3),
    )
    relation: str = choice(
        "replace",
        {"replace": "replace one person", "zero-out": "zero out one person"},
        label="Neighbours",
        help="What one person may change: their row becomes any other row (replace), or becomes "
        "zero (zero-out, add or remove with n public).",
        examples=("zero-out",),
    )
    mechanisms: tuple[str, ...] = texts(
        (),
        label="Mechanisms",
        help="Mechanism or variant such as mvg[theorem=3]; repeatable. Default: all that apply.",
        flag="--mechanism",
        url="m",
        allowed_text="mechanism keys, each with optional [name=value,...]",
        examples=(("gaussian", "laplace"),),
    )
    trials: int = integer(
        50,
        1,
        1_000_000,
        label="Draws",
        help="Independent releases simulated per mechanism.",
        slider=(5, 200),
        examples=(7, 20),
    )
    seed: int = integer(
        0, 0, 2**63 - 1, label="Seed", help="Same seed, same bytes.", examples=(1, 12)
    )
    center: str | None = choice(
        None,
        {"mean": "mean", "midpoint": "midpoint of the bounds", "none": "none"},
        label="Centring",
        help="What is subtracted from each feature; default mean on the ball, midpoint on the box.",
        optional=True,
        examples=("midpoint", "none"),
    )
    scale: str = choice(
        "none",
        {"none": "none", "standardize": "divide by standard deviation"},
        label="Scaling",
        help="Scaling of each feature before the row bound.",
        examples=("standardize",),
    )
    row_bound: str = text(
        "max",
        label="Row bound",
        help="Largest allowed row norm R, in units of the table: max (from the data), a number, "
        "or quantile:Q. Longer rows are scaled down to it.",
        check=_check_row_bound,
        allowed_text=_ROW_BOUND_ALLOWED,
        examples=("quantile:0.9", "40"),
    )
    domain: str = choice(
        "ball",
        {"ball": "ball (bounded row norm)", "box": "box (bounded features)"},
        label="Domain",
        help="What is public about a row: its norm is at most R (ball), or each feature lies "
        "between public bounds (box).",
        examples=("box",),
    )
    bounds: str = text(
        "max",
        label="Feature bounds",
        help="Public bounds of each feature: a CSV or Parquet file with columns feature, low, "
        "high; known (the table's own public bounds); or max (taken from the data).",
        url=None,
    )
    label: str | None = text(
        None,
        label="Label column",
        help="Column that colours the picture and is left out of the analysis.",
        optional=True,
        url=None,
    )
    categorical: str = choice(
        "drop",
        {"drop": "leave out", "onehot": "one column per category"},
        label="Text columns",
        help="What happens to text columns of a file.",
        examples=("onehot",),
    )
    missing: str = choice(
        "drop",
        {"drop": "drop the row", "median": "fill with the column's median"},
        label="Missing values",
        help="What happens to rows with missing values.",
        examples=("median",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain == "box" and self.center == "mean":
            raise InvalidSetting(
                "centring", "midpoint or none on a box, whose bounds are public", "mean", "--center"
            )

    @property
    def centring(self) -> str:
        """The centring in force, with the default resolved."""
        return self.center or ("midpoint" if self.domain == "box" else "mean")

    def to_query(self, base: Self) -> dict[str, str]:
        """Return the link parameters: what differs from the base, and the version."""
        params = params_of(type(self))
        query = {"v": LINK_VERSION}
        for name, written in self.texts(base).items():
            url = params[name].url
            if url is not None:
                query[url] = written
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, str], base: Self) -> tuple[Self, list[str]]:
        """Read link parameters and say what had to be replaced.

        Parameters
        ----------
        query : mapping of str to str
            Parameters of a link; keys that are no setting are left alone.
        base : Settings
            Values for what the link does not say or says badly.

        Returns
        -------
        settings : Settings
        notices : list of str
            One sentence for each value that was replaced.
        """
        settings = base
        notices = []
        for name, param in params_of(cls).items():
            if param.url is None or param.url not in query:
                continue
            try:
                value = param.parse(query[param.url])
                settings = replace(settings, **{name: value})
            except InvalidSetting as error:
                value = _nearest(param, query[param.url], getattr(base, name))
                settings = replace(settings, **{name: value})
                notices.append(f"In the link, {error} Using {param.format(value)} instead.")
        return settings, notices

    def command(self, table: str | None = None, verb: str = "compare") -> str:
        """Return the shell command that computes this view.

        Parameters
        ----------
        table : str, optional
            What to write for the table, where it has no name of its own.
        """
        words = ["python", "-m", "dpviz", verb, self.table if table is None else table]
        params = params_of(type(self))
        for name, written in self.texts().items():
            if name == "mechanisms":
                for variant in self.mechanisms:
                    words += [params[name].flag, variant]
            elif name != "table":
                words += [params[name].flag, written]
        return shlex.join(words)

    def to_json(self) -> dict[str, Any]:
        """Return all values by name, with defaults that need no data resolved."""
        values = {name: getattr(self, name) for name in params_of(type(self))}
        values["mechanisms"] = list(self.mechanisms)
        values["center"] = self.centring
        return values


def _nearest(param: Any, written: str, fallback: Any) -> Any:
    """Return the legal value nearest to a badly written one."""
    if param.kind not in ("number", "integer"):
        return fallback
    try:
        given = float(written)
    except ValueError:
        return fallback
    if math.isnan(given):
        return fallback
    low, high = param.slider or (param.low, param.high)
    clamped = min(max(given, low), high)
    return round(clamped) if param.kind == "integer" else clamped


def default_delta(n: int) -> float:
    """Return 1/n^1.1 rounded down to one significant digit.

    Smaller than 1/n, so that releasing a random person's row is not allowed.
    """
    digit, exponent = f"{n**-1.1:.17e}".split("e")
    return float(f"{digit[0]}e{exponent}")


def join_words(items: Iterable[str]) -> str:
    """Return items as an English list: a, b and c."""
    listed = list(items)
    if len(listed) < 2:
        return "".join(listed)
    return ", ".join(listed[:-1]) + " and " + listed[-1]
