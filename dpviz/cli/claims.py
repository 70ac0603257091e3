"""The command ``claims``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from dpviz.base.csv_text import csv_text
from dpviz.base.json_text import json_text
from dpviz.base.number_text import numeral
from dpviz.base.params import params_of
from dpviz.base.whole import whole
from dpviz.claims.audit import AuditOptions
from dpviz.claims.table import TABLE_TRIALS, claims_table
from dpviz.cli.options import Commands
from dpviz.cli.terminal import end_progress, show_progress
from dpviz.errors import InvalidSetting


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    claiming = commands.add_parser("claims", help="audit every mechanism under every relation")
    claiming.add_argument("--seed", default="0", help="same seed, same table (default 0)")
    claiming.add_argument(
        "--trials", default=str(TABLE_TRIALS), help=f"draws of each audit ({TABLE_TRIALS})"
    )
    claiming.add_argument("--format", choices=("table", "json", "csv"), default="table")
    claiming.add_argument("--out", metavar="FILE", default=None, help="write there and not here")
    claiming.set_defaults(run=_claims)


def _claims(arguments: argparse.Namespace) -> int:
    params = params_of(AuditOptions)
    seed, trials = (params[name].parse(getattr(arguments, name)) for name in ("seed", "trials"))
    if arguments.out is not None and not Path(arguments.out).resolve().parent.is_dir():
        raise InvalidSetting("out", "a file in a folder that exists", arguments.out, "--out")
    table = claims_table(seed, trials, show_progress)
    end_progress()
    shown = arguments.format
    if shown == "json":
        text = json_text(table.to_dict("records")) + "\n"
    elif shown == "csv":
        text = csv_text(table)
    else:
        columns = ["mechanism", "relation", "status", "evidence", "verdict", "epsilon_lower"]
        columns += ["delta_lower", "at_epsilon"]
        text = (
            table[columns].to_string(
                index=False, na_rep="-", float_format=partial(numeral, digits=3)
            )
            + "\n"
        )
    if arguments.out is None:
        print(text, end="")
    else:
        with whole(Path(arguments.out)) as aside:
            aside.write_text(text, encoding="utf-8")
    return 0
