"""The command ``sweep``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dpviz.cli.asking import SAVE_HELP, check_save, table_text
from dpviz.cli.data import fetch_table
from dpviz.cli.options import (
    Commands,
    add_cache,
    add_set,
    add_settings,
    settings_from,
    store_from,
    whole_number,
)
from dpviz.cli.terminal import Watch, tell_ahead
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import check_out
from dpviz.preparation.load import PlannedTable
from dpviz.simulation.axes import AXES, parse_values
from dpviz.simulation.jobs import WORKERS_RANGE
from dpviz.studies.options import options_of
from dpviz.studies.sweep import sweep


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    sweeping = commands.add_parser("sweep", help="run mechanisms over a grid of settings")
    add_settings(sweeping)
    add_set(sweeping)
    sweeping.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="|".join(AXES),
        help="What to vary; repeatable, each followed by its --values. Their product is swept.",
    )
    sweeping.add_argument(
        "--values",
        action="append",
        required=True,
        metavar="A,B,C",
        help="Values, or low:high:count for a range spaced on a logarithmic scale.",
    )
    sweeping.add_argument(
        "--out", default=None, metavar="FILE",
        help="FILE.csv or FILE.parquet; without it the rows are printed",
    )  # fmt: skip
    sweeping.add_argument("--format", choices=("csv", "json", "jsonl"), default="csv")
    sweeping.add_argument(
        "--workers", default="1", metavar="N", help="processes that run cells (default 1)"
    )
    sweeping.add_argument(
        "--backend",
        default=None,
        metavar="NAME",
        help="joblib backend: loky (default), threading, multiprocessing or dask",
    )
    sweeping.add_argument(
        "--scheduler",
        default=None,
        metavar="ADDRESS",
        help="a Dask scheduler, such as tcp://host:8786, for --backend dask",
    )
    add_cache(sweeping)
    sweeping.add_argument("--save", metavar="FILE", default=None, help=SAVE_HELP)
    sweeping.set_defaults(run=_sweep)


def _sweep(arguments: argparse.Namespace) -> int:
    if len(arguments.over) != len(arguments.values):
        raise InvalidSetting(
            "values",
            "given once for each --over",
            f"{len(arguments.over)} --over and {len(arguments.values)} --values",
            "--values",
        )
    over: dict[str, list[Any]] = {}
    for axis, text in zip(arguments.over, arguments.values, strict=True):
        # an axis may be given more than once: its values are added up
        over.setdefault(axis, []).extend(parse_values(axis, text))
    # before hours of work
    out = None if arguments.out is None else check_out(arguments.out)
    check_save(arguments.save)
    workers = whole_number("workers", arguments.workers, *WORKERS_RANGE)
    store = store_from(arguments.cache)
    settings = settings_from(arguments)
    fetch_table(settings.table)
    watch = Watch()
    try:
        found = sweep(
            settings.table,
            over=over,
            workers=workers,
            backend=arguments.backend,
            scheduler=arguments.scheduler,
            cache=store,
            progress=watch.show,
            on_estimate=tell_ahead,
            **options_of(settings),
        )
    except KeyboardInterrupt:
        watch.end()
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {watch.words}; {kept}", file=sys.stderr)
        return 130
    watch.end()
    if out is not None:
        found.write(out)
    elif arguments.format == "json":
        print(found.to_json())
    else:
        print(table_text(found.table(), arguments.format), end="")
    if arguments.save is not None:
        found.save(arguments.save)
    # beside the rows, so that these can be piped
    told = sys.stdout if out is not None else sys.stderr
    if isinstance(found.prepared, PlannedTable):
        print(f"note: {found.prepared.notes[0]}", file=told)
    for (mechanism, reason), cells in found.skipped.groupby(["mechanism", "reason"], sort=False):
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        print(f"skipped {mechanism} in {count}: {reason}", file=told)
    if out is not None:
        print(f"{len(found.table())} rows in {arguments.out}: {watch.words}")
    return 0
