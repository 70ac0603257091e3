"""Built-in tables: the listing is true, loading is repeatable, generators follow their law."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpviz.core.errors import InvalidTable
from dpviz.core.seeding import generator
from dpviz.datasets import builtin_tables, load, load_builtin
from dpviz.datasets.builtin.generated import (
    SPIKED_EIGENVALUES,
    WAVEFORM_PAIRS,
    spiked_rows,
    waveform_bases,
    waveform_rows,
)
from dpviz.datasets.builtin.school import PUPILS, the_class
from dpviz.datasets.table import ReadOptions
from tools.example import example_csv

KEYS = (
    "digits",
    "breast_cancer",
    "wine",
    "iris",
    "diabetes",
    "spiked",
    "waveform",
    "waveform40",
    "planted",
    "face",
    "school",
)
DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("key", KEYS)
def test_listing_agrees_with_the_table(key: str) -> None:
    entry = builtin_tables()[key]
    table = load_builtin(key)
    assert table.name == key
    assert table.rows.shape == (entry.n, entry.d)
    assert table.rows.dtype == np.float64
    assert np.isfinite(table.rows).all()
    assert len(set(table.columns)) == entry.d
    assert not table.rows.flags.writeable
    assert (table.labels is None) == (entry.labels == "none")
    if table.labels is not None:
        assert table.labels.shape == (entry.n,)
        assert table.label_name
        assert table.label_name in entry.labels
    assert entry.source
    assert entry.licence


@pytest.mark.parametrize("key", KEYS)
def test_loading_twice_gives_the_same_bytes(key: str) -> None:
    first, second = load_builtin(key), load_builtin(key)
    assert first.rows.tobytes() == second.rows.tobytes()
    assert first.columns == second.columns


def test_the_class_of_the_lessons_is_one_of_the_school() -> None:
    table = load_builtin("school")
    names, rows = the_class()
    assert table.columns[: len(names)] == names
    np.testing.assert_array_equal(table.rows[: len(rows), : len(names)], rows)
    assert set(table.labels[: len(rows)]) == {"middle"}
    # Given the known columns, a class follows the law of its age in school, minus the part that
    # these columns explain. Allow five standard errors of a mean of thirty pupils.
    others = table.rows[PUPILS:][table.labels[PUPILS:] == "middle"]
    design = np.column_stack([np.ones(len(others)), others[:, : len(names)]])
    slopes, *_ = np.linalg.lstsq(design, others[:, len(names) :], rcond=None)
    residuals = others[:, len(names) :] - design @ slopes
    mine = np.column_stack([np.ones(len(rows)), rows]) @ slopes
    gap = (table.rows[: len(rows), len(names) :] - mine).mean(axis=0)
    error = residuals.std(axis=0) * np.sqrt(1 / len(rows) + design.shape[1] / len(others))
    assert (np.abs(gap) < 5 * error).all()
    assert not (
        np.abs(table.rows[: len(rows), len(names) :].mean(axis=0) + 1 - mine.mean(axis=0))
        < 5 * error
    ).any()


def test_digits_bounds_are_public_and_hold() -> None:
    table = load_builtin("digits")
    assert table.bounds.shape == (64, 2)
    assert (table.bounds == [0.0, 16.0]).all()
    assert (table.rows >= 0).all()
    assert (table.rows <= 16).all()


def test_diabetes_says_that_it_was_standardised_with_its_own_data() -> None:
    table = load_builtin("diabetes")
    assert table.assumed_public
    assert np.allclose((table.rows**2).sum(axis=0), 1.0)


def test_load_takes_a_key_and_checks_the_label() -> None:
    assert load("wine", ReadOptions(label="cultivar")).label_name == "cultivar"
    wine = load("wine", ReadOptions(label="alcohol"))
    whole = load_builtin("wine")
    assert wine.rows.shape == (178, 12)
    assert "alcohol" not in wine.columns
    assert (wine.labels == whole.rows[:, 0]).all()
    assert load("digits", ReadOptions(label="pixel_0_1")).bounds.shape == (63, 2)
    with pytest.raises(InvalidTable, match=r"^label must be a column of wine.*got 'price'\.$"):
        load("wine", ReadOptions(label="price"))


def _largest_z(rows: NDArray[np.float64], eigenvalues: NDArray[np.float64]) -> float:
    """Return the largest z-score among the entries of the whitened second moment.

    For z standard normal, mean(z_i z_j) over n rows has mean 1(i = j) and
    variance (1 + 1(i = j)) / n.
    """
    z = rows / np.sqrt(eigenvalues)
    d = rows.shape[1]
    gap = z.T @ z / len(z) - np.eye(d)
    return float(np.abs(gap / np.sqrt((1 + np.eye(d)) / len(z))).max())


def test_spiked_has_the_published_spectrum() -> None:
    # There are 55 scores. In the normal limit each exceeds 7.5 with probability 6.4e-14. At n =
    # 200,000 the chi-squared diagonal raises this only a few times, so a false alarm is below 1e-9.
    values = np.array(SPIKED_EIGENVALUES)
    assert values.sum() == pytest.approx(0.909)
    rows = spiked_rows(200_000, generator(1, "test", "spiked"))
    assert _largest_z(rows, values) < 7.5
    # Controls: the test detects one eigenvalue that is 3 % off, and two axes turned by 0.5 degrees.
    wrong = values.copy()
    wrong[4] *= 1.03
    assert _largest_z(rows, wrong) > 7.5
    rotation = rows.copy()
    rotation[:, 0] += np.deg2rad(0.5) * rows[:, 1] * 5
    assert _largest_z(rotation, values) > 7.5


def _waveform_z(rows: NDArray[np.float64], classes: NDArray[np.int64]) -> float:
    """Return the largest z-score of class means against the exact means.

    Given the class, the mean is (a + b) / 2 and the variance of feature j is
    (a_j - b_j)^2 / 12 + 1.
    """
    bases = waveform_bases()
    worst = 0.0
    for c, (a, b) in enumerate(WAVEFORM_PAIRS):
        mine = rows[classes == c]
        mean = (bases[a] + bases[b]) / 2
        variance = (bases[a] - bases[b]) ** 2 / 12 + 1
        z = (mine.mean(axis=0) - mean) / np.sqrt(variance / len(mine))
        second = ((mine - mean) ** 2).mean(axis=0) - variance
        # The variance of (x - mean)^2 is mu4 - variance^2; x is a uniform plus a normal variable.
        w = (bases[a] - bases[b]) ** 2
        mu4 = w**2 / 80 + 6 * w / 12 + 3
        z2 = second / np.sqrt((mu4 - variance**2) / len(mine))
        worst = max(worst, float(np.abs(z).max()), float(np.abs(z2).max()))
    return worst


def test_waveform_follows_breimans_law() -> None:
    # In the limit of large n, one of 126 scores exceeds 7.5 with probability 126 x 6.4e-14 < 1e-9.
    bases = waveform_bases()
    assert bases.shape == (3, 21)
    assert (bases.max(axis=1) == 6).all()
    assert (bases.argmax(axis=1) + 1).tolist() == [11, 15, 7]
    rows, classes = waveform_rows(100_000, generator(1, "test", "waveform"))
    assert _waveform_z(rows, classes) < 7.5
    # Controls: the test detects two swapped classes, and noise that is 5 % too large.
    assert _waveform_z(rows, np.array([1, 0, 2])[classes]) > 7.5
    extra = generator(2, "test", "waveform").standard_normal(rows.shape)
    assert _waveform_z(rows + np.sqrt(1.05**2 - 1) * extra, classes) > 7.5


def test_waveform40_is_waveform_with_noise_beside_it() -> None:
    plain, noisy = load_builtin("waveform"), load_builtin("waveform40")
    assert (noisy.rows[:, :21] == plain.rows).all()
    assert noisy.columns[21:] == tuple(f"noise {j}" for j in range(1, 20))
    assert (noisy.labels == plain.labels).all()
    # In the normal limit, each of 190 scores exceeds 8 with chance 1.2e-15. At n = 5,000, the
    # diagonal's skewness 2.8 / sqrt(n) raises this about exp(0.04 * 8^3 / 6) = 30 times.
    assert _largest_z(noisy.rows[:, 21:], np.ones(19)) < 8


@pytest.mark.skipif("DPVIZ_DATA" not in os.environ, reason="DPVIZ_DATA names no folder")
def test_waveform_agrees_with_the_published_sample() -> None:
    """The published file's class means equal the generator's, up to the order of classes."""
    path = Path(os.environ["DPVIZ_DATA"]) / "waveform" / "waveform.data"
    rows = np.genfromtxt(path, delimiter=",", invalid_raise=True)
    classes = rows[:, -1].astype(int)
    bases = waveform_bases()
    exact = np.array([(bases[a] + bases[b]) / 2 for a, b in WAVEFORM_PAIRS])
    matches = set()
    for c in range(3):
        mean = np.nanmean(rows[classes == c, :-1], axis=0)
        # A feature's std is at most sqrt(36 / 12 + 1) = 2. Allow 7 standard errors of its mean.
        near = np.abs(exact - mean).max(axis=1) < 7 * 2 / np.sqrt(np.sum(classes == c))
        assert near.sum() == 1
        matches.add(int(near.argmax()))
    assert matches == {0, 1, 2}


def test_example_file_is_what_the_generator_writes() -> None:
    content = (DATA / "example.csv").read_bytes()
    assert content == example_csv().encode()
    readme = (DATA / "README.md").read_text()
    match = re.search(r"`example.csv`: `([0-9a-f]{64})`", readme)
    assert match is not None
    assert match.group(1) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("found", [True, False], ids=["its file", "its function"])
@pytest.mark.parametrize("name", ["digits", "iris", "wine", "breast_cancer"])
def test_what_is_read_without_scikit_learn_is_what_it_loads(
    name: str, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn import datasets

    if not found:
        monkeypatch.setattr("dpviz.datasets.builtin.shipped.find_spec", lambda name: None)
    bunch, table = getattr(datasets, f"load_{name}")(), load_builtin(name)
    assert table.rows.tobytes() == np.ascontiguousarray(bunch.data, dtype=np.float64).tobytes()
    assert table.labels is not None
    classes = bunch.target if name == "digits" else bunch.target_names[bunch.target]
    assert np.array_equal(table.labels, classes)
    assert table.columns == tuple(bunch.feature_names)
