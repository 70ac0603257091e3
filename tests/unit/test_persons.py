"""People declared to have several rows are protected with all their rows, in every answer."""

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
    """Return a table with three rows per person."""
    path: Path = tmp_path_factory.mktemp("persons") / "p.csv"
    lines = [f"{j // 3}," + ",".join(f"{v:.3f}" for v in row) for j, row in enumerate(TABLE)]
    path.write_text("\n".join(["who,a,b,c,d", *lines]), encoding="utf-8")
    return path


def _problem(rows: int, relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(N, D, 2, relation, Domain.ball(D), rows_a_person=rows)


def _compared(file: Path, rows: int, **options: object) -> dict[str, object]:
    comparison = dpviz.compare(
        str(file), leave_out="who", rows_a_person=rows, mechanisms="gaussian", k=1, delta=1e-6,
        center="none", row_bound="10", **options,
    )  # fmt: skip
    result: dict[str, object] = json.loads(comparison.to_json())["results"][0]
    return result


@pytest.mark.parametrize("rows", ROWS)
def test_a_comparison_recovers_what_releases_for_the_same_person_do(file: Path, rows: int) -> None:
    # Epsilon and the noise grow alike, so one release has std .05 in both cases. The mean of 200
    # releases has std .0035, and the mean of 2,000 a third of this. So .03 is 8 combined errors.
    epsilon = 0.4 * rows
    columns = (Column("who", use=False), *(Column(name, -10, 10) for name in "abcd"))
    schema, A = Schema(columns, rows_a_person=rows), TABLE.T @ TABLE / N
    chance, best = np.trace(A) / D, np.linalg.eigvalsh(A)[-1]
    options = ReleaseOptions(row_bound="10", k=1, epsilon=epsilon, delta=1e-6)
    content, recoveries = file.read_bytes(), []
    for _ in range(200):
        v = np.array(make(options, content, schema).to_json()["components"][0])
        recoveries.append((v @ A @ v - chance) / (best - chance))
    comparison = _compared(file, rows, epsilon=epsilon, trials=2_000)
    assert abs(comparison["metrics"]["recovery"]["mean"] - np.mean(recoveries)) < 0.03  # type: ignore[index]


@pytest.mark.parametrize("rows", ROWS)
def test_the_noise_of_a_comparison_is_that_of_a_person(file: Path, rows: int) -> None:
    """The mu of one row, from the measured noise, times m equals the mu of the budget."""
    comparison = _compared(file, rows, epsilon=1.0, trials=2_000)
    # Compute the expected norm of 10 normal numbers; a mean of 2,000 is within 1.5 % (3 std).
    norm = comparison["metrics"]["noise_frobenius"]["mean"]  # type: ignore[index]
    mean_of_chi = math.sqrt(2) * math.exp(math.lgamma(5.5) - math.lgamma(5))
    mu_of_row = math.sqrt(2) / (N * norm / mean_of_chi)
    assert rows * mu_of_row == pytest.approx(mu_of(BUDGET), rel=0.015)
    assert comparison["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-9)  # type: ignore[index]


@pytest.mark.parametrize(
    ("rows", "right", "believed", "epsilon"), [(1, 54.71, 2.7, 1.0), (3, 63.9, 21.9, 3.32),
                                                (10, 88.2, 100.0, 13.5)],
)  # fmt: skip
def test_noise_for_one_row_gives_a_person_with_many_away(
    rows: int, right: float, believed: float, epsilon: float
) -> None:
    """A calibration for rows loses more for a person; a calibration for persons keeps the claim."""
    part = for_person(GaussianPart(mu_of(BUDGET), 1.0), rows)
    assert isinstance(part, GaussianPart)
    loss = accounting.spent([part], BUDGET)
    assert 100 * both_worlds(loss).value == pytest.approx(right, abs=0.05)
    assert 100 * posterior_bound(0.01, loss.epsilon) == pytest.approx(believed, abs=0.1)
    assert loss.epsilon == pytest.approx(epsilon, abs=0.05)
    # With noise calibrated for a person's rows, the person's privacy loss is the requested epsilon.
    account = dpviz.account("gaussian", rows_a_person=rows)
    assert account.data()["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-9)
    assert account.view.mu == pytest.approx(mu_of(BUDGET), rel=1e-9)
    assert account.data()["problem"]["rows_a_person"] == rows


@pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")
def test_a_decision_and_a_fit_are_for_the_person() -> None:
    """To keep an equal share, a person with m rows needs m times the mu of one row."""
    lows = {}
    for rows, epsilon in ((None, 0.022), (3, 3 * 0.022), (3, 0.022)):
        settings = Settings(table="plan:n=1e4,spectrum=0.3,0.1,0.01", k=1, rows_a_person=rows)
        plan = load_measured(settings)
        prospect = prospect_of("plan", plan, None, settings, Answers(), BUDGET.delta)
        release = replace(prospect.options, epsilon=epsilon)
        lows[rows, epsilon] = prospect.outlook(release).low
    one, person, alike = lows.values()
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
    """Noise and change grow alike, so the audit detects a person as well as one row."""
    options = {"epsilon": 1.0, "trials": 1_000, "relation": "zero-out"}
    row = dpviz.audit(key, **options)  # type: ignore[arg-type]
    result = dpviz.audit(key, rows_a_person=rows, **options)  # type: ignore[arg-type]
    pair = result.audit.measured.pair
    first, second = pair.tables()
    assert first.rows is not None
    assert second.rows is not None
    assert (first.rows != second.rows).any(axis=1).sum() == rows
    assert result.epsilon_lower == pytest.approx(row.epsilon_lower, abs=0.02)
    assert result.verdict == row.verdict


@pytest.mark.parametrize("rows", ROWS[1:])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("key", all_mechanisms())
def test_what_a_row_spends_is_within_the_claim_for_all_rows(
    key: str, relation: Relation, rows: int
) -> None:
    """The person's loss follows by group privacy from the actual loss of the row's budget."""
    mechanism, problem = parse_variant(key), _problem(rows, relation)
    one = replace(problem, rows_a_person=None)
    budget = BUDGET if mechanism.why_not(one, BUDGET) is None else Budget(0.5, 1e-6)
    if mechanism.why_not(one, budget) is not None:
        pytest.skip("it runs at neither budget")
    status, whole = mechanism.status(one, budget), mechanism.status(problem, budget)
    assert (whole.verdict.fails, whole.verdict.counts) == (
        status.verdict.fails, status.verdict.counts,
    )  # fmt: skip
    loss, claim = mechanism.spent(problem, budget), mechanism.claim(problem, budget)
    if whole.verdict is Verdict.BASELINE or whole.verdict.fails:
        return
    assert claim is not None
    assert loss is not None
    assert loss.epsilon <= claim.epsilon * (1 + 1e-9)
    assert loss.delta <= claim.delta
    calibration = mechanism.calibrate(problem, budget)
    row = mechanism.spent(one, calibration.budget)
    assert row is not None
    if claim.delta == 0:
        assert rows * row.epsilon <= claim.epsilon * (1 + 1e-9)
    elif row.mu is not None:
        assert delta_of(claim.epsilon, rows * row.mu) <= claim.delta
    elif not calibration.parts:
        group = group_budget(Budget(max(row.epsilon, 1e-4), row.delta), rows)
        assert group.epsilon <= claim.epsilon * (1 + 1e-9)
        assert group.delta <= claim.delta


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
    picture = with_picture(
        parse_variant("gaussian"), _problem(3), BUDGET, PictureOptions(0.5, SPARSE)
    )
    plan, failing = picture.plan, THRESHOLD_SHARE * BUDGET.delta
    for cells in ([3], [2, 1], [1, 1, 1]):
        chance = sum(float(ndtr((count - plan.threshold) / plan.std)) for count in cells)
        assert 0 < chance <= failing
    assert picture.prepared.spent is not None
    assert picture.prepared.spent.epsilon <= 1


def test_what_is_guessed_is_said_of_the_neighbours_that_are_told_apart() -> None:
    loss = accounting.spent([GaussianPart(mu_of(BUDGET), 1.0)], BUDGET)
    for relation in Relation:
        for unit in Unit:
            for words in (
                risk_words("it", loss, 1.0, relation, unit),
                belief_words(0.01, loss, relation, unit),
            ):
                assert ("value" in words) == (relation is Relation.REPLACE)
                assert (" person" in words or "who is in" in words) == (unit is Unit.PERSON)
