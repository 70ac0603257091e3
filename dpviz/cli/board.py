"""The command ``board``: the board, a report, a script or a notebook as one file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from dpviz.base.number_text import decimals
from dpviz.cli.data import fetch_table
from dpviz.cli.options import Commands, add_set, add_settings, settings_from
from dpviz.cli.terminal import end_progress, show_progress
from dpviz.errors import InvalidSetting
from dpviz.guide import decide
from dpviz.guide.questions import LEVELS, Answers
from dpviz.guide.risk import risk
from dpviz.narrative import again
from dpviz.prepare.load import handed_on, load_measured, resolve_allocation
from dpviz.prepare.prepared import Measured
from dpviz.run.compare import compare
from dpviz.settings import Settings

YOUR_FILE = "YOUR_FILE.csv"
"""What a command says for a table whose name is nobody else's business."""

_ENDINGS = (".html", ".py", ".ipynb")


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    board = commands.add_parser(
        "board", help="write the board as one file that needs no network, or a report of it"
    )
    add_settings(board)
    add_set(board)
    board.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="FILE.html; FILE.py or FILE.ipynb for a script or a notebook that computes the view",
    )
    board.add_argument(
        "--report",
        action="store_true",
        help="write a report to print (settings, board, claims, assumptions, papers) instead",
    )
    board.add_argument(
        "--card",
        choices=LEVELS,
        metavar="PERCENT",
        help="with --report: also the least epsilon of each mechanism that keeps so much of the "
        f"structure ({', '.join(LEVELS)}), with its risk and consequences",
    )
    board.set_defaults(run=_board)


def _board(arguments: argparse.Namespace) -> int:
    # Figures load the charts' libraries, which other commands do not need.
    from dpviz.figures.boardfile import board_file, in_memory, with_featured
    from dpviz.figures.handout import report_page

    out = Path(arguments.out)
    if arguments.card is not None and not arguments.report:
        raise InvalidSetting("card", "given together with --report", arguments.card, "--card")
    if out.suffix not in _ENDINGS or not out.parent.is_dir():
        allowed = f"a file in a folder that is there, ending in {', '.join(_ENDINGS)}"
        raise InvalidSetting("out", allowed, arguments.out, "--out")
    settings = with_featured(settings_from(arguments))
    fetch_table(settings.table)
    measured = load_measured(settings)
    settings = resolve_allocation(settings, measured)
    measured.problem(settings)
    written = handed_on(settings, YOUR_FILE)
    if out.suffix == ".py":
        text = again.script(written)
    elif out.suffix == ".ipynb":
        text = again.notebook(written)
    elif arguments.report:
        comparison = compare(measured, settings, show_progress)
        comparison = replace(comparison, plan=replace(comparison.plan, settings=written))
        text = report_page(
            comparison,
            command=written.command(),
            link="",
            card=_card(measured, settings, arguments.card),
        )
    else:
        command = f"{written.command(verb='board')} --out {out.name}"
        text = board_file(in_memory(measured), settings, show_progress, command=command)
    end_progress()
    out.write_text(text, encoding="utf-8")
    print(f"{out} ({decimals(out.stat().st_size / 1e6, 2)} MB)")
    return 0


def _card(measured: Measured, settings: Settings, survive: str | None) -> str:
    """Return what Decide answers as HTML; nothing where it is not asked."""
    if survive is None:
        return ""
    from dpviz.figures.card import card_html

    def tell(step: decide.Step) -> None:
        show_progress(step.place, step.total, step.words)

    card = decide.card(measured, settings, Answers(survive=survive), tell)
    seen = None if card.best is None else risk(card, card.best)
    return card_html(card, seen, handed_on(card.settings, YOUR_FILE).command(), "")
