"""Trade-offs: any measure along any axis, targets, and plans without a table."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dpviz import curves, narrative
from dpviz.datasets import builtin_tables
from dpviz.figures.theme import panels_of
from dpviz.figures.tradeoff import tradeoff_figure
from dpviz.grid import AXES
from dpviz.mechanisms import Mechanism, parse_variants
from dpviz.metrics import METRICS
from dpviz.prepare import BoundedRows
from dpviz.settings import Settings
from dpviz.targets import Goal, planned, sentence, spectrum_of
from pages.ui import cached, parts, shell, state
from pages.ui.guard import guard

current = shell.through_entry()

LOGARITHMIC = ("epsilon", "delta", "n")


def choices() -> tuple[str, str, bool, bool, str]:
    """Draw what is plotted against what; return (axis, metric, log x, log y, second table)."""
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
    left, right = st.columns(2)
    log_x = left.toggle(
        "Logarithmic axis",
        value=axis in LOGARITHMIC,
        key=f"tradeoffs.log_x.{axis}",
        persist_state="session",
    )
    log_y = right.toggle("Logarithmic measure", key="tradeoffs.log_y", persist_state="session")
    return axis, metric, log_x, log_y, other


def bands_of(
    rows: BoundedRows,
    data_key: tuple[str, ...],
    settings: Settings,
    axis: str,
    metric: str,
    count: int,
) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """Return the bands at so many values, and which variants cannot run."""
    points, skipped = cached.curve(data_key, rows, settings, axis, count)
    return curves.band_table(points, metric), skipped


def draw(rows: BoundedRows, mechanisms: list[Mechanism]) -> None:
    """Draw the curve at once and coarse, then refine it while the reader looks."""
    axis, metric, log_x, log_y, other = choices()
    settings = current.settings
    budget, problem = rows.budget(settings), rows.problem(settings)
    shown = panels_of(mechanisms, problem, budget)
    place, words = st.empty(), st.empty()
    predicted = cached.predicted(current.data_key, rows, settings, axis, metric)
    marks = curves.marks(rows, settings, mechanisms) if axis == "epsilon" else None
    floor, ceiling = (None, None) if axis == "k" else curves.limits(rows, settings, metric)

    def show(bands: pd.DataFrame, second: pd.DataFrame | None, final: bool) -> None:
        best = curves.frontier(bands, metric)
        caption = narrative.curve_caption(bands, best, axis, metric, mechanisms)
        figure = tradeoff_figure(
            bands,
            shown,
            x_title=AXES[axis].label,
            y_title=METRICS[metric].label,
            log_x=log_x,
            log_y=log_y,
            now=curves.now(rows, settings, axis),
            floor=floor,
            ceiling=ceiling,
            predicted=predicted,
            best=best,
            marks=marks,
            other=second,
            other_name=other,
        )
        with place:
            st.plotly_chart(
                figure,
                key="tradeoffs" if final else "tradeoffs.coarse",
                on_select=lambda: clicked(axis) if final else None,
                selection_mode="points",
                alt=f"{METRICS[metric].label} along {axis}. {caption}",
            )
        with words:
            st.caption(
                f"{caption} Bands: central 95 % of the draws. Dotted: predicted without a draw. "
                "Rings: the best whose claim holds. Click a point to open it in Explore."
            )

    coarse = replace(settings, trials=min(settings.trials, 5))
    bands, _ = bands_of(rows, current.data_key, coarse, axis, metric, curves.COARSE)
    show(bands, None, final=False)
    bands, skipped = bands_of(rows, current.data_key, settings, axis, metric, curves.FINE)
    second = None
    if other:
        table, key = cached.second(other, settings)
        second, _ = bands_of(table, key, settings, axis, metric, curves.COARSE)
    show(bands, second, final=True)
    if axis == "row_bound":
        st.info(narrative.row_bound_caption(bands, mechanisms), icon=":material/lightbulb:")
    for name, reason in skipped:
        st.caption(f"Not everywhere: {name}, because {reason}.")
    take_away(rows, axis, bands)


def clicked(axis: str) -> None:
    """Remember the point that was clicked, so that Explore opens there."""
    picked = st.session_state["tradeoffs"].selection.points
    if not picked or axis == "n":
        return
    x = picked[0]["x"]
    value = f"{x:.6g}" if axis == "row_bound" else (round(x) if axis == "k" else x)
    state.put(axis, value)
    st.session_state["tradeoffs.open"] = True


def take_away(rows: BoundedRows, axis: str, bands: pd.DataFrame) -> None:
    """Draw what can be taken along."""
    left, right = st.columns(2)
    left.download_button(
        "This curve (CSV)",
        lambda: bands.to_csv(index=False),
        file_name="dpviz-curve.csv",
        on_click="ignore",
        key="tradeoffs.csv",
        icon=":material/download:",
    )
    values = curves.default_values(axis, rows, curves.FINE)
    parts.command(
        current.settings,
        verb="sweep",
        more=["--over", axis, "--values", ",".join(str(v) for v in values), "--out", "sweep.csv"],
    )
    right.caption("The figure has a save button in its upper right corner.")


def target_mode(rows: BoundedRows) -> None:
    """Answer the inverse question: the least epsilon, or people, for a goal."""
    st.subheader("How much privacy can I afford?", anchor="target")
    left, right = st.columns(2)
    share = left.slider(
        "Keep this share of what k components can explain, %",
        20,
        99,
        90,
        key="target.share",
        persist_state="session",
    )
    what = right.segmented_control(
        "Find the least",
        ["epsilon", "n"],
        format_func={"epsilon": "epsilon", "n": "number of people"}.__getitem__,
        default="epsilon",
        required=True,
        key="target.what",
        persist_state="session",
    )
    goal = Goal("captured_share", share / 100)
    if st.toggle("Search", key="target.search", help="Draws releases until the answer is clear."):
        found = cached.targets(current.data_key, rows, current.settings, goal, what or "epsilon")
        for target in found:
            st.markdown(f"- {sentence(target, current.settings.k)}")
        st.caption(
            "Each interval is found by sequential tests at 95 % confidence, seeded by the "
            "prediction; mechanisms whose claim is false come last and do not count."
        )


def plan_mode() -> None:
    """Predict from n and a spectrum alone."""
    st.subheader("Plan before you have data", anchor="plan")
    left, right = st.columns(2)
    people = left.text_input("People n", "100000", key="plan.n", persist_state="session")
    written = right.text_input(
        "Spectrum",
        "power:d=50,exponent=1.5,total=0.5",
        key="plan.spectrum",
        persist_state="session",
        help="Eigenvalues of A in squared row bounds: typed (0.4,0.2,0.1), "
        "power:d=50,exponent=1.5,total=0.5, exponential:d=50,rate=0.3,total=0.5, "
        "rank:d=50,rank=3,signal=0.1,noise=0.002, or builtin:digits.",
    )
    rows = planned(spectrum_of(written), narrative.whole_number(people, "n"))
    mechanisms = parse_variants(current.settings.mechanisms)
    settings = replace(
        current.settings, k=min(current.settings.k, rows.d - 1), allocation="uniform"
    )
    values = curves.default_epsilons()
    predicted = curves.prediction_table(
        rows, settings, mechanisms, "epsilon", values, "captured_share"
    )
    budget, problem = rows.budget(settings), rows.problem(settings)
    floor, ceiling = curves.limits(rows, settings, "captured_share")
    figure = tradeoff_figure(
        pd.DataFrame(columns=list(curves.BAND_COLUMNS)),
        panels_of(mechanisms, problem, budget),
        x_title="Epsilon",
        y_title=METRICS["captured_share"].label,
        log_x=True,
        log_y=False,
        now=settings.epsilon,
        floor=floor,
        ceiling=ceiling,
        predicted=predicted,
    )
    st.plotly_chart(figure, key="plan", alt="Predicted captured share against epsilon")
    st.caption(
        f"Predicted for n = {rows.n:,}, d = {rows.d}, k = {settings.k}, from the spectrum alone: "
        "no table was read and nothing private was touched."
    )


st.title("Trade-offs: how much accuracy does privacy leave?", anchor=False)
if st.session_state.pop("tradeoffs.open", False):
    st.switch_page(shell.page("Explore"), query_params={})
with guard():
    if current.prepared is not None:
        draw(current.prepared, parse_variants(current.settings.mechanisms))
with guard():
    if current.prepared is not None:
        target_mode(current.prepared)
with guard():
    plan_mode()
