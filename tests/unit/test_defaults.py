"""The rule for when nobody names a mechanism."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import all_mechanisms
from dpviz.simulation.defaults import advised

LEAST_SHOWN = 0.01  # of recovery, which pages give in whole percents
MEASURED = Path(__file__).resolve().parents[2] / "docs" / "defaults.md"


def problem(
    k: int = 2, relation: Relation = Relation.REPLACE, kind: str = "ball", n: int = 500
) -> Problem:
    domain = Domain.ball(6) if kind == "ball" else Domain.box(6)
    return Problem(n, 6, k, relation, domain)


@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_a_matrix_is_released_by_the_exact_gaussian_or_by_k_norm_noise(
    kind: str, relation: Relation, epsilon: float
) -> None:
    for k in (1, 2, 6):
        where = problem(k, relation, kind)
        for rows in (False, True):
            found = [
                advised(where, Budget(epsilon, delta), matrix=True, rows=rows).key
                for delta in (1e-6, 0.0)
            ]
            assert found == ["gaussian", "knorm"]


def test_rows_at_hand_are_clipped() -> None:
    for where in (problem(), replace(problem(), domain=Domain.unbounded(6))):
        assert advised(where, Budget(1.0, 1e-6), rows=True).key == "clipped_gaussian"
        assert advised(where, Budget(1.0), rows=True).key == "clipped_pure"
    assert advised(problem(), Budget(1.0, 1e-6)).key == "gaussian"


def test_draws_that_take_long_are_not_advised() -> None:
    wide = Problem(500, 65, 2, Relation.REPLACE, Domain.ball(65))
    assert advised(wide, Budget(1.0), matrix=True).key == "wishart_difference"
    less = replace(wide, d=64, domain=Domain.ball(64))
    assert advised(less, Budget(1.0), matrix=True).key == "knorm"


@pytest.mark.parametrize(
    ("relation", "n", "epsilon", "k", "key"),
    [
        (Relation.REPLACE, 90, 2.0, 1, "ppca"),  # n epsilon = 30 d
        (Relation.REPLACE, 91, 2.0, 1, "knorm"),
        (Relation.REPLACE, 50, 2.1, 1, "knorm"),
        (Relation.REPLACE, 90, 0.1, 2, "knorm"),
        (Relation.ZERO_OUT, 120, 0.5, 1, "ppca"),  # 10 d
        (Relation.ZERO_OUT, 121, 0.5, 1, "knorm"),
        (Relation.ZERO_OUT, 50, 0.6, 1, "knorm"),
    ],
)
def test_one_component_of_a_second_moment(
    relation: Relation, n: int, epsilon: float, k: int, key: str
) -> None:
    assert advised(problem(k, relation, n=n), Budget(epsilon)).key == key


def test_everything_advised_can_run_and_claims_what_was_asked() -> None:
    for delta in (0.0, 1e-9, 0.1):
        for k in (1, 3, 6):
            budget = Budget(0.5, delta)
            mechanism = advised(problem(k), budget)
            mechanism.check(problem(k), budget, rows=False)
            claim = mechanism.claim(problem(k), budget)
            assert claim == budget
    # all components of six: no subspace to release, but a matrix has them
    assert advised(problem(6), Budget(1.0, 1e-6), rows=True).info.release == "matrix"


def test_nothing_advised_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpviz.simulation.defaults.all_mechanisms", dict)
    with pytest.raises(InvalidSetting, match="k must be from 1 to 5"):
        advised(problem(), Budget(1.0))


def test_the_rule_follows_what_was_measured() -> None:
    """benchmarks/defaults.py judges the rule as it stood; the cards give the advice it prints."""
    text = MEASURED.read_text(encoding="utf-8")
    tables = re.findall(r"^\| choice .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert len(tables) == 6
    for table in tables:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
        regrets = {name: float(mean) for name, mean, *_ in rows}
        assert regrets.pop("**advised**") <= min(regrets.values()) + LEAST_SHOWN
    printed = dict(re.findall(r"^- ([^:]+): (.*)$", text, re.MULTILINE))
    said = {cls.info.label: cls.info.advice for cls in all_mechanisms().values()}
    assert len(printed) >= 5
    assert {label: said[label] for label in printed} == printed
