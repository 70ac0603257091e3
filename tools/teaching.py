"""Write docs/teaching.md: ``python -m tools.teaching``.

The plan comes from the lessons; the time that Decide takes was measured once. ``--check`` compares
instead of writing, and exits with 1 if the files differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpviz.lessons.teaching import document
from tools.generated import write_or_check

_ROOT = Path(__file__).resolve().parent.parent
PATH = _ROOT / "docs" / "teaching.md"


def main() -> int:
    """Write or check the plan."""
    return write_or_check(__doc__, PATH, document())


if __name__ == "__main__":
    sys.exit(main())
