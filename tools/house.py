"""Print the size of the code base: ``python -m tools.house``.

Each subpackage's lines of code are printed beside its budget. With ``--entered`` the command also
runs ``dpviz.compare("iris", mechanisms="gaussian")`` and counts the files and functions that this
call enters.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = {
    "accounting": 1_600, "auditing": 1_935, "benchmarks": 3_740, "cli": 1_760, "core": 3_355,
    "datasets": 4_785, "extend": 830, "lessons": 2_620, "mechanisms": 4_600, "pages": 7_570,
    "papers": 5_760, "preparation": 1_820, "releasing": 4_410, "report": 5_250, "sampling": 1_335,
    "simulation": 4_130, "studies": 4_775, "tests": 33_860, "tools": 1_930,
}  # fmt: skip
"""Lines of code allowed per subpackage. A change that exceeds a budget names what it retires."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(text: str) -> int:
    """Return the lines of a file without docstrings, imports, comments and blanks."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node = node.body[0]
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in left_out
        for number, line in enumerate(text.splitlines(), start=1)
    )


def lines_by_room(root: Path = ROOT) -> Counter[str]:
    """Return the lines of code of each subpackage, and of the folders beside the package."""
    lines: Counter[str] = Counter()
    for folder in ("dpviz", "pages", "tests", "tools", "benchmarks"):
        for path in (root / folder).rglob("*.py"):
            inside = path.relative_to(root).parts
            room = inside[1] if folder == "dpviz" and len(inside) > 2 else folder
            lines[room] += lines_of_code(path.read_text(encoding="utf-8"))
    return lines


def over_budget(lines: Counter[str]) -> list[str]:
    """Return, in words, the subpackages that have more lines than their budget."""
    return [
        f"{room}: {lines[room]:,} lines of code, {budget:,} allowed"
        for room, budget in BUDGETS.items()
        if lines[room] > budget
    ]


def entered() -> tuple[int, int]:
    """Return the number of files and functions of the package that one small comparison enters."""
    import dpviz

    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT / "dpviz")):
            codes.add(frame.f_code)

    dpviz.compare("iris", mechanisms="gaussian")  # This loads modules before the timing.
    sys.setprofile(note)
    try:
        dpviz.compare("iris", mechanisms="gaussian")
    finally:
        sys.setprofile(None)
    return len({code.co_filename for code in codes}), len(codes)


def main() -> None:
    """Print the lines of code and their budgets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--entered", action="store_true", help="count what a comparison enters")
    options = parser.parse_args()
    lines = lines_by_room()
    for room, count in sorted(lines.items()):
        print(f"{room:<12} {count:>7,}  of {BUDGETS[room]:,}" if room in BUDGETS else
              f"{room:<12} {count:>7,}")  # fmt: skip
    inside = lines.total() - sum(lines[room] for room in ("tests", "tools", "benchmarks"))
    print(f"{'dpviz, pages':<12} {inside:>7,}")
    if options.entered:
        files, functions = entered()
        print(f"compare enters {functions} functions of {files} files")


if __name__ == "__main__":
    main()
