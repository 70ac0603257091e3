"""Mechanisms: all of them on the current table, sorted by the structure that they keep."""

PAGE = {
    "title": "Mechanisms",
    "icon": ":material/category:",
    "place": 110,
    "group": "Reference",
    "term": "sensitivity",
    "unread": ("mechanisms",),
    "about": "All mechanisms, sorted by how much structure of your table they keep. Answer the "
    "questions above the list to shorten it. Open a row to see the law of the noise, the proof "
    "and the actual privacy loss.",
}

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import per_cent, percent
from dpviz.core.params import params_of
from dpviz.mechanisms import all_mechanisms
from dpviz.report.sentences import phrases as narrative
from dpviz.report.sentences.cards import (
    GROUPS,
    QUESTIONS,
    MechanismCard,
    answer,
    answering,
    best_of,
    cards,
    group_of,
)
from dpviz.studies.account import options_at
from pages.ui import accounts, loading, parts, shell, state
from pages.ui.ask import ask, known
from pages.ui.copying import copyable
from pages.ui.draws import AllKept, Kept, all_kept
from pages.ui.first_sight import Shipped
from pages.ui.guard import guard, say_error

current = shell.through_entry()
settings = replace(current.settings, mechanisms=())

RELEASES = {"matrix": "a matrix", "subspace": "directions", "data": "a table"}
PROMISES = {
    "pure epsilon": "no delta", "epsilon and delta": "with delta", "no guarantee": "no promise",
}  # fmt: skip
_STYLE = Path(__file__).parent / "ui" / "mechanisms.css"
_SHIPS = Shipped[AllKept](
    "kept",
    lambda text: AllKept({key: Kept(*of) for key, of in json.loads(text).items()}, 1.0),
    lambda answer: json.dumps(answer.of).encode(),
)


def questions(cards: list[MechanismCard], shares: Mapping[str, float]) -> list[str]:
    """Draw the filters for mechanisms, each with its count after the other filters."""
    key = "mechanisms.asked"
    filters = st.session_state.get(key) or []

    def counted(one: str) -> str:
        return f"{one} {len(answering(cards, shares, {*filters, one}))}"

    st.pills(
        "What do you need?", list(QUESTIONS), selection_mode="multi", key=key,
        format_func=counted, persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    return filters


def compare_with(text: str) -> None:
    """Add a variant to the compared mechanisms."""
    mechanisms = state.get("mechanisms") or tuple(all_mechanisms())
    if text not in mechanisms:
        state.put("mechanisms", (*mechanisms, text))


def parameters(card: MechanismCard) -> None:
    """Draw the parameters of a mechanism, and offer the variant with these parameters."""
    params = params_of(type(card.mechanism))
    if not params:
        st.caption("No parameters.")
        return
    texts = {}
    for name, param in params.items():
        key = f"mechanisms.{card.mechanism.key}.{name}"
        if param.kind == "choice":
            texts[name] = st.selectbox(
                param.label,
                list(param.choices),
                index=list(param.choices).index(param.default),
                format_func=param.choices.__getitem__,
                key=key,
                help=param.help,
            )
        else:
            texts[name] = st.text_input(
                param.label,
                param.format(param.default),
                key=key,
                help=f"{param.help} Must be {param.allowed}.",
            )
    try:
        variant = type(card.mechanism).from_texts(texts)
    except InvalidSetting as error:
        say_error(error)
        return

    st.button(
        f"Compare {variant.text}",
        key=f"mechanisms.{card.mechanism.key}.add",
        icon=":material/add:",
        on_click=state.on_change(lambda: compare_with(variant.text)),
        disabled=variant.text in state.get("mechanisms"),
    )


def repeats(card: MechanismCard) -> None:
    """Offer the complete privacy accounting of a mechanism, and the cost of repeated releases."""
    name = f"mechanisms.account.{card.mechanism.key}"
    box = st.expander("Privacy loss of one release and of several", key=name, on_change="rerun")
    if box.open:
        with box:
            options = options_at(card.mechanism.text, problem, card.budget, current.settings)
            accounts.draw(options, name)


def row(card: MechanismCard, entry: Kept | None) -> None:
    """Draw the row of a mechanism, whose content is sent when a visitor opens the row."""
    mechanism, none = card.mechanism, "–"
    fails = card.status is not None and card.status.verdict.fails
    loss = "no limit" if fails and card.spends == none else card.spends
    words = [
        f"![]({entry.picture})" if entry is not None and entry.picture else "",
        f"**{mechanism.info.label}**",
        f"*{RELEASES[mechanism.info.release]}*",
        f"*{none if card.status is None else card.status.marked}, {PROMISES[card.guarantee]}*",
        f"*{loss.replace('≤', 'at most')}*",
        f"*{none if entry is None else percent(entry.mean)}*",
    ]
    key = f"mechanisms.{mechanism.key}.open"
    box = st.expander(" ".join(words), key=key, on_change="rerun", type="compact")
    if box.open:
        with box:
            opened(card, None if entry is None else entry.hint)


def measures(cards: list[MechanismCard], of: Mapping[str, Kept]) -> str:
    """Return the lengths of the bars of every row, as a style."""
    lines = []
    for card in cards:
        fails = card.status is not None and card.status.verdict.fails
        epsilon = (math.inf if fails else 0.0) if card.spent is None else card.spent.epsilon
        sizes = {"loss": min(epsilon / card.budget.epsilon, 9.0)}
        if (entry := of.get(card.mechanism.key)) is not None:
            ends = {"kept": entry.mean, "low": entry.low, "high": entry.high}
            sizes |= {name: min(max(share, 0.0), 1.0) for name, share in ends.items()}
        style = ";".join(f"--{name}:{round(size, 4)}" for name, size in sizes.items())
        lines.append(f".st-key-mechanisms-{card.mechanism.key}-open{{{style}}}")
    return f"<style>{''.join(lines)}</style>"


def group(name: str, cards: list[MechanismCard], of: Mapping[str, Kept], *, whole: bool) -> None:
    """Draw the rows under a heading; only the first few until a visitor unfolds the heading."""
    mine, key = [card for card in cards if group_of(card) == name], f"mechanisms.all.{name}"
    if not mine:
        return
    st.markdown(f"**{name}** {len(mine)}")
    few = len(mine) if whole or st.session_state.get(key) else GROUPS[name]
    with st.container(key=f"mechanisms.rows.{list(GROUPS).index(name)}", gap=None):
        for card in mine[:few]:
            row(card, of.get(card.mechanism.key))
    if few < len(mine):
        best = of.get(mine[few].mechanism.key) if few else None
        least = "" if best is None else narrative.kept_words(best.mean, "at most ")
        more = least and f" more mechanisms that keep {least}"
        st.button(
            f"Show {len(mine) - few}{more}",
            key=f"{key}.show",
            on_click=lambda: st.session_state.update({key: True}),
        )


def opened(card: MechanismCard, hint: str | None) -> None:
    """Draw a mechanism's details: claim, noise distribution, parameters, privacy accounting."""
    info = card.mechanism.info
    st.markdown(f"`{card.mechanism.key}` {info.summary}")
    facts = [info.paper, f"releases {RELEASES[info.release]}", f"{card.guarantee}{card.psd}"]
    facts += [word for word in (hint or card.aim, card.free) if word]
    st.caption(" · ".join(facts))
    lines = [
        f"{line.mark} **{line.words}** ({line.relation}): {line.evidence}" for line in card.statuses
    ]
    st.markdown("\n\n".join(lines))
    st.caption(f"At {narrative.budget_words(card.budget)}: {card.account}.")
    st.latex(info.law)
    st.latex(info.calibration)
    passes = f", passes over the rows: {card.mechanism.passes}" if card.mechanism.passes else ""
    st.markdown(f"Computing time of a release: ${info.complexity}${passes}. {info.advice}")
    for item in card.mechanism.assumed_public:
        st.caption(f"Not covered by the mechanism's guarantee: {item}.")
    if info.url:
        st.markdown(f"[Source]({info.url})")
    parameters(card)
    repeats(card)
    st.caption("Command that repeats the evidence:")
    copyable(card.mechanism.rerun)


_HEAD = """<div class="dp-head"><span></span><span>Mechanism</span><span>Releases</span>
<span>Privacy promise</span><span>Actual loss (mark: promised)</span>
<span>Structure kept (line: 95 % of releases)</span></div>"""


parts.question("Which mechanism fits your task?")
problem, budget = loading.problem_and_budget(current)
all_cards = cards(problem, budget)
place, wait = st.empty().container(), st.empty().container()
of: Mapping[str, Kept] = {}
if current.prepared is not None:
    known_answer = known(all_kept, {"settings": settings}, current, ships=_SHIPS)
    of = {} if known_answer is None else known_answer.of
shares = {key: entry.mean for key, entry in of.items()}
with place:
    sentence = answer(all_cards, shares) if of else "Simulating releases of every mechanism …"
    if (first := best_of(all_cards, shares)) is None:
        parts.lead(sentence, "Open a row to see a mechanism's noise and proof.")
    else:
        label, text = first.mechanism.info.label, first.mechanism.text
        act = state.on_change(lambda: compare_with(text))
        parts.lead(sentence, f"Compare {label} on Explore", act, shell.page("Explore"))
filters = questions(all_cards, shares)
with st.container(key="mechanisms.list", gap="xsmall"):
    lengths = st.empty()
    lengths.html(measures(all_cards, of))
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>{_HEAD}")
    matches = answering(all_cards, shares, filters)
    for name in GROUPS:
        group(name, matches, of, whole=bool(filters))
    if not matches:
        st.markdown("No mechanism meets all selected needs. Remove a need.")
st.caption(
    f"Structure kept is recovery: {per_cent('0')} for a random subspace and "
    f"{per_cent('100')} for exact PCA. Each number is the mean of {settings.trials} "
    "simulated releases. This list uses the data: for a real release, choose the mechanism "
    "before you see it."
)
with wait, guard():
    if current.prepared is not None and not of:
        ask(
            all_kept, {"settings": settings}, current, saying="Simulating releases",
            draw=lambda part: lengths.html(measures(all_cards, part.of)), ships=_SHIPS,
        )  # fmt: skip
        st.rerun()
