"""The command ``sweep``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from dpviz.cli import asking
from dpviz.cli.options import Commands, whole_number
from dpviz.core.errors import InvalidSetting
from dpviz.simulation.axes import AXES, parse_values
from dpviz.simulation.jobs import WORKERS_RANGE
from dpviz.studies.sweep import sweep


def add(commands: Commands) -> None:
    """Add the parser of the command ``sweep``."""
    sweeping = asking.add(commands, sweep)
    sweeping.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="|".join(AXES),
        help="Option to vary; repeatable, with one --values for each option.",
    )
    sweeping.add_argument(
        "--values",
        action="append",
        required=True,
        metavar="A,B,C",
        help="Values of the option, or low:high:count for a range spaced on a logarithmic scale.",
    )
    sweeping.add_argument(
        "--workers", default="1", metavar="N", help="number of processes that simulate (default 1)"
    )
    sweeping.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a Dask scheduler, such as tcp://host:8786, whose workers simulate",
    )
    # Print rows to stdout, for piping, unless --out names a file for them.
    sweeping.set_defaults(run=_sweep, format=None)


def _sweep(arguments: argparse.Namespace) -> int:
    if len(arguments.over) != len(arguments.values):
        raise InvalidSetting(
            "values",
            "given as often as --over",
            f"{len(arguments.over)} --over and {len(arguments.values)} --values",
            "--values",
        )
    over: dict[str, list[Any]] = {}
    for axis, text in zip(arguments.over, arguments.values, strict=True):
        # If an axis is given more than once, its values are combined.
        over.setdefault(axis, []).extend(parse_values(axis, text))
    arguments.format = arguments.format or ("csv" if arguments.out is None else "table")
    workers = whole_number("workers", arguments.workers, *WORKERS_RANGE)
    with _cluster(arguments.scheduler) as executor:
        return asking.run(sweep, arguments, over=over, workers=workers, executor=executor)


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[Executor | None]:
    """Connect to a Dask scheduler, if an address is given."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise InvalidSetting(
            "scheduler",
            'left out without Dask: python -m pip install "dask[dataframe,distributed]"',
            scheduler,
            "--scheduler",
        ) from None
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError):
        raise InvalidSetting(
            "scheduler",
            "the address of a Dask scheduler that answers, such as tcp://host:8786",
            scheduler,
            "--scheduler",
        ) from None
    with client:
        yield client.get_executor()
