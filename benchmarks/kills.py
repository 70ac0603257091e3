"""Check that kill -9 at random moments loses no data of sweep, task, reproduce and release.

``python -m benchmarks.kills --kills 20`` kills each command 20 times while it works, each time a
moment after its start, and lets it resume. In the end the command's files must equal the files of a
run that was never killed. To test the ledger, two processes at a time make one release after the
other. At the end the ledger must be whole and list every release that exists.

The commands run in forks of this process, so that a kill does not require another start of Python.
One core is enough; tests/process/test_faults.py tests workers whose parent is killed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from dpviz.cli import main as dpviz
from dpviz.core.files import PACKAGE
from dpviz.core.seeding import generator
from dpviz.releasing.ledger import Ledger

_FORK = multiprocessing.get_context("fork")

COMMANDS = {
    "sweep": ["sweep", "iris", "--over", "epsilon", "--values", "0.1:10:40", "--trials", "60",
              "--mechanism", "gaussian", "--mechanism", "ppca", "--out", "{}/out.csv"],
    "task": ["task", "iris", "--mechanism", "gaussian", "--mechanism", "laplace", "--trials", "100",
             "--splits", "10", "--epsilons", "0.1,0.3,1,3,10", "--tuning", "fixed",
             "--out", "{}/out.csv"],
    "reproduce": ["reproduce", "jiang_theorems9_10", "--quick", "--out", "{}"],
}  # fmt: skip
DATA = PACKAGE.parent / "data"
RELEASE = ["release", str(DATA / "example.csv"), "--schema", str(DATA / "example-schema.json"),
           "--epsilon", "0.001", "--delta", "1e-6", "--row-bound", "60"]  # fmt: skip


def _silent(words: Sequence[str]) -> int:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        return dpviz(list(words))


def _quiet(words: Sequence[str]) -> None:
    os._exit(_silent(words))


def _releases(folder: str, name: str) -> None:
    """Make releases until killed."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        for number in itertools.count():
            out = f"{folder}/{name}-{number}.json"
            if dpviz([*RELEASE, "--ledger", f"{folder}/ledger.jsonl", "--out", out]):
                os._exit(1)


def run(words: Sequence[str], seconds: float | None = None) -> int | None:
    """Run a command and kill it after some seconds; return its status, or None if it was killed."""
    process = _FORK.Process(target=_quiet, args=(words,))
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def files(folder: Path) -> dict[str, bytes]:
    """Return a folder's files, except charts, because plotly chooses the charts' ids at random."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix != ".html"
    }


def killed_and_ended(name: str, kills: int, folder: Path) -> list[str]:
    """Kill a command repeatedly, let its last run end, and return the faults."""
    words = COMMANDS[name]
    out, whole = folder / "killed", folder / "whole"
    for place in (out, whole):
        place.mkdir()
    # Run the command twice: the first run loads modules, so the second shows the usual time.
    for _ in range(2):
        began = time.monotonic()
        if _silent([word.format(whole) for word in words] + ["--cache", "none"]) != 0:
            return [f"{name}: the command fails"]
        length = time.monotonic() - began
    rng = generator(kills, "kills", name)
    again = [word.format(out) for word in words] + ["--cache", str(folder / "cache")]
    hit = cells = 0
    for _ in range(kills):
        # Kill early, so that all kills together leave some work for the last run.
        hit += run(again, float(rng.uniform(0.05, 1.0)) * length / kills) is None
        now = len(list((folder / "cache").rglob("*.cell")))
        if now < cells:
            return [f"{name}: {cells - now} finished parts were lost"]
        cells = now
    problems = []
    if hit < kills:
        problems.append(f"{name}: only {hit} of {kills} kills hit a run")
    if files(out):
        problems.append(f"{name}: {sorted(files(out))} are there before the end")
    if run(again) != 0:
        problems.append(f"{name}: it cannot go on after the kills")
    if files(out) != files(whole):
        problems.append(f"{name}: its files differ from those of a run that was never killed")
    print(f"{name}: {hit} kills, {cells} finished parts kept; a whole run takes {length:.1f} s")
    return problems


def ledger_holds(kills: int, folder: Path) -> list[str]:
    """Kill releasing processes, two at a time, and return the faults of their ledger."""
    rng = generator(kills, "kills", "ledger")
    warm = folder / "warm"
    warm.mkdir()
    for place in (warm, folder):
        _silent(
            [
                "ledger",
                "new",
                f"{place}/ledger.jsonl",
                "--limit",
                "1000,0.5",
                "--accept",
                "limit-above-10",
            ]
        )
    if _silent([*RELEASE, "--ledger", f"{warm}/ledger.jsonl", "--out", f"{warm}/0.json"]):
        return ["ledger: the command fails"]
    for number in range(0, kills, 2):
        pair = [
            _FORK.Process(target=_releases, args=(str(folder), f"{number}-{side}"))
            for side in range(2)
        ]
        for process in pair:
            process.start()
        for process in pair:
            process.join(float(rng.uniform(0.05, 0.6)))
            if process.exitcode is not None:
                return ["ledger: a release failed"]
            process.kill()
            process.join()
    outs = list(folder.glob("*-*.json"))
    for path in outs:
        json.loads(path.read_text(encoding="utf-8"))
    contents = Ledger(folder / "ledger.jsonl").read()
    count = len(contents.spends)
    print(f"ledger: {kills} kills, {count} spends, {len(outs)} releases")
    if not len(outs) <= count <= len(outs) + kills:
        return [f"ledger: {count} spends for {len(outs)} releases"]
    return [] if outs else ["ledger: nothing was released"]


def main() -> int:
    """Kill each command and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", choices=[*COMMANDS, "ledger"], default=None)
    options = parser.parse_args()
    problems = []
    for name in [options.only] if options.only else [*COMMANDS, "ledger"]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            problems += (
                ledger_holds(options.kills, folder)
                if name == "ledger"
                else killed_and_ended(name, options.kills, folder)
            )
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
