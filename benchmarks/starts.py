"""Where the CPU of a start and of a page's run goes: Python's, the libraries', ours.

``python -m benchmarks.starts [--page explore]`` prints two tables. The first has the CPU seconds of
interpreters that do nothing, load the libraries alone (the floor: what is loaded is what ours
load), and load ours; of several runs the least counts. The second has one run of a page of the
dashboard once all is kept, by whose code was at work, from a profile, which makes calls dear: it
tells shares.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from streamlit.logger import set_log_level
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.testing.v1 import AppTest

from dpviz.core.files import app_path

ROOT = Path(__file__).resolve().parents[1]
_OURS = ("dpviz", "pages", "app")
_SHOWN = ("numpy", "scipy", "pandas", "pyarrow", "plotly", "_plotly_utils", "streamlit")
STARTS = {
    "Python alone": "pass",
    "NumPy, pandas, PyArrow": "import numpy, pandas, pyarrow.parquet, pyarrow.compute",
    "and SciPy's functions": (
        "import numpy, pandas, pyarrow.parquet, pyarrow.compute, scipy.special, scipy.fft"
    ),
    "a command": "import dpviz.cli; dpviz.cli.build_parser('compare')",
    "all commands' help": "import dpviz.cli; dpviz.cli.build_parser()",
    "Streamlit and its server": "import streamlit.web.bootstrap, streamlit.starlette",
    "the dashboard's frame": "import streamlit.web.bootstrap, streamlit.starlette, pages.ui.shell",
}


def start_seconds(program: str, runs: int) -> float:
    """Return the CPU seconds of an interpreter that runs a program."""
    found = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, check=True, stderr=subprocess.DEVNULL
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def whose(file: str) -> str:
    """Return whose code a file holds."""
    path = Path(file)
    if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0].removesuffix(".py") in _OURS:
        return "ours"
    _, _, inside = file.rpartition("site-packages/")
    top = inside.partition("/")[0] if inside != file else ""
    named = "plotly" if top == "_plotly_utils" else top
    return named if named in _SHOWN else "Python and the rest"


def page_profile(page: str, runs: int) -> tuple[float, Counter[str]]:
    """Return the CPU seconds of one run of a page that has run before, and whose they are."""
    at = AppTest.from_file(str(app_path()), default_timeout=60)
    at.query_params.update({"table": "iris", "trials": "5"})
    at.switch_page(f"pages/{page}.py").run()
    at.run()
    seconds = []
    for _ in range(runs):
        began = time.process_time()
        at.run()
        seconds.append(time.process_time() - began)
    profile = cProfile.Profile()
    run = ScriptRunner._run_script

    def profiled(*given: Any, **named: Any) -> Any:
        profile.enable()  # the script has a thread of its own
        try:
            return run(*given, **named)
        finally:
            profile.disable()

    ScriptRunner._run_script = profiled  # type: ignore[method-assign]
    try:
        at.run()
    finally:
        ScriptRunner._run_script = run  # type: ignore[method-assign]
    assert not at.exception
    shares: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file != "~":
            shares[whose(file)] += own
        for (caller, _, _), (_, _, part, _) in callers.items():  # of a compiled function
            shares[whose(caller)] += part if file == "~" else 0
    return min(seconds), shares


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", action="append", help="a page's file name, repeatable")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    set_log_level("ERROR")  # outside a server Streamlit warns of what it misses
    print("| start | CPU seconds |\n|---|---|")
    for name, program in STARTS.items():
        print(f"| {name} | {start_seconds(program, given.runs):.2f} |", flush=True)
    print("\n| page | CPU seconds of a run | whose |\n|---|---|---|")
    for page in given.page or ["explore", "tradeoffs", "precision", "papers"]:
        seconds, shares = page_profile(page, given.runs)
        whole = sum(shares.values())
        told = ", ".join(f"{name} {100 * own / whole:.0f} %" for name, own in shares.most_common(5))
        print(f"| {page} | {seconds:.3f} | {told} |", flush=True)


if __name__ == "__main__":
    main()
