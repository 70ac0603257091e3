"""Cached tables: an upload and its prepared table stay within their session."""

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
_OF_THE_FILE = ("decimal", "encoding", "delimiter", "header", "sheet")


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the file", show_time=True)
def _parse(
    file_id: str, name: str, reading: tuple[str, ...], _file: object
) -> RawTable | tuple[str, str]:
    # Return the error: Streamlit caches no exceptions, and would unpack a zip bomb each time.
    try:
        return datasets.read_raw(
            _file,  # type: ignore[arg-type]
            name=name,
            reading=ReadOptions(**dict(zip(_OF_THE_FILE, reading, strict=True))),
            cells=datasets.UPLOADED_CELLS,
        )
    except DpvizError as error:
        return str(error), error.encoding if isinstance(error, OtherEncoding) else ""


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _state(words: tuple[str, ...], _raw: RawTable, _reading: ReadOptions) -> RawTable:
    return _raw.stated(_reading)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the sheet")
def _sheet(file_id: str, sheet: str, _file: BinaryIO) -> SheetText | str:
    try:
        return sheet_text(_file, "the workbook", sheet, cells=datasets.UPLOADED_CELLS)
    except DpvizError as error:
        return str(error)


def sheet(file_id: str, name: str, file: BinaryIO) -> SheetText:
    """Return a sheet of an uploaded workbook as the text for a release, or raise."""
    answer = _sheet(file_id, name, file)
    if isinstance(answer, str):
        raise InvalidTable(answer)
    return answer


def raw_table(file_id: str, name: str, file: object, settings: Settings) -> RawTable:
    """Return the parsed upload, or raise InvalidTable with the reason why there is none."""
    reading = tuple(getattr(settings, name) for name in _OF_THE_FILE)
    answer = _parse(file_id, name, reading, file)
    if isinstance(answer, tuple):
        message, other = answer
        raise OtherEncoding(message, other) if other else InvalidTable(message)
    words = (settings.codes, settings.read_as, settings.levels)
    if not any(words):
        return answer
    return _state((file_id, *reading, *words), answer, ReadOptions.of(settings))


def builtin(key: str) -> Table:
    """Return a built-in table."""
    return ask(datasets.load, {"table": key}, saying="")


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading columns", show_time=True)
def uploaded(
    file_id: str,
    options: ReadOptions,
    as_codes: bool,
    name: str,
    _raw: RawTable,
) -> Table:
    """Return the upload as a numeric table, under a name other than the file's name.

    If ``as_codes`` is true, numbers replace the labels of the table.
    """
    table = _raw.to_table(options)
    if as_codes and table.labels is not None:
        classes, which = np.unique(table.labels, return_inverse=True)
        numbers = np.array([f"class {j}" for j in range(1, len(classes) + 1)])
        table = replace(table, labels=numbers[which])
    return replace(table, name=name)


_Bounds = tuple[tuple[str, tuple[float, float]], ...]


def prepared(
    key: str,
    table: Table,
    settings: Settings,
    columns: tuple[str, ...] = (),
    bounds: _Bounds = (),
) -> tuple[Prepared, tuple[str, ...]]:
    """Return a prepared table, and the key of all facts on which its rows depend.

    The neighbouring relation also decides which steps use budget, which affects releases.
    """
    params = params_of(Settings)
    texts = (
        *(params[name].format(getattr(settings, name)) for name in _PREPARATION),
        repr(settings.private_shares),
    )
    options = {"columns": columns, "preparation": texts, "bounds": bounds}
    ready = ask(_prepare, options, Rows(table, (key,)), saying="", aside={"settings": settings})
    return ready, (key, *columns, *texts, repr(bounds))


def _prepare(
    table: Table,
    *,
    columns: tuple[str, ...],
    preparation: tuple[str, ...],
    bounds: _Bounds,
    settings: Settings,
) -> Prepared:
    if bounds:
        pairs = FeatureBounds.named(dict(bounds), settings.texts().get("bounds", ""))
        settings = replace(settings, bounds=pairs)
    with st.spinner("Preparing", show_time=True):
        return prepare(table.select(columns) if columns else table, settings)
