"""A table alone: a first look at it, as ``dpviz mine.csv`` prints."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from dpviz.cli.asking import asked_of, run
from dpviz.cli.data import fetch_table
from dpviz.cli.options import STDIN
from dpviz.cli.terminal import Steps, end_progress, tell_ahead, tell_memory
from dpviz.report.sentences.glance import glance
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.defaults import with_featured
from dpviz.studies.asked import YOUR_FILE, question_of, ready
from dpviz.studies.compare import compare

TRIALS = 20


def look(arguments: argparse.Namespace) -> int:
    """Print a verdict, six rows and what to do next; in another format what ``compare`` prints."""
    if arguments.format != "table":
        return run(compare, arguments)
    asked: dict[str, Any] = asked_of(question_of(compare), arguments)
    table = asked.pop("table")
    fetch_table(table)
    prepared, settings = ready(table, {"trials": TRIALS, **asked})
    settings = with_featured(prepared, settings)
    found = compare_prepared(prepared, settings, Steps().show, tell_ahead, tell_memory)
    end_progress()
    width = shutil.get_terminal_size().columns
    typed = YOUR_FILE if Path(table).stem == STDIN else table
    print(glance(found, typed, width, colour=_coloured()))
    return 0


def _coloured() -> bool:
    """Return whether a person sees this who did not ask for plain text."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
