"""The question `decide`: what can be published safely, at which epsilon, and what is open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import both_worlds, excess_probability
from dpviz.core.entries import PRIVATE
from dpviz.core.errors import CannotRun
from dpviz.core.files import PACKAGE
from dpviz.core.number_text import numeral, percent
from dpviz.core.params import Declared, inherit, params_of, text
from dpviz.core.problem import Relation, protects
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.settings import Settings, left_out_in, levels_in
from dpviz.lessons.prospect import HARDLY, PRIOR, Prospect, becomes, epsilon_under
from dpviz.lessons.questions import Answers
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.releasing.drafting import draft
from dpviz.releasing.making import table_input
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import LOUD, Outlook, SchemaRows
from dpviz.releasing.records import TableInput
from dpviz.releasing.schema import Schema
from dpviz.report.privacy_card import of_million, picture_words
from dpviz.report.sentences.explore import least_words
from dpviz.report.sentences.phrases import BELIEVED, capital
from dpviz.simulation.goal import SURE
from dpviz.simulation.picture.account import SHARE
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column
from dpviz.studies.least import least_epsilons
from dpviz.studies.options import asks, ready

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from dpviz.report.figures.theme import Figure

INTERNAL = "Internal: computed from the rows, do not share"
REFUSED = (
    "Noise turns the axes of such a picture; each point on it stays one person's own row. A map of "
    "noisy counts can be published instead: its points are nobody's rows."
)
LIMITS, UNIT, CENTRE = "limits", "unit", "centre"


@dataclass(frozen=True)
class DecideOptions(Declared):
    """What is asked."""

    hand_out: str = inherit(Answers, "hand_out")
    survive: str = inherit(Answers, "survive")
    ceiling: float = inherit(Answers, "ceiling")
    delta_allowed: str = inherit(Answers, "delta_allowed")
    schema: str | None = text(
        None, label="Schema", flag="--schema", url=None, optional=True, group="Table",
        help="How the table is read, as dpviz schema drafts it. Without it the limits of a table "
        "of your own are taken from its rows, and the answer stays open.",
    )  # fmt: skip


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, type=str) for name in names)


_KINDS = Literal["measurement", "upper bound", "lower bound", "prediction"]
_QUANTITY = (
    Column("value", type=float),
    Column("kind", type=_KINDS, help="A measurement, an upper bound or a prediction."),
)
_KEPT = (
    Column("kind", of=lambda seen: Kind.PREDICTION, type=str),
    Column("low", type=float, help="The least recovery of 95 of 100 simulated releases."),
    Column("mean", of=lambda seen: seen.recovery, type=float),
    Column("without_noise", type=float, help="The recovery that the limits alone leave."),
)
_CURVE = (
    Column("epsilon", type=float, show=NUMBERS),
    Column("low", type=float, show=NUMBERS),
    Column("mean", type=float, show=NUMBERS),
    Column("after", of=lambda row: becomes(row["epsilon"]), type=float, show=NUMBERS,
           help="At most what share of suspicions may be right, of which .01 were."),
)  # fmt: skip
_RELEASE = (
    Column("k", type=int), *_texts("relation", "rows", "row_bound", "center", "scale"),
    Column("picture", type=float),
)  # fmt: skip
_UNIT = (
    Column("protected", of=lambda schema: schema.unit, type=str),
    Column("rows", of=lambda schema: schema.rows_a_person, type=int | None),
    Column("person", type=str),
)
_LEADER = Annotated[dict[str, Any], (*_texts("key", "label"), Column("epsilon", type=float))]


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Answer):
    """What can be published: the least epsilon that keeps enough, and what a guesser gains there.

    Attributes
    ----------
    answers : Answers
        What was asked.
    prospect : Prospect
        What releases would keep, and what would help: a function of the rows, so internal.
    outlook : Outlook or None
        Of the release with the least epsilon; None where none is enough, or none is asked for.
    settings : Settings
    idealised : mapping or None
        The least epsilons that other pages give for the preparation of the settings.
    """

    figures: ClassVar[tuple[str, ...]] = ("room",)
    columns: ClassVar[tuple[Column, ...]] = _CURVE
    listed: ClassVar[str] = "curve"
    written: ClassVar[tuple[Column, ...]] = (
        Column("question", type=str),
        Column("answers", type=Annotated[Answers, (
            *_texts("hand_out", "survive"), Column("ceiling", type=float), *_texts("delta_allowed")
        )], help="What was asked: see the options of `dpviz.decide`."),
        *_texts("verdict", "headline"),
        Column("epsilon", of=lambda found: found.enough, type=Annotated[Quantity, _QUANTITY] | None,
               help="About the least at which 95 of 100 simulated releases keep enough."),
        Column("delta", of=lambda found: found.release.stated_delta, type=float),
        Column("kept", of=lambda found: found.outlook, type=Annotated[Outlook, _KEPT] | None,
               help="Share of the structure that a release keeps, from 0 to 1."),
        Column("believed_before", of=lambda found: PRIOR, type=float),
        Column("believed_after", of=lambda found: found.after,
               type=Annotated[Quantity, _QUANTITY] | None),
        Column("guessed_right", type=Annotated[Quantity, _QUANTITY] | None),
        Column("room", type=list[float] | None,
               help="From there to the largest acceptable epsilon; null if no epsilon is "
               "acceptable."),
        Column("largest_epsilon", of=lambda found: found.most, type=float),
        *(Column(name, type=list[str]) for name in ("helps", "open", "to_do", "board")),
        Column("curve", type=Annotated[list[Any], _CURVE],
               help="Gain and harm by epsilon, of the best pipeline."),
        Column("release", type=Annotated[ReleaseOptions, _RELEASE],
               help="The release that is meant, as `dpviz.release` takes it."),
        Column("unit", of=lambda found: found.prospect.rows.schema, type=Annotated[Schema, _UNIT],
               help="Whose secret it is."),
        Column("idealised", type=dict[str, _LEADER | None] | None,
               help="The least epsilons by the same rule for the preparation of `dpviz.compare`."),
        Column("settings", type=Settings),
    )  # fmt: skip

    answers: Answers
    prospect: Prospect
    outlook: Outlook | None
    settings: Settings
    idealised: Mapping[str, Any] | None = None

    # What is known of it --------------------------------------------------------------------------

    @property
    def release(self) -> ReleaseOptions:
        """The release that is meant: with the least epsilon, or else under the ceiling."""
        return self.prospect.at(self.most) if self.outlook is None else self.outlook.options

    @property
    def epsilon(self) -> float | None:
        """About the least epsilon at which 95 of 100 releases keep what is asked; None if none."""
        return None if self.outlook is None else self.outlook.options.epsilon

    @property
    def most(self) -> float:
        """The largest epsilon that the highest acceptable risk allows."""
        return epsilon_under(self.answers.ceiling)

    @property
    def room(self) -> tuple[float, float] | None:
        """From the least epsilon to the largest that is acceptable; None where there is no room."""
        least = self.epsilon
        return None if least is None or least > self.most else (least, self.most)

    @property
    def after(self) -> Quantity | None:
        """What share of suspicions may be right after the release, of which 1 in 100 were."""
        least = self.epsilon
        return None if least is None else Quantity(becomes(least), Kind.UPPER_BOUND)

    @property
    def enough(self) -> Quantity | None:
        """`epsilon` as the prediction that it is."""
        return None if self.epsilon is None else Quantity(self.epsilon, Kind.PREDICTION)

    @property
    def guessed_right(self) -> Quantity | None:
        """How often somebody who knows all other rows guesses right, of two equally likely rows."""
        if self.outlook is None:
            return None
        return both_worlds(Spent(self.release.epsilon, self.release.stated_delta, False, "claim"))

    @property
    def curve(self) -> list[dict[str, float]]:
        """Gain by epsilon, of the best pipeline."""
        return [dict(zip(("epsilon", "low", "mean"), row, strict=True))
                for row in self.prospect.curve]  # fmt: skip

    @property
    def open(self) -> tuple[str, ...]:
        """What is not settled, the first first: `LIMITS`, `CENTRE`, `UNIT`."""
        schema = self.prospect.rows.schema
        far = self.outlook is not None and self.outlook.centre_share > LOUD
        found = {
            LIMITS: schema.from_data,
            CENTRE: far and self.release.center != PRIVATE,
            UNIT: schema.rows_a_person is None and not self.prospect.planned,
        }
        return tuple(name for name, is_open in found.items() if is_open)

    @property
    def verdict(self) -> Literal["yes", "open", "no"]:
        """``open`` where the answer holds only once the limits were stated."""
        if self.answers.shows_rows or self.room is None:
            return "no"
        return "open" if LIMITS in self.open else "yes"

    @cached_property
    def maps(self) -> tuple[tuple[float, dict[str, Any] | None], ...]:
        """Maps that releases could print at epsilons about the answer; None where one drowns.

        Each is one simulated release of the pipeline in force.
        """
        if not self.prospect.options.picture:
            return ()
        now = self.epsilon or self.most
        asked = {
            numeral(one, 2): one for one in (now / 2.5, now, self.most, 3 * max(now, self.most))
        }
        return tuple((one, self.map_at(one)) for one in sorted(asked.values()))

    def map_at(self, epsilon: float) -> dict[str, Any] | None:
        """Return a map that a release of an epsilon could print; None where it would drown."""
        try:
            return self.prospect.map(replace(self.release, epsilon=min(epsilon, 100.0)))
        except CannotRun:
            return None

    # What is said of it ---------------------------------------------------------------------------

    @property
    def question(self) -> str:
        """The question as one sentence."""
        answers, rows = self.answers, self.prospect.rows
        what = params_of(Answers)["hand_out"].choices[answers.hand_out]
        return (
            f"We publish {what} of {self.prospect.name} ({rows.n:,} rows, "
            f"{len(rows.schema.used):,} features). At least {answers.survive}% of the structure "
            "must be kept in 95 of 100 releases. A suspicion of 1 in 100 may become at most "
            f"{numeral(answers.ceiling, 3)} in 100."
        )

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        wanted, least = f"{self.answers.survive}%", self.epsilon
        if self.answers.shows_rows:
            return "No. A picture of the people cannot be published, at any risk."
        if least is None and self.prospect.without_noise < self.answers.recovery:
            return f"No. With these limits no epsilon keeps {wanted}."
        if least is None:
            return f"No. To keep {wanted} takes an epsilon above 100."
        if self.room is None:
            return (
                f"No. To keep {wanted} takes epsilon {numeral(least, 3)}, more than the "
                f"{numeral(self.most, 3)} that your risk allows."
            )
        word = {"yes": "Yes, at", "open": "Yes once the limits are stated, at"}[self.verdict]
        return f"{word} epsilon {numeral(least, 3)}: the least that does what you ask."

    @property
    def both_sides(self) -> str:
        """What is kept, and what a guesser gains, in two sentences."""
        if self.answers.shows_rows:
            return REFUSED
        if self.outlook is None:
            kept = percent(self.prospect.without_noise)
            return f"Without any noise {kept} is kept: the rest is lost to the limits."
        assert self.after is not None
        hardly = " This is hardly protection." if self.after.value >= HARDLY else ""
        return (
            f"95 of 100 releases keep at least {_kept(self.outlook.low)} (mean "
            f"{_kept(self.outlook.recovery)}). A suspicion of 1 in 100 becomes at most "
            f"{in_hundred(self.after)} in 100.{hardly}"
        )

    @property
    def board(self) -> tuple[str, ...]:
        """Four sentences for a board: what is published, what is risked, kept, and not hidden."""
        options, seen, rows = self.release, self.outlook, self.prospect.rows
        if seen is None or self.after is None or self.room is None or self.answers.shows_rows:
            return ()
        k, schema, relation = options.k, rows.schema, Relation(options.relation)
        parted = f"component{'s' * (k != 1)}"
        parts = f"{k} {parted} with their variances"
        parts += " and a map of noisy counts; no point on it is a person" * bool(options.picture)
        beyond = excess_probability(options.epsilon, options.stated_delta, math.log(2))
        odds = (
            f" In at most {of_million(beyond)} releases the odds grow by more than twice as much."
            if options.stated_delta
            else ""
        )
        clear = f", all in {_of(seen.readable[-1])}" if k > 1 else ""
        apart = "." if seen.readable[-1] >= SURE else ": read them together, not one by one."
        return (
            f"We publish {parts}. Nothing else is published.",
            f"Suspicions {BELIEVED[relation, schema.unit]} that are right 1 time in 100 are right "
            f"at most {in_hundred(self.after)} times in 100 afterwards. That holds whatever else "
            f"is known.{odds} This {protects(schema.rows_a_person)}.",
            f"In 95 of 100 such releases at least {_kept(seen.low)} of what {k} {parted} can show "
            f"is kept. The first component can be told from noise in {_of(seen.readable[0])} "
            f"releases{clear}{apart}",
            f"It does not hide what is true of everybody, nor that there are {rows.n:,} rows with "
            "these columns. A second release of the same people adds to the risk.",
        )

    @property
    def helps(self) -> tuple[str, ...]:
        """What would help, with the epsilon that is then enough; nothing where there is room."""
        if self.room is not None or self.answers.shows_rows:
            return ()
        return tuple(
            f"{capital(what)}: epsilon {numeral(epsilon, 3)}, at which a suspicion of 1 in 100 "
            f"becomes at most {in_hundred(Quantity(becomes(epsilon), Kind.UPPER_BOUND))} in 100."
            for what, epsilon in self.prospect.helps(self.answers.recovery)
        )

    @property
    def to_do(self) -> tuple[str, ...]:
        """What is open, as what to do; a sentence each."""
        rows = self.prospect.rows
        count = len(rows.schema.used)
        then = "" if self.room is None else "; then the answer is yes"
        said = {
            LIMITS: f"The limits of {count:,} columns were taken from this table. State the range "
            f"of each as known before anybody looked{then}.",
            CENTRE: "The typical values are far from the rows, so component 1 would be their mean. "
            "State typical values that are nearer.",
            UNIT: "How many rows one person has was not said: this protects one ROW. Say it in the "
            "question.",
        }
        tails = [
            f"“{name}” is clipped in {percent(share)} of rows: a wide limit and its logarithm keep "
            "a long tail."
            for name, share in rows.tails.items()
        ]
        kept = self.prospect.without_noise
        if self.outlook is not None:
            kept = self.outlook.without_noise
        lost = () if kept >= 0.95 else (f"The limits alone leave {percent(kept)} to be kept.",)
        return (*(said[name] for name in self.open), *lost, *tails)

    @property
    def how(self) -> str:
        """Which pipeline was chosen, for experts."""
        options = self.release
        parts = [
            "rows scaled to length one"
            if options.rows == "unit"
            else f"rows clipped to {options.row_bound} half widths",
            "around a private mean" if options.center == PRIVATE else "around the typical values",
            "Gaussian noise" if options.stated_delta else "Laplace noise",
            "each feature divided by half the width of its limits",
        ]
        if options.stated_delta:
            parts.append(f"delta {numeral(options.stated_delta, 1)}")
        return f"Chosen by simulated releases: {', '.join(parts)}."

    @property
    def elsewhere(self) -> str:
        """What other pages answer, and what each step of a release costs beyond it."""
        return elsewhere(self.prospect, self.answers, self.idealised)

    # As every answer ------------------------------------------------------------------------------

    def _looked_at(self) -> Measured | None:
        return None

    def summary(self) -> str:
        """Return the question, the answer, both sides, what is open and what would help."""
        said = [self.question, self.headline, self.both_sides, *self.board]
        said += [f"Open: {one}" for one in self.to_do]
        said += [f"Would help: {one}" for one in self.helps]
        return "\n".join(line for line in [*said, self.how, self.elsewhere] if line)

    def figure(self, name: str | None = None) -> Figure:
        """Draw gain and harm along epsilon, with the room between.

        Parameters
        ----------
        name : {"room"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._named(name)
        from dpviz.report.figures.room import room_figure

        return room_figure(self.table(), self.epsilon, self.most, self.answers.recovery)

    @cached_property
    def loadings(self) -> tuple[str, dict[str, Any]]:
        """Whether the largest loading can still be told, and all as a card holds them; else empty.

        A bar is where 95 of 100 releases put a loading.
        """
        seen, names = self.outlook, self.prospect.rows.schema.names_used
        if seen is None or self.answers.shows_rows:
            return "", {}
        first = seen.truth[:, 0]
        top = int(np.abs(first).argmax())
        low, high = seen.low_bars[:, 0], seen.high_bars[:, 0]
        # who cannot tell the component itself from noise says nothing of its loadings
        still = seen.readable[0] >= SURE and (low[top] > 0 if first[top] > 0 else high[top] < 0)
        bars = np.maximum(seen.truth - seen.low_bars, seen.high_bars - seen.truth)
        use = {"features": names, "loadings": seen.truth.T.tolist(), "bars": bars.T.tolist()}
        asked = f"Would you still say “{names[top][:60]} drives component 1”?"
        return f"{asked} {'Yes.' if still else 'No.'}", use

    def _released(self) -> str:
        """Return what the release would show, as HTML: its map, or without one its loadings."""
        shown = self.map_at(self.epsilon or self.most) if self.prospect.options.picture else None
        said, use = self.loadings
        if shown is None and not use:
            return ""
        drawn = ""
        if find_spec("matplotlib"):
            from dpviz.report import print as paper

            drawn = paper.inline(paper.loadings(use) if shown is None else paper.published(shown))
        words = said if shown is None else picture_words(shown)
        return f"{drawn}<p>{escape(words)}</p>"

    def _picture(self) -> Picture:
        from dpviz.report.print import room

        return room(self.table(), self.epsilon, self.most, self.answers.recovery)

    def fragment(self) -> str:
        """Return the printed plan as an element with its style, to stand in another page."""
        style, _, rest = self.html().partition("<style>")[2].partition("</style>")
        return f"<style>{style}</style>{rest.partition('<body>')[2].partition('</body>')[0]}"

    def html(self) -> str:
        """Return the plan as a page to print or mail; nothing was released."""
        from dpviz.report.print import inline

        chart = inline(self._picture()) if find_spec("matplotlib") else ""
        written = self._parts() | {"chart": chart}
        page = PACKAGE / "report/figures/decide.html"
        return Template(page.read_text(encoding="utf-8")).substitute(written)

    def _parts(self) -> dict[str, str]:
        """Return the words of the printed plan, escaped."""

        def items(words: tuple[str, ...]) -> str:
            return "".join(f"<li>{escape(one)}</li>" for one in words)

        helps = items(self.helps)
        return {
            "verdict": self.verdict, "mark": MARKS[self.verdict],
            "question": escape(self.question), "headline": escape(self.headline),
            "both_sides": escape(self.both_sides),
            "board": f"<h2>To the board, in four sentences</h2><ol>{items(self.board)}</ol>"
            if self.board
            else "",
            "open": items(self.to_do) or "<li>Nothing.</li>",
            "helps": f"<h2>What would help</h2><ul>{helps}</ul>" if helps else "",
            "map": self._released(), "how": escape(self.how), "internal": INTERNAL,
        }  # fmt: skip


MARKS = {"yes": "✓", "no": "✗", "open": "?"}


def in_hundred(share: Quantity) -> str:
    """Return a share as a count of 100 with two or three digits, rounded outwards."""
    count = 100 * share.value
    # above 99 a decimal is kept, as 100 would be certainty
    return share.of_hundred(1 if count < 10 or count > 99 else 0)


def _kept(share: float) -> str:
    """Return a share that is kept in whole per cent, rounded down."""
    return f"{max(0, math.floor(100 * share + 1e-9))}%"


def _of(share: float) -> str:
    return f"{max(0, math.floor(100 * share + 1e-9))} of 100"


def elsewhere(prospect: Prospect, answers: Answers, idealised: Mapping[str, Any] | None) -> str:
    """Return what other pages answer, and what each step of a release costs beyond it."""
    share = f"{answers.survive}%"
    said = None if idealised is None else least_words(idealised, share)
    steps = prospect.steps(answers.recovery)
    return " ".join(line for line in (f"{said}." if said else "", steps) if line)


# What it is about ---------------------------------------------------------------------------------


def schema_of(
    table: TableInput, settings: Settings, name: str = "the table", **more: Any
) -> Schema:
    """Return a first schema of a table, without what is left out and with what a person is.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    settings : Settings
        Reads levels, leave_out, rows_a_person and person.
    name : str
        What messages call it.
    **more
        Passed to `dpviz.releasing.drafting.draft`.
    """
    found = draft(table, name, levels=levels_in(settings.levels), **more)
    left = {*(left_out_in(settings.leave_out) or ()), settings.label, settings.person}
    kept = tuple(replace(one, use=one.use and one.name not in left) for one in found.columns)
    found = replace(found, columns=kept) if sum(one.use for one in kept) > 1 else found
    return replace(found, rows_a_person=settings.rows_a_person, person=settings.person or "")


def prospect_of(
    name: str, table: TableInput | Measured, schema: Schema | None, settings: Settings,
    answers: Answers, delta: float,
) -> Prospect:  # fmt: skip
    """Return what releases of a table, or of a plan, would keep.

    Parameters
    ----------
    name : str
    table : Table, Path, bytes-like or binary file, or Measured
        A plan has a spectrum and no rows.
    schema : Schema or None
        None for a plan.
    settings : Settings
        Reads k and relation.
    answers : Answers
    delta : float
    """
    options = ReleaseOptions(
        rows="unit", scale="limits", k=settings.k, relation=settings.relation,
        delta=0.0 if answers.delta_allowed == "no" else delta,
        picture=SHARE if answers.hand_out == "map" else 0.0,
    )  # fmt: skip
    if isinstance(table, Measured):
        rows = SchemaRows.of_plan(table.moment.eigenvalues, table.n)
        stated = replace(rows.schema, rows_a_person=settings.rows_a_person)
        return Prospect(name, replace(rows, schema=stated), options, planned=True)
    assert schema is not None  # rows are read under one
    return Prospect(name, SchemaRows.of(table, schema), options)


def answer(prospect: Prospect, answers: Answers, settings: Settings) -> Decision:
    """Return the decision, from what is known of releases."""
    least = None if answers.shows_rows else prospect.least(answers.recovery)
    return Decision(answers, prospect, None if least is None else prospect.outlook(least), settings)


def decision_of(
    prepared: Measured,
    source: TableInput | Measured,
    schema: Schema | None,
    settings: Settings,
    answers: Answers,
) -> Decision:
    """Return the decision about a prepared table, whose rows a release would read from a source.

    Parameters
    ----------
    prepared : Measured
    source : Table, Path, bytes-like or binary file, or Measured
    schema : Schema or None
        By default a first one that is taken from the source.
    settings : Settings
    answers : Answers
    """
    if schema is None and not isinstance(source, Measured):
        schema = schema_of(source, settings)
    delta = prepared.budget(settings).delta
    known = prospect_of(prepared.name, source, schema, settings, answers, delta)
    idealised = least_epsilons(prepared, settings, answers.recovery)
    return replace(answer(known, answers, settings), idealised=idealised)


@asks("what can be published safely, at which epsilon; decide least: for any measure",
      DecideOptions, Settings)  # fmt: skip
def decide(
    table: Any = "digits",
    *,
    schema: str | PathLike[str] | Schema | None = None,
    **options: Any,
) -> Decision:
    """Say what can be published safely: the least epsilon that keeps enough, and what it risks.

    Parameters
    ----------
    table
        As in `compare`; a plan where there is no data yet.
    schema : path or Schema, optional
        How the table is read by a release, with limits that were known before anybody looked.
    **options
        ``hand_out``: what is published; ``survive``: how many percent of the structure must be
        kept; ``ceiling``: how many times in 100 a suspicion of 1 in 100 may be right afterwards;
        ``delta_allowed``; the rest as in `compare`. Of these k, relation, delta, what is left out
        and what a person is are read; epsilon, mechanisms and trials are not: a release has its
        own pipeline, and epsilon is the answer.

    Returns
    -------
    Decision
        ``table()`` has gain and harm by epsilon; ``figure()`` draws them; ``html()`` is the plan to
        print; ``to_json()`` writes the bytes of ``dpviz decide --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        As in `compare`.

    See Also
    --------
    least : The same rule for any metric and mechanism, with a confidence.

    Notes
    -----
    The answer is about the least epsilon at which 95 of 100 simulated releases keep what is asked,
    for the pipeline that `release` runs. ``idealised`` has the least epsilons by the same rule for
    the preparation of `compare`, as other pages give them. All of it is computed from the rows and
    is internal.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.decide("plan:n=1e5,spectrum=0.3,0.1,0.01", k=1, hand_out="directions")
    >>> found.verdict
    'yes'
    >>> found.epsilon < found.most
    True
    """
    # what is asked is no setting: it is told apart here
    own = {name: options.pop(name) for name in params_of(DecideOptions) if name in options}
    prepared, settings = ready(table, options)
    answers = Answers(source="table" if prepared.has_rows else "plan", **own)
    # raises where k does not fit the table
    prepared.problem(settings)
    source: TableInput | Measured = prepared
    if isinstance(prepared, Prepared):
        named = isinstance(table, (str, PathLike))
        source = table_input(fspath(table), settings.sheet) if named else prepared.table
    if schema is not None and not isinstance(schema, Schema):
        schema = Schema.read(Path(fspath(schema)))
    return decision_of(prepared, source, schema, settings, answers)
