"""What a browser cannot do is said in one sentence, and what it can do otherwise is done."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from joblib import parallel

from dpviz.core.errors import DpvizError
from dpviz.core.platform import NO_DOWNLOADS, in_browser
from dpviz.datasets import remote
from dpviz.simulation.jobs import Arrays, Pool, work
from tests.workers import every_job


@dataclass(frozen=True)
class _Where:
    """A job that notes the process it ran in."""

    key: str = "where"
    size: int = 1

    def run(self) -> Arrays:
        return {"process": np.array([float(os.getpid())])}


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")


@pytest.mark.usefixtures("browser")
def test_work_for_processes_stays_in_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    every_job(monkeypatch)
    assert in_browser()
    *_, last = work([_Where(), _Where("again")], pool=Pool(2))
    assert {float(arrays["process"][0]) for arrays in last.done.values()} == {float(os.getpid())}


@pytest.mark.usefixtures("browser")
def test_the_default_backend_is_legal_where_joblib_has_no_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel, "BACKENDS", {"threading": None, "sequential": None})
    assert Pool().backend == "loky"


@pytest.mark.usefixtures("browser")
def test_no_data_set_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.delenv("DPVIZ_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DpvizError) as refused:
        remote.fetch(next(iter(remote.sets())))
    assert str(refused.value) == NO_DOWNLOADS
