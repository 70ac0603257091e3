"""The question `account`: privacy cost of a mechanism, for one and for many releases."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired

from dpviz.auditing import AuditOptions
from dpviz.auditing.account import RELEASES, AccountView, Repeated, account_view
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit, params_of, text
from dpviz.core.problem import Budget, Domain, Problem, Relation, Unit, protects
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.preparation.steps import PrivateSteps, private_steps
from dpviz.studies import Answer
from dpviz.studies.columns import ABSENT, ASIDE, NUMBERS, SOURCED, Column, Number
from dpviz.studies.options import asks

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


def _counts(text: str) -> str:
    """Return numbers of releases in canonical text."""
    try:
        counts = [int(item) for item in text.split(",")]
    except ValueError:
        # The value 0 is refused below, so text that is not a number gets the same message.
        counts = [0]
    if not all(1 <= count <= 100_000 for count in counts):
        raise InvalidSetting(
            "releases", "whole numbers from 1 to 100000, separated by commas", text, "--releases"
        )
    return ",".join(str(count) for count in counts)


@dataclass(frozen=True)
class AccountOptions(Declared):
    """The mechanism, the setting, and the preparation steps that use a share of the budget."""

    mechanism: str | Mechanism = inherit(AuditOptions, "mechanism")  # noqa: RUF009, a declaration
    epsilon: float = inherit(AuditOptions, "epsilon")
    delta: float = inherit(
        AuditOptions,
        "delta",
        default=1e-6,
        optional=False,
        help="The claimed delta. The cost of repeated releases is given at the claimed delta too.",
    )
    rows: int = inherit(AuditOptions, "rows", default=1000, high=10**15, help="Rows of the table.")
    dimension: int = inherit(
        AuditOptions, "dimension", default=10, high=100_000, help="Features of the table."
    )
    k: int = inherit(Settings, "k")
    relation: str = inherit(AuditOptions, "relation")
    rows_a_person: int | None = inherit(
        Settings,
        "rows_a_person",
        help="Largest number of rows of one person. The privacy loss is then for a person; without "
        "this option, for one row.",
    )
    domain: str = inherit(Settings, "domain")
    releases: str = text(
        ",".join(map(str, RELEASES)),
        label="Releases",
        help="Numbers of releases of the same table, separated by commas.",
        check=_counts,
    )
    center: str | None = inherit(Settings, "center")
    scale: str = inherit(Settings, "scale")
    row_bound: str = inherit(Settings, "row_bound")
    count: str = inherit(Settings, "count")
    bounds: str = inherit(Settings, "bounds")
    range_share: float = inherit(Settings, "range_share")
    mean_share: float = inherit(Settings, "mean_share")
    scale_share: float = inherit(Settings, "scale_share")
    bound_share: float = inherit(Settings, "bound_share")
    count_share: float = inherit(Settings, "count_share")

    @property
    def private(self) -> PrivateSteps | None:
        """The preparation steps that use a share of the budget, or None if all steps are public."""
        both = {name: getattr(self, name) for name in params_of(Settings) if hasattr(self, name)}
        return private_steps(Settings(**both))


def options_at(
    mechanism: str, problem: Problem, budget: Budget, settings: Settings | None = None
) -> dict[str, Any]:
    """Return the options of `account` for a mechanism in a setting.

    Parameters
    ----------
    mechanism : str
    problem : Problem
    budget : Budget
    settings : Settings or None
        Settings whose private preparation steps the accounting includes.
    """
    values = {
        "mechanism": mechanism,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rows": problem.n,
        "dimension": problem.d,
        "k": problem.k,
        "relation": str(problem.relation),
        "rows_a_person": problem.rows_a_person,
        "domain": problem.domain.kind,
    }
    if settings is None:
        return values
    steps = set(params_of(AccountOptions)) & set(params_of(Settings)) - set(values)
    return values | {name: getattr(settings, name) for name in sorted(steps)}


SHAPE = (
    *(Column(name, type=int) for name in ("n", "d", "k")),
    Column("relation", type=str),
    Column("domain", of=lambda problem: problem.domain.kind, type=str),
    Column("rows_a_person", type=NotRequired[int],
           of=lambda problem: ABSENT if problem.rows_a_person is None else problem.rows_a_person,
           help="Largest number of rows of one person; if missing, the unit is one row."),
)  # fmt: skip
"""Columns of the problem that the accounting describes."""

PAID = (
    Column("shares", type=dict[str, float],
           of=lambda view: {step: view.private.share(step) for step in view.private.steps}),
    Column("left", of=lambda view: view.rest, type=Budget),
)  # fmt: skip
"""Budget shares of the preparation steps, and the remaining budget."""


def _pair(first: str, second: str) -> tuple[Column, Column]:
    return Column(first, of=itemgetter(0), type=float), Column(second, of=itemgetter(1), type=float)


REPEATED = (
    Column("releases", type=int),
    Column("delta", type=float, show=NUMBERS),
    Column("basic", kind=Kind.UPPER_BOUND),
    Column("zcdp", kind=Kind.UPPER_BOUND),
    Column("exact", of=lambda item: item.exact and Quantity(item.exact, item.kind)),
    Column("kind", type=Literal["measurement", "upper bound"], show=frozenset({"json"}),
           help="Kind of the number: exact, or an upper bound."),
)  # fmt: skip
"""Total epsilon of repeated releases, by each accounting method; null if a method gives none."""


@dataclass(frozen=True, eq=False, repr=False)
class Account(Answer):
    """Privacy cost of a mechanism, alone or together with a private preparation.

    Attributes
    ----------
    view : dpviz.auditing.account.AccountView
        The curve, mu, rho, the trade-off and the cost of repeated releases.
    """

    figures: ClassVar[tuple[str, ...]] = ("repeated", "curve")
    columns: ClassVar[tuple[Column, ...]] = REPEATED
    listed: ClassVar[str] = "repeated"

    mechanism: str
    problem: Annotated[Problem, SHAPE]
    preparation: Annotated[AccountView, PAID] | None
    claimed: Budget
    spent: Annotated[Any, SOURCED]
    exact: bool
    curve: Annotated[list[Any], _pair("epsilon", "delta")]
    mu: Number
    rho: Number
    rdp: Annotated[list[Any], _pair("order", "epsilon")]
    trade_off: Annotated[list[Any], _pair("alpha", "beta")]
    repeated: tuple[Repeated, ...]
    view: Annotated[AccountView, ASIDE]

    @classmethod
    def of(cls, view: AccountView) -> Account:
        """Return the answer for the result of the accounting."""
        return cls(
            view.mechanism.text,
            view.problem,
            None if view.private is None else view,
            view.budget,
            view.spent,
            view.spent.exact,
            list(zip(view.epsilons.tolist(), view.deltas.tolist(), strict=True)),
            view.mu,
            view.rho,
            list(view.renyi),
            list(zip(view.alpha.tolist(), view.beta.tolist(), strict=True)),
            view.repeated,
            view,
        )

    def summary(self) -> str:
        """Return the privacy loss, its proof, and mu and rho."""
        view = self.view
        lines = []
        if view.private is not None:
            steps = ", ".join(
                f"{step} {numeral(view.private.share(step), 6)}" for step in view.private.steps
            )
            lines.append(
                f"the whole pipeline: preparation (shares: {steps}), then {view.mechanism.text} "
                f"with the remaining budget, epsilon {numeral(view.rest.epsilon, 6)} at delta "
                f"{numeral(view.rest.delta, 6)}"
            )
        who = view.mechanism.text if view.private is None else "together"
        lines.append(
            f"{who}: privacy loss {view.spent.cost.words(6, 'epsilon')} at delta "
            f"{numeral(view.spent.delta, 6)} ({view.spent.source})"
        )
        if view.problem.unit is Unit.PERSON:
            lines.append(f"it {protects(view.problem.rows_a_person)}")
        parameters = (("mu", view.mu), ("rho", view.rho))
        parts = [f"{name} {numeral(value, 6)}" for name, value in parameters if value]
        lines.append("; ".join(parts) or "neither mu nor rho describes this loss")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return the summary and the cost of repeated releases, as the command prints them."""
        at = numeral(self.view.budget.delta, 6)
        note = f"epsilon for all releases together, at delta {at} in total"
        return f"{super().printed()}\n{note}"

    def figure(self, name: str | None = None) -> Figure:
        """Plot the cost of repeated releases, or delta against epsilon.

        Parameters
        ----------
        name : {"repeated", "curve"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        name = self._figure_name(name)
        from dpviz.report.figures.account import curve_figure, repeated_figure

        if name == "curve":
            return curve_figure(self.view.curve_table())
        return repeated_figure(self.view.repeated_table())


@asks(
    "compute the privacy cost of a mechanism, with or without a private preparation; account "
    "steps: the cost of each step",
    AccountOptions,
    hints={"mechanism": str | Mechanism},
)
def account(mechanism: str | Mechanism = AccountOptions.mechanism, **options: Any) -> Account:
    """Compute the privacy cost of one or many releases, with or without a private preparation.

    Parameters
    ----------
    mechanism : str or Mechanism
        Mechanism variant such as ``"wishart_difference"`` or ``"mvg[theorem=3]"``.
    **options
        The setting, and the preparation steps that use a share of the budget.

    Returns
    -------
    Account
        ``table()`` has a row for each number of releases; ``to_json()`` writes the bytes of
        ``dpviz account --format json``.

    Raises
    ------
    WrongArgument
        If an argument is unknown, or is given by position.
    InvalidSetting
        If an option is out of its range, or there is no such mechanism.
    CannotRun
        If the mechanism cannot run here, or no epsilon describes its release.

    See Also
    --------
    audit : What it costs at least, by attack.
    ledger : What real releases have spent.

    Notes
    -----
    Basic composition adds epsilons, and zCDP adds rhos (Bun and Steinke 2016). The method ``exact``
    composes the dominating privacy losses (Sommer et al. 2019) and gives the least known epsilon.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.account("gaussian", releases="1,10")
    >>> found.table()["releases"].tolist()
    [1, 10]
    >>> bool((found.table()["exact"] <= found.table()["basic"]).all())
    True
    """
    query = AccountOptions(mechanism=mechanism, **options)
    d = query.dimension
    domain = Domain.box(d) if query.domain == "box" else Domain.ball(d)
    problem = Problem(
        query.rows,
        d,
        query.k,
        Relation(query.relation),
        domain,
        rows_a_person=query.rows_a_person,
    )
    releases = tuple(int(item) for item in query.releases.split(","))
    budget = Budget(query.epsilon, query.delta)
    view = account_view(parse_variant(query.mechanism), problem, budget, releases, query.private)
    return Account.of(view)
