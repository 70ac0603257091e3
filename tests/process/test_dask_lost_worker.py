"""A Dask cluster that loses a worker midway finishes, with the same numbers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.preparation.bounding import prepare, prepare_batches
from dpviz.simulation.jobs import Progress
from dpviz.simulation.sweep import sweep

distributed = pytest.importorskip("distributed", reason="the extra dpviz[dask] is not installed")
dask_frame = pytest.importorskip("dask.dataframe", reason="the extra dpviz[dask] is not installed")

# The cluster's own threads and sockets outlive it by a moment; our code is not theirs.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

SETTINGS = Settings(table="wine", delta=1e-3, trials=3, mechanisms=("gaussian", "ppca"))
OVER = {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0], "k": [1, 2]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster that puts another worker in the place of one that dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
    ) as found:
        yield found


def test_a_sweep_survives_a_killed_worker(cluster: Any) -> None:
    alone = sweep("wine", OVER, SETTINGS)
    victims = [worker.pid for worker in cluster.workers.values()]
    killed: list[int] = []

    def tell(progress: Progress) -> None:
        if progress.done >= 3 and not killed:
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)

    with distributed.Client(cluster.scheduler_address) as client:
        together = sweep("wine", OVER, SETTINGS, executor=client.get_executor(), progress=tell)
    assert killed == victims[:1]
    pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)


def fatal(frame: pd.DataFrame, mark: str) -> pd.DataFrame:
    """Return the partition; whoever is first to see the fourth one dies."""
    if float(frame["a"].iloc[0]) == 3.0 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def test_moments_survive_a_worker_that_dies_on_a_partition(cluster: Any, tmp_path: Path) -> None:
    rows = generator(0, "lost").standard_normal((600, 3))
    rows[::100, 0] = np.arange(6)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    mark = tmp_path / "died"
    with distributed.Client(cluster.scheduler_address):
        spread = dask_frame.from_pandas(frame, npartitions=6)
        spread = spread.map_partitions(fatal, str(mark), meta=frame.iloc[:0])
        parts = prepare_batches(spread, Settings())
    assert mark.exists()
    whole = prepare(Table("lost", rows, ("a", "b", "c")), Settings())
    np.testing.assert_allclose(parts.moment.A, whole.moment.A, atol=1e-14)
    assert parts.n == 600
