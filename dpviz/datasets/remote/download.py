"""Find the raw files of a set, and download missing files.

The variable ``DPVIZ_DATA`` names a local mirror: a folder, whose files are read in place, or an
http(s) address, which replaces all other addresses. A mirror holds ``<set's folder>/<file>``.
Downloads go to the user's cache, with the same layout. A file is downloaded, unpacked and verified
in a temporary folder, then renamed. A file under its own name in the cache is therefore complete.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import logging
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from dpviz.core.errors import InvalidSetting, NotAvailable
from dpviz.core.files import atomic_write, user_cache
from dpviz.core.platform import NO_DOWNLOADS, in_browser, need
from dpviz.datasets.reader import GZIP_MAGIC
from dpviz.datasets.remote.declared import File, Remote

if TYPE_CHECKING:
    from requests.exceptions import RequestException


import tarfile
import zipfile
from typing import IO, cast

OnBytes = Callable[[int, int | None], None]
"""A function called with the bytes done and, if the server states it, the total of one download."""

VARIABLE = "DPVIZ_DATA"
TIMEOUT: tuple[float, float] = (10.0, 60.0)
"""Timeouts in seconds: for a connection, and between two pieces of an answer."""

_CHUNK = 1 << 16
_ASIDE = ".part-"
_STALE_SECONDS = 24 * 3600


def cache_folder() -> Path:
    """Return the folder into which files are downloaded."""
    return user_cache() / "data"


@dataclass(frozen=True)
class Mirror:
    """The mirror in ``DPVIZ_DATA``: a folder, an address, or neither."""

    folder: Path | None = None
    address: str | None = None


def mirror() -> Mirror:
    """Return the mirror named in the environment.

    Raises
    ------
    InvalidSetting
        If the variable names neither an existing folder nor an http(s) address.
    """
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        return Mirror()
    if address.lower().startswith(("http://", "https://")):
        return Mirror(address=address.rstrip("/"))
    folder = Path(address)
    if not folder.is_dir():
        raise InvalidSetting(VARIABLE, "a folder that exists or an http(s) address", address)
    return Mirror(folder=folder)


def _complete(folder: Path, entry: Remote) -> bool:
    return all((folder / file.name).is_file() for file in entry.files)


def found(entry: Remote) -> Path | None:
    """Return the folder that holds all files of a set, or None, without opening a file."""
    local = mirror().folder
    for base in (local, cache_folder()):
        if base is not None and _complete(base / entry.folder, entry):
            return base / entry.folder
    return None


def by_hand(entry: Remote) -> str:
    """Return how to place the files of a set by hand, as words that start with "get"."""
    base = mirror().folder or cache_folder()
    them = "it" if len(entry.files) == 1 else "them"
    return f"get {entry.listed} from {entry.page} and put {them} in {base / entry.folder}"


def absent(entry: Remote) -> NotAvailable:
    """Return the error for a set that is not available locally and may not be downloaded."""
    return NotAvailable(
        f"{entry.label} is not at hand: run `python -m dpviz fetch {entry.key}`, or "
        f"{by_hand(entry)}."
    )


def fetch(entry: Remote, progress: OnBytes | None = None, allowed: bool = True) -> Path:
    """Return the folder with the verified files of a set; download those that are missing.

    A folder in ``DPVIZ_DATA`` is used if it holds the whole set; otherwise the addresses on record
    are used. Nothing is downloaded unless ``allowed``.

    Raises
    ------
    NotAvailable
        If a file is not the one on record and cannot be downloaded. One sentence gives the reason,
        and how to place the file by hand.
    InvalidSetting
        In the same cases as `mirror`.
    """
    source = mirror()
    if source.folder is not None and _complete(source.folder / entry.folder, entry):
        folder = source.folder / entry.folder
        for file in entry.files:
            if not _is_file_on_record(folder / file.name, file):
                raise NotAvailable(
                    f"{file.name} in {folder} is not the expected file of {entry.label}: its "
                    f"sha256 differs. Get it from {entry.page}, or remove it to download it again."
                )
        return folder
    folder = cache_folder() / entry.folder
    missing = [file for file in entry.files if not _is_file_on_record(folder / file.name, file)]
    if missing and not allowed:
        raise absent(entry)
    if missing:
        _download(entry, missing, folder, source.address, progress)
    return folder


def _is_file_on_record(path: Path, file: File) -> bool:
    try:
        return path.is_file() and matches(path, file)
    except OSError as error:
        raise NotAvailable(f"{file.name} cannot be read: {_words(error)}.") from None


def _download(
    entry: Remote, files: list[File], folder: Path, address: str | None, progress: OnBytes | None
) -> None:
    if in_browser():
        raise NotAvailable(NO_DOWNLOADS)
    base = cache_folder()
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_stale(base)
        with TemporaryDirectory(dir=base, prefix=_ASIDE) as aside:
            downloads = _Downloads(Path(aside), progress)
            for file in files:
                url = f"{address}/{quote(entry.folder)}/{quote(file.name)}"
                part = downloads.get(file, (url,) if address else file.addresses, entry)
                target = folder / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.sha256 is None:
                    _refuse_another(part, target, entry)
                os.replace(part, target)
                if file.sha256 is None:
                    keep_first(target)
    except OSError as error:  # These are disk errors; network errors follow below.
        raise NotAvailable(f"{entry.label} cannot be kept in {base}: {_words(error)}.") from None


def _refuse_another(part: Path, target: Path, entry: Remote) -> None:
    """Refuse a file that differs from the first download, if no digest is on record."""
    first = first_digest(target)
    if first not in (None, digest_of(part)):
        raise NotAvailable(
            f"{target.name} of {entry.label} differs from the first download (sha256 "
            f"{digest_of(part)} now, {first} before): to accept the new file, remove "
            f"{target.parent}."
        )


def unrecorded(entry: Remote, folder: Path) -> tuple[str, ...]:
    """Return a sentence, with the copy's digest, on each file that has no digest on record."""
    return tuple(
        f"No digest of {file.name} is on record to check it against; that of this copy is "
        f"sha256 {digest_of(folder / file.name)}."
        for file in entry.files
        if file.sha256 is None
    )


def _remove_stale(base: Path) -> None:
    """Remove folders that killed runs left behind."""
    for path in base.glob(f"{_ASIDE}*"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _words(error: OSError) -> str:
    """Return the reason of a disk error in words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "permission is denied"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file is in the place of a folder"
    return (error.strerror or "the disk does not answer").lower()


class _Failed(Exception):
    """An address did not provide the file; the text states the reason."""


class _Downloads:
    """Downloads made so far, in a folder that is removed at the end.

    Parameters
    ----------
    aside : Path
    progress : callable, optional
    """

    def __init__(self, aside: Path, progress: OnBytes | None) -> None:
        self._aside, self._progress = aside, progress
        self._unpackers: dict[str, Unpacker] = {}
        self._failed: dict[str, _Failed] = {}
        self._count = 0

    def get(self, file: File, addresses: tuple[str, ...], entry: Remote) -> Path:
        """Return a verified copy of the file, from the first address that provides a valid one."""
        reasons = []
        for address in addresses:
            try:
                return self._get(file, address)
            except _Failed as failed:
                reasons.append(str(failed))
        raise NotAvailable(
            f"{file.name} of {entry.label} could not be downloaded ("
            f"{'; '.join(dict.fromkeys(reasons))}): {by_hand(entry)}."
        )

    def _get(self, file: File, address: str) -> Path:
        host = urlsplit(address).netloc
        if address.endswith("/" + quote(file.name.rpartition("/")[2])):
            part = self._retrieve(address)
        else:
            part = self._new()
            try:
                inside = self._unpacker(address).extract(file.name, part)
            except Damaged:
                raise _Failed(f"the archive from {host} is damaged") from None
            if not inside:
                raise _Failed(f"the archive from {host} does not contain the file")
        with part.open("rb") as stream:
            if (
                stream.read(1) == b"<"
            ):  # A web page is not the file, and some files have no digest to compare.
                raise _Failed(f"{host} sent a web page in place of the file")
        if not matches(part, file):
            raise _Failed(f"the file from {host} is not the expected file: its sha256 differs")
        return part

    def _unpacker(self, address: str) -> Unpacker:
        """Return the opened archive of an address; each address is requested only once."""
        if address in self._failed:
            raise self._failed[address]
        if address not in self._unpackers:
            try:
                archive = self._retrieve(address)
            except _Failed as failed:
                self._failed[address] = failed
                raise
            self._unpackers[address] = Unpacker(archive, self._aside)
        return self._unpackers[address]

    def _new(self) -> Path:
        self._count += 1
        return self._aside / f"part-{self._count}"

    def _retrieve(self, address: str) -> Path:
        """Return the complete content of an address."""
        need("pooch")
        import pooch  # Import late, because most commands download nothing.
        import requests

        host = urlsplit(address).netloc
        part = self._new()
        bar = _Bar(self._progress)
        answers: list[requests.Response] = []  # pooch does not close a failed download.
        downloader = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=_CHUNK,
            timeout=TIMEOUT,
            # Ask for no compression: recorded lengths and digests are of the file as stored.
            headers={"Accept-Encoding": "identity"},
            hooks={"response": lambda answer, **_: answers.append(answer)},
        )
        try:
            with _quiet(pooch.get_logger()):
                pooch.retrieve(
                    address, known_hash=None, fname=part.name, path=part.parent,
                    downloader=downloader,
                )  # fmt: skip
        except requests.exceptions.RequestException as error:
            raise _Failed(_network_words(error, host)) from None
        finally:
            for answer in answers:
                answer.close()
        if part.stat().st_size < bar.total:  # Older libraries do not report a truncated file.
            raise _Failed(f"the download from {host} ended early")
        return part


def _network_words(error: RequestException, host: str) -> str:
    """Return the reason of a network error; name the host but not the address."""
    from requests import exceptions as known

    if isinstance(error, known.HTTPError) and error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, known.ChunkedEncodingError):
        return f"the download from {host} ended early"
    if isinstance(error, known.Timeout) or "timed out" in str(error):
        return f"{host} did not answer in time"
    if isinstance(error, known.SSLError):
        return f"the certificate of {host} could not be verified"
    if isinstance(error, known.ConnectionError):
        return f"{host} could not be reached"
    return f"{host} could not be asked"


class _Bar:
    """A progress bar for pooch that reports the bytes done to a function."""

    def __init__(self, progress: OnBytes | None) -> None:
        self.total = 0  # pooch sets the size, or 0 if the server does not state it.
        self._progress = progress
        self._done = 0

    def update(self, size: int) -> None:
        """Count more bytes; the last piece may be counted as larger than it is."""
        self._done += size
        if self._progress is not None and size:
            count = min(self._done, self.total) if self.total else self._done
            self._progress(count, self.total or None)

    def reset(self) -> None:
        """Reset the count: pooch then counts the whole file at once."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: the caller closes its own bar."""


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Stop pooch from announcing each download on stderr."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


# Whether a file is the one on record --------------------------------------------------------------


def matches(path: Path, file: File) -> bool:
    """Return whether a file's digest is on record or, without a record, the first digest seen.

    Either the raw bytes or the text may match: copies of a file differ in line ends, blanks at the
    ends of lines, and packing.
    """
    if file.sha256 is None:
        first = first_digest(path)
        return first is None or first == digest_of(path)
    key = _state(path)
    return _digest(*key) == file.sha256 or _text_digest(*key) == (file.text or file.sha256)


def digest_of(path: Path) -> str:
    """Return the sha256 of a file's raw bytes."""
    return _digest(*_state(path))


def first_digest(path: Path) -> str | None:
    """Return the stored sha256 of a file's first download, or None."""
    path_of = _first(path)
    return path_of.read_text(encoding="ascii").strip() if path_of.is_file() else None


def keep_first(path: Path) -> None:
    """Store the sha256 of a file beside it, for later checks."""
    with atomic_write(_first(path)) as aside:
        aside.write_text(f"{digest_of(path)}\n", encoding="ascii")


def _first(path: Path) -> Path:
    return path.with_name(f"{path.name}.first-sha256")


def _state(path: Path) -> tuple[str, int, int]:
    state = path.stat()
    return str(path), state.st_mtime_ns, state.st_size


def text_digest(path: Path) -> str | None:
    """Return the sha256 of a text in normalised form, or None for a damaged gzip.

    A gzip is unpacked, blanks at the ends of lines and empty lines at the end are removed, and
    lines end with a line feed.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(path, "rb") if is_gzip else path.open("rb") as lines:
            _add_plain(digest, lines)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return None
    return digest.hexdigest()


def _add_plain(digest: hashlib._Hash, lines: Iterable[bytes]) -> None:
    empty = 0
    for line in lines:
        text = line.rstrip()
        if not text:
            empty += 1
            continue
        digest.update(b"\n" * empty + text + b"\n")
        empty = 0


# Take time and size as arguments, so that a changed file does not get a cached digest.
@lru_cache(maxsize=4096)
def _digest(path: str, modified: int, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _text_digest(path: str, modified: int, size: int) -> str | None:
    return text_digest(Path(path))


# One file out of what a server sends: an archive, an archive in an archive, or a packed file ----

_ZIP_MAGIC = b"PK\x03\x04"
_COMPRESS_MAGIC = b"\x1f\x9d"
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_DEEPEST = 2  # UCI puts some older zip or tar files into a zip, but never nests deeper.
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # zipfile does not know the compression method.
    RuntimeError,  # zipfile reports an encrypted member by this error.
)


class Damaged(ValueError):
    """The download cannot be unpacked."""


class Unpacker:
    """A reader that extracts files from a download.

    Parameters
    ----------
    path : Path
        The downloaded file.
    aside : Path
        Folder for archives found inside the download.
    depth : int
        Number of archives that contain this archive.
    """

    def __init__(self, path: Path, aside: Path, depth: int = 0) -> None:
        self._path, self._aside, self._depth = path, aside, depth
        self._inner: list[Unpacker] | None = None
        try:
            self._open()
        except DAMAGE:
            raise Damaged from None

    def _open(self) -> None:
        with self._path.open("rb") as file:
            head = file.read(len(_ZIP_MAGIC))
        self._zip = self._tar = False
        self._members: list[str] = []
        if zipfile.is_zipfile(self._path) or head == _ZIP_MAGIC:
            self._zip = True
            with zipfile.ZipFile(self._path) as archive:
                self._members = [item.filename for item in archive.infolist() if not item.is_dir()]
        elif tarfile.is_tarfile(self._path):
            self._tar = True
            with tarfile.open(self._path) as tar:
                self._members = [item.name for item in tar.getmembers() if item.isfile()]

    def extract(self, name: str, target: Path) -> bool:
        """Write the file with the given name, or return False if the archive lacks it.

        Raises
        ------
        Damaged
            If the download is not an archive, is truncated or fails its own check.
        """
        try:
            return self._extract(name, target)
        except DAMAGE:
            raise Damaged from None

    def _extract(self, name: str, target: Path) -> bool:
        if not (self._zip or self._tar):
            # If the name in the address differs from the file's, copy packed files, unpack others.
            as_it_is = name.endswith((".gz", ".Z"))
            (shutil.copyfile if as_it_is else unpack_file)(self._path, target)
            return True
        member = self._find(name)
        if member is not None:
            self._copy(member, target)
            return True
        for suffix in (".gz", ".Z"):
            member = self._find(name + suffix)
            if member is not None:
                archive = self._aside / f"packed-{self._depth}"
                self._copy(member, archive)
                unpack_file(archive, target)
                archive.unlink()
                return True
        return any(inner._extract(name, target) for inner in self._archives())

    def _archives(self) -> list[Unpacker]:
        if self._inner is None:
            self._inner = []
            names = [name for name in self._members if name.lower().endswith(_ARCHIVES)]
            for number, name in enumerate(names if self._depth < _DEEPEST else []):
                path = self._aside / f"{self._path.name}-{number}"
                self._copy(name, path)
                self._inner.append(Unpacker(path, self._aside, self._depth + 1))
        return self._inner

    def _find(self, name: str) -> str | None:
        """Return the member whose path ends in the given name, the shortest of several."""
        ending = "/" + name.lower()
        members = [item for item in self._members if ("/" + item.lower()).endswith(ending)]
        return min(members, key=len) if members else None

    def _copy(self, member: str, target: Path) -> None:
        if self._zip:
            with zipfile.ZipFile(self._path) as archive, archive.open(member) as source:
                _write(source, target)
            return
        with tarfile.open(self._path) as tar:
            source_of = tar.extractfile(member)
            if source_of is None:
                raise Damaged
            with source_of:
                _write(source_of, target)


def _write(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)


def unpack_file(path: Path, target: Path) -> None:
    """Write the content of a .gz or .Z file; copy any other file.

    Raises
    ------
    Damaged, or one of `DAMAGE`
        If the file is truncated or fails its own check.
    """
    with path.open("rb") as file:
        head = file.read(2)
    if head == GZIP_MAGIC:
        with gzip.open(path, "rb") as source:
            _write(cast(IO[bytes], source), target)
    # musk and waveform are single files packed in this old format, at their old addresses.
    elif head == _COMPRESS_MAGIC:
        need("unlzw3")
        from unlzw3 import unlzw

        try:
            target.write_bytes(unlzw(path))
        except ValueError:
            raise Damaged from None
    else:
        shutil.copyfile(path, target)
