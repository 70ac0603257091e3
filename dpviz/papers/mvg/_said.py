"""Statements of Chanyaswad, Dytso, Poor and Mittal 2018, each statement with its test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from dpviz.mechanisms import Mechanism
from dpviz.papers.measurements import Absent, Mean
from dpviz.papers.mvg import (
    _liver,
    figure4,
    section10,
    sketches,
    statements,
    table3,
    theorems,
    what_was_run,
)
from dpviz.papers.mvg import table4 as four
from dpviz.papers.mvg import table5 as five
from dpviz.papers.mvg._ctg import CENTRED as CENTRED_ROWS
from dpviz.papers.mvg._ctg import RSS
from dpviz.papers.mvg._liver import BINARY, MAX_PNR, NON_PRIVATE, RANDOM, REPORTED, RMSE
from dpviz.papers.mvg._shared import LOSS, TAUS
from dpviz.papers.said import (
    AtMost,
    Below,
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
    row_of,
)

GAUSSIAN, LAPLACE = _liver.TEXTBOOK_ROW, table3.LAPLACE_ROW

LIVER, HELD, CENTRED = [table3.PANEL], [four.HELD], [CENTRED_ROWS]


def _least(curve: Mapping[float, Mean]) -> Mean:
    """Return the mean at the best of the tau values that the paper tries."""
    means = [mean for tau, mean in curve.items() if tau in TAUS]
    if not means:
        raise Absent
    return min(means, key=lambda mean: mean.value)


def _best(series: str, quantity: str) -> Expression:
    """Return the value of a table row, at its best tau if it has several."""

    def best(view: View) -> Mean:
        try:
            return view(series, quantity)
        except Absent:
            return _least(view.curve(series, quantity))

    return Expression(best)


# --- Table 3 and section 10.2: RMSE on Liver --------------------------------------------------

PLAIN = at(NON_PRIVATE, RMSE)
CONSTANT = at(table3.CONSTANT, RMSE)


def _rmse(name: str) -> Expression:
    return _best(name, RMSE)


def _over(name: str) -> Look:
    """Return the tests of an error over the non-private error, and of the table's order."""
    number = REPORTED[name].over(REPORTED[NON_PRIVATE])
    order = Order(_rmse(LAPLACE), _rmse(BINARY)) if name != RANDOM else None
    return Look(Number(_rmse(name) / PLAIN, number), LIVER, order=order)


def _varies(mean: Mean) -> float:
    """Return the standard deviation of single releases over their mean."""
    return mean.error * math.sqrt(mean.draws) / mean.value


def _split(number: Stated) -> Callable[[View], Stated]:
    """Return a number that is printed for one split, with the error of one split."""
    return lambda view: replace(
        number, error=0.0, spread=1.96 * _varies(PLAIN(view)) * number.value
    )


def _less(better: str, worse: str) -> Look:
    nothing = Order(_rmse(worse), CONSTANT)
    return Look(Order(_rmse(worse), _rmse(better)), LIVER, nothing=nothing)


_CLOSE = 1 + 0.004 / REPORTED[NON_PRIVATE].value
TWO = [section10.TWO]
ON_TWO = at(GAUSSIAN, RMSE)


def _on_all(series: str, quantity: str = RMSE) -> Expression:
    return _best(series, quantity).on(section10.ALL)


PREDICTS_NOTHING = Below(_on_all(BINARY, _liver.SIZE), 1e-3)


# --- the sketch whose size is not printed ----------------------------------------------------


def _sketch(table: str, quantity: str, base: Expression) -> Look:
    number = sketches.PRINTED[table].over(
        five.REPORTED[five.RANDOM] if table == sketches.CTG else REPORTED[NON_PRIVATE]
    )
    nothing = sketches.BASIS if table == sketches.CTG else sketches.CONSTANT
    return Look(
        Number(at(sketches.SKETCH, quantity) / base, number),
        sketches.panels_of(table),
        nothing=Number(_beside(table, nothing, quantity) / base, number),
    )


def _beside(table: str, series: str, quantity: str) -> Expression:
    """Return a value that a table's sketches are compared with."""
    return at(series, quantity).on(table)


def _beats_sketch(table: str, quantity: str) -> Look:
    mvg = _beside(table, sketches.MVG, quantity)
    return Look(Order(at(sketches.SKETCH, quantity), mvg), sketches.panels_of(table))


# --- Table 4: the first component of MovementAAL ----------------------------------------------


def _lost(mechanism: Mechanism) -> Expression:
    return _best(four.name_of(mechanism), LOSS)


def _four(mechanism: Mechanism) -> Look:
    number = four.REPORTED[mechanism]
    if mechanism == four.RANDOM:
        return Look(Number(_lost(mechanism), _of_hundred(number)), HELD)
    if mechanism == four.NON_PRIVATE:
        return Look(Below(_lost(mechanism), 1e-9), HELD, built=True)
    return Look(Number(_lost(mechanism), number), HELD)


def _of_hundred(number: Stated) -> Callable[[View], Stated]:
    """Return a number printed for one release of 100 directions, with the error of one release."""

    def of(view: View) -> Stated:
        mean = _lost(four.RANDOM)(view)
        return replace(number, spread=1.96 * _varies(mean) * mean.value / math.sqrt(100))

    return of


def _loses_less(better: Mechanism, worse: Mechanism) -> Look:
    return Look(Order(_lost(worse), _lost(better)), HELD)


EQUAL_SHARES = at(four.name_of(four.DIRECTIONAL), LOSS, four.EQUAL)
FIRST_VARIANCE = 0.5
"""The paper's loss of a random guess, .437, is the first variance minus the mean of all four."""

# --- Table 5: the covariance of CTG -----------------------------------------------------------


def _rss(name: str) -> Expression:
    return _best(name, RSS)


def _five(name: str) -> Look:
    number = five.REPORTED[name].over(five.REPORTED[five.RANDOM])
    basis = Number(_rss(five.BASIS) / _rss(five.RANDOM), Stated(number.value, 0.05))
    return Look(Number(_rss(name) / _rss(five.RANDOM), number), CENTRED, nothing=basis)


# --- Figure 4 ---------------------------------------------------------------------------------


def _first_best(data: str) -> Look:
    quantity = figure4.QUANTITIES[data]
    first, *others = [name for name in figure4.DIRECTIONS[data] if name != figure4.HINDSIGHT]
    if data != "cardiotocography":
        others.remove(figure4.EQUAL)
    tests = tuple(Order(along(other, quantity), along(first, quantity)) for other in others)
    return Look(tests, [figure4.panel_of(data, figure4.PUBLISHED)])


def _as_good(data: str, others: list[str]) -> Look:
    """Return the test that other directions' errors are at most 6 % above the error of (a)."""
    quantity = figure4.QUANTITIES[data]
    first = next(iter(figure4.DIRECTIONS[data]))

    def over(name: str) -> Expression:
        return along(name, quantity) / along(first, quantity)

    return Look(
        tuple(Below(over(other), 1.06) for other in others),
        [figure4.panel_of(data, figure4.PUBLISHED)],
        nothing=Below(over(figure4.EQUAL), 1.06),
    )


MOVEMENT = "movementaal"

SAID = declared(
    "mvg",
    {
        "outperforms": Look(
            tuple(
                Order(_lost(other), _lost(four.THEOREM_3))
                for other in (four.GAUSSIAN, four.SKETCH, four.LAPLACE, four.EXPONENTIAL)
            ),
            HELD,
        ),
        "comparable": Look(Below(_lost(four.THEOREM_3) / _lost(four.RANDOM), 0.1), HELD),
        "lemma-1": Look(AtMost(row_of("Lemma 1", theorems.BEYOND)), list(theorems.QUERIES)),
        **{key: AtMost(at(key, statements.BOUND)) for key in statements.LEMMAS},
        "theorem-2": Look(
            AtMost(row_of("Theorem 2", theorems.SPENT).each(float)),
            list(theorems.QUERIES),
        ),
        "theorem-3": Look(
            AtMost(row_of("Theorem 3", theorems.SPENT).each(float)),
            ["MovementAAL"],
        ),
        "axiom-1": Monotone(along("axiom-1", statements.LOSS), 1),
        "axiom-2": Look(Monotone(along("axiom-2", statements.LOSS), -1), built=True),
        "theorem-4": Look(
            Identity(at("", theorems.HELD), 1.0),
            ["Theorem 4"],
            facts={"r": at("", theorems.FROM)},
        ),
        "example-1-gamma": Identity(along("gamma", statements.MULTIPLE), 1.0),
        "example-1-s2": AtMost(along("s2", statements.MULTIPLE)),
        "example-2": Look(Below(along("kernel", statements.MULTIPLE, least=8.0), 1.0), built=True),
        "section-5-2": Identity(along("along", statements.SIDE), 1.0, within=0.05),
        "every-direction": Identity(at("one direction bare", statements.SHARE), 1.0),
        "gain": Look(
            Order(EQUAL_SHARES, _lost(four.DIRECTIONAL)),
            HELD,
            facts={"tau": _lost(four.DIRECTIONAL), "equal": EQUAL_SHARES},
        ),
        "gain-rows": Look(
            Order(along(figure4.EQUAL, RMSE, 3.0), along("(a) ALT, Y", RMSE, 3.0)),
            [figure4.panel_of("liver", figure4.BY_EXACT)],
        ),
        "algorithm-1": Look(Identity(at("algorithm-1", statements.MULTIPLE), 1.0), built=True),
        "algorithm-2": Look(Identity(at("algorithm-2", statements.MULTIPLE), 1.0), built=True),
        "theorem-5": Look(
            Identity(at("", theorems.PART_OF_BUDGET), 1.0), ["Theorem 5"], built=True
        ),
        "theorem-6": Look(
            Identity(at("", theorems.PART_OF_BUDGET), 1.0), ["Theorem 6"], built=True
        ),
        "lemma-6": Below(at("left", "lemma-6") / at("right", "lemma-6"), 0.05),
        "lemma-7": Below(at("left", "lemma-7") / at("right", "lemma-7"), 0.05),
        "time": Look(
            (
                Power(along("Algorithm 1", statements.WORK), 0.0, slack=0.02, upper=True),
                Power(along("Algorithm 2", statements.WORK), 0.0, slack=0.02, upper=True),
            ),
            built=True,
        ),
        "theorem-7": Look(
            Identity(at("", theorems.BEST), 1.0),
            ["Theorem 7"],
            facts={"percent": at("", theorems.NEGATIVE) / 0.01},
        ),
        "optimal": Look(Below(at("", theorems.WORSE), 1.0 - 1e-9, 1), ["Theorem 7"]),
        "setup-rows": Number(at("liver", statements.ROWS), Stated(345.0)),
        "setup-movement": Number(at(MOVEMENT, statements.ROWS), Stated(10_176.0)),
        "setup-ctg": Number(at("cardiotocography", statements.ROWS), Stated(2_126.0)),
        "s2-liver": AtMost(at("liver", statements.MULTIPLE)),
        "s2-movement": Identity(at("movement", statements.MULTIPLE), 1.0),
        "s2-ctg": AtMost(at("ctg", statements.MULTIPLE)),
        "t3-non-private": Look(
            Number(PLAIN, _split(REPORTED[NON_PRIVATE])),
            LIVER,
            facts={"guess": _rmse(RANDOM) / REPORTED[RANDOM].value},
        ),
        "t3-random": Look(
            Number(
                _rmse(RANDOM) / PLAIN,
                _split(REPORTED[RANDOM].over(REPORTED[NON_PRIVATE])),
            ),
            LIVER,
            facts={"percent": lambda v: 100 * _varies(PLAIN(v))},
        ),
        "t3-binary": _over(BINARY),
        "t3-maxpnr": _over(MAX_PNR),
        "t3-gaussian": _over(GAUSSIAN),
        "t3-laplace": _over(LAPLACE),
        "t3-jl": _sketch(sketches.LIVER, RMSE, _beside(sketches.LIVER, NON_PRIVATE, RMSE)),
        "t3-close": Look(
            (
                Below(_rmse(BINARY) / PLAIN, _CLOSE),
                Below(_rmse(MAX_PNR) / PLAIN, _CLOSE),
            ),
            LIVER,
            nothing=Below(CONSTANT / PLAIN, _CLOSE),
        ),
        "t3-beats-gauss": _less(BINARY, GAUSSIAN),
        "t3-beats-laplace": _less(BINARY, LAPLACE),
        "t3-beats-jl": _beats_sketch(sketches.LIVER, RMSE),
        "t3-150": Look(
            Number(_rmse(LAPLACE) / _rmse(MAX_PNR), REPORTED[LAPLACE].over(REPORTED[MAX_PNR])),
            LIVER,
            nothing=Number(_rmse(LAPLACE) / CONSTANT, REPORTED[LAPLACE].over(REPORTED[MAX_PNR])),
        ),
        "t3-best": Look(Order(_rmse(BINARY), _rmse(MAX_PNR)), LIVER),
        "t4-non-private": _four(four.NON_PRIVATE),
        **{key: _four(mechanism) for key, mechanism in what_was_run.FOUR.items()},
        "t4-small": Look(Below(_lost(four.THEOREM_3) / FIRST_VARIANCE, 0.1), HELD),
        "t4-3-2": _loses_less(four.THEOREM_3, four.THEOREM_2),
        "t4-3-gaussian": _loses_less(four.THEOREM_3, four.GAUSSIAN),
        "t4-3-jl": _loses_less(four.THEOREM_3, four.SKETCH),
        "t4-3-laplace": _loses_less(four.THEOREM_3, four.LAPLACE),
        "t4-3-exponential": _loses_less(four.THEOREM_3, four.EXPONENTIAL),
        "t4-exponential-2": _loses_less(four.EXPONENTIAL, four.THEOREM_2),
        "t5-non-private": Look(Below(_rss(five.NON_PRIVATE), 1e-9), CENTRED, built=True),
        "t5-random": Look(
            Number(_rss(five.RANDOM), five.REPORTED[five.RANDOM]),
            CENTRED,
            order=Order(_rss(five.RANDOM), _rss("MVG")),
        ),
        "t5-mvg": _five("MVG"),
        "t5-gaussian": _five(five.TEXTBOOK_ROW),
        "t5-laplace": _five("Laplace"),
        "t5-jl": _sketch(sketches.CTG, RSS, _beside(sketches.CTG, sketches.RANDOM, RSS)),
        "t5-small": Look(Below(_rss("MVG") / _rss(five.BASIS), 0.1), CENTRED),
        "t5-beats-gauss": Look(Order(_rss(five.TEXTBOOK_ROW), _rss("MVG")), CENTRED),
        "t5-beats-laplace": Look(Order(_rss("Laplace"), _rss("MVG")), CENTRED),
        "t5-beats-jl": _beats_sketch(sketches.CTG, RSS),
        "f4-liver": _first_best("liver"),
        "f4-movement": _first_best(MOVEMENT),
        "f4-ctg": _first_best("cardiotocography"),
        "f4-still": _as_good("liver", ["(b) ALT", "(c) Y", "(d) ALT, AST, Y"]),
        "f4-wrong": _as_good(MOVEMENT, ["(d) ANC1, ANC2"]),
        "s10-number": Look(
            Number(
                ON_TWO / _on_all(NON_PRIVATE),
                section10.REPORTED[section10.TWO, GAUSSIAN].over(REPORTED[NON_PRIVATE]),
            ),
            TWO,
            order=Order(ON_TWO, _on_all(BINARY)),
        ),
        "s10-jl": _sketch(sketches.TWO, RMSE, _beside(sketches.LIVER, NON_PRIVATE, RMSE)),
        "s10-worse": Look(Order(ON_TWO, _on_all(BINARY)), TWO, nothing=PREDICTS_NOTHING),
        "s10-150": Look(Below(ON_TWO / _on_all(BINARY), 2.5, 1), TWO, nothing=PREDICTS_NOTHING),
        "s10-arithmetic": Below(at("gain", statements.MULTIPLE), 1.5, 1),
        "lemma-8": AtMost(at("lemma-8", statements.ENTROPY)),
        "lemma-9": AtMost(at("lemma-9", statements.ENTROPY)),
        "lemma-10": Identity(at("left", statements.SIDE), at("right", statements.SIDE)),
        "theorem-8": Order(
            along("a constant", statements.BITS), along("Gaussian noise", statements.BITS)
        ),
        "theorem-9": Look(
            Order(
                along("lattice noise", statements.BITS), along("Gaussian noise", statements.BITS)
            ),
            facts={
                "lattice": at("lattice noise", statements.BITS, 1.0),
                "gauss": at("Gaussian noise", statements.BITS, 1.0),
            },
        ),
    },
)
"""Statements in printing order."""
