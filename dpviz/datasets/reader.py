"""Read any table's bytes as Arrow, in a process that may crash safely.

This file is also a script and imports nothing of dpviz. The script is a warm helper: it has
imported Arrow, waits, and forks a child for each file. The child limits its memory, time and
output, and identifies the file by its first bytes. It reports its findings (`Reading.about`), waits
for a plan for splitting, and writes an Arrow stream. If a file makes a library abort or memory run
out, only that child ends. `dpviz.datasets.process` is the other end; on systems without child
processes it calls `Reading` itself, without limits.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import itertools
import json
import os
import posixpath
import re
import signal
import socket
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

BLOCK_BYTES = 2 << 20  # Arrow parses such a block at a time; each line must fit in one.
_CHUNK = 1 << 20
HEAD_BYTES = 1 << 19
_TAIL = 1 << 16
_GROUP_ROWS = 1 << 20
# A sheet with at most so many rows is a cover if another sheet has this many times as many.
_COVER_ROWS, _TIMES = 20, 5

GZIP_MAGIC, PARQUET_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PAR1", b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SPSS = (b"$FL2@(#)", b"$FL3@(#)")
_OLD_STATA = {105, 108, 111, 113, 114, 115}
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*\{|\{\s*[\"}])")
_BOOKS = {"xl/workbook.xml", "xl/workbook.bin"}
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_HIDDEN = re.compile(rb"<(?:\w+:)?row\b[^>]*\shidden=\"(?:1|true)\"")
_LINE_BREAK = re.compile(r"[\r\n]+")
_WORDS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "space"}


class Refused(Exception):
    """The file is not a readable table; ``{}`` in the message stands for the file's name.

    Parameters
    ----------
    sentence : str
    large : bool
        Whether the file is only too large to be held in memory at once.
    encoding : str
        The encoding that the file may have.
    """

    def __init__(self, sentence: str, *, large: bool = False, encoding: str = "") -> None:
        super().__init__(sentence)
        self.large, self.encoding = large, encoding


class Reading:
    """A file that is being read.

    Parameters
    ----------
    file : binary file
        Seekable.
    asked : mapping
        ``encoding`` of a text, and its name (``encoded``); ``sheet`` of a workbook; ``whole``, to
        read a sheet as a release does; ``stream``, for batches; ``text_bytes`` and ``cells``, the
        maximum held at once.

    Attributes
    ----------
    about : dict
        Findings: ``head``, ``tail`` and ``size`` of a delimited text (its start, end and bytes);
        ``schema`` and ``rows`` of any other file.
    """

    def __init__(self, file: Any, request: Mapping[str, Any]) -> None:
        self._asked, self._what, self._lost = request, "a table", 0
        self.about: dict[str, Any] = {"notes": []}
        self._rows: Callable[[Mapping[str, Any]], tuple[Any, Iterator[Any]]]
        try:
            self._open(file, packed=False)
        except (Refused, MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:  # Any file may raise any error, whose text may quote data.
            if isinstance(error, OSError) and error.errno:  # Errors of Arrow have no error number.
                raise Refused(
                    "{} cannot be read: the disk, network share or device that holds the file "
                    "reports an error."
                ) from None
            raise Refused(
                f"{{}} starts like {self._what} but cannot be read as one: it is damaged, "
                "incomplete or of an unknown kind; save it as CSV."
            ) from None

    def batches(self, plan: Mapping[str, Any]) -> tuple[Any, Iterator[Any]]:
        """Return the schema of the table and its record batches.

        Parameters
        ----------
        plan : mapping
            For a text, its layout (`dpviz.datasets.dialect`). For any other file, the ``columns``,
            as positions among the flat columns, and the ``rows`` per batch.
        """
        return self._rows(plan)

    def _open(self, file: Any, *, packed: bool) -> None:
        file.seek(0)
        head = file.read(64)
        if head.startswith(ZIP_MAGIC):
            self._of_zip(file, packed=packed)
        elif head.startswith(OLE_MAGIC):
            file.seek(0)
            self._of_workbook(file.read())
        elif head.startswith(PARQUET_MAGIC):
            self._what = "a Parquet file"
            self._of_parquet(file)
        elif head.startswith(_SPSS):
            self._what = "an SPSS file"
            self._of_columns(*_spss(_all(file)))
        elif head.startswith(b"<stata_dta>") or (
            len(head) > 3 and head[0] in _OLD_STATA and head[1] in (1, 2) and head[2] == 1
        ):
            self._what = "a Stata file"
            self._of_columns(*_stata(_all(file)))
        elif is_json(head):
            self._what = "JSON"
            self._of_columns(*_records(_all(file), self._asked["cells"]))
        else:
            self._of_text(file, head)

    # -------------------------------------------------------------------- columns

    def _of_parquet(self, file: Any) -> None:
        source = parquet.ParquetFile(file)
        schema, rows, groups = source.schema_arrow, source.metadata.num_rows, source.num_row_groups
        size = sum(source.metadata.row_group(j).total_byte_size for j in range(groups))
        if not self._asked["stream"]:
            self._check_size(rows, len(schema), size)
        self.about |= {"schema": schema.serialize().to_pybytes().decode("latin-1"), "rows": rows}
        # Read texts as codes, because a file may contain one long text a million times. When
        # streaming, read plain texts, as Arrow would store every text of earlier batches.
        texts = [] if self._asked["stream"] else [f.name for f in schema if is_text(f.type)]
        again = parquet.ParquetFile(
            file, read_dictionary=texts, pre_buffer=False, buffer_size=1 << 18
        )

        flat = [field for field in again.schema_arrow if is_flat(field)]

        def batches(plan: Mapping[str, Any]) -> tuple[Any, Iterator[Any]]:
            names = list(dict.fromkeys(flat[place].name for place in plan["columns"]))
            if self._asked["stream"]:
                stream = again.iter_batches(plan["rows"], columns=names, use_threads=False)
            else:
                tables = (again.read_row_group(j, names, use_threads=False) for j in range(groups))
                stream = (b for t in tables for b in t.combine_chunks().to_batches(_GROUP_ROWS))
            return _by_place(flat, names, plan["columns"], stream)

        self._rows = batches

    def _of_columns(self, table: Any, notes: list[str]) -> None:
        self._check_size(table.num_rows, table.num_columns, 0)
        schema = table.schema.serialize().to_pybytes().decode("latin-1")
        self.about |= {"schema": schema, "rows": table.num_rows}
        self.about["notes"] += notes

        flat = [j for j, field in enumerate(table.schema) if is_flat(field)]

        def batches(plan: Mapping[str, Any]) -> tuple[Any, Iterator[Any]]:
            selection = table.select([flat[place] for place in plan["columns"]])
            return selection.schema, iter(selection.to_batches(plan["rows"]))

        self._rows = batches

    def _check_size(self, rows: int, columns: int, size: int) -> None:
        """Refuse a file whose stated size is more than memory may hold."""
        cells, most = self._asked["cells"], self._asked["text_bytes"]
        if rows * columns > cells:
            raise Refused(
                f"{{}} has about {rows:,} rows of {columns:,} columns, more than the {cells:,} "
                "cells that are read into memory; keep fewer rows or columns.",
                large=True,
            )
        if size > most:
            raise Refused(
                f"{{}} unpacks to more than {most >> 20} MiB, the most that is read into memory; "
                "keep fewer rows or columns.",
                large=True,
            )

    # -------------------------------------------------------------------- zip and workbooks

    def _of_zip(self, file: Any, *, packed: bool) -> None:
        self._what = "a zip archive or workbook"
        with zipfile.ZipFile(file) as archive:
            members = [item for item in archive.infolist() if not item.is_dir()]
            inside = {item.filename for item in members}
            # In a zip file, bit 0 of a member's flags means that the member is encrypted.
            if any(item.flag_bits & 1 for item in members):
                raise Refused("{} is protected by a password; save it without one.")
            kind = archive.read("mimetype") if "mimetype" in inside else b""
            if b"opendocument.spreadsheet" in kind or inside & _BOOKS:
                file.seek(0)
                return self._of_workbook(file.read(), archive)
            if inside & {"mimetype", "[Content_Types].xml"}:
                raise Refused(
                    "{} is an office document of a kind that dpviz does not read; save the "
                    "sheet as xlsx or CSV."
                )
            tables = [
                item
                for item in members
                if not item.filename.startswith(("__MACOSX/", "."))
                and not item.filename.rpartition("/")[2].startswith(".")
            ]
            # If the archive has several files, do not guess which file the user means.
            if len(tables) != 1:
                files = "1 file" if len(tables) == 1 else f"{len(tables)} files"
                raise Refused(f"{{}} must hold one table; it holds {files}.")
            # Unpack one level only: mail programs zip a file once, while zip bombs nest zips.
            if packed:
                raise Refused("{} is a zip inside a zip; unpack it once.")
            data = archive.read(tables[0])
        self.about["notes"].append("The one table of the archive was read.")
        self._open(io.BytesIO(data), packed=True)

    def _of_workbook(self, data: bytes, archive: zipfile.ZipFile | None = None) -> None:
        """Read a workbook's sheet as text, cell by cell, as its program would save it."""
        import python_calamine as calamine

        self._what = "a workbook"
        wish, whole = self._asked["sheet"], self._asked["whole"]
        try:
            book = calamine.load_workbook(io.BytesIO(data))
            names = [
                found.name
                for found in book.sheets_metadata
                if found.typ == calamine.SheetTypeEnum.WorkSheet
                and found.visible == calamine.SheetVisibleEnum.Visible
            ]
            self.about["sheets"] = names
            if whole and not wish and len(names) != 1:
                raise Refused(
                    f"sheet must be stated, because {{}} has {len(names)} visible sheets: "
                    f"{_listed(names)} (--sheet)."
                )
            tab, rows = "", []
            for name in [name for name in names if name == wish or not wish]:
                sheet = book.get_sheet_by_name(name)
                if whole:
                    tab, rows = name, [*map(_cells, sheet.to_python(skip_empty_area=False))]
                    break
                cells = [row for row in map(_cells, sheet.iter_rows()) if any(row)]
                places = [j for j, column in enumerate(zip(*cells, strict=True)) if any(column)]
                places = self._beside(cells, places)
                if cells and len(places) < len(cells[0]):
                    cells = [[row[j] for j in places] for row in cells]
                    cells = [row for row in cells if any(row)]
                # Many workbooks begin with a cover or table of contents, so choose a longer sheet.
                if not tab or (len(places) > 1 and len(cells) > _TIMES * len(rows)):
                    tab, rows = name, cells if len(places) > 1 < len(cells) else []
                if len(rows) > _COVER_ROWS:
                    break
        except calamine.CalamineError as error:
            # A password-protected xlsx looks like an unknown format, so look for its mark.
            if isinstance(error, calamine.PasswordError) or _ENCRYPTED in data:
                raise Refused("{} is protected by a password; save it without one.") from None
            raise
        self.about |= {"sheet": tab, "delimiter": ","}
        hidden = _hidden(archive, tab) if archive is not None and tab and not whole else 0
        if hidden:
            were = "hidden row was" if hidden == 1 else "hidden rows were"
            self.about["notes"].append(f"{hidden} {were} read like all others.")
        if wish and wish not in names:
            sheets = _listed(names) if names else "none is visible"
            raise Refused(f"sheet must be one of {{}}: {sheets}; got {_listed([wish])}.")
        if not whole and not rows:
            raise Refused("{} has no sheet with a table.")
        if whole:
            formulas = _formulas(archive, tab) if archive is not None else []
            self.about["formulas"] = _without_formulas(rows, formulas)
        sink = io.StringIO(newline="")
        csv.writer(sink, lineterminator="\n").writerows(rows)
        text = sink.getvalue().encode("utf-8", "replace")
        if whole:
            table = pa.table({"text": pa.array([text], pa.large_binary())})
            self._rows = lambda _: (table.schema, iter(table.to_batches()))
        else:
            self._of_text(io.BytesIO(text), b"")

    def _beside(self, rows: list[list[str]], held: list[int]) -> list[int]:
        """Return the columns of a sheet's main table, without a small table beside it."""
        runs = itertools.groupby(enumerate(held), lambda place: place[1] - place[0])
        blocks = [[j for _, j in run] for _, run in runs]
        counts = [sum(any(row[j] for j in block) for row in rows) for block in blocks]
        # Leave out small tables, with fewer than a fifth of the rows of the longest table.
        long = (b for b, n in zip(blocks, counts, strict=True) if 5 * n >= max(counts))
        places = [*itertools.chain(*long)]
        if len(places) < len(held):
            were = "column" if len(held) - len(places) == 1 else "columns"
            self.about["notes"].append(
                f"{len(held) - len(places)} {were} beside the table, behind an empty one, left out."
            )
        return places

    # -------------------------------------------------------------------- text

    def _of_text(self, file: Any, head: bytes) -> None:
        self._what = "a text"
        encoding = self._asked["encoding"]
        if self._asked["sheet"] and "sheet" not in self.about:
            raise Refused("{} is not a workbook, so it has no sheets; leave sheet out.")
        packed = head.startswith(GZIP_MAGIC)

        def unpacked() -> Any:
            file.seek(0)
            return gzip.GzipFile(fileobj=file, mode="rb") if packed else file

        def text() -> Any:
            raw = unpacked()
            return _file_of(self._recoded(raw, encoding)) if encoding else raw

        try:
            if not encoding and "sheet" not in self.about:
                refuse_foreign(unpacked().read(64))
            if "plan" not in self._asked:
                self._extent(text, packed=packed or bool(encoding), size=file.seek(0, 2))
        except UnicodeError:  # Only UTF-16 is decoded strictly, so only it raises this error.
            message = f"{{}} is not {self._asked['encoded']} text; choose another encoding."
            raise Refused(message) from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise Refused("{} is a damaged or incomplete gzip file.") from None
        if encoding:
            self.about["encoding"] = self._asked["encoding"]
        self._rows = lambda plan: _split(text, plan)

    def _recoded(self, stream: Any, encoding: str) -> Iterator[bytes]:
        """Yield a text in UTF-8, converted from another encoding, and count invalid characters."""
        self._lost = 0
        # Replace a byte that is not text and read on: delimiters and numbers are ASCII. In UTF-16
        # there are no such bytes, so an error means another encoding.
        errors = "strict" if encoding.startswith("utf") else "replace"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        chunk = b" "
        while chunk:
            chunk = stream.read(_CHUNK)
            letters = decoder.decode(chunk, final=not chunk)
            self._lost += letters.count("\ufffd")
            yield letters.encode()

    def _extent(self, text: Callable[[], Any], *, packed: bool, size: int) -> None:
        """Report the size of the text, its start and its end.

        A packed text is unpacked once and discarded, in constant memory whatever its size.
        """
        most = None if self._asked["stream"] else self._asked["text_bytes"]
        stream = text()
        head = stream.read(HEAD_BYTES)
        if b"\n" not in head and b"\r" not in head:
            head += stream.read(BLOCK_BYTES)  # The header row alone is longer than a block.
        total, tail = len(head), head
        if packed:
            while (most is None or total <= most) and (chunk := stream.read(_CHUNK)):
                total += len(chunk)
                tail = (tail[-_TAIL:] + chunk)[-_TAIL:]
        elif size > total:
            total = size
            stream.seek(max(total - _TAIL, 0))
            tail = stream.read()
        if most is not None and total > most:
            raise Refused(
                f"{{}} holds more than {most >> 20} MiB of text, the most that is read into "
                "memory; keep fewer rows or columns.",
                large=True,
            )
        if not total:
            raise Refused("{} is empty.")
        if self._lost:
            self.about["notes"].append(
                f"{self._lost} bytes that mean no letter in this encoding were replaced: check the "
                "names."
            )
        self.about |= {
            "head": head.decode("latin-1"),
            "tail": tail[-_TAIL:].decode("latin-1"),
            "size": total,
        }


class _Pieces(io.RawIOBase):
    """Pieces of bytes presented as a file that can be read once, from start to end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._ready = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = piece
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _file_of(pieces: Iterator[bytes]) -> Any:
    return io.BufferedReader(_Pieces(pieces), _CHUNK)


def _all(file: Any) -> bytes:
    file.seek(0)
    data: bytes = file.read()
    return data


def _by_place(
    flat: list[Any], names: list[str], places: list[int], stream: Iterator[Any]
) -> tuple[Any, Iterator[Any]]:
    """Yield batches that were read by name, with the flat columns at these positions.

    Reading by name returns all columns with the name, and parts of nested columns with the same
    path.
    """
    there = _places(flat)
    schema = pa.schema([(str(place), flat[place].type) for place in places])

    def batches() -> Iterator[Any]:
        for batch in stream:
            own = _places(batch.schema)
            at = {
                place: j for name in names for place, j in zip(there[name], own[name], strict=True)
            }
            columns = [batch.column(at[place]) for place in places]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return schema, batches()


def _places(fields: Iterable[Any]) -> dict[str, list[int]]:
    """Return the positions of the flat columns of each name."""
    places: dict[str, list[int]] = {}
    for j, field in enumerate(fields):
        if is_flat(field):
            places.setdefault(field.name, []).append(j)
    return places


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(of(kind) for of in texts)


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is a number or a truth value."""
    t = pa.types
    return any(of(kind) for of in (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean))


def is_flat(column: Any) -> bool:
    """Return whether a column has a single number, text, truth value or date in each row."""
    if column.name.startswith("__index_level_"):  # pandas stores row names in such columns.
        return False
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_date = pa.types.is_temporal(kind) and not pa.types.is_duration(kind)
    return bool(is_date or pa.types.is_null(kind) or is_number(kind) or is_text(kind))


def is_json(head: bytes) -> bool:
    """Return whether a file's first bytes suggest JSON records."""
    return _JSON.match(head) is not None


# Files that people upload by mistake begin with these bytes.
_FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (ZIP_MAGIC, "a zip archive or an Excel workbook"),
    (b"PK\x05\x06", "a zip archive"),
    (OLE_MAGIC, "an old Excel workbook"),
    (b"$FL2@(#)", "an SPSS file"),
    (b"$FL3@(#)", "an SPSS file"),
    (b"<stata_dta>", "a Stata file"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\0\1\0\0Standard", "an Access database"),
    (bytes(12) + b"\xc2\xea\x81\x60", "a SAS file"),
    (b"HEADER RECORD*******LIB", "a SAS transport file"),
    (b"ARROW1", "an Arrow file"),
    (b"FEA1", "a Feather file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"RDX2\n", "an R workspace"),
    (b"RDX3\n", "an R workspace"),
    (b"X\n\0\0", "an R object"),
    (b"<!DOCTYPE html", "a web page"),
    (b"<html", "a web page"),
)
_IN_R = 'in R, write.csv(data, "table.csv", row.names = FALSE)'
_IN_ITS_PROGRAM = "in its program, export one table or query as CSV"
_SAS = 'in SAS, proc export data=lib.table outfile="table.csv" dbms=csv; run;'
_EXPORTS = {
    "an R workspace": _IN_R,
    "an R object": _IN_R,
    "an SQLite database": _IN_ITS_PROGRAM,
    "an Access database": _IN_ITS_PROGRAM,
    "a SAS file": _SAS,
    "a SAS transport file": _SAS,
    "a web page": "from an online sheet, choose File, Download, CSV",
}


def refuse_foreign(head: bytes) -> None:
    """Raise `Refused` if the first bytes are of another format or UTF-16."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            how = _EXPORTS.get(what, "save the table as CSV (also gzipped) or Parquet")
            raise Refused(f"{{}} is {what}, which dpviz cannot read; {how}.")
    if head.startswith(UTF16):
        raise Refused(
            "{} is encoded as UTF-16; choose UTF-16 as its encoding (--encoding utf-16), or save "
            "it as UTF-8.",
            encoding="utf-16",
        )
    if b"\0" in head:
        raise Refused("{} is neither CSV text nor Parquet: it holds binary data.")


# Delimited text -----------------------------------------------------------------------------------


def _lines_of(text: Callable[[], Any], plan: Mapping[str, Any]) -> Any:
    """Return the rows of a text as a file whose last line has a line end."""
    pieces = _rows_of(text(), plan)
    return _file_of(_even(pieces, plan) if plan.get("uneven") else pieces)


def _rows_of(stream: Any, plan: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the rows of a text; if blanks delimit, runs of blanks become one blank."""
    start, stop = plan["start"], plan["stop"]
    remaining = None if stop is None else stop - start
    while start > 0:
        start -= len(stream.read(min(start, _CHUNK))) or start
    rest, last, more = b"", b"\n", True
    while more:
        chunk = stream.read(_CHUNK)
        if remaining is not None:
            chunk = chunk[:remaining]
            remaining -= len(chunk)
        more = bool(chunk)
        if plan["delimiter"] == " ":
            rest += chunk
            # Cut only after a line end, because several blanks may continue in the next block.
            # Without any line end, the parser refuses the text, so do not store the text.
            flush = not chunk or len(rest) > BLOCK_BYTES
            end = len(rest) if flush else rest.rfind(b"\n") + 1
            chunk, rest = rest[:end], rest[end:]
            chunk = re.sub(rb"(?m)^ | (?=\r?$)", b"", re.sub(rb"[ \t]+", b" ", chunk))
        last = chunk[-1:] or last
        yield chunk
    # Arrow would return a last line without a line end as its own batch, so add a line end.
    if last not in b"\r\n":
        yield b"\n"


def _even(pieces: Iterator[bytes], plan: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the text without surplus blank cells at the ends of lines."""
    text = io.TextIOWrapper(_file_of(pieces), "utf-8", errors="surrogateescape", newline="")
    rows = csv.reader(text, delimiter=plan["delimiter"], skipinitialspace=True)
    while some := [*itertools.islice(rows, 4_096)]:
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, delimiter=plan["delimiter"], lineterminator="\n")
        for row in some:
            more = any(cell.strip() for cell in row[plan["width"] :])
            writer.writerow(row if more else row[: plan["width"]])
        yield sink.getvalue().encode("utf-8", "surrogateescape")


def _split(text: Callable[[], Any], plan: Mapping[str, Any]) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the batches of a delimited text, with all columns as texts."""
    names = [str(j) for j in range(plan["width"])]
    options = arrow_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=names)
    split = arrow_csv.ParseOptions(delimiter=plan["delimiter"], newlines_in_values=True)
    blanks = ("", " ")
    convert = arrow_csv.ConvertOptions(
        null_values=[f"{a}{word}{b}" for word in plan["missing"] for a in blanks for b in blanks],
        strings_can_be_null=True,
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=[*map(str, plan["columns"])] if "columns" in plan else None,
    )
    rows = pa.PythonFile(_lines_of(text, plan), mode="r")
    try:
        stream = arrow_csv.open_csv(rows, options, split, convert)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return pa.schema([(name, pa.null()) for name in names]), iter(())
        raise _what_is_wrong(text, plan) from None
    return stream.schema, _told(stream, text, plan)


def _told(batches: Any, text: Callable[[], Any], plan: Mapping[str, Any]) -> Iterator[Any]:
    last, cells = None, 0
    try:
        for last in batches:
            cells += last.num_rows * plan["width"]
            if cells > plan.get("cells", cells):
                raise Refused(
                    f"{{}} has more than the {plan['cells']:,} cells that are read into memory; "
                    "keep fewer rows or columns.",
                    large=True,
                )
            yield last
    except pa.ArrowInvalid:
        raise _what_is_wrong(text, plan) from None
    if last is not None and _may_be_swallowed(last) and _quote_stays_open(text, plan):
        raise Refused(_OPEN_QUOTE)


def _may_be_swallowed(batch: Any) -> bool:
    """Return whether a cell of the last row holds a line break.

    An unclosed quote puts the rest of the file into one cell, and Arrow does not report this.
    """
    if not batch.num_rows:
        return False
    texts = [column[-1] for column in batch.columns if pa.types.is_string(column.type)]
    contents = [cell.as_buffer().to_pybytes() for cell in texts if cell.is_valid]
    return any(b"\n" in cell or b"\r" in cell for cell in contents)


def _quote_stays_open(text: Callable[[], Any], plan: Mapping[str, Any]) -> bool:
    """Read the text again, line by line, and return whether it ends inside quotes."""
    try:
        for _ in _lengths(text, plan, strict=True):
            pass
    except csv.Error:
        return True
    return False


_OPEN_QUOTE = (
    "{} cannot be split into cells: a quote is opened and never closed, or a line is longer than "
    f"{BLOCK_BYTES >> 20} MiB."
)


def _lengths(
    text: Callable[[], Any], plan: Mapping[str, Any], *, strict: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield each record's first line, from 1, and its number of cells."""
    lines = io.TextIOWrapper(_lines_of(text, plan), "utf-8", errors="replace", newline="")
    reader = csv.reader(lines, delimiter=plan["delimiter"], strict=strict)
    start = 1
    for record in reader:
        if record:
            yield plan["skipped"] + start, len(record)
        start = reader.line_num + 1


def _what_is_wrong(text: Callable[[], Any], plan: Mapping[str, Any]) -> Refused:
    """Read a refused text again, line by line, and return the reason as a sentence.

    Arrow's own message would quote the cell or the line.
    """
    decoder, stream = codecs.getincrementaldecoder("utf-8")(), text()
    try:
        while chunk := stream.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return Refused(
            "{} is not UTF-8 text; save it as UTF-8, or choose Windows-1252 as its encoding "
            "(--encoding cp1252).",
            encoding="cp1252",
        )
    first = plan["skipped"]  # Start at the header row, if the file has one.
    width = plan["width"] if plan["named"] else None
    with suppress(csv.Error):  # A cell with an open quote exceeds the csv module's limit.
        for line, cells in _lengths(text, plan):
            width, first = (cells, line) if width is None else (width, first)
            if cells != width:
                where = "the first line" if first <= 1 else f"line {first}"
                return Refused(
                    "{} must have the same number of cells on every line; read with the delimiter "
                    f"{_WORDS[plan['delimiter']]}, line {line} has {cells} and {where} has "
                    f"{width}."
                )
    return Refused(_OPEN_QUOTE)


# Workbooks ----------------------------------------------------------------------------------------


def cell_text(value: object) -> str:
    """Return a cell as text: a number in full, a date as 2024-01-31."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Workbooks store numbers as floats: write whole ones without a point only up to 1e15.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        # Workbooks store a date as midnight of its day, so drop that time.
        return str(value.date() if value.time() == datetime.time() else value)
    return str(value).strip()


def _cells(row: list[Any]) -> list[str]:
    return [*map(cell_text, row)]


def _without_formulas(rows: list[list[str]], formulas: list[tuple[int, int, int, int]]) -> int:
    """Empty formula cells, as a release does, put each cell on one line, and count empty cells."""
    missing = 0
    for row in rows:
        row[:] = [_LINE_BREAK.sub(" ", text) for text in row]
    for top, left, bottom, right in formulas:
        for row in rows[top - 1 : bottom]:
            here = slice(left - 1, min(right, len(row)))
            missing += len(row[here])
            row[here] = [""] * len(row[here])
    for row in rows:
        while row and not row[-1]:  # Drop empty end cells: they would show how wide other rows are.
            row.pop()
    return missing


def _place(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the path of a sheet inside its workbook."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    element = next(e for e in book.iter() if _is(e, "sheet") and e.get("name") == sheet)
    key = next(value for name, value in element.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(e.get("Target", "") for e in links if e.get("Id") == key)
    return posixpath.normpath(posixpath.join("/xl", target))[1:]


def _hidden(archive: zipfile.ZipFile, sheet: str) -> int:
    """Return how many rows of a sheet are hidden, or 0 if the file does not show this."""
    if "xl/workbook.xml" not in archive.namelist():
        return 0
    with suppress(KeyError, StopIteration, ElementTree.ParseError):
        return len(_HIDDEN.findall(archive.read(_place(archive, sheet))))
    return 0


def _formulas(archive: zipfile.ZipFile, sheet: str) -> list[tuple[int, int, int, int]]:
    """Return the cell ranges of a sheet's formulas: rows and columns from 1, ends included."""
    ranges, at = [], 0
    with archive.open(_place(archive, sheet)) as stream:
        for _, row in ElementTree.iterparse(stream):
            if not _is(row, "row"):
                continue
            at, column = int(row.get("r", at + 1)), 0
            for cell in row:
                column = _corner(cell.get("r", ""))[1] or column + 1
                for formula in cell:
                    if _is(formula, "f"):
                        # One cell stores an array formula for a whole block of cells.
                        many = formula.get("t") in ("array", "dataTable")
                        first, _, last = formula.get("ref", "").partition(":") if many else [""] * 3
                        top, left = _corner(first)
                        bottom, right = _corner(last or first)
                        ranges.append((top or at, left or column, bottom or at, right or column))
            row.clear()
    return ranges


def _is(element: ElementTree.Element, name: str) -> bool:
    return element.tag.rpartition("}")[2] == name


def _corner(place: str) -> tuple[int, int]:
    """Return row and column of a position such as C7, from 1; zeros for any other text."""
    letters, digits = place.rstrip("0123456789"), place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - 64
    return int(digits or 0), column


# Other programs' files ----------------------------------------------------------------------------


def _table(columns: Mapping[str, Any]) -> Any:
    """Return columns as an Arrow table; columns of mixed kinds become text."""
    arrays = []
    for column in columns.values():
        try:
            arrays.append(pa.array(column, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # NaN alone is unequal to itself, so v != v finds NaN.
            texts = [None if v is None or v != v else cell_text(v) for v in column]
            arrays.append(pa.array(texts, pa.large_string()))
    return pa.Table.from_arrays(arrays, [str(name) for name in columns])


def _labelled(
    codes: Any, words: Mapping[Any, Any], with_labels: Collection[Any]
) -> tuple[Any, list[str]]:
    """Return a table in which columns have words for codes, if every code has a word."""
    partly = [str(name) for name in with_labels if name not in words]
    notes = []
    if words:
        notes.append(f"Value labels were read as words in {_listed([*words])}.")
    if partly:
        notes.append(
            f"Some numbers have no value label in {_listed(partly)}: all stayed numbers, codes for "
            "missing among them."
        )
    return _table({name: words.get(name, codes[name]) for name in codes}), notes


def _listed(names: Collection[str]) -> str:
    quotes = [f"'{''.join(c for c in str(name) if c.isprintable())[:60]}'" for name in names]
    more = f" and {len(quotes) - 6} more" if len(quotes) > 6 else ""
    if more or len(quotes) == 1:
        return ", ".join(quotes[:6]) + more
    return ", ".join(quotes[:-1]) + f" and {quotes[-1]}"


def _stata(data: bytes) -> tuple[Any, list[str]]:
    import pandas as pd

    codes = pd.read_stata(io.BytesIO(data), convert_categoricals=False)
    frame = pd.read_stata(io.BytesIO(data))
    with_labels = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    # If a code has no label, use the code itself as the category.
    whole = [n for n in with_labels if all(isinstance(c, str) for c in frame[n].cat.categories)]
    return _labelled(codes, {name: frame[name] for name in whole}, with_labels)


def _spss(data: bytes) -> tuple[Any, list[str]]:
    import pyreadstat  # optional

    codes, about = pyreadstat.read_sav(io.BytesIO(data))
    labels = about.variable_value_labels
    whole = [name for name, words in labels.items() if codes[name].dropna().isin(words).all()]
    return _labelled(codes, {name: codes[name].map(labels[name]) for name in whole}, labels)


def _records(data: bytes, cells: int) -> tuple[Any, list[str]]:
    """Return JSON records, in one list or one per line, as a table, and sentences."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            # Do not name the repeated key, because a key of a nested record may be private data.
            raise Refused("{} has a record in which a name occurs twice.")
        return record

    text = data.decode("utf-8-sig")
    # Accept NaN too, because Python writes missing values as NaN.
    decode = json.JSONDecoder(object_pairs_hook=once).decode
    try:
        rows = decode(text)
    except json.JSONDecodeError:
        rows = [decode(line) for line in text.splitlines() if line.strip()]
    if not isinstance(rows, list) or not all(isinstance(record, dict) for record in rows):
        raise Refused(
            "{} must hold JSON records, [{...}, {...}] or one {...} a line; save it as that or "
            "as CSV."
        )
    names = list(dict.fromkeys(key for record in rows for key in record))
    inner = {key for record in rows for key, v in record.items() if isinstance(v, (dict, list))}
    lists = [key for key in names if key in inner]
    notes = [f"Left out, lists or records inside records: {_listed(lists)}."] if lists else []
    outer = [key for key in names if key not in inner]
    # Check the size before building the table, because each record may add its own columns.
    if len(outer) * len(rows) > cells:
        raise Refused(
            f"{{}} has about {len(rows):,} rows of {len(outer):,} columns, more than the {cells:,} "
            "cells that are read into memory; keep fewer rows or columns."
        )
    return _table({key: [record.get(key) for record in rows] for key in outer}), notes


# The process --------------------------------------------------------------------------------------


def _limit(memory: int, seconds: int) -> None:
    """Limit memory and time of this process, and end it with its parent."""
    import ctypes
    import resource

    base = 0
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        base = pages * resource.getpagesize()
    for name, soft, hard in (
        ("CORE", 0, 0),  # A core dump would write private data to disk.
        ("AS", base + memory, base + memory),
        ("FSIZE", memory, memory),
        ("CPU", seconds, seconds + 1),
    ):
        kind = getattr(resource, f"RLIMIT_{name}")
        # Keep the system's own limit if it is lower, because only root may raise it.
        most = resource.getrlimit(kind)[1]
        most = hard if most == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(kind, (min(soft, most), most))
    with suppress(AttributeError, OSError, TypeError):  # Only Linux has this function.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _serve(talk: socket.socket, file: int, out: int) -> None:
    """Read one file as requested by the process at the other end of a socket."""
    lines = talk.makefile("rwb")

    def say(**what: Any) -> None:
        lines.write(json.dumps(what).encode() + b"\n")
        lines.flush()

    request = json.loads(lines.readline())
    say(pid=os.getpid())
    _limit(request["memory"], request["seconds"])
    try:
        reading = Reading(io.FileIO(file), request)
        plan = request.get("plan")
        if plan is None:
            say(about=reading.about)
            plan = json.loads(lines.readline() or b"null")
        if plan is not None:
            schema, batches = reading.batches(plan)
            with open(out, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        say(done=True)
    except Refused as error:
        say(refused=str(error), large=error.large, encoding=error.encoding)
    except ModuleNotFoundError as error:
        say(lacks=error.name)


def _main() -> None:
    """Fork a child for each file that comes through a socket, until its other end closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, 3)
        if not message:
            return
        if os.fork() == 0:
            with suppress(BaseException):  # The main process notices that this one ended.
                control.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _serve(socket.socket(fileno=fds[0]), *fds[1:])
            os._exit(0)
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    pa.set_memory_pool(pa.system_memory_pool())
    _main()
