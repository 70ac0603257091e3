"""One person's point clouds: the payload follows the laws of the releases."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpviz.lessons.cast import plain, published, pure
from dpviz.lessons.person import EPSILONS, person_payload

PAYLOAD = person_payload([plain(), pure(), published()], 1e-5)
GAUSSIAN, DIFFERENCE, CONE = PAYLOAD["mechanisms"]
ONE = EPSILONS.index(1.0)


def test_the_payload_is_json_and_small() -> None:
    text = json.dumps(PAYLOAD, allow_nan=False)
    assert json.loads(text) == PAYLOAD
    assert len(text) < 150_000


def test_limits_are_the_exact_rates_of_both_worlds() -> None:
    assert DIFFERENCE["at"][ONE]["limit"][0] == pytest.approx(1 / (1 + math.e))
    # Gaussian noise at (1, 1e-5) has mu = .268, which gives the rates 45 % and 55 % in both worlds.
    out, within = GAUSSIAN["at"][ONE]["limit"]
    assert out == pytest.approx(norm.cdf(-0.268 / 2), abs=1e-3)
    assert (round(100 * out), round(100 * within)) == (45, 55)


def test_at_the_rim_the_gaussian_cloud_reaches_its_limit() -> None:
    """Under zero-out a unit row moves the release by 1 along its direction; the noise has std t."""
    scale = GAUSSIAN["at"][ONE]["scale"]
    assert norm.sf(0.5 / scale) == pytest.approx(GAUSSIAN["at"][ONE]["limit"][0], abs=1e-6)


@pytest.mark.parametrize("mechanism", [GAUSSIAN, DIFFERENCE], ids=["gaussian", "difference"])
def test_quantiles_are_those_of_the_noise_drawn(mechanism: dict[str, object]) -> None:
    noise = np.array(mechanism["noise"])
    quantiles = np.array(mechanism["quantiles"])
    assert (np.diff(quantiles) >= 0).all()
    for turn in (0.0, 0.4, 1.1):
        c, s = math.cos(turn), math.sin(turn)
        along = c * c * noise[:, 0] + 2 * c * s * noise[:, 1] + s * s * noise[:, 2]
        share = float((np.abs(along) <= quantiles[125]).mean())
        # The median size is correct within six standard errors of 1,000 samples (false alarm 2e-9).
        assert abs(share - 0.5) <= 6 * 0.5 / math.sqrt(len(noise))


def test_quantiles_of_the_gaussian_are_the_normal_ones() -> None:
    quantiles = np.array(GAUSSIAN["quantiles"]) / GAUSSIAN["grain"]
    # The std is 1 along any direction. With 400,000 samples, six standard errors are at most .5 %.
    assert quantiles[125] == pytest.approx(norm.ppf(0.75), rel=0.01)
    # Control: noise of twice the scale has different quantiles.
    assert quantiles[125] != pytest.approx(2 * norm.ppf(0.75), rel=0.01)


def test_crosses_are_as_frequent_as_the_proof_says() -> None:
    noise, grain = np.array(CONE["noise"]), CONE["grain"]
    for at, epsilon in zip(CONE["at"], EPSILONS, strict=True):
        assert at["betrayed"] == pytest.approx(1 - math.exp(-epsilon / 3))
        assert at["limit"] == [0.0, 1.0]
        unit = at["scale"] / grain
        first, between, second = unit * noise[:, 0] - 1, unit * noise[:, 1], unit * noise[:, 2]
        outside = (first < 0) | (first * second - between**2 < 0)
        error = 6 * math.sqrt(at["betrayed"] * (1 - at["betrayed"]) / len(noise))
        assert abs(outside.mean() - at["betrayed"]) <= error


def test_noise_of_the_cone_is_positive_and_the_repair_is_not() -> None:
    for mechanism, positive in ((CONE, True), (DIFFERENCE, False)):
        noise = np.array(mechanism["noise"], dtype=float)
        least = (noise[:, 0] + noise[:, 2]) / 2 - np.hypot(
            (noise[:, 0] - noise[:, 2]) / 2, noise[:, 1]
        )
        assert bool((least > -3).all()) is positive  # Rounding errs by one or two grains.
        assert mechanism["oneSided"] is positive
