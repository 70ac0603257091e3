"""Another BLAS kernel moves the last digits of the same seed's numbers, and no more than that."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.kernels import answer, apart

# What docs/scale.md states. A sum of 1,797 products rounds by at most n u = 2e-13 of the sum of
# sizes; a component turns by that over its gap to the next one, which is .1 of the spectrum here,
# and measures that are small differences of large numbers lose two or three digits more.
TOLERANCE = 1e-9
WORDS = ("digits", "--trials", "4", "--mechanism", "gaussian", "--mechanism", "wishart_difference")


@pytest.fixture(scope="module")
def two() -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    """Return what two processes print whose BLAS takes this processor for two others."""
    found = answer("Nehalem", *WORDS), answer("Haswell", *WORDS)
    if found[0][0] == found[1][0]:
        pytest.skip(f"BLAS has one kernel here, whatever it is told: {found[0][0]}")
    return found


def test_numbers_agree_to_the_stated_tolerance(
    two: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]],
) -> None:
    (_, first), (_, second) = two
    most, where = apart(first, second)
    assert 0 < most <= TOLERANCE, where  # above 0: two kernels were really at work


def test_a_difference_would_be_seen(
    two: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]],
) -> None:
    """The control: another seed is another draw."""
    (_, first), _ = two
    _, other = answer("Nehalem", *WORDS, "--seed", "1")
    assert apart(first, other)[0] > 1e-4


_KEY = """
from dpviz.preparation.load import load_prepared
from dpviz.simulation.cells import plan
from dpviz.simulation.store import Keys
from dpviz.core.settings import Settings
settings = Settings(table="iris", mechanisms=("gaussian",))
chosen = plan(load_prepared(settings), settings)
keys = Keys(chosen.prepared)
keys._digest[False] = "the same moments"
print(keys.key(chosen.cells[0], ("recovery",)))
"""


def test_the_store_keeps_kernels_apart(
    two: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]],
) -> None:
    """A cell of one kernel is not taken for one of another, where the moments happen to agree."""
    del two
    found = [
        subprocess.run(
            [sys.executable, "-c", _KEY], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
            capture_output=True, text=True, check=True,
        ).stdout
        for kernel in ("Nehalem", "Haswell", "Haswell")
    ]  # fmt: skip
    assert found[0] != found[1]
    assert found[1] == found[2]
