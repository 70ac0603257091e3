"""Preparation: the effect of a public mean, scale, row-norm bound and n."""

PAGE = {
    "title": "Preparation",
    "icon": ":material/receipt_long:",
    "place": 210,
    "group": "Release",
    "unread": ("mechanisms",),
    "about": "Before a PCA, rows are centred, scaled and clipped. Means, scales and bounds taken "
    "from the data leak information. This page shows how much recovery is left if a private "
    "preparation uses part of the budget.",
}

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui import shell

current = shell.through_entry()

from dataclasses import replace

from dpviz.core.entries import BOUNDS_WORDS, PRIVATE, names_file
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.waterfall import waterfall as waterfall_figure
from dpviz.studies.account import options_at
from dpviz.studies.options import options_of
from dpviz.studies.waterfall import BASE, default_mechanism, steps_of, waterfall
from pages.ui import accounts, controls, parts, state
from pages.ui.ask import ask
from pages.ui.guard import guard, say_error
from pages.ui.texts import plain

_OWN = ("center", "scale", "row_bound", "count")


def use(settings: Settings) -> None:
    """Apply these preparation settings to every page."""
    for name in _OWN:
        state.put(name, getattr(settings, name))


def setting_controls(above: DeltaGenerator) -> Settings:
    """Draw the controls, the shares above; all except the mechanism apply to every page."""
    first, second, third = st.columns([2, 1, 1])
    mechanism = parts.one_mechanism(
        first, "Mechanism", default=default_mechanism(), key="preparation.mechanism"
    )
    with second:
        controls.setting("relation", place="preparation.")
    with third:
        bounds()
    settings = replace(state.settings(), mechanisms=(mechanism,))
    # Offer to set a budget share only for steps that use budget.
    private = {
        "mean": True,
        "range": settings.bounds == PRIVATE,
        "scale": settings.scale != "none",
        "bound": True,
        "count": settings.relation == "zero-out",
    }
    steps = [step for step, is_private in private.items() if is_private]
    for column, step in zip(above.columns(len(steps)), steps, strict=True):
        with column:
            controls.setting(f"{step}_share", place="preparation.")
    return settings


def bounds() -> None:
    """Draw the public bounds on which all private steps depend."""

    def typed(text: str) -> None:
        words = text.strip()
        try:
            if names_file(words):  # Only the command line can read files.
                rule = f"{', '.join(BOUNDS_WORDS)} or LOW:HIGH"
                raise InvalidSetting("feature bounds", rule, words)
        except InvalidSetting as error:
            st.session_state.complaints["bounds"] = str(error)
        else:
            state.put_text("bounds", words)

    controls.control(
        st.text_input,
        "Feature bounds",
        "preparation.bounds",
        state.get("bounds"),
        typed,
        refusable="bounds",
        help="LOW:HIGH for all features, or one of three words. The word known takes the table's "
        "public bounds. The word private estimates one range with part of the budget. The word max "
        "takes bounds from the data, which is not private.",
    )
    complaint = state.complaint("bounds")
    if complaint is not None:
        say_error(complaint)


def lead(answer: str, bars: list[tuple[str, Settings]]) -> None:
    """Draw the answer, and offer to make the preparation private, or public, on every page."""
    now, (_, public), (_, private) = state.settings(), bars[0], bars[-1]
    bound = "max" if now.row_bound.startswith(PRIVATE) else now.row_bound
    step, settings = "Treat it as public again", replace(public, row_bound=bound)
    if any(getattr(now, name) != getattr(private, name) for name in _OWN):
        step, settings = "Keep it private on every page", private
    help_text = (
        "Explore, Trade-offs, Precision and Decide prepare the table again in each simulated "
        "release if the preparation is private."
    )
    parts.lead(answer, step, state.on_change(lambda: use(settings)), help=help_text)


def whole_account(prepared: Prepared, settings: Settings) -> None:
    """Offer the privacy accounting of the last bar: every step and the release together."""
    box = st.expander(
        "Privacy loss of preparation and release, once and repeated",
        icon=":material/functions:",
        key="preparation.account",
        on_change="rerun",
    )
    if box.open:
        _, private = steps_of(settings)[-1]
        problem, budget = prepared.problem(private), prepared.budget(private)
        with box:
            accounts.draw(
                options_at(settings.mechanisms[0], problem, budget, private), "preparation.account"
            )


def page() -> None:
    """Draw the waterfall under its controls."""
    if current.prepared is None:
        st.info(current.problem or "Choose a table.")
        return
    place, shares, above = st.container(), st.container(), st.container()
    settings = setting_controls(shares)
    if settings.bounds == "max":
        hint = (
            ", write known to use the table's public bounds"
            if current.prepared.table.bounds is not None
            else ""
        )
        st.caption(
            ":material/straighten: The feature bounds come from the data, so they are not "
            f"private. Enter public bounds as LOW:HIGH{hint}, or write private to estimate "
            "them with part of the budget."
        )
    answer = ask(waterfall, options_of(settings), current, saying="Preparing privately")
    table, bars = answer.table(), steps_of(settings)
    public, private_bound = bars[0][1].row_bound, bars[-1][1].row_bound
    alike = public.removeprefix("quantile:") == private_bound.removeprefix(f"{PRIVATE}:")
    note = (
        f" This page clips rows at the {public.removeprefix('quantile:')} quantile. Explore clips "
        "no rows at a quantile, so recovery on Explore differs."
        if current.settings.row_bound == "max" != public
        else ""
    )
    with place:
        lead(answer.summary(), bars)
    with above:
        parts.plot(
            waterfall_figure(table, height=380),
            key="preparation.waterfall",
            alt="Recovery with a public preparation, then with a private mean, scale, row-norm "
            "bound and number of people",
        )
        st.caption(
            "The chart starts at 100 %: blue is lost to the mechanism's noise, orange to a private "
            f"step{', green is gained' * bool((table['change'] > 0).any())}. Whiskers show two "
            f"standard errors.{note}"
        )
        with st.popover("How to read this chart", icon=":material/info:"):
            st.markdown(
                "Mean, scale, row-norm bound and n are usually taken from the data, as if they "
                "were public. On this page they use part of the budget. The chart is for "
                f"{parse_variant(settings.mechanisms[0]).label} with epsilon "
                f"{numeral(settings.epsilon, 6)} for preparation and release together. "
                f"{'Every bar clips rows at the same quantile. ' if alike else ''}Each number is "
                f"the mean of {settings.trials} simulated releases."
            )
    parts.numbers("waterfall", table)
    parts.command(settings, "account steps", base=BASE)
    whole_account(current.prepared, settings)
    with st.expander("What is still assumed to be public", icon=":material/visibility:"):
        st.markdown("\n".join(f"- {plain(item)}" for item in answer.stages[-1].assumed_public))
    with st.expander("How the budget is divided", icon=":material/receipt_long:"):
        st.markdown(
            "Rows are clipped to public bounds. Sums of rows and of their squares get Gaussian "
            "noise (Laplace noise if delta is 0). Each sum uses a share of the squared mu. The "
            "row-norm bound is pure, with epsilon equal to its mu. The mechanism gets the rest of "
            "the budget, by the exact account of all steps together. One changed row of the raw "
            "table costs no more than epsilon in all."
        )


parts.question("What does it cost to keep the preparation private?")
with guard():
    page()
