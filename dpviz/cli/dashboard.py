"""The commands ``app`` and ``class``."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from dpviz.cli.options import Commands
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import app_path
from dpviz.core.platform import need, server_options


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)
    room = commands.add_parser("class", help="run a lesson for a class that answers on phones")
    room.add_argument("--port", type=int, default=8501, help="port on all addresses (default 8501)")
    room.add_argument(
        "--address",
        metavar="NAME",
        help="name of this machine for phones; default: its number in the network",
    )
    room.add_argument(
        "--language", default="en", help="language of the lessons: en or de (default en)"
    )
    room.set_defaults(run=_class)


def _app(arguments: argparse.Namespace) -> int:
    """Become Streamlit on the app's own files, from any folder."""
    # this machine alone, unless whoever starts it says otherwise
    address = None if "STREAMLIT_SERVER_ADDRESS" in os.environ else "localhost"
    return _serve(address, arguments.port, {}, headless=arguments.headless)


def proxied() -> dict[str, Any]:
    """Return how JupyterHub starts the dashboard beside a notebook, for jupyter-server-proxy.

    The hub lets its user alone pass, and compares the origin of a websocket with its own name. So
    dpviz answers the proxy as it answers its own machine, and nobody under another name.
    """
    return {
        "command": [sys.executable, "-m", "dpviz", "app", "--headless", "--port", "{port}"],
        "environment": {"STREAMLIT_SERVER_BASE_URL_PATH": "{base_url}dpviz"},
        "absolute_url": True,
        "request_headers_override": {
            "Host": "localhost:{port}",
            "Origin": "http://localhost:{port}",
        },
        "timeout": 180,  # seconds; a first start compiles what it imports
        "launcher_entry": {"title": "dpviz", "enabled": find_spec("streamlit") is not None},
    }


def _class(arguments: argparse.Namespace) -> int:
    """Open a room on all addresses, without uploads and releases, and say how it is entered."""
    from dpviz.lessons.languages import require
    from dpviz.lessons.room import ADDRESS, KEY, NAME, letters

    require(arguments.language)
    spoken = "" if arguments.language == "en" else f"&language={arguments.language}"
    named = arguments.address or _number()
    # the name is read aloud and opens a phone; the key opens the projector
    name, key = letters(), secrets.token_urlsafe(12)
    port = arguments.port
    _can_serve(port)  # before anybody is told an address
    hosts = [*filter(None, [os.environ.get("DPVIZ_HOSTS", "")]), named, socket.gethostname()]
    said = {
        NAME: name,
        KEY: key,
        ADDRESS: f"{named}:{port}",
        "DPVIZ_HOSTS": ",".join(hosts),
        "DPVIZ_UPLOADS": "off",
        "DPVIZ_RELEASE": "off",
    }
    print(f"Room {name}: phones open http://{named}:{port}/c/{name}")
    print(f"Projector: http://localhost:{port}/guide?v=1&present=yes{spoken}&room={key}")
    print(f"In or out: http://localhost:{port}/c/{name}/wall?key={key}{spoken}")
    print("Nothing is stored; the room ends after 3 hours, or with Ctrl+C.", flush=True)
    return _serve("0.0.0.0", port, said, headless=True)


def _number() -> str:
    """Return this machine's number in its network; asks nobody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))  # chooses a way out and sends nothing
            found: str = probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return found


def _serve(address: str | None, port: int | None, said: dict[str, str], *, headless: bool) -> int:
    """Become the server, with what the environment and these options say."""
    _can_serve(port)
    os.environ.update(said)
    server_options()  # what it would refuse is said here, and in one line
    command = [sys.executable, "-m", "streamlit", "run", str(app_path())]
    if address is not None:
        command += ["--server.address", address]
    if port is not None:
        command += ["--server.port", str(port)]
    if headless:
        command += ["--server.headless", "true"]
    # BLAS reads this at start only; its threads would fight over small matrices.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    if os.name == "posix":
        # The server takes this process's place, so that what ends the one ends the other.
        os.execve(sys.executable, command, environment)
    return _watched(command, environment)


def _can_serve(port: int | None) -> None:
    """Raise an error unless a server can be started, at a port if one is given."""
    need("streamlit")
    if port is None:
        return
    if not 1 <= port <= 65_535:
        raise InvalidSetting("port", "from 1 to 65535", port, "--port")
    if not _free(port):
        allowed = "a port that no other program answers at; say another, or end that program"
        raise InvalidSetting("port", allowed, port, "--port")


def _free(port: int) -> bool:
    """Return whether nothing listens at a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _watched(command: list[str], environment: dict[str, str]) -> int:
    """Run the server where no program can take the place of another, and end it with this one."""
    with subprocess.Popen(command, env=environment) as server:
        try:
            return server.wait()
        finally:
            server.terminate()
