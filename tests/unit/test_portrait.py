"""The small picture on a mechanism's card: its own noise, or its own law."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest

from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.report.figures.small import portrait_image
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
    assert (seen.kind == "angle") == (mechanism.releases(problem, budget) == "subspace")
    assert seen.heights.shape == (BINS,)
    assert seen.heights.max() == 1
    coded = re.search(r"base64,([^\"]+)", portrait_image(seen, mechanism))
    assert coded is not None
    svg = base64.b64decode(coded[1]).decode()
    bars = re.findall(r"<rect [^>]*fill=.(#\w+)", svg)
    assert bars == [colour_of(mechanism)] * int((seen.heights > 0).sum())


def test_the_noise_is_what_its_law_says() -> None:
    """A Wishart lies on one side of 0, a difference of two on both, a semicircle ends."""
    middle = BINS // 2
    one_sided, difference, circle = (
        portrait(parse_variant(key)) for key in ("wishart", "wishart_difference", "gaussian")
    )
    assert one_sided is not None
    assert difference is not None
    assert circle is not None
    assert one_sided.heights[:middle].sum() == 0
    left, right = difference.heights[:middle].sum(), difference.heights[-middle:].sum()
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
    assert 0.8 * edge < circle.high < 1.4 * edge


def test_another_budget_would_be_another_noise() -> None:
    """The control: sizes follow the mechanism, they are not one picture for all."""
    exact, loose = portrait(parse_variant("gaussian")), portrait(parse_variant("laplace"))
    assert exact is not None
    assert loose is not None
    assert loose.high > 3 * exact.high
