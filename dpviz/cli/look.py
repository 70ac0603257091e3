"""A table alone: a first look at it, as ``dpviz mine.csv`` prints."""

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
# columns: a shorter bar tells nothing apart
_LEAST_BAR = 4
_GOOD, _BAD, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def look(arguments: argparse.Namespace) -> int:
    """Print a verdict, six rows and what to do next; what ``compare`` prints if that was asked."""
    if arguments.format != "table" or arguments.metrics is not None:
        return run(compare, arguments)
    asked: dict[str, Any] = asked_of(question_of(compare), arguments)
    table = asked.pop("table")
    fetch_table(table)
    prepared, settings = ready(table, {"trials": TRIALS, **asked})
    settings = with_featured(prepared, settings)
    found = compare_prepared(prepared, settings, Line().show, tell_ahead, tell_memory)
    end_progress()
    # claims that stand first, then others, then those that fail however much they keep
    each = [one.summaries for one in found.results]
    measure = "recovery" if all("recovery" in one for one in each) else "captured_share"
    ranked = sorted(
        found.results,
        key=lambda one: (
            one.status.verdict.fails,
            not one.status.verdict.counts,
            -one.summaries[measure].mean,
        ),
    )[:ROWS]
    notes = [f"note: {note}" for note in prepared.notes]
    lines = [
        explore.best(found),
        explore.failing(found),
        f"{prepared.name} has {found.problem.n:,} people (rows) and {found.problem.d} "
        f"features; assumed public: {'; '.join(found.assumed_public)}.",
        "",
        *_rows(ranked, measure),
        "",
        *notes,
        *([""] if notes else []),
        # what came by a pipe has no name that could be typed again
        *_commands(found, ranked, YOUR_FILE if Path(table).stem == STDIN else table),
    ]
    print("\n".join(lines))
    return 0


def _rows(results: Sequence[Result], measure: str) -> list[str]:
    """Return one line for each result, with a bar as long as the terminal allows."""
    values = [one.summaries[measure].mean for one in results]
    cells = [(one.mechanism.text, percent(value), one.status.marked)
             for one, value in zip(results, values, strict=True)]  # fmt: skip
    # a person who did not ask for plain text sees colours
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    coloured = sys.stdout.isatty() and not plain
    name_width, share_width, claim_width = (
        max((len(row[place]) for row in cells), default=0) for place in range(3)
    )
    room = max(shutil.get_terminal_size().columns, _NARROWEST) - share_width - claim_width - 4
    width = room - name_width - 2
    if width < _LEAST_BAR:  # a narrow terminal keeps the words, and has no bars
        width, name_width = 0, min(name_width, room)
    lines = []
    for one, value, (name, share, claim) in zip(results, values, cells, strict=True):
        # blocks come in eighths, and few columns must show differences of a per cent
        full, rest = divmod(round(min(max(value, 0.0), 1.0) * width * 8), 8)
        bar = ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")
        ink = _BAD if one.status.verdict.fails else _GOOD if one.status.verdict.counts else ""
        claim = f"{ink}{claim}{_PLAIN}" if coloured and ink else claim
        name = name if len(name) <= name_width else f"{name[: name_width - 1]}…"
        drawn = f"{bar}  " if width else ""
        lines.append(f"{name:<{name_width}}  {drawn}{share:>{share_width}}  {claim}")
    return lines


def _commands(found: Comparison, ranked: Sequence[Result], table: str) -> list[str]:
    """Return three commands that go on from here."""
    # the same question goes on; which mechanisms and how many draws, each command chooses itself
    asked = replace(found.settings, mechanisms=(), trials=Settings().trials)
    board = asked.command(table, "board")
    sweep = replace(asked, epsilon=Settings().epsilon).command(table, "sweep")
    best = next((one.mechanism.text for one in ranked if one.status.verdict.counts), None)
    variant = f" --mechanism {shlex.quote(best)}" if best else ""
    audited = ranked[-1].mechanism if ranked else None
    third = audit_command(audited, found.problem, found.budget) if audited else "dpviz mechanisms"
    lines = [
        f"{board} --out board.html",
        f"{sweep} --over epsilon --values 0.1:10:9{variant} --out curve.csv",
        third,
    ]
    return ["Next:", *(f"  {line.removeprefix('python -m ')}" for line in lines)]
