"""Downloads of a view: a comparison figure, a report, a notebook, a script, a link."""

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
    """Ask whether files may hold data that is not public, unless all of the data is public."""
    return not anybodys(prepared) and st.toggle(
        "Include real rows and the exact result: internal, do not share",
        key="take.working",
        help="Without real rows, board and report hold only charts with fresh noise. Do not "
        "publish charts of a board or report.",
    )


def along(comparison: Comparison, prepared: Prepared, *, publishable: bool = False) -> None:
    """Offer the view as files that work without this page, and as a link with every setting.

    Parameters
    ----------
    comparison : Comparison
    prepared : Prepared
    publishable : bool
        Whether to hide the offer of internal files.
    """
    settings = comparison.settings
    is_upload = settings.table == state.UPLOAD
    table = "YOUR_FILE.csv" if is_upload else settings.table
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
    st.caption("A link that names every setting, so that new defaults do not change the view:")
    copyable(link)
