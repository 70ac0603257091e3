"""`PrivatePCA`: one private release of principal components behind scikit-learn's interface."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import null_space
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dpviz.accounting.composition import rho_of
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.by_length import ByLength, InBlocks, squares_along
from dpviz.core.entries import PUBLIC, Entries, Entry, Pairs
from dpviz.core.errors import CannotRun, InvalidSetting, InvalidTable
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import EPSILON_RANGE, Budget, Domain, Problem, Relation, default_delta
from dpviz.core.release import Release, Status, Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.dataframes import FrameBatches, SparseRows
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.preparation.account import PreparedMechanism, prepared_mechanism
from dpviz.preparation.draws import noisy_variances, radius_to_cut, run
from dpviz.preparation.steps import RADIUS as VARIANCE_RADIUS
from dpviz.preparation.steps import Preparation, PrivateSteps, is_share
from dpviz.preparation.transform import Transform
from dpviz.releasing.budget import carried, check_open, pay, received
from dpviz.releasing.declared import AUTO, BOUND_ALLOWED, NONE, PrivacyWarning, checked, public_part
from dpviz.releasing.ledger import FIT, Ledger, Spend
from dpviz.releasing.options import ACCEPT, DELTA_STATED, words_needed
from dpviz.releasing.rows import Rows, Summed, file_rows
from dpviz.simulation.defaults import has_variances, picked_for, with_variances
from dpviz.simulation.simulate import Named, Trials, simulate

APPROXIMATE = "approximate-draws"
_WORDS = ACCEPT | {
    APPROXIMATE: "its draws have the law that was proved only in the limit, and the epsilon of "
    "that law is what would be written down"
}


_SOMETIMES = (
    "clipping_radius_", "noise_variance_", "variance_radius_", "explained_variance_",
    "explained_variance_ratio_", "singular_values_",
)  # fmt: skip
_IN_MEMORY = "it needs the rows themselves in memory, as an array that fit is given"

# What scikit-learn and NumPy say of an array without quoting it; other messages may.
_WITHOUT_CELLS = (
    "Found array with ", "X has ", "Input X contains ", "Input contains ",
    "The feature names should ", "Expected 2D ", "setting an array element ",
    "dtype='numeric' is not ",
)  # fmt: skip


def _has_variances(estimator: Any) -> bool:
    """Return whether variances were released; for `available_if`, so its errors are missing names.

    Before a fit it says yes: that it is not fitted is then what a caller hears.
    """
    fitted = hasattr(estimator, "components_")
    if fitted and not hasattr(estimator, "explained_variance_"):
        raise AttributeError(
            "no variances were released beside the components: variance_share above 0 pays for them"
        )
    return True


def _has_times(X: Any) -> bool:
    """Return whether a column of a frame, of whatever library, is of dates, times or durations."""
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "dtypes") else getattr(X, "schema", ())
    kinds = getattr(kinds, "types", kinds)
    if not isinstance(kinds, Iterable):  # that of a Series
        kinds = (kinds,)
    return any(str(kind).lower().startswith(("date", "time", "duration")) for kind in kinds)


@contextmanager
def _without_cells(X: object, spent: str = "") -> Iterator[None]:
    """Keep what X holds out of what is said of it."""
    if np.ma.is_masked(X):  # else the numbers under the mask would count
        raise InvalidTable(f"X must hold finite numbers; it has masked cells{spent}.")
    if _has_times(X):  # else some libraries' dates would count as days since 1970
        raise InvalidTable(f"X must hold numbers; it has columns of dates or times{spent}.")
    if not getattr(getattr(X, "columns", None), "is_unique", True):
        raise InvalidTable(f"X must have columns of different names{spent}.")
    try:
        yield
    except ValueError as error:
        if "array=" in str(error) or "a 2-dimensional " in str(error):
            raise InvalidTable(
                f"X must be 2D, of shape (n_samples, n_features){spent}. Reshape your data with "
                "array.reshape(-1, 1) or array.reshape(1, -1)."
            ) from None
        if "Complex" in str(error):
            raise InvalidTable(f"Complex data not supported{spent}.") from None
        if not str(error).startswith(_WITHOUT_CELLS):
            raise InvalidTable(f"X must hold numbers{spent}.") from None
        raise


class _Once:
    """Whether a fitted estimator has said its sentence; lives in it, so that calls share it."""

    def __init__(self) -> None:
        self.said = False


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components with differential privacy.

    ``fit`` makes one release and spends its budget, every time. Nothing that it learns comes from
    the data without noise, unless a parameter says ``"from data (not private)"``; what is taken
    for public is listed in ``assumed_public_``.

    Parameters
    ----------
    n_components : int, float or None, default=2
        k, from 1 to the number of features; None takes all of them. A share between 0 and 1 takes
        the fewest whose noisy variances reach it of their total. A mechanism that releases a
        subspace draws all but the last of all directions, which the others leave.
    mechanism : str or Mechanism, default="auto"
        Key or variant such as ``"mvg[theorem=3]"``. ``"auto"`` takes the one that the measured
        rule of `dpviz.simulation.defaults` advises for n, d, k and the budget, or with ``spectrum``
        the one that is predicted to capture most of it. Neither looks at the data.
    epsilon : float, default=1.0
    delta : float, default=None
        None is the default of the command line for this n; 0 needs a pure mechanism.
    row_bound : float or str, default=None
        Largest length R of a centred and scaled row; longer rows are scaled down. A number must
        have been known before anybody looked at the data. ``"private"`` (or ``"private:0.8"``, a
        quantile of the row lengths) and ``"adaptive"`` find one with a share of the budget,
        ``"from data (not private)"`` takes the longest row and warns. None declares nothing: rows
        stay as long as they come, and only a mechanism that bounds what each does by itself can
        run, as what ``"auto"`` takes does.
    relation : {"replace", "zero-out"}, default="replace"
        What one person may change: their row, or whether they are in.
    center : {"none", "midpoint", "private", "from data (not private)"}, default=None
        None is ``"midpoint"`` where bounds are given and ``"none"`` elsewhere.
    scale : {"none", "private", "from data (not private)"}, default="none"
    bounds : pair of float or array-like of shape (n_features,), mapping or str, default=None
        Public lowest and highest value of each feature; rows are cut to them. What is private
        about the preparation needs them. ``(0, 10)`` and ``"0:10"`` are one pair for all features,
        a mapping has (low, high) of each by name. ``"private"`` buys one range about zero for all,
        ``"from data (not private)"`` takes the smallest and largest values and warns.
    random_state : int, RandomState instance or None, default=None
        None takes the system's entropy. A fixed one warns: who knows it can subtract the noise.
    ledger : str or path, default=None
        File in which every fit writes its spend before it looks at the data; see
        `dpviz.releasing.ledger`. ``dpviz ledger new`` makes it, for one relation; a fit never does.
        A relative path is made absolute at once, so that a copy that is unpickled elsewhere finds
        the same file. With a ledger delta must be stated. That the rows are those of one table is
        not checked, as the folds of one table are many arrays.
    spectrum : str or array-like, default=None
        Public guess of the eigenvalues of A = X'X/n in squared row bounds, for
        ``mechanism="auto"``.
    shares : mapping of str to float, default=None
        Share of the budget of each private step: ``count``, ``range``, ``mean``, ``scale``,
        ``bound``.
    variance_share : float, default=0.1
        Share of the budget that pays for noisy variances along the components where a subspace
        alone is released, and for a share as ``n_components`` always. 0 buys none.
    count : {"public", "private"}, default="public"
        Whether the number of people present is public. Under zero-out ``"private"`` buys it: the
        number of rows, absent people's zero rows among them, is public still.
    whiten : bool, default=False
        Whether `transform` divides coordinates by the square roots of the noisy variances.
    allow_refuted : bool, default=False
        Whether a mechanism whose claim is false here, or that claims nothing, may run.
    accept : sequence of str, default=()
        What may go into a ledger all the same: ``"epsilon-above-10"``, ``"delta-above-1/n"``,
        ``"approximate-draws"`` (the law is exact only in the limit; the ledger's line says so).

    Attributes
    ----------
    components_ : ndarray of shape (k, n_features)
    n_components_ : int
        k: how many there are.
    mean_, scale_ : ndarray of shape (n_features,)
        What is subtracted, and then divided by.
    row_bound_ : float
        Infinite where none was declared.
    clipping_radius_ : float
        Length, in scaled units, at which the mechanism clipped rows; only where it found one. It is
        released too.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Noisy, in scaled units, descending, at least 0, of clipped rows where rows were clipped:
        what a longer row adds beyond the radius is in none of them. Missing where a subspace alone
        is released and ``variance_share`` is 0, as is what follows from them.
    variance_radius_ : float
        Length, in scaled units, at which rows were cut for their variances, where it was bought.
    singular_values_ : ndarray of shape (k,)
        Square roots of ``n_samples_ * explained_variance_``.
    noise_variance_ : float
        Noisy mean variance along the directions that are left out; 0 where none is.
    n_samples_ : int
        Number of rows, which is public, or the noisy number of people present.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where ``X`` names its features.
    mechanism_ : str
        The variant that ran.
    picked_ : str
        Why, in one sentence; empty where it was named.
    claim_ : Budget or None
        What was promised.
    spent_ : Spent or None
        What preparation and release cost together.
    status_ : Status
        What is known of the claim here.
    assumed_public_ : tuple of str
    fits_ : int
        How often this object was fitted: each was a release of its own.

    See Also
    --------
    dpviz.compare : Mechanisms side by side, for teaching: it looks at the true answer.
    dpviz.releasing.making.make : One real release, with noise that is safe on a computer.
    sklearn.decomposition.PCA : The same without privacy.

    Notes
    -----
    What is private (mean, scale, row bound) and the release spend one budget: Gaussian steps
    compose by the squares of their mu, exactly; pure steps beside them by what is known of their
    losses (`dpviz.accounting.accounting.Composition`). ``spent_`` is that account.

    Noise is drawn in doubles (idealised numerics): low-order bits of continuous noise can leak
    (Mironov 2012). ``python -m dpviz release`` makes a release without that weakness.

    Variances are sums over n, not n - 1. Those of a released matrix are its eigenvalues, of which
    the leading ones are too large by noise; bought ones have independent noise of mean 0 along each
    released component and over the rest (`dpviz.preparation.steps`), and put components in order.

    Rows are cut to ``bounds``, centred, scaled and shortened to ``row_bound``. Directions are
    those of the rows so prepared, and so is the variance that ``explained_variance_`` estimates.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dpviz import PrivatePCA
    >>> pca = PrivatePCA(2, epsilon=1.0, delta=1e-6, row_bound=60, bounds=(0, 16))
    >>> pca.fit(load_digits().data).components_.shape
    (2, 64)
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        mechanism: str | Mechanism = AUTO,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | str | None = None,
        relation: str = "replace",
        center: str | None = None,
        scale: str = NONE,
        bounds: tuple[ArrayLike, ArrayLike] | Pairs | str | None = None,
        random_state: Any = None,
        ledger: str | Path | None = None,
        spectrum: Any = None,
        shares: Mapping[str, float] | None = None,
        variance_share: float = 0.1,
        count: str = PUBLIC,
        whiten: bool = False,
        allow_refuted: bool = False,
        accept: Sequence[str] = (),
    ) -> None:
        self.n_components = n_components
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.relation = relation
        self.center = center
        self.scale = scale
        self.bounds = bounds
        self.random_state = random_state
        self.ledger = ledger
        self.spectrum = spectrum
        self.shares = shares
        self.variance_share = variance_share
        self.count = count
        self.whiten = whiten
        self.allow_refuted = allow_refuted
        self.accept = accept

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter; a ledger's path is made absolute where it is given."""
        if name == "ledger" and isinstance(value, (str, Path)) and not os.path.isabs(value):
            # before anybody changes folder: a copy elsewhere must spend from the same file
            value = type(value)(Path.cwd() / value)
        super().__setattr__(name, value)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Make one private release of the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        DpvizError
            If a parameter is missing or wrong, the claim is false, or the ledger refuses. Nothing
            is then spent.
        """
        declared = self._before()
        return self._fit(declared, self._rows_of(X))

    def fit_path(self, path: str | Path, columns: Sequence[str] | None = None) -> Self:
        """Make one private release of the components of a Parquet file of any size.

        It is read a few times, in batches, and never held in memory.

        Parameters
        ----------
        path : str or path
        columns : sequence of str, default=None
            Which columns are features; None takes all that hold numbers by the file's schema.

        Raises
        ------
        DpvizError
            As `fit`; also where rows have gaps, or a mechanism needs the rows in memory.
        """
        declared = self._before()
        return self._fit(declared, self._named(file_rows(path, columns)))

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Add rows to those that `finalize` makes one release of; each person's must come once.

        Rows are summed up and not kept. Until `finalize` the object holds exact sums of them: it is
        as secret as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        DpvizError
            As `fit`; also where what is declared would have to be found from the rows first.
        """
        summed = getattr(self, "_summed", None)
        declared = self._check_parameters() if summed is not None else self._before()
        if declared.asks_rows:
            raise InvalidSetting(
                declared.asks_rows,
                "known beforehand for partial_fit, which sees each row once",
                getattr(self, declared.asks_rows),
            )
        named = None if self.mechanism == AUTO else parse_variant(self.mechanism)
        if named is not None and named.needs_rows and not named.by_length:
            raise CannotRun(named.text, _IN_MEMORY)
        rows = self._rows_of(X, reset=summed is None, least=1)
        names = self._names
        public, _ = public_part(declared, None, rows.d, None, names)
        how = (declared.center, declared.row_bound, public.low.tobytes(), public.high.tobytes())
        if summed is None:
            summed = self._summed = Summed(rows.d, public, rows.dtype)
            self._summed_how = how
        # sums of rows that were prepared in two ways are sums of nothing
        elif how != self._summed_how:
            raise InvalidSetting(
                "center, row_bound and bounds", "those of the first partial_fit", "others"
            )
        with one_blas_thread():
            summed.add(rows)
        return self

    def finalize(self) -> Self:
        """Make one private release of all rows that `partial_fit` was given, and forget them."""
        summed = getattr(self, "_summed", None)
        if summed is None or summed.sums.n < 2:
            raise InvalidTable("finalize needs at least 2 rows, given to partial_fit before")
        declared = self._before()
        rows = Rows(InBlocks(np.empty((0, summed.d))), summed.sums.n, summed.d, summed.dtype)
        self._fit(declared, rows, summed.sums)
        # exact sums of rows: released is what was drawn, and these would give the rest away
        del self._summed, self._summed_how
        return self

    def _before(self) -> Entries:
        """Return what is declared; refuse what is spent, before a single value is looked at."""
        declared = self._check_parameters()
        if self.ledger is not None:
            Ledger(Path(self.ledger)).check(
                # what it costs as a rho is known only once n is
                Spend(str(self.mechanism), self.epsilon, self.delta or 0.0, rho=0.0),
                Relation(self.relation),
            )
        check_open()
        return declared

    def _rows_of(self, X: Any, *, reset: bool = True, least: int = 2) -> Rows:
        """Return the rows of an array, a sparse one or a Dask frame, none of which is copied."""
        if hasattr(X, "to_delayed") and hasattr(X, "dtypes"):
            return self._named(FrameBatches(X))
        with _without_cells(X, ": nothing was spent"):
            array = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=True,
                dtype="numeric",
                ensure_all_finite=False,
                ensure_min_samples=least,
                ensure_min_features=2 if reset else 1,
            )
            if array.dtype.kind == "O":  # decimals, which frames of Arrow's hand over as they are
                array = array.astype(np.float64)
        if array.dtype.kind not in "fiub":
            raise InvalidTable("X must hold numbers: nothing was spent.")
        if sparse.issparse(array):
            return Rows.of_batches(SparseRows(array, "X"))
        return Rows.of_array(array)

    def _named(self, source: FileBatches | FrameBatches) -> Rows:
        """Return the rows of a source in batches, whose columns have names."""
        rows = Rows.of_batches(source)
        self.feature_names_in_ = np.array(source.columns, dtype=object)
        self.n_features_in_ = rows.d
        return rows

    def _fit(self, declared: Entries, rows: Rows, sums: ByLength | None = None) -> Self:
        n, d = rows.n, rows.d
        budget = Budget(self.epsilon, default_delta(n) if self.delta is None else self.delta)
        whole, picked = self._chosen(declared, n, d, budget)
        mechanism = whole.mechanism
        if mechanism.needs_rows and not mechanism.by_length and rows.array is None:
            raise CannotRun(mechanism.text, _IN_MEMORY)
        status = mechanism.status(whole.problem, whole.rest)
        self._check_claim(whole, status)
        ledger = None if self.ledger is None else Ledger(Path(self.ledger))
        if ledger is not None:
            self._check_words(whole, status)
        public, assumed = public_part(declared, rows, d, whole, self._names)
        seed = self._seed()
        pay(whole, warns=ledger is None)
        if ledger is not None:
            self._spend(ledger, whole, status)
        with one_blas_thread():
            self._release(rows, sums, public, whole, seed)
        self.mechanism_, self.picked_ = mechanism.text, picked
        self.claim_, self.spent_, self.status_ = _claim(whole), whole.spent, status
        self.assumed_public_ = (*assumed, *mechanism.assumed_public)
        self.fits_ = getattr(self, "fits_", 0) + 1
        self._transformed = _Once()
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return rows along the private components, shape (n_samples, n_components).

        The components are private; what comes out is about the rows that go in, and is not.
        """
        check_is_fitted(self)
        with _without_cells(X):
            rows: Any = validate_data(
                self, X, accept_sparse=True, dtype=[np.float64, np.float32], reset=False
            )
        self._say_unprotected("transform")
        stored: bool = sparse.issparse(rows)
        if stored:  # the mean is taken off afterwards, so that zeros stay unstored
            along = self.components_.T / np.reshape(self.scale_, (-1, 1))
            projected = rows @ along - self.mean_ @ along
        else:
            projected = ((rows - self.mean_) / self.scale_) @ self.components_.T
        if self.whiten:
            projected /= self._deviations
        return np.asarray(projected, dtype=rows.dtype)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Return rows of the original space that have these coordinates along the components."""
        check_is_fitted(self)
        with _without_cells(X):
            along = check_array(X, dtype=[np.float64, np.float32])
        if along.shape[1] != self.n_components_:
            raise InvalidTable(
                f"X has {along.shape[1]} features, but there are {self.n_components_} components."
            )
        wide = along * self._deviations if self.whiten else along
        back = (wide @ self.components_) * self.scale_ + self.mean_
        return np.asarray(back, dtype=along.dtype)

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def get_covariance(self) -> FloatArray:
        """Return the covariance about ``mean_``, in units of the table, shape (d, d).

        That of the model that scikit-learn's PCA has too: the noisy variances along the components
        and ``noise_variance_`` along all other directions.
        """
        check_is_fitted(self)
        above = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        matrix = (self.components_.T * above) @ self.components_
        matrix[np.diag_indices_from(matrix)] += self.noise_variance_
        covariance: FloatArray = matrix * np.outer(self.scale_, self.scale_)
        return covariance

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def get_precision(self) -> FloatArray:
        """Return the inverse of the covariance, shape (d, d)."""
        check_is_fitted(self)
        along, rest = self._positive_variances()
        matrix = (self.components_.T * (1 / along - 1 / rest)) @ self.components_
        matrix[np.diag_indices_from(matrix)] += 1 / rest
        precision: FloatArray = matrix / np.outer(self.scale_, self.scale_)
        return precision

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-likelihood of each row, shape (n_samples,), under the released model.

        It is about the rows that go in, as what `transform` returns is.
        """
        check_is_fitted(self)
        with _without_cells(X):
            rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        along, rest = self._positive_variances()
        self._say_unprotected("score")
        z = (rows - self.mean_) / self.scale_
        projected = z @ self.components_.T
        left = np.maximum(np.square(z).sum(axis=1) - np.square(projected).sum(axis=1), 0.0)
        d, k = self.n_features_in_, len(along)
        log_volume = np.log(along).sum() + (d - k) * math.log(rest) + 2 * np.log(self.scale_).sum()
        squares = np.square(projected) @ (1 / along) + left / rest
        likelihood: FloatArray = -0.5 * (d * math.log(2 * math.pi) + log_volume + squares)
        return likelihood

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the mean log-likelihood of rows; choosing parameters by it protects nobody."""
        return float(self.score_samples(X).mean())

    def _positive_variances(self) -> tuple[FloatArray, float]:
        """Return variances along the components, and along each of the other directions.

        The likelihood of a row has no bound where one is 0: what noise left below a thousandth of
        their mean is taken for that, and their mean, where noise left nothing, for the largest that
        rows of bounded length can have.
        """
        rest = self.noise_variance_
        k, d = self.components_.shape
        mean = (float(self.explained_variance_.sum()) + (d - k) * rest) / d
        least = mean / 1000 or self._largest_mean
        return np.maximum(self.explained_variance_, max(rest, least)), max(rest, least)

    @property
    def _deviations(self) -> FloatArray:
        """What whitening divides by: a variance that noise left at 0 is as the least above 0."""
        found = self.explained_variance_
        least = found[found > 0].min(initial=np.inf)
        deviations: FloatArray = np.sqrt(np.maximum(found, least if np.isfinite(least) else 1.0))
        return deviations

    def _say_unprotected(self, name: str) -> None:
        if not self._transformed.said:
            self._transformed.said = True
            warnings.warn(
                f"Rows seen through private components are still rows: what {name} returns is not "
                "protected.",
                PrivacyWarning,
                stacklevel=3,
            )

    @property
    def expected_failed_checks(self) -> dict[str, str]:
        """Which of scikit-learn's checks this estimator fails, and why; for `check_estimator`.

        None, unless something about the rows is to be found before they are summed up.
        """
        declared = self._declared
        if not declared.asks_rows:
            return {}
        reason = f"partial_fit sees each row once, and {declared.asks_rows} would take another look"
        return dict.fromkeys(
            ("check_fit_score_takes_y", "check_n_features_in_after_fitting"), reason
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether a release was made; sums of rows alone are none."""
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: float32 stays float32, and sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> Any:
        """Return the state, with the budgets that hold where it is packed."""
        taken = carried()
        return {**super().__getstate__(), **({"_budgets": taken} if taken[1] else {})}

    def __setstate__(self, state: Any) -> None:
        """Take the state, and let those budgets hold in another process."""
        kept = dict(state)
        received(kept.pop("_budgets", (os.getpid(), ())))
        super().__setstate__(kept)

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the features; empty where the rows have none."""
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(self.components_)

    # --- what fit is made of ------------------------------------------------------------------

    @property
    def _declared(self) -> Entries:
        """How rows are to be prepared."""
        return checked(
            self.center, self.scale, self.row_bound, self.bounds, self.count, self.shares
        )

    def _check_parameters(self) -> Entries:
        """Return what is declared of the rows; the data is not needed for it."""
        self._check_types()
        k = self.n_components
        whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k >= 1
        if not (k is None or whole or is_share(k)):
            raise InvalidSetting(
                "n_components",
                "a whole number of at least 1, a share between 0 and 1, or None",
                k,
            )
        if not (is_share(self.variance_share) or self.variance_share in (0, 0.0)):
            raise InvalidSetting("variance_share", "from 0 to below 1", self.variance_share)
        if self.variance_share == 0 and is_share(k):
            raise InvalidSetting(
                "variance_share", "above 0 where n_components is a share of the variance", 0
            )
        if self.relation not in tuple(Relation):
            raise InvalidSetting("relation", f"one of {', '.join(Relation)}", self.relation)
        declared = self._declared
        Budget(self.epsilon, self.delta or 0.0)
        if self.ledger is not None and self.delta is None:
            raise InvalidSetting("delta", f"{DELTA_STATED}, where a ledger is given", None)
        for word in self.accept:
            if word not in _WORDS:
                raise InvalidSetting("accept", f"among {', '.join(_WORDS)}", word)
        if self.mechanism != AUTO:
            parse_variant(self.mechanism)
        return declared

    def _check_types(self) -> None:
        """Raise `InvalidSetting` where a parameter is of a kind that it never is."""
        a_word = ("relation", "scale", "count")
        for name, kinds, allowed in (
            *((name, (str,), "a word") for name in a_word),
            ("mechanism", (str, Mechanism), "a word or a Mechanism"),
            ("center", (str, type(None)), "a word or None"),
            ("row_bound", (Real, str, type(None)), BOUND_ALLOWED),
            ("delta", (Real, type(None)), "a number or None"),
            ("epsilon", (Real,), "a number"),
            ("variance_share", (Real,), "from 0 to below 1"),
            ("shares", (Mapping, type(None)), "a mapping from steps to shares, or None"),
            ("ledger", (str, Path, type(None)), "a path or None"),
            ("whiten", (bool, np.bool_), "True or False"),
            ("allow_refuted", (bool, np.bool_), "True or False"),
            ("accept", (tuple, list, set, frozenset), "a tuple of words"),
        ):
            value = getattr(self, name)
            if not isinstance(value, kinds) or (Real in kinds and isinstance(value, bool)):
                raise InvalidSetting(name, allowed, _shown(value))

    def _chosen(
        self, declared: Entries, n: int, d: int, budget: Budget
    ) -> tuple[PreparedMechanism, str]:
        """Return what will run, and why where it was picked; public numbers alone decide."""
        domain = Domain.unbounded(d) if declared.row_bound == Entry() else Domain.ball(d)
        relation, private = Relation(self.relation), PrivateSteps.of(declared)
        named = None if self.mechanism == AUTO else parse_variant(self.mechanism)
        k = self.n_components
        if k is None or k == d or is_share(k):
            # the last direction is what the others leave
            k = d if named is not None and named.info.release != "subspace" else d - 1
        if not 1 <= k <= d:
            raise InvalidSetting("n_components", f"a whole number from 1 to {d}", k)
        problem = Problem(n, d, int(k), relation, domain)
        picked = ""
        if named is None:
            whole, picked = picked_for(problem, budget, private, self.spectrum)
        else:
            named.check(problem, budget)
            whole = prepared_mechanism(named, problem, budget, private)
        every = is_share(self.n_components)
        whole = with_variances(whole, self.variance_share, every=every)
        if self.whiten and not has_variances(whole):
            raise InvalidSetting(
                "variance_share", "above 0 where whiten needs variances", self.variance_share
            )
        return whole, picked

    def _check_claim(self, whole: PreparedMechanism, status: Status) -> None:
        if self.allow_refuted or status.verdict in (
            Verdict.HOLDS,
            Verdict.LOOSE,
            Verdict.APPROXIMATE,
        ):
            return
        raise CannotRun(
            whole.mechanism.text,
            f"{status.words} here; allow_refuted=True runs it all the same. {status.evidence}",
        )

    def _check_words(self, whole: PreparedMechanism, status: Status) -> None:
        """Raise where a ledger needs an explicit word that ``accept`` does not hold."""
        claim = _claim(whole) or whole.budget
        needed = words_needed(claim.epsilon, claim.delta, whole.problem.n)
        if status.verdict is Verdict.APPROXIMATE:
            needed[APPROXIMATE] = _WORDS[APPROXIMATE]
        for word, meaning in needed.items():
            if word not in self.accept:
                raise CannotRun(
                    whole.mechanism.text,
                    f"{meaning}; accept=({word!r},) lets it into a ledger all the same",
                )

    def _seed(self) -> int:
        if self.random_state is None:
            return secrets.randbits(63)
        warnings.warn(
            "A fixed random_state repeats the noise: whoever knows it can subtract it. Leave it "
            "None for a release.",
            PrivacyWarning,
            stacklevel=3,
        )
        if isinstance(self.random_state, (int, np.integer)):
            if self.random_state < 0:
                raise InvalidSetting("random_state", "at least 0", self.random_state)
            return int(self.random_state)
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**63 - 1))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        raise InvalidSetting(
            "random_state", "None, a whole number or a NumPy generator", self.random_state
        )

    def _spend(self, ledger: Ledger, whole: PreparedMechanism, status: Status) -> None:
        spent = whole.spent
        if spent is None or not np.isfinite(spent.epsilon):
            raise CannotRun(
                whole.mechanism.text, "no epsilon describes it, so no ledger can take it down"
            )
        # a budget has a range, and less than its least is taken down as the least
        least, most = EPSILON_RANGE
        parts = whole.mechanism.calibrate(whole.problem, whole.rest).parts
        known = bool(parts) and whole.mechanism.row_profile(whole.problem, whole.rest) is None
        settings = {name: str(value) for name, value in self.get_params(deep=False).items()}
        text = "\n".join(f"{name}={settings[name]}" for name in sorted(settings))
        budget = Budget(min(max(spent.epsilon, least), most), spent.delta)
        ledger.spend(
            Spend(
                mechanism=whole.mechanism.text,
                epsilon=budget.epsilon,
                delta=budget.delta,
                rho=rho_of((*whole.preparation.parts, *parts)) if known else None,
                purpose=FIT,
                settings=hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
                approximate=status.verdict is Verdict.APPROXIMATE,
            ),
            whole.problem.relation,
        )

    def _release(
        self,
        rows: Rows,
        sums: ByLength | None,
        public: Transform,
        whole: PreparedMechanism,
        seed: int,
    ) -> None:
        """Prepare and release, and keep what came out."""
        mechanism, d = whole.mechanism, rows.d
        plan = whole.preparation
        prepared = run(rows.source, public, plan, Draws.trials(seed, "prepare", [0]), moments=False)
        calibration = mechanism.calibrate(whole.problem, whole.rest)
        moment = SecondMoment.of_lengths(sums or rows.lengths(prepared.transform(public, 0)), d)
        if mechanism.needs_rows and not mechanism.by_length:
            assert rows.array is not None
            own = prepared.bounded(np.asarray(rows.array, dtype=np.float64), public, 0)
            moment = SecondMoment(moment.A, rows.n, own)
        streams = Named(seed, mechanism.key, range(1))
        (release,) = simulate(
            [Trials(mechanism, calibration, moment, streams)], lambda _, release: release
        )
        self.mean_, self.scale_ = prepared.center[0], prepared.scale[0]
        self.row_bound_ = float(prepared.row_bound[0])
        self.n_samples_ = round(float(prepared.count[0]))
        for name in _SOMETIMES:
            if hasattr(self, name):
                delattr(self, name)
        unit = float(prepared.unit[0])
        if release.radius is not None:
            self.clipping_radius_ = float(release.radius[0]) * unit
        directions = release.components[0]
        if self._from_all(d):
            directions = _completed(directions)
        values = release.eigenvalues if release.eigenvalues is not None else release.variances
        if whole.preparation.private.variance:
            draws = Draws.trials(seed, "variances", [0])
            along, radius = _bought(moment, release, directions, whole.preparation, draws)
            if VARIANCE_RADIUS in whole.preparation.noises:
                self.variance_radius_ = radius * unit
            order = np.argsort(-along[:-1], kind="stable")
            directions = directions[:, order]
            unit *= radius
            self._keep_variances(along[:-1][order], along[-1], d, unit**2)
        elif values is not None:
            k = directions.shape[1]
            self._keep_variances(values[0, :k], values[0, k:].sum(), d, unit**2)
            unit = getattr(self, "clipping_radius_", unit)
        self._largest_mean = unit**2 / d
        self.n_components_ = self._count_kept(d)
        # alone in the rows' precision: squares of single ones leave its range
        self.components_ = np.ascontiguousarray(
            directions[:, : self.n_components_].T, dtype=rows.dtype
        )

    def _from_all(self, d: int) -> bool:
        """Return whether components are taken from a whole basis."""
        return self.n_components is None or self.n_components == d or is_share(self.n_components)

    def _keep_variances(self, along: FloatArray, rest: float, d: int, unit: float) -> None:
        """Keep noisy variances along directions in order, and what is told of the rest."""
        along, k = along * unit, d
        reached = np.cumsum(np.maximum(along, 0.0))
        total = max(float(along.sum() + rest * unit), float(reached[-1]))
        if isinstance(self.n_components, (float, np.floating)):
            k = int(np.searchsorted(reached, self.n_components * total)) + 1
        k = min(k, len(along))
        self.explained_variance_ = np.maximum(along[:k], 0.0)
        self.explained_variance_ratio_ = self.explained_variance_ / (total or 1.0)
        self.singular_values_ = np.sqrt(self.n_samples_ * self.explained_variance_)
        self.noise_variance_ = (total - float(reached[k - 1])) / (d - k) if k < d else 0.0

    def _count_kept(self, d: int) -> int:
        if hasattr(self, "explained_variance_"):
            return len(self.explained_variance_)
        return int(self.n_components or d)


def _shown(value: object) -> object:
    """Return a number or a word as it is, and of anything else its kind."""
    return value if isinstance(value, (str, Real)) else f"a {type(value).__name__}"


def _completed(directions: FloatArray) -> FloatArray:
    """Return d orthonormal columns, the last of which is what the others leave."""
    if directions.shape[1] == len(directions):
        return directions
    return np.hstack([directions, fix_signs(null_space(directions.T)[None])[0]])


def _bought(
    moment: SecondMoment, release: Release, directions: FloatArray, plan: Preparation, draws: Draws
) -> tuple[FloatArray, float]:
    """Return noisy variances along directions and of the rest, and what they are in units of."""
    radius = None
    if VARIANCE_RADIUS in plan.noises:
        radius = float(radius_to_cut(moment.lengths, plan, draws)[0])
    elif release.radius is not None:
        radius = float(release.radius[0])
    if radius is None:
        exact = squares_along(directions, moment.A)
    else:
        exact = moment.lengths.squares_along(directions, radius)
    found = noisy_variances(exact, plan, draws)[0]
    if directions.shape[1] == len(directions):
        found[-1] = 0.0  # nothing is left, and what was said of it was noise
    return found, radius or 1.0


def _claim(whole: PreparedMechanism) -> Budget | None:
    """Return what is promised of preparation and release together."""
    own = whole.mechanism.claim(whole.problem, whole.rest)
    if own is None:
        return None
    pure = own.delta == 0 and whole.preparation.pure
    return Budget(whole.budget.epsilon, 0.0 if pure else whole.budget.delta)
