"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dpviz.claims.audit import AuditOptions
from dpviz.claims.table import TABLE_TRIALS as CLAIMS_TRIALS
from dpviz.cli.claims import _audit, _claims, _mechanisms
from dpviz.cli.compare import _add_sweep_options, _compare, _sweep
from dpviz.cli.dashboard import _app
from dpviz.cli.data import _datasets, _fetch
from dpviz.cli.options import _CACHE_HELP, _Parser, _with_negative_numbers, add_set, add_settings
from dpviz.cli.reproduce import _add_reproduce_options, _reproduce
from dpviz.cli.task import _task
from dpviz.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.tasks import Task


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(prog="dpviz", description="See what differential privacy costs a PCA.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("datasets", help="list the built-in and the remote tables")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_datasets)

    fetching = commands.add_parser("fetch", help="download remote data sets that are not at hand")
    fetching.add_argument("keys", metavar="KEY", nargs="*", help="keys that --list shows, or all")
    fetching.add_argument("--list", action="store_true", help="list them, and which are at hand")
    fetching.set_defaults(run=_fetch)

    listing = commands.add_parser("mechanisms", help="list every mechanism and what holds of it")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_mechanisms)

    comparing = commands.add_parser("compare", help="run mechanisms side by side on one table")
    add_settings(comparing)
    add_set(comparing)
    comparing.add_argument("--format", choices=("table", "json"), default="table")
    comparing.set_defaults(run=_compare)

    sweeping = commands.add_parser("sweep", help="run mechanisms over a grid of settings")
    add_settings(sweeping)
    add_set(sweeping)
    _add_sweep_options(sweeping)
    sweeping.set_defaults(run=_sweep)

    auditing = commands.add_parser("audit", help="bound what a mechanism really costs, by attack")
    add_settings(auditing, AuditOptions)
    add_set(auditing)
    auditing.add_argument("--format", choices=("table", "json"), default="table")
    auditing.set_defaults(run=_audit)

    claiming = commands.add_parser("claims", help="audit every mechanism under every relation")
    claiming.add_argument("--seed", default="0", help="same seed, same table (default 0)")
    claiming.add_argument(
        "--trials", default=str(CLAIMS_TRIALS), help=f"draws of each audit ({CLAIMS_TRIALS})"
    )
    claiming.add_argument("--format", choices=("table", "json", "csv"), default="table")
    claiming.add_argument("--out", metavar="FILE", default=None, help="write there and not here")
    claiming.set_defaults(run=_claims)

    redoing = commands.add_parser(
        "reproduce", help="redo the papers' tables and figures, reported beside measured"
    )
    _add_reproduce_options(redoing)
    redoing.set_defaults(run=_reproduce)

    learning = commands.add_parser(
        "task", help="learn after a private projection, or from a private data release"
    )
    add_settings(learning)
    add_settings(learning, Task)
    add_set(learning)
    learning.add_argument(
        "--out", metavar="FILE", default=None, help="FILE.csv or FILE.parquet, for every round"
    )
    learning.add_argument("--cache", default=None, metavar="DIR|none", help=_CACHE_HELP)
    learning.set_defaults(run=_task)

    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, default=None, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    arguments = build_parser().parse_args(_with_negative_numbers(words))
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except InvalidSetting as error:
        print(f"dpviz: {error.as_option()}", file=sys.stderr)
        return 2
    except CannotRun as error:
        print(f"dpviz: --mechanism {error}", file=sys.stderr)
        return 2
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return status
