"""The options of a real release, declared once for the command line and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpviz.core.entries import PRIVATE
from dpviz.core.errors import QUOTED, DpvizError, InvalidSetting, printable
from dpviz.core.number_text import number_in, numeral
from dpviz.core.params import (
    Declared,
    choice,
    format_number,
    inherit,
    integer,
    params_of,
    text,
    texts,
)
from dpviz.core.problem import Budget, Relation, Unit, check_delta
from dpviz.core.settings import Settings
from dpviz.releasing.grid import BITS_RANGE, DEFAULT_BITS
from dpviz.releasing.ledger import Ledger

_CENTRINGS = params_of(Settings)["center"].choices
LARGEST_EPSILON = 100.0
"""Limit for a real release: a larger epsilon protects nothing and overflows OpenDP's curves.
"""
USUAL_EPSILON = 10.0
"""A release with a larger epsilon needs the user's explicit word."""
DELTA_STATED = "stated: a number from 0 to below 1 that is not above 1/n"
LONGEST_LINE = 200
"""Maximum length of a user's text in a release, in characters."""
ACCEPT = {
    "epsilon-above-10": "with an epsilon above 10, the odds of a guess about one person's "
    "row can grow by a factor of more than 22,000",
    "delta-above-1/n": "a delta above 1/n would allow the whole row of one person, drawn by lot, "
    "to be published",
}
"""Explicit words for accepting weak settings of a release, and their meanings."""
ACCEPT_LIMIT = {
    "limit-above-10": "with a limit above epsilon 10, all releases together can let the odds of a "
    "guess about one person's row grow by a factor of more than 22,000",
}
"""Explicit words for a new ledger: a limit above `USUAL_EPSILON` protects little."""


def stated_row_bound(value: str) -> str:
    """Return a row-norm bound in canonical text; only a number is a public bound."""
    try:
        bound = number_in(value)
    except ValueError:
        bound = math.nan
    if not 0 < bound < math.inf:
        raise InvalidSetting(
            "row-norm bound",
            "a number above 0 that was known before anybody looked at the table",
            value or "nothing",
            "--row-bound",
        )
    return format_number(bound)


def _name(value: str) -> str:
    """Return a name in the form of released files: one line, without a folder."""
    # A name must not contain a slash, because it could then lead to another folder.
    if not value or printable(value, None) != value or len(value) > QUOTED or set(value) & {*"/\\"}:
        allowed = f"a line of 1 to {QUOTED} characters without slashes"
        raise InvalidSetting("name", allowed, value or "nothing", "--name")
    return value


def one_line(name: str) -> Callable[[str], str]:
    """Return the function that checks a user's one-line text."""

    def check(value: str) -> str:
        if printable(value, None) != value or len(value) > LONGEST_LINE:
            allowed = f"one line of at most {LONGEST_LINE} characters"
            raise InvalidSetting(name, allowed, value, f"--{name}")
        return value

    return check


def accepted(
    known: Mapping[str, str], among: str = "one of"
) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Return the function that checks explicit words."""

    def check(words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if word not in known:
                raise InvalidSetting("accept", f"{among} {', '.join(known)}", word, "--accept")
        # The words are put in a fixed order, so that the same words have the same digest.
        return tuple(word for word in known if word in words)

    return check


def explicit_words(known: Mapping[str, str], does: str, example: str) -> Any:
    """Declare the words that accept a weak setting; ``does`` is a verb such as "protects"."""
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in known.items())
    return texts(
        (),
        label="Accepted",
        help=f"Accept a weak setting, although it {does} little: {meanings}.",
        check=accepted(known),
        examples=((example,),),
        choices=dict.fromkeys(known, ""),
    )


def words_needed(epsilon: float, delta: float, n: int) -> dict[str, str]:
    """Return the explicit words that a release of n rows needs, and their meanings."""
    # If delta is above 1/n, a release may show one person's row and still meet its claim.
    needed = {"epsilon-above-10": epsilon > USUAL_EPSILON, "delta-above-1/n": delta * n > 1}
    return {word: ACCEPT[word] for word, is_needed in needed.items() if is_needed}


def require_words(epsilon: float, delta: float, n: int, accepted: tuple[str, ...]) -> None:
    """Raise `DpvizError` if a needed explicit word is missing."""
    for word, meaning in words_needed(epsilon, delta, n).items():
        if word not in accepted:
            raise DpvizError(f"{meaning}; to accept this, add --accept {word}; nothing was spent.")


def _limit(written: str) -> str:
    """Return a limit in canonical text, empty if no limit is stated."""
    if not written:
        return ""
    first, _, second = written.partition(",")
    try:
        # A limit needs both an epsilon and a delta.
        budget = Budget(number_in(first), check_delta(number_in(second)))
    except ValueError:
        raise InvalidSetting(
            "limit",
            "written EPSILON,DELTA, with epsilon above 0 and delta from 0 to below 1",
            written,
            "--limit",
        ) from None
    return f"{format_number(budget.epsilon)},{format_number(budget.delta)}"


@dataclass(frozen=True)
class LedgerOptions(Declared):
    """The fixed settings of a new ledger, declared once for the command and the page."""

    limit: str = text(
        "",
        label="Limit",
        help="Limit EPSILON,DELTA that all releases together never exceed.",
        required=True,
        check=_limit,
        examples=("3,1e-05",),
    )
    relation: str = inherit(
        Settings,
        "relation",
        help="How neighbouring tables differ, for every release of this ledger.",
    )
    unit: str = choice(
        str(Unit.ROW),
        {
            Unit.ROW: "rows: each row counts separately",
            Unit.PERSON: "persons: all rows of one person count together",
        },
        label="Counts",
        help="The unit of protection: a row, or a person if the schema states how many rows a "
        "person has.",
    )
    rows_a_person: int | None = inherit(
        Settings,
        "rows_a_person",
        help="Largest number of rows of one person, for a ledger of persons. A release for fewer "
        "rows counts like a release for this number; a release for more rows is refused. If left "
        "out, the first release sets the number.",
        group="",
    )
    account: str = choice(
        "basic",
        {"basic": "epsilons and deltas add up", "zcdp": "rhos add up (zCDP)"},
        label="Account",
        help="How privacy losses add up: epsilons and deltas, or rhos of zero-concentrated "
        "privacy.",
    )
    purpose: str = text(
        "",
        label="Purpose",
        help="Purpose of the ledger, in your own words. The ledger refuses a release that states "
        "another purpose.",
        check=one_line("purpose"),
        examples=("a study",),
    )
    accept: tuple[str, ...] = explicit_words(ACCEPT_LIMIT, "limits", "limit-above-10")

    def create(self, ledger: Ledger, schema: str = "") -> None:
        """Create the ledger; if it exists already, its limit stays and this call fails.

        Raises
        ------
        DpvizError
            If no limit is stated, or the ledger exists already.
        """
        if not self.limit:
            raise InvalidSetting("limit", "stated as EPSILON,DELTA", "nothing", "--limit")
        if self.rows_a_person is not None and self.unit != Unit.PERSON:
            raise InvalidSetting(
                "rows a person",
                "left out unless the ledger counts persons",
                self.rows_a_person,
                "--rows-a-person",
            )
        epsilon, delta = (float(part) for part in self.limit.split(","))
        for word, meaning in ACCEPT_LIMIT.items():
            if epsilon > USUAL_EPSILON and word not in self.accept:
                raise DpvizError(
                    f"limit {numeral(epsilon, 6)}: {meaning}; to accept this, add --accept "
                    f"{word}; no ledger was made."
                )
        ledger.create(
            Budget(epsilon, delta),
            Relation(self.relation),
            self.account,
            unit=Unit(self.unit),
            rows=self.rows_a_person,
            schema=schema,
            purpose=self.purpose,
        )


@dataclass(frozen=True)
class ReleaseOptions(Declared):
    """Options of a release, except the table and its schema."""

    rows: str = choice(
        "bound",
        {
            "bound": "clipped to the row-norm bound",
            "unit": "scaled to length one: needs no bound",
        },
        label="Rows",
        help="How each row is bounded: by the stated row-norm bound, or by scaling it to length "
        "one. If rows are scaled to length one, only their directions count.",
        examples=("unit",),
    )
    row_bound: str = text(
        "",
        label="Row bound",
        help="Row-norm bound R: largest length of a centred row, in the table's or in scaled "
        "units. State a number that was known before anybody looked at the table. Longer rows are "
        "scaled down.",
        examples=("40",),
    )
    scale: str = choice(
        "none",
        {"none": "as they are", "limits": "divided by half the width of their limits"},
        label="Features",
        help="Whether each feature is divided by half the width of its limits. All features then "
        "weigh alike, whatever their units.",
        examples=("limits",),
    )
    center: str = inherit(
        Settings,
        "center",
        default="typical",
        optional=False,
        choices={
            "typical": "typical values of the schema",
            **{name: _CENTRINGS[name] for name in ("midpoint", "none")},
            PRIVATE: "a private mean, which uses part of the budget",
        },
        help="The centre subtracted from each feature. With its typical value, a row without "
        "numbers adds nothing. Other centres are the middle of its bounds, nothing, or a mean "
        "released with noise under the same budget.",
        examples=("none",),
    )
    mean_share: float = inherit(Settings, "mean_share", high=0.5)
    picture: float = inherit(
        Settings,
        "picture",
        high=0.8,
        slider=None,
        help="Share of the budget for a map of the rows: noisy counts of cells along two "
        "components. The budget is counted in squared mu, or in epsilon if delta is 0. With 0, no "
        "map is made.",
    )
    epsilon: float = inherit(
        Settings,
        "epsilon",
        high=LARGEST_EPSILON,
        help="Proved upper bound on the privacy loss of the release.",
    )
    delta: float | None = inherit(
        Settings,
        "delta",
        required=True,
        optional=False,
        allowed_text=DELTA_STATED,
        help="Delta of the release. You must choose delta, below 1/n; 0 needs a mechanism without "
        "delta.",
        examples=(1e-6,),
    )
    k: int = inherit(Settings, "k", help="Number of principal components in the file.")
    relation: str = inherit(Settings, "relation")
    mechanism: str | None = text(
        None,
        label="Mechanism",
        help="A mechanism whose sampler is safe against attacks on floating-point numbers. Auto "
        "uses Gaussian noise if delta is above 0, and else Laplace noise.",
        optional=True,
        examples=("some_key",),
    )
    grid: int | None = integer(
        None,
        *BITS_RANGE,
        label="Grid",
        help="Entries of rows are rounded to multiples of 2^-grid row-norm bounds. Auto takes grid "
        f"{DEFAULT_BITS}, or the finest grid that the number of rows allows.",
        optional=True,
        examples=(16,),
    )
    name: str | None = text(
        None,
        label="Name",
        help="The table's name in released files, which hold no other name of the table. Auto "
        "gives a built-in table's key, or the word table for your own table.",
        optional=True,
        check=_name,
        examples=("survey",),
    )
    purpose: str = text(
        "",
        label="Purpose",
        help="The purpose of the release; if left out, the purpose of the ledger. The release, its "
        "ledger entry and its card state the purpose.",
        check=one_line("purpose"),
        examples=("annual report",),
    )
    by: str = text(
        "",
        label="By",
        help="Who makes the release: a name or an office, shown next to the purpose.",
        check=one_line("by"),
        examples=("A. Example",),
    )
    accept: tuple[str, ...] = explicit_words(ACCEPT, "protects", "epsilon-above-10")

    @property
    def stated_delta(self) -> float:
        """The stated delta; raises `InvalidSetting` if delta is not stated."""
        if self.delta is None:
            raise params_of(type(self))["delta"].error("nothing")
        return self.delta

    def require(self) -> None:
        """Raise `InvalidSetting` if the row-norm bound or delta is missing or wrong."""
        if self.rows == "bound":
            stated_row_bound(self.row_bound)
        elif self.row_bound:
            raise InvalidSetting(
                "row-norm bound",
                "left out if rows are scaled to length one",
                self.row_bound,
                "--row-bound",
            )
        assert self.stated_delta >= 0
