"""The command ``board``: the Explore figure, a report, a script or a notebook as one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpviz.cli.data import fetch_table
from dpviz.cli.options import Commands, add_set, add_settings, settings_from, stated
from dpviz.cli.terminal import Line, end_progress
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import decimals
from dpviz.lessons.questions import LEVELS
from dpviz.studies.board import ENDINGS, board
from dpviz.studies.options import Publishing, options_of


def add(commands: Commands) -> None:
    """Add the parser of the command ``board``."""
    parser = commands.add_parser(
        "board", help="write Explore's charts as one file that works offline, or a report"
    )
    add_settings(parser)
    add_settings(parser, Publishing)
    add_set(parser)
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="FILE.html for charts, FILE.py or FILE.ipynb for code that computes the charts",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="write a report to print: settings, charts, claims, assumptions and papers",
    )
    parser.add_argument(
        "--working-view",
        action="store_true",
        help="also include the rows and exact results of a private table; default: only "
        "publishable charts",
    )
    parser.add_argument(
        "--card",
        choices=LEVELS,
        metavar="PERCENT",
        help="with --report: also state what can be published safely if at least PERCENT of the "
        f"structure must be kept ({', '.join(LEVELS)})",
    )
    parser.set_defaults(run=_board)


def _board(arguments: argparse.Namespace) -> int:
    out = Path(arguments.out)
    if arguments.card is not None and not arguments.report:
        raise InvalidSetting("card", "left out unless --report is given", arguments.card, "--card")
    if out.suffix not in ENDINGS or not out.parent.is_dir():
        rule = f"a file that ends in {', '.join(ENDINGS)}, in a folder that exists"
        raise InvalidSetting("out", rule, arguments.out, "--out")
    settings = settings_from(arguments)
    # Download only after all checks, because the download is the slowest part.
    fetch_table(settings.table)
    view = board(
        settings.table,
        working_view=arguments.working_view,
        progress=Line().show,
        **stated(arguments, Publishing),
        **options_of(settings),
    )
    view.write(out, report=arguments.report, card=arguments.card)
    end_progress()
    print(f"{out} ({decimals(out.stat().st_size / 1e6, 2)} MB)")
    return 0
