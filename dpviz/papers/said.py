"""Statements of papers, their tests, and the one engine that answers all statements.

A statement is declared once: its words are in the paper's text file, its test and its panels in the
paper's list. Lines, coverage and answer are derived here. Only this module handles missing
measurements.
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
SEPARATED = 3.0  # Number of standard errors between two means that are different.
ALIKE = 0.03  # Largest relative distance, with its interval, of two means that agree.
PLANNED = 3.0  # Required ratio of the paper's error to our own error.
_TIGHT = 0.97  # Share of a bound from which on the bound counts as attained.
_Z = 1.96


class Agreement(StrEnum):
    """Result of comparing a measured value with the printed value."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot tell"
    ABSENT = "data absent"
    PENDING = "not yet measured"
    NOT_MEASURED = "not measured"


class ClaimAnswer(StrEnum):
    """Answer to one printed claim."""

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
"""Possible answers after a finished run, with their meanings."""


@dataclass(frozen=True)
class Stated:
    """A number as a paper prints it.

    Attributes
    ----------
    value : float
        Value in the unit of the measured quantity.
    error : float
        Number after the paper's plus-minus sign; 0 if there is none.
    rounding : float
        Half of the last printed digit.
    spread : float
        Error inherent in the method of measurement, if no error is printed.
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
        """Return the ratio of two printed numbers, with the largest possible error."""
        value = self.value / other.value
        # Errors are added, not their squares: both may have the same sign, as one paper made both.
        relative = [(one.error / one.value, one.rounding / one.value) for one in (self, other)]
        error, rounding = (value * sum(column) for column in zip(*relative, strict=True))
        return Stated(value, error, rounding)


def number(value: float) -> str:
    """Return a number as text: a count in full, any other number to four digits."""
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "infinite"
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e12 else numeral(value, 4)


def short(value: float) -> str:
    """Return a number for use in a sentence: to three digits, or as a whole number."""
    if not math.isfinite(value):
        return number(value)
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1e6 else numeral(value, 3)


# --- looking ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Measurements in one panel of an experiment; a missing point raises `Absent`."""

    found: Found
    panel: str

    def __call__(self, series: str, quantity: str, x: float | None = None) -> Mean:
        """Return the mean at a point."""
        return self.found.mean(self.panel, series, quantity, x)

    def curve(self, series: str, quantity: str) -> dict[float, Mean]:
        """Return the means along the axis."""
        return self.found.curve(self.panel, series, quantity)

    def on(self, panel: str) -> View:
        """Return the view of the measurements in another panel."""
        return View(self.found, panel)


Of = Callable[[View], Any]
"""Value that a test reads in a panel: a mean, a number, or a curve of means by x."""


def points(values: Any) -> list[Mean]:
    """Return the means in a test's value as a list."""
    if isinstance(values, Mapping):
        return list(values.values())
    return [values if isinstance(values, Mean) else Mean.near(float(values), math.nan, 1)]


def paired(one: Any, two: Any) -> dict[float | None, tuple[Mean, Mean]]:
    """Return pairs of means from two means or curves, at each x that both have."""
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
    """A mean or curve to read in a panel; differences and ratios are expressions too.

    Attributes
    ----------
    read : callable
    """

    read: Of

    def __call__(self, view: View) -> Any:
        """Return the value that the expression has in a panel."""
        return self.read(view)

    def _with(self, other: Expression | float, of: Callable[[Mean, Mean], Mean]) -> Expression:
        def read(view: View) -> Any:
            beside = other(view) if isinstance(other, Expression) else other
            curve = {x: of(*pair) for x, pair in paired(self(view), beside).items()}
            return curve.get(None, curve)

        return Expression(read)

    def __sub__(self, other: Expression | float) -> Expression:
        """Return the difference at each x."""
        return self._with(other, Mean.__sub__)

    def __truediv__(self, other: Expression | float) -> Expression:
        """Return the ratio at each x."""
        return self._with(other, Mean.__truediv__)

    def each(self, of: Callable[[float], float]) -> Expression:
        """Return a curve divided by a function of the curve's x."""
        return Expression(lambda view: {x: mean * (1 / of(x)) for x, mean in self(view).items()})

    def on(self, panel: str) -> Expression:
        """Return the same expression in another panel."""
        return Expression(lambda view: self(view.on(panel)))

    @property
    def last(self) -> Expression:
        """The mean at the largest x."""
        return Expression(lambda view: (curve := self(view))[max(curve)])

    @property
    def first(self) -> Expression:
        """The mean at the smallest x."""
        return Expression(lambda view: (curve := self(view))[min(curve)])


def at(series: str, quantity: str, x: float | None = None) -> Expression:
    """Return the expression for one point."""
    return Expression(lambda view: view(series, quantity, x))


def along(series: str, quantity: str, least: float = -math.inf) -> Expression:
    """Return the expression for a curve, from the least x on."""
    return Expression(lambda v: {x: m for x, m in v.curve(series, quantity).items() if x >= least})


def row_of(panel: str, quantity: str) -> Expression:
    """Return the expression for another panel, in which this panel's name is the series."""

    def read(view: View) -> Any:
        other = view.on(panel)
        try:
            return other(view.panel, quantity)
        except Absent:
            return other.curve(view.panel, quantity)

    return Expression(read)


@dataclass(frozen=True)
class Seen:
    """Result of a test in one panel.

    Attributes
    ----------
    measured : str
    held, against, untold : int
        Numbers of points that support the statement, contradict it, and do not decide it.
    inside : bool
        Whether the measured value lies well inside a bound.
    alike : bool
        Whether values that should differ are equal within `ALIKE`.
    numbers : tuple of float
        Numbers that a sentence may quote.
    stated : Stated or None
    mean : Mean or None
    stands_in : bool
        Whether the value was measured on tables that replace absent data.
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
        text: str,
        signs: Iterable[float],
        means: Sequence[Mean] = (),
        numbers: Sequence[float] = (),
        **more: Any,
    ) -> Seen:
        """Return a result from signs at points: 1 for the statement, -1 against it, or 0.

        Parameters
        ----------
        text : str
        signs : iterable of float
        means : sequence of Mean
            Tested means, which a sentence may quote.
        numbers : sequence of float
            Tested numbers, if the test does not use means.
        **more
            Other fields of `Seen`.
        """
        signs = list(signs)
        total, support = len(signs), sum(sign > 0 for sign in signs)
        against, untold = sum(sign < 0 for sign in signs), sum(sign == 0 for sign in signs)
        if total != 1:
            text += f"; at {support} of {total} points"
            text += f", {untold} cannot tell" if untold else ""
            text += f", the other way at {against}" if against else ""
        values = tuple(numbers) or tuple(mean.value for mean in means)
        only = means[0] if len(means) == 1 else None
        return cls(text, support, against, untold, numbers=values, mean=only, **more)

    @property
    def agreement(self) -> Agreement:
        """The agreement of one panel; one point against the statement is enough to differ."""
        if self.against:
            return Agreement.DIFFERS
        return Agreement.AGREES if self.held else Agreement.CANNOT_TELL


class Test(ABC):
    """How a statement is tested in one panel."""

    @abstractmethod
    def see(self, view: View) -> Seen:
        """Return the result of the test; raise `Absent` if a value was not measured."""


def _side(gap: Mean) -> float:
    """Return the clear sign of a difference, 1 or -1, or 0 if the sign is undecided."""
    if math.isnan(gap.value):
        return -1.0
    # A difference of exactly 0 has no sign, so it is undecided, even if it has no error.
    if abs(gap.value) <= SEPARATED * gap.error or gap.value == 0:
        return 0.0
    return math.copysign(1.0, gap.value)


def _told(means: Sequence[Mean]) -> str:
    if not means:
        raise Absent("the results have no measurement of this quantity yet")
    if len(means) == 1:
        mean = means[0]
        # An interval smaller than the four digits that are written is not shown.
        half = f" ± {numeral(mean.half)}" if mean.half > 1e-4 * abs(mean.value) else ""
        return number(mean.value) + half
    values = [mean.value for mean in means]
    return f"{number(min(values))} to {number(max(values))}"


@dataclass(frozen=True)
class Number(Test):
    """Test of a value near a printed number; our error must be below a third of the paper's.

    Attributes
    ----------
    of : callable
    printed : Stated, or a mapping of panels to Stated, or what makes it of a view
    """

    of: Of
    printed: Stated | Mapping[str, Stated] | Callable[[View], Stated]

    def stated(self, view: View) -> Stated:
        """Return the number that the paper prints for a panel."""
        if isinstance(self.printed, Stated):
            return self.printed
        return self.printed(view) if callable(self.printed) else self.printed[view.panel]

    def see(self, view: View) -> Seen:
        """Return the comparison of the measured number with the printed number."""
        stated, mean = self.stated(view), self.of(view)
        gap = max(abs(mean.value - stated.value) - stated.rounding, 0.0)
        near = gap <= math.hypot(stated.error, stated.spread, mean.half)
        room = stated.error + stated.spread + stated.rounding
        enough = mean.half == 0 or mean.half < room / PLANNED
        # A value that may be near only because our own error is wide is undecided, not confirmed.
        sign = 0.0 if near and not enough else 1.0 if near else -1.0
        return Seen.at(_told([mean]), [sign], [mean], stated=stated)


@dataclass(frozen=True)
class Below(Test):
    """Test that all values lie below a limit (above it with ``sign`` 1)."""

    of: Of
    limit: float
    sign: int = -1

    def see(self, view: View) -> Seen:
        """Return at how many points the values lie on the stated side of the limit."""
        means = points(self.of(view))
        limit = Mean.near(self.limit, math.nan, 1)
        return Seen.at(_told(means), (self.sign * _side(mean - limit) for mean in means), means)


@dataclass(frozen=True)
class Between(Test):
    """Test that all values lie above one limit and below another."""

    of: Of
    low: float
    high: float

    def see(self, view: View) -> Seen:
        """Return at how many points the values lie on the stated side of the limit."""
        means = points(self.of(view))
        low, high = (Mean.near(limit, math.nan, 1) for limit in (self.low, self.high))
        signs = (min(_side(mean - low), _side(high - mean)) for mean in means)
        return Seen.at(_told(means), signs, means)


@dataclass(frozen=True)
class AtMost(Test):
    """Test that every value, as a multiple of the printed value, is at most 1.

    Privacy accounting uses this test: the value is the used epsilon as a multiple of the claimed
    epsilon. So does a statement that two things are equal: if the multiple stays below 1, the
    statement holds as an upper bound only.
    """

    of: Of

    def see(self, view: View) -> Seen:
        """Return the comparison of the multiples with 1; an infinite multiple is a refutation."""
        means = points(self.of(view))
        # The limit allows for rounding, because a value may equal the printed value exactly.
        one = Mean.near(1.0 + 1e-9, math.nan, 1)
        signs = [-1.0 if _beyond(mean, one) else 1.0 for mean in means]
        text = f"{_told(means)} of the printed value"
        inside = max(mean.value for mean in means) < _TIGHT
        return Seen.at(text, signs, means, inside=inside)


def _beyond(mean: Mean, limit: Mean) -> bool:
    return math.isnan(mean.value) or _side(mean - limit) > 0


@dataclass(frozen=True)
class Order(Test):
    """Test that one curve or number lies above another, point by point."""

    upper: Of
    lower: Of

    def see(self, view: View) -> Seen:
        """Return at how many points the stated order holds."""
        pairs = list(paired(self.upper(view), self.lower(view)).values())
        ones, others = zip(*pairs, strict=True)
        signs = [_side(one - other) for one, other in pairs]
        text = f"{_told(ones)} against {_told(others)}"
        alike = all(_alike(one, other) for one, other in pairs)
        values = [mean.value for pair in pairs for mean in pair]
        return Seen.at(text, signs, numbers=values, alike=alike)


def _alike(one: Mean, other: Mean) -> bool:
    if one.value == other.value:
        return True
    ratio = one / other
    return abs(ratio.value - 1) + _Z * ratio.error <= ALIKE


@dataclass(frozen=True)
class Monotone(Test):
    """Test that a curve rises (sign 1) or falls (-1) from each x to the next."""

    of: Of
    sign: int

    def see(self, view: View) -> Seen:
        """Return at how many steps the curve rises or falls as stated."""
        curve = self.of(view)
        means = [curve[x] for x in sorted(curve)]
        if len(means) < 2:
            raise Absent(view.panel)
        steps = [after - before for before, after in pairwise(means)]
        signs = [self.sign * _side(step) for step in steps]
        text = f"{number(means[0].value)} to {number(means[-1].value)}"
        alike = all(_alike(mean, means[0]) for mean in means[1:])
        return Seen.at(text, signs, numbers=(means[0].value, means[-1].value), alike=alike)


@dataclass(frozen=True)
class Power(Test):
    """Test that a curve grows like a stated power of its axis.

    Attributes
    ----------
    of : callable
    printed : float or callable
        The power, or a function that computes it from the curve's x.
    slack : float
        How much the fitted power may deviate in this range for known reasons.
    upper : bool
        Whether the rate is stated as an upper bound.
    """

    of: Of
    printed: float | Callable[[Sequence[float]], float]
    slack: float = 0.0
    upper: bool = False

    def see(self, view: View) -> Seen:
        """Return the comparison of the fitted power with the stated power."""
        from dpviz.simulation.bounds import fitted_power

        curve = self.of(view)
        xs = sorted(curve)
        if len(xs) < 2 or any(curve[x].value <= 0 for x in xs):
            raise Absent(view.panel)
        power, error = fitted_power(xs, [curve[x].value for x in xs], [curve[x].error for x in xs])
        exponent = Stated(self.printed(xs) if callable(self.printed) else self.printed)
        room = _Z * error + self.slack
        # The fitted power may deviate by its own error, and by known bends of the measured curve.
        near = abs(power - exponent.value) <= room
        below = self.upper and power < exponent.value
        mean = Mean(power, error, power - _Z * error, power + _Z * error, 1)
        sign = 1.0 if near or below else -1.0
        text = f"a power of {power:.3f} ± {numeral(_Z * error, 1)}"
        return Seen.at(text, [sign], [mean], inside=not near, stated=exponent)


@dataclass(frozen=True)
class Identity(Test):
    """Test of two exact numbers that the paper calls equal.

    Attributes
    ----------
    of, printed : callable or float
        The true number, and the printed number.
    within : float
        Relative tolerance, for numbers that are printed rounded.
    """

    of: Of
    printed: Of | float
    within: float = 1e-6

    def see(self, view: View) -> Seen:
        """Return whether the true and the printed numbers are equal."""
        printed = self.printed(view) if callable(self.printed) else self.printed
        ours, theirs = zip(*paired(self.of(view), printed).values(), strict=True)
        pairs = [(a.value, b.value) for a, b in zip(ours, theirs, strict=True)]
        signs = [1.0 if abs(a - b) <= self.within * max(abs(b), 1e-300) else -1.0 for a, b in pairs]
        text = f"{_told(ours)}, printed {_told(theirs)}"
        return Seen.at(text, signs, numbers=[value for pair in pairs for value in pair])


class NotHere(Test):
    """A statement that cannot be repeated from print; the statement names what is missing."""

    def see(self, view: View) -> Seen:
        """Raise `Absent`, because nothing can be measured."""
        raise Absent(view.panel)


# --- statements -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """How a statement is tested.

    Attributes
    ----------
    test : Test or tuple of Test
        Tests to apply in every panel.
    panels : sequence of str
        All panels that the statement is about, available or not.
    order : Test or None
        Test of the numbers' order, used if the numbers are not reproduced.
    nothing : Test or None
        The same statement about a model that has learned nothing. If the test holds there too, the
        reason is another.
    built : bool
        Whether only an error of our own code could make the statement fail.
    members : mapping of str to sequence of str
        For each panel, the panels of replacement tables, used if the panel's data is absent.
    facts : mapping of str to callable
        Further numbers that the reason names in braces; their values come from the first panel.
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
        """The tests in their order."""
        return self.test if isinstance(self.test, tuple) else (self.test,)


@dataclass(frozen=True)
class Said:
    """One statement that a paper prints.

    Attributes
    ----------
    key : str
        Key that is unique within the paper.
    experiment : str
        Key of the experiment whose measurements test the statement.
    place : str
        Place at which the paper prints the statement.
    says : str
        Content of the statement, in our words.
    quote : str
        The paper's words, at most 120 characters.
    printed : str
        The number or rate as printed; empty if the quote contains it.
    because, why : str
        The reason to give if the statement holds, and the reason if it does not hold.
    needs : str
        Missing information, if nobody can repeat the statement from the printed text.
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
    """A statement in one panel, with the value measured in the panel."""

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
        Reason for the answer; never empty.
    quote, stated, measured, place : str
        Texts; ``measured`` is empty if there is no value.
    coverage : str
        Tested share of the claim, such as "2 of 4 panels".
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
        """The coverage, or empty if all or nothing was tested."""
        return self.coverage if self.coverage not in ("all", "none") else ""

    @property
    def counts(self) -> bool:
        """Whether the claim counts in the headline number."""
        return self.answer is not ClaimAnswer.CONSTRUCTION


@cache
def text_of(paper: str) -> dict[str, Any]:
    """Return the contents of a paper's text file: facts, experiments and statements."""
    return tomllib.loads((FOLDER / paper / "paper.toml").read_text("utf-8"))


def has_text(paper: str) -> bool:
    """Return whether a folder holds a paper's text file."""
    return (FOLDER / paper / "paper.toml").is_file()


@cache
def said_of(paper: str) -> tuple[Said, ...]:
    """Return all statements of a paper, in printing order."""
    if not paper or not has_text(paper):
        return ()
    statements = importlib.import_module(f"{__package__}.{paper}._said")
    return tuple(statements.SAID)


def declared(paper: str, looks: Mapping[str, Look | Test | tuple[Test, ...]]) -> list[Said]:
    """Return a paper's statements in printing order.

    Parameters
    ----------
    paper : str
        Folder.
    looks : mapping of str to Look, Test or tuple of Test
        Tests by key of the statement. A test alone is enough if no other field is needed. A
        statement with ``needs`` has no entry.

    Raises
    ------
    ValueError
        If a statement has neither a test nor missing information, or a test has no statement.
    """
    statements: list[dict[str, str]] = text_of(paper)["claim"]
    keys = [one["key"] for one in statements]
    wrong = {one["key"] for one in statements if (one["key"] in looks) == bool(one.get("needs"))}
    wrong |= (set(looks) - set(keys)) | {key for key in keys if keys.count(key) > 1}
    if wrong:
        raise ValueError(f"{paper}: claims and tests do not match: {', '.join(sorted(wrong))}")
    words = ("key", "place", "says", "quote", "printed", "because", "why", "needs")
    entries = []
    for one in statements:
        look = looks.get(one["key"], NotHere())
        look = look if isinstance(look, Look) else Look(look)
        fields = {word: one.get(word, "") for word in words}
        entries.append(Said(experiment=f"{paper}_{one['at']}", look=look, **fields))
    return entries


# --- answering --------------------------------------------------------------------------------

_UNTOLD = "The means lie within three standard errors of each other."
_NEAR = "It is near what is printed, but our error is not yet a third of the paper's."


def answer(said: Said, found: Found, absent: Sequence[str] = (), complete: bool = True) -> Claim:
    """Return the answer to a statement.

    Parameters
    ----------
    said : Said
    found : Found
        Means that the experiment measured.
    absent : sequence of str
        Labels of the unavailable data sets.
    complete : bool
        Whether the run is finished; until then, a missing value counts as not yet measured.
    """
    look = said.look
    sights = _seen(look.tests, look, found)
    there = {panel: [one for one in ones if one is not None] for panel, ones in sights.items()}
    every = [one for ones in there.values() for one in ones]
    verdict = _verdict(look, every, len(look.panels) * len(look.tests), found)
    simulation = found.means and not all(one.stands_in for one in every)
    if not simulation and not said.needs and not complete:
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
        tuple(_line(said, panel, one, complete) for panel, ones in sights.items() for one in ones),
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
    """Return one result from the results on every, some or no member of a family."""
    support = sum(bool(seen.held) and not seen.against for seen in each)
    broken = sum(bool(seen.against) for seen in each)
    numbers = tuple(value for seen in each for value in seen.numbers)
    sign = 1.0 if support == len(each) else -1.0 if broken == len(each) else 0.0
    number_of = f"every one of {len(each)}" if sign > 0 else f"{support} of {len(each)}"
    number_of = f"none of {len(each)}" if not support else number_of
    text = f"{number(min(numbers))} to {number(max(numbers))}; on {number_of} tables that stand in"
    inside, alike = all(seen.inside for seen in each), all(seen.alike for seen in each)
    return Seen.at(text, [sign], numbers=numbers, inside=inside, alike=alike, stands_in=True)


def _line(said: Said, panel: str, sight: Seen | None, complete: bool) -> Line:
    if sight is None:
        state = Agreement.NOT_MEASURED if said.needs else Agreement.ABSENT
        state = state if complete or said.needs else Agreement.PENDING
        note = said.needs or ("Not measured." if complete else "Not measured yet.")
        return Line(panel, said.says, said.printed or said.quote, "", state, note)
    quotation = sight.stated.text if sight.stated else said.printed or said.quote
    return Line(
        panel, said.says, quotation, sight.measured, sight.agreement, "", sight.stated, sight.mean
    )


def _stated(every: Sequence[Seen]) -> str:
    return "; ".join(dict.fromkeys(one.stated.text for one in every if one.stated is not None))


def _measured(there: Mapping[str, Sequence[Seen]]) -> str:
    many = len(there) > 1
    return "; ".join(
        f"{panel}: {one.measured}" if many and panel else one.measured
        for panel, ones in there.items()
        for one in ones
    )


def _coverage(there: Mapping[str, Sequence[Seen]], every: Sequence[Seen]) -> str:
    panels = sum(bool(ones) for ones in there.values())
    decisive = sum(one.held + one.against for one in every)
    total = decisive + sum(one.untold for one in every)
    parts = []
    if len(there) > 1:
        parts.append(f"{panels} of {len(there)} panels")
    if total > panels or (total and decisive < total):
        parts.append(f"{decisive} of {total} points")
    if not parts and there:
        parts.append("all" if panels else "none")
    return ", ".join(parts)


def _verdict(look: Look, every: Sequence[Seen], panels: int, found: Found) -> ClaimAnswer:
    if not every:
        return ClaimAnswer.NOT_HERE
    # Results on replacement tables cannot refute claims about the original data.
    if any(one.against for one in [one for one in every if not one.stands_in] or every):
        in_order = look.order and _holds(look.order, look, found)
        return ClaimAnswer.ORDER if in_order else ClaimAnswer.NOT_REPRODUCED
    if look.built:
        return ClaimAnswer.CONSTRUCTION
    if not any(one.held for one in every):
        alike = all(one.alike for one in every)
        return ClaimAnswer.NO_DIFFERENCE if alike else ClaimAnswer.FEW_DRAWS
    if look.nothing and _holds(look.nothing, look, found):
        return ClaimAnswer.OTHER_REASON
    return ClaimAnswer.BOUND if all(one.inside for one in every) else _extent(every, panels)


def _extent(every: Sequence[Seen], panels: int) -> ClaimAnswer:
    """Return the answer for a claim that holds: in full, in part, or on replacement tables."""
    if len(every) < panels or any(one.untold or one.against for one in every):
        return ClaimAnswer.IN_PART
    return ClaimAnswer.STAND_IN if any(one.stands_in for one in every) else ClaimAnswer.REPRODUCED


def _holds(test: Test, look: Look, found: Found) -> bool:
    """Return whether a test holds in all panels with measurements, and in at least one."""
    sights = [one for ones in _seen([test], look, found).values() for one in ones]
    there = [one for one in sights if one is not None]
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
        return f"The data is not available{labels}."
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
        text = "It holds wherever we checked it." if verdict in _KEPT else "Our value differs."
    return f"{text} Without measurement: {', '.join(missing)}." if missing else text


def _otherwise(verdict: ClaimAnswer, there: Mapping[str, Sequence[Seen]]) -> str:
    """Return the sentence on panels whose replacement tables contradict the other panels."""
    panels = [p for p, ones in there.items() if any(one.stands_in and one.against for one in ones)]
    if not panels or verdict is ClaimAnswer.NOT_REPRODUCED:
        return ""
    return f" On the tables that stand in for {', '.join(panels)} the claim fails."


def _numbers(every: Sequence[Seen]) -> dict[str, float]:
    """Return the numbers that any reason may name in braces."""
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
    answers = [claim.answer for claim in claims]
    return {answer: answers.count(answer) for answer in ClaimAnswer if answer in answers}
