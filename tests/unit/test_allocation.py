"""The noise allocation: texts, shares, water filling, and each allocation's privacy loss."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpviz.accounting import accounting
from dpviz.accounting.sensitivity import mahalanobis, mahalanobis_nuclear
from dpviz.core.allocation import (
    SMALLEST_SHARE,
    UNIFORM,
    Allocation,
    check_allocation,
    of_mapping,
    parse_allocation,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Release, Verdict
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import read_thetas
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms._directional import DirectionalMechanism, water_filling
from dpviz.mechanisms._suppliers import (
    DELTA_DIRECTIONS,
    EPSILON_DIRECTIONS,
    variances_along,
)
from dpviz.studies.precision import rebalance

EXACT = ("directional_gaussian", "directional_wishart_difference")


# Texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("uniform", "uniform"),
        (" max-pnr ", "max-pnr"),
        ("binary:3+1,3:0.80", "binary:1,3:0.8"),
        ("binary:petal width (cm):.7", "binary:petal width (cm):0.7"),
        ("custom:0.5+0.25,.25", "custom:0.5,0.25,0.25"),
        ("shares.csv", "shares.csv"),
    ],
)
def test_allocation_texts_have_one_form(written: str, canonical: str) -> None:
    assert check_allocation(written) == canonical
    assert check_allocation(canonical) == canonical
    assert Settings(allocation=written).allocation == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("even", "must be uniform, binary:COLUMNS:TAU"),
        ("binary:1", "must be uniform, binary:COLUMNS:TAU"),
        ("binary::0.5", "at least one direction"),
        ("binary:0:0.5", "numbered from 1"),
        ("binary:1:1", "TAU above 0 and below 1"),
        ("binary:x:0", "TAU above 0 and below 1"),
        ("binary:1:nan", "TAU above 0 and below 1"),
        ("custom:0.5,0.4", "shares that sum to 1; got '2 shares that sum to 0.9'."),
        ("custom:1.5,-0.5", "at least 1e-6"),
        ("custom:1", "at least 2 shares"),
        ("custom:a,b", "must be uniform"),
    ],
)
def test_bad_allocations_are_one_sentence(text: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^allocation must be [^\n]*\.$") as error:
        Settings(allocation=text)
    assert says in str(error.value)
    assert error.value.as_option().startswith("--allocation must be ")


def test_files_are_read_and_checked(tmp_path: Path) -> None:
    columns = ("width", "length", "age")
    good = tmp_path / "good.csv"
    good.write_text("feature,theta\nlength,0.5\nage,0.25\nwidth,0.25\n")
    assert of_mapping(read_thetas(str(good)), columns, "features") == "custom:0.25,0.5,0.25"
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("direction,theta\n3,0.2\n1,0.5\n2,0.3\n")
    assert of_mapping(read_thetas(str(numbers)), columns, "private:0.2") == "custom:0.5,0.3,0.2"
    bad = {
        "feature,theta\nwidth,0.5\nlength,0.5\n": "'age' has no share",
        "feature,theta\nwidth,0.5\nlength,0.3\nweight,0.2\n": "'weight'",
        "feature,theta\nwidth,0.5\nlength,0.3\nage,0.1\n": "3 shares that sum to 0.9",
        "feature,theta\nwidth,0.5\nwidth,0.3\nage,0.2\n": "one name is repeated",
        "feature,share\nwidth,0.5\nlength,0.5\n": "must have the columns feature",
        "feature,theta\nwidth,half\nlength,0.5\n": "a number for theta in every row",
    }
    for text, says in bad.items():
        path = tmp_path / "bad.csv"
        path.write_text(text)
        with pytest.raises((InvalidSetting, InvalidTable)) as error:
            of_mapping(read_thetas(str(path)), columns, "features")
        assert says in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(InvalidTable, match="does not exist"):
        read_thetas(str(tmp_path / "none.csv"))
    other = tmp_path / "other.csv"  # The list of column names in this table ends within a name.
    ones = ",".join("1" * 20)
    other.write_text("\n".join([",".join(f"column {n}" for n in range(20)), ones, ones]))
    with pytest.raises(InvalidTable, match=r"it has 'column 0'.*'column \d' and \d+ more\.$"):
        read_thetas(str(other))


# Shares ---------------------------------------------------------------------------------------


@st.composite
def allocations(draw: st.DrawFn, d: int) -> Allocation:
    kind = draw(st.sampled_from(["uniform", "binary", "custom"]))
    if kind == "binary":
        features = draw(st.sets(st.integers(1, d), min_size=1, max_size=d - 1))
        return Allocation(kind, chosen=tuple(features), tau=draw(st.floats(0.01, 0.99)))
    if kind == "custom":
        parts = np.array(draw(st.lists(st.floats(0.001, 1.0), min_size=d, max_size=d)))
        return Allocation(kind, theta=tuple((parts / parts.sum()).tolist()))
    return UNIFORM


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    d = draw(st.integers(2, 7))
    widths = tuple(draw(st.lists(st.floats(0.2, 2.0), min_size=d, max_size=d)))
    domain = draw(st.sampled_from([Domain.ball(d), Domain.box(d), Domain("box", d, widths)]))
    relation = draw(st.sampled_from(list(Relation)))
    return Problem(draw(st.integers(2, 10**6)), d, 1, relation, domain, draw(allocations(d)))


@given(st.integers(2, 40), st.data())
def test_shares_sum_to_one(d: int, data: st.DataObject) -> None:
    allocation = data.draw(allocations(d))
    shares = allocation.shares(d)
    assert shares.shape == (d,)
    assert (shares > 0).all()
    assert abs(math.fsum(shares) - 1) < 1e-12
    again = parse_allocation(*allocation.text)
    assert again == allocation
    assert hash(again) == hash(allocation)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=12),
    st.data(),
)
def test_rebalancing_keeps_locked_entries_and_the_sum(
    values: list[float], data: st.DataObject
) -> None:
    theta = np.array(values)
    locks = np.array(data.draw(st.lists(st.booleans(), min_size=len(theta), max_size=len(theta))))
    total, free = math.fsum(theta[locks]), int((~locks).sum())
    if free == 0 or 1 - total < free * SMALLEST_SHARE:
        if free > 0 or abs(total - 1) > 1e-6:
            with pytest.raises(InvalidSetting, match=r"sum to 1|leave at least"):
                rebalance(theta, locks)
        return
    result = rebalance(theta, locks)
    assert (result[locks] == theta[locks]).all()
    assert abs(math.fsum(result) - 1) < 1e-12
    assert (result[~locks] >= SMALLEST_SHARE * (1 - 1e-12)).all()


# Water filling --------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=30),
    st.floats(1e-6, 1e6),
)
def test_water_filling_meets_its_optimality_conditions(values: list[float], total: float) -> None:
    """Water filling meets the KKT conditions of max sum log(1 + g x), x >= 0, sum x = total."""
    gains = np.array(values)
    x = water_filling(gains, total)
    assert (x >= 0).all()
    assert abs(math.fsum(x) - total) <= 1e-12 * total
    if gains.max() <= 0:
        assert np.allclose(x, total / len(x))
        return
    slope = gains / (1 + gains * x)  # The slope is the objective's derivative.
    price = slope.max()
    # All directions that get a share have the same slope, up to rounding of the depth 1/g.
    assert np.allclose(slope[x > 1e-9 * total], price, rtol=1e-6)
    assert (slope <= price * (1 + 1e-12)).all()


@pytest.mark.parametrize("total", [0.1, 1.0, 30.0])
def test_water_filling_agrees_with_a_general_solver(total: float) -> None:
    gains = np.array([5.0, 2.0, 1.0, 0.3, 0.01])

    def loss(x: FloatArray) -> float:
        return -float(np.log1p(gains * x).sum())

    solution = optimize.minimize(
        loss,
        np.full(5, total / 5),
        method="SLSQP",
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    x = water_filling(gains, total)
    assert loss(x) <= solution.fun + 1e-9
    assert np.allclose(x, solution.x, atol=1e-4 * total)


# Privacy accounting ---------------------------------------------------------------------------


def shaped(key: str, problem: Problem, budget: Budget) -> tuple[DirectionalMechanism, FloatArray]:
    mechanism = parse_variant(key)
    assert isinstance(mechanism, DirectionalMechanism)
    calibration = mechanism.calibrate(problem, budget)
    return mechanism, mechanism.shape(calibration, np.eye(problem.d), None)[0]


@given(problems(), st.floats(0.01, 50), st.sampled_from([1e-9, 1e-5, 0.01]))
def test_any_allocation_spends_the_budget_and_never_more(
    problem: Problem, epsilon: float, delta: float
) -> None:
    budget = Budget(epsilon, delta)
    for key in EXACT:
        mechanism, _ = shaped(key, problem, budget)
        loss = mechanism.spent(problem, budget)
        assert loss is not None
        assert loss.epsilon <= epsilon * (1 + 1e-12)
        assert loss.epsilon >= epsilon * (1 - 1e-9)
        paper_loss = parse_variant("mvg[theorem=3,tail=tight]").spent(problem, budget)
        assert paper_loss is not None
        assert paper_loss.epsilon <= epsilon


@given(problems())
def test_exact_account_does_not_change_when_features_change_places(problem: Problem) -> None:
    order = generator(problem.n, "places").permutation(problem.d)
    widths = problem.domain.half_widths
    swap = replace(
        problem,
        domain=replace(
            problem.domain, half_widths=tuple(widths[j] for j in order) if widths else ()
        ),
        allocation=Allocation(
            "custom", theta=tuple(problem.allocation.shares(problem.d)[order].tolist())
        ),
    )
    budget = Budget(1.0, 1e-6)
    for key in EXACT:
        np.testing.assert_allclose(
            shaped(key, problem, budget)[1][order], shaped(key, swap, budget)[1], rtol=1e-9
        )


@given(
    problems(),
    st.floats(0.01, 0.95),
    st.sampled_from(["directional_gaussian", "mvg", "mvg_data"]),
    st.floats(0.02, 20),
)
def test_private_directions_compose_with_the_release(
    problem: Problem, share: float, key: str, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-5)
    private = replace(
        problem, allocation=replace(problem.allocation, directions="private", share=share)
    )
    mechanism = parse_variant(key)
    if mechanism.why_not(private, budget) is not None:
        assert min(share, 1 - share) * epsilon < 1e-4
        return
    calibration = mechanism.calibrate(private, budget)
    assert calibration.values[EPSILON_DIRECTIONS] == pytest.approx(share * epsilon)
    assert calibration.values[DELTA_DIRECTIONS] == pytest.approx(share * 1e-5)
    first, second = calibration.parts
    alone = accounting.spent([first], Budget(share * epsilon, share * 1e-5))
    assert alone.epsilon <= share * epsilon * (1 + 1e-9)
    both = mechanism.spent(private, budget)
    assert both is not None
    assert both.epsilon <= epsilon * (1 + 1e-9)
    # Both steps have a privacy loss, so the sum exceeds each loss. But in floats, the root of the
    # sum of squares does not show a loss that is 1e-8 of the other loss.
    assert min(first.mu, second.mu) > 0
    if key == "directional_gaussian":
        assert both.epsilon >= epsilon * (1 - 1e-9)  # The budget is fully used.


@given(problems(), st.floats(0.01, 0.95))
def test_pure_directions_add_up(problem: Problem, share: float) -> None:
    private = replace(
        problem, allocation=replace(problem.allocation, directions="private", share=share)
    )
    mechanism = parse_variant("directional_wishart_difference")
    calibration = mechanism.calibrate(private, Budget(1.0))
    assert calibration.values[EPSILON_DIRECTIONS] == share
    assert len(calibration.parts) == 2
    loss = mechanism.spent(private, Budget(1.0))
    assert loss is not None
    assert 1 - 1e-9 <= loss.epsilon <= 1 + 1e-12


@given(problems(), st.integers(0, 100))
def test_the_release_is_scaled_to_whatever_directions_were_bought(
    problem: Problem, seed: int
) -> None:
    """In any basis the norm of S meets the target and never exceeds it."""
    rng = generator(seed, "basis")
    basis = np.linalg.qr(rng.standard_normal((problem.d, problem.d)))[0]
    private = replace(
        problem, allocation=replace(problem.allocation, directions="private", share=0.2)
    )
    budget = Budget(0.7, 1e-6)
    for key, norm in (
        ("directional_gaussian", mahalanobis),
        ("directional_wishart_difference", mahalanobis_nuclear),
    ):
        mechanism = parse_variant(key)
        assert isinstance(mechanism, DirectionalMechanism)
        calibration = mechanism.calibrate(private, budget)
        variances, _ = mechanism.shape(calibration, basis, None)
        target = calibration.values.get("mu", 2 * calibration.values.get("epsilon_release", 0))
        assert target * (1 - 1e-9) <= norm(private, basis, variances) <= target


def test_released_values_give_the_directions_that_were_not_the_mean_of_what_is_left() -> None:
    frames = np.eye(4)[None, :, :2]
    values = np.array([[5.0, 3.0, 1.0, 0.5]])
    release = Release(raw=frames, components=frames, variances=values)
    np.testing.assert_allclose(variances_along(release, 2), [[5.0, 3.0, 0.75, 0.75]])
    assert variances_along(Release(raw=frames, components=frames), 2) is None
    assert (values == [[5.0, 3.0, 1.0, 0.5]]).all()


@pytest.mark.parametrize(
    "text", ["binary:age:0.5", "private_folder/x.csv", "custom:" + ",".join(["0.04"] * 25)]
)
def test_no_link_carries_a_name_a_file_or_a_long_list(text: str) -> None:
    assert "allocation" not in Settings(allocation=text).to_query(Settings())
    settings, notices = Settings.from_query({"allocation": text}, Settings())
    assert settings.allocation == "uniform"
    (notice,) = notices
    assert not any(word in notice for word in ("age", "private_folder"))


@pytest.mark.parametrize("key", [*EXACT, "mvg", "mvg_data"])
def test_true_directions_make_no_claim(key: str) -> None:
    allocation = Allocation(directions="true")
    problem = Problem(1000, 5, 2, Relation.REPLACE, Domain.box(5), allocation)
    mechanism, budget = parse_variant(key), Budget(1.0, 1e-6)
    assert mechanism.status(problem, budget).verdict is Verdict.BASELINE
    assert mechanism.claim(problem, budget) is None
    assert mechanism.spent(problem, budget) is None


@pytest.mark.parametrize(
    ("key", "supplier", "said"),
    [
        ("directional_wishart_difference", "gaussian", "from a pure mechanism only"),
        ("directional_gaussian", "wishart", "its claim does not hold here"),
    ],
)
def test_what_cannot_be_bought_is_one_sentence(key: str, supplier: str, said: str) -> None:
    allocation = Allocation("uniform", "private", share=0.2, supplier=supplier)
    problem = Problem(1000, 5, 2, Relation.REPLACE, Domain.box(5), allocation)
    reason = parse_variant(key).why_not(problem, Budget(1.0, 1e-6))
    assert reason is not None
    assert said in reason
