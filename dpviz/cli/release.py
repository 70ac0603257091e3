"""The commands ``schema``, ``release`` (also ``card`` and ``verify``) and ``ledger``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpviz.cli.options import Commands, OneLineParser, add_settings, add_sheet, add_table, stated
from dpviz.core.errors import DpvizError
from dpviz.datasets.columns import counted
from dpviz.releasing.declared import PrivacyWarning
from dpviz.releasing.ledger import ledger_at
from dpviz.releasing.options import LedgerOptions, ReleaseOptions
from dpviz.releasing.schema import FROM_DATA, PUBLIC
from dpviz.releasing.verifying import verify as fits
from dpviz.studies.card import CardOptions, card
from dpviz.studies.ledger import ledger
from dpviz.studies.release import release
from dpviz.studies.schema import SchemaOptions, schema
from dpviz.studies.verify import verify

_ACTIONS = ("show", "new", "bind", "verify")


def add(commands: Commands) -> None:
    """Add the parsers of ``schema``, ``release`` and ``ledger``."""
    _add_schema(commands)
    _add_release(commands)
    _add_ledger(commands)
    _add_card(commands)
    checking = commands.add_parser(
        "release verify",
        description="check a card against its release and ledger; exit status 1 if they differ",
    )
    for name in ("card", "release", "ledger"):
        checking.add_argument(name, metavar=name.upper())
    checking.set_defaults(run=_check)


def _add_file(parser: argparse.ArgumentParser, flag: str, help: str, **more: Any) -> None:
    parser.add_argument(flag, metavar="FILE", help=help, **more)


def _add_release(commands: Commands) -> None:
    releasing = commands.add_parser(
        "release",
        help="make one real release with exact discrete noise; release card writes its privacy "
        "card, and release verify checks that card",
    )
    add_table(releasing)
    words = (
        "schema of the table, agreed before anybody saw the data; dpviz schema writes a first "
        "schema. Default: the public schema of a built-in table."
    )
    _add_file(releasing, "--schema", words)
    words = "use a schema that is still marked as taken from the data; the release states this mark"
    releasing.add_argument("--schema-from-data", action="store_true", help=words)
    add_settings(releasing, ReleaseOptions)
    words = "ledger that records the privacy loss before the release; dpviz ledger new creates one"
    _add_file(releasing, "--ledger", words, required=True)
    _add_file(releasing, "--out", "a new JSON file", required=True)
    releasing.set_defaults(run=_release)


def _add_ledger(commands: Commands) -> None:
    ledgers = commands.add_parser(
        "ledger", help="create a ledger, show it, or check it against releases"
    )
    ledgers.actions = _ACTIONS  # Make `ledger FILE` an abbreviation of `ledger show FILE`.
    actions = ledgers.add_subparsers(dest="action", required=True, metavar="|".join(_ACTIONS))

    def action(name: str, run: Callable[[argparse.Namespace], int], help: str) -> OneLineParser:
        parser = actions.add_parser(name, help=help)
        parser.add_argument("file", metavar="FILE")
        parser.set_defaults(run=run)
        return parser

    making = action("new", _new, "create an empty ledger with a fixed limit")
    add_settings(making, LedgerOptions)
    words = "allow only releases with this schema; default: any schema of the same people"
    _add_file(making, "--schema", words)
    showing = action("show", _show, "show a ledger; dpviz ledger FILE does the same")
    showing.add_argument("--format", choices=("table", "json"), default="table")
    words = "declare that a table, such as a corrected export, holds the same people"
    binding = action("bind", _bind, words)
    add_table(binding)
    binding.add_argument("--purpose", metavar="TEXT", default="", help="why")
    words = "check a ledger against its releases; exit status 1 if they do not fit together"
    verifying = action("verify", _verify, words)
    verifying.add_argument("releases", metavar="RELEASE", nargs="*", help="files of releases")


def _add_card(commands: Commands) -> None:
    filing = commands.add_parser(
        "release card", description="write the privacy card of a release, for your records"
    )
    filing.add_argument("release", metavar="RELEASE", help="file of a release")
    _add_file(filing, "--ledger", "ledger that recorded the release")
    add_settings(filing, CardOptions)
    words = "JSON file with the source and the confirming person for each assumption's number"
    _add_file(filing, "--sources", words)
    words = (
        "the released table, for an internal copy of the card with exact counts of cells; do not "
        "share that copy"
    )
    filing.add_argument("--table", metavar="TABLE", help=words)
    add_sheet(filing)
    _add_file(filing, "--schema", "schema of the release")
    _add_file(
        filing, "--out", "a JSON file; a page to print (.html) appears beside it", required=True
    )
    filing.set_defaults(run=_card)


def _release(arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always", PrivacyWarning)
        answer = release(
            arguments.table,
            ledger=arguments.ledger,
            out=arguments.out,
            schema=arguments.schema,
            schema_from_data=arguments.schema_from_data,
            sheet=arguments.sheet,
            **stated(arguments, ReleaseOptions),
        )
    for warning in messages:
        print(f"dpviz: {warning.message}", file=sys.stderr)
    # Name the new file in the summary, because it is the result of the command.
    print(answer.summary().replace(" released: ", f" released to {arguments.out}: ", 1))
    return 0


def _new(arguments: argparse.Namespace) -> int:
    options = stated(arguments, LedgerOptions)
    # Pass on a missing limit as empty text: the checks refuse it with all other errors.
    limit = options.pop("limit", "")
    print(ledger(arguments.file, limit=limit, schema=arguments.schema, **options).summary())
    return 0


def _show(arguments: argparse.Namespace) -> int:
    books = ledger(arguments.file)
    print(books.to_json() if arguments.format == "json" else books.printed())
    return 0


def _bind(arguments: argparse.Namespace) -> int:
    books = ledger(arguments.file).bind(arguments.table, arguments.purpose, arguments.sheet)
    tables = len(books.contents.tables)
    print(f"{books.ledger.path.name} now covers {counted(tables, 'table')} of the same people")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    ledger = ledger_at(arguments.file)
    problems = fits(ledger, [Path(name) for name in arguments.releases])
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{ledger.path.name} and its releases fit together")
    # Exit with 1, not 2: a ledger that does not match is a result, not a wrong command.
    return int(bool(problems))


def _card(arguments: argparse.Namespace) -> int:
    answer = card(
        arguments.release,
        ledger=arguments.ledger,
        sources=arguments.sources,
        table=arguments.table,
        schema=arguments.schema,
        sheet=arguments.sheet,
        **stated(arguments, CardOptions),
    )
    answer.write_card(arguments.out)
    print(answer.summary())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    answer = verify(arguments.card, arguments.release, arguments.ledger)
    print(answer.summary())
    return answer.status


# List `schema` first in the help, because a release needs a schema.
def _add_schema(commands: Commands) -> None:
    parser = commands.add_parser(
        "schema", help="write a first schema of a table; a release reads the table by its schema"
    )
    add_settings(parser, SchemaOptions)
    _add_file(parser, "--out", "a new JSON file; default: print the schema")
    parser.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    options = stated(arguments, SchemaOptions)
    out = None if arguments.out is None else Path(arguments.out)
    # Never overwrite a schema, because somebody may already have signed it.
    if out is not None and out.exists():
        raise DpvizError(f"--out must name a new file; {out.name!r} exists already.")
    if out is not None and not out.parent.is_dir():
        raise DpvizError(f"--out must name a file in a folder that exists; got {out.name!r}.")
    draft = schema(**options)
    result = draft.schema
    if out is None:
        print(draft.to_json())
    else:
        draft.write_schema(out)
        print(f"{out}: {len(result.used)} of {len(result.columns)} columns are used")
    if result.from_data:
        print(
            f"dpviz: the schema is marked {FROM_DATA!r}. Enter limits that were known before "
            f"anybody looked at the table, then change the mark to {PUBLIC!r}",
            file=sys.stderr,
        )
    return 0
