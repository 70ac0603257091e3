"""The mechanism passed in is what runs: a custom mechanism, at every entry point and process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Problem
from dpviz.core.seeding import Draws
from dpviz.mechanisms.gaussian import Gaussian
from dpviz.releasing.private_pca import PrivacyWarning

COPY = Path(sys.modules[Gaussian.__module__].__file__ or "")


@dataclass(frozen=True)
class Quiet(Gaussian):
    """The exact Gaussian with a billionth of its noise but the same claim."""

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        return 1e-9 * super().standard_noise(problem, draws)


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[ModuleType]:
    """A copy of gaussian.py at a path that no process can import from, with hardly any noise."""
    source = COPY.read_text(encoding="utf-8")
    assert source.count("return goe(draws, problem.d)") == 1
    path = tmp_path / "gaussian.py"
    path.write_text(
        source.replace("return goe(draws, problem.d)", "return 1e-9 * goe(draws, problem.d)"),
        encoding="utf-8",
    )
    spec = importlib.util.spec_from_file_location("gaussian", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gaussian"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gaussian"]


def table() -> pd.DataFrame:
    rows = np.random.default_rng(1).standard_normal((60, 4)) * [3, 2, 1, 1]
    return pd.DataFrame(rows, columns=list("abcd"))


def test_a_copy_with_wrong_noise_runs_as_handed_in_and_is_refuted(copied: ModuleType) -> None:
    mine = copied.Gaussian()
    assert mine.text == Gaussian().text
    comparison = dpviz.compare(table(), mechanisms=[mine], trials=10)
    (result,) = comparison.comparison.results
    assert result.mechanism is mine
    assert comparison.table()["recovery"].item() > 0.999
    assert (
        dpviz.compare(table(), mechanisms=["gaussian"], trials=10).table()["recovery"].item() < 0.9
    )
    assert "According to its author" in result.status.evidence
    verdict = dpviz.audit(mine, epsilon=1.0, trials=2_000)
    assert verdict.audit.mechanism is mine
    assert str(verdict.verdict) == "refuted"
    assert str(dpviz.audit("gaussian", epsilon=1.0, trials=2_000).verdict) != "refuted"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sweep_runs_it_in_every_process(copied: ModuleType, workers: int, tmp_path: Path) -> None:
    mine = copied.Gaussian()
    options = {"over": "epsilon", "values": [0.1, 1.0], "trials": 3, "cache": tmp_path / "cells"}
    sweep_table = dpviz.sweep(table(), mechanisms=[mine], workers=workers, **options).table()
    recovery = sweep_table[sweep_table["metric"] == "recovery"]["value"]
    assert len(recovery) == 6
    assert recovery.min() > 0.999
    # Our mechanism and the built-in one of the same name never use each other's stored results.
    ours = dpviz.sweep(table(), mechanisms=["gaussian"], **options).table()
    assert ours[ours["metric"] == "recovery"]["value"].min() < 0.9
    again = dpviz.sweep(table(), mechanisms=[mine], **options)
    assert again.table().equals(sweep_table)
    assert again.figure("recovery") is not None


def test_least_and_predict_take_it() -> None:
    least_table = dpviz.least(table(), recovery=0.5, mechanisms=[Quiet()]).table()
    assert least_table["mechanism"].tolist() == ["quiet"]
    assert least_table["least"].item() < 1e-3
    assert dpviz.predict(table(), mechanisms=[Quiet()]).table()["mechanism"].tolist() == ["quiet"]


def test_the_estimator_takes_an_object() -> None:
    rows = table().to_numpy()
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "row_bound": 12.0,
        "center": "none",
    }
    with pytest.warns(PrivacyWarning):
        by_name = dpviz.PrivatePCA(2, mechanism="gaussian", random_state=1, **options).fit(rows)
    with pytest.warns(PrivacyWarning):
        by_object = dpviz.PrivatePCA(2, mechanism=Gaussian(), random_state=1, **options).fit(rows)
    with pytest.warns(PrivacyWarning):
        quiet = dpviz.PrivatePCA(2, mechanism=Quiet(), random_state=1, **options).fit(rows)
    np.testing.assert_array_equal(by_name.components_, by_object.components_)
    exact = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :2]
    assert np.linalg.norm(exact.T @ quiet.components_.T) == pytest.approx(np.sqrt(2), abs=1e-6)
    assert quiet.mechanism_ == "quiet"


def test_two_of_one_name_and_what_is_no_mechanism_are_refused(copied: ModuleType) -> None:
    with pytest.raises(InvalidSetting, match="labelled by name; got 'gaussian twice'"):
        dpviz.compare(table(), mechanisms=[copied.Gaussian(), "gaussian"], trials=2)
    with pytest.raises(InvalidSetting, match="mechanism must be"):
        dpviz.compare(table(), mechanisms=[object()], trials=2)
