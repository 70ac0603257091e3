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
from dpviz.core.settings import Settings, codes_in, levels_in
from dpviz.datasets import RawTable, Table
from dpviz.datasets.claims import check_pages
from dpviz.datasets.formats import SheetText, sheet_text
from dpviz.datasets.source import Source
from dpviz.preparation.bounding import Prepared, prepare
from pages.ui.shelves import apart

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
            limits=datasets.UPLOADED,
        )
    except DpvizError as error:
        return str(error), error.encoding if isinstance(error, OtherEncoding) else ""


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _recoded(reading: tuple[str, ...], codes: str, levels: str, _raw: RawTable) -> RawTable:
    return _raw.recoded(codes_in(codes)).ordered(levels_in(levels))


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading the sheet")
def _sheet(file_id: str, sheet: str, _file: BinaryIO) -> SheetText | str:
    try:
        return sheet_text(_file, "the workbook", sheet, limits=datasets.UPLOADED)
    except DpvizError as error:
        return str(error)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _pages(file_id: str, _file: BinaryIO) -> str:
    try:
        source = Source(_file, "The file")
        if source.is_parquet:
            check_pages(source, set(), datasets.UPLOADED)
    except DpvizError as error:
        return str(error)
    return ""


def batched(file_id: str, file: BinaryIO) -> BinaryIO:
    """Return an uploaded file that can be read in batches, or raise."""
    if said := _pages(file_id, file):
        raise InvalidTable(said)
    return file


def sheet(file_id: str, name: str, file: BinaryIO) -> SheetText:
    """Return a sheet of an uploaded workbook as the text that is released, or raise."""
    found = _sheet(file_id, name, file)
    if isinstance(found, str):
        raise InvalidTable(found)
    return found


def raw_table(
    file_id: str,
    name: str,
    file: object,
    decimal: str = "auto",
    encoding: str = "auto",
    sheet: str = "",
    codes: str = "",
    levels: str = "",
) -> RawTable:
    """Return the parsed upload, or raise InvalidTable saying why there is none."""
    found = _parsed(file_id, name, decimal, encoding, sheet, file)
    if isinstance(found, tuple):
        said, other = found
        raise OtherEncoding(said, other) if other else InvalidTable(said)
    if not (codes or levels):
        return found
    return _recoded((file_id, decimal, encoding, sheet), codes, levels, found)


@st.cache_resource(max_entries=16, show_spinner=False)
def builtin(key: str) -> Table:
    """Return a built-in table."""
    return datasets.load(key)


@st.cache_resource(scope="session", max_entries=2, show_spinner="Reading columns", show_time=True)
def uploaded(
    file_id: str,
    label: str | None,
    categorical: str,
    missing: str,
    reading: str,
    leave_out: tuple[str, ...],
    unit: tuple[int | None, str | None],
    coded: bool,
    name: str,
    _raw: RawTable,
) -> Table:
    """Return the upload as a numeric table, by a name that is not its file's.

    Where ``coded``, its labels are numbered and not shown.
    """
    rows_a_person, person = unit
    table = _raw.to_table(
        datasets.ReadOptions(
            label=label,
            categorical=categorical,
            missing=missing,
            leave_out=leave_out,
            rows_a_person=rows_a_person,
            person=person,
        )
    )
    if coded and table.labels is not None:
        classes, which = np.unique(table.labels, return_inverse=True)
        numbers = np.array([f"class {j}" for j in range(1, len(classes) + 1)])
        table = replace(table, labels=numbers[which])
    return replace(table, name=name)


@apart(st.cache_resource, own=4, max_entries=12, show_spinner="Preparing", show_time=True)
def prepared(
    table_key: str,
    columns: tuple[str, ...],
    preparation: tuple[tuple[str, str], ...],
    bounds: tuple[tuple[str, tuple[float, float]], ...],
    _table: Table,
    _settings: Settings,
) -> Prepared:
    """Return the prepared table; ``preparation`` names what it depends on."""
    if bounds:
        stated = FeatureBounds.named(dict(bounds), _settings.texts().get("bounds", ""))
        _settings = replace(_settings, bounds=stated)
    return prepare(_table.select(columns) if columns else _table, _settings)


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
