"""What every page loads before it draws: nothing heavy that most visitors do not need."""

from __future__ import annotations

import subprocess
import sys

from dpviz.base.paths import app_path

HEAVY = ("sklearn", "scipy.stats", "scipy.optimize", "scipy.interpolate", "joblib", "requests")


def test_the_frame_of_the_pages_loads_nothing_heavy() -> None:
    program = (
        "import sys; import pages.ui.shell; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=app_path().parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "True"]
