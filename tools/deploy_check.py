"""Test the steps of the Dockerfile without Docker: ``python -m tools.deploy_check``.

The check reads the Dockerfile's own lines. The locked packages go into a fresh environment, and the
copied files into a folder that is then made read-only. The command runs with the image's
environment, as another user if this user may switch, until the health check and the page answer. A
folder replaces the volume of ledgers: a ledger can be made in it, and is refused if there is only
memory. In the end the server gets the signal that ends a container. The check needs a minute or two
and the package index.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 90.0


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    lines_in_parts = [line.split(None, 1) for line in whole.splitlines() if line.strip()]
    return [(words[0].upper(), words[1] if len(words) > 1 else "") for words in lines_in_parts]


def last_stage(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the instructions of the final stage."""
    starts = [number for number, (word, _) in enumerate(steps) if word == "FROM"]
    return steps[starts[-1] :]


def environment(stage: list[tuple[str, str]]) -> dict[str, str]:
    """Return the environment variables that a stage of the Dockerfile sets."""
    pairs = [
        part.split("=", 1) for word, rest in stage if word == "ENV" for part in shlex.split(rest)
    ]
    return {name: value for name, value in pairs}


def copied(stage: list[tuple[str, str]], to: Path) -> None:
    """Copy the files that the stage copies from the checkout."""
    for word, rest in stage:
        if word != "COPY" or rest.startswith("--from"):
            continue
        *sources, target = rest.split()
        for source in sources:
            place = to / (source if target == "./" else target)
            if (ROOT / source).is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, place, ignore=ignore)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)


def read_only(folder: Path) -> None:
    """Remove write permission from a folder and everything below it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def free_port() -> int:
    """Return a port on which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# This script checks that OpenDP is installed, and a ledger works on the volume, not in memory.
_RELEASING = """
import os, pathlib
from dpviz.releasing.ledger import Ledger, LedgerError, ledger_named
from dpviz.releasing.noise import opendp_version
from dpviz.core.problem import Budget, Relation
print("OpenDP", opendp_version())
Ledger(ledger_named("mine")).create(Budget(1.0, 0.0), Relation.REPLACE)
print("a ledger in", os.environ["DPVIZ_LEDGERS"])
if os.path.ismount("/dev/shm"):
    os.environ["DPVIZ_LEDGERS"] = "/dev/shm"
    try:
        ledger_named("mine")
    except LedgerError as error:
        print(error)
    else:
        raise SystemExit("a ledger in memory was not refused")
"""


def ledger_is_kept(
    python: Path, source: Path, environment: dict[str, str], user: dict[str, int]
) -> bool:
    """Return whether releases find their library and a ledger on disk, and memory is refused."""
    command = [str(python), "-c", _RELEASING]
    result = subprocess.run(command, cwd=source, env=environment, check=False, **user)
    return result.returncode == 0


def main() -> int:
    """Run the steps; return 0 if the server was healthy and served its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment")
    parser.add_argument("--installed", help="skip the installation and use this environment's bin")
    options = parser.parse_args()
    stage = last_stage(instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")))
    folder = Path(tempfile.mkdtemp(prefix="dpviz-deploy-"))
    folder.chmod(0o755)
    try:
        return check(stage, folder, options.python, options.installed)
    finally:
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)


def check(stage: list[tuple[str, str]], folder: Path, python: str, bins: str | None) -> int:
    """Install, copy, start and test."""
    binaries = Path(bins) if bins else folder / "venv" / "bin"
    if not bins:
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        pip = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
        subprocess.run([*pip, "-r", str(ROOT / "requirements.lock")], check=True)
        print("installed requirements.lock with hashes")
    source, home, ledgers = folder / "source", folder / "home", folder / "ledgers"
    for place in (source, home, ledgers):
        place.mkdir()
    copied(stage, source)
    read_only(source)
    if not (source / "LICENSE").is_file():
        print("the image has no licence", file=sys.stderr)
        return 1
    port = free_port()
    set_here = environment(stage) | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TMPDIR": str(home),
        "PATH": f"{binaries}:/usr/bin:/bin",
        "STREAMLIT_SERVER_PORT": str(port),
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "DPVIZ_LEDGERS": str(ledgers),
    }
    (command,) = (json.loads(rest) for word, rest in stage if word == "CMD")
    (health,) = (
        json.loads(rest.split("CMD", 1)[1]) for word, rest in stage if word == "HEALTHCHECK"
    )
    user: dict[str, int] = {}
    if os.getuid() == 0:
        (user_id,) = (rest for word, rest in stage if word == "USER")
        user = {"user": int(user_id), "group": int(user_id)}
        for own in (home, ledgers):
            os.chown(own, int(user_id), int(user_id))
    if not ledger_is_kept(binaries / "python", source, set_here, user):
        return 1
    server = subprocess.Popen(
        [str(binaries / command[0]), *command[1:]], cwd=source, env=set_here, **user
    )
    try:
        begin = time.monotonic()
        while subprocess.run(
            [str(binaries / health[0]), *health[1:]],
            env=set_here, stderr=subprocess.DEVNULL, check=False,
        ).returncode:  # fmt: skip
            if server.poll() is not None or time.monotonic() - begin > PATIENCE:
                print("the server did not become healthy", file=sys.stderr)
                return 1
            time.sleep(0.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            page = answer.read()
        who = f"as user {user['user']}" if user else "as this user"
        print(f"healthy after {time.monotonic() - begin:.0f} s {who}, source read-only")
        server.terminate()
        end = time.monotonic()
        server.wait(20)
        print(f"ended {time.monotonic() - end:.1f} s after it was told to")
        return int(b"<title>" not in page)
    except (OSError, urllib.error.URLError) as error:
        print(f"the page was not served: {error}", file=sys.stderr)
        return 1
    finally:
        server.kill()
        server.wait(20)


if __name__ == "__main__":
    sys.exit(main())
