"""Turn an answer into text that is compared line by line.

Numbers have nine digits, because further digits differ between BLAS kernels. A long row of numbers
is written as its length, ends, mean and moments, which change if any number changes or moves.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.studies import Answer

_LONGEST = 6  # Write at most six entries of a list; summarise a longer list.
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_MANY_DIGITS = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?")
_ROUNDING = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?e-(?:1[3-9]|[2-9]\d)(?!\w)")


def digits(value: float, places: int = 9) -> str:
    """Return a number to nine significant digits; rounding residue becomes 0."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return "0" if abs(value) < 1e-13 else f"{value:.{places}g}"


def plain(text: str) -> str:
    """Return a text with numbers of at most nine digits, without rounding residue or folders."""
    text = _ROUNDING.sub("0", text)
    text = _MANY_DIGITS.sub(lambda found: digits(float(found[0])), text)
    return text.replace(os.environ.get("XDG_CACHE_HOME") or "no cache", "CACHE")


def summed_up(values: Sequence[Any] | np.ndarray, places: int = 9) -> str:
    """Return a long row of numbers as length, first, last, mean, RMS and first moment."""
    row = np.asarray([math.nan if v is None else v for v in values], dtype=float).ravel()
    finite = row[np.isfinite(row)]
    # Replace numbers that are tiny beside the largest one by 0: they are rounding residue.
    finite = np.where(np.abs(finite) > 1e-8 * np.abs(finite).max(initial=0), finite, 0.0)
    if not finite.size:
        return f"[{row.size} numbers, none finite]"
    place = float(finite @ np.arange(1, finite.size + 1)) / finite.size
    size = float(np.sqrt(np.mean(finite * finite)))
    text = " ".join(
        digits(float(v), places) for v in (finite[0], finite[-1], finite.mean(), size, place)
    )
    unknown = "" if finite.size == row.size else f", {row.size - finite.size} not finite"
    return f"[{row.size}{unknown}: {text}]"


def _words(values: Sequence[Any]) -> str:
    """Return the number of texts on an axis, and the first few texts."""
    words = list(dict.fromkeys(map(str, values)))
    return f"{len(values)}: {plain(', '.join(words[:_LONGEST]))}"


def lines_of(data: Any, name: str = "") -> Iterator[str]:
    """Yield one line for each value of JSON data: its path and the value."""
    if isinstance(data, Mapping):
        if len(data) <= 8 and all(_is_short(v) for v in data.values()):
            row = ", ".join(f"{key} {_short(value)}" for key, value in data.items())
            yield f"{name} = {{{row}}}"
            return
        for key, value in data.items():
            yield from lines_of(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list | tuple | np.ndarray):
        items = list(data)
        if items and all(_is_number(v) or v is None for v in items):
            row = " ".join("null" if v is None else digits(float(v)) for v in items)
            yield f"{name} = {f'[{row}]' if len(items) <= _LONGEST else summed_up(items)}"
        elif len(items) > 2 * _LONGEST and not isinstance(items[0], str):
            # For a list of points or objects, write items 1, 2 and the last, then all numbers.
            for place in (0, 1, len(items) - 1):
                yield from lines_of(items[place], f"{name}[{place}]")
            yield f"{name} has {len(items)}, in all {summed_up(list(_numbers(items)))}"
        else:
            if not items:
                yield f"{name} = []"
            for place, value in enumerate(items):
                yield from lines_of(value, f"{name}[{place}]")
    elif _is_number(data):
        yield f"{name} = {digits(float(data))}"
    else:
        yield f"{name} = {plain(json.dumps(data, ensure_ascii=False, default=str))}"


def _is_short(value: Any) -> bool:
    return value is None or _is_number(value) or (isinstance(value, str) and len(value) < 20)


def _short(value: Any) -> str:
    return digits(float(value)) if _is_number(value) else plain(json.dumps(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, Mapping):
        for value in data.values():
            yield from _numbers(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _numbers(value)
    elif _is_number(data):
        yield float(data)


def table_lines(table: pd.DataFrame) -> Iterator[str]:
    """Yield a table's columns and rows; for a long table, a summary of each column."""
    yield f"columns: {', '.join(map(str, table.columns))}"
    if len(table) > 30:
        yield f"{len(table)} rows"
        for name in table.columns:
            column = table[name]
            numeric = pd.api.types.is_numeric_dtype(column)
            words = f"{column.nunique()} different, first {column.iloc[0]!s}"
            yield f"{name}: {summed_up(column.to_numpy(float)) if numeric else plain(words)}"
        return
    for row in table.itertuples(index=False):
        yield " | ".join(digits(float(v)) if _is_number(v) else plain(str(v)) for v in row)


def figure_lines(figure: Any) -> Iterator[str]:
    """Yield each trace of a figure: its type, name, length, numbers, and the axes' titles."""
    spec = json.loads(figure.to_json())
    for trace in spec["data"]:
        words = [trace.get("type", "?"), trace.get("name") or "", trace.get("mode") or ""]
        for key in ("x", "y", "z"):
            values = _decoded(trace.get(key))
            if values is not None and not (values and isinstance(values[0], list)):
                numeric = all(v is None or _is_number(v) for v in values)
                words.append(f"{key} {summed_up(values, 6) if numeric else _words(values)}")
        yield "trace " + " | ".join(str(one) for one in words)
    layout = spec["layout"]
    for key in sorted(layout):
        if re.fullmatch(r"[xy]axis\d*", key) and layout[key].get("title", {}).get("text"):
            yield f"{key}: {layout[key]['title']['text']}"
    for note in layout.get("annotations", []):
        yield f"note: {plain(str(note.get('text')))}"


def _decoded(values: Any) -> Any:
    """Return the numbers that Plotly packs into base64; return other values unchanged."""
    if isinstance(values, Mapping) and "bdata" in values:
        row = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        return row.astype(float).tolist()
    return values


def answer_text(answer: Answer) -> str:
    """Return an answer's whole text, in sections."""
    lines_out: list[str] = []

    def section(title: str, lines: Iterator[str] | list[str]) -> None:
        lines_out.append(f"== {title}")
        lines_out.extend(line.rstrip() for line in lines)

    section("summary", plain(answer.summary()).splitlines())
    text = plain(answer.printed())
    if text != plain(answer.summary()):
        section("printed", text.splitlines())
    section("table", table_lines(answer.table()))
    section("json", lines_of(json.loads(answer.to_json())))
    for name in answer.figures:
        try:
            section(f"figure {name}", figure_lines(answer.figure(name)))
        except InvalidSetting as error:  # A plan has no table of rows to plot.
            section(f"figure {name}", [plain(str(error))])
    if hasattr(answer, "paper"):
        with tempfile.TemporaryDirectory() as folder:
            files = sorted(answer.paper(Path(folder) / "paper"))
            section("paper", [path.name for path in files])
            for path in files:
                if path.suffix in (".tex", ".bib", ".csv"):
                    section(f"paper {path.name}", plain(path.read_text("utf-8")).splitlines())
    return "\n".join(lines_out) + "\n"


def same(was: str, now: str) -> bool:
    """Return whether texts match, to the five digits of numbers on which all kernels agree.

    Figures write six digits: if the last digit rounds differently, 1.00001 becomes 1.00002.
    """
    # Ignore spaces, because a number with other digits shifts the columns of a printed table.
    if _NUMBER.sub("#", was).split() != _NUMBER.sub("#", now).split():
        return False
    pairs = zip(_NUMBER.findall(was), _NUMBER.findall(now), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1.1e-5, abs_tol=1e-9) for a, b in pairs)
