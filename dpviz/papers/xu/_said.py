"""Statements of Xu, Yang and Bai 2019, each statement with its test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpviz.datasets import remote
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.measurements import Absent, Mean
from dpviz.papers.said import (
    AtMost,
    Below,
    Expression,
    Identity,
    Look,
    Monotone,
    Order,
    Power,
    View,
    along,
    at,
    declared,
    row_of,
)
from dpviz.papers.xu import (
    _shared,
    figure3,
    figure4,
    figure5,
    statements,
    theorems,
    versions,
)
from dpviz.papers.xu._shared import BY_LABEL, EXACT, HELD, LIP, LOP, RANDOM, SETS, facts

DIFFERENCE = parse_variant("wishart_difference")
LABELS = [data.label for data in SETS]
FIVE = [data.label for data in figure5.SETS]
DIMENSIONS = [f"d = {d}" for d in theorems.SEARCH_D]
Curve = dict[float, Mean]


TWICE_D = Expression(lambda view: 2 * float(view.panel.removeprefix("d = ")))
"""Twice the dimension that a panel's name states."""


def _from_k(curve: Curve, view: View) -> Curve:
    """Return the curve from the least k with 85 % of the variance on, if a table has such a k."""
    least = facts(view).k
    return {x: mean for x, mean in curve.items() if x >= least}


THETA = along(_shared.SIMULATED, _shared.THETA)


def _scaled_theta(view: View) -> Curve:
    factor = BY_LABEL[view.panel].noise
    curve = THETA(view)
    base = curve if view.panel in _shared.BY_SHAPE else _from_k(curve, view)
    return {x: mean * factor for x, mean in base.items()}


def _eta(epsilons: Sequence[float]) -> Callable[[View], Curve]:
    """Return the curve of eta or, if the data is absent, an upper bound that holds for any table.

    No row is longer than 1 and Z1 projects rows, so ||Z1 - X||^2 is at most n. Z2 - X is at least
    as long as E2, whose n k entries have variance 2 (2d/epsilon)^2. So eta is at most epsilon/(2d
    sqrt(2k)) on any table; the bound is largest at k = 1. (The length of E2 has a relative standard
    deviation of sqrt(5/(4 n k)), below 3 % at these n.)
    """

    def eta(view: View) -> Curve:
        try:
            return dict(ETA_CURVE(view))
        except Absent:
            return _most_eta(view, epsilons)

    return eta


def _most_eta(view: View, epsilons: Sequence[float]) -> Curve:
    d = remote.sets()[BY_LABEL[view.panel].key].d
    most = {x: x / (2 * d * math.sqrt(2)) for x in epsilons}
    return {x: Mean.near(value, math.nan, 1) for x, value in most.items()}


def _scaled_eta(factor: str, epsilons: Sequence[float]) -> Callable[[View], Curve]:
    def scaled(view: View) -> Curve:
        curve = _eta(epsilons)(view)
        absent = curve == _most_eta(view, epsilons)
        base = _from_k(curve, view) if factor == "by_k" and len(curve) > 1 else curve
        times: float = getattr(BY_LABEL[view.panel], factor)
        product = {x: mean * times for x, mean in base.items()}
        if absent and max(mean.value for mean in product.values()) >= 1:
            raise Absent  # If the bound is this large, it does not rule out a lower eta.
        return product

    return scaled


def _error_of(mechanism: Mechanism) -> Expression:
    return along(mechanism.label, _shared.ERROR)


def _fall(mechanism: Mechanism) -> Expression:
    return _error_of(mechanism).last / _error_of(mechanism).first


def _accuracy(label: str, epsilon: float = figure5.HIGH) -> Expression:
    return at(label, figure5.ACCURACY, epsilon)


def _accuracies(label: str) -> Expression:
    return along(label, figure5.ACCURACY)


def _way(error: Callable[[Mechanism], Expression]) -> Expression:
    """Return LIP's error on a scale from the least error (0) to a random subspace's error (1)."""
    return (error(LIP) - error(EXACT)) / (error(RANDOM) - error(EXACT))


def _way_at_k(view: View) -> Mean:
    k = float(facts(view).k)
    way: Mean = _way(lambda mechanism: at(mechanism.label, _shared.ERROR, k))(view)
    return way


AG, LIPS, PURE = (_accuracy(m.label) for m in (figure5.AG, LIP, DIFFERENCE))
LEFT_OPEN = (AG - PURE) / (AG - LIPS)
"""Share of the gap between AG and LIP that remains with the best pure mechanism."""


def _variances(view: View) -> Curve:
    """Return the ratios along all three axes, one after the other."""
    curves = [view.curve(axis, theorems.VARIANCES) for axis in theorems.AXES]
    return dict(enumerate(mean for curve in curves for mean in curve.values()))


def _rising(label: str) -> Look:
    return Look(Below(_accuracy(label) - _accuracy(label, figure5.LOW), 0.01, 1), FIVE)


def _told(name: str) -> Look:
    """Return the test of an attack's advantage on two neighbours, over the largest allowed."""
    return Look(AtMost(at(name, statements.ADVANTAGE)), [statements.EPSILON_PANEL])


ETA_CURVE = along(LIP.label, _shared.ETA)
ETA_3, ETA_4 = _eta([figure3.EPSILON]), _eta(figure4.EPSILONS)
RANDOM_ETA = along(RANDOM.label, _shared.ETA)

SAID = declared(
    "xu",
    {
        "mod-sulq-exponential": Identity(at("MOD-SULQ", statements.BY_SCORE), 1.0),
        "k-rule": Look(Below(at("table", HELD), 0.85 - 1e-9, 1), LABELS, built=True),
        "lemma-1": Look(AtMost(row_of("Lemma 1", theorems.ALL_ENTRIES) / TWICE_D), DIMENSIONS),
        "theorem-1": _told("Z1"),
        "theorem-1-components": Look(AtMost(at(LIP.label, statements.SPENT)), statements.SHAPES),
        "lemma-2": Look(AtMost(row_of("Lemma 2", theorems.FIXED) / TWICE_D), DIMENSIONS),
        "lemma-2-computed": Look(
            AtMost(at("", theorems.MOVED) / (2 * theorems.FEATURES)), ["Lemma 2"]
        ),
        "theorem-2": _told("Z2"),
        "eq-24": Below(along("d < n", statements.RATIO), 1.0),
        "theorem-3": Look(Below(_variances, 1.0), ["Theorem 3"]),
        "theta-order": Look(
            tuple(
                # At d = 10 the norm of E1 varies, so the slope may err by some hundredths.
                Power(along(axis, theorems.VARIANCES), power, slack=0.05)
                for axis, power in theorems.POWERS.items()
            ),
            ["Theorem 3"],
        ),
        "eq-29": Look(
            Identity(at("left", statements.SIDE), at("right", statements.SIDE)), statements.TABLES
        ),
        "eq-30": Identity(along("Laplace over Gaussian", statements.RATIO), 1.0, within=0.03),
        "eq-31": Look(Identity(at("strictly", statements.SHARE), 1.0), statements.MORE_TABLES),
        "eq-34": Look(AtMost(at("LOP over bound", statements.LARGEST)), statements.TABLES),
        "eq-35": Look(
            Below(at("eta over bound", statements.SMALLEST), 1.0 - 1e-9, 1), statements.TABLES
        ),
        "theorem-4": Look(Below(ETA_CURVE, 1.0), theorems.TABLES),
        "figure-1-below": Look(Below(THETA, 1.0), LABELS),
        "figure-1-scaled": Look(Below(_scaled_theta, 1.0), LABELS),
        "figure-1-one-size": Look(
            Below(at("", versions.SPREAD), 10.0),
            list(versions.READINGS),
            facts={
                "first": lambda v: versions.spread(next(iter(versions.READINGS))),
                "second": lambda v: versions.spread(list(versions.READINGS)[-1]),
            },
        ),
        "figure-1-falls": Look(Monotone(THETA, -1), LABELS),
        "figure-2-below": Look(Below(THETA, 1.0), LABELS),
        "figure-2-falls": Look(Monotone(THETA, -1), LABELS),
        "figure-3-below": Look(Below(ETA_3, 1.0), LABELS, nothing=Below(RANDOM_ETA, 1.0)),
        "figure-3-falls": Look(Monotone(ETA_CURVE, -1), LABELS, nothing=Monotone(RANDOM_ETA, -1)),
        "figure-3-factors": Look(Below(_scaled_eta("by_k", [figure3.EPSILON]), 1.0), LABELS),
        "figure-4-below": Look(Below(ETA_4, 1.0), LABELS, nothing=Below(RANDOM_ETA, 1.0)),
        "figure-4-rises": Look(Monotone(ETA_CURVE, 1), LABELS, nothing=Monotone(RANDOM_ETA, 1)),
        "figure-4-factors": Look(Below(_scaled_eta("by_epsilon", figure4.EPSILONS), 1.0), LABELS),
        "close-components": Look(Below(_way(_error_of), 0.5), LABELS),
        "not-sensitive": Look(
            Below(_fall(LIP), 0.9, 1), LABELS, nothing=Below(_fall(RANDOM), 0.9, 1)
        ),
        "slightly-greatly": Look(
            (Below(_fall(LIP), 0.9, 1), Below(_fall(LOP), 0.1)),
            LABELS,
            nothing=Below(_fall(RANDOM), 0.9, 1),
        ),
        "rises-lip": _rising(LIP.label),
        "rises-ag": _rising(figure5.AG.label),
        "rises-ppm": _rising(figure5.PPM.label),
        "ag-above-ppm": Look(
            Order(_accuracies(figure5.AG.label), _accuracies(figure5.SOURCE_RUNS)), FIVE
        ),
        "lip-above-ppm": Look(
            Order(_accuracies(LIP.label), _accuracies(figure5.SOURCE_RUNS)), FIVE
        ),
        "ag-above-lip": Look(Order(_accuracies(figure5.AG.label), _accuracies(LIP.label)), FIVE),
        "price-of-purity": Look(Below(LEFT_OPEN, 0.5, 1), FIVE),
        "lip-matches-ag": Look(
            Below(
                _accuracy(figure5.AG.label, figure5.FAR) - _accuracy(LIP.label, figure5.FAR),
                figure5.WITHIN,
            ),
            FIVE,
        ),
        "stronger-than-ag": Look(
            Order(at("AG", statements.ADVANTAGE), at("Z1", statements.ADVANTAGE)),
            [statements.EPSILON_PANEL],
        ),
        "good-utility": Look(Below(_way_at_k, 0.5), LABELS),
    },
)
"""Statements in printing order."""
