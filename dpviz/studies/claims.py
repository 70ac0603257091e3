"""The question `claims`: which promises hold, of every mechanism and under every relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from dpviz.auditing import AuditOptions
from dpviz.auditing.run import LEAST_TRIALS
from dpviz.auditing.table import TABLE_TRIALS, claims_table
from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.studies import Answer
from dpviz.studies.options import asks, variants

_PRINTED = [
    "mechanism", "relation", "status", "evidence", "verdict", "epsilon_lower", "delta_lower",
    "at_epsilon",
]  # fmt: skip


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


class Claims(Answer):
    """One row for each mechanism and relation: what is promised, what is known, what an audit saw.

    Attributes
    ----------
    found : DataFrame
        The columns of `dpviz.auditing.table.ClaimRow`.
    """

    def __init__(self, found: pd.DataFrame) -> None:
        self.found = found

    def summary(self) -> str:
        """Return how many claims there are of each status, and how many an audit refutes."""
        # in the order of the table, which is that of the mechanisms
        counts = self.found["status"].value_counts(sort=False)
        listed = ", ".join(f"{number} {status}" for status, number in counts.items())
        refuted = int((self.found["verdict"] == "refuted").sum())
        return f"{len(self.found)} claims: {listed}; an audit refutes {refuted} of them."

    def printed(self) -> str:
        """Return the table as the command prints it."""
        return self._shown().to_string(
            index=False, na_rep="-", float_format=partial(numeral, digits=3)
        )

    def table(self) -> pd.DataFrame:
        """Return one row for each mechanism and relation."""
        return self.found

    def data(self) -> list[dict[str, Any]]:
        """Return the rows that ``dpviz claims --format json`` prints."""
        records: list[dict[Any, Any]] = self.found.to_dict("records")
        return records

    def _shown(self) -> pd.DataFrame:
        return self.found[_PRINTED]


@asks(
    "audit every mechanism under every relation",
    ClaimsOptions,
    prints_to_out=True,
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
        ``to_json()`` writes the bytes of ``dpviz claims --format json``.

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
