"""The command ``schema``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpviz.cli.options import Commands, add_table
from dpviz.errors import DpvizError, InvalidSetting
from dpviz.releasing.drafting import draft
from dpviz.releasing.making import given_by
from dpviz.releasing.schema import FROM_DATA, PUBLIC
from dpviz.values.bounds_text import pair_of


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "schema", help="write a first schema of a table: what a release reads it by"
    )
    add_table(parser)
    parser.add_argument(
        "--bounds",
        metavar="data|none|LOW:HIGH",
        default="data",
        help="each column's smallest and largest number (data, the default), nothing (none), or "
        "the same for every column",
    )
    parser.add_argument(
        "--out", metavar="FILE", default=None, help="a new JSON file; default: print it"
    )
    parser.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    written = arguments.bounds
    bounds = written if written in ("data", "none") else pair_of(written)
    if bounds is None:
        raise InvalidSetting("bounds", "data, none or LOW:HIGH", written, "--bounds")
    out = None if arguments.out is None else Path(arguments.out)
    if out is not None and out.exists():
        raise DpvizError(f"--out must name a new file; {out.name!r} is there.")
    if out is not None and not out.parent.is_dir():
        raise DpvizError(f"--out must name a file in a folder that is there; got {out.name!r}.")
    found = draft(given_by(arguments.table), Path(arguments.table).name, bounds)
    if out is None:
        print(found.to_text(), end="")
    else:
        found.write(out)
        print(f"{out}: {len(found.used)} of {len(found.columns)} columns are used")
    if found.from_data:
        print(
            f"dpviz: the schema is marked {FROM_DATA!r}: put in what was known before anybody "
            f"looked at the table, then write {PUBLIC!r} there",
            file=sys.stderr,
        )
    return 0
