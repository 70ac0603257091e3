"""`PrivatePCA`: scikit-learn's own checks, the ledger under clone, and one sentence an error."""

from __future__ import annotations

import pickle
import warnings
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
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpviz import PrivatePCA
from dpviz.accounting.gaussian import mu_of
from dpviz.core.by_length import InBlocks
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.datasets.batches import FileBatches
from dpviz.preparation.bounding import prepare
from dpviz.releasing.declared import FROM_DATA, PrivacyWarning
from dpviz.releasing.ledger import Ledger, LedgerError
from dpviz.simulation.compare import compare
from dpviz.simulation.defaults import advised

quiet = pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.clip(rng.standard_normal((300, 5)) * [2, 1, 0.5, 0.5, 0.2], -4, 4)


def _pca(**changed: Any) -> PrivatePCA:
    return PrivatePCA(**{"epsilon": 1.0, "delta": 1e-6, "row_bound": 5.0, **changed})


def _ledger(path: Path, epsilon: float = 100.0, **more: Any) -> Ledger:
    ledger = Ledger(path)
    ledger.create(Budget(epsilon, 1e-4), more.pop("relation", Relation.REPLACE), **more)
    return ledger


# Of scikit-learn's checks only the one for other array libraries is skipped, by itself: it runs
# where SCIPY_ARRAY_API is set, and this estimator takes NumPy arrays.
@pytest.mark.slow
@quiet
@parametrize_with_checks(
    [
        PrivatePCA(1),
        PrivatePCA(1, delta=0.0),
        PrivatePCA(1, mechanism="gaussian", delta=1e-6, row_bound=10.0),
        PrivatePCA(1, delta=0.0, mechanism="wishart_difference", row_bound=10.0),
        PrivatePCA(
            1, mechanism="gaussian", delta=1e-6, row_bound="private", center="private",
            bounds=(-100.0, 100.0),
        ),
    ],
    expected_failed_checks=lambda estimator: estimator.expected_failed_checks,
)  # fmt: skip
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_no_check_is_expected_to_fail_without_a_row_bound() -> None:
    assert PrivatePCA(1).expected_failed_checks == {}
    assert PrivatePCA(1, delta=0.0, mechanism="ppca", row_bound=1.0).expected_failed_checks == {}
    private = PrivatePCA(1, bounds=(0, 1), center="private").expected_failed_checks
    assert set(private) == {"check_fit_score_takes_y", "check_n_features_in_after_fitting"}


@quiet
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_no_row_bound_has_to_be_declared(delta: float) -> None:
    """What auto takes bounds each row by itself; its radius is released, and variances with it."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((20_000, 4)) * [3, 1, 1, 0.5]
    rows[0] = 1e9
    fitted = PrivatePCA(2, epsilon=1.0, delta=delta, random_state=0).fit(rows)
    assert fitted.status_.verdict is Verdict.HOLDS
    assert fitted.row_bound_ == np.inf
    assert not any("row bound" in item for item in fitted.assumed_public_)
    assert abs(fitted.components_[0, 0]) > 0.99
    # nine tenths of the rows are shorter than the radius, and the outlier is cut to it
    assert 2 < fitted.clipping_radius_ < 30
    assert fitted.explained_variance_[0] == pytest.approx(9, rel=0.5)
    # the control: a row bound taken from the data gives the outlier what it asks for
    taken = PrivatePCA(2, delta=delta, row_bound=FROM_DATA, mechanism="wishart_difference"
                       if delta == 0 else "gaussian", random_state=0)  # fmt: skip
    assert abs(taken.fit(rows).components_[0, 0]) < 0.9
    # few people: directions alone, and the radius of the other fit is gone
    few = fitted.set_params(variance_share=0).fit(rows[:200])
    assert not hasattr(few, "clipping_radius_")
    assert not hasattr(few, "explained_variance_")


@quiet
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "wishart_difference"])
def test_sparse_rows_give_what_dense_ones_do(mechanism: str) -> None:
    """Cut, centred and scaled as well; a mechanism that needs an array says so."""
    held = sparse.random_array(
        (900, 5), density=0.3, random_state=np.random.default_rng(6), format="csr"
    )
    named: dict[str, Any] = {"mechanism": mechanism, "random_state": 0, "bounds": (-1.0, 0.8)}
    named |= {} if mechanism == "auto" else {"row_bound": 1.5}
    dense = PrivatePCA(2, delta=1e-6, **named).fit(held.toarray())
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        found = PrivatePCA(2, delta=1e-6, **named).fit(kind(held))
        np.testing.assert_allclose(found.components_, dense.components_, rtol=1e-8, atol=1e-10)
        along = found.transform(kind(held))
        np.testing.assert_allclose(along, dense.transform(held.toarray()), rtol=1e-8, atol=1e-8)
        assert not hasattr(found, "feature_names_in_")
    other = PrivatePCA(2, delta=1e-6, **named).fit(held.toarray()[::-1] ** 2)
    assert not np.allclose(other.components_, dense.components_, atol=1e-3)  # the control
    with pytest.raises(CannotRun, match="array that fit is given"):
        PrivatePCA(2, mechanism="data_laplace", delta=0.0, row_bound=1.5).fit(held)
    with pytest.raises(InvalidTable, match="X has rows with gaps: nothing was spent"):
        PrivatePCA(2, delta=1e-6, **named).fit(sparse.csr_array([[np.nan, 1.0], [0.0, 1.0]] * 9))


@quiet
def test_over_the_limit_nothing_is_looked_at(tmp_path: Path, rows: np.ndarray) -> None:
    path = tmp_path / "ledger"
    _ledger(path, 2.5)
    estimator = _pca(ledger=path)
    for _ in range(2):
        clone(estimator).fit(rows)

    class Untouched:
        """Data that tells when it is asked for anything."""

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
    fitted = _pca(row_bound=3.0, mechanism=key, random_state=7, variance_share=0).fit(rows)
    assert np.allclose(fitted.components_, result.components[0].T, atol=1e-9)
    assert fitted.spent_ == result.spent
    assert fitted.status_ == result.status
    if result.eigenvalues is not None:
        assert np.allclose(fitted.explained_variance_, 9 * result.eigenvalues[0, :2].clip(min=0))


def test_parameters_stay_as_they_were_and_copies_agree(rows: np.ndarray) -> None:
    estimator = _pca(bounds=(-4.0, 4.0))
    before = estimator.get_params()
    fitted = estimator.fit(rows)
    assert fitted is estimator
    assert estimator.get_params() == before
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.components_, fitted.components_)


@quiet
def test_entropy_comes_from_the_system(rows: np.ndarray) -> None:
    first, second = _pca().fit(rows), _pca().fit(rows)
    assert not np.allclose(first.components_, second.components_)


def test_what_is_not_covered_is_said(rows: np.ndarray) -> None:
    with pytest.warns(PrivacyWarning, match="repeats the noise"):
        fitted = _pca(random_state=1).fit(rows)
    with pytest.warns(PrivacyWarning, match="are still rows"):
        fitted.transform(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.transform(rows)  # once
    # a clone's is the second fit of the process; it warns once, whoever fits after it
    with pytest.warns(PrivacyWarning, match=r"^2 fits, epsilon .* in this process at delta 2e-6"):
        _pca().fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.set_params(random_state=None).fit(rows)
    assert fitted.fits_ == 2
    with pytest.warns(PrivacyWarning, match="row_bound is taken from the data"):
        taken = _pca(row_bound=FROM_DATA).fit(rows)
    assert "the row bound R (largest row norm)" in taken.assumed_public_
    with pytest.warns(PrivacyWarning, match="center is taken from the data"):
        taken = _pca(center=FROM_DATA).fit(rows)
    assert "the feature means" in taken.assumed_public_


@quiet
def test_what_is_paid_for_is_not_assumed_public(rows: np.ndarray) -> None:
    bounds = (-4.0, 4.0)
    private = {"center": "private", "scale": "private", "row_bound": "private"}
    # the noise of a mean has standard deviation .7: without a seed one fit in fifty is beyond 2
    fitted = _pca(mechanism="gaussian", bounds=bounds, random_state=0, **private).fit(rows)
    assert fitted.assumed_public_ == (
        "the number of rows n and the features' names",
        "that nobody has a second row: this protects one ROW, not a person",
        "the feature bounds, as given",
    )
    assert 0.9 < fitted.spent_.epsilon <= 1.0
    assert fitted.claim_ == Budget(1.0, 1e-6)
    assert not np.allclose(fitted.mean_, rows.mean(axis=0))
    assert np.abs(fitted.mean_ - rows.mean(axis=0)).max() < 2.0


@quiet
def test_names_and_both_ways(rows: np.ndarray) -> None:
    frame = pd.DataFrame(rows, columns=list("abcde"))
    fitted = _pca(epsilon=1e4, n_components=5, mechanism="gaussian").fit(frame)
    assert list(fitted.feature_names_in_) == list("abcde")
    assert list(fitted.get_feature_names_out()) == [f"privatepca{i}" for i in range(5)]
    there = fitted.transform(frame)
    assert np.allclose(fitted.inverse_transform(there), rows)
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(1.0)
    subspace = _pca(mechanism="ppca", n_components=1, variance_share=0).fit(rows)
    assert not hasattr(subspace, "explained_variance_")


# --- variances ---------------------------------------------------------------------------------

# bought beside a subspace, with a bound or without, pure or not; eigenvalues of a matrix
_WITH_VARIANCES: list[dict[str, Any]] = [
    {"mechanism": "gaussian", "row_bound": 60.0},
    {"mechanism": "noisy_power_exact", "row_bound": 60.0},
    {"mechanism": "spherical", "row_bound": None},
    {"mechanism": "spherical_wishart_difference", "row_bound": None, "delta": 0.0},
    {"mechanism": "clipped_gaussian", "row_bound": None},
    {"mechanism": "clipped_pure", "row_bound": None, "delta": 0.0},
]


@quiet
@pytest.mark.parametrize("changed", _WITH_VARIANCES)
def test_variances_come_with_every_mechanism(changed: dict[str, Any]) -> None:
    """At epsilon 300 they are those of the rows, and what follows is as scikit-learn's."""
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((20_000, 4)) * [9, 6, 1, 0.5]
    public = PCA(2).fit(np.vstack([rows, -rows]))  # mean 0
    fitted = _pca(**{"epsilon": 300.0, "random_state": 1, **changed}).fit(rows)
    assert fitted.spent_.epsilon <= 300 * (1 + 1e-9)
    # n rows clipped beyond a high quantile: within 2 %
    assert np.allclose(fitted.explained_variance_, public.explained_variance_, rtol=0.02)
    assert fitted.explained_variance_ratio_ == pytest.approx(
        public.explained_variance_ratio_, rel=0.02
    )
    assert fitted.noise_variance_ == pytest.approx(public.noise_variance_, abs=0.2)
    assert fitted.n_samples_ == 20_000
    assert np.allclose(fitted.singular_values_, np.sqrt(20_000 * fitted.explained_variance_))
    assert np.allclose(fitted.get_covariance(), public.get_covariance(), atol=1.5)
    assert np.allclose(fitted.get_precision() @ fitted.get_covariance(), np.eye(4), atol=1e-9)
    assert fitted.score(rows) == pytest.approx(public.score(rows), abs=0.05)
    white = fitted.set_params(whiten=True).transform(rows)
    assert np.allclose(white.std(axis=0), 1, atol=0.02)
    assert np.allclose(
        fitted.inverse_transform(white), rows @ fitted.components_.T @ fitted.components_
    )
    # the control: nobody pays for them where they are not declared
    none = _pca(**{"variance_share": 0, "random_state": 1, **changed}).fit(rows)
    has_matrix = none.mechanism_ in ("gaussian", "clipped_gaussian", "clipped_pure")
    assert hasattr(none, "explained_variance_") is has_matrix
    if not has_matrix:
        with pytest.raises(AttributeError) as caught:
            none.get_covariance()
        assert "variance_share above 0 pays for them" in str(caught.value.__cause__)
        assert not hasattr(none, "score")


@quiet
@pytest.mark.parametrize("changed", _WITH_VARIANCES)
def test_the_number_of_components_by_noisy_cumulative_variance(changed: dict[str, Any]) -> None:
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((20_000, 4)) * [9, 6, 1, 0.5]
    changed = {"epsilon": 300.0, "random_state": 2, **changed}
    for share, k in ((0.5, 1), (0.9, 2), (0.995, 3)):  # 68.5, 99.0, 99.8 % of the variance
        fitted = _pca(n_components=share, **changed).fit(rows)
        assert fitted.n_components_ == len(fitted.components_) == k
        assert fitted.transform(rows).shape == (20_000, k)
        ratios = np.cumsum(fitted.explained_variance_ratio_)
        assert ratios[-1] >= share
        assert k == 1 or ratios[-2] < share
    every = _pca(n_components=None, **changed).fit(rows)
    assert np.allclose(every.components_ @ every.components_.T, np.eye(4))
    assert every.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert every.noise_variance_ == 0
    assert (np.diff(every.explained_variance_) <= 0).all()
    # paid for: a matrix alone is released at the same price by a smaller noise
    if changed["mechanism"] == "gaussian":
        assert every.spent_.mu is not None
        assert _pca(n_components=0.9, **changed).fit(rows).spent_.source != every.spent_.source


@quiet
def test_what_pays_for_variances_is_in_the_account(tmp_path: Path, rows: np.ndarray) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(2.0, 1e-6), Relation.REPLACE, "zcdp")
    for row_bound in (5.0, None):
        fitted = _pca(mechanism="spherical", row_bound=row_bound, ledger=ledger.path).fit(rows)
        assert fitted.spent_.epsilon == pytest.approx(1.0, abs=1e-6)
        assert hasattr(fitted, "variance_radius_") is (row_bound is None)
    mu = [spend.rho for spend in ledger.read().spends]
    assert mu == pytest.approx([mu_of(Budget(1.0, 1e-6)) ** 2 / 2] * 2, rel=1e-6)


@quiet
def test_how_many_are_present_can_be_bought(rows: np.ndarray) -> None:
    found = {
        _pca(relation="zero-out", count="private", mechanism="gaussian", random_state=seed)
        .fit(rows).n_samples_ for seed in range(5)
    }  # fmt: skip
    assert len(found) > 1
    assert all(abs(count - 300) < 60 for count in found)
    fitted = _pca(relation="zero-out", count="private", mechanism="gaussian").fit(rows)
    assert "of the padded table" in fitted.assumed_public_[0]
    assert _pca(count="private", mechanism="gaussian").fit(rows).n_samples_ == 300


def test_a_huge_budget_is_the_exact_pca(rows: np.ndarray) -> None:
    fitted = _pca(epsilon=1e6, row_bound=10.0, mechanism="gaussian").fit(rows)
    exact = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :2].T
    assert np.allclose(np.abs((fitted.components_ * exact).sum(axis=1)), 1, atol=1e-3)


@quiet
def test_auto_picks_without_the_data(rows: np.ndarray) -> None:
    first = _pca().fit(rows)
    second = _pca().fit(rows[::-1] * 0.01)
    assert first.mechanism_ == second.mechanism_
    assert first.picked_ == second.picked_ != ""
    n, d = rows.shape
    problem = Problem(n, d, 2, Relation.REPLACE, Domain.ball(d))
    assert first.mechanism_ == advised(problem, Budget(1.0, 1e-6), rows=True).text
    assert "the measured rule" in first.picked_
    guess = _pca(spectrum=[0.2, 0.1, 0.01, 0.0, 0.0]).fit(rows)
    assert "predicted to capture" in guess.picked_
    pure = _pca(delta=0.0).fit(rows)
    assert pure.claim_ == Budget(1.0, 0.0)
    assert pure.status_.verdict is Verdict.HOLDS


@quiet
def test_bounds_can_be_bought(rows: np.ndarray) -> None:
    fitted = _pca(
        epsilon=1e5, bounds="private", center="private", row_bound="private", mechanism="gaussian"
    ).fit(rows)
    assert not any("bounds" in item for item in fitted.assumed_public_)
    assert np.allclose(fitted.mean_, rows.mean(axis=0), atol=0.05)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"row_bound": None, "mechanism": "gaussian"},
            "gaussian cannot run: it needs a row bound, and none is declared",
        ),
        ({"row_bound": None, "spectrum": "power:d=5,exponent=1,total=1"}, "auto cannot run: "),
        ({"row_bound": -1.0}, "row_bound must be a number from 1e-100"),
        ({"row_bound": "max"}, "row_bound must be a number from 1e-100"),
        ({"row_bound": "private"}, "bounds must be given where row_bound is 'private'"),
        ({"center": "private"}, "bounds must be given where center"),
        ({"center": "mean"}, "center must be one of"),
        ({"bounds": (4.0, -4.0)}, "bounds must be numbers of at most 1e100"),
        ({"bounds": 3}, "bounds must be a pair of .* or LOW:HIGH, the path of .* 'from data"),
        ({"bounds": "wide"}, "bounds must be LOW:HIGH, the path of .* 'private' or 'from data"),
        ({"shares": {"men": 0.1}}, "shares must be of count, range, mean, scale, bound; got 'men'"),
        ({"epsilon": 0.0}, "epsilon must be a number from"),
        ({"n_components": 9}, "n_components must be a whole number from 1 to 5"),
        ({"n_components": 1.5}, "n_components must be a whole number"),
        ({"n_components": "mle"}, "n_components must be a whole number"),
        ({"variance_share": 1.0}, "variance_share must be from 0 to below 1"),
        (
            {"variance_share": 0.995, "mechanism": "spherical"},
            "shares of the preparation must be at most",
        ),
        ({"variance_share": 0, "n_components": 0.9}, "variance_share must be above 0"),
        (
            {"variance_share": 0, "whiten": True, "mechanism": "spherical"},
            "variance_share must be above 0 where whiten needs variances",
        ),
        ({"whiten": "yes"}, "whiten must be True or False"),
        ({"count": "noisy"}, "count must be public or private"),
        ({"relation": "swap"}, "relation must be one of"),
        ({"mechanism": "nothing"}, "mechanism must be one of"),
        ({"mechanism": "wishart"}, "allow_refuted=True runs it all the same"),
        ({"mechanism": "non_private"}, "allow_refuted=True runs it all the same"),
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


@quiet
def test_a_false_claim_runs_where_it_is_allowed(tmp_path: Path, rows: np.ndarray) -> None:
    fitted = _pca(mechanism="wishart", allow_refuted=True).fit(rows)
    assert fitted.spent_ is None
    with pytest.raises(CannotRun, match="no ledger can take it down"):
        _pca(mechanism="non_private", allow_refuted=True, ledger=_ledger(tmp_path / "l").path).fit(
            rows
        )


# --- what a ledger asks of an estimator --------------------------------------------------------


def test_a_fit_makes_no_ledger(tmp_path: Path, rows: np.ndarray) -> None:
    with pytest.raises(LedgerError, match="there is no ledger typo"):
        _pca(ledger=tmp_path / "typo").fit(rows)
    assert not list(tmp_path.iterdir())


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
    packed = pickle.dumps(clone(estimator))
    monkeypatch.chdir(tmp_path / "there")
    pickle.loads(packed).fit(rows)
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


# what auto takes with a delta and without, spherical, and one that sees A alone
_STREAMED: list[dict[str, Any]] = [
    {},
    {"delta": 0.0},
    {"mechanism": "spherical"},
    {"mechanism": "ppca[rows=unit]", "delta": 0.0},
    {"mechanism": "gaussian", "row_bound": 60.0, "bounds": (-50.0, 50.0)},
]


def _same(first: PrivatePCA, second: PrivatePCA) -> None:
    assert first.mechanism_ == second.mechanism_
    assert first.spent_ == second.spent_
    assert np.allclose(first.components_, second.components_, atol=1e-6)
    assert np.allclose(first.explained_variance_, second.explained_variance_, rtol=1e-6)
    for name in ("clipping_radius_", "variance_radius_"):
        # of single precision: sums over other blocks round otherwise
        assert getattr(first, name, None) == pytest.approx(getattr(second, name, None))


@quiet
@pytest.mark.parametrize("changed", _STREAMED)
def test_rows_given_a_part_at_a_time_are_one_release(
    changed: dict[str, Any], many: np.ndarray, tmp_path: Path
) -> None:
    whole = PrivatePCA(2, random_state=3, **changed).fit(many)
    parts = PrivatePCA(2, random_state=3, **changed)
    for part in np.array_split(many, 7):
        assert parts.partial_fit(part) is parts
        assert not hasattr(parts, "components_")
        with pytest.raises(NotFittedError):
            parts.transform(many)
    packed = pickle.loads(pickle.dumps(parts))
    _same(whole, parts.finalize())
    _same(whole, packed.finalize())
    assert parts.n_samples_ == 20_000
    assert parts.fits_ == 1
    # the exact sums are gone
    assert not any("summed" in name for name in vars(parts))
    with pytest.raises(InvalidTable, match="at least 2 rows"):
        parts.finalize()
    path = tmp_path / "big.parquet"
    table = pa.table({name: many[:, j] for j, name in enumerate("abcd")})
    table = table.append_column("word", pa.array(["x"] * 20_000))
    pq.write_table(table, path, row_group_size=3_000)
    read = PrivatePCA(2, random_state=3, **changed).fit_path(path)
    _same(whole, read)
    assert list(read.feature_names_in_) == list("abcd")
    few = PrivatePCA(1, random_state=3, **changed).fit_path(path, columns=["a", "c"])
    assert list(few.feature_names_in_) == ["a", "c"]


@quiet
@pytest.mark.parametrize("changed", _STREAMED[:4])
def test_rows_are_passed_twice_at_most(
    changed: dict[str, Any], many: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the look at whether they are finite; of a file that look counts the lengths."""
    folds: list[object] = []
    for cls in (InBlocks, FileBatches):
        monkeypatch.setattr(cls, "fold", _counting(cls.fold, folds))
    PrivatePCA(2, random_state=3, **changed).fit(many)
    assert len(folds) <= 2
    folds.clear()
    path = tmp_path / "big.parquet"
    pq.write_table(pa.table({name: many[:, j] for j, name in enumerate("abcd")}), path)
    PrivatePCA(2, random_state=3, **changed).fit_path(path)
    assert len(folds) <= (3 if "mechanism" in changed else 2)


def _counting(fold: Any, seen: list[object]) -> Any:
    def counted(self: Any, new: Any) -> Any:
        seen.append(self)
        return fold(self, new)

    return counted


@quiet
def test_a_dask_frame_is_summed_where_its_partitions_are(many: np.ndarray) -> None:
    dask_frame = pytest.importorskip("dask.dataframe", reason="the extra dpviz[dask]")
    import dask

    frame = pd.DataFrame(many, columns=list("abcd"))
    with dask.config.set(scheduler="synchronous"):
        spread = PrivatePCA(2, random_state=3).fit(dask_frame.from_pandas(frame, npartitions=5))
    _same(PrivatePCA(2, random_state=3).fit(frame), spread)
    assert list(spread.feature_names_in_) == list("abcd")


@quiet
def test_single_precision_stays_single_precision(many: np.ndarray) -> None:
    fitted = PrivatePCA(2, random_state=0, whiten=True).fit(many)
    assert fitted.components_.dtype == np.float32
    there = fitted.transform(many)
    assert there.dtype == fitted.inverse_transform(there).dtype == np.float32
    double = PrivatePCA(2, random_state=0).fit(many.astype(np.float64))
    assert double.components_.dtype == np.float64
    assert np.allclose(fitted.components_, double.components_, atol=1e-6)


@quiet
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (np.float32, 1e30), (np.float32, 1e38), (np.float32, 1e-30), (np.float16, 3e4),
        (np.int8, 100), (np.int32, 2.0**30), (np.int64, 2.0**62), (np.uint64, 2.0**63),
    ],
)  # fmt: skip
def test_rows_of_every_kind_of_number_are_told_of_in_doubles(kind: Any, size: float) -> None:
    draws = np.random.default_rng(4).uniform(0, 1, (300, 3))
    rows = (draws * [1, 0.5, 0.25] * size).astype(kind)
    how = {"mechanism": "gaussian", "row_bound": size, "bounds": (0, 10 * size), "random_state": 1}
    fitted = PrivatePCA(2, **how).fit(rows)
    double = PrivatePCA(2, **how).fit(rows.astype(np.float64))
    for name in ("mean_", "scale_", "explained_variance_", "singular_values_"):
        assert np.array_equal(getattr(fitted, name), getattr(double, name))
    assert (fitted.explained_variance_ > 0).all()
    assert np.isfinite(fitted.get_covariance()).all()
    # by components in the rows' precision
    assert np.allclose(fitted.score_samples(rows), double.score_samples(rows), atol=0.01)


@quiet
def test_a_paid_preparation_is_the_same_from_a_file(many: np.ndarray, tmp_path: Path) -> None:
    private = {
        "bounds": "private", "center": "private", "scale": "private", "row_bound": "adaptive",
        "mechanism": "gaussian", "epsilon": 10.0,
    }  # fmt: skip
    path = tmp_path / "big.parquet"
    pq.write_table(pa.table({name: many[:, j] for j, name in enumerate("abcd")}), path)
    memory = PrivatePCA(2, random_state=3, **private).fit(many.astype(np.float64))
    read = PrivatePCA(2, random_state=3, **private).fit_path(path)
    _same(memory, read)
    assert np.allclose(memory.mean_, read.mean_)
    assert memory.row_bound_ == pytest.approx(read.row_bound_)
    with pytest.raises(InvalidSetting, match="center must be known beforehand for partial_fit"):
        PrivatePCA(2, **private).partial_fit(many)


@quiet
def test_what_cannot_be_read_in_blocks_says_so(many: np.ndarray, tmp_path: Path) -> None:
    ledger = _ledger(tmp_path / "ledger")
    path = tmp_path / "gaps.parquet"
    many[5, 1] = np.nan
    pq.write_table(pa.table({name: many[:, j] for j, name in enumerate("abcd")}), path)
    one = _pca(row_bound=None, ledger=ledger.path)
    with pytest.raises(DpvizError, match="has rows with gaps: nothing was spent"):
        one.fit_path(path)
    with pytest.raises(DpvizError, match="columns must be among the numeric columns"):
        one.fit_path(path, columns=["z"])
    (tmp_path / "words.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DpvizError, match="must be a Parquet file"):
        one.fit_path(tmp_path / "words.csv")
    with pytest.raises(DpvizError, match=r"^nowhere\.parquet cannot be opened: there is no"):
        one.fit_path(tmp_path / "nowhere.parquet")
    with pytest.raises(DpvizError, match="NaN or infinity"):
        one.partial_fit(many)
    many[5, 1] = 0
    needs = _pca(mechanism="data_laplace", ledger=ledger.path)
    with pytest.raises(CannotRun, match="it needs the rows themselves in memory"):
        needs.partial_fit(many)
    one.partial_fit(many).set_params(row_bound=3.0)
    with pytest.raises(InvalidSetting, match="must be those of the first partial_fit"):
        one.partial_fit(many)
    assert ledger.read().spends == ()


def test_another_relation_is_refused_before_the_data_is_touched(
    tmp_path: Path, rows: np.ndarray
) -> None:
    ledger = _ledger(tmp_path / "ledger", relation=Relation.ZERO_OUT)
    with pytest.raises(LedgerError, match="under the relation zero-out"):
        _pca(ledger=ledger.path).fit(object())
    assert ledger.read().spends == ()
    _pca(ledger=ledger.path, relation="zero-out", mechanism="gaussian").fit(rows)
    assert [spend.purpose for spend in ledger.read().spends] == ["fit"]


@quiet
def test_a_zcdp_ledger_takes_fits_by_their_rho(tmp_path: Path, rows: np.ndarray) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(2.0, 1e-6), Relation.REPLACE, "zcdp")
    for _ in range(3):  # one after the other: epsilon 3 if it were added up
        _pca(ledger=ledger.path, mechanism="gaussian").fit(rows)
    with pytest.raises(LedgerError, match="would pass its limit"):
        _pca(ledger=ledger.path, mechanism="gaussian").fit(rows)
    assert len(ledger.read().spends) == 3


def test_delta_is_stated_where_a_ledger_is(tmp_path: Path, rows: np.ndarray) -> None:
    ledger = _ledger(tmp_path / "ledger")
    with pytest.raises(InvalidSetting, match=r"delta must be stated: .* where a ledger is given"):
        _pca(ledger=ledger.path, delta=None).fit(rows)
    assert _pca(delta=None).fit(rows).claim_ == Budget(1.0, 1e-6)  # without one: a default


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
    with pytest.raises(CannotRun, match=f"accept=\\('{word}',\\) lets it into a ledger"):
        _pca(ledger=ledger.path, **changed).fit(rows)
    assert ledger.read().spends == ()
    _pca(ledger=ledger.path, accept=(word,), **changed).fit(rows)
    (spend,) = ledger.read().spends
    assert spend.approximate is (word == "approximate-draws")
    assert f'"approximate": {str(spend.approximate).lower()}' in ledger.path.read_text()
    with pytest.raises(InvalidSetting, match="accept must be among epsilon-above-10"):
        _pca(ledger=ledger.path, accept=("all",), **changed).fit(rows)


@quiet
def test_exact_draws_of_the_same_mechanism_need_no_word(tmp_path: Path, rows: np.ndarray) -> None:
    ledger = _ledger(tmp_path / "ledger")
    _pca(ledger=ledger.path, mechanism="ppca", n_components=1).fit(rows)
    assert not ledger.read().spends[0].approximate


@quiet
def test_how_long_a_fit_takes_is_listed_where_it_depends_on_the_rows(rows: np.ndarray) -> None:
    said = "how long a release by ppca takes"
    assert said in _pca(mechanism="ppca").fit(rows).assumed_public_
    added = _pca(mechanism="gaussian").fit(rows).assumed_public_
    assert not any("how long" in item for item in added)
    table = Table("made", rows, tuple("abcde"))
    settings = Settings(mechanisms=("ppca", "gaussian"), trials=2)
    listed = compare(prepare(table, settings), settings).to_json()["assumed_public"]
    assert listed.count(said) == 1
    assert sum("how long" in item for item in listed) == 1


_KINDS: list[Any] = [
    None, 3, -1, "x", b"x", [1], (1, 2, 3), {}, {"a": 1}, object(), float("nan"), float("inf"),
    True, np.array([1.0, 2.0]), 1 + 2j, set(), "1",
]  # fmt: skip


@quiet
@pytest.mark.parametrize("name", list(PrivatePCA().get_params()))
def test_a_parameter_of_any_kind_is_right_or_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((60, 3))
    said = []
    for value in _KINDS:
        try:
            PrivatePCA(**{"n_components": 1, "delta": 1e-3, name: value}).fit(rows)
        except DpvizError as error:
            said.append(str(error))
    assert not any("\n" in sentence for sentence in said)
    assert len(said) > len(_KINDS) / 2


@pytest.mark.parametrize(
    "rows", [[1.5, 2.5], 3.5, [["a", "b"]] * 3, [[1, 2], [3]], None, [[1j, 1.5]]]
)
def test_rows_of_a_wrong_kind_are_refused_without_their_cells(rows: object) -> None:
    with pytest.raises(ValueError, match=r"2D|numeric|Complex|inhomogeneous") as caught:
        PrivatePCA(1).fit(rows)
    assert not any(cell in str(caught.value) for cell in ("1.5", "3.5", "'a'"))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"row_bound": 1e300}, "row_bound"),
        ({"row_bound": 10**5000}, "row_bound"),
        ({"epsilon": 10**5000}, "epsilon"),
        ({"row_bound": 1e-300}, "row_bound"),
        ({"row_bound": "private", "bounds": (-1e300, 1e300)}, "bounds"),
        ({"bounds": (0, 10**5000)}, "bounds"),
        ({"bounds": (0.0, 5e-324)}, "bounds"),
        ({"bounds": ([0.0] * 5, [1.0, 1.0, 1e300, 1.0, 1.0])}, "the bounds of 'column 3'"),
    ],
)
def test_sizes_without_squares_are_refused_before_anything_is_spent(
    changed: dict[str, Any], named: str, tmp_path: Path, rows: np.ndarray
) -> None:
    ledger = _ledger(tmp_path / "ledger")
    with pytest.raises(InvalidSetting, match=rf"^{named} must be "):
        _pca(**{"mechanism": "gaussian", "ledger": ledger.path, **changed}).fit(rows)
    assert not ledger.read().spends


def test_dates_are_no_numbers_in_any_library_and_decimals_are(rows: np.ndarray) -> None:
    day, names = pd.Timestamp("2024-05-01"), list("abcde")
    frame = pd.DataFrame(rows, columns=names)
    dated = frame.assign(b=day)
    polar = polars.DataFrame({name: frame[name].to_numpy() for name in names})
    later = polar.with_columns(b=polars.lit(day.date()))
    for table in (dated, dated[["b", "b"]], later, later.to_arrow()):
        with pytest.raises(InvalidTable, match=r"^X must hold numbers; it has columns of dates"):
            _pca().fit(table)
    with pytest.raises(InvalidTable, match=r"^X must have columns of different names"):
        _pca().fit(frame.set_axis(list("aabcd"), axis=1))
    assert _pca().fit(polar.cast(polars.Decimal(20, 9))).components_.shape == (2, 5)


def test_what_is_asked_before_a_fit_or_of_other_coordinates_is_a_sentence(
    rows: np.ndarray,
) -> None:
    for name in ("get_covariance", "get_precision"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(PrivatePCA(2), name)()
    with pytest.raises(InvalidTable, match="5 features, but there are 2 components"):
        _pca().fit(rows).inverse_transform(rows)


@quiet
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", ["fit", "partial_fit", "transform", "inverse_transform", "score"])
def test_no_error_quotes_a_cell_or_counts_what_is_masked(name: str) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3))
    words = rows.astype(object)
    words[3, 1] = "secret"
    frame = pd.DataFrame(rows, columns=list("abc")).assign(b="secret")
    masked = np.ma.array(rows, mask=rows > 2)
    fitted = PrivatePCA(3, delta=1e-6, mechanism="gaussian", row_bound=5.0).fit(rows)
    for table in (words, frame, rows + 1j, masked):
        with pytest.raises(InvalidTable, match=r"^X must hold|^Complex data") as caught:
            getattr(fitted, name)(table)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert "\n" not in str(caught.value)


def test_one_column_is_no_table() -> None:
    """A Series names the kind of its one column where a frame lists those of all."""
    column = pd.Series([1.0, 2.0, 3.0])
    with pytest.raises(InvalidTable, match=r"^X must be 2D"):
        PrivatePCA(1).fit(column)


@pytest.mark.parametrize("changed", [{"epsilon": "1"}, {"delta": "1e-6"}, {"epsilon": True}])
def test_a_number_that_is_none_is_one_sentence(changed: dict[str, object]) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3))
    (name,) = changed
    with pytest.raises(InvalidSetting, match=rf"^{name} must be a number.* got "):
        PrivatePCA(1, **{"row_bound": 5.0, "bounds": (-4, 4), **changed}).fit(rows)
    with pytest.raises(InvalidSetting, match=r"^share of the mean must be between 0 and 1"):
        PrivatePCA(1, row_bound=5.0, bounds=(-4, 4), center="private", shares={"mean": "0.1"}).fit(
            rows
        )
