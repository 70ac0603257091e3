"""Finding the raw files of a set, and downloading those that are not at hand.

The variable ``DPVIZ_DATA`` names a local mirror: a folder, whose files are read
where they lie, or an http(s) address, which replaces all others. A mirror holds
``<set's folder>/<file>``. Downloads go to the user's cache, laid out alike. A file
is downloaded, unpacked and verified in a folder aside, and then renamed: what
carries its name in the cache is whole.
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
"""Called with the bytes done and, where the server says them, all bytes of one download."""

VARIABLE = "DPVIZ_DATA"
TIMEOUT: tuple[float, float] = (10.0, 60.0)
"""Seconds to wait for a connection, and between two pieces of an answer."""

_CHUNK = 1 << 16
_ASIDE = ".part-"
_STALE_SECONDS = 24 * 3600


def cache_folder() -> Path:
    """Return the folder that downloads go to."""
    return user_cache() / "data"


@dataclass(frozen=True)
class Mirror:
    """What ``DPVIZ_DATA`` names: a folder, an address, or nothing."""

    folder: Path | None = None
    address: str | None = None


def mirror() -> Mirror:
    """Return the mirror that the environment names.

    Raises
    ------
    InvalidSetting
        If it names neither a folder that is there nor an http(s) address.
    """
    named = os.environ.get(VARIABLE, "").strip()
    if not named:
        return Mirror()
    if named.lower().startswith(("http://", "https://")):
        return Mirror(address=named.rstrip("/"))
    folder = Path(named)
    if not folder.is_dir():
        raise InvalidSetting(VARIABLE, "a folder that is there or an http(s) address", named)
    return Mirror(folder=folder)


def _complete(folder: Path, entry: Remote) -> bool:
    return all((folder / file.name).is_file() for file in entry.files)


def found(entry: Remote) -> Path | None:
    """Return the folder that holds all files of a set, or None; opens no file."""
    local = mirror().folder
    for base in (local, cache_folder()):
        if base is not None and _complete(base / entry.folder, entry):
            return base / entry.folder
    return None


def by_hand(entry: Remote) -> str:
    """Return how to place the files of a set by hand, to follow "get ..."."""
    base = mirror().folder or cache_folder()
    them = "it" if len(entry.files) == 1 else "them"
    return f"get {entry.listed} from {entry.page} and put {them} in {base / entry.folder}"


def absent(entry: Remote) -> NotAvailable:
    """Return the error for a set that is not at hand, where none was to be downloaded."""
    return NotAvailable(
        f"{entry.label} is not at hand: run `python -m dpviz fetch {entry.key}`, or "
        f"{by_hand(entry)}."
    )


def fetch(entry: Remote, progress: OnBytes | None = None, allowed: bool = True) -> Path:
    """Return the folder with the verified files of a set, downloading what is not at hand.

    A folder named by ``DPVIZ_DATA`` that holds the whole set is used as it is;
    one that lacks a file of it leaves the set to the addresses on record. Nothing
    is downloaded unless it is ``allowed``.

    Raises
    ------
    NotAvailable
        If a file is not the one on record and cannot be got either, with one
        sentence that says why and how to place it by hand.
    InvalidSetting
        As in `mirror`.
    """
    named = mirror()
    if named.folder is not None and _complete(named.folder / entry.folder, entry):
        folder = named.folder / entry.folder
        for file in entry.files:
            if not _is_file_on_record(folder / file.name, file):
                raise NotAvailable(
                    f"{file.name} in {folder} is not the file on record for {entry.label}, as its "
                    f"sha256 differs: get it from {entry.page}, or remove it to have it downloaded."
                )
        return folder
    folder = cache_folder() / entry.folder
    missing = [file for file in entry.files if not _is_file_on_record(folder / file.name, file)]
    if missing and not allowed:
        raise absent(entry)
    if missing:
        _download(entry, missing, folder, named.address, progress)
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
                own = f"{address}/{quote(entry.folder)}/{quote(file.name)}"
                part = downloads.get(file, (own,) if address else file.addresses, entry)
                target = folder / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.sha256 is None:
                    _refuse_another(part, target, entry)
                os.replace(part, target)
                if file.sha256 is None:
                    keep_first(target)
    except OSError as error:  # of the disk; those of the network are dealt with below
        raise NotAvailable(f"{entry.label} cannot be kept in {base}: {_words(error)}.") from None


def _refuse_another(part: Path, target: Path, entry: Remote) -> None:
    """Refuse a file that is not the one downloaded first, where no digest is on record."""
    first = first_digest(target)
    if first not in (None, digest_of(part)):
        raise NotAvailable(
            f"{target.name} of {entry.label} is not the file that was downloaded first, and no "
            f"digest of it is on record (sha256 {digest_of(part)} now, {first} then): remove "
            f"{target.parent} to take it."
        )


def unrecorded(entry: Remote, folder: Path) -> tuple[str, ...]:
    """Return a sentence on each file whose digest is on no record, with what it is here."""
    return tuple(
        f"No digest of {file.name} is on record to check it against; that of this copy is "
        f"sha256 {digest_of(folder / file.name)}."
        for file in entry.files
        if file.sha256 is None
    )


def _remove_stale(base: Path) -> None:
    """Remove what a run that was killed left behind."""
    for path in base.glob(f"{_ASIDE}*"):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _words(error: OSError) -> str:
    """Return what went wrong with the disk."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "permission is denied"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file is in the place of a folder"
    return (error.strerror or "the disk does not answer").lower()


class _Failed(Exception):
    """One address did not give the file; the text says why."""


class _Downloads:
    """What was downloaded so far, in a folder that is removed in the end.

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
        """Return a verified copy of the file, from the first address that gives one."""
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
                raise _Failed(f"the archive from {host} does not hold it")
        with part.open("rb") as sent:
            if sent.read(1) == b"<":  # no raw file is a page, and some have no digest on record
                raise _Failed(f"{host} sent a web page instead")
        if not matches(part, file):
            raise _Failed(f"what {host} sent is not the file on record, as its sha256 differs")
        return part

    def _unpacker(self, address: str) -> Unpacker:
        """Return the opened archive of an address, which is asked once whatever it answers."""
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
        """Return what an address sends, whole."""
        need("pooch")
        import pooch  # here, as most runs download nothing
        import requests

        host = urlsplit(address).netloc
        part = self._new()
        bar = _Bar(self._progress)
        answers: list[requests.Response] = []  # pooch leaves one open where it breaks off
        downloader = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=_CHUNK,
            timeout=TIMEOUT,
            # as it is stored: lengths and digests are those of the stored file
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
        if part.stat().st_size < bar.total:  # older libraries take the end of a stream for its end
            raise _Failed(f"the download from {host} ended early")
        return part


def _network_words(error: RequestException, host: str) -> str:
    """Return what went wrong on the way, naming the host and not the address."""
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
    """What pooch takes for a progress bar: tells a function the bytes done."""

    def __init__(self, progress: OnBytes | None) -> None:
        self.total = 0  # set by pooch; 0 where the server does not say
        self._progress = progress
        self._done = 0

    def update(self, size: int) -> None:
        """Count further bytes; the last piece may be counted as larger than it is."""
        self._done += size
        if self._progress is not None and size:
            done = min(self._done, self.total) if self.total else self._done
            self._progress(done, self.total or None)

    def reset(self) -> None:
        """Start again: pooch then counts the whole at once."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: whoever gave the function closes what it draws."""


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from announcing each download on stderr."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


# Whether a file is the one on record --------------------------------------------------------------


def matches(path: Path, file: File) -> bool:
    """Return whether a file has the digest on record, or where there is none the first one seen.

    The digest of the text counts as well as that of the raw bytes: copies of
    one file differ in line ends, in blanks at the ends of lines, and in packing.
    """
    if file.sha256 is None:
        first = first_digest(path)
        return first is None or first == digest_of(path)
    key = _state(path)
    return _digest(*key) == file.sha256 or _text_digest(*key) == (file.text or file.sha256)


def digest_of(path: Path) -> str:
    """Return the sha256 of a file as it is."""
    return _digest(*_state(path))


def first_digest(path: Path) -> str | None:
    """Return the sha256 that a file without a digest on record had when it was downloaded first."""
    kept = _first(path)
    return kept.read_text(encoding="ascii").strip() if kept.is_file() else None


def keep_first(path: Path) -> None:
    """Keep the sha256 of a file beside it, for every later look."""
    with atomic_write(_first(path)) as aside:
        aside.write_text(f"{digest_of(path)}\n", encoding="ascii")


def _first(path: Path) -> Path:
    return path.with_name(f"{path.name}.first-sha256")


def _state(path: Path) -> tuple[str, int, int]:
    state = path.stat()
    return str(path), state.st_mtime_ns, state.st_size


def text_digest(path: Path) -> str | None:
    """Return the sha256 of a text in its plain form, or None for a damaged gzip.

    Unpacked where it is a gzip; blanks at the ends of lines removed, lines
    ended by a line feed, no empty lines at the end.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(path, "rb") if packed else path.open("rb") as lines:
            _add_plain(digest, lines)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return None
    return digest.hexdigest()


def _add_plain(digest: hashlib._Hash, lines: Iterable[bytes]) -> None:
    empty = 0
    for line in lines:
        kept = line.rstrip()
        if not kept:
            empty += 1
            continue
        digest.update(b"\n" * empty + kept + b"\n")
        empty = 0


# The time and the size make a changed file another entry.
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
_DEEPEST = 2  # UCI puts an older zip or tar into its zip; nothing is packed further
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
)


class Damaged(ValueError):
    """What was sent cannot be unpacked."""


class Unpacker:
    """Takes files out of a download.

    Parameters
    ----------
    path : Path
        What was downloaded.
    aside : Path
        Folder for archives found inside.
    depth : int
        Archives around this one.
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
        """Write the file of that name, or return False if it is not inside.

        Raises
        ------
        Damaged
            If what was sent is no archive, is cut short or fails its own check.
        """
        try:
            return self._extract(name, target)
        except DAMAGE:
            raise Damaged from None

    def _extract(self, name: str, target: Path) -> bool:
        if not (self._zip or self._tar):
            # an address that says nothing of the name, of a file that is wanted packed
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
                packed = self._aside / f"packed-{self._depth}"
                self._copy(member, packed)
                unpack_file(packed, target)
                packed.unlink()
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
        """Return the member whose path ends in that name, the shortest if there are several."""
        ending = "/" + name.lower()
        found = [item for item in self._members if ("/" + item.lower()).endswith(ending)]
        return min(found, key=len) if found else None

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
    """Write what a .gz or .Z file holds; any other file is copied.

    Raises
    ------
    Damaged, or one of `DAMAGE`
        If it is cut short or fails its own check.
    """
    with path.open("rb") as file:
        head = file.read(2)
    if head == GZIP_MAGIC:
        with gzip.open(path, "rb") as source:
            _write(cast(IO[bytes], source), target)
    # musk and waveform are packed so, alone at their old addresses
    elif head == _COMPRESS_MAGIC:
        need("unlzw3")
        from unlzw3 import unlzw

        try:
            target.write_bytes(unlzw(path))
        except ValueError:
            raise Damaged from None
    else:
        shutil.copyfile(path, target)
