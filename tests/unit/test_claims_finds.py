"""Two errors in public code: the published law, and the law that results."""

from __future__ import annotations

import math

import pytest
from scipy import integrate

from dpviz.auditing.finds import (
    bingham_moment,
    sharper_moment,
)


def test_the_moments_by_another_quadrature() -> None:
    def moment(power: float) -> float:
        b = (-13 + math.sqrt(13**2 + 64)) / 2  # This b solves 1/b + 2/(b + 16) = 1.

        def density(z: float) -> float:
            outside = 1 - z * z
            return math.exp(-8 * outside) * (1 + 16 / b * outside) ** -power

        top = integrate.quad(lambda z: z * z * density(z), 0, 1)[0]
        return float(top / integrate.quad(density, 0, 1)[0])

    assert bingham_moment() == pytest.approx(0.86207, abs=5e-6)
    assert bingham_moment() == pytest.approx(moment(0), rel=1e-9)
    assert sharper_moment() == pytest.approx(moment(3), rel=1e-9)
