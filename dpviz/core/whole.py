"""Files that appear whole or not at all, and one sentence where they cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpviz.core.errors import CannotWrite

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
def whole(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a path to write to, beside the file; put it in the file's place at the end.

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
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=PART)
    except OSError as error:
        raise cannot_write(path, error) from None
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        if not private:
            os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        aside.unlink(missing_ok=True)


class Reserved:
    """A file that has its room on the disk before anybody knows what will stand in it.

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
        try:
            handle, aside = tempfile.mkstemp(dir=folder, prefix=".", suffix=PART)
        except OSError as error:
            raise cannot_write(Path(name), error) from None
        self._file, self._aside, self._private = os.fdopen(handle, "wb"), Path(aside), private
        try:
            _allocate(handle, size)
        except OSError as error:
            self.drop()
            raise cannot_write(Path(name), error) from None

    def become(self, path: Path, content: bytes) -> None:
        """Write the content, on to the disk, and take a name in the same folder.

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
            os.replace(self._aside, path)
            flush_folder(path.parent)
        except OSError as error:
            raise cannot_write(path, error) from None

    def drop(self) -> None:
        """Give the room back, unless the file has its name."""
        with suppress(OSError):
            self._file.close()
        self._aside.unlink(missing_ok=True)


def _allocate(handle: int, size: int) -> None:
    """Take room on the disk, by the system's own call where there is one."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
        else:
            return
    left = size
    while left > 0:
        left -= os.write(handle, bytes(min(left, 2**20)))


def flush_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the system can (not on Windows)."""
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
