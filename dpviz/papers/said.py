"""What a paper says, how it is looked at, and the one engine that answers.

A statement is declared once: its words stand in the paper's text file, its test
and the panels that it is about in the paper's list. Lines, coverage and the
answer are derived here, and what was not measured is met here alone.
"""

from __future__ import annotations

import importlib
import math
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpviz.core.number_text import numeral
from dpviz.papers.measurements import Absent, Found, Mean

FOLDER = Path(__file__).resolve().parent
SEPARATED = 3.0  # standard errors between two means that are told apart
ALIKE = 0.03  # means this near, interval and all, make no difference
PLANNED = 3.0  # how many times smaller than the paper's error ours must be
_TIGHT = 0.97  # of a bound, from where on it is met and not only kept
_Z = 1.96


class Agreement(StrEnum):
    """How what was measured in one place stands to what is printed."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot tell"
    ABSENT = "data absent"
    PENDING = "not yet measured"
    NOT_MEASURED = "not measured"


class ClaimAnswer(StrEnum):
    """What was found of a printed claim."""

    REPRODUCED = "reproduced"
    IN_PART = "reproduced in part"
    STAND_IN = "reproduced on a stand-in"
    OTHER_REASON = "reproduced for another reason"
    BOUND = "holds as an upper bound only"
    NO_DIFFERENCE = "no difference"
    ORDER = "order only"
    FEW_DRAWS = "not enough draws"
    NOT_REPRODUCED = "not reproduced"
    NOT_HERE = "not reproducible here"
    CONSTRUCTION = "by construction"
    PENDING = "not yet measured"


MEANINGS: Mapping[ClaimAnswer, str] = {
    ClaimAnswer(answer): meaning
    for answer, meaning in tomllib.loads((FOLDER / "answers.toml").read_text("utf-8")).items()
}
"""The answers of a finished run, and what each means."""


@dataclass(frozen=True)
class Stated:
    """A number as a paper prints it.

    Attributes
    ----------
    value : float
        In the unit of the measured quantity.
    error : float
        What the paper gives after its plus-minus sign; 0 where it gives none.
    rounding : float
        Half of the last printed digit.
    spread : float
        The error that the way it was measured has, where none is printed.
    """

    value: float
    error: float = 0.0
    rounding: float = 0.0
    spread: float = 0.0

    @property
    def text(self) -> str:
        """The number as text."""
        error = f" ± {numeral(self.error, 4)}" if self.error else ""
        return f"{number(self.value)}{error}"

    def over(self, other: Stated) -> Stated:
        """Return the ratio of two printed numbers, with the most that their errors allow."""
        value = self.value / other.value
        # the most and not the root of squares: one paper's two errors may go the same way
        relative = [(one.error / one.value, one.rounding / one.value) for one in (self, other)]
        error, rounding = (value * sum(column) for column in zip(*relative, strict=True))
        return Stated(value, error, rounding)


def number(value: float) -> str:
    """Return a number as text: counts in full, anything else to four digits."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "infinite"
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e12 else numeral(value, 4)


def short(value: float) -> str:
    """Return a number as a sentence has it: to three digits, or whole."""
    if not math.isfinite(value):
        return number(value)
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1e6 else numeral(value, 3)


# --- looking ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """What one panel of an experiment has; a point that is not there raises `Absent`."""

    found: Found
    panel: str

    def __call__(self, series: str, quantity: str, x: float | None = None) -> Mean:
        """Return the mean at a point."""
        return self.found.mean(self.panel, series, quantity, x)

    def curve(self, series: str, quantity: str) -> dict[float, Mean]:
        """Return the means along the axis."""
        return self.found.curve(self.panel, series, quantity)

    def on(self, panel: str) -> View:
        """Return the same of another panel."""
        return View(self.found, panel)


Of = Callable[[View], Any]
"""What a test looks at in a panel: a mean, a number, or a curve of means by place."""


def points(values: Any) -> list[Mean]:
    """Return means in a list, whatever a test looked at."""
    if isinstance(values, Mapping):
        return list(values.values())
    return [values if isinstance(values, Mean) else Mean.near(float(values), math.nan, 1)]


def paired(one: Any, two: Any) -> dict[float | None, tuple[Mean, Mean]]:
    """Return two means, or a curve beside another or a mean, by the places that both have."""
    curves = [values for values in (one, two) if isinstance(values, Mapping)]
    places = [x for x in curves[0] if x in curves[-1]] if curves else [None]
    if not places:
        raise Absent
    mine, theirs = (
        values if isinstance(values, Mapping) else dict.fromkeys(places, *points(values))
        for values in (one, two)
    )
    return {x: (mine[x], theirs[x]) for x in places}


@dataclass(frozen=True)
class Expression:
    """What is read off a panel: a mean, or a curve. Differences and ratios of readings are some.

    Attributes
    ----------
    read : callable
    """

    read: Of

    def __call__(self, view: View) -> Any:
        """Return what a panel has."""
        return self.read(view)

    def _with(self, other: Expression | float, of: Callable[[Mean, Mean], Mean]) -> Expression:
        def read(view: View) -> Any:
            beside = other(view) if isinstance(other, Expression) else other
            found = {x: of(*pair) for x, pair in paired(self(view), beside).items()}
            return found.get(None, found)

        return Expression(read)

    def __sub__(self, other: Expression | float) -> Expression:
        """Return the difference, place by place."""
        return self._with(other, Mean.__sub__)

    def __truediv__(self, other: Expression | float) -> Expression:
        """Return the ratio, place by place."""
        return self._with(other, Mean.__truediv__)

    def each(self, of: Callable[[float], float]) -> Expression:
        """Return a curve over what is made of its places."""
        return Expression(lambda view: {x: mean * (1 / of(x)) for x, mean in self(view).items()})

    def on(self, panel: str) -> Expression:
        """Return the same reading of another panel."""
        return Expression(lambda view: self(view.on(panel)))

    @property
    def last(self) -> Expression:
        """The end of a curve."""
        return Expression(lambda view: (curve := self(view))[max(curve)])

    @property
    def first(self) -> Expression:
        """The beginning of a curve."""
        return Expression(lambda view: (curve := self(view))[min(curve)])


def at(series: str, quantity: str, x: float | None = None) -> Expression:
    """Return the reading of one point."""
    return Expression(lambda view: view(series, quantity, x))


def along(series: str, quantity: str, least: float = -math.inf) -> Expression:
    """Return the reading along an axis, from some place on."""
    return Expression(lambda v: {x: m for x, m in v.curve(series, quantity).items() if x >= least})


def row_of(panel: str, quantity: str) -> Expression:
    """Return the reading of another panel, where the name of this one is a series."""

    def read(view: View) -> Any:
        # what the named panel has for one series, at a point or along an axis
        other = view.on(panel)
        try:
            return other(view.panel, quantity)
        except Absent:
            return other.curve(view.panel, quantity)

    return Expression(read)


@dataclass(frozen=True)
class Seen:
    """What a test saw in one panel.

    Attributes
    ----------
    measured : str
    held, against, untold : int
        Points that speak for the statement, against it, or cannot be told.
    inside : bool
        Whether what is measured lies well inside a bound.
    alike : bool
        Whether what was to differ is the same within `ALIKE`.
    numbers : tuple of float
        What a sentence may quote.
    stated : Stated or None
    mean : Mean or None
    stands_in : bool
        Whether it was seen on tables that stand in for absent data.
    """

    measured: str
    held: int = 0
    against: int = 0
    untold: int = 0
    inside: bool = False
    alike: bool = False
    numbers: tuple[float, ...] = ()
    stated: Stated | None = None
    mean: Mean | None = None
    stands_in: bool = False

    @classmethod
    def at(
        cls,
        told: str,
        signs: Iterable[float],
        means: Sequence[Mean] = (),
        numbers: Sequence[float] = (),
        **more: Any,
    ) -> Seen:
        """Return what is seen at points, each for the statement (1), against it (-1) or untold (0).

        Parameters
        ----------
        told : str
        signs : iterable of float
        means : sequence of Mean
            What was looked at; a sentence may quote it.
        numbers : sequence of float
            The same, where it is not means.
        **more
            As of the class.
        """
        signs = list(signs)
        asked, held = len(signs), sum(sign > 0 for sign in signs)
        against, untold = sum(sign < 0 for sign in signs), sum(sign == 0 for sign in signs)
        if asked != 1:
            told += f"; at {held} of {asked} points"
            told += f", {untold} cannot tell" if untold else ""
            told += f", the other way at {against}" if against else ""
        values = tuple(numbers) or tuple(mean.value for mean in means)
        only = means[0] if len(means) == 1 else None
        return cls(told, held, against, untold, numbers=values, mean=only, **more)

    @property
    def agreement(self) -> Agreement:
        """One point against is enough to differ."""
        if self.against:
            return Agreement.DIFFERS
        return Agreement.AGREES if self.held else Agreement.CANNOT_TELL


class Test(ABC):
    """How a statement is looked at in one panel."""

    @abstractmethod
    def see(self, view: View) -> Seen:
        """Return what is seen; `Absent` where something was not measured."""


def _side(gap: Mean) -> float:
    """Return 1 where a difference is told to be positive, -1 negative, 0 where it is not told."""
    if math.isnan(gap.value):
        return -1.0
    # exactly 0 without an error is no side either
    if abs(gap.value) <= SEPARATED * gap.error or gap.value == 0:
        return 0.0
    return math.copysign(1.0, gap.value)


def _told(means: Sequence[Mean]) -> str:
    if not means:
        raise Absent("nothing was measured yet")
    if len(means) == 1:
        mean = means[0]
        # below the four digits that are written
        half = f" ± {numeral(mean.half)}" if mean.half > 1e-4 * abs(mean.value) else ""
        return number(mean.value) + half
    values = [mean.value for mean in means]
    return f"{number(min(values))} to {number(max(values))}"


@dataclass(frozen=True)
class Number(Test):
    """A printed number: near it, with an error of ours less than a third of the paper's.

    Attributes
    ----------
    of : callable
    printed : Stated, or a mapping of panels to Stated, or what makes it of a view
    """

    of: Of
    printed: Stated | Mapping[str, Stated] | Callable[[View], Stated]

    def stated(self, view: View) -> Stated:
        """Return what is printed for a panel."""
        if isinstance(self.printed, Stated):
            return self.printed
        return self.printed(view) if callable(self.printed) else self.printed[view.panel]

    def see(self, view: View) -> Seen:
        """Return the number measured beside the one printed."""
        stated, mean = self.stated(view), self.of(view)
        gap = max(abs(mean.value - stated.value) - stated.rounding, 0.0)
        near = gap <= math.hypot(stated.error, stated.spread, mean.half)
        allowed = stated.error + stated.spread + stated.rounding
        enough = mean.half == 0 or mean.half < allowed / PLANNED
        # near by a wide error of ours is not agreement: it cannot be told
        sign = 0.0 if near and not enough else 1.0 if near else -1.0
        return Seen.at(_told([mean]), [sign], [mean], stated=stated)


@dataclass(frozen=True)
class Below(Test):
    """Everything looked at lies below a limit (above it with ``sign`` 1)."""

    of: Of
    limit: float
    sign: int = -1

    def see(self, view: View) -> Seen:
        """Return at how many points it does."""
        means = points(self.of(view))
        limit = Mean.near(self.limit, math.nan, 1)
        return Seen.at(_told(means), (self.sign * _side(mean - limit) for mean in means), means)


@dataclass(frozen=True)
class Between(Test):
    """Everything looked at lies above one limit and below another."""

    of: Of
    low: float
    high: float

    def see(self, view: View) -> Seen:
        """Return at how many points it does."""
        means = points(self.of(view))
        low, high = (Mean.near(limit, math.nan, 1) for limit in (self.low, self.high))
        signs = (min(_side(mean - low), _side(high - mean)) for mean in means)
        return Seen.at(_told(means), signs, means)


@dataclass(frozen=True)
class AtMost(Test):
    """What is looked at, as a multiple of what is printed, is at most 1.

    So are accounts: the epsilon that is spent, as a multiple of the claimed one. A
    statement that two things are equal is looked at in the same way: where the
    multiple stays below 1 it holds as an upper bound only.
    """

    of: Of

    def see(self, view: View) -> Seen:
        """Return the multiples; an infinite one is a refutation."""
        means = points(self.of(view))
        # an account that is met exactly is off by its last digits
        one = Mean.near(1.0 + 1e-9, math.nan, 1)
        signs = [-1.0 if _beyond(mean, one) else 1.0 for mean in means]
        told = f"{_told(means)} of what is printed"
        inside = max(mean.value for mean in means) < _TIGHT
        return Seen.at(told, signs, means, inside=inside)


def _beyond(mean: Mean, limit: Mean) -> bool:
    return math.isnan(mean.value) or _side(mean - limit) > 0


@dataclass(frozen=True)
class Order(Test):
    """One curve or number above another, point by point."""

    upper: Of
    lower: Of

    def see(self, view: View) -> Seen:
        """Return at how many points it is."""
        pairs = list(paired(self.upper(view), self.lower(view)).values())
        ones, others = zip(*pairs, strict=True)
        signs = [_side(one - other) for one, other in pairs]
        told = f"{_told(ones)} against {_told(others)}"
        alike = all(_alike(one, other) for one, other in pairs)
        values = [mean.value for pair in pairs for mean in pair]
        return Seen.at(told, signs, numbers=values, alike=alike)


def _alike(one: Mean, other: Mean) -> bool:
    if one.value == other.value:
        return True
    ratio = one / other
    return abs(ratio.value - 1) + _Z * ratio.error <= ALIKE


@dataclass(frozen=True)
class Monotone(Test):
    """A curve that rises (sign 1) or falls (-1), from each place to the next."""

    of: Of
    sign: int

    def see(self, view: View) -> Seen:
        """Return at how many steps it does."""
        curve = self.of(view)
        means = [curve[x] for x in sorted(curve)]
        if len(means) < 2:
            raise Absent(view.panel)
        steps = [after - before for before, after in pairwise(means)]
        signs = [self.sign * _side(step) for step in steps]
        told = f"{number(means[0].value)} to {number(means[-1].value)}"
        alike = all(_alike(mean, means[0]) for mean in means[1:])
        return Seen.at(told, signs, numbers=(means[0].value, means[-1].value), alike=alike)


@dataclass(frozen=True)
class Power(Test):
    """A curve that grows like a stated power of its axis.

    Attributes
    ----------
    of : callable
    printed : float or callable
        The power, or what makes it of the places of the curve.
    slack : float
        How far the fitted power may lie off in this range for known reasons.
    upper : bool
        Whether the rate is stated as an upper bound.
    """

    of: Of
    printed: float | Callable[[Sequence[float]], float]
    slack: float = 0.0
    upper: bool = False

    def see(self, view: View) -> Seen:
        """Return the fitted power."""
        from dpviz.simulation.bounds import fitted_power

        curve = self.of(view)
        xs = sorted(curve)
        if len(xs) < 2 or any(curve[x].value <= 0 for x in xs):
            raise Absent(view.panel)
        power, error = fitted_power(xs, [curve[x].value for x in xs], [curve[x].error for x in xs])
        stated = Stated(self.printed(xs) if callable(self.printed) else self.printed)
        room = _Z * error + self.slack
        # the fit's error, and what is known to bend the curve in this range
        near = abs(power - stated.value) <= room
        below = self.upper and power < stated.value
        mean = Mean(power, error, power - _Z * error, power + _Z * error, 1)
        sign = 1.0 if near or below else -1.0
        told = f"a power of {power:.3f} ± {numeral(_Z * error, 1)}"
        return Seen.at(told, [sign], [mean], inside=not near, stated=stated)


@dataclass(frozen=True)
class Identity(Test):
    """Two exact numbers that the paper says are equal.

    Attributes
    ----------
    of, printed : callable or float
        The true one, and the printed one.
    within : float
        Relative, for numbers that are printed rounded.
    """

    of: Of
    printed: Of | float
    within: float = 1e-6

    def see(self, view: View) -> Seen:
        """Return whether they are."""
        printed = self.printed(view) if callable(self.printed) else self.printed
        ours, theirs = zip(*paired(self.of(view), printed).values(), strict=True)
        pairs = [(a.value, b.value) for a, b in zip(ours, theirs, strict=True)]
        signs = [1.0 if abs(a - b) <= self.within * max(abs(b), 1e-300) else -1.0 for a, b in pairs]
        told = f"{_told(ours)}, printed {_told(theirs)}"
        return Seen.at(told, signs, numbers=[value for pair in pairs for value in pair])


class NotHere(Test):
    """Nobody can redo it from what is printed; the statement names what would be needed."""

    def see(self, view: View) -> Seen:
        """Raise `Absent`."""
        raise Absent(view.panel)


# --- statements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """How a statement is looked at.

    Attributes
    ----------
    test : Test or tuple of Test
        Each is asked in every panel.
    panels : sequence of str
        All that the statement is about, at hand or not.
    order : Test or None
        Where the numbers are not found: the order that is read off them.
    nothing : Test or None
        The same statement of something that has learned nothing: where it
        holds too, the reason is another.
    built : bool
        Whether only a fault of ours could make it fail.
    members : mapping of str to sequence of str
        By panel: the panels of a family of tables that stands in for it where its data is absent.
    facts : mapping of str to callable
        Further numbers that the reason names in braces, looked up in the first panel.
    """

    test: Test | tuple[Test, ...]
    panels: Sequence[str] = ("",)
    order: Test | None = None
    nothing: Test | None = None
    built: bool = False
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: Mapping[str, Callable[[View], Mean | float]] = field(default_factory=dict)

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests, in order."""
        return self.test if isinstance(self.test, tuple) else (self.test,)


@dataclass(frozen=True)
class Said:
    """One printed statement.

    Attributes
    ----------
    key : str
        Unique within the paper.
    experiment : str
        Key of the experiment whose measurements it is looked at in.
    place : str
        Where it is printed.
    says : str
        In our words.
    quote : str
        The paper's words, at most 120 characters.
    printed : str
        The number or rate as printed; empty where the quote says it.
    because, why : str
        The reason where it holds, and where it does not.
    needs : str
        What would be needed, where nobody can redo it from what is printed.
    look : Look
    """

    key: str
    experiment: str
    place: str
    says: str
    quote: str
    printed: str
    because: str
    why: str
    needs: str
    look: Look


@dataclass(frozen=True)
class Line:
    """A statement in one panel, beside what was measured there."""

    panel: str
    item: str
    reported: str
    measured: str
    agreement: Agreement
    note: str = ""
    stated: Stated | None = None
    mean: Mean | None = None


@dataclass(frozen=True)
class Claim:
    """One printed claim and its answer.

    Attributes
    ----------
    key : str
    item : str
        The claim in our words.
    answer : ClaimAnswer
    reason : str
        Never empty.
    quote, stated, measured, place : str
        As text; ``measured`` is empty where there is none.
    coverage : str
        How much of what the claim is about was looked at: "2 of 4 panels".
    lines : tuple of Line
    """

    key: str
    item: str
    answer: ClaimAnswer
    reason: str
    quote: str = ""
    stated: str = ""
    measured: str = ""
    place: str = ""
    coverage: str = ""
    lines: tuple[Line, ...] = field(default=(), repr=False)

    @property
    def extent(self) -> str:
        """The coverage, where it is neither all nor nothing."""
        return self.coverage if self.coverage not in ("all", "none") else ""

    @property
    def counts(self) -> bool:
        """Whether it belongs in the headline."""
        return self.answer is not ClaimAnswer.CONSTRUCTION


@cache
def text_of(paper: str) -> dict[str, Any]:
    """Return a paper's text file: what it is, its experiments, and what it says."""
    return tomllib.loads((FOLDER / paper / "paper.toml").read_text("utf-8"))


def has_text(paper: str) -> bool:
    """Return whether a folder holds a paper's text file."""
    return (FOLDER / paper / "paper.toml").is_file()


@cache
def said_of(paper: str) -> tuple[Said, ...]:
    """Return all that a paper says, in printing order."""
    if not paper or not has_text(paper):
        return ()
    listed = importlib.import_module(f"{__package__}.{paper}._said")
    return tuple(listed.SAID)


def declared(paper: str, looks: Mapping[str, Look | Test | tuple[Test, ...]]) -> list[Said]:
    """Return a paper's statements in printing order.

    Parameters
    ----------
    paper : str
        Folder.
    looks : mapping of str to Look, Test or tuple of Test
        By the key of the statement: tests that need nothing else stand alone. One that needs what
        is not here has none.

    Raises
    ------
    ValueError
        If a statement has no look and names nothing that it needs, or a look no statement.
    """
    statements: list[dict[str, str]] = text_of(paper)["claim"]
    keys = [one["key"] for one in statements]
    wrong = {one["key"] for one in statements if (one["key"] in looks) == bool(one.get("needs"))}
    wrong |= (set(looks) - set(keys)) | {key for key in keys if keys.count(key) > 1}
    if wrong:
        raise ValueError(f"{paper}: statements and looks do not match: {', '.join(sorted(wrong))}")
    words = ("key", "place", "says", "quote", "printed", "because", "why", "needs")
    found = []
    for one in statements:
        look = looks.get(one["key"], NotHere())
        look = look if isinstance(look, Look) else Look(look)
        told = {word: one.get(word, "") for word in words}
        found.append(Said(experiment=f"{paper}_{one['at']}", look=look, **told))
    return found


# --- answering --------------------------------------------------------------------------------

_UNTOLD = "The means lie within three standard errors of each other."
_NEAR = "It is near what is printed, but our error is not yet a third of the paper's."


def answer(said: Said, found: Found, absent: Sequence[str] = (), complete: bool = True) -> Claim:
    """Return the answer to a statement.

    Parameters
    ----------
    said : Said
    found : Found
        Of its experiment.
    absent : sequence of str
        Labels of the data that is not at hand.
    complete : bool
        Whether the run is finished: until then what is missing is not yet measured.
    """
    look = said.look
    seen = _seen(look.tests, look, found)
    there = {panel: [one for one in ones if one is not None] for panel, ones in seen.items()}
    every = [one for ones in there.values() for one in ones]
    verdict = _verdict(look, every, len(look.panels) * len(look.tests), found)
    drawn = found.means and not all(one.stands_in for one in every)
    if not drawn and not said.needs and not complete:
        verdict = ClaimAnswer.PENDING
    reason = _reason(said, verdict, there, absent) + _otherwise(verdict, there)
    return Claim(
        said.key,
        said.says,
        verdict,
        _with_facts(reason, look, found),
        said.quote,
        said.printed or _stated(every),
        _measured(there),
        said.place,
        _coverage(there, every),
        tuple(_line(said, panel, one, complete) for panel, ones in seen.items() for one in ones),
    )


def _seen(tests: Sequence[Test], look: Look, found: Found) -> dict[str, list[Seen | None]]:
    def one(test: Test, panel: str) -> Seen | None:
        try:
            return test.see(View(found, panel))
        except Absent:
            each = [one(test, member) for member in look.members.get(panel, ())]
            there = [seen for seen in each if seen is not None]
            return _on_members(there) if there else None

    return {panel: [one(test, panel) for test in tests] for panel in look.panels}


def _on_members(each: Sequence[Seen]) -> Seen:
    """Return what was seen on every, some or no member of a family, as one point."""
    held = sum(bool(seen.held) and not seen.against for seen in each)
    broken = sum(bool(seen.against) for seen in each)
    numbers = tuple(value for seen in each for value in seen.numbers)
    sign = 1.0 if held == len(each) else -1.0 if broken == len(each) else 0.0
    number_of = f"every one of {len(each)}" if sign > 0 else f"{held} of {len(each)}"
    number_of = f"none of {len(each)}" if not held else number_of
    told = f"{number(min(numbers))} to {number(max(numbers))}; on {number_of} tables that stand in"
    inside, alike = all(seen.inside for seen in each), all(seen.alike for seen in each)
    return Seen.at(told, [sign], numbers=numbers, inside=inside, alike=alike, stands_in=True)


def _line(said: Said, panel: str, seen: Seen | None, complete: bool) -> Line:
    if seen is None:
        state = Agreement.NOT_MEASURED if said.needs else Agreement.ABSENT
        state = state if complete or said.needs else Agreement.PENDING
        note = said.needs or ("Not measured." if complete else "Not measured yet.")
        return Line(panel, said.says, said.printed or said.quote, "", state, note)
    reported = seen.stated.text if seen.stated else said.printed or said.quote
    return Line(
        panel, said.says, reported, seen.measured, seen.agreement, "", seen.stated, seen.mean
    )


def _stated(every: Sequence[Seen]) -> str:
    return "; ".join(dict.fromkeys(one.stated.text for one in every if one.stated is not None))


def _measured(there: Mapping[str, Sequence[Seen]]) -> str:
    named = len(there) > 1
    return "; ".join(
        f"{panel}: {one.measured}" if named and panel else one.measured
        for panel, ones in there.items()
        for one in ones
    )


def _coverage(there: Mapping[str, Sequence[Seen]], every: Sequence[Seen]) -> str:
    panels = sum(bool(ones) for ones in there.values())
    told = sum(one.held + one.against for one in every)
    asked = told + sum(one.untold for one in every)
    parts = []
    if len(there) > 1:
        parts.append(f"{panels} of {len(there)} panels")
    if asked > panels or (asked and told < asked):
        parts.append(f"{told} of {asked} points")
    if not parts and there:
        parts.append("all" if panels else "none")
    return ", ".join(parts)


def _verdict(look: Look, every: Sequence[Seen], wanted: int, found: Found) -> ClaimAnswer:
    if not every:
        return ClaimAnswer.NOT_HERE
    # what stands in for data cannot speak against what was seen on the data itself
    if any(one.against for one in [one for one in every if not one.stands_in] or every):
        ordered = look.order and _holds(look.order, look, found)
        return ClaimAnswer.ORDER if ordered else ClaimAnswer.NOT_REPRODUCED
    if look.built:
        return ClaimAnswer.CONSTRUCTION
    if not any(one.held for one in every):
        alike = all(one.alike for one in every)
        return ClaimAnswer.NO_DIFFERENCE if alike else ClaimAnswer.FEW_DRAWS
    if look.nothing and _holds(look.nothing, look, found):
        return ClaimAnswer.OTHER_REASON
    return ClaimAnswer.BOUND if all(one.inside for one in every) else _extent(every, wanted)


def _extent(every: Sequence[Seen], wanted: int) -> ClaimAnswer:
    """Return the answer to what holds: everywhere, in part, or where data is absent."""
    if len(every) < wanted or any(one.untold or one.against for one in every):
        return ClaimAnswer.IN_PART
    return ClaimAnswer.STAND_IN if any(one.stands_in for one in every) else ClaimAnswer.REPRODUCED


def _holds(test: Test, look: Look, found: Found) -> bool:
    """Return whether a test holds in all panels that have it, and in one at least."""
    seen = [one for ones in _seen([test], look, found).values() for one in ones]
    there = [one for one in seen if one is not None]
    return bool(there) and all(one.held and not one.against for one in there)


_KEPT = (
    ClaimAnswer.REPRODUCED, ClaimAnswer.IN_PART, ClaimAnswer.STAND_IN, ClaimAnswer.OTHER_REASON,
    ClaimAnswer.BOUND, ClaimAnswer.CONSTRUCTION,
)  # fmt: skip


def _reason(
    said: Said,
    verdict: ClaimAnswer,
    there: Mapping[str, Sequence[Seen]],
    absent: Sequence[str],
) -> str:
    if verdict is ClaimAnswer.PENDING:
        return "Not measured yet."
    if verdict is ClaimAnswer.NOT_HERE:
        if said.needs:
            return said.needs
        labels = f": {', '.join(absent)}" if absent else ""
        return f"Its data is not at hand{labels}."
    every = [one for ones in there.values() for one in ones]
    missing = [panel for panel, ones in there.items() if not ones and panel]
    words = _numbers(every)
    if verdict is ClaimAnswer.FEW_DRAWS:
        text = _NEAR if any(one.stated for one in every) else _UNTOLD
    else:
        text = said.because if verdict in _KEPT else said.why
    for name, value in words.items():
        text = text.replace("{" + name + "}", short(value))
    if not text:
        text = (
            "So wherever it was looked at." if verdict in _KEPT else "What is measured is another."
        )
    return f"{text} Without measurement: {', '.join(missing)}." if missing else text


def _otherwise(verdict: ClaimAnswer, there: Mapping[str, Sequence[Seen]]) -> str:
    """Return the sentence on panels whose stand-ins speak against what holds elsewhere."""
    panels = [p for p, ones in there.items() if any(one.stands_in and one.against for one in ones)]
    if not panels or verdict is ClaimAnswer.NOT_REPRODUCED:
        return ""
    return f" On the tables that stand in for {', '.join(panels)} it is not so."


def _numbers(every: Sequence[Seen]) -> dict[str, float]:
    """Return the numbers that any reason may name."""
    numbers = [value for one in every for value in one.numbers] or [math.nan]
    words = {"least": min(numbers), "most": max(numbers), "last": numbers[-1]}
    for one in every:
        if one.stated is not None and one.mean is not None:
            words["gap"] = abs(one.mean.value - one.stated.value)
            words["spread"] = one.stated.spread
            words["times"] = one.mean.value / one.stated.value if one.stated.value else math.inf
    return words


def _with_facts(text: str, look: Look, found: Found) -> str:
    for name, of in look.facts.items():
        if "{" + name + "}" in text:
            try:
                value = of(View(found, look.panels[0]))
                told = short(value.value if isinstance(value, Mean) else value)
            except Absent:
                told = "a number that was not measured"
            text = text.replace("{" + name + "}", told)
    return text


def counted(claims: Iterable[Claim]) -> dict[ClaimAnswer, int]:
    """Return how many claims have each answer, in the order of `ClaimAnswer`."""
    given = [claim.answer for claim in claims]
    return {answer: given.count(answer) for answer in ClaimAnswer if answer in given}
