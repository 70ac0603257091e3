"""The commands ``compare`` and ``sweep``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dpviz import api
from dpviz.answers.asked import options_of
from dpviz.base.number_text import numeral
from dpviz.cli.data import fetch_table
from dpviz.cli.options import (
    CACHE_HELP,
    Commands,
    add_set,
    add_settings,
    settings_from,
    store_from,
    whole_number,
)
from dpviz.cli.terminal import (
    Watch,
    end_progress,
    print_table,
    show_progress,
    tell_ahead,
    tell_memory,
)
from dpviz.errors import InvalidSetting
from dpviz.metrics import METRICS
from dpviz.prepare.plan import Planned
from dpviz.run.axes import AXES, parse_values
from dpviz.run.compare import Comparison
from dpviz.run.export import check_out
from dpviz.run.jobs import WORKERS_RANGE


def add(commands: Commands) -> None:
    """Add the parser of each command."""
    comparing = commands.add_parser("compare", help="run mechanisms side by side on one table")
    add_settings(comparing)
    add_set(comparing)
    comparing.add_argument("--format", choices=("table", "json"), default="table")
    comparing.set_defaults(run=_compare)

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
    sweeping.add_argument("--out", required=True, metavar="FILE", help="FILE.csv or FILE.parquet")
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
    sweeping.add_argument("--cache", default=None, metavar="DIR|none", help=CACHE_HELP)
    sweeping.set_defaults(run=_sweep)


def _compare(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    fetch_table(settings.table)
    found = api.compare(
        settings.table,
        progress=show_progress,
        foretell=tell_ahead,
        memory=tell_memory,
        **options_of(settings),
    )
    end_progress()
    if arguments.format == "json":
        print(found.to_json())
    else:
        _print_comparison(found.comparison)
    return 0


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
        over.setdefault(axis, []).extend(parse_values(axis, text))
    out = check_out(arguments.out)
    workers = whole_number("workers", arguments.workers, *WORKERS_RANGE)
    store = store_from(arguments.cache)
    settings = settings_from(arguments)
    fetch_table(settings.table)
    watch = Watch()
    try:
        found = api.sweep(
            settings.table,
            over=over,
            workers=workers,
            backend=arguments.backend,
            scheduler=arguments.scheduler,
            cache=store,
            progress=watch.show,
            foretell=tell_ahead,
            **options_of(settings),
        )
    except KeyboardInterrupt:
        watch.end()
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {watch.words}; {kept}", file=sys.stderr)
        return 130
    watch.end()
    found.write(out)
    if isinstance(found.prepared, Planned):
        print(f"note: {found.prepared.notes[0]}")
    for (mechanism, reason), cells in found.skipped.groupby(["mechanism", "reason"], sort=False):
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        print(f"skipped {mechanism} in {count}: {reason}")
    print(f"{len(found.table())} rows in {arguments.out}: {watch.words}")
    return 0


def _print_comparison(comparison: Comparison) -> None:
    prepared, budget = comparison.prepared, comparison.budget
    bound = f"row bound {prepared.row_bound:.4g}" if prepared.domain.bounded else "no row bound"
    print(
        f"{prepared.name}: n {prepared.n}, d {prepared.d}, {prepared.domain.kind}, "
        f"{bound}; epsilon {budget.epsilon:g}, delta {numeral(budget.delta, 6)}, "
        f"k {comparison.problem.k}, {comparison.problem.relation}"
    )
    for note in prepared.notes:
        print(f"note: {note}")
    print("assumed public: " + "; ".join(comparison.assumed_public))
    print()
    names = [name for name in METRICS if any(name in r.metrics for r in comparison.results)]
    rows = []
    for result in comparison.results:
        summaries = result.summaries
        spent = f"{result.spent.epsilon:.3g}" if result.spent else "-"
        cells = [f"{summaries[name].mean:.4g}" if name in summaries else "-" for name in names]
        rows.append([result.mechanism.text, str(result.status.verdict), spent, *cells])
    print_table(["mechanism", "status", "spent_epsilon", *names], rows)
    for result in comparison.results:
        if result.hint is not None:
            print(f"{result.mechanism.text} {result.hint}")
    for item in comparison.skipped:
        print(f"skipped {item.mechanism}: {item.reason}")
