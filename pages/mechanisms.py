"""Mechanisms: a card for each, with its law, its claim and what holds of it."""

PAGE = {
    "title": "Mechanisms",
    "icon": ":material/category:",
    "place": 110,
    "group": "Reference",
    "term": "sensitivity",
}

import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.steps import wanted_of
from dpviz.report.figures.small import portrait_image
from dpviz.report.sentences import phrases as narrative
from dpviz.report.sentences.cards import FILTERS, SORTS, MechanismCard, cards, chosen_cards
from dpviz.report.tables.portrait import DRAWS, EPSILON, FEATURES, ROWS, portrait
from pages.ui import account_cache, accounts, loading, shell, state
from pages.ui.copying import copyable
from pages.ui.guard import say_error

current = shell.through_entry()


def filters() -> dict[str, str]:
    """Draw one filter for each property; return those that are set."""
    columns = st.columns(len(FILTERS))
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
    return picked


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
            paid = wanted_of(current.settings)
            accounts.draw(account_cache.account(card.mechanism, problem, card.budget, paid), name)


def draw(card: MechanismCard) -> None:
    """Draw one card; formulas and parameters are sent when it is opened."""
    info = card.mechanism.info
    with st.container(border=True):
        st.markdown(f"**{info.label}** `{card.mechanism.key}`\n\n{info.summary}")
        seen = portrait(card.mechanism)
        if seen is not None:
            st.html(portrait_image(seen, card.mechanism))
        told = [info.paper, f"releases a {info.release}", f"{card.guarantee}{card.psd}"]
        told += [word for word in (aims.get(card.mechanism.text, card.aim), card.free) if word]
        st.caption(" · ".join(told))
        held = [
            f"{line.mark} **{line.words}** ({line.relation}): {line.evidence}"
            for line in card.statuses
        ]
        st.markdown("\n\n".join(held))
        st.caption(f"At {narrative.budget_words(card.budget)}: {card.account}.")
        box = st.expander(
            "Law, calibration, parameters",
            key=f"mechanisms.{card.mechanism.key}.open",
            on_change="rerun",
        )
        if box.open:
            with box:
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


st.title("Mechanisms", anchor=False)
st.markdown(
    "What each mechanism releases, what its source promises, and what holds of the promise at this "
    "setting."
)
problem, budget = loading.problem_and_budget(current)
picked = filters()
order = st.segmented_control(
    "Sort by",
    list(SORTS),
    default=next(iter(SORTS)),
    required=True,
    key="mechanisms.sort",
    persist_state="session",
)
found = chosen_cards(cards(problem, budget), picked, order or next(iter(SORTS)))
st.caption(
    f"{len(found)} mechanisms, for n = {problem.n:,}, d = {problem.d}, k = {problem.k}. "
    f"The pictures are of {DRAWS} draws on a made-up table of {ROWS} rows and {FEATURES} "
    f"columns at epsilon {numeral(EPSILON, 6)}: the eigenvalues of the noise, or the angle to "
    "the true first direction."
)
aims = (
    {}
    if current.prepared is None
    else account_cache.hints(current.data_key, current.prepared, current.settings)
)
left, right = st.columns(2)
for number, card in enumerate(found):
    with left if number % 2 == 0 else right:
        draw(card)
