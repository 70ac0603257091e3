"""The command ``account``."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass

from dpviz.base.json_text import finite
from dpviz.base.params import Declared, choice, integer, number, params_of, text
from dpviz.claims.account import RELEASES, account_view
from dpviz.cli.options import Commands, add_set, add_settings
from dpviz.cli.terminal import print_table
from dpviz.errors import InvalidSetting
from dpviz.mechanisms import featured, parse_variant, with_parameter
from dpviz.values.problem import EPSILON_RANGE, Budget, Domain, Problem, Relation


def _counts(written: str) -> str:
    """Return numbers of releases in canonical text."""
    try:
        counts = [int(item) for item in written.split(",")]
    except ValueError:
        counts = [0]
    if not all(1 <= count <= 100_000 for count in counts):
        raise InvalidSetting(
            "releases", "whole numbers from 1 to 100000, with commas", written, "--releases"
        )
    return ",".join(str(count) for count in counts)


@dataclass(frozen=True)
class AccountOptions(Declared):
    """Whose account, in which setting."""

    mechanism: str = text(
        featured()[0],
        label="Mechanism",
        help="Mechanism or variant such as mvg[theorem=3].",
        flag="MECHANISM",
    )
    epsilon: float = number(
        1.0, *EPSILON_RANGE, label="Epsilon", help="The epsilon that is claimed.", log=True
    )
    delta: float = number(
        1e-6,
        0.0,
        math.nextafter(1.0, 0.0),
        label="Delta",
        help="The delta that is claimed, and at which repeated releases are quoted.",
        allowed_text="a number from 0 to below 1",
    )
    rows: int = integer(1000, 2, 10**15, label="Rows n", help="Rows of the table.")
    dimension: int = integer(10, 2, 100_000, label="Features d", help="Features of the table.")
    k: int = integer(2, 1, 100_000, label="Components k", help="Components to release.")
    relation: str = choice(
        "replace",
        {"replace": "replace one person", "zero-out": "zero out one person"},
        label="Neighbours",
        help="What one person may change.",
    )
    domain: str = choice(
        "ball",
        {"ball": "ball (bounded row norm)", "box": "box (bounded features)"},
        label="Domain",
        help="What is public about a row.",
    )
    releases: str = text(
        ",".join(map(str, RELEASES)),
        label="Releases",
        help="How often the same table is released, with commas.",
        check=_counts,
    )


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "account", help="what a mechanism costs: curve, mu, rho, and repeated releases"
    )
    add_settings(parser, AccountOptions)
    add_set(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(run=_account)


def _account(arguments: argparse.Namespace) -> int:
    params = params_of(AccountOptions)
    written = {name: getattr(arguments, name) for name in params}
    options = AccountOptions(
        **{name: params[name].parse(given) for name, given in written.items() if given is not None}
    )
    variant: tuple[str, ...] = (options.mechanism,)
    for assignment in arguments.assignments:
        variant = with_parameter(variant, assignment)
    mechanism = parse_variant(variant[0])
    d = options.dimension
    domain = Domain.box(d) if options.domain == "box" else Domain.ball(d)
    problem = Problem(options.rows, d, options.k, Relation(options.relation), domain)
    releases = tuple(int(item) for item in options.releases.split(","))
    view = account_view(mechanism, problem, Budget(options.epsilon, options.delta), releases)
    if arguments.format == "json":
        print(json.dumps(finite(view.to_json()), indent=1))
        return 0
    kind = "exact" if view.exact else "at most"
    print(
        f"{mechanism.text}: spends epsilon {view.spent:.6g} at delta {view.spent_delta:g} "
        f"({kind}; {view.source})"
    )
    shown = [f"{name} {value:.6g}" for name, value in (("mu", view.mu), ("rho", view.rho)) if value]
    print("; ".join(shown) or "neither mu nor rho describes it")
    print()
    print_table(
        ("releases", "basic", "zCDP", "exact"),
        [
            [
                str(item.releases),
                f"{item.basic:.4g}",
                "-" if item.zcdp is None else f"{item.zcdp:.4g}",
                "-" if item.exact is None else f"{item.exact:.4g}",
            ]
            for item in view.repeated
        ],
    )
    print(f"epsilon for all of them, at delta {options.delta:g} in total")
    return 0
