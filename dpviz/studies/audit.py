"""The question `audit`: lower bounds on a mechanism's privacy loss, found by attacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypedDict, Unpack

from dpviz.auditing import AuditOptions
from dpviz.auditing.blackbox import DIMENSIONS, BlackBox, audit_function
from dpviz.auditing.result import Audit, AuditVerdict, Fault
from dpviz.core.errors import InvalidSetting, WrongArgument
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Relation
from dpviz.core.quantity import Kind
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._function import black_box
from dpviz.report.sentences.claims import audit_verdict, black_box_words
from dpviz.report.sentences.phrases import text_table
from dpviz.studies import Answer
from dpviz.studies.columns import Column, of_pair, record
from dpviz.studies.options import Domains, Relations, asks

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


class AuditKeywords(TypedDict, total=False):
    """The keywords of an audit: the fields of `AuditOptions` except the mechanism."""

    epsilon: float
    delta: float | None
    dimension: int
    k: int
    rows: int
    relation: Relations
    rows_a_person: int | None
    domain: Domains
    seed: int
    trials: int
    confidence: float


AUDIT = (
    Column("mechanism", type=str),
    Column("claimed", of=lambda audit: audit.claim, type=Budget | None),
    Column("verdict", type=str, help="refuted, consistent or tight."),
    *(Column(name, type=float) for name in ("epsilon_lower", "delta_lower")),
    Column("at_epsilon", type=float, help="The epsilon at which delta_lower is given."),
    Column("confidence", type=float),
    Column("weakest_fault", of=lambda audit: audit.weakest, type=Fault | None,
           help="Largest share of the needed noise at which this audit refutes a planted release; "
           "null if none was refuted."),
    Column("evidence", type=str),
)  # fmt: skip
"""Claim, bounds and verdict of an audit."""


class Bound(NamedTuple):
    """A bound of an audit: on epsilon, or on delta at one of the tested epsilons."""

    audit: Audit
    number: int | None

    @property
    def name(self) -> str:
        """The quantity that is bounded."""
        return "epsilon" if self.number is None else "delta"


def _exact(bound: Bound) -> float | None:
    exact = bound.audit.exact
    if exact is None or bound.number is None:
        return None if exact is None or not math.isfinite(exact.epsilon) else exact.epsilon
    return float(exact.deltas[bound.number])


_TABLE = frozenset({"table"})

BOUNDS = (
    Column("bound", of=lambda bound: bound.name, type=str, show=_TABLE),
    Column("at_epsilon", show=_TABLE,
           of=lambda bound: None if bound.number is None
           else bound.audit.at_epsilons[bound.number]),
    Column("claimed", show=_TABLE, of=lambda bound: of_pair(bound.audit.claim, bound.name)),
    Column("measured", show=_TABLE, kind=Kind.LOWER_BOUND,
           of=lambda bound: bound.audit.measured.epsilon_lower if bound.number is None
           else float(bound.audit.measured.deltas[bound.number])),
    Column("exact", of=_exact, show=_TABLE),
)  # fmt: skip
"""The claim. Missing if the mechanism claims nothing, or if no exact accounting is known."""


@dataclass(frozen=True, eq=False, repr=False)
class Audited(Answer):
    """Lower bounds on a mechanism's privacy loss.

    Attributes
    ----------
    audit : dpviz.auditing.Audit
        The counts behind the bounds, and the exact loss if it is known.
    """

    figures: ClassVar[tuple[str, ...]] = ("delta",)
    columns: ClassVar[tuple[Column, ...]] = BOUNDS

    audit: Audit

    @property
    def rows(self) -> list[Bound]:
        """The bound on epsilon, and the bound on delta at each tested epsilon."""
        return [Bound(self.audit, n) for n in (None, *range(len(self.audit.at_epsilons)))]

    @property
    def verdict(self) -> AuditVerdict:
        """Verdict as a text: refuted, consistent or tight; only exact accounting proves tight."""
        return self.audit.verdict

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at the claimed delta."""
        return self.audit.epsilon_lower

    @property
    def delta_lower(self) -> float:
        """The lower bound on delta at the epsilon `at_epsilon`."""
        return self.audit.delta_lower

    @property
    def at_epsilon(self) -> float:
        """The epsilon at which `delta_lower` is stated."""
        return self.audit.at_epsilon

    def summary(self) -> str:
        """Return the verdict, and what was measured in which way."""
        return f"{audit_verdict(self.audit)}\n{self.audit.evidence}"

    def printed(self) -> str:
        """Return the claim and the findings, as the command prints them."""
        answer = self.data()
        # The claim is the heading of the printed table, and the findings are its rows.
        budget = answer.pop("claimed")
        promise = "nothing" if budget is None else f"epsilon {numeral(budget['epsilon'], 6)}"
        if budget is not None and budget["delta"]:
            promise += f", delta {numeral(budget['delta'], 6)}"
        rows = [
            [name, numeral(value, 4) if isinstance(value, float) else str(value)]
            for name, value in answer.items()
        ]
        return text_table(("claimed", promise), rows)

    def data(self) -> Annotated[dict[str, Any], AUDIT]:
        """Return the findings as a table."""
        return record(AUDIT, self.audit)

    def figure(self, name: str | None = None) -> Figure:
        """Plot the lower bounds on delta at each tested epsilon, beside the claim.

        Parameters
        ----------
        name : {"delta"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        self._figure_name(name)
        from dpviz.report.figures.claims import audited_figure

        return audited_figure(self.table(), self.audit.mechanism.label)


@dataclass(frozen=True, eq=False, repr=False)
class AuditedFunction(Audited):
    """Lower bounds on a function's privacy loss, from pairs of tables and from hidden rows.

    Attributes
    ----------
    found : dpviz.auditing.blackbox.BlackBox
    """

    found: BlackBox

    @property
    def verdict(self) -> AuditVerdict:
        """Verdict as a text: refuted, consistent or tight; only exact accounting proves tight."""
        return self.found.verdict

    @property
    def epsilon_lower(self) -> float:
        """The larger lower bound on epsilon at the claimed delta."""
        return self.found.epsilon_lower

    @property
    def sees(self) -> float:
        """The least epsilon that this number of releases should refute, with the best event."""
        return self.found.sees

    def summary(self) -> str:
        """Return the verdict, the least epsilon that could be refuted, and every bound."""
        return "\n".join([super().summary(), *black_box_words(self.found)])

    def printed(self) -> str:
        """Return the summary as the printed text."""
        return self.summary()

    def data(self) -> dict[str, Any]:
        """Return the findings as JSON data."""
        fit, hidden = self.found.fit, self.found.hidden
        return super().data() | {
            "verdict": str(self.verdict),
            "epsilon_lower": self.epsilon_lower,
            "dimension": self.audit.problem.d,
            "dimensions": list(self.found.dimensions),
            "sees": self.sees if math.isfinite(self.sees) else None,
            "normal_fit": {
                "mu": fit.mu if math.isfinite(fit.mu) else None,
                "epsilon": fit.epsilon if math.isfinite(fit.epsilon) else None,
                "delta": fit.delta,
                "normal": fit.normal,
            },
            "hidden_rows": asdict(hidden),
        }


@asks("bound a mechanism's privacy loss from below, by attack; audit all: of all", AuditOptions)
def audit(
    mechanism: str | Mechanism | type[Mechanism] | Callable[..., Any],
    *,
    claim: tuple[float, float] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[AuditKeywords],
) -> Audited:
    """Bound a mechanism's privacy loss from below, by attacks on synthetic worst-case neighbours.

    Parameters
    ----------
    mechanism : str, Mechanism or callable
        Variant such as ``"wishart"`` or ``"mvg[theorem=3]"``; or any function ``f(rows, epsilon,
        delta, k, rng)`` that returns k orthonormal columns, shape (d, k), or a symmetric (d, d).
    claim : (epsilon, delta), optional
        The claim, instead of ``epsilon`` and ``delta``.
    progress : callable, optional
        Function that is called with the name of each step.
    **options
        The claimed ``epsilon`` and ``delta`` (by default delta 0 for pure claims and 1e-5 for
        others); ``dimension``, ``k`` and ``rows`` of the synthetic tables; ``relation`` of the
        neighbours, replace or zero-out; their ``domain``, ball or box; ``trials``, the number of
        releases of each table for choosing events, and again for counting them; ``confidence`` of
        all bounds together; ``seed``.

    Returns
    -------
    Audited
        ``verdict`` is refuted, consistent, or tight if exact accounting proves it.
        ``audit.weakest`` is the weakest fault that the audit would have detected. ``epsilon_lower``
        and ``delta_lower`` are lower bounds. ``to_json()`` writes the bytes of ``dpviz audit
        --format json``. For a function the answer also has ``sees``, the least epsilon that this
        number of releases could refute, a bound from rows hidden in each run, and a normal fit.

    Raises
    ------
    WrongArgument
        If an argument is unknown, or is given by position.
    InvalidSetting
        If an option is out of its range, or there is no such mechanism.
    CannotRun
        If the mechanism cannot run on the requested problem and budget.

    See Also
    --------
    list_mechanisms : What is known of each claim by proof.

    Notes
    -----
    Events are chosen on one half of the releases and counted on the other, with limits of Clopper
    and Pearson (1934). No number of releases proves a claim. The audit also plants faults, releases
    with less noise, and states the weakest fault that as many releases refute, with its range.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.audit("wishart", epsilon=1.0, trials=1000)
    >>> str(found.verdict)
    'refuted'
    >>> found.epsilon_lower >= 0
    True

    A function whose code is unknown:

    >>> import numpy as np
    >>> def exact(rows, epsilon, delta, k, rng):
    ...     return np.linalg.eigh(rows.T @ rows)[1][:, -k:]
    >>> str(dpviz.audit(exact, claim=(1, 0), trials=400, dimension=3).verdict)
    'refuted'
    """
    if claim is not None:
        options |= _claim_options(claim, options)
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        return _audited_function(mechanism, progress, options)
    if not isinstance(mechanism, (str, Mechanism)):
        raise WrongArgument(
            "mechanism must be a variant such as mvg[theorem=3], a Mechanism or a function; got "
            f"{type(mechanism).__name__[:40]}."
        )
    return Audited(AuditOptions(mechanism=mechanism, **options).run(progress=progress))


def _claim_options(claim: Any, options: Mapping[str, Any]) -> AuditKeywords:
    """Return the keywords that state a claim."""
    if not isinstance(claim, (tuple, list)) or len(claim) != 2:
        raise InvalidSetting("claim", "a pair (epsilon, delta), such as (1, 0)", claim)
    # If a caller stated both options, one of them would be ignored silently.
    if {"epsilon", "delta"} & set(options):
        raise InvalidSetting("claim", "left out, because epsilon or delta is given", claim)
    return {"epsilon": claim[0], "delta": claim[1]}


def _audited_function(
    function: Callable[..., Any], progress: Callable[[str], None] | None, options: AuditKeywords
) -> AuditedFunction:
    values: dict[str, Any] = dict(options)
    # Without a stated dimension try several, because a fault may show in only one dimension.
    dimension = values.pop("dimension", None)
    choices = AuditOptions(**values, **({} if dimension is None else {"dimension": dimension}))
    if choices.domain != "ball":
        raise InvalidSetting("domain", "ball, because a function is audited", choices.domain)
    if choices.rows_a_person is not None:
        rule = "left out if a function is audited: the attack changes one row"
        raise InvalidSetting("rows_a_person", rule, choices.rows_a_person)
    budget = Budget(choices.epsilon, choices.delta or 0.0)
    dimensions = DIMENSIONS if dimension is None else (choices.dimension,)
    if choices.k >= max(dimensions):
        raise InvalidSetting("k", f"from 1 to {max(dimensions) - 1}", choices.k)
    mechanism = black_box(function, budget.delta, max(dimensions), choices.k)
    result = audit_function(
        mechanism, budget, dimensions=dimensions, k=choices.k, relation=Relation(choices.relation),
        n=choices.rows, seed=choices.seed, trials=choices.trials, confidence=choices.confidence,
        progress=progress or (lambda step: None),
    )  # fmt: skip
    return AuditedFunction(result.audit, result)
