"""Hostile files through both readers and hostile links through the dashboard.

``python -m benchmarks.fuzz --files 20000 --links 5000`` makes them by number from a seed, so that a
find can be made again with ``--first``. Counts what must not happen: an exception that is no
sentence, a cell of the data in a message, a warning, readers that disagree; of links an exception
on a page or a link that costs more than a second to read. Links all go through the parser, and one
in ``--every`` through a page, which is drawn whole with a small table. Tables of ``--clean``
numbers in many dialects are read by pandas and polars too, to the same bits.
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
    """Return what went wrong with the files."""
    found: list[str] = []
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            given = file(seed, number)
            kinds[given.kind] += 1
            found += both_readers(given, Path(folder))
    print(f"{count} files: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    return found


def fuzz_clean(seed: int, first: int, count: int) -> list[str]:
    """Return where readers disagree about clean numbers."""
    with tempfile.TemporaryDirectory() as folder:
        found = [
            f"clean {number}: {problem}"
            for number in range(first, first + count)
            for problem in readers_disagree(clean(seed, number), Path(folder))
        ]
    print(f"{count} tables of clean numbers, also read by pandas and polars")
    return found


def fuzz_links(seed: int, first: int, count: int, every: int) -> list[str]:
    """Return what went wrong with the links."""
    from tests.links import drawn_problems, known_keys, parser_problems

    found: list[str] = []
    keys = known_keys()
    drawn = 0
    for number in range(first, first + count):
        query = link(seed, number, keys)
        found += [f"link {number}: {problem}" for problem in parser_problems(query)]
        if number % every == 0:
            page = PAGES[(number // every) % len(PAGES)]
            found += [f"link {number}: {problem}" for problem in drawn_problems(page, query)]
            drawn += 1
    print(f"{count} links read, {drawn} of them drawn on {len(PAGES)} pages of {ROOT.name}")
    return found


def main() -> int:
    """Run both and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--clean", type=int, default=5_000)
    parser.add_argument("--links", type=int, default=5_000)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    started = time.monotonic()
    found = fuzz_files(given.seed, given.first, given.files) if given.files else []
    found += fuzz_clean(given.seed, given.first, given.clean) if given.clean else []
    found += fuzz_links(given.seed, given.first, given.links, given.every) if given.links else []
    for problem in found[:50]:
        print(problem[:500])
    print(f"{len(found)} problems in {time.monotonic() - started:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
