"""Send hostile files through pandas and polars, and hostile links through the dashboard.

``python -m benchmarks.fuzz --files 20000 --links 5000`` generates files and links by number from a
seed, so that ``--first`` reproduces a failure. The command counts faults. A file's fault is an
exception that is not one message, a cell of the data in a message, a warning, or two readers that
disagree. A link's fault is an exception on a page, or more than a second to read the link. The
parser reads all links; one in ``--every`` also opens a whole page with a small table. Tables of
``--clean`` numbers in many dialects are read by pandas and polars too, to the same bits.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.hostile import both_readers, clean, file, link, readers_disagree
from tests.ui.driver import PAGES, ROOT


def fuzz_files(seed: int, first: int, count: int) -> list[str]:
    """Return the faults found with hostile files."""
    problems: list[str] = []
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            case = file(seed, number)
            kinds[case.kind] += 1
            problems += both_readers(case, Path(folder))
    print(f"{count} files: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    return problems


def fuzz_clean(seed: int, first: int, count: int) -> list[str]:
    """Return the places at which readers disagree about clean numbers."""
    with tempfile.TemporaryDirectory() as folder:
        problems = [
            f"clean {number}: {problem}"
            for number in range(first, first + count)
            for problem in readers_disagree(clean(seed, number), Path(folder))
        ]
    print(f"{count} tables of clean numbers, also read by pandas and polars")
    return problems


def fuzz_links(seed: int, first: int, count: int, every: int) -> list[str]:
    """Return the faults found with hostile links."""
    from tests.links import drawn_problems, known_keys, parser_problems

    problems: list[str] = []
    keys = known_keys()
    pages = 0
    for number in range(first, first + count):
        query = link(seed, number, keys)
        problems += [f"link {number}: {problem}" for problem in parser_problems(query)]
        if number % every == 0:
            page = PAGES[(number // every) % len(PAGES)]
            problems += [f"link {number}: {problem}" for problem in drawn_problems(page, query)]
            pages += 1
    print(f"{count} links read, {pages} of them drawn on {len(PAGES)} pages of {ROOT.name}")
    return problems


def main() -> int:
    """Run both checks and print the faults found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--clean", type=int, default=5_000)
    parser.add_argument("--links", type=int, default=5_000)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    begin = time.monotonic()
    problems = fuzz_files(args.seed, args.first, args.files) if args.files else []
    problems += fuzz_clean(args.seed, args.first, args.clean) if args.clean else []
    problems += fuzz_links(args.seed, args.first, args.links, args.every) if args.links else []
    for problem in problems[:50]:
        print(problem[:500])
    print(f"{len(problems)} problems in {time.monotonic() - begin:.0f} s")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
