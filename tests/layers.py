"""Run the test layers, two at a time, and print the seconds of each layer.

``python -m tests.layers`` runs all layers, ``python -m tests.layers unit contract`` two of them.
Arguments after ``--`` go to pytest. ``--first`` runs the tier of `make test`, ``--long`` the long
tier (`tests.conftest` assigns tests to tiers). ``--changed`` limits unit and contract tests to
tests that a change can reach (`tests.reach`), without slow tests in unchanged files. The last line
is ``N passed, N failed, N skipped`` over all layers, and the exit status is 1 if any test failed.
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
"""Least time limit of a layer, in seconds."""


@dataclass(frozen=True)
class Layer:
    """One step of ``make test``.

    Parameters
    ----------
    name : str
        Name on the command line; without a command also the folder under ``tests/``.
    budget : int
        Seconds that the layer should take on two cores beside another layer. The summary lists
        layers that took longer. A layer that takes three times as long, and at least `LEAST`, is
        stopped and fails.
    command : tuple of str
        Arguments to the interpreter, for a tool other than pytest.
    options : tuple of str
        Further options of pytest.
    waits : bool
        Whether the layer waits for frames and processes. Such layers start first and have priority.
    files : tuple of str
        Test files, if the layer runs only some files of its folder.
    """

    name: str
    budget: int
    command: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    waits: bool = False
    files: tuple[str, ...] = ()


# All test layers together should take 8 minutes on two idle cores. The limit of a layer is 1.5
# times its time there. Two browser layers run at once, because each often waits for frames.
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
    """Outcome of a layer. A tool such as ruff counts as one test."""

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
        File for the output; with None the output is printed at once.
    running : set of int
        Context that holds the process group while the layer runs.
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
    # Let pytest cache compiled tests: otherwise each run would rewrite all assertions again.
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
    total = failures = skips = 0
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            total += int(suite.get("tests", "0"))
            failures += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
            skips += int(suite.get("skipped", "0"))
    # A test that passes but fails in its teardown counts as one test and as two outcomes.
    passes = max(total - failures - skips, 0)
    if status != 0 and failures == 0:
        failures, note = 1, f"pytest ended with status {status}"
    return Outcome(passes, failures, skips, seconds, note)


def _is_of(layer: Layer, tier: str) -> bool:
    """Return, before collection, whether a layer has tests of a tier."""
    if layer.command:
        return tier == "first"
    mark = "mark.long" if layer.name not in LONG else "mark.first"
    other = any(
        mark in path.read_text("utf-8") for path in (ROOT / "tests" / layer.name).rglob("*.py")
    )
    return other or (layer.name in LONG) == (tier == "long")


def _reached(chosen: Sequence[Layer]) -> Iterator[Layer]:
    """Yield layers with the test files that a change can reach, or all files if git cannot tell."""
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
    """Run layers two at a time: first layers that wait for others, then the longest."""
    order = sorted(chosen, key=lambda layer: (not layer.waits, -layer.budget))
    logs = {one.name: REPORTS / f"{one.name}.log" if len(order) > 1 else None for one in order}
    outcomes: dict[str, Outcome] = {}
    running: set[int] = set()
    with ThreadPoolExecutor(2) as pool:
        futures = {pool.submit(run, one, extra, logs[one.name], running): one.name for one in order}
        try:
            for future in as_completed(futures):
                name = futures[future]
                outcomes[name], log = future.result(), logs[name]
                if log is not None and log.exists():
                    print(f"\n== {name} " + "=" * (74 - len(name)))
                    print(log.read_text(encoding="utf-8", errors="replace"), end="", flush=True)
        finally:  # End the child process even after an interrupt.
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(running):
                stop(group)
    return outcomes


def main(arguments: Sequence[str]) -> int:
    """Run the named layers, or all, and print the summary; return 1 if a test failed."""
    words, extra = list(arguments), list[str]()
    if "--" in words:
        place = words.index("--")
        words, extra = words[:place], words[place + 1 :]
    parser = argparse.ArgumentParser(prog="python -m tests.layers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="layer", help="usual: all")
    parser.add_argument("--changed", action="store_true", help="what a change can reach")
    parser.add_argument("--first", dest="tier", action="store_const", const="first")
    parser.add_argument("--long", dest="tier", action="store_const", const="long")
    args = parser.parse_args(words)
    unknown = set(args.names) - {layer.name for layer in LAYERS}
    if unknown:
        names = ", ".join(layer.name for layer in LAYERS)
        parser.error(f"unknown layer {min(unknown)!r}; there are {names}")
    REPORTS.mkdir(exist_ok=True)
    layers = [layer for layer in LAYERS if not args.names or layer.name in args.names]
    if args.changed:
        layers = list(_reached(layers))
    if args.tier is not None:
        layers = [layer for layer in layers if _is_of(layer, args.tier)]
        extra += ["-m", "long" if args.tier == "long" else "not long"]
    began = time.monotonic()
    outcomes = run_all(layers, extra)
    print("\n== time per layer " + "=" * 60)
    for layer in layers:
        one = outcomes[layer.name]
        print(
            f"{layer.name:<12} {one.seconds:7.1f} s {one.passed:5d} passed {one.failed:4d} failed"
            f" {one.skipped:4d} skipped  {one.note}".rstrip()
        )
    print(f"{'total':<12} {time.monotonic() - began:7.1f} s")
    passes, failures, skips = (
        sum(getattr(one, kind) for one in outcomes.values())
        for kind in ("passed", "failed", "skipped")
    )
    print(f"{passes} passed, {failures} failed, {skips} skipped", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
