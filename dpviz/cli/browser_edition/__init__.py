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

_COLUMNS = 5  # The first page shows at most this many columns; one or two more make it 1 MB.
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
    """Add the parser of the command ``export-browser``."""
    parser = commands.add_parser(
        "export-browser",
        help="write a folder of static files that runs the dashboard inside a browser",
    )
    parser.add_argument("out", metavar="OUT", help="folder to write")
    parser.add_argument(
        "--pyodide",
        metavar="DIR",
        default=None,
        help="folder with Pyodide's files, which OUT then serves too (default: visitors load these "
        "files from Pyodide's public address)",
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
        help="CSV or Parquet file that every visitor can choose; repeatable; anyone who can open "
        "the folder can read the file",
    )
    parser.add_argument(
        "--no-board",
        action="store_true",
        help="load Python at once; default: first show charts of the table digits",
    )
    parser.add_argument(
        "--lesson", metavar="N", type=int, help="open the Guide at this lesson, counted from 1"
    )
    parser.add_argument(
        "--workflow",
        action="store_true",
        help=(
            "also write the workflow with which GitHub Pages publishes a repository of this folder"
        ),
    )
    parser.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    folder, wheels = (
        None if name is None else Path(name) for name in (arguments.pyodide, arguments.libraries)
    )
    tables = _embedded_files([Path(name) for name in arguments.embed])
    first = None if arguments.lesson is None else lesson_address(arguments.lesson)
    # If the folder's own address opens a lesson, no page with a comparison is needed.
    board_maker = None if arguments.no_board or first else board_file
    extra = dict([WORKFLOW]) if arguments.workflow else {}
    result = export(
        Path(arguments.out), read_lock(), folder, tables, wheels, board_maker, extra, first
    )  # fmt: skip
    print(
        f"{arguments.out}: {result.pages} pages, {decimals(result.written / 1e6, 0)} MB; a first "
        f"visit loads {decimals(result.loaded / 1e6, 0)} MB.\nTo open the dashboard: python -m "
        f"http.server --directory {arguments.out}"
    )
    return 0


def lesson_address(number: int) -> str:
    """Return the address of a lesson, relative to the address of the folder."""
    from dpviz.lessons import lessons
    from dpviz.lessons.teaching import link

    by_number = {lesson.number: lesson for lesson in lessons()}
    if number not in by_number:
        raise InvalidSetting("lesson", f"from 1 to {max(by_number)}", number, "--lesson")
    return link(by_number[number], 1).removeprefix("/").replace("?", "/?")


def board_file(columns: int = _COLUMNS) -> bytes:
    """Return the comparison on the digits for the first page, which stays below 1 MB."""
    from dpviz.mechanisms import featured
    from dpviz.studies.board import board

    with TemporaryDirectory() as folder:
        file = Path(folder) / "board.html"
        board("digits", mechanisms=list(featured()[:columns])).write(file)
        return file.read_bytes()


def _embedded_files(paths: list[Path]) -> list[Member]:
    """Return the table files to put beside the app, and their index."""
    if not paths:
        return []
    tables = [described(path) for path in paths]
    # Links name tables by their keys, so keys must be unique.
    keys = set(builtin_tables())
    for each in tables:
        if each.key in keys:
            raise InvalidSetting("embed", "a file whose name no other table has", each.key)
        keys.add(each.key)
    files = [
        (f"{FOLDER}/{each.file}", path.read_bytes())
        for each, path in zip(tables, paths, strict=True)
    ]
    return [*files, (f"{FOLDER}/{INDEX}", index_of(tables))]
