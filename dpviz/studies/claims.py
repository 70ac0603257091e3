"""The question `claims`: which privacy claims hold, by mechanism and neighbouring relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from dpviz.auditing import DEFAULT_D, DEFAULT_K, DEFAULT_N, AuditOptions, audit, default_budget
from dpviz.auditing.run import LEAST_TRIALS
from dpviz.auditing.table import audit_command, every_mechanism
from dpviz.core.params import Declared, inherit
from dpviz.core.problem import Domain, Problem, Relation
from dpviz.core.quantity import Kind
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variants
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column, of_pair, printed
from dpviz.studies.options import asks, variants

_TRIALS = 10_000  # A single audit has more releases; with fewer, a table takes minutes.

# Each claim is audited at the first of these epsilons at which its mechanism can run.
_EPSILONS = (1.0, 0.5, 0.1)


@dataclass(frozen=True)
class ClaimsOptions(Declared):
    """Mechanisms, seed and number of releases per audit."""

    mechanisms: tuple[str | Declared, ...] = inherit(
        Settings, "mechanisms", help="Mechanism to check; repeatable. Default: all."
    )
    seed: int = inherit(AuditOptions, "seed", help="The same seed gives the same table.")
    trials: int = inherit(
        AuditOptions, "trials", default=_TRIALS, low=LEAST_TRIALS, help="Releases per audit."
    )


@dataclass(frozen=True)
class ClaimRow:
    """One row of the answer: one mechanism under one neighbouring relation.

    Attributes
    ----------
    mechanism, label, paper : str
        Key, display name and source of the mechanism.
    relation : str
    claimed_epsilon, claimed_delta : float or None
        Claim of the source at the audited setting; None if the source promises nothing.
    status : str
        Status of the claim, from its proof or its refutation.
    why : str
        The evidence for the claim's status.
    evidence : str
        ``exact`` if exact accounting decides the verdict, ``measured`` if simulated releases do,
        ``none`` if the mechanism cannot run.
    verdict : str
        The audit's verdict: ``refuted``, ``consistent`` or ``tight``; empty if it cannot run.
    epsilon_lower, delta_lower, at_epsilon : float or None
        The bounds that the audit found.
    found : str
        The audit's evidence, or the reason why there is no audit.
    command : str
        Command that computes the row again.
    """

    mechanism: str
    label: str
    paper: str
    relation: str
    claimed_epsilon: float | None
    claimed_delta: float | None
    status: str
    why: str
    evidence: str
    verdict: str
    epsilon_lower: float | None
    delta_lower: float | None
    at_epsilon: float | None
    found: str
    command: str


@dataclass(frozen=True, eq=False, repr=False)
class Claims(Answer):
    """The claim, its status and its audit, for each mechanism and neighbouring relation.

    Attributes
    ----------
    found : list of ClaimRow
    """

    listed: ClassVar[str] = "found"
    alone: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mechanism", type=str),
        Column("label", type=str, show=NUMBERS),
        Column("paper", type=str, show=NUMBERS),
        Column("relation", type=str),
        Column("claimed_epsilon", show=NUMBERS),
        Column("claimed_delta", show=NUMBERS),
        Column("status", type=str),
        Column("why", type=str, show=NUMBERS, help="The evidence for the status."),
        Column("evidence", type=str),
        Column("verdict", type=str),
        Column("epsilon_lower", kind=Kind.LOWER_BOUND),
        Column("delta_lower", kind=Kind.LOWER_BOUND),
        Column("at_epsilon"),
        Column("found", type=str, show=NUMBERS, help="The measurement, in words."),
        Column("command", type=str, show=NUMBERS),
    )

    found: list[ClaimRow]

    def summary(self) -> str:
        """Return the number of claims with each status, and the number that an audit refutes."""
        counts = Counter(row.status for row in self.found)
        words = ", ".join(f"{number} {status}" for status, number in counts.items())
        number_refuted = sum(row.verdict == "refuted" for row in self.found)
        return f"{len(self.found)} claims: {words}; audits refute {number_refuted} claims."

    def printed(self) -> str:
        """Return only the table as the printed text."""
        return printed(self.columns, self.found)


@asks(
    "audit every mechanism under every neighbouring relation",
    ClaimsOptions,
    prints_to_out=True,
    command="audit all",
)
def claims(*, progress: Callable[[int, int, str], None] | None = None, **options: Any) -> Claims:
    """Audit the claim of every mechanism under every neighbouring relation.

    Parameters
    ----------
    progress : callable, optional
        Function that is called with (done, total, name) before each row.
    **options
        Mechanisms, seed and number of releases per audit.

    Returns
    -------
    Claims
        ``to_json()`` writes the bytes of ``dpviz audit all --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is unknown, or is out of its range.

    See Also
    --------
    audit : One claim, in any setting.
    list_mechanisms : What is known of each claim by proof, at once.

    Notes
    -----
    A claim is audited at the first of epsilon 1, 0.5 and 0.1 at which its mechanism can run. An
    audit of all mechanisms takes minutes.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.claims(mechanisms="laplace_output", trials=200)
    >>> found.table()[["relation", "status"]].iloc[0].tolist()
    ['replace', 'refuted']
    """
    if "mechanisms" in options:
        options["mechanisms"] = variants(options["mechanisms"])
    choices = ClaimsOptions(**options)
    mechanisms = parse_variants(choices.mechanisms) if choices.mechanisms else every_mechanism()
    each = list(product(mechanisms, Relation))
    rows = []
    for place, (mechanism, relation) in enumerate(each):
        if progress is not None:
            progress(place, len(each), f"{mechanism.text}, {relation}")
        rows.append(_row(mechanism, relation, choices))
    return Claims(rows)


def _row(mechanism: Mechanism, relation: Relation, options: ClaimsOptions) -> ClaimRow:
    """Return the claim, status and audit of one mechanism under one neighbouring relation."""
    problem = Problem(DEFAULT_N, DEFAULT_D, DEFAULT_K, relation, Domain.ball(DEFAULT_D))
    budgets = [default_budget(mechanism, epsilon) for epsilon in _EPSILONS]
    reasons = [mechanism.why_not(problem, one) for one in budgets]
    runs = [one for one, reason in zip(budgets, reasons, strict=True) if reason is None]
    budget = runs[0] if runs else budgets[0]
    seed, trials = options.seed, options.trials
    result = None
    if runs:
        result = audit(mechanism, budget, relation=relation, seed=seed, trials=trials)
    claim = mechanism.claim(problem, budget)
    status = mechanism.status(problem, budget)
    evidence = "none" if result is None else "measured" if result.exact is None else "exact"
    return ClaimRow(
        mechanism=mechanism.text,
        label=mechanism.label,
        paper=mechanism.info.paper,
        relation=str(relation),
        claimed_epsilon=of_pair(claim, "epsilon"),
        claimed_delta=of_pair(claim, "delta"),
        status=str(status.verdict),
        why=status.evidence,
        evidence=evidence,
        verdict="" if result is None else str(result.verdict),
        epsilon_lower=of_pair(result, "epsilon_lower"),
        delta_lower=of_pair(result, "delta_lower"),
        at_epsilon=of_pair(result, "at_epsilon"),
        found=f"cannot be audited here: {reasons[0]}" if result is None else result.evidence,
        command=audit_command(mechanism, problem, budget, trials=trials, seed=seed),
    )
