"""The command ``fetch``."""

from __future__ import annotations

import argparse
import sys

from dpviz.cli.options import Commands
from dpviz.cli.terminal import Line, end_progress
from dpviz.core.errors import InvalidSetting, NotAvailable
from dpviz.core.number_text import decimals
from dpviz.datasets import is_remote, remote
from dpviz.report.sentences.phrases import text_table


def add(commands: Commands) -> None:
    """Add the parser of the command ``fetch``."""
    fetching = commands.add_parser("fetch", help="download remote data sets")
    fetching.add_argument("keys", metavar="KEY", nargs="*", help="keys listed by --list, or all")
    fetching.add_argument(
        "--list", action="store_true", help="list data sets, and show which are available"
    )
    fetching.set_defaults(run=_fetch)


def _fetch(arguments: argparse.Namespace) -> int:
    if arguments.list:
        columns = ("key", "at_hand", "n", "d", "papers", "page")
        rows = [
            {**row, "at_hand": "yes" if row["at_hand"] else "no"} for row in remote.dataset_rows()
        ]
        print(text_table(columns, [[str(row[name]) for name in columns] for row in rows]))
        return 0
    keys = list(remote.sets())
    choice = keys if "all" in arguments.keys else arguments.keys
    wrong = [key for key in choice if key not in keys]
    if wrong or not choice:
        entry = wrong[0] if wrong else "none"
        raise InvalidSetting("KEY", f"all, or one or more of {', '.join(keys)}", entry, "KEY")
    status = 0
    for key in choice:  # If one download fails, continue with the next one.
        try:
            folder = remote.fetch(key, download_progress(key))
            end_progress()
            print(f"{key}: {folder}")
            for sentence in remote.unrecorded(key, folder):
                print(f"{key}: {sentence}")
        except NotAvailable as error:
            end_progress()
            print(f"dpviz: {error}", file=sys.stderr)
            status = 2
    return status


def fetch_table(table: str) -> None:
    """Download a remote data set if it is missing, showing progress."""
    if is_remote(table) and not remote.at_hand(table):
        remote.fetch(table, download_progress(table))
        end_progress()


def download_progress(key: str) -> remote.OnBytes:
    """Return a function that shows download progress on stderr."""
    line = Line()

    def show(size: int, total: int | None) -> None:
        whole = "" if total is None else f" of {decimals(total / 1e6, 1)}"
        blocks = 0 if not total else 20 * size // total
        bar = "" if total is None else f" [{'#' * blocks}{'.' * (20 - blocks)}]"
        line.show(f"{key}{bar} {decimals(size / 1e6, 1)}{whole} MB")

    return show
