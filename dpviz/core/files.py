"""Files: locations, atomic writing, JSON and CSV.

Every command and page writes the same bytes for equal results.
"""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dpviz.core.errors import CannotWrite, InvalidSetting, printable

if TYPE_CHECKING:
    import pandas as pd


# --- folders --------------------------------------------------------------------------------------


PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package itself, the root of its subpackages."""


def app_path() -> Path:
    """Return the absolute path of ``app.py``, the script that Streamlit runs.

    Returns
    -------
    Path
        Use the wheel's copy if there is one, otherwise the file beside the package.

    Raises
    ------
    FileNotFoundError
        If neither copy exists, because the package was copied without its dashboard. The error
        means a broken installation, not wrong input, so it is not a ``DpvizError``.
    """
    return _root() / "app.py"


def _root() -> Path:
    """Return the folder of ``app.py``, preferring the wheel's copy.

    The wheel's copy comes first: site-packages may hold the ``app.py`` of another package.
    """
    for folder in (PACKAGE / "_app", PACKAGE.parent):
        if (folder / "app.py").is_file():
            return folder
    raise FileNotFoundError(
        "The dashboard's files are missing: no app.py inside the dpviz package or beside it."
    )


def user_cache() -> Path:
    """Return the user's cache folder for dpviz, without creating it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dpviz"


# --- files that appear whole or not at all --------------------------------------------------------


PART = ".part"
"""Ending of the name of a file being written; the name begins with a dot."""

_REASONS = {
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.EISDIR: "a folder is in its place",
    errno.ENOTEMPTY: "a folder is in its place",
    errno.ENOTDIR: "what should be its folder is a file",
    errno.EEXIST: "what should be its folder is a file",
    errno.ENOENT: "its folder is gone",
    errno.EIO: "the disk reports an error",
    errno.EFBIG: "it would be larger than files may be",
    errno.ENAMETOOLONG: "its name is too long",
}


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """Return the error for a file that the system refused to write."""
    reason = _REASONS.get(error.errno or 0, "the system refuses it")
    return CannotWrite(f"{path.name} cannot be written: {reason}.")


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside a file, which then replaces the file.

    The file is always either unchanged or complete. A full disk, an interrupt or a kill leaves at
    most a temporary file beside it, whose name begins with a dot and ends in ``.part``.

    Parameters
    ----------
    path : Path
        Path of the file; its folder must exist.
    private : bool
        Whether only this user may read the file; otherwise permissions are as usual.

    Raises
    ------
    CannotWrite
        If the system refuses to write.
    """
    aside = _beside(path.parent)
    try:
        os.close(_new(aside))
        yield aside
        if not private:
            os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        _forget(aside)


class Reserved:
    """A file whose disk space is reserved before its content is known.

    Parameters
    ----------
    folder : Path
        Folder in which the file is written.
    size : int
        Maximum size of the file in bytes.
    name : str
        Name of the file in messages.
    private : bool
        Whether only this user may read the file; otherwise permissions are as usual.

    Raises
    ------
    CannotWrite
        If the system refuses to reserve the space; then no file remains.
    """

    def __init__(self, folder: Path, size: int, name: str, *, private: bool = False) -> None:
        self._aside, self._private = _beside(folder), private
        try:
            self._file = os.fdopen(_new(self._aside), "wb")
            _allocate(self._file.fileno(), size)
        except BaseException as error:
            self.drop()
            if isinstance(error, OSError):
                raise cannot_write(Path(name), error) from None
            raise

    def become(self, path: Path, content: bytes) -> None:
        """Write and flush the content, and rename the file within its folder.

        Raises
        ------
        CannotWrite
            If the system refuses to write.
        """
        try:
            self._file.seek(0)
            self._file.write(content)
            self._file.truncate()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if not self._private:
                os.chmod(self._aside, 0o666 & ~_umask())
            # Flush to disk before renaming: readers trust a file that has its final name.
            os.replace(self._aside, path)
            flush_folder(path.parent)
        except OSError as error:
            raise cannot_write(path, error) from None

    def drop(self) -> None:
        """Delete the reserved file, unless it has its final name."""
        with suppress(OSError, AttributeError):  # The file may not be open, so ignore errors.
            self._file.close()
        _forget(self._aside)


def _beside(folder: Path) -> Path:
    """Return a temporary name, known before the file exists so that interrupts can clean it up."""
    # Use the target's folder: a file can be replaced only within its own file system.
    return folder / f".{secrets.token_hex(8)}{PART}"


def _new(path: Path) -> int:
    """Create a new file, readable and writable by this user alone."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _forget(aside: Path) -> None:
    with suppress(OSError):  # The file may be missing, so ignore errors.
        aside.unlink()


def _allocate(handle: int, size: int) -> None:
    """Reserve disk space, by the system's own call if there is one."""
    # Reserve the space now, because the disk could fill up before the final write.
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
        else:
            return
    remaining = size
    while remaining > 0:
        remaining -= os.write(handle, bytes(min(remaining, 2**20)))


def flush_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that a new name survives a crash (not on Windows)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- JSON -----------------------------------------------------------------------------------------


def finite(value: Any) -> Any:
    """Return JSON data with NaN and infinities, which JSON lacks, replaced by null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any) -> str:
    """Return JSON data as text, indented by one, without NaN or infinities."""
    return json.dumps(finite(value), indent=1, allow_nan=False)


class NamedTwice(ValueError):
    """A name repeats in an object of a JSON text; the message completes "it names ..."."""


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON text.

    Raises
    ------
    NamedTwice
    """
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise NamedTwice(f"{printable(name)!r} twice")
        members[name] = value
    return members


def strict_json(text: str) -> Any:
    """Return the data of an untrusted JSON text, checked strictly.

    Raises
    ------
    ValueError
        If the text is not JSON, nests too deep, or holds NaN, an infinity or a whole number of
        thousands of digits; `NamedTwice` if an object repeats a name.
    """
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=named_once
        )
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)  # Refuse numbers such as 1e999.


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# --- tables ---------------------------------------------------------------------------------------


# Match full-width signs too, and leading characters that some programs skip.
_RUN = re.compile(r"'*[\t\r\n ]*[=+\-@＝＋－＠]|'*[\t\r]")


def guarded(text: str) -> str:
    """Return text that no spreadsheet runs as a formula, with an apostrophe in front if needed.

    Names of files, columns and classes come from other people. Spreadsheets run a cell that begins
    with ``=``, ``+``, ``-`` or ``@`` as a formula. An apostrophe in front marks a text; `unguarded`
    removes the apostrophe.
    """
    return f"'{text}" if _RUN.match(text) else text


def unguarded(text: str) -> str:
    """Return the original of a `guarded` text."""
    return text[1:] if text.startswith("'") and _RUN.match(text) else text


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV: a header row, one line for each row, no index."""
    changed, how = _guarded_table(table)
    text: str = changed.to_csv(**how)
    return text


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a file, as `csv_text` would."""
    changed, how = _guarded_table(table)
    changed.to_csv(path, **how)


def _guarded_table(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table with guarded texts, and the options to write it."""
    changed = table.set_axis([_cell(name) for name in table.columns], axis=1)
    texts = [str(name) for name in table.columns]
    for place, kind in enumerate(table.dtypes):
        if kind.kind in "biufcmM":  # Spreadsheets do not run values of these types as formulas.
            continue
        cells = [text for text in table.iloc[:, place].unique() if isinstance(text, str)]
        texts += cells
        if any(guarded(text) != text for text in cells):
            changed.isetitem(place, [_cell(cell) for cell in table.iloc[:, place]])
    # Quote texts with a carriage return, which would otherwise end the cell.
    returns = any("\r" in text for text in texts)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return changed, {"index": False, "lineterminator": "\n", "quoting": quoting}


def _cell(cell: Any) -> Any:
    return guarded(cell) if isinstance(cell, str) else cell


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table atomically as CSV or Parquet, by the ending of the file's name.

    Raises
    ------
    InvalidSetting
        If the ending is not allowed, or the folder is not writable.
    CannotWrite
        If the system refuses to write, such as on a full disk.
    """
    file = check_out(path)
    with atomic_write(file) as aside:
        if file.suffix.lower() == ".csv":
            write_csv(table, aside)
        else:
            table.to_parquet(aside, index=False)


def check_out(path: str | Path) -> Path:
    """Return the path of a table to write, or raise InvalidSetting before any work."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidSetting("out", "a path that ends in .csv or .parquet", str(path), "--out")
    folder = file.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or file.is_dir():
        raise InvalidSetting("out", "a file in a writable folder that exists", str(path), "--out")
    return file.absolute()
