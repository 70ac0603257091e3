"""Claims: what each mechanism promises, what holds, and evidence a visitor can rerun."""

PAGE = {
    "title": "Claims",
    "icon": ":material/gavel:",
    "place": 50,
    "term": "both-worlds",
}

import streamlit as st

from dpviz.auditing.table import claims_now
from pages.ui import (
    attacking,
    auditing,
    controls,
    loading,
    promises,
    refuting,
    shell,
    state,
    unprotected,
)
from pages.ui.guard import guard

current = shell.through_entry()
seed = current.settings.seed

st.title("Claims: which privacy promises hold?", anchor=False)
problem, budget = loading.problem_and_budget(current)
with guard():
    claims = claims_now(problem, budget)
    promises.verdict(claims, problem, budget)
    controls.setting("part", "claims", row=True)
    with st.container(key="claims-shown"):
        match state.get("part", "claims"):
            case "verdicts":
                promises.verdicts(claims)
            case "spending":
                promises.spending(problem, budget)
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
