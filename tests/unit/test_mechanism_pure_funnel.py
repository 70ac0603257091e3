"""Pure funnel: two pure queries whose epsilons add."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.core.errors import CannotRun
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms._clipped import unit_rows
from dpviz.mechanisms._pure import PureLaw
from dpviz.mechanisms.pure_funnel import PureFunnel
from dpviz.sampling.nuclear import LARGEST_D


@pytest.mark.parametrize("law", PureLaw)
@pytest.mark.parametrize("relation", Relation)
def test_both_steps_take_half(relation: Relation, law: PureLaw) -> None:
    problem = Problem(400, 12, 2, relation, Domain.ball(12))
    mechanism = PureFunnel(noise=law)
    calibration = mechanism.calibrate(problem, Budget(0.7))
    parts = [part for part in calibration.parts if isinstance(part, PurePart)]
    assert [part.epsilon for part in parts] == pytest.approx([0.35, 0.35])
    assert sum(part.epsilon for part in parts) <= 0.7
    reach = {Relation.REPLACE: 2, Relation.ZERO_OUT: 1}[relation]
    assert calibration.scale == pytest.approx(2 * reach / 400 / 0.7)
    edge = law.edge(int(calibration.values["dimensions"])) * calibration.scale
    assert edge == pytest.approx(0.25, rel=0.2) or calibration.values["dimensions"] == 6


@pytest.mark.parametrize("relation", Relation)
def test_no_neighbours_move_a_look_by_more_in_nuclear_norm(relation: Relation) -> None:
    rng = generator(1, "pure")
    d, m = 6, 3
    base = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :m]
    rows = rng.standard_normal((300, d)) * 10.0 ** rng.uniform(-150, 100, (300, 1))
    unit = unit_rows(np.concatenate([rows, np.zeros((1, d)), np.eye(d), base.T]))
    reach = {Relation.REPLACE: 2.0, Relation.ZERO_OUT: 1.0}[relation]
    for look_rows in (unit, unit_rows(unit @ base)):
        parts = look_rows[:, :, None] * look_rows[:, None, :]
        others = parts if relation is Relation.REPLACE else np.zeros_like(parts[:1])
        worst = max(
            float(np.abs(np.linalg.eigvalsh(parts - one)).sum(axis=1).max()) for one in others
        )
        assert 0.99 * reach < worst <= reach * (1 + 1e-12)


def test_the_two_noises_have_one_unit() -> None:
    """With either noise, the loss of a shift is at most the shift's nuclear norm."""
    assert PureLaw.WISHART.edge(10) / PureLaw.KNORM.edge(10) == pytest.approx(
        3.3302 / math.pi, 1e-4
    )
    assert PureLaw.WISHART.direction_std(1) == pytest.approx(math.sqrt(2))
    assert PureLaw.KNORM.direction_std(1) == pytest.approx(math.sqrt(2))
    assert PureLaw.KNORM.direction_std(61) / PureLaw.WISHART.direction_std(61) < 0.93


def test_too_many_features_for_its_noise_are_refused() -> None:
    d = LARGEST_D + 1
    problem = Problem(400, d, 2, Relation.REPLACE, Domain.ball(d))
    PureFunnel().check(problem, Budget(1.0))
    with pytest.raises(CannotRun, match=f"takes at most {LARGEST_D} features; got {d}"):
        PureFunnel(noise=PureLaw.KNORM).check(problem, Budget(1.0))
