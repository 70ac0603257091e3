"""A real server: its outside requests, its visitors, its stored data, and its end.

If only the result of a command and an environment matters, the server is a fork of a warm Python.
"""

from __future__ import annotations

import asyncio
import json
import os
import pkgutil
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qsl

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.load import Visitor
from dpviz.core.files import app_path
from tests.e2e.harness import Server, free_port, is_free
from tools.promises import answer, put, shaken, status_of

ROOT = Path(__file__).resolve().parents[2]
VIEW = "v=1&table=iris&trials=2&m=gaussian"
# Each interpreter that finds this code runs it first, and logs the hosts that it contacts.
WATCH = """
import os, sys

ASKING = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr",
          "socket.sendto", "socket.sendmsg"}

def note(event, arguments):
    if event in ASKING:
        to = arguments[1] if isinstance(arguments[0], __import__("socket").socket) else arguments
        write(f"{event} {to!r}")

def write(line):
    with open(os.environ["ASKED"], "a") as file:
        file.write(line + "\\n")

write(f"{os.getpid()} is watched")
sys.addaudithook(note)
"""


@pytest.fixture
def watch(tmp_path: Path) -> dict[str, str]:
    """Return an environment that logs the hosts that a process contacts."""
    folder = tmp_path / "watch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    return {"PYTHONPATH": str(folder), "ASKED": str(tmp_path / "asked")}


def asked(watch: Mapping[str, str]) -> list[str]:
    """Return the logged requests to hosts other than this machine's loopback."""
    lines = Path(watch["ASKED"]).read_text(encoding="utf-8").splitlines()
    marks = (" is watched", "('127.0.0.1'", "('localhost'", "('::1'", "(b'127.0.0.1'")
    return [line for line in lines if not any(word in line for word in marks)]


@contextmanager
def served(
    folder: Path, environment: Mapping[str, str] | None = None, *words: str
) -> Iterator[Server]:
    """Start the dashboard as ``dpviz app`` does."""
    port = free_port()
    env = {"XDG_CACHE_HOME": str(folder), "DPVIZ_LEDGERS": str(folder / "ledgers")}
    command = [sys.executable, "-m", "dpviz", "app", "--headless", "--port", str(port), *words]
    log = folder / "server.log"
    with Server(
        app_path(), log, {**env, **(environment or {})}, ROOT, port=port, command=command
    ) as running:
        yield running
        assert running.new_traceback() == ""


def visited(server: Server, query: str = VIEW) -> None:
    """Let a visitor come, see the page and leave."""

    async def come() -> None:
        visitor = Visitor(1, server.url)
        await visitor.visit(query)
        assert visitor.problems == []
        await visitor.leave()

    asyncio.run(come())


# Requests ------------------------------------------------------------------------------------


def test_the_watch_sees_what_is_asked(watch: dict[str, str]) -> None:
    program = (
        "import socket\n"
        "with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one: one.connect(('8.8.8.8', 1))"
        "\ntry: socket.getaddrinfo('nowhere.invalid', 80)\nexcept OSError: pass\n"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **watch}, check=True)
    assert asked(watch) == [
        "socket.connect ('8.8.8.8', 1)",
        "socket.getaddrinfo ('nowhere.invalid', 80, 0, 0, 0)",
    ]


def test_with_visitors_and_files_it_asks_nobody_keeps_its_limits_and_ends(
    watch: dict[str, str], tmp_path: Path
) -> None:
    """Settings as in a container: any address, no browser, two visitors, a megabyte per session."""
    env = {
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
        "DPVIZ_HOSTS": "dpviz.example.org",
        "DPVIZ_SESSIONS": "2",
        "STREAMLIT_SERVER_MAX_UPLOAD_SIZE": "1",
    }
    with served(tmp_path, {**watch, **env}) as server:
        log = Path(watch["ASKED"]).read_text(encoding="utf-8")
        assert f"{server.pid} is watched\n" in log
        asyncio.run(each_session_has_its_room(server))
        assert asked(watch) == []


async def each_session_has_its_room(server: Server) -> None:
    """Check a session's upload limit: space is freed, needs a session, and delays no shutdown."""

    async def send(visitor: Visitor, name: str, size: int) -> None:
        there = f"/_stcore/upload_file/{visitor.session}/{name}"
        await asyncio.to_thread(visitor.put, there, f"{name}.csv", bytes(size))

    one, two, late = (Visitor(number, server.url) for number in (1, 2, 3))
    for visitor in (one, two, late):
        await visitor.visit(VIEW)
    assert one.problems + two.problems == []
    await send(one, "a", 700_000)
    # The server refuses this upload by its stated length alone. Send no body: a client that writes
    # before it reads would see a closed connection.
    with closing(put(server.url, one.session, 700_000, one.cookie())) as line:
        assert await asyncio.to_thread(status_of, line) == 413
    await send(one, "b", 300_000)
    await send(two, "a", 700_000)  # Each session has its own upload limit.
    there = f"/_stcore/upload_file/{one.session}/a"
    assert await asyncio.to_thread(one.take_away, there) == 204
    await send(one, "b", 700_000)
    # If an upload states no length, the server stops the upload on its way.
    with closing(put(server.url, two.session, None, one.cookie())) as line:
        head = b'--edge\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        for piece in (head, *(bytes(2**16),) * 64):
            try:
                line.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            except OSError:
                break  # The server has closed the connection.
        assert await asyncio.to_thread(status_of, line) == 413
    assert any("all places are taken" in said for said in late.notices)
    with closing(put(server.url, late.session, 2**10, late.cookie())) as line:
        assert await asyncio.to_thread(status_of, line) == 403
    await one.leave()
    await late.leave()
    if os.name == "posix":  # Test an upload that never ends.
        with closing(put(server.url, two.session, 2**10, two.cookie())) as line:
            line.sendall(b"--edge\r\n")
            line.settimeout(0.3)
            assert status_of(line) == 0
            await asyncio.to_thread(ended, server, server.port)


def test_until_it_is_opened_it_answers_its_own_machine_only(tmp_path: Path, warm: Path) -> None:
    """`streamlit run app.py` listens everywhere, so refuse outside hosts until they are allowed."""
    near = _other_address()
    if near is None:
        pytest.skip("this machine has no address but its loopback")
    command = [str(warm), "-m", "streamlit", "run", str(app_path())]
    port = free_port()
    env = {"STREAMLIT_SERVER_HEADLESS": "true", "STREAMLIT_SERVER_PORT": str(port)}
    with Server(app_path(), tmp_path / "log", env, port=port, command=command) as server:
        assert answer(server.url)[0] == 200
        assert _knock(near, port, "/_stcore/health") == 200
        assert _knock(near, port, "/") == 403
        assert server.new_traceback() == ""


def _other_address() -> str | None:
    """Return an address of this machine other than its loopback; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("198.51.100.1", 1))  # Nobody uses this address.
        except OSError:
            return None
        return str(one.getsockname()[0])


def _knock(name: str, port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{name}:{port}{path}", timeout=20) as response:
            return int(response.status)
    except HTTPError as refused:
        return refused.code


# Messages sent together -----------------------------------------------------------------------


class Hasty(Visitor):
    """A visitor whose messages arrive together, as after a stalled connection."""

    def _take(self, message: ForwardMsg) -> None:
        super()._take(message)
        if message.WhichOneof("type") == "navigation":  # Follow the navigation as a browser does.
            self._page = message.navigation.page_script_hash

    async def at_once(self, epsilon: float, delta: str) -> dict[str, str]:
        """Move the figure and set a delta, then request a run without both; return the address."""
        assert self._stream is not None
        events = [{"event": "commit", "value": epsilon}]
        trigger = f"$$STREAMLIT_INTERNAL_KEY_{self._widgets['board']}__events"
        self._values["view.delta.box"] = ("string_value", delta)
        first = self._wish({trigger: events})
        del self._values["view.delta.box"]  # Make the second message look like another page's.
        before = self._finished
        for message in (first, self._wish({})):
            await self._stream.send(message)
        await self._until(lambda: self._finished > before)
        return dict(parse_qsl(self._query))


def test_of_two_messages_that_come_together_both_are_heard(tmp_path: Path, warm: Path) -> None:
    """Both messages take effect, although Streamlit ends the first run before it reads them."""

    async def say(url: str) -> None:
        visitor = Hasty(1, url)
        await visitor.visit(VIEW)
        for number in range(1, 4):
            epsilon, delta = f"1.{number}", f"{number}e-7"
            query = await visitor.at_once(float(epsilon), delta)
            assert (query["epsilon"], query["delta"]) == (epsilon, delta)
        assert visitor.problems == []
        await visitor.leave()

    with Server(app_path(), tmp_path / "log", {"XDG_CACHE_HOME": str(tmp_path)}, python=warm) as it:
        asyncio.run(say(it.url))
        assert it.new_traceback() == ""


# Leftover state ------------------------------------------------------------------------------


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Return whether a condition becomes true in time, without contacting a server."""
    end, again = time.monotonic() + seconds, threading.Event()
    while not true():
        if time.monotonic() > end:
            return False
        again.wait(0.1)
    return True


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_lines_that_were_cut_leave_no_open_files_and_no_traceback(tmp_path: Path) -> None:
    """Dropped connections leave no state, even if Streamlit forgets to close a session."""
    env = {"XDG_CACHE_HOME": str(tmp_path), "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5"}
    with Server(app_path(), tmp_path / "log", env) as server:
        folder = Path(f"/proc/{server.pid}/fd")

        def opened() -> int:
            return len(list(folder.iterdir()))

        before = opened()
        for _ in range(40):
            assert asyncio.run(shaken(server.url)) == 101
        assert opened() - before > 40
        assert until(lambda: opened() - before < 10, 30), opened() - before

        async def cut_short() -> None:
            visitor = Visitor(1, server.url)
            await visitor.visit(VIEW)
            for length in (10**5, None):
                with closing(put(server.url, visitor.session, length, visitor.cookie())) as line:
                    line.sendall(b"--edge\r\n" if length else b"8\r\n--edge\r\n\r\n")
                    line.settimeout(0.3)
                    assert await asyncio.to_thread(status_of, line) == 0
            # Request a file from a run of the page that a newer run has replaced.
            message = BackMsg()
            request = message.backend_operation_request
            request.request_id, request.session_id = "1", visitor.session
            request.deferred_file.file_id = "overtaken"
            assert visitor._stream is not None
            await visitor._stream.send(message.SerializeToString())
            await visitor.move(2.0)  # This returns after the server's answer.
            await visitor.leave()

        asyncio.run(cut_short())
        assert server.new_traceback() == ""


# Shutdown ------------------------------------------------------------------------------------


def ended(server: Server, number: int) -> None:
    """Send a signal; the port must be free within two seconds, and the process then ends."""
    os.kill(server.pid, signal.SIGTERM)
    assert until(lambda: is_free(number), 2)
    assert until(lambda: server.ended, 10)


@pytest.mark.parametrize(
    ("name", "word", "start"),
    [
        ("DPVIZ_PUBLIC", "maybe", ["dpviz", "app", "--headless", "--port"]),
        # A wrong value also stops the start if Streamlit runs the script itself.
        ("DPVIZ_RELEASE", "never", ["streamlit", "run", str(app_path()), "--server.headless",
                                    "true", "--server.port"]),
    ],
)  # fmt: skip
def test_a_wrong_word_stops_the_start_in_one_sentence(
    name: str, word: str, start: list[str], warm: Path
) -> None:
    """A wrong value prevents both kinds of start; tests/unit/test_environment.py has all rules."""
    process = subprocess.run(
        [str(warm), "-m", *start, str(free_port())],
        cwd=ROOT, env={**os.environ, name: word}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert process.returncode != 0
    assert f"dpviz: {name} must be " in process.stderr
    assert "Traceback" not in process.stderr
    if start[0] == "dpviz":
        assert (process.returncode, process.stdout) == (2, "")
        assert process.stderr.startswith("dpviz: ")
        assert process.stderr.count("\n") == 1


def test_what_a_host_keeps_as_a_secret_sets_the_switches(tmp_path: Path, warm: Path) -> None:
    """A host may offer only secrets, not variables; Streamlit puts secrets in the environment."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("app.py", "pages", "dpviz", "data"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".streamlit").mkdir()
    shutil.copy(ROOT / ".streamlit" / "config.toml", folder / ".streamlit")
    secret = json.dumps("my.app.example")
    (folder / ".streamlit" / "secrets.toml").write_text(
        f'DPVIZ_PUBLIC = "on"\nDPVIZ_HOSTS = {secret}\n', encoding="utf-8"
    )
    port = free_port()
    command = [str(warm), "-m", "streamlit", "run", "app.py"]
    env = {"STREAMLIT_SERVER_PORT": str(port), "STREAMLIT_SERVER_HEADLESS": "true"}
    with Server(
        folder / "app.py", tmp_path / "log", env, folder, port=port, command=command
    ) as server:
        assert answer(server.url, Host="my.app.example")[0] == 200
        assert answer(server.url, Host="other.app.example")[0] == 421
        assert answer(server.url, "/_stcore/metrics")[0] == 404
        visited(server)


# The table of hosts --------------------------------------------------------------------------


def rows() -> list[tuple[str, str]]:
    """Return every command in the table of docs/deploy.md, and the host name to open."""
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    table_of_hosts = text.partition("<!-- hosts: start -->")[2].partition("<!-- hosts: end -->")[0]
    table_rows = [line.split("|") for line in table_of_hosts.strip().splitlines()[2:]]
    return [(cells[2].strip(" `"), cells[3].strip(" `")) for cells in table_rows]


@pytest.mark.parametrize(("command", "name"), rows(), ids=[row[0].split()[0] for row in rows()])
def test_every_host_of_the_table_is_served_by_its_command(
    command: str, name: str, tmp_path: Path, warm: Path
) -> None:
    """Each command works as typed, except for the programs' folder and the port."""
    port = free_port()
    program = f"{warm} -m "
    line = re.sub(r"(?<![-\w])(dpviz (?:app|class)|streamlit run)", rf"{program}\1", command)
    if command == "dpviz class":  # The printed link needs a stated port.
        line += f" --port {port}"
    env = {
        "PORT": str(port), "STREAMLIT_SERVER_PORT": str(port), "XDG_CACHE_HOME": str(tmp_path),
        "STREAMLIT_SERVER_HEADLESS": "true",
    }  # fmt: skip
    before, run, rest = line.partition(program)
    shell = ["bash", "-c", f"export {before or 'X=1'}\nexec {run}{rest}"]
    with Server(app_path(), tmp_path / "log", env, ROOT, port=port, command=shell) as server:
        if name == "what it prints":
            log = (tmp_path / "log").read_text(encoding="utf-8")
            match = re.search(r"phones open http://([^/:]+):(\d+)/", log)
            assert match is not None
            assert match[2] == str(port)
            name = match[1]
            assert _knock(name, port, "/") == 200  # The page also opens by this host name.
        assert answer(server.url, Host=name)[0] == 200
        assert answer(server.url, Host="evil.example")[0] == 421
        assert asyncio.run(shaken(server.url)) == 101
        near = _other_address()
        if near is not None and "localhost" not in (name, _listening(command)):
            assert _knock(near, port, "/_stcore/health") == 200
        assert server.new_traceback() == ""


def _listening(command: str) -> str:
    """Return a command's address: `dpviz app` listens on localhost unless told otherwise."""
    ours = any(w in command for w in ("STREAMLIT_SERVER_ADDRESS", "streamlit run", "dpviz class"))
    return "everywhere" if ours else "localhost"


def test_jupyterhub_starts_it_below_a_path_and_it_answers_the_proxy_alone(tmp_path: Path) -> None:
    """Start dpviz by the package's settings for jupyter-server-proxy, filled in the same way."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name, place), *others = project["entry-points"]["jupyter_serverproxy_servers"].items()
    application = pkgutil.resolve_name(place)()
    port, hub = free_port(), "/user/ann/"

    def filled(words: Mapping[str, str]) -> dict[str, str]:
        return {key: text.format(port=port, base_url=hub) for key, text in words.items()}

    command = [word.format(port=port) for word in application["command"]]
    env = {"XDG_CACHE_HOME": str(tmp_path), **filled(application["environment"])}
    below = f"{hub}{name}"
    assert (application["absolute_url"], others) == (True, [])  # The proxy passes the full path.
    with Server(
        app_path(), tmp_path / "log", env, ROOT, port=port, command=command, below=below
    ) as server:
        heads = filled(application["request_headers_override"])
        assert answer(server.url, **heads)[0] == 200
        assert asyncio.run(shaken(server.url, **heads)) == 101
        visited(server)
        # Refuse requests that bypass the proxy, as from another page: with its host or origin.
        assert answer(server.url, Host="hub.example.org")[0] == 421
        assert asyncio.run(shaken(server.url, Origin="https://hub.example.org")) == 403
        assert server.new_traceback() == ""


def test_the_table_has_its_rows() -> None:
    assert len(rows()) == 7
    assert sum("streamlit run app.py" in command for command, _ in rows()) == 2
