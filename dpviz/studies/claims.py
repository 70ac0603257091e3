"""The question `claims`: which promises hold, of every mechanism and under every relation."""

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

_TRIALS = 10_000  # fewer than a single audit's, so that the whole table takes minutes

# A claim is audited at the first of these at which the mechanism runs at all.
_EPSILONS = (1.0, 0.5, 0.1)


@dataclass(frozen=True)
class ClaimsOptions(Declared):
    """How hard to try."""

    mechanisms: tuple[str | Declared, ...] = inherit(
        Settings, "mechanisms", help="Whose claims; repeatable. Default: all."
    )
    seed: int = inherit(AuditOptions, "seed", help="Same seed, same table.")
    trials: int = inherit(
        AuditOptions, "trials", default=_TRIALS, low=LEAST_TRIALS, help="Draws of each audit."
    )


@dataclass(frozen=True)
class ClaimRow:
    """One row: one mechanism under one relation.

    Attributes
    ----------
    mechanism, label, paper : str
        Key, display name and source.
    relation : str
    claimed_epsilon, claimed_delta : float or None
        What the source promises at the audited setting; None where it promises nothing.
    status : str
        What is known of the claim, from its proof or its refutation.
    why : str
        The sentence behind the status.
    evidence : str
        ``exact`` where an exact account settles the verdict, ``measured`` where draws do, ``none``
        where the mechanism cannot run.
    verdict : str
        The audit's: ``refuted``, ``consistent`` or ``tight``; empty where it cannot run.
    epsilon_lower, delta_lower, at_epsilon : float or None
        The audit's bounds.
    found : str
        The audit's sentence, or why there is none.
    command : str
        What recomputes the row.
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
    """What is promised, what is known and what an audit saw, of each mechanism and relation.

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
        """Return how many claims there are of each status, and how many an audit refutes."""
        counts = Counter(row.status for row in self.found)
        listed = ", ".join(f"{number} {status}" for status, number in counts.items())
        refuted = sum(row.verdict == "refuted" for row in self.found)
        return f"{len(self.found)} claims: {listed}; an audit refutes {refuted} of them."

    def printed(self) -> str:
        """Return the table alone."""
        return printed(self.columns, self.found)


@asks(
    "audit every mechanism under every relation",
    ClaimsOptions,
    prints_to_out=True,
    command="audit all",
)
def claims(*, progress: Callable[[int, int, str], None] | None = None, **options: Any) -> Claims:
    """Audit the claim of every mechanism under every relation.

    Parameters
    ----------
    progress : callable, optional
        Told (done, total, name) before each row.
    **options
        How hard to try.

    Returns
    -------
    Claims
        ``to_json()`` writes the bytes of ``dpviz audit all --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is none of these, or is out of its range.

    See Also
    --------
    audit : One claim, in any setting.
    list_mechanisms : What is known of each claim by proof, at once.

    Notes
    -----
    A claim is audited at the first of epsilon 1, 0.5 and 0.1 at which its mechanism runs. All of
    them take minutes.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.claims(mechanisms="laplace_output", trials=200)
    >>> found.table()[["relation", "status"]].iloc[0].tolist()
    ['replace', 'refuted']
    """
    # one variant or several, as text or objects: as everywhere
    if "mechanisms" in options:
        options["mechanisms"] = variants(options["mechanisms"])
    chosen = ClaimsOptions(**options)
    named = parse_variants(chosen.mechanisms) if chosen.mechanisms else every_mechanism()
    each = list(product(named, Relation))
    rows = []
    for done, (mechanism, relation) in enumerate(each):
        if progress is not None:
            progress(done, len(each), f"{mechanism.text}, {relation}")
        rows.append(_row(mechanism, relation, chosen))
    return Claims(rows)


def _row(mechanism: Mechanism, relation: Relation, options: ClaimsOptions) -> ClaimRow:
    """Return what is claimed, known and seen of one mechanism under one relation."""
    problem = Problem(DEFAULT_N, DEFAULT_D, DEFAULT_K, relation, Domain.ball(DEFAULT_D))
    budgets = [default_budget(mechanism, epsilon) for epsilon in _EPSILONS]
    reasons = [mechanism.why_not(problem, one) for one in budgets]
    runs = [one for one, reason in zip(budgets, reasons, strict=True) if reason is None]
    budget = runs[0] if runs else budgets[0]
    seed, trials = options.seed, options.trials
    found = None
    if runs:
        found = audit(mechanism, budget, relation=relation, seed=seed, trials=trials)
    claim = mechanism.claim(problem, budget)
    status = mechanism.status(problem, budget)
    evidence = "none" if found is None else "measured" if found.exact is None else "exact"
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
        verdict="" if found is None else str(found.verdict),
        epsilon_lower=of_pair(found, "epsilon_lower"),
        delta_lower=of_pair(found, "delta_lower"),
        at_epsilon=of_pair(found, "at_epsilon"),
        found=f"cannot be audited here: {reasons[0]}" if found is None else found.evidence,
        command=audit_command(mechanism, problem, budget, trials=trials, seed=seed),
    )
