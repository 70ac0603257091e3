"""Write the table of docs/mechanisms.md: ``python -m tools.readme``.

``--check`` compares instead of writing, and exits with 1 if the tables differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpviz import datasets
from dpviz.core.release import VERDICT_WORDS
from dpviz.core.settings import Settings
from dpviz.mechanisms import ALL
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare
from tools.generated import write_or_check

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mechanisms.md"
START, END = "<!-- mechanisms: start -->", "<!-- mechanisms: end -->"
GUARANTEES = {"pure": "(ε, 0)", "approximate": "(ε, δ)", "none": "none"}


DRAWS = 200


def table(mechanisms: tuple[str, ...] = (ALL,)) -> str:
    """Return the table in Markdown: digits at epsilon 1, with defaults for all other settings."""
    settings = Settings(table="digits", trials=DRAWS, mechanisms=mechanisms)
    comparison = compare(prepare(datasets.load(settings.table), settings), settings)
    lines = [
        "| mechanism | paper | guarantee | status (replace) | spent ε "
        f"| recovery, mean of {DRAWS} draws |",
        "|---|---|---|---|---|---|",
    ]
    for result in comparison.results:
        info = result.mechanism.info
        recovery = result.summaries["recovery"].mean
        loss = "-"
        if result.spent is not None:
            loss = result.spent.cost.brief
        lines.append(
            f"| `{result.mechanism.key}` | {info.paper} | {GUARANTEES[info.guarantee]} "
            f"| {VERDICT_WORDS[result.status.verdict]} | {loss} "
            f"| {round(100 * recovery)} % |"
        )
    lines += [
        f"| `{item.mechanism}` | | | not run: {item.reason} | | |" for item in comparison.skipped
    ]
    return "\n".join(lines)


def main() -> int:
    """Write or check the table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    return write_or_check(__doc__, PAGE, f"{before}{START}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
