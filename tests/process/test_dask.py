"""A Dask cluster gives the same bytes and moments, even if it loses a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from dpviz import datasets
from dpviz.core.errors import InvalidTable
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.dataframes import FrameBatches
from dpviz.preparation.bounding import prepare, prepare_batches
from dpviz.simulation.jobs import Progress
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep

distributed = pytest.importorskip("distributed", reason="the extra dpviz[dask] is not installed")
dask_frame = pytest.importorskip("dask.dataframe", reason="the extra dpviz[dask] is not installed")

# The cluster's threads and sockets end shortly after the cluster; dpviz does not close them.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

SETTINGS = Settings(
    table="wine", delta=1e-3, trials=3, mechanisms=("gaussian", "wishart", "ppca", "laplace_output")
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster that replaces each worker that dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as local:
        yield local


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster.scheduler_address) as connection:
        yield connection


def test_a_cluster_gives_the_same_bytes(client: Any, tmp_path: Any) -> None:
    over = {"epsilon": [0.1, 1.0, 10.0], "n": [100, 178]}
    alone = sweep("wine", over, SETTINGS)
    executor = client.get_executor()
    keep = Store(tmp_path)
    together = sweep("wine", over, SETTINGS, executor=executor, store=keep)
    pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)
    # The cluster returned its results, and this process stored them.
    again = sweep("wine", over, SETTINGS, executor=executor, store=keep)
    assert again.computed == 0
    alone.write(tmp_path / "alone.csv")
    together.write(tmp_path / "together.csv")
    assert (tmp_path / "alone.csv").read_bytes() == (tmp_path / "together.csv").read_bytes()


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(row_bound="30"), Settings(domain="box", center="none")],
    ids=lambda s: " ".join(s.texts().values()) or "-",
)
def test_moments_of_a_frame_agree_with_a_single_process(client: Any, settings: Settings) -> None:
    table = datasets.load("digits")
    frame = pd.DataFrame(table.rows, columns=list(table.columns))
    spread = dask_frame.from_pandas(frame, npartitions=5)
    whole, parts = prepare(table, settings), prepare_batches(spread, settings)
    for name in ("moment", "reference"):
        expected = getattr(whole, name).A
        assert_allclose(
            getattr(parts, name).A, expected, rtol=0, atol=1e-12 * np.abs(expected).max()
        )
    assert parts.row_bound == pytest.approx(whole.row_bound, rel=1e-12)
    assert (parts.columns, parts.bounded_rows) == (whole.columns, whole.bounded_rows)
    fewer = parts.with_n(500, 2).moment.A
    assert_allclose(fewer, whole.with_n(500, 2).moment.A, atol=1e-12)


class Summers:
    """A sum over no rows that records which processes computed it."""

    def __init__(self) -> None:
        self.rows, self.dropped, self.processes = 0, 0, set[int]()

    def add(self, block: np.ndarray, start: int) -> None:
        assert start == self.rows
        self.rows += len(block)
        self.processes.add(os.getpid())

    def merge(self, other: Summers) -> None:
        self.rows += other.rows
        self.processes |= other.processes


@pytest.mark.usefixtures("client")
def test_partitions_are_summed_where_they_lie() -> None:
    frame = pd.DataFrame(np.ones((600, 3)), columns=["a", "b", "c"])
    moments = FrameBatches(dask_frame.from_pandas(frame, npartitions=6)).fold(Summers)
    assert moments.rows == 600
    assert moments.processes
    assert os.getpid() not in moments.processes


def test_a_frame_on_the_threads_of_this_process() -> None:
    import dask

    rows = generator(0, "frame").standard_normal((999, 3))
    rows[[5, 600], [0, 2]] = np.nan
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(word="w")
    with dask.config.set(scheduler="threads"):
        source = FrameBatches(dask_frame.from_pandas(frame, npartitions=4), "people")
        parts = prepare_batches(source, Settings(row_bound="1.5"))
        fewer = parts.with_n(400, 1)
    complete = rows[~np.isnan(rows).any(axis=1)]
    whole = prepare(datasets.Table("people", complete, ("a", "b", "c")), Settings(row_bound="1.5"))
    assert_allclose(parts.moment.A, whole.moment.A, atol=1e-14)
    assert_allclose(fewer.moment.A, whole.with_n(400, 1).moment.A, atol=1e-14)
    assert parts.name == "people"
    assert parts.notes[:2] == (
        "Left out as text or dates: 'word'.",
        "2 rows of 999 without a value were left out.",
    )
    frame.loc[700, "b"] = np.inf
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(InvalidTable, match="column 'b' of partition 3 of frame holds an infinite"),
    ):
        prepare_batches(dask_frame.from_pandas(frame, npartitions=4), Settings())
    with pytest.raises(InvalidTable, match="frame must have at least 2 numeric columns; it has 1"):
        prepare_batches(dask_frame.from_pandas(frame[["a", "word"]], npartitions=1), Settings())


def test_a_sweep_survives_a_killed_worker(cluster: Any, client: Any) -> None:
    over = {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0], "k": [1, 2]}
    alone = sweep("wine", over, SETTINGS)
    victims = [worker.pid for worker in cluster.workers.values()]
    kills: list[int] = []

    def tell(progress: Progress) -> None:
        if progress.done >= 3 and not kills:
            kills.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)

    together = sweep("wine", over, SETTINGS, executor=client.get_executor(), progress=tell)
    assert kills == victims[:1]
    pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)


def fatal(frame: pd.DataFrame, mark: str) -> pd.DataFrame:
    """Return the partition; the first process to see the fourth partition dies."""
    if float(frame["a"].iloc[0]) == 3.0 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.usefixtures("client")
def test_moments_survive_a_worker_that_dies_on_a_partition(tmp_path: Path) -> None:
    rows = generator(0, "lost").standard_normal((600, 3))
    rows[::100, 0] = np.arange(6)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    mark = tmp_path / "died"
    spread = dask_frame.from_pandas(frame, npartitions=6)
    spread = spread.map_partitions(fatal, str(mark), meta=frame.iloc[:0])
    parts = prepare_batches(spread, Settings())
    assert mark.exists()
    whole = prepare(datasets.Table("lost", rows, ("a", "b", "c")), Settings())
    np.testing.assert_allclose(parts.moment.A, whole.moment.A, atol=1e-14)
    assert parts.n == 600
