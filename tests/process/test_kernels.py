"""Another BLAS kernel moves the last digits of the same seed's numbers, and no more than that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.kernels import apart

# What docs/scale.md states. A sum of 1,797 products rounds by at most n u = 2e-13 of the sum of
# sizes; a component turns by that over its gap to the next one, which is .1 of the spectrum here,
# and measures that are small differences of large numbers lose two or three digits more.
TOLERANCE = 1e-9
# One process for each kernel is asked everything: a start of Python takes longer than its answers.
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
    """Return the kernel that a process really used, its key of a cell, and its comparisons."""
    run = subprocess.run(
        [sys.executable, "-c", _ASKED, *seeds], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    used, key, found = json.loads(run.stdout)
    return used, key, found


@pytest.fixture(scope="module")
def two() -> tuple[Asked, Asked]:
    """Return what two processes say whose BLAS takes this processor for two others."""
    found = asked("Nehalem", "0", "1"), asked("Haswell", "0")
    if found[0][0] == found[1][0]:
        pytest.skip(f"BLAS has one kernel here, whatever it is told: {found[0][0]}")
    return found


def test_numbers_agree_to_the_stated_tolerance(two: tuple[Asked, Asked]) -> None:
    (_, _, (first, _)), (_, _, (second,)) = two
    most, where = apart(first, second)
    assert 0 < most <= TOLERANCE, where  # above 0: two kernels were really at work


def test_a_difference_would_be_seen(two: tuple[Asked, Asked]) -> None:
    """The control: another seed is another draw."""
    first, other = two[0][2]
    assert apart(first, other)[0] > 1e-4


def test_the_store_keeps_kernels_apart(two: tuple[Asked, Asked]) -> None:
    """A cell of one kernel is not taken for one of another, where the moments happen to agree."""
    (_, first, _), (_, second, _) = two
    assert first != second
    assert asked("Haswell")[1] == second  # and in another process it is the same


def test_another_kernel_reads_the_same_rows() -> None:
    """A rerun elsewhere names the rows as a cause only where they are others, streamed ones too."""
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
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
            capture_output=True, text=True, check=True,
        ).stdout
        for kernel in ("Prescott", "Haswell")
    }  # fmt: skip
    assert len(seen) == 1
