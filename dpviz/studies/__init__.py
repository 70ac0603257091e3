"""What the front door hands back: one file a question, each answer with the same ways to read it.

`Answer.summary` says it in words, `Answer.table` in numbers, `Answer.figure` draws it,
`Answer.to_json` writes it as the command line does, `Answer.save` keeps it in a file that `load`
reads back, `Answer.made` says what made it, and a notebook shows all of it.
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
# of saved files: a reader refuses one that it was not written for
_FORMAT = 1


@dataclass(frozen=True)
class Made:
    """What made an answer.

    Attributes
    ----------
    question : str
        The function of `dpviz`, and the command.
    options : dict
        What it was asked with, as JSON data; a table or bounds that a caller had in memory are
        None, and so is where a file lay.
    command : str
        The shell command that asks the same.
    rows : str or None
        Digest of the rows as read; None for what looks at no table, and for a release, which must
        not tell its rows.
    versions : dict of str to str
        Of dpviz, Python, NumPy and SciPy, and the BLAS with its kernel.
    date : str
        When it was asked, UTC.
    """

    question: str
    options: Mapping[str, Any]
    command: str
    rows: str | None
    versions: Mapping[str, str]
    date: str


@dataclass(frozen=True)
class Call:
    """What the front door notes of a call: see `Made`."""

    question: str
    options: Mapping[str, Any]
    command: str
    date: str


def versions() -> dict[str, str]:
    """Return the versions that numbers depend on."""
    return {
        "dpviz": VERSION,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "blas": kernel(),
    }


def now() -> str:
    """Return the date and time as `Made` has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _with_image(figure: Callable[..., Figure]) -> Callable[..., Figure]:
    """Return what draws a figure that a page without scripts can show too."""

    @wraps(figure)
    def shown(self: Answer, *given: Any, **named: Any) -> Figure:
        found = figure(self, *given, **named)
        from dpviz.report.figures.static_image import StaticImage

        return StaticImage.of(found, self._picture)

    return shown


class Answer(ABC):
    """One answer: words, a table, figures and JSON.

    Each answer is a frozen dataclass whose fields are its JSON, but those that are `aside`.

    Attributes
    ----------
    columns : tuple of Column
        Of its table, which all that shows its rows walks.
    listed : str
        The field that holds the table's rows.
    alone : bool
        Whether these rows are all of its JSON.
    written : tuple of Column
        Its JSON, where that is made of the fields and is not the fields.
    figures : tuple of str
        Names that `figure` takes; the first is drawn when none is said.
    with_rows : tuple of str
        Those of them that show rows of the table. `save` leaves them out.
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
        # wrapped here once: no answer needs to know what a page without scripts shows
        if "figure" in vars(cls):
            cls.figure = _with_image(cls.figure)  # type: ignore[method-assign]

    @abstractmethod
    def summary(self) -> str:
        """Return the answer in a few sentences."""

    @property
    def share(self) -> float:
        """How much of the answer there is, for one that is yielded before it is whole."""
        return 1.0

    @property
    def rows(self) -> Sequence[Any]:
        """What the table has a row for each of."""
        found: Sequence[Any] = getattr(self, self.listed)
        return found

    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns of the table, with those that what was asked adds."""
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
        """Return `data` as text; NaN and infinities, which JSON lacks, are null.

        These are the bytes that the command prints: the same seed gives the same bytes. What made
        them (the date too) is in `made` and in the file of `save`.
        """
        return json_text(self.data())

    def printed(self) -> str:
        """Return what the command prints for people: the summary, and the table."""
        if not any("print" in column.show for column in self.columns) or not self.rows:
            return self.summary()
        return f"{self.summary()}\n\n{printed(self.all_columns(), self.rows)}"

    @property
    def status(self) -> int:
        """Exit status of the command that prints it."""
        return 0

    def figure(self, name: str | None = None) -> Figure:
        """Return a Plotly figure.

        Parameters
        ----------
        name : str, optional
            One of `figures`; the first if not said.

        Raises
        ------
        InvalidSetting
            If there is no figure of that name.
        """
        raise InvalidSetting("figure", "left out: this answer has none", name)

    @property
    def made(self) -> Made | None:
        """What made it; None for an answer that no function of `dpviz` gave."""
        if self._asked is None:
            return None
        seen = self._looked_at()
        rows = None if seen is None else rows_digest(seen)
        return Made(**asdict(self._asked), rows=rows, versions=versions())

    def save(self, path: str | PathLike[str]) -> Path:
        """Keep the answer in a file that `dpviz.load` reads back.

        The file is JSON: what made it, the data of `to_json`, the words, the table, and the
        figures but those that show rows. Like all that is compared with the exact answer, it is
        not private.

        Parameters
        ----------
        path : str or path
            A file, new or to be replaced, in a folder that is there.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidSetting, CannotWrite
            If the folder is not there, or the system refuses.
        """
        file = Path(path)
        if not file.resolve().parent.is_dir():
            raise InvalidSetting("path", "a file in a folder that is there", str(file.name))
        made = self.made
        content = {
            "dpviz_answer": _FORMAT,
            "made": None if made is None else asdict(made),
            "answer": self.data(),
            # a schema, or a release, prints other JSON than its data: that text is kept to the byte
            "json": None if self.to_json() == json_text(self.data()) else self.to_json(),
            "summary": self.summary(),
            "printed": self.printed(),
            "table": _table_json(self.table()),
            "figures": dict(self._drawn()),
            "left_out": list(self.with_rows),
        }
        text = json_text(content)
        with atomic_write(file) as aside:
            aside.write_text(text + "\n", encoding="utf-8")
        return file

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV or Parquet, by the ending; whole or not at all.

        Raises
        ------
        InvalidSetting
            If the ending is another, or the folder cannot be written.
        """
        write_table(self.table(), Path(path))

    def _drawn(self) -> Iterator[tuple[str, Any]]:
        """Yield each figure that may be kept, as JSON data; one that cannot be drawn is absent."""
        for name in self.figures:
            if name in self.with_rows:
                continue
            try:
                yield name, strict_json(str(self.figure(name).to_json()))
            except DpvizError:
                # a figure may ask for what this answer has not: the others are kept
                continue

    def _looked_at(self) -> Measured | None:
        """Return the prepared table that the answer is about."""
        found = getattr(self, "prepared", None)
        return found if isinstance(found, Measured) else None

    def _named(self, name: str | None) -> str:
        """Return the name of a figure, checked, where there is what draws it."""
        # said in one sentence here, before a figure's own file asks for it
        need("plotly")
        if name is None:
            return self.figures[0]
        if name not in self.figures:
            raise InvalidSetting("figure", f"one of {', '.join(self.figures)}", name)
        return name

    def _shown(self) -> pd.DataFrame:
        """Return the columns that a notebook shows of the table: those that are printed."""
        if not any("print" in column.show for column in self.columns):
            return self.table()
        return frame(self.all_columns(), self.rows, "print")

    def _picture(self) -> Picture | None:
        """Return the picture that a notebook shows, and a page without scripts; None for none."""
        return None

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the words, the table and the picture."""
        first, *rest = self.summary().splitlines()
        words = f"<p><strong>{html.escape(first)}</strong></p>"
        words += "".join(f"<p>{html.escape(line)}</p>" for line in rest if line)
        numbers = self._shown().to_html(
            index=False, border=0, na_rep="-", float_format=partial(numeral, digits=4)
        )
        picture = self._picture() if find_spec("matplotlib") else None
        if picture is None:
            return f'<div style="{_STYLE}">{words}{numbers}</div>'
        from dpviz.report.print import image

        return f'<div style="{_STYLE}">{words}{numbers}{image(picture)}</div>'


# Kept in a file ------------------------------------------------------------------------------


class Saved(Answer):
    """An answer read from a file: it says, lists and draws what it did when it was kept.

    Attributes
    ----------
    question : str
        The function of `dpviz` that gave it; empty if none did.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        made = content["made"]
        self._made = None if made is None else Made(**made)
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
        """Return the words that were kept."""
        return str(self._content["summary"])

    def printed(self) -> str:
        """Return what the command printed."""
        return str(self._content["printed"])

    def table(self) -> pd.DataFrame:
        """Return the table that was kept."""
        return _table_of(self._content["table"])

    def data(self) -> Any:
        """Return the data that was kept."""
        return self._content["answer"]

    def to_json(self) -> str:
        """Return the JSON that was kept, to the byte."""
        return super().to_json() if self._content["json"] is None else str(self._content["json"])

    @property
    def made(self) -> Made | None:
        """What made the answer when it was kept."""
        return self._made

    def figure(self, name: str | None = None) -> Figure:
        """Return a figure that was kept.

        Parameters
        ----------
        name : str, optional
            One of `figures`; the first if not said.

        Raises
        ------
        InvalidSetting
            If no figure of that name was kept.
        """
        from dpviz.report.figures.theme import figure_of

        if name in self.with_rows:
            raise InvalidSetting("figure", "one without rows of the table: none are kept", name)
        if not self.figures:
            return super().figure(name)
        wanted = self._named(name)
        try:
            return figure_of(self._content["figures"][wanted])
        except (ValueError, TypeError, LookupError, AttributeError):  # Plotly says it in many lines
            allowed = "one that is as it was kept; the file was changed"
            raise InvalidSetting("figure", allowed, wanted) from None

    def _drawn(self) -> Iterator[tuple[str, Any]]:
        yield from self._content["figures"].items()


def load(path: str | PathLike[str]) -> Saved:
    """Read back an answer that was kept by its ``save``.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Saved
        With the same ``summary()``, ``table()``, ``figure(name)``, ``data()`` and ``to_json()``,
        and what made it in ``made``.

    Raises
    ------
    InvalidSetting
        If it is no such file.

    See Also
    --------
    rerun : Ask again what made it, and compare.

    Notes
    -----
    Figures that show rows of the table are not kept.

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
    allowed = "a file that the save of an answer wrote"
    try:
        content = strict_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidSetting("path", allowed, file.name) from None
    if not isinstance(content, dict) or "dpviz_answer" not in content:
        raise InvalidSetting("path", allowed, file.name)
    if content["dpviz_answer"] != _FORMAT:
        wanted = f"{allowed}, of format {_FORMAT} as this version writes it"
        raise InvalidSetting("path", wanted, f"format {content['dpviz_answer']}")
    try:
        # read to the end here, so that a damaged file is refused now and not at the first look
        found = Saved(content)
        found.table()
        found.to_json()
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise InvalidSetting("path", allowed, file.name) from None
    return found


def _require(kind: type, *values: object) -> None:
    """Raise `TypeError` where a value of a file is of another kind."""
    if not all(isinstance(value, kind) for value in values):
        raise TypeError


def _table_json(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as JSON data from which `_table_of` makes the same table."""
    return {
        "columns": [str(name) for name in table.columns],
        "types": [str(kind) for kind in table.dtypes],
        "rows": [[_cell(value) for value in row] for row in table.itertuples(index=False)],
    }


def _table_of(found: Mapping[str, Any]) -> pd.DataFrame:
    columns = {}
    for place, (name, kind) in enumerate(zip(found["columns"], found["types"], strict=True)):
        values = [_value(row[place]) for row in found["rows"]]
        columns[name] = pd.Series(values, dtype=kind)
    return pd.DataFrame(columns, columns=list(found["columns"]))


_SPECIAL: dict[str, Callable[[], float]] = {
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
}


def _cell(value: Any) -> Any:
    """Return one cell as JSON data; what JSON lacks is an object."""
    # NumPy's scalars
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
