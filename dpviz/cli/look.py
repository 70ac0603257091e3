"""Overview of a table, as ``dpviz mine.csv`` prints it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.auditing.table import audit_command
from dpviz.cli.asking import asked_of, run
from dpviz.cli.data import fetch_table
from dpviz.cli.options import STDIN
from dpviz.cli.terminal import Line, end_progress, tell_ahead, tell_memory
from dpviz.core.number_text import percent
from dpviz.core.settings import Settings
from dpviz.report.sentences import explore
from dpviz.simulation.compare import Comparison, Result
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.defaults import with_featured
from dpviz.studies.compare import compare
from dpviz.studies.options import YOUR_FILE, question_of, ready

TRIALS = 20
ROWS = 6
_NARROWEST = 40
# Bars narrower than this many columns would not show differences.
_LEAST_BAR = 4
_GOOD, _BAD, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def look(arguments: argparse.Namespace) -> int:
    """Print a verdict, six rows and next steps; run ``compare`` if a format or metrics are set."""
    if arguments.format != "table" or arguments.metrics is not None:
        return run(compare, arguments)
    options: dict[str, Any] = asked_of(question_of(compare), arguments)
    table = options.pop("table")
    fetch_table(table)
    prepared, settings = ready(table, {"trials": TRIALS, **options})
    settings = with_featured(prepared, settings)
    comparison = compare_prepared(prepared, settings, Line().show, tell_ahead, tell_memory)
    end_progress()
    # Mechanisms whose claim holds come first, even if others keep more structure.
    each = [one.summaries for one in comparison.results]
    measure = "recovery" if all("recovery" in one for one in each) else "captured_share"
    results = sorted(
        comparison.results,
        key=lambda one: (
            one.status.verdict.fails,
            not one.status.verdict.counts,
            -one.summaries[measure].mean,
        ),
    )[:ROWS]
    notes = [f"note: {note}" for note in prepared.notes]
    lines = [
        explore.best(comparison),
        explore.failing(comparison),
        f"{prepared.name} has {comparison.problem.n:,} people (rows) and {comparison.problem.d} "
        f"features; assumed public: {'; '.join(comparison.assumed_public)}.",
        "",
        *_rows(results, measure),
        "",
        *notes,
        *([""] if notes else []),
        # A table from a pipe has no file name that the user could type again.
        *_commands(comparison, results, YOUR_FILE if Path(table).stem == STDIN else table),
    ]
    print("\n".join(lines))
    return 0


def _rows(results: Sequence[Result], measure: str) -> list[str]:
    """Return one line for each result, with bars that fit the terminal."""
    values = [one.summaries[measure].mean for one in results]
    cells = [(one.mechanism.text, percent(value), one.status.marked)
             for one, value in zip(results, values, strict=True)]  # fmt: skip
    # Use colours on a terminal, unless the environment asks for plain text.
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    colour = sys.stdout.isatty() and not plain
    name_width, share_width, claim_width = (
        max((len(row[place]) for row in cells), default=0) for place in range(3)
    )
    room = max(shutil.get_terminal_size().columns, _NARROWEST) - share_width - claim_width - 4
    width = room - name_width - 2
    if width < _LEAST_BAR:  # A narrow terminal shows words without bars.
        width, name_width = 0, min(name_width, room)
    lines = []
    for one, value, (name, share, claim) in zip(results, values, cells, strict=True):
        # Use eighths of a block character, so that even a short bar shows a difference of 1 %.
        full, rest = divmod(round(min(max(value, 0.0), 1.0) * width * 8), 8)
        bar = ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")
        ink = _BAD if one.status.verdict.fails else _GOOD if one.status.verdict.counts else ""
        claim = f"{ink}{claim}{_PLAIN}" if colour and ink else claim
        name = name if len(name) <= name_width else f"{name[: name_width - 1]}…"
        bar_text = f"{bar}  " if width else ""
        lines.append(f"{name:<{name_width}}  {bar_text}{share:>{share_width}}  {claim}")
    return lines


def _commands(comparison: Comparison, results: Sequence[Result], table: str) -> list[str]:
    """Return three commands that a user may run next."""
    # Repeat the user's settings, but let each command choose its mechanisms and repetitions.
    settings = replace(comparison.settings, mechanisms=(), trials=Settings().trials)
    board = settings.command(table, "board")
    sweep = replace(settings, epsilon=Settings().epsilon).command(table, "sweep")
    best = next((one.mechanism.text for one in results if one.status.verdict.counts), None)
    variant = f" --mechanism {shlex.quote(best)}" if best else ""
    worst = results[-1].mechanism if results else None
    third = (
        audit_command(worst, comparison.problem, comparison.budget) if worst else "dpviz mechanisms"
    )
    lines = [
        f"{board} --out board.html",
        f"{sweep} --over epsilon --values 0.1:10:9{variant} --out curve.csv",
        third,
    ]
    return ["Next:", *(f"  {line.removeprefix('python -m ')}" for line in lines)]
