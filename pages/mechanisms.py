"""Mechanisms: each on the table in use, sorted by what it keeps."""

PAGE = {
    "title": "Mechanisms",
    "icon": ":material/category:",
    "place": 110,
    "group": "Reference",
    "term": "sensitivity",
    "unread": ("mechanisms",),
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
    lambda found: json.dumps(found.of).encode(),
)


def questions(found: list[MechanismCard], kept: Mapping[str, float]) -> list[str]:
    """Draw what may be asked of a mechanism, each with its count under the others."""
    key = "mechanisms.asked"
    asked = st.session_state.get(key) or []

    def counted(one: str) -> str:
        return f"{one} {len(answering(found, kept, {*asked, one}))}"

    st.pills(
        "Which do you need?", list(QUESTIONS), selection_mode="multi", key=key,
        format_func=counted, persist_state="session",
    )  # fmt: skip
    return asked


def compare_with(text: str) -> None:
    """Add a variant to those that are compared."""
    mechanisms = state.get("mechanisms") or tuple(all_mechanisms())
    if text not in mechanisms:
        state.put("mechanisms", (*mechanisms, text))


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

    st.button(
        f"Compare {variant.text}",
        key=f"mechanisms.{card.mechanism.key}.add",
        icon=":material/add:",
        on_click=state.on_change(lambda: compare_with(variant.text)),
        disabled=variant.text in state.get("mechanisms"),
    )


def repeats(card: MechanismCard) -> None:
    """Offer the whole account of the mechanism, and what repeating it costs."""
    name = f"mechanisms.account.{card.mechanism.key}"  # a parameter may be called account
    box = st.expander("What it costs, and if you repeat it", key=name, on_change="rerun")
    if box.open:
        with box:
            asked = options_at(card.mechanism.text, problem, card.budget, current.settings)
            accounts.draw(asked, name)


def row(card: MechanismCard, kept: Kept | None) -> None:
    """Draw the row of a mechanism; what it says is sent when it is opened."""
    mechanism, none = card.mechanism, "–"
    fails = card.status is not None and card.status.verdict.fails
    loss = "no limit" if fails and card.spends == none else card.spends
    words = [
        f"![]({kept.picture})" if kept is not None and kept.picture else "",
        f"**{mechanism.info.label}**",
        f"*{RELEASES[mechanism.info.release]}*",
        f"*{none if card.status is None else card.status.marked}, {PROMISES[card.guarantee]}*",
        f"*{loss.replace('≤', 'at most')}*",
        f"*{none if kept is None else percent(kept.mean)}*",
    ]
    box = st.expander(
        " ".join(words),
        key=f"mechanisms.{mechanism.key}.open",
        on_change="rerun",
        type="compact",
    )
    if box.open:
        with box:
            opened(card, None if kept is None else kept.hint)


def measures(found: list[MechanismCard], of: Mapping[str, Kept]) -> str:
    """Return the lengths of the bars of every row, as a style."""
    lines = []
    for card in found:
        fails = card.status is not None and card.status.verdict.fails
        epsilon = (math.inf if fails else 0.0) if card.spent is None else card.spent.epsilon
        sizes = {"loss": min(epsilon / card.budget.epsilon, 9.0)}
        if (kept := of.get(card.mechanism.key)) is not None:
            ends = {"kept": kept.mean, "low": kept.low, "high": kept.high}
            sizes |= {name: min(max(share, 0.0), 1.0) for name, share in ends.items()}
        said = ";".join(f"--{name}:{round(size, 4)}" for name, size in sizes.items())
        lines.append(f".st-key-mechanisms-{card.mechanism.key}-open{{{said}}}")
    return f"<style>{''.join(lines)}</style>"


def group(name: str, found: list[MechanismCard], of: Mapping[str, Kept], *, whole: bool) -> None:
    """Draw the rows under a heading, the first few until it is unfolded."""
    mine, key = [card for card in found if group_of(card) == name], f"mechanisms.all.{name}"
    if not mine:
        return
    st.markdown(f"**{name}** {len(mine)}")
    few = len(mine) if whole or st.session_state.get(key) else GROUPS[name]
    with st.container(key=f"mechanisms.rows.{list(GROUPS).index(name)}", gap=None):
        for card in mine[:few]:
            row(card, of.get(card.mechanism.key))
    if few < len(mine):
        best = of.get(mine[few].mechanism.key) if few else None
        more = "" if best is None else f" more that keep {percent(best.mean)} or less"
        st.button(
            f"Show {len(mine) - few}{more}",
            key=f"{key}.show",
            on_click=lambda: st.session_state.update({key: True}),
        )


def opened(card: MechanismCard, hint: str | None) -> None:
    """Draw what is known of a mechanism: claim, law, parameters, account."""
    info = card.mechanism.info
    st.markdown(f"`{card.mechanism.key}` {info.summary}")
    told = [info.paper, f"releases {RELEASES[info.release]}", f"{card.guarantee}{card.psd}"]
    told += [word for word in (hint or card.aim, card.free) if word]
    st.caption(" · ".join(told))
    held = [
        f"{line.mark} **{line.words}** ({line.relation}): {line.evidence}" for line in card.statuses
    ]
    st.markdown("\n\n".join(held))
    st.caption(f"At {narrative.budget_words(card.budget)}: {card.account}.")
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


_HEAD = """<div class="dp-head"><span></span><span>Mechanism</span><span>Releases</span>
<span>Privacy promise</span><span>Actual loss<br>(mark: promised)</span>
<span>Structure kept; line: 95 in 100 releases</span></div>"""


parts.question("Which mechanism fits your task?")
problem, budget = loading.problem_and_budget(current)
found = cards(problem, budget)
place, wait = st.empty().container(), st.empty().container()
of: Mapping[str, Kept] = {}
if current.prepared is not None:
    told = known(all_kept, {"settings": settings}, current, ships=_SHIPS)
    of = {} if told is None else told.of
shares = {key: kept.mean for key, kept in of.items()}
with place:
    said = answer(found, shares) if of else "Simulating releases of every mechanism …"
    if (first := best_of(found, shares)) is None:
        parts.lead(said, "Open a row to see its law and proof.")
    else:
        label, text = first.mechanism.info.label, first.mechanism.text
        act = state.on_change(lambda: compare_with(text))
        parts.lead(said, f"Compare {label} on Explore", act, shell.page("Explore"))
asked = questions(found, shares)
with st.container(key="mechanisms.list", gap="xsmall"):
    lengths = st.empty()
    lengths.html(measures(found, of))
    st.html(f"<style>{_STYLE.read_text(encoding='utf-8')}</style>{_HEAD}")
    shown = answering(found, shares, asked)
    for name in GROUPS:
        group(name, shown, of, whole=bool(asked))
    if not shown:
        st.markdown("No mechanism answers all of that. Take one question back.")
st.caption(
    f"Structure kept: the share of the explained variance, {per_cent('0')} for a random guess and "
    f"{per_cent('100')} for exact PCA; the mean of {settings.trials} simulated releases. Choosing "
    "a mechanism by this list uses the data: a real release chooses beforehand."
)
with wait, guard():
    if current.prepared is not None and not of:
        ask(
            all_kept, {"settings": settings}, current, saying="Simulating releases",
            draw=lambda part: lengths.html(measures(found, part.of)), ships=_SHIPS,
        )  # fmt: skip
        st.rerun()
