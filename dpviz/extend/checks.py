"""The checks that every mechanism must pass, and the tables used in these checks.

Each check takes one mechanism and asserts. `CHECKS` lists all checks by name, with their
requirement and advice for a failure. The contract tests run them over all mechanisms that
`all_mechanisms` finds, and `check_mechanism` over a custom mechanism. No check names a mechanism.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.auditing import Audit, AuditVerdict, audit
from dpviz.auditing.account import account_view
from dpviz.auditing.neighbours import candidates
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.metrics import METRICS, Outcome, chance_share, measure, nothing_to_recover
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release, Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import _base, all_mechanisms, parse_variant
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism, MechanismInfo
from dpviz.mechanisms._weighing import NONE, Weighing
from dpviz.preparation.account import Composed, accounted

D, N = 5, 400
# Test at epsilon 0.5 too, because some published mechanisms refuse epsilon of 1 and more.
BUDGETS = (Budget(1.0, 1e-6), Budget(0.5, 1e-6), Budget(0.5, 0.0))
# Test at a large delta: at the usual delta, a few thousand simulated releases cannot distinguish
# half the claimed noise from all of it.
ATTACKED = {"approximate": Budget(0.5, 0.1), "pure": Budget(1.0, 0.0), "none": Budget(1.0, 0.0)}
RELEASES = ("matrix", "subspace", "data")
GUARANTEES = ("pure", "approximate", "none")


def variants_of(cls: type[Mechanism]) -> list[Mechanism]:
    """Return the default variant, and one variant for each example of each declared parameter."""
    # Vary one parameter at a time, because all combinations would take hours.
    variants = [
        cls(**{name: example})
        for name, param in params_of(cls).items()
        for example in param.examples
    ]
    return list(dict.fromkeys([cls(), *variants]))


@cache
def bounded_rows(kind: str, n: int, d: int, tail: float = 0.5) -> FloatArray:
    """Return rows inside the unit ball or the cube, with two strong directions.

    ``tail`` is the standard deviation of the other directions relative to the second.
    """
    rng = generator(11, "rows", kind, n, d)
    spread = np.concatenate(([1.0, 0.8], np.full(d - 2, 0.8 * tail)))
    rows = rng.standard_normal((n, d)) * spread
    # Turn the rows at random, so that no strong direction coincides with a feature.
    rows = rows @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    if kind == "ball":
        rows /= np.linalg.norm(rows, axis=1).max()
    else:
        rows /= np.abs(rows).max()
    rows.setflags(write=False)
    return np.asarray(rows, dtype=np.float64)


def moment_of(rows: FloatArray) -> SecondMoment:
    """Return the second moment of rows."""
    second = rows.T @ rows / len(rows)
    return SecondMoment((second + second.T) / 2, len(rows), rows)


def domain_of(kind: str, d: int) -> Domain:
    """Return the unit ball or the box as a domain."""
    return Domain.ball(d) if kind == "ball" else Domain.box(d)


def runnable(mechanism: Mechanism, *, k: int = 2) -> Iterator[tuple[SecondMoment, Problem, Budget]]:
    """Yield data and settings for ball, box and both relations, if the mechanism can run.

    The check fails if nothing is yielded, because a mechanism that never runs is a mistake.
    """
    count = 0
    for kind in ("ball", "box"):
        for relation in Relation:
            problem = Problem(N, D, k, relation, domain_of(kind, D))
            for budget in BUDGETS:
                if mechanism.why_not(problem, budget) is None:
                    count += 1
                    yield moment_of(bounded_rows(kind, N, D)), problem, budget
                    break
    assert count > 0, f"{mechanism.text} runs in none of the standard settings"


def draws_of(mechanism: Mechanism, trials: range = range(6)) -> Draws:
    """Return the random streams of some trials."""
    return Draws.trials(3, mechanism.key, trials)


def released(
    mechanism: Mechanism,
    data: SecondMoment,
    problem: Problem,
    budget: Budget,
    trials: range = range(6),
) -> tuple[Calibration, Release]:
    """Return the calibration and the releases of some trials."""
    calibration = mechanism.calibrate(problem, budget)
    draws = draws_of(mechanism, trials)
    return calibration, _base.released(mechanism, data, calibration, draws)


def arrays_of(release: Release) -> dict[str, FloatArray]:
    """Return the arrays of a release, keyed by name."""
    names = ("raw", "components", "matrix", "eigenvalues", "trace", "radius")
    present = {name: getattr(release, name) for name in names}
    return {name: np.asarray(array) for name, array in present.items() if array is not None}


def assert_same_bytes(first: Release, second: Release) -> None:
    """Fail if two releases differ."""
    left, right = arrays_of(first), arrays_of(second)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].shape == right[name].shape, name
        assert left[name].tobytes() == right[name].tobytes(), name


def rows_of(release: Release, index: slice) -> Release:
    """Return a slice of a batch of releases."""
    parts: dict[str, Any] = {name: array[index] for name, array in arrays_of(release).items()}
    return Release(**parts)


def refusal(call: Callable[[], object]) -> CannotRun:
    """Return the `CannotRun` that a call raises; fail if the call raises none."""
    try:
        call()
    except CannotRun as error:
        return error
    raise AssertionError("the mechanism runs in a case that it should refuse")


# The checks ----------------------------------------------------------------------------------


def says_what_it_is(mechanism: Mechanism) -> None:
    """The fields of ``info`` are filled in."""
    info = mechanism.info
    for field in ("label", "summary", "paper", "family", "law", "calibration", "complexity"):
        assert getattr(info, field).strip(), f"info.{field} is empty"
    assert info.summary.endswith(".")
    assert info.advice.endswith(".")
    assert info.release in RELEASES
    assert info.guarantee in GUARANTEES
    assert info.order >= 0
    if mechanism.ours:
        assert mechanism.key == type(mechanism).__module__.rpartition(".")[2]
        defaults = {one.name: one.default for one in fields(MechanismInfo)}
        for name in ("summary", "paper", "family", "order", "law", "calibration", "advice"):
            assert getattr(info, name) != defaults[name], f"info.{name} is left out"
    assert not info.psd or info.release != "subspace"


def calibration_sees_no_data(mechanism: Mechanism) -> None:
    """Calibrate takes (self, problem, budget) and returns the same result each time."""
    assert list(inspect.signature(type(mechanism).calibrate).parameters) == [
        "self",
        "problem",
        "budget",
    ]
    for _, problem, budget in runnable(mechanism):
        first, second = (mechanism.calibrate(problem, budget) for _ in range(2))
        assert first == second
        assert first.problem == problem
        assert first.budget == budget
        assert math.isfinite(first.scale)
        assert first.scale >= 0


def scale_follows_epsilon(mechanism: Mechanism) -> None:
    """The scale is monotone in epsilon.

    The scale of additive noise falls strictly; any other scale is monotone.
    """
    for _, problem, budget in runnable(mechanism):
        grid = [
            Budget(epsilon, budget.delta)
            # Use a wide grid of epsilons to find formulas with branches that are not monotone.
            for epsilon in np.geomspace(1e-3, 1e3, 25)
            if mechanism.why_not(problem, Budget(epsilon, budget.delta)) is None
        ]
        steps = np.diff([mechanism.calibrate(problem, point).scale for point in grid])
        if isinstance(mechanism, AdditiveMechanism):
            # The noise scale must fall strictly: if it is constant, a larger epsilon is wasted.
            assert (steps < 0).all()
        else:
            assert (steps <= 0).all() or (steps >= 0).all()


def same_stream_same_bytes(mechanism: Mechanism) -> None:
    """The same random stream gives the same bytes."""
    for data, problem, budget in runnable(mechanism):
        first, second = (released(mechanism, data, problem, budget)[1] for _ in range(2))
        assert_same_bytes(first, second)


def batched_equals_looped(mechanism: Mechanism) -> None:
    """A batch of releases equals the same releases made one by one."""
    for data, problem, budget in runnable(mechanism):
        _, batch = released(mechanism, data, problem, budget)
        for trial in range(6):
            _, alone = released(mechanism, data, problem, budget, range(trial, trial + 1))
            # Compare bytes, because a product over a batch may round differently from a single one.
            assert_same_bytes(rows_of(batch, slice(trial, trial + 1)), alone)


def chunks_join_without_a_seam(mechanism: Mechanism) -> None:
    """Adding a trial does not change the others."""
    for data, problem, budget in runnable(mechanism):
        _, batch = released(mechanism, data, problem, budget)
        for chunk in (range(3), range(3, 5), range(5)):
            _, part = released(mechanism, data, problem, budget, chunk)
            assert_same_bytes(rows_of(batch, slice(chunk.start, chunk.stop)), part)


def shared_generator_works(mechanism: Mechanism) -> None:
    """One generator may serve a batch, as in audits."""
    for data, problem, budget in runnable(mechanism):
        calibration = mechanism.calibrate(problem, budget)
        releases = [
            _base.released(mechanism, data, calibration, Draws.batch(generator(5, "shared"), 4))
            for _ in range(2)
        ]
        assert releases[0].components.shape == (4, problem.d, problem.k)
        assert_same_bytes(*releases)


def trials_differ(mechanism: Mechanism) -> None:
    """Two simulated releases of one table differ."""
    for data, problem, budget in runnable(mechanism):
        if mechanism.info.guarantee == "none" and mechanism.calibrate(problem, budget).scale == 0:
            continue  # A baseline mechanism may release a constant, so skip this check.
        raw = np.asarray(released(mechanism, data, problem, budget)[1].raw).reshape(6, -1)
        assert len(np.unique(raw, axis=0)) == 6


def input_is_not_changed(mechanism: Mechanism) -> None:
    """The input data are not changed."""
    for data, problem, budget in runnable(mechanism):
        assert data.rows is not None
        before = data.A.tobytes(), data.n, data.rows.tobytes()
        _, release = released(mechanism, data, problem, budget)
        assert (data.A.tobytes(), data.n, data.rows.tobytes()) == before
        assert not data.A.flags.writeable
        for array in (release.raw, release.matrix):
            assert array is None or not array.flags.writeable or not np.shares_memory(array, data.A)


def components_are_orthonormal(mechanism: Mechanism) -> None:
    """Components are orthonormal; the largest entry of each is positive."""
    for data, problem, budget in runnable(mechanism):
        _, release = released(mechanism, data, problem, budget)
        components = release.components
        assert components.shape == (6, problem.d, problem.k)
        gram = components.transpose(0, 2, 1) @ components
        assert np.abs(gram - np.eye(problem.k)).max() < 1e-10
        # Check the sign rule: in each column, the largest entry in absolute value is positive.
        np.testing.assert_array_equal(components.max(axis=1), np.abs(components).max(axis=1))


def matrix_and_spectrum_agree(mechanism: Mechanism) -> None:
    """A released matrix is symmetric, and the released eigenvalues are its own."""
    for data, problem, budget in runnable(mechanism):
        _, release = released(mechanism, data, problem, budget)
        matrix, values = release.matrix, release.eigenvalues
        assert (matrix is None) == (values is None)
        if matrix is None or values is None:
            assert mechanism.info.release == "subspace"
            continue
        assert matrix.shape == (6, problem.d, problem.d)
        size = np.abs(matrix).max()
        assert np.abs(matrix - matrix.transpose(0, 2, 1)).max() <= 1e-13 * size
        assert (np.diff(values, axis=1) <= 0).all()
        np.testing.assert_allclose(
            values[:, ::-1], np.linalg.eigvalsh(matrix), rtol=0, atol=1e-12 * problem.d * size
        )
        # The components must be the matrix's own top k eigenvectors, in the eigenvalues' order.
        V = release.components
        along = np.einsum("tik,tij,tjk->tk", V, matrix, V)
        if mechanism.weighs:
            assert (along.sum(axis=1) <= values[:, : problem.k].sum(axis=1) + 1e-11 * size).all()
            continue
        np.testing.assert_allclose(
            along, values[:, : problem.k], rtol=0, atol=1e-11 * problem.d * size
        )
        if mechanism.info.psd:
            assert values.min() >= -1e-12 * problem.d * size


def additive_noise_only_scales(mechanism: Mechanism) -> None:
    """Additive noise depends on epsilon only through the scale."""
    if not isinstance(mechanism, AdditiveMechanism):
        return
    for data, problem, budget in runnable(mechanism):
        standard = []
        # Divide by 7: dividing by a power of 2 would not change the digits of the noise scale.
        for epsilon in (budget.epsilon, budget.epsilon / 7):
            setting = Budget(epsilon, budget.delta)
            calibration, release = released(mechanism, data, problem, setting)
            assert release.matrix is not None
            standard.append((release.matrix - data.A) / calibration.scale)
        np.testing.assert_allclose(standard[0], standard[1], rtol=1e-9, atol=1e-9)


def two_directions(kind: str) -> FloatArray:
    """Return 60 rows as long as the domain allows, along two orthogonal directions only."""
    first, second = np.ones(D), np.array([1.0, -1.0, 1.0, -1.0, 0.0])
    if kind == "ball":
        first, second = first / np.linalg.norm(first), second / np.linalg.norm(second)
    signs = np.tile([1.0, -1.0], 30)[:, None]
    rows: FloatArray = signs * np.concatenate([np.tile(first, (36, 1)), np.tile(second, (24, 1))])
    return rows


def huge_budget_recovers_pca(mechanism: Mechanism) -> None:
    """With almost no privacy, the exact components are found.

    With an eigengap and almost no noise, the released space captures all that k components can.

    Published scales that stop falling with epsilon, or refuse a large epsilon, are tested with many
    people. A relation that a mechanism's privacy proof does not cover is refused, and is skipped
    here.
    """
    if mechanism.info.guarantee == "none":
        return
    count = 0
    for kind in ("ball", "box"):
        rows = two_directions(kind)
        for relation in Relation:
            shares = []
            # Use a large epsilon, then also many people; or only many people, if it is refused.
            for epsilon, n in ((1e6, len(rows)), (1e6, 10**10), (0.5, 10**10)):
                budget = Budget(epsilon, 0.1)
                problem = Problem(n, D, 2, relation, domain_of(kind, D))
                at_hand = n == len(rows)
                if mechanism.why_not(problem, budget, rows=at_hand) is not None:
                    continue
                data = SecondMoment(moment_of(rows).A, n, rows if at_hand else None)
                _, release = released(mechanism, data, problem, budget)
                metrics = measure(Outcome(data, data, release), ["captured_share"])
                shares.append(float(metrics["captured_share"].min()))
            if shares:
                count += 1
                assert max(shares) > 0.999, (kind, relation, shares)
    assert count > 0


def small_dimensions_work(mechanism: Mechanism) -> None:
    """Tables with 2 or 3 features work."""
    # Test k = d too, because the space outside the components is then empty.
    for d, k in ((2, 1), (3, 2), (2, 2), (3, 3)):
        problem = Problem(N, d, k, Relation.REPLACE, Domain.ball(d))
        for budget in BUDGETS:
            if mechanism.why_not(problem, budget) is not None:
                continue
            data = moment_of(bounded_rows("ball", N, d))
            _, release = released(mechanism, data, problem, budget)
            assert release.components.shape == (6, d, k)
            assert np.isfinite(release.components).all()


def general_rules_refuse(mechanism: Mechanism) -> None:
    """A setting that cannot run is refused with a reason."""
    square = Problem(N, D, D, Relation.REPLACE, Domain.ball(D))
    reason = mechanism.why_not(square, BUDGETS[1])
    if mechanism.info.release == "subspace":
        assert reason is not None
        assert f"from 1 to {D - 1}" in reason
        assert str(D) in reason
    problem = Problem(N, D, 2, Relation.REPLACE, Domain.ball(D))
    no_delta = Budget(0.5, 0.0)
    reason = mechanism.why_not(problem, no_delta)
    if mechanism.info.guarantee == "approximate":
        assert reason is not None
        assert "delta" in reason
    for setting in ((square, BUDGETS[1]), (problem, no_delta), (problem, Budget(1e6, 0.9))):
        reason = mechanism.why_not(*setting)
        if reason is None:
            mechanism.check(*setting)
            continue
        assert reason.strip() == reason
        assert len(reason.split()) >= 4, "a reason is a sentence"
        assert "\n" not in reason
        message = refusal(partial(mechanism.check, *setting))
        assert message.reason == reason
        assert str(message).startswith(f"{mechanism.text} cannot run: ")


def rows_are_asked_for(mechanism: Mechanism) -> None:
    """A mechanism that reads rows declares it.

    A mechanism that does not need the rows gives the same bytes without them.
    """
    for data, problem, budget in runnable(mechanism):
        without = mechanism.why_not(problem, budget, rows=False)
        assert (without is not None) == mechanism.needs_rows
        if without is None:
            _, record = released(mechanism, data, problem, budget)
            _, blind = released(mechanism, SecondMoment(data.A, data.n), problem, budget)
            assert_same_bytes(record, blind)


def row_bound_is_asked_for(mechanism: Mechanism) -> None:
    """A mechanism that needs a row-norm bound declares it.

    Without a bound, only mechanisms that do not need one run, with equal results.
    """
    for data, problem, budget in runnable(mechanism):
        free = replace(problem, domain=Domain.unbounded(problem.d))
        reason = mechanism.why_not(free, budget)
        assert (reason is not None) == mechanism.needs_row_bound
        if reason is not None:
            assert "row-norm bound" in reason
            continue
        with_bound, without = (mechanism.calibrate(p, budget) for p in (problem, free))
        assert without.scale == with_bound.scale
        assert_same_bytes(
            _base.released(mechanism, data, with_bound, draws_of(mechanism)),
            _base.released(mechanism, data, without, draws_of(mechanism)),
        )
        # Here, rows of any length are valid input.
        assert data.rows is not None
        # Squares of these row lengths are close to both ends of the range of doubles.
        long = data.rows * 10.0 ** np.linspace(-150, 150, len(data.rows))[:, None]
        longer = SecondMoment(data.A, data.n, long)
        release = _base.released(mechanism, longer, without, draws_of(mechanism))
        for array in arrays_of(release).values():
            assert np.isfinite(array).all()


def released_rows_are_a_table(mechanism: Mechanism) -> None:
    """Released rows are a noisy table, one for each release.

    Mechanisms that release rows give one table for each release; others state the reason.
    """
    reason = mechanism.why_no_rows
    for data, problem, budget in runnable(mechanism):
        assert data.rows is not None
        before = data.rows.tobytes()
        calibration = mechanism.calibrate(problem, budget)
        tables = mechanism.release_rows(data.rows, calibration, draws_of(mechanism))
        assert (tables is None) == (reason is not None)
        if tables is None:
            continue
        assert mechanism.info.release == "data"
        assert tables.shape == (6, problem.n, problem.d)
        assert np.isfinite(tables).all()
        assert data.rows.tobytes() == before
        assert not np.shares_memory(tables, data.rows)
        again = mechanism.release_rows(data.rows, calibration, draws_of(mechanism))
        assert again is not None
        assert again.tobytes() == tables.tobytes()
        for trial in range(6):
            alone = draws_of(mechanism, range(trial, trial + 1))
            single = mechanism.release_rows(data.rows, calibration, alone)
            assert single is not None
            assert single.tobytes() == tables[trial : trial + 1].tobytes()
        assert len({table.tobytes() for table in tables}) == 6
        # Every row must have noise, because a row without noise would be published as it is.
        assert (np.abs(tables - data.rows).max(axis=2) > 0).all()
    if reason is not None:
        assert reason.strip() == reason
        assert len(reason.split()) >= 4, "a reason is a sentence"
        assert reason[0].islower()


def metrics_stay_in_range(mechanism: Mechanism) -> None:
    """Every measure stays in its range."""
    for data, problem, budget in runnable(mechanism):
        _, release = released(mechanism, data, problem, budget)
        metrics = measure(Outcome(data, data, release))
        for key, metric in METRICS.items():
            if metric.needs == "picture" or (metric.needs == "matrix" and release.matrix is None):
                assert key not in metrics
                continue
            if key == "recovery" and key not in metrics:
                assert nothing_to_recover(chance_share(data, problem.k))
                continue
            values = metrics[key]
            assert values.shape == (6,)
            assert values.min() >= metric.lower
            assert values.max() <= metric.upper(problem.d, problem.k) * (1 + 1e-9)


def extreme_epsilons_are_legal(mechanism: Mechanism) -> None:
    """Epsilon 1e-4 and 1e6 work without a warning.

    Warnings are errors in this suite, so an overflow fails the check.
    """
    count = 0
    for kind in ("ball", "box"):
        for relation in Relation:
            for epsilon in (1e-4, 1e6):
                budget = Budget(epsilon, 1e-6)
                problem = Problem(N, D, 2, relation, domain_of(kind, D))
                if mechanism.why_not(problem, budget) is not None:
                    continue
                count += 1
                data = moment_of(bounded_rows(kind, N, D))
                calibration, release = released(mechanism, data, problem, budget)
                for array in arrays_of(release).values():
                    assert np.isfinite(array).all()
                status = mechanism.status(problem, budget)
                assert status.evidence
                edges = mechanism.spectrum_edges(calibration)
                assert edges is None or (math.isfinite(edges[0]) and edges[0] < edges[1])
    assert count > 0


def status_is_told_in_a_sentence(mechanism: Mechanism) -> None:
    """The status is a verdict and one sentence."""
    for _, problem, budget in runnable(mechanism):
        status = mechanism.status(problem, budget)
        assert status.evidence[0].isupper()
        assert status.evidence.endswith(".")
        assert "\n" not in status.evidence
        claim, loss = mechanism.claim(problem, budget), mechanism.spent(problem, budget)
        assert (status.verdict is Verdict.BASELINE) == (mechanism.info.guarantee == "none")
        assert (claim is None) == (mechanism.info.guarantee == "none")
        if claim is not None:
            assert claim.epsilon == budget.epsilon
            assert claim.delta == (budget.delta if mechanism.info.guarantee != "pure" else 0)
        if loss is not None:
            assert loss.epsilon >= 0
            assert 0 <= loss.delta < 1
            assert loss.source.strip()


def _cost_of(loss: Spent, together: Composed) -> tuple[object, ...]:
    """Return all values that determine an account view, with 12 digits.

    A relation or a domain scales sensitivity and noise alike, so their ratio differs by rounding.
    """

    def told(part: object) -> tuple[object, ...]:
        if isinstance(part, GaussianPart):
            return "Gaussian", rounded(part.mu), part.attained
        if isinstance(part, LaplacePart):
            return "Laplace", rounded(part.epsilon), part.attained
        return type(part).__name__, *map(rounded, vars(part).values())

    def rounded(value: object) -> object:
        return float(f"{value:.12g}") if isinstance(value, float) else value

    costs = tuple(told(part) for part in together.parts)
    return tuple(map(rounded, vars(loss).values())), costs, together.known


def the_account_is_of_what_is_spent(mechanism: Mechanism) -> None:
    """The account view agrees with the stated privacy loss.

    One release in the account view has the loss that `spent` reports, and two have more. The curves
    fall, and no composition rule gives less than the exact one. Settings with equal accounts are
    checked once.
    """
    costs: list[tuple[object, ...]] = []
    for _, problem, budget in runnable(mechanism):
        loss = mechanism.spent(problem, budget)
        if loss is None or not math.isfinite(loss.epsilon):
            refusal(partial(account_view, mechanism, problem, budget, (1, 2)))
            continue
        together = accounted(mechanism, problem, budget)
        assert together is not None
        cost = _cost_of(loss, together)
        if cost in costs:
            continue
        costs.append(cost)
        view = account_view(mechanism, problem, budget, (1, 2))
        numbers = [*view.epsilons, *view.deltas, *view.beta, *(value for _, value in view.renyi)]
        assert np.isfinite(
            [*numbers, *(each for each in (view.mu, view.rho) if each is not None)]
        ).all()
        one, two = view.repeated
        for many in (one, two):
            if many.exact is not None:
                assert many.exact <= many.basic * (1 + 1e-6) + 1e-9
            if many.exact is not None and many.zcdp is not None:
                assert many.exact <= many.zcdp * (1 + 1e-9)
        assert (np.diff(view.deltas) <= 1e-12).all()
        first, last = view.deltas[[0, -1]]
        assert last <= 2e-12 or last < first or first == 0
        assert (np.diff(view.beta) <= 1e-12).all()
        assert (view.beta <= 1 - view.alpha + 1e-12).all()
        assert view.spent == loss
        # For pure mechanisms, "basic" and `spent` are at delta 0: there, a larger delta would give
        # a smaller epsilon.
        assert math.isclose(one.basic, loss.epsilon, rel_tol=1e-6, abs_tol=1e-12)
        if loss.delta > 0 and one.exact is not None:
            assert math.isclose(one.exact, loss.epsilon, rel_tol=1e-6, abs_tol=1e-12)
        if loss.total_variation is not None:  # This loss may be more precise than epsilon alone.
            assert view.deltas[0] <= loss.total_variation * (1 + 1e-6) + 2e-12
        if loss.epsilon == 0:
            continue  # Either delta covers all of the loss, or there is no loss.
        assert view.deltas[0] > 0
        assert (view.beta < 1 - view.alpha - 1e-9).any()
        assert two.basic > 1.2 * one.basic
        if one.exact is not None and two.exact is not None:
            assert 1.2 * one.exact < two.exact <= two.basic


def exact_is_of_what_is_released(mechanism: Mechanism) -> None:
    """A cost is exact only if one query is released whole.

    The one query must be all that the mechanism releases.
    """
    for _, problem, budget in runnable(mechanism, k=1):
        loss = mechanism.spent(problem, budget)
        if loss is None or not loss.exact or loss.epsilon == 0:
            continue
        # A subspace mechanism does not release the whole result of a query.
        assert mechanism.info.release != "subspace"
        if mechanism.row_profile(problem, budget) is None:
            assert len(mechanism.calibrate(problem, budget).parts) == 1


def text_and_pickle_round_trip(mechanism: Mechanism) -> None:
    """The text and the pickle of a mechanism restore the same mechanism."""
    pickler = import_module("cloudpickle")  # cloudpickle sends mechanisms to workers.
    copies = [pickler.loads(pickler.dumps(mechanism))]
    copies.append(type(mechanism).from_texts(mechanism.texts()))
    if mechanism.key in all_mechanisms():  # A mechanism of a notebook is not listed here.
        copies.append(parse_variant(mechanism.text))
    for copy in copies:
        assert copy == mechanism
        assert hash(copy) == hash(mechanism)
        assert copy.text == mechanism.text


def time_that_depends_on_data_is_declared(mechanism: Mechanism) -> None:
    """A mechanism whose running time depends on the data declares it.

    On another table, a rejection sampler takes more or fewer random numbers from the same stream.
    """
    if mechanism.info.timed:
        (statement,) = mechanism.assumed_public
        assert mechanism.text in statement
        return
    assert mechanism.assumed_public == ()
    assert not takes_more_or_less(mechanism), f"{mechanism.text} must say timed=True"


def takes_more_or_less(mechanism: Mechanism) -> bool:
    """Return whether the random numbers used depend on the table, in any of 100 releases."""
    data, problem, standard = next(runnable(mechanism))
    assert data.rows is not None
    # Scale the columns: with another spectrum, a rejection sampler needs more or fewer attempts.
    tables = (data, moment_of(data.rows * np.geomspace(1.0, 1e-3, problem.d)))
    # At these epsilons, the output is nearly uniform, concentrated in one place, or between.
    for epsilon in (standard.epsilon, 3.0, 10.0, 30.0):
        budget = Budget(epsilon, standard.delta)
        if mechanism.why_not(problem, budget) is not None:
            continue
        calibration = mechanism.calibrate(problem, budget)
        ends = []
        for table in tables:
            draws = draws_of(mechanism, range(100))
            _base.released(mechanism, table, calibration, draws)
            ends.append([str(rng.bit_generator.state) for rng in draws.generators])
        if ends[0] != ends[1]:
            return True
    return False


def noise_covers_what_one_person_moves(mechanism: Mechanism) -> None:
    """The noise covers the distance between any two neighbouring tables.

    A search over neighbouring tables finds no distance above the declared sensitivity.
    """
    if not isinstance(mechanism, AdditiveMechanism):
        return
    for _, problem, budget in runnable(mechanism):
        try:
            worst = searched(mechanism, problem, budget)
        except LookupError:
            if mechanism.ours:
                raise
            return  # The audit below tests noise with dependent entries.
        if worst is not None:
            assert worst.attained <= worst.declared * (1 + 1e-9), (
                f"declared {numeral(worst.declared, 4)}, found {numeral(worst.attained, 4)} under "
                f"{problem.relation}, {problem.domain.kind}, for the noise that is drawn"
            )


def shows_no_more_than(mechanism: Mechanism, plain: Mechanism) -> bool:
    """Return whether both mechanisms release the same matrix bytes from the same noise.

    An attacker uses the matrix and not the components, so one audit covers both mechanisms.
    """
    for data, problem, budget in runnable(mechanism):
        calibrations = [one.calibrate(problem, budget) for one in (mechanism, plain)]
        if calibrations[0] != calibrations[1]:
            return False
        raw = [released(one, data, problem, budget)[1].raw for one in (mechanism, plain)]
        if raw[0].shape[1:] != (problem.d, problem.d) or raw[0].tobytes() != raw[1].tobytes():
            return False
    return True


def attacked_alike(
    mechanism: Mechanism, other: Mechanism, problem: Problem, budget: Budget
) -> bool:
    """Return whether an attack on one mechanism is an attack on the other mechanism too.

    Both mechanisms must have the same claim and calibration and, for every attacked table, release
    the same bytes from the same noise. This happens if a parameter has no effect in this setting.
    """
    if other.why_not(problem, budget) is not None:
        return False
    calibration = mechanism.calibrate(problem, budget)
    if other.calibrate(problem, budget) != calibration:
        return False
    if other.claim(problem, budget) != mechanism.claim(problem, budget):
        return False
    additive = isinstance(mechanism, AdditiveMechanism)
    rows = mechanism.needs_rows or mechanism.info.release == "data"
    pairs = candidates(problem, generator(3, "attacked alike"), additive=additive, rows=rows)
    for table in (table for pair in pairs for table in pair.tables()):
        releases = [
            arrays_of(_base.released(one, table, calibration, draws_of(mechanism)))
            for one in (mechanism, other)
        ]
        contents = [
            {name: array.tobytes() for name, array in arrays.items()} for arrays in releases
        ]
        if contents[0] != contents[1]:
            return False
    return True


@cache
def attacked(mechanism: Mechanism, budgets: tuple[Budget, ...]) -> Audit | None:
    """Return a short audit in the first setting that can run; None if there is no claim.

    Mechanisms with the same attack share one audit.
    """
    if isinstance(mechanism, Weighing) and mechanism.weighs:
        # Weighing uses only released data, so equal matrices allow the plain mechanism's audit.
        plain = replace(mechanism, weigh=NONE)
        if shows_no_more_than(mechanism, plain):
            return attacked(plain, budgets)
    # Start with a small table: one row has most influence there, and an attack sees most.
    small = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3))
    others = (
        Problem(N, D, 2, relation, domain_of(kind, D))
        for kind in ("ball", "box")
        for relation in Relation
    )
    for problem, budget in product((small, *others), budgets):
        if mechanism.why_not(problem, budget) is not None:
            continue
        if mechanism.claim(problem, budget) is None:
            return None
        default = type(mechanism)()
        if mechanism != default and attacked_alike(mechanism, default, problem, budget):
            result = attacked(default, budgets)
            if result is not None and (result.problem, result.budget) == (problem, budget):
                return result
        return audit(
            mechanism, budget, d=problem.d, k=problem.k, n=problem.n, relation=problem.relation,
            domain=problem.domain.kind, trials=2_000,
        )  # fmt: skip
    return None


def no_audit_refutes_it(mechanism: Mechanism) -> None:
    """A short audit does not refute the claim.

    Mechanisms that state that their claim fails are exempt.
    """
    first = ATTACKED[mechanism.info.guarantee]
    settings: list[tuple[Budget, ...]] = [(first, *BUDGETS)]
    if not mechanism.ours:  # A custom mechanism may behave differently at a larger epsilon.
        settings.append((replace(first, epsilon=4.0),))
    for budgets in settings:
        audit = attacked(mechanism, budgets)
        if audit is None:
            continue
        status = mechanism.status(audit.problem, audit.budget)
        if status.verdict in (Verdict.REFUTED, Verdict.OUT_OF_SCOPE):
            # A published mechanism may report that its claim fails; a custom mechanism may not.
            assert mechanism.ours or status.verdict is Verdict.OUT_OF_SCOPE, (
                f"by its own account it spends more than epsilon {numeral(audit.budget.epsilon, 4)}"
                f" at delta {numeral(audit.budget.delta, 4)}, which it claims"
            )
            continue
        assert audit.verdict is not AuditVerdict.REFUTED, (
            f"epsilon is at least {numeral(audit.epsilon_lower, 4)} where "
            f"{numeral(audit.budget.epsilon, 4)} is claimed"
        )


@dataclass(frozen=True)
class Check:
    """A check, its requirement and advice for a failure.

    Attributes
    ----------
    function : callable
        A function that raises `AssertionError` if the mechanism fails; the first line of its
        docstring is the requirement.
    mend : str
        Advice on how to fix a failure.
    """

    function: Callable[[Mechanism], None]
    mend: str

    @property
    def asks(self) -> str:
        """The requirement, in a sentence."""
        return (self.function.__doc__ or "").splitlines()[0]

    def __call__(self, mechanism: Mechanism) -> None:
        """Raise `AssertionError` if the mechanism fails."""
        self.function(mechanism)


CHECKS: dict[str, Check] = {
    check.function.__name__: check
    for check in (
        Check(says_what_it_is,
              "Fill the attribute of MechanismInfo that is named; sentences end in a full stop."),
        Check(calibration_sees_no_data,
              "Derive the scale from problem and budget alone, without randomness or state."),
        Check(scale_follows_epsilon,
              "Look for a bound that jumps, or a root that is not solved far enough."),
        Check(same_stream_same_bytes,
              "Take all randomness from draws, or rng: nothing from numpy.random or the clock."),
        Check(batched_equals_looped,
              "Give each draw its own numbers, as draws.normal(d, k) and draws.single() do."),
        Check(chunks_join_without_a_seam,
              "Do not let what is drawn depend on how many draws are made together."),
        Check(shared_generator_works,
              "Use draws.normal, draws.uniform, draws.exponential or draws.single() alone."),
        Check(trials_differ, "Draw noise in every release."),
        Check(input_is_not_changed,
              "Copy before writing: matrix = data.A + noise, never data.A += noise."),
        Check(components_are_orthonormal,
              "Make releases with Release.of_matrices or Release.of_frames."),
        Check(matrix_and_spectrum_agree,
              "Make it symmetric, (M + M.T) / 2, and use Release.of_matrices."),
        Check(additive_noise_only_scales,
              "Let standard_noise depend on problem and draws alone; the scale does the rest."),
        Check(huge_budget_recovers_pca,
              "Look for noise that does not fall with epsilon, or a target other than A."),
        Check(small_dimensions_work, "Look for a division by d - 2 or d - k."),
        Check(general_rules_refuse,
              "Let limits return a phrase of four words or more, without a line end."),
        Check(rows_are_asked_for,
              "Say needs_rows=True in info, or use data.A and data.n alone."),
        Check(row_bound_is_asked_for,
              "Leave needs_row_bound True unless every row's part is bounded by the mechanism."),
        Check(released_rows_are_a_table,
              "Let release_rows return shape (size, n, d), with noise on every row."),
        Check(metrics_stay_in_range,
              "Look for components that are not orthonormal, or a matrix in another unit than A."),
        Check(extreme_epsilons_are_legal,
              "Compute in logarithms, or refuse in limits what is not defined."),
        Check(status_is_told_in_a_sentence,
              "Let evidence return one sentence with a capital and a full stop."),
        Check(time_that_depends_on_data_is_declared,
              "Say timed=True in info: a sampler that rejects tells by how long it takes."),
        Check(the_account_is_of_what_is_spent,
              "Let parts, or row_profile, describe all that a release does."),
        Check(exact_is_of_what_is_released,
              "Say attained=False where a release shows less than its query."),
        Check(text_and_pickle_round_trip,
              "Keep all state in declared fields of a frozen dataclass."),
        Check(noise_covers_what_one_person_moves,
              "Check the sensitivity for this relation and domain, and that the noise drawn has "
              "the scale that the part states."),
        Check(no_audit_refutes_it,
              "Believe it: the claim is false as released. Look for noise that is too small, "
              "budget spent twice, or a value of the data that is not noised."),
    )
}  # fmt: skip


# A search for how far one person can move a release, in units of the simulated noise. -------------

# This search uses no formula of dpviz. It evaluates the released statistic on neighbouring rows,
# and measures the distance in units of the simulated noise.

_SAMPLES = 40_000


@cache
def noise_variances(mechanism: AdditiveMechanism, d: int) -> tuple[float, ...]:
    """Return the variance of each upper-triangle entry of the standard noise.

    Measured on 40,000 samples and rounded to a quarter. The standard error of a variance is at most
    sqrt(5/40,000) = 1.1 % of it (Laplace; Gaussian 0.7 %), so 0.125 is more than 6 standard errors
    for variances up to 1.8 and, for Laplace noise of variance 2, still 5.6.
    """
    domain = Domain.ball(d)
    problem = Problem(10, d, 1, Relation.REPLACE, domain)
    noise = mechanism.standard_noise(problem, Draws.batch(generator(2, "law", d), _SAMPLES))
    rows, columns = np.triu_indices(d)
    entries = noise[:, rows, columns]
    covariance = entries.T @ entries / _SAMPLES
    variances = np.round(4 * np.diag(covariance)) / 4
    # The noise entries count as independent if correlations are within 6.1/sqrt(N) = 0.031 of 0.
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale) - np.eye(len(scale))
    if np.abs(correlation).max() > 0.031 or np.abs(np.diag(covariance) - variances).max() > 0.13:
        raise LookupError(f"the noise of {mechanism.text} has dependent entries: no check applies")
    return tuple(float(value) for value in variances)


@cache
def worst_pair(
    kind: str, d: int, relation: Relation, norm: int, weights: tuple[float, ...]
) -> float:
    """Return the largest weighted norm of the upper triangle of D = vv' - ww' that a search finds.

    Starts are random rows, corners, coordinate vectors and their halves; each climbs by random
    steps that shrink, moving one row or both. The returned value is attained, so it is never above
    the true sensitivity.
    """
    rng = generator(4, "pairs", kind, d, str(relation), norm)
    upper = np.triu_indices(d)
    weight = np.asarray(weights)

    def inside(rows: FloatArray) -> FloatArray:
        if kind == "box":
            return np.clip(rows, -1, 1)
        clipped_rows: FloatArray = rows / np.maximum(
            1.0, np.linalg.norm(rows, axis=1, keepdims=True)
        )
        return clipped_rows

    def size(v: FloatArray, w: FloatArray) -> FloatArray:
        difference = (v[:, :, None] * v[:, None, :] - w[:, :, None] * w[:, None, :])[:, *upper]
        norms: FloatArray = np.linalg.norm(difference * weight, ord=norm, axis=1)
        return norms

    corners = rng.choice([-1.0, 1.0], (40, d))
    coordinates = np.eye(d)[rng.integers(d, size=40)]
    starts = np.concatenate([corners, coordinates, rng.standard_normal((40, d))])
    v = inside(starts * (2.0 if kind == "ball" else 1.0))
    w = inside(starts[rng.permutation(120)] * 2.0) * (relation is Relation.REPLACE)
    if relation is Relation.REPLACE:
        # Start at two unit vectors, and at two corners that agree in half of their signs.
        halves = np.where(np.arange(d) < d // 2, -1.0, 1.0)
        v = np.concatenate([v, inside(np.array([np.eye(d)[0], np.ones(d)]))])
        w = np.concatenate([w, inside(np.array([np.eye(d)[1], halves]))])
    best = size(v, w)
    for step in np.geomspace(1.0, 1e-4, 400):
        move = step * rng.standard_normal((2, *v.shape))
        single = rng.integers(d, size=len(v))[:, None] == np.arange(d)
        move *= np.where(rng.random(len(v))[:, None] < 0.5, single, True)
        v_next = inside(v + move[0])
        w_next = inside(w + move[1]) if relation is Relation.REPLACE else w
        value = size(v_next, w_next)
        better = value > best
        v[better], w[better], best[better] = v_next[better], w_next[better], value[better]
    return float(best.max())


@dataclass(frozen=True)
class Searched:
    """Result of a search, in the norm of the simulated noise, in units of A.

    Attributes
    ----------
    declared : float
        The sensitivity that the part states, for noise at the calibrated scale.
    attained : float
        The distance of the worst pair found by the search.
    scale : float
        Scale of the simulated noise.
    """

    declared: float
    attained: float
    scale: float


def searched(mechanism: AdditiveMechanism, problem: Problem, budget: Budget) -> Searched | None:
    """Return the search for a mechanism with one Gaussian or Laplace part, or None for others.

    None also if people add the noise themselves: they do not publish the simulated mean.
    """
    calibration = mechanism.calibrate(problem, budget)
    if len(calibration.parts) != 1 or not mechanism.central:
        return None
    (part,) = calibration.parts
    kind, d, scale = problem.domain.kind, problem.d, calibration.scale
    if isinstance(part, GaussianPart):
        stds = np.sqrt(np.asarray(noise_variances(mechanism, d)))
        norm, sensitivity = 2, part.std
    elif isinstance(part, LaplacePart):
        stds = np.sqrt(np.asarray(noise_variances(mechanism, d)) / 2)  # Lap(b) has variance 2 b^2.
        norm, sensitivity = 1, part.scale
    else:
        return None
    reach = worst_pair(kind, d, problem.relation, norm, tuple((1 / stds).tolist())) / problem.n
    return Searched(part.sensitivity * scale / sensitivity, reach, scale)
