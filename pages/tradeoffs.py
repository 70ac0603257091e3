"""Trade-offs: any measure along any axis, targets, and plans without a table."""

PAGE = {
    "title": "Trade-offs",
    "icon": ":material/show_chart:",
    "place": 30,
    "about": "Each line is one mechanism and shows the mean of many simulated releases. Choose "
    "what varies, such as epsilon or the number of people, and what is measured. Click a point to "
    "open it in Explore. Below, find the smallest epsilon for a goal, or plan before you have "
    "data.",
}

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

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
from dpviz.report.figures.tradeoff import HEIGHT, line_key, tradeoff_figure, with_ranges
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
    """Axis, measure and options of the chart."""

    axis: str
    metric: str
    other: str
    log_x: bool
    log_y: bool
    draws: bool
    theory: bool


def choices(*, picture: bool) -> Choices:
    """Draw the chart's controls, with measures of a published map if the budget covers a map."""
    with head_place.container(key="tradeoffs-asked"):
        first, second, third = st.columns([2, 2, 1], vertical_alignment="bottom")
    axis = parts.choice(first, "Along", AXES, "tradeoffs.axis", lambda name: AXES[name].label)
    metric = parts.choice(
        second, "Measure", offered(picture=picture), "tradeoffs.metric",
        lambda key: METRICS[key].label.capitalize(),
        help=METRICS[st.session_state.get("tradeoffs.metric", next(iter(METRICS)))].help,
    )  # fmt: skip
    more = "Second table, scale of the axes, single releases, theory"
    with third, st.popover("More", width="stretch", help=more):
        other = parts.choice(
            st, "Compare with a second table", ["", *builtin_tables()], "tradeoffs.other",
            lambda key: builtin_tables()[key].label if key else "none",
        )  # fmt: skip
        toggle = partial(st.toggle, persist_state="session")
        key, is_log = f"tradeoffs.log_x.{axis}", axis in LOGARITHMIC
        log_x = toggle("Logarithmic axis", value=is_log, key=key)
        log_y = toggle("Logarithmic measure", key="tradeoffs.log_y")
        draws = toggle(
            "Single releases", key="tradeoffs.draws",
            help=f"Show the first {curves.SINGLE_DRAWS} simulated releases as thin lines. Each "
            "thin line uses the same random numbers along the axis.",
        )  # fmt: skip
        controls.setting("post", place="tradeoffs.")
        theory = toggle(
            "Theory and predictions", key="tradeoffs.theory",
            help="Show predicted curves, the values of a random subspace and of exact PCA, and the "
            "epsilon from which components appear. For distances, also show the Davis-Kahan bound "
            "and orders of growth.",
        )  # fmt: skip
    return Choices(axis, metric, other, log_x, log_y, draws, theory)


_LAYERS = """<style>
.st-key-curve { display: grid !important; grid-template: 100% / 100%; overflow: hidden; }
.st-key-curve > * { grid-area: 1 / 1; width: 100% !important; height: 100%; min-width: 0; }
.st-key-curve [data-testid="stSkeleton"] { display: none; }
@media (max-width: 640px) { /* on a phone the picture is on the first screen */
  div:has(> .st-key-curve) { flex-basis: 360px !important; height: auto !important; }
  .st-key-tradeoffs-asked [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; gap: .5rem; }
  .st-key-tradeoffs-asked [data-testid="stColumn"] { min-width: 0; flex: 2 1 0; }
  .st-key-tradeoffs-asked [data-testid="stColumn"]:last-child { flex: 0 0 5rem; }
}
</style>"""
# Streamlit mounts a chart again if it replaces another chart. So two layers are drawn alternately,
# and the last chart lies over both. Below them is an image without a script until Plotly has drawn,
# because loading Plotly takes a new browser a second or more.


class Chart:
    """The chart, first with facts known without simulation, then with releases.

    Parameters
    ----------
    rows : BoundedTable
    mechanisms : sequence of Mechanism
    chosen : Choices
    """

    def __init__(
        self, rows: BoundedTable, mechanisms: Sequence[Mechanism], choice: Choices
    ) -> None:
        self.rows, self.chosen, self.settings = rows, choice, current.settings
        self.mechanisms = asked_curves.coloured_first(mechanisms)
        values = axes.default_values(choice.axis, rows, axes.FINE)
        self.values = [x for x in values if asked_curves.shown(self.settings, choice.axis, x)]
        st.html(_LAYERS + looks.names_left_out("curve", now=True))
        with st.container(key="curve", height=HEIGHT, border=False):
            self.layers = [st.empty(), st.empty()]
            self.place = st.empty()
        self.key = st.empty()
        self.words = st.empty()
        self.below = st.container()
        self.theory: dict[str, pd.DataFrame | None] = {}
        self.panels = panels_unjudged(self.mechanisms)
        self._stages = 0
        # Space all interim charts evenly, because after quick simulations drawing takes the browser
        # longer than the wait for releases.
        self._show = Paced(self.interim)

    @cached_property
    def whole(self) -> bool:
        """Whether all curves are known, so that nothing needs simulation."""
        return asked_curves.whole(current, self.mechanisms, self.chosen.axis, self.chosen.metric)

    def predict(self, *, shown: bool) -> None:
        """Draw limits at once, and predictions as they arrive.

        Parameters
        ----------
        shown : bool
            Whether to draw limits and predictions, or only to compute them.
        """
        choice, rows, settings = self.chosen, self.rows, self.settings

        def seen(table: pd.DataFrame) -> None:
            if shown:
                self.theory["predicted"] = table
                self._show([])

        if choice.theory:
            about_lines = (rows, settings, choice.axis, self.values, choice.metric)
            self.theory["limits"] = limit_table(*about_lines)
            self.theory["scalings"] = scaling_table(*about_lines)
        if shown:
            self._show([])
        if choice.theory or shown:  # Dotted predictions replace missing lines.
            with self.below:  # The progress line appears in this place.
                self.theory["predicted"] = asked_curves.predicted(
                    current, self.mechanisms, choice.axis, choice.metric, seen
                )
        problem, budget = rows.problem(settings), rows.budget(settings)
        self.panels = asked_curves.judged(self.mechanisms, problem, budget)
        if shown:
            self._show([])

    def measure(self) -> None:
        """Draw releases and their downloads."""
        with self.below:  # The progress line appears in this place.
            points, skipped = self._points()
            second = second_table(self.chosen) if self.chosen.other else None
            if self.chosen.theory and self.chosen.axis == "epsilon":
                if not self.whole:
                    self._show(points)
                self.theory["marks"] = asked_curves.marks(current, self.mechanisms)
        if not self.chosen.theory:
            self.theory.clear()
        bands = curves.band_table(points, self.chosen.metric)
        figure, text = self.figure(points, bands, second), self.caption(bands)
        with self.place:
            parts.plot(
                figure, key="tradeoffs", height="stretch", on_select=clicked,
                selection_mode="points",
                alt=f"{METRICS[self.chosen.metric].label} along {self.chosen.axis}. {text}",
            )  # fmt: skip
        with self.words.container():
            open_there = "" if self.chosen.axis == "n" else " Click a point to open it in Explore."
            st.caption(f"{text}{open_there}")
            with st.popover("How to read this chart", icon=":material/info:"):
                st.markdown(legend(self.chosen, curves.bound_table(points, self.chosen.metric)))
        with self.below:
            self._take_along(bands, skipped, figure)
        for layer in self.layers:
            layer.empty()

    def _points(self) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
        """Return every point, and draw interim charts meanwhile."""
        axis, metric = self.chosen.axis, self.chosen.metric
        show = id if self.whole else self._show
        return asked_curves.drawn(current, self.mechanisms, axis, axes.FINE, metric, show)

    def interim(self, points: list[CurvePoint]) -> None:
        """Draw an interim chart, on which clicks have no effect."""
        # By now the browser has drawn the other layer, so a new chart never leaves an empty area.
        self._stages += 1
        layer = self.layers[self._stages % 2]
        layer.empty()
        bands = curves.band_table(points, self.chosen.metric)
        with layer:
            parts.plot(
                self.figure(points, bands, None), key=f"tradeoffs.stage.{self._stages}",
                height="stretch",
                alt=f"{METRICS[self.chosen.metric].label} along {self.chosen.axis}, so far",
            )  # fmt: skip
        with self.words:
            st.caption(
                self.caption(bands)
                if points
                else f"Dotted lines are predicted analytically{bias_note(self.rows.d)}. Simulated "
                "releases follow."
            )

    def caption(self, bands: pd.DataFrame) -> str:
        """Return the sentence beside the chart."""
        axis, metric = self.chosen.axis, self.chosen.metric
        best = curves.frontier(bands, metric)
        return tradeoffs_words.curve_caption(bands, best, axis, metric, self.mechanisms)

    def figure(
        self, points: list[CurvePoint], bands: pd.DataFrame, second: pd.DataFrame | None
    ) -> go.Figure:
        """Return the chart of the given points and of facts known without them."""
        axis, metric, choice = self.chosen.axis, self.chosen.metric, self.chosen
        self.key.html(line_key(self.panels))
        return tradeoff_figure(
            bands,
            self.panels,
            x_title=AXES[axis].label,
            y_title=METRICS[metric].label,
            shares=METRICS[metric].share,
            log_x=choice.log_x,
            log_y=choice.log_y,
            now=axes.now(self.rows, self.settings, axis),
            best=curves.frontier(bands, metric),
            draws=curves.draw_table(points, metric) if choice.draws else None,
            bound=curves.bound_table(points, metric) if choice.theory else None,
            other=second,
            other_name=choice.other,
            before=self.before(points),
            beyond=self.rows.n if axis == "n" else float("inf"),
            pointed=True,
            **self.theory,
        )

    def before(self, points: list[CurvePoint]) -> pd.DataFrame | None:
        """Return the bands of the same releases without post-processing, if shown."""
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
            st.caption(f"Not run at every value: {parse_variant(name).label}, because {reason}.")
        parts.numbers("curve", bands)
        take_away(axis, [str(value) for value in self.values], bands, figure)


def second_table(choice: Choices) -> pd.DataFrame | None:
    """Return the bands of the second table, or state why it has none."""
    points: list[CurvePoint] = []
    with guard():
        second = table_cache.builtin(choice.other)
        table, key = table_cache.prepared(choice.other, second, current.settings)
        mechanisms = parse_variants(current.settings.mechanisms)
        about = Current(current.settings, table, key, None)
        points, _ = asked_curves.drawn(about, mechanisms, choice.axis, axes.COARSE, choice.metric)
    return curves.band_table(points, choice.metric)


def legend(choice: Choices, bound: pd.DataFrame) -> str:
    """Return how to read the chart, limited to the elements that it contains."""
    parts = [
        "Point at a line to see the range of the central 95 % of simulated releases.",
        "Rings mark the best mechanism whose claim holds.",
        FAILS_THERE,
    ]
    if choice.theory and choice.axis == "epsilon":
        parts.append(
            "A triangle marks the epsilon from which a component is predicted to turn by less than "
            f"45 degrees{bias_note(current.prepared.d if current.prepared else 10)}."
        )
    if choice.theory and choice.metric in ("projection_distance", "largest_angle"):
        where = "which no point here has" if bound.empty else "so it is drawn only at such points"
        parts.append(f"The Davis-Kahan bound needs an eigengap of twice the noise, {where}.")
    if choice.theory and choice.metric in ("low_rank_error", "noise_spectral"):
        parts.append("Compare only slopes of orders of growth: their constants are not known.")
    if current.settings.post == FREE:
        parts.append(f"Thin lines with crosses: without post-processing. {WHY_THE_BASIS}")
    if choice.axis == "n":
        parts.append("The dashed part shows larger tables with more people of the same population.")
        parts.append("The number n belongs to the table, so a click on a point changes nothing.")
    return " ".join(parts)


def clicked() -> None:
    """Remember the clicked point, so that Explore opens with its setting."""
    axis = st.session_state["tradeoffs.axis"]
    points = st.session_state["tradeoffs"].selection.points
    if not points or axis == "n":
        return
    x = points[0]["x"]
    value = parseable(x, 6) if axis == "row_bound" else (round(x) if axis == "k" else x)
    state.put(axis, value)
    st.session_state["tradeoffs.open"] = True


def take_away(axis: str, values: list[str], bands: pd.DataFrame, figure: go.Figure) -> None:
    """Draw the downloads: table, figure, command."""
    left, right = st.columns(2)
    curve, name = (lambda: csv_text(bands)), "dpviz-curve.csv"
    parts.download("This curve (CSV)", curve, name, "tradeoffs.csv", place=left)
    whole = (lambda: with_ranges(figure)), "dpviz-curve.html", "tradeoffs.html"
    parts.figure_file(*whole, place=right)
    more = ["--over", axis, "--values", ",".join(values), "--out", "sweep.csv"]
    parts.command(current.settings, verb="sweep", more=more)


def go_on(predictions: Sequence[Predicted]) -> None:
    """Draw which mechanism needs least, and the button that sets the sufficient epsilon."""
    best = tradeoffs_words.best_of(predictions)
    if best is None:
        parts.lead(tradeoffs_words.least_lead(predictions), "Follow one mechanism's line.")
        return
    enough = towards(best.least, 2, 1)
    text = tradeoffs_words.least_lead(predictions)
    if state.get("epsilon") == enough:
        parts.lead(text, "See this epsilon on Explore", to=shell.page("Explore"))
    else:
        act = state.on_change(lambda: state.put("epsilon", enough))
        parts.lead(text, f"Set epsilon to {numeral(enough, 3)}", act)


heading, lead = st.empty(), st.container()
heading.title("How much accuracy does each epsilon leave?", anchor=False)
head_place = st.container()
if st.session_state.pop("tradeoffs.open", False):
    st.switch_page(shell.page("Explore"), query_params={})
chosen_mechanisms = parse_variants(current.settings.mechanisms)
chart: Chart | None = None
if current.prepared is not None:
    with guard():
        choice = choices(picture=current.settings.picture > 0)
        along = choice.metric == "recovery" and choice.axis != "k"
        alike = tradeoffs_words.all_alike(current.prepared, current.settings.k)
        if along and alike:
            st.info(
                f"There is nothing to recover: {alike}. Choose fewer components or another "
                "measure.",
                icon=":material/info:",
            )
        else:
            chart = Chart(current.prepared, chosen_mechanisms, choice)
            chart.predict(shown=not chart.whole)
            if chart.whole:  # The curves are complete, so draw no interim charts.
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
            """Report the least epsilon of all mechanisms, as Explore does."""
            about = current.data_key, current.prepared, current.settings
            goal = targets.goal_in_force(current.prepared, current.settings.k)
            if goal.recovery is not None and (sentence := board.least(*about, goal.recovery)):
                of_all.caption(f"{plain(sentence)}.")

        if least:
            shell.follow(follow)
with guard():
    planning.section(current.settings, chosen_mechanisms, shown=current.prepared is None)
highlight.watch()
with guard():
    if chart is not None:  # Draw this last, so that the page is complete meanwhile.
        chart.measure()
