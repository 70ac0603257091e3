"""The command ``export-browser``: a folder of static files that runs the dashboard in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from dpviz.cli.browser_edition.bundle import Member
from dpviz.cli.browser_edition.folder import export
from dpviz.cli.browser_edition.lock import read_lock
from dpviz.cli.options import Commands
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals
from dpviz.datasets import builtin_tables
from dpviz.datasets.builtin import FOLDER, INDEX, described, index_of

_COLUMNS = 5  # of the board; the page is 1 MB with one or two more
WORKFLOW = (
    ".github/workflows/pages.yml",
    """name: pages
on:
  push:
    branches: [main]
  workflow_dispatch:
permissions:
  contents: read
  pages: write
  id-token: write
jobs:
  publish:
    runs-on: ubuntu-latest
    environment:
      name: github-pages
    steps:
      - uses: actions/checkout@v4
      - uses: actions/upload-pages-artifact@v3
        with:
          path: .
      - uses: actions/deploy-pages@v4
""",
)


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
        help="folder with the wheels of Streamlit and other pinned libraries (default: the "
        "libraries of this environment)",
    )
    parser.add_argument(
        "--embed",
        metavar="TABLE",
        action="append",
        default=[],
        help="CSV or Parquet file for every visitor (repeatable); anyone who can open the folder "
        "can read it",
    )
    parser.add_argument(
        "--no-board",
        action="store_true",
        help="load Python at once; default: show a board of digits first",
    )
    parser.add_argument(
        "--lesson", metavar="N", type=int, help="open at this lesson of the Guide, from 1"
    )
    parser.add_argument(
        "--workflow",
        action="store_true",
        help="put the file beside it by which GitHub publishes a repository of this folder",
    )
    parser.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    folder, wheels = (
        None if name is None else Path(name) for name in (arguments.pyodide, arguments.libraries)
    )
    tables = _embedded([Path(name) for name in arguments.embed])
    first = None if arguments.lesson is None else lesson_address(arguments.lesson)
    # a lesson at the folder's own address leaves no page for the board
    shown = None if arguments.no_board or first else board_file
    extra = dict([WORKFLOW]) if arguments.workflow else {}
    written = export(
        Path(arguments.out), read_lock(), folder, tables, wheels, shown, extra, first
    )  # fmt: skip
    print(
        f"{arguments.out}: {written.pages} pages, {decimals(written.written / 1e6, 0)} MB; a first "
        f"visit loads {decimals(written.loaded / 1e6, 0)} MB.\n"
        f"To look at it: python -m http.server --directory {arguments.out}"
    )
    return 0


def lesson_address(number: int) -> str:
    """Return the address of a lesson below the folder's own."""
    from dpviz.lessons import lessons
    from dpviz.lessons.teaching import link

    known = {lesson.number: lesson for lesson in lessons()}
    if number not in known:
        raise InvalidSetting("lesson", f"from 1 to {max(known)}", number, "--lesson")
    return link(known[number], 1).removeprefix("/").replace("?", "/?")


def board_file(columns: int = _COLUMNS) -> bytes:
    """Return the file of a board of digits that a first page shows, below 1 MB with it."""
    from dpviz.mechanisms import featured
    from dpviz.studies.board import board

    with TemporaryDirectory() as folder:
        file = Path(folder) / "board.html"
        board("digits", mechanisms=list(featured()[:columns])).write(file)
        return file.read_bytes()


def _embedded(paths: list[Path]) -> list[Member]:
    """Return the files to put beside the app, and their index."""
    if not paths:
        return []
    tables = [described(path) for path in paths]
    # a link names a table by its key, so that no two may share one
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
