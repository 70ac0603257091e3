"""Another BLAS kernel changes only the last digits of the numbers for a seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.kernels import apart

# docs/scale.md derives the tolerance. A sum of 1,797 products rounds by at most n u = 2e-13 of the
# sum of sizes. A component turns by this error over its eigenvalue gap, here .1 of the spectrum.
# Measures that are small differences of large numbers lose two or three more digits.
TOLERANCE = 1e-9
# Compute all results of a kernel in one process, because starting Python is slower.
_ASKED = """
import contextlib, io, json, sys
from dpviz.cli import main
from dpviz.core.resources import kernel
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.simulation.cells import plan
from dpviz.simulation.store import Keys

def printed(seed):
    words = ["digits", "--trials", "4", "--mechanism", "gaussian", "--mechanism",
             "wishart_difference", "--seed", seed, "--format", "json"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["compare", *words]) == 0
    return json.loads(said.getvalue())

settings = Settings(table="iris", mechanisms=("gaussian",))
chosen = plan(load_prepared(settings), settings)
keys = Keys(chosen.prepared)
keys._digest[False] = "the same moments"
key = keys.key(chosen.cells[0], ("recovery",))
print(json.dumps([kernel(), key, [printed(seed) for seed in sys.argv[1:]]]))
"""
Asked = tuple[str, str, list[dict[str, Any]]]


def asked(kernel: str, *seeds: str) -> Asked:
    """Return the kernel that a process used, its key of a stored result, and its comparisons."""
    run = subprocess.run(
        [sys.executable, "-c", _ASKED, *seeds], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    core, key, values = json.loads(run.stdout)
    return core, key, values


@pytest.fixture(scope="module")
def two() -> tuple[Asked, Asked]:
    """Return the results of two processes whose BLAS assumes different processors."""
    answers = asked("Nehalem", "0", "1"), asked("Haswell", "0")
    if answers[0][0] == answers[1][0]:
        pytest.skip(f"BLAS has one kernel here, whatever it is told: {answers[0][0]}")
    return answers


def test_numbers_agree_to_the_stated_tolerance(two: tuple[Asked, Asked]) -> None:
    (_, _, (first, _)), (_, _, (second,)) = two
    most, where = apart(first, second)
    assert 0 < most <= TOLERANCE, where  # The difference is above 0 because kernels differ.


def test_a_difference_would_be_seen(two: tuple[Asked, Asked]) -> None:
    """Control: another seed gives clearly different results."""
    first, other = two[0][2]
    assert apart(first, other)[0] > 1e-4


def test_the_store_keeps_kernels_apart(two: tuple[Asked, Asked]) -> None:
    """A result of one kernel is not used for another kernel, even if the moments agree."""
    (_, first, _), (_, second, _) = two
    assert first != second
    assert asked("Haswell")[1] == second  # A third process gives the same result as the second.


def test_another_kernel_reads_the_same_rows() -> None:
    """A rerun elsewhere reports changed rows only if the rows really differ, also streamed rows."""
    code = """
import hashlib
import dask.dataframe as dd, dpviz, pandas as pd
from dpviz.datasets import builtin_tables, load
print([hashlib.sha256(load(name).rows.tobytes()).hexdigest() for name in builtin_tables()])
table = load("digits")
streamed = dd.from_pandas(pd.DataFrame(table.rows, columns=table.columns), npartitions=3)
for rows in ("digits", streamed):
    print(dpviz.compare(rows, mechanisms="gaussian", trials=1).made.rows)
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
            capture_output=True, text=True, check=True,
        ).stdout
        for kernel in ("Prescott", "Haswell")
    }  # fmt: skip
    assert len(digests) == 1
