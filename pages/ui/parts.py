"""Elements that several pages use."""

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
from dpviz.lessons.glossary import term
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.bounding import Prepared
from dpviz.studies.columns import NUMERIC, Column, Sentence, Share, seen
from pages.ui import state
from pages.ui.copying import copyable
from pages.ui.texts import plain

if TYPE_CHECKING:
    import plotly.graph_objects as go

Heading = str | tuple[str, int | str] | tuple[str, int | str, str]
"""Heading and number format of a column."""


def question(text: str) -> None:
    """Draw a page's question, which is its largest text."""
    st.title(text, anchor=False)


def lead(
    answer: str,
    step: str,
    act: Callable[[], object] | None = None,
    to: StreamlitPage | None = None,
    help: str | None = None,
) -> None:
    """Draw a page's answer and the next step: a sentence, or the one button for that step.

    Parameters
    ----------
    answer, step : str
    act : callable, optional
        Function that the button calls.
    to : StreamlitPage, optional
        Page that the button opens afterwards.
    help : str, optional
        Help text of the button.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="page-lead"):
        with st.container(key="page-answer"):
            st.markdown(answer)
        with st.container(key="page-next", width="content"):
            if act is None and to is None:
                st.markdown(step)
                return
            # Use two buttons, so that a click on one of them never counts as a click on the other.
            key = "page.next" if to is None else "page.go"
            click = st.button(step, key=key, type="primary", help=help, on_click=act)
            if click and to is not None:
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
    """Draw a choice that only the session stores, on this page and in no link; return it.

    Parameters
    ----------
    place : DeltaGenerator or module
    label : str
    options : iterable
    key : str
    words : callable
        Function that returns the text of an option.
    first : object
        First choice; by default the first option.
    help : str, optional
    width : int or str
    """
    items = list(options)
    return place.selectbox(
        label,
        items,
        index=items.index(first) if first in items else 0,
        format_func=words,
        key=key,
        persist_state="session",
        help=help,
        width=width,
    )


def one_mechanism(place: DeltaGenerator, label: str, *, default: str, key: str) -> str:
    """Draw a choice of one mechanism by its name, and return the chosen key."""
    mechanisms = all_mechanisms()
    key_of_choice: str = choice(
        place, label, mechanisms, key, lambda text: mechanisms[text].info.label, first=default
    )
    return key_of_choice


def download(
    label: str,
    make: str | bytes | Callable[[], str | bytes],
    name: str,
    key: str,
    *,
    place: Any = st,
    **more: Any,
) -> None:
    """Offer a file; a function that creates the file is called on the button press."""
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
    """Offer a figure as a separate page, which is created on the button press."""
    download(
        "This figure (HTML)", lambda: make().to_html(include_plotlyjs=True), name, key, place=place,
        help="One file that opens in any browser, also offline. For an image (PNG), use the camera "
            "in the figure's corner.",
    )  # fmt: skip


def plot(figure: go.Figure, *, alt: str, place: Any = st, **how: Any) -> None:
    """Draw a figure with all its texts 15 px or larger; Streamlit's theme has 12."""
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont_size=15, title_font_size=15)
    figure.update_layout(font_size=15, legend_font_size=15)
    figure.for_each_annotation(lambda note: note.font.update(size=max(note.font.size or 0, 15)))
    place.plotly_chart(figure, alt=alt, **how)


def chart(
    figure: go.Figure,
    key: str,
    seen: str,
    caption: str,
    numbers_of: pd.DataFrame | None = None,
    *,
    place: Any = st,
) -> None:
    """Draw a chart with its caption, and the numbers behind the chart if they are given.

    Parameters
    ----------
    figure : Figure
    key : str
    seen : str
        Start of the chart's alternative text, before the caption.
    caption : str
    numbers_of : DataFrame, optional
    place : DeltaGenerator or module
    """
    plot(figure, place=place, key=key, alt=f"{seen}. {caption}")
    place.caption(caption)
    if numbers_of is not None:
        numbers(key, numbers_of)


def table(
    rows: pd.DataFrame, columns: Mapping[str, Heading], key: str, alt: str, *, place: Any = st
) -> None:
    """Draw columns of a table under their headings, which `numerals` defines."""
    texts, config = numerals(rows, columns)
    place.dataframe(
        texts,
        hide_index=True,
        placeholder="–",
        key=key,
        alt=alt,
        column_order=list(columns),
        column_config=config,
    )


def numbers(name: str, table: pd.DataFrame) -> None:
    """Offer the numbers behind a chart, which are sent only on request."""
    words = "this chart" if " " not in name else f"the {name}"
    box = st.expander(f"The numbers behind {words}", key=f"numbers.{name}", on_change="rerun")
    if box.open:
        columns = table.select_dtypes("float").columns
        texts, config = numerals(table, {column: (column, 6) for column in columns})
        alt = f"Numbers behind the {name} chart"
        box.dataframe(texts, column_config=config, hide_index=True, alt=alt)
        file = f"dpviz-{re.sub('[^a-z]+', '-', name)}.csv"
        key = f"numbers.{name}.csv"
        download("These numbers (CSV)", lambda: csv_text(table), file, key, place=box)


def numerals(
    table: pd.DataFrame, columns: Mapping[str, Heading]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table and its column settings: numbers are written as in sentences.

    A grid's own formats write 0.0000046 beside 3e-7. A column with such a number is text and sorted
    as text; other columns stay numbers.

    Parameters
    ----------
    table : DataFrame
    columns : mapping of str to str or (str, int or str[, str])
        For each column: heading, number of digits or the grid's own format and, if any, the
        explanation.

    Returns
    -------
    DataFrame
        The table, in which columns with very small or large numbers hold texts.
    dict of str to column
        Settings for ``column_config``.
    """
    texts: dict[str, list[str | None]] = {}
    headings: dict[str, Any] = {}
    for name, heading in columns.items():
        if isinstance(heading, str):
            headings[name] = heading
            continue
        label, digits, *more = heading
        values, options = table[name], {"help": more[0] if any(more) else None}
        sizes = values.dropna().astype(float).abs()
        if isinstance(digits, str):
            headings[name] = st.column_config.NumberColumn(label, format=digits, **options)
        elif sizes[sizes > 0].between(1e-4, 1e6, inclusive="left").all():
            headings[name] = st.column_config.NumberColumn(label, format=f"%.{digits}g", **options)
        else:
            texts[name] = [None if pd.isna(value) else numeral(value, digits) for value in values]
            headings[name] = st.column_config.TextColumn(label, alignment="right", **options)
    return table.assign(**texts), headings


def newcomers(about: str) -> None:
    """Explain a page to a new visitor, and its terms as in the glossary."""
    terms = (
        f"**{key}**: {term(key).sentence.partition('. ')[0]}."
        for key in ("epsilon", "delta", "recovery")
    )
    st.markdown(
        f"**What am I looking at?**\n\n{about}\n\n"
        "A principal component analysis (PCA) finds the few directions that explain most of a "
        "table's variance. Publishing those directions can betray the people in the table, so a "
        "mechanism adds noise first. A mechanism has the same colour on every page. Points of a "
        "chart have the colour and shape of their label.\n\n"
        + "\n\n".join(terms)
        + "\n\nAll pages except Release use the exact components to judge utility, so these pages "
        "are not private. Use these pages with public, synthetic or your own data."
    )


def table_notes(prepared: Prepared) -> None:
    """List every change that dpviz made to the table."""
    if prepared.notes:
        st.caption(f":material/edit_note: {' '.join(map(plain, prepared.notes))}")


def assumed_public(prepared: Prepared, items: Sequence[str] = ()) -> None:
    """List values taken from the data without protection; by default the table's own list."""
    with st.expander("What this page assumes to be public", icon=":material/visibility:"):
        st.markdown(
            "The guarantee covers the release, not values fixed before the release. This page "
            "assumes that the following is public:\n\n"
            + "\n".join(f"- {plain(item)}" for item in items or prepared.assumed_public)
            + "\n\nThe papers assume that the listed values are known. Values from private data "
            "leak information. A real release fixes such values beforehand or uses budget for them."
        )


def grid(columns: Sequence[Column], rows: Sequence[Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return an answer's rows under a page's headings, and the column settings."""
    # Put columns of sentences last, because they are wide.
    visible = sorted(seen(columns, "page", rows), key=lambda column: column.type is Sentence)
    names = {c.name: c.heading[:1].upper() + c.heading[1:] for c in visible}
    table, config = numerals(
        pd.DataFrame({column.name: [column.on_page(row) for row in rows] for column in visible}),
        {c.name: (names[c.name], c.digits, c.help) for c in visible if c.type in NUMERIC},
    )
    kinds = st.column_config
    for place, column in enumerate(visible):
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
    """Show the command that computes the same numbers, without the values of the base settings."""
    name = settings.table if settings.table != state.UPLOAD else "YOUR_FILE.csv"
    st.caption("The same numbers from the command line:")
    words = " ".join([settings.command(name, verb, base), shlex.join(more)]).strip()
    copyable(words)


def settings_file(settings: Settings, key: str, help: str | None = None) -> None:
    """Offer all settings as a file."""

    def made() -> str:
        return json.dumps(settings.to_json(), indent=1)

    download("Settings (JSON)", made, "dpviz-settings.json", key, help=help)
