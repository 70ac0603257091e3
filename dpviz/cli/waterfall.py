"""The command ``waterfall``."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from dpviz.base.json_text import finite
from dpviz.base.number_text import decimals, numeral
from dpviz.cli.data import fetch_table
from dpviz.cli.options import Commands, add_set, add_settings, settings_from
from dpviz.cli.terminal import print_table
from dpviz.errors import InvalidSetting
from dpviz.prepare.bounding import Prepared
from dpviz.prepare.load import handed_on, load_measured
from dpviz.run.waterfall import BASE, stages, told, waterfall_table


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "waterfall", help="what a private mean, scale, row bound and count cost, step by step"
    )
    add_settings(parser, base=BASE)
    add_set(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(run=_waterfall)


def _waterfall(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments, BASE)
    fetch_table(settings.table)
    loaded = settings if arguments.bounds is not None else replace(settings, bounds="max")
    prepared = load_measured(loaded)
    if not isinstance(prepared, Prepared):
        raise InvalidSetting("table", "rows in memory, to prepare privately", settings.table)
    if prepared.table.bounds is None:
        # nobody stated any: taken from the data, which every step then lists
        settings = loaded
    found = stages(prepared, settings)
    rows = waterfall_table(found)
    if arguments.format == "json":
        answer = {
            "table": prepared.name,
            "settings": handed_on(settings).to_json(),
            "steps": [
                {
                    **record,
                    "assumed_public": list(stage.assumed_public),
                    "spent": stage.result.spent
                    and {
                        "epsilon": stage.result.spent.epsilon,
                        "delta": stage.result.spent.delta,
                        "source": stage.result.spent.source,
                    },
                }
                for record, stage in zip(rows.to_dict("records"), found, strict=True)
            ],
        }
        print(json.dumps(finite(answer), indent=1))
        return 0
    print(told(rows))
    print()
    print_table(
        ("step", "recovery", "se", "epsilon left", "assumed public"),
        [
            [
                row["step"],
                decimals(row["recovery"], 3),
                decimals(row["se"], 3),
                numeral(row["epsilon_left"], 4),
                row["assumed_public"],
            ]
            for row in rows.to_dict("records")
        ],
    )
    return 0
