"""Spellings of a preparation: each means the same at every entry point."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz import PrivacyWarning, PrivatePCA
from dpviz.core.entries import FROM_DATA, FeatureBounds
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings

NAMES = ("height", "weight", "age")
FRAME = pd.DataFrame(generator(0, "entries").uniform(1, 9, (60, 3)), columns=list(NAMES))
ROWS = FRAME.to_numpy()


def file_of(folder: Path) -> Path:
    path = folder / "bounds.csv"
    pd.DataFrame({"feature": NAMES, "low": 0, "high": 10}).to_csv(path, index=False)
    return path


def ways(folder: Path) -> list[Any]:
    """Return every way to state that each feature lies between 0 and 10."""
    return [
        (0, 10),
        [0.0, 10.0],
        np.array([0, 10]),
        "0:10",
        "0.0:10.0",
        dict.fromkeys(NAMES, (0, 10)),
        (np.zeros(3), np.full(3, 10.0)),
        (0, np.full(3, 10.0)),
        FeatureBounds.named(dict.fromkeys(NAMES, (0.0, 10.0))),
        file_of(folder),
        str(file_of(folder)),
    ]


def compared(bounds: Any, table: Any = FRAME, **options: Any) -> Any:
    """Return a comparison's results without the name of the bounds."""
    options = {"domain": "box", "trials": 2, "mechanisms": "gaussian", **options}
    answer = json.loads(dpviz.compare(table, bounds=bounds, **options).to_json())
    answer.pop("made", None)
    answer["settings"].pop("bounds", None)
    return answer


def fitted(rows: Any = FRAME, **options: Any) -> list[Any]:
    """Return the release with one seed."""
    options = {"delta": 1e-6, "random_state": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model = PrivatePCA(2, **options).fit(rows)
    return [model.components_.tolist(), model.row_bound_, model.mean_.tolist(), model.spent_]


def test_bounds_mean_the_same_in_every_way(tmp_path: Path) -> None:
    (first, *others) = ways(tmp_path)
    comparison = compared(first)
    # With a private mean, the bounds of the columns decide how much noise the mean gets.
    private = compared(first, domain="ball", center="private")
    release = fitted(bounds=first, row_bound=20)
    for other in others:
        assert compared(other) == comparison
        assert compared(other, domain="ball", center="private") == private
        assert fitted(bounds=other, row_bound=20) == release
    # Control: other column bounds must give a different result.
    assert compared((0, 11)) != comparison
    assert fitted(bounds=(0, 11), row_bound=20) != release


def test_bounds_on_the_command_line_and_in_links(tmp_path: Path) -> None:
    assert Settings(bounds=(0, 10)) == Settings(bounds="0:10")
    query = Settings(bounds=(0, 10)).to_query(Settings())
    assert query == {"bounds": "0:10"}
    assert Settings.from_query(query, Settings())[0].bounds == "0:10"
    settings = Settings(bounds=dict.fromkeys(NAMES, (0, 10)))
    assert "bounds" not in settings.to_query(Settings())  # Links contain no column names.
    assert settings.to_json()["bounds"] == "given"
    comparison = dpviz.compare(FRAME, bounds=(0, 10), domain="box", trials=1, mechanisms="laplace")
    assert "--bounds 0:10" in comparison.made.command
    assert dpviz.schema("iris", bounds=(0, 10)).data() == dpviz.schema("iris", bounds="0:10").data()
    columns = [column["name"] for column in dpviz.schema("iris").data()["columns"]]
    each = dpviz.schema("iris", bounds=dict.fromkeys(columns, (0, 10)))
    assert each.data() == dpviz.schema("iris", bounds="0:10").data()


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("row_bound", (7, 7.0, "7", "7.0", np.float64(7))),
        ("row_bound", ("private", "private:0.9", "private:.90")),
        ("row_bound", ("adaptive", "private:adaptive")),
    ],
)
def test_words_mean_the_same_everywhere(name: str, ways: tuple[Any, ...]) -> None:
    assert len({getattr(Settings(**{name: way}), name) for way in ways}) == 1
    others: dict[str, Any] = {"row_bound": 9.0, "bounds": (0, 10)}
    releases = [fitted(**{**others, name: way}) for way in ways]
    assert all(one == releases[0] for one in releases)
    assert releases[0] != fitted(**{**others, "row_bound": 8.0, "center": "private"})


@pytest.mark.parametrize(
    ("name", "word"),
    [("center", "mean"), ("scale", "standardize"), ("row_bound", "max"), ("bounds", "max")],
)
def test_from_the_data_is_one_word_at_every_door(name: str, word: str) -> None:
    assert Settings(**{name: FROM_DATA}) == Settings(**{name: word})
    with pytest.warns(PrivacyWarning) as warns:
        model = PrivatePCA(2, **{"row_bound": 9.0, "center": "none", name: FROM_DATA}).fit(ROWS)
    assert any(f"{name} is taken from the data" in str(one.message) for one in warns)
    assert len(model.assumed_public_) >= 2
    with pytest.raises(InvalidSetting, match=f"{name} must be stated before the fit"):
        PrivatePCA(2, **{"center": "none", name: FROM_DATA}).partial_fit(ROWS)
    # If a privacy budget applies, a misspelt option must not let the fit take values from the data.
    with pytest.raises(InvalidSetting, match=f"{name} must be"):
        PrivatePCA(2, **{"center": "none", name: word}).fit(ROWS)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((10, 0), "low below high"),
        ((0, np.inf), "low below high"),
        (3, "a pair of numbers"),
        ((1, 2, 3), "a pair of numbers"),
        ((np.zeros(2), np.zeros(3)), "a pair of numbers"),
        ({"height": 3}, "a pair of numbers"),
        ({"height": (0, 10)}, "'weight' has no bounds; got '1 of them'"),
        ((np.zeros(2), np.ones(2)), "arrays of 3 numbers"),
        ("nowhere.csv", "pair of numbers|a CSV or Parquet file"),
    ],
)
def test_bounds_that_are_none_are_one_sentence_at_every_door(bounds: Any, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        compared(bounds)
    with pytest.raises(InvalidSetting, match=words):
        fitted(bounds=bounds, row_bound=20)
