"""Statements of Jiang, Xie and Zhang 2016, each with its test."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from dpviz.mechanisms import Mechanism
from dpviz.papers.jiang import lemmas, statements, theorem5, theorem6, theorems7_8, theorems9_10
from dpviz.papers.jiang import table1 as table
from dpviz.papers.jiang._shared import (
    DIFFERENCE,
    LAPLACE,
    PPCA,
    THEOREM_7,
    THEOREM_8,
    WISHART,
    Statement,
    lift,
)
from dpviz.papers.measurements import Mean
from dpviz.papers.said import (
    AtMost,
    Below,
    Between,
    Expression,
    Identity,
    Look,
    Order,
    Power,
    View,
    along,
    at,
    declared,
    row_of,
)
from dpviz.simulation.bounds import JIANG_TABLE_1

TABLES = list(theorems7_8.TABLES)


def _rate(mechanism: Mechanism) -> Look:
    """Return the test of a rate in Table 1, as a power fitted over the same d."""
    rate = JIANG_TABLE_1[mechanism.info.label]
    test = Power(
        along(mechanism.label, table.NORM),
        rate.power_over,
        slack=lift(table.DIMENSIONS),
        upper=True,
    )
    return Look(test, [table.PANEL])


def _above(upper: Mechanism, lower: Mechanism) -> Look:
    return Look(
        Order(along(upper.label, table.NORM), along(lower.label, table.NORM)), [table.PANEL]
    )


D = Expression(lambda view: float(view.panel.removeprefix("d = ")))
"""Dimension, read from the name of a panel."""
L1_OVER_D = row_of(lemmas.SENSITIVITY, lemmas.L1) / D


def _equal(power: float, logarithm: float) -> Expression:
    """Return the ratio at which both noises are equal, over a query's own ratio, from d = 10 on."""
    equal = along(theorem5.EQUAL[WISHART], theorem5.RATIO, theorem5.LARGE)
    return equal.each(lambda d: d**power * math.log(d) ** logarithm)


def _needed(statement: Statement, mechanism: Mechanism) -> Look:
    """Return the test of people needed over people stated; above 1, the stated n is too small."""
    enough = at(mechanism.label, theorems7_8.ENOUGH)
    return Look(AtMost(enough / at(statement.name, theorems7_8.STATED)), TABLES)


def _between(view: View) -> Mean:
    """Return the people that the Wishart mechanism needs, over the people that PPCA needs."""
    ends = (theorems7_8.FEW, theorems7_8.ENOUGH)
    few, enough = (view(WISHART.label, end) / view(PPCA.label, end) for end in ends)
    return (few * 0.5) - (enough * -0.5)


LEVEL_OVER_ROOT = along(theorem5.EQUAL[WISHART], theorem5.RATIO).each(math.sqrt).last
"""Ratio at which both noises are equal, over sqrt(d), at the largest d."""


def _crossing(delta: str) -> Callable[[View], float]:
    """Return the epsilon above which the exact delta exceeds the claimed delta."""

    def crossing(view: View) -> float:
        curve = view.curve(delta, statements.OVER)
        for (low, before), (high, after) in pairwise(curve.items()):
            if before.value <= 1 < after.value:
                share = math.log(before.value) / math.log(before.value / after.value)
                return float(low * (high / low) ** share)
        return math.inf

    return crossing


def _worst_stop(view: View) -> Mean:
    curve = view.curve("chain", statements.LOSS)
    return max(curve.values(), key=lambda mean: mean.value)


LEMMA_PANELS = [f"d = {d}" for d in lemmas.SEARCH_D]
TABLE_PANELS = [f"{lemmas.DEFINITE}, {name}" for name in lemmas.TABLES]

SAID = declared(
    "jiang",
    {
        "definite": Look(Identity(at(WISHART.label, lemmas.NEGATIVE), 0.0), TABLE_PANELS),
        "best-pure": _above(DIFFERENCE, WISHART),
        "kt-chain": Below(_worst_stop, 1.0, 1),
        "adds-to-points": Identity(at("points over appended", statements.RATIO), 1.0, within=0.1),
        "theorem-1": AtMost(at("Laplace", statements.LOSS)),
        "theorem-2": Look(
            tuple(AtMost(along(delta, statements.OVER)) for delta in statements.DELTAS),
            facts={
                f"from_{place}": _crossing(delta) for place, delta in enumerate(statements.DELTAS)
            },
        ),
        "laplace-indefinite": Look(Below(at(LAPLACE.label, lemmas.NEGATIVE), 0.0, 1), TABLE_PANELS),
        "theorem-3": AtMost(at(LAPLACE.label, statements.SPENT)),
        "theorem-4": Look(Below(at(WISHART.label, statements.DELTA), 1e-9), statements.PANELS),
        "nuclear": Look(AtMost(row_of(lemmas.SENSITIVITY, lemmas.NUCLEAR) / 3.0), LEMMA_PANELS),
        "lemma-1": Look(
            AtMost(row_of(lemmas.TAIL, lemmas.BEYOND).each(float)),
            [f"d = {d}" for d in lemmas.TAIL_D],
        ),
        "rate-laplace": _rate(LAPLACE),
        "rate-sulq": _rate(table.SULQ),
        "rate-wishart": _rate(WISHART),
        "rate-gauss": _rate(table.ANALYZE_GAUSS),
        "private-sulq": AtMost(at(statements.SULQ.label, statements.SPENT)),
        "private-gauss-source": Look(
            AtMost(at(statements.AG.label, statements.SPENT)), [statements.SOURCE]
        ),
        "private-gauss-here": Look(
            AtMost(at(statements.AG.label, statements.SPENT)), [statements.HERE]
        ),
        "less-than-laplace": _above(LAPLACE, WISHART),
        "gap-to-approximate": _above(WISHART, table.ANALYZE_GAUSS),
        "theorem-5-better": Look(
            Below(along(theorem5.PAIRS[0][2], theorem5.ADVANTAGE, theorem5.LARGE), 1.0, 1),
            [theorem5.PANEL],
            facts={"share": LEVEL_OVER_ROOT},
        ),
        "theorem-5-otherwise": Look(
            (Below(_equal(0.0, 0.0), 1.0, 1), Below(_equal(0.5, 0.5), 1.0, 1)),
            [theorem5.PANEL],
            facts={"share": LEVEL_OVER_ROOT},
        ),
        "theorem-6": Look(
            AtMost(along(WISHART.label, theorem6.LARGEST)),
            [theorem6.panel_of(*case) for case in theorem6.CASES],
        ),
        "rank-1-only": Below(at("signed", statements.SHARE), 0.95, 1),
        "theorem-7": _needed(THEOREM_7, WISHART),
        "rho-weak": Below(at("rho = sqrt(2)/2", statements.OVERLAP), math.sqrt(0.5) - 1e-9, 1),
        "theorem-8": _needed(THEOREM_8, PPCA),
        "factor-log-d": Look(
            Power(along("Theorem 7 over Theorem 8", statements.RATIO), 0.0, slack=0.05, upper=True),
            built=True,
        ),
        "time": Power(along("published", statements.WORK), 0.0, slack=0.05),
        "time-components": Look(Power(along("", lemmas.WORK), 0.0, slack=0.05), [lemmas.TIME]),
        "theorem-9": Look(
            Power(
                along(WISHART.label, theorems9_10.EXCESS),
                theorems9_10.THEOREM_9.power_over,
                slack=lift(theorems9_10.DIMENSIONS),
                upper=True,
            ),
            [theorems9_10.RANK, theorems9_10.HARD],
        ),
        "beats-kt": Look(
            Order(
                at(WISHART.label, lemmas.SHARE, float(lemmas.RIVAL_KS[-1])),
                at(lemmas.RIVAL.label, lemmas.SHARE, float(lemmas.RIVAL_KS[-1])),
            ),
            [lemmas.RIVALS],
        ),
        "beats-hp": Look(
            Below(along("d ln d over k^1.5 d ln^2 d", statements.RATIO), 1.0),
            ["k = 1", "k = 4", "k = 16"],
            built=True,
        ),
        "k-free": Look(AtMost(along(WISHART.label, theorems9_10.SHARE)), [theorems9_10.BY_K]),
        "comparable": Look(Between(_between, 0.5, 2.0), TABLES),
        "lemma-2": Look(Between(L1_OVER_D, 1.0, 2.0), LEMMA_PANELS),
        "lemma-3": AtMost(at("Lemma 3", statements.BOUND)),
        "lemma-4": AtMost(at("Lemma 4", statements.BOUND)),
        "square-root": Identity(at("left", statements.SIDE), at("right", statements.SIDE)),
        "theorem-10-printed": AtMost(along("always 0", statements.RATIO)),
        "theorem-10": Look(
            # At small d single values vary more, so the fitted power may err by a twentieth.
            Power(along(DIFFERENCE.label, theorems9_10.EXCESS), 1.0, slack=0.06),
            [theorems9_10.HARD],
        ),
    },
)
"""Statements in printing order."""
