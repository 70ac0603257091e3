"""Answers of the public functions: one file per question; all answers have the same methods.

`Answer.summary` gives words, `Answer.table` numbers, and `Answer.figure` charts. `Answer.to_json`
gives the JSON of the command line. `Answer.save` writes a file that `load` reads, and `Answer.made`
records how the answer was computed. A notebook shows words, table and chart.
"""

from __future__ import annotations

import html
import math
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from importlib.metadata import version
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.core import VERSION
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.files import atomic_write, json_text, strict_json, write_table
from dpviz.core.number_text import numeral
from dpviz.core.platform import need
from dpviz.core.resources import kernel
from dpviz.preparation.prepared import Measured
from dpviz.simulation.store import rows_digest
from dpviz.studies.columns import Column, as_json, fields_of, frame, key_of, printed, record

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from dpviz.report.figures.theme import Figure

_STYLE = "font-variant-numeric:tabular-nums;margin:0.4em 0"
# This is the format number of saved files. dpviz refuses files with another number.
_FORMAT = 1


@dataclass(frozen=True)
class Made:
    """How an answer was computed.

    Attributes
    ----------
    question : str
        Name of the function of `dpviz`, and of the command.
    options : dict
        Arguments as JSON data; None for data from memory and for paths of files.
    command : str
        The shell command that asks the same question.
    rows : str or None
        Digest of the rows that were read. None if no table was read, and for a release, whose
        digest would reveal its rows.
    versions : dict of str to str
        Versions of dpviz, Python, NumPy and SciPy, and the BLAS with its kernel.
    date : str
        Time of the call in UTC.
    """

    question: str
    options: Mapping[str, Any]
    command: str
    rows: str | None
    versions: Mapping[str, str]
    date: str


@dataclass(frozen=True)
class Call:
    """Record of a call of a public function, for the answer's `Made`."""

    question: str
    options: Mapping[str, Any]
    command: str
    date: str


def versions() -> dict[str, str]:
    """Return the versions on which numbers depend."""
    return {
        "dpviz": VERSION,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "blas": kernel(),
    }


def now() -> str:
    """Return the current date and time in the format of `Made`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _with_image(figure: Callable[..., Figure]) -> Callable[..., Figure]:
    """Return a method ``figure`` that adds a static image for pages without scripts."""

    @wraps(figure)
    def shown(self: Answer, *args: Any, **kwargs: Any) -> Figure:
        image = figure(self, *args, **kwargs)
        from dpviz.report.figures.static_image import StaticImage

        return StaticImage.of(image, self._picture)

    return shown


class Answer(ABC):
    """One answer, with words, a table, figures and JSON.

    Each answer is a frozen dataclass, whose JSON holds all fields except those that are `aside`.

    Attributes
    ----------
    columns : tuple of Column
        Columns of the answer's table, on every output.
    listed : str
        Name of the field that holds the table's rows.
    alone : bool
        Whether the JSON consists of the table's rows only.
    written : tuple of Column
        Columns of the JSON, if it is computed from the fields.
    figures : tuple of str
        Names that `figure` accepts; the first name is the default.
    with_rows : tuple of str
        Names of figures that show rows of the table, which `save` leaves out.
    """

    figures: ClassVar[tuple[str, ...]] = ()
    with_rows: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    listed: ClassVar[str] = "results"
    alone: ClassVar[bool] = False
    written: ClassVar[tuple[Column, ...]] = ()
    _asked: Call | None = None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        # Wrap the method here, so that no subclass has to handle pages without scripts.
        if "figure" in vars(cls):
            cls.figure = _with_image(cls.figure)  # type: ignore[method-assign]

    @abstractmethod
    def summary(self) -> str:
        """Return the answer in a few sentences."""

    @property
    def share(self) -> float:
        """Complete share of the answer, for an answer that grows step by step."""
        return 1.0

    @property
    def rows(self) -> Sequence[Any]:
        """The items of the answer; the table has one row for each item."""
        rows: Sequence[Any] = getattr(self, self.listed)
        return rows

    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns of the table, including those that the options add."""
        return self.columns

    def table(self) -> pd.DataFrame:
        """Return the answer as a table."""
        return frame(self.all_columns(), self.rows)

    def data(self) -> Any:
        """Return the answer as JSON data: dictionaries, lists, texts and numbers."""
        if self.written:
            return record(self.written, self)
        rows = [record(self.all_columns(), row) for row in self.rows] if self.columns else []
        if self.alone:
            return rows
        return {
            key_of(name): rows
            if self.columns and name == self.listed
            else as_json(getattr(self, name), kind)
            for name, kind in fields_of(type(self)).items()
        }

    def to_json(self) -> str:
        """Return `data` as text; values that JSON lacks, such as NaN and infinities, are null.

        The command prints the same bytes; the same seed gives the same bytes. `made` and the file
        of `save` state how and when the answer was computed.
        """
        return json_text(self.data())

    def printed(self) -> str:
        """Return the text that the command prints for people: the summary and the table."""
        if not any("print" in column.show for column in self.columns) or not self.rows:
            return self.summary()
        return f"{self.summary()}\n\n{printed(self.all_columns(), self.rows)}"

    @property
    def status(self) -> int:
        """Exit status of the command that prints the answer."""
        return 0

    def figure(self, name: str | None = None) -> Figure:
        """Return a Plotly figure.

        Parameters
        ----------
        name : str, optional
            Name of the figure, one of `figures`; by default the first.

        Raises
        ------
        InvalidSetting
            If the answer has no figure of this name.
        """
        raise InvalidSetting("figure", "left out, because this answer has no figure", name)

    @property
    def made(self) -> Made | None:
        """Record of the computation; None if no function of `dpviz` returned the answer."""
        if self._asked is None:
            return None
        table = self._looked_at()
        rows = None if table is None else rows_digest(table)
        return Made(**asdict(self._asked), rows=rows, versions=versions())

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the answer in a file that `dpviz.load` can read.

        The file is JSON: how the answer was computed, the data of `to_json`, the words, the table,
        and all figures that show no rows. Like every result that is compared with the exact answer,
        the file is not private.

        Parameters
        ----------
        path : str or path
            Path of a new file, or of a file to replace, in a folder that exists.

        Returns
        -------
        Path
            Path of the written file.

        Raises
        ------
        InvalidSetting, CannotWrite
            If the folder does not exist, or the system refuses to write.
        """
        file = Path(path)
        if not file.resolve().parent.is_dir():
            raise InvalidSetting("path", "a file in a folder that exists", str(file.name))
        origin = self.made
        content = {
            "dpviz_answer": _FORMAT,
            "made": None if origin is None else asdict(origin),
            "answer": self.data(),
            # The JSON of a schema or a release differs from its data, so save its exact text.
            "json": None if self.to_json() == json_text(self.data()) else self.to_json(),
            "summary": self.summary(),
            "printed": self.printed(),
            "table": _table_json(self.table()),
            "figures": dict(self._figure_data()),
            "left_out": list(self.with_rows),
        }
        text = json_text(content)
        with atomic_write(file) as aside:
            aside.write_text(text + "\n", encoding="utf-8")
        return file

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV or Parquet, by the file ending; a failure leaves no partial file.

        Raises
        ------
        InvalidSetting
            If the ending is not known, or the folder cannot be written.
        """
        write_table(self.table(), Path(path))

    def _figure_data(self) -> Iterator[tuple[str, Any]]:
        """Yield each figure that may be saved, as JSON data; skip those that cannot be drawn."""
        for name in self.figures:
            if name in self.with_rows:
                continue
            try:
                yield name, strict_json(str(self.figure(name).to_json()))
            except DpvizError:
                # A figure may need data that this answer lacks. Skip it and save the others.
                continue

    def _looked_at(self) -> Measured | None:
        """Return the prepared table on which the answer is based."""
        table = getattr(self, "prepared", None)
        return table if isinstance(table, Measured) else None

    def _figure_name(self, name: str | None) -> str:
        """Return the checked name of a figure; raise if Plotly is not installed."""
        # Report here that Plotly is missing, before the module of a figure imports it.
        need("plotly")
        if name is None:
            return self.figures[0]
        if name not in self.figures:
            raise InvalidSetting("figure", f"one of {', '.join(self.figures)}", name)
        return name

    def _notebook_table(self) -> pd.DataFrame:
        """Return the columns of the table that a notebook shows, which are the printed ones."""
        if not any("print" in column.show for column in self.columns):
            return self.table()
        return frame(self.all_columns(), self.rows, "print")

    def _picture(self) -> Picture | None:
        """Return the static image for notebooks and pages without scripts, or None."""
        return None

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the content of a notebook's output: the words, the table and the image."""
        first, *rest = self.summary().splitlines()
        words = f"<p><strong>{html.escape(first)}</strong></p>"
        words += "".join(f"<p>{html.escape(line)}</p>" for line in rest if line)
        numbers = self._notebook_table().to_html(
            index=False, border=0, na_rep="-", float_format=partial(numeral, digits=4)
        )
        picture = self._picture() if find_spec("matplotlib") else None
        if picture is None:
            return f'<div style="{_STYLE}">{words}{numbers}</div>'
        from dpviz.report.print import image

        return f'<div style="{_STYLE}">{words}{numbers}{image(picture)}</div>'


# Answer read from a saved file ---------------------------------------------------------------


class Saved(Answer):
    """An answer read from a file, with the words, table and figures that were saved.

    Attributes
    ----------
    question : str
        Name of the function of `dpviz` that returned the answer; empty if there was none.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        origin = content["made"]
        self._made = None if origin is None else Made(**origin)
        if self._made is not None:
            _require(Mapping, self._made.options, self._made.versions)
            _require(str, self._made.question, self._made.command, self._made.date)
            _require(str, *self._made.versions.values())
        _require(Mapping, content["figures"], *content["figures"].values())
        _require(str, *content["left_out"])
        self.question = "" if self._made is None else self._made.question
        self.figures = tuple(content["figures"])  # type: ignore[misc]
        self.with_rows = tuple(content["left_out"])  # type: ignore[misc]

    def summary(self) -> str:
        """Return the saved summary."""
        return str(self._content["summary"])

    def printed(self) -> str:
        """Return the text that the command printed."""
        return str(self._content["printed"])

    def table(self) -> pd.DataFrame:
        """Return the saved table."""
        return _table_of(self._content["table"])

    def data(self) -> Any:
        """Return the saved JSON data."""
        return self._content["answer"]

    def to_json(self) -> str:
        """Return the saved JSON, byte for byte."""
        return super().to_json() if self._content["json"] is None else str(self._content["json"])

    @property
    def made(self) -> Made | None:
        """How the saved answer was computed."""
        return self._made

    def figure(self, name: str | None = None) -> Figure:
        """Return a saved figure.

        Parameters
        ----------
        name : str, optional
            Name of the figure, one of `figures`; by default the first.

        Raises
        ------
        InvalidSetting
            If no figure of this name was saved.
        """
        from dpviz.report.figures.theme import figure_of

        if name in self.with_rows:
            raise InvalidSetting("figure", "a figure that shows no rows of the table", name)
        if not self.figures:
            return super().figure(name)
        key = self._figure_name(name)
        try:
            return figure_of(self._content["figures"][key])
        except (ValueError, TypeError, LookupError, AttributeError):  # Plotly's error is too long.
            rule = "an unchanged saved answer; this file was changed after saving"
            raise InvalidSetting("figure", rule, key) from None

    def _figure_data(self) -> Iterator[tuple[str, Any]]:
        yield from self._content["figures"].items()


def load(path: str | PathLike[str]) -> Saved:
    """Read an answer from the file that its ``save`` wrote.

    Parameters
    ----------
    path : str or path
        Path of the written file.

    Returns
    -------
    Saved
        Answer with the same ``summary()``, ``table()``, ``figure(name)``, ``data()`` and
        ``to_json()``; ``made`` records how the answer was computed.

    Raises
    ------
    InvalidSetting
        If the file was not written by ``save``.

    See Also
    --------
    rerun : Ask again what made it, and compare.

    Notes
    -----
    Figures that show rows of the table are not saved.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> found = dpviz.audit("gaussian", epsilon=1, trials=300)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = dpviz.load(found.save(f"{folder}/audit.json"))
    >>> again.to_json() == found.to_json()
    True
    >>> again.made.question
    'audit'
    """
    file = Path(path)
    rule = "a file written by the method save of an answer"
    try:
        content = strict_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidSetting("path", rule, file.name) from None
    if not isinstance(content, dict) or "dpviz_answer" not in content:
        raise InvalidSetting("path", rule, file.name)
    if content["dpviz_answer"] != _FORMAT:
        format_rule = f"{rule}, in format {_FORMAT}, as this version writes it"
        raise InvalidSetting("path", format_rule, f"format {content['dpviz_answer']}")
    try:
        # Read all values now, so that a damaged file is refused here and not at first use.
        answer = Saved(content)
        answer.table()
        answer.to_json()
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidSetting("path", rule, file.name) from None
    return answer


def _require(kind: type, *values: object) -> None:
    """Raise `TypeError` if a value in a file has another type than expected."""
    if not all(isinstance(value, kind) for value in values):
        raise TypeError


def _table_json(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as JSON data from which `_table_of` restores the same table."""
    return {
        "columns": [str(name) for name in table.columns],
        "types": [str(kind) for kind in table.dtypes],
        "rows": [[_cell(value) for value in row] for row in table.itertuples(index=False)],
    }


def _table_of(content: Mapping[str, Any]) -> pd.DataFrame:
    columns = {}
    for place, (name, kind) in enumerate(zip(content["columns"], content["types"], strict=True)):
        values = [_value(row[place]) for row in content["rows"]]
        columns[name] = pd.Series(values, dtype=kind)
    return pd.DataFrame(columns, columns=list(content["columns"]))


_SPECIAL: dict[str, Callable[[], float]] = {
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
}


def _cell(value: Any) -> Any:
    """Return one cell as JSON data; a value that JSON lacks becomes an object."""
    # Convert NumPy's scalars to numbers of Python.
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if isinstance(value, (tuple, list)):
        return [_cell(item) for item in value]
    if isinstance(value, dict):
        return {"fields": {str(key): _cell(item) for key, item in value.items()}}
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _value(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_value(item) for item in cell]
    if isinstance(cell, dict):
        if "number" in cell:
            return _SPECIAL[cell["number"]]()
        return {key: _value(item) for key, item in cell["fields"].items()}
    return cell
