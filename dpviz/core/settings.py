"""`Settings`: every option of dpviz, declared once.

The fields below define the command line, links, widgets, validation messages, the JSON ``settings``
and the command that a page offers for copying.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from dpviz.core.allocation import (
    ALLOCATION_ALLOWED,
    DIRECTIONS_ALLOWED,
    check_allocation,
    check_directions,
    travels,
)
from dpviz.core.entries import (
    BOUNDS_ALLOWED,
    BOUNDS_WORDS,
    MIDPOINT,
    PRIVATE,
    PUBLIC,
    ROW_BOUND_ALLOWED,
    Entries,
    FeatureBounds,
    bounds_of,
    from_data_as,
    names_file,
    row_bound_of,
    source_of,
    stated_categories,
)
from dpviz.core.errors import InvalidSetting, printable
from dpviz.core.number_text import number_in, numeral
from dpviz.core.params import (
    Declared,
    choice,
    format_number,
    integer,
    number,
    params_of,
    text,
    text_of,
    texts,
)
from dpviz.core.plugins import shell_command
from dpviz.core.problem import DELTA_ALLOWED, EPSILON_RANGE, check_delta

AS_RELEASED, FREE = "none", "free"
"""Whether releases are shown as released or post-processed; post-processing costs no privacy."""

MOST_ROWS_A_PERSON = 1_000
"""Largest allowed value for the number of rows of one person."""

MOST_SHARED = 0.95
"""Largest share of the budget for all private steps together; the release needs a share too."""


def names_in(text: str, what: str = "leave out", allowed: str = "column names") -> tuple[str, ...]:
    """Return the names in a text that is one line of CSV."""
    if not text.strip():
        return ()
    try:
        cells = next(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        flag = f"--{what.replace(' ', '-')}"
        raise InvalidSetting(what, f"a list of {allowed} separated by commas", text, flag) from None
    return tuple(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))


def names_listed(names: Iterable[str]) -> str:
    """Return names as the text that `names_in` parses."""
    sink = io.StringIO(newline="")
    csv.writer(sink, lineterminator="").writerow(names)
    return sink.getvalue()


ALL_KEPT = "none"
"""Text that leaves no column out, not even one that looks like an identifier."""


def left_out_in(text: str) -> tuple[str, ...] | None:
    """Return the columns that a text leaves out; None lets the table's check decide."""
    names = names_in(text)
    return None if not names else () if names == (ALL_KEPT,) else names


def _check_leave_out(value: str) -> str:
    """Return the listed names in canonical text."""
    return names_listed(names_in(value))


def categories_in(text: str) -> tuple[str, ...]:
    """Return the public categories of a label, from a text that is one line of CSV."""
    return stated_categories(names_in(text, "categories", "names"))


def _check_categories(value: str) -> str:
    """Return the listed categories in canonical text."""
    return names_listed(categories_in(value))


def codes_in(text: str) -> tuple[float | str, ...]:
    """Return the numbers and words in a text that is one line of CSV."""
    codes: list[float | str] = []
    for cell in names_in(text, "codes", _CODES):
        try:
            number = number_in(cell)
        except ValueError:
            codes.append(cell)
            continue
        if not math.isfinite(number):
            raise InvalidSetting("codes", _CODES, text, "--codes")
        codes.append(number)
    return tuple(dict.fromkeys(codes))


def codes_listed(codes: Iterable[float | str]) -> str:
    """Return numbers and words as the text that `codes_in` reads."""
    return names_listed(x if isinstance(x, str) else format_number(x) for x in codes)


_CODES = "numbers and words separated by commas"
_READ_AS = "COLUMN=number or COLUMN=category, separated by commas"


def read_as_in(text: str) -> dict[str, str]:
    """Return how each column is to be read, by name, from a text."""
    found = {}
    for cell in names_in(text, "read as", _READ_AS):
        name, _, what = cell.rpartition("=")
        if not name or what not in ("number", "category"):
            raise InvalidSetting("read as", _READ_AS, text, "--read-as")
        found[name] = what
    return found


def read_as_listed(read_as: Mapping[str, str]) -> str:
    """Return how columns are read as the text that `read_as_in` parses."""
    return names_listed(f"{name}={what}" for name, what in read_as.items())


_SCALE = "3 to 7 words from lowest to highest, separated by <; several scales separated by ;"


def levels_in(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the scales in a text, each with its words from the least to the most."""
    scales = [scale for scale in text.split(";") if scale.strip()]
    scales_in_order = tuple(
        tuple(" ".join(w.split()) for w in scale.split("<")) for scale in scales
    )
    if not all(is_scale(scale) for scale in scales_in_order):
        raise InvalidSetting("levels", _SCALE, text, "--levels")
    return scales_in_order


def is_scale(words: Sequence[str]) -> bool:
    """Return whether words form a scale from 1: 3 to 7 words that differ even without case."""
    different = {plain_word(word) for word in words}
    return 3 <= len(words) == len(different) <= 7 and "" not in different


def plain_word(word: str) -> str:
    """Return a word of a scale for comparison, in lower case and stripped."""
    return " ".join(word.casefold().split())


def levels_listed(scales: Iterable[Sequence[str]]) -> str:
    """Return scales as the text that `levels_in` parses."""
    return ";".join("<".join(scale) for scale in scales)


def _share(default: float, what: str) -> Any:
    return number(
        default,
        0.001,
        0.9,
        label=f"Budget share for the {what}",
        group="Preparation",
        help=f"Share of the privacy budget for the private {what}. The budget is counted in "
        "squared mu, or in epsilon under pure privacy.",
        slider=(0.01, 0.5),
        examples=(0.2,),
    )


@dataclass(frozen=True)
class Settings(Declared):
    """All options of one view; frozen, validated, hashable.

    ``mechanisms`` holds texts of variants; an empty value means all that apply. A ``None`` is
    written ``auto`` and is resolved when the data is known.
    """

    table: str = text(
        "digits",
        label="Table",
        group="Table",
        help="Built-in table, path of a CSV or Parquet file, or a plan without a table: "
        "plan:n=NUMBER,spectrum=FILE. A plan's spectrum may also be a formula, such as "
        "power:d=50,exponent=1.5,total=0.5.",
        flag="TABLE",
        examples=("iris", "wine"),
    )
    epsilon: float = number(
        1.0,
        *EPSILON_RANGE,
        label="Epsilon",
        group="Privacy",
        help="Limit on how much one person's row can change the odds of any guess. A smaller "
        "epsilon is more private; a larger epsilon is more accurate.",
        slider=(0.01, 100.0),
        log=True,
        examples=(0.1, 4.0),
    )
    delta: float | None = number(
        None,
        0.0,
        math.nextafter(1.0, 0.0),
        label="Delta",
        group="Privacy",
        help="Extra probability allowed beyond epsilon. A larger delta means less protection; keep "
        "delta far below 1/n. Default: min(1e-6, 1/n^2), rounded down to one digit.",
        optional=True,
        slider=(1e-10, 0.01),
        log=True,
        check=check_delta,
        allowed_text=DELTA_ALLOWED,
        examples=(1e-6, 0.01),
    )
    k: int = integer(
        2,
        1,
        100_000,
        label="Components k",
        group="Privacy",
        help="Number of principal components to release.",
        examples=(1, 3),
    )
    relation: str = choice(
        "replace",
        {"replace": "replace one person", "zero-out": "zero out one person"},
        label="Neighbours",
        group="Privacy",
        help="Neighbouring tables differ in one person's row. With replace, that row becomes any "
        "other row. With zero-out, that row becomes zero and n stays public, unlike with add or "
        "remove.",
        examples=("zero-out",),
    )
    mechanisms: tuple[str | Declared, ...] = texts(
        (),
        label="Mechanisms",
        group="Mechanisms",
        help="Mechanism or variant, such as mvg[theorem=3]; repeatable. Default: all that apply.",
        flag="--mechanism",
        url="m",
        allowed_text="mechanism keys, each with optional [name=value,...]",
        examples=(("first_key", "second_key[steps=3,tail=tight]"),),
        objects=True,
    )
    trials: int = integer(
        50,
        1,
        1_000_000,
        label="Draws",
        group="Mechanisms",
        help="Number of independent releases simulated for each mechanism.",
        slider=(5, 200),
        examples=(7, 20),
    )
    post: str = choice(
        AS_RELEASED,
        {AS_RELEASED: "as released", FREE: "post-processed"},
        label="Free lunch",
        group="Mechanisms",
        help="Show releases as they are, or after post-processing, which costs no privacy: epsilon "
        "stays the same. Post-processing weighs features by the released diagonal if the noise is "
        "known. Post-processing also makes variances nonnegative and limits their sum.",
        examples=(FREE,),
    )
    seed: int = integer(
        0,
        0,
        2**63 - 1,
        label="Seed",
        group="Mechanisms",
        help="The same seed gives the same bytes on the same machine.",
        examples=(1, 12),
    )
    center: str | None = choice(
        None,
        {
            "mean": "mean",
            "midpoint": "midpoint of the bounds",
            "none": "none",
            PRIVATE: "private mean",
        },
        label="Centring",
        group="Preparation",
        help="Value subtracted from each feature. Default: the mean for the domain ball, and the "
        "midpoint of the bounds for box. A private mean uses part of the budget.",
        optional=True,
        reads=from_data_as("mean"),
        examples=("midpoint", "none"),
    )
    scale: str = choice(
        "none",
        {
            "none": "none",
            "standardize": "divide by standard deviation",
            PRIVATE: "divide by a private standard deviation",
        },
        label="Scaling",
        group="Preparation",
        help="Scaling of each feature before rows are clipped. A private scale uses part of the "
        "budget.",
        reads=from_data_as("standardize"),
        examples=("standardize",),
    )
    row_bound: str = text(
        "max",
        label="Row bound",
        group="Preparation",
        help="Largest allowed row norm R, in units of the table; longer rows are clipped to it. "
        "Public values are max (from the data), a number, or quantile:Q. Values that use budget "
        "are private:Q (a quantile by the exponential mechanism) or private:adaptive (sparse "
        "vector technique). With the value none, only mechanisms that need no bound run.",
        reads=row_bound_of,
        allowed_text=ROW_BOUND_ALLOWED,
        examples=("quantile:0.9", "40", "private:0.8", "none"),
    )
    count: str = choice(
        "public",
        {"public": "public", PRIVATE: "private"},
        label="Number of people",
        group="Preparation",
        help="Whether the number of people present is public. A private number is estimated with "
        "part of the budget, for mean, scale and row-norm bound. The number n of rows stays "
        "public: withdrawn people have rows of zeros. Only zero-out allows a private number.",
        examples=(PRIVATE,),
    )
    range_share: float = _share(0.05, "feature bounds")
    mean_share: float = _share(0.1, "mean")
    scale_share: float = _share(0.1, "scale")
    bound_share: float = _share(0.1, "row bound")
    count_share: float = _share(0.02, "number of people")
    picture: float = number(
        0.0,
        0.0,
        0.9,
        label="Budget share for a map",
        group="Mechanisms",
        help="Share of the privacy budget for a map of the rows, published with the directions; "
        "0 for no map. The budget is counted in squared mu, or in epsilon under pure privacy.",
        slider=(0.0, 0.9),
        examples=(0.65,),
    )
    picture_form: str = choice(
        "cells",
        {
            "cells": "noisy counts of cells",
            "sparse": "counts above a threshold",
            "ellipses": "an ellipse for each label",
        },
        label="Form of the map",
        group="Mechanisms",
        help="Form of the published map. Counts above a threshold use a tenth of delta and are "
        "not available under pure privacy.",
        examples=("ellipses",),
    )
    domain: str = choice(
        "ball",
        {"ball": "ball (bounded row norm)", "box": "box (bounded features)"},
        label="Domain",
        group="Preparation",
        help="Public limit of a row: its norm is at most R (ball), or each feature lies between "
        "public bounds (box).",
        examples=("box",),
    )
    bounds: str | FeatureBounds = text(  # noqa: RUF009
        "max",
        label="Feature bounds",
        group="Preparation",
        help="Bounds of each feature: a CSV or Parquet file with columns feature, low, high, or "
        "LOW:HIGH for all features. Other values: known (the table's public bounds), private (one "
        "range about zero, uses budget), max (from the data).",
        reads=bounds_of,
        objects=True,
        allowed_text=BOUNDS_ALLOWED,
        examples=("known", "-1:4"),
    )
    allocation: str = text(
        "uniform",
        label="Shares of the precision",
        group="Precision",
        help="Share of the precision for each direction, for mechanisms with shaped noise. Values: "
        "uniform; binary:COLUMNS:TAU (the listed features divide the share TAU). Other values: "
        "max-pnr (from the directions' variances), custom:SHARES, or a CSV file with columns "
        "feature (or direction) and theta.",
        check=check_allocation,
        allowed_text=ALLOCATION_ALLOWED,
        examples=("binary:1:0.8", "max-pnr"),
    )
    directions: str = text(
        "features",
        label="Directions",
        group="Precision",
        help="Directions of the noise: features, or private:SHARE (principal directions released "
        "with this share of the budget, usual 0.2). With private:SHARE:MECHANISM, a mechanism that "
        "releases a matrix or a subspace supplies the directions. The value true takes the data's "
        "own directions, which is not private.",
        check=check_directions,
        allowed_text=DIRECTIONS_ALLOWED,
        examples=("private:0.3", "true"),
    )
    label: str | None = text(
        None,
        label="Label column",
        group="Table",
        help="Column that colours the chart and is left out of the analysis. With auto, no column "
        "is the label; write =auto for a column named auto.",
        optional=True,
        url=None,
    )
    categories: str = text(
        "",
        label="Public categories",
        group="Table",
        help="Values that the label column may hold, separated by commas, if they were known "
        "before anybody saw the data. A published map can show these values and shows other "
        "labels as other. Values taken from the rows would reveal that somebody has each value.",
        check=_check_categories,
        allowed_text="names separated by commas",
        examples=("yes,no",),
    )
    categorical: str = choice(
        "drop",
        {"drop": "leave out", "onehot": "one column per category"},
        label="Text columns",
        group="Table",
        help="Treatment of text columns of a file.",
        examples=("onehot",),
    )
    decimal: str = choice(
        "auto",
        {"auto": "find it", "point": "point (1.5)", "comma": "comma (1,5)"},
        label="Decimal mark",
        group="Table",
        help="Decimal mark of numbers that a file holds as text. The default, auto, decides by the "
        "whole file; dpviz asks if point and comma are both possible.",
        examples=("comma",),
    )
    encoding: str = choice(
        "auto",
        {
            "auto": "UTF-8",
            "cp1252": "Windows-1252",
            "cp1250": "Windows-1250",
            "cp1251": "Windows-1251",
            "shift_jis": "Shift-JIS",
            "gbk": "GBK",
            "utf-16": "UTF-16",
        },
        label="Encoding",
        group="Table",
        help="How a text file writes letters such as umlauts.",
        examples=("cp1252",),
    )
    delimiter: str = choice(
        "auto",
        {
            "auto": "find it",
            "comma": "comma",
            "semicolon": "semicolon",
            "tab": "tab",
            "bar": "vertical bar",
            "space": "space",
        },
        label="Delimiter",
        group="Table",
        help="Character between the cells of a text file. The default, auto, decides by the file.",
        examples=("semicolon",),
    )
    header: str = choice(
        "auto",
        {"auto": "find it", "yes": "column names", "no": "a row"},
        label="First line",
        group="Table",
        help="Whether the first line of a text file or sheet holds column names (yes) or a row "
        "(no). The default, auto, decides by the file.",
        examples=("no",),
    )
    sheet: str = text(
        "",
        label="Sheet",
        group="Table",
        help="Sheet of a workbook, by name. Default: the first sheet that holds a table.",
        url=None,
        examples=("Labor",),
    )
    codes: str = text(
        "",
        label="Codes for missing values",
        group="Table",
        help="Numbers and words that mean a missing value, such as -999 or Unknown, separated by "
        "commas.",
        url=None,
        check=lambda value: codes_listed(codes_in(value)),
        allowed_text=_CODES,
        examples=("-999", "-999,-99", "-9,Unknown"),
    )
    read_as: str = text(
        "",
        label="How columns are read",
        group="Table",
        help="How to read columns that dpviz reads wrongly, separated by commas. COLUMN=number "
        "counts everything but numbers as missing; COLUMN=category reads numbers as words.",
        url=None,
        check=lambda value: read_as_listed(read_as_in(value)),
        allowed_text=_READ_AS,
        examples=("lead=number", "site=category,lead=number"),
    )
    levels: str = text(
        "",
        label="Answers in order",
        group="Table",
        help="3 to 7 answers from the lowest to the highest, such as never < sometimes < often; "
        "separate scales by ;. A text column with no other words becomes a feature, with answers "
        "counted from 1.",
        check=lambda value: levels_listed(dict.fromkeys(levels_in(value))),
        allowed_text=_SCALE,
        examples=("never<sometimes<often", "no<perhaps<yes;low<middle<high"),
    )
    rows_a_person: int | None = integer(
        None,
        1,
        MOST_ROWS_A_PERSON,
        label="Rows a person",
        group="Table",
        help="Largest number of rows that one person has. Until you state this number, dpviz "
        "protects one row, not one person.",
        optional=True,
        examples=(1, 3),
    )
    person: str | None = text(
        None,
        label="Column that identifies the person",
        group="Table",
        help="Column that identifies the person. Only the first rows of each person count, as many "
        "as rows a person states (usual: one). This column is not a feature.",
        optional=True,
        url=None,
    )
    leave_out: str = text(
        "",
        label="Columns left out",
        group="Table",
        help="Columns to leave out, separated by commas; put a name with a comma in double quotes. "
        "Default: columns that look like identifiers; the value none leaves no column out.",
        url=None,
        check=_check_leave_out,
        allowed_text="column names separated by commas",
        examples=("patient", 'patient,"weight, kg"'),
    )
    missing: str = choice(
        "drop",
        {"drop": "drop the row", "median": "fill with the column's median"},
        label="Missing values",
        group="Table",
        help="Treatment of rows with missing values.",
        examples=("median",),
    )
    name: str = text(
        "",
        label="Name of the table",
        group="Table",
        help="Name of the table in results and files, which never carry a file's name or folder. "
        "Default: a built-in table's key, or the word table for your own table.",
        url=None,
        check=printable,
        examples=("trial A",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        private = self.private_shares
        if self.domain == "box" and private:
            raise InvalidSetting("domain", "ball if the preparation is private", "box", "--domain")
        if math.fsum([self.picture, *private.values()]) > MOST_SHARED:
            raise InvalidSetting(
                "shares of the budget for preparation and map",
                f"at most {numeral(MOST_SHARED, 6)} in all, because the release needs the rest",
                format_number(math.fsum([self.picture, *private.values()])),
                "--range-share, --mean-share, --scale-share, --bound-share, --count-share, "
                "--picture",
            )
        if self.domain == "box" and self.center == "mean":
            raise InvalidSetting(
                "centring", "midpoint or none on a box, which has public bounds", "mean", "--center"
            )

    @property
    def private_shares(self) -> dict[str, float]:
        """Share of each private preparation step by name."""
        return {step: entry.share for step, entry in self.entries.private.items()}

    @property
    def entries(self) -> Entries:
        """Sources of bounds, centre, scale and row-norm bound; bounds are checked if needed."""
        preparation = Entries(
            center=source_of(self.centring, self.mean_share),
            scale=source_of(self.scale, self.scale_share),
            row_bound=source_of(self.row_bound, self.bound_share),
            # Under replace, all neighbouring tables have the same n, so n is public.
            count=source_of(
                self.count if self.relation == "zero-out" else PUBLIC, self.count_share
            ),
        )
        # State bounds only if something uses them: otherwise they are a needless assumption.
        if preparation.private or self.domain == "box" or self.centring == MIDPOINT:
            preparation = replace(preparation, bounds=source_of(self.bounds, self.range_share))
        return preparation

    @property
    def variants(self) -> tuple[str, ...]:
        """The mechanisms as texts."""
        return tuple(map(text_of, self.mechanisms))

    @property
    def centring(self) -> str:
        """The centring in use, with the default replaced by its value."""
        return self.center or ("midpoint" if self.domain == "box" else "mean")

    def to_query(self, base: Self) -> dict[str, str]:
        """Return the link parameters that differ from the base.

        Links omit an allocation that names features, is a file or is long, and a file of bounds.
        """
        return self._travelling(super().to_query(base))

    def full_query(self) -> dict[str, str]:
        """Return all parameters that links may contain, including defaults.

        Such a link keeps its meaning if a later version changes defaults.
        """
        query = {
            param.url: param.format(getattr(self, name))
            for name, param in params_of(type(self)).items()
            if param.url is not None
        }
        return self._travelling(query)

    def _travelling(self, query: dict[str, str]) -> dict[str, str]:
        """Remove link parameters that name a feature or a file, or are long."""
        if not travels(self.allocation):
            query.pop("allocation", None)
        if names_file(self.bounds):
            query.pop("bounds", None)
        return query

    @classmethod
    def from_query(cls, query: Mapping[str, str], base: Self) -> tuple[Self, list[str]]:
        """Read link parameters and report every replaced value; no link may name a file."""
        settings, notices = super().from_query(query, base)
        if settings.allocation != base.allocation and not travels(settings.allocation):
            settings = replace(settings, allocation=base.allocation)
            notices.append(
                "In the link, the allocation must be written with numbers and at most 20 shares. "
                f"Showing {base.allocation}."
            )
        if names_file(settings.bounds):
            settings = replace(settings, bounds=base.bounds)
            words = ", ".join(BOUNDS_WORDS)
            notices.append(
                f"In the link, feature bounds must be {words} or LOW:HIGH. Showing "
                f"{text_of(base.bounds)}."
            )
        return settings, notices

    def command(
        self, table: str | None = None, verb: str = "compare", base: Self | None = None
    ) -> str:
        """Return the shell command that computes this view.

        Parameters
        ----------
        table : str, optional
            Text for the table, if the table has no name of its own.
        verb : str
        base : Settings, optional
            Values that the verb uses for settings that are not stated; by default, the defaults.
        """
        words = [*verb.split(), self.table if table is None else table]
        params = params_of(type(self))
        for name, written in self.texts(base).items():
            if name == "mechanisms":
                for variant in self.variants:
                    words += [params[name].flag, variant]
            elif name != "table":
                flag = params[name].flag
                # Join the two by =, because a value with a dash first would count as an option.
                words += [f"{flag}={written}"] if written.startswith("-") else [flag, written]
        return shell_command(*words)

    def to_json(self) -> dict[str, Any]:
        """Return all values by name; defaults are resolved if they need no data."""
        values = {name: getattr(self, name) for name in params_of(type(self))}
        values["mechanisms"] = list(self.variants)
        values["center"] = self.centring
        values["bounds"] = text_of(self.bounds)
        return values
