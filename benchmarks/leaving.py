"""What is left of an upload when its owner has gone, on a server that nobody touches.

``python -m benchmarks.leaving`` starts a dashboard with its usual grace, lets the first visitor
upload a table and a large file, lets them go, and reads the server's memory off the system until it
is back, or ``--patience`` seconds are over. Nothing is said to the server meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.load import Visitor, memory, table
from dpviz.core.files import app_path
from tests.e2e.harness import Server


async def come_and_go(server: Server, megabytes: int) -> tuple[float, float]:
    """Return the server's memory before the large file, and with it, in MB."""
    visitor = Visitor(1, server.url)
    await visitor.visit("v=1&table=upload&trials=2&m=gaussian")
    _, small = table(1, 100)
    await visitor.upload("small.csv", small)  # what is imported for it stays, and is nobody's
    before = memory(server.pid)
    _, content = table(2, 20_000)
    await visitor.upload("mine.csv", content)
    there = f"/_stcore/upload_file/{visitor.session}/raw"
    await asyncio.to_thread(visitor.put, there, "raw.csv", os.urandom(megabytes * 2**20))
    most = memory(server.pid)
    await visitor.leave()
    return before, most


def main() -> int:
    """Measure once; return 0 if a tenth of the file is all that is left in time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--patience", type=float, default=180.0, help="seconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = {"XDG_CACHE_HOME": folder}
        with Server(app_path(), Path(folder) / "log", own) as server:
            before, most = asyncio.run(come_and_go(server, given.megabytes))
            began = time.monotonic()
            while (now := memory(server.pid)) - before > given.megabytes / 10:
                if time.monotonic() - began > given.patience:
                    break
                time.sleep(1)
            waited = time.monotonic() - began
    print(
        f"{before:.0f} MB before, {most:.0f} MB with the uploads, {now:.0f} MB {waited:.0f} s "
        "after their owner left"
    )
    return int(now - before > given.megabytes / 10)


if __name__ == "__main__":
    sys.exit(main())
