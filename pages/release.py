"""Release: one real release with noise that is safe on a computer."""

import streamlit as st

from pages.ui import account_cache, shell

current = shell.through_entry()

from typing import BinaryIO

import pandas as pd

from dpviz.base.here import NO_LEDGER, in_browser
from dpviz.base.number_text import numeral
from dpviz.base.params import params_of
from dpviz.datasets import Table
from dpviz.releasing.ledger import Ledger, ledger_named
from dpviz.releasing.making import RealRelease, make
from dpviz.releasing.options import LedgerOptions, ReleaseOptions
from pages.ui import accounts, schema_editor
from pages.ui.guard import guard

PARAMS = params_of(ReleaseOptions)
MADE, ASKED = "release.made", "release.asked"


def ask() -> None:
    """Note that the form was sent; a callback, which runs before the page does."""
    st.session_state[ASKED] = True


def field(name: str, *, value: str = "", such_as: str | None = None) -> str:
    """Draw a text field from its declaration."""
    param = PARAMS[name]
    return str(
        st.text_input(
            param.label,
            value,
            key=f"release.{name}",
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


def form() -> tuple[dict[str, str], str, str] | None:
    """Draw the fields and the button; return what was written once it was pressed."""
    left, middle, right = st.columns(3)
    with left:
        written = {
            "row_bound": field("row_bound", such_as="a length, such as 60"),
            "center": picked("center"),
            "name": field("name", value="auto"),
        }
    with middle:
        written["epsilon"] = field("epsilon", value="1")
        written["delta"] = field("delta", value="1e-6")
        written["k"] = field("k", value="2")
    with right:
        written["relation"] = picked("relation")
        ledger = st.text_input(
            "Ledger",
            "",
            key="release.ledger",
            placeholder="a name, such as my-table",
            persist_state="session",
            help="Name of the ledger of this table: letters, digits, dashes. It is a file on "
            "this machine; python -m dpviz ledger shows it.",
        )
        limit = st.text_input(
            "Limit of a new ledger",
            "",
            key="release.limit",
            placeholder="EPSILON,DELTA",
            persist_state="session",
            help="EPSILON,DELTA that all releases together may not pass; empty where it is there.",
        )
    st.button("Release, and spend", type="primary", key="release.send", on_click=ask)
    # taken once: whatever makes the page run again does not spend again
    return (written, ledger, limit) if st.session_state.pop(ASKED, False) else None


def release(table: Table | BinaryIO, written: dict[str, str], name: str, limit: str) -> RealRelease:
    """Make the release; the rows are read after the spend is on the disk."""
    options = ReleaseOptions(**{key: PARAMS[key].parse(text) for key, text in written.items()})
    options.require()
    schema = schema_editor.declared()
    ledger = Ledger(ledger_named(name))
    if limit.strip():
        LedgerOptions(limit=limit.strip(), relation=options.relation).create(ledger)
    return make(options, table, schema, from_data=schema.from_data, ledger=ledger)


def shown(made: RealRelease) -> None:
    """Show what was released, and nothing else."""
    answer = made.to_json()
    st.success(made.said)
    proved, mapped = made.noise.proved, made.noise.mapped
    columns = st.columns(3)
    columns[0].metric("Proved epsilon", f"{proved.epsilon:.4g}", help=answer["proved"]["source"])
    columns[1].metric("By OpenDP's map", f"{mapped.epsilon:.4g}", help=answer["opendp"]["source"])
    columns[2].metric("Delta", numeral(proved.delta, 3))
    st.caption(
        "Released components, one column each; they stand in the file with the noisy matrix, what "
        "was declared, and a digest of the settings."
    )
    names = [f"component {number + 1}" for number in range(made.components.shape[1])]
    st.dataframe(
        pd.DataFrame(made.components, columns=names), hide_index=True, alt="Released components"
    )
    st.download_button(
        "Download the release",
        made.to_text(),
        file_name="release.json",
        mime="application/json",
        key="release.download",
    )


def repeating(epsilon: str, delta: str) -> None:
    """Draw what several releases with the form's epsilon and delta cost."""
    with guard():
        budget = PARAMS["epsilon"].parse(epsilon), PARAMS["delta"].parse(delta) or 0.0
        accounts.draw(account_cache.account_of_releases(*budget), "release")


def page() -> None:
    """Draw the page."""
    if in_browser():
        st.info(NO_LEDGER, icon=":material/web_asset_off:")
        return
    table = schema_editor.given()
    if table is None:
        st.info("Choose a table.")
        return
    st.caption(
        "The table is read anew, under its schema and nothing else: state what was known before "
        "anybody looked at it. Every click makes another release and spends again."
    )
    schema_editor.draw(table)
    sent = form()
    if sent is not None:
        st.session_state.pop(MADE, None)
        with guard(), st.spinner("Releasing"):
            st.session_state[MADE] = release(table, *sent)
    if MADE in st.session_state:
        shown(st.session_state[MADE])
    with st.expander("Before you release: what repeating costs", icon=":material/repeat:"):
        repeating(st.session_state["release.epsilon"], st.session_state["release.delta"])
    with st.expander("What this proves, and what not", icon=":material/gavel:"):
        st.markdown(
            "Each cell is read by itself under the schema; what is no number becomes the typical "
            "value. Rows are cut to the bounds, centred on public numbers and truncated toward "
            "zero on a grid of 2^-20 row bounds; their lengths are certified in whole numbers, so "
            "X'X is exact and its sensitivity proved. The noise is discrete Gaussian (or Laplace "
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
if shell.releases():
    page()
else:
    st.info("Releases are switched off here.")
