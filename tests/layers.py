"""Run the layers of the tests, two side by side, and print how long each took.

``python -m tests.layers`` runs all; ``python -m tests.layers unit contract`` some; pytest gets what
follows ``--``. ``--first`` runs the tier of `make test`, ``--long`` the other one (`tests.conftest`
says which test is of which). With ``--changed`` unit and contract tests are those that a change can
reach (`tests.reach`), without the slow ones of files that have not changed. The last line is ``N
passed, N failed, N skipped`` over all layers, and the exit status is 1 if any test failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from tests.changes import changed
from tests.conftest import LONG
from tests.e2e.browser import NO_BROWSER, browser_required, find_chromium
from tests.reach import reached

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".test-reports"
LEAST = 300
"""Seconds that every layer has before it is stopped."""


@dataclass(frozen=True)
class Layer:
    """One step of ``make test``.

    Parameters
    ----------
    name : str
        Name on the command line; without a command also the folder under ``tests/``.
    budget : int
        Seconds it should take on two cores beside another layer. The summary says which layers took
        longer. A layer that takes three times as long, and at least `LEAST`, is stopped and fails.
    command : tuple of str
        Arguments to the interpreter, for a tool that is no pytest run.
    options : tuple of str
        Further options of pytest.
    waits : bool
        Whether it waits for frames and processes. Such layers start first and have priority.
    files : tuple of str
        Test files, where not all of the folder are run.
    """

    name: str
    budget: int
    command: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    waits: bool = False
    files: tuple[str, ...] = ()


# The goal for the whole is 8 minutes on two idle cores. A budget is half as long again as the layer
# takes on idle cores. Two browsers fill the time in which each waits for frames.
LAYERS: tuple[Layer, ...] = (
    Layer("lint", 10, command=("-m", "ruff", "check", ".")),
    Layer("style", 10, command=("-m", "ruff", "format", "--check", ".")),
    Layer("types", 45, command=("-m", "mypy", "--strict", "dpviz")),
    Layer("unit", 400),
    Layer("contract", 190),
    Layer("process", 300, options=("-n", "2", "--dist", "worksteal"), waits=True),
    Layer("golden", 30),
    Layer("answers", 240),
    Layer("docs", 220),
    Layer("statistical", 280),
    Layer("ui", 180, options=("-n", "2", "--dist", "loadfile")),
    Layer("e2e", 720, options=("-n", "2", "--dist", "worksteal"), waits=True),
    Layer("browser", 200, waits=True),
    Layer("papers", 190),
)


@dataclass(frozen=True)
class Outcome:
    """How a layer ended. A tool such as ruff counts as one test."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""


def run(layer: Layer, extra: Sequence[str], log: Path | None, running: set[int]) -> Outcome:
    """Run one layer in a process group of its own.

    Parameters
    ----------
    layer : Layer
    extra : sequence of str
        Further arguments to pytest.
    log : Path or None
        File for the output; None prints it at once.
    running : set of int
        Holds the process group while it runs.
    """
    if log is not None:
        log.unlink(missing_ok=True)
    if layer.name == "e2e" and find_chromium() is None and not browser_required():
        return Outcome(skipped=1, note=NO_BROWSER)
    report = REPORTS / f"{layer.name}.xml"
    report.unlink(missing_ok=True)
    targets = layer.files or (f"tests/{layer.name}",)
    durations = ("-q", f"--junitxml={report}", "--durations=5", "--durations-min=5")
    command = layer.command or ("-m", "pytest", *targets, *durations, *layer.options, *extra)
    # Without its bytecode pytest would rewrite all assertions in each run.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began, limit = time.monotonic(), max(3 * layer.budget, LEAST)
    with contextlib.nullcontext() if log is None else log.open("wb") as output:
        process = subprocess.Popen(
            [*([] if layer.waits else ["nice", "-n", "10"]), sys.executable, *command],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            process_group=0,
        )  # fmt: skip
        running.add(process.pid)
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            stop(process.pid)
            process.wait()
            return Outcome(failed=1, seconds=limit, note=f"stopped after {limit} s")
        finally:
            running.discard(process.pid)
    seconds = time.monotonic() - began
    note = f"over its budget of {layer.budget} s" if seconds > layer.budget else ""
    if layer.command:
        return Outcome(int(status == 0), int(status != 0), 0, seconds, note)
    if status == 5 and extra:
        return Outcome(seconds=seconds, note="nothing selected")
    return _counts(report, status, seconds, note)


def stop(group: int) -> None:
    """End the processes of a group, such as servers and browsers that a layer started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)


def _counts(report: Path, status: int, seconds: float, note: str) -> Outcome:
    """Return the counts of pytest's report; a run that stopped early counts as failed."""
    total = failed = skipped = 0
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            total += int(suite.get("tests", "0"))
            failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
            skipped += int(suite.get("skipped", "0"))
    # A test that passes and then fails in its teardown is two entries of one case.
    passed = max(total - failed - skipped, 0)
    if status != 0 and failed == 0:
        failed, note = 1, f"pytest ended with status {status}"
    return Outcome(passed, failed, skipped, seconds, note)


def _is_of(layer: Layer, tier: str) -> bool:
    """Return whether a layer has tests of a tier, before its tests are collected."""
    if layer.command:
        return tier == "first"
    mark = "mark.long" if layer.name not in LONG else "mark.first"
    other = any(
        mark in path.read_text("utf-8") for path in (ROOT / "tests" / layer.name).rglob("*.py")
    )
    return other or (layer.name in LONG) == (tier == "long")


def _reached(chosen: Sequence[Layer]) -> Iterator[Layer]:
    """Yield layers with the test files that a change can reach; all of them where git is silent."""
    files = changed()
    reachable = None if files is None else reached(files)
    for layer in chosen:
        if layer.name not in ("unit", "contract") or reachable is None:
            yield layer
            continue
        every = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(f"tests/{layer.name}/test_*.py"))
        few = tuple(name for name in every if name in reachable)
        print(f"{layer.name}: {len(few)} of {len(every)} test files can be reached", flush=True)
        if few:
            yield replace(layer, files=few, options=(*layer.options, "--quick"))


def run_all(chosen: Sequence[Layer], extra: Sequence[str]) -> dict[str, Outcome]:
    """Run layers two at a time: first those that wait, then the longest."""
    order = sorted(chosen, key=lambda layer: (not layer.waits, -layer.budget))
    logs = {one.name: REPORTS / f"{one.name}.log" if len(order) > 1 else None for one in order}
    outcomes: dict[str, Outcome] = {}
    running: set[int] = set()
    with ThreadPoolExecutor(2) as pool:
        sent = {pool.submit(run, one, extra, logs[one.name], running): one.name for one in order}
        try:
            for done in as_completed(sent):
                name = sent[done]
                outcomes[name], log = done.result(), logs[name]
                if log is not None and log.exists():
                    print(f"\n== {name} " + "=" * (74 - len(name)))
                    print(log.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
        finally:  # nothing is left where this is interrupted
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(running):
                stop(group)
    return outcomes


def main(arguments: Sequence[str]) -> int:
    """Run the named layers, or all, and print the summary; return 1 if a test failed."""
    words, extra = list(arguments), list[str]()
    if "--" in words:
        cut = words.index("--")
        words, extra = words[:cut], words[cut + 1 :]
    parser = argparse.ArgumentParser(prog="python -m tests.layers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="layer", help="usual: all")
    parser.add_argument("--changed", action="store_true", help="what a change can reach")
    parser.add_argument("--first", dest="tier", action="store_const", const="first")
    parser.add_argument("--long", dest="tier", action="store_const", const="long")
    given = parser.parse_args(words)
    unknown = set(given.names) - {layer.name for layer in LAYERS}
    if unknown:
        names = ", ".join(layer.name for layer in LAYERS)
        parser.error(f"unknown layer {min(unknown)!r}; there are {names}")
    REPORTS.mkdir(exist_ok=True)
    chosen = [layer for layer in LAYERS if not given.names or layer.name in given.names]
    if given.changed:
        chosen = list(_reached(chosen))
    if given.tier is not None:
        chosen = [layer for layer in chosen if _is_of(layer, given.tier)]
        extra += ["-m", "long" if given.tier == "long" else "not long"]
    began = time.monotonic()
    outcomes = run_all(chosen, extra)
    print("\n== time per layer " + "=" * 60)
    for layer in chosen:
        one = outcomes[layer.name]
        print(
            f"{layer.name:<12} {one.seconds:7.1f} s {one.passed:5d} passed {one.failed:4d} failed"
            f" {one.skipped:4d} skipped  {one.note}".rstrip()
        )
    print(f"{'total':<12} {time.monotonic() - began:7.1f} s")
    passed, failed, skipped = (
        sum(getattr(one, kind) for one in outcomes.values())
        for kind in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
