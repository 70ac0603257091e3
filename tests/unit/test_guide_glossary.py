"""The glossary, the teaching plan, the bibliography and the script: computed, current, complete."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from scipy.optimize import brentq
from scipy.stats import norm

from dpviz.accounting.gaussian import noise_std
from dpviz.core.problem import Budget
from dpviz.core.settings import Settings
from dpviz.lessons import teaching
from dpviz.lessons.glossary import DELTA, TERMS, composed, worst
from dpviz.lessons.teaching import document
from dpviz.preparation.load import load_measured
from dpviz.simulation.compare import compare
from tools.teaching import PATH


def test_every_number_of_the_glossary_against_other_code() -> None:
    # By the Gaussian privacy profile, this standard deviation gives (1, 1e-6).
    std = noise_std(Budget(1.0, DELTA))
    mu = 1 / std
    chance_right = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
    assert chance_right == pytest.approx(DELTA, rel=1e-6)
    settings = Settings(table="digits", delta=DELTA, trials=20, mechanisms=("gaussian",))
    table = load_measured(settings)
    values = table.moment.eigenvalues
    share, chance = values[:2].sum() / values.sum(), 2 / len(values)
    total = compare(table, settings).results[0].metrics["captured_total"].mean()
    recovery = (total - chance) / (share - chance)
    # Pure releases compose to the sum of their epsilons. At delta 0, no smaller epsilon is valid.
    assert composed(4).value == pytest.approx(1 / (1 + math.exp(-4)))
    assert all(first < later for first, later in pairwise(composed(n).value for n in range(1, 5)))
    alarm = 1 / (1 + math.e)
    expected = {
        "epsilon": ["1", f"{math.e:.2g}"],
        "delta": ["1e-6", "2e-6"],
        "sensitivity": [f"{math.sqrt(2):.3g}"],
        "noise": ["1e-6", "1", f"{std:.2g}"],
        "eigenspectrum": ["2", f"{100 * share:.0f}"],
        "eigengap": ["2", f"{100 * (values[1] - values[2]) / values.sum():.0f}"],
        # In a semicircle of radius 2, a spike theta >= 1 is visible, with overlap 1 - 1/theta^2.
        "noise-edge": [f"{100 * 1 / 2:.0f}", f"{100 * (1 - 1 / 2**2):.0f}"],
        "recovery": ["1", f"{100 * recovery:.0f}"],
        "composition": ["1", "74", "100", "4", "98.3"],
        "both-worlds": [
            "1",
            f"{math.floor(100 * alarm)}",
            "100",
            f"{math.ceil(100 * (1 - alarm))}",
        ],
    }
    for one in TERMS:
        numbers = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", one.said)
        assert numbers == expected.get(one.key, []), one.key
    assert (expected["both-worlds"][1], expected["both-worlds"][3]) == ("26", "74")


def test_no_pair_of_unit_rows_moves_more_than_the_sensitivity() -> None:
    moves = [worst(turn) for turn in np.linspace(0, math.pi, 181)]
    assert max(moves) == pytest.approx(math.sqrt(2))


# The plan ----------------------------------------------------------------------------


def test_the_plan_on_disk_is_the_one_computed_now() -> None:
    assert PATH.read_text(encoding="utf-8") == document()


def test_a_budget_for_ten_is_counted_as_dp_accounting_counts_it() -> None:
    """Ten Gaussian releases, each at the epsilon of the teacher's sheet, use 1 together."""
    (text,) = (said for task, said in teaching.exercises() if task.startswith("Divide a budget"))
    each = float(re.search(r"and epsilon (\S+) if", text)[1])  # type: ignore[index]
    accountant = gaussian_mechanism.get_epsilon_gaussian
    alone = brentq(lambda sigma: accountant(sigma, 1e-5) - each, 0.5, 100)
    assert accountant(alone / math.sqrt(10), 1e-5) == pytest.approx(1, rel=0.03)
