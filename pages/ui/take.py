"""What a view can be taken along as: a board, a report, a notebook, a script, a link."""

from __future__ import annotations

import streamlit as st

from dpviz.lessons.card import card_html
from dpviz.lessons.decide import Card
from dpviz.lessons.risk import risk
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.boardfile import anybodys, board_file
from dpviz.report.figures.handout import report_page
from dpviz.simulation.compare import Comparison
from dpviz.studies import board
from pages.ui import addresses, deciding, state
from pages.ui.copying import copyable


def answered(answer: Card | None) -> str:
    """Return a card as HTML, nothing where there is none."""
    if answer is None:
        return ""
    seen = None if answer.best is None else risk(answer, answer.best)
    return card_html(answer, seen, deciding.command(answer), "")


def with_the_truth(prepared: Measured) -> bool:
    """Ask whether files hold what is not public; nothing is asked where all of it is."""
    return not anybodys(prepared) and st.toggle(
        "With real rows and the truth: not to be shown around",
        key="take.working",
        help="Else board and report hold published pictures alone, with fresh noise.",
    )


def along(
    comparison: Comparison,
    prepared: Prepared,
    answer: Card | None = None,
    *,
    publishable: bool = False,
) -> None:
    """Offer the view as files that work without this page, and as a link that says everything.

    Parameters
    ----------
    comparison : Comparison
    prepared : Prepared
    answer : Card or None
        What Decide answered about this table, for the report.
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
            lambda: board_file(
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
            lambda: report_page(
                comparison,
                command=command,
                link=link,
                card=answered(answer),
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
    if answer is None and not publishable:
        st.caption("Once Decide was asked about this table, the report holds its card.")
    st.caption("A link that names every setting, so that later defaults change nothing:")
    copyable(link)
