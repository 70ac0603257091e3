"""Twenty people on one server, each moving epsilon on a table of their own.

``python -m benchmarks.load --sessions 20 --moves 8`` starts a dashboard, lets that many visitors
in over Streamlit's own protocol (a websocket each, an upload each, the board's wish for its other
frames as a browser sends it), and lets each move epsilon again and again, with a pause to look at
what came, ``--think`` seconds on average. It says

- how long a move takes until its numbers are there (the board's frame at the new epsilon), and
  until the page is drawn to its end;
- whether anybody ever saw a table that was not theirs, and what one visitor too many is told;
- the server's memory before, with everybody there, and after they left, until it is within a fifth
  of what it was; with ``--waves`` also after as many have come and left again, which tells what
  piles up from what a server settles at. Before means: one visitor has been there, as what is
  imported for the first of them stays and belongs to none.

``--noisy 12 --every 2`` asks something else: how long somebody waits who moves epsilon now and then
while that many rerun Explore every so many seconds without waiting for an answer. Everybody has a
built-in table; the first moves are made alone.

``--cold 5,20,60`` asks how long so many wait who open one link at once on a fresh server: the bare
address, another table, and a setting that nothing ships for, each on a server of its own.

``--out docs/deploy.md`` writes the table between the marks of that file. ``--url`` measures a
server that runs already (without its memory). Real browsers would share the two cores with what is
measured; the protocol does not.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import platform
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from dpviz.core.files import app_path
from dpviz.core.seeding import generator
from tests.e2e.harness import Server

PATIENCE = 120.0
COLD_SECONDS = 2.0
_EDGES = ("start", "end")
FULL = "all places are taken"
COLUMNS = 12


def table(number: int, rows: int) -> tuple[int, bytes]:
    """Return how many people a visitor's table has, which is nobody else's number, and its CSV."""
    n = rows + 7 * number
    rng = generator(number, "load", n)
    values = rng.standard_normal((n, COLUMNS)) * np.linspace(3, 0.5, COLUMNS)
    head = ",".join(f"v{number}x{j}" for j in range(COLUMNS))
    lines = "\n".join(",".join(f"{value:.4f}" for value in row) for row in values)
    return n, f"{head}\n{lines}\n".encode()


@dataclass
class Visitor:
    """One browser tab, as the server sees it.

    Attributes
    ----------
    shown : list of float
        Seconds from a move to its numbers.
    drawn : list of float
        Seconds from a move to the end of the page.
    strange : list of str
        What was seen of somebody else's table.
    problems, notices : list of str
        Errors of pages, and what they say otherwise.
    """

    number: int
    url: str
    people: int = 0
    shown: list[float] = field(default_factory=list)
    drawn: list[float] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    session: str = ""
    _widgets: dict[str, str] = field(default_factory=dict)
    _values: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _now: float | None = None
    _wanted: bool = False
    _finished: int = 0
    _page: str = ""
    _query: str = ""
    _stream: ClientConnection | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _urls: Any = None

    async def visit(self, query: str) -> None:
        """Open the page and wait until it is drawn."""
        address = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        self._stream = await connect(address, subprotocols=["streamlit"], max_size=None)  # type: ignore[list-item]
        self._reader = asyncio.create_task(self._read())
        self._query = query
        await self._run()

    async def leave(self) -> None:
        """Close the tab."""
        assert self._stream is not None
        await self._stream.close()
        self._reader.cancel()

    async def upload(self, name: str, content: bytes) -> None:
        """Upload a table and wait until it is drawn."""
        assert self._stream is not None
        back = BackMsg()
        back.file_urls_request.request_id = "1"
        back.file_urls_request.file_names.append(name)
        back.file_urls_request.session_id = self.session
        self._urls = None
        await self._stream.send(back.SerializeToString())
        await self._until(lambda: self._urls is not None)
        urls = self._urls.file_urls[0]
        await asyncio.to_thread(self.put, urls.upload_url, name, content)
        state = BackMsg().rerun_script.widget_states.widgets.add()
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.name, info.size, info.file_id = name, len(content), urls.file_id
        info.file_urls.CopyFrom(urls)
        self._values["upload"] = ("file_uploader_state_value", state.file_uploader_state_value)
        await self._run()

    def cookie(self) -> str:
        """Return the cookie that every request has to repeat which changes something."""
        with urllib.request.urlopen(f"{self.url}/_stcore/health") as answer:
            return str(answer.headers.get("Set-Cookie", "").split(";")[0])

    def put(self, path: str, name: str, content: bytes) -> None:
        """Send a file to where the server wants it."""
        cookie, edge = self.cookie(), "dpviz-load"
        body = (
            f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
        ).encode()
        body += content + f"\r\n--{edge}--\r\n".encode()
        request = urllib.request.Request(
            self.url + path if path.startswith("/") else path,
            data=body,
            method="PUT",
            headers={
                "Content-Type": f"multipart/form-data; boundary={edge}",
                "Cookie": cookie,
                "X-Xsrftoken": cookie.partition("=")[2],
            },
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 204, answer.status

    def take_away(self, path: str) -> int:
        """Take a file away again, as a browser does; return the answer's status."""
        cookie = self.cookie()
        headers = {"Cookie": cookie, "X-Xsrftoken": cookie.partition("=")[2]}
        request = urllib.request.Request(self.url + path, method="DELETE", headers=headers)
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)

    async def move(self, epsilon: float) -> None:
        """Move epsilon; note when its numbers came and when the page was done."""
        self._values["view.epsilon.box"] = ("string_value", f"{epsilon:g}")
        began = time.monotonic()
        self._now = None
        run = asyncio.create_task(self._run())
        await self._until(lambda: self._now is not None and abs(self._now - epsilon) < 1e-9)
        self.shown.append(time.monotonic() - began)
        await run
        self.drawn.append(time.monotonic() - began)

    def ask(self, epsilon: float) -> None:
        """Ask for a run at an epsilon, and do not wait for it."""
        self._values["view.epsilon.box"] = ("string_value", f"{epsilon:g}")
        assert self._stream is not None
        self._sent = asyncio.create_task(self._stream.send(self._wish({})))

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the board that was shown last."""
        return self._now

    async def news(self) -> None:
        """Wait for a moment, or until something comes."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await self._news.wait()

    @property
    def runs(self) -> int:
        """How many runs came to their end."""
        return self._finished

    async def _run(self) -> None:
        """Ask for a run of the script; afterwards for the board's frames, as a browser does."""
        await self._ask({})
        if self._wanted:
            board = self._widgets.get("board", "")
            self._wanted = False
            await self._ask(
                {f"$$STREAMLIT_INTERNAL_KEY_{board}__events": [{"event": "want", "value": True}]}
            )

    async def _ask(self, triggers: dict[str, Any]) -> None:
        assert self._stream is not None
        before = self._finished
        await self._stream.send(self._wish(triggers))
        await self._until(lambda: self._finished > before)

    def _wish(self, triggers: dict[str, Any]) -> bytes:
        """Return a message that asks for a run with everything as it is set."""
        back = BackMsg()
        state = back.rerun_script
        state.query_string, state.page_script_hash = self._query, self._page
        for key, (kind, value) in self._values.items():
            if key in self._widgets:
                widget = state.widget_states.widgets.add()
                widget.id = self._widgets[key]
                if kind == "string_value":
                    widget.string_value = value
                else:
                    getattr(widget, kind).CopyFrom(value)
        for name, value in triggers.items():
            widget = state.widget_states.widgets.add()
            widget.id, widget.json_trigger_value = name, json.dumps(value)
        return bytes(back.SerializeToString())

    async def _until(self, done: Any) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            if self._reader.done():
                self._reader.result()  # its own mistake, if there was one
                raise ConnectionError("the server hung up")
            self._news.clear()
            async with asyncio.timeout(max(end - time.monotonic(), 0.01)):
                await self._news.wait()

    async def _read(self) -> None:
        assert self._stream is not None
        try:
            with suppress(ConnectionClosed):
                async for payload in self._stream:
                    assert isinstance(payload, bytes)
                    self._take(ForwardMsg.FromString(payload))
                    self._news.set()
        finally:
            self._news.set()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
            self.session = message.new_session.initialize.session_id or self.session
        elif kind == "script_finished":
            early = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            self._finished += not early
        elif kind == "file_urls_response":
            self._urls = message.file_urls_response
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta":
            self._drawn(message.delta.new_element)

    def _drawn(self, element: Any) -> None:
        what = element.WhichOneof("type")
        if what == "exception":
            self.problems.append(element.exception.message)
        if what in ("text_input", "file_uploader"):
            key = getattr(element, what).id.rpartition("-")[2]
            self._widgets[key.split("~")[0]] = getattr(element, what).id
        said = ""
        if what == "markdown":
            said = element.markdown.body
        if what == "bidi_component" and "board" in element.bidi_component.id.rpartition("-")[2]:
            board = element.bidi_component
            if board.component_name.endswith("dpviz_board"):
                self._widgets["board"] = board.id
                data = json.loads(board.json)
                self._now = float(data["payload"]["now"])
                self._wanted = not data["wanted"]
                said = json.dumps(data["payload"].get("table", ""))
        if what == "alert":
            wrong = element.alert.format == element.alert.ERROR and bool(self.people)
            (self.problems if wrong else self.notices).append(element.alert.body)
        if self.people:
            found = re.findall(r"\b(\d[\d,]*) people\b", said)
            self.strange += [
                text for text in found if int(text.replace(",", "")) not in (self.people,)
            ]
            names = set(re.findall(r"\bv(\d+)x\d+\b", said)) - {str(self.number)}
            self.strange += [f"a column of visitor {name}" for name in names]


def memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


async def come(number: int, url: str, rows: int, query: str) -> Visitor:
    """Return a visitor who has uploaded their table and seen it."""
    visitor = Visitor(number, url)
    await visitor.visit(query)
    visitor.people, content = table(number, rows)
    await visitor.upload(f"table{number}.csv", content)
    return visitor


async def stay(visitor: Visitor, moves: int, think: float) -> None:
    """Move epsilon again and again, with pauses to look."""
    rng = generator(visitor.number, "load", "think")
    for number in range(moves):
        await asyncio.sleep(float(rng.uniform(0.5, 1.5)) * think)
        # between the steps of the board, so that every move draws releases anew
        await visitor.move(round(0.1 * 1.3 ** ((5 * visitor.number + number) % 17) + 0.003, 4))


def told(seconds: list[float]) -> str:
    """Return the distribution of some times."""
    low, middle, high = np.quantile(seconds, [0.05, 0.5, 0.95])
    return f"{middle:.2f} s | {low:.2f} s | {high:.2f} s | {max(seconds):.2f} s"


async def measure(given: argparse.Namespace, url: str, pid: int | None) -> tuple[list[str], bool]:
    """Let them come, move and leave.

    Returns
    -------
    lines : list of str
        What was seen, as Markdown.
    well : bool
        Whether nobody saw another's table or an error, and one too many was told so.
    """
    query = f"table=upload&trials={given.trials}" + (f"&m={given.m}" if given.m else "")
    warm = await come(999, url, given.rows, query)
    await warm.move(0.5)
    await warm.leave()
    start = memory(pid) if pid else math.nan
    began = time.monotonic()
    visitors = await asyncio.gather(
        *(come(number, url, given.rows, query) for number in range(given.sessions))
    )
    arrived = time.monotonic() - began
    print(f"all there after {arrived:.0f} s", flush=True)
    refused = True
    if pid:  # of another server the number of places is not known
        late = Visitor(998, url)
        await late.visit(query)
        refused = any(FULL in said for said in late.notices)
        await late.leave()
    began, cpu = time.monotonic(), cpu_of(pid)
    await asyncio.gather(*(stay(visitor, given.moves, given.think) for visitor in visitors))
    wall = time.monotonic() - began
    shown = [second for visitor in visitors for second in visitor.shown]
    drawn = [second for visitor in visitors for second in visitor.drawn]
    strange = [text for visitor in visitors for text in visitor.strange]
    problems = [text for visitor in visitors for text in visitor.problems]
    worst = max(float(np.quantile(visitor.shown, 0.95)) for visitor in visitors)
    lines = [
        f"{given.sessions} visitors, each with a table of {given.rows:,} rows and {COLUMNS} "
        f"columns, moved epsilon {given.moves} times with {given.think:g} s to look at what came; "
        f"all of them came at once and saw their own table within {arrived:.0f} s "
        f"(Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}):",
        "",
        f"| of {len(shown)} moves | median | 5 % within | 95 % within | slowest |",
        "|---|---|---|---|---|",
        f"| until the numbers are there | {told(shown)} |",
        f"| until the page is drawn to its end | {told(drawn)} |",
        "",
        f"- The visitor who fared worst had 95 % of the numbers within {worst:.2f} s.",
        f"- Seen of others' tables: {len(strange)}. Errors: {len(problems)}.",
    ]
    print("\n".join([*lines, *problems[:2]]), flush=True)
    seen = len(lines)
    if pid:
        used = cpu_of(pid) - cpu
        if refused:
            lines.append(f"- One visitor more was told that {FULL}.")
        lines.append(f"- The server used {used / len(shown):.2f} s of one core for a move.")
        most = memory(pid)
        now, waited = await gone(visitors, pid, given.after, 1.2 * start)
        lines.append(
            f"- Memory: {start:.0f} MB before, {most:.0f} MB with everybody there ({wall:.0f} s of "
            f"moves), {now:.0f} MB ({100 * (now / start - 1):+.0f} %) "
            f"{waited:.0f} s after they left."
        )
        for wave in range(2, given.waves + 1):
            again = await asyncio.gather(
                *(come(number, url, given.rows, query) for number in range(given.sessions))
            )
            await asyncio.gather(*(stay(visitor, given.moves, given.think) for visitor in again))
            now, waited = await gone(again, pid, given.after, 0.0)
            lines.append(
                f"- As many again, wave {wave}: {now:.0f} MB ({100 * (now / start - 1):+.0f} %) "
                f"{waited:.0f} s after they left."
            )
        print("\n".join(lines[seen:]))
    return lines, not strange and not problems and refused


COLD = {"default": "", "another table": "table=wine", "an uncached setting": "seed=7&trials=30"}
"""Links that many open at once."""


async def cold(url: str, query: str, visitors: int) -> list[tuple[float, float]]:
    """Return when each of those has numbers, and a whole page, who open one link at once."""
    everybody = [Visitor(number, url) for number in range(visitors)]

    async def come_in(visitor: Visitor) -> tuple[float, float]:
        began = time.monotonic()
        run = asyncio.create_task(visitor.visit(query))
        while visitor.epsilon is None and not run.done():
            await visitor.news()
        shown = time.monotonic() - began
        await run
        return shown, time.monotonic() - began

    seconds = await asyncio.gather(*(come_in(visitor) for visitor in everybody))
    problems = [text for visitor in everybody for text in visitor.problems]
    if problems:
        raise RuntimeError(problems[0])
    for visitor in everybody:
        await visitor.leave()
    return seconds


def all_cold(counts: list[int]) -> tuple[list[str], bool]:
    """Return how long cold visitors of one link wait, as Markdown, and whether 95 % are in time."""
    lines = [
        f"So many open one link at once on a fresh server (Python {platform.python_version()}, "
        f"{os.cpu_count()} cores of {platform.machine()}), until the numbers are there:",
        "",
        "| visitors | link | median | 5 % within | 95 % within | slowest | whole page | CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    well = True
    print("\n".join(lines), flush=True)
    for (name, query), count in itertools.product(COLD.items(), counts):
        with serve(count) as server:
            before = cpu_of(server.pid)
            seconds = asyncio.run(cold(server.url, query, count))
            used = cpu_of(server.pid) - before
        shown, whole = ([one[part] for one in seconds] for part in (0, 1))
        well = well and float(np.quantile(shown, 0.95)) <= COLD_SECONDS
        lines.append(f"| {count} | {name} | {told(shown)} | {max(whole):.2f} s | {used:.1f} s |")
        print(lines[-1], flush=True)
    return lines, well


async def annoy(visitor: Visitor, every: float) -> None:
    """Ask for Explore at another epsilon again and again, whatever came of it."""
    for number in itertools.count():
        epsilon = 0.1 * 1.1 ** ((7 * visitor.number + number) % 40) + 0.003
        visitor.ask(epsilon)
        await asyncio.sleep(every)


async def quiet(given: argparse.Namespace, url: str) -> list[str]:
    """Return how long somebody's moves take alone, and beside noisy visitors, as Markdown."""
    one = Visitor(1, url)
    query = f"trials={given.trials}"
    await one.visit(query)
    await stay(one, 2 * given.moves, 0.5)
    alone = one.shown[2:]  # the first ones warm the server
    others = [Visitor(2 + number, url) for number in range(given.noisy)]
    await asyncio.gather(*(other.visit(query) for other in others))
    one.shown = []
    noise = [asyncio.create_task(annoy(other, given.every)) for other in others]
    await asyncio.sleep(given.every)
    await stay(one, given.moves, given.think)
    for task in noise:
        task.cancel()
    for visitor in (one, *others):
        await visitor.leave()
    return [
        f"Somebody moves epsilon on Explore while {given.noisy} others ask for it at another "
        f"epsilon every {given.every:g} s, without waiting for an answer "
        f"(Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}):",
        "",
        "| until the numbers are there | median | 5 % within | 95 % within | slowest |",
        "|---|---|---|---|---|",
        f"| alone, {len(alone)} moves | {told(alone)} |",
        f"| beside them, {len(one.shown)} moves | {told(one.shown)} |",
        "",
        f"Runs of the others that came to their end: {sum(other.runs for other in others)}.",
    ]


@contextmanager
def serve(places: int) -> Iterator[Server]:
    """Start a fresh server that lets so many in."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"XDG_CACHE_HOME": folder, "DPVIZ_SESSIONS": str(places)}
        with Server(app_path(), Path(folder) / "server.log", own) as server:
            yield server


async def gone(
    visitors: list[Visitor], pid: int, most: float, enough: float
) -> tuple[float, float]:
    """Let visitors leave; return the memory and the seconds until it is low enough, or at last."""
    for visitor in visitors:
        await visitor.leave()
    left = time.monotonic()
    now = memory(pid)
    while time.monotonic() - left < most and now > enough:
        await asyncio.sleep(5)
        now = memory(pid)
    return now, time.monotonic() - left


def cpu_of(pid: int | None) -> float:
    """Return the CPU seconds that a process has used."""
    if pid is None:
        return math.nan
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Start a server if none is named, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--moves", type=int, default=8)
    parser.add_argument("--think", type=float, default=5.0, help="seconds between moves")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--m", default="", help="mechanisms; the featured ones if not given")
    parser.add_argument("--after", type=float, default=200.0, help="seconds to wait for memory")
    parser.add_argument("--waves", type=int, default=1, help="how often as many come and leave")
    parser.add_argument("--noisy", type=int, default=0, help="visitors who never wait")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between their wishes")
    parser.add_argument("--cold", default="", help="visitors of one link at once, e.g. 5,20,60")
    parser.add_argument("--url", default="")
    parser.add_argument("--out", type=Path, help="file to write the table into, at its marks")
    given = parser.parse_args()
    problem = ""

    async def asked(url: str, pid: int | None) -> tuple[list[str], bool]:
        if given.noisy:
            lines = await quiet(given, url)
            print("\n".join(lines))
            return lines, True
        return await measure(given, url, pid)

    if given.cold:
        lines, well = all_cold([int(count) for count in given.cold.split(",")])
    elif given.url:
        lines, well = asyncio.run(asked(given.url, None))
    else:
        with serve(max(given.sessions, given.noisy + 1)) as server:
            lines, well = asyncio.run(asked(server.url, server.pid))
            problem = server.new_traceback()
    if problem:
        print(problem)
    if given.out:
        text = given.out.read_text(encoding="utf-8")
        name = "cold" if given.cold else "noisy" if given.noisy else "load"
        start, end = (f"<!-- {name}: {edge} -->" for edge in _EDGES)
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        whole = "\n".join([start, *lines, end])
        given.out.write_text(f"{before}{whole}{after}", encoding="utf-8")
    return int(not well or bool(problem))


if __name__ == "__main__":
    sys.exit(main())
