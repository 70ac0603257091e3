"""The command ``export-browser``."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpviz.cli.options import Commands
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals
from dpviz.datasets import builtin_tables
from dpviz.datasets.embedded import FOLDER, INDEX, described, index_of
from dpviz.edition.bundle import Member
from dpviz.edition.folder import export
from dpviz.edition.lock import read_lock


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "export-browser",
        help="write a folder of static files that runs the dashboard inside a browser",
    )
    parser.add_argument("out", metavar="OUT", help="folder to write")
    parser.add_argument(
        "--pyodide",
        metavar="DIR",
        default=None,
        help="folder with Pyodide's files, to be served with the rest (default: visitors load "
        "them from Pyodide's public address)",
    )
    parser.add_argument(
        "--libraries",
        metavar="DIR",
        default=None,
        help="folder with the wheels of the pinned libraries, Streamlit among them (default: "
        "those of this environment, whose Streamlit has to be the pinned one)",
    )
    parser.add_argument(
        "--embed",
        metavar="TABLE",
        action="append",
        default=[],
        help="CSV or Parquet file that every visitor finds among the tables (repeatable); "
        "whoever can open the folder can read it",
    )
    parser.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    folder, wheels = (
        None if name is None else Path(name) for name in (arguments.pyodide, arguments.libraries)
    )
    tables = _embedded([Path(name) for name in arguments.embed])
    written = export(Path(arguments.out), read_lock(), folder, tables, wheels)
    print(
        f"{arguments.out}: {written.pages} pages, {decimals(written.written / 1e6, 0)} MB; a first "
        f"visit loads {decimals(written.loaded / 1e6, 0)} MB.\n"
        f"To look at it: python -m http.server --directory {arguments.out}"
    )
    return 0


def _embedded(paths: list[Path]) -> list[Member]:
    """Return the files to put beside the app, and their index."""
    if not paths:
        return []
    tables = [described(path) for path in paths]
    taken = set(builtin_tables())
    for each in tables:
        if each.key in taken:
            raise InvalidSetting("embed", "a file whose name no other table has", each.key)
        taken.add(each.key)
    files = [
        (f"{FOLDER}/{each.file}", path.read_bytes())
        for each, path in zip(tables, paths, strict=True)
    ]
    return [*files, (f"{FOLDER}/{INDEX}", index_of(tables))]
