"""Spending: the ledger, the cost, one confirmation, and the results."""

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
# These session keys store a cost that awaits confirmation, a confirmed order, its result, and
# errors. Each value is plain data.
ASKED, PENDING, SENT = "release.asked", "release.pending", "release.sent"
CAME, WRONG, REFUSED = "release.came", "release.wrong", "release.refused"
SHOWN = "release.shown"


@dataclass(frozen=True)
class Order:
    """Order of a release that the form describes.

    Attributes
    ----------
    asked : mapping of str to str
        All stated values; a change of any value cancels the confirmation.
    plan : callable
        Function that returns the cost for a relation and accepted words, without using budget.
    make : callable
        Function that makes the release for a relation, accepted words, a ledger and a token.
    elsewhere : callable
        Function that returns a sentence for a ledger, if other ledgers record the same table.
    """

    asked: Mapping[str, str]
    plan: Callable[[str, tuple[str, ...]], Plan]
    make: Callable[[str, tuple[str, ...], Ledger, str], object]
    elsewhere: Callable[[Ledger], str]


def ledger() -> str | None:
    """Draw the choice of ledger and its remaining budget; return its name if it can be read."""
    name = _choose()
    if name is None:
        _make()
        return None
    book = Ledger(ledger_named(name))
    try:
        contents, files = book.read(), book.kept()
    except DpvizError as error:
        say_error(error)
        return None
    _stands(contents)
    with st.popover("Entries of this ledger", icon=":material/receipt_long:"):
        st.dataframe(_lines(contents, files), hide_index=True, alt="Entries of the ledger")
    return name


def confirmed(order: Order, name: str) -> None:
    """Draw the two steps that lead to a release."""
    book = Ledger(ledger_named(name))
    # This button stays in place, so that a double click never hits the button that uses budget.
    st.button("Show the privacy cost", key="release.look", on_click=_ask, width="stretch")
    with guard():
        _look(order, name, book, book.read())
    wrong = st.session_state.get(WRONG)
    if wrong is not None and wrong["of"] == _of(order, name):
        say_error(wrong["said"])


def next_step() -> tuple[str, Callable[[], None]]:
    """Return the words of the page's next step, and the function of its button."""
    if not ledger_names() or st.session_state.get("release.ledger") == NEW:
        return "Start a ledger for this table", _create
    return "See what it costs", _ask


def releases(name: str) -> None:
    """Draw the releases of a ledger, with the most recent release first."""
    book = Ledger(ledger_named(name))
    with guard():
        contents = book.read()
        if contents.spends:
            _releases(book, contents, book.kept())


# --- the ledger --------------------------------------------------------------------------------


def _choose() -> str | None:
    """Draw the choice of a ledger, with the most recently written ledger first."""
    names = ledger_names()
    if st.session_state.get("release.ledger") not in (*names, NEW):
        st.session_state.pop("release.ledger", None)
    choice = st.selectbox(
        "Ledger",
        [*names, NEW],
        key="release.ledger",
        persist_state="session",
        help="Record of one table's budget: what releases may use, and what they have used. The "
        "ledger is a file on this machine; the command dpviz ledger shows and checks the file.",
    )
    return None if choice == NEW else str(choice)


def _make() -> None:
    """Draw the form of a new ledger."""
    with st.container(border=True):
        st.markdown("**A ledger records what releases use, and refuses any beyond its limit.**")
        kept: dict[str, Any] = {"persist_state": "session"}
        such_as, limit = "letters, digits, dashes", PARAMS["limit"]
        st.text_input("Name of the ledger", key="release.new.name", placeholder=such_as, **kept)
        such_as, about = "EPSILON,DELTA, such as 3,1e-5", {"help": limit.help} | kept
        st.text_input(limit.label, key="release.new.limit", placeholder=such_as, **about)
        # The ledger counts the declared unit of privacy, unless the user chooses another unit here.
        bound = None if state.get("person") else state.get("rows_a_person")
        unit_texts = str(unit.protected()), PARAMS["rows_a_person"].format(bound)
        if st.session_state.get("release.new.declared") != unit_texts:
            st.session_state["release.new.declared"] = unit_texts
            for name, text in zip(("unit", "rows_a_person"), unit_texts, strict=True):
                st.session_state[f"release.new.{name}"] = text
        with st.expander(f"Unit of privacy: {unit_texts[0]}, and other settings"):
            for name in ("relation", "unit", "account"):
                param, words = PARAMS[name], PARAMS[name].choices
                here = {"key": f"release.new.{name}", "help": param.help} | kept
                st.selectbox(param.label, list(words), format_func=words.__getitem__, **here)
            for name in ("purpose", "rows_a_person"):
                here = {"key": f"release.new.{name}", "help": PARAMS[name].help} | kept
                st.text_input(PARAMS[name].label, **here)
        st.caption("These settings of the ledger cannot be changed afterwards.")
        st.button("Make the ledger", key="release.new.make", type="primary", on_click=_create)
        if REFUSED in st.session_state:
            say_error(st.session_state[REFUSED])
            for word, meaning in ACCEPT_LIMIT.items():
                if word in st.session_state[REFUSED]:
                    st.checkbox(f"I mean it: {meaning}.", key=f"release.new.{word}")


def _create() -> None:
    """Create the ledger that the form describes, in a callback before the page runs."""
    st.session_state.pop(REFUSED, None)
    name = str(st.session_state["release.new.name"]).strip()
    texts = {key: str(st.session_state.get(f"release.new.{key}", "")) for key in PARAMS}
    words = [word for word in ACCEPT_LIMIT if st.session_state.get(f"release.new.{word}")]
    texts["accept"] = ",".join(words)
    try:
        LedgerOptions.from_texts(texts).create(Ledger(ledger_named(name)))
        st.session_state["release.ledger"] = name
    except DpvizError as error:
        st.session_state[REFUSED] = str(error)


def _stands(contents: Contents) -> None:
    """Show the limit, the used budget and the remaining budget."""
    limit = (contents.limit.epsilon, contents.limit.delta)
    with st.container(horizontal=True, gap="large"):
        for label, (epsilon, delta) in (
            ("Spent", contents.total),
            ("Left", contents.left),
            ("Limit", limit),
        ):
            plainly: dict[str, Any] = {"delta_color": "off", "delta_arrow": "off"}
            used = f"ε {numeral(epsilon, 4)}", f"δ {numeral(delta, 3)}"
            st.metric(label, *used, width="content", **plainly)
    words = [
        plain(contents.purpose),
        f"neighbours: {PARAMS['relation'].choices[contents.relation]}".replace(
            "person", str(contents.unit)
        ),
        PARAMS["unit"].choices[contents.unit]
        + ("" if contents.rows is None else f", at most {rows_words(contents.rows)} each"),
        PARAMS["account"].choices[contents.account],
    ]
    st.caption(" · ".join(word for word in words if word))


# --- two steps ---------------------------------------------------------------------------------


def _ask() -> None:
    """Record that the cost was requested, in a callback before the page runs."""
    st.session_state[ASKED] = True
    for key in (PENDING, CAME, WRONG):
        st.session_state.pop(key, None)


def _send() -> None:
    """Take the pending order out of the session, so that a second click finds no order."""
    pending = st.session_state.pop(PENDING, None)
    if pending is not None and all(st.session_state.get(key) for key in _meant(pending)):
        words = tuple(word for word in ACCEPT if st.session_state.get(_box(word)))
        st.session_state[SENT] = {**pending, "accept": words}


def _leave() -> None:
    st.session_state.pop(PENDING, None)


def _box(word: str) -> str:
    return f"release.accept.{word}"


def _look(order: Order, name: str, ledger: Ledger, contents: Contents) -> None:
    """Draw the confirmation with the cost, after the cost was requested."""
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if pending is not None and (pending["asked"], pending["ledger"]) != (order.asked, name):
        st.session_state.pop(PENDING)
        pending = None
    if st.session_state.pop(ASKED, False):
        try:
            with st.spinner("Calibrating"):
                pending = _cost(order, name, ledger, contents)
            st.session_state[PENDING] = pending
        except DpvizError as error:
            _note(order, name, error)
    if pending is not None:
        _confirm(pending)


def _cost(order: Order, name: str, ledger: Ledger, contents: Contents) -> dict[str, Any]:
    """Return the cost of a release as plain data with its own token."""
    relation = str(contents.relation)
    plan = order.plan(relation, tuple(ACCEPT))
    spend = plan.spend()
    ledger.check(spend, contents.relation, plan.schema.unit)
    budget = plan.claimed
    return {
        "token": secrets.token_hex(16),
        "asked": dict(order.asked),
        "ledger": name,
        "relation": relation,
        "mechanism": spend.mechanism,
        "epsilon": spend.priced(contents.rows).epsilon,
        "delta": spend.delta,
        "n": plan.records.n,  # The release publishes n, so this reveals nothing.
        "left": contents.left,
        "after": contents.left_after(spend),
        "elsewhere": order.elsewhere(ledger),
        "words": words_needed(budget.epsilon, budget.delta, plan.records.n),
    }


def _note(order: Order, name: str, error: DpvizError) -> None:
    """Store an error until the next request, because pages run again by themselves."""
    st.session_state[WRONG] = {"said": str(error), "of": _of(order, name)}


def _of(order: Order, name: str) -> tuple[str, dict[str, str]]:
    return name, dict(order.asked)


def _meant(pending: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences that a visitor must confirm, by keys that are unique to this release."""
    price, rest = numeral(pending["epsilon"], 4), numeral(pending["left"][0], 4)
    texts = {
        "undone": "I understand that this cannot be undone: what is published stays published.",
        "agree": f"I agree to use epsilon {price} of the remaining {rest}. Publishing again uses "
        "budget again.",
    }
    return {f"release.meant.{name}.{pending['token']}": text for name, text in texts.items()}


def _confirm(pending: Mapping[str, Any]) -> None:
    """Draw the budget that one click will use, and sentences to confirm, all unticked."""
    with st.container(border=True, key="release-confirm"):
        (rest, left_delta), (after, after_delta) = pending["left"], pending["after"]
        price = numeral(pending["epsilon"], 4)
        st.markdown(
            f"This release by {plain(pending['mechanism'])} uses **ε {price}** and **δ "
            f"{numeral(pending['delta'], 3)}**, whatever its result. The release reads "
            f"{rows_words(pending['n'])}; an empty line counts as a row. Ledger "
            f"{plain(pending['ledger'])} has ε {numeral(rest, 4)} and δ {numeral(left_delta, 3)} "
            f"left, and ε {numeral(after, 4)} and δ {numeral(after_delta, 3)} afterwards."
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
            f"Publish once at epsilon {price}", type="primary", key="release.send",
            on_click=_send, disabled=missing > 0, width="stretch",
        )  # fmt: skip
        if missing:
            st.caption(f"Sentences that you still have to confirm: {missing}.")
        st.button("Not now", key="release.leave", on_click=_leave)


def carry_out(order: Order) -> None:
    """Make the confirmed release once: the token of a form works once, even if sent again.

    A click during the run, or closing the page, ends the run at its next message to the browser.
    The release is already stored beside its ledger.
    """
    message: dict[str, Any] | None = st.session_state.get(SENT)
    if message is None:
        return
    name = message["ledger"]
    ledger = Ledger(ledger_named(name))
    try:
        if ledger.read().number_of(message["token"]) is None:
            if dict(order.asked) != message["asked"]:
                raise DpvizError(
                    "You changed the settings after the cost was shown. Check the new "
                    "cost, then confirm. Nothing was spent."
                )
            with st.spinner("Releasing"):
                order.make(message["relation"], message["accept"], ledger, message["token"])
    except DpvizError as error:
        _note(order, name, error)
    with guard():
        number = ledger.read().number_of(message["token"])
        if number is not None:
            st.session_state[CAME] = (name, number)
            st.session_state[SHOWN] = number
    st.session_state.pop(SENT)


# --- what came of it ---------------------------------------------------------------------------


def _releases(ledger: Ledger, contents: Contents, files: Mapping[int, Path]) -> None:
    """List the ledger's releases, and show one of them, by default the most recent."""
    numbers = [n for n, spend in enumerate(contents.spends, start=1) if spend.releases][::-1]
    if not numbers:
        return
    st.subheader("Releases of this ledger", anchor=False)
    came = st.session_state.get(CAME)
    if came is not None and came[0] == ledger.path.stem:
        st.success(contents.receipt(came[1]).said)
    if st.session_state.get(SHOWN) not in numbers:
        st.session_state[SHOWN] = numbers[0]

    def words(number: int) -> str:
        return _line(contents, number, number in files)

    number = st.selectbox("Release", numbers, key=SHOWN, format_func=words, persist_state="session")
    if number in files:
        with guard():
            _show(read_release(files[number]), files[number].read_bytes(), number)
            filing.draw(files[number], ledger.path, number)
    else:
        st.warning(
            f"Entry {number} has no file: the release was stopped after it had used its budget. "
            "The budget of a stopped release stays used."
        )


def _line(contents: Contents, number: int, has_file: bool) -> str:
    spend = contents.priced[number - 1]
    when = spend.when[:16].replace("T", " ")
    return f"{number} · {when} UTC · {spend.mechanism} · ε {numeral(spend.epsilon, 4)}" + (
        "" if has_file else " · no file"
    )


def _lines(contents: Contents, files: Mapping[int, object]) -> pd.DataFrame:
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
                "release": "kept" if number in files else "no file" if spend.releases else "",
            }
            for number, spend in enumerate(contents.priced, start=1)
        ]
    )


def _show(answer: Mapping[str, Any], content: bytes, number: int) -> None:
    """Show only the released results."""
    columns = st.columns(3)
    for column, label, part in (
        (columns[0], "Proved epsilon", answer["proved"]),
        (columns[1], "Epsilon by OpenDP's map", answer["opendp"]),
    ):
        column.metric(label, numeral(part["epsilon"], 4), help=part["source"])
    columns[2].metric("Delta", numeral(answer["proved"]["delta"], 3))
    with st.container(horizontal=True, vertical_alignment="center"):
        name = f"release-{number:06d}.json"
        parts.download("Download the release", content, name, "release.download")
        st.caption(
            "The release's file also holds the noisy matrix, all that you declared, and the "
            "release's place in the ledger."
        )
