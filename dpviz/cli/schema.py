"""The command ``schema``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpviz.cli.options import Commands, add_settings, stated
from dpviz.core.errors import DpvizError
from dpviz.releasing.schema import FROM_DATA, PUBLIC
from dpviz.studies.schema import SchemaOptions, schema


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "schema", help="write a first schema of a table: what a release reads it by"
    )
    add_settings(parser, SchemaOptions)
    parser.add_argument(
        "--out", metavar="FILE", default=None, help="a new JSON file; default: print it"
    )
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
            f"dpviz: the schema is marked {FROM_DATA!r}: put in what was known before anybody "
            f"looked at the table, then write {PUBLIC!r} there",
            file=sys.stderr,
        )
    return 0
