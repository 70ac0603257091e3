"""Test whether a server keeps the promises of SECURITY.md.

``python -m tools.promises http://127.0.0.1:8501`` prints one line for each sentence of SECURITY.md:
``pass`` or ``FAIL``, the sentence, and the observation. A line starts with ``told`` if the sentence
is not about a server, and with ``skip``, and the missing part, if this server or place cannot show
it. The exit status is 1 if any sentence failed. ``--pid`` (of the server's process) also watches
its sockets and its memory, and ``--log`` reads its log. ``--public`` states that the server is a
public demo, whose uploads must be off. The tool acts like visitors, uploads synthetic tables and
leaves; a server in use becomes slower for half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from benchmarks.load import Visitor, memory, table
from tests.hostile import files, killing_workbook, link, problems_of_message

SECURITY = Path(__file__).resolve().parents[1] / "SECURITY.md"
VIEW = "v=1&table=iris&trials=2&m=gaussian"
HEALTH, METRICS, UPLOADS = "/_stcore/health", "/_stcore/metrics", "/_stcore/upload_file"
FOREIGN = "evil.example"

PATHS = ("/etc/passwd", "../../../../../../etc/passwd", "file:///etc/passwd", "\\\\evil\\share\\a")
MARKUP = "<img src=x onerror=alert(1)>"
_INSIDE = re.compile(r"root:[^:\s]*:0:|Traceback \(most recent call last\)")
_MEGABYTES = 100
_NOISY, _MOVES = 6, 3
_ANSWERED = 30.0  # A quiet visitor may wait so many seconds beside noisy ones.


# One request ---------------------------------------------------------------------------------


def answer(
    url: str, path: str = "/", *, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers of an answer; header names have underscores in this tool."""
    place = urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    with closing(kind(place.hostname or "", place.port, timeout=20)) as line:
        line.putrequest(method, place.path.rstrip("/") + path, skip_host="Host" in headers)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders()
        response = line.getresponse()
        return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}


async def shaken(url: str, **headers: str) -> int:
    """Return the status of a websocket handshake: 101 if the connection is accepted."""
    place = urlsplit(url)
    secure = place.scheme == "https"
    host = headers.pop("Host", None) or place.netloc
    # The Host header gives another name, although the connection goes to this machine.
    address = f"ws{'s' * secure}://{host}{place.path.rstrip('/')}/_stcore/stream"
    there: dict[str, Any] = {"host": place.hostname, "port": place.port or (443 if secure else 80)}
    if secure:
        there |= {"ssl": ssl.create_default_context(), "server_hostname": place.hostname}
    try:
        async with connect(address, additional_headers=headers, **there):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


def put(url: str, session: str, length: int | None, cookie: str) -> socket.socket:
    """Begin to send a file, without any content yet."""
    place = urlsplit(url)
    secure = place.scheme == "https"
    line = socket.create_connection((place.hostname, place.port or (443 if secure else 80)), 20)
    if secure:
        line = ssl.create_default_context().wrap_socket(line, server_hostname=place.hostname)
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    line.sendall(
        f"PUT {place.path.rstrip('/')}{UPLOADS}/{session}/1 HTTP/1.1\r\nHost: {place.netloc}\r\n"
        "Content-Type: multipart/form-data; boundary=edge\r\n"
        f"Cookie: {cookie}\r\nX-Xsrftoken: {cookie.partition('=')[2]}\r\n{size}\r\n\r\n".encode()
    )
    return line


def status_of(line: socket.socket) -> int:
    """Return the status that a connection receives, or 0 if no status comes."""
    try:
        return int(line.recv(4096).split()[1])
    except (TimeoutError, IndexError):
        return 0


# Visitors ------------------------------------------------------------------------------------


@dataclass
class Reader(Visitor):
    """A visitor who reads every message.

    Attributes
    ----------
    errors : list of str
        Exceptions and alerts, as displayed on pages.
    wrong : list of str
        Content that pages must not show, or only as text.
    all : list of str
        Every element of the pages, as text.
    """

    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    all: list[str] = field(default_factory=list)

    @property
    def query(self) -> str:
        """The part of the address after the question mark."""
        return self._query

    async def types(self, texts: Sequence[str]) -> int:
        """Put hostile texts into every text field, another text per field; return the number."""
        fields = [name for name in self._widgets if name not in ("board", "upload")]
        for turn in range(len(texts)):
            for place, name in enumerate(fields):
                self._values[name] = ("string_value", texts[(place + turn) % len(texts)])
            await self._run()
        for name in fields:
            del self._values[name]
        return len(fields) * len(texts)

    def _drawn(self, element: Any) -> None:
        super()._drawn(element)
        # Search the raw message: searched texts are ASCII, and formatting messages takes seconds.
        kind, text = element.WhichOneof("type"), element.SerializeToString().decode("latin-1")
        self.all.append(text)
        if kind == "exception":
            self.errors.append(element.exception.message)
            self.wrong.append(f"an exception: {element.exception.message[:80]}")
        if kind == "alert":
            self.errors.append(element.alert.body)
        if inside := _INSIDE.search(text):
            self.wrong.append(f"what is inside the server: {inside[0]}")
        if kind == "markdown" and element.markdown.allow_html and MARKUP in element.markdown.body:
            self.wrong.append("a link's text as markup")


@contextmanager
def watching(pid: int | None) -> Iterator[set[str]]:
    """Collect a process's connections while the block runs, except to this machine and visitors."""
    addresses: set[str] = set()
    inodes: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while pid is not None and not over.wait(0.02):
            addresses.update(outgoing(pid, inodes))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield addresses
    finally:
        over.set()
        thread.join()


def outgoing(pid: int, inodes: set[str] | None = None) -> set[str]:
    """Return the addresses outside of this machine to which a process has connected.

    The function works only on Linux, because it reads /proc. Visitors' connections end at a port on
    which the process listens.

    Parameters
    ----------
    pid : int
    inodes : set of str, optional
        Sockets of a kind known from an earlier look: connected or listening TCP, and local sockets.
        If there are no other sockets, the system's tables are not read, which would take 7 ms. New
        sockets are added.
    """
    inodes = set() if inodes is None else inodes
    own = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:  # The socket was closed in the meantime.
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    if own <= inodes:
        return set()
    lines = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        rows = [words for words in _rows(pid, kind) if words[9] in own]
        lines += rows
        if kind.startswith("tcp"):
            inodes.update(words[9] for words in rows)
    inodes.update(own & {words[6] for words in _rows(pid, "unix")})
    listening = {words[1].rpartition(":")[2] for words in lines if words[3] == "0A"}
    addresses = set()
    for words in lines:
        remote, _, port = words[2].rpartition(":")
        here = words[1].rpartition(":")[2]
        if int(port, 16) and here not in listening and not _loopback(remote):
            addresses.add(f"{_address(remote)}:{int(port, 16)}")
    return addresses


def _rows(pid: int, kind: str) -> list[list[str]]:
    """Return the lines of one of the system's socket tables."""
    path = Path(f"/proc/{pid}/net/{kind}")
    if not path.exists():
        return []
    return [line.split() for line in path.read_text(errors="replace").splitlines()[1:]]


def _address(code: str) -> str:
    """Return an address of /proc/net, whose words are in the machine's byte order."""
    words = [int(code[at : at + 8], 16) for at in range(0, len(code), 8)]
    kind = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(kind, struct.pack(f"={len(words)}I", *words))


def _loopback(code: str) -> bool:
    address = _address(code).removeprefix("::ffff:")
    return address == "::1" or address.startswith("127.")


# The checks -------------------------------------------------------------------------------


@dataclass
class Seen:
    """Result of the test of a sentence.

    Attributes
    ----------
    kept : bool or None
        Whether the sentence holds; None if it could not be tested.
    how : str
        The observation, or the missing part that the test needs.
    """

    kept: bool | None
    how: str


@dataclass
class Asking:
    """A server, and known facts about it.

    Attributes
    ----------
    url : str
    pid : int or None
    log : Path or None
    public : bool
    patience : float
        Seconds after which nothing may be left of departed visitors.
    outside : set of str
        Addresses to which the server connected.
    """

    url: str
    pid: int | None = None
    log: Path | None = None
    public: bool = False
    patience: float = 180.0
    outside: set[str] = field(default_factory=set)
    _takes: bool | None = None

    async def takes_files(self) -> bool:
        """Return whether uploads are on, from the answer to a small file."""
        if self._takes is None:
            visitor = Reader(1, self.url)
            await visitor.visit(VIEW)
            there = f"{UPLOADS}/{visitor.session}/small"
            try:
                await asyncio.to_thread(visitor.put, there, "small.csv", b"a,b\n1,2\n")
                self._takes = True
            except OSError:
                self._takes = False
            await visitor.leave()
        return self._takes


async def outside(about: Asking) -> Seen:
    """Check the policy of a page, and the server's connections."""
    policy = _policy(answer(about.url)[2])
    if not set(policy.get("connect-src", "*").split()) <= {"'self'"}:
        return Seen(False, "a page may speak to other hosts")
    if about.pid is None:
        return Seen(None, "pages may ask this server only; its own sockets need --pid")
    visitor = Reader(1, about.url)
    await visitor.visit(VIEW)
    await visitor.leave()
    for origin in (f"https://{FOREIGN}", "null"):  # A browser might send such an origin.
        answer(about.url, "/_stcore/host-config", Origin=origin)
    if about.outside:
        return Seen(False, f"it connected to {', '.join(sorted(about.outside))}")
    return Seen(True, "pages may ask this server only, and it connected to nobody")


async def names(about: Asking) -> Seen:
    """Connect under a foreign host name, and from a foreign site."""
    own = answer(about.url)
    if own[0] != 200:
        return Seen(False, f"its own name is answered with {own[0]}")
    codes = {
        "a page under a foreign name": answer(about.url, Host=FOREIGN)[0],
        "a page asked for by another site": answer(about.url, Origin=f"https://{FOREIGN}")[0],
        "a websocket under a foreign name": await shaken(about.url, Host=FOREIGN),
        "a websocket of another site": await shaken(about.url, Origin=f"https://{FOREIGN}"),
    }
    wrong = [f"{what} is answered with {status}" for what, status in codes.items() if status < 400]
    if not set(_policy(own[2]).get("frame-ancestors", "*").split()) <= {"'self'", "'none'"}:
        wrong.append("another site may frame it")
    return Seen(not wrong, "; ".join(wrong) or "foreign names, origins and frames are refused")


async def health(about: Asking) -> Seen:
    """Request the health check under any name, and other pages."""
    status, body, _ = answer(about.url, HEALTH, Host="10.1.2.3:8501")
    if (status, body) != (200, b"ok"):
        return Seen(False, f"the health check says {status}")
    others = ("/", METRICS, "/_stcore/host-config", f"{UPLOADS}/a/b")
    open_to_all = [path for path in others if answer(about.url, path, Host=FOREIGN)[0] < 400]
    if open_to_all:
        return Seen(False, f"{', '.join(open_to_all)} is answered under any name")
    if about.public and answer(about.url, METRICS)[0] < 400:
        return Seen(False, "a public server shows its metrics")
    return Seen(True, f"it says ok, {len(others)} other addresses do not answer a foreign name")


async def headers(about: Asking) -> Seen:
    """Check the policy on pages, errors and refusals."""
    asking: list[tuple[str, dict[str, str]]] = [
        ("/", {}), ("/tradeoffs", {}), (HEALTH, {}), ("/_stcore/host-config", {}),
        ("/static/none.js", {}), ("/", {"Host": FOREIGN}), ("/", {"Origin": f"https://{FOREIGN}"}),
    ]  # fmt: skip
    wrong = []
    for path, more in asking:
        head = answer(about.url, path, **more)[2]
        sound = "default-src" in _policy(head) and head.get("x-content-type-options") == "nosniff"
        if not sound:
            wrong.append(f"{path} {more or ''}".strip())
    if wrong:
        return Seen(False, f"none with {', '.join(wrong)}")
    return Seen(True, f"with each of {len(asking)}, refusals too")


def _policy(fields: dict[str, str]) -> dict[str, str]:
    """Return the directives of a content policy."""
    parts = fields.get("content-security-policy", "").split(";")
    return {name: rest for name, _, rest in (part.strip().partition(" ") for part in parts)}


async def hostile(about: Asking) -> Seen:
    """Send paths, markup and nonsense in links, text fields and files."""
    wrong: list[str] = []
    keys = ["table", "epsilon", "delta", "k", "m", "row_bound", "bounds", "label", "center", "seed"]
    queries = [{"v": "1", "table": path, "bounds": path, "label": MARKUP} for path in PATHS]
    queries += [link(7, number, keys) for number in range(6)]
    few = {"trials": "2", "m": "gaussian"}  # Only the sent texts count, not a page's links.
    for query in queries:
        visitor = Reader(1, about.url)
        await visitor.visit(urlencode(few | query))
        wrong += visitor.wrong
        await visitor.leave()
    visitor = Reader(1, about.url)
    await visitor.visit(VIEW)
    fields = await visitor.types((*PATHS, MARKUP))
    wrong += visitor.wrong if fields else ["no text field was found"]
    await visitor.leave()
    count = 0
    if await about.takes_files():
        for file in files(7, 6):
            visitor = Reader(1, about.url)
            await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
            await visitor.upload(file.name or "table.csv", file.data)
            faults = [text for one in visitor.errors for text in problems_of_message(one, True)]
            wrong += visitor.wrong + faults
            await visitor.leave()
            count += 1
    summary = f"{len(queries)} links, {fields} texts in fields, {count} files"
    return Seen(not wrong, f"{wrong[0]} ({len(wrong)} in all)" if wrong else summary)


async def own_session(about: Asking) -> Seen:
    """Look for an upload as another visitor, and for its memory after its owner has left."""
    if not await about.takes_files():
        return Seen(None, "uploads are off here")
    owner, other = Reader(1, about.url), Reader(2, about.url)
    upload = "v=1&table=upload&trials=2&m=gaussian"
    await owner.visit(upload)
    _, small = table(1, 100)
    await owner.upload("small.csv", small)  # The imported modules stay in memory.
    before = memory(about.pid) if about.pid else 0.0
    there = f"{UPLOADS}/{owner.session}/raw"
    content = os.urandom(_MEGABYTES * 2**20)
    await asyncio.to_thread(owner.put, there, "raw.csv", content)
    await other.visit(upload)
    strange = any("v1x0" in text for text in other.all)
    leak = content[:64] in answer(about.url, there)[1]
    await other.leave()
    await owner.leave()
    if strange or leak:
        return Seen(False, "another session sees it" if strange else "anybody can fetch it")
    if about.pid is None:
        return Seen(None, "seen by its session only; what is left of it needs --pid")
    began = time.monotonic()
    while (rest := memory(about.pid) - before) > _MEGABYTES / 3:
        if time.monotonic() - began > about.patience:
            return Seen(False, f"{rest:.0f} MB are left after {about.patience:.0f} s")
        await asyncio.sleep(0.2)
    return Seen(
        True, f"seen by its session only, and gone {time.monotonic() - began:.0f} s after it left"
    )


async def survives(about: Asking) -> Seen:
    """Send a workbook that makes its reading process end."""
    if not await about.takes_files():
        return Seen(None, "uploads are off here")
    visitor = Reader(1, about.url)
    await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
    await visitor.upload("book.xls", killing_workbook())
    messages = [text for text in visitor.errors if "cannot be read" in text]
    await visitor.leave()
    wrong = [*visitor.wrong, *([] if messages else ["nothing is said of one that cannot be read"])]
    status = answer(about.url, HEALTH)[0]
    wrong += [f"then its health check says {status}"] * (status != 200)
    return Seen(not wrong, wrong[0] if wrong else "the reader died, and its sentence came")


async def room(about: Asking) -> Seen:
    """Announce a file that is too large, and send none of its content."""
    if not await about.takes_files():
        return Seen(None, "uploads are off here")
    status = await _begun(about, 2**40)
    return Seen(status == 413, f"a file of 1 TB is answered with {status or 'silence'}, unsent")


async def switched_off(about: Asking) -> Seen:
    """Announce a file that is not allowed, and send none of its content."""
    if await about.takes_files():
        return Seen(False if about.public else None, "uploads are on here")
    codes = [await _begun(about, length) for length in (150 * 2**20, None)]
    return Seen(set(codes) == {403}, f"a raw PUT is answered with {codes[0] or 'silence'}, unsent")


async def _begun(about: Asking, length: int | None) -> int:
    """Return the answer to a file that is announced but not sent."""
    visitor = Reader(1, about.url)
    await visitor.visit(VIEW)
    with closing(put(about.url, visitor.session, length, visitor.cookie())) as line:
        status = await asyncio.to_thread(status_of, line)
    await visitor.leave()
    return status


async def unlogged(about: Asking) -> Seen:
    """Search the log for the name of a file and its columns."""
    if about.log is None:
        return Seen(None, "needs --log")
    if not await about.takes_files():
        return Seen(None, "uploads are off here")
    await _with_a_file(about)
    text = about.log.read_text(encoding="utf-8", errors="replace")
    words = [word for word in (_NAMED, "v3x0") if word in text]
    return Seen(not words, f"found: {', '.join(words)}" if words else "neither name nor columns")


async def links(about: Asking) -> Seen:
    """Check that the address after an upload reveals nothing of the file."""
    if not await about.takes_files():
        return Seen(None, "uploads are off here")
    query = await _with_a_file(about)
    words = [word for word in (_NAMED, "v3x") if word in query]
    return Seen(not words, f"the link has {', '.join(words)}" if words else f"the link: {query}")


_NAMED = "a-name-of-their-own"


async def _with_a_file(about: Asking) -> str:
    """Return the link of a page that shows an upload."""
    visitor = Reader(3, about.url)
    await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
    await visitor.upload(f"{_NAMED}.csv", table(3, 60)[1])
    assert visitor.problems == [], visitor.problems
    await visitor.leave()
    return visitor.query


async def noise(about: Asking) -> Seen:
    """Let some visitors move epsilon without a pause, while another visitor waits for an answer."""
    noisy = [Visitor(10 + number, about.url) for number in range(_NOISY)]
    quiet = Visitor(1, about.url)
    for visitor in (*noisy, quiet):
        await visitor.visit(VIEW)

    async def hurry(visitor: Visitor) -> None:
        for number in range(10_000):
            await visitor.move(round(0.1 + 0.013 * (number + visitor.number), 4))

    tasks = [asyncio.create_task(hurry(visitor)) for visitor in noisy]
    try:
        async with asyncio.timeout(_ANSWERED * _MOVES):
            for number in range(_MOVES):
                await quiet.move(2.0 + number / 8)
    except TimeoutError:
        return Seen(False, f"beside {_NOISY} of them the quiet one waits longer than it may")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for visitor in (*noisy, quiet):
            await visitor.leave()
    most = max(quiet.drawn)
    return Seen(most < _ANSWERED, f"beside {_NOISY} of them a quiet one waits {most:.1f} s at most")


# Sentences -----------------------------------------------------------------------------------

Check = Callable[[Asking], Awaitable[Seen]]

CHECKS: dict[str, Check] = {
    "No page sends a request": outside,
    "By default a server answers": names,
    "Only `/_stcore/health`": health,
    "The server sends a content": headers,
    "A hostile file or link": hostile,
    "Uploads are held in memory": own_session,
    "A separate process with limits": survives,
    "One visitor may have 400 MB": room,
    "If uploads are off": switched_off,
    "The server logs neither": unlogged,
    "**Links hold settings": links,
    "Work is divided and limited": noise,
}
"""The start of a sentence, and its test on a server; all other sentences are ``told``."""

TOLD = (
    "`python -m tools.promises", "Tests watch", "The server contacts", "The server refuses",
    "An error message", "`python -m benchmarks.fuzz", "Streamlit may spool", "Pages use the exact",
    "Use public", "The user account", "A ledger notices", "Anyone who can open", "Control access",
    "**Floating-point noise", "The store of results", "Protect the cache",
)  # fmt: skip
"""Starts of sentences about the tests, and of sentences on limits of the promises."""


def sentences() -> list[str]:
    """Return the sentences of SECURITY.md on what is and is not promised."""
    text = SECURITY.read_text(encoding="utf-8").partition("## Reporting")[0]
    parts = []
    for item in re.split(r"\n(?:- |## .*\n|\n)", text.partition("## What dpviz promises")[2]):
        line = " ".join(item.split()).removeprefix("- ")
        parts += [one for one in re.split(r"(?<=[.:])\*\* |(?<=\.) (?=[A-Z`])", line) if one]
    whole = [one if one.count("**") % 2 == 0 else f"{one}**" for one in parts]
    return [one for one in whole if not re.fullmatch(r"\*\*[^*]+\*\*|## .*", one)]


def check_of(sentence: str) -> Check | None:
    """Return the server test of a sentence, or None if there is none."""
    return next((check for start, check in CHECKS.items() if sentence.startswith(start)), None)


async def asked_all(about: Asking) -> list[tuple[str, Seen | None]]:
    """Return each sentence and its result; None if a server cannot be tested."""
    results: dict[str, Seen | None] = {sentence: None for sentence in sentences()}
    with watching(about.pid) as about.outside:
        # Judge the network sockets last, because they are watched during all other checks.
        for sentence in sorted(results, key=lambda one: check_of(one) is outside):
            check = check_of(sentence)
            if check is not None:
                try:
                    results[sentence] = await check(about)
                except (OSError, TimeoutError, AssertionError) as error:
                    results[sentence] = Seen(False, f"it does not answer: {error!r}")
    return list(results.items())


def main(arguments: list[str] | None = None) -> int:
    """Run and print all checks; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="where the server is")
    parser.add_argument("--pid", type=int, help="its process, where this runs beside it")
    parser.add_argument("--log", type=Path, help="the file that it logs to")
    parser.add_argument("--public", action="store_true", help="it is meant to be a public demo")
    parser.add_argument("--patience", type=float, default=180.0, help="seconds until all is gone")
    options = parser.parse_args(arguments)
    url = options.url.rstrip("/")
    about = Asking(url, options.pid, options.log, options.public, options.patience)
    failures = 0
    for sentence, fact in asyncio.run(asked_all(about)):
        word = "told" if fact is None else {True: "pass", False: "FAIL", None: "skip"}[fact.kept]
        failures += word == "FAIL"
        text = sentence if len(sentence) < 90 else sentence[:86] + " ..."
        print(f"{word}  {text}" + (f" | {fact.how}" if fact else ""))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
