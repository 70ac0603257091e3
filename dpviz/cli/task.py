"""The command ``task``."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace

import pandas as pd

from dpviz.base.number_text import numeral
from dpviz.base.params import params_of
from dpviz.cli.data import fetch_table
from dpviz.cli.options import CACHE_HELP, Commands, add_set, add_settings, settings_from, store_from
from dpviz.cli.terminal import Watch, print_table
from dpviz.narrative import tasks as tasks_words
from dpviz.prepare.load import resolve_allocation
from dpviz.run.cells import variants_of
from dpviz.run.export import check_out, write_table
from dpviz.tasks import Task, TaskPlan, band_table, finish, load_labelled, plan_task
from dpviz.values.allocation_text import is_file


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    learning = commands.add_parser(
        "task", help="learn after a private projection, or from a private data release"
    )
    add_settings(learning)
    add_settings(learning, Task)
    add_set(learning)
    learning.add_argument(
        "--out", metavar="FILE", default=None, help="FILE.csv or FILE.parquet, for every round"
    )
    learning.add_argument("--cache", default=None, metavar="DIR|none", help=CACHE_HELP)
    learning.set_defaults(run=_task)


def _task(arguments: argparse.Namespace) -> int:
    out = None if arguments.out is None else check_out(arguments.out)
    settings = settings_from(arguments)
    params = params_of(Task)
    written = {name: getattr(arguments, name) for name in params}
    task = Task.from_texts({name: text for name, text in written.items() if text is not None})
    if arguments.epsilon is not None and arguments.epsilons is None:
        task = replace(task, epsilons=params["epsilons"].format(arguments.epsilon))
    store = store_from(arguments.cache)
    fetch_table(settings.table)
    table, bounds = load_labelled(settings)
    if is_file(settings.allocation):  # its shares are those of the columns that are released
        plain = plan_task(table, replace(settings, allocation="uniform"), task, bounds=bounds)
        settings = resolve_allocation(settings, plain.data(0).measured)
    mechanisms = variants_of(settings)
    plan = plan_task(table, settings, task, None, mechanisms, bounds=bounds, strict=True)
    watch = Watch("round")
    try:
        found = finish(plan, watch.show, store)
    except KeyboardInterrupt:
        watch.end()
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {watch.words}; {kept}", file=sys.stderr)
        return 130
    watch.end()
    if store is not None:
        store.prune()
    _print_task(plan, found)
    if out is not None:
        write_table(found, out)
        print(f"{len(found)} rows in {arguments.out}: {watch.words}")
    return 0


def _print_task(plan: TaskPlan, found: pd.DataFrame) -> None:
    print(tasks_words.facts(plan))
    for note in plan.notes:
        print(f"note: {note}")
    for item in tasks_words.protected(plan):
        print(f"protected: {item}")
    for item in tasks_words.unprotected(plan):
        print(f"not protected: {item}")
    print("assumed public: " + "; ".join(plan.assumed_public))
    print()
    score = plan.learner.score.label
    bands = band_table(plan, found)
    rows = [
        [name, "-" if math.isnan(epsilon) else numeral(epsilon, 6), numeral(mean, 4),
         numeral(low, 4), numeral(high, 4), str(rounds), verdict or "-"]
        for name, _, epsilon, mean, low, high, rounds, verdict in bands.itertuples(index=False)
    ]  # fmt: skip
    print_table(("mechanism", "epsilon", score, "low", "high", "rounds", "status"), rows)
    for reason, names in tasks_words.left_out(plan).items():
        print(f"skipped {', '.join(names)}: {reason}")
