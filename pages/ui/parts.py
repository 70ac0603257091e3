"""Pieces of pages that stand on more than one of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.bounding import Prepared
from dpviz.studies.columns import NUMERIC, Column, Sentence, Share, seen
from pages.ui import state
from pages.ui.copying import copyable
from pages.ui.texts import plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

Heading = str | tuple[str, int | str] | tuple[str, int | str, str]
"""How a column is headed and shown."""


def question(text: str) -> None:
    """Draw what a page asks, its largest text."""
    st.title(text, anchor=False)


def lead(
    answer: str,
    step: str,
    act: Callable[[], object] | None = None,
    to: StreamlitPage | None = None,
    help: str | None = None,
) -> None:
    """Draw what a page answers, and what comes next: a sentence, or the one button that does it.

    Parameters
    ----------
    answer, step : str
    act : callable, optional
        What the button does.
    to : StreamlitPage, optional
        The page that it opens then.
    help : str, optional
        Of the button.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="page-lead"):
        with st.container(key="page-answer"):
            st.markdown(answer)
        with st.container(key="page-next", width="content"):
            if act is None and to is None:
                st.markdown(step)
                return
            # what stays and what leaves are two buttons: a press of one is never the other's
            key = "page.next" if to is None else "page.go"
            pressed = st.button(step, key=key, type="primary", help=help, on_click=act)
            if pressed and to is not None:
                st.switch_page(to, query_params={})


def choice(
    place: Any,
    label: str,
    options: Iterable[Any],
    key: str,
    words: Callable[[Any], str] = str,
    *,
    first: Any = None,
    help: str | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> Any:
    """Draw a choice that the session keeps on this page and no link carries; return it.

    Parameters
    ----------
    place : DeltaGenerator or module
    label : str
    options : iterable
    key : str
    words : callable
        How an option reads.
    first : object
        What is chosen at first; the first option if not said.
    help : str, optional
    width : int or str
    """
    offered = list(options)
    return place.selectbox(
        label,
        offered,
        index=offered.index(first) if first in offered else 0,
        format_func=words,
        key=key,
        persist_state="session",
        help=help,
        width=width,
    )


def one_mechanism(place: DeltaGenerator, label: str, *, default: str, key: str) -> str:
    """Draw a choice of one mechanism by its name, and return the key of the chosen one."""
    known = all_mechanisms()
    chosen: str = choice(
        place, label, known, key, lambda text: known[text].info.label, first=default
    )
    return chosen


def download(
    label: str,
    make: str | bytes | Callable[[], str | bytes],
    name: str,
    key: str,
    *,
    place: Any = st,
    **more: Any,
) -> None:
    """Offer a file; where it is made by a function, only once the button is pressed."""
    place.download_button(
        label,
        make,
        file_name=name,
        mime=guess_type(name)[0] or "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key=key,
        **more,
    )


def figure_file(make: Callable[[], go.Figure], name: str, key: str, *, place: Any = st) -> None:
    """Offer a figure as a page of its own, made once the button is pressed."""
    download(
        "This figure (HTML)", lambda: make().to_html(include_plotlyjs=True), name, key, place=place,
        help="One file that opens in any browser, without a network. For a picture (PNG), use the "
        "camera in the figure's corner.",
    )  # fmt: skip


def chart(
    figure: go.Figure,
    key: str,
    seen: str,
    caption: str,
    numbers_of: pd.DataFrame | None = None,
    *,
    place: Any = st,
) -> None:
    """Draw a chart and its caption; the numbers behind it where they are given.

    Parameters
    ----------
    figure : Figure
    key : str
    seen : str
        What a reader who does not see it is told before the caption.
    caption : str
    numbers_of : DataFrame, optional
    place : DeltaGenerator or module
    """
    place.plotly_chart(figure, key=key, alt=f"{seen}. {caption}")
    place.caption(caption)
    if numbers_of is not None:
        numbers(key, numbers_of)


def table(
    rows: pd.DataFrame, columns: Mapping[str, Heading], key: str, alt: str, *, place: Any = st
) -> None:
    """Draw these columns of a table under their headings; `numerals` says what a heading is."""
    shown, config = numerals(rows, columns)
    place.dataframe(
        shown,
        hide_index=True,
        placeholder="–",
        key=key,
        alt=alt,
        column_order=list(columns),
        column_config=config,
    )


def numbers(name: str, table: pd.DataFrame) -> None:
    """Offer the numbers behind a chart; they are sent only when asked for."""
    words = "this chart" if " " not in name else f"the {name}"
    box = st.expander(f"The numbers behind {words}", key=f"numbers.{name}", on_change="rerun")
    if box.open:
        columns = table.select_dtypes("float").columns
        shown, config = numerals(table, {column: (column, 6) for column in columns})
        alt = f"Numbers behind the {name} chart"
        box.dataframe(shown, column_config=config, hide_index=True, alt=alt)
        file = f"dpviz-{re.sub('[^a-z]+', '-', name)}.csv"
        key = f"numbers.{name}.csv"
        download("These numbers (CSV)", lambda: csv_text(table), file, key, place=box)


def numerals(
    table: pd.DataFrame, columns: Mapping[str, Heading]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table and how its columns are shown: numbers are written as in sentences.

    A grid's own formats write 0.0000046 beside 3e-7. A column with such a number is text and
    sorted as text; the others stay numbers.

    Parameters
    ----------
    table : DataFrame
    columns : mapping of str to str or (str, int or str[, str])
        Heading, number of digits or the grid's own format and, where there is one, the
        explanation of each column.

    Returns
    -------
    DataFrame
        The table, with texts in the columns of very small or large numbers.
    dict of str to column
        For ``column_config``.
    """
    texts: dict[str, list[str | None]] = {}
    shown: dict[str, Any] = {}
    for name, heading in columns.items():
        if isinstance(heading, str):
            shown[name] = heading
            continue
        label, digits, *more = heading
        values, options = table[name], {"help": more[0] if any(more) else None}
        sizes = values.dropna().astype(float).abs()
        if isinstance(digits, str):
            shown[name] = st.column_config.NumberColumn(label, format=digits, **options)
        elif sizes[sizes > 0].between(1e-4, 1e6, inclusive="left").all():
            shown[name] = st.column_config.NumberColumn(label, format=f"%.{digits}g", **options)
        else:
            texts[name] = [None if pd.isna(value) else numeral(value, digits) for value in values]
            shown[name] = st.column_config.TextColumn(label, alignment="right", **options)
    return table.assign(**texts), shown


def newcomers() -> None:
    """Explain the page to somebody who has never seen it."""
    st.markdown(
        "**What am I looking at?**\n\n"
        "A principal component analysis finds the few directions that explain most of a table's "
        "variance. Publishing those directions can betray the people in the table, so a "
        "**mechanism** adds noise first. **Epsilon** limits how much any one person's row may "
        "change what is published: at 0.1 hardly at all, at 1 the odds of any guess about them "
        "change by at most a factor of 2.7, at 5 by 150. **Delta** is a small allowance "
        "beyond that limit: the chance of anything may exceed it by no more.\n\n"
        "On Explore each column is one mechanism, run many times on the same table. Move epsilon "
        "to the left: first the small eigenvalues drown below the **noise edge**, then the "
        "released space turns away from the true one, and at last the picture is pure chance. "
        "The line under each name says whether what its paper promises is true in this setting. "
        "**Recovery** is what is left of the structure: 0 % is what a random picture shows, 100 % "
        "the exact one.\n\n"
        "Colour: the same mechanism has the same colour everywhere; dots of the picture are "
        "coloured and shaped by the table's label instead. Click a column to see it large.\n\n"
        "To judge utility all pages but Release look at the exact components, so they are not "
        "private themselves: use them with public, synthetic or your own data."
    )


def table_notes(prepared: Prepared) -> None:
    """Tell every change that was made to the table."""
    if prepared.notes:
        st.caption(f":material/edit_note: {' '.join(map(plain, prepared.notes))}")


def assumed_public(prepared: Prepared, items: Sequence[str] = ()) -> None:
    """List what was taken from the data without protection; by default the table's own list."""
    with st.expander("What this assumes to be public", icon=":material/visibility:"):
        st.markdown(
            "The guarantee covers the release and not what was fixed before it. Taken as public "
            "knowledge here:\n\n"
            + "\n".join(f"- {plain(item)}" for item in items or prepared.assumed_public)
            + "\n\nThe papers assume these known. Taken from private data they leak; a real "
            "release fixes them beforehand or spends budget on them."
        )


def grid(columns: Sequence[Column], rows: Sequence[Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows of an answer under the columns of a page, and how these are shown."""
    # sentences last: they are wide
    shown = sorted(seen(columns, "page", rows), key=lambda column: column.type is Sentence)
    names = {c.name: c.heading[:1].upper() + c.heading[1:] for c in shown}
    table, config = numerals(
        pd.DataFrame({column.name: [column.on_page(row) for row in rows] for column in shown}),
        {c.name: (names[c.name], c.digits, c.help) for c in shown if c.type in NUMERIC},
    )
    kinds = st.column_config
    for place, column in enumerate(shown):
        heading, help = names[column.name], column.help or None
        if column.type == Share:
            config[column.name] = kinds.NumberColumn(heading, format="percent", help=help)
        elif column.type not in NUMERIC:
            width = "large" if column.type is Sentence else None
            config[column.name] = kinds.Column(heading, width=width, help=help, pinned=not place)
    return table, config


def command(
    settings: Settings,
    verb: str = "compare",
    more: Sequence[str] = (),
    base: Settings | None = None,
) -> None:
    """Show the command that computes the same numbers; the base is what it takes as said."""
    name = settings.table if settings.table != state.UPLOAD else "YOUR_FILE.csv"
    st.caption("The same numbers from the command line:")
    words = " ".join([settings.command(name, verb, base), shlex.join(more)]).strip()
    copyable(words)


def settings_file(settings: Settings, key: str, help: str | None = None) -> None:
    """Offer all settings as a file."""

    def made() -> str:
        return json.dumps(settings.to_json(), indent=1)

    download("Settings (JSON)", made, "dpviz-settings.json", key, help=help)
