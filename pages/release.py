"""Release: one real release with noise that is safe on a computer."""

PAGE = {
    "title": "Release",
    "icon": ":material/output:",
    "place": 220,
    "group": "Release",
    "term": "composition",
    "own_reading": True,
    "unread": ("epsilon", "delta", "k", "precision", "directions", "mechanisms"),
    "releases": True,
}

import streamlit as st

from pages.ui import shell

current = shell.through_entry()

from contextlib import suppress
from typing import BinaryIO

from dpviz.core.errors import DpvizError
from dpviz.core.params import format_number, params_of
from dpviz.core.platform import NO_LEDGER, in_browser
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


def field(name: str, *, begins: str = "", such_as: str | None = None) -> str:
    """Draw a text field from its declaration; what another page has written there stays."""
    param, key = PARAMS[name], f"release.{name}"
    st.session_state.setdefault(key, begins)
    return str(
        st.text_input(
            param.label,
            key=key,
            help=param.help,
            placeholder=such_as,
            persist_state="session",
        )
    )


def picked(name: str) -> str:
    """Draw a choice from its declaration."""
    param = PARAMS[name]
    return str(
        st.selectbox(
            param.label,
            list(param.choices),
            format_func=lambda key: param.choices[key],
            key=f"release.{name}",
            help=param.help,
            persist_state="session",
        )
    )


def known_before() -> dict[str, str]:
    """Draw what was known before anyone saw the data; return what is written of it."""
    written = {"rows": picked("rows"), "row_bound": ""}
    if written["rows"] == "bound":
        written["row_bound"] = field("row_bound", such_as="a length, such as 60")
    with st.expander("How rows are prepared", icon=":material/tune:"):
        written["center"] = picked("center")
        written["scale"] = picked("scale")
    return written


def costs() -> dict[str, str]:
    """Draw what decides the cost; return what is written of it."""
    left, right = st.columns(2)
    with left:
        written = {"epsilon": field("epsilon", begins="1")}
    with right:
        written["delta"] = field("delta", such_as="below 1/n, such as 1e-6")
    return written


def published() -> dict[str, str]:
    """Draw what is published, for what and by whom; return what is written of it."""
    left, right = st.columns(2)
    with left:
        written = {"k": field("k", begins="2")}
        written["purpose"] = field("purpose", such_as="that of the ledger, unless you state one")
    with right:
        written["name"] = field("name", begins="auto")
        written["by"] = field("by", such_as="a name or an office")
    label = schema_editor.label()
    said = f", told apart by {plain(label)}" if label else ""
    pictured = st.toggle(
        f"With a picture{said}",
        key="release.pictured",
        persist_state="session",
        help="Of the rows, to be shown to anybody: counts of people in cells along the components, "
        "with noise, under the same epsilon.",
    )
    written["picture"] = field("picture", begins=format_number(SHARE)) if pictured else "0"
    return written


STEPS = """<style>
.st-key-release-steps [data-testid="stColumn"] { border-top: 4px solid #2f74b5; padding-top: 6px; }
.st-key-release-steps [data-testid="stColumn"] [data-testid="stColumn"] {
  border: 0; padding: 0;
}
.st-key-release-steps > div > [data-testid="stColumn"]:last-child { border-color: currentColor; }
</style>"""


def will_say(written: dict[str, str]) -> None:
    """Draw what the card of this release will say."""
    schema = None
    with suppress(DpvizError):
        schema = schema_editor.declared()
    with st.container(key="release.receipt"):
        st.html(receipt.html(written, schema, state.get("rows_a_person")))


def wanted(table: Table | BinaryIO, written: dict[str, str]) -> spending.Order:
    """Return what the form asks for; the rows are read after the spend is on the disk."""

    def options(relation: str, accept: tuple[str, ...]) -> ReleaseOptions:
        said = {key: PARAMS[key].parse(text) for key, text in written.items()}
        return ReleaseOptions(**said, relation=relation, accept=accept)

    def cost(relation: str, accept: tuple[str, ...]) -> Plan:
        asked, schema = options(relation, accept), schema_editor.declared()
        return plan(asked, table, schema, from_data=schema.from_data)

    def carry_out(
        relation: str, accept: tuple[str, ...], ledger: Ledger, token: str
    ) -> RealRelease:
        asked, schema = options(relation, accept), schema_editor.declared()
        return make(asked, table, schema, from_data=schema.from_data, ledger=ledger, token=token)

    try:
        schema = schema_editor.declared()
        declared = f"{schema.digest}, from data: {schema.from_data}"
    except DpvizError as error:
        declared = str(error)
    seen = {"table": schema_editor.named(table), "schema": declared}
    return spending.Order(
        {**written, **seen}, cost, carry_out, lambda ledger: paid_elsewhere(table, ledger)
    )


def repeating(epsilon: str, delta: str) -> None:
    """Draw what several releases with the form's epsilon and delta cost."""
    if not delta:
        st.caption("State delta first.")
        return
    with guard():
        budget = {
            "epsilon": PARAMS["epsilon"].parse(epsilon),
            "delta": PARAMS["delta"].parse(delta) or 0.0,
        }
        wanted = Law.NORMAL if budget["delta"] > 0 else Law.LAPLACE
        mechanism = next(key for key, law in float_safe().items() if law is wanted)
        accounts.draw({"mechanism": mechanism, **budget}, "release")


def page() -> None:
    """Draw the page."""
    if in_browser():
        st.info(NO_LEDGER, icon=":material/web_asset_off:")
        return
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
        first, second, third = st.columns([1, 1, 1.12], gap="medium")
    with first:
        st.header("1. What was known before anyone saw the data?", anchor=False)
        schema_editor.draw(table)
        written = known_before()
    with second:
        st.header("2. What does it cost?", anchor=False)
        written |= costs()
        st.html(receipt.risk_html(written))
    with third:
        st.header("3. Publish once", anchor=False)
        written |= published()
        will_say(written)
        asked = wanted(table, written)
        spending.carry_out(asked)  # before the ledger says what is left
    with second:
        name = spending.ledger()
    if name is not None:
        with third:
            spending.confirmed(asked, name)
        spending.releases(name)
    with st.expander("Before you release: what repeating costs", icon=":material/repeat:"):
        repeating(st.session_state["release.epsilon"], st.session_state["release.delta"])
    with st.expander("What this proves, and what not", icon=":material/gavel:"):
        st.markdown(
            "Each cell is read by itself under the schema; what is no number becomes the typical "
            "value. Rows are cut to the bounds, centred on public numbers or a private mean, "
            "shortened to the row bound or scaled to length one, and truncated toward zero on a "
            "grid of 2^-20; their lengths are certified in whole numbers, so X'X is exact and its "
            "sensitivity proved. The noise is discrete Gaussian (or Laplace "
            "where delta is 0), drawn by OpenDP. Claimed is the exact Gaussian account, proved for "
            "discrete noise, with OpenDP's looser map beside it (where delta is 0, the map). Not "
            "covered: that the table has n rows, that it is this table, and whatever else you "
            "publish about it."
        )


parts.question("Publish once, with a record")
parts.lead(
    "You see the cost before anything is spent. What is published cannot be taken back.",
    "First state what was known.",
)
switched_off = shell.no_releases()
if switched_off is None:
    page()
else:
    st.info(plain(switched_off))
