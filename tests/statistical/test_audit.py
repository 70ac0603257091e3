"""The audit detects planted faults and does not refute sound mechanisms.

Every bound of one audit holds with the audit's confidence, so an audit of a sound mechanism refutes
it with probability at most 1 - confidence. Sound mechanisms run at CONFIDENCE = 1 - 1e-11: with at
most 100 audits the chance of any false alarm is below 1e-9. The seed is also fixed.

Power. A control is detected when its lower bound exceeds the claim. The mean and standard deviation
of the bound over 8 seeds are listed at the controls. All means are at least 10 standard deviations
above the claim, so the power is practically 1.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import pytest

from dpviz.accounting.profiles import WishartNoise
from dpviz.auditing import AuditVerdict, audit, default_budget
from dpviz.auditing.neighbours import Pair
from dpviz.cli import main
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import Lengths, at_rank
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms import all_mechanisms, clipped_gaussian, clipped_pure, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms.clipped_gaussian import ClippedGaussian
from dpviz.mechanisms.clipped_pure import ClippedPure
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.mechanisms.laplace_tight import LaplaceTight
from dpviz.mechanisms.ppca import Ppca
from dpviz.mechanisms.wishart_difference import WishartDifference

CONFIDENCE = 1 - 1e-11


# --- planted faults -------------------------------------------------------------------------------


@dataclass(frozen=True)
class HalfWishartDifference(WishartDifference):
    """A mechanism with half the noise, but the accounting for full noise."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        honest = super().calibrate(problem, budget)
        return dataclasses.replace(honest, scale=honest.scale / 2)


@dataclass(frozen=True)
class HalfLaplace(LaplaceTight):
    """A mechanism with half the noise, but the accounting for full noise."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        honest = super().calibrate(problem, budget)
        return dataclasses.replace(honest, scale=honest.scale / 2)


@dataclass(frozen=True)
class HalfGaussian(Gaussian):
    """A mechanism with half the noise, but the accounting for full noise."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        honest = super().calibrate(problem, budget)
        return dataclasses.replace(honest, scale=honest.scale / 2)


@dataclass(frozen=True)
class SwappedRelation(WishartDifference):
    """A mechanism with noise for zero-out neighbours, even if another relation was requested."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        other = dataclasses.replace(problem, relation=Relation.ZERO_OUT)
        honest = super().calibrate(other, budget)
        return dataclasses.replace(honest, problem=problem)


@dataclass(frozen=True)
class SwappedGaussian(Gaussian):
    """The Gaussian mechanism for zero-out neighbours, with correct accounting."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        noise = super().calibrate(dataclasses.replace(problem, relation=Relation.ZERO_OUT), budget)
        part = dataclasses.replace(super().calibrate(problem, budget).parts[0], std=noise.scale)
        return dataclasses.replace(noise, problem=problem, parts=(part,))


def bingham_by_inverted_acceptance(values: FloatArray, draws: Draws) -> FloatArray:
    """Kent's sampler with an inverted acceptance ratio.

    The envelope's density is (x'Omega x)^(-d/2), so a proposal must be accepted in proportion to
    exp(-s) (x'Omega x)^(d/2). This faulty sampler divides by the power instead.
    """
    gaps = values.max() - values
    d, rng = len(gaps), draws.generators[0]
    low, high = 1e-9, float(d)
    for _ in range(100):
        b = (low + high) / 2
        low, high = (b, high) if (1 / (b + 2 * gaps)).sum() > 1 else (low, b)
    omega = 1 + 2 * gaps / b
    out = np.empty((0, d))
    while len(out) < draws.size:
        y = rng.standard_normal((4 * draws.size, d)) / np.sqrt(omega)
        x = y / np.linalg.norm(y, axis=1, keepdims=True)
        # Both factors are at most 1, so their product is a valid acceptance probability.
        log_accept = -np.square(x) @ gaps - d / 2 * np.log(np.square(x) @ omega)
        out = np.concatenate([out, x[-rng.standard_exponential(len(x)) < log_accept]])
    return out[: draws.size]


@dataclass(frozen=True)
class InvertedBingham(Ppca):
    """PPCA with the faulty sampler."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        x = bingham_by_inverted_acceptance(calibration.scale * data.eigenvalues, draws)
        return Release.of_frames(data.eigenvectors @ x[:, :, None])


# Mechanism, budget and dimension of each control. Means (sd) of epsilon_lower at claim 1, over 8
# seeds of 20,000 trials: 1.52 (.04), 1.68 (.03), 2.08 (.06), 1.52 (.04), 2.12 (.07), 6.49 (.01).
CONTROLS: dict[str, tuple[Mechanism, Budget, int]] = {
    "half wishart_difference": (HalfWishartDifference(), Budget(1.0), 2),
    "half laplace": (HalfLaplace(), Budget(1.0), 2),
    "half gaussian": (HalfGaussian(), Budget(1.0, 0.01), 5),
    "swapped relation": (SwappedRelation(), Budget(1.0), 2),
    "inverted acceptance": (InvertedBingham(), Budget(1.0), 5),
    "published wishart": (parse_variant("wishart"), Budget(1.0), 5),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_a_planted_fault_is_caught_by_the_draws(name: str) -> None:
    mechanism, budget, d = CONTROLS[name]
    result = audit(mechanism, budget, d=d, trials=20_000)
    assert result.measured_refutes
    assert result.verdict is AuditVerdict.REFUTED
    assert "does not hold" in result.evidence


def test_rows_that_were_not_clipped_are_caught() -> None:
    """A row of norm 2 moves X'X by 4, but the claim allows 2, so the true epsilon is 2.

    The audit of blanking this row has a bound of 1.57 (sd .03 over 8 seeds) against a claim of 1.
    The same row clipped to the ball is not refuted.
    """
    mechanism, budget = WishartDifference(), Budget(1.0)
    long, zero = np.array([2.0, 0.0]), np.zeros(2)
    long_pair = Pair("a row of norm 2", np.zeros((99, 2)), long, zero)
    assert long_pair.longest() == 2
    result = audit(mechanism, budget, d=2, trials=20_000, pairs=[long_pair])
    assert result.measured_refutes
    short_pair = Pair("a row of norm 1", np.zeros((99, 2)), long / 2, zero)
    assert not audit(mechanism, budget, d=2, trials=20_000, pairs=[short_pair]).measured_refutes


@dataclass(frozen=True)
class HalfClippedGaussian(ClippedGaussian):
    """A mechanism with half the noise on the clipped moment, but the accounting for full noise."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        honest = super().calibrate(problem, budget)
        return dataclasses.replace(honest, scale=honest.scale / 2)


@dataclass(frozen=True)
class HalfClippedPure(ClippedPure):
    """A mechanism with half the noise on the clipped moment, but the accounting for full noise."""

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        honest = super().calibrate(problem, budget)
        return dataclasses.replace(honest, scale=honest.scale / 2)


# Without the changed row, half of the rows have length 1 and half length 4. The changed row decides
# if half are longer than 1. An orthogonal row of length 4 moves the clipped moment most.
LONG, SHORT = 4.0 * np.eye(2)[0], np.eye(2)[1]
HALVES = np.vstack([np.tile(4.0 * np.eye(2), (250, 1)), np.tile(np.eye(2), (250, 1))])[1:]
CROSSING = Pair("a long row becomes short, and the median with it", HALVES, LONG, SHORT)
# If all further rows are zero, any radius found is short, so the row has its full weight.
TURNED = Pair("a row turned, no other data", np.zeros((999, 2)), np.eye(2)[0], SHORT)
# With this pair, tau is .004 and .003 and counts are clear, so the mechanism does seek a radius.
CLIPPED = (
    (ClippedGaussian(), HalfClippedGaussian(), Budget(1.0, 0.01)),
    (ClippedPure(), HalfClippedPure(), Budget(1.0)),
)


@pytest.mark.parametrize(("sound", "half", "budget"), CLIPPED, ids=["gaussian", "pure"])
def test_half_the_noise_on_clipped_rows_is_caught(
    sound: Mechanism, half: Mechanism, budget: Budget
) -> None:
    """Over 8 seeds the bound has mean 1.92 (sd .06) and 1.42 (.04), against a claim of 1."""
    problem = Problem(1_000, 2, 1, Relation.REPLACE, Domain.ball(2))
    assert sound.releases(problem, budget) == "matrix"
    result = audit(half, budget, d=2, n=1_000, trials=12_000, pairs=[TURNED])
    assert result.measured_refutes
    honest = audit(sound, budget, d=2, n=1_000, trials=8_000, pairs=[TURNED], confidence=CONFIDENCE)
    assert not honest.measured_refutes
    assert honest.epsilon_lower > 0.3 * budget.epsilon  # The bound is .5, so the audit works.


@pytest.mark.parametrize(("sound", "half", "budget"), CLIPPED, ids=["gaussian", "pure"])
def test_a_radius_taken_from_the_data_is_caught(
    sound: Mechanism, half: Mechanism, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit refutes the exact median as radius: one row decides visibly between 1 and 4.

    The releases of the two tables always have different radii, so the bounds are as high as this
    number of releases allows, 6.9 and 6.9, against a claim of 1.
    """

    def median(lengths: Lengths, calibration: Calibration, draws: object) -> FloatArray:
        size = draws.size if isinstance(draws, Draws) else len(np.asarray(draws))
        return np.full(size, at_rank(lengths, lengths.n / 2 - 1))

    arguments = dict(d=2, n=1_000, trials=4_000, pairs=[CROSSING])
    honest = audit(sound, budget, confidence=CONFIDENCE, **arguments)
    assert not honest.measured_refutes
    for module in (clipped_gaussian, clipped_pure):
        monkeypatch.setattr(module, "radii_of", median)
    result = audit(sound, budget, **arguments)
    assert result.measured_refutes
    assert result.epsilon_lower > 4


def test_a_swapped_relation_shows_in_the_exact_profile_of_a_small_delta() -> None:
    """No number of simulated releases reveals a delta of 1e-6, but the exact profile does."""
    result = audit(SwappedGaussian(), Budget(1.0, 1e-6), trials=1_000)
    assert result.exact_refutes
    assert not result.measured_refutes
    honest = audit(Gaussian(), Budget(1.0, 1e-6), trials=1_000)
    assert honest.verdict is AuditVerdict.TIGHT
    assert honest.epsilon_lower == pytest.approx(1.0, rel=1e-6)


# --- sound mechanisms -----------------------------------------------------------------------------


def sound() -> list[str]:
    """Return each mechanism whose claim for a blanked row is not known to be false.

    tests/contract/test_mechanisms.py audits each variant for a replaced row.
    """
    keys = []
    for key, cls in all_mechanisms().items():
        mechanism = cls()
        problem = Problem(100, 5, 1, Relation.ZERO_OUT, Domain.ball(5))
        if not mechanism.status(problem, budget_of(mechanism)).verdict.fails:
            keys.append(key)
    return keys


def budget_of(mechanism: Mechanism) -> Budget:
    """Return a budget; releases can reveal a delta of 0.05, and exact routes need no releases."""
    delta = 0.05 if mechanism.info.guarantee == "approximate" else None
    return default_budget(mechanism, 0.9, delta)


@pytest.mark.long
@pytest.mark.parametrize("key", sound())
def test_a_sound_mechanism_passes(key: str) -> None:
    """All false alarms together have a chance below 1e-9; see the module's docstring."""
    mechanism = parse_variant(key)
    result = audit(
        mechanism,
        budget_of(mechanism),
        relation=Relation.ZERO_OUT,
        trials=3_000,
        confidence=CONFIDENCE,
    )
    assert result.verdict is not AuditVerdict.REFUTED
    if result.claim is not None:
        assert result.epsilon_lower <= result.claim.epsilon * (1 + 1e-6)


def test_there_are_enough_sound_mechanisms_and_not_too_many() -> None:
    assert 25 <= len(sound()) <= 100


@pytest.mark.parametrize("key", ["ppca", "eigenvector_sampling", "kapralov_talwar"])
def test_several_components_pass(key: str) -> None:
    result = audit(parse_variant(key), Budget(1.0), k=2, d=4, trials=1_500, confidence=CONFIDENCE)
    assert result.verdict is AuditVerdict.CONSISTENT
    assert not result.measured_refutes


# --- what the issue promises, through the command line --------------------------------------------


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["audit", *words, "--format", "json"]) == 0
    output: dict[str, object] = json.loads(capsys.readouterr().out)
    assert set(output) == {
        "mechanism",
        "claimed",
        "verdict",
        "epsilon_lower",
        "delta_lower",
        "at_epsilon",
        "confidence",
        "weakest_fault",
        "evidence",
    }
    assert "no number of simulated releases proves a claim" in str(output["evidence"])
    return output


def test_laplace_output_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    output = answer(capsys, "laplace_output", "--trials", "2000")
    assert output["verdict"] == "refuted"
    assert float(str(output["epsilon_lower"])) > 5


def test_analyze_gauss_under_replace_is_refuted_exactly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["analyze_gauss", "--epsilon", "1", "--delta", "1e-6", "--trials", "1000"]
    output = answer(capsys, *words, "--relation", "replace")
    assert output["verdict"] == "refuted"
    # In theory, delta is 9.3e-6 under the replace relation and 3.2e-9 under zero-out.
    assert float(str(output["delta_lower"])) == pytest.approx(9.3e-6, rel=0.01)
    assert output["at_epsilon"] == 1
    assert answer(capsys, *words, "--relation", "zero-out")["verdict"] == "consistent"


def test_no_claim_is_reported_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    output = answer(capsys, "non_private", "--trials", "1000")
    assert output["claimed"] is None
    assert output["verdict"] == "consistent"
    assert float(str(output["epsilon_lower"])) > 4
    assert "The mechanism claims no guarantee" in str(output["evidence"])


# --- measured beside exact ------------------------------------------------------------------------


def test_the_measured_bound_stays_below_an_exact_profile() -> None:
    """The Gaussian's delta at epsilon 1 is known; the measured bound is within a factor of two."""
    result = audit(Gaussian(), Budget(1.0, 0.1), trials=20_000, confidence=CONFIDENCE)
    assert result.exact is not None
    assert result.exact.deltas[0] == pytest.approx(0.1, rel=1e-6)
    assert 0.05 < result.measured.deltas[0] <= 0.1


def test_the_exact_chi_square_profile_is_used_where_there_is_one() -> None:
    result = audit(
        parse_variant("wishart_exact"), Budget(1.0, 1e-5), relation=Relation.ZERO_OUT, trials=500
    )
    assert result.exact is not None
    assert "chi-square" in result.exact.source
    profile = WishartNoise(
        result.mechanism.calibrate(result.problem, result.budget).values["nu"],
        result.mechanism.calibrate(result.problem, result.budget).values["unit_scale"],
    )
    assert result.exact.deltas[0] == pytest.approx(profile.delta(Relation.ZERO_OUT, 1.0))
