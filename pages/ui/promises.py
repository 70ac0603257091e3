"""What each mechanism promises, what holds, and what it really spends."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpviz.auditing.table import STATUSES, filtered, spending_table
from dpviz.core.csv_text import csv_text
from dpviz.core.problem import Budget, Problem
from dpviz.report.figures.claims import spending_figure
from dpviz.report.sentences import claims as claims_words
from dpviz.report.sentences import phrases
from pages.ui import parts

ANY = "any"


def verdict(claims: pd.DataFrame, problem: Problem, budget: Budget) -> None:
    """Say how many promises fail, and at which setting.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.CLAIM_COLUMNS`, from `dpviz.auditing.table.claims_now`.
    problem : Problem
    budget : Budget
    """
    st.markdown(f"**{claims_words.claims_verdict(claims)}**")
    st.caption(
        f"At {phrases.budget_words(budget)}, {problem.relation} relation, n = {problem.n:,}, "
        f"d = {problem.d}, k = {problem.k}, all set above. A promise may hold under one "
        "relation and fail under the other."
    )


def verdicts(claims: pd.DataFrame) -> None:
    """Draw the claims table: sortable, filtered by status, to be taken along.

    Parameters
    ----------
    claims : DataFrame
        As `verdict` takes it.
    """
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    picked = left.selectbox(
        "Status", [ANY, *STATUSES], key="claims.status", persist_state="session"
    )
    shown = filtered(claims, None if picked == ANY else picked)
    right.download_button(
        "This table (CSV)",
        lambda: csv_text(shown),
        file_name="dpviz-claims.csv",
        on_click="ignore",
        key="claims.csv",
        icon=":material/download:",
    )
    text = st.column_config.TextColumn
    rows, columns = parts.numerals(
        shown,
        {
            "claimed_epsilon": ("Claimed epsilon", 3),
            "spent_epsilon": ("Spent epsilon", 3, "A dash: no epsilon describes the release."),
            "claimed_delta": ("Claimed delta", 2),
            "true_delta": ("True delta", 2, "Really given at the epsilon claimed."),
        },
    )
    st.dataframe(
        rows,
        hide_index=True,
        placeholder="–",
        key="claims.table",
        alt="Every mechanism's claim, status, claimed and spent epsilon, evidence and command",
        column_config={
            "mechanism": text("Mechanism", pinned=True),
            "claim": text("Claim"),
            "relation": text("Relation"),
            "status": text("Status"),
            **columns,
            "evidence": text("Evidence", width="large"),
            "command": text("Rerun", width="large"),
        },
    )
    st.caption(
        f"{len(shown)} of {len(claims)} mechanisms; click a heading to sort. The commands audit on "
        "made-up worst tables; `python -m dpviz claims` recomputes every row with its audit."
    )


def spending(problem: Problem, budget: Budget) -> None:
    """Draw what every mechanism spends beside what it claims."""
    table = spending_table(problem, budget)
    if table.empty:
        return
    caption = claims_words.spending_caption(table)
    st.plotly_chart(
        spending_figure(table), key="claims.spending", alt=f"Epsilon spent and claimed. {caption}"
    )
    st.caption(caption)
    parts.numbers("claims.spending", table)
