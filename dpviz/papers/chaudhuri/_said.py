"""Statements of Chaudhuri, Sarwate and Sinha 2012, each with its test."""

from __future__ import annotations

import math

from dpviz.mechanisms import Mechanism
from dpviz.papers.chaudhuri import (
    figure1,
    figure2,
    standin,
    statements,
    table1,
    theorems,
    what_was_run,
)
from dpviz.papers.chaudhuri._shared import ADDED, DATA_SETS, NON_PRIVATE, PPCA, RANDOM, SULQ
from dpviz.papers.measurements import Absent, Mean
from dpviz.papers.said import (
    AtMost,
    Below,
    Between,
    Expression,
    Identity,
    Look,
    Monotone,
    Number,
    Order,
    Power,
    Stated,
    View,
    along,
    at,
    declared,
)

SETS = list(DATA_SETS)
WIDE = [key for key in SETS if key != "localization"]
MARKS = {"kddcup99": 0.6, "insurance": 0.5}
"""The highest tick marks of the printed axes, for panels whose marks the text reveals."""
MEMBERS = standin.MEMBERS
Q = figure1.UTILITY


def _q(mechanism: Mechanism) -> Expression:
    return along(mechanism.label, Q)


def _gain(mechanism: Mechanism) -> Expression:
    return _q(mechanism).last - _q(mechanism).first


def _height(mechanism: Mechanism) -> Expression:
    """Return a mechanism's score between random subspaces (0) and exact PCA (1), by n."""
    return (_q(mechanism) - _q(RANDOM)) / (_q(NON_PRIVATE) - _q(RANDOM))


ABOVE_PPCA = _q(NON_PRIVATE) - _q(PPCA)


def _mark(view: View) -> float:
    if view.panel not in MARKS:
        raise Absent  # The text of the paper does not state the mark for this data set.
    return MARKS[view.panel]


OVER_MARK = _q(NON_PRIVATE).last / Expression(_mark)
MARK_LEFT = _q(NON_PRIVATE).last - Expression(_mark)
"""Distance of the curve above the highest tick mark; the next mark is .1 higher."""


def _people(series: str) -> Expression:
    return Expression(lambda view: view.curve(series, theorems.PEOPLE[view.panel]))


def _overlaps(view: View) -> dict[float, Mean]:
    """Return the overlap of pure mechanisms at the bound's n, over the rho that it allows."""
    rhos = {float(d): theorems.least_rho(d) for d in theorems.HARD_D}
    return {
        place + d / 1_000: mean * (1 / rhos[d])
        for place, mechanism in enumerate(theorems.PURE)
        for d, mean in view.curve(mechanism.label, theorems.OVERLAP).items()
    }


def _accuracy(mechanism: Mechanism) -> Expression:
    return at(mechanism.label, table1.ACCURACY)


def _deviation(mechanism: Mechanism) -> Expression:
    """Return the standard deviation of releases, with its standard error if they are normal."""

    def deviation(view: View) -> Mean:
        mean = _accuracy(mechanism)(view)
        value = mean.error * math.sqrt(mean.draws)
        return Mean.near(value, value / math.sqrt(2 * max(mean.draws - 1, 1)), mean.draws)

    return Expression(deviation)


def _accuracy_of(mechanism: Mechanism) -> Look:
    def tried(view: View) -> list[Mean]:
        return [view(f"{mechanism.label}, {name}", table1.TRIED) for name in table1.TRIED_NAMES]

    number = table1.STATED["kddcup99", mechanism]
    return Look(
        Number(_accuracy(mechanism), number),
        ["kddcup99"],
        facts={
            "nearest": lambda v: min(abs(mean.value - number.value) for mean in tried(v)),
            "best": lambda v: max(mean.value for mean in tried(v)),
            "varies": _deviation(mechanism),
        },
    )


def _share(mechanism: Mechanism) -> Expression:
    return along(mechanism.label, figure2.SHARE)


def _approaches(mechanism: Mechanism) -> Look:
    last = at(mechanism.label, figure2.SHARE, figure2.ALPHAS[-1])
    return Look((Monotone(_share(mechanism), 1), Below(last, 0.99, 1)), [figure2.DRAWN])


def _moderate(mechanism: Mechanism) -> Expression:
    return at(mechanism.label, figure2.SHARE, figure2.MODERATE)


SAID = declared(
    "chaudhuri",
    {
        "ninety-degrees": Look(
            Identity(along("", theorems.TURN), math.sqrt(2), within=1e-5), [theorems.SENSITIVE]
        ),
        "frobenius": AtMost(at("any rows", statements.NORM)),
        "eq-4": Identity(at("left", statements.SIDE), at("right", statements.SIDE)),
        "sulq-variance": AtMost(at(statements.FULL_SULQ.label, statements.SPENT)),
        "complex": Look(Below(along("", theorems.COMPLEX), 0.0, 1), [theorems.RAW]),
        "theorem-1": AtMost(at(SULQ.label, statements.SPENT)),
        "theorem-2": Look(AtMost(at(PPCA.label, statements.SPENT)), built=True),
        "gibbs": Look(Below(at(PPCA.label, figure1.RHAT), 1.1), SETS),
        "linear-in-d": Look(
            # The numbers of people needed are uncertain, so the fitted power may err by a tenth.
            Power(_people(PPCA.label), 1.0, slack=0.12, upper=True),
            [theorems.BY_D],
        ),
        "inverse-in-alpha": Look(
            Power(_people(PPCA.label), -1.0, slack=0.2), [theorems.BY_ALPHA, theorems.BY_GAP]
        ),
        "correlation-gap": Power(along(PPCA.label, statements.NEED), 1.0, slack=0.05),
        "theorem-3": Look(
            AtMost(along(PPCA.label, theorems.ENOUGH) / _people(theorems.STATED)),
            list(theorems.PLACES),
        ),
        "theorem-4": Look(AtMost(_overlaps), ["Theorem 4"]),
        "lower-rho": AtMost(along("Theorem 4 over the need", statements.TIMES)),
        "square-root-factors": Power(
            along("Theorem 3 over Theorem 4", statements.TIMES), 0.5, slack=0.15
        ),
        "theorem-5": Look(Power(_people(SULQ.label), 1.5, slack=0.07), [theorems.BY_D]),
        "four-n": Look(
            Number(at("", figure1.ROWS), {key: Stated(float(DATA_SETS[key].n)) for key in SETS}),
            SETS,
        ),
        "features": Look(
            Number(
                at("", figure1.FEATURES), {key: Stated(float(DATA_SETS[key].d)) for key in SETS}
            ),
            SETS,
        ),
        "k-rule": Look(Below(at("", figure1.TOP_SHARE), figure1.THRESHOLD, 1), SETS),
        "axes": Look((Below(OVER_MARK, 0.95, 1), Below(MARK_LEFT, 0.1)), SETS),
        "always-above": Look(Order(_q(PPCA), _q(SULQ)), SETS, members=MEMBERS),
        "approaches": Look(Order(ABOVE_PPCA.first, ABOVE_PPCA.last), SETS, members=MEMBERS),
        "near-random": Look(Below(_height(SULQ), figure1.NEAR), WIDE, members=MEMBERS),
        "except-localization": Look(
            Below(_height(SULQ).last, figure1.NEAR, 1),
            ["localization"],
            members=MEMBERS,
        ),
        "both-improve": Look(
            (Below(_gain(PPCA), 0.0, 1), Below(_gain(SULQ), 0.0, 1)), SETS, members=MEMBERS
        ),
        "faster": Look(Order(_gain(PPCA), _gain(SULQ)), SETS, members=MEMBERS),
        "runs-faster": Look(
            Order(at(PPCA.label, theorems.SECONDS), at(SULQ.label, theorems.SECONDS)),
            list(theorems.SHAPES),
        ),
        "exact-level": Look(
            Below(_gain(NON_PRIVATE) / _q(NON_PRIVATE).last, 0.01), SETS, members=MEMBERS
        ),
        "cannot-improve": Look(tuple(Below(_q(one) / _q(PPCA), 1.1) for one in ADDED), SETS),
        **{key: _accuracy_of(mechanism) for key, mechanism in what_was_run.ROWS.items()},
        "almost-as-good": Look(
            Below(_accuracy(NON_PRIVATE) - _accuracy(PPCA), table1.ALMOST),
            list(table1.POSITIVE),
        ),
        "a-little-worse": Look(
            (
                Order(_accuracy(PPCA), _accuracy(SULQ)),
                Order(_accuracy(PPCA), _accuracy(RANDOM)),
            ),
            list(table1.POSITIVE),
        ),
        "more-variable": Look(
            tuple(Below(_deviation(PPCA) / _deviation(one), 1.0) for one in (SULQ, RANDOM)),
            list(table1.POSITIVE),
        ),
        "footnote": Look(
            Below(_accuracy(NON_PRIVATE) - at("", table1.MAJORITY), table1.ALMOST),
            list(table1.FOOTNOTE),
        ),
        "figure-2-axis": Look(Between(at("", figure2.CEILING), 0.7, 0.8), [figure2.DRAWN]),
        "figure-2-thousand": Look(
            Identity(
                along(figure2.THOUSAND.label, figure2.LONG_SHARE),
                lambda v: {
                    alpha: v(PPCA.label, figure2.SHARE, alpha) for alpha in figure2.THOUSAND_ALPHAS
                },
                within=0.01,
            ),
            [figure2.DRAWN],
        ),
        "ppca-approaches": _approaches(PPCA),
        "sulq-approaches": _approaches(SULQ),
        "moderate": Look(Below(_moderate(PPCA), 0.5, 1), [figure2.DRAWN]),
        "large-gap": Look(Below(_moderate(PPCA) - _moderate(SULQ), 0.2, 1), [figure2.DRAWN]),
        "too-small": Look(Below(_height(ADDED[0]), 0.5), SETS),
    },
)
"""Statements in printing order; alpha is .1 unless stated otherwise."""
