"""A real release: whole numbers, certified rows, ledger first, one sentence for each error."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.accounting.composition import rho_meeting
from dpviz.accounting.gaussian import delta_of, mu_of
from dpviz.cli import main
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.datasets import Table
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.transform import Transform
from dpviz.releasing import noise as noise_module
from dpviz.releasing.grid import (
    DIAGONAL_WEIGHT,
    OTHER_WEIGHT,
    NeedsCoarserGrid,
    bits_for,
    quantised,
    second_moment,
    within_limits,
)
from dpviz.releasing.ledger import Ledger, LedgerError
from dpviz.releasing.making import digest, float_safe, make
from dpviz.releasing.noise import (
    BY_MAP,
    BY_THEOREM,
    Law,
    NoOpenDP,
    Side,
    calibrated,
    mean_side,
    released,
    sensitivity_l1,
    sensitivity_l2,
)
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Column, Schema

D = 4


def _declared(d: int = D, bound: float = 1.0) -> Transform:
    never = np.full(d, math.inf)
    return Transform(-never, never, np.zeros(d), np.full(d, bound))


def _rows(n: int = 40, d: int = D, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def _options(**changed: object) -> ReleaseOptions:
    return ReleaseOptions(**{"row_bound": "2", "k": 1, "delta": 1e-6, **changed})


def _schema(d: int = D) -> Schema:
    return Schema(tuple(Column(f"x{i}", -3, 3) for i in range(d)))


def _ledger(tmp_path: Path, epsilon: float = 10.0) -> Ledger:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(epsilon, 1e-4), Relation.REPLACE)
    return ledger


def _table(rows: np.ndarray | None = None) -> Table:
    table = _rows() if rows is None else rows
    return Table("made", table, tuple(f"x{i}" for i in range(table.shape[1])))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.floats(-1e300, 1e300, allow_nan=False), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([6, 13, 20, 24]),
    st.floats(1e-3, 1e3),
)
def test_every_row_is_certified_in_whole_numbers(
    rows: list[list[float]], bits: int, bound: float
) -> None:
    whole = quantised(np.array(rows), _declared(3, bound), bits)
    for row in whole.tolist():
        assert sum(entry * entry for entry in row) <= 4**bits


def test_no_entry_is_too_large_to_be_certified() -> None:
    """Quotients beyond a double, and values that no finite row can have, are certified as well."""
    with np.errstate(invalid="ignore"):  # Here NaN is cast on purpose.
        for rows in ([[1e308, -1e308, 1.0]], [[math.inf, 0.0, 0.0]], [[math.nan, 1.0, 1.0]]):
            whole = quantised(np.array(rows), _declared(3, 1e-300), 20)
            assert sum(entry * entry for entry in whole[0].tolist()) <= 4**20


def test_rows_are_truncated_toward_zero() -> None:
    whole = quantised(np.array([[0.5, -0.3], [0.0, 1.0], [3.0, 4.0]]), _declared(2), 8)
    assert whole.tolist() == [[128, -76], [0, 256], [153, 204]]
    assert quantised(np.array([[1e-9, -1e-9]]), _declared(2), 20).tolist() == [[0, 0]]


def test_bounds_cut_before_the_centre_is_subtracted() -> None:
    low, high = np.zeros(2), np.array([4.0, 8.0])
    transform = Transform(low, high, high / 2, np.full(2, 10.0))
    whole = quantised(np.array([[-7.0, 100.0], [2.0, 4.0]]), transform, 10)
    assert whole.tolist() == [[-204, 409], [0, 0]]


@pytest.mark.parametrize("bits", [6, 20, 24])
def test_the_second_moment_is_exact(bits: int) -> None:
    whole = quantised(_rows(3000, 5), _declared(5), bits)
    exact = [
        [
            sum(int(a) * int(b) for a, b in zip(whole[:, i], whole[:, j], strict=True))
            for j in range(5)
        ]
        for i in range(5)
    ]
    assert second_moment(whole, bits).tolist() == exact


def test_the_overflow_bound_is_asserted() -> None:
    assert bits_for(42_366, None) == 20
    assert bits_for(42_367, None) == 19
    assert OTHER_WEIGHT * 42_366 * 4**20 < 2**62 <= OTHER_WEIGHT * 42_367 * 4**20
    with pytest.raises(
        NeedsCoarserGrid, match=r"at most 42,366 .* a grid of 17 bits allows this many"
    ):
        bits_for(1_000_000, 20)
    with pytest.raises(NeedsCoarserGrid, match="n must be at most"):
        bits_for(10**16, None)
    with pytest.raises(InvalidSetting, match="a whole number from 6 to 24"):
        bits_for(10, 3)


def test_one_weight_is_at_least_sqrt_2_times_the_other() -> None:
    assert OTHER_WEIGHT**2 >= 2 * DIAGONAL_WEIGHT**2
    assert Fraction(OTHER_WEIGHT, DIAGONAL_WEIGHT) ** 2 / 2 < Fraction(10_002, 10_000)
    for bits in (6, 12, 20):  # Whole numbers detect a root that was rounded down.
        assert 2 * sensitivity_l2(Relation.ZERO_OUT, bits) ** 2 >= (OTHER_WEIGHT * 4**bits) ** 2


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("d", [2, 3, 8])
def test_no_pair_of_certified_rows_moves_more_than_the_sensitivity(
    relation: Relation, d: int
) -> None:
    """A search in whole numbers attains the l2 bound, so the test detects any smaller bound."""
    bits = 12
    rng = np.random.default_rng(7)
    raw = np.concatenate([np.eye(d), np.ones((1, d)), rng.standard_normal((60, d))]) * 10
    rows = quantised(raw, _declared(d), bits)
    upper = np.triu_indices(d)
    weights = np.where(upper[0] == upper[1], DIAGONAL_WEIGHT, OTHER_WEIGHT)
    others = rows if relation is Relation.REPLACE else np.zeros((1, d), dtype=np.int64)
    worst_l1 = worst_l2 = 0.0
    for v in rows:
        for w in others:
            change = (np.outer(v, v) - np.outer(w, w))[upper]
            worst_l1 = max(worst_l1, int(np.abs(change).sum()))
            worst_l2 = max(worst_l2, math.sqrt(int(((weights * change) ** 2).sum())))
    assert worst_l2 <= sensitivity_l2(relation, bits)
    assert worst_l1 <= sensitivity_l1(relation, d, bits)
    if relation is Relation.ZERO_OUT:
        assert worst_l1 > 0.99 * sensitivity_l1(relation, d, bits)
    assert worst_l2 > 0.98 * sensitivity_l2(relation, bits)


@pytest.mark.parametrize("relation", list(Relation))
def test_rho_is_as_asked_by_other_code(relation: Relation) -> None:
    """The discrete Gaussian of scale s and sensitivity D is D^2/(2 s^2)-zCDP, in fractions."""
    noise = calibrated(Law.NORMAL, Budget(1.0, 1e-6), relation, 6, 20)
    rho = Fraction(noise.sensitivity) ** 2 / (2 * Fraction(noise.scale) ** 2)
    assert rho <= Fraction(noise.rho) <= rho * (1 + Fraction(1, 10**12))
    assert noise.proved.epsilon <= 1.0
    assert noise.proved.epsilon == pytest.approx(1.0, rel=1e-9)
    # For one coordinate, dp-accounting finds the claimed epsilon; zCDP proves only a larger one.
    one = pld.from_discrete_gaussian_mechanism(
        sigma=noise.scale / noise.sensitivity * 50, sensitivity=50
    )
    assert noise.proved.epsilon == pytest.approx(one.get_epsilon_for_delta(1e-6), rel=2e-3)
    assert 1.06 < noise.mapped.epsilon < 1.09


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-5)])
def test_a_release_has_the_noise_of_the_exact_gaussian(
    relation: Relation, epsilon: float, delta: float
) -> None:
    """OpenDP's map alone needs 5 to 9 % more noise; both proofs are on the safe side."""
    budget = Budget(epsilon, delta)
    noise = calibrated(Law.NORMAL, budget, relation, 61, 20)
    continuous = noise.sensitivity / mu_of(budget)
    assert continuous <= noise.scale <= continuous * (1 + 1e-9)
    by_map = noise.sensitivity / math.sqrt(2 * rho_meeting(epsilon, delta))
    assert 1.05 < by_map / noise.scale < 1.09
    assert epsilon * (1 - 1e-9) < noise.proved.epsilon <= epsilon < noise.mapped.epsilon
    assert noise.source == BY_THEOREM


def test_where_the_theorem_says_nothing_the_map_is_claimed() -> None:
    """The map gives the claim at a large epsilon, or if rounding on a coarse grid uses up delta."""
    for budget, bits in ((Budget(100.0, 1e-6), 20), (Budget(1.0, 1e-14), 6)):
        noise = calibrated(Law.NORMAL, budget, Relation.REPLACE, 61, bits)
        assert noise.source == BY_MAP
        assert noise.proved == noise.mapped
        assert noise.proved.epsilon <= budget.epsilon


def test_laplace_noise_spends_what_is_asked() -> None:
    noise = calibrated(Law.LAPLACE, Budget(0.7), Relation.REPLACE, 6, 16)
    assert noise.proved.epsilon <= 0.7
    assert noise.proved.epsilon == pytest.approx(0.7, rel=1e-12)
    assert noise.scale >= noise.sensitivity / 0.7
    with pytest.raises(CannotRun, match="needs a delta above 0"):
        calibrated(Law.NORMAL, Budget(0.7), Relation.REPLACE, 6, 16)


def test_a_huge_budget_releases_the_moment_itself() -> None:
    whole = quantised(_rows(200, 3), _declared(3), 20)
    moment = second_moment(whole, 20)
    for law, delta in ((Law.NORMAL, 1e-6), (Law.LAPLACE, 0.0)):
        noise = calibrated(law, Budget(100.0, delta), Relation.REPLACE, 3, 20)
        estimate = released(moment, noise, 200, 20)
        # Each of the 9 entries has a standard deviation of at most 0.14/200.
        assert np.abs(estimate - moment / (200 * 4.0**20)).max() < 6 * 0.14 / 200
        assert (estimate == estimate.T).all()


def test_a_release_writes_its_spend_first_and_says_what_it_proves(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    first = make(_options(), _table(), _schema(), ledger=ledger)
    second = make(_options(), _table(), _schema(), ledger=ledger)
    assert "spend number 1" in first.said
    assert "spend number 2" in second.said
    assert not np.allclose(first.matrix, second.matrix)  # Without a seed, noise differs.
    spends = ledger.read().spends
    answer = second.to_json()
    assert spends[1].epsilon == answer["proved"]["epsilon"] <= 1.0
    assert answer["proved"]["epsilon"] < answer["opendp"]["epsilon"]
    assert "theorem in dpviz.accounting.gaussian" in answer["proved"]["source"]
    assert "map of OpenDP" in answer["opendp"]["source"]
    assert answer["ledger"]["spends"] == 2
    assert answer["ledger"]["epsilon"] == pytest.approx(2.0, rel=1e-9)
    assert answer["ledger"]["left"]["epsilon"] == pytest.approx(8.0, rel=1e-9)
    assert answer["ledger"]["head"] == ledger.read().heads[1] != ledger.read().heads[0]
    assert answer["ledger"]["id"] == ledger.read().identity
    assert spends[1].settings == answer["settings_hash"] == digest(answer["settings"])
    assert answer["relation"] == "replace"
    assert answer["declared"]["row_bound"] == 2.0
    assert np.array(answer["components"]).shape == (1, D)
    assert np.allclose(np.linalg.norm(answer["components"][0]), 1)
    assert {"dpviz", "opendp", "numpy", "python"} <= set(answer["versions"])
    json.dumps(answer, allow_nan=False)


def test_no_row_is_looked_at_where_the_spend_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _ledger(tmp_path)

    def full(*_: object) -> None:
        raise LedgerError("no room; nothing was spent.")

    def looked(*_: object) -> None:
        raise AssertionError("rows were looked at")

    monkeypatch.setattr(Ledger, "spend", full)
    monkeypatch.setattr("dpviz.releasing.making.second_moment", looked)
    with pytest.raises(LedgerError, match="no room"):
        make(_options(), _table(), _schema(), ledger=ledger)
    # Control: if the ledger accepts the release, the data rows are read.
    monkeypatch.undo()
    monkeypatch.setattr("dpviz.releasing.making.second_moment", looked)
    with pytest.raises(AssertionError, match="rows were looked at"):
        make(_options(), _table(), _schema(), ledger=ledger)


def test_pure_epsilon_takes_laplace_noise(tmp_path: Path) -> None:
    release = make(_options(delta=0.0), _table(), _schema())
    assert release.plan.noise.law is Law.LAPLACE
    assert release.to_json()["proved"]["delta"] == 0.0
    assert release.said == ""


def test_only_mechanisms_with_a_safe_sampler_are_taken() -> None:
    safe = float_safe()
    assert set(safe.values()) == set(Law)
    for key, cls in all_mechanisms().items():
        if key in safe:
            continue
        assert not cls.info.discrete
        with pytest.raises(CannotRun, match="safe against attacks on floating-point"):
            make(_options(mechanism=key), _table(), _schema())


def test_the_noise_is_that_of_the_mechanism_up_to_the_weights() -> None:
    """In units of A, the discrete noise has the scale of the exact mechanism's noise."""
    (key,) = [key for key, law in float_safe().items() if law is Law.NORMAL]
    n, d = 500, 6
    noise = calibrated(Law.NORMAL, Budget(1.0, 1e-6), Relation.REPLACE, d, 20)
    problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
    mechanism = parse_variant(key)
    exact = mechanism.calibrate(problem, Budget(1.0, 1e-6)).scale
    assert noise.scale / (DIAGONAL_WEIGHT * n * 4.0**20) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"row_bound": ""}, "row-norm bound must be a number above 0 .* got 'nothing'"),
        ({"row_bound": "max"}, "before anybody looked at the table; got 'max'"),
        ({"name": "her/table.csv"}, "1 to 60 characters without slashes"),
        ({"k": 5}, "k must be a whole number from 1 to 4"),
        ({"delta": None}, "delta must be stated: a number .* not above 1/n; got 'nothing'"),
        ({"epsilon": 10.5}, "more than 22,000; to accept this, add --accept epsilon-above-10"),
        ({"delta": 0.026}, "whole row of one person, .* add --accept delta-above-1/n"),
        ({"delta": 0.024}, "would pass its limit"),  # Below 1/n = 1/40, the option is not needed.
        ({"delta": 0.026, "accept": ("delta-above-1/n",)}, "would pass its limit"),
        ({"epsilon": 10.5, "accept": ("epsilon-above-10",)}, "would pass its limit"),
        ({"grid": 24, "row_bound": "2"}, None),
    ],
)
def test_what_is_missing_is_one_sentence_and_nothing_is_spent(
    tmp_path: Path, changed: dict[str, object], message: str | None
) -> None:
    ledger = _ledger(tmp_path)
    if message is None:
        make(_options(**changed), _table(), _schema(), ledger=ledger)
        assert len(ledger.read().spends) == 1
        return
    with pytest.raises(DpvizError, match=message) as error:
        make(_options(**changed), _table(), _schema(), ledger=ledger)
    assert str(error.value).count("\n") == 0
    assert ledger.read().spends == ()
    assert not ledger.folder.exists()


def test_no_schema_a_full_ledger_and_no_opendp_spend_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _ledger(tmp_path, 0.5)
    with pytest.raises(DpvizError, match="schema must be given, because no public limits"):
        make(_options(), _table(), ledger=ledger)
    draft = replace(_schema(), from_data=True)
    with pytest.raises(DpvizError, match=r"'taken from the data, not private'.*Nothing was spent"):
        make(_options(), _table(), draft, ledger=ledger)
    with pytest.raises(DpvizError, match="none of its 4 columns has the name 'x4'"):
        make(_options(), _table(), _schema(5), ledger=ledger)
    with pytest.raises(LedgerError, match="refuses"):
        make(_options(), _table(), _schema(), ledger=ledger)

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(noise_module, "import_module", missing)
    with pytest.raises(NoOpenDP, match="is not installed here: python -m pip install"):
        make(_options(), _table(), _schema(), ledger=ledger)
    assert ledger.read().spends == ()


def test_the_command_writes_one_file_and_refuses_to_replace_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, ledger = tmp_path / "out.json", tmp_path / "ledger"
    assert main(["ledger", "new", str(ledger), "--limit", "3,1e-5"]) == 0
    schema = tmp_path / "schema.json"
    assert main(["schema", "iris", "--bounds", "0:8", "--out", str(schema)]) == 0
    words = ["release", "iris", "--row-bound", "6", "--schema", str(schema), "--delta", "1e-7"]
    words += ["--ledger", str(ledger), "--out", str(out)]
    assert main(words) == 0
    assert "spend number 1" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["claimed"] == {"epsilon": 1.0, "delta": 1e-7}
    exact = delta_of(content["proved"]["epsilon"], math.sqrt(2 * content["proved"]["rho"]))
    assert exact == pytest.approx(1e-7, rel=1e-6)
    assert main(words) == 2
    assert "must name a new file" in capsys.readouterr().err
    assert len(Ledger(ledger).read().spends) == 1


# --- rows of length one, and a private mean -----------------------------------------------------


def _unit(d: int = D) -> Transform:
    return replace(_declared(d), low=np.full(d, -50.0), high=np.full(d, 50.0), unit=True)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.floats(-1e99, 1e99), min_size=D, max_size=D), min_size=2, max_size=2),
    st.sampled_from([6, 13, 20]),
    st.sampled_from(list(Relation)),
)
def test_one_row_moves_unit_rows_and_their_sum_by_no_more_than_stated(
    pair: list[list[float]], bits: int, relation: Relation
) -> None:
    transform = _unit()
    other = np.zeros((1, D)) if relation is Relation.ZERO_OUT else np.array(pair[1:])
    changes = []
    for of in (transform, within_limits(transform)):
        first = quantised(np.array(pair[:1]), of, bits)
        second = quantised(other, of, bits)
        if relation is Relation.ZERO_OUT:
            second = np.zeros_like(second)  # An absent person adds 0 to the sums.
        assert ((first * first).sum(1) <= 4**bits).all()
        changes.append((first, second))
    weights = np.full((D, D), OTHER_WEIGHT)
    np.fill_diagonal(weights, DIAGONAL_WEIGHT)
    upper = np.triu_indices(D)
    one, two = (second_moment(rows, bits) for rows in changes[0])
    change = [int(value) for value in (one - two)[upper]]
    weighted_change = [int(value) for value in ((one - two) * weights)[upper]]
    assert sum(value * value for value in weighted_change) <= sensitivity_l2(relation, bits) ** 2
    assert sum(map(abs, change)) <= sensitivity_l1(relation, D, bits)
    steps = [int(value) * (OTHER_WEIGHT << bits) for value in (changes[1][0] - changes[1][1])[0]]
    gaussian = mean_side(Law.NORMAL, relation, D, bits, share=0.1).sensitivity
    laplace = mean_side(Law.LAPLACE, relation, D, bits, share=0.1).sensitivity
    assert sum(step * step for step in steps) <= gaussian**2
    assert sum(map(abs, steps)) <= laplace


def test_unit_rows_have_length_one_on_the_grid_and_a_row_of_nothing_stays_so() -> None:
    rows = np.array([[3.0, 4, 0, 0], [0, 0, 0, 0], [1e-200, 0, 0, 1e-200], [40, -40, 40, 40]])
    whole = quantised(rows, _unit(), 20)
    assert whole[1].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(whole[0] / 2**20, [0.6, 0.8, 0, 0], atol=2**-19)
    lengths = np.sqrt((whole[[0, 2, 3]] ** 2).sum(1)) / 2**20
    np.testing.assert_allclose(lengths, 1, atol=4 * 2**-20)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_a_mean_and_a_moment_together_cost_what_is_claimed(
    relation: Relation, share: float
) -> None:
    budget = Budget(1.0, 1e-6)
    side = mean_side(Law.NORMAL, relation, 9, 20, share=share)
    noise = calibrated(Law.NORMAL, budget, relation, 9, 20, sides=[side])
    (mean,) = noise.sides
    bound = sensitivity_l2(relation, 20)

    def delta(moment: float, of_mean: float) -> float:
        # Gaussian releases, also adaptive ones, compose to one Gaussian: add the squares of mu.
        mu = math.hypot(bound / moment, side.sensitivity / of_mean)
        return delta_of(budget.epsilon, mu)

    assert mean.scale >= noise.scale
    assert delta(noise.scale, mean.scale) <= budget.delta
    assert delta(noise.scale, mean.scale) > 0.999 * budget.delta
    assert delta(noise.scale * math.sqrt(1 - share), mean.scale) > budget.delta
    by_rho = (bound / noise.scale) ** 2 / 2 + (side.sensitivity / mean.scale) ** 2 / 2
    assert by_rho <= noise.rho * (1 + 1e-12)
    loss = pld.from_gaussian_mechanism(noise.scale / bound, use_connect_dots=True).compose(
        pld.from_gaussian_mechanism(mean.scale / side.sensitivity, use_connect_dots=True)
    )
    assert loss.get_delta_for_epsilon(1.0) <= budget.delta * 1.01  # dp-accounting rounds up.


def test_pure_shares_add_up_to_epsilon() -> None:
    side = mean_side(Law.LAPLACE, Relation.REPLACE, 9, 16, share=0.1)
    noise = calibrated(Law.LAPLACE, Budget(0.7), Relation.REPLACE, 9, 16, sides=[side])
    epsilon = Fraction(sensitivity_l1(Relation.REPLACE, 9, 16)) / Fraction(noise.scale)
    whole = epsilon + Fraction(side.sensitivity) / Fraction(noise.sides[0].scale)
    assert whole <= Fraction(noise.proved.epsilon) <= Fraction(0.7)
    assert whole > Fraction(0.6999)


def test_shares_that_leave_nothing_are_refused() -> None:
    sides = [Side("mean", 0.6, 1, 1), Side("more", 0.4, 1, 1)]
    with pytest.raises(InvalidSetting, match="with a sum below 1"):
        calibrated(Law.NORMAL, Budget(1.0, 1e-6), Relation.REPLACE, 3, 20, sides=sides)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_release_around_a_private_mean_finds_the_component_and_not_the_mean(
    tmp_path: Path, delta: float
) -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((4000, D)) * [1.0, 4.0, 1.0, 1.0] + [30.0, 0.0, 20.0, 0.0]
    table, schema = (
        Table("far", rows, tuple("abcd")),
        Schema(tuple(Column(name, -50, 50) for name in "abcd"), rows_a_person=1),
    )
    options = ReleaseOptions(rows="unit", epsilon=3.0, delta=delta, k=1, center="typical")
    # Use the same noise in both releases; the mean gets half the budget, to reduce chance.
    around = replace(options, center="private", mean_share=0.5)
    first, second = (abs(make(each, table, schema).components[:, 0]) for each in (options, around))
    assert first[1] < 0.3  # The mean is about (30, 0, 20, 0).
    assert second[1] > 0.9
    text = make(around, table, schema).to_json()
    np.testing.assert_allclose(text["mean"], [30, 0, 20, 0], atol=3)
    assert text["declared"]["center"] == text["mean"]
    assert text["declared"]["rows"] == "unit"
    assert not any("row-norm bound" in one for one in text["assumed_public"])
    assert text["proved"]["epsilon"] <= 3


def test_a_row_bound_beside_rows_of_length_one_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="left out if rows are scaled to length one"):
        ReleaseOptions(rows="unit", row_bound="3", delta=1e-6).require()
