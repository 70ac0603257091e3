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
"""Of a real release: beyond it nothing is protected, and OpenDP's privacy curves overflow."""
USUAL_EPSILON = 10.0
"""Above it a release needs an explicit word."""
DELTA_STATED = "stated: a number from 0 to below 1 that is not above 1/n"
LONGEST_LINE = 200
"""Characters of what somebody says of a release."""
ACCEPT = {
    "epsilon-above-10": "an epsilon above 10 lets the odds on what one person's row is grow by "
    "a factor of more than 22,000",
    "delta-above-1/n": "a delta above 1/n would allow the whole row of one person, drawn by lot, "
    "to be published",
}
"""What needs an explicit word in a release, and what it means."""
ACCEPT_LIMIT = {
    "limit-above-10": "a limit above epsilon 10 lets all releases together make the odds on what "
    "one person's row is grow by a factor of more than 22,000",
}
"""What needs an explicit word when a ledger is made: above `USUAL_EPSILON` it limits little."""


def stated_row_bound(value: str) -> str:
    """Return a row bound in canonical text; only a number is public."""
    try:
        bound = number_in(value)
    except ValueError:
        bound = math.nan
    if not 0 < bound < math.inf:
        raise InvalidSetting(
            "row bound",
            "a number above 0 that was known before anybody looked at the table",
            value or "nothing",
            "--row-bound",
        )
    return format_number(bound)


def _name(value: str) -> str:
    """Return a name as released files show it: one line, no folder."""
    # no slashes: a name must not lead to another folder
    if not value or printable(value, None) != value or len(value) > QUOTED or set(value) & {*"/\\"}:
        allowed = f"a line of 1 to {QUOTED} characters without slashes"
        raise InvalidSetting("name", allowed, value or "nothing", "--name")
    return value


def one_line(name: str) -> Callable[[str], str]:
    """Return the check of what somebody says in a line."""

    def check(value: str) -> str:
        if printable(value, None) != value or len(value) > LONGEST_LINE:
            allowed = f"one line of at most {LONGEST_LINE} characters"
            raise InvalidSetting(name, allowed, value, f"--{name}")
        return value

    return check


def accepted(
    known: Mapping[str, str], among: str = "one of"
) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Return the check of explicit words."""

    def check(words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if word not in known:
                raise InvalidSetting("accept", f"{among} {', '.join(known)}", word, "--accept")
        # in one order, so that the same words have one digest
        return tuple(word for word in known if word in words)

    return check


def explicit_words(known: Mapping[str, str], does: str, example: str) -> Any:
    """Declare the words by which somebody accepts what does little, such as "protects"."""
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in known.items())
    return texts(
        (),
        label="Accepted",
        help=f"What is meant although it {does} little: {meanings}.",
        check=accepted(known),
        examples=((example,),),
        choices=dict.fromkeys(known, ""),
    )


def words_needed(epsilon: float, delta: float, n: int) -> dict[str, str]:
    """Return what a release of n rows needs an explicit word for, and what each word means."""
    # above 1/n a release may be one person's row as it is, and still keep its claim
    needed = {"epsilon-above-10": epsilon > USUAL_EPSILON, "delta-above-1/n": delta * n > 1}
    return {word: ACCEPT[word] for word, is_needed in needed.items() if is_needed}


def require_words(epsilon: float, delta: float, n: int, accepted: tuple[str, ...]) -> None:
    """Raise `DpvizError` where an explicit word is needed and was not said."""
    for word, meaning in words_needed(epsilon, delta, n).items():
        if word not in accepted:
            raise DpvizError(f"{meaning}; say --accept {word} if that is meant; nothing was spent.")


def _limit(written: str) -> str:
    """Return a limit in canonical text; empty while it is not stated."""
    if not written:
        return ""
    first, _, second = written.partition(",")
    try:
        # what is fixed for ever is said
        budget = Budget(number_in(first), check_delta(number_in(second)))
    except ValueError:
        raise InvalidSetting(
            "limit",
            "written EPSILON,DELTA: numbers above 0 and from 0 to below 1",
            written,
            "--limit",
        ) from None
    return f"{format_number(budget.epsilon)},{format_number(budget.delta)}"


@dataclass(frozen=True)
class LedgerOptions(Declared):
    """What is fixed when a ledger is made: the one code behind the command and the page."""

    limit: str = text(
        "",
        label="Limit",
        help="EPSILON,DELTA that all releases together may never pass.",
        required=True,
        check=_limit,
        examples=("3,1e-05",),
    )
    relation: str = inherit(
        Settings,
        "relation",
        help="When two tables are neighbours, for every release of this ledger.",
    )
    unit: str = choice(
        str(Unit.ROW),
        {
            Unit.ROW: "rows: each counts for itself",
            Unit.PERSON: "persons: all rows of one together",
        },
        label="Counts",
        help="Who counts as one: a row, or a person, where the schema says how many rows one has.",
    )
    rows_a_person: int | None = inherit(
        Settings,
        "rows_a_person",
        help="Most rows of one person, for a ledger of persons. The ledger prices a release for "
        "fewer rows as one for this many, and refuses a release for more. Left out, the first "
        "release says it.",
        group="",
    )
    account: str = choice(
        "basic",
        {"basic": "epsilons and deltas add up", "zcdp": "rhos add up (zCDP)"},
        label="Account",
        help="How spends add up: epsilons and deltas, or the rhos of zero-concentrated privacy.",
    )
    purpose: str = text(
        "",
        label="Purpose",
        help="Purpose of the ledger, in your own words. It refuses a release that states another "
        "purpose.",
        check=one_line("purpose"),
        examples=("a study",),
    )
    accept: tuple[str, ...] = explicit_words(ACCEPT_LIMIT, "limits", "limit-above-10")

    def create(self, ledger: Ledger, schema: str = "") -> None:
        """Make the ledger; one that is there keeps its limit, and this is refused.

        Raises
        ------
        DpvizError
            If no limit is stated, or the ledger is there already.
        """
        if not self.limit:
            raise InvalidSetting("limit", "stated as EPSILON,DELTA", "nothing", "--limit")
        if self.rows_a_person is not None and self.unit != Unit.PERSON:
            raise InvalidSetting(
                "rows a person",
                "stated for a ledger of persons only",
                self.rows_a_person,
                "--rows-a-person",
            )
        epsilon, delta = (float(part) for part in self.limit.split(","))
        for word, meaning in ACCEPT_LIMIT.items():
            if epsilon > USUAL_EPSILON and word not in self.accept:
                raise DpvizError(
                    f"limit {numeral(epsilon, 6)}: {meaning}; say --accept {word} if that is "
                    "meant; no ledger was made."
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
    """What is released, beside the table and its schema."""

    rows: str = choice(
        "bound",
        {
            "bound": "shortened to the row bound",
            "unit": "scaled to length one: needs no bound",
        },
        label="Rows",
        help="How each row is bounded: by the stated row-norm bound, or by scaling it to length "
        "one. Scaled to length one, rows count by their direction alone.",
        examples=("unit",),
    )
    row_bound: str = text(
        "",
        label="Row bound",
        help="R, the largest length of a centred row, in the table's units, or in scaled units. "
        "State a number that was known before anybody looked at the table. Longer rows are scaled "
        "down.",
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
            PRIVATE: "a private mean, paid for",
        },
        help="The centre subtracted from each feature. Its typical value: a row without numbers "
        "then adds nothing. The middle of its bounds. Nothing. Or the mean, released with noise "
        "under the same budget.",
        examples=("none",),
    )
    mean_share: float = inherit(Settings, "mean_share", high=0.5)
    picture: float = inherit(
        Settings,
        "picture",
        high=0.8,
        slider=None,
        help="Share of the budget for a map of the rows: noisy counts of cells along two "
        "components. A share of squared mu, or of epsilon if delta is 0. 0 draws no map.",
    )
    epsilon: float = inherit(
        Settings,
        "epsilon",
        high=LARGEST_EPSILON,
        help="Privacy loss that the release is proved to stay within.",
    )
    delta: float | None = inherit(
        Settings,
        "delta",
        required=True,
        optional=False,
        allowed_text=DELTA_STATED,
        help="Its delta, which nobody chooses for you: below 1/n; 0 needs a mechanism without "
        "delta.",
        examples=(1e-6,),
    )
    k: int = inherit(Settings, "k", help="Number of principal components in the file.")
    relation: str = inherit(Settings, "relation")
    mechanism: str | None = text(
        None,
        label="Mechanism",
        help="A mechanism with a sampler that is safe on a computer. auto takes Gaussian noise if "
        "delta is above 0, else Laplace noise.",
        optional=True,
        examples=("some_key",),
    )
    grid: int | None = integer(
        None,
        *BITS_RANGE,
        label="Grid",
        help="Entries of rows are rounded to multiples of 2^-grid row-norm bounds; auto takes "
        f"{DEFAULT_BITS}, or the finest that this many rows allow.",
        optional=True,
        examples=(16,),
    )
    name: str | None = text(
        None,
        label="Name",
        help="The table's name in released files, which hold no other name of it. auto is the key "
        "of a built-in table, and the word table for any other.",
        optional=True,
        check=_name,
        examples=("survey",),
    )
    purpose: str = text(
        "",
        label="Purpose",
        help="The purpose of the release; if left out, the purpose of the ledger. The release, "
        "its line of the ledger and its card hold it.",
        check=one_line("purpose"),
        examples=("annual report",),
    )
    by: str = text(
        "",
        label="By",
        help="Who releases it: a name or an office, which stands beside the purpose.",
        check=one_line("by"),
        examples=("A. Example",),
    )
    accept: tuple[str, ...] = explicit_words(ACCEPT, "protects", "epsilon-above-10")

    @property
    def stated_delta(self) -> float:
        """The delta, or `InvalidSetting` where nobody stated one."""
        if self.delta is None:
            raise params_of(type(self))["delta"].error("nothing")
        return self.delta

    def require(self) -> None:
        """Raise `InvalidSetting` where the row bound or delta are missing or wrong."""
        if self.rows == "bound":
            stated_row_bound(self.row_bound)
        elif self.row_bound:
            raise InvalidSetting(
                "row bound",
                "left out where rows are scaled to length one",
                self.row_bound,
                "--row-bound",
            )
        assert self.stated_delta >= 0
