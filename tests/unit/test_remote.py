"""Remote data sets: found, downloaded, verified and read, with every fault on the way.

A server on localhost sends small synthetic files, so that the real code downloads them.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import re
import shutil
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

import pooch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.cli import main
from dpviz.core.errors import NotAvailable
from dpviz.datasets import remote
from dpviz.datasets.remote import download
from dpviz.datasets.remote.declared import File, Remote
from dpviz.datasets.remote.download import Damaged, unpack_file
from dpviz.datasets.remote.readers import read_numbers
from dpviz.datasets.table import Table
from tests.serving import Answer, Site, serve

pytestmark = pytest.mark.long

ROWS, WIDTH = 60, 3
CONTENT = "".join(f"{i},{i * i % 7},{i % 5}.5\n" for i in range(ROWS)).encode()
PAGE = "https://example.org/pairs"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_pairs(folder: Path) -> Table:
    return Table("pairs", read_numbers(folder / "sub/pairs.data", ","), ("a", "b", "c"))


def pairs(*addresses: str, sha256: str | None = sha(CONTENT), **changes: Any) -> Remote:
    """Return the declaration of a synthetic data set of one file."""
    remote_set = Remote(
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
    return replace(remote_set, **changes)


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
    with serve(Site()) as server:
        yield server


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that declares data sets instead of the real ones."""
    return lambda *entries: monkeypatch.setattr(remote, "_SETS", entries)


def files_in(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()
    )


def refused(key: str = "pairs") -> str:
    """Return the sentence with which a data set is refused."""
    with pytest.raises(NotAvailable) as caught:
        remote.fetch(key)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert re.search(r"\.\s+[A-Z]", message) is None, "one sentence"
    return message


# Finding and downloading --------------------------------------------------------------------


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
    """Return the output of the Unix program compress (.Z), which clears its table at times."""
    bits: list[tuple[int, int]] = []  # Each pair is a code and its width in bits.
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
            # A reader adds this entry one code later, and only then widens its codes.
            if size == (1 << width) + 1 and width < widest:
                fill()
                width += 1
        word = bytes([value])
        if clear_every and position % clear_every == clear_every - 1:
            put(table[word])
            if size == 1 << width and width < widest:  # The reader's table has caught up.
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


def test_every_address_is_https() -> None:
    """Every address is HTTPS, which protects the two data sets without a recorded digest."""
    addresses = [
        address for entry in remote._SETS for file in entry.files for address in file.addresses
    ]
    assert addresses
    assert [address for address in addresses if not address.startswith("https://")] == []


def test_an_altered_file_in_the_cache_is_downloaded_again(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    path = remote.fetch("pairs") / "sub/pairs.data"
    path.write_bytes(CONTENT[:-10])
    with pytest.raises(NotAvailable, match="is not at hand"):
        remote.load("pairs", download=False)
    assert len(site.asked) == 1
    remote.fetch("pairs")
    assert path.read_bytes() == CONTENT
    assert len(site.asked) == 2


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
    "another file": ("pairs.data", Answer(b"1,2,3\n"), "is not the expected file"),
    "empty": ("pairs.data", Answer(b""), "is not the expected file"),
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
    "another zip": ("a.zip", Answer(zipped({"b": b""})), "the archive from .* does not contain"),
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
    name, answer, words = FAULTS[fault]
    site.answers[f"/{name}"] = answer
    declare(pairs(f"{site.address}/{name}"))
    message = refused()
    assert re.search(words, message)
    assert message.startswith("sub/pairs.data of Pairs could not be downloaded (")
    assert message.endswith(
        f"get sub/pairs.data from {PAGE} and put it in {cache / 'pairs-folder'}."
    )
    assert files_in(cache) == []
    assert list(cache.iterdir()) == []
    # Control: without the fault, the same server response is accepted.
    site.answers[f"/{name}"] = Answer(CONTENT)
    assert files_in(remote.fetch("pairs")) == ["sub/pairs.data"]


class FullDisk:
    """A file on a disk that takes only a hundred bytes."""

    def __init__(self, file: Any) -> None:
        self._file, self._left = file, 100

    def write(self, data: bytes) -> int:
        count: int = self._file.write(data[: self._left])
        self._left -= count
        if count < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        return count

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
    assert site.asked == ["/pairs.data"]  # After an error, no other address is tried.


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


def test_a_digest_on_record_needs_no_words(
    site: Site, cache: Path, declare: Callable[..., None]
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data"))
    assert remote.load("pairs").notes == ("Made up.",)
    assert files_in(cache) == ["pairs-folder/sub/pairs.data"]


def test_a_file_without_a_digest_on_record_stays_the_one_downloaded_first(
    site: Site,
    cache: Path,
    declare: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.answers["/pairs.data"] = Answer(CONTENT)
    declare(pairs(f"{site.address}/pairs.data", sha256=None))
    words = "No digest of sub/pairs.data is on record to check it against; that of this copy is "
    assert remote.load("pairs").notes[-1] == f"{words}sha256 {sha(CONTENT)}."
    assert main(["fetch", "pairs"]) == 0
    assert f"pairs: {words}sha256 {sha(CONTENT)}." in capsys.readouterr().out
    path = cache / "pairs-folder" / "sub" / "pairs.data"
    path.write_bytes(CONTENT + b"1,2,3\n")  # A changed local file is downloaded again.
    assert remote.fetch("pairs") == cache / "pairs-folder"
    assert path.read_bytes() == CONTENT
    assert site.asked == ["/pairs.data"] * 2
    path.unlink()
    other = CONTENT + b"4,5,6\n"
    site.answers["/pairs.data"] = Answer(other)  # The file changes on the server.
    message = refused()
    assert "pairs.data of Pairs differs from the first download" in message
    assert sha(other) in message
    assert sha(CONTENT) in message
    assert not path.exists()
    shutil.rmtree(cache / "pairs-folder")
    assert remote.fetch("pairs") == cache / "pairs-folder"
    assert path.read_bytes() == other


# The .Z format ------------------------------------------------------------------------------

# This is the output of ncompress 4.2 with -b 12 for the bytes of `sample`.
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
