"""A failing custom mechanism gives a row or a sentence and never stops other mechanisms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS
from dpviz.core.release import Calibration, Release
from dpviz.mechanisms.gaussian import Gaussian


class Raises(Gaussian):
    """A mechanism that fails at a chosen step."""

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        raise ValueError("a cell: 4711")


class Changes(Gaussian):
    """A mechanism whose components are changed."""

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        release = super().of_matrices(matrices, calibration)
        return replace(release, components=self.changed(release.components))

    def changed(self, frames: Any) -> Any:
        return frames


class Nonsense(Changes):
    def changed(self, frames: Any) -> Any:
        return frames * np.nan


class Short(Changes):
    def changed(self, frames: Any) -> Any:
        return frames[:, :, :1]


class Skewed(Changes):
    def changed(self, frames: Any) -> Any:
        return 2 * frames


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(
    ("fault", "why"),
    [(Raises, "ValueError in line"), (Nonsense, "finite"), (Short, "(4, 2)"),
     (Skewed, "orthonormal")],
)  # fmt: skip
def test_an_own_mechanism_that_fails_is_a_row_with_its_reason(
    fault: type[Gaussian], why: str, timed: bool
) -> None:
    options: Any = {"on_estimate": lambda seconds: None} if timed else {}
    comparison = dpviz.compare("iris", mechanisms=[fault, "gaussian"], trials=3, **options)
    assert [result.mechanism.text for result in comparison.comparison.results] == ["gaussian"]
    ((name, reason),) = [(item.mechanism, item.reason) for item in comparison.comparison.skipped]
    assert why in reason
    assert "4711" not in reason
    assert name in comparison.summary()
    assert name in comparison.printed()
    assert len(comparison.data()["results"]) == 1


@pytest.mark.parametrize("wrong", ["raises", "short", "nan"])
def test_a_metric_that_fails_is_a_sentence(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @dpviz.metric("wrong", better="lower")
    def faulty(outcome: Any) -> Any:
        if wrong == "raises":
            raise ValueError("a cell: 4711")
        return np.full(1 if wrong == "short" else len(outcome.release.components), np.nan)

    monkeypatch.setitem(METRICS, "recovery", faulty)
    along: Any = {"mechanisms": "gaussian", "trials": 3}
    for ask, more in ((dpviz.compare, {}), (dpviz.sweep, {"over": "epsilon", "values": [1]})):
        with pytest.raises(InvalidSetting, match="metric faulty must be one that") as caught:
            ask("iris", **along, **more)
        assert "4711" not in str(caught.value)


@dpviz.metric("first angle", better="lower", unit="radians")
def first_angle(outcome: Any) -> Any:
    "Smallest principal angle to the true components."
    return _first(outcome.angles)


def _first(angles: FloatArray) -> FloatArray:
    return angles[:, 0]


def test_an_own_metric_is_measured_by_compare_and_known_to_no_other_call() -> None:
    words: dict[str, Any] = {"mechanisms": "gaussian", "trials": 4, "k": 2}
    plain, custom = (dpviz.compare("iris", metrics=given, **words) for given in (None, first_angle))
    (result,) = custom.comparison.results
    np.testing.assert_array_equal(result.metrics["first_angle"], result.angles[:, 0])
    mean = float(result.angles[:, 0].mean())
    assert custom.table()["first_angle"].item() == mean
    assert custom.data()["results"][0]["metrics"]["first_angle"]["mean"] == mean
    assert set(custom.draws()["metric"]) == {
        "recovery", "captured_share", "projection_distance", "first_angle",
    }  # fmt: skip
    assert "first_angle" in custom.printed()
    assert "first angle, radians" in str(custom.figure("first_angle").to_json())
    assert custom.summary() == plain.summary()
    assert "first_angle" in custom._repr_html_()
    assert custom.made.options["metrics"] == "first_angle"
    assert "--metric first_angle" in custom.made.command
    assert "first_angle" not in {*METRICS, *plain.figures, *plain.table().columns}
    for key in ("recovery", "captured_share"):
        assert custom.table()[key].item() == plain.table()[key].item()


@pytest.mark.parametrize("ask", ["sweep", "board"])
def test_what_fails_in_a_sweep_or_on_a_board_is_skipped_with_its_reason(ask: str) -> None:
    along: Any = {"over": "epsilon", "values": [1, 2], "k": 2} if ask == "sweep" else {}
    options: Any = {"mechanisms": [Raises, "gaussian"], "trials": 3, **along}
    answer = getattr(dpviz, ask)("iris", **options)
    assert set(answer.table()["mechanism"]) == {"gaussian"}
    text = answer.to_json()
    assert "ValueError in line" in text
    assert "4711" not in text
