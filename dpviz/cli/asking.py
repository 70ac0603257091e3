"""The commands that ask one question each, written from what its function declares."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.auditing.run import varied
from dpviz.cli.data import fetch_table
from dpviz.cli.options import Commands, add_cache, add_set, add_settings, stated, store_from
from dpviz.cli.terminal import Line, end_progress, tell_ahead, tell_memory
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import atomic_write, check_out, csv_text, json_text
from dpviz.mechanisms import parse_variant, with_parameter
from dpviz.studies import Answer
from dpviz.studies.options import Study, question_of

FORMATS = ("table", "json", "csv", "jsonl")
"""In which every answer is printed: for people, as one object, or its table by rows."""

SAVE_HELP = "also keep the answer as FILE, with what made it: dpviz rerun FILE asks it again"


def add(commands: Commands, function: Any) -> argparse.ArgumentParser:
    """Add the parser of the command that calls a function of the front door, and return it."""
    question = question_of(function)
    # what stands under another command is named by that one's help
    alone: dict[str, Any] = {} if " " in question.word else {"help": question.help}
    parser = commands.add_parser(question.word, description=question.help, **alone)
    params = question.params()
    for cls in question.declared:
        # several declarations may be one question's, and the base is of one of them
        based = question.base if isinstance(question.base, cls) else None
        add_settings(parser, cls, based)
    # parameters of a mechanism can be said only where there is one
    if {"mechanism", "mechanisms"} & set(params):
        add_set(parser)
    own = inspect.signature(function).parameters
    for action in parser._actions:
        # a question of a plan needs no table, though it may have one
        if action.dest == "table" and own["table"].default is None:
            action.nargs = "?"
    if "cache" in own:
        add_cache(parser)
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write there and not here"
        if question.prints_to_out
        else "also write the table, as FILE.csv or FILE.parquet",
    )
    parser.add_argument("--save", metavar="FILE", help=SAVE_HELP)
    parser.set_defaults(run=partial(run, function))
    return parser


def run(function: Any, arguments: argparse.Namespace, **more: Any) -> int:
    """Ask the question that parsed arguments state, and more keywords; print the answer."""
    question = question_of(function)
    check_places(question, arguments)
    asked = asked_of(question, arguments)
    line = Line(question.noun)
    own = inspect.signature(function).parameters
    watched: dict[str, Any] = {
        "progress": line.show,
        "on_estimate": tell_ahead,
        "memory": tell_memory,
    }
    if "cache" in own:
        watched["cache"] = store_from(arguments.cache)
    if "table" in asked:
        # with a bar here; the function would load it without a word
        fetch_table(asked["table"])
    given = asked | more | {name: value for name, value in watched.items() if name in own}
    try:
        found: Answer = function(**given)
    except KeyboardInterrupt:
        if not question.noun:
            raise
        end_progress()
        store = watched.get("cache")
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {line.words}; {kept}", file=sys.stderr)
        return 130
    end_progress()
    tell(question, found, arguments, line.words if question.noun else "")
    return found.status


def asked_of(question: Study, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords that parsed arguments state."""
    asked: dict[str, Any] = {}
    for cls in question.declared:
        asked |= stated(arguments, cls)
    assignments = getattr(arguments, "assignments", ())
    if assignments and "mechanism" in question.params():
        one = parse_variant(asked.get("mechanism", question.default("mechanism")))
        asked["mechanism"] = varied(one, assignments).text
    elif assignments:
        for assignment in assignments:
            asked["mechanisms"] = with_parameter(asked.get("mechanisms", ()), assignment)
    return asked


def check_places(question: Study, arguments: argparse.Namespace) -> None:
    """Raise `InvalidSetting` where a file cannot be written, before any work."""
    if arguments.out is not None and not question.prints_to_out:
        check_out(arguments.out)
    elif arguments.out is not None and not Path(arguments.out).resolve().parent.is_dir():
        raise InvalidSetting("out", "a file in a folder that exists", arguments.out, "--out")
    if arguments.save is not None and not Path(arguments.save).resolve().parent.is_dir():
        raise InvalidSetting("save", "a file in a folder that exists", arguments.save, "--save")


def table_text(table: pd.DataFrame, kind: str) -> str:
    """Return a table as CSV, or as one JSON object a line."""
    if kind == "csv":
        return csv_text(table)
    # by the one program for JSON: what it lacks, such as NaN, is null
    return "".join(
        json.dumps(json.loads(json_text(row)), ensure_ascii=False) + "\n"
        for row in table.to_dict("records")
    )


def tell(question: Study, found: Answer, arguments: argparse.Namespace, words: str) -> None:
    """Print an answer in the format asked for, and write its files."""
    if arguments.format == "json":
        text = found.to_json() + "\n"
    elif arguments.format in ("csv", "jsonl"):
        text = table_text(found.table(), arguments.format)
        # beside the rows, so that these can be piped
        print(found.summary(), file=sys.stderr)
    else:
        text = found.printed() + "\n"
    if arguments.out is not None and question.prints_to_out:
        with atomic_write(Path(arguments.out)) as aside:
            aside.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    if arguments.out is not None and not question.prints_to_out:
        found.write(arguments.out)
        counted = f": {words}" if words else ""
        print(f"{len(found.table())} rows in {arguments.out}{counted}")
    if arguments.save is not None:
        found.save(arguments.save)
