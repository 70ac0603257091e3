"""Effects of a noise allocation: noise, losses and gains, and the tables that a page edits."""

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
from dpviz.core.allocation import SMALLEST_SHARE, parse_allocation
from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant, parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.compare import Comparison, compare
from dpviz.studies.precision import (
    NOISE_COLUMNS,
    PRICE_COLUMNS,
    SPEND_COLUMNS,
    bounds_of_rows,
    directions_warning,
    moved_text,
    noise_table,
    price_table,
    rebalanced_text,
    spend_table,
)

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
    table = iris(settings)
    mechanisms = parse_variants(settings.mechanisms)
    return noise_table(
        mechanisms, table, table.problem(settings), table.budget(settings), settings.seed
    )


def stds(table: pd.DataFrame, mechanism: str) -> np.ndarray:
    return table.loc[table["mechanism"] == mechanism, "std"].to_numpy()


# Noise ----------------------------------------------------------------------------------------


def test_uniform_noise_is_the_exact_gaussian() -> None:
    """On the box of half width 1, the shape has trace norm d, so mu = sqrt(2) d/(n s) = 1/g."""
    settings = setting()
    iris_table = iris(settings)
    table = noise_of(settings)
    assert tuple(table.columns) == NOISE_COLUMNS
    std = np.sqrt(2) * 4 / iris_table.n * noise_std(iris_table.budget(settings))
    np.testing.assert_allclose(stds(table, SHAPED), std, rtol=1e-9)
    np.testing.assert_allclose(stds(table, "gaussian"), stds(table, SHAPED), rtol=1e-9)


@pytest.mark.parametrize("key", [SHAPED, PURE])
def test_noise_on_the_box_is_inverse_to_the_share(key: str) -> None:
    uniform = stds(noise_of(setting()), key)
    shape = stds(noise_of(setting(allocation="binary:1,3:0.8")), key)
    # The directions' budget shares are .4 and .1, against .25 if all shares are equal.
    np.testing.assert_allclose(shape / uniform, [0.625, 2.5, 0.625, 2.5], rtol=1e-9)


def test_the_stated_noise_is_the_noise_of_releases() -> None:
    """The std of a diagonal entry is estimated from 4,000 samples; its relative standard

    error is 1/sqrt(2 * 4000) = 0.0112, so six errors (false alarms 2e-9, four entries) are 0.067.
    """
    settings = setting(allocation="custom:0.5,0.3,0.15,0.05", trials=4_000)
    table = iris(settings)
    mechanism = parse_variant(f"{SHAPED}[estimate=plain]")
    problem, budget = table.problem(settings), table.budget(settings)
    from dpviz.core.seeding import Draws

    calibration = mechanism.calibrate(problem, budget)
    release = mechanism.release_many(
        table.moment, calibration, Draws.trials(0, mechanism.key, range(4_000))
    )
    std = np.diagonal(release.raw, axis1=1, axis2=2).std(axis=0)
    stated_std = stds(noise_table([mechanism], table, problem, budget, 0), mechanism.text)
    assert np.abs(std / stated_std - 1).max() < 0.067
    # Control: the test detects noise that is 10 % too small along some direction.
    assert np.abs(0.9 * std / stated_std - 1).max() > 0.067


# Losses and noise -----------------------------------------------------------------------------


def test_prices_fall_with_the_share_and_isotropic_ones_do_not() -> None:
    settings = setting()
    iris_table = iris(settings)
    table = price_table(
        parse_variants(settings.mechanisms),
        iris_table,
        iris_table.problem(settings),
        iris_table.budget(settings),
        0,
    )
    assert tuple(table.columns) == PRICE_COLUMNS
    for key in (SHAPED, PURE):
        part = table[table["mechanism"] == key]
        # Under replace, precision uses at most the linear budget, and at least 1/sqrt(2) of it
        # (Gaussian) or 1/2 (pure). The least is reached if one feature gets nearly all precision.
        product = part["std"] * part["share"]
        least = {SHAPED: math.sqrt(0.5), PURE: 0.5}[key]
        assert product.max() <= product.min() / least
        assert part["std"].is_monotonic_decreasing
    flat = table[table["mechanism"] == "gaussian"]
    assert np.ptp(flat["std"]) == 0


# Loss for directions --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_the_spend_on_private_directions_adds_up(share: float) -> None:
    table = spend_table(
        compared(directions=f"private:{share}", mechanisms=(SHAPED, PURE, "mvg", "gaussian"))
    )
    assert tuple(table.columns) == SPEND_COLUMNS
    assert len(table) == 3  # Isotropic Gaussian noise has no list of directions.
    np.testing.assert_allclose(table["epsilon_directions"], share, rtol=1e-12)
    np.testing.assert_allclose(table["epsilon_directions"] + table["epsilon_release"], 1)
    np.testing.assert_allclose(table["delta_directions"] + table["delta_release"], table["delta"])
    pure = table["delta"] == 0
    assert pure.sum() == 1
    assert (table["spent"] <= 1 + 1e-9).all()


# Tables to edit -------------------------------------------------------------------------------


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
        message = str(error)
    else:
        message = ""
    if message:
        assert ". " not in message
        lock_sum = sum(w for w, lock in zip(weights, locks, strict=False) if lock)
        assert lock_sum > 0.999 or table["locked"].all()
        return
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    for share, weight, lock in zip(shares, weights, locks, strict=False):
        assert not lock or share == pytest.approx(weight, rel=1e-6, abs=1e-6)


# Dragged shares -------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.001, 1), min_size=2, max_size=30),
    st.data(),
    st.floats(0, 1),
)
def test_a_dragged_share_stays_and_all_sum_to_one(
    start: list[float], data: st.DataObject, place: float
) -> None:
    at = data.draw(st.integers(0, len(start) - 1))
    theta = np.array(start) / sum(start)
    theta[at] = place * (1 - SMALLEST_SHARE * len(start))
    text = moved_text(theta.tolist(), [False] * len(start), at)
    shares = parse_allocation(text).theta
    assert math.fsum(shares) == pytest.approx(1, abs=1e-9)
    assert shares[at] == pytest.approx(max(theta[at], SMALLEST_SHARE), abs=1e-6)
    assert min(shares) >= SMALLEST_SHARE * (1 - 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(3.25, 1.5, "low at or above high"), (3.25, 3.25, "low at or above high"),
     (None, 3.25, "a blank"), (3.25, math.nan, "a blank")],
)  # fmt: skip
def test_bounds_that_are_none_are_refused_without_their_numbers(
    low: float | None, high: float, words: str
) -> None:
    with pytest.raises(InvalidSetting, match=words) as caught:
        bounds_of_rows([("weight", low, high)])
    assert "3.25" not in str(caught.value)  # This could be the data's own largest value.


def test_true_directions_are_said_to_be_not_private() -> None:
    assert "Not private" in str(directions_warning(parse_allocation("uniform", "true")))
    assert directions_warning(parse_allocation("uniform")) is None
