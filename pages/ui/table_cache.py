"""Tables, kept: what was uploaded stays within its session, and so does what it was prepared to."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np
import streamlit as st

from dpviz import datasets
from dpviz.core.entries import FeatureBounds
from dpviz.core.errors import DpvizError, InvalidTable, OtherEncoding
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.datasets import RawTable, ReadOptions, Table
from dpviz.datasets.sheet import SheetText, sheet_text
from dpviz.preparation.bounding import Prepared, prepare
from pages.ui.ask import Rows, ask

_PREPARATION = ("center", "scale", "row_bound", "count", "domain", "bounds", "categories")


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the file", show_time=True)
def _parsed(
    file_id: str, name: str, decimal: str, encoding: str, sheet: str, _file: object
) -> RawTable | tuple[str, str]:
    # Streamlit forgets a call that raised: a zip bomb would be unpacked again on every run.
    try:
        return datasets.read_raw(
            _file,  # type: ignore[arg-type]
            name=name,
            decimal=decimal,
            encoding=encoding,
            sheet=sheet,
            cells=datasets.UPLOADED_CELLS,
        )
    except DpvizError as error:
        return str(error), error.encoding if isinstance(error, OtherEncoding) else ""


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _stated(said: tuple[str, ...], _raw: RawTable, _reading: ReadOptions) -> RawTable:
    return _raw.stated(_reading)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the sheet")
def _sheet(file_id: str, sheet: str, _file: BinaryIO) -> SheetText | str:
    try:
        return sheet_text(_file, "the workbook", sheet, cells=datasets.UPLOADED_CELLS)
    except DpvizError as error:
        return str(error)


def sheet(file_id: str, name: str, file: BinaryIO) -> SheetText:
    """Return a sheet of an uploaded workbook as the text that is released, or raise."""
    found = _sheet(file_id, name, file)
    if isinstance(found, str):
        raise InvalidTable(found)
    return found


def raw_table(file_id: str, name: str, file: object, settings: Settings) -> RawTable:
    """Return the parsed upload, or raise InvalidTable saying why there is none."""
    reading = (settings.decimal, settings.encoding, settings.sheet)
    found = _parsed(file_id, name, *reading, file)
    if isinstance(found, tuple):
        said, other = found
        raise OtherEncoding(said, other) if other else InvalidTable(said)
    stated = (settings.codes, settings.read_as, settings.levels)
    if not any(stated):
        return found
    return _stated((file_id, *reading, *stated), found, ReadOptions.of(settings))


def builtin(key: str) -> Table:
    """Return a built-in table."""
    return ask(datasets.load, {"table": key}, saying="")


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading columns", show_time=True)
def uploaded(
    file_id: str,
    options: ReadOptions,
    coded: bool,
    name: str,
    _raw: RawTable,
) -> Table:
    """Return the upload as a numeric table, by a name that is not its file's.

    Where ``coded``, its labels are numbered and not shown.
    """
    table = _raw.to_table(options)
    if coded and table.labels is not None:
        classes, which = np.unique(table.labels, return_inverse=True)
        numbers = np.array([f"class {j}" for j in range(1, len(classes) + 1)])
        table = replace(table, labels=numbers[which])
    return replace(table, name=name)


def prepared(
    table_key: str,
    columns: tuple[str, ...],
    preparation: tuple[tuple[str, str], ...],
    bounds: tuple[tuple[str, tuple[float, float]], ...],
    table: Table,
    settings: Settings,
) -> Prepared:
    """Return the prepared table; ``preparation`` names what it depends on."""
    options = {"columns": columns, "preparation": preparation, "bounds": bounds}
    about = Rows(table, (table_key,))
    return ask(_prepare, options, about, saying="", aside={"settings": settings})


def _prepare(
    table: Table,
    *,
    columns: tuple[str, ...],
    preparation: tuple[tuple[str, str], ...],
    bounds: tuple[tuple[str, tuple[float, float]], ...],
    settings: Settings,
) -> Prepared:
    if bounds:
        stated = FeatureBounds.named(dict(bounds), settings.texts().get("bounds", ""))
        settings = replace(settings, bounds=stated)
    with st.spinner("Preparing", show_time=True):
        return prepare(table.select(columns) if columns else table, settings)


def preparation_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return what a preparation depends on, as text.

    Which steps are paid for depends on the relation too, and every draw on their shares.
    """
    params = params_of(Settings)
    chosen = ((name, params[name].format(getattr(settings, name))) for name in _PREPARATION)
    return (*chosen, ("paid", repr(settings.private_shares)))


def second(key: str, settings: Settings) -> tuple[Prepared, tuple[str, ...]]:
    """Return another built-in table, prepared as the first one is."""
    preparation = preparation_of(settings)
    ready = prepared(key, (), preparation, (), builtin(key), settings)
    return ready, (key, *(value for _, value in preparation))
