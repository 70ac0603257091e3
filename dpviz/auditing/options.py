"""The options of ``audit``, declared once for the command line and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.auditing.result import Audit
from dpviz.auditing.run import (
    DEFAULT_CONFIDENCE,
    DEFAULT_D,
    DEFAULT_DELTA,
    DEFAULT_K,
    DEFAULT_N,
    DEFAULT_TRIALS,
    LEAST_TRIALS,
    OnStep,
    audit,
    default_budget,
)
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, again, integer, number, text
from dpviz.core.problem import Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, featured, parse_variant


@dataclass(frozen=True)
class AuditOptions(Declared):
    """What to audit, and how hard to try."""

    mechanism: str | Mechanism = text(  # noqa: RUF009, a declaration
        next(key for key in featured() if not all_mechanisms()[key].info.needs_rows),
        label="Mechanism",
        help="Mechanism or variant such as mvg[theorem=3].",
        flag="MECHANISM",
        objects=True,
    )
    epsilon: float = again(Settings, "epsilon", help="The epsilon that is claimed.")
    delta: float | None = again(
        Settings,
        "delta",
        help="The delta that is claimed; default 0 for pure claims, "
        f"{numeral(DEFAULT_DELTA, 6)} for others.",
    )
    dimension: int = integer(
        DEFAULT_D, 2, 200, label="Features d", help="Features of the made-up tables."
    )
    k: int = again(Settings, "k", default=DEFAULT_K, high=200, help="Components to release.")
    rows: int = integer(
        DEFAULT_N,
        2,
        100_000,
        label="Rows n",
        help="Rows of the made-up tables; more let them be more concentrated.",
    )
    relation: str = again(Settings, "relation", help="What one person may change.")
    domain: str = again(
        Settings,
        "domain",
        choices={"ball": "rows of length at most 1", "box": "features between -1 and 1"},
        help="What rows the neighbouring tables may hold.",
    )
    seed: int = again(Settings, "seed", help="Same seed, same bounds.")
    trials: int = integer(
        DEFAULT_TRIALS,
        LEAST_TRIALS,
        1_000_000,
        label="Draws",
        help="Releases of each table to choose events on, and as many to count them on.",
    )
    confidence: float = number(
        DEFAULT_CONFIDENCE,
        0.5,
        1 - 1e-12,
        label="Confidence",
        help="With which all bounds of one audit hold together.",
    )

    def variant(self, assignments: Sequence[str] = ()) -> Mechanism:
        """Return the mechanism, with ``[mechanism.]parameter=value`` assignments made."""
        return varied(parse_variant(self.mechanism), assignments)

    def run(self, assignments: Sequence[str] = (), progress: OnStep | None = None) -> Audit:
        """Return the audit that the options ask for."""
        mechanism = self.variant(assignments)
        return audit(
            mechanism,
            default_budget(mechanism, self.epsilon, self.delta),
            d=self.dimension,
            k=self.k,
            relation=Relation(self.relation),
            n=self.rows,
            domain=self.domain,
            seed=self.seed,
            trials=self.trials,
            confidence=self.confidence,
            progress=progress,
        )


def varied(mechanism: Mechanism, assignments: Sequence[str]) -> Mechanism:
    """Return a mechanism with ``[mechanism.]parameter=value`` assignments made."""
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        key, dot, name = path.strip().rpartition(".")
        if not equals or (dot and key != mechanism.key):
            raise InvalidSetting(
                "set", f"written {mechanism.key}.parameter=value", assignment, "--set"
            )
        mechanism = type(mechanism).from_texts(mechanism.texts() | {name: value})
    return mechanism
