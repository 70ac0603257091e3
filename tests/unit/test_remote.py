"""Remote data sets: found, downloaded, verified and read, with whatever can go wrong on the way.

A server on localhost sends small made-up files, so that the real code downloads them.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pooch
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from dpviz import datasets
from dpviz.cli import main
from dpviz.core.errors import DpvizError, InvalidSetting, InvalidTable, NotAvailable
from dpviz.core.platform import NO_WORKBOOKS
from dpviz.datasets import remote, workbook
from dpviz.datasets.remote import download
from dpviz.datasets.remote.declared import UCI, File, Remote
from dpviz.datasets.remote.download import Damaged, text_digest, unpack_file
from dpviz.datasets.remote.reading import read_numbers
from dpviz.datasets.table import Table
from tests.serving import Answer, Site, serve

ROWS, WIDTH = 60, 3
CONTENT = "".join(f"{i},{i * i % 7},{i % 5}.5\n" for i in range(ROWS)).encode()
PAGE = "https://example.org/pairs"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_pairs(folder: Path) -> Table:
    return Table("pairs", read_numbers(folder / "sub/pairs.data", WIDTH, ","), ("a", "b", "c"))


def pairs(*addresses: str, sha256: str | None = sha(CONTENT), **changes: Any) -> Remote:
    """Return the declaration of a made-up set of one file."""
    declared = Remote(
        key="pairs",
        label="Pairs",
        folder="pairs-folder",
        files=(File("sub/pairs.data", sha256, addresses),),
        n=ROWS,
        d=WIDTH,
        labels="none",
        licence="none",
        citation="nobody",
        page=PAGE,
        papers=(),
        preparation=("Made up.",),
        read=read_pairs,
    )
    return replace(declared, **changes)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of downloads, which is empty, without a mirror or a proxy."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPVIZ_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "home" / "dpviz" / "data"


@pytest.fixture
def site(cache: Path) -> Iterator[Site]:
    with serve(Site()) as served:
        yield served


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes sets known in the place of the real ones."""
    return lambda *entries: monkeypatch.setattr(remote, "_SETS", entries)


def files_in(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()
    )


def refused(key: str = "pairs") -> str:
    """Return the sentence with which a set is refused."""
    with pytest.raises(NotAvailable) as caught:
        remote.fetch(key)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert re.search(r"\.\s+[A-Z]", message) is None, "one sentence"
    return message


# The table of sets --------------------------------------------------------------------------

KEYS = {
    "liver", "movementaal", "cardiotocography", "semeion", "waveform", "waveform2", "musk",
    "musk2", "insurance", "kddcup99", "census", "localization", "secom", "covertype", "adult",
}  # fmt: skip


def test_every_set_is_declared_in_full() -> None:
    declared = remote.sets()
    assert set(declared) == KEYS
    places = [(entry.folder, file.name) for entry in declared.values() for file in entry.files]
    assert len(set(places)) == len(places)
    for key, entry in declared.items():
        assert entry.key == key
        assert re.fullmatch(rf"{UCI}/dataset/\d+/[a-z0-9+]+", entry.page)
        assert "CC BY 4.0" in entry.licence
        assert re.search(r", UCI, doi:10\.24432/C5[0-9A-Z]{4}$", entry.citation)
        assert entry.preparation
        assert all(sentence.endswith(".") for sentence in entry.preparation)
        assert entry.files
        number = entry.page.split("/")[-2]
        for file in entry.files:
            assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            assert file.text is None or re.fullmatch(r"[0-9a-f]{64}", file.text)
            # of one no copy of the repository's could be examined: a package's is read
            source = (
                "https://raw.githubusercontent.com/rosasalberto/mil/"
                if key == "musk2"
                else (f"{UCI}/static/public/{number}/")
            )
            assert file.addresses[0].startswith(source)
            assert all(address.startswith("http") for address in file.addresses)
        assert (entry.read_as_paper is None) or entry.paper_d != entry.d
    without = {key for key, entry in declared.items() if entry.files[0].sha256 is None}
    assert without == {"census", "localization"}  # of which no copy could be examined


def test_an_unknown_key_is_named(cache: Path) -> None:
    for use in (remote.at_hand, remote.fetch, remote.load, remote.missing):
        with pytest.raises(InvalidSetting, match=r"must be one of liver, .*; got 'nothing'\.$"):
            use("nothing")


# Finding and downloading --------------------------------------------------------------------


def test_a_file_is_downloaded_once_with_progress(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/raw/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/raw/pairs.data"))
    seen: list[tuple[int, int | None]] = []
    assert not remote.at_hand("pairs")
    folder = remote.fetch("pairs", lambda done, total: seen.append((done, total)))
    assert folder == cache / "pairs-folder"
    assert files_in(cache) == ["pairs-folder/sub/pairs.data"]
    assert (folder / "sub/pairs.data").read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert remote.at_hand("pairs")
    assert remote.fetch("pairs") == folder
    assert site.asked == ["/raw/pairs.data"]  # asked once
    assert cache.stat().st_mode & 0o077 == 0


def test_progress_counts_the_bytes_and_does_without_their_number(
    site: Site, cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_CHUNK", 100)
    body = CONTENT * 10
    site.answers["/raw/pairs.data"] = Answer(body, length=-1)
    declare(pairs(f"{site.address}/raw/pairs.data", sha256=sha(body)))
    seen: list[tuple[int, int | None]] = []
    remote.fetch("pairs", lambda done, total: seen.append((done, total)))
    assert {total for _, total in seen} == {None}
    assert len(seen) > 10
    assert abs(seen[-1][0] - len(body)) < 100  # the last piece counts as a whole one


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
    return out.getvalue()


def compressed(content: bytes, widest: int = 12, clear_every: int = 0) -> bytes:
    """Return what the Unix program compress writes (.Z), the table cleared now and then."""
    bits: list[tuple[int, int]] = []  # code, width
    table = {bytes([value]): value for value in range(256)}
    size, width, group = 257, 9, 0

    def put(code: int) -> None:
        nonlocal group
        bits.append((code, width))
        group = (group + 1) % 8

    def fill() -> None:
        while group:
            put(0)

    word = b""
    for position, value in enumerate(content):
        longer = word + bytes([value])
        if longer in table:
            word = longer
            continue
        put(table[word])
        if size < 1 << widest:
            table[longer] = size
            size += 1
            # The reader adds its entry one code later, and widens then.
            if size == (1 << width) + 1 and width < widest:
                fill()
                width += 1
        word = bytes([value])
        if clear_every and position % clear_every == clear_every - 1:
            put(table[word])
            if size == 1 << width and width < widest:  # the reader catches up
                fill()
                width += 1
            put(256)
            fill()
            table = {bytes([code]): code for code in range(256)}
            size, width, word = 257, 9, b""
    if word:
        put(table[word])
    whole = shift = 0
    for code, wide in bits:
        whole |= code << shift
        shift += wide
    return bytes([0x1F, 0x9D, 0x80 | widest]) + whole.to_bytes((shift + 7) // 8, "little")


PACKINGS = {
    "zip": zipped({"readme": b"hello", "sub/pairs.data": CONTENT}),
    "zip with a folder above": zipped({"Set/sub/pairs.data": CONTENT, "other/pairs.data": b"x"}),
    "zip in a zip": zipped({"old.zip": zipped({"sub/pairs.data": CONTENT})}),
    "tar in a zip": zipped({"old.tar.gz": tarred({"x/sub/pairs.data": CONTENT})}),
    "tar": tarred({"sub/pairs.data": CONTENT}),
    "gzip": gzip.compress(CONTENT),
    "gzip in a zip": zipped({"sub/pairs.data.gz": gzip.compress(CONTENT)}),
    "compress": compressed(CONTENT),
    "compress in a zip": zipped({"sub/pairs.data.Z": compressed(CONTENT)}),
    "nothing": CONTENT,
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_the_file_is_found_in_what_is_sent(
    packing: str, site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/files/5976"] = Answer(PACKINGS[packing])
    declare(pairs(f"{site.address}/files/5976"))
    assert remote.load("pairs").rows.shape == (ROWS, WIDTH)
    assert files_in(cache) == ["pairs-folder/sub/pairs.data"]


def test_a_file_that_is_kept_packed_stays_so(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    packed = gzip.compress(CONTENT)
    for path, body in (("/files/1", packed), ("/all.zip", zipped({"p.data.gz": packed}))):
        site.answers[path] = Answer(body)
        declare(pairs(files=(File("p.data.gz", sha(packed), (f"{site.address}{path}",)),)))
        assert (remote.fetch("pairs") / "p.data.gz").read_bytes() == packed
        shutil.rmtree(cache)


def test_an_archive_of_several_files_is_asked_for_once(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    contents = {f"part {j}.txt": f"{j}\n".encode() for j in range(9)}
    site.answers["/all.zip"] = Answer(zipped({"in.zip": zipped(contents)}))
    address = f"{site.address}/all.zip"
    declare(pairs(files=tuple(File(name, sha(x), (address,)) for name, x in contents.items())))
    assert files_in(remote.fetch("pairs")) == sorted(contents)
    assert site.asked == ["/all.zip"]


def test_every_address_is_https() -> None:
    """Two sets have no digest on record: at least nobody on the way can change them."""
    addresses = [
        address for entry in remote._SETS for file in entry.files for address in file.addresses
    ]
    assert addresses
    assert [address for address in addresses if not address.startswith("https://")] == []


def test_addresses_are_tried_in_order(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/2/all.zip"] = Answer(b"PK\x03\x04 broken")
    site.answers["/3/pairs.data"] = Answer(b"another file\n")
    site.answers["/4/all.zip"] = Answer(PACKINGS["zip"])
    names = ("1/all.zip", "2/all.zip", "3/pairs.data", "4/all.zip", "5/never")
    declare(pairs(*(f"{site.address}/{name}" for name in names)))
    remote.fetch("pairs")
    assert site.asked == [f"/{name}" for name in names[:-1]]


def test_a_mirror_replaces_all_addresses(
    site: Site, cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answers["/data/pairs-folder/sub/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/original"))
    monkeypatch.setenv("DPVIZ_DATA", f"{site.address}/data/")
    assert remote.fetch("pairs") == cache / "pairs-folder"
    shutil.rmtree(cache)
    monkeypatch.setenv("DPVIZ_DATA", f"{site.address}/elsewhere")
    assert "answered 404" in refused()
    assert "/original" not in site.asked


def test_a_folder_is_read_where_it_lies(
    tmp_path: Path, site: Site, cache: Path, declare: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    declare(pairs(f"{site.address}/pairs.data"))
    own = tmp_path / "mirror" / "pairs-folder" / "sub" / "pairs.data"
    own.parent.mkdir(parents=True)
    own.write_bytes(CONTENT)
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path / "mirror"))
    assert remote.at_hand("pairs")
    assert remote.fetch("pairs") == tmp_path / "mirror" / "pairs-folder"
    assert remote.load("pairs", download=False).rows.shape == (ROWS, WIDTH)
    assert not cache.exists()
    # Another file in its place is refused, and not replaced by a download.
    own.write_bytes(CONTENT.replace(b"1", b"2"))
    assert "its sha256 differs" in refused()
    assert site.asked == []
    # A folder that lacks the set leaves it to the addresses.
    own.unlink()
    assert not remote.at_hand("pairs")
    site.answers["/pairs.data"] = Answer(CONTENT)
    assert remote.fetch("pairs") == cache / "pairs-folder"
    assert files_in(tmp_path / "mirror") == []


@pytest.mark.parametrize("named", ["nowhere/at/all", "ftp://example.org/data", "file:///data"])
def test_a_mirror_must_be_there(
    named: str, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPVIZ_DATA", named)
    for use in (remote.at_hand, remote.fetch, remote.load):
        with pytest.raises(InvalidSetting, match=r"^DPVIZ_DATA must be a folder that is there or"):
            use("liver")
    assert main(["datasets"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_altered_file_in_the_cache_is_downloaded_again(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    kept = remote.fetch("pairs") / "sub/pairs.data"
    kept.write_bytes(CONTENT[:-10])
    with pytest.raises(NotAvailable, match="is not at hand"):
        remote.load("pairs", download=False)
    assert len(site.asked) == 1
    remote.fetch("pairs")
    assert kept.read_bytes() == CONTENT
    assert len(site.asked) == 2


def test_copies_that_differ_in_line_ends_or_packing_count(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    windows = CONTENT.replace(b"\n", b" \r\n").rstrip()
    other_number = CONTENT.replace(b"59,", b"58,")
    assert text_digest_of(windows, cache) == text_digest_of(CONTENT, cache) == sha(CONTENT)
    assert text_digest_of(gzip.compress(windows), cache) == sha(CONTENT)
    assert text_digest_of(gzip.compress(windows)[:-12], cache) is None
    declare(pairs(f"{site.address}/pairs.data"))
    site.answers["/pairs.data"] = Answer(windows)
    remote.fetch("pairs")
    shutil.rmtree(cache)
    site.answers["/pairs.data"] = Answer(other_number)
    assert "its sha256 differs" in refused()


def text_digest_of(content: bytes, cache: Path) -> str | None:
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "digested"
    path.write_bytes(content)
    found = text_digest(path)
    path.unlink()
    return found


def test_what_a_killed_run_left_is_removed(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    for name, age in (("old", 90_000), ("new", 60)):
        (cache / f".part-{name}").mkdir(parents=True)
        (cache / f".part-{name}" / "part-1").write_bytes(b"x")
        os.utime(cache / f".part-{name}", (time.time() - age,) * 2)
    remote.fetch("pairs")
    assert files_in(cache) == [".part-new/part-1", "pairs-folder/sub/pairs.data"]


# Bad data -----------------------------------------------------------------------------------

FAULTS: dict[str, tuple[str, Answer, str]] = {
    "truncated": ("pairs.data", Answer(CONTENT[:100], length=len(CONTENT)), "ended early"),
    "truncated zip": ("a.zip", Answer(PACKINGS["zip"][:200], length=4_000), "ended early"),
    "another file": ("pairs.data", Answer(b"1,2,3\n"), "is not the file on record"),
    "empty": ("pairs.data", Answer(b""), "is not the file on record"),
    "not found": ("pairs.data", Answer(b"", status=404), "answered 404 Not Found"),
    "server error": ("pairs.data", Answer(b"oops", status=500), "answered 500"),
    "page": ("pairs.data", Answer(b"<!doctype html><p>Log in</p>"), "sent a web page"),
    "half a zip": ("a.zip", Answer(PACKINGS["zip"][:-40]), "the archive from .* is damaged"),
    "flipped bits": (
        "a.zip", Answer(PACKINGS["zip"][:150] + b"\0\1\2" + PACKINGS["zip"][153:]),
        "the archive from .* is damaged",
    ),
    "half a gzip": ("a.gz", Answer(PACKINGS["gzip"][:-20]), "the archive from .* is damaged"),
    "half a tar": ("a.tar.gz", Answer(PACKINGS["tar"][:100]), "the archive from .* is damaged"),
    "no code": ("a.Z", Answer(b"\x1f\x9d\x90\xff\xff\xff\xff"), "the archive from .* is damaged"),
    "another zip": ("a.zip", Answer(zipped({"b": b""})), "the archive from .* does not hold it"),
    "broken inside": (
        "a.zip", Answer(zipped({"in.zip": PACKINGS["zip"][:-40]})), "the archive from .* is damaged"
    ),
    "silent": ("pairs.data", Answer(mute=True), "did not answer in time"),
    "stuck": (
        "pairs.data", Answer(CONTENT[:100], length=len(CONTENT), stall=True),
        "did not answer in time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_sentence_and_leaves_nothing(
    fault: str, site: Site, cache: Path, declare: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(download, "TIMEOUT", (5.0, 0.3))
    name, answer, said = FAULTS[fault]
    site.answers[f"/{name}"] = answer
    declare(pairs(f"{site.address}/{name}"))
    message = refused()
    assert re.search(said, message)
    assert message.startswith("sub/pairs.data of Pairs could not be downloaded (")
    assert message.endswith(
        f"get sub/pairs.data from {PAGE} and put it in {cache / 'pairs-folder'}."
    )
    assert files_in(cache) == []
    assert list(cache.iterdir()) == []
    # The same answer without the fault is taken: what refused it was the fault.
    site.answers[f"/{name}"] = Answer(CONTENT)
    assert files_in(remote.fetch("pairs")) == ["sub/pairs.data"]


def test_an_older_library_that_takes_any_end_for_the_end(
    cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lenient(pooch.HTTPDownloader):
        def __call__(self, url: str, output_file: str, *_: object, **__: object) -> None:
            Path(output_file).write_bytes(CONTENT[:100])
            self.progressbar.total = len(CONTENT)

    monkeypatch.setattr(pooch, "HTTPDownloader", Lenient)
    declare(pairs("http://data.example.org/pairs.data", sha256=None))
    assert "(the download from data.example.org ended early)" in refused()
    assert list(cache.iterdir()) == []


def test_a_host_that_is_not_there(
    site: Site, cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        declare(pairs(f"http://127.0.0.1:{port}/pairs.data"))
        assert f"(127.0.0.1:{port} could not be reached)" in refused()

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    declare(pairs("http://data.example.org/all.zip", "http://data.example.org/pairs.data"))
    # One reason is said once, although two addresses were tried.
    assert refused().count("data.example.org could not be reached") == 1
    assert files_in(cache) == []


def test_every_address_that_failed_is_said(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/b.zip"] = Answer(zipped({"b": b""}))
    declare(pairs(f"{site.address}/a.zip", f"{site.address}/b.zip"))
    message = refused()
    assert "answered 404 Not Found; the archive from" in message


def test_a_file_that_came_whole_is_kept_when_the_next_does_not(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/one"] = Answer(b"1\n")
    files = (
        File("one", sha(b"1\n"), (f"{site.address}/one",)),
        File("two", sha(b"2\n"), (f"{site.address}/two",)),
    )
    declare(pairs(files=files))
    message = refused()
    assert message.startswith("two of Pairs could not be downloaded")
    assert f"get one and two from {PAGE} and put them in" in message
    assert files_in(cache) == ["pairs-folder/one"]
    site.answers["/two"] = Answer(b"2\n")
    remote.fetch("pairs")
    assert site.asked == ["/one", "/two", "/two"]


class FullDisk:
    """A file on a disk that takes a hundred bytes."""

    def __init__(self, file: Any) -> None:
        self._file, self._left = file, 100

    def write(self, data: bytes) -> int:
        written: int = self._file.write(data[: self._left])
        self._left -= written
        if written < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def full(path: str, mode: str) -> FullDisk:
    return FullDisk(open(path, mode))


def test_a_full_disk_during_the_download(
    site: Site, cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data", f"{site.address}/another"))
    monkeypatch.setattr(pooch.downloaders, "open", full, raising=False)
    assert refused() == f"Pairs cannot be kept in {cache}: the disk is full."
    assert list(cache.iterdir()) == []
    assert site.asked == ["/pairs.data"]  # another address would not help


def test_a_full_disk_during_unpacking(
    site: Site, cache: Path, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answers["/a.zip"] = Answer(PACKINGS["zip"])
    declare(pairs(f"{site.address}/a.zip"))
    whole = shutil.copyfileobj
    monkeypatch.setattr(shutil, "copyfileobj", lambda a, b, *c: whole(a, FullDisk(b), *c))
    assert refused() == f"Pairs cannot be kept in {cache}: the disk is full."
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    assert refused() == f"Pairs cannot be kept in {cache}: a file is in the place of a folder."
    cache.unlink()
    cache.mkdir()
    (cache / "pairs-folder").write_text("a file")
    assert "a file is in the place of a folder" in refused()
    assert files_in(cache) == ["pairs-folder"]


def test_an_interrupted_download_leaves_nothing(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))

    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remote.fetch("pairs", interrupt)
    assert list(cache.iterdir()) == []


def test_what_is_absent_is_said_and_how_to_place_it(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for base in (cache, tmp_path):
        if base == tmp_path:
            monkeypatch.setenv("DPVIZ_DATA", str(base))
        for key, entry in remote.sets().items():
            with pytest.raises(NotAvailable) as caught:
                remote.load(key, download=False)
            assert str(caught.value) == remote.missing(key)
            assert f"dpviz fetch {key}" in remote.missing(key)
            assert f"from {entry.page} and put" in remote.missing(key)
            assert remote.missing(key).endswith(f" in {base / entry.folder}.")
            for file in (entry.files[0], entry.files[-1]):
                assert file.name in remote.missing(key)
    assert not cache.exists()


def test_a_file_without_a_digest_on_record_stays_the_one_downloaded_first(
    site: Site,
    cache: Path,
    declare: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data", sha256=None))
    said = "No digest of sub/pairs.data is on record to check it against; that of this copy is "
    assert remote.load("pairs").notes[-1] == f"{said}sha256 {sha(CONTENT)}."
    assert main(["fetch", "pairs"]) == 0
    assert f"pairs: {said}sha256 {sha(CONTENT)}." in capsys.readouterr().out
    path = cache / "pairs-folder" / "sub" / "pairs.data"
    path.write_bytes(CONTENT + b"1,2,3\n")  # changed here: it is downloaded again
    assert remote.fetch("pairs") == cache / "pairs-folder"
    assert path.read_bytes() == CONTENT
    assert site.asked == ["/pairs.data"] * 2
    path.unlink()
    other = CONTENT + b"4,5,6\n"
    site.answers["/pairs.data"] = Answer(other)  # changed there
    message = refused()
    assert "pairs.data of Pairs is not the file that was downloaded first" in message
    assert sha(other) in message
    assert sha(CONTENT) in message
    assert not path.exists()
    shutil.rmtree(cache / "pairs-folder")
    assert remote.fetch("pairs") == cache / "pairs-folder"
    assert path.read_bytes() == other


def test_a_digest_on_record_needs_no_words(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    assert remote.load("pairs").notes == ("Made up.",)
    assert files_in(cache) == ["pairs-folder/sub/pairs.data"]


def test_a_table_of_another_shape_is_refused(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    entry = pairs(f"{site.address}/pairs.data", sha256=None)
    declare(replace(entry, n=61))
    with pytest.raises(InvalidTable, match=r"must have 61 rows and 3 features; .* has 60 and 3: "):
        remote.load("pairs")
    declare(replace(entry, read=lambda folder: Table("", np.eye(60, 4), tuple("abcd"))))
    with pytest.raises(InvalidTable, match=r"must have 60 rows and 3 features; .* has 60 and 4: "):
        remote.load("pairs")
    shutil.rmtree(cache)
    site.answers["/pairs.data"] = Answer(CONTENT + b"1,secret,3\n")
    declare(entry)
    with pytest.raises(InvalidTable, match=r"^pairs\.data must hold lines of 3 numbers; it is"):
        remote.load("pairs")


# Readers, on files made up in the form of the real ones --------------------------------------


def write(folder: Path, name: str, lines: list[str], end: str = "\n") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (end.join(lines) + end).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def read(key: str, folder: Path) -> Table:
    table = remote.sets()[key].read(folder)
    assert table.name == key
    assert table.rows.dtype == np.float64
    assert len(table.columns) == len(set(table.columns)) == table.rows.shape[1]
    assert np.isfinite(table.rows).all()
    return table


KDD_END = "8,8,0.00,0.00,0.00,0.00,1.00,0.00,0.00,9,9,1.00,0.00,0.11,0.00,0.00,0.00,0.00,0.00"


def test_kddcup99(tmp_path: Path) -> None:
    middle = "181,5450," + "0," * 5 + "1," + "0," * 10
    lines = [f"0,{protocol},{service},{flag},{middle}{KDD_END},{kind}" for
             protocol, service, flag, kind in [
                 ("tcp", "http", "SF", "normal."), ("udp", "http", "SF", "smurf."),
                 ("tcp", "ftp", "S0", "back."), ("icmp", "http", "SF", "normal."),
             ]]  # fmt: skip
    write(tmp_path, "kddcup.data_10_percent.gz", lines)
    table = read("kddcup99", tmp_path)
    assert table.rows.shape == (4, 38 + 3 + 2 + 2)
    assert table.columns[:5] == (
        "duration", "protocol_type = icmp", "protocol_type = tcp", "protocol_type = udp",
        "service = ftp",
    )  # fmt: skip
    assert table.label_name == "connection"
    assert table.labels.tolist() == ["normal", "attack", "attack", "normal"]
    assert table.rows[:, 1:4].tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    by_name = dict(zip(table.columns, table.rows[0], strict=True))
    assert (by_name["src_bytes"], by_name["dst_bytes"], by_name["logged_in"]) == (181, 5450, 1)
    assert by_name["dst_host_same_src_port_rate"] == 0.11
    # The text need not be packed.
    plain = tmp_path / "kddcup.data_10_percent.gz"
    plain.write_bytes(gzip.decompress(plain.read_bytes()))
    np.testing.assert_array_equal(read("kddcup99", tmp_path).rows, table.rows)
    # A damaged gzip and a line that is cut short are refused without a cell.
    plain.write_bytes(gzip.compress(plain.read_bytes())[:-9])
    with pytest.raises(InvalidTable, match=r"must hold lines of 42 values; it is damaged"):
        read("kddcup99", tmp_path)
    write(tmp_path, "kddcup.data_10_percent.gz", [*lines, "0,tcp,http"])
    with pytest.raises(InvalidTable, match="must hold lines of 42 values") as caught:
        read("kddcup99", tmp_path)
    assert "http" not in str(caught.value)


CENSUS = (
    "73, Not in universe, 0, 0, High school graduate, 0, Not in universe, Widowed, Not in universe "
    "or children, Not in universe, White, All other, Female, Not in universe, Not in universe, "
    "Not in labor force, 0, 0, 0, Nonfiler, Not in universe, Not in universe, Other Rel 18+ ever "
    "marr not in subfamily, Other relative of householder, 1700.09, ?, ?, ?, Not in universe under "
    "1 year old, ?, 0, Not in universe, United-States, United-States, United-States, Native- Born "
    "in the United States, 0, Not in universe, 2, 0, 95, - 50000."
)


def test_census(tmp_path: Path) -> None:
    second = CENSUS.replace("73,", "40,").replace("White", "Black").replace("- 50000.", "50000+.")
    third = CENSUS.replace(" ?, ?,", " MSA to MSA, ?,").replace("1700.09", "99.5")
    write(tmp_path, "census-income.data", [CENSUS, second, third])
    table = read("census", tmp_path)
    # 7 numbers and 33 nominal fields, of which two have two values here.
    assert table.rows.shape == (3, 7 + 33 + 2)
    assert table.labels.tolist() == ["below 50,000", "50,000 or more", "below 50,000"]
    assert "instance weight" not in table.columns
    assert {"migration msa = ?", "migration msa = MSA to MSA"} <= set(table.columns)
    assert table.rows[:, 0].tolist() == [73, 40, 73]
    as_paper = remote.sets()["census"].read_as_paper
    assert as_paper is not None
    whole = as_paper(tmp_path)
    assert whole.rows.shape[1] == table.rows.shape[1] + 1 + 2
    assert whole.columns[-2:] == ("income = below 50,000", "income = 50,000 or more")
    assert "instance weight" in whole.columns
    assert "is the label" in " ".join(whole.notes) or "are the label" in " ".join(whole.notes)
    np.testing.assert_array_equal(whole.rows[:, -2], [1, 0, 1])


# How many values each nominal field takes, by its place in a line (the set's own documentation).
CENSUS_VALUES = {
    1: 9, 2: 52, 3: 47, 4: 17, 6: 3, 7: 7, 8: 24, 9: 15, 10: 5, 11: 10, 12: 2, 13: 3, 14: 6, 15: 8,
    19: 6, 20: 6, 21: 51, 22: 38, 23: 8, 25: 10, 26: 9, 27: 10, 28: 3, 29: 4, 31: 5, 32: 43, 33: 43,
    34: 43, 35: 5, 36: 3, 37: 3, 38: 3, 40: 2,
}  # fmt: skip


def test_census_has_the_dimension_that_its_documentation_implies(tmp_path: Path) -> None:
    lines = []
    for row in range(max(CENSUS_VALUES.values())):
        cells = CENSUS.split(", ")
        for place, count in CENSUS_VALUES.items():
            cells[place] = f"value {row % count}"
        cells[41] = ("- 50000.", "50000+.")[row % 2]
        lines.append(", ".join(cells))
    write(tmp_path, "census-income.data", lines)
    entry = remote.sets()["census"]
    assert read("census", tmp_path).rows.shape[1] == entry.d == 7 + sum(CENSUS_VALUES.values())
    assert entry.read_as_paper is not None
    assert entry.read_as_paper(tmp_path).rows.shape[1] == entry.paper_d == 513


def test_localization(tmp_path: Path) -> None:
    lines = [
        "A01,010-000-024-033,633790226051280329,27.05.2009 14:03:25:127,4.06,1.89,0.50,walking",
        "A01,020-000-033-111,633790226051820913,27.05.2009 14:03:25:183,4.29,1.78,1.34,walking",
        "E05,010-000-024-033,633790226052091205,27.05.2009 14:03:25:210,4.35,1.82,0.96,lying down",
    ]
    write(tmp_path, "ConfLongDemo_JSI.txt", lines)
    table = read("localization", tmp_path)
    assert table.columns == (
        "sequence = A01", "sequence = E05", "tag = 010-000-024-033", "tag = 020-000-033-111",
        "timestamp", "x", "y", "z",
    )  # fmt: skip
    assert table.rows[2].tolist() == [0, 1, 1, 0, 633790226052091205.0, 4.35, 1.82, 0.96]
    assert table.labels.tolist() == ["walking", "walking", "lying down"]
    as_paper = remote.sets()["localization"].read_as_paper
    assert as_paper is not None
    whole = as_paper(tmp_path)
    assert whole.columns[-2:] == ("activity = lying down", "activity = walking")
    assert "The last 2 features are the label, activity, itself" in whole.notes[0]
    # 25 sequences, 4 tags, a time and 3 coordinates; with 11 activities the paper's 44.
    entry = remote.sets()["localization"]
    assert entry.d == 25 + 4 + 1 + 3
    assert entry.paper_d == entry.d + 11


def test_secom(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(5, 590)).round(4)
    lines = [[f"{value}" for value in row] for row in cells]
    for row, column in ((0, 3), (2, 3), *((row, 7) for row in range(5))):
        lines[row][column] = "NaN"
    write(tmp_path, "secom.data", [" ".join(row) for row in lines])
    marks = [f'{mark} "19/07/2008 11:5{row}:00"' for row, mark in enumerate((-1, 1, -1, -1, 1))]
    write(tmp_path, "secom_labels.data", marks)
    table = read("secom", tmp_path)
    assert table.labels.tolist() == ["pass", "fail", "pass", "pass", "fail"]
    filled = np.median(cells[[1, 3, 4], 3])
    assert table.rows[:, 3].tolist() == [filled, cells[1, 3], filled, cells[3, 3], cells[4, 3]]
    assert table.rows[:, 7].tolist() == [0] * 5
    assert table.notes == ("7 cells in 2 of 590 columns were missing.",)
    assert table.assumed_public
    write(tmp_path, "secom_labels.data", marks[:-1])
    with pytest.raises(InvalidTable, match="must hold a line for each of the 5 rows"):
        read("secom", tmp_path)


def test_covertype(tmp_path: Path) -> None:
    lines = [",".join(str(j + 10 * row) for j in range(54)) + f",{row + 1}" for row in range(3)]
    write(tmp_path, "covtype.data.gz", lines)
    table = read("covertype", tmp_path)
    assert table.rows.tolist() == [[j + 10 * row for j in range(54)] for row in range(3)]
    assert table.labels.tolist() == [1, 2, 3]
    assert (table.columns[0], table.columns[10]) == ("Elevation", "Wilderness_Area_1")
    assert table.columns[-1] == "Soil_Type_40"


def test_insurance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, rest = rng.integers(1, 4, (30, 86)), rng.integers(2, 5, (20, 85))
    train[:, 85] %= 2
    tabbed = ["\t".join(map(str, row)) for row in train]
    write(tmp_path, "ticdata2000.txt", tabbed, end="\r\n")
    write(tmp_path, "ticeval2000.txt", ["\t".join(map(str, row)) for row in rest])
    write(tmp_path, "tictgts2000.txt", [str(row % 2) for row in range(20)])
    table = read("insurance", tmp_path)
    assert table.rows.shape == (50, 80 + 5 * 4)  # codes 1 to 4 are in use
    assert table.columns[:5] == (
        "MOSTYPE = 1", "MOSTYPE = 2", "MOSTYPE = 3", "MOSTYPE = 4", "MAANTHUI",
    )  # fmt: skip
    assert (table.columns[-1], table.label_name) == ("ABYSTAND", "CARAVAN")
    assert table.labels.tolist() == [*train[:, 85], *(row % 2 for row in range(20))]
    np.testing.assert_array_equal(table.rows[:, 0], np.r_[train[:, 0], rest[:, 0]] == 1)
    np.testing.assert_array_equal(table.rows[:, -1], np.r_[train[:, 84], rest[:, 84]])
    write(tmp_path, "tictgts2000.txt", ["0"] * 19)
    with pytest.raises(InvalidTable, match="must hold a line for each of the 20 rows"):
        read("insurance", tmp_path)


def test_adult(tmp_path: Path) -> None:
    first = (
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
        "Male, 2174, 0, 40, United-States, <=50K"
    )
    second = first.replace("39,", "50,").replace("White", "Black").replace("<=", ">")
    unknown = first.replace("State-gov", "?")
    write(tmp_path, "adult.data", [first, unknown, second, ""])
    table = read("adult", tmp_path)
    assert table.rows.shape == (2, 6 + 8 + 1)  # one field has two values in the rows that stay
    assert "workclass = ?" not in table.columns
    assert table.labels.tolist() == ["<=50K", ">50K"]
    assert table.notes == ("1 of 3 rows with a question mark were left out.",)
    assert table.rows[:, 0].tolist() == [39, 50]


def test_musk(tmp_path: Path) -> None:
    numbers = ",".join(str(j) for j in range(166))
    write(tmp_path, "clean1.data", [f"MUSK-1,1_1+1,{numbers},1.", f"NON-MUSK-2,2_1+1,{numbers},0."])
    table = read("musk", tmp_path)
    assert table.rows.tolist() == [list(range(166))] * 2
    assert table.labels.tolist() == ["musk", "non-musk"]


def test_the_second_version_of_musk(tmp_path: Path) -> None:
    numbers = ",".join(str(j) for j in range(166))
    write(tmp_path, "musk2.csv", [f"1,7,{numbers}", f"0,8,{numbers}"])
    table = read("musk2", tmp_path)
    assert table.rows.tolist() == [list(range(166))] * 2
    assert table.labels.tolist() == ["musk", "non-musk"]


def test_semeion(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 2, (10, 256))
    lines = [
        " ".join(
            [*(f"{value}.0000" for value in row), *("1" if j == i else "0" for j in range(10))]
        )
        for i, row in enumerate(pixels)
    ]
    write(tmp_path, "semeion.data", lines, end=" \r\n")
    table = read("semeion", tmp_path)
    np.testing.assert_array_equal(table.rows, pixels)
    assert table.labels.tolist() == list(range(10))
    assert table.bounds is not None
    write(tmp_path, "semeion.data", [lines[0].replace(" 0 0", " 1 0", 1), *lines[1:]])
    with pytest.raises(InvalidTable, match="one digit for each row"):
        read("semeion", tmp_path)


def test_waveform(tmp_path: Path) -> None:
    row = ",".join(f"{j}.50" for j in range(21))
    write(tmp_path, "waveform.data", [f"{row},0", f"{row},2".replace("20.50", "20.5\t0")])
    table = read("waveform", tmp_path)
    assert table.rows.tolist() == [[j + 0.5 for j in range(21)]] * 2
    assert table.labels.tolist() == [0, 2]
    assert table.notes[0].startswith("Line 2 of waveform.data has a tab within a number")
    write(tmp_path, "waveform.data", [f"{row},0", f"{row},2".replace("20.50", "2\t0x")])
    with pytest.raises(InvalidTable, match="must hold lines of 22 numbers"):
        read("waveform", tmp_path)


def test_liver(tmp_path: Path) -> None:
    write(tmp_path, "bupa.data", ["85,92,45,27,31,0.0,1", "85,64,59,32,23,0.5,2"])
    table = read("liver", tmp_path)
    assert table.rows.tolist() == [[85, 92, 45, 27, 31, 0.0], [85, 64, 59, 32, 23, 0.5]]
    assert (table.label_name, table.labels.tolist()) == ("selector", [1, 2])


def test_movementaal(tmp_path: Path) -> None:
    for number in range(1, 315):
        write(
            tmp_path,
            f"dataset/MovementAAL_RSS_{number}.csv",
            ["#RSS_anchor1, RSS_anchor2, RSS_anchor3, RSS_anchor4", f"{number},0.5,-1,1"],
        )
    table = read("movementaal", tmp_path)
    assert table.columns == ("ANC0", "ANC1", "ANC2", "ANC3")
    assert table.rows[:, 0].tolist() == list(range(1, 315))  # by number: 2 before 10
    assert table.rows[0, 1:].tolist() == [0.5, -1, 1]
    write(tmp_path, "dataset/MovementAAL_RSS_7.csv", ["#RSS_anchor1"])
    with pytest.raises(InvalidTable, match=r"MovementAAL_RSS_7\.csv must hold lines of 4 numbers"):
        read("movementaal", tmp_path)


CTG = ["FileName", "LB", *(f"f{j}" for j in range(1, 21)), "CLASS", "NSP"]


def ctg(sheet: str = "Data", names: list[str] = CTG) -> bytes:
    """Return a workbook laid out as CTG.xls: two recordings between numbers, a gap and sums."""
    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink) as book:
        book.add_worksheet("Description")
        page = book.add_worksheet(sheet)
        page.write_row(0, 1, range(len(names) - 1))
        page.write_row(1, 0, names)
        page.write_row(2, 0, ["a.txt", *range(120, 141), 9, 2])
        page.write_row(3, 0, ["b.txt", *(j + 0.5 for j in range(21)), 6, 1])
        page.write_row(5, 1, range(21))
    return sink.getvalue()


def test_cardiotocography(tmp_path: Path) -> None:
    (tmp_path / "CTG.xls").write_bytes(ctg())
    table = read("cardiotocography", tmp_path)
    assert table.columns == tuple(CTG[1:22])
    assert table.rows.tolist() == [[*range(120, 141)], [j + 0.5 for j in range(21)]]
    assert (table.label_name, table.labels.tolist()) == ("NSP", ["suspect", "normal"])


ANOTHER = "CTG.xls must be the workbook of the UCI repository; it is another."


def test_a_workbook_that_is_none(tmp_path: Path) -> None:
    none = (b"1,2,3\n", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), ctg()[:-600])
    for content in (*none, ctg("Raw"), ctg(names=["a", "b"])):
        (tmp_path / "CTG.xls").write_bytes(content)
        with pytest.raises(InvalidTable) as refused:
            read("cardiotocography", tmp_path)
        assert str(refused.value) == ANOTHER


def test_a_workbook_whose_reader_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever it has said until then is no answer."""
    (tmp_path / "CTG.xls").write_bytes(ctg())
    for last in ("os.abort()", "raise SystemExit(1)", "print('{}')", "pass"):
        (tmp_path / "reader.py").write_text(f"import os\nprint('[[], 1]', flush=True)\n{last}\n")
        monkeypatch.setattr(workbook, "__file__", str(tmp_path / "reader.py"))
        with pytest.raises(InvalidTable) as refused:
            read("cardiotocography", tmp_path)
        assert str(refused.value) == ANOTHER
    assert capfd.readouterr() == ("", "")


def test_a_workbook_without_its_reader_is_not_called_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CTG.xls").write_bytes(ctg())
    with monkeypatch.context() as absent:
        absent.setattr("dpviz.core.platform.find_spec", lambda name: None)
        with pytest.raises(NotAvailable, match=r"^A workbook needs python-calamine, which is not"):
            read("cardiotocography", tmp_path)
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(NotAvailable) as refused:
        read("cardiotocography", tmp_path)
    assert str(refused.value) == NO_WORKBOOKS


# The .Z format ------------------------------------------------------------------------------

# What ncompress 4.2 wrote with -b 12 for the bytes of `sample`.
PROGRAM = bytes.fromhex(
    "1f9d8c2150f42051e5ca8a24386c04d152a4c7102c3d60c80812a24992292faa30918222090f1e4a545079926506"
    "9627533aeac871a484932451543c217224cb8e152a6c40e1518387141c2c5efce8d24449151959a2607911a58891"
    "2a3648745931840589143c42408122c2c78a13308ec030a1a24717274eb6e430d105c50f1358b8c07802c4871214"
    "5060a6601264c8941a2442b4300223c58b2129b26869a104478d1f5782e0e811a5c6091436a400d941840b111d3f"
    "a2d030514286131d347a4cd1016306911354a488e07122e0c08207132e6cf830e2c48a17336eecf831e4c8922753"
    "2659d9f265cc99356fe6dcd9f367d0a1458f265ddaf469d4a955af66dddaf56bd8b165cfa65ddbf66ddcb975efe6"
    "8db2b7efdfc0830b1f4ebcb8f1e3c893557659669b75f65968a395765a6aabb5f65a6cb3d52610410621a410430e"
    "412411451661a411471e8124124926a1a4124b2ec124134d36e1a4134f3e012514514621a514534e412515555661"
    "a515575e8125165966a1a5165b6ec125175d76e1a5175f7e012618618621a618638e412619659661a619679e8126"
    "1a69a6a1a61a6baec1261b6db65198db85bc69f85b87c28158dc88c899b81c8acead189d8bd4c5781d8ddaddd89d"
    "8ee0f5381e90e60d999e91ec25f91e93f23d699f94f955c91f96ff6d1905"
)


def sample() -> bytes:
    return bytes((7 * i * i + i // 3) % 61 + 33 for i in range(700))


def uncompressed(packed: bytes, folder: Path) -> bytes:
    (folder / "packed").write_bytes(packed)
    unpack_file(folder / "packed", folder / "plain")
    return (folder / "plain").read_bytes()


def test_compress_as_the_program_writes_it(tmp_path: Path) -> None:
    assert uncompressed(PROGRAM, tmp_path) == sample()
    assert uncompressed(compressed(b""), tmp_path) == b""


@pytest.mark.parametrize("widest", [10, 12, 16])
@pytest.mark.parametrize("clear_every", [0, 777])
def test_compress_with_wide_codes_and_clearings(
    widest: int, clear_every: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    content = b"ab" * 500 + bytes(rng.integers(0, 256, 20_000, dtype=np.uint8).tolist())
    packed = compressed(content, widest, clear_every)
    assert uncompressed(packed, tmp_path) == content
    if shutil.which("gzip"):  # a reader by other people agrees that this is the format
        other = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)
        assert other.stdout == content


@pytest.mark.parametrize(
    "packed", [b"\x1f\x9d", b"\x1f\x9d\x88abc", PROGRAM[:3] + b"\xff" * 9, PROGRAM[:4]]
)
def test_compress_that_is_none(packed: bytes, tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        uncompressed(packed, tmp_path)


@given(st.binary(max_size=300))
def test_any_bytes_behind_the_magic_are_unpacked_or_damaged(rest: bytes) -> None:
    with TemporaryDirectory() as folder, suppress(Damaged):
        uncompressed(b"\x1f\x9d" + rest, Path(folder))


# By name ------------------------------------------------------------------------------------


@pytest.fixture
def known(site: Site, declare: Callable[..., None]) -> Site:
    """Make the made-up set known under its key, and another that is nowhere."""
    site.answers["/pairs.data"] = Answer(CONTENT)
    nowhere = pairs(f"{site.address}/none", key="gone", label="Gone", folder="gone")
    declare(nowhere, pairs(f"{site.address}/pairs.data"))
    return site


def test_load_takes_the_key_of_a_remote_set(
    known: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert datasets.is_remote("pairs")
    table = datasets.load("pairs")
    assert table.rows.shape == (ROWS, WIDTH)
    assert table.notes == ("Made up.",)
    assert datasets.load("pairs", datasets.ReadOptions(label="b")).columns == ("a", "c")
    with pytest.raises(InvalidTable, match="label must be a column of pairs"):
        datasets.load("pairs", datasets.ReadOptions(label="d"))
    with pytest.raises(NotAvailable):
        datasets.load("gone")
    # A file of that name comes first, and a folder does not.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    assert datasets.is_remote("gone")
    (tmp_path / "pairs").write_text("p,q\n1,2\n3,4\n5,7\n")
    assert datasets.load("pairs").columns == ("p", "q")


def test_built_in_tables_come_first(cache: Path) -> None:
    assert not datasets.is_remote("waveform")
    assert datasets.load("waveform").notes == ()
    assert not cache.exists()


def test_the_command_that_fetches(
    known: Site, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch", "--list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in shown] == [
        ["key", "at_hand"], ["gone", "no"], ["pairs", "no"],
    ]  # fmt: skip
    assert not cache.exists()
    # One that cannot be got does not keep the other away.
    assert main(["fetch", "all"]) == 2
    captured = capsys.readouterr()
    assert captured.out == f"pairs: {cache / 'pairs-folder'}\n"
    assert captured.err.startswith("dpviz: sub/pairs.data of Gone could not be downloaded (")
    assert captured.err.count("\n") == 1
    assert main(["fetch", "pairs"]) == 0
    assert capsys.readouterr().err == ""
    for words, named in ((["nothing"], "nothing"), ([], "none")):
        assert main(["fetch", *words]) == 2
        assert capsys.readouterr().err == (
            f"dpviz: KEY must be all or some of gone, pairs; got '{named}'.\n"
        )


def test_a_person_sees_a_bar(
    known: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["fetch", "pairs"]) == 0
    assert f"pairs [{'#' * 20}] 0.0 of 0.0 MB" in capsys.readouterr().err


def test_compare_takes_a_remote_set(known: Site, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mechanism", "gaussian", "--trials", "2", "--format", "json")
    assert main(["compare", "pairs", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dataset"]["name"], found["dataset"]["n"]) == ("pairs", ROWS)
    assert main(["compare", "gone", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_the_listing_says_what_is_at_hand(known: Site, capsys: pytest.CaptureFixture[str]) -> None:
    remote.fetch("pairs")
    assert main(["datasets", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    kinds = {(row["key"], row["origin"]): row["at_hand"] for row in rows}
    assert kinds["iris", "built-in"] is True
    assert kinds["pairs", "remote"] is True
    assert kinds["gone", "remote"] is False
    built_in = {"key", "label", "description", "n", "d", "labels", "source", "licence"}
    assert all(built_in | {"origin", "at_hand"} <= set(row) for row in rows)


def test_every_error_is_for_the_user(cache: Path) -> None:
    assert issubclass(NotAvailable, DpvizError)
