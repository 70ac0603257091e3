"""Commands generated from the declarations of public functions, one question each."""

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
"""Output formats of every answer: text for people, one JSON object, or the table's rows."""

SAVE_HELP = "also save the answer and its settings as FILE; dpviz rerun FILE computes it again"


def add(commands: Commands, function: Any) -> argparse.ArgumentParser:
    """Add and return the parser of the command that calls a public function."""
    question = question_of(function)
    # A subcommand is listed in the help of its parent command.
    alone: dict[str, Any] = {} if " " in question.word else {"help": question.help}
    parser = commands.add_parser(question.word, description=question.help, **alone)
    params = question.params()
    for cls in question.declared:
        # A question may have several classes of settings; the base belongs to only one of them.
        base = question.base if isinstance(question.base, cls) else None
        add_settings(parser, cls, base)
    # Add mechanism parameters only to questions that take a mechanism.
    if {"mechanism", "mechanisms"} & set(params):
        add_set(parser)
    own = inspect.signature(function).parameters
    for action in parser._actions:
        # The table is optional in a question about a planned study.
        if action.dest == "table" and own["table"].default is None:
            action.nargs = "?"
    if "cache" in own:
        add_cache(parser)
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write the answer to this file instead of printing it"
        if question.prints_to_out
        else "also write the table to FILE.csv or FILE.parquet",
    )
    parser.add_argument("--save", metavar="FILE", help=SAVE_HELP)
    parser.set_defaults(run=partial(run, function))
    return parser


def run(function: Any, arguments: argparse.Namespace, **more: Any) -> int:
    """Call the function with the parsed arguments and extra keywords, and print the answer."""
    question = question_of(function)
    check_places(question, arguments)
    options = asked_of(question, arguments)
    line = Line(question.noun)
    own = inspect.signature(function).parameters
    hooks: dict[str, Any] = {
        "progress": line.show,
        "on_estimate": tell_ahead,
        "memory": tell_memory,
    }
    if "cache" in own:
        hooks["cache"] = store_from(arguments.cache)
    if "table" in options:
        # Download the table here, to show a progress bar: the function itself would show none.
        fetch_table(options["table"])
    values = options | more | {name: value for name, value in hooks.items() if name in own}
    try:
        answer: Answer = function(**values)
    except KeyboardInterrupt:
        if not question.noun:
            raise
        end_progress()
        store = hooks.get("cache")
        note = (
            "the same command continues the run" if store else "no result is saved without --cache"
        )
        print(f"dpviz: interrupted after {line.words}; {note}", file=sys.stderr)
        return 130
    end_progress()
    tell(question, answer, arguments, line.words if question.noun else "")
    return answer.status


def asked_of(question: Study, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function's keyword arguments from the parsed arguments."""
    options: dict[str, Any] = {}
    for cls in question.declared:
        options |= stated(arguments, cls)
    assignments = getattr(arguments, "assignments", ())
    if assignments and "mechanism" in question.params():
        one = parse_variant(options.get("mechanism", question.default("mechanism")))
        options["mechanism"] = varied(one, assignments).text
    elif assignments:
        for assignment in assignments:
            options["mechanisms"] = with_parameter(options.get("mechanisms", ()), assignment)
    return options


def check_places(question: Study, arguments: argparse.Namespace) -> None:
    """Raise `InvalidSetting` before any work if a file cannot be written."""
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
    # JSON lacks values such as NaN; the shared JSON writer turns them into null.
    return "".join(
        json.dumps(json.loads(json_text(row)), ensure_ascii=False) + "\n"
        for row in table.to_dict("records")
    )


def tell(question: Study, answer: Answer, arguments: argparse.Namespace, words: str) -> None:
    """Print an answer in the requested format, and write its files."""
    if arguments.format == "json":
        text = answer.to_json() + "\n"
    elif arguments.format in ("csv", "jsonl"):
        text = table_text(answer.table(), arguments.format)
        # Print the summary to stderr, so that stdout contains only the rows, for piping.
        print(answer.summary(), file=sys.stderr)
    else:
        text = answer.printed() + "\n"
    if arguments.out is not None and question.prints_to_out:
        with atomic_write(Path(arguments.out)) as aside:
            aside.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    if arguments.out is not None and not question.prints_to_out:
        answer.write(arguments.out)
        note = f": {words}" if words else ""
        print(f"{len(answer.table())} rows in {arguments.out}{note}")
    if arguments.save is not None:
        answer.save(arguments.save)
