"""What a view can be taken along as: a board, a report, a notebook, a script, a link."""

from __future__ import annotations

import streamlit as st

from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.board import anybodys
from dpviz.simulation.compare import Comparison
from dpviz.studies import board
from pages.ui import addresses, state
from pages.ui.copying import copyable


def with_the_truth(prepared: Measured) -> bool:
    """Ask whether files hold what is not public; nothing is asked where all of it is."""
    return not anybodys(prepared) and st.toggle(
        "With real rows and the truth: not to be shown around",
        key="take.working",
        help="Else board and report hold pictures with fresh noise alone; do not publish them.",
    )


def along(comparison: Comparison, prepared: Prepared, *, publishable: bool = False) -> None:
    """Offer the view as files that work without this page, and as a link that says everything.

    Parameters
    ----------
    comparison : Comparison
    prepared : Prepared
    publishable : bool
        Whether files that are not to be shown around are not even offered.
    """
    settings = comparison.settings
    uploaded = settings.table == state.UPLOAD
    table = "YOUR_FILE.csv" if uploaded else settings.table
    command = settings.command(table)
    link = addresses.to_explore(settings)
    working = not publishable and with_the_truth(prepared)
    flag = " --working-view" if working else ""
    with st.container(horizontal=True, key="take.files"):
        st.download_button(
            "Board (one HTML file, works offline)",
            lambda: board.board_file(
                prepared,
                settings,
                command=f"{settings.command(table, 'board')}{flag} --out board.html",
                working_view=working,
            ),
            file_name="dpviz-board.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="download.board",
        )
        st.download_button(
            "Report (HTML, to print)",
            lambda: board.report(
                comparison,
                command=command,
                link=link,
                card="",
                working_view=working,
            ),
            file_name="dpviz-report.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="download.report",
        )
        st.download_button(
            "Notebook",
            lambda: board.notebook(settings, table),
            file_name="dpviz.ipynb",
            mime="application/x-ipynb+json",
            icon=":material/download:",
            on_click="ignore",
            key="download.notebook",
        )
        st.download_button(
            "Script",
            lambda: board.script(settings, table),
            file_name="dpviz_view.py",
            mime="text/x-python",
            icon=":material/download:",
            on_click="ignore",
            key="download.script",
        )
    st.caption("A link that names every setting, so that later defaults change nothing:")
    copyable(link)
