"""Plant each fault in a copy and run its tests: ``python -m tests.faults [NAME ...]``.

The last line is ``N found, N not found``; the exit status is 1 if a fault was not found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.faults.listed import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = (".git", ".venv", ".test-reports", "build", "dist", "__pycache__", ".*_cache")
_SECONDS = 600  # A fault may take 600 seconds; a time-out counts as found.
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextmanager
def planted(fault: Fault, root: Path) -> Iterator[None]:
    """Plant a fault in a copy of the project while the context lasts."""
    path = root / fault.path
    was = path.read_text(encoding="utf-8")
    path.write_text(fault.applied(was), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(was, encoding="utf-8")


def found_by(fault: Fault, root: Path) -> str:
    """Return the first test that fails with the fault, or an empty text if all pass.

    Raises
    ------
    RuntimeError
        If pytest ran no test, so that the fault's detection is unknown.
    """
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    with planted(fault, root):
        run = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", *options, *fault.tests],
            cwd=root, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    if run.returncode == 0:
        return ""
    match = _FAILED.search(run.stdout)
    if match is None:
        raise RuntimeError(
            f"{fault.name}: pytest ended with {run.returncode}\n{run.stdout[-2000:]}"
        )
    return match[1]


def main() -> int:
    """Plant the chosen faults and print the outcome of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names or kinds; all if none is given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    faults = [f for f in FAULTS if not args.names or any(n in f.full_name for n in args.names)]
    misses = []
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(args.jobs):
            copy = Path(folder) / str(number)
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
            copies.put(copy)

        def tried(fault: Fault) -> tuple[Fault, str, float]:
            copy, began = copies.get(), time.monotonic()
            try:
                return fault, found_by(fault, copy), time.monotonic() - began
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(args.jobs) as pool:
            for fault, test, seconds in pool.map(tried, faults):
                misses += [] if test else [fault]
                verdict = f"found by {test}" if test else "NOT FOUND"
                print(f"{fault.full_name:<58} {seconds:5.1f} s  {verdict}", flush=True)
    print(f"{len(faults) - len(misses)} found, {len(misses)} not found")
    return int(bool(misses))


if __name__ == "__main__":
    raise SystemExit(main())
