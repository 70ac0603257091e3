"""Trade-offs: any measure along any axis, targets, and plans without a table."""

from dataclasses import dataclass, replace

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dpviz.datasets import builtin_tables
from dpviz.figures.theme import panels_of
from dpviz.figures.tradeoff import tradeoff_figure
from dpviz.mechanisms import Mechanism, parse_variants
from dpviz.metrics import METRICS
from dpviz.narrative import tradeoffs as tradeoffs_words
from dpviz.narrative.phrases import bias_note
from dpviz.prepare.bounding import BoundedRows
from dpviz.run import axes
from dpviz.run.axes import AXES
from dpviz.theory import needs as stated
from dpviz.tidy import curves
from dpviz.tidy.curves import CurvePoint
from pages.ui import cached, parts, planning, shell, state, targets
from pages.ui.guard import guard

current = shell.through_entry()

LOGARITHMIC = ("epsilon", "delta", "n")
DONE = "tradeoffs_done"  # curves whose every cell has been drawn in this session
FIRST_DRAWS = 5
RHO, ETA = 0.9, 0.05


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


def choices() -> Choices:
    """Draw the controls of the chart."""
    first, second, third = st.columns(3)
    axis = first.selectbox(
        "Along",
        list(AXES),
        format_func=lambda name: AXES[name].label,
        key="tradeoffs.axis",
        persist_state="session",
    )
    metric = second.selectbox(
        "Measure",
        list(METRICS),
        format_func=lambda key: METRICS[key].label.capitalize(),
        key="tradeoffs.metric",
        persist_state="session",
        help=METRICS[st.session_state.get("tradeoffs.metric", "captured_share")].help,
    )
    other = third.selectbox(
        "Compare with a second table",
        ["", *builtin_tables()],
        format_func=lambda key: builtin_tables()[key].label if key else "none",
        key="tradeoffs.other",
        persist_state="session",
    )
    with st.container(horizontal=True):
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
        theory = st.toggle(
            "Theory",
            value=True,
            key="tradeoffs.theory",
            persist_state="session",
            help="The prediction without draws, what a random subspace and exact PCA reach, where "
            "components appear, the Davis-Kahan bound on distances, and orders of growth.",
        )
    return Choices(axis, metric, other, log_x, log_y, draws, theory)


def draw(rows: BoundedRows, mechanisms: list[Mechanism]) -> None:
    """Draw the prediction at once, then few draws, then all, while the reader looks."""
    chosen = choices()
    axis, metric, settings = chosen.axis, chosen.metric, current.settings
    panels = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
    place, words = st.empty(), st.empty()
    values = axes.default_values(axis, rows, axes.FINE)
    shared = theory_of(rows, mechanisms, chosen) if chosen.theory else {}

    def show(points: list[CurvePoint], second: pd.DataFrame | None, stage: str) -> go.Figure:
        bands = curves.band_table(points, metric)
        bound = curves.bound_table(points, metric)
        best = curves.frontier(bands, metric)
        figure = tradeoff_figure(
            bands,
            panels,
            x_title=AXES[axis].label,
            y_title=METRICS[metric].label,
            log_x=chosen.log_x,
            log_y=chosen.log_y,
            now=axes.now(rows, settings, axis),
            best=best,
            draws=curves.draw_table(points, metric) if chosen.draws else None,
            bound=bound if chosen.theory else None,
            other=second,
            other_name=chosen.other,
            beyond=rows.n if axis == "n" else float("inf"),
            **shared,
        )
        final = stage == "tradeoffs"
        caption = f"Drawing releases: dotted lines are predicted without a draw{bias_note(rows.d)}."
        if points:
            caption = tradeoffs_words.curve_caption(bands, best, axis, metric, mechanisms)
        with place:
            st.plotly_chart(
                figure,
                key=stage,
                on_select=clicked if final else "ignore",
                selection_mode="points",
                alt=f"{METRICS[metric].label} along {axis}. {caption}",
            )
        with words:
            st.caption(caption if not final else f"{caption} {legend(chosen, bound)}")
        return figure

    # Settings only decide what is drawn: another measure of the same draws costs nothing.
    drawn = repr((current.data_key, settings, axis))
    if drawn not in st.session_state.setdefault(DONE, []):
        show([], None, "tradeoffs.first")
        coarse = replace(settings, trials=min(settings.trials, FIRST_DRAWS))
        points, _ = cached.curve(current.data_key, rows, coarse, axis, axes.COARSE)
        show(points, None, "tradeoffs.coarse")
    points, skipped = cached.curve(current.data_key, rows, settings, axis, axes.FINE)
    second = second_table(chosen) if chosen.other else None
    figure = show(points, second, "tradeoffs")
    st.session_state[DONE] = [*st.session_state[DONE][-50:], drawn]
    bands = curves.band_table(points, metric)
    if axis == "row_bound" and metric == "captured_share":
        st.info(tradeoffs_words.row_bound_caption(bands, mechanisms), icon=":material/lightbulb:")
    for name, reason in skipped:
        st.caption(f"Not everywhere: {name}, because {reason}.")
    parts.numbers("curve", bands)
    take_away(axis, [str(value) for value in values], bands, figure)


def theory_of(
    rows: BoundedRows, mechanisms: list[Mechanism], chosen: Choices
) -> dict[str, pd.DataFrame | None]:
    """Return what is known without a draw."""
    axis, metric, settings = chosen.axis, chosen.metric, current.settings
    values = axes.default_values(axis, rows, axes.FINE)
    return {
        "predicted": cached.predicted(current.data_key, rows, settings, axis, metric),
        "limits": curves.known_table(rows, settings, axis, values, metric),
        "scalings": curves.scaling_table(rows, settings, axis, values, metric),
        "marks": curves.marks(rows, settings, mechanisms) if axis == "epsilon" else None,
    }


def second_table(chosen: Choices) -> pd.DataFrame | None:
    """Return the bands of the second table, or say why it has none."""
    found: list[CurvePoint] = []
    with guard():
        table, key = cached.second(chosen.other, current.settings)
        found, _ = cached.curve(key, table, current.settings, chosen.axis, axes.COARSE)
    return curves.band_table(found, chosen.metric)


def legend(chosen: Choices, bound: pd.DataFrame) -> str:
    """Return how to read the chart, with only what is in it."""
    said = [
        "Bands: central 95 % of the draws.",
        "Rings: the best whose claim holds.",
        "Dashed, open marks: the claim fails there.",
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
    if chosen.axis == "n":
        said.append("Dashed from the table's n on: the same population, more people.")
        said.append("n belongs to the table, so a click changes nothing here.")
    else:
        said.append("Click a point to open it in Explore.")
    return " ".join(said)


def clicked() -> None:
    """Remember the point that was clicked, so that Explore opens there."""
    axis = st.session_state["tradeoffs.axis"]
    picked = st.session_state["tradeoffs"].selection.points
    if not picked or axis == "n":
        return
    x = picked[0]["x"]
    value = f"{x:.6g}" if axis == "row_bound" else (round(x) if axis == "k" else x)
    state.put(axis, value)
    st.session_state["tradeoffs.open"] = True


def take_away(axis: str, values: list[str], bands: pd.DataFrame, figure: go.Figure) -> None:
    """Draw what can be taken along: table, figure, command."""
    left, right = st.columns(2)
    left.download_button(
        "This curve (CSV)",
        lambda: bands.to_csv(index=False),
        file_name="dpviz-curve.csv",
        on_click="ignore",
        key="tradeoffs.csv",
        icon=":material/download:",
    )
    right.download_button(
        "This figure (HTML)",
        lambda: figure.to_html(include_plotlyjs=True),
        file_name="dpviz-curve.html",
        on_click="ignore",
        key="tradeoffs.html",
        icon=":material/download:",
        help="One file that opens in any browser, without a network. For a picture (PNG), use the "
        "camera in the figure's corner.",
    )
    more = ["--over", axis, "--values", ",".join(values), "--out", "sweep.csv"]
    parts.command(current.settings, verb="sweep", more=more)


def stated_and_measured(rows: BoundedRows) -> None:
    """Set the papers' theorems beside what the draws show."""
    st.header("What the papers state, and what is measured", anchor="stated")
    said = stated.needs(rows, current.settings, RHO, ETA)
    measured = {}
    if st.toggle(
        "Measure the need",
        key="stated.measure",
        persist_state="session",
        help="Searches the least n by drawing releases: some seconds.",
    ):
        progress = st.empty()
        for need in said:
            if need.mechanism is None or need.mechanism.text in measured:
                continue
            progress.caption(f"Searching: {need.mechanism.label}")
            found = cached.need(current.data_key, rows, current.settings, need.mechanism, RHO, ETA)
            measured[need.mechanism.text] = found.high
        progress.empty()
    table = pd.DataFrame(
        {
            "mechanism": [n.mechanism.label if n.mechanism else "every pure one" for n in said],
            "statement": [need.statement for need in said],
            "kind": [need.kind for need in said],
            "stated": [need.people for need in said],
            "measured": [
                measured.get(need.mechanism.text) if need.mechanism else None for need in said
            ],
        }
    )
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        key="stated.needs",
        placeholder="–",
        column_config={
            "mechanism": "Mechanism",
            "statement": st.column_config.TextColumn("Statement", width="large"),
            "kind": "Kind",
            "stated": number("People stated", format="localized"),
            "measured": number("People enough, measured", format="localized"),
        },
        alt="Sample sizes that theorems state, beside the measured need",
    )
    st.caption(
        f"People needed to find the first component (k = 1) with |cosine| at least {RHO:g} in "
        f"{100 * (1 - ETA):g} % of releases, at epsilon {current.settings.epsilon:g}, for this "
        "table's spectrum. Proved: enough whatever the data, constants included. Our reading: the "
        "line is garbled in print. Scaling only: an order of growth, not a number to be met. A "
        "dash: not measured, or the theorem is silent here."
    )
    if st.toggle(
        "Measure how the noise grows with d", key="stated.growth", persist_state="session"
    ):
        st.dataframe(
            cached.growth(),
            hide_index=True,
            key="stated.exponents",
            placeholder="–",
            column_config={
                "mechanism": "Mechanism",
                "measured": number("Measured power of d", format="%.2f"),
                "error": number("Standard error", format="%.2f"),
                "exponent": number("Stated power of d", format="%.1f"),
                "stated": "As stated",
            },
            alt="Exponents of the noise's growth in d, measured and stated",
        )
        st.caption(
            "Spectral norm of the noise for d from 10 to 160, a power fitted. Stated: Jiang et "
            "al. 2016, Table 1, scaling only; logarithms hardly show over this range."
        )


st.title("Trade-offs: how much accuracy does privacy leave?", anchor=False)
if st.session_state.pop("tradeoffs.open", False):
    st.switch_page(shell.page("Explore"), query_params={})
chosen_mechanisms = parse_variants(current.settings.mechanisms)
if current.prepared is not None:
    with guard():
        draw(current.prepared, chosen_mechanisms)
    with guard():
        targets.section(current.data_key, current.prepared, current.settings, chosen_mechanisms)
    with guard():
        stated_and_measured(current.prepared)
with guard():
    planning.section(current.settings, chosen_mechanisms)
