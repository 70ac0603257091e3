"""Claims: what each mechanism promises, what holds, and evidence a visitor can rerun."""

from dataclasses import replace

import streamlit as st

from dpviz.base.number_text import numeral
from dpviz.claims import attack, exhibits, finds, leaks
from dpviz.claims.audit import DEFAULT_D
from dpviz.claims.table import STATUSES, audit_command, claims_now, filtered, spending_table
from dpviz.figures.claims import (
    attack_figure,
    cone_figure,
    delta_figure,
    gibbs_figure,
    posterior_figure,
    spending_figure,
    support_figure,
    turning_figure,
)
from dpviz.guide import person
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.narrative import claims as claims_words
from dpviz.narrative import phrases
from dpviz.narrative.claims import sentence
from dpviz.values.problem import Budget, Problem, Relation
from pages.ui import claim_cache, loading, parts, shell, state
from pages.ui import one_person as one_person_picture
from pages.ui.guard import guard

current = shell.through_entry()

ANY = "any"
TRIALS = (1_000, 2_000, 5_000, 10_000, 40_000)
# Without a delta in the setting, the Gaussian exhibit shows this one.
EXHIBIT_DELTA = 1e-5


def label_of(key: str) -> str:
    """Return the display name of a mechanism."""
    return all_mechanisms()[key].info.label


def claims_table(problem: Problem, budget: Budget) -> None:
    """Draw the claims table: sortable, filtered by status, to be taken along."""
    claims = claims_now(problem, budget)
    st.markdown(f"**{claims_words.claims_verdict(claims)}**")
    st.caption(
        f"At {phrases.budget_words(budget)}, {problem.relation} relation, n = {problem.n:,}, "
        f"d = {problem.d}, k = {problem.k}, all set above. A promise may hold under one "
        "relation and fail under the other."
    )
    st.header("What each mechanism promises, and what holds", anchor="claims")
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    picked = left.selectbox(
        "Status", [ANY, *STATUSES], key="claims.status", persist_state="session"
    )
    shown = filtered(claims, None if picked == ANY else picked)
    right.download_button(
        "This table (CSV)",
        lambda: shown.to_csv(index=False),
        file_name="dpviz-claims.csv",
        on_click="ignore",
        key="claims.csv",
        icon=":material/download:",
    )
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    st.dataframe(
        parts.written(shown, {"claimed_delta": 2, "true_delta": 2}),
        hide_index=True,
        placeholder="–",
        key="claims.table",
        alt="Every mechanism's claim, status, claimed and spent epsilon, evidence and command",
        column_config={
            "mechanism": text("Mechanism", pinned=True),
            "claim": text("Claim"),
            "relation": text("Relation"),
            "status": text("Status"),
            "claimed_epsilon": number("Claimed epsilon", format="%.3g"),
            "spent_epsilon": number(
                "Spent epsilon", format="%.3g", help="A dash: no epsilon describes the release."
            ),
            "claimed_delta": parts.numeral_column("Claimed delta"),
            "true_delta": parts.numeral_column(
                "True delta", help="Really given at the epsilon claimed."
            ),
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
    st.header("What every mechanism really spends", anchor="spending")
    caption = claims_words.spending_caption(table)
    st.plotly_chart(
        spending_figure(table), key="claims.spending", alt=f"Epsilon spent and claimed. {caption}"
    )
    st.caption(caption)
    parts.numbers("claims.spending", table)


def audit_now(problem: Problem, budget: Budget) -> None:
    """Offer an audit of any mechanism, and show the last one."""
    st.header("Audit it now", anchor="audit")
    st.markdown(
        "An audit releases two neighbouring made-up tables many times, picks the event that tells "
        "them apart best on half of the draws, and counts it on the other half."
    )
    keys = list(all_mechanisms())
    first, second, third = st.columns(3)
    key = first.selectbox(
        "Mechanism",
        keys,
        index=keys.index(exhibits.moving_cone().key),
        format_func=label_of,
        key="claims.audit.mechanism",
        persist_state="session",
    )
    epsilon = second.select_slider(
        "Epsilon to audit",
        exhibits.EPSILONS,
        value=1.0,
        key="claims.audit.epsilon",
        persist_state="session",
    )
    d = third.slider(
        "Features d", 2, 20, DEFAULT_D, key="claims.audit.dimension", persist_state="session"
    )
    left, right = st.columns(2)
    relation = left.segmented_control(
        "Neighbours",
        [str(relation) for relation in Relation],
        default=str(Relation.REPLACE),
        required=True,
        key="claims.audit.relation",
        persist_state="session",
    )
    trials = right.selectbox(
        "Releases of each table in each half",
        TRIALS,
        index=TRIALS.index(5_000),
        format_func=lambda count: f"{count:,}",
        key="claims.audit.trials",
        persist_state="session",
    )
    mechanism = parse_variant(key)
    asked = attack.audited_budget(mechanism, epsilon, budget)
    k = min(problem.k, d - 1)
    wanted = (
        key,
        (asked.epsilon, asked.delta),
        d,
        k,
        relation or str(Relation.REPLACE),
        current.settings.seed,
        trials,
    )

    def run() -> None:
        st.session_state["claims.audited"] = wanted

    st.button(
        "Run the audit",
        key="claims.audit.run",
        icon=":material/gavel:",
        type="primary",
        on_click=state.on_change(run),
    )
    setting = replace(problem, relation=Relation(wanted[4]))
    st.code(
        audit_command(mechanism, setting, asked, d=d, trials=trials, seed=current.settings.seed),
        language="bash",
        wrap_lines=True,
    )
    if st.session_state.get("claims.audited") != wanted:
        st.caption("Takes a second or two with 5,000 releases, and up to a minute with the most.")
        return
    with guard():
        verdict(mechanism, wanted)


def verdict(
    mechanism: Mechanism, wanted: tuple[str, tuple[float, float], int, int, str, int, int]
) -> None:
    """Show what an audit found, and the attack it ran."""
    found = claim_cache.audited(*wanted)
    st.markdown(f"**{claims_words.audit_verdict(found)}**")
    st.markdown(found.evidence)
    st.caption(
        "What an audit cannot see: it gives lower bounds from one attack, so a mechanism that "
        "spends twice its claim can pass. It can refute a claim and never prove one; proofs and "
        "tests of the noise's distribution do the rest."
    )
    measured = attack.attack_seen(found)
    if found.claim is None:
        return
    claimed = attack.claimed_curve(found.claim)
    caption = (
        "Solid grey: misses against false alarms of the attack that the audit ran, with a 95 % "
        "band for the whole curve. Dotted: what the claim allows; an attack below it breaks the "
        "claim."
    )
    st.plotly_chart(
        attack_figure(claimed, mechanism, "the claim", measured),
        key="claims.audit.curve",
        alt=f"Trade-off of the attack against the claim. {caption}",
    )
    st.caption(caption)
    parts.numbers("claims.audit", attack.attack_seen_table(measured))


def refuted(budget: Budget) -> None:
    """Draw the refutations."""
    seed = current.settings.seed
    st.header("Refutations, live", anchor="refutations")
    left, right = st.columns(2)
    epsilon = left.select_slider(
        "Epsilon of the demonstrations",
        exhibits.EPSILONS,
        value=1.0,
        key="claims.epsilon",
        persist_state="session",
    )
    d = right.slider("Features d of the first", 2, 20, 5, key="claims.d", persist_state="session")
    moving_cone(epsilon, d, seed)
    turning(epsilon, seed)
    st.markdown("### The true delta of classical Gaussian noise")
    deltas = claim_cache.true_deltas(budget.delta or EXHIBIT_DELTA)
    if deltas.empty:
        st.caption(f"At delta {numeral(budget.delta)} no Gaussian release exceeds its claim.")
    else:
        caption = claims_words.delta_caption(deltas)
        st.plotly_chart(
            delta_figure(deltas, budget.epsilon),
            key="claims.delta",
            alt=f"True delta against epsilon. {caption}",
        )
        st.caption(caption)
        parts.numbers("claims.delta", deltas)
    public_code(budget)
    st.markdown("### A Gibbs chain beside the exact law")
    chains = claim_cache.gibbs(epsilon, seed)
    caption = claims_words.gibbs_caption(chains)
    st.plotly_chart(
        gibbs_figure(chains), key="claims.gibbs", alt=f"Mean score after each sweep. {caption}"
    )
    st.caption(
        f"{caption} Three features, two components: the direction left out has a Bingham law whose "
        "mean is known."
    )
    parts.numbers("claims.gibbs", chains)


def moving_cone(epsilon: float, d: int, seed: int) -> None:
    """Draw how often one-sided noise betrays its table, and why."""
    broken, repaired = exhibits.moving_cone(), exhibits.repaired_cone()
    st.markdown(f"### {broken.label}: a support that moves with the data")
    table = claim_cache.support(d, epsilon, seed)
    caption = claims_words.support_caption(table, epsilon, d)
    st.plotly_chart(
        support_figure(table, epsilon),
        key="claims.support",
        alt=f"Share of releases that betray their table. {caption}",
    )
    st.caption(caption)
    parts.numbers("claims.support", table)
    cone = claim_cache.cone(epsilon, seed)
    caption = claims_words.cone_caption(cone)
    st.plotly_chart(cone_figure(cone), key="claims.cone", alt=f"Releases at d = 2. {caption}")
    st.caption(caption)
    st.caption(
        f"Each release less the full table's matrix, in units of 1/n. {repaired.label} "
        f"{repaired.info.summary[0].lower()}{repaired.info.summary[1:]}"
    )
    parts.numbers("claims.cone", cone)


def turning(epsilon: float, seed: int) -> None:
    """Draw the published direction of a table of three, with and without one row."""
    label = exhibits.bare_directions().label
    st.markdown(f"### {label}: the direction itself is published")
    rows, table = exhibits.turning_rows(), exhibits.turning_table(epsilon, seed)
    caption = claims_words.turning_caption(table, label)
    st.plotly_chart(
        turning_figure(rows, table), key="claims.turning", alt=f"Published directions. {caption}"
    )
    st.caption(caption)
    left, right = st.columns(2)
    left.dataframe(rows, hide_index=True, key="claims.turning.rows", alt="The rows of both tables")
    right.dataframe(
        table,
        hide_index=True,
        key="claims.turning.releases",
        alt="The published direction of each draw",
        column_config={"angle": st.column_config.NumberColumn("angle, degrees", format="%.1f")},
    )


def public_code(budget: Budget) -> None:
    """Show two slips found in public code."""
    seed, number = current.settings.seed, st.column_config.NumberColumn
    st.markdown("### Found in public code: a mask that mirrors the data")
    table = finds.mask_table(budget.epsilon, budget.delta or EXHIBIT_DELTA, seed)
    st.dataframe(
        table,
        hide_index=True,
        key="claims.mask",
        alt="Off-diagonal entries of a made-up table, as read off the release",
        column_config={
            "entry": "Entry",
            "exact": number("In the table", format="%.6f"),
            "read_off": number("Read off that release", format="%.6f"),
            "as_meant": number("Published as meant", format="%.6f"),
        },
    )
    st.caption(
        f"{claims_words.mask_caption(table)} Recomputed here from this description alone; the code "
        f"is at {finds.MASK_SOURCE}."
    )
    st.markdown("### Found in public code: two samplers that are too sharp")
    drawn = claim_cache.samplers(seed)
    st.dataframe(
        drawn,
        hide_index=True,
        placeholder="–",
        key="claims.samplers",
        alt="Mean of the first coordinate squared, by each sampler",
        column_config={
            "sampler": "Sampler",
            "mean": number("Mean of u_1^2", format="%.4f"),
            "se": number("Standard error", format="%.4f"),
            "draws": number("Draws"),
            "measured": "Measured",
        },
    )
    st.caption(claims_words.sampler_caption(drawn))
    st.code("python -m benchmarks.bingham", language="bash")


def attacker(problem: Problem, budget: Budget) -> None:
    """Draw what a release lets an attacker conclude about one person."""
    st.header("The attacker's view", anchor="attacker")
    st.markdown(
        "The attacker knows every other row and both candidates for the last, and wants to tell "
        "whether a person is in the table."
    )
    left, right = st.columns(2)
    keys = list(all_mechanisms())
    key = left.selectbox(
        "Release by",
        keys,
        index=keys.index(attack.exhibited(problem, budget).key),
        format_func=label_of,
        key="claims.attack.mechanism",
        persist_state="session",
    )
    percents = right.slider(
        "What a guesser believed before, %",
        1,
        99,
        50,
        key="claims.attack.prior",
        persist_state="session",
    )
    mechanism, prior = parse_variant(key), percents / 100
    reason = mechanism.why_not(problem, budget)
    if reason is not None:
        st.info(f"{mechanism.label} cannot run here: {reason}.", icon=":material/info:")
        return
    spent = mechanism.spent(problem, budget)
    seen = attack.attacker_curve(mechanism, problem, budget)
    table = attack.attack_table(seen, prior)
    st.markdown(f"**{sentence(mechanism.claim(problem, budget), spent, prior)}**")
    first, second = st.columns(2)
    caption = claims_words.attack_caption(seen)
    first.plotly_chart(
        attack_figure(seen, mechanism, mechanism.label),
        key="claims.attack",
        alt=f"Trade-off of a membership test. {caption}",
    )
    first.caption(caption)
    caption = claims_words.posterior_caption(table, prior, seen.exact)
    second.plotly_chart(
        posterior_figure(table, prior, mechanism, attack.limit_of(prior, spent)),
        key="claims.posterior",
        alt=f"Belief after an alarm. {caption}",
    )
    second.caption(caption)
    parts.numbers("claims.attack", table)


def one_person(budget: Budget) -> None:
    """Draw a row that can be dragged and what releases say of it."""
    st.header("Drag one person", anchor="person")
    st.markdown(
        "Both clouds are releases of the same table, with her row and with it zeroed. The "
        "attacker knows everybody else."
    )
    shown = [
        key
        for key in person.candidates()
        if all_mechanisms()[key].info.featured or all_mechanisms()[key].info.family == "iterative"
    ]
    one_person_picture.draw(
        "claims.person",
        shown,
        budget.delta or EXHIBIT_DELTA,
        epsilon=budget.epsilon,
        seed=current.settings.seed,
    )


def exploring() -> None:
    """Explain what a guarantee does not cover, with two leaks computed."""
    st.header("What exploring does not protect", anchor="exploring")
    st.markdown(
        "A guarantee covers the release and nothing that was fixed before it. The mean, the row "
        "bound, the scales and k are assumed known; taken from the data and published, they leak "
        "with certainty, whatever epsilon is. Two examples with six invented people, of whom the "
        "attacker knows all but the last:"
    )
    left, right = st.columns(2)
    mean, bound = leaks.mean_leak_table(), leaks.bound_leak_table()
    number = st.column_config.NumberColumn
    with left:
        st.markdown("**The mean gives the last row away**")
        st.dataframe(
            mean,
            hide_index=True,
            key="claims.mean",
            alt="Row recovered from the mean",
            column_config={
                "feature": "Feature",
                "sum_of_known": number("Sum of the known", format="%.4g"),
                "published_mean": number("Published mean", format="%.6g"),
                "recovered": number("Recovered", format="%.4g"),
                "true": number("True", format="%.4g"),
            },
        )
        st.caption(claims_words.mean_leak_caption(mean))
    with right:
        st.markdown("**The row bound tells whether they are in**")
        st.dataframe(
            bound,
            hide_index=True,
            key="claims.bound",
            alt="Row bound of both tables",
            column_config={
                "table": "Table",
                "largest_known": number("Longest known row", format="%.4g"),
                "published_bound": number("Published bound", format="%.4g"),
            },
        )
        st.caption(claims_words.bound_leak_caption(bound))
    st.caption(
        "Looking at exact components, comparing mechanisms on the real table, and moving sliders "
        "until a picture pleases are not covered either: choose on public or synthetic data."
    )
    if current.prepared is not None:
        parts.assumed_public(current.prepared)


st.title("Claims: which privacy promises hold?", anchor=False)
problem, budget = loading.problem_and_budget(current)
with guard():
    claims_table(problem, budget)
    audit_now(problem, budget)
    refuted(budget)
    spending(problem, budget)
    attacker(problem, budget)
    one_person(budget)
exploring()
