"""Mechanisms: a row for each, with its law, its claim and what holds of it."""

PAGE = {
    "title": "Mechanisms",
    "icon": ":material/category:",
    "place": 110,
    "group": "Reference",
    "term": "sensitivity",
    "unread": ("mechanisms",),
}

import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.steps import private_steps
from dpviz.report.figures.svg import angle_words, noise_image, thumbnail
from dpviz.report.sentences import phrases as narrative
from dpviz.report.sentences.cards import (
    CANNOT_RUN,
    FILTERS,
    SORTS,
    MechanismCard,
    cards,
    chosen_cards,
)
from dpviz.report.tables.portrait import DRAWS, EPSILON, FEATURES, ROWS, Portrait, portrait
from pages.ui import account_cache, accounts, loading, shell, state
from pages.ui.copying import copyable
from pages.ui.guard import say_error

current = shell.through_entry()


def filters() -> tuple[dict[str, str], str]:
    """Draw the filters and the order; return what is picked of each."""
    with st.container(key="mechanisms.asked"):
        *columns, last = st.columns([*[1] * len(FILTERS), 1.6])
    picked = {}
    for column, (name, choices) in zip(columns, FILTERS.items(), strict=True):
        with column:
            value = st.selectbox(
                name.capitalize(),
                ["any", *choices],
                key=f"mechanisms.filter.{name}",
                persist_state="session",
            )
        if value != "any":
            picked[name] = value
    with last:
        order = st.segmented_control(
            "Sort by",
            list(SORTS),
            default=next(iter(SORTS)),
            required=True,
            key="mechanisms.sort",
            persist_state="session",
        )
    return picked, order or next(iter(SORTS))


def parameters(card: MechanismCard) -> None:
    """Draw the parameters of a mechanism and offer the variant they make."""
    params = params_of(type(card.mechanism))
    if not params:
        st.caption("No parameters.")
        return
    written = {}
    for name, param in params.items():
        key = f"mechanisms.{card.mechanism.key}.{name}"
        if param.kind == "choice":
            written[name] = st.selectbox(
                param.label,
                list(param.choices),
                index=list(param.choices).index(param.default),
                format_func=param.choices.__getitem__,
                key=key,
                help=param.help,
            )
        else:
            written[name] = st.text_input(
                param.label,
                param.format(param.default),
                key=key,
                help=f"{param.help} Must be {param.allowed}.",
            )
    try:
        variant = type(card.mechanism).from_texts(written)
    except InvalidSetting as error:
        say_error(error)
        return

    def add() -> None:
        mechanisms = state.get("mechanisms") or tuple(all_mechanisms())
        if variant.text not in mechanisms:
            state.put("mechanisms", (*mechanisms, variant.text))

    st.button(
        f"Compare {variant.text}",
        key=f"mechanisms.{card.mechanism.key}.add",
        icon=":material/add:",
        on_click=state.on_change(add),
        disabled=variant.text in state.get("mechanisms"),
    )


def repeats(card: MechanismCard) -> None:
    """Offer the whole account of the mechanism, and what repeating it costs."""
    name = f"mechanisms.account.{card.mechanism.key}"  # a parameter may be called account
    box = st.expander("What it costs, and if you repeat it", key=name, on_change="rerun")
    if box.open:
        with box:
            paid = private_steps(current.settings)
            accounts.draw(account_cache.account(card.mechanism, problem, card.budget, paid), name)


def row(card: MechanismCard) -> None:
    """Draw the row of a mechanism; what it says is sent when it is opened."""
    mechanism, seen = card.mechanism, portrait(card.mechanism)
    picture = (
        "cannot run on the example"
        if seen is None
        else f"![{angle_words(seen)}]({thumbnail(seen, mechanism)})"
    )
    status = CANNOT_RUN if card.status is None else card.status.marked
    box = st.expander(
        f"**{mechanism.info.label}** {picture} *{card.guarantee}* *{card.spends}* {status}",
        key=f"mechanisms.{mechanism.key}.open",
        on_change="rerun",
        type="compact",
    )
    if box.open:
        with box:
            opened(card, seen)


def opened(card: MechanismCard, seen: Portrait | None) -> None:
    """Draw what is known of a mechanism: claim, noise, law, parameters, account."""
    info = card.mechanism.info
    st.markdown(f"`{card.mechanism.key}` {info.summary}")
    told = [info.paper, f"releases a {info.release}", f"{card.guarantee}{card.psd}"]
    told += [word for word in (aims.get(card.mechanism.text, card.aim), card.free) if word]
    st.caption(" · ".join(told))
    held = [
        f"{line.mark} **{line.words}** ({line.relation}): {line.evidence}" for line in card.statuses
    ]
    st.markdown("\n\n".join(held))
    st.caption(f"At {narrative.budget_words(card.budget)}: {card.account}.")
    if seen is not None and seen.noise is not None:
        st.html(noise_image(seen, card.mechanism))
    st.latex(info.law)
    st.latex(info.calibration)
    st.markdown(f"Cost of a release: ${info.complexity}$. {info.advice}")
    for item in card.mechanism.assumed_public:
        st.caption(f"Not covered by its guarantee: {item}.")
    if info.url:
        st.markdown(f"[Source]({info.url})")
    parameters(card)
    repeats(card)
    st.caption("Rerun the evidence:")
    copyable(card.mechanism.rerun)


_STYLE = """<style>
.dp-head, .st-key-mechanisms-rows summary p {
  display: grid; grid-template-columns: minmax(9rem, 1.2fr) 240px 9rem 5rem minmax(10rem, 1fr);
  gap: 0 1.5rem; align-items: center;
}
.dp-head { font-size: 14px; padding-left: 2rem; }
.dp-head span { display: flex; justify-content: space-between; }
.st-key-mechanisms-rows summary > span { flex-direction: row-reverse; }
.st-key-mechanisms-rows summary div { flex: 1; width: 100%; }
.st-key-mechanisms-rows summary, .st-key-mechanisms-rows summary * { opacity: 1 !important; }
.st-key-mechanisms-rows summary p strong { font-weight: 600; }
.st-key-mechanisms-rows details[open] { border-left: 3px solid currentColor; margin: .3rem 0 1rem; }
.st-key-mechanisms-rows [data-testid="stExpanderDetails"] {
  padding: .4rem 0 0 1.8rem; max-width: 62rem;
}
.st-key-mechanisms-rows summary p em { font-style: normal; }
.st-key-mechanisms-rows summary img { width: 240px; height: 30px; max-height: none; margin: 0; }
@media (max-width: 1000px) {
  .st-key-mechanisms-asked [data-testid="stHorizontalBlock"] {
    flex-wrap: nowrap; overflow-x: auto;
  }
  .st-key-mechanisms-asked [data-testid="stColumn"] { flex: 0 0 auto; min-width: 8.5rem; }
  .dp-head, .st-key-mechanisms-rows summary p {
    grid-template-columns: minmax(0, 1fr) 160px; gap: 0 .75rem;
  }
  .dp-head span { grid-column: 2; }
  .dp-head b, .st-key-mechanisms-rows summary em { display: none; }
  .st-key-mechanisms-rows summary p { padding: .3rem 0; }
  .st-key-mechanisms-rows summary img { width: 160px; height: 28px; grid-area: 1 / 2 / 3; }
}
</style>"""
_HEAD = """<div class="dp-head"><b>Mechanism</b><span><i>0°</i><i>turned</i><i>90°</i>
</span><b>Promises</b><b>Spends ε</b><b>Its claim here</b></div>"""


st.title("How far does each turn the first direction?", anchor=False)
problem, budget = loading.problem_and_budget(current)
picked, order = filters()
found = chosen_cards(cards(problem, budget), picked, order)
st.caption(
    f"Pictures: {DRAWS} draws on one made-up table ({ROWS} rows, {FEATURES} columns, epsilon "
    f"{numeral(EPSILON, 6)}), a line at the median. Claims: yours, n = {problem.n:,}, "
    f"d = {problem.d}, k = {problem.k}."
)
aims = (
    {}
    if current.prepared is None
    else account_cache.hints(current.data_key, current.prepared, current.settings)
)
with st.container(key="mechanisms.rows", gap=None):
    st.html(_STYLE + _HEAD)
    for card in found:
        row(card)
if not found:
    st.markdown("No mechanism is all of that. Set one choice back to *any*.")
