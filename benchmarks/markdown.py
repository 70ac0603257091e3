"""Format the tables of pages that benchmarks write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    head, *body = (f"| {' | '.join(map(str, row))} |" for row in (header, *rows))
    return [head, "|" + "---|" * len(header), *body]
