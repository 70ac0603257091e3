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

from pages.ui import account_cache, shell

current = shell.through_entry()

from contextlib import suppress
from typing import BinaryIO

from dpviz.core.errors import DpvizError
from dpviz.core.params import format_number, params_of
from dpviz.core.platform import NO_LEDGER, in_browser
from dpviz.datasets import Table
from dpviz.lessons import receipt
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.making import Plan, RealRelease, make, plan
from dpviz.releasing.options import ReleaseOptions
from dpviz.simulation.picture.account import SHARE
from pages.ui import accounts, schema_editor, spending, state
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


def form() -> dict[str, str]:
    """Draw the fields; return what is written in them."""
    left, middle, right = st.columns(3)
    with left:
        written = {"rows": picked("rows"), "row_bound": ""}
        if written["rows"] == "bound":
            written["row_bound"] = field("row_bound", such_as="a length, such as 60")
        written["center"] = picked("center")
    with middle:
        written["epsilon"] = field("epsilon", begins="1")
        written["delta"] = field("delta", such_as="below 1/n, such as 1e-6")
        written["scale"] = picked("scale")
    with right:
        written["k"] = field("k", begins="2")
        written["name"] = field("name", begins="auto")
    left, right = st.columns([2, 1])
    with left:
        written["purpose"] = field("purpose", such_as="that of the ledger, unless you state one")
    with right:
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


# Beside a long form the card stays in sight; on a phone it stands below it.
STAYS = """<style>
@media (min-width: 700px) {
  [data-testid="stColumn"]:has(> * .st-key-release-receipt) {
    align-self: flex-start; position: sticky; top: 4rem;
  }
}
</style>"""


def will_say(written: dict[str, str]) -> None:
    """Draw what the card of this release will say."""
    schema = None
    with suppress(DpvizError):
        schema = schema_editor.declared()
    with st.container(key="release.receipt"):
        st.html(STAYS + receipt.html(written, schema, state.get("rows_a_person")))


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
    return spending.Order({**written, **seen}, cost, carry_out)


def repeating(epsilon: str, delta: str) -> None:
    """Draw what several releases with the form's epsilon and delta cost."""
    if not delta:
        st.caption("State delta first.")
        return
    with guard():
        budget = PARAMS["epsilon"].parse(epsilon), PARAMS["delta"].parse(delta) or 0.0
        accounts.draw(account_cache.account_of_releases(*budget), "release")


def page() -> None:
    """Draw the page."""
    if in_browser():
        st.info(NO_LEDGER, icon=":material/web_asset_off:")
        return
    asked = table = None
    problem = current.problem or "Choose a table."
    try:
        table = schema_editor.given()
    except DpvizError as error:
        problem = str(error)
    if table is None:
        say_error(problem)
    else:
        st.caption(
            "The table is read anew, under its schema and nothing else: state what was known "
            "before anybody looked at it. Every release spends, also of the same table again."
        )
        asking, showing = st.columns([2, 1], gap="medium")
        with asking:
            schema_editor.draw(table)
            written = form()
        with showing:
            will_say(written)
        asked = wanted(table, written)
    spending.draw(asked)
    if asked is None:
        return
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


st.title("Release")
st.markdown(
    "One real release: whole-number rows, discrete noise by OpenDP from the system's entropy, and "
    "a ledger that is written first. There is no seed, no preview and no undo."
)
switched_off = shell.no_releases()
if switched_off is None:
    page()
else:
    st.info(plain(switched_off))
