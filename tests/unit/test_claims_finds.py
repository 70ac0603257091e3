"""Two slips in public code: what they publish, and the law that they lead to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from dpviz.auditing.finds import (
    MASK_COLUMNS,
    SAMPLER_COLUMNS,
    bingham_moment,
    mask_table,
    peers,
    sampler_table,
    sharper_moment,
)
from dpviz.extend.peers import VERSIONS
from dpviz.report.sentences.claims import mask_caption, sampler_caption


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
def test_a_mirrored_mask_publishes_the_table_at_any_epsilon(epsilon: float) -> None:
    table = mask_table(epsilon, 1e-6, 3)
    assert tuple(table.columns) == MASK_COLUMNS
    assert len(table) == 6
    np.testing.assert_array_equal(table["read_off"], table["exact"])
    # negative control: the mask as meant hides the entries
    assert np.abs(table["as_meant"] - table["exact"]).max() > 1e-4
    assert "to the last digit" in mask_caption(table)
    broken = table.assign(read_off=table["as_meant"])
    assert "to the last digit" not in mask_caption(broken)


def test_the_moments_by_another_quadrature() -> None:
    def moment(power: float) -> float:
        b = (-13 + math.sqrt(13**2 + 64)) / 2  # 1/b + 2/(b + 16) = 1 is b^2 + 13 b - 16 = 0

        def density(z: float) -> float:
            outside = 1 - z * z
            return math.exp(-8 * outside) * (1 + 16 / b * outside) ** -power

        top = integrate.quad(lambda z: z * z * density(z), 0, 1)[0]
        return float(top / integrate.quad(density, 0, 1)[0])

    assert bingham_moment() == pytest.approx(0.86207, abs=5e-6)
    assert bingham_moment() == pytest.approx(moment(0), rel=1e-9)
    assert sharper_moment() == pytest.approx(moment(3), rel=1e-9)


def test_the_libraries_draw_from_the_sharper_law() -> None:
    """Six standard errors: a false alarm in a billion."""
    found = peers()
    assert [(peer.library, peer.version) for peer in found] == [
        ("diffprivlib", VERSIONS["diffprivlib"]),
        ("OpenDP", VERSIONS["opendp"]),
    ]
    for peer in found:
        assert abs(peer.mean - sharper_moment()) < 6 * peer.se
        assert abs(peer.mean - bingham_moment()) > 100 * peer.se
        assert len(peer.date) == 10


def test_the_table_sets_law_own_draws_and_libraries_side_by_side() -> None:
    table = sampler_table(0, 2_000)
    assert tuple(table.columns) == SAMPLER_COLUMNS
    own = table[table["sampler"] == "dpviz"].iloc[0]
    assert abs(own["mean"] - bingham_moment()) < 6 * own["se"]
    caption = sampler_caption(table)
    assert "is 0.862" in caption
    assert "leads to 0.967" in caption
    assert f"diffprivlib {VERSIONS['diffprivlib']} 0.968" in caption
