"""Trade-offs: any measure along any axis, targets, and plans without a table."""

PAGE = {
    "title": "Trade-offs",
    "icon": ":material/show_chart:",
    "place": 30,
}

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dpviz.core.files import csv_text
from dpviz.core.metrics import METRICS, offered
from dpviz.core.number_text import numeral, parseable, towards
from dpviz.core.settings import AS_RELEASED, FREE
from dpviz.datasets import builtin_tables
from dpviz.mechanisms import Mechanism, parse_variant, parse_variants
from dpviz.preparation.bounding import BoundedTable
from dpviz.report.figures.theme import panels_unjudged
from dpviz.report.figures.tradeoff import tradeoff_figure, with_ranges
from dpviz.report.sentences import tradeoffs as tradeoffs_words
from dpviz.report.sentences.phrases import FAILS_THERE, bias_note
from dpviz.report.tables import curves
from dpviz.report.tables.curves import CurvePoint
from dpviz.simulation import axes
from dpviz.simulation.axes import AXES
from dpviz.simulation.compare import WHY_THE_BASIS
from dpviz.simulation.least import Predicted
from dpviz.studies.curves import limit_table, scaling_table
from pages.ui import (
    board,
    controls,
    highlight,
    looks,
    parts,
    planning,
    shell,
    state,
    table_cache,
    targets,
)
from pages.ui import curves as asked_curves
from pages.ui.ask import Paced
from pages.ui.guard import guard
from pages.ui.loading import Current
from pages.ui.texts import plain

current = shell.through_entry()

LOGARITHMIC = ("epsilon", "delta", "n")


@dataclass(frozen=True)
class Choices:
    """What is plotted against what."""

    axis: str
    metric: str
    other: str
    log_x: bool
    log_y: bool
    draws: bool
    theory: bool


def choices(*, picture: bool) -> Choices:
    """Draw the controls of the chart, with the measures of a picture where one is paid for."""
    with asked.container(key="tradeoffs-asked"):
        first, second, third = st.columns([2, 2, 1], vertical_alignment="bottom")
    axis = parts.choice(first, "Along", AXES, "tradeoffs.axis", lambda name: AXES[name].label)
    metric = parts.choice(
        second, "Measure", offered(picture=picture), "tradeoffs.metric",
        lambda key: METRICS[key].label.capitalize(),
        help=METRICS[st.session_state.get("tradeoffs.metric", next(iter(METRICS)))].help,
    )  # fmt: skip
    more = "A second table, axes, draws and theory"
    with third, st.popover("More", width="stretch", help=more):
        other = parts.choice(
            st, "Compare with a second table", ["", *builtin_tables()], "tradeoffs.other",
            lambda key: builtin_tables()[key].label if key else "none",
        )  # fmt: skip
        log_x = st.toggle(
            "Logarithmic axis",
            value=axis in LOGARITHMIC,
            key=f"tradeoffs.log_x.{axis}",
            persist_state="session",
        )
        log_y = st.toggle("Logarithmic measure", key="tradeoffs.log_y", persist_state="session")
        draws = st.toggle(
            "Single draws",
            key="tradeoffs.draws",
            persist_state="session",
            help=f"The first {curves.SINGLE_DRAWS} draws as thin lines: each keeps its own noise "
            "along the axis.",
        )
        controls.setting("post", place="tradeoffs.")
        theory = st.toggle(
            "Theory and predictions",
            key="tradeoffs.theory",
            persist_state="session",
            help="The prediction without draws, what a random subspace and exact PCA reach, where "
            "components appear, the Davis-Kahan bound on distances, and orders of growth.",
        )
    return Choices(axis, metric, other, log_x, log_y, draws, theory)


_LAYERS = """<style>
.st-key-curve { display: grid !important; grid-template-columns: 100%; min-height: 560px; }
.st-key-curve > * { grid-area: 1 / 1; width: 100% !important; min-width: 0; }
.st-key-curve [data-testid="stSkeleton"] { display: none; }
@media (max-width: 640px) { /* on a phone the picture begins on the first screen */
  .st-key-tradeoffs-asked [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; gap: .5rem; }
  .st-key-tradeoffs-asked [data-testid="stColumn"] { min-width: 0; flex: 2 1 0; }
  .st-key-tradeoffs-asked [data-testid="stColumn"]:last-child { flex: 0 0 5rem; }
}
</style>"""
# A chart that replaces another mounts anew: two layers are drawn in turn, the chart at the end
# lies over both. Below them stands a picture without a script until Plotly has drawn: its code
# alone takes a browser that has never been here a second and more.


class Chart:
    """The chart: what is known without a draw at once, then each mechanism's draws.

    Parameters
    ----------
    rows : BoundedTable
    mechanisms : sequence of Mechanism
    chosen : Choices
    """

    def __init__(
        self, rows: BoundedTable, mechanisms: Sequence[Mechanism], chosen: Choices
    ) -> None:
        self.rows = rows
        self.mechanisms = asked_curves.coloured_first(mechanisms)
        self.chosen = chosen
        self.settings = current.settings
        self.values = axes.default_values(self.chosen.axis, rows, axes.FINE)
        st.html(_LAYERS + looks.names_left_out("curve", now=True))
        with st.container(key="curve"):
            self.layers = [st.empty(), st.empty()]
            self.place = st.empty()
        self.words = st.empty()
        self.below = st.container()
        self.theory: dict[str, pd.DataFrame | None] = {}
        self.panels = panels_unjudged(self.mechanisms)
        self._stages = 0
        # One pace for the whole way: a chart costs the browser more than what is waited for where
        # draws are quick.
        self._show = Paced(self.interim)

    @cached_property
    def whole(self) -> bool:
        """Whether nothing is left to be drawn."""
        return asked_curves.whole(current, self.mechanisms, self.chosen.axis, self.chosen.metric)

    def predict(self, *, shown: bool) -> None:
        """Draw limits at once, and predictions as they come.

        Parameters
        ----------
        shown : bool
            Whether to draw them, or only to know them.
        """
        chosen, rows, settings = self.chosen, self.rows, self.settings

        def seen(table: pd.DataFrame) -> None:
            if shown:
                self.theory["predicted"] = table
                self._show([])

        if chosen.theory:
            known = (rows, settings, chosen.axis, self.values, chosen.metric)
            self.theory["limits"] = limit_table(*known)
            self.theory["scalings"] = scaling_table(*known)
        if shown:
            self._show([])
        if chosen.theory or shown:  # what is dotted stands in for what is not drawn yet
            with self.below:  # where progress is told
                self.theory["predicted"] = asked_curves.predicted(
                    current, self.mechanisms, chosen.axis, chosen.metric, seen
                )
        problem, budget = rows.problem(settings), rows.budget(settings)
        self.panels = asked_curves.judged(self.mechanisms, problem, budget)
        if shown:
            self._show([])

    def measure(self) -> None:
        """Draw releases, and what can be taken along."""
        with self.below:  # where progress is told
            points, skipped = self._released()
            second = second_table(self.chosen) if self.chosen.other else None
            if self.chosen.theory and self.chosen.axis == "epsilon":
                if not self.whole:
                    self._show(points)
                self.theory["marks"] = asked_curves.marks(current, self.mechanisms)
        if not self.chosen.theory:
            self.theory.clear()
        bands = curves.band_table(points, self.chosen.metric)
        figure, told = self.figure(points, bands, second), self.caption(bands)
        with self.place:
            st.plotly_chart(
                figure,
                key="tradeoffs",
                on_select=clicked,
                selection_mode="points",
                alt=f"{METRICS[self.chosen.metric].label} along {self.chosen.axis}. {told}",
            )
        with self.words.container():
            open_there = "" if self.chosen.axis == "n" else " Click a point to open it in Explore."
            st.caption(f"{told}{open_there}")
            with st.popover("How to read this chart", icon=":material/info:"):
                st.markdown(legend(self.chosen, curves.bound_table(points, self.chosen.metric)))
        with self.below:
            self._take_along(bands, skipped, figure)
        for layer in self.layers:
            layer.empty()

    def _released(self) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
        """Return every point, with all that is drawn on the way there shown."""
        axis, metric = self.chosen.axis, self.chosen.metric
        show = id if self.whole else self._show
        return asked_curves.drawn(current, self.mechanisms, axis, axes.FINE, metric, show)

    def interim(self, points: list[CurvePoint]) -> None:
        """Draw what there is so far; it cannot be clicked."""
        # The layer below is painted by now: a chart that mounts on it never leaves a hole.
        self._stages += 1
        layer = self.layers[self._stages % 2]
        layer.empty()
        bands = curves.band_table(points, self.chosen.metric)
        with layer:
            st.plotly_chart(
                self.figure(points, bands, None),
                key=f"tradeoffs.stage.{self._stages}",
                alt=f"{METRICS[self.chosen.metric].label} along {self.chosen.axis}, so far",
            )
        with self.words:
            st.caption(
                self.caption(bands)
                if points
                else f"Dotted: predicted without a draw{bias_note(self.rows.d)}. "
                "Releases are drawn next."
            )

    def caption(self, bands: pd.DataFrame) -> str:
        """Return the one sentence beside the chart."""
        axis, metric = self.chosen.axis, self.chosen.metric
        best = curves.frontier(bands, metric)
        return tradeoffs_words.curve_caption(bands, best, axis, metric, self.mechanisms)

    def figure(
        self, points: list[CurvePoint], bands: pd.DataFrame, second: pd.DataFrame | None
    ) -> go.Figure:
        """Return the chart of these points and of what is known without them."""
        axis, metric, chosen = self.chosen.axis, self.chosen.metric, self.chosen
        return tradeoff_figure(
            bands,
            self.panels,
            x_title=AXES[axis].label,
            y_title=METRICS[metric].label,
            shares=METRICS[metric].share,
            log_x=chosen.log_x,
            log_y=chosen.log_y,
            now=axes.now(self.rows, self.settings, axis),
            best=curves.frontier(bands, metric),
            draws=curves.draw_table(points, metric) if chosen.draws else None,
            bound=curves.bound_table(points, metric) if chosen.theory else None,
            other=second,
            other_name=chosen.other,
            before=self.before(points),
            beyond=self.rows.n if axis == "n" else float("inf"),
            pointed=True,
            **self.theory,
        )

    def before(self, points: list[CurvePoint]) -> pd.DataFrame | None:
        """Return the bands of the same releases without post-processing, where that is drawn."""
        if self.settings.post == AS_RELEASED:
            return None
        return curves.band_table([point.as_released() for point in points], self.chosen.metric)

    def _take_along(
        self, bands: pd.DataFrame, skipped: list[tuple[str, str]], figure: go.Figure
    ) -> None:
        axis, metric = self.chosen.axis, self.chosen.metric
        if axis == "row_bound" and metric in ("recovery", "captured_share"):
            st.info(
                tradeoffs_words.row_bound_caption(bands, self.mechanisms),
                icon=":material/lightbulb:",
            )
        for name, reason in skipped:
            st.caption(f"Not everywhere: {parse_variant(name).label}, because {reason}.")
        parts.numbers("curve", bands)
        take_away(axis, [str(value) for value in self.values], bands, figure)


def second_table(chosen: Choices) -> pd.DataFrame | None:
    """Return the bands of the second table, or say why it has none."""
    found: list[CurvePoint] = []
    with guard():
        second = table_cache.builtin(chosen.other)
        table, key = table_cache.prepared(chosen.other, second, current.settings)
        mechanisms = parse_variants(current.settings.mechanisms)
        about = Current(current.settings, table, key, None)
        found, _ = asked_curves.drawn(about, mechanisms, chosen.axis, axes.COARSE, chosen.metric)
    return curves.band_table(found, chosen.metric)


def legend(chosen: Choices, bound: pd.DataFrame) -> str:
    """Return how to read the chart, with only what is in it."""
    said = [
        "Under the pointer: the central 95 % of the draws.",
        "Rings: the best whose claim holds.",
        FAILS_THERE,
    ]
    if chosen.theory and chosen.axis == "epsilon":
        said.append(
            "Triangles: from there on a component is predicted to be turned by less than 45 "
            f"degrees{bias_note(current.prepared.d if current.prepared else 10)}."
        )
    if chosen.theory and chosen.metric in ("projection_distance", "largest_angle"):
        where = "which is nowhere so here" if bound.empty else "and is drawn only there"
        said.append(f"The Davis-Kahan bound asks for an eigengap of twice the noise, {where}.")
    if chosen.theory and chosen.metric in ("low_rank_error", "noise_spectral"):
        said.append("Scaling only: compare the slope, for the constant is not known.")
    if current.settings.post == FREE:
        said.append(f"Thin with crosses: as released, at the same epsilon. {WHY_THE_BASIS}")
    if chosen.axis == "n":
        said.append("Dashed from the table's n on: the same population, more people.")
        said.append("n belongs to the table, so a click changes nothing here.")
    return " ".join(said)


def clicked() -> None:
    """Remember the point that was clicked, so that Explore opens there."""
    axis = st.session_state["tradeoffs.axis"]
    picked = st.session_state["tradeoffs"].selection.points
    if not picked or axis == "n":
        return
    x = picked[0]["x"]
    value = parseable(x, 6) if axis == "row_bound" else (round(x) if axis == "k" else x)
    state.put(axis, value)
    st.session_state["tradeoffs.open"] = True


def take_away(axis: str, values: list[str], bands: pd.DataFrame, figure: go.Figure) -> None:
    """Draw what can be taken along: table, figure, command."""
    left, right = st.columns(2)
    curve, name = (lambda: csv_text(bands)), "dpviz-curve.csv"
    parts.download("This curve (CSV)", curve, name, "tradeoffs.csv", place=left)
    whole = (lambda: with_ranges(figure)), "dpviz-curve.html", "tradeoffs.html"
    parts.figure_file(*whole, place=right)
    more = ["--over", axis, "--values", ",".join(values), "--out", "sweep.csv"]
    parts.command(current.settings, verb="sweep", more=more)


def go_on(found: Sequence[Predicted]) -> None:
    """Draw which mechanism needs least, and the step to the epsilon that is enough."""
    best = tradeoffs_words.best_of(found)
    if best is None:
        parts.lead(tradeoffs_words.least_lead(found), "Follow a line to see what it keeps.")
        return
    enough = towards(best.least, 2, 1)
    said = tradeoffs_words.least_lead(found)
    if state.get("epsilon") == enough:
        parts.lead(said, "See it on Explore", to=shell.page("Explore"))
    else:
        act = state.on_change(lambda: state.put("epsilon", enough))
        parts.lead(said, f"Set epsilon to {numeral(enough, 3)}", act)


heading, lead = st.empty(), st.container()
heading.title("How much accuracy does each epsilon leave?", anchor=False)
asked = st.container()
if st.session_state.pop("tradeoffs.open", False):
    st.switch_page(shell.page("Explore"), query_params={})
chosen_mechanisms = parse_variants(current.settings.mechanisms)
chart: Chart | None = None
if current.prepared is not None:
    with guard():
        chosen = choices(picture=current.settings.picture > 0)
        along = chosen.metric == "recovery" and chosen.axis != "k"
        alike = tradeoffs_words.all_alike(current.prepared, current.settings.k)
        if along and alike:
            st.info(
                f"There is nothing to recover: {alike}. Choose fewer components, or another "
                "measure.",
                icon=":material/info:",
            )
        else:
            chart = Chart(current.prepared, chosen_mechanisms, chosen)
            chart.predict(shown=not chart.whole)
            if chart.whole:  # nothing on the way need be shown
                chart.measure()
                chart = None
    with guard():
        answer, least = targets.section(current, chosen_mechanisms)
        if least:
            heading.title(answer, anchor=False)
        with lead:
            go_on(least)
            of_all = st.empty()

        def follow() -> None:
            """Say of all mechanisms what Explore says."""
            about = current.data_key, current.prepared, current.settings
            goal = targets.goal_in_force(current.prepared, current.settings.k)
            if goal.recovery is not None and (said := board.least(*about, goal.recovery)):
                of_all.caption(f"{plain(said)}.")

        if least:
            shell.follow(follow)
with guard():
    planning.section(current.settings, chosen_mechanisms, shown=current.prepared is None)
highlight.watch()
with guard():
    if chart is not None:  # last, so that the page stands while releases are drawn
        chart.measure()
