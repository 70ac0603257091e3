"""The command ``account``."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

from dpviz.base.json_text import finite
from dpviz.base.number_text import numeral
from dpviz.base.params import Declared, again, params_of, text
from dpviz.claims.account import RELEASES, account_view
from dpviz.claims.audit import AuditOptions
from dpviz.cli.options import Commands, add_set, add_settings
from dpviz.cli.terminal import print_table
from dpviz.errors import InvalidSetting
from dpviz.mechanisms import parse_variant, with_parameter
from dpviz.paid.steps import Wanted, wanted_of
from dpviz.settings import Settings
from dpviz.values.problem import Budget, Domain, Problem, Relation


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
    """Whose account, in which setting, and which steps of the preparation it pays for."""

    mechanism: str = again(AuditOptions, "mechanism")
    epsilon: float = again(AuditOptions, "epsilon")
    delta: float = again(
        AuditOptions,
        "delta",
        default=1e-6,
        optional=False,
        help="The delta that is claimed, and at which repeated releases are quoted.",
    )
    rows: int = again(AuditOptions, "rows", default=1000, high=10**15, help="Rows of the table.")
    dimension: int = again(
        AuditOptions, "dimension", default=10, high=100_000, help="Features of the table."
    )
    k: int = again(Settings, "k")
    relation: str = again(AuditOptions, "relation")
    domain: str = again(Settings, "domain")
    releases: str = text(
        ",".join(map(str, RELEASES)),
        label="Releases",
        help="How often the same table is released, with commas.",
        check=_counts,
    )
    center: str | None = again(Settings, "center")
    scale: str = again(Settings, "scale")
    row_bound: str = again(Settings, "row_bound")
    count: str = again(Settings, "count")
    bounds: str = again(Settings, "bounds")
    range_share: float = again(Settings, "range_share")
    mean_share: float = again(Settings, "mean_share")
    scale_share: float = again(Settings, "scale_share")
    bound_share: float = again(Settings, "bound_share")
    count_share: float = again(Settings, "count_share")

    @property
    def paid(self) -> Wanted | None:
        """The steps of the preparation that are paid for, or None where all is public."""
        both = {name: getattr(self, name) for name in params_of(Settings) if hasattr(self, name)}
        return wanted_of(Settings(**both))


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "account", help="what a mechanism, or the whole chain of a paid preparation and it, costs"
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
    budget = Budget(options.epsilon, options.delta)
    view = account_view(mechanism, problem, budget, releases, options.paid)
    if arguments.format == "json":
        print(json.dumps(finite(view.to_json()), indent=1))
        return 0
    kind = "exact" if view.exact else "at most"
    if view.paid is not None:
        steps = ", ".join(f"{step} {numeral(view.paid.share(step), 6)}" for step in view.paid.steps)
        print(
            f"the whole chain: preparation (shares: {steps}), then {mechanism.text} with what is "
            f"left, epsilon {numeral(view.rest.epsilon, 6)} at delta {numeral(view.rest.delta, 6)}"
        )
    who = mechanism.text if view.paid is None else "together"
    print(
        f"{who}: spends epsilon {numeral(view.spent, 6)} at delta {numeral(view.spent_delta, 6)} "
        f"({kind}; {view.source})"
    )
    shown = [
        f"{name} {numeral(value, 6)}"
        for name, value in (("mu", view.mu), ("rho", view.rho))
        if value
    ]
    print("; ".join(shown) or "neither mu nor rho describes it")
    print()
    print_table(
        ("releases", "basic", "zCDP", "exact"),
        [
            [
                str(item.releases),
                numeral(item.basic, 4),
                "-" if item.zcdp is None else numeral(item.zcdp, 4),
                "-" if item.exact is None else numeral(item.exact, 4),
            ]
            for item in view.repeated
        ],
    )
    print(f"epsilon for all of them, at delta {numeral(options.delta, 6)} in total")
    return 0
