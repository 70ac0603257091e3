"""Whoever is declared to have several rows is protected with all of them, in every answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import dpviz
from dpviz.accounting import accounting
from dpviz.accounting.gaussian import delta_of, mu_of
from dpviz.auditing.attack import both_worlds, posterior_bound
from dpviz.core.parts import GaussianPart, for_person
from dpviz.core.problem import Budget, Domain, Problem, Relation, Unit, group_budget
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.lessons.questions import Answers
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.account import prepared_mechanism
from dpviz.preparation.load import load_measured
from dpviz.preparation.steps import COUNT, MEAN, SCALE, PrivateSteps
from dpviz.releasing.making import make
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Column, Schema
from dpviz.report.sentences.phrases import belief_words, risk_words
from dpviz.simulation.picture.account import SPARSE, THRESHOLD_SHARE, PictureOptions, with_picture
from dpviz.studies.decide import prospect_of

ROWS = (1, 3, 10)
N, D = 1_200, 4
NOISE = np.random.default_rng(0).normal(size=(N, D)) * [3, 1, 0.5, 0.3]
TABLE = np.clip(NOISE, -10, 10)
BUDGET = Budget(1.0, 1e-6)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table in which three rows are of each person."""
    path: Path = tmp_path_factory.mktemp("persons") / "p.csv"
    lines = [f"{j // 3}," + ",".join(f"{v:.3f}" for v in row) for j, row in enumerate(TABLE)]
    path.write_text("\n".join(["who,a,b,c,d", *lines]), encoding="utf-8")
    return path


def _problem(rows: int, relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(N, D, 2, relation, Domain.ball(D), rows_a_person=rows)


def _compared(file: Path, rows: int, **options: object) -> dict[str, object]:
    found = dpviz.compare(
        str(file), leave_out="who", rows_a_person=rows, mechanisms="gaussian", k=1, delta=1e-6,
        center="none", row_bound="10", **options,
    )  # fmt: skip
    result: dict[str, object] = json.loads(found.to_json())["results"][0]
    return result


@pytest.mark.parametrize("rows", ROWS)
def test_a_comparison_recovers_what_releases_for_the_same_person_do(file: Path, rows: int) -> None:
    # as much more epsilon as noise: one release has a standard deviation of .05 at each, so the
    # mean of 200 has .0035 and that of 2,000 a third of it: .03 is 8 of both together
    epsilon = 0.4 * rows
    columns = (Column("who", use=False), *(Column(name, -10, 10) for name in "abcd"))
    schema, A = Schema(columns, rows_a_person=rows), TABLE.T @ TABLE / N
    chance, best = np.trace(A) / D, np.linalg.eigvalsh(A)[-1]
    options = ReleaseOptions(row_bound="10", k=1, epsilon=epsilon, delta=1e-6)
    content, released = file.read_bytes(), []
    for _ in range(200):
        v = np.array(make(options, content, schema).to_json()["components"][0])
        released.append((v @ A @ v - chance) / (best - chance))
    found = _compared(file, rows, epsilon=epsilon, trials=2_000)
    assert abs(found["metrics"]["recovery"]["mean"] - np.mean(released)) < 0.03  # type: ignore[index]


@pytest.mark.parametrize("rows", ROWS)
def test_the_noise_of_a_comparison_is_that_of_a_person(file: Path, rows: int) -> None:
    """The mu of one row, from the noise as it was drawn, times m is that of the budget."""
    found = _compared(file, rows, epsilon=1.0, trials=2_000)
    # E|N|_F of 10 normal numbers, of which 2000 draws have the mean within 1.5 % (3 deviations)
    norm = found["metrics"]["noise_frobenius"]["mean"]  # type: ignore[index]
    mean_of_chi = math.sqrt(2) * math.exp(math.lgamma(5.5) - math.lgamma(5))
    mu_of_row = math.sqrt(2) / (N * norm / mean_of_chi)
    assert rows * mu_of_row == pytest.approx(mu_of(BUDGET), rel=0.015)
    assert found["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-9)  # type: ignore[index]


@pytest.mark.parametrize(
    ("rows", "right", "believed", "epsilon"), [(1, 54.71, 2.7, 1.0), (3, 63.9, 21.9, 3.32),
                                                (10, 88.2, 100.0, 13.5)],
)  # fmt: skip
def test_noise_for_one_row_gives_a_person_with_many_away(
    rows: int, right: float, believed: float, epsilon: float
) -> None:
    """What the answers said before, of a row, beside what was true of a person."""
    part = for_person(GaussianPart(mu_of(BUDGET), 1.0), rows)
    assert isinstance(part, GaussianPart)
    spent = accounting.spent([part], BUDGET)
    assert 100 * both_worlds(spent).value == pytest.approx(right, abs=0.05)
    assert 100 * posterior_bound(0.01, spent.epsilon) == pytest.approx(believed, abs=0.1)
    assert spent.epsilon == pytest.approx(epsilon, abs=0.05)
    # and calibrated for the person it costs what was asked for
    found = dpviz.account("gaussian", rows_a_person=rows)
    assert found.data()["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-9)
    assert found.view.mu == pytest.approx(mu_of(BUDGET), rel=1e-9)
    assert found.data()["problem"]["rows_a_person"] == rows


@pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")
def test_a_decision_and_a_fit_are_for_the_person() -> None:
    """A person with m rows needs m times the mu of one row, or nothing is kept."""
    kept = {}
    for rows, epsilon in ((None, 0.022), (3, 3 * 0.022), (3, 0.022)):
        settings = Settings(table="plan:n=1e4,spectrum=0.3,0.1,0.01", k=1, rows_a_person=rows)
        plan = load_measured(settings)
        prospect = prospect_of("plan", plan, None, settings, Answers(), BUDGET.delta)
        release = replace(prospect.options, epsilon=epsilon)
        kept[rows, epsilon] = prospect.outlook(release).low
    one, person, alike = kept.values()
    assert person == pytest.approx(one, abs=0.03)
    assert alike < 0.5
    mu = 3 * mu_of(BUDGET)
    fits = [
        dpviz.PrivatePCA(
            1, mechanism="gaussian", epsilon=epsilon, delta=delta, row_bound=10, center="none",
            rows_a_person=rows, random_state=0,
        ).fit(TABLE)
        for epsilon, delta, rows in ((1.0, BUDGET.delta, None), (3.0, delta_of(3.0, mu), 3))
    ]  # fmt: skip
    np.testing.assert_allclose(fits[0].components_, fits[1].components_, rtol=1e-6)
    assert fits[1].spent_ is not None
    assert fits[1].spent_.epsilon == pytest.approx(3, rel=1e-6)


@pytest.mark.parametrize("rows", ROWS[1:])
@pytest.mark.parametrize("key", ["gaussian", "wishart"])
def test_an_audit_attacks_all_rows_of_the_person(key: str, rows: int) -> None:
    """Noise and change grow alike, so the same draws tell a person as they tell a row."""
    asked = {"epsilon": 1.0, "trials": 1_000, "relation": "zero-out"}
    row = dpviz.audit(key, **asked)  # type: ignore[arg-type]
    found = dpviz.audit(key, rows_a_person=rows, **asked)  # type: ignore[arg-type]
    pair = found.audit.measured.pair
    first, second = pair.tables()
    assert first.rows is not None
    assert second.rows is not None
    assert (first.rows != second.rows).any(axis=1).sum() == rows
    assert found.epsilon_lower == pytest.approx(row.epsilon_lower, abs=0.02)
    assert found.verdict == row.verdict


@pytest.mark.parametrize("rows", ROWS[1:])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("key", all_mechanisms())
def test_what_a_row_spends_is_within_the_claim_for_all_rows(
    key: str, relation: Relation, rows: int
) -> None:
    """From the budget that a row has, by group privacy of what that budget really costs it."""
    mechanism, problem = parse_variant(key), _problem(rows, relation)
    one = replace(problem, rows_a_person=None)
    budget = BUDGET if mechanism.why_not(one, BUDGET) is None else Budget(0.5, 1e-6)
    if mechanism.why_not(one, budget) is not None:
        pytest.skip("it runs at neither budget")
    status, seen = mechanism.status(one, budget), mechanism.status(problem, budget)
    assert (seen.verdict.fails, seen.verdict.counts) == (
        status.verdict.fails, status.verdict.counts,
    )  # fmt: skip
    spent, claim = mechanism.spent(problem, budget), mechanism.claim(problem, budget)
    if seen.verdict is Verdict.BASELINE or seen.verdict.fails:
        return
    assert claim is not None
    assert spent is not None
    assert spent.epsilon <= claim.epsilon * (1 + 1e-9)
    assert spent.delta <= claim.delta
    calibration = mechanism.calibrate(problem, budget)
    row = mechanism.spent(one, calibration.budget)
    assert row is not None
    if claim.delta == 0:
        assert rows * row.epsilon <= claim.epsilon * (1 + 1e-9)
    elif row.mu is not None:
        assert delta_of(claim.epsilon, rows * row.mu) <= claim.delta
    elif not calibration.parts:
        known = group_budget(Budget(max(row.epsilon, 1e-4), row.delta), rows)
        assert known.epsilon <= claim.epsilon * (1 + 1e-9)
        assert known.delta <= claim.delta


@pytest.mark.parametrize("pure", [False, True])
def test_all_that_is_bought_beside_a_release_is_bought_for_the_person(pure: bool) -> None:
    steps = PrivateSteps((COUNT, MEAN, SCALE))
    mechanism = parse_variant("knorm" if pure else "gaussian")
    one, many = (
        prepared_mechanism(mechanism, _problem(m, Relation.ZERO_OUT), BUDGET, steps) for m in (1, 3)
    )
    for step in steps.steps:
        ratio = many.preparation.noises[step] / one.preparation.noises[step]
        assert ratio == pytest.approx(3, rel=1e-9)
    scales = [whole.mechanism.calibrate(whole.problem, whole.rest).scale for whole in (one, many)]
    assert scales[1] / scales[0] == pytest.approx(3, rel=1e-6)
    assert many.spent is not None
    assert many.spent.epsilon <= 1


def test_rows_of_one_person_alone_in_cells_are_seen_no_more_often_than_delta_allows() -> None:
    made = with_picture(parse_variant("gaussian"), _problem(3), BUDGET, PictureOptions(0.5, SPARSE))
    plan, failing = made.plan, THRESHOLD_SHARE * BUDGET.delta
    for cells in ([3], [2, 1], [1, 1, 1]):
        seen = sum(float(ndtr((count - plan.threshold) / plan.std)) for count in cells)
        assert 0 < seen <= failing
    assert made.prepared.spent is not None
    assert made.prepared.spent.epsilon <= 1


def test_what_is_guessed_is_said_of_the_neighbours_that_are_told_apart() -> None:
    spent = accounting.spent([GaussianPart(mu_of(BUDGET), 1.0)], BUDGET)
    for relation in Relation:
        for unit in Unit:
            for words in (
                risk_words("it", spent, 1.0, relation, unit),
                belief_words(0.01, spent, relation, unit),
            ):
                assert ("value" in words) == (relation is Relation.REPLACE)
                assert (" person" in words or "who is in" in words) == (unit is Unit.PERSON)
