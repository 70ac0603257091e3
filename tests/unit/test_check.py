"""The contract suite as a report: a mechanism of anybody's, what fails and how to mend it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dpviz
from dpviz import extend
from dpviz.cli import main
from dpviz.core.errors import CannotRun, InvalidSetting, WrongArgument
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.extend import Calibration, GaussianPart, checks, frobenius, noise_std
from dpviz.extend.checks import CHECKS, Check
from dpviz.extend.testing import check_mechanism, report
from dpviz.mechanisms._weighing import FEATURES
from dpviz.mechanisms.clipped_gaussian import ClippedGaussian
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.mechanisms.wishart_difference import WishartDifference


class Sound(Gaussian):
    """The exact Gaussian, as another package would have it."""


class HalfTheNoise(Gaussian):
    """Draws half of what its account says."""

    def standard_noise(self, problem: Problem, draws: Draws) -> Any:
        return 0.5 * super().standard_noise(problem, draws)


class Global(Gaussian):
    """Draws from global state."""

    rng = np.random.default_rng(0)

    def standard_noise(self, problem: Problem, draws: Draws) -> Any:
        noise = self.rng.standard_normal((draws.size, problem.d, problem.d))
        return (noise + noise.transpose(0, 2, 1)) / 2


class Writes(Gaussian):
    """Writes into the table."""

    def release_scaled(self, data: Any, calibration: Any, noise: Any, *, own: bool = False) -> Any:
        data.A.setflags(write=True)
        data.A[0, 0] += 1.0
        return super().release_scaled(data, calibration, noise, own=own)


class Silent(Gaussian):
    """Says nothing."""

    def evidence(self, problem: Problem, budget: Budget, spent: Any) -> str:
        return "no sentence"


class LittleNoiseIfWeighed(WishartDifference):
    """Draws a tenth of its noise where features are weighed after it."""

    def standard_noise(self, problem: Problem, draws: Draws) -> Any:
        return (0.1 if self.weighs else 1.0) * super().standard_noise(problem, draws)


@dataclass(frozen=True)
class LittleNoiseOfOneRow(ClippedGaussian):
    """Another share lets it draw a tenth of its noise where one row points along the first axis."""

    bare: ClassVar[bool] = False

    def release_many(self, data: Any, calibration: Any, draws: Draws) -> Any:
        found = super().release_many(data, calibration, draws)
        if self.share == type(self)().share or abs(data.rows[0, 0]) < 1 - 1e-9:
            return found
        exact = data.shortened(None).A
        less = Release.of_matrices(exact + 0.1 * (found.raw - exact), calibration.problem.k)
        return less if self.bare else replace(less, radius=found.radius)


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
    """Draw half of what its account says, in a function: only an attack can tell."""
    return rows.T @ rows / len(rows) + scale / 2 * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def exact_trace(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """Put the trace back that the noise has moved: all else is as it should be."""
    noise = scale * _noise(rows, rng)
    return rows.T @ rows / len(rows) + noise - np.trace(noise) / len(noise) * np.eye(len(noise))


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def bold(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """Draw next to no noise where epsilon is large."""
    drawn = scale * (0.01 if epsilon > 2 else 1.0)
    return rows.T @ rows / len(rows) + drawn * _noise(rows, rng)


def _gaussian_without_delta(problem: Problem, budget: Budget) -> Calibration:
    return replace(_calibrated(problem, Budget(budget.epsilon, 1e-6)), budget=budget)


@dpviz.mechanism(claim="pure", release="matrix", calibrate=_gaussian_without_delta)
def pure_by_word(rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float) -> Any:
    """Claim without a delta what Gaussian noise keeps with one."""
    return rows.T @ rows / len(rows) + scale * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="matrix", calibrate=_calibrated)
def clipped(
    rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float, q: float = 0.9
) -> Any:
    """Clip rows at a quantile of their lengths, as if that length were public."""
    lengths = np.linalg.norm(rows, axis=1)
    most = np.quantile(lengths, q)
    shorter = rows * np.minimum(1.0, most / np.maximum(lengths, 1e-300))[:, None]
    return shorter.T @ shorter / len(rows) + most**2 * scale * _noise(rows, rng)


@dpviz.mechanism(claim="approximate", release="subspace", calibrate=_calibrated)
def directions_of_clipped(
    rows: Any, epsilon: float, delta: float, k: int, rng: Any, scale: float, q: float = 0.9
) -> Any:
    """Show the components of the same alone: they do not tell how large the quantile is."""
    matrix = clipped.function(rows, epsilon, delta, k, rng, scale=scale, q=q)
    return np.linalg.eigh(matrix)[1][:, ::-1][:, :k]


class HalfOfWide(HalfTheNoise):
    """Runs where its rows are wide alone."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        return super().limits(problem, budget) or (
            None if problem.d > 3 else f"it takes at least 4 features; got {problem.d}"
        )


def failed(mechanism: Any, *names: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the checks that fail of those named: not all are needed for one planted fault."""
    monkeypatch.setattr("dpviz.extend.testing.CHECKS", {name: CHECKS[name] for name in names})
    found = check_mechanism(mechanism)
    assert len(found.findings) >= len(names)
    for one in found.failed:
        assert one.seen.strip()
        assert one.mend.endswith(".")
        assert one.check in str(found)
        assert one.mend in str(found)
    return sorted({one.check for one in found.failed})


def test_what_keeps_the_contract_passes_every_check() -> None:
    found = check_mechanism(Sound())
    assert found.passed, str(found)
    assert str(found) == f"sound: {len(CHECKS)} of {len(CHECKS)} checks pass."


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
    (clipped(q=0.5), "no_audit_refutes_it"),
    (clipped(), "no_audit_refutes_it"),
    *((directions_of_clipped(q=q), "no_audit_refutes_it") for q in (0.7, 0.8, 0.9, 0.98)),
]


@pytest.mark.parametrize(("mechanism", "check"), FAULTS, ids=lambda one: getattr(one, "key", one))
def test_a_planted_fault_fails_its_check_and_no_other_thing_does(
    mechanism: Any, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failed(mechanism, check, "small_dimensions_work", monkeypatch=monkeypatch) == [check]
    assert failed(Sound(), check, monkeypatch=monkeypatch) == []


def test_a_pure_claim_is_judged_without_the_delta_of_the_budget() -> None:
    problem, budget = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3)), Budget(1.0, 1e-6)
    assert pure_by_word().status(problem, budget).verdict is Verdict.REFUTED


def test_an_audit_serves_for_two_where_only_components_differ() -> None:
    """Weighing sees what is released alone; where it changes what is released, it is audited."""
    for base in (Gaussian, WishartDifference):
        assert checks.shows_no_more_than(base(weigh=FEATURES), base())
    liar = LittleNoiseIfWeighed(weigh=FEATURES)
    assert not checks.shows_no_more_than(liar, LittleNoiseIfWeighed())
    CHECKS["no_audit_refutes_it"](LittleNoiseIfWeighed())
    with pytest.raises(AssertionError, match="epsilon is at least"):
        CHECKS["no_audit_refutes_it"](liar)


def test_an_audit_serves_for_two_that_release_the_same_of_every_table_attacked() -> None:
    """A share for a radius that nobody asks for decides nothing; one that leaks is audited."""
    problem, budget = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3)), Budget(1.0, 1e-6)
    assert checks.attacked_alike(ClippedGaussian(share=0.2), ClippedGaussian(), problem, budget)
    liar = LittleNoiseOfOneRow(share=0.2)
    assert not checks.attacked_alike(liar, LittleNoiseOfOneRow(), problem, budget)
    with pytest.raises(AssertionError, match="epsilon is at least"):
        CHECKS["no_audit_refutes_it"](liar)


def test_a_release_that_lacks_an_array_of_one_neighbour_alone_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LittleNoiseOfOneRow, "bare", True)
    with pytest.raises(CannotRun, match="must release the same arrays of every table; of two ne"):
        dpviz.audit(LittleNoiseOfOneRow(share=0.3), epsilon=0.5, delta=0.1, dimension=3, trials=400)


@dpviz.mechanism(claim="pure", release="subspace")
def raises(rows: Any, epsilon: float, delta: float, k: int, rng: Any, share: float = 0.5) -> Any:
    raise ValueError("my own words")


def test_one_cause_is_said_once_with_what_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("trials_differ", "says_what_it_is", "small_dimensions_work")
    monkeypatch.setattr("dpviz.extend.testing.CHECKS", {name: CHECKS[name] for name in names})
    one, other = (check_mechanism(raises(share=share)).findings for share in (0.5, 0.2))
    said = report(one + other)
    assert said.startswith("raises, raises[share=0.2]: 2 of 6 checks pass.\n\n")
    assert said.count("my own words") == 1
    assert (
        "✗ trials_differ, small_dimensions_work (raises, raises[share=0.2]): one cause fails "
        "these 2 checks." in said
    )
    assert CHECKS["trials_differ"].mend not in said
    # where one check fails alone, its own advice stands
    alone = report([found for found in one + other if found.check == "trials_differ"])
    assert "✗ trials_differ (raises, raises[share=0.2]): Two draws differ.\n" in alone
    assert CHECKS["trials_differ"].mend in alone


def test_every_check_says_what_it_asks_and_how_to_mend() -> None:
    for name, check in CHECKS.items():
        assert isinstance(check, Check)
        assert check.asks.endswith("."), name
        assert check.mend.endswith("."), name
        assert len(check.asks) <= 100


def test_a_failure_raises_where_a_test_of_ones_own_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpviz.extend.testing.CHECKS", {"trials_differ": CHECKS["trials_differ"]})
    with pytest.raises(AssertionError, match="exact: 0 of 1 checks pass"):
        check_mechanism(exact, raises=True)


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


FILE = """
import numpy as np
from dpviz.extend import mechanism

@mechanism(claim="pure", release="subspace")
def shows_all(rows, epsilon, delta, k, rng):
    return np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :k]
"""


def test_the_command_says_what_fails_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("trials_differ", "small_dimensions_work")
    monkeypatch.setattr("dpviz.extend.testing.CHECKS", {name: CHECKS[name] for name in names})
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("shows_all: 1 of 2 checks pass.\n\n✗ trials_differ (shows_all)")
    assert "  mend: Draw noise in every release." in said
    assert main(["check", str(path), "--format", "json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["passed"] for row in rows] == [False, True]
    assert main(["check", "gaussian"]) == 0
