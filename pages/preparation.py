"""Preparation: what it is worth that the mean, the scale, the row bound and n are public."""

PAGE = {
    "title": "Preparation",
    "icon": ":material/receipt_long:",
    "place": 210,
    "group": "Release",
    "unread": ("mechanisms",),
}

import streamlit as st

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


def use(chosen: Settings) -> None:
    """Prepare as the settings say on every page."""
    for name in _OWN:
        state.put(name, getattr(chosen, name))


def setting_controls() -> Settings:
    """Draw the controls; everything but the mechanism is the setting of every page."""
    first, second, third = st.columns([2, 1, 1])
    mechanism = parts.one_mechanism(
        first, "Mechanism", default=default_mechanism(), key="preparation.mechanism"
    )
    with second:
        controls.setting("relation", place="preparation.")
    with third:
        bounds()
    settings = replace(state.settings(), mechanisms=(mechanism,))
    # a share is asked for where there is something to pay for
    private = {
        "mean": True,
        "range": settings.bounds == PRIVATE,
        "scale": settings.scale != "none",
        "bound": True,
        "count": settings.relation == "zero-out",
    }
    steps = [step for step, paid in private.items() if paid]
    for column, step in zip(st.columns(len(steps)), steps, strict=True):
        with column:
            controls.setting(f"{step}_share", place="preparation.")
    return settings


def bounds() -> None:
    """Draw the public bounds that everything private rests on."""

    def typed(text: str) -> None:
        written = text.strip()
        try:
            if names_file(written):  # files are the command line's alone
                allowed = f"{', '.join(BOUNDS_WORDS)} or LOW:HIGH"
                raise InvalidSetting("feature bounds", allowed, written)
        except InvalidSetting as error:
            st.session_state.complaints["bounds"] = str(error)
        else:
            state.put_text("bounds", written)

    controls.control(
        st.text_input,
        "Feature bounds",
        "preparation.bounds",
        state.get("bounds"),
        typed,
        refusable="bounds",
        help="LOW:HIGH for all features; known, where the table has its own; private, one range "
        "that is paid for; or max, taken from the data and not private.",
    )
    complaint = state.complaint("bounds")
    if complaint is not None:
        say_error(complaint)


def everywhere(bars: list[tuple[str, Settings]]) -> None:
    """Offer to prepare privately, or not, on every page."""
    now, (_, public), (_, private) = state.settings(), bars[0], bars[-1]
    kept = "max" if now.row_bound.startswith(PRIVATE) else now.row_bound
    public = replace(public, row_bound=kept)
    with st.container(horizontal=True):
        if any(getattr(now, name) != getattr(private, name) for name in _OWN):
            st.button(
                "Pay for all of it on every page",
                key="preparation.private",
                icon=":material/lock:",
                on_click=state.on_change(lambda: use(private)),
                help="Explore, Trade-offs, Precision and Decide then prepare anew in each draw.",
            )
        if now.private_shares:
            st.button(
                "Take all of it for public again",
                key="preparation.public",
                icon=":material/lock_open:",
                on_click=state.on_change(lambda: use(public)),
            )


def whole_account(prepared: Prepared, settings: Settings) -> None:
    """Offer the account of the last bar: every step and the release together."""
    box = st.expander(
        "What the whole chain costs, and if you repeat it",
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
    above = st.container()
    settings = setting_controls()
    if settings.bounds == "max":
        known = (
            ", or take those that are known" if current.prepared.table.bounds is not None else ""
        )
        st.caption(
            ":material/straighten: The feature bounds are taken from the data, which is not "
            f"private: state public ones as LOW:HIGH{known}, or write private to pay for a range."
        )
    found = ask(waterfall, options_of(settings), current, saying="Preparing privately")
    table, bars = found.table(), steps_of(settings)
    public, paid = bars[0][1].row_bound, bars[-1][1].row_bound
    alike = public.removeprefix("quantile:") == paid.removeprefix(f"{PRIVATE}:")
    cut = (
        f" Rows are cut at their {public.removeprefix('quantile:')} quantile here, and not on "
        "Explore: its recovery is another."
        if current.settings.row_bound == "max" != public
        else ""
    )
    with above:
        parts.lead(found.summary(), "Give each step its share.")
        st.plotly_chart(
            waterfall_figure(table, height=380),
            key="preparation.waterfall",
            alt="Recovery with everything public, then with mean, scale, row bound and n paid for",
        )
        st.caption(
            "From 100 %: blue is lost to the mechanism's noise, orange to a step that is paid for"
            f"{', green is gained' * bool((table['change'] > 0).any())}; whiskers are two "
            f"standard errors.{cut}"
        )
        with st.popover("How to read this chart", icon=":material/info:"):
            st.markdown(
                "Mean, scale, row bound and n are usually taken from the data before any noise is "
                "drawn, as if they were public. Here they are paid for too. "
                f"{parse_variant(settings.mechanisms[0]).label}, epsilon "
                f"{numeral(settings.epsilon, 6)} for the whole chain. "
                f"{'Every bar cuts rows at the same quantile. ' if alike else ''}Means of "
                f"{settings.trials} chains."
            )
    everywhere(bars)
    parts.numbers("waterfall", table)
    parts.command(settings, "account steps", base=BASE)
    whole_account(current.prepared, settings)
    with st.expander("What is still assumed to be public", icon=":material/visibility:"):
        st.markdown("\n".join(f"- {plain(item)}" for item in found.stages[-1].assumed_public))
    with st.expander("How it is paid for", icon=":material/receipt_long:"):
        st.markdown(
            "Rows are cut to public bounds. Sums of rows and of their squares get Gaussian noise "
            "(Laplace noise where delta is 0), each on its share of the squared mu; the row bound "
            "is pure, with epsilon equal to its mu. What is left goes to the mechanism, by the "
            "exact account of all of them together: one changed row, before anything is "
            "subtracted, divided or cut, costs no more than epsilon."
        )


parts.question("What does it cost to keep the preparation private?")
with guard():
    page()
