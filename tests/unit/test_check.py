"""The contract suite as a report: any mechanism, its failed checks and ways to fix them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz import extend
from dpviz.core.errors import InvalidSetting, WrongArgument
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.extend import Calibration, GaussianPart, frobenius, noise_std
from dpviz.extend.checks import CHECKS
from dpviz.extend.testing import check_mechanism
from dpviz.mechanisms.gaussian import Gaussian


class Sound(Gaussian):
    """The exact Gaussian mechanism, as another package would define it."""


class HalfTheNoise(Gaussian):
    """A mechanism that adds half the noise that its accounting states."""

    def standard_noise(self, problem: Problem, draws: Draws) -> Any:
        return 0.5 * super().standard_noise(problem, draws)


class Global(Gaussian):
    """A mechanism that samples noise from global state."""

    rng = np.random.default_rng(0)

    def standard_noise(self, problem: Problem, draws: Draws) -> Any:
        noise = self.rng.standard_normal((draws.size, problem.d, problem.d))
        return (noise + noise.transpose(0, 2, 1)) / 2


class Writes(Gaussian):
    """A mechanism that writes into the table."""

    def release_scaled(self, data: Any, calibration: Any, noise: Any, *, own: bool = False) -> Any:
        data.A.setflags(write=True)
        data.A[0, 0] += 1.0
        return super().release_scaled(data, calibration, noise, own=own)


class Silent(Gaussian):
    """A mechanism that gives no evidence for its claim."""

    def evidence(self, problem: Problem, budget: Budget, spent: Any) -> str:
        return "no sentence"


def _noise(rows: Any, rng: Any) -> Any:
    """Return a symmetric matrix whose upper triangle is N(0, 1)."""
    d = rows.shape[1]
    return rng.standard_normal((d, d)).ravel()[_mirror(d)]


@cache
def _mirror(d: int) -> Any:
    one, other = np.indices((d, d))
    return np.minimum(one, other) * d + np.maximum(one, other)


@dpviz.mechanism(claim="pure", release="subspace")
def exact(rows: Any, epsilon: float, delta: float, k: int, rng: Any) -> Any:
    return np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :k]


def _calibrated(problem: Problem, budget: Budget) -> Calibration:
    sensitivity = frobenius(problem)
    scale = sensitivity * noise_std(budget)
    return Calibration(problem, budget, scale, (GaussianPart(sensitivity, scale),))


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def half_of_it(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """A mechanism with half the noise of its accounting, which only an attack can detect."""
    return rows.T @ rows / len(rows) + scale / 2 * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def exact_trace(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """A mechanism that restores the exact trace after adding noise; the rest is correct."""
    noise = scale * _noise(rows, rng)
    return rows.T @ rows / len(rows) + noise - np.trace(noise) / len(noise) * np.eye(len(noise))


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def bold(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """A mechanism that adds almost no noise if epsilon is large."""
    noise = scale * (0.01 if epsilon > 2 else 1.0)
    return rows.T @ rows / len(rows) + noise * _noise(rows, rng)


def _gaussian_without_delta(problem: Problem, budget: Budget) -> Calibration:
    return replace(_calibrated(problem, Budget(budget.epsilon, 1e-6)), budget=budget)


@dpviz.mechanism(claim="pure", release="matrix", calibrate=_gaussian_without_delta)
def pure_by_word(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """A mechanism that claims pure privacy for Gaussian noise, which needs a delta."""
    return rows.T @ rows / len(rows) + scale * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def clipped(
    rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float, q: float = 0.9
) -> Any:
    """A mechanism that clips rows at a quantile of their lengths, as if it were public."""
    lengths = np.linalg.norm(rows, axis=1)
    most = np.quantile(lengths, q)
    shorter = rows * np.minimum(1.0, most / np.maximum(lengths, 1e-300))[:, None]
    return shorter.T @ shorter / len(rows) + most**2 * scale * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="subspace", calibrate=_calibrated)
def directions_of_clipped(
    rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float, q: float = 0.9
) -> Any:
    """The mechanism releases only the components, which do not reveal the quantile."""
    matrix = clipped.function(rows, epsilon, delta, k, rng, scale=scale, q=q)
    return np.linalg.eigh(matrix)[1][:, ::-1][:, :k]


class HalfOfWide(HalfTheNoise):
    """A mechanism that runs only on wide rows."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        return super().limits(problem, budget) or (
            None if problem.d > 3 else f"it takes at least 4 features; got {problem.d}"
        )


def failed(mechanism: Any, *names: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the named checks that fail; one planted fault does not need all checks."""
    monkeypatch.setattr("dpviz.extend.testing.CHECKS", {name: CHECKS[name] for name in names})
    report = check_mechanism(mechanism)
    assert len(report.findings) >= len(names)
    for one in report.failed:
        assert one.seen.strip()
        assert one.mend.endswith(".")
        assert one.check in str(report)
        assert one.mend in str(report)
    return sorted({one.check for one in report.failed})


def test_what_keeps_the_contract_passes_every_check() -> None:
    report = check_mechanism(Sound())
    assert report.passed, str(report)
    assert str(report) == f"sound: {len(CHECKS)} of {len(CHECKS)} checks pass."


FAULTS = [
    (HalfTheNoise, "noise_covers_what_one_person_moves"),
    (Global, "same_stream_same_bytes"),
    (Writes, "input_is_not_changed"),
    (Silent, "status_is_told_in_a_sentence"),
    (exact, "trials_differ"),
    (exact, "no_audit_refutes_it"),
    (half_of_it, "no_audit_refutes_it"),
    (HalfOfWide, "no_audit_refutes_it"),
    (exact_trace, "no_audit_refutes_it"),
    (bold, "no_audit_refutes_it"),
    (pure_by_word, "no_audit_refutes_it"),
    (clipped(), "no_audit_refutes_it"),
    (directions_of_clipped(), "no_audit_refutes_it"),
]


@pytest.mark.parametrize(("mechanism", "check"), FAULTS, ids=lambda one: getattr(one, "key", one))
def test_a_planted_fault_fails_its_check_and_no_other_thing_does(
    mechanism: Any, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failed(mechanism, check, "small_dimensions_work", monkeypatch=monkeypatch) == [check]


def test_a_pure_claim_is_judged_without_the_delta_of_the_budget() -> None:
    problem, budget = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3)), Budget(1.0, 1e-6)
    assert pure_by_word().status(problem, budget).verdict is Verdict.REFUTED


@dpviz.mechanism(claim="pure", release="subspace")
def raises(rows: Any, epsilon: float, delta: float, k: int, rng: Any, share: float = 0.5) -> Any:
    raise ValueError("my own words")


def test_what_is_no_mechanism_is_refused_in_a_sentence() -> None:
    with pytest.raises(WrongArgument, match="must be a Mechanism"):
        check_mechanism(object())

    @dataclass(frozen=True)
    class Unfinished(extend.Mechanism):
        info = extend.MechanismInfo(label="U", release="matrix", guarantee="pure")

    with pytest.raises(WrongArgument, match="must define calibrate, evidence, release_many"):
        check_mechanism(Unfinished)
    with pytest.raises(InvalidSetting, match="a Python file that defines a mechanism"):
        dpviz.check(__file__.replace("test_check", "test_rooms"))
