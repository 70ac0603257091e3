"""Write docs/teaching.md: ``python -m tools.teaching``.

The plan comes from the lessons, and how fast Decide is from the figures that ``python -m
benchmarks.guide --out benchmarks/guide.json`` keeps. ``--check`` compares instead of writing and
exits with 1 where they differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dpviz.lessons.teaching import document
from tools.generated import write_or_check

_ROOT = Path(__file__).resolve().parent.parent
PATH = _ROOT / "docs" / "teaching.md"
MEASURED = _ROOT / "benchmarks" / "guide.json"


def text() -> str:
    """Return the whole page: the plan, and what a data officer waits for."""
    seen = json.loads(MEASURED.read_text(encoding="utf-8"))
    return (
        f"{document()}\n## How long a data officer waits\n\n"
        "Measured by `python -m benchmarks.guide`, browser and server on two cores that had other "
        "work to do: a data officer who uploads "
        "`data/example.csv` sees Decide's answer "
        f"{seen['card']} s after the upload; the search alone takes {seen['search']} s.\n"
    )


def main() -> int:
    """Write or check the plan."""
    return write_or_check(__doc__, PATH, text())


if __name__ == "__main__":
    sys.exit(main())
