"""Load one server with twenty people, each of whom moves epsilon on a table of their own.

``python -m benchmarks.load --sessions 20 --moves 8`` starts a dashboard and connects 20 visitors
over Streamlit's own protocol. Each visitor has a websocket and an upload, and requests the Explore
figure's other frames as a browser does. Each moves epsilon repeatedly, with a pause of ``--think``
seconds on average to look at the result. The command prints

- the time of a move until its numbers are there (the Explore figure's frame at the new epsilon),
  and until the page is complete;
- whether any visitor saw another visitor's table, and what message one too many gets;
- the server's memory before, with all visitors present, and after all have left, until it is within
  a fifth of the first value. With ``--waves``, more groups of visitors come and leave, which
  separates a leak from the level at which a server settles. "Before" means after one visitor,
  because the imports for the first visitor stay in memory.

``--noisy 12 --every 2`` measures the wait of a person who moves epsilon now and then, while 12
noisy visitors rerun Explore every 2 seconds without waiting for an answer. All use a built-in
table; the person makes the first moves alone.

``--cold 5,20,60`` measures the wait of 5, 20 and 60 visitors who open one link at once on a fresh
server. The links are the bare address, another table, and a setting without a shipped first view,
each on its own server.

``--out docs/deploy.md`` writes the table between the marks of that file. ``--url`` measures a
server that runs already (without its memory). Real browsers would share the two cores with the
measured server, so this benchmark uses the protocol without a browser.
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
    """Return the size of a visitor's table, which no other table has, and the table as CSV."""
    n = rows + 7 * number
    rng = generator(number, "load", n)
    values = rng.standard_normal((n, COLUMNS)) * np.linspace(3, 0.5, COLUMNS)
    head = ",".join(f"v{number}x{j}" for j in range(COLUMNS))
    lines = "\n".join(",".join(f"{value:.4f}" for value in row) for row in values)
    return n, f"{head}\n{lines}\n".encode()


@dataclass
class Visitor:
    """One browser tab, from the server's view.

    Attributes
    ----------
    shown : list of float
        Seconds from each move of epsilon to its numbers.
    drawn : list of float
        Seconds from each move of epsilon to the complete page.
    strange : list of str
        Signs that another visitor's table was shown.
    problems, notices : list of str
        Errors on pages, and other faults.
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
        """Open the page and wait until it is rendered."""
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
        """Upload a table and wait until the page shows it."""
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
        """Return the cookie that every request for a change has to repeat."""
        with urllib.request.urlopen(f"{self.url}/_stcore/health") as answer:
            return str(answer.headers.get("Set-Cookie", "").split(";")[0])

    def put(self, path: str, name: str, content: bytes) -> None:
        """Send a file to the address at which the server expects it."""
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
        """Remove a file as a browser does; return the answer's status."""
        cookie = self.cookie()
        headers = {"Cookie": cookie, "X-Xsrftoken": cookie.partition("=")[2]}
        request = urllib.request.Request(self.url + path, method="DELETE", headers=headers)
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)

    async def move(self, epsilon: float) -> None:
        """Move epsilon; record when its numbers came and when the page was complete."""
        self._values["view.epsilon.box"] = ("string_value", f"{epsilon:g}")
        began = time.monotonic()
        self._now = None
        task = asyncio.create_task(self._run())
        await self._until(lambda: self._now is not None and abs(self._now - epsilon) < 1e-9)
        self.shown.append(time.monotonic() - began)
        await task
        self.drawn.append(time.monotonic() - began)

    def ask(self, epsilon: float) -> None:
        """Request a run at an epsilon without waiting for its result."""
        self._values["view.epsilon.box"] = ("string_value", f"{epsilon:g}")
        assert self._stream is not None
        self._sent = asyncio.create_task(self._stream.send(self._wish({})))

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the Explore figure shown last."""
        return self._now

    async def news(self) -> None:
        """Wait for a moment, or until a message comes."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await self._news.wait()

    @property
    def runs(self) -> int:
        """Number of script runs that have ended."""
        return self._finished

    async def _run(self) -> None:
        """Request a run of the script, then the Explore figure's frames, as a browser does."""
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
        """Return a message that requests a run with all current settings."""
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
                self._reader.result()  # This call raises the visitor's own error, if any.
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
        words = ""
        if what == "markdown":
            words = element.markdown.body
        if what == "bidi_component" and "board" in element.bidi_component.id.rpartition("-")[2]:
            board = element.bidi_component
            if board.component_name.endswith("dpviz_board"):
                self._widgets["board"] = board.id
                data = json.loads(board.json)
                self._now = float(data["payload"]["now"])
                self._wanted = not data["wanted"]
                words = json.dumps(data["payload"].get("table", ""))
        if what == "alert":
            wrong = element.alert.format == element.alert.ERROR and bool(self.people)
            (self.problems if wrong else self.notices).append(element.alert.body)
        if self.people:
            numbers = re.findall(r"\b(\d[\d,]*) people\b", words)
            self.strange += [
                text for text in numbers if int(text.replace(",", "")) not in (self.people,)
            ]
            names = set(re.findall(r"\bv(\d+)x\d+\b", words)) - {str(self.number)}
            self.strange += [f"a column of visitor {name}" for name in names]


def memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


async def come(number: int, url: str, rows: int, query: str) -> Visitor:
    """Return a visitor who has uploaded a table and seen it on the page."""
    visitor = Visitor(number, url)
    await visitor.visit(query)
    visitor.people, content = table(number, rows)
    await visitor.upload(f"table{number}.csv", content)
    return visitor


async def stay(visitor: Visitor, moves: int, think: float) -> None:
    """Move epsilon repeatedly, with pauses to look at the result."""
    rng = generator(visitor.number, "load", "think")
    for number in range(moves):
        await asyncio.sleep(float(rng.uniform(0.5, 1.5)) * think)
        # Use an epsilon between the slider's steps, so that every move needs new simulations.
        await visitor.move(round(0.1 * 1.3 ** ((5 * visitor.number + number) % 17) + 0.003, 4))


def told(seconds: list[float]) -> str:
    """Return a summary of the distribution of some times."""
    low, middle, high = np.quantile(seconds, [0.05, 0.5, 0.95])
    return f"{middle:.2f} s | {low:.2f} s | {high:.2f} s | {max(seconds):.2f} s"


async def measure(args: argparse.Namespace, url: str, pid: int | None) -> tuple[list[str], bool]:
    """Let the visitors come, move epsilon and leave.

    Returns
    -------
    lines : list of str
        Observations of the load test, as Markdown.
    well : bool
        Whether nobody saw another's table or an error, and one visitor too many got a message.
    """
    query = f"table=upload&trials={args.trials}" + (f"&m={args.m}" if args.m else "")
    warm = await come(999, url, args.rows, query)
    await warm.move(0.5)
    await warm.leave()
    start = memory(pid) if pid else math.nan
    began = time.monotonic()
    visitors = await asyncio.gather(
        *(come(number, url, args.rows, query) for number in range(args.sessions))
    )
    seconds = time.monotonic() - began
    print(f"all there after {seconds:.0f} s", flush=True)
    full = True
    if pid:  # A server that this script did not start has an unknown limit.
        late = Visitor(998, url)
        await late.visit(query)
        full = any(FULL in notice for notice in late.notices)
        await late.leave()
    began, cpu = time.monotonic(), cpu_of(pid)
    await asyncio.gather(*(stay(visitor, args.moves, args.think) for visitor in visitors))
    wall = time.monotonic() - began
    first = [second for visitor in visitors for second in visitor.shown]
    whole = [second for visitor in visitors for second in visitor.drawn]
    strange = [text for visitor in visitors for text in visitor.strange]
    problems = [text for visitor in visitors for text in visitor.problems]
    worst = max(float(np.quantile(visitor.shown, 0.95)) for visitor in visitors)
    lines = [
        f"{args.sessions} visitors, each with a table of {args.rows:,} rows and {COLUMNS} "
        f"columns, arrived at once and saw their own table within {seconds:.0f} s. Each visitor "
        f"moved epsilon {args.moves} times, {args.think:g} s apart "
        f"(Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}):",
        "",
        f"| of {len(first)} moves | median | 5 % within | 95 % within | slowest |",
        "|---|---|---|---|---|",
        f"| until the numbers are there | {told(first)} |",
        f"| until the page is complete | {told(whole)} |",
        "",
        f"- The slowest visitor saw the new numbers within {worst:.2f} s in 95 % of moves.",
        f"- Visitors who saw another visitor's table: {len(strange)}. Errors: {len(problems)}.",
    ]
    print("\n".join([*lines, *problems[:2]]), flush=True)
    count = len(lines)
    if pid:
        busy = cpu_of(pid) - cpu
        if full:
            lines.append(f"- An additional visitor got the message that {FULL}.")
        lines.append(f"- The server used {busy / len(first):.2f} s of one core per move.")
        most = memory(pid)
        now, wait = await gone(visitors, pid, args.after, 1.2 * start)
        lines.append(
            f"- The server used {start:.0f} MB before, {most:.0f} MB with all visitors "
            f"({wall:.0f} s of moves), and {now:.0f} MB ({100 * (now / start - 1):+.0f} %) "
            f"{wait:.0f} s after all had left."
        )
        for wave in range(2, args.waves + 1):
            again = await asyncio.gather(
                *(come(number, url, args.rows, query) for number in range(args.sessions))
            )
            await asyncio.gather(*(stay(visitor, args.moves, args.think) for visitor in again))
            now, wait = await gone(again, pid, args.after, 0.0)
            lines.append(
                f"- The server used {now:.0f} MB ({100 * (now / start - 1):+.0f} %) {wait:.0f} s "
                f"after group {wave} of {args.sessions} visitors had left."
            )
        print("\n".join(lines[count:]))
    return lines, not strange and not problems and full


COLD = {"default": "", "another table": "table=wine", "an uncached setting": "seed=7&trials=30"}
"""Links that many visitors open at once."""


async def cold(url: str, query: str, visitors: int) -> list[tuple[float, float]]:
    """Return when each visitor of one link, opened by all at once, has numbers and a whole page."""
    everybody = [Visitor(number, url) for number in range(visitors)]

    async def come_in(visitor: Visitor) -> tuple[float, float]:
        began = time.monotonic()
        task = asyncio.create_task(visitor.visit(query))
        while visitor.epsilon is None and not task.done():
            await visitor.news()
        first = time.monotonic() - began
        await task
        return first, time.monotonic() - began

    seconds = await asyncio.gather(*(come_in(visitor) for visitor in everybody))
    problems = [text for visitor in everybody for text in visitor.problems]
    if problems:
        raise RuntimeError(problems[0])
    for visitor in everybody:
        await visitor.leave()
    return seconds


def all_cold(counts: list[int]) -> tuple[list[str], bool]:
    """Return cold visitors' waits for one link, as Markdown, and whether 95 % are in time."""
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
            busy = cpu_of(server.pid) - before
        first, whole = ([one[part] for one in seconds] for part in (0, 1))
        well = well and float(np.quantile(first, 0.95)) <= COLD_SECONDS
        lines.append(f"| {count} | {name} | {told(first)} | {max(whole):.2f} s | {busy:.1f} s |")
        print(lines[-1], flush=True)
    return lines, well


async def annoy(visitor: Visitor, every: float) -> None:
    """Request Explore at another epsilon again and again, whatever the outcome."""
    for number in itertools.count():
        epsilon = 0.1 * 1.1 ** ((7 * visitor.number + number) % 40) + 0.003
        visitor.ask(epsilon)
        await asyncio.sleep(every)


async def quiet(options: argparse.Namespace, url: str) -> list[str]:
    """Return the times of a person's moves, alone and beside noisy visitors, as Markdown."""
    one = Visitor(1, url)
    query = f"trials={options.trials}"
    await one.visit(query)
    await stay(one, 2 * options.moves, 0.5)
    alone = one.shown[2:]  # Leave out the first two moves, which warm up the server.
    others = [Visitor(2 + number, url) for number in range(options.noisy)]
    await asyncio.gather(*(other.visit(query) for other in others))
    one.shown = []
    noise = [asyncio.create_task(annoy(other, options.every)) for other in others]
    await asyncio.sleep(options.every)
    await stay(one, options.moves, options.think)
    for task in noise:
        task.cancel()
    for visitor in (one, *others):
        await visitor.leave()
    return [
        f"One visitor moves epsilon on Explore. At the same time {options.noisy} other visitors "
        f"request another epsilon every {options.every:g} s, without waiting for an answer "
        f"(Python {platform.python_version()}, {os.cpu_count()} cores of {platform.machine()}):",
        "",
        "| until the numbers are there | median | 5 % within | 95 % within | slowest |",
        "|---|---|---|---|---|",
        f"| alone, {len(alone)} moves | {told(alone)} |",
        f"| beside the others, {len(one.shown)} moves | {told(one.shown)} |",
        "",
        f"The server finished {sum(other.runs for other in others)} runs of the other visitors.",
    ]


@contextmanager
def serve(places: int) -> Iterator[Server]:
    """Start a fresh server with a given limit of visitors."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"XDG_CACHE_HOME": folder, "DPVIZ_SESSIONS": str(places)}
        with Server(app_path(), Path(folder) / "server.log", own) as server:
            yield server


async def gone(
    visitors: list[Visitor], pid: int, most: float, enough: float
) -> tuple[float, float]:
    """Let visitors leave; return the memory and the seconds until it is low, or the last values."""
    for visitor in visitors:
        await visitor.leave()
    begin = time.monotonic()
    now = memory(pid)
    while time.monotonic() - begin < most and now > enough:
        await asyncio.sleep(5)
        now = memory(pid)
    return now, time.monotonic() - begin


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
    options = parser.parse_args()
    problem = ""

    async def asked(url: str, pid: int | None) -> tuple[list[str], bool]:
        if options.noisy:
            lines = await quiet(options, url)
            print("\n".join(lines))
            return lines, True
        return await measure(options, url, pid)

    if options.cold:
        lines, well = all_cold([int(count) for count in options.cold.split(",")])
    elif options.url:
        lines, well = asyncio.run(asked(options.url, None))
    else:
        with serve(max(options.sessions, options.noisy + 1)) as server:
            lines, well = asyncio.run(asked(server.url, server.pid))
            problem = server.new_traceback()
    if problem:
        print(problem)
    if options.out:
        text = options.out.read_text(encoding="utf-8")
        name = "cold" if options.cold else "noisy" if options.noisy else "load"
        start, end = (f"<!-- {name}: {edge} -->" for edge in _EDGES)
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        whole = "\n".join([start, *lines, end])
        options.out.write_text(f"{before}{whole}{after}", encoding="utf-8")
    return int(not well or bool(problem))


if __name__ == "__main__":
    sys.exit(main())
