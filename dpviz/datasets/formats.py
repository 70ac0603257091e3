"""What an office has, turned into what the readers of tables take: UTF-8 text or Parquet.

Workbooks, one table in a zip, other encodings, SPSS, Stata and JSON. All of this looks at the whole
file and is for exploring: a release reads its own bytes under a schema, and of a workbook the text
of `sheet_text`, where no row decides how another is written.
"""

from __future__ import annotations

import csv
import io
import json
import os
import posixpath
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

import pandas as pd

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import (
    DpvizError,
    InvalidSetting,
    InvalidTable,
    NotAvailable,
    OtherEncoding,
    printable,
)
from dpviz.core.files import NamedTwice, named_once
from dpviz.core.number_text import numeral
from dpviz.core.platform import NO_WORKBOOKS, in_browser, need
from dpviz.datasets import foreign, workbook
from dpviz.datasets.columns import counted, listed
from dpviz.datasets.source import IN_MEMORY, OLE_MAGIC, UTF16, ZIP_MAGIC, Limits, Source

ENCODINGS = {"auto": "utf-8", "cp1252": "cp1252", "utf-16": "utf-16"}
"""What the user may say of a text's encoding."""

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*\{|\{\s*[\"}])")
_SPSS = (b"$FL2@(#)", b"$FL3@(#)")
_OLD_STATA = {105, 108, 111, 113, 114, 115}
_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]{0,3})(\d{0,7})["']""")
_HEAD = 64
_CHUNK = 1 << 20
_LONGEST_PLACE = 64
_LINE_BREAK = re.compile(r"[\r\n]+")
# a parsed record takes many times the bytes of its text
_JSON_SHARE = 8
# the rows and columns of such a sheet
_OLE_CELLS = 65_536 * 256
_ASIDE = ("__MACOSX/", ".")
_LOOK_SECONDS = 0.1
_CLOCK = 2  # of a reader's time on a processor, which may be shared


@dataclass(frozen=True)
class Opened:
    """A table's bytes as the readers take them.

    Attributes
    ----------
    source : Source
    notes : tuple of str
        What was chosen on the way, as sentences.
    sheets : tuple of str
        Sheets of a workbook that can be read.
    sheet : str
        The one that is.
    """

    source: Source
    notes: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    sheet: str = ""


def opened(
    given: str | Path | bytes | bytearray | memoryview | BinaryIO,
    name: str,
    *,
    encoding: str = "auto",
    sheet: str = "",
    limits: Limits = IN_MEMORY,
) -> Opened:
    """Return a file's bytes, turned into text in UTF-8 or into Parquet where they are neither.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        What messages call it.
    encoding : {"auto", "cp1252", "utf-16"}
        Of a text; auto is UTF-8.
    sheet : str
        Of a workbook; the first that holds a table if empty.
    limits : Limits
        What it may take once it is unpacked.

    Raises
    ------
    InvalidTable
        Where it is none of these, is damaged, or would take more than the limits.
    """
    if encoding not in ENCODINGS:
        raise InvalidSetting("encoding", "one of " + ", ".join(ENCODINGS), encoding, "--encoding")
    return _opened(Source(given, name), encoding, sheet, limits, packed=False)


def _opened(source: Source, encoding: str, sheet: str, limits: Limits, *, packed: bool) -> Opened:
    head: bytes = source.open().read(_HEAD)
    if head.startswith(ZIP_MAGIC):
        return _of_zip(source, encoding, sheet, limits, packed=packed)
    if head.startswith(OLE_MAGIC):
        return _of_workbook(source, _bytes(source, limits), sheet, limits)
    if head.startswith(_SPSS):
        return _of_frame(source, foreign.SPSS, _foreign, limits)
    if head.startswith(b"<stata_dta>") or (
        len(head) > 3 and head[0] in _OLD_STATA and head[1] in (1, 2) and head[2] == 1
    ):
        return _of_frame(source, foreign.STATA, _foreign, limits)
    if is_json(head):
        share = Limits(limits.text_bytes // _JSON_SHARE, limits.cells, limits.columns)
        return _of_frame(source, "JSON", _records, share)
    if sheet:
        raise InvalidTable(f"{source.name} is no workbook, so it has no sheets; leave sheet out.")
    if encoding != "auto":
        return _recoded(source, encoding, limits)
    # what is packed shows its encoding only unpacked
    start = next(source.chunks(packed=True), b"") if source.is_gzip else head
    if start.startswith(UTF16):
        raise OtherEncoding(
            f"{source.name} is encoded as UTF-16; choose UTF-16 as its encoding "
            "(--encoding utf-16), or save it as UTF-8.",
            "utf-16",
        )
    return Opened(source)


def _bytes(source: Source, limits: Limits) -> bytes:
    """Return all bytes, unpacked where they are gzip's, or refuse those beyond the limits."""
    parts, size = [], 0
    for chunk in source.chunks(source.is_gzip):
        size += len(chunk)
        if size > limits.text_bytes:
            raise _too_large(source.name, limits)
        parts.append(chunk)
    return b"".join(parts)


def _too_large(name: str, limits: Limits) -> InvalidTable:
    return InvalidTable(
        f"{name} unpacks to more than {numeral(limits.text_bytes / 2**20, 6)} MiB, the most that "
        "is read into memory in its format; save it as CSV in UTF-8 or as Parquet."
    )


def _recoded(source: Source, encoding: str, limits: Limits) -> Opened:
    try:
        text = _bytes(source, limits).decode(ENCODINGS[encoding])
    except UnicodeError:
        raise InvalidTable(
            f"{source.name} is not {ENCODED[encoding]} text; choose another encoding."
        ) from None
    note = f"The text was read as {ENCODED[encoding]}."
    return Opened(Source(text.encode(), source.name), (note,))


ENCODED = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}
"""What they are called."""


# ---------------------------------------------------------------- zip and workbooks


def _of_zip(source: Source, encoding: str, sheet: str, limits: Limits, *, packed: bool) -> Opened:
    name = source.name
    try:
        with zipfile.ZipFile(io.BytesIO(_bytes(source, limits))) as archive:
            held = [item for item in archive.infolist() if not item.is_dir()]
            inside = {item.filename for item in held}
            # bit 0 of a member's flags says that it is encrypted
            if any(item.flag_bits & 1 for item in held):
                raise InvalidTable(f"{name} is protected by a password; save it without one.")
            if sum(item.file_size for item in held) > limits.text_bytes:
                raise _too_large(name, limits)
            if "xl/workbook.xml" in inside:
                _check_sheets(archive, held, name, limits)
                return _of_workbook(source, _bytes(source, limits), sheet, limits)
            if "mimetype" in inside or "[Content_Types].xml" in inside:
                raise InvalidTable(
                    f"{name} is an office document without a table dpviz reads; in its program, "
                    "save the sheet as xlsx or CSV."
                )
            tables = [
                item
                for item in held
                if not item.filename.startswith(_ASIDE)
                and not item.filename.rpartition("/")[2].startswith(".")
            ]
            # which of several is meant is not guessed
            if len(tables) != 1:
                raise InvalidTable(
                    f"{name} must hold one table; it holds {counted(len(tables), 'file')}."
                )
            # once is what mail programs do; deeper is how bombs are built
            if packed:
                raise InvalidTable(f"{name} is a zip inside a zip; unpack it once.")
            data = archive.read(tables[0])
    except DpvizError:  # which is a ValueError
        raise
    except Exception:  # in as many kinds as there are ways to pack
        raise InvalidTable(f"{name} is a damaged zip archive or workbook.") from None
    found = _opened(Source(data, name), encoding, sheet, limits, packed=True)
    note = "The one table of the archive was read."
    return Opened(found.source, (note, *found.notes), found.sheets, found.sheet)


def _check_sheets(
    archive: zipfile.ZipFile, held: Iterable[zipfile.ZipInfo], name: str, limits: Limits
) -> None:
    """Refuse a workbook whose cells lie so far out that a sheet would not fit in memory.

    The workbook's reader makes room for the rectangle that the cells span, however few they are.
    """
    for item in held:
        if not item.filename.lower().endswith((".xml", ".rels")):
            continue
        rows = columns = 0
        with archive.open(item) as stream:
            rest = b""
            first = True
            while chunk := stream.read(_CHUNK):
                # places are searched as bytes, which another encoding would hide
                if first and chunk.startswith(UTF16):
                    raise InvalidTable(f"{name} is a damaged zip archive or workbook.")
                first = False
                for letters, digits in _PLACE.findall(rest + chunk):
                    row, column = _corner((letters + digits).decode())
                    rows, columns = max(rows, row), max(columns, column)
                # a place may be cut in two by the end of a chunk
                rest = (rest + chunk)[-_LONGEST_PLACE:]
        if columns > limits.columns or rows * columns > limits.cells:
            raise InvalidTable(
                f"A sheet of {name} spans {rows:,} rows and {columns:,} columns, more than the "
                f"{limits.cells:,} cells or {limits.columns:,} columns that are read; clear the "
                "cells that lie far out."
            )


def _of_workbook(source: Source, data: bytes, sheet: str, limits: Limits) -> Opened:
    """Return the sheet of a workbook as text, cell by cell, as its program would save it."""
    name = source.name
    names, chosen, rows = read_workbook(data, name, sheet, limits=limits)
    _require_sheet(sheet, names, name)
    if not rows:
        raise InvalidTable(f"{name} has no sheet with a table.")
    if len(rows) * len(rows[0]) > limits.cells:
        raise _too_large(name, limits)
    others = [other for other in names if other != chosen]
    note = f"Sheet '{printable(chosen)}' was read"
    note += f"; there are also {listed(others)}." if others else "."
    return Opened(Source(_commas(rows), name, delimiter=","), (note,), tuple(names), chosen)


def read_workbook(
    data: bytes, name: str, sheet: str = "", *, whole: bool = False, limits: Limits = IN_MEMORY
) -> tuple[list[str], str, list[list[str]]]:
    """Return the names of a workbook's visible sheets, the one that was read, and its cells.

    A process of its own reads it (`dpviz.datasets.workbook`), whose death is a sentence here.

    Parameters
    ----------
    data : bytes
    name : str
        What messages call it.
    sheet : str
        The first that holds a table if empty. Of one that is not there no cells come.
    whole : bool
        With empty rows and columns; the only sheet then if none is named, and no cells of several.
    limits : Limits
        The most text, and the cells that the process may take memory for.

    Raises
    ------
    NotAvailable
        Inside a browser, and where python-calamine is not installed.
    InvalidTable
        If it is damaged, protected, too large or no workbook.
    """
    if in_browser():
        raise NotAvailable(NO_WORKBOOKS)
    need("python_calamine")
    cells = min(limits.cells, _OLE_CELLS) if data.startswith(OLE_MAGIC) else limits.cells
    try:
        asked = [sheet, whole, cells, limits.text_bytes]
        found = io.BytesIO(_apart(name, workbook.__file__, asked, data, limits))
        (names, chosen), *rows = map(json.loads, found)
    except DpvizError:  # which is a ValueError
        raise
    except (OSError, subprocess.SubprocessError, ValueError):
        raise _unreadable(name) from None
    return names, chosen, rows


def _apart(name: str, script: str, asked: list[Any], data: bytes, limits: Limits) -> bytes:
    """Return what a script in a process of its own makes of a file, whose death is an error.

    The process ends where it takes too long, and where nobody wants it any more.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    given = json.dumps(asked).encode() + b"\n" + data
    answers: list[bytes] = []
    # a pipe's read cannot be interrupted, so a thread waits and this one looks up
    talk = threading.Thread(target=lambda: answers.append(process.communicate(given)[0]))
    talk.start()
    end = time.monotonic() + _CLOCK * workbook.SECONDS
    try:
        while talk.is_alive() and time.monotonic() < end:
            talk.join(_LOOK_SECONDS)
            check_cancelled()
    finally:
        late = talk.is_alive()
        process.kill()
        talk.join()
    if late or process.returncode == -getattr(signal, "SIGXCPU", signal.SIGTERM):
        raise InvalidTable(
            f"{name} takes too long to read, more than {workbook.SECONDS} s of a processor's time "
            f"or {_CLOCK * workbook.SECONDS} s in all; save it as CSV."
        )
    if process.returncode == workbook.PROTECTED:
        raise InvalidTable(f"{name} is protected by a password; save it without one.")
    if process.returncode == workbook.TOO_LARGE:
        raise _too_large(name, limits)
    if process.returncode or not answers:
        raise subprocess.SubprocessError
    return answers[0]


def _unreadable(name: str) -> InvalidTable:
    return InvalidTable(
        f"{name} cannot be read as a workbook: it is damaged or of an unknown kind; save it "
        "as xlsx or CSV."
    )


def _require_sheet(sheet: str, names: list[str], name: str) -> None:
    if sheet and sheet not in names:
        raise InvalidTable(
            f"sheet must be one of {name}: {listed(names) if names else 'none is visible'}; "
            f"got {printable(sheet)!r}."
        )


def _commas(rows: Iterable[list[str]]) -> bytes:
    # line ends are written as they are, on every system
    sink = io.StringIO(newline="")
    csv.writer(sink, lineterminator="\n").writerows(rows)
    return sink.getvalue().encode("utf-8", "replace")


class SheetText(io.BytesIO):
    """A sheet of a workbook as the text that is released.

    Attributes
    ----------
    formulas : int
        Cells that are missing in it, as they hold formulas.
    """

    formulas: int = 0


def is_json(head: bytes) -> bool:
    """Return whether a file that begins so holds JSON records."""
    return _JSON.match(head) is not None


def is_workbook(name: str, sheet: str = "") -> bool:
    """Return whether a file is a workbook to a release, for which its bytes say nothing."""
    return bool(sheet) or name.lower().endswith((".xlsx", ".xlsm"))


def sheet_text(
    given: str | Path | bytes | bytearray | memoryview | BinaryIO,
    name: str,
    sheet: str = "",
    *,
    limits: Limits = IN_MEMORY,
) -> SheetText:
    """Return a sheet as UTF-8 text with commas, where each cell follows from itself alone.

    Row i of the sheet is line i, from its first one to the last that holds anything, and column j
    is cell j: an empty row is an empty line. A number is written in full, however the sheet formats
    it, a date as 2024-01-31, a line break as a blank, an error as nothing; of merged cells the
    first holds what they hold. A formula may look at other rows, so its cell is empty. Where
    formulas stand and how far the sheet reaches counts as public, as names do.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        What messages call it.
    sheet : str
        By name; the only visible one if empty.
    limits : Limits, optional
        What it may take once it is unpacked.

    Raises
    ------
    InvalidTable
        If it is no xlsx, is damaged or too large, or the sheet is none or one of several.
    """
    source = Source(given, name)
    if not source.open().read(_HEAD).startswith(ZIP_MAGIC):
        raise InvalidTable(f"{name} is no xlsx workbook; save it as one, or as CSV.")
    data = _bytes(source, limits)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            held = [item for item in archive.infolist() if not item.is_dir()]
            if sum(item.file_size for item in held) > limits.text_bytes:
                raise _too_large(name, limits)
            _check_sheets(archive, held, name, limits)
            names, chosen, cells = read_workbook(data, name, sheet, whole=True, limits=limits)
            _require_sheet(sheet, names, name)
            if not sheet and len(names) != 1:
                raise InvalidTable(
                    f"sheet must be said, as {name} has {counted(len(names), 'visible sheet')}: "
                    f"{listed(names)} (--sheet)."
                )
            formulas = _formulas(archive, chosen)
    except DpvizError:
        raise
    except Exception:  # of a damaged archive or its XML, in as many kinds as there are
        raise _unreadable(name) from None
    rows = [[_LINE_BREAK.sub(" ", text) for text in row] for row in cells]
    missing = 0
    for top, left, bottom, right in formulas:
        for row in rows[top - 1 : bottom]:
            here = slice(left - 1, min(right, len(row)))
            missing += len(row[here])
            row[here] = [""] * len(row[here])
    for row in rows:
        while row and not row[-1]:  # how wide others are is not told
            row.pop()
    text = SheetText(_commas(rows))
    text.formulas = missing
    return text


def _formulas(archive: zipfile.ZipFile, sheet: str) -> list[tuple[int, int, int, int]]:
    """Return where the formulas of a sheet stand: rows and columns from 1, both ends included."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    own = next(e for e in book.iter() if _is(e, "sheet") and e.get("name") == sheet)
    key = next(value for name, value in own.items() if name.endswith("}id"))
    related = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(e.get("Target", "") for e in related if e.get("Id") == key)
    found, at = [], 0
    with archive.open(posixpath.normpath(posixpath.join("/xl", target))[1:]) as stream:
        for _, row in ElementTree.iterparse(stream):
            if not _is(row, "row"):
                continue
            at, column = int(row.get("r", at + 1)), 0
            for cell in row:
                column = _corner(cell.get("r", ""))[1] or column + 1
                for formula in cell:
                    if _is(formula, "f"):
                        # such a formula stands in one cell and fills all of a range
                        many = formula.get("t") in ("array", "dataTable")
                        first, _, last = formula.get("ref", "").partition(":") if many else [""] * 3
                        top, left = _corner(first)
                        bottom, right = _corner(last or first)
                        found.append((top or at, left or column, bottom or at, right or column))
            row.clear()
    return found


def _is(element: ElementTree.Element, name: str) -> bool:
    return element.tag.rpartition("}")[2] == name


def _corner(place: str) -> tuple[int, int]:
    """Return row and column of a place such as C7, from 1; zeros where it is none."""
    letters, digits = place.rstrip("0123456789"), place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - 64
    return int(digits or 0), column


# ---------------------------------------------------------------- frames


def _of_frame(
    source: Source,
    what: str,
    read: Callable[[str, str, bytes, Limits], tuple[bytes | None, list[str]]],
    limits: Limits,
) -> Opened:
    """Return what another program's file holds, as Parquet."""
    name = source.name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            written, notes = read(name, what, _bytes(source, limits), limits)
    except DpvizError:
        raise
    except Exception:
        # whatever a reader of foreign bytes says may quote them
        raise InvalidTable(
            f"{name} starts like {what} but cannot be read as one: it is damaged or of an "
            "unknown kind; save it as CSV."
        ) from None
    if written is None:
        raise _too_large(name, limits)
    return Opened(Source(written, name), tuple(notes))


def _foreign(name: str, what: str, data: bytes, limits: Limits) -> tuple[bytes | None, list[str]]:
    """Return a file of SPSS or Stata as Parquet, and sentences."""
    if what == foreign.SPSS:
        need("pyreadstat")
    if in_browser():  # which starts no process
        frame, notes = foreign.READERS[what](data)
        return foreign.as_parquet(frame, limits), notes
    found = io.BytesIO(_apart(name, foreign.__file__, [what, *astuple(limits)], data, limits))
    notes = json.loads(found.readline())
    return found.read(), notes


def _records(name: str, what: str, data: bytes, limits: Limits) -> tuple[bytes | None, list[str]]:
    """Return JSON records, in one list or one a line, as Parquet, and sentences."""
    text = data.decode("utf-8-sig")
    # NaN is read too: that is how Python writes what is missing
    read = json.JSONDecoder(object_pairs_hook=named_once).decode
    try:
        try:
            found = read(text)
        except json.JSONDecodeError:
            found = [read(line) for line in text.splitlines() if line.strip()]
    except NamedTwice:
        # not which: a name in a record within a record may be of the data
        raise InvalidTable(f"{name} has a record that names something twice.") from None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise InvalidTable(
            f"{name} must hold JSON records, [{{...}}, {{...}}] or one {{...}} a line; save it as "
            "that or as CSV."
        )
    names = list(dict.fromkeys(key for record in found for key in record))
    inner = {key for record in found for key, v in record.items() if isinstance(v, (dict, list))}
    nested = [key for key in names if key in inner]
    notes = [f"Left out, lists or records inside records: {listed(nested)}."] if nested else []
    kept = [key for key in names if key not in inner]
    # before they are filled: each record may have names of its own
    if len(kept) * len(found) > limits.cells:
        return None, notes
    frame = pd.DataFrame({key: pd.Series([record.get(key) for record in found]) for key in kept})
    return foreign.as_parquet(frame, limits), notes
