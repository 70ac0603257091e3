"""Asks a server whether it keeps what SECURITY.md promises.

``python -m tools.promises http://127.0.0.1:8501`` prints one line for each sentence of SECURITY.md:
``pass`` or ``FAIL``, the sentence, and what was seen; ``told`` where a sentence is about something
else than a server, and ``skip``, with what is needed, where this server or this place cannot show
it. It exits with 1 if anything failed. Beside the server ``--pid`` (of the server's process) also
watches its sockets and its memory, and ``--log`` reads what it has logged. ``--public`` says that
it is meant to be a public demo, whose uploads have to be off. It comes as visitors do, uploads made
up tables and leaves; a server in use becomes slower for half a minute.
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
_ANSWERED = 30.0  # seconds that a quiet visitor may wait while others make noise


# One request ---------------------------------------------------------------------------------


def answer(
    url: str, path: str = "/", *, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers of one answer; names of headers have underscores here."""
    place = urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    with closing(kind(place.hostname or "", place.port, timeout=20)) as line:
        line.putrequest(method, place.path.rstrip("/") + path, skip_host="Host" in headers)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders()
        found = line.getresponse()
        return found.status, found.read(), {k.lower(): v for k, v in found.getheaders()}


async def shaken(url: str, **headers: str) -> int:
    """Return how a websocket's handshake is answered: 101 where it may speak."""
    place = urlsplit(url)
    secure = place.scheme == "https"
    host = headers.pop("Host", None) or place.netloc
    # the address gives the name, and the machine is reached all the same
    address = f"ws{'s' * secure}://{host}{place.path.rstrip('/')}/_stcore/stream"
    there: dict[str, Any] = {"host": place.hostname, "port": place.port or (443 if secure else 80)}
    if secure:
        there |= {"ssl": ssl.create_default_context(), "server_hostname": place.hostname}
    try:
        async with connect(address, additional_headers=headers, **there):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def put(url: str, session: str, length: int | None, cookie: str) -> socket.socket:
    """Begin to send a file, of which nothing is sent yet."""
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
    """Return the status that comes on a line, or 0 where nothing does."""
    try:
        return int(line.recv(4096).split()[1])
    except (TimeoutError, IndexError):
        return 0


# Visitors ------------------------------------------------------------------------------------


@dataclass
class Reader(Visitor):
    """A visitor who reads everything.

    Attributes
    ----------
    errors : list of str
        Exceptions and alerts, as they are shown.
    wrong : list of str
        What no page may show, or may show as text only.
    all : list of str
        Every element, as text.
    """

    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    all: list[str] = field(default_factory=list)

    @property
    def query(self) -> str:
        """What the address says after the question mark."""
        return self._query

    async def types(self, texts: Sequence[str]) -> int:
        """Put every text into every text field, another into each at once; return how many."""
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
        # as it was sent: what is looked for is ASCII, and to print a message takes seconds in all
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
    """Collect where a process is connected to meanwhile, but for this machine and who came."""
    seen: set[str] = set()
    settled: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while pid is not None and not over.wait(0.02):
            seen.update(outgoing(pid, settled))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def outgoing(pid: int, settled: set[str] | None = None) -> set[str]:
    """Return the addresses outside of this machine that a process has connected to.

    Linux alone: it reads /proc. Lines of visitors end at a port that the process listens on.

    Parameters
    ----------
    pid : int
    settled : set of str, optional
        Sockets that an earlier look has found to be what they stay: TCP that is connected or
        listens, and those of this machine. Where there are no others the system's tables, which
        take it 7 ms, are not read. What is found is added.
    """
    settled = set() if settled is None else settled
    own = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    if own <= settled:
        return set()
    lines = []
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        rows = [words for words in _rows(pid, kind) if words[9] in own]
        lines += rows
        if kind.startswith("tcp"):
            settled.update(words[9] for words in rows)
    settled.update(own & {words[6] for words in _rows(pid, "unix")})
    listening = {words[1].rpartition(":")[2] for words in lines if words[3] == "0A"}
    found = set()
    for words in lines:
        remote, _, port = words[2].rpartition(":")
        here = words[1].rpartition(":")[2]
        if int(port, 16) and here not in listening and not _loopback(remote):
            found.add(f"{_address(remote)}:{int(port, 16)}")
    return found


def _rows(pid: int, kind: str) -> list[list[str]]:
    """Return the lines of one of the system's tables of sockets."""
    path = Path(f"/proc/{pid}/net/{kind}")
    if not path.exists():
        return []
    return [line.split() for line in path.read_text(errors="replace").splitlines()[1:]]


def _address(packed: str) -> str:
    """Return an address of /proc/net, which has its words in the machine's order."""
    words = [int(packed[at : at + 8], 16) for at in range(0, len(packed), 8)]
    kind = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(kind, struct.pack(f"={len(words)}I", *words))


def _loopback(packed: str) -> bool:
    address = _address(packed).removeprefix("::ffff:")
    return address == "::1" or address.startswith("127.")


# What is asked -------------------------------------------------------------------------------


@dataclass
class Seen:
    """What became of a sentence.

    Attributes
    ----------
    kept : bool or None
        None where it could not be asked.
    how : str
        What was seen, or what it needs.
    """

    kept: bool | None
    how: str


@dataclass
class Asking:
    """A server, and what is known of it.

    Attributes
    ----------
    url : str
    pid : int or None
    log : Path or None
    public : bool
    patience : float
        Seconds after which nothing may be left of who has gone.
    outside : set of str
        Where the server was seen to connect to.
    """

    url: str
    pid: int | None = None
    log: Path | None = None
    public: bool = False
    patience: float = 180.0
    outside: set[str] = field(default_factory=set)
    _takes: bool | None = None

    async def takes_files(self) -> bool:
        """Return whether uploads are on, as a small file's answer tells."""
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


async def outside(asked: Asking) -> Seen:
    """Ask for the policy of a page, and what the server connected to."""
    policy = _policy(answer(asked.url)[2])
    if not set(policy.get("connect-src", "*").split()) <= {"'self'"}:
        return Seen(False, "a page may speak to other hosts")
    if asked.pid is None:
        return Seen(None, "pages may ask this server only; its own sockets need --pid")
    visitor = Reader(1, asked.url)
    await visitor.visit(VIEW)
    await visitor.leave()
    for origin in (f"https://{FOREIGN}", "null"):  # a name that somebody might look up
        answer(asked.url, "/_stcore/host-config", Origin=origin)
    if asked.outside:
        return Seen(False, f"it connected to {', '.join(sorted(asked.outside))}")
    return Seen(True, "pages may ask this server only, and it connected to nobody")


async def names(asked: Asking) -> Seen:
    """Come under a foreign name, and from a foreign site."""
    own = answer(asked.url)
    if own[0] != 200:
        return Seen(False, f"its own name is answered with {own[0]}")
    found = {
        "a page under a foreign name": answer(asked.url, Host=FOREIGN)[0],
        "a page asked for by another site": answer(asked.url, Origin=f"https://{FOREIGN}")[0],
        "a websocket under a foreign name": await shaken(asked.url, Host=FOREIGN),
        "a websocket of another site": await shaken(asked.url, Origin=f"https://{FOREIGN}"),
    }
    wrong = [f"{what} is answered with {status}" for what, status in found.items() if status < 400]
    if not set(_policy(own[2]).get("frame-ancestors", "*").split()) <= {"'self'", "'none'"}:
        wrong.append("another site may frame it")
    return Seen(not wrong, "; ".join(wrong) or "foreign names, origins and frames are refused")


async def health(asked: Asking) -> Seen:
    """Ask for its health under any name, and for the rest."""
    status, said, _ = answer(asked.url, HEALTH, Host="10.1.2.3:8501")
    if (status, said) != (200, b"ok"):
        return Seen(False, f"the health check says {status}")
    others = ("/", METRICS, "/_stcore/host-config", f"{UPLOADS}/a/b")
    open_to_all = [path for path in others if answer(asked.url, path, Host=FOREIGN)[0] < 400]
    if open_to_all:
        return Seen(False, f"{', '.join(open_to_all)} is answered under any name")
    if asked.public and answer(asked.url, METRICS)[0] < 400:
        return Seen(False, "a public server shows its metrics")
    return Seen(True, f"it says ok, {len(others)} other addresses do not answer a foreign name")


async def headers(asked: Asking) -> Seen:
    """Look for the policy on pages, errors and refusals."""
    asking: list[tuple[str, dict[str, str]]] = [
        ("/", {}), ("/tradeoffs", {}), (HEALTH, {}), ("/_stcore/host-config", {}),
        ("/static/none.js", {}), ("/", {"Host": FOREIGN}), ("/", {"Origin": f"https://{FOREIGN}"}),
    ]  # fmt: skip
    wrong = []
    for path, given in asking:
        found = answer(asked.url, path, **given)[2]
        sound = "default-src" in _policy(found) and found.get("x-content-type-options") == "nosniff"
        if not sound:
            wrong.append(f"{path} {given or ''}".strip())
    if wrong:
        return Seen(False, f"none with {', '.join(wrong)}")
    return Seen(True, f"with each of {len(asking)}, refusals too")


def _policy(found: dict[str, str]) -> dict[str, str]:
    """Return the directives of a content policy."""
    parts = found.get("content-security-policy", "").split(";")
    return {name: rest for name, _, rest in (part.strip().partition(" ") for part in parts)}


async def hostile(asked: Asking) -> Seen:
    """Send paths, markup and nonsense in links, text fields and files."""
    wrong: list[str] = []
    keys = ["table", "epsilon", "delta", "k", "m", "row_bound", "bounds", "label", "center", "seed"]
    queries = [{"v": "1", "table": path, "bounds": path, "label": MARKUP} for path in PATHS]
    queries += [link(7, number, keys) for number in range(6)]
    few = {"trials": "2", "m": "gaussian"}  # unless a link has its own: what is sent counts here
    for query in queries:
        visitor = Reader(1, asked.url)
        await visitor.visit(urlencode(few | query))
        wrong += visitor.wrong
        await visitor.leave()
    visitor = Reader(1, asked.url)
    await visitor.visit(VIEW)
    typed = await visitor.types((*PATHS, MARKUP))
    wrong += visitor.wrong if typed else ["no text field was found"]
    await visitor.leave()
    sent = 0
    if await asked.takes_files():
        for given in files(7, 6):
            visitor = Reader(1, asked.url)
            await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
            await visitor.upload(given.name or "table.csv", given.data)
            told = [text for said in visitor.errors for text in problems_of_message(said, True)]
            wrong += visitor.wrong + told
            await visitor.leave()
            sent += 1
    said = f"{len(queries)} links, {typed} texts in fields, {sent} files"
    return Seen(not wrong, f"{wrong[0]} ({len(wrong)} in all)" if wrong else said)


async def own_session(asked: Asking) -> Seen:
    """Look for an upload as somebody else, and for its memory after its owner has left."""
    if not await asked.takes_files():
        return Seen(None, "uploads are off here")
    owner, other = Reader(1, asked.url), Reader(2, asked.url)
    upload = "v=1&table=upload&trials=2&m=gaussian"
    await owner.visit(upload)
    _, small = table(1, 100)
    await owner.upload("small.csv", small)  # what is imported for it stays
    before = memory(asked.pid) if asked.pid else 0.0
    there = f"{UPLOADS}/{owner.session}/raw"
    content = os.urandom(_MEGABYTES * 2**20)
    await asyncio.to_thread(owner.put, there, "raw.csv", content)
    await other.visit(upload)
    strange = any("v1x0" in text for text in other.all)
    fetched = content[:64] in answer(asked.url, there)[1]
    await other.leave()
    await owner.leave()
    if strange or fetched:
        return Seen(False, "another session sees it" if strange else "anybody can fetch it")
    if asked.pid is None:
        return Seen(None, "seen by its session only; what is left of it needs --pid")
    began = time.monotonic()
    while (left := memory(asked.pid) - before) > _MEGABYTES / 3:
        if time.monotonic() - began > asked.patience:
            return Seen(False, f"{left:.0f} MB are left after {asked.patience:.0f} s")
        await asyncio.sleep(0.2)
    return Seen(
        True, f"seen by its session only, and gone {time.monotonic() - began:.0f} s after it left"
    )


async def survives(asked: Asking) -> Seen:
    """Send a workbook that its reader dies of."""
    if not await asked.takes_files():
        return Seen(None, "uploads are off here")
    visitor = Reader(1, asked.url)
    await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
    await visitor.upload("book.xls", killing_workbook())
    told = [text for text in visitor.errors if "cannot be read" in text]
    await visitor.leave()
    wrong = [*visitor.wrong, *([] if told else ["nothing is said of one that cannot be read"])]
    status = answer(asked.url, HEALTH)[0]
    wrong += [f"then its health check says {status}"] * (status != 200)
    return Seen(not wrong, wrong[0] if wrong else "the reader died, and its sentence came")


async def room(asked: Asking) -> Seen:
    """Announce a file too large, and send nothing of it."""
    if not await asked.takes_files():
        return Seen(None, "uploads are off here")
    status = await _begun(asked, 2**40)
    return Seen(status == 413, f"a file of 1 TB is answered with {status or 'silence'}, unsent")


async def switched_off(asked: Asking) -> Seen:
    """Announce a file that may not come, and send nothing of it."""
    if await asked.takes_files():
        return Seen(False if asked.public else None, "uploads are on here")
    found = [await _begun(asked, length) for length in (150 * 2**20, None)]
    return Seen(set(found) == {403}, f"a raw PUT is answered with {found[0] or 'silence'}, unsent")


async def _begun(asked: Asking, length: int | None) -> int:
    """Return the answer to a file that is announced and not sent."""
    visitor = Reader(1, asked.url)
    await visitor.visit(VIEW)
    with closing(put(asked.url, visitor.session, length, visitor.cookie())) as line:
        status = await asyncio.to_thread(status_of, line)
    await visitor.leave()
    return status


async def unlogged(asked: Asking) -> Seen:
    """Look in the log for the name of a file and its columns."""
    if asked.log is None:
        return Seen(None, "needs --log")
    if not await asked.takes_files():
        return Seen(None, "uploads are off here")
    await _with_a_file(asked)
    text = asked.log.read_text(encoding="utf-8", errors="replace")
    found = [word for word in (_NAMED, "v3x0") if word in text]
    return Seen(not found, f"found: {', '.join(found)}" if found else "neither name nor columns")


async def links(asked: Asking) -> Seen:
    """Read the address after an upload."""
    if not await asked.takes_files():
        return Seen(None, "uploads are off here")
    query = await _with_a_file(asked)
    found = [word for word in (_NAMED, "v3x") if word in query]
    return Seen(not found, f"the link has {', '.join(found)}" if found else f"the link: {query}")


_NAMED = "a-name-of-their-own"


async def _with_a_file(asked: Asking) -> str:
    """Return the link of a page that shows an upload."""
    visitor = Reader(3, asked.url)
    await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
    await visitor.upload(f"{_NAMED}.csv", table(3, 60)[1])
    assert visitor.problems == [], visitor.problems
    await visitor.leave()
    return visitor.query


async def noise(asked: Asking) -> Seen:
    """Let some visitors move epsilon without a pause, and one more want an answer."""
    noisy = [Visitor(10 + number, asked.url) for number in range(_NOISY)]
    quiet = Visitor(1, asked.url)
    for visitor in (*noisy, quiet):
        await visitor.visit(VIEW)

    async def hurry(visitor: Visitor) -> None:
        for number in range(10_000):
            await visitor.move(round(0.1 + 0.013 * (number + visitor.number), 4))

    hurried = [asyncio.create_task(hurry(visitor)) for visitor in noisy]
    try:
        async with asyncio.timeout(_ANSWERED * _MOVES):
            for number in range(_MOVES):
                await quiet.move(2.0 + number / 8)
    except TimeoutError:
        return Seen(False, f"beside {_NOISY} of them the quiet one waits longer than it may")
    finally:
        for task in hurried:
            task.cancel()
        await asyncio.gather(*hurried, return_exceptions=True)
        for visitor in (*noisy, quiet):
            await visitor.leave()
    most = max(quiet.drawn)
    return Seen(most < _ANSWERED, f"beside {_NOISY} of them a quiet one waits {most:.1f} s at most")


# Sentences -----------------------------------------------------------------------------------

Check = Callable[[Asking], Awaitable[Seen]]

CHECKS: dict[str, Check] = {
    "No page asks another host": outside,
    "A server answers this machine": names,
    "Only `/_stcore/health`": health,
    "A content policy goes": headers,
    "A hostile file or link": hostile,
    "They are held in memory": own_session,
    "A separate process with limits": survives,
    "One visitor may have 400 MB": room,
    "Where uploads are off": switched_off,
    "Neither contents nor names": unlogged,
    "**Links hold settings": links,
    "Work is divided and limited": noise,
}
"""The start of a sentence, and what asks a server about it; all others are ``told``."""

TOLD = (
    "`python -m tools.promises", "Tests watch", "The server asks", "It refuses pages",
    "A message has", "`python -m benchmarks.fuzz", "Streamlit may spool", "They look at",
    "Use public", "The user that", "It notices", "Anyone who can open", "Decide in front",
    "**Floating-point noise", "The store of results", "Protect that",
)  # fmt: skip
"""The starts of sentences about the tests, and of those that say what nobody promises."""


def sentences() -> list[str]:
    """Return the sentences of SECURITY.md that say what is promised and what is not."""
    text = SECURITY.read_text(encoding="utf-8").partition("## Reporting")[0]
    found = []
    for item in re.split(r"\n(?:- |## .*\n|\n)", text.partition("## What dpviz promises")[2]):
        line = " ".join(item.split()).removeprefix("- ")
        found += [one for one in re.split(r"(?<=[.:])\*\* |(?<=\.) (?=[A-Z`])", line) if one]
    whole = [one if one.count("**") % 2 == 0 else f"{one}**" for one in found]
    return [one for one in whole if not re.fullmatch(r"\*\*[^*]+\*\*|## .*", one)]


def check_of(sentence: str) -> Check | None:
    """Return what asks a server about a sentence, or None where nothing can be asked."""
    return next((check for start, check in CHECKS.items() if sentence.startswith(start)), None)


async def asked_all(asked: Asking) -> list[tuple[str, Seen | None]]:
    """Return each sentence and what was seen; None where a server cannot be asked."""
    found: dict[str, Seen | None] = {sentence: None for sentence in sentences()}
    with watching(asked.pid) as asked.outside:
        # the sockets are judged when all else has been asked
        for sentence in sorted(found, key=lambda one: check_of(one) is outside):
            check = check_of(sentence)
            if check is not None:
                try:
                    found[sentence] = await check(asked)
                except (OSError, TimeoutError, AssertionError) as error:
                    found[sentence] = Seen(False, f"it does not answer: {error!r}")
    return list(found.items())


def main(arguments: list[str] | None = None) -> int:
    """Ask, print and return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="where the server is")
    parser.add_argument("--pid", type=int, help="its process, where this runs beside it")
    parser.add_argument("--log", type=Path, help="the file that it logs to")
    parser.add_argument("--public", action="store_true", help="it is meant to be a public demo")
    parser.add_argument("--patience", type=float, default=180.0, help="seconds until all is gone")
    given = parser.parse_args(arguments)
    url = given.url.rstrip("/")
    asked = Asking(url, given.pid, given.log, given.public, given.patience)
    failed = 0
    for sentence, seen in asyncio.run(asked_all(asked)):
        word = "told" if seen is None else {True: "pass", False: "FAIL", None: "skip"}[seen.kept]
        failed += word == "FAIL"
        shown = sentence if len(sentence) < 90 else sentence[:86] + " ..."
        print(f"{word}  {shown}" + (f" | {seen.how}" if seen else ""))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
