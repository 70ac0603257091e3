"""Run the layers of the tests and say how long each took.

``python -m tests.layers`` runs all; ``python -m tests.layers unit contract`` some; what follows
``--`` goes to pytest. ``--first`` runs the tier of `make test`, ``--long`` the other one
(`tests.conftest` says which test is of which). With ``--changed`` unit and contract tests are those
that a change can reach (`tests.reach`), without the slow ones of files that have not changed. What
computes alone is two runs of pytest, one of the unit tests and one that the others share, in one
process each: two processes for one run would both collect all of it, beside a third that hands out.
Each other layer is a process of its own, so that a browser left by one cannot slow the next. Those
that wait for something, a frame or a process, come first, and what only computes yields to them, so
that no core is idle before the end. The last line is ``N passed, N failed, N skipped``, added up
over the layers, and the exit status is 1 if any failed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.changes import changed
from tests.conftest import LONG
from tests.e2e.browser import NO_BROWSER, browser_required, find_chromium
from tests.reach import reached

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".test-reports"


@dataclass(frozen=True)
class Layer:
    """One step of ``make test``.

    Parameters
    ----------
    name : str
        Name on the command line.
    budget : int
        Seconds it should take on two cores. Beyond it the summary says so; at three times the
        budget, but not before `LEAST`, the layer is stopped and counts as failed, so that a hang
        cannot eat the whole run.
    command : tuple of str
        Arguments to the interpreter, for a tool that is no pytest run.
    folder : str
        Folder under ``tests/``, for a pytest run; empty otherwise.
    workers : int
        Processes of pytest-xdist; 0 runs in one process.
    dist : str
        How pytest-xdist hands out tests: half to each process, in order, and to who has done its
        half what is left of the other's; or by file, where files share costly fixtures.
    files : tuple of str
        Test files, where not all of the folder are run.
    quick : bool
        Whether tests marked slow are left out, but for those of changed files.
    load : float or None
        How many cores it keeps busy on average; None for as many as it has processes.
    yields : bool
        Whether it leaves the cores to the others, as what computes and looks at no clock may.
    shared : bool
        Whether it is run together with the others that are; `together` makes that run.
    parts : tuple of Layer
        Those that such a run is of.
    """

    name: str
    budget: int
    command: tuple[str, ...] = ()
    folder: str = ""
    workers: int = 2
    dist: str = "worksteal"
    files: tuple[str, ...] = ()
    quick: bool = False
    load: float | None = None
    yields: bool = False
    shared: bool = False
    parts: tuple[Layer, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """What pytest is given."""
        return self.files or (f"tests/{self.folder}",)

    @property
    def single(self) -> bool:
        """Whether one core is all it uses."""
        return bool(self.command) or self.workers == 0

    @property
    def cores(self) -> float:
        """How many cores it keeps busy."""
        return (1 if self.single else 2) if self.load is None else self.load


# The goal for the whole is 8 minutes on two idle cores. The budgets are what each layer may take on
# a machine that does something else as well, half as long again as on idle cores, since a stopped
# layer counts as failed.
LAYERS: tuple[Layer, ...] = (
    Layer("lint", 10, command=("-m", "ruff", "check", ".")),
    Layer("style", 10, command=("-m", "ruff", "format", "--check", ".")),
    Layer("types", 45, command=("-m", "mypy", "--strict", "dpviz"), yields=True),
    Layer("unit", 400, folder="unit", workers=0, yields=True),
    Layer("contract", 190, folder="contract", workers=0, yields=True, shared=True),
    # Two processes, as each waits half of its time.
    Layer("process", 300, folder="process", load=1.0),
    Layer("golden", 30, folder="golden", workers=0, yields=True, shared=True),
    Layer("answers", 240, folder="answers", workers=0, yields=True),
    # One process: it builds the site once, and types what README and docs print into one shell.
    Layer("docs", 220, folder="docs", workers=0, yields=True),
    Layer("statistical", 280, folder="statistical", workers=0, yields=True, shared=True),
    Layer("ui", 180, folder="ui", dist="loadfile", yields=True),
    # Two browsers, each with a server of its own that all files share; a few tests take long. A
    # third of the time a test waits, for frames, for a picture at rest, for the other process.
    Layer("e2e", 720, folder="e2e", load=1.4),
    # One process: one folder is built, and one Python is started in one browser.
    Layer("browser", 200, folder="browser", workers=0),
    Layer("papers", 190, folder="papers", workers=0, yields=True, shared=True),
)


NICE = 10
"""The priority of what yields: a tenth of a core where somebody else wants it whole."""

LEAST = 300
"""Seconds that every layer has: what yields may wait minutes for a core on a busy machine."""

SELECTED = ("unit", "contract")
"""Folders of which ``--changed`` runs a part."""


@dataclass(frozen=True)
class Outcome:
    """What became of one layer.

    Parameters
    ----------
    passed, failed, skipped : int
        Counts of tests; a tool such as ruff counts as one.
    seconds : float
        Wall time.
    note : str
        Anything the summary should say beside the numbers.
    busy : float
        Core-seconds of its process and of all that were waited for.
    """

    passed: int
    failed: int
    skipped: int
    seconds: float
    note: str = ""
    busy: float = 0.0


class Running:
    """A layer in a process of its own.

    Parameters
    ----------
    layer : Layer
        What to run.
    extra : sequence of str
        Further arguments to pytest.
    quiet : bool
        Whether what it prints is kept until it ends, because another one prints meanwhile.
    """

    def __init__(self, layer: Layer, extra: Sequence[str], *, quiet: bool) -> None:
        self.layer = layer
        self._began = time.monotonic()
        self._selected = bool(extra)
        self._report = REPORTS / f"{layer.name}.xml"
        self._report.unlink(missing_ok=True)
        self._log = REPORTS / f"{layer.name}.log" if quiet else None
        if not quiet:
            self._announce()
        command = layer.command or _pytest_arguments(layer, self._report, extra)
        with contextlib.ExitStack() as stack:
            log = None if self._log is None else stack.enter_context(self._log.open("wb"))
            # A group of its own: stopping it also stops the servers and browsers it started.
            self._process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if layer.yields:
            _yield_to_others(self._process.pid)

    def _announce(self) -> None:
        print(f"\n== {self.layer.name} " + "=" * (74 - len(self.layer.name)), flush=True)

    def outcome(self, patience: float) -> Outcome | None:
        """Return what became of it, or None if it still runs after ``patience`` seconds.

        At three times its budget, but not before `LEAST`, it is stopped, and counts as failed.
        """
        limit = max(3 * self.layer.budget, LEAST)
        left = self._began + limit - time.monotonic()
        before = _busy()  # of what has ended, to which this is added when it is waited for
        try:
            status = self._process.wait(timeout=max(min(patience, left), 0))
        except subprocess.TimeoutExpired:
            if left > patience:
                return None
            self.stop()
            status = None
        seconds = time.monotonic() - self._began
        said = ""
        if self._log is not None:
            self._announce()
            said = self._log.read_text(encoding="utf-8", errors="replace")
            print(said, end="", flush=True)
        busy = _busy() - before
        if status is None:
            return Outcome(0, 1, 0, seconds, f"stopped after {limit} s{_hung_in(said)}", busy)
        note = f"over its budget of {self.layer.budget} s" if seconds > self.layer.budget else ""
        if self.layer.command:
            return Outcome(int(status == 0), int(status != 0), 0, seconds, note, busy)
        found = _read(self._report, status, seconds, note, selected=self._selected)
        return replace(found, busy=busy)

    def stop(self) -> None:
        """End it and all that it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()


def _hung_in(said: str) -> str:
    """Return which test pytest said to hang, if any: it prints the stack when one takes long."""
    found = re.findall(r'File ".*?(tests/[^"]+)", line \d+ in (test_\w+)', said)
    return f" in {'::'.join(found[-1])}" if found else ""


def _yield_to_others(leader: int) -> None:
    """Let a session of processes have what others leave of the cores."""
    with contextlib.suppress(ProcessLookupError):  # it may have ended
        os.setpriority(os.PRIO_PGRP, leader, NICE)
    # Linux shares cores among sessions first, where it is set to, and each has a value of its own.
    with contextlib.suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(str(NICE), encoding="ascii")


def _busy() -> float:
    """Return the core-seconds of all processes that have ended below this one."""
    times = os.times()
    return times.children_user + times.children_system


def _environment() -> dict[str, str]:
    """Return what a layer finds: bytecode is kept, or each run rewrites every assertion anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def together(chosen: Sequence[Layer]) -> list[Layer]:
    """Return what is run for these layers: those that share a run as one, the others as they are.

    Those that share have as many processes as the first of them.

    Parameters
    ----------
    chosen : sequence of Layer

    Returns
    -------
    list of Layer
    """
    parts = tuple(layer for layer in chosen if layer.shared and _left_out(layer) is None)
    if len(parts) < 2:
        return list(chosen)
    whole = Layer(
        "+".join(part.name for part in parts),
        sum(part.budget for part in parts),
        files=tuple(target for part in parts for target in part.targets),
        workers=parts[0].workers,
        quick=any(part.quick for part in parts),  # those that are not have no slow tests
        yields=all(part.yields for part in parts),
        parts=parts,
    )
    return [whole if layer == parts[0] else layer for layer in chosen if layer not in parts[1:]]


def run(layers: Sequence[Layer], extra: Sequence[str], cores: int) -> dict[str, Outcome]:
    """Run layers in this order, each in a process of its own, so that no core waits.

    The next one starts while a core is idle, also if it could use two.

    Parameters
    ----------
    layers : sequence of Layer
        What to run, in this order.
    extra : sequence of str
        Further arguments to pytest.
    cores : int
        How many there are to keep busy.

    Returns
    -------
    dict of str to Outcome
        Counts, time and a note of each.
    """
    outcomes: dict[str, Outcome] = {}
    waiting, running = list(layers), list[Running]()
    try:
        while waiting or running:
            if waiting and sum(one.layer.cores for one in running) < cores:
                layer = waiting.pop(0)
                left_out = _left_out(layer)
                if left_out is None:
                    beside = bool(running) or (layer.cores < cores and bool(waiting))
                    running.append(Running(layer, extra, quiet=beside))
                else:
                    outcomes[layer.name] = left_out
                continue
            for one in list(running):
                outcome = one.outcome(1.0)
                if outcome is not None:
                    running.remove(one)
                    outcomes[one.layer.name] = outcome
    finally:
        for one in running:
            one.stop()
    return outcomes


def _left_out(layer: Layer) -> Outcome | None:
    """Return what stands for a layer that cannot run here, or None."""
    if layer.folder and not any((ROOT / "tests" / layer.folder).rglob("test_*.py")):
        return Outcome(0, 0, 0, 0.0, "no test files")
    if layer.name == "e2e" and find_chromium() is None and not browser_required():
        return Outcome(0, 0, 1, 0.0, NO_BROWSER)
    return None


def _pytest_arguments(layer: Layer, report: Path, extra: Sequence[str]) -> list[str]:
    workers = ["-n", str(layer.workers), "--dist", layer.dist] if layer.workers else []
    durations = ["--durations=5", "--durations-min=5"]
    quick = ["--quick"] if layer.quick else []
    options = ["-q", f"--junitxml={report}", *workers, *durations, *quick]
    return ["-m", "pytest", *layer.targets, *options, *extra]


def _read(report: Path, status: int, seconds: float, note: str, *, selected: bool) -> Outcome:
    """Turn pytest's report and exit status into counts; a run that broke off counts as failed."""
    if status == 5 and selected:  # the caller's -k chose nothing here
        return Outcome(0, 0, 0, seconds, "nothing selected")
    if not report.exists():  # a usage error: pytest has said which
        return Outcome(0, 1, 0, seconds, f"pytest ended with status {status}")
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", "0"))
        failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        skipped += int(suite.get("skipped", "0"))
    # A test that passes and then fails in its teardown is two entries of one case.
    passed = max(total - failed - skipped, 0)
    if status != 0 and failed == 0:
        failed, note = 1, f"pytest ended with status {status}"
    return Outcome(passed, failed, skipped, seconds, note)


def _shares(whole: Layer, outcome: Outcome) -> dict[str, Outcome]:
    """Return for each layer of a shared run its tests, and of the time what they took of it."""
    report = REPORTS / f"{whole.name}.xml"
    cases = list(ElementTree.parse(report).getroot().iter("testcase")) if report.exists() else []

    def seconds(cases: Sequence[ElementTree.Element]) -> float:
        # to the millisecond, and half of that for one that took less
        return sum(float(case.get("time", "0")) or 0.0005 for case in cases)

    shares = {}
    for part in whole.parts:
        start = f"tests.{part.folder}."
        # a file that cannot be collected is a case without a class
        own = [c for c in cases if (c.get("classname") or c.get("name", "")).startswith(start)]
        wrong = ("failure", "error")
        failed = sum(any(case.find(kind) is not None for kind in wrong) for case in own)
        skipped = sum(case.find("skipped") is not None for case in own)
        share = seconds(own) / (seconds(cases) or 1.0)
        took, note = share * outcome.seconds, outcome.note
        if took > part.budget and not note:
            note = f"over its budget of {part.budget} s"
        passed = len(own) - failed - skipped
        shares[part.name] = Outcome(passed, failed, skipped, took, note, share * outcome.busy)
    return shares


def _is_of(layer: Layer, tier: str) -> bool:
    """Return whether a layer has anything of a tier, before its tests are collected."""
    if layer.command:
        return tier == "first"
    mark = "mark.long" if layer.folder not in LONG else "mark.first"
    other = any(
        mark in path.read_text("utf-8") for path in (ROOT / "tests" / layer.folder).rglob("*.py")
    )
    return other or (layer.folder in LONG) == (tier == "long")


def _reached(chosen: Sequence[Layer]) -> Iterator[Layer]:
    """Yield layers with the test files that a change can reach; all of them where git is silent."""
    files = changed()
    found = None if files is None else reached(files)
    for layer in chosen:
        if layer.folder not in SELECTED or found is None:
            yield layer
            continue
        every = sorted(ROOT.glob(f"tests/{layer.folder}/test_*.py"))
        few = [name for p in every if (name := str(p.relative_to(ROOT))) in found]
        print(f"{layer.name}: {len(few)} of {len(every)} test files can be reached", flush=True)
        if few:
            yield replace(layer, files=tuple(few), quick=True)


def main(arguments: Sequence[str]) -> int:
    """Run the named layers, or all, and print the summary.

    Parameters
    ----------
    arguments : sequence of str
        Names of layers and ``--changed``, then optionally ``--`` and arguments for pytest.

    Returns
    -------
    int
        0 if nothing failed, 1 if something did, 2 for an unknown layer.
    """
    names, extra = list(arguments), list[str]()
    if "--" in names:
        cut = names.index("--")
        names, extra = names[:cut], names[cut + 1 :]
    few = "--changed" in names
    tier = next((name[2:] for name in names if name in ("--first", "--long")), None)
    names = [name for name in names if name not in ("--changed", "--first", "--long")]
    known = [layer.name for layer in LAYERS]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown layer {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    REPORTS.mkdir(exist_ok=True)
    chosen = [layer for layer in LAYERS if not names or layer.name in names]
    if few:
        chosen = list(_reached(chosen))
    if tier is not None:
        chosen = [layer for layer in chosen if _is_of(layer, tier)]
        extra += ["-m", "long" if tier == "long" else "not long"]
    # Who waits comes first, then who has one process, of those the longest: others fit beside.
    order = sorted(
        together(chosen),
        key=lambda layer: (layer.load is None, -layer.budget if layer.cores < 2 else 1),
    )
    began = time.monotonic()
    outcomes = run(order, extra, cores=2)
    seconds = time.monotonic() - began
    told = dict(outcomes)
    for whole in order:
        told |= _shares(whole, outcomes[whole.name])
    print("\n== time per layer " + "=" * 60)
    for layer in chosen:
        outcome = told[layer.name]
        print(
            f"{layer.name:<12} {outcome.seconds:7.1f} s {outcome.busy:7.1f} core-s"
            f" {outcome.passed:5d} passed {outcome.failed:4d} failed {outcome.skipped:4d} skipped"
            f"  {outcome.note}".rstrip()
        )
    everything = outcomes.values()
    failed = sum(outcome.failed for outcome in everything)
    busy = sum(outcome.busy for outcome in everything)
    print(f"{'total':<12} {seconds:7.1f} s {busy:7.1f} core-s")
    print(
        f"{sum(outcome.passed for outcome in everything)} passed, {failed} failed,"
        f" {sum(outcome.skipped for outcome in everything)} skipped",
        flush=True,
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
