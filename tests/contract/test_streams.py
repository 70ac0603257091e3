"""Mechanisms release the same from streamed rows as from an array, in the passes they state."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import BlocksAgain, ByLength, InBlocks
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, _rows, all_mechanisms, oja, parse_variant
from dpviz.mechanisms._rows import moment_of
from dpviz.preparation.bounding import prepare_batches
from dpviz.preparation.transform import Transform
from dpviz.simulation.sweep import sweep

N, D, K = 6_000, 30, 3
VARIANTS = ("ppca[rows=unit]", "funnel[sizes=0.25]", "oja[sampling=poisson]", "oja[steps=7]")
ALL = (*(cls() for cls in all_mechanisms().values()), *map(parse_variant, VARIANTS))
READERS = [one for one in ALL if one.needs_rows]


@cache
def rows() -> FloatArray:
    found = generator(5, "streams").standard_normal((N, D)) * np.geomspace(3, 0.2, D)
    found /= np.linalg.norm(found, axis=1).max()
    return found


class Source:
    """Rows in uneven pieces, by columns, with one row turned on request; counts its passes."""

    def __init__(self, turned: int = 0) -> None:
        self.passes, self.rows = 0, rows().copy()
        self.rows[N // 2] = np.roll(self.rows[N // 2], turned)

    def read(self) -> Iterator[tuple[FloatArray, int]]:
        self.passes += 1
        for start, stop in ((0, 1), (1, 1_000), (1_000, 5_000), (5_000, 5_000), (5_000, N)):
            yield np.asfortranarray(self.rows[start:stop]), 0


def streamed(source: Source) -> SecondMoment:
    lengths = InBlocks(source.rows).fold(lambda: ByLength(D))
    again = BlocksAgain(source.read, lambda block: block, D)
    return SecondMoment(moment_of(rows()).A, N).with_lengths(lengths, again)


def released(mechanism: Mechanism, data: SecondMoment, trials: range) -> FloatArray:
    delta = 0.0 if mechanism.info.guarantee == "pure" else 1e-6
    problem = Problem(N, D, K, Relation.ZERO_OUT, Domain.ball(D))
    calibration = mechanism.calibrate(problem, Budget(1.0, delta))
    return mechanism.release_many(data, calibration, Draws.trials(1, "a", trials)).components


@pytest.mark.parametrize("mechanism", READERS, ids=lambda m: m.text)
def test_streamed_rows_give_the_release_of_rows_in_memory(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamed blocks release equal bytes; sums in another order differ by rounding."""
    assert mechanism.passes >= 1
    monkeypatch.setattr(_rows, "_BLOCK", 50_000)  # With small blocks, the noise needs several.
    source = Source()
    held = released(mechanism, moment_of(rows()), range(3))
    found = released(mechanism, streamed(source), range(3))
    np.testing.assert_allclose(found, held, rtol=0, atol=1e-12)
    # If a mechanism sums rows by groups of length, all groups together count as one pass.
    assert source.passes <= mechanism.passes
    # The result must not depend on how many repetitions share a pass over the rows.
    alone = released(mechanism, streamed(source), range(2, 3))
    np.testing.assert_allclose(alone[0], held[2], rtol=0, atol=1e-12)
    # Control: a change of one row in 6,000 changes the release.
    other = released(mechanism, streamed(Source(turned=1)), range(3))
    assert np.abs(other - held).max() > 1e-9


def test_oja_takes_more_passes_for_large_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, source = parse_variant("oja[steps=7]"), Source()
    held = released(mechanism, moment_of(rows()), range(2))
    monkeypatch.setattr(oja, "_MOMENTS", 3 * D**2)
    found = released(mechanism, streamed(source), range(2))
    np.testing.assert_allclose(found, held, rtol=0, atol=1e-12)
    assert source.passes == 2 * 3  # Each repetition reads the table three times.


def test_pieces_become_the_blocks_of_an_array_whatever_their_size() -> None:
    """Each number is changed once, in the same block as when an array holds the rows."""
    change = Transform(
        low=np.full(D, -0.5), high=np.full(D, 0.5), center=np.full(D, 0.1), scale=np.full(D, 2.0)
    ).inside
    again = BlocksAgain(Source().read, change, D).blocks()
    for (start, block), (at, kept) in zip(InBlocks(rows(), change, D).blocks(), again, strict=True):
        assert start == at
        assert block.tobytes() == kept.tobytes()


def test_rows_of_a_file_are_read_in_other_processes_too(tmp_path: Path) -> None:
    table = tmp_path / "rows.parquet"
    pd.DataFrame(rows()[:, :6]).rename(columns=str).to_parquet(table)
    settings = Settings(table=str(table), trials=2, mechanisms=("adaptive_clip_gaussian", "oja"))
    prepared = prepare_batches(table, settings)
    over = {"epsilon": [1.0, 3.0]}
    alone, together = (sweep(prepared, over, settings, workers=some).table for some in (1, 2))
    pd.testing.assert_frame_equal(alone, together, check_exact=True)
