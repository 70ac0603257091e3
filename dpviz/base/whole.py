"""Files that appear whole or not at all, and one sentence where they cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpviz.errors import CannotWrite

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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
