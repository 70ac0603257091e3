"""What a view can be taken along as: a board, a report, a notebook, a script, a link."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.board import anybodys
from dpviz.simulation.compare import Comparison
from dpviz.studies import board
from pages.ui import addresses, parts, state
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
    own = f"{settings.command(table, 'board')}{flag} --out board.html"
    files: dict[str, tuple[str, Callable[[], str]]] = {
        "Board (one HTML file, works offline)": (
            "dpviz-board.html",
            lambda: board.board_file(prepared, settings, command=own, working_view=working),
        ),
        "Report (HTML, to print)": (
            "dpviz-report.html",
            lambda: board.report(
                comparison, command=command, link=link, card="", working_view=working
            ),
        ),
        "Notebook": ("dpviz.ipynb", lambda: board.notebook(settings, table)),
        "Script": ("dpviz_view.py", lambda: board.script(settings, table)),
    }
    with st.container(horizontal=True, key="take.files"):
        for label, (name, make) in files.items():
            parts.download(label, make, name, f"download.{label.split()[0].lower()}")
    st.caption("A link that names every setting, so that later defaults change nothing:")
    copyable(link)
