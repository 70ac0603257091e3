"""The rule that chooses a mechanism if the user names none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpviz import PrivatePCA
from dpviz.core.problem import Budget, Domain, Problem, Relation, default_delta
from dpviz.core.seeding import generator
from dpviz.mechanisms import all_mechanisms
from dpviz.report.sentences.explore import delta_note, too_few_rows
from dpviz.simulation.defaults import advised

LEAST_SHOWN = 0.01  # Pages show recovery in whole percents.
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
            keys = [
                advised(where, Budget(epsilon, delta), matrix=True, rows=rows).key
                for delta in (1e-6, 0.0)
            ]
            assert keys == ["gaussian", "knorm"]


def test_rows_at_hand_are_clipped() -> None:
    for where in (problem(), replace(problem(), domain=Domain.unbounded(6))):
        assert advised(where, Budget(1.0, 1e-6), rows=True).key == "clipped_gaussian"
        assert advised(where, Budget(1.0), rows=True).key == "clipped_pure"
    assert advised(problem(), Budget(1.0, 1e-6)).key == "gaussian"


@pytest.mark.parametrize(
    ("n", "d", "epsilon", "private", "pure"),
    [
        (1_800, 60, 0.3, "funnel", "pure_funnel"),
        (1_800, 60, 0.1, "funnel", "screened_wishart_difference"),
        (1_800, 60, 3.0, "clipped_gaussian", "clipped_pure"),
        (5_000, 40, 0.1, "clipped_gaussian", "pure_funnel"),
        (150, 4, 0.3, "clipped_gaussian", "clipped_pure"),
    ],
)
def test_rows_at_hand_are_looked_at_twice_where_noise_is_large_in_many_features(
    n: int, d: int, epsilon: float, private: str, pure: str
) -> None:
    where = Problem(n, d, 2, Relation.REPLACE, Domain.ball(d))
    for budget, key in ((Budget(epsilon, 1e-6), private), (Budget(epsilon), pure)):
        assert advised(where, budget, rows=True).key == key


@pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")
def test_a_fit_in_parts_takes_what_can_be_fitted_in_parts() -> None:
    rows = generator(5, "parts").standard_normal((400, 30))
    whole = PrivatePCA(2, epsilon=0.3, delta=1e-6, center="none").fit(rows)
    assert whole.mechanism_ == "funnel"
    parts = PrivatePCA(2, epsilon=0.3, delta=1e-6, center="none")
    for part in np.array_split(rows, 4):
        parts.partial_fit(part)
    assert parts.finalize().mechanism_ == "clipped_gaussian"


@pytest.mark.parametrize(
    ("relation", "n", "epsilon", "k", "key"),
    [
        (Relation.REPLACE, 90, 2.0, 1, "ppca"),  # In this case n epsilon = 30 d.
        (Relation.REPLACE, 91, 2.0, 1, "knorm"),
        (Relation.REPLACE, 50, 2.1, 1, "knorm"),
        (Relation.REPLACE, 90, 0.1, 2, "knorm"),
        (Relation.ZERO_OUT, 120, 0.5, 1, "ppca"),  # In this case n epsilon = 10 d.
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
    # With k = d there is no subspace to choose, so the advised mechanism releases a matrix.
    assert advised(problem(6), Budget(1.0, 1e-6), rows=True).info.release == "matrix"


def test_the_rule_follows_what_was_measured() -> None:
    """The rule is near the best choice of benchmarks/defaults.py, and cards print its advice."""
    text = MEASURED.read_text(encoding="utf-8")
    tables = re.findall(r"^\| choice .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert len(tables) == 6
    for table in tables:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
        regrets = {name: float(mean) for name, mean, *_ in rows}
        assert regrets.pop("**advised**") <= min(regrets.values()) + LEAST_SHOWN
    advice = dict(re.findall(r"^- ([^:]+): (.*)$", text, re.MULTILINE))
    cards = {cls.info.label: cls.info.advice for cls in all_mechanisms().values()}
    assert len(advice) >= 5
    assert {label: cards[label] for label in advice} == advice


def test_a_delta_is_warned_of_from_a_hundredth_of_1_over_n_on() -> None:
    assert delta_note(3e-7, 1797) == ("Delta 3e-7, below 0.01/n = 5.6e-6.", False)
    note, warns = delta_note(2e-4, 1797)
    assert warns
    assert "would expose somebody with probability 30\u00a0%" in note
    assert not delta_note(default_delta(178), 178)[1]
    assert too_few_rows(default_delta(178), 178) is None
    assert "For 1,797 rows, delta should be at most 5.6e-6" in (too_few_rows(2e-4, 1797) or "")
