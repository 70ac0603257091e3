"""The answer of `dpviz.audit`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.auditing.result import Audit, AuditVerdict
from dpviz.core.number_text import numeral
from dpviz.report.sentences.claims import audit_verdict
from dpviz.report.sentences.phrases import text_table
from dpviz.studies import Answer

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure


class Audited(Answer):
    """Lower bounds on what a mechanism really costs.

    Attributes
    ----------
    audit : dpviz.auditing.Audit
        The counts behind the bounds, and the exact loss where there is one.
    """

    figures: ClassVar[tuple[str, ...]] = ("delta",)

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    @property
    def verdict(self) -> AuditVerdict:
        """Refuted, consistent or tight, as a text; an audit never proves a claim."""
        return self.audit.verdict

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at the claimed delta."""
        return self.audit.epsilon_lower

    @property
    def delta_lower(self) -> float:
        """The lower bound on delta at `at_epsilon`."""
        return self.audit.delta_lower

    @property
    def at_epsilon(self) -> float:
        """The epsilon at which `delta_lower` is stated."""
        return self.audit.at_epsilon

    def summary(self) -> str:
        """Return the verdict, and what was measured and how."""
        return f"{audit_verdict(self.audit)}\n{self.audit.evidence}"

    def printed(self) -> str:
        """Return what is claimed and what was found, as the command prints them."""
        answer = self.data()
        claimed = answer.pop("claimed")
        promise = "nothing" if claimed is None else f"epsilon {numeral(claimed['epsilon'], 6)}"
        if claimed is not None and claimed["delta"]:
            promise += f", delta {numeral(claimed['delta'], 6)}"
        rows = [
            [name, numeral(value, 4) if isinstance(value, float) else str(value)]
            for name, value in answer.items()
        ]
        return text_table(("claimed", promise), rows)

    def table(self) -> pd.DataFrame:
        """Return the bounds: one row for epsilon, one for delta at each epsilon looked at.

        Columns ``bound, at_epsilon, claimed, measured, exact``; missing where nothing is claimed
        or no exact account is known.
        """
        found = self.audit
        claim, exact = found.claim, found.exact
        rows: list[tuple[str, float | None, float | None, float, float | None]] = [
            (
                "epsilon",
                None,
                None if claim is None else claim.epsilon,
                found.measured.epsilon_lower,
                exact.epsilon if exact is not None and math.isfinite(exact.epsilon) else None,
            )
        ]
        for number, epsilon in enumerate(found.at_epsilons):
            rows.append(
                (
                    "delta",
                    epsilon,
                    None if claim is None else claim.delta,
                    found.measured.deltas[number],
                    None if exact is None else exact.deltas[number],
                )
            )
        return pd.DataFrame(rows, columns=["bound", "at_epsilon", "claimed", "measured", "exact"])

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz audit --format json`` prints."""
        return self.audit.to_json()

    def figure(self, name: str | None = None) -> Figure:
        """Draw the lower bounds on delta at each epsilon looked at, beside what is claimed.

        Parameters
        ----------
        name : {"delta"}, optional

        Returns
        -------
        plotly.graph_objects.Figure
        """
        from dpviz.report.figures.audited import audited_figure

        self._named(name)
        return audited_figure(self.table(), self.audit.mechanism.label)
