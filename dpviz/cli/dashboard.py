"""The command ``app``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from dpviz.cli.options import Commands
from dpviz.core.environment import server_options
from dpviz.core.errors import InvalidSetting
from dpviz.core.paths import app_path


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, default=None, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)


def _app(arguments: argparse.Namespace) -> int:
    """Become Streamlit on the app's own files, from any folder."""
    server_options()  # what it would refuse is said here, and in one line
    command = [sys.executable, "-m", "streamlit", "run", str(app_path())]
    if "STREAMLIT_SERVER_ADDRESS" not in os.environ:
        command += ["--server.address", "localhost"]
    if arguments.port is not None:
        if not 1 <= arguments.port <= 65_535:
            raise InvalidSetting("port", "from 1 to 65535", arguments.port, "--port")
        command += ["--server.port", str(arguments.port)]
    if arguments.headless:
        command += ["--server.headless", "true"]
    # BLAS reads this at start only; its threads would fight over small matrices.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    if os.name == "posix":
        # The server takes this process's place, so that what ends the one ends the other.
        os.execve(sys.executable, command, environment)
    return _watched(command, environment)


def _watched(command: list[str], environment: dict[str, str]) -> int:
    """Run the server where no program can take the place of another, and end it with this one."""
    with subprocess.Popen(command, env=environment) as server:
        try:
            return server.wait()
        finally:
            server.terminate()
