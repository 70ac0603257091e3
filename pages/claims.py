"""Claims: the promise of each mechanism, whether it holds, and evidence to rerun."""

PAGE = {
    "title": "Claims",
    "icon": ":material/gavel:",
    "place": 50,
    "term": "both-worlds",
    "unread": ("mechanisms",),
    "about": "Each small chart shows the privacy promise of one mechanism. A promise holds as "
    "stated, holds with more noise than needed, or does not hold. Select a promise to see the "
    "evidence. You can also run an audit or an attack yourself.",
}

import streamlit as st

from dpviz.auditing.table import claims_now
from dpviz.report.sentences import claims as claims_words
from pages.ui import (
    attacking,
    auditing,
    loading,
    parts,
    promises,
    refuting,
    shell,
    state,
    unprotected,
)
from pages.ui.guard import guard

current = shell.through_entry()
seed = current.settings.seed

parts.question("Do the mechanisms keep their privacy promise?")
problem, budget = loading.problem_and_budget(current)
with guard():
    claims = claims_now(problem, budget)
    part = state.get("part", "claims")
    step = promises.first_step(claims, budget) if part == "verdicts" else promises.BACK
    parts.lead(claims_words.headline(claims), *step)
    with st.container(key="claims-shown"):
        match part:
            case "verdicts":
                promises.shelves(claims, problem, budget, seed)
            case "audit":
                auditing.draw(problem, budget, seed)
            case "refutations":
                refuting.draw(budget, seed)
            case "attacker":
                attacking.attacker(problem, budget)
            case "person":
                attacking.one_person(budget, seed)
            case "exploring":
                unprotected.draw(current.prepared)
