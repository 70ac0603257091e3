"""The command ``waterfall``."""

from __future__ import annotations

import argparse
import json

from dpviz.base.json_text import finite
from dpviz.base.params import params_of
from dpviz.cli.options import Commands, add_settings
from dpviz.cli.terminal import print_table
from dpviz.datasets import load
from dpviz.paid.cost import PaidOptions, stages, told, waterfall_table
from dpviz.releasing.making import stated_bounds


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "waterfall", help="what a private mean, scale, row bound and n cost, step by step"
    )
    parser.add_argument(
        "table", metavar="TABLE", help="Built-in table, or the path of a CSV or Parquet file."
    )
    parser.add_argument(
        "--label", metavar="COLUMN", default=None, help="Column that is left out of the analysis."
    )
    add_settings(parser, PaidOptions)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(run=_waterfall)


def _waterfall(arguments: argparse.Namespace) -> int:
    params = params_of(PaidOptions)
    written = {name: getattr(arguments, name) for name in params}
    options = PaidOptions(
        **{name: params[name].parse(given) for name, given in written.items() if given is not None}
    )
    table = load(arguments.table, label=arguments.label)
    found = stages(table, stated_bounds(options.bounds, table), options)
    rows = waterfall_table(found)
    if arguments.format == "json":
        answer = {
            "table": table.name,
            "settings": {name: getattr(options, name) for name in params},
            "steps": [
                {
                    **record,
                    "assumed_public": list(stage.assumed_public),
                    "spent": stage.chain.spent
                    and {
                        "epsilon": stage.chain.spent.epsilon,
                        "delta": stage.chain.spent.delta,
                        "source": stage.chain.spent.source,
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
                f"{row['recovery']:.3f}",
                f"{row['se']:.3f}",
                f"{row['epsilon_left']:.4g}",
                row["assumed_public"],
            ]
            for row in rows.to_dict("records")
        ],
    )
    return 0
