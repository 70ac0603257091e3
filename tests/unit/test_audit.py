from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import dpviz
from dpviz.accounting.losses import log_density, log_normaliser
from dpviz.accounting.sensitivity import frobenius, nuclear
from dpviz.auditing import audit
from dpviz.auditing.bounds import delta_bound, epsilon_bound, lower_limit, upper_limit
from dpviz.auditing.events import Event, LearnedScores, chosen, epsilon_value, shapes_of
from dpviz.auditing.neighbours import candidates, moved
from dpviz.auditing.result import AuditVerdict
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import (
    Calibration,
)
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.mechanisms.gaussian import Gaussian


def test_limits_at_the_ends() -> None:
    assert lower_limit(0, 50, 0.05) == 0
    assert upper_limit(50, 50, 0.05) == 1
    # Exact limits p: p^50 = alpha if all 50 tests succeed, and (1 - p)^50 = alpha if none does.
    assert float(lower_limit(50, 50, 0.05)) == pytest.approx(0.05 ** (1 / 50))
    assert float(upper_limit(0, 50, 0.05)) == pytest.approx(1 - 0.05 ** (1 / 50))


@given(trials=st.integers(1, 400), share=st.floats(0, 1), alpha=st.floats(1e-9, 0.4))
def test_limits_solve_the_binomial_equations(trials: int, share: float, alpha: float) -> None:
    count = round(share * trials)
    low, high = float(lower_limit(count, trials, alpha)), float(upper_limit(count, trials, alpha))
    assert 0 <= low <= count / trials <= high <= 1
    if count > 0:
        assert binom.sf(count - 1, trials, low) == pytest.approx(alpha, rel=1e-6)
    if count < trials:
        assert binom.cdf(count, trials, high) == pytest.approx(alpha, rel=1e-6)


def test_randomised_response_is_bounded_by_its_own_epsilon() -> None:
    p, q = math.e / (1 + math.e), 1 / (1 + math.e)
    assert float(epsilon_bound(p, q, 0.0)) == pytest.approx(1.0)
    assert float(delta_bound(p, q, 0.0)) == pytest.approx(p - q)
    assert float(delta_bound(p, q, 1.0)) == pytest.approx(0.0, abs=1e-15)
    assert float(epsilon_bound(0.1, 0.2, 0.0)) == 0
    assert float(epsilon_bound(0.1, 0.2, 0.5)) == 0
    assert float(delta_bound(0.9, 0.5, 1e6)) == 0


# --- neighbours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [Domain.ball, Domain.box])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("d", "k"), [(2, 1), (5, 1), (5, 3)])
def test_every_candidate_is_a_legal_pair(
    domain: Callable[[int], Domain], relation: Relation, d: int, k: int
) -> None:
    problem = Problem(40, d, k, relation, domain(d))
    rng = generator(0, "test")
    pairs = candidates(problem, rng, additive=False, rows=True)
    pairs += [moved(pair, problem, 0.5, rng) for pair in pairs]
    assert len(pairs) > 20
    # A box contains rows longer than 1, so its neighbouring tables differ from the unit ball's.
    longest = math.sqrt(d) if problem.domain.kind == "box" else 1.0
    assert max(pair.longest() for pair in pairs) == pytest.approx(longest)
    for pair in pairs:
        assert pair.longest() <= longest + 1e-12
        rows = np.vstack([pair.first, pair.second, pair.others])
        assert rows.shape == (41, d)
        assert np.abs(rows).max() <= 1 + 1e-12
        first, second = pair.tables()
        assert first.n == second.n == 40
        # The matrices of the two neighbouring tables differ only by D/n.
        np.testing.assert_allclose(40 * (first.A - second.A), pair.difference, atol=1e-12)
        if relation is Relation.ZERO_OUT:
            assert not pair.second.any()


def test_tied_tables_swap_their_leading_direction() -> None:
    problem = Problem(40, 4, 2, Relation.REPLACE, Domain.ball(4))
    pairs = candidates(problem, generator(0, "test"), additive=False, rows=False)
    (pair,) = (
        pair for pair in pairs if pair.name == "a unit row replaced by an orthogonal one, "
        "two directions tied"
    )  # fmt: skip
    first, second = pair.tables()
    inside = np.abs(first.eigenvectors[:, :2].T @ second.eigenvectors[:, :2])
    # The two tables have one component in common; their other components are at right angles.
    np.testing.assert_allclose(np.sort(inside.ravel()), [0, 0, 0, 1], atol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 5, 6])
def test_the_box_pairs_reach_the_sensitivities(d: int) -> None:
    for relation in Relation:
        problem = Problem(40, d, 1, relation, Domain.box(d))
        pairs = candidates(problem, generator(0, "test"), additive=True, rows=False)
        for norm, bound in (("fro", frobenius(problem)), ("nuc", nuclear(problem))):
            reach = max(float(np.linalg.norm(pair.difference, norm)) for pair in pairs)
            assert reach == pytest.approx(40 * bound, rel=1e-9)


@pytest.mark.parametrize("d", [3, 4])
def test_an_audit_on_a_box_sees_its_own_neighbours(d: int) -> None:
    """The audit on a box finds Gaussian noise tight, with neighbours outside the unit ball."""
    budget = Budget(1.0, 1e-3)
    result = audit(parse_variant("gaussian"), budget, d=d, trials=2_000, domain="box")
    assert result.problem.domain == Domain.box(d)
    assert result.exact is not None
    assert result.exact.epsilon == pytest.approx(1.0, rel=1e-6)
    assert result.verdict is AuditVerdict.TIGHT
    assert result.measured.epsilon_lower <= 1.0 + 1e-6
    assert result.measured.pair.longest() > 1  # This row lies outside the unit ball.


def test_noise_scaled_for_the_ball_is_caught_on_the_box() -> None:
    """Rows reach length 2 at d = 4, so a claimed epsilon of 1 has a privacy loss of about 4."""

    class ForTheBall(Gaussian):
        def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
            ball = replace(problem, domain=Domain.ball(problem.d))
            return replace(super().calibrate(ball, budget), problem=problem)

    result = audit(ForTheBall(), Budget(1.0, 1e-3), d=4, trials=4_000, domain="box")
    assert result.measured.epsilon_lower > 1.2
    assert result.verdict is AuditVerdict.REFUTED


# --- events ---------------------------------------------------------------------------------------


def test_an_event_counts_right_and_wrong_names() -> None:
    first, second = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.5, -1.0, -2.0, 2.5])
    assert Event("x", 1, 1.5, None).count(first, second) == (2, 1, 4)
    assert Event("x", 1, None, 0.2).count(first, second) == (2, 1, 4)
    assert Event("x", 1, 1.5, 0.2).count(first, second) == (4, 2, 8)
    assert Event("x", -1, -0.7, None).count(first, second) == (1, 3, 4)


def test_the_event_that_tells_most_is_chosen() -> None:
    rng = generator(1, "test")
    noise = rng.standard_normal((4, 4_000))
    first = {"nothing": noise[0], "shift": noise[1] + 1.0}
    second = {"nothing": noise[2], "shift": noise[3]}
    event, value = chosen(shapes_of(first, second), 1e-3, epsilon_value(0.0))
    assert event.score == "shift"
    assert event.sign == 1
    assert value > 0.8
    reverse, _ = chosen(shapes_of(second, first), 1e-3, epsilon_value(0.0))
    assert reverse.sign == -1


def test_a_score_that_is_constant_on_each_table_is_used_in_full() -> None:
    first, second = {"x": np.full(500, 0.25)}, {"x": np.full(500, 0.75)}
    event, value = chosen(shapes_of(first, second), 1e-3, epsilon_value(0.0))
    assert event.count(first["x"], second["x"]) == (1_000, 0, 1_000)
    assert value > 4


def test_the_learned_score_finds_a_direction() -> None:
    rng = generator(2, "test")
    toward = np.array([1.0, -1.0, 0.0, 0.0])
    first, second = rng.standard_normal((2, 3_000, 4))
    score = LearnedScores.fit(first + toward, second)
    unit = score.direction / np.linalg.norm(score.direction)
    # The estimated angle has a standard error of about sqrt(4/3,000) = .04.
    assert unit @ toward / math.sqrt(2) > 0.98


# --- densities and normalisers --------------------------------------------------------------------


def test_the_normaliser_on_the_circle_and_the_sphere() -> None:
    assert log_normaliser(np.zeros(2)) == pytest.approx(math.log(2 * math.pi))
    assert log_normaliser(np.zeros(3)) == pytest.approx(math.log(4 * math.pi))
    # Adding a constant to B's eigenvalues adds this constant to the logarithm of the normaliser.
    base = log_normaliser(np.array([3.0, 1.0, 0.5]))
    assert log_normaliser(np.array([5.0, 3.0, 2.5])) == pytest.approx(base + 2)


def test_the_normaliser_gives_the_known_moment() -> None:
    """E x_1^2 = d ln Z/d lambda_1 = 0.86207 for B = diag(8, 0, 0)."""
    step = 1e-4
    above, below = (log_normaliser(np.array([8 + s, 0.0, 0.0])) for s in (step, -step))
    assert (above - below) / (2 * step) == pytest.approx(0.86207, abs=1e-5)


@pytest.mark.parametrize("concentration", [50.0, 5e3, 5e4])
def test_the_normaliser_of_a_concentrated_law(concentration: float) -> None:
    """By Laplace's method there are two poles, each with a 2-d Gaussian of precision 2 c."""
    value = log_normaliser(np.array([0.0, 0.0, concentration])) - concentration
    leading = math.log(2 * math.pi / concentration)
    assert value == pytest.approx(leading, abs=1.2 / concentration)


def test_the_density_of_a_wishart_difference_has_the_right_ratio_mean() -> None:
    """E_f1 [f2/f1] is 1 for the claimed density, but not for another exponent.

    The ratio lies in [e^-1, e], so its mean over 40,000 samples has a standard error below (e -
    1/e)/2/200 = .0059; .036 is six standard errors.
    """
    mechanism, budget = parse_variant("wishart_difference"), Budget(1.0)
    problem = Problem(100, 2, 1, Relation.REPLACE, Domain.ball(2))
    scale = mechanism.calibrate(problem, budget).scale
    noise = mechanism.standard_noise(problem, Draws.batch(generator(3, "test"), 40_000))  # type: ignore[attr-defined]
    shift = np.diag([1.0, -1.0]) / 100 / scale
    loss = log_density(noise) - log_density(noise - shift)
    assert np.abs(loss).max() <= 1
    assert np.exp(-loss).mean() == pytest.approx(1, abs=0.036)
    assert abs(np.exp(-2 * loss).mean() - 1) > 0.1


# --- the audit and its options --------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fault_that_draws_cannot_see_is_never_called_tight(seed: int) -> None:
    """An audit whose releases cannot show a fourfold loss (27 % of the noise) is not tight."""

    def faulty(rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator) -> Any:
        n, d = rows.shape
        noise = np.triu(rng.laplace(scale=0.27 * 2 * d / (n * epsilon), size=(d, d)))
        return rows.T @ rows / n + noise + np.triu(noise, 1).T

    result = dpviz.audit(faulty, trials=2_000, claim=(1, 0), dimension=3, seed=seed)
    assert result.verdict == "consistent"
    assert "✓" not in result.summary()
    # The measured privacy loss is near the claim, so the audit misses only weak faults.
    assert result.data()["weakest_fault"]["factor"] > 0.6


def with_share(key: str, share: float) -> Mechanism:
    """Return a mechanism with a share of the noise that its accounting requires."""
    base = type(parse_variant(key))

    def calibrate(self: Mechanism, problem: Problem, budget: Budget) -> Calibration:
        whole = base.calibrate(self, problem, budget)
        return replace(whole, scale=share * whole.scale)

    thinner: Mechanism = type("Thinner", (base,), {"calibrate": calibrate})()
    return thinner


@pytest.mark.parametrize(
    ("key", "epsilon", "trials"),
    [
        ("gaussian", 1.0, 4_000),
        pytest.param("laplace_tight", 0.5, 10_000, marks=pytest.mark.long),
    ],
)
def test_the_weakest_fault_that_an_audit_states_is_the_one_it_sees(
    key: str, epsilon: float, trials: int
) -> None:
    """At 1.2 times the stated share of noise no audit refutes; at 1/1.2 times every audit refutes.

    A count's standard error is a sixteenth of the bound here; a fifth is three standard errors. The
    second case once stated .35 instead of .55, because its pilot had lost the most telling pair.
    """
    options: dict[str, Any] = {"epsilon": epsilon, "trials": trials, "dimension": 3}
    fault = dpviz.audit(key, **options).data()["weakest_fault"]
    assert fault["low"] < fault["factor"] < fault["high"] < 1
    for times, verdict in ((1.2, "consistent"), (1 / 1.2, "refuted")):
        faulty = with_share(key, times * fault["factor"])
        for seed in (1, 2, 3):
            assert dpviz.audit(faulty, seed=seed, **options).verdict == verdict


def test_draws_that_see_no_planted_fault_say_so() -> None:
    """A function that ignores epsilon has the same noise at each: no fault can be planted in it."""

    def constant(rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator) -> Any:
        return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]

    result = dpviz.audit(constant, trials=200, claim=(1, 0), dimension=3)
    assert result.data()["weakest_fault"] is None
    assert "the audit found no planted fault" in result.summary()
