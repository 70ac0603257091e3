"""What an allocation does: noise, prices, spends and gains, and the tables a page edits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz import datasets
from dpviz.accounting.gaussian import noise_std
from dpviz.core.allocation import SMALLEST_SHARE, UNIFORM, Allocation, of_mapping, parse_allocation
from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.datasets import read_thetas
from dpviz.mechanisms import parse_variant, parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.report.tables.precision import (
    EXAMPLES,
    NOISE_COLUMNS,
    PRICE_COLUMNS,
    SPEND_COLUMNS,
    account_table,
    bounds_of_rows,
    custom_text,
    direction_names,
    directions_warning,
    falling_prices,
    gain_table,
    moved_text,
    noise_table,
    overlap_with_chosen,
    pair_table,
    precision_variants,
    price_table,
    rebalanced_text,
    shares_file,
    shares_table,
    shown,
    spend_table,
    supplier_note,
    suppliers,
    unequal,
)
from dpviz.simulation.compare import Comparison, compare

SHAPED = "directional_gaussian"
PURE = "directional_wishart_difference"


def setting(**changed: object) -> Settings:
    base = Settings(
        table="iris", domain="box", delta=1e-5, trials=3, mechanisms=(SHAPED, PURE, "gaussian")
    )
    return replace(base, **changed)  # type: ignore[arg-type]


def iris(settings: Settings) -> Prepared:
    return prepare(datasets.load("iris"), settings)


def compared(**changed: object) -> Comparison:
    settings = setting(**changed)
    return compare(iris(settings), settings)


def noise_of(settings: Settings) -> pd.DataFrame:
    prepared = iris(settings)
    mechanisms = parse_variants(settings.mechanisms)
    return noise_table(
        mechanisms, prepared, prepared.problem(settings), prepared.budget(settings), settings.seed
    )


def stds(table: pd.DataFrame, mechanism: str) -> np.ndarray:
    return table.loc[table["mechanism"] == mechanism, "std"].to_numpy()


# Noise ----------------------------------------------------------------------------------------


def test_the_variants_side_by_side_exist_and_hold_what_the_page_promises() -> None:
    variants = precision_variants()
    assert len(set(variants)) == len(variants)
    for text in ("mvg", "mvg[theorem=3]", "mvg[theorem=3,tail=tight]", SHAPED, PURE, "gaussian"):
        assert text in variants
    assert "wishart_difference" in variants
    assert all(parse_variant(text).text == text for text in variants)


def test_uniform_noise_is_the_exact_gaussian() -> None:
    """Box of half width 1: trace norm of the shape is d, so mu = sqrt(2) d/(n s) = 1/g."""
    settings = setting()
    prepared = iris(settings)
    table = noise_of(settings)
    assert tuple(table.columns) == NOISE_COLUMNS
    wanted = np.sqrt(2) * 4 / prepared.n * noise_std(prepared.budget(settings))
    np.testing.assert_allclose(stds(table, SHAPED), wanted, rtol=1e-9)
    np.testing.assert_allclose(stds(table, "gaussian"), stds(table, SHAPED), rtol=1e-9)


@pytest.mark.parametrize("key", [SHAPED, PURE])
def test_noise_on_the_box_is_inverse_to_the_share(key: str) -> None:
    uniform = stds(noise_of(setting()), key)
    shaped = stds(noise_of(setting(allocation="binary:1,3:0.8")), key)
    # Shares .4 against .25, and .1 against .25.
    np.testing.assert_allclose(shaped / uniform, [0.625, 2.5, 0.625, 2.5], rtol=1e-9)


def test_isotropic_noise_ignores_the_allocation() -> None:
    variants = ("gaussian", f"{SHAPED}[noise=isotropic]")
    table = noise_of(setting(allocation="binary:1:0.9", mechanisms=variants))
    for text in variants:
        assert np.ptp(stds(table, text)) < 1e-12 * stds(table, text)[0]


def test_the_stated_noise_is_the_noise_of_releases() -> None:
    """The std of a diagonal entry over 4,000 draws is its own estimate: its relative standard

    error is 1/sqrt(2 * 4000) = 0.0112, so six of them (false alarms 2e-9, four entries) is 0.067.
    """
    settings = setting(allocation="custom:0.5,0.3,0.15,0.05", trials=4_000)
    prepared = iris(settings)
    mechanism = parse_variant(f"{SHAPED}[estimate=plain]")
    problem, budget = prepared.problem(settings), prepared.budget(settings)
    from dpviz.core.seeding import Draws

    calibration = mechanism.calibrate(problem, budget)
    release = mechanism.release_many(
        prepared.moment, calibration, Draws.trials(0, mechanism.key, range(4_000))
    )
    seen = np.diagonal(release.raw, axis1=1, axis2=2).std(axis=0)
    said = stds(noise_table([mechanism], prepared, problem, budget, 0), mechanism.text)
    assert np.abs(seen / said - 1).max() < 0.067
    # Negative control: noise that is a tenth too small somewhere would be noticed.
    assert np.abs(0.9 * seen / said - 1).max() > 0.067


def test_a_mechanism_without_such_noise_has_no_rows() -> None:
    table = noise_of(setting(mechanisms=("ppca", "gaussian")))
    assert set(table["mechanism"]) == {"gaussian"}
    nothing = noise_of(setting(mechanisms=("ppca",)))
    assert nothing.empty
    assert tuple(nothing.columns) == NOISE_COLUMNS


def test_names_of_directions() -> None:
    prepared = iris(setting())
    assert direction_names(prepared, UNIFORM) == prepared.columns
    private = Allocation(directions="private", share=0.2)
    assert direction_names(prepared, private)[:2] == ("direction 1", "direction 2")


# Accounts and prices --------------------------------------------------------------------------


def test_accounts_stand_in_the_order_of_their_looseness() -> None:
    settings = setting(
        mechanisms=("mvg", "mvg[theorem=3]", "mvg[theorem=3,tail=tight]", SHAPED),
        allocation="binary:1:0.9",
    )
    prepared = iris(settings)
    table = account_table(
        parse_variants(settings.mechanisms),
        prepared,
        prepared.problem(settings),
        prepared.budget(settings),
        0,
    ).set_index("mechanism")
    noise = table["std"]
    assert noise["mvg"] > noise["mvg[theorem=3]"] > noise["mvg[theorem=3,tail=tight]"]
    assert noise["mvg[theorem=3,tail=tight]"] > 10 * noise[SHAPED]
    assert table.loc[SHAPED, "spent"] == pytest.approx(1, rel=1e-6)
    assert (table["spent"].drop(SHAPED) < 0.5).all()


def test_prices_fall_with_the_share_and_isotropic_ones_do_not() -> None:
    settings = setting()
    prepared = iris(settings)
    table = price_table(
        parse_variants(settings.mechanisms),
        prepared,
        prepared.problem(settings),
        prepared.budget(settings),
        0,
    )
    assert tuple(table.columns) == PRICE_COLUMNS
    for key in (SHAPED, PURE):
        part = table[table["mechanism"] == key]
        # Under replace a unit of precision costs at most the linear budget's price, and at least
        # 1/sqrt(2) of it (Gaussian) or a half (pure), where one feature gets nearly all.
        product = part["std"] * part["share"]
        least = {SHAPED: math.sqrt(0.5), PURE: 0.5}[key]
        assert product.max() <= product.min() / least
        assert part["std"].is_monotonic_decreasing
    flat = table[table["mechanism"] == "gaussian"]
    assert np.ptp(flat["std"]) == 0


# What directions cost -------------------------------------------------------------------------


def test_nothing_is_spent_on_features_or_on_true_directions() -> None:
    assert spend_table(compared()).empty
    assert spend_table(compared(directions="true")).empty
    assert directions_warning(UNIFORM) is None
    warning = directions_warning(Allocation(directions="true"))
    assert warning is not None
    assert warning.startswith("Not private")


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_the_spend_on_private_directions_adds_up(share: float) -> None:
    table = spend_table(
        compared(directions=f"private:{share}", mechanisms=(SHAPED, PURE, "mvg", "gaussian"))
    )
    assert tuple(table.columns) == SPEND_COLUMNS
    assert len(table) == 3  # the isotropic Gaussian buys none
    np.testing.assert_allclose(table["epsilon_directions"], share, rtol=1e-12)
    np.testing.assert_allclose(table["epsilon_directions"] + table["epsilon_release"], 1)
    np.testing.assert_allclose(table["delta_directions"] + table["delta_release"], table["delta"])
    pure = table["delta"] == 0
    assert pure.sum() == 1
    assert (table["spent"] <= 1 + 1e-9).all()


def test_the_spend_names_the_supplier_and_what_it_really_spends() -> None:
    variants = (SHAPED, PURE, "mvg", "gaussian")
    default = spend_table(compared(directions="private:0.2", mechanisms=variants))
    assert set(default["supplier"]) == {"exact Gaussian noise", "Wishart difference"}
    np.testing.assert_allclose(default["directions_spent"], 0.2, rtol=1e-9)
    table = spend_table(compared(directions="private:0.2:laplace", mechanisms=variants))
    assert set(table["supplier"]) == {parse_variant("laplace").label}
    np.testing.assert_allclose(table["epsilon_directions"], 0.2, rtol=1e-12)
    assert (table["directions_spent"] < 0.15).all()
    assert (table["delta_directions"] == 0).all()  # a pure supplier leaves its delta
    np.testing.assert_allclose(table["delta_directions"] + table["delta_release"], table["delta"])
    assert (table["spent"] <= 1 + 1e-9).all()
    exact = table[table["mechanism"].isin([parse_variant(key).label for key in (SHAPED, PURE)])]
    assert (exact["spent"] >= 1 - 1e-6).all()


def test_the_note_says_which_directions_are_the_suppliers_own() -> None:
    def note(directions: str, k: int = 2) -> str | None:
        settings = setting(directions=directions, k=k)
        return supplier_note(iris(settings).problem(settings))

    assert note("features") is None
    assert note("private:0.2") is None
    assert note("private:0.2:gaussian") == (
        "Gaussian, exact releases a matrix: all 4 directions and their variances."
    )
    assert "the first 2 directions (k, and at most d - 1)" in str(note("private:0.2:ppca"))
    assert "the first 3 directions (k, and at most d - 1)" in str(note("private:0.2:ppca", 4))
    assert "the mean of the variances left" in str(
        note("private:0.2:eigenvector_sampling[values_share=0.5]")
    )


def test_suppliers_are_found_in_the_registry() -> None:
    found = suppliers()
    assert next(iter(found)) == ""
    assert {"gaussian", "ppca", "wishart_exact"} <= set(found)
    assert not {"non_private", "mvg", "data_gaussian", "laplace_output", SHAPED} & set(found)


# Gains ----------------------------------------------------------------------------------------


def test_gains_stand_beside_equal_shares() -> None:
    uniform, shaped = compared(), compared(allocation="binary:3:0.8")
    table = gain_table(shaped, uniform)
    assert list(table["mechanism"]) == [r.mechanism.text for r in shaped.results]
    for row, before, after in zip(table.itertuples(), uniform.results, shaped.results, strict=True):
        assert row.uniform == before.metrics["recovery"].mean()
        assert row.recovery == after.metrics["recovery"].mean()
        assert 0 <= row.overlap <= 1
    assert gain_table(uniform, uniform)["overlap"].isna().all()


def test_overlap_is_one_inside_and_zero_outside() -> None:
    chosen = Allocation("binary", chosen=(1, 2), tau=0.8)
    result = compared().results[0]
    inside = replace(result, components=np.eye(4)[None, :, :2])
    outside = replace(result, components=np.eye(4)[None, :, 2:])
    one = replace(result, components=np.eye(4)[None, :, :1])
    assert overlap_with_chosen(inside, chosen) == 1
    assert overlap_with_chosen(outside, chosen) == 0
    assert overlap_with_chosen(one, chosen) == 1
    assert overlap_with_chosen(inside, replace(chosen, directions="true")) is None


def test_pairs_leave_out_what_would_hide_the_rest() -> None:
    noise = noise_of(setting(mechanisms=("mvg", SHAPED, "gaussian"), allocation="binary:1:0.8"))
    everything = pair_table(noise, 1, 4, only_near=False)
    assert list(everything["mechanism"]) == ["mvg", SHAPED, "gaussian"]
    near = pair_table(noise, 1, 4, only_near=True)
    assert list(near["mechanism"]) == [SHAPED, "gaussian"]
    row = everything.set_index("mechanism").loc[SHAPED]
    assert row["first"] == stds(noise, SHAPED)[0]
    assert row["second"] == stds(noise, SHAPED)[3]


# Tables to edit -------------------------------------------------------------------------------


def test_the_table_of_shares_starts_from_the_allocation() -> None:
    names = ("a", "b", "c", "d")
    table = shares_table(Allocation("binary", chosen=(2,), tau=0.7), names)
    np.testing.assert_allclose(table["theta"], [0.1, 0.7, 0.1, 0.1])
    assert not table["locked"].any()
    spectrum = Allocation("max-pnr", "private", share=0.2)
    np.testing.assert_allclose(shares_table(spectrum, names)["theta"], 0.25)


@given(
    weights=st.lists(st.floats(0.01, 1), min_size=3, max_size=30),
    locks=st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_rebalancing_always_sums_to_one_or_says_why(
    weights: list[float], locks: list[bool]
) -> None:
    table = pd.DataFrame({"theta": weights, "locked": locks[: len(weights)]})
    shares: tuple[float, ...] = ()
    try:
        shares = parse_allocation(rebalanced_text(table)).theta
    except InvalidSetting as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert ". " not in said
        locked = sum(w for w, lock in zip(weights, locks, strict=False) if lock)
        assert locked > 0.999 or table["locked"].all()
        return
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    for share, weight, lock in zip(shares, weights, locks, strict=False):
        assert not lock or share == pytest.approx(weight, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("blank", [None, float("nan"), float("inf")])
def test_a_blank_is_refused_and_not_guessed(blank: float | None) -> None:
    table = pd.DataFrame({"theta": [0.5, 0.25, blank], "locked": [True, False, False]})
    with pytest.raises(InvalidSetting, match=r"shares that are numbers; got 'a blank'\.$"):
        rebalanced_text(table.astype({"theta": float}))
    with pytest.raises(InvalidSetting, match="a blank"):
        custom_text(table["theta"].astype(float).tolist())


@pytest.mark.parametrize("directions", ["features", "private:0.2", "true"])
def test_a_share_file_is_read_back(directions: str) -> None:
    names = ('a "quoted" one', "b,c", "d")
    allocation = parse_allocation("uniform", directions)
    shown = names if directions == "features" else ("direction 1", "direction 2", "direction 3")
    written = shares_file(allocation, shown, [0.5, 0.3, 0.2])
    thetas = read_thetas(_binary(written), name="allocation.csv")
    assert of_mapping(thetas, names, allocation.directions) == "custom:0.5,0.3,0.2"


def _binary(text: str) -> object:
    import io

    return io.BytesIO(text.encode())


def test_edited_bounds() -> None:
    assert bounds_of_rows([("a", -1, 2), ("b", 0.5, 1.5)]) == {"a": (-1, 2), "b": (0.5, 1.5)}
    for low, high, words in [
        (3.25, 1.5, "low at or above high"),
        (3.25, 3.25, "low at or above high"),
        (None, 3.25, "a blank"),
        (3.25, float("nan"), "a blank"),
        (float("-inf"), 3.25, "a blank"),
    ]:
        with pytest.raises(InvalidSetting) as caught:
            bounds_of_rows([("weight", low, high)])
        assert words in str(caught.value)
        assert "'weight'" in str(caught.value)
        assert "3.25" not in str(caught.value)  # it may be the data's own largest value


# Dragged shares -------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=30),
    st.data(),
    st.floats(0, 1),
)
def test_a_dragged_share_stays_and_all_sum_to_one(
    start: list[float], data: st.DataObject, place: float
) -> None:
    moved = data.draw(st.integers(0, len(start) - 1))
    theta = np.array(start) / sum(start)
    theta[moved] = place * (1 - SMALLEST_SHARE * len(start))
    text = moved_text(theta.tolist(), [False] * len(start), moved)
    shares = parse_allocation(text).theta
    assert math.fsum(shares) == pytest.approx(1, abs=1e-9)
    assert shares[moved] == pytest.approx(max(theta[moved], SMALLEST_SHARE), abs=1e-6)
    assert min(shares) >= SMALLEST_SHARE * (1 - 1e-9)


def test_locked_shares_stay_while_another_is_dragged() -> None:
    text = moved_text([0.7, 0.25, 0.25, 0.25], [False, True, False, False], 0)
    assert parse_allocation(text).theta == pytest.approx((0.7, 0.25, 0.025, 0.025))
    with pytest.raises(InvalidSetting, match="leave at least"):
        moved_text([0.7, 0.4, 0.25, 0.25], [False, True, False, False], 0)
    with pytest.raises(InvalidSetting, match="one lock for each share"):
        moved_text([0.5, 0.5], [False], 0)
    with pytest.raises(InvalidSetting, match="one lock for each share"):
        moved_text([0.5, 0.5], [False, False], 2)
    with pytest.raises(InvalidSetting, match="shares that are numbers"):
        moved_text([math.nan, 0.5], [False, False], 1)


# Flat lines -----------------------------------------------------------------------------------


def test_flat_lines_are_known_as_such() -> None:
    assert not unequal(noise_of(setting(allocation="uniform")))
    assert unequal(noise_of(setting(allocation="binary:1:0.8")))
    prices = pd.DataFrame(
        {"mechanism": ["a", "a", "b", "b"], "share": [0.1, 0.9] * 2, "std": [2.0, 1.0, 3.0, 3.0]}
    )
    assert set(falling_prices(prices)["mechanism"]) == {"a"}


# The planted example --------------------------------------------------------------------------


def test_an_example_is_known_by_what_it_sets_whatever_the_draws() -> None:
    own = Settings(table="wine", trials=7, seed=3)
    for key, example in EXAMPLES.items():
        settings = example.of(own)
        assert shown(settings) == key
        assert (settings.trials, settings.seed, settings.table) == (7, 3, "planted")
        assert shown(replace(settings, epsilon=0.2)) is None
    assert shown(own) is None
    assert len({example.label for example in EXAMPLES.values()}) == len(EXAMPLES)
