"""The commands ``release`` and ``ledger``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpviz.base.json_text import finite
from dpviz.base.params import params_of
from dpviz.cli.options import Commands, add_settings
from dpviz.cli.terminal import print_table
from dpviz.errors import DpvizError, InvalidSetting
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.making import check_out, make, write
from dpviz.releasing.options import ReleaseOptions, limit_of
from dpviz.values.problem import Budget


def add(commands: Commands) -> None:
    """Add the parser of each command."""
    releasing = commands.add_parser(
        "release", help="make one real release, with noise that is safe on a computer"
    )
    add_settings(releasing, ReleaseOptions)
    releasing.add_argument(
        "--ledger", metavar="FILE", required=True, help="where the spend is written down first"
    )
    releasing.add_argument("--out", metavar="FILE", required=True, help="a new JSON file")
    releasing.set_defaults(run=_release)

    reading = commands.add_parser("ledger", help="show a ledger, or make one with a limit")
    reading.add_argument("file", metavar="FILE")
    reading.add_argument(
        "--limit",
        metavar="EPSILON,DELTA",
        default=None,
        help="make a new ledger that refuses to pass this; an existing one keeps its limit",
    )
    reading.add_argument(
        "--account",
        metavar="basic|zcdp",
        default="basic",
        help="how a new ledger adds up: epsilons and deltas (basic, the default), or rhos (zcdp)",
    )
    reading.add_argument("--format", choices=("table", "json"), default="table")
    reading.set_defaults(run=_ledger)


def _release(arguments: argparse.Namespace) -> int:
    params = params_of(ReleaseOptions)
    written = {name: getattr(arguments, name) for name in params}
    options = ReleaseOptions(
        **{name: params[name].parse(given) for name, given in written.items() if given is not None}
    )
    out = Path(arguments.out)
    check_out(out)
    made = make(options, ledger=Ledger(Path(arguments.ledger)))
    write(made, out)
    proved, idealised = made.noise.proved, made.noise.idealised
    print(
        f"{made.mechanism} released to {arguments.out}: proved epsilon {proved.epsilon:.6g} at "
        f"delta {proved.delta:g} (idealised {idealised.epsilon:.6g}; not claimed)"
    )
    print(made.said)
    return 0


def _ledger(arguments: argparse.Namespace) -> int:
    ledger = Ledger(Path(arguments.file))
    if arguments.limit is not None:
        limit = Budget(*limit_of(arguments.limit))
        if ledger.path.exists():
            if ledger.read().limit != limit:
                raise DpvizError(
                    f"--limit of ledger {ledger.path.name} was set when it was made and cannot be "
                    "changed."
                )
        else:
            ledger.create(limit, arguments.account)
    elif arguments.account != "basic":
        raise InvalidSetting("limit", "given with an account", "nothing", "--limit")
    contents = ledger.read()
    if arguments.format == "json":
        print(json.dumps(finite(contents.to_json()), indent=1))
        return 0
    epsilon, delta = contents.total
    limit_words = (
        "no limit"
        if contents.limit is None
        else f"limit epsilon {contents.limit.epsilon:g}, delta {contents.limit.delta:g}"
    )
    print(f"{ledger.path.name}: epsilon {epsilon:.6g}, delta {delta:.3g} spent; {limit_words}")
    print_table(
        ("when", "mechanism", "epsilon", "delta", "purpose"),
        [
            [s.when, s.mechanism, f"{s.epsilon:.6g}", f"{s.delta:.3g}", s.purpose]
            for s in contents.spends
        ],
    )
    return 0
