"""The question `claims`: which promises hold, of every mechanism and under every relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from dpviz.auditing import AuditOptions
from dpviz.auditing.run import LEAST_TRIALS
from dpviz.auditing.table import TABLE_TRIALS, ClaimRow, claims_table
from dpviz.core.params import Declared, inherit
from dpviz.core.quantity import Kind
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column, printed
from dpviz.studies.options import asks, variants


@dataclass(frozen=True)
class ClaimsOptions(Declared):
    """How hard to try."""

    mechanisms: tuple[str | Declared, ...] = inherit(
        Settings, "mechanisms", help="Whose claims; repeatable. Default: all."
    )
    seed: int = inherit(AuditOptions, "seed", help="Same seed, same table.")
    trials: int = inherit(
        AuditOptions, "trials", default=TABLE_TRIALS, low=LEAST_TRIALS, help="Draws of each audit."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Claims(Answer):
    """What is promised, what is known and what an audit saw, of each mechanism and relation.

    Attributes
    ----------
    found : list of dpviz.auditing.table.ClaimRow
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
        Column("why", type=str, show=NUMBERS, help="What the status rests on."),
        Column("evidence", type=str),
        Column("verdict", type=str),
        Column("epsilon_lower", kind=Kind.LOWER_BOUND),
        Column("delta_lower", kind=Kind.LOWER_BOUND),
        Column("at_epsilon"),
        Column("found", type=str, show=NUMBERS, help="What was measured, in words."),
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
    named = parse_variants(chosen.mechanisms) if chosen.mechanisms else []
    return Claims(claims_table(chosen.seed, chosen.trials, progress, named))
