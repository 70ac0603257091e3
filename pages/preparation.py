"""Preparation: what it is worth that the mean, the scale, the row bound and n are public."""

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

import shlex

from dpviz.base.params import params_of
from dpviz.figures.waterfall import waterfall
from dpviz.mechanisms import all_mechanisms
from dpviz.paid.account import BOUND, COUNT, DEFAULT_SHARES, MEAN, SCALE
from dpviz.paid.cost import PaidOptions, default_mechanism, told
from pages.ui import cached, parts
from pages.ui.guard import guard
from pages.ui.state import UPLOAD
from pages.ui.texts import plain


def share(column: st.delta_generator.DeltaGenerator, step: str, what: str) -> float:
    """Draw the slider of one step's share of the budget."""
    return float(
        column.slider(
            f"Share for the {what}",
            0.01,
            0.3,
            DEFAULT_SHARES[step],
            0.01,
            key=f"preparation.share.{step}",
            persist_state="session",
        )
    )


def asked() -> PaidOptions:
    """Draw the controls; epsilon, delta, k and the table are those of every page."""
    settings = current.settings
    zeroth, first, second, third = st.columns(4)
    keys = list(all_mechanisms())
    mechanism = zeroth.selectbox(
        "Mechanism",
        keys,
        index=keys.index(default_mechanism()),
        key="preparation.mechanism",
        persist_state="session",
    )
    relation = first.segmented_control(
        "Neighbours",
        ["zero-out", "replace"],
        default="zero-out",
        key="preparation.relation",
        persist_state="session",
        help="n can be private under zero-out only: replacing a person does not change it.",
    )
    scale = second.segmented_control(
        "Scaling",
        ["none", "standardize"],
        default="none",
        key="preparation.scale",
        persist_state="session",
    )
    clip = third.segmented_control(
        "Private row bound",
        ["quantile", "adaptive"],
        default="quantile",
        key="preparation.clip",
        persist_state="session",
        help="A quantile of the row lengths by the exponential mechanism, or the radius at which "
        "halving its square stops to pay, by the sparse vector technique.",
    )
    bounds = st.text_input(
        "Feature bounds",
        "known" if current.prepared.table.bounds is not None else "",
        key=f"preparation.bounds.{current.prepared.table.bounds is not None}",
        help="Public bounds of each feature: LOW:HIGH for all of them, or known where the table "
        "has its own.",
        persist_state="session",
    )
    columns = st.columns(4)
    shares = {
        "mean_share": share(columns[0], MEAN, "mean"),
        "scale_share": share(columns[1], SCALE, "scale"),
        "bound_share": share(columns[2], BOUND, "row bound"),
        "count_share": share(columns[3], COUNT, "number of people"),
    }
    return PaidOptions(
        mechanism=mechanism,
        bounds=bounds,
        epsilon=settings.epsilon,
        delta=settings.delta,
        k=settings.k,
        relation=relation or "zero-out",
        scale=scale or "none",
        clip=clip or "quantile",
        seed=settings.seed,
        **shares,
    )


def command(options: PaidOptions) -> str:
    """Return the command that prints the same numbers; an upload is named by its user."""
    table = current.settings.table
    words = ["python", "-m", "dpviz", "waterfall", "FILE" if table == UPLOAD else table]
    params = params_of(PaidOptions)
    for name, written in options.texts().items():
        words += [params[name].flag, written]
    return shlex.join(words)


def page() -> None:
    """Draw the waterfall under its controls."""
    if current.prepared is None:
        st.info(current.problem or "Choose a table.")
        return
    options = asked()
    if not options.bounds:
        st.info(
            f"{plain(current.prepared.name)} has no bounds that are known beforehand: state some, "
            "as LOW:HIGH for all features."
        )
        return
    table, assumed = cached.waterfall(current.data_key, current.prepared, options)
    st.markdown(f"**{told(table)}**")
    st.plotly_chart(
        waterfall(table),
        key="preparation.waterfall",
        alt="Recovery with everything public, then with mean, scale, row bound and n paid for",
    )
    st.caption(
        f"{options.mechanism}, epsilon {options.epsilon:g} for the whole chain; bars show the mean "
        f"of {options.trials} chains, whiskers their central 95 %."
    )
    parts.numbers("waterfall", table)
    st.code(command(options), language="shell")
    with st.expander("What is still assumed to be public", icon=":material/visibility:"):
        st.markdown("\n".join(f"- {item}" for item in assumed))
    with st.expander("How it is paid for", icon=":material/receipt_long:"):
        st.markdown(
            "Rows are cut to public bounds. Sums of rows and of their squares get Gaussian noise "
            "(Laplace noise where delta is 0), each on its share of the squared mu; the row bound "
            "is pure, with epsilon equal to its mu. What is left goes to the mechanism, by the "
            "exact account of all of them together: one changed row, before anything is "
            "subtracted, divided or cut, costs no more than epsilon."
        )


st.title("Preparation")
st.markdown(
    "Mean, scale, row bound and n are taken from the data before any noise is drawn. This is what "
    "it costs to pay for them too."
)
with guard():
    page()
