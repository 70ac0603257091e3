"""Write docs/teaching.md: ``python -m tools.teaching``.

``--check`` compares instead of writing and exits with 1 where they differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpviz.guide.teaching import document

PATH = Path(__file__).resolve().parent.parent / "docs" / "teaching.md"


def main() -> int:
    """Write or check the plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    made = document()
    if arguments.check:
        return int(not PATH.exists() or PATH.read_text(encoding="utf-8") != made)
    PATH.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
