"""Files: their places, atomic writing, JSON and CSV.

Every command and page writes the same bytes for the same answer.
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
"""The folder of the package itself, the root of every room."""


def app_path() -> Path:
    """Return the absolute path of ``app.py``, the script to give to Streamlit.

    Returns
    -------
    Path
        The wheel's copy if there is one, otherwise the file beside the package.

    Raises
    ------
    FileNotFoundError
        If neither exists: the package was copied without its dashboard. This is a broken
        installation and not a user's input, so it is not a ``DpvizError``.
    """
    return _root() / "app.py"


def _root() -> Path:
    """Return the folder of ``app.py``, preferring the wheel's copy.

    The wheel's copy comes first: site-packages may hold somebody else's ``app.py``.
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
"""How the name of a file ends that is being written; it begins with a dot."""

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
    """Return the sentence on a file that the system refused to write."""
    reason = _REASONS.get(error.errno or 0, "the system refuses it")
    return CannotWrite(f"{path.name} cannot be written: {reason}.")


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside a file, and replace the file by it at the end.

    Whatever happens on the way, the file is either what it was or all that was
    written: a full disk, an interrupt or a kill leaves at most a part beside it,
    whose name begins with a dot and ends in ``.part``.

    Parameters
    ----------
    path : Path
        Its folder must exist.
    private : bool
        Whether only this user may read it; otherwise as if it had been opened by name.

    Raises
    ------
    CannotWrite
        If the system refuses.
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
        Where the file will be.
    size : int
        Most bytes that it will have.
    name : str
        What a message calls it.
    private : bool
        Whether only this user may read it; otherwise as if it had been opened by name.

    Raises
    ------
    CannotWrite
        If the system refuses; nothing is left.
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
            If the system refuses.
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
            # durable before it has its name: a name without its content would be a lie
            os.replace(self._aside, path)
            flush_folder(path.parent)
        except OSError as error:
            raise cannot_write(path, error) from None

    def drop(self) -> None:
        """Delete the reserved file, unless it has its final name."""
        with suppress(OSError, AttributeError):  # it may not have been opened
            self._file.close()
        _forget(self._aside)


def _beside(folder: Path) -> Path:
    """Return a name for a part; known before the file is there, so that no interrupt leaves it."""
    # in the same folder: a file is put in another's place within one file system alone
    return folder / f".{secrets.token_hex(8)}{PART}"


def _new(path: Path) -> int:
    """Open a file that was not there, for this user alone."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _forget(aside: Path) -> None:
    with suppress(OSError):  # its folder may be none
        aside.unlink()


def _allocate(handle: int, size: int) -> None:
    """Take room on the disk, by the system's own call where there is one."""
    # room that is only promised would run out at the worst moment
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
    """An object of a JSON text repeats a name; the message completes "it names ..."."""


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON text, or raise `NamedTwice` if a name repeats.

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
        If it is no JSON, nests too deep, or holds NaN, an infinity or a whole number of thousands
        of digits; `NamedTwice` where an object has a name twice.
    """
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=named_once
        )
    except RecursionError:
        raise ValueError("nested too deep") from None


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)  # such as 1e999


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# --- tables ---------------------------------------------------------------------------------------


# Also their full-width forms, and what some programs skip before they look.
_RUN = re.compile(r"'*[\t\r\n ]*[=+\-@＝＋－＠]|'*[\t\r]")


def guarded(text: str) -> str:
    """Return text that no spreadsheet runs as a formula, with an apostrophe in front if needed.

    Names of files, columns and classes are other people's. A cell that begins with ``=``, ``+``,
    ``-`` or ``@`` is a formula to a spreadsheet; an apostrophe is how spreadsheets write text
    themselves, and `unguarded` takes it away again.
    """
    return f"'{text}" if _RUN.match(text) else text


def unguarded(text: str) -> str:
    """Return the original text of a `guarded` one."""
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
    """Return the table with its texts guarded, and how it is to be written."""
    changed = table.set_axis([_cell(name) for name in table.columns], axis=1)
    texts = [str(name) for name in table.columns]
    for place, kind in enumerate(table.dtypes):
        if kind.kind in "biufcmM":  # numbers, truth values and times are never run
            continue
        cells = [text for text in table.iloc[:, place].unique() if isinstance(text, str)]
        texts += cells
        if any(guarded(text) != text for text in cells):
            changed.isetitem(place, [_cell(cell) for cell in table.iloc[:, place]])
    # A return within a cell ends it where it is not quoted, and what follows it begins another.
    returns = any("\r" in text for text in texts)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return changed, {"index": False, "lineterminator": "\n", "quoting": quoting}


def _cell(cell: Any) -> Any:
    return guarded(cell) if isinstance(cell, str) else cell


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV or Parquet, by the ending; whole or not at all.

    Raises
    ------
    InvalidSetting
        If the ending is another, or the folder cannot be written.
    CannotWrite
        If the system refuses, such as a full disk.
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
        raise InvalidSetting("out", "in a folder that is there and writable", str(path), "--out")
    return file.absolute()
