"""Every mechanism either supplies private directions or is refused with a reason.

This module names no mechanism, so a new file in ``dpviz/mechanisms`` is tested automatically.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dpviz.accounting import accounting
from dpviz.core.allocation import parse_allocation
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.extend import checks
from dpviz.mechanisms import all_mechanisms
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms._directional import FollowsAllocation
from dpviz.mechanisms._suppliers import completed, own_problem, supplier_keys, why_never_supplied

CLASSES = all_mechanisms()
BUYERS = [cls() for cls in CLASSES.values() if cls.follows_allocation]
SUPPLIERS = [variant for cls in CLASSES.values() for variant in checks.variants_of(cls)]
SHARE = 0.3
BUDGETS = (Budget(1.0, 1e-6), Budget(3.0, 1e-5))


def named(mechanism: Mechanism) -> str:
    return mechanism.text


def asked(kind: str, relation: Relation, supplier: str, allocation: str, k: int = 2) -> Problem:
    """Return a problem that requests the directions of a mechanism."""
    bought = replace(parse_allocation(allocation, f"private:{SHARE}"), supplier=supplier)
    return Problem(checks.N, checks.D, k, relation, checks.domain_of(kind, checks.D), bought)


BUYINGS = (("binary:1:0.8", 2), ("max-pnr", 2), ("uniform", checks.D))
SETTINGS = [
    (kind, relation, *buying, budget)
    for buying, pairs in zip(
        BUYINGS,
        (((0, 0, 0), (1, 1, 1)), ((0, 0, 1), (1, 1, 0)), ((0, 1, 0), (1, 0, 1))),
        strict=True,
    )
    for kind, relation, budget in (
        (("ball", "box")[i], list(Relation)[j], BUDGETS[k]) for i, j, k in pairs
    )
]
"""For each buyer and supplier of directions: every pair of domain, relation, allocation and budget.

Pairs suffice, because no step depends on three settings at once. The budget is split before the
supplier receives its share. The supplier receives relation and domain, but no allocation. The
privacy losses of buyer and supplier are then combined.
"""


def settings(supplier: Mechanism) -> list[tuple[str, Problem, Budget]]:
    return [
        (kind, asked(kind, relation, supplier.text, allocation, k), budget)
        for kind, relation, allocation, k, budget in SETTINGS
    ]


def test_every_two_settings_meet() -> None:
    axes = [("ball", "box"), tuple(Relation), BUYINGS, BUDGETS]
    rows = [(kind, relation, (text, k), budget) for kind, relation, text, k, budget in SETTINGS]
    for (one, first), (two, second) in itertools.combinations(enumerate(axes), 2):
        assert {(row[one], row[two]) for row in rows} == set(itertools.product(first, second))


def test_there_are_buyers_and_all_of_them_say_so() -> None:
    assert {True, False} <= {buyer.pure for buyer in BUYERS if isinstance(buyer, FollowsAllocation)}
    assert all(isinstance(buyer, FollowsAllocation) for buyer in BUYERS)


def supply_everywhere(supplier: Mechanism) -> int:
    """Check each possible use of a supplier and each refusal; return the number of uses."""
    bought = 0
    for buyer in BUYERS:
        for kind, problem, budget in settings(supplier):
            reason = buyer.why_not(problem, budget)
            if reason is not None:
                assert supplier.text in reason, reason
                assert len(reason.split()) >= 4
                assert "\n" not in reason
                continue
            bought += 1
            adds_up(buyer, supplier, problem, budget)
            shapes_noise(buyer, supplier, kind, problem, budget)
    return bought


def adds_up(buyer: Mechanism, supplier: Mechanism, problem: Problem, budget: Budget) -> None:
    """Assert that the supplier stays within its share, and buyer and supplier within the budget."""
    assert isinstance(buyer, FollowsAllocation)
    purchase = buyer.purchase(problem, budget)
    share, rest, supply = purchase.bought, purchase.rest, purchase.supply
    assert share is not None
    assert supply is not None
    assert share.epsilon == SHARE * budget.epsilon
    assert share.epsilon + rest.epsilon == pytest.approx(budget.epsilon, rel=1e-15)
    needs_delta = supplier.info.guarantee == "approximate"
    assert share.delta == (SHARE * budget.delta if needs_delta else 0)
    assert supply.calibration.budget == share  # The supplier gets the share, not all of the budget.
    assert supply.status.verdict in (Verdict.HOLDS, Verdict.LOOSE, Verdict.APPROXIMATE)
    alone = accounting.spent(supply.parts, share)
    assert alone.epsilon <= share.epsilon * (1 + 1e-9)
    assert alone.delta <= share.delta
    parts = buyer.calibrate(problem, budget).parts
    assert parts[: len(supply.parts)] == supply.parts
    together = buyer.spent(problem, budget)
    claim = buyer.claim(problem, budget)
    assert together is not None
    assert claim is not None
    assert together.epsilon <= claim.epsilon * (1 + 1e-9)
    assert together.delta <= claim.delta
    free = replace(problem, allocation=parse_allocation("uniform"))
    if buyer.status(free, budget).verdict is Verdict.HOLDS:
        # The buyer uses all budget that the supplier leaves, even the unused part of its share.
        assert together.epsilon >= claim.epsilon * (1 - 1e-6)
    status = buyer.status(problem, budget)
    assert (status.verdict is Verdict.APPROXIMATE) == (supply.status.verdict is Verdict.APPROXIMATE)
    assert not status.verdict.fails
    assert supplier.label in status.evidence
    if buyer.pure:
        assert supplier.info.guarantee == "pure"
        assert together.delta == 0


def shapes_noise(
    buyer: Mechanism, supplier: Mechanism, kind: str, problem: Problem, budget: Budget
) -> None:
    """Assert that the bases are the supplier's own release, complete and orthonormal."""
    assert isinstance(buyer, FollowsAllocation)
    data = checks.moment_of(checks.bounded_rows(kind, checks.N, checks.D))
    calibration = buyer.calibrate(problem, budget)
    draws = Draws.trials(5, "supply", range(3))
    directions = buyer.directions(data, calibration, draws)
    supply = buyer.purchase(problem, budget).supply
    assert supply is not None
    frames = supply.mechanism.release_many(
        data, supply.calibration, Draws.trials(5, "supply", range(3))
    )
    assert directions.bases is not None
    assert directions.bases.shape == (3, checks.D, checks.D)
    gram = directions.bases.transpose(0, 2, 1) @ directions.bases
    assert np.abs(gram - np.eye(checks.D)).max() < 1e-10
    np.testing.assert_array_equal(directions.bases[..., : supply.count], frames.components)
    assert supply.count == own_problem(supplier, problem).k
    assert supply.count == (
        checks.D if supplier.info.release == "matrix" else min(problem.k, checks.D - 1)
    )
    if supplier.info.release == "matrix":
        assert frames.matrix is not None
        assert directions.variances is not None
        W = directions.bases
        along = np.einsum("tij,tik,tkj->tj", W, frames.matrix, W)
        size = np.abs(frames.matrix).max()
        np.testing.assert_allclose(along, directions.variances, rtol=0, atol=1e-12 * size)
    assert (directions.variances is not None) == supplier.releases_variances
    release = buyer.release_many(data, calibration, Draws.trials(5, buyer.key, range(2)))
    assert release.matrix is not None
    assert np.isfinite(release.matrix).all()
    alone = buyer.release_many(data, calibration, Draws.trials(5, buyer.key, range(1, 2)))
    assert release.raw[1:].tobytes() == alone.raw.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("supplier", SUPPLIERS, ids=named)
def test_it_supplies_or_is_refused_with_a_reason(supplier: Mechanism) -> None:
    bought = supply_everywhere(supplier)
    if why_never_supplied(supplier) is not None:
        assert bought == 0
        if supplier == type(supplier)():  # The list shows suppliers by their default variant.
            assert supplier.key not in supplier_keys()
        return
    assert supplier.key in supplier_keys()
    # A mechanism that can supply directions does so if its claim holds at its budget share.
    holds = False
    for _, problem, budget in settings(supplier):
        delta = SHARE * budget.delta * (supplier.info.guarantee == "approximate")
        own, share = own_problem(supplier, problem), Budget(SHARE * budget.epsilon, delta)
        if supplier.why_not(own, share, rows=False) is None:
            holds |= not supplier.status(own, share).verdict.fails
    assert (bought > 0) == holds


@pytest.mark.slow
def test_a_supplier_that_spends_more_than_its_share_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A supplier is refused if its reduced noise makes its own accounting refute its claim."""
    from dpviz.mechanisms._suppliers import _supply

    sound = next(
        s
        for s in SUPPLIERS
        if s.info.release == "matrix" and s.info.guarantee == "pure" and supply_everywhere(s)
    )
    before = type(sound).calibrate

    def less(self: Mechanism, problem: Problem, budget: Budget) -> object:
        return before(self, problem, Budget(4 * budget.epsilon, budget.delta))

    monkeypatch.setattr(type(sound), "calibrate", less)
    _supply.cache_clear()
    try:
        for buyer in BUYERS:
            reason = buyer.why_not(
                asked("box", Relation.REPLACE, sound.text, "uniform"), BUDGETS[0]
            )
            assert (
                reason == f"{sound.text} cannot supply its directions: its claim does not hold here"
            )
    finally:
        _supply.cache_clear()


@pytest.mark.parametrize("q", [1, 2, 5])
def test_completing_a_frame_needs_the_frame_alone(q: int) -> None:
    frames = np.linalg.qr(generator(0, "frames", q).standard_normal((4, 6, q))).Q
    bases = completed(frames)
    np.testing.assert_array_equal(bases[..., :q], frames)
    gram = bases.transpose(0, 2, 1) @ bases
    assert np.abs(gram - np.eye(6)).max() < 1e-14
    assert completed(frames).tobytes() == bases.tobytes()
    assert completed(frames[2:3]).tobytes() == bases[2:3].tobytes()
    np.testing.assert_array_equal(completed(bases), bases)  # A complete basis does not change.
