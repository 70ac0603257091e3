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
from dpviz.cli.terminal import Steps, end_progress, tell_ahead, tell_memory
from dpviz.core.number_text import percent
from dpviz.core.settings import Settings
from dpviz.report.sentences import explore
from dpviz.simulation.compare import Comparison, Result
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.defaults import with_featured
from dpviz.studies.compare import compare
from dpviz.studies.options import YOUR_FILE, question_of, ready

TRIALS = 20


def look(arguments: argparse.Namespace) -> int:
    """Print a verdict, six rows and what to do next; what ``compare`` prints if that was asked."""
    if arguments.format != "table" or arguments.metrics is not None:
        return run(compare, arguments)
    asked: dict[str, Any] = asked_of(question_of(compare), arguments)
    table = asked.pop("table")
    fetch_table(table)
    prepared, settings = ready(table, {"trials": TRIALS, **asked})
    settings = with_featured(prepared, settings)
    found = compare_prepared(prepared, settings, Steps().show, tell_ahead, tell_memory)
    end_progress()
    width = shutil.get_terminal_size().columns
    # what came by a pipe has no name that could be typed again
    typed = YOUR_FILE if Path(table).stem == STDIN else table
    print(glance(found, typed, width, colour=_coloured()))
    return 0


def _coloured() -> bool:
    """Return whether a person sees this who did not ask for plain text."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


# A first look -------------------------------------------------------------------------------------


ROWS = 6
_NARROWEST = 40
# columns: a shorter bar tells nothing apart
_LEAST_BAR = 4
_GOOD, _BAD, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def glance(found: Comparison, table: str, width: int, *, colour: bool) -> str:
    """Return what a person wants to know first of a table.

    Parameters
    ----------
    found : Comparison
    table : str
        As it was typed, for the commands that go on from here.
    width : int
        Columns of the terminal.
    colour : bool
        Whether claims are coloured; they are said in words too.
    """
    ranked = _ranked(found.results)[:ROWS]
    notes = [f"note: {note}" for note in found.prepared.notes]
    lines = [
        explore.best(found),
        explore.failing(found),
        f"{found.prepared.name} has {found.problem.n:,} people (rows) and {found.problem.d} "
        f"features; assumed public: {'; '.join(found.assumed_public)}.",
        "",
        *_rows(ranked, max(width, _NARROWEST), colour),
        "",
        *notes,
        *([""] if notes else []),
        *_commands(found, ranked, table),
    ]
    return "\n".join(lines)


def _ranked(results: Sequence[Result]) -> list[Result]:
    """Return results best first: claims that stand, then others, then those that fail."""

    def place(result: Result) -> tuple[int, float]:
        verdict = result.status.verdict
        # a false claim is last however much it keeps
        group = 0 if verdict.counts else 2 if verdict.fails else 1
        return group, -result.summaries[_measure(results)].mean

    return sorted(results, key=place)


def _measure(results: Sequence[Result]) -> str:
    """Return the measure that the rows show: recovery, where k leaves any."""
    return "recovery" if all("recovery" in one.summaries for one in results) else "captured_share"


def _rows(results: Sequence[Result], width: int, colour: bool) -> list[str]:
    """Return one line for each result, with a bar as long as the terminal allows."""
    if not results:
        return []
    measure = _measure(results)
    values = [one.summaries[measure].mean for one in results]
    names = [one.mechanism.text for one in results]
    shares = [percent(value) for value in values]
    claims = [one.status.marked for one in results]
    wide = max(map(len, names)), max(map(len, shares)), max(map(len, claims))
    bar = width - sum(wide) - 6
    if bar < _LEAST_BAR:  # a narrow terminal keeps the words, and has no bars
        bar, cut = 0, width - wide[1] - wide[2] - 4
        names = [name if len(name) <= cut else f"{name[: max(cut - 1, 1)]}…" for name in names]
        wide = max(map(len, names)), wide[1], wide[2]
    lines = []
    for one, name, share, value, claim in zip(results, names, shares, values, claims, strict=True):
        drawn = f"{_bar(value, bar)}  " if bar else ""
        if colour:
            ink = _BAD if one.status.verdict.fails else _GOOD if one.status.verdict.counts else ""
            # after widths are known: a terminal counts no letters of a colour, and len does
            claim = f"{ink}{claim}{_PLAIN}" if ink else claim
        lines.append(f"{name:<{wide[0]}}  {drawn}{share:>{wide[1]}}  {claim}")
    return lines


def _bar(value: float, width: int) -> str:
    """Return a bar in eighths of a character."""
    # blocks come in eighths, and few columns must show differences of a per cent
    eighths = round(min(max(value, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")


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
