"""Release: one real release with noise that is exact on a computer."""

PAGE = {
    "title": "Release",
    "icon": ":material/output:",
    "place": 220,
    "group": "Release",
    "term": "composition",
    "own_reading": True,
    "unread": ("epsilon", "delta", "k", "precision", "directions", "mechanisms"),
    "releases": True,
    "about": "Every other page simulates; this page publishes. State what was known before anyone "
    "saw the data, look at the cost, then confirm. The ledger records the budget that was used. "
    "What is published cannot be taken back.",
}

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui import shell

current = shell.through_entry()

from contextlib import suppress
from typing import Any, BinaryIO

from dpviz.core.errors import DpvizError
from dpviz.core.params import format_number, params_of
from dpviz.core.platform import NO_LEDGER, in_browser
from dpviz.core.problem import protects
from dpviz.datasets import Table
from dpviz.lessons import receipt
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.making import Plan, RealRelease, float_safe, make, paid_elsewhere, plan
from dpviz.releasing.noise import Law
from dpviz.releasing.options import ReleaseOptions
from dpviz.simulation.picture.account import SHARE
from pages.ui import accounts, parts, schema_editor, spending, state
from pages.ui.guard import guard, say_error
from pages.ui.texts import plain

PARAMS = params_of(ReleaseOptions)
KEPT: dict[str, Any] = {"persist_state": "session"}


def field(name: str, *, begins: str = "", such_as: str | None = None) -> str:
    """Draw a text field from its declaration; keep the text that another page wrote there."""
    param, key = PARAMS[name], f"release.{name}"
    st.session_state.setdefault(key, begins)
    return str(st.text_input(param.label, key=key, help=param.help, placeholder=such_as, **KEPT))


def picked(name: str) -> str:
    """Draw a choice from its declaration."""
    param, key = PARAMS[name], f"release.{name}"
    words, options = param.choices.__getitem__, list(param.choices)
    now = st.selectbox(param.label, options, format_func=words, key=key, help=param.help, **KEPT)
    return str(now)


def known_before() -> dict[str, str]:
    """Draw the fields for facts known before anyone saw the data; return their texts."""
    texts = {"rows": picked("rows"), "row_bound": ""}
    if texts["rows"] == "bound":
        texts["row_bound"] = field("row_bound", such_as="a length, such as 60")
    with st.expander("How rows are prepared", icon=":material/tune:"):
        texts["center"] = picked("center")
        texts["scale"] = picked("scale")
    return texts


def costs() -> dict[str, str]:
    """Draw the fields that determine the privacy cost; return their texts."""
    left, right = st.columns(2)
    with left:
        texts = {"epsilon": field("epsilon", begins="1")}
    with right:
        texts["delta"] = field("delta", such_as="such as 1e-6")
    return texts


def published() -> dict[str, str]:
    """Draw the fields on what is published, its purpose and its requester; return their texts."""
    left, right = st.columns(2)
    with left:
        texts = {"k": field("k", begins="2")}
        texts["purpose"] = field("purpose", such_as="the ledger's purpose")
    with right:
        texts["name"] = field("name", begins="auto")
        texts["by"] = field("by", such_as="a name or an office")
    label = schema_editor.label()
    note = f", coloured by {plain(label)}" if label else ""
    about = (
        "A map of the rows that anybody may see: noisy counts of people in cells along the "
        "components. The same epsilon covers the map."
    )
    words = f"Also publish a map{note}"
    with_picture = st.toggle(words, key="release.pictured", help=about, **KEPT)
    texts["picture"] = field("picture", begins=format_number(SHARE)) if with_picture else "0"
    return texts


STEPS = """<style>
.st-key-release-steps [data-testid="stColumn"] { border-top: 4px solid #2f74b5; padding-top: 6px; }
.st-key-release-steps [data-testid="stColumn"] [data-testid="stColumn"] {
  border: 0; padding: 0;
}
.st-key-release-price [data-testid="stMetricValue"] { font-size: 21px; }
.st-key-release-steps > div > [data-testid="stColumn"]:last-child { border-color: currentColor; }
@media (min-width: 641px) { :has(> [class*="st-key-release-done-"]) { display: none; } }
</style>"""


def fold(place: DeltaGenerator, step: str, words: str) -> None:
    """Fold a finished step on a phone to one line of result, which opens it again."""
    with place.container(horizontal=True, key=f"release-done-{step}"):
        st.markdown(f"✓ {words}", width="content")
        if not st.toggle("Change", key=f"release.open.{step}", **KEPT):
            hidden = f".st-key-release-{step} {{ display: none !important; }}"
            st.html(f"<style>@media (max-width: 640px) {{ {hidden} }}</style>")


def will_say(texts: dict[str, str]) -> None:
    """Draw a preview of the release's privacy card."""
    schema = None
    with suppress(DpvizError):
        schema = schema_editor.declared()
    with st.container(key="release.receipt"):
        st.html(receipt.html(texts, schema, state.get("rows_a_person")))


def wanted(table: Table | BinaryIO, texts: dict[str, str]) -> spending.Order:
    """Return the order of the form; rows are read only after the spend is stored on disk."""

    def options(relation: str, accept: tuple[str, ...]) -> ReleaseOptions:
        values = {key: PARAMS[key].parse(text) for key, text in texts.items()}
        return ReleaseOptions(**values, relation=relation, accept=accept)

    def cost(relation: str, accept: tuple[str, ...]) -> Plan:
        request, schema = options(relation, accept), schema_editor.declared()
        return plan(request, table, schema, from_data=schema.from_data)

    def carry_out(
        relation: str, accept: tuple[str, ...], ledger: Ledger, token: str
    ) -> RealRelease:
        request, schema = options(relation, accept), schema_editor.declared()
        return make(request, table, schema, from_data=schema.from_data, ledger=ledger, token=token)

    try:
        schema = schema_editor.declared()
        schema_words = f"{schema.digest}, from data: {schema.from_data}"
    except DpvizError as error:
        schema_words = str(error)
    tables_seen = {"table": schema_editor.named(table), "schema": schema_words}
    return spending.Order(
        {**texts, **tables_seen}, cost, carry_out, lambda ledger: paid_elsewhere(table, ledger)
    )


def repeating(epsilon: str, delta: str) -> None:
    """Draw the cost of several releases with the epsilon and delta of the form."""
    if not delta:
        st.caption("State a value of delta first.")
        return
    with guard():
        budget = {
            "epsilon": PARAMS["epsilon"].parse(epsilon),
            "delta": PARAMS["delta"].parse(delta) or 0.0,
        }
        noise_law = Law.NORMAL if budget["delta"] > 0 else Law.LAPLACE
        mechanism = next(key for key, law in float_safe().items() if law is noise_law)
        accounts.draw({"mechanism": mechanism, **budget}, "release")


def page() -> None:
    """Draw the Release page."""
    table = None
    problem = current.problem or "Choose a table."
    try:
        table = schema_editor.given()
    except DpvizError as error:
        problem = str(error)
    if table is None:
        say_error(problem)
        name = spending.ledger()
        if name is not None:
            spending.releases(name)
        return
    st.html(STEPS)
    with st.container(key="release.steps"):
        first, second, third = st.columns([1.2, 1, 1.12], gap="medium")
    with first:
        st.header("1. What did you know before anyone saw the data?", anchor=False)
        known = st.empty()
        with st.container(key="release-known"):
            schema_editor.draw(table)
            texts = known_before()
        with suppress(DpvizError):
            words = f"{len(schema_editor.declared().used)} columns"
            if texts["rows"] != "bound" or PARAMS["row_bound"].parse(texts["row_bound"]):
                fold(known, "known", f"{words}; this {protects(state.get('rows_a_person'))}.")
    with second:
        st.header("2. What does it cost?", anchor=False)
        paid = st.empty()
        price = st.container(key="release-price")
    with price:
        texts |= costs()
        st.html(receipt.risk_html(texts))
    with third:
        st.header("3. Publish once", anchor=False)
        texts |= published()
        will_say(texts)
        order = wanted(table, texts)
        spending.carry_out(order)  # The ledger then shows the remaining budget.
    with price:
        name = spending.ledger()
    if name is not None:
        with third:
            spending.confirmed(order, name)
        if spending.PENDING in st.session_state:
            fold(paid, "price", f"ε {plain(texts['epsilon'])}, δ {plain(texts['delta'])}")
        spending.releases(name)
    with st.expander("Privacy loss of several releases together", icon=":material/repeat:"):
        repeating(st.session_state["release.epsilon"], st.session_state["release.delta"])
    with st.expander("What is proved, and what is not", icon=":material/gavel:"):
        st.markdown(
            "Each cell is read by itself under the schema; a cell that is not a number becomes the "
            "typical value. Rows are clipped to the bounds and centred on public numbers or a "
            "private mean. Centred rows are then clipped to the row-norm bound or scaled to length "
            "one. Last, rows are truncated toward zero on a grid of 2^-20. Row lengths are "
            "certified in whole numbers, so X'X is exact, with a proved sensitivity. The noise is "
            "discrete Gaussian (or Laplace if delta is 0), drawn by OpenDP. The card claims the "
            "exact Gaussian account, which is proved for discrete noise, and also shows OpenDP's "
            "looser map. If delta is 0, the card claims OpenDP's map. The proof does not cover the "
            "number of rows, the identity of the table, or other publications about the table."
        )


parts.question("Publish once, with a record")
switched_off = shell.no_releases() or (NO_LEDGER if in_browser() else None)
told = "You see the privacy cost before any budget is used. What is published cannot be taken back."
if switched_off is None:
    parts.lead(told, *spending.next_step())
    page()
else:
    parts.lead(told, "See what is safe to publish", to=shell.page("Decide"))
    st.info(plain(switched_off))
