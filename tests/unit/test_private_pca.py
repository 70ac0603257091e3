"""`PrivatePCA`: scikit-learn's own checks, the ledger under clone, and one sentence per error."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpviz
from dpviz import PrivatePCA
from dpviz.core.entries import FROM_DATA
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable
from dpviz.core.problem import Budget, Relation
from dpviz.core.settings import Settings
from dpviz.datasets import Table, load
from dpviz.preparation.bounding import prepare
from dpviz.releasing.declared import PrivacyWarning
from dpviz.releasing.ledger import Ledger, LedgerError
from dpviz.simulation.compare import compare

quiet = pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.clip(rng.standard_normal((300, 5)) * [2, 1, 0.5, 0.5, 0.2], -4, 4)


def centred(stated: dict[str, Any]) -> dict[str, Any]:
    """Return parameters that state the centre if no bounds make the mean private."""
    return stated if {"bounds", "center"} & set(stated) else {"center": "none", **stated}


def _pca(**changed: Any) -> PrivatePCA:
    return PrivatePCA(**{"epsilon": 1.0, "delta": 1e-6, "row_bound": 5.0, **centred(changed)})


def _ledger(path: Path, epsilon: float = 100.0, **more: Any) -> Ledger:
    ledger = Ledger(path)
    ledger.create(Budget(epsilon, 1e-4), more.pop("relation", Relation.REPLACE), **more)
    return ledger


# The only check that scikit-learn may skip is its check for other array libraries: it needs
# SCIPY_ARRAY_API, and this estimator takes NumPy arrays.
@pytest.mark.slow
@quiet
@parametrize_with_checks(
    [
        PrivatePCA(1, center="none"),
        PrivatePCA(1, delta=0.0, center="none"),
        PrivatePCA(1, mechanism="gaussian", delta=1e-6, row_bound=10.0, center="none"),
        PrivatePCA(1, delta=0.0, mechanism="wishart_difference", row_bound=10.0, center="none"),
        PrivatePCA(
            1, mechanism="gaussian", delta=1e-6, row_bound="private", center="private",
            bounds=(-100.0, 100.0),
        ),
    ],
    expected_failed_checks=lambda estimator: estimator.expected_failed_checks,
)  # fmt: skip
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@quiet
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "wishart_difference"])
def test_sparse_rows_give_what_dense_ones_do(mechanism: str) -> None:
    """Sparse rows give dense results, also bounded, centred and scaled, or read in blocks."""
    matrix = sparse.random_array(
        (900, 5), density=0.3, random_state=np.random.default_rng(6), format="csr"
    )
    words: dict[str, Any] = {"mechanism": mechanism, "random_state": 0, "bounds": (-1.0, 0.8)}
    words |= {} if mechanism == "auto" else {"row_bound": 1.5}
    dense = PrivatePCA(2, delta=1e-6, **centred(words)).fit(matrix.toarray())
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        model = PrivatePCA(2, delta=1e-6, **centred(words)).fit(kind(matrix))
        np.testing.assert_allclose(model.components_, dense.components_, rtol=1e-8, atol=1e-10)
        along = model.transform(kind(matrix))
        np.testing.assert_allclose(along, dense.transform(matrix.toarray()), rtol=1e-8, atol=1e-8)
        assert not hasattr(model, "feature_names_in_")
    other = PrivatePCA(2, delta=1e-6, **centred(words)).fit(matrix.toarray()[::-1] ** 2)
    assert not np.allclose(other.components_, dense.components_, atol=1e-3)
    reads = PrivatePCA(2, **centred(words | {"mechanism": "data_laplace", "row_bound": 1.5}))
    both = [clone(reads).fit(rows).components_ for rows in (matrix, matrix.toarray())]
    np.testing.assert_allclose(*both, rtol=1e-8, atol=1e-10)
    with pytest.raises(InvalidTable, match="X has rows with missing values: nothing was spent"):
        PrivatePCA(2, delta=1e-6, **centred(words)).fit(
            sparse.csr_array([[np.nan, 1.0], [0.0, 1.0]] * 9)
        )


@quiet
def test_over_the_limit_nothing_is_looked_at(tmp_path: Path, rows: np.ndarray) -> None:
    path = tmp_path / "ledger"
    _ledger(path, 2.5)
    estimator = _pca(ledger=path)
    for _ in range(2):
        clone(estimator).fit(rows)

    class Untouched:
        """Data that reports any access."""

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the data was asked for {name}")

    with pytest.raises(LedgerError, match="refuses"):
        clone(estimator).fit(Untouched())
    assert len(Ledger(path).read().spends) == 2


@quiet
@pytest.mark.parametrize("key", ["gaussian", "wishart_difference", "ppca", "data_laplace"])
def test_a_fit_equals_compare_for_the_same_stream(key: str, rows: np.ndarray) -> None:
    settings = Settings(
        delta=1e-6, k=2, center="none", row_bound="3", mechanisms=(key,), trials=1, seed=7
    )
    table = Table("made", rows, tuple("abcde"))
    (result,) = compare(prepare(table, settings), settings).results
    model = _pca(row_bound=3.0, mechanism=key, random_state=7, variance_share=0).fit(rows)
    assert np.allclose(model.components_, result.components[0].T, atol=1e-9)
    assert model.spent_ == result.spent
    assert model.status_ == result.status
    if result.eigenvalues is not None:
        assert np.allclose(model.explained_variance_, 9 * result.eigenvalues[0, :2].clip(min=0))


@quiet
def test_entropy_comes_from_the_system(rows: np.ndarray) -> None:
    first, second = _pca().fit(rows), _pca().fit(rows)
    assert not np.allclose(first.components_, second.components_)


# --- variances ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"row_bound": None, "mechanism": "gaussian"},
            "gaussian cannot run: it needs a row-norm bound, and none is declared",
        ),
        ({"row_bound": None, "spectrum": "power:d=5,exponent=1,total=1"}, "auto cannot run: "),
        ({"row_bound": -1.0}, "row_bound must be a number from 1e-100"),
        ({"row_bound": "max"}, "row_bound must be a number from 1e-100"),
        ({"row_bound": "private"}, "bounds must be given if row_bound is 'private'"),
        ({"center": "private"}, "bounds must be given if center"),
        ({"center": "mean"}, "center must be one of"),
        ({"bounds": (4.0, -4.0)}, "bounds must be numbers of at most 1e100"),
        ({"bounds": 3}, "bounds must be a pair of .* or LOW:HIGH, the path of .* 'from data"),
        ({"bounds": "wide"}, "bounds must be LOW:HIGH, the path of .* 'private' or 'from data"),
        ({"shares": {"men": 0.1}}, "shares must be of count, range, mean, scale, bound; got 'men'"),
        ({"shares": {"mean": "0.1"}}, "budget share for the mean must be between 0 and 1"),
        ({"epsilon": 0.0}, "epsilon must be a number from"),
        ({"delta": "1e-6"}, "delta must be a number"),
        ({"delta": None}, "delta must be stated: .* if a ledger is given"),
        ({"n_components": 9}, "n_components must be a whole number from 1 to 5"),
        ({"n_components": 1.5}, "n_components must be a whole number"),
        ({"n_components": "mle"}, "n_components must be a whole number"),
        ({"variance_share": 1.0}, "variance_share must be from 0 to below 1"),
        (
            {"variance_share": 0.995, "mechanism": "spherical"},
            "budget shares for the preparation must be at most",
        ),
        ({"variance_share": 0, "n_components": 0.9}, "variance_share must be above 0"),
        (
            {"variance_share": 0, "whiten": True, "mechanism": "spherical"},
            "variance_share must be above 0, because whiten needs variances",
        ),
        ({"whiten": "yes"}, "whiten must be True or False"),
        ({"count": "noisy"}, "count must be one of public"),
        ({"relation": "swap"}, "relation must be one of"),
        ({"mechanism": "nothing"}, "mechanism must be one of"),
        ({"mechanism": "wishart"}, "allow_refuted=True allows the fit"),
        ({"mechanism": "non_private"}, "allow_refuted=True allows the fit"),
        ({"spectrum": [1.0, 2.0]}, "spectrum must be 5 finite numbers"),
    ],
)
def test_errors_are_one_sentence_and_nothing_is_spent(
    tmp_path: Path, rows: np.ndarray, changed: dict[str, Any], message: str
) -> None:
    path = tmp_path / "ledger"
    ledger = _ledger(path)
    with pytest.raises(DpvizError, match=message):
        _pca(ledger=path, **changed).fit(rows)
    assert ledger.read().spends == ()


def test_gaps_and_a_damaged_ledger_spend_nothing(tmp_path: Path, rows: np.ndarray) -> None:
    path = tmp_path / "ledger"
    ledger = _ledger(path)
    rows[0, 0] = np.nan
    with pytest.raises(DpvizError, match="NaN or infinity"):
        _pca(ledger=path).fit(rows)
    assert ledger.read().spends == ()
    path.write_text("?\n")
    with pytest.raises(LedgerError, match="damaged"):
        _pca(ledger=path).fit(np.nan_to_num(rows))


# --- what a ledger asks of an estimator --------------------------------------------------------


@quiet
def test_a_copy_unpickled_in_another_folder_spends_from_the_same_ledger(
    tmp_path: Path, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        _ledger(tmp_path / name / "ledger")
    monkeypatch.chdir(tmp_path / "here")
    estimator = _pca(ledger="ledger", mechanism="gaussian")
    assert estimator.ledger == str(tmp_path / "here" / "ledger")
    copy = pickle.dumps(clone(estimator))
    monkeypatch.chdir(tmp_path / "there")
    pickle.loads(copy).fit(rows)
    assert len(Ledger(tmp_path / "here" / "ledger").read().spends) == 1
    assert len(Ledger(tmp_path / "there" / "ledger").read().spends) == 0
    estimator.set_params(ledger=Path("ledger"))
    assert estimator.ledger == tmp_path / "there" / "ledger"
    assert clone(estimator).ledger == estimator.ledger


# --- rows that are read in blocks ----------------------------------------------------------------


@pytest.fixture
def many() -> np.ndarray:
    rng = np.random.default_rng(21)
    return (rng.standard_normal((20_000, 4)) * [9, 6, 1, 0.5] + [2, 0, 0, 0]).astype(np.float32)


# Settings: automatic with and without a delta, spherical, and a mechanism that needs only A.
_STREAMED: list[dict[str, Any]] = [
    {},
    {"delta": 0.0},
    {"mechanism": "spherical"},
    {"mechanism": "ppca[rows=unit]", "delta": 0.0},
    {"mechanism": "gaussian", "row_bound": 60.0, "bounds": (-50.0, 50.0), "center": "midpoint"},
]


def _same(first: PrivatePCA, second: PrivatePCA) -> None:
    assert first.mechanism_ == second.mechanism_
    assert first.spent_ == second.spent_
    assert np.allclose(first.components_, second.components_, atol=1e-6)
    assert np.allclose(first.explained_variance_, second.explained_variance_, rtol=1e-6)
    for name in ("clipping_radius_", "variance_radius_"):
        # In single precision, sums over blocks of another size round differently.
        assert getattr(first, name, None) == pytest.approx(getattr(second, name, None))


@quiet
@pytest.mark.parametrize("changed", _STREAMED)
def test_rows_given_a_part_at_a_time_are_one_release(
    changed: dict[str, Any], many: np.ndarray, tmp_path: Path
) -> None:
    whole = PrivatePCA(2, random_state=3, **centred(changed)).fit(many)
    parts = PrivatePCA(2, random_state=3, **centred(changed))
    for part in np.array_split(many, 7):
        assert parts.partial_fit(part) is parts
        assert not hasattr(parts, "components_")
        with pytest.raises(NotFittedError):
            parts.transform(many)
    copy = pickle.loads(pickle.dumps(parts))
    _same(whole, parts.finalize())
    _same(whole, copy.finalize())
    assert parts.n_samples_ == 20_000
    assert parts.fits_ == 1
    # After the fit, the exact sums of the data are deleted.
    assert not any("summed" in name for name in vars(parts))
    with pytest.raises(InvalidTable, match="at least 2 rows"):
        parts.finalize()
    path = tmp_path / "big.parquet"
    table = pa.table({name: many[:, j] for j, name in enumerate("abcd")})
    table = table.append_column("word", pa.array(["x"] * 20_000))
    pq.write_table(table, path, row_group_size=3_000)
    model = PrivatePCA(2, random_state=3, **centred(changed)).fit_path(path)
    _same(whole, model)
    assert list(model.feature_names_in_) == list("abcd")
    few = PrivatePCA(1, random_state=3, **centred(changed)).fit_path(path, columns=["a", "c"])
    assert list(few.feature_names_in_) == ["a", "c"]


def test_another_relation_is_refused_before_the_data_is_touched(
    tmp_path: Path, rows: np.ndarray
) -> None:
    ledger = _ledger(tmp_path / "ledger", relation=Relation.ZERO_OUT)
    with pytest.raises(LedgerError, match="under zero-out neighbours"):
        _pca(ledger=ledger.path).fit(object())
    assert ledger.read().spends == ()
    _pca(ledger=ledger.path, relation="zero-out", mechanism="gaussian").fit(rows)
    assert [spend.purpose for spend in ledger.read().spends] == ["fit"]


@quiet
def test_a_zcdp_ledger_takes_fits_by_their_rho(tmp_path: Path, rows: np.ndarray) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(2.0, 1e-6), Relation.REPLACE, "zcdp")
    for _ in range(3):  # Three fits compose to less than 2; adding their epsilons gives 3.
        _pca(ledger=ledger.path, mechanism="gaussian").fit(rows)
    with pytest.raises(LedgerError, match="would pass its limit"):
        _pca(ledger=ledger.path, mechanism="gaussian").fit(rows)
    assert len(ledger.read().spends) == 3


@quiet
@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"mechanism": "ppca"}, "approximate-draws"),
        ({"mechanism": "gaussian", "epsilon": 11.0}, "epsilon-above-10"),
        ({"mechanism": "gaussian", "delta": 1 / 299}, "delta-above-1/n"),
    ],
)
def test_what_protects_little_needs_an_explicit_word(
    tmp_path: Path, rows: np.ndarray, changed: dict[str, Any], word: str
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(100.0, 0.1), Relation.REPLACE)
    with pytest.raises(CannotRun, match=f"record it in a ledger, set accept=\\('{word}',\\)"):
        _pca(ledger=ledger.path, **changed).fit(rows)
    assert ledger.read().spends == ()
    _pca(ledger=ledger.path, accept=(word,), **changed).fit(rows)
    (spend,) = ledger.read().spends
    assert spend.approximate is (word == "approximate-draws")
    assert f'"approximate": {str(spend.approximate).lower()}' in ledger.path.read_text()
    with pytest.raises(InvalidSetting, match="accept must be among epsilon-above-10"):
        _pca(ledger=ledger.path, accept=("all",), **changed).fit(rows)


@quiet
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", ["fit", "partial_fit", "transform", "inverse_transform", "score"])
def test_no_error_quotes_a_cell_or_counts_what_is_masked(name: str) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3))
    words = rows.astype(object)
    words[3, 1] = "secret"
    frame = pd.DataFrame(rows, columns=list("abc")).assign(b="secret")
    masked_rows = np.ma.array(rows, mask=rows > 2)
    model = PrivatePCA(3, delta=1e-6, mechanism="gaussian", row_bound=5.0, center="none").fit(rows)
    for table in (words, frame, rows + 1j, masked_rows):
        with pytest.raises(InvalidTable, match=r"^X must hold|^Complex data") as caught:
            getattr(model, name)(table)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert "\n" not in str(caught.value)


# --- the centre -----------------------------------------------------------------------------------


def _recovery(rows: np.ndarray, components: np.ndarray) -> float:
    table = rows - rows.mean(axis=0)
    moment = table.T @ table
    values = np.linalg.eigvalsh(moment)[::-1]
    best, chance = values[: len(components)].sum(), len(components) * values.mean()
    return float((np.trace(components @ moment @ components.T) - chance) / (best - chance))


@quiet
@pytest.mark.parametrize("table", ["iris", "breast_cancer", "digits"])
@pytest.mark.parametrize("private", [{}, {"center": "private", "bounds": "max"}])
def test_a_fit_recovers_what_its_comparison_advises(table: str, private: dict[str, Any]) -> None:
    data = np.asarray(load(table).rows)
    data = data[:, np.ptp(data, axis=0) > 0]
    comparison = dpviz.compare(table, epsilon=2, trials=100, mechanisms="gaussian", **private)
    advice = comparison.comparison.results[0].summaries["recovery"]
    fits = [comparison.estimator(random_state=seed).fit(data) for seed in range(100)]
    recoveries = np.array([_recovery(data, fit.components_) for fit in fits])
    # Allow 4 standard errors of the difference between the two means.
    error = math.hypot(advice.se, recoveries.std(ddof=1) / 10)
    assert abs(advice.mean - recoveries.mean()) < max(4 * error, 0.005)
    assert error < 0.025
    if table == "digits" and not private:  # Control: without centring, results differ.
        other = comparison.estimator(center="none", random_state=0).fit(data)
        assert _recovery(data, other.components_) < advice.mean - 0.1


@quiet
def test_a_fit_reads_lazy_frames_and_constant_columns_and_one_width_alone(
    rows: np.ndarray,
) -> None:
    frame = polars.DataFrame(rows, schema=list("abcde"))
    lazy = _pca(random_state=1).fit(frame.lazy())
    np.testing.assert_array_equal(lazy.components_, _pca(random_state=1).fit(frame).components_)
    days = frame.with_columns(polars.col("a").cast(polars.Int32).cast(polars.Date))
    with pytest.raises(InvalidTable, match="columns of dates or times: nothing was spent"):
        _pca().fit(days)  # Dates are not read as days since 1970.
    with pytest.raises(ValueError, match="X has 3 features, but PrivatePCA is expecting 5"):
        _pca().fit(rows).partial_fit(rows[:, :3])
    constant = np.column_stack([rows, np.full(len(rows), 7.0)])
    low, high = np.array([-4.0] * 5 + [7.0]), np.array([4.0] * 5 + [7.0])
    for scale in ("none", "private"):
        model = _pca(bounds=(low, high), scale=scale, random_state=0).fit(constant)
        assert (model.mean_[5], model.scale_[5]) == (7.0, 1.0)
        assert np.isfinite(model.components_).all()


@quiet
def test_the_centre_is_stated_or_private_and_listed(rows: np.ndarray) -> None:
    """Around the origin, the first component of rows far from the origin is their mean."""
    away = rows + 20.0
    with pytest.raises(InvalidSetting, match="center must be stated, because no bounds are given"):
        PrivatePCA(1, row_bound=60.0).fit(away)
    mean = away.mean(axis=0) / np.linalg.norm(away.mean(axis=0))
    how: dict[str, Any] = {"epsilon": 10.0, "mechanism": "gaussian", "random_state": 0}
    around = _pca(n_components=1, bounds=(0, 40), row_bound=10.0, **how).fit(away)
    origin = _pca(n_components=1, center="none", row_bound=60.0, **how).fit(away)
    middle = _pca(n_components=1, bounds=(0, 40), center="midpoint", row_bound=60.0, **how).fit(
        away
    )
    assert abs(origin.components_[0] @ mean) > 0.99
    assert abs(around.components_[0] @ mean) < 0.9
    assert "that the rows are centred already" in origin.assumed_public_
    assert "the centre, the midpoint of the bounds" in middle.assumed_public_
    assert not any("cent" in said for said in around.assumed_public_)


@quiet
def test_what_is_paid_for_is_noisy_and_not_assumed_public(rows: np.ndarray) -> None:
    private = {
        "center": "private", "scale": "private", "row_bound": "private", "count": "private",
        "bounds": (-4.0, 4.0), "relation": "zero-out",
    }  # fmt: skip
    fits = [_pca(mechanism="gaussian", random_state=i, **private).fit(rows) for i in range(3)]
    assert len({fitted.n_samples_ for fitted in fits}) > 1
    for model in fits:
        assert abs(model.n_samples_ - 300) < 100
        assert np.abs(model.mean_ - rows.mean(axis=0)).min() > 1e-9
        assert np.abs(model.scale_ - rows.std(axis=0)).min() > 1e-9
        assert "covers how many are present" in model.assumed_public_[0]
        assert any("protects one ROW" in said for said in model.assumed_public_)
        assert not any(w in said for w in ("cent", "scale") for said in model.assumed_public_)
    bought = _pca(mechanism="spherical", random_state=0).fit(rows)
    exact = ((rows @ bought.components_.T) ** 2).mean(axis=0)
    assert np.abs(bought.explained_variance_ - exact).min() > 1e-9


def test_what_is_not_covered_is_warned_of(rows: np.ndarray) -> None:
    with pytest.warns(PrivacyWarning, match="repeats the noise"):
        model = _pca(random_state=1).fit(rows)
    with pytest.warns(PrivacyWarning, match="are still rows"):
        model.transform(rows)
    model.transform(rows)  # Any second warning would be an error.
    with pytest.warns(PrivacyWarning, match=r"^2 fits, epsilon .* in this process at delta 2e-6"):
        _pca().fit(rows)
    with pytest.warns(PrivacyWarning, match="row_bound is taken from the data"):
        other = _pca(row_bound=FROM_DATA).fit(rows)
    assert any("row-norm bound" in said for said in other.assumed_public_)


@quiet
def test_what_no_epsilon_describes_is_in_no_ledger(tmp_path: Path, rows: np.ndarray) -> None:
    options = {"mechanism": "non_private", "allow_refuted": True}
    assert _pca(**options).fit(rows).spent_ is None
    with pytest.raises(CannotRun, match="a ledger cannot record it"):
        _pca(**options, ledger=_ledger(tmp_path / "ledger").path).fit(rows)


@quiet
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("k", [2, 0.9])
def test_no_row_bound_has_to_be_declared(k: float, delta: float) -> None:
    """The automatic mechanism bounds each row by itself, and releases its radius and variances."""
    rows = np.random.default_rng(4).standard_normal((20_000, 4)) * [3, 1, 1, 0.5]
    rows[0] = 1e9
    model = PrivatePCA(k, delta=delta, random_state=0, center="none").fit(rows)
    assert model.row_bound_ == np.inf
    assert not any("row-norm bound" in said for said in model.assumed_public_)
    assert abs(model.components_[0, 0]) > 0.99
    assert 2 < model.clipping_radius_ < 30  # The radius clips the outlier.
    assert model.explained_variance_[0] == pytest.approx(9, rel=0.5)
