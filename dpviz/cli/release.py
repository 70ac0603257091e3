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
    """Add the parser of each command."""
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
        "card, release verify checks it",
    )
    add_table(releasing)
    words = (
        "schema of the table, agreed before anybody saw the data; dpviz schema writes a "
        "first one. Default: the public one of a built-in table."
    )
    _add_file(releasing, "--schema", words)
    words = "use a schema that is still marked as taken from the data; the release says so"
    releasing.add_argument("--schema-from-data", action="store_true", help=words)
    add_settings(releasing, ReleaseOptions)
    words = "ledger that records the privacy loss first; dpviz ledger new creates it"
    _add_file(releasing, "--ledger", words, required=True)
    _add_file(releasing, "--out", "a new JSON file", required=True)
    releasing.set_defaults(run=_release)


def _add_ledger(commands: Commands) -> None:
    ledgers = commands.add_parser(
        "ledger", help="create a ledger, show it, or check it against releases"
    )
    ledgers.actions = _ACTIONS  # ledger FILE shows it
    actions = ledgers.add_subparsers(dest="action", required=True, metavar="|".join(_ACTIONS))

    def action(name: str, run: Callable[[argparse.Namespace], int], help: str) -> OneLineParser:
        parser = actions.add_parser(name, help=help)
        parser.add_argument("file", metavar="FILE")
        parser.set_defaults(run=run)
        return parser

    making = action("new", _new, "create an empty ledger with a fixed limit")
    add_settings(making, LedgerOptions)
    words = "allow releases of this schema only; default: any schema of the same people"
    _add_file(making, "--schema", words)
    showing = action("show", _show, "show a ledger; ledger FILE does the same")
    showing.add_argument("--format", choices=("table", "json"), default="table")
    words = "say that a table, such as a corrected export, holds the same people"
    binding = action("bind", _bind, words)
    add_table(binding)
    binding.add_argument("--purpose", metavar="TEXT", default="", help="why")
    words = "check a ledger against releases; exit status 1 where they do not fit"
    verifying = action("verify", _verify, words)
    verifying.add_argument("releases", metavar="RELEASE", nargs="*", help="files of releases")


def _add_card(commands: Commands) -> None:
    filing = commands.add_parser(
        "release card", description="make the privacy card of a release, to be filed"
    )
    filing.add_argument("release", metavar="RELEASE", help="file of a release")
    _add_file(filing, "--ledger", "that paid for it")
    add_settings(filing, CardOptions)
    words = "JSON: by the number of each assumption, from where it is known and who confirmed it"
    _add_file(filing, "--sources", words)
    words = (
        "the released table, for an internal copy with exact counts of cells; do not share "
        "that copy"
    )
    filing.add_argument("--table", metavar="TABLE", help=words)
    add_sheet(filing)
    _add_file(filing, "--schema", "that it was released under")
    _add_file(filing, "--out", "a JSON file; beside it, to print, .html", required=True)
    filing.set_defaults(run=_card)


def _release(arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PrivacyWarning)
        made = release(
            arguments.table,
            ledger=arguments.ledger,
            out=arguments.out,
            schema=arguments.schema,
            schema_from_data=arguments.schema_from_data,
            sheet=arguments.sheet,
            **stated(arguments, ReleaseOptions),
        )
    for warning in told:
        print(f"dpviz: {warning.message}", file=sys.stderr)
    # the file is what matters here: its name goes where the summary says released
    print(made.summary().replace(" released: ", f" released to {arguments.out}: ", 1))
    return 0


def _new(arguments: argparse.Namespace) -> int:
    options = stated(arguments, LedgerOptions)
    # one that nobody states is refused where the others are checked
    limit = options.pop("limit", "")
    print(ledger(arguments.file, limit=limit, schema=arguments.schema, **options).summary())
    return 0


def _show(arguments: argparse.Namespace) -> int:
    found = ledger(arguments.file)
    print(found.to_json() if arguments.format == "json" else found.printed())
    return 0


def _bind(arguments: argparse.Namespace) -> int:
    found = ledger(arguments.file).bind(arguments.table, arguments.purpose, arguments.sheet)
    tables = len(found.contents.tables)
    print(f"{found.ledger.path.name} is about {counted(tables, 'table')} of the same people now")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    ledger = ledger_at(arguments.file)
    found = fits(ledger, [Path(name) for name in arguments.releases])
    for problem in found:
        print(problem)
    if not found:
        print(f"{ledger.path.name} and its releases fit together")
    # 1 and not 2: a ledger that does not fit is an answer, and no fault of the command
    return int(bool(found))


def _card(arguments: argparse.Namespace) -> int:
    found = card(
        arguments.release,
        ledger=arguments.ledger,
        sources=arguments.sources,
        table=arguments.table,
        schema=arguments.schema,
        sheet=arguments.sheet,
        **stated(arguments, CardOptions),
    )
    found.write_card(arguments.out)
    print(found.summary())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    found = verify(arguments.card, arguments.release, arguments.ledger)
    print(found.summary())
    return found.status


# first among what a release needs, and so first in the help
def _add_schema(commands: Commands) -> None:
    parser = commands.add_parser(
        "schema", help="write a first schema of a table: what a release reads it by"
    )
    add_settings(parser, SchemaOptions)
    _add_file(parser, "--out", "a new JSON file; default: print it")
    parser.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    asked = stated(arguments, SchemaOptions)
    out = None if arguments.out is None else Path(arguments.out)
    # a schema is agreed once: never written over one that somebody may have signed
    if out is not None and out.exists():
        raise DpvizError(f"--out must name a new file; {out.name!r} is there.")
    if out is not None and not out.parent.is_dir():
        raise DpvizError(f"--out must name a file in a folder that is there; got {out.name!r}.")
    made = schema(**asked)
    found = made.schema
    if out is None:
        print(made.to_json())
    else:
        made.write_schema(out)
        print(f"{out}: {len(found.used)} of {len(found.columns)} columns are used")
    if found.from_data:
        print(
            f"dpviz: the schema is marked {FROM_DATA!r}. Enter what was known before anybody "
            f"looked at the table, then write {PUBLIC!r} there",
            file=sys.stderr,
        )
    return 0
