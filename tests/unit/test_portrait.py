"""The small pictures of a mechanism: how far it turns a direction, and its own noise."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from scipy import stats

from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.report.figures.svg import noise_image, thumbnail
from dpviz.report.figures.theme import colour_of
from dpviz.report.tables.portrait import BINS, DRAWS, FEATURES, _example, portrait


@pytest.mark.parametrize("key", all_mechanisms())
def test_every_mechanism_that_runs_has_one_in_its_colour(key: str) -> None:
    mechanism = parse_variant(key)
    seen = portrait(mechanism)
    prepared, settings = _example()
    problem, budget = prepared.problem(settings), prepared.budget(settings)
    assert (seen is None) == (mechanism.why_not(problem, budget, rows=True) is not None)
    if seen is None:
        return
    assert (seen.noise is None) == (mechanism.releases(problem, budget) == "subspace")
    assert 0 <= seen.median <= 90
    drawn = [(seen.angles, thumbnail(seen, mechanism))]
    if seen.noise is not None:
        drawn.append((seen.noise, noise_image(seen, mechanism)))
    for heights, picture in drawn:
        assert heights.shape == (BINS,)
        assert heights.max() == 1
        coded = re.search(r"base64,([^\"]+)", picture)
        assert coded is not None
        svg = base64.b64decode(coded[1]).decode()
        bars, colour = re.findall(r'<path d="([^"]*)" fill="(#\w+)"/>', svg)[0]
        assert colour == colour_of(mechanism)
        assert bars.count("M") == (heights > 0).sum()


def test_angles_are_what_nothing_and_everything_turn() -> None:
    """Exact PCA turns nothing; half of random directions lie beyond what quadrature says."""
    exact, blind = (
        portrait(parse_variant("non_private")),
        portrait(parse_variant("random_projection")),
    )
    assert exact is not None
    assert blind is not None
    assert exact.median < 1e-5  # degrees: an arccosine near 1 knows half the digits
    assert exact.angles.tolist() == [1, *[0] * (BINS - 1)]
    # The squared cosine is Beta(1/2, (d - 1)/2). The median's rank is binomial: 5 standard
    # deviations are .5 +- 2.5/sqrt(DRAWS), a quarter of the draws.
    law = stats.beta(0.5, (FEATURES - 1) / 2)
    low, high = (np.degrees(np.arccos(np.sqrt(law.ppf(share)))) for share in (0.75, 0.25))
    assert low < blind.median < high
    assert not low < exact.median < high


def test_the_noise_is_what_its_law_says() -> None:
    """A Wishart lies on one side of 0, a difference of two on both, a semicircle ends."""
    middle = BINS // 2
    one_sided, difference, circle = (
        portrait(parse_variant(key)) for key in ("wishart", "wishart_difference", "gaussian")
    )
    assert one_sided is not None
    assert one_sided.noise is not None
    assert difference is not None
    assert difference.noise is not None
    assert circle is not None
    assert circle.noise is not None
    assert one_sided.noise[:middle].sum() == 0
    left, right = difference.noise[:middle].sum(), difference.noise[-middle:].sum()
    # FEATURES * DRAWS eigenvalues fall left or right: 6 standard deviations of that count, doubled
    # because eigenvalues of one draw hang together.
    total = FEATURES * DRAWS
    share = left / (left + right)
    assert abs(share - 0.5) < 2 * 6 * 0.5 / np.sqrt(total)
    # The semicircle's standard deviation is half its edge, and 98 % lie within 1.0 edges.
    prepared, settings = _example()
    mechanism = parse_variant("gaussian")
    scale = mechanism.calibrate(prepared.problem(settings), prepared.budget(settings)).scale
    edge = 2 * np.sqrt(FEATURES / 2) * scale
    assert 0.8 * edge < circle.reach < 1.4 * edge


def test_another_budget_would_be_another_noise() -> None:
    """The control: sizes follow the mechanism, they are not one picture for all."""
    exact, loose = portrait(parse_variant("gaussian")), portrait(parse_variant("laplace"))
    assert exact is not None
    assert loose is not None
    assert loose.reach > 3 * exact.reach
