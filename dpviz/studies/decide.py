"""The question `decide`: what can be published safely, at which epsilon, and what is undecided."""

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
    "In a picture of the people, noise only turns the axes; each point stays one person's own row. "
    "You can publish a map of noisy counts instead: no point of the map is a person's row."
)
LIMITS, UNIT, CENTRE = "limits", "unit", "centre"


@dataclass(frozen=True)
class DecideOptions(Declared):
    """The stakeholder's requirements."""

    hand_out: str = inherit(Answers, "hand_out")
    survive: str = inherit(Answers, "survive")
    ceiling: float = inherit(Answers, "ceiling")
    delta_allowed: str = inherit(Answers, "delta_allowed")
    schema: str | None = text(
        None, label="Schema", flag="--schema", url=None, optional=True, group="Table",
        help="Schema that says how to read the table; dpviz schema drafts one. Without a schema, "
             "the limits of your own table come from its rows, and the answer stays open.",
    )  # fmt: skip


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, type=str) for name in names)


_KINDS = Literal["measurement", "upper bound", "lower bound", "prediction"]
_QUANTITY = (
    Column("value", type=float),
    Column("kind", type=_KINDS, help="A measurement, an upper bound or a prediction."),
)
_KEPT = (
    Column("kind", of=lambda outlook: Kind.PREDICTION, type=str),
    Column("low", type=float, help="Recovery that 95 % of the simulated releases reach."),
    Column("mean", of=lambda outlook: outlook.recovery, type=float),
    Column("without_noise", type=float, help="Recovery with the limits alone, without noise."),
)
_CURVE = (
    Column("epsilon", type=float, show=NUMBERS),
    Column("low", type=float, show=NUMBERS),
    Column("mean", type=float, show=NUMBERS),
    Column("after", of=lambda row: becomes(row["epsilon"]), type=float, show=NUMBERS,
           help="Upper bound on the share of correct suspicions; before the release .01."),
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
    """The decision: the least epsilon that keeps enough structure, and the risk there.

    Attributes
    ----------
    answers : Answers
        The stakeholder's answers to the questions of the page.
    prospect : Prospect
        Recovery of future releases, and possible improvements; from the rows, so internal.
    outlook : Outlook or None
        Outlook of the release with the least epsilon; None if none is enough or requested.
    settings : Settings
    idealised : mapping or None
        The least epsilons that other pages show for the preparation of the settings.
    """

    figures: ClassVar[tuple[str, ...]] = ("room",)
    columns: ClassVar[tuple[Column, ...]] = _CURVE
    listed: ClassVar[str] = "curve"
    written: ClassVar[tuple[Column, ...]] = (
        Column("question", type=str),
        Column("answers", type=Annotated[Answers, (
            *_texts("hand_out", "survive"), Column("ceiling", type=float), *_texts("delta_allowed")
        )], help="The options of `dpviz.decide` that were used."),
        *_texts("verdict", "headline"),
        Column("epsilon", of=lambda one: one.enough, type=Annotated[Quantity, _QUANTITY] | None,
               help="About the smallest epsilon at which 95 % of releases keep enough structure."),
        Column("delta", of=lambda one: one.release.stated_delta, type=float),
        Column("kept", of=lambda one: one.outlook, type=Annotated[Outlook, _KEPT] | None,
               help="Share of the structure that a release keeps, from 0 to 1."),
        Column("believed_before", of=lambda one: PRIOR, type=float),
        Column("believed_after", of=lambda one: one.after,
               type=Annotated[Quantity, _QUANTITY] | None),
        Column("guessed_right", type=Annotated[Quantity, _QUANTITY] | None),
        Column("room", type=list[float] | None,
               help="Acceptable epsilons, from the smallest to the largest; null if no "
                    "epsilon is acceptable."),
        Column("largest_epsilon", of=lambda one: one.most, type=float),
        *(Column(name, type=list[str]) for name in ("helps", "open", "to_do", "board")),
        Column("curve", type=Annotated[list[Any], _CURVE],
               help="Benefit and risk of the best pipeline, by epsilon."),
        Column("release", type=Annotated[ReleaseOptions, _RELEASE],
               help="The options of the planned release, for `dpviz.release`."),
        Column("unit", of=lambda one: one.prospect.rows.schema, type=Annotated[Schema, _UNIT],
               help="Who is protected: a row or a person."),
        Column("idealised", type=dict[str, _LEADER | None] | None,
               help="The least epsilons by the same rule, for the preparation of `dpviz.compare`."),
        Column("settings", type=Settings),
    )  # fmt: skip

    answers: Answers
    prospect: Prospect
    outlook: Outlook | None
    settings: Settings
    idealised: Mapping[str, Any] | None = None

    # Numbers for the decision ---------------------------------------------------------------------

    @property
    def release(self) -> ReleaseOptions:
        """The planned release, at the least epsilon, or else at the largest acceptable epsilon."""
        return self.prospect.at(self.most) if self.outlook is None else self.outlook.options

    @property
    def epsilon(self) -> float | None:
        """Approximate least epsilon at which 95 of 100 releases keep enough, or None."""
        return None if self.outlook is None else self.outlook.options.epsilon

    @property
    def most(self) -> float:
        """The largest epsilon that keeps the risk within the highest acceptable risk."""
        return epsilon_under(self.answers.ceiling)

    @property
    def room(self) -> tuple[float, float] | None:
        """The least and the largest acceptable epsilon; None if no epsilon is acceptable."""
        least = self.epsilon
        return None if least is None or least > self.most else (least, self.most)

    @property
    def after(self) -> Quantity | None:
        """Bound on the share of suspicions that are right after a release; 1 in 100 before."""
        least = self.epsilon
        return None if least is None else Quantity(becomes(least), Kind.UPPER_BOUND)

    @property
    def enough(self) -> Quantity | None:
        """Value of `epsilon`, marked as a prediction."""
        return None if self.epsilon is None else Quantity(self.epsilon, Kind.PREDICTION)

    @property
    def guessed_right(self) -> Quantity | None:
        """How often a guess between two equally likely rows is right, all others being known."""
        if self.outlook is None:
            return None
        return both_worlds(Spent(self.release.epsilon, self.release.stated_delta, False, "claim"))

    @property
    def curve(self) -> list[dict[str, float]]:
        """Structure kept at each epsilon, with the best pipeline."""
        return [dict(zip(("epsilon", "low", "mean"), row, strict=True))
                for row in self.prospect.curve]  # fmt: skip

    @property
    def open(self) -> tuple[str, ...]:
        """Undecided points, the most important first: `LIMITS`, `CENTRE`, `UNIT`."""
        schema = self.prospect.rows.schema
        far = self.outlook is not None and self.outlook.centre_share > LOUD
        marks = {
            LIMITS: schema.from_data,
            CENTRE: far and self.release.center != PRIVATE,
            UNIT: schema.rows_a_person is None and not self.prospect.planned,
        }
        return tuple(name for name, is_open in marks.items() if is_open)

    @property
    def verdict(self) -> Literal["yes", "open", "no"]:
        """Status of the answer; ``open`` if it holds only after the limits are stated."""
        if self.answers.shows_rows or self.room is None:
            return "no"
        return "open" if LIMITS in self.open else "yes"

    @cached_property
    def maps(self) -> tuple[tuple[float, dict[str, Any] | None], ...]:
        """Maps that releases near the answer could publish; None for a map that noise would hide.

        Each map belongs to one simulated release of the chosen pipeline.
        """
        if not self.prospect.options.picture:
            return ()
        now = self.epsilon or self.most
        epsilons = {
            numeral(one, 2): one for one in (now / 2.5, now, self.most, 3 * max(now, self.most))
        }
        return tuple((one, self.map_at(one)) for one in sorted(epsilons.values()))

    def map_at(self, epsilon: float) -> dict[str, Any] | None:
        """Return a map that a release at an epsilon could publish; None if noise would hide it."""
        try:
            return self.prospect.map(replace(self.release, epsilon=min(epsilon, 100.0)))
        except CannotRun:
            return None

    # The decision in words ------------------------------------------------------------------------

    @property
    def question(self) -> str:
        """The question as one sentence."""
        answers, rows = self.answers, self.prospect.rows
        what = params_of(Answers)["hand_out"].choices[answers.hand_out]
        return (
            f"We publish {what} of {self.prospect.name} ({rows.n:,} rows, "
            f"{len(rows.schema.used):,} features). At least {answers.survive}% of the "
            "structure must be kept in 95% of releases. A suspicion of 1 in 100 may become "
            f"at most {numeral(answers.ceiling, 3)} in 100."
        )

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        share, least = f"{self.answers.survive}% of the structure", self.epsilon
        if self.answers.shows_rows:
            return "No. A picture of the people cannot be published, at any risk."
        if least is None and self.prospect.without_noise < self.answers.recovery:
            return f"No. With these limits no epsilon keeps {share}."
        if least is None:
            return f"No. Keeping {share} needs an epsilon above 100."
        if self.room is None:
            return (
                f"No. Keeping {share} needs epsilon {numeral(least, 3)}; your risk allows "
                f"at most {numeral(self.most, 3)}."
            )
        word = {"yes": "Yes, at", "open": "Yes, once the limits are stated, at"}[self.verdict]
        return f"{word} epsilon {numeral(least, 3)}, the least that meets your goals."

    @property
    def both_sides(self) -> str:
        """The structure kept and the risk, in two sentences."""
        if self.answers.shows_rows:
            return REFUSED
        if self.outlook is None:
            share = percent(self.prospect.without_noise)
            return f"Without noise, {share} of the structure is kept; the limits lose the rest."
        assert self.after is not None
        hardly = " Such an epsilon hardly protects." if self.after.value >= HARDLY else ""
        return (
            f"95 of 100 releases keep at least {_part(self.outlook.low)} of the structure (mean "
            f"{_part(self.outlook.recovery)}). A suspicion of 1 in 100 becomes at most "
            f"{in_hundred(self.after)} in 100.{hardly}"
        )

    @property
    def board(self) -> tuple[str, ...]:
        """Four sentences on what is published, what is risked, what is kept, what is not hidden."""
        options, outlook, rows = self.release, self.outlook, self.prospect.rows
        if outlook is None or self.after is None or self.room is None or self.answers.shows_rows:
            return ()
        k, schema, relation = options.k, rows.schema, Relation(options.relation)
        noun = f"component{'s' * (k != 1)}"
        parts = f"{k} {noun} with their variances"
        parts += " and a map of noisy counts; no point is a person" * bool(options.picture)
        beyond = excess_probability(options.epsilon, options.stated_delta, math.log(2))
        odds = (
            f" In at most {of_million(beyond)} releases the odds grow by more than twice what "
            "epsilon allows."
            if options.stated_delta
            else ""
        )
        clear = f", all {k} components in {_of(outlook.readable[-1])}" if k > 1 else ""
        apart = "." if outlook.readable[-1] >= SURE else "; read the components together."
        return (
            f"We publish {parts}. Nothing else is published.",
            f"Suspicions {BELIEVED[relation, schema.unit]} that are right 1 time in 100 are right "
            f"at most {in_hundred(self.after)} times in 100 after the release. This limit holds "
            f"whatever else is known.{odds} The release {protects(schema.rows_a_person)}.",
            f"In 95 of 100 such releases, at least {_part(outlook.low)} of the structure that {k} "
            f"{noun} can show is kept. The first component can be distinguished from noise in "
            f"{_of(outlook.readable[0])} releases{clear}{apart}",
            f"The release does not hide facts about everybody, or that there are {rows.n:,} rows "
            "with these columns. A second release of the same people adds to the risk.",
        )

    @property
    def helps(self) -> tuple[str, ...]:
        """Improvements with their epsilons; empty if the answer is acceptable without them."""
        if self.room is not None or self.answers.shows_rows:
            return ()
        return tuple(
            f"{capital(what)}: epsilon {numeral(epsilon, 3)}, at which a suspicion of 1 in 100 "
            f"becomes at most {in_hundred(Quantity(becomes(epsilon), Kind.UPPER_BOUND))} in 100."
            for what, epsilon in self.prospect.helps(self.answers.recovery)
        )

    @property
    def to_do(self) -> tuple[str, ...]:
        """Undecided points as tasks, with one sentence for each point."""
        rows = self.prospect.rows
        count = len(rows.schema.used)
        then = "" if self.room is None else "; then the answer is yes"
        texts = {
            LIMITS: f"The limits of {count:,} columns were taken from this table. State for each "
            f"column a range known before anybody looked{then}.",
            CENTRE: "The typical values are far from the rows, so component 1 would be the mean of "
            "the rows. State typical values nearer to the rows.",
            UNIT: "You did not say how many rows one person has, so the release protects one ROW. "
            "State the number of rows in the question.",
        }
        tails = [
            f"“{name}” is clipped in {percent(share)} of rows. Wider limits and a logarithm of "
            "this column would keep the long tail."
            for name, share in rows.tails.items()
        ]
        part = self.prospect.without_noise
        if self.outlook is not None:
            part = self.outlook.without_noise
        lost = () if part >= 0.95 else (f"The limits alone keep {percent(part)} of the structure.",)
        return (*(texts[name] for name in self.open), *lost, *tails)

    @property
    def how(self) -> str:
        """The chosen pipeline, in words for experts."""
        options = self.release
        parts = [
            "rows scaled to length one"
            if options.rows == "unit"
            else f"rows clipped to a norm of {options.row_bound} half widths",
            "around a private mean" if options.center == PRIVATE else "around the typical values",
            "Gaussian noise" if options.stated_delta else "Laplace noise",
            "each feature divided by half the width of its limits",
        ]
        if options.stated_delta:
            parts.append(f"delta {numeral(options.stated_delta, 1)}")
        return f"Chosen by simulated releases: {', '.join(parts)}."

    @property
    def elsewhere(self) -> str:
        """The answers of other pages, and the cost of each step of a release."""
        return elsewhere(self.prospect, self.answers, self.idealised)

    # Methods that every answer has ----------------------------------------------------------------

    def _looked_at(self) -> Measured | None:
        return None

    def summary(self) -> str:
        """Return the question, the answer, gain and risk, undecided points and improvements."""
        lines = [self.question, self.headline, self.both_sides, *self.board]
        lines += [f"Open: {one}" for one in self.to_do]
        lines += [f"Would help: {one}" for one in self.helps]
        return "\n".join(line for line in [*lines, self.how, self.elsewhere] if line)

    def figure(self, name: str | None = None) -> Figure:
        """Plot structure kept and risk along epsilon, with the acceptable range.

        Parameters
        ----------
        name : {"room"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._figure_name(name)
        from dpviz.report.figures.room import room_figure

        return room_figure(self.table(), self.epsilon, self.most, self.answers.recovery)

    @cached_property
    def loadings(self) -> tuple[str, dict[str, Any]]:
        """Return whether noise leaves the largest loading visible, and the data of all loadings.

        A bar contains a loading in 95 of 100 releases. Both results are empty if rows are released.
        """
        outlook, names = self.outlook, self.prospect.rows.schema.names_used
        if outlook is None or self.answers.shows_rows:
            return "", {}
        first = outlook.truth[:, 0]
        top = int(np.abs(first).argmax())
        low, high = outlook.low_bars[:, 0], outlook.high_bars[:, 0]
        # Loadings of a component mean nothing if noise hides the component.
        still = outlook.readable[0] >= SURE and (low[top] > 0 if first[top] > 0 else high[top] < 0)
        bars = np.maximum(outlook.truth - outlook.low_bars, outlook.high_bars - outlook.truth)
        use = {"features": names, "loadings": outlook.truth.T.tolist(), "bars": bars.T.tolist()}
        question = f"Would you still say “{names[top][:60]} drives component 1”?"
        return f"{question} {'Yes.' if still else 'No.'}", use

    def _release_html(self) -> str:
        """Return the release's map as HTML, or the release's loadings if there is no map."""
        view = self.map_at(self.epsilon or self.most) if self.prospect.options.picture else None
        sentence, use = self.loadings
        if view is None and not use:
            return ""
        image = ""
        if find_spec("matplotlib"):
            from dpviz.report import print as paper

            image = paper.inline(paper.loadings(use) if view is None else paper.published(view))
        words = sentence if view is None else picture_words(view)
        return f"{image}<p>{escape(words)}</p>"

    def _picture(self) -> Picture:
        from dpviz.report.print import room

        return room(self.table(), self.epsilon, self.most, self.answers.recovery)

    def fragment(self) -> str:
        """Return the printed plan as HTML with its style, for insertion into another page."""
        style, _, rest = self.html().partition("<style>")[2].partition("</style>")
        return f"<style>{style}</style>{rest.partition('<body>')[2].partition('</body>')[0]}"

    def html(self) -> str:
        """Return the plan as a page to print or send; the page states that nothing was released."""
        from dpviz.report.print import inline

        chart = inline(self._picture()) if find_spec("matplotlib") else ""
        parts = self._parts() | {"chart": chart}
        page = PACKAGE / "report/figures/decide.html"
        return Template(page.read_text(encoding="utf-8")).substitute(parts)

    def _parts(self) -> dict[str, str]:
        """Return the texts of the printed plan, escaped."""

        def items(words: tuple[str, ...]) -> str:
            return "".join(f"<li>{escape(one)}</li>" for one in words)

        helps = items(self.helps)
        return {
            "verdict": self.verdict, "mark": MARKS[self.verdict],
            "question": escape(self.question), "headline": escape(self.headline),
            "both_sides": escape(self.both_sides),
            "board": f"<h2>For your board, in four sentences</h2><ol>{items(self.board)}</ol>"
            if self.board
            else "",
            "open": items(self.to_do) or "<li>Nothing.</li>",
            "helps": f"<h2>What would help</h2><ul>{helps}</ul>" if helps else "",
            "map": self._release_html(), "how": escape(self.how), "internal": INTERNAL,
        }  # fmt: skip


MARKS = {"yes": "✓", "no": "✗", "open": "?"}


def in_hundred(share: Quantity) -> str:
    """Return a share as a count in 100, with two or three digits, rounded outwards."""
    count = 100 * share.value
    # Write one decimal above 99 per cent, because "100" would claim certainty.
    return share.of_hundred(1 if count < 10 or count > 99 else 0)


def _part(share: float) -> str:
    """Return a kept share in whole per cent, rounded down."""
    return f"{max(0, math.floor(100 * share + 1e-9))}%"


def _of(share: float) -> str:
    return f"{max(0, math.floor(100 * share + 1e-9))} of 100"


def elsewhere(prospect: Prospect, answers: Answers, idealised: Mapping[str, Any] | None) -> str:
    """Return the answers of other pages, and the cost of each step of a release."""
    share = f"{answers.survive}%"
    sentence = None if idealised is None else least_words(idealised, share)
    steps = prospect.steps(answers.recovery)
    return " ".join(line for line in (f"{sentence}." if sentence else "", steps) if line)


# Inputs of a decision -----------------------------------------------------------------------------


def schema_of(
    table: TableInput, settings: Settings, name: str = "the table", **more: Any
) -> Schema:
    """Return a draft schema of a table, without excluded columns and with the person defined.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    settings : Settings
        Settings with levels, leave_out, rows_a_person and person.
    name : str
        Name of the table, for messages.
    **more
        Argument of `dpviz.releasing.drafting.draft`.
    """
    result = draft(table, name, levels=levels_in(settings.levels), **more)
    out = {*(left_out_in(settings.leave_out) or ()), settings.label, settings.person}
    columns = tuple(replace(one, use=one.use and one.name not in out) for one in result.columns)
    result = replace(result, columns=columns) if sum(one.use for one in columns) > 1 else result
    return replace(result, rows_a_person=settings.rows_a_person, person=settings.person or "")


def prospect_of(
    name: str, table: TableInput | Measured, schema: Schema | None, settings: Settings,
    answers: Answers, delta: float,
) -> Prospect:  # fmt: skip
    """Return the prospect of a table or a plan: how much releases would keep.

    Parameters
    ----------
    name : str
    table : Table, Path, bytes-like or binary file, or Measured
        The prepared table or plan; a plan has a spectrum and no rows.
    schema : Schema or None
        Schema of the table; None for a plan.
    settings : Settings
        Settings that give k and the neighbouring relation.
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
        unit = replace(rows.schema, rows_a_person=settings.rows_a_person)
        return Prospect(name, replace(rows, schema=unit), options, planned=True)
    assert schema is not None  # A table with rows always has a schema.
    return Prospect(name, SchemaRows.of(table, schema), options)


def answer(prospect: Prospect, answers: Answers, settings: Settings) -> Decision:
    """Return the decision that follows from a prospect of releases."""
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
        Schema for reading the rows; by default a draft schema of the source.
    settings : Settings
    answers : Answers
    """
    if schema is None and not isinstance(source, Measured):
        schema = schema_of(source, settings)
    delta = prepared.budget(settings).delta
    prospect = prospect_of(prepared.name, source, schema, settings, answers, delta)
    idealised = least_epsilons(prepared, settings, answers.recovery)
    return replace(answer(prospect, answers, settings), idealised=idealised)


@asks("decide what can be published safely; decide least: the least epsilon for any measure",
      DecideOptions, Settings)  # fmt: skip
def decide(
    table: Any = "digits",
    *,
    schema: str | PathLike[str] | Schema | None = None,
    **options: Any,
) -> Decision:
    """Decide what can be published safely: the least sufficient epsilon, and its risk.

    Parameters
    ----------
    table
        A table as in `compare`; a plan if there are no data yet.
    schema : path or Schema, optional
        How a release reads the table, with limits that were known before anybody saw the data.
    **options
        ``hand_out``: what is published; ``survive``: the percentage of the structure that must be
        kept; ``ceiling``: how many times in 100 a suspicion of 1 in 100 may be right afterwards;
        ``delta_allowed``; other options as in `compare`. Of these, k, relation, delta, excluded
        columns and the definition of a person are used. Epsilon, mechanisms and trials are not
        used, because a release has its own pipeline, and epsilon is the answer.

    Returns
    -------
    Decision
        ``table()`` has structure kept and risk by epsilon; ``figure()`` plots them; ``html()`` is
        the plan to print; ``to_json()`` writes the bytes of ``dpviz decide --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        For the reasons listed in `compare`.

    See Also
    --------
    least : The same rule for any metric and mechanism, with a confidence.

    Notes
    -----
    The answer estimates the least epsilon at which 95 of 100 simulated releases keep enough, for
    the pipeline that `release` runs. ``idealised`` has the least epsilons by the same rule for the
    preparation of `compare`, as other pages show them. All numbers are computed from the rows and
    are internal.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.decide("plan:n=1e5,spectrum=0.3,0.1,0.01", k=1, hand_out="directions")
    >>> found.verdict
    'yes'
    >>> found.epsilon < found.most
    True
    """
    # The stakeholder's answers are options but not settings, so separate the two here.
    own = {name: options.pop(name) for name in params_of(DecideOptions) if name in options}
    prepared, settings = ready(table, options)
    answers = Answers(source="table" if prepared.has_rows else "plan", **own)
    # Raise an error now if k does not fit the table.
    prepared.problem(settings)
    source: TableInput | Measured = prepared
    if isinstance(prepared, Prepared):
        is_name = isinstance(table, (str, PathLike))
        source = table_input(fspath(table), settings.sheet) if is_name else prepared.table
    if schema is not None and not isinstance(schema, Schema):
        schema = Schema.read(Path(fspath(schema)))
    return decision_of(prepared, source, schema, settings, answers)
