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
    """Add the parsers of ``app`` and ``class``."""
    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)
    room = commands.add_parser("class", help="run a lesson for a class that answers on phones")
    room.add_argument("--port", type=int, default=8501, help="port on all addresses (default 8501)")
    room.add_argument(
        "--address",
        metavar="NAME",
        help="name under which phones reach this machine; default: its network address",
    )
    room.add_argument(
        "--language", default="en", help="language of the lessons: en or de (default en)"
    )
    room.set_defaults(run=_class)


def _app(arguments: argparse.Namespace) -> int:
    """Start Streamlit on the app's own files, from any folder."""
    # Accept visits from this computer only, unless the environment sets another address.
    address = None if "STREAMLIT_SERVER_ADDRESS" in os.environ else "localhost"
    return _serve(address, arguments.port, {}, headless=arguments.headless)


def proxied() -> dict[str, Any]:
    """Return how jupyter-server-proxy starts the dashboard beside a JupyterHub notebook.

    The hub admits only the notebook's user, and compares the origin of a websocket with its own
    name. So dpviz treats the proxy as localhost, and refuses every other host name.
    """
    return {
        "command": [sys.executable, "-m", "dpviz", "app", "--headless", "--port", "{port}"],
        "environment": {"STREAMLIT_SERVER_BASE_URL_PATH": "{base_url}dpviz"},
        "absolute_url": True,
        "request_headers_override": {
            "Host": "localhost:{port}",
            "Origin": "http://localhost:{port}",
        },
        "timeout": 180,  # Wait 3 minutes: a first start compiles all modules.
        "launcher_entry": {"title": "dpviz", "enabled": find_spec("streamlit") is not None},
    }


def _class(arguments: argparse.Namespace) -> int:
    """Start a classroom server on all addresses, without uploads and releases."""
    from dpviz.lessons.languages import require
    from dpviz.lessons.room import ADDRESS, KEY, NAME, letters

    require(arguments.language)
    spoken = "" if arguments.language == "en" else f"&language={arguments.language}"
    host = arguments.address or _number()
    # Phones enter with the room's name, read aloud; the projector needs a secret key.
    name, key = letters(), secrets.token_urlsafe(12)
    port = arguments.port
    _can_serve(port)  # Test the port first, before printing any address.
    hosts = [*filter(None, [os.environ.get("DPVIZ_HOSTS", "")]), host, socket.gethostname()]
    values = {
        NAME: name,
        KEY: key,
        ADDRESS: f"{host}:{port}",
        "DPVIZ_HOSTS": ",".join(hosts),
        "DPVIZ_UPLOADS": "off",
        "DPVIZ_RELEASE": "off",
    }
    print(f"Room {name}: phones open http://{host}:{port}/c/{name}")
    print(f"Projector: http://localhost:{port}/guide?v=1&present=yes{spoken}&room={key}")
    print(f"In or out: http://localhost:{port}/c/{name}/wall?key={key}{spoken}")
    print("Nothing is stored; the room ends after 3 hours, or with Ctrl+C.", flush=True)
    return _serve("0.0.0.0", port, values, headless=True)


def _number() -> str:
    """Return this machine's network address without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))  # For UDP, `connect` only selects a route.
            number: str = probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return number


def _serve(address: str | None, port: int | None, values: dict[str, str], *, headless: bool) -> int:
    """Start the Streamlit server with the environment and these options."""
    _can_serve(port)
    os.environ.update(values)
    server_options()  # Check the options here, to report errors in one line.
    command = [sys.executable, "-m", "streamlit", "run", str(app_path())]
    if address is not None:
        command += ["--server.address", address]
    if port is not None:
        command += ["--server.port", str(port)]
    if headless:
        command += ["--server.headless", "true"]
    # BLAS reads this setting only at its start. Its threads slow down work on small matrices.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    if os.name == "posix":
        # Replace this process by the server, so that ending the command also ends the server.
        os.execve(sys.executable, command, environment)
    return _run_alone(command, environment)


def _can_serve(port: int | None) -> None:
    """Raise an error unless a server can be started, on the given port if there is one."""
    need("streamlit")
    if port is None:
        return
    if not 1 <= port <= 65_535:
        raise InvalidSetting("port", "from 1 to 65535", port, "--port")
    if not _free(port):
        rule = "a free port; choose another port, or end the program that uses it"
        raise InvalidSetting("port", rule, port, "--port")


def _free(port: int) -> bool:
    """Return whether no program listens on a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _run_alone(command: list[str], environment: dict[str, str]) -> int:
    """Run the server as a child process (this system has no exec), and end both together."""
    with subprocess.Popen(command, env=environment) as server:
        try:
            return server.wait()
        finally:
            server.terminate()
