"""Starts of interpreters: their imports, their output and their leftovers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpviz
from dpviz.core.files import app_path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "sklearn", "scipy.stats", "scipy.optimize", "scipy.interpolate", "scipy.spatial", "joblib",
    "requests",
)  # fmt: skip


_SESSION = """
import json, sys, dpviz
told = {"before": [m for m in sys.modules if m.startswith("dpviz.")]}
try:
    dpviz.mechanisms()
except AttributeError as error:
    told["hint"] = str(error)
found = dpviz.compare("iris", trials=2, mechanisms="screened_wishart_difference")
told["door"] = dir(dpviz)
found.summary(); found.table(); found.to_json()
import dpviz.papers.measurements
dpviz.papers.measurements.Mean.near(1.0, 0.1, 9)
import dpviz.cli
dpviz.cli.build_parser()
told["heavy"] = sorted({"plotly", "streamlit", "scipy.stats"} & set(sys.modules))
found.figure()
told["drawn"] = sorted({"plotly", "streamlit"} & set(sys.modules))
from dpviz import datasets, mechanisms
import dpviz.datasets as d
told["packages"] = [
    len(dpviz.list_mechanisms().keys) == len(mechanisms.all_mechanisms()),
    d is datasets, "iris" in dpviz.list_datasets().keys, type(datasets).__name__,
]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """Return a Python session's state, step by step."""
    process = subprocess.run(
        [sys.executable, "-c", _SESSION], cwd=ROOT, capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def test_packages_are_packages_and_the_old_names_say_the_new(told: dict[str, Any]) -> None:
    assert told["hint"].endswith("(did you mean dpviz.list_mechanisms?)")
    assert told["packages"] == [True, True, True, "module"]


def test_the_front_door_has_what_is_documented_and_nothing_else(told: dict[str, Any]) -> None:
    assert told["door"] == sorted([*dpviz.__all__, "__version__"])


def test_nothing_is_imported_before_it_is_used(told: dict[str, Any]) -> None:
    assert told["before"] == []
    assert told["heavy"] == []
    assert told["drawn"] == ["plotly"]


def test_a_command_does_not_import_what_others_need() -> None:
    """The dashboard (a separate process) and the version import almost nothing."""
    program = (
        "import sys; from dpviz.cli import build_parser, load, main; load(['app']); "
        "main(['app', '--port', '0']); load(['--version']); build_parser('--version'); "
        "print({'pandas', 'scipy', 'dpviz.mechanisms'} & set(sys.modules)); main(['datasets']); "
        "heavy = [m for m in sys.modules if m.startswith(('dpviz.papers', 'dpviz.releasing', "
        "'dpviz.auditing.account', 'dpviz.cli.')) and m not in "
        "('dpviz.cli.dashboard', 'dpviz.cli.data', 'dpviz.cli.options', 'dpviz.cli.terminal', "
        "'dpviz.cli.asking')]; "
        "print(heavy, file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith("set()\n")
    assert "--port must be from 1 to 65535" in process.stderr
    assert process.stderr.strip().splitlines()[-1] == "[]"


def test_the_frame_of_the_pages_loads_nothing_heavy() -> None:
    program = (
        "import sys; import pages.ui.shell; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], 'pandas' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        cwd=app_path().parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == ["[]", "True"]
