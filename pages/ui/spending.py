"""Spending: which ledger pays, what it costs, one confirmation, and all that came of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.core.errors import DpvizError
from dpviz.core.number_text import numeral, rows_words
from dpviz.core.params import params_of
from dpviz.releasing.ledger import Contents, Ledger, ledger_named, ledger_names
from dpviz.releasing.making import Plan
from dpviz.releasing.options import ACCEPT, ACCEPT_LIMIT, LedgerOptions, words_needed
from dpviz.releasing.outputs import read_release
from pages.ui import filing, parts, state, unit
from pages.ui.guard import guard, say_error
from pages.ui.texts import plain

PARAMS = params_of(LedgerOptions)
NEW = "a new ledger ..."
# What the session holds: what was looked at and waits for a confirmation, what was confirmed,
# what came of it, and what went wrong. Each is plain data.
ASKED, PENDING, SENT = "release.asked", "release.pending", "release.sent"
CAME, WRONG, REFUSED = "release.came", "release.wrong", "release.refused"
SHOWN = "release.shown"


@dataclass(frozen=True)
class Order:
    """What the form asks for.

    Attributes
    ----------
    asked : mapping of str to str
        Everything that was stated; where it changes a confirmation is void.
    plan : callable
        From a relation and accepted words: what it would cost. Spends nothing.
    make : callable
        From a relation, accepted words, a ledger and a token: makes the release.
    elsewhere : callable
        From a ledger: a sentence where others pay for the same table.
    """

    asked: Mapping[str, str]
    plan: Callable[[str, tuple[str, ...]], Plan]
    make: Callable[[str, tuple[str, ...], Ledger, str], object]
    elsewhere: Callable[[Ledger], str]


def ledger() -> str | None:
    """Draw which ledger pays and what is left of it; return its name if it can be read."""
    name = _choose()
    if name is None:
        _make()
        return None
    found = Ledger(ledger_named(name))
    try:
        contents, kept = found.read(), found.kept()
    except DpvizError as error:
        say_error(error)
        return None
    _stands(contents)
    with st.popover("Lines of this ledger", icon=":material/receipt_long:"):
        st.dataframe(_lines(contents, kept), hide_index=True, alt="Lines of the ledger")
    return name


def confirmed(wanted: Order, name: str) -> None:
    """Draw the two steps to a release."""
    found = Ledger(ledger_named(name))
    # it stays where it is: a double click on it never meets the button that spends
    st.button("Show what it costs", key="release.look", on_click=_ask, width="stretch")
    with guard():
        _look(wanted, name, found, found.read())
    wrong = st.session_state.get(WRONG)
    if wrong is not None and wrong["of"] == _of(wanted, name):
        say_error(wrong["said"])


def releases(name: str) -> None:
    """Draw the releases of a ledger, the last one first."""
    found = Ledger(ledger_named(name))
    with guard():
        contents = found.read()
        if contents.spends:
            _releases(found, contents, found.kept())


# --- the ledger --------------------------------------------------------------------------------


def _choose() -> str | None:
    """Draw the choice of a ledger; the one last written comes first."""
    names = ledger_names()
    if st.session_state.get("release.ledger") not in (*names, NEW):
        st.session_state.pop("release.ledger", None)
    picked = st.selectbox(
        "Ledger",
        [*names, NEW],
        key="release.ledger",
        persist_state="session",
        help="What has been spent on one table, and how much may be. It is a file on this "
        "machine; dpviz ledger shows and checks it.",
    )
    return None if picked == NEW else str(picked)


def _make() -> None:
    """Draw the form of a new ledger."""
    with st.container(border=True):
        st.text_input(
            "Name of the ledger",
            key="release.new.name",
            placeholder="letters, digits, dashes",
            persist_state="session",
        )
        st.text_input(
            PARAMS["limit"].label,
            key="release.new.limit",
            placeholder="EPSILON,DELTA, such as 3,1e-5",
            help=PARAMS["limit"].help,
            persist_state="session",
        )
        # what is declared is what the ledger counts, until somebody picks another here
        bound = None if state.get("person") else state.get("rows_a_person")
        declared = str(unit.protected()), PARAMS["rows_a_person"].format(bound)
        if st.session_state.get("release.new.declared") != declared:
            st.session_state["release.new.declared"] = declared
            for name, said in zip(("unit", "rows_a_person"), declared, strict=True):
                st.session_state[f"release.new.{name}"] = said
        for name in ("relation", "unit", "account"):
            st.selectbox(
                PARAMS[name].label,
                list(PARAMS[name].choices),
                format_func=PARAMS[name].choices.__getitem__,
                key=f"release.new.{name}",
                help=PARAMS[name].help,
                persist_state="session",
            )
        for name in ("purpose", "rows_a_person"):
            st.text_input(
                PARAMS[name].label,
                key=f"release.new.{name}",
                help=PARAMS[name].help,
                persist_state="session",
            )
        st.caption("None of this can be changed afterwards.")
        st.button("Make the ledger", key="release.new.make", type="primary", on_click=_create)
        if REFUSED in st.session_state:
            say_error(st.session_state[REFUSED])
            for word, meaning in ACCEPT_LIMIT.items():
                if word in st.session_state[REFUSED]:
                    st.checkbox(f"I mean it: {meaning}.", key=f"release.new.{word}")


def _create() -> None:
    """Make the ledger that the form describes; a callback, which runs before the page does."""
    st.session_state.pop(REFUSED, None)
    name = str(st.session_state["release.new.name"]).strip()
    written = {key: str(st.session_state.get(f"release.new.{key}", "")) for key in PARAMS}
    words = [word for word in ACCEPT_LIMIT if st.session_state.get(f"release.new.{word}")]
    written["accept"] = ",".join(words)
    try:
        LedgerOptions.from_texts(written).create(Ledger(ledger_named(name)))
        st.session_state["release.ledger"] = name
    except DpvizError as error:
        st.session_state[REFUSED] = str(error)


def _stands(contents: Contents) -> None:
    """Show limit, spent and left."""
    limit = (contents.limit.epsilon, contents.limit.delta)
    with st.container(horizontal=True, gap="large"):
        for label, (epsilon, delta) in (
            ("Spent", contents.total),
            ("Left", contents.left),
            ("Limit", limit),
        ):
            st.metric(
                label,
                f"ε {numeral(epsilon, 4)}",
                f"δ {numeral(delta, 3)}",
                delta_color="off",
                delta_arrow="off",
                width="content",
            )
    said = [
        plain(contents.purpose),
        f"neighbours: {PARAMS['relation'].choices[contents.relation]}".replace(
            "person", str(contents.unit)
        ),
        PARAMS["unit"].choices[contents.unit]
        + ("" if contents.rows is None else f", at most {rows_words(contents.rows)} each"),
        PARAMS["account"].choices[contents.account],
    ]
    st.caption(" · ".join(word for word in said if word))


# --- two steps ---------------------------------------------------------------------------------


def _ask() -> None:
    """Note that the cost was asked for; a callback, which runs before the page does."""
    st.session_state[ASKED] = True
    for key in (PENDING, CAME, WRONG):
        st.session_state.pop(key, None)


def _send() -> None:
    """Take what waits for a confirmation: a second click finds nothing to take."""
    pending = st.session_state.pop(PENDING, None)
    if pending is not None and all(st.session_state.get(key) for key in _meant(pending)):
        words = tuple(word for word in ACCEPT if st.session_state.get(_box(word)))
        st.session_state[SENT] = {**pending, "accept": words}


def _leave() -> None:
    st.session_state.pop(PENDING, None)


def _box(word: str) -> str:
    return f"release.accept.{word}"


def _look(wanted: Order, name: str, ledger: Ledger, contents: Contents) -> None:
    """Draw what it costs, and once that was asked the confirmation."""
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if pending is not None and (pending["asked"], pending["ledger"]) != (wanted.asked, name):
        st.session_state.pop(PENDING)
        pending = None
    if st.session_state.pop(ASKED, False):
        try:
            with st.spinner("Calibrating"):
                pending = _cost(wanted, name, ledger, contents)
            st.session_state[PENDING] = pending
        except DpvizError as error:
            _note(wanted, name, error)
    if pending is not None:
        _confirm(pending)


def _cost(wanted: Order, name: str, ledger: Ledger, contents: Contents) -> dict[str, Any]:
    """Return what a release would cost, as plain data with a token of its own."""
    relation = str(contents.relation)
    planned = wanted.plan(relation, tuple(ACCEPT))
    spend = planned.spend()
    ledger.check(spend, contents.relation, planned.schema.unit)
    claimed = planned.claimed
    return {
        "token": secrets.token_hex(16),
        "asked": dict(wanted.asked),
        "ledger": name,
        "relation": relation,
        "mechanism": spend.mechanism,
        "epsilon": spend.priced(contents.rows).epsilon,
        "delta": spend.delta,
        "n": planned.records.n,  # public, as the release itself says
        "left": contents.left,
        "after": contents.left_after(spend),
        "elsewhere": wanted.elsewhere(ledger),
        "words": words_needed(claimed.epsilon, claimed.delta, planned.records.n),
    }


def _note(wanted: Order, name: str, error: DpvizError) -> None:
    """Keep what went wrong until something else is asked for: pages run again by themselves."""
    st.session_state[WRONG] = {"said": str(error), "of": _of(wanted, name)}


def _of(wanted: Order, name: str) -> tuple[str, dict[str, str]]:
    return name, dict(wanted.asked)


def _meant(pending: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences to be confirmed by their keys, which no other release has."""
    price, left = numeral(pending["epsilon"], 4), numeral(pending["left"][0], 4)
    said = {
        "undone": "I understand that this cannot be undone: what is published stays published.",
        "agree": f"I agree to use epsilon {price} of the {left} that are left. Publishing "
        "again costs again.",
    }
    return {f"release.meant.{name}.{pending['token']}": text for name, text in said.items()}


def _confirm(pending: Mapping[str, Any]) -> None:
    """Draw what one click will spend, and what is to be meant; nothing is ticked beforehand."""
    with st.container(border=True, key="release-confirm"):
        (left, left_delta), (after, after_delta) = pending["left"], pending["after"]
        price = numeral(pending["epsilon"], 4)
        st.markdown(
            f"This release spends **ε {price}** and "
            f"**δ {numeral(pending['delta'], 3)}** by {plain(pending['mechanism'])}, whatever "
            f"comes out. It reads {rows_words(pending['n'])}; an empty line is one. "
            f"Ledger {plain(pending['ledger'])} has ε {numeral(left, 4)} and "
            f"δ {numeral(left_delta, 3)} left, and ε {numeral(after, 4)} and δ "
            f"{numeral(after_delta, 3)} afterwards."
        )
        if pending["elsewhere"]:
            st.warning(plain(pending["elsewhere"]))
        meant = [st.checkbox(text, key=key) for key, text in _meant(pending).items()]
        meant += [
            st.checkbox(f"I mean it: {meaning}.", key=_box(word))
            for word, meaning in pending["words"].items()
        ]
        missing = meant.count(False)
        st.button(
            f"Publish once at epsilon {price}",
            type="primary",
            key="release.send",
            on_click=_send,
            disabled=missing > 0,
            width="stretch",
        )
        if missing:
            st.caption(f"Still to confirm: {missing} of the sentences above.")
        st.button("Not now", key="release.leave", on_click=_leave)


def carry_out(wanted: Order) -> None:
    """Make what was confirmed, once: the token of a form is spent once, whoever sends it again.

    A click while this runs, or a closed page, ends the run at its next word to the browser; by
    then the release lies beside its ledger.
    """
    sent: dict[str, Any] | None = st.session_state.get(SENT)
    if sent is None:
        return
    name = sent["ledger"]
    ledger = Ledger(ledger_named(name))
    try:
        if ledger.read().number_of(sent["token"]) is None:
            if dict(wanted.asked) != sent["asked"]:
                raise DpvizError(
                    "what is asked for changed after its cost was shown: look at the cost again; "
                    "nothing was spent."
                )
            with st.spinner("Releasing"):
                wanted.make(sent["relation"], sent["accept"], ledger, sent["token"])
    except DpvizError as error:
        _note(wanted, name, error)
    with guard():
        number = ledger.read().number_of(sent["token"])
        if number is not None:
            st.session_state[CAME] = (name, number)
            st.session_state[SHOWN] = number
    st.session_state.pop(SENT)


# --- what came of it ---------------------------------------------------------------------------


def _releases(ledger: Ledger, contents: Contents, kept: Mapping[int, Path]) -> None:
    """List the ledger's releases, and show one of them, the last one first."""
    numbers = [n for n, spend in enumerate(contents.spends, start=1) if spend.releases][::-1]
    if not numbers:
        return
    st.subheader("Releases of this ledger", anchor=False)
    came = st.session_state.get(CAME)
    if came is not None and came[0] == ledger.path.stem:
        st.success(contents.receipt(came[1]).said)
    if st.session_state.get(SHOWN) not in numbers:
        st.session_state[SHOWN] = numbers[0]
    number = st.selectbox(
        "Release",
        numbers,
        key=SHOWN,
        format_func=lambda n: _line(contents, n, n in kept),
        persist_state="session",
    )
    if number in kept:
        with guard():
            _show(read_release(kept[number]), kept[number].read_bytes(), number)
            filing.draw(kept[number], ledger.path, number)
    else:
        st.warning(
            f"Spend {number} has no file: the release was stopped after it was paid for, and what "
            "was spent stays spent."
        )


def _line(contents: Contents, number: int, kept: bool) -> str:
    spend = contents.priced[number - 1]
    when = spend.when[:16].replace("T", " ")
    return f"{number} · {when} UTC · {spend.mechanism} · ε {numeral(spend.epsilon, 4)}" + (
        "" if kept else " · no file"
    )


def _lines(contents: Contents, kept: Mapping[int, object]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "spend": number,
                "when": spend.when[:19].replace("T", " "),
                "mechanism": spend.mechanism,
                "epsilon": spend.epsilon,
                "delta": spend.delta,
                "for": spend.stated_purpose or spend.purpose,
                "by": spend.by,
                "approximate": spend.approximate,
                "release": "kept" if number in kept else "no file" if spend.releases else "",
            }
            for number, spend in enumerate(contents.priced, start=1)
        ]
    )


def _show(answer: Mapping[str, Any], content: bytes, number: int) -> None:
    """Show what was released, and nothing else."""
    columns = st.columns(3)
    for column, label, part in (
        (columns[0], "Proved epsilon", answer["proved"]),
        (columns[1], "By OpenDP's map", answer["opendp"]),
    ):
        column.metric(label, numeral(part["epsilon"], 4), help=part["source"])
    columns[2].metric("Delta", numeral(answer["proved"]["delta"], 3))
    with st.container(horizontal=True, vertical_alignment="center"):
        name = f"release-{number:06d}.json"
        parts.download("Download the release", content, name, "release.download")
        st.caption("It holds the noisy matrix too, what was declared, and its place in the ledger.")
