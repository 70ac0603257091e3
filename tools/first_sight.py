"""Compute the first view of built-in tables, and write the archive that ships.

``python -m tools.first_sight`` opens Explore, Trade-offs and Mechanisms with default settings on
each built-in table, and every step of the lessons. The tool stores the answers to their questions
(`pages.ui.first_sight`), which takes four minutes on one core. ``--check`` writes nothing, and
fails if the code has changed since the archive was written.
"""

from __future__ import annotations

import argparse

import streamlit as st
from streamlit.logger import set_log_level
from streamlit.testing.v1 import AppTest

from dpviz.core.files import app_path
from dpviz.core.resources import one_blas_thread
from dpviz.datasets import builtin_tables
from dpviz.lessons import course
from pages.ui import ask, first_sight, stage
from pages.ui.first_sight import Shipped

TIMEOUT = 600.0  # Each page may take this many seconds.


def look(page: str, **link: str) -> None:
    """Open a page as a first visitor does.

    Raises
    ------
    RuntimeError
        If the page shows an error.
    """
    at = AppTest.from_file(str(app_path()), default_timeout=TIMEOUT)
    at.query_params.update(link)
    at.session_state["board.wanted"] = True  # A browser requests the figure after its first frame.
    if page:
        at.switch_page(f"pages/{page}.py")
    at.run()
    if at.exception or at.error:
        raise RuntimeError(f"{page or 'explore'} {link}: {[*at.exception, *at.error]}")


def drawn(tables: list[str] | None = None) -> dict[str, bytes]:
    """Return every item by its name in the archive; for only some tables, without the lessons."""
    st.cache_data.clear()
    st.cache_resource.clear()
    ask.clear()
    items: dict[str, bytes] = {}
    Shipped.noting = items
    try:
        with one_blas_thread():
            for table in tables or builtin_tables():
                for page in ("explore", "tradeoffs", "mechanisms"):
                    look(page, table=table)
            if tables is None:
                for lesson in course():
                    stage.note(lesson)
                    for step in range(1, len(lesson.steps) + 1):
                        look("guide", lesson=str(lesson.number), step=str(step))
    finally:
        Shipped.noting = None
    return items


def main() -> int:
    """Write the archive, or report whether the archive is from older code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return int(first_sight.stale())
    set_log_level("ERROR")  # Without a server, Streamlit would print warnings.
    first_sight.write(drawn())
    print(f"{first_sight.ARCHIVE.name}: {first_sight.ARCHIVE.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
