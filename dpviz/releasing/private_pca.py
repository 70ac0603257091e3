"""`PrivatePCA`: one private release of principal components behind scikit-learn's interface."""

from __future__ import annotations

import hashlib
import inspect
import os
import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from dpviz.core.entries import PRIVATE, Public
from dpviz.core.errors import CannotRun, InvalidSetting, InvalidTable
from dpviz.core.moments import SecondMoment
from dpviz.core.params import params_of
from dpviz.core.problem import (
    EPSILON_RANGE,
    Budget,
    Domain,
    Problem,
    Relation,
    Unit,
    default_delta,
)
from dpviz.core.release import Release, Status, Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.datasets.batches import Batches
from dpviz.datasets.dataframes import FrameBatches, SparseRows
from dpviz.preparation.account import PreparedMechanism, prepared_mechanism
from dpviz.preparation.draws import noisy_variances, radius_to_cut, run
from dpviz.preparation.steps import RADIUS as VARIANCE_RADIUS
from dpviz.preparation.steps import Preparation, PrivateSteps, is_share
from dpviz.preparation.transform import Transform
from dpviz.releasing.budget import carried, check_open, pay, received
from dpviz.releasing.declared import (
    APPROXIMATE,
    FIT_ACCEPT,
    FitOptions,
    PrivacyWarning,
    public_part,
)
from dpviz.releasing.ledger import FIT, Ledger, Spend, writable
from dpviz.releasing.model import ReleasedModel, kept_variances
from dpviz.releasing.options import words_needed
from dpviz.releasing.rows import Rows, Summed, file_rows
from dpviz.simulation.defaults import has_variances, picked_for, with_variances
from dpviz.simulation.simulate import Named, Trials, simulate

_SOMETIMES = (
    "clipping_radius_", "noise_variance_", "variance_radius_", "explained_variance_",
    "explained_variance_ratio_", "singular_values_",
)  # fmt: skip
_IN_MEMORY = "it needs the rows themselves in memory, as an array that fit is given"

# These errors of scikit-learn and NumPy do not quote cells of the array; other errors may.
_WITHOUT_CELLS = (
    "Found array with ", "X has ", "Input X contains ", "Input contains ",
    "The feature names should ", "Expected 2D ", "setting an array element ",
    "dtype='numeric' is not ",
)  # fmt: skip


def _has_variances(estimator: Any) -> bool:
    """Return True if variances were released, else raise AttributeError for `available_if`.

    Before a fit, return True, so that the caller's error says that the object is not fitted.
    """
    fitted = hasattr(estimator, "components_")
    if fitted and not hasattr(estimator, "explained_variance_"):
        raise AttributeError(
            "the fit released components without variances: set variance_share above 0 to "
            "release variances too"
        )
    return True


def _has_times(X: Any) -> bool:
    """Return whether a frame of any library has a column of dates, times or durations."""
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "dtypes") else getattr(X, "schema", ())
    kinds = getattr(kinds, "types", kinds)
    if not isinstance(kinds, Iterable):  # A pandas Series has only one dtype.
        kinds = (kinds,)
    return any(str(kind).lower().startswith(("date", "time", "duration")) for kind in kinds)


@contextmanager
def _without_cells(X: object, spent: str = "") -> Iterator[None]:
    """Keep the values of X out of error messages."""
    if np.ma.is_masked(X):  # Otherwise the numbers under the mask would be used as data.
        raise InvalidTable(f"X must hold finite numbers; it has masked cells{spent}.")
    if _has_times(X):  # Otherwise dates could be read as numbers of days since 1970.
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
    """Whether a fitted estimator has warned; stored in the estimator and shared by its calls."""

    def __init__(self) -> None:
        self.said = False


def _signature() -> inspect.Signature:
    """Return the signature of `PrivatePCA`; all parameters after the first are keyword-only."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = [inspect.Parameter("self", kinds[0])]
    for name, param in params_of(FitOptions).items():
        kind = kinds[name != "n_components"]
        own.append(inspect.Parameter(name, kind, default=param.default))
    return inspect.Signature(own)


_SIGNATURE = _signature()


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components with differential privacy.

    Each call of ``fit`` makes one release and uses its budget. A fit learns nothing from the data
    without noise, unless a parameter says ``"from data (not private)"``. ``assumed_public_`` lists
    what is taken as public.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of components, k, from 1 to the number of features; None takes all. A share between 0
        and 1 takes the fewest whose noisy variances reach that share of the total. A mechanism that
        releases a subspace then samples all directions but the last, which the others determine.
    mechanism : str or Mechanism, default="auto"
        Key or variant such as ``"mvg[theorem=3]"``. ``"auto"`` takes the mechanism that the
        measured rule of `dpviz.simulation.defaults` advises for n, d, k and the budget. With
        ``spectrum`` it takes the one predicted to capture most of it. Neither looks at the data.
    epsilon : float, default=1.0
    delta : float, default=None
        Privacy parameter. None takes the command line's default for n; 0 needs a pure mechanism.
    row_bound : float or str, default=None
        Largest length R of a centred and scaled row; longer rows are scaled down. A number must
        have been known before anybody looked at the data. ``"private"`` (or ``"private:0.8"``, a
        quantile of the row lengths) and ``"adaptive"`` find a bound with a share of the budget.
        ``"from data (not private)"`` takes the longest row and warns. None declares no bound: rows
        keep their length. Then only a mechanism that itself bounds each row's effect can run, as
        the choice of ``"auto"`` does.
    relation : {"replace", "zero-out"}, default="replace"
        Neighbouring relation: a row is replaced by any other row, or by a row of zeros.
    rows_a_person : int, default=None
        Maximum number of rows of one person. The noise then covers all of them, and ``spent_`` is
        the person's privacy loss. None means unknown: one row is protected. No row is left out; a
        person with more rows is protected less.
    center : {"none", "midpoint", "private", "from data (not private)"}, default=None
        Centre of the rows. None means ``"private"`` if bounds are given, for a share of the budget.
        Without bounds the centre must be stated, because around the origin the first component is
        the mean. ``"none"`` is for rows that are centred already.
    scale : {"none", "private", "from data (not private)"}, default="none"
    bounds : pair of float or array-like of shape (n_features,), mapping or str, default=None
        Public lowest and highest value of each feature; rows are clipped to these bounds. Private
        steps of the preparation need the bounds. ``(0, 10)`` and ``"0:10"`` are one pair for all
        features; a mapping has (low, high) of each feature by name. ``"private"`` finds one range
        about zero for all features with part of the budget. ``"from data (not private)"`` takes the
        smallest and largest values and warns.
    random_state : int, RandomState instance or None, default=None
        Source of randomness. None takes the system's entropy. A fixed state causes a warning:
        anyone who has the state can subtract the noise.
    ledger : str or path, default=None
        File in which every fit records its privacy loss before it looks at the data; see
        `dpviz.releasing.ledger`. ``dpviz ledger new`` creates it, for one neighbouring relation; a
        fit never does. A relative path becomes absolute at once, so that a copy unpickled elsewhere
        finds the same file. With a ledger, delta must be stated. The ledger does not check that all
        rows come from one table, because its folds are many arrays.
    spectrum : str or array-like, default=None
        Public guess of the eigenvalues of A = X'X/n in squared row-norm bounds, for
        ``mechanism="auto"``.
    shares : mapping of str to float, default=None
        Share of the budget for each private step: ``count``, ``range``, ``mean``, ``scale``,
        ``bound``.
    variance_share : float, default=0.1
        Share of the budget for noisy variances along the components. The share is used if only a
        subspace is released, and always if ``n_components`` is a share. 0 releases no variances.
    count : {"public", "private"}, default="public"
        Whether the number of people present is public. Under zero-out, ``"private"`` finds it with
        part of the budget; the number of rows, with absent people's zero rows, remains public.
    whiten : bool, default=False
        Whether `transform` divides coordinates by the square roots of the noisy variances.
    allow_refuted : bool, default=False
        Whether a mechanism may run although its claim is false here, or it makes no claim.
    accept : sequence of str, default=()
        Weak settings that may go into a ledger: ``"epsilon-above-10"``, ``"delta-above-1/n"``,
        ``"approximate-draws"`` (the proved law is reached only in the limit; the ledger says so).

    Attributes
    ----------
    components_ : ndarray of shape (k, n_features)
    n_components_ : int
        The number of components, k.
    mean_, scale_ : ndarray of shape (n_features,)
        Numbers that are subtracted from rows, and numbers by which rows are then divided.
    row_bound_ : float
        Row-norm bound; infinite if no bound was declared.
    clipping_radius_ : float
        Length, in scaled units, at which the mechanism clipped rows, if the mechanism found one.
        This length is released too.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (k,)
        Noisy variances in scaled units, descending, at least 0. If rows were clipped, the variances
        describe clipped rows, without the contribution of longer rows beyond the radius. Absent,
        like all that follows from them, if only a subspace is released and ``variance_share`` is 0.
    variance_radius_ : float
        Length, in scaled units, at which rows were clipped for their variances, if it used budget.
    singular_values_ : ndarray of shape (k,)
        Square roots of ``n_samples_ * explained_variance_``.
    noise_variance_ : float
        Noisy mean variance along the directions that are left out; 0 if no direction is left out.
    n_samples_ : int
        Number of rows, which is public, or the noisy number of people present.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, only if ``X`` has names.
    mechanism_ : str
        Text of the mechanism variant that ran.
    picked_ : str
        Reason for the choice of the mechanism; empty if you named it.
    claim_ : Budget or None
        The budget that the caller stated.
    spent_ : Spent or None
        Privacy loss of preparation and release together.
    status_ : Status
        Verdict on the mechanism's claim in this setting.
    assumed_public_ : tuple of str
    fits_ : int
        Number of fits of this object; each fit was a separate release.

    See Also
    --------
    dpviz.compare : Mechanisms side by side, for teaching: it looks at the true answer.
    dpviz.releasing.making.make : One real release, with noise that is safe on a computer.
    sklearn.decomposition.PCA : The same without privacy.

    Notes
    -----
    The private steps (mean, scale, row-norm bound) and the release share one budget. Gaussian steps
    compose exactly, by the squares of their mu. Pure steps compose with Gaussian steps by the known
    facts on their losses (`dpviz.accounting.accounting.Composition`). ``spent_`` is the total.

    Noise is sampled in doubles (idealised numerics): low-order bits of continuous noise can leak
    (Mironov 2012). ``python -m dpviz release`` makes a release without this weakness.

    Variances are sums over n, not n - 1. For a released matrix the variances are its eigenvalues;
    noise makes the leading ones too large. Variances from ``variance_share`` have independent noise
    of mean 0 along each released component and over the rest (`dpviz.preparation.steps`), and
    determine the order of components.

    Rows are clipped to ``bounds``, centred, scaled and clipped to ``row_bound``. Directions and
    ``explained_variance_`` describe the prepared rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dpviz import PrivatePCA
    >>> pca = PrivatePCA(2, epsilon=1.0, delta=1e-6, row_bound=60, bounds=(0, 16))
    >>> pca.fit(load_digits().data).components_.shape
    (2, 64)
    """

    def __init__(self, *stated: Any, **parameters: Any) -> None:
        bound = _SIGNATURE.bind(self, *stated, **parameters)
        bound.apply_defaults()
        for name in params_of(FitOptions):
            setattr(self, name, bound.arguments[name])

    # `FitOptions` declares the parameters. Scikit-learn and readers see them in this signature.
    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter; a ledger's relative path becomes absolute."""
        if name == "ledger" and isinstance(value, (str, Path)) and not os.path.isabs(value):
            # The path becomes absolute, so that all copies use one file if the folder changes.
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
            If a parameter is missing or wrong, the claim is false, or the ledger refuses. Then no
            budget is used.
        """
        options = self._before()
        return self._fit(options, self._rows_of(X))

    def fit_path(self, path: str | Path, columns: Sequence[str] | None = None) -> Self:
        """Make one private release of the components of a Parquet file of any size.

        The file is read several times, in batches, and is never completely in memory.

        Parameters
        ----------
        path : str or path
        columns : sequence of str, default=None
            Names of the features; None takes all columns that the file's schema declares numeric.

        Raises
        ------
        DpvizError
            As in `fit`; also if rows have missing values, or a mechanism needs the rows in memory.
        """
        options = self._before()
        return self._fit(options, self._named(file_rows(path, columns)))

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Add rows for the single release of `finalize`; add each person's rows only once.

        The object stores sums instead of rows. Until `finalize` these sums are exact, so the object
        is as secret as the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        DpvizError
            As in `fit`; also if a declared entry must first be found from the rows.
        """
        summed = getattr(self, "_summed", None)
        options = self._options if summed is not None else self._before()
        declared, named = options.entries, options.named
        if declared.asks_rows:
            raise InvalidSetting(
                declared.asks_rows,
                "stated before the fit, because partial_fit reads each row only once",
                getattr(self, declared.asks_rows) or PRIVATE,
            )
        if named is not None and named.needs_rows and not named.by_length:
            raise CannotRun(named.text, _IN_MEMORY)
        # Rows with another number of columns would belong to another table.
        fresh = summed is None and not self.__sklearn_is_fitted__()
        rows = self._rows_of(X, reset=fresh, least=1)
        public, _ = public_part(declared, None, rows.d, None, self._names)
        how = (declared.center, declared.row_bound, public.low.tobytes(), public.high.tobytes())
        if summed is None:
            summed = self._summed = Summed(rows.d, public, rows.dtype)
            self._summed_how = how
        # Sums of rows that were prepared in different ways would have no meaning.
        elif how != self._summed_how:
            raise InvalidSetting(
                "center, row_bound and bounds", "the same in every partial_fit", "other values"
            )
        with one_blas_thread():
            summed.add(rows)
        return self

    def finalize(self) -> Self:
        """Make one private release of all rows given to `partial_fit`, and delete their sums."""
        summed = getattr(self, "_summed", None)
        if summed is None or summed.sums.n < 2:
            raise InvalidTable("call partial_fit with at least 2 rows in all before finalize")
        options = self._before()
        rows = Rows(InBlocks(np.empty((0, summed.d))), summed.sums.n, summed.d, summed.dtype)
        self._fit(options, rows, summed.sums)
        # The exact sums of rows are deleted, because they would reveal what the noise hides.
        del self._summed, self._summed_how
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return coordinates of rows along the private components, shape (n_samples, n_components).

        The components are private; the coordinates depend on the rows of ``X`` and are not private.
        """
        check_is_fitted(self)
        with _without_cells(X):
            rows: Any = validate_data(
                self, X, accept_sparse=True, dtype=[np.float64, np.float32], reset=False
            )
        self._say_unprotected("transform")
        model = self._model
        along = model.transform(rows)
        return np.asarray(along / model.deviations if self.whiten else along, dtype=rows.dtype)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Return rows of the original space with the given coordinates along the components."""
        check_is_fitted(self)
        with _without_cells(X):
            along = check_array(X, dtype=[np.float64, np.float32])
        if along.shape[1] != self.n_components_:
            raise InvalidTable(
                f"X has {along.shape[1]} columns, but the fit has {self.n_components_} components."
            )
        model = self._model
        back = model.inverse_transform(along * model.deviations if self.whiten else along)
        return np.asarray(back, dtype=along.dtype)

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def get_covariance(self) -> FloatArray:
        """Return the covariance about ``mean_``, in units of the table, shape (d, d).

        The model is the one of scikit-learn's PCA: the noisy variances along the components and
        ``noise_variance_`` along all other directions.
        """
        return self._model.covariance()

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def get_precision(self) -> FloatArray:
        """Return the inverse of the covariance, shape (d, d)."""
        return self._model.precision()

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-likelihood of each row, shape (n_samples,), under the released model.

        Like `transform`'s result, the likelihood depends on the rows of ``X`` and is not private.
        """
        check_is_fitted(self)
        with _without_cells(X):
            rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        self._say_unprotected("score")
        return self._model.score_samples(rows)

    @available_if(_has_variances)  # type: ignore[untyped-decorator]
    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the mean log-likelihood of rows; the mean, and a choice by it, are not private."""
        return float(self.score_samples(X).mean())

    @property
    def expected_failed_checks(self) -> dict[str, str]:
        """Return the checks of scikit-learn that this estimator fails, with reasons.

        Return None, unless a fact about the rows must be found before they are summed.
        """
        asks = self._options.entries.asks_rows
        if not asks:
            return {}
        reason = f"partial_fit sees each row once, but {asks} would need a second look"
        return dict.fromkeys(
            ("check_fit_score_takes_y", "check_n_features_in_after_fitting"), reason
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether a release was made; sums of rows alone are not a release."""
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: float32 stays float32, and sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> Any:
        """Return the state for pickling, with the active budgets if there are any."""
        taken = carried()
        return {**super().__getstate__(), **({"_budgets": taken} if taken[1] else {})}

    def __setstate__(self, state: Any) -> None:
        """Restore a pickled state, and activate its budgets in another process."""
        kept = dict(state)
        received(kept.pop("_budgets", (os.getpid(), ())))
        super().__setstate__(kept)

    # --- what fit is made of ------------------------------------------------------------------

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the features; empty if the rows have none."""
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(self.components_)

    @property
    def _options(self) -> FitOptions:
        """The checked parameters."""
        return FitOptions(**self.get_params(deep=False))

    @property
    def _model(self) -> ReleasedModel:
        """The released model."""
        check_is_fitted(self)
        variances = getattr(self, "explained_variance_", None)
        rest = getattr(self, "noise_variance_", 0.0)
        return ReleasedModel(
            self.components_, self.mean_, self.scale_, variances, rest, self._largest_mean
        )

    def _say_unprotected(self, name: str) -> None:
        if not self._transformed.said:
            self._transformed.said = True
            warnings.warn(
                "Rows projected on private components are still rows, so the result of "
                f"{name} is not private.",
                PrivacyWarning,
                stacklevel=3,
            )

    def _before(self) -> FitOptions:
        """Return the checked options; raise if a budget is used up, before looking at any value."""
        options = self._options
        if options.ledger is not None:
            Ledger(Path(options.ledger)).check(
                # The cost as a rho depends on n, so it is computed only once n is known.
                Spend(
                    str(self.mechanism),
                    options.epsilon,
                    options.delta or 0.0,
                    rho=0.0,
                    rows=options.rows_a_person or 0,
                ),
                Relation(options.relation),
                Unit.ROW if options.rows_a_person is None else Unit.PERSON,
            )
        check_open()
        return options

    def _rows_of(self, X: Any, *, reset: bool = True, least: int = 2) -> Rows:
        """Return the rows of a dense or sparse array or a Dask frame, without copying them."""
        if hasattr(type(X), "collect"):  # Only a lazy data frame has a method `collect`.
            X = X.collect()
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
            if array.dtype.kind == "O":  # Arrow tables pass decimal numbers as objects.
                array = array.astype(np.float64)
        if array.dtype.kind not in "fiub":
            raise InvalidTable("X must hold numbers: nothing was spent.")
        if sparse.issparse(array):
            return Rows.of_batches(SparseRows(array, "X"))
        return Rows.of_array(array)

    def _named(self, source: Batches) -> Rows:
        """Return the rows of a source in batches with named columns."""
        rows = Rows.of_batches(source)
        self.feature_names_in_ = np.array(source.columns, dtype=object)
        self.n_features_in_ = rows.d
        return rows

    def _fit(self, options: FitOptions, rows: Rows, sums: ByLength | None = None) -> Self:
        n, d = rows.n, rows.d
        budget = Budget(
            options.epsilon, default_delta(n) if options.delta is None else options.delta
        )
        whole, picked = _chosen(options, n, d, budget, again=sums is None)
        mechanism = whole.mechanism
        unread = rows.array is None and (sums is not None or not mechanism.passes)
        if mechanism.needs_rows and not mechanism.by_length and unread:
            raise CannotRun(mechanism.text, _IN_MEMORY)
        status = mechanism.status(whole.problem, whole.rest)
        _check_claim(options, whole, status)
        ledger = None if options.ledger is None else Ledger(Path(options.ledger))
        public, assumed = public_part(options.entries, rows, d, whole, self._names)
        seed = _seed(options.random_state)
        given = {name: str(value) for name, value in self.get_params(deep=False).items()}
        text = "\n".join(f"{name}={given[name]}" for name in sorted(given))
        settings = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        spend = _spend_of(whole, status, settings, options.rows_a_person or 0)
        pay(spend, whole.problem, mechanism.text, ledger)
        with one_blas_thread():
            self._release(options, rows, sums, public, whole, seed)
        self.mechanism_, self.picked_ = mechanism.text, picked
        self.claim_, self.spent_, self.status_ = _claim(whole), whole.spent, status
        self.assumed_public_ = (*assumed, *mechanism.assumed_public)
        self.fits_ = getattr(self, "fits_", 0) + 1
        self._transformed = _Once()
        return self

    def _release(
        self,
        options: FitOptions,
        rows: Rows,
        sums: ByLength | None,
        public: Transform,
        whole: PreparedMechanism,
        seed: int,
    ) -> None:
        """Prepare and release the rows, and store the results."""
        mechanism, plan, d = whole.mechanism, whole.preparation, rows.d
        prepared = run(rows.source, public, plan, Draws.trials(seed, "prepare", [0]), moments=False)
        calibration = mechanism.calibrate(whole.problem, whole.rest)
        change = prepared.transform(public, 0)
        moment = SecondMoment.of_lengths(sums or rows.lengths(change), d)
        if mechanism.needs_rows and not mechanism.by_length and rows.array is None:
            moment = moment.with_lengths(moment.lengths, rows.blocks(change))
        elif mechanism.needs_rows and not mechanism.by_length:
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
            self.__dict__.pop(name, None)
        unit = float(prepared.unit[0])
        if release.radius is not None:
            self.clipping_radius_ = float(release.radius[0]) * unit
        directions = release.components[0]
        if options.from_all(d):
            directions = _completed(directions)
        k = directions.shape[1]
        values = release.eigenvalues if release.eigenvalues is not None else release.variances
        variances = None
        if plan.private.variance:
            draws = Draws.trials(seed, "variances", [0])
            along, radius = _bought(moment, release, directions, plan, draws)
            if VARIANCE_RADIUS in plan.noises:
                self.variance_radius_ = radius * unit
            order = np.argsort(-along[:-1], kind="stable")
            directions = directions[:, order]
            unit *= radius
            variances = along[:-1][order] * unit**2, along[-1] * unit**2
        elif values is not None:
            variances = values[0, :k] * unit**2, values[0, k:].sum() * unit**2
            unit = getattr(self, "clipping_radius_", unit)
        self._largest_mean = unit**2 / d
        k = int(options.n_components or d)
        if variances is not None:
            share = options.n_components if is_share(options.n_components) else None
            kept, self.noise_variance_ = kept_variances(*variances, d, share)
            self.explained_variance_, k = kept, len(kept)
            self.singular_values_ = np.sqrt(self.n_samples_ * kept)
        self.n_components_ = k
        # Only components get the dtype of the rows: squares of float32 values may overflow.
        self.components_ = np.ascontiguousarray(directions[:, :k].T, dtype=rows.dtype)
        if variances is not None:
            self.explained_variance_ratio_ = self.explained_variance_ / (self._model.total or 1.0)


def _chosen(
    options: FitOptions, n: int, d: int, budget: Budget, *, again: bool
) -> tuple[PreparedMechanism, str]:
    """Return the mechanism to run, and the reason if it was chosen here from public numbers."""
    entries, named, k = options.entries, options.named, options.n_components
    if options.from_all(d):
        # The last direction is known once all other directions are.
        k = d if named is not None and named.info.release != "subspace" else d - 1
    assert k is not None
    if not 1 <= k <= d:
        raise InvalidSetting("n_components", f"a whole number from 1 to {d}", k)
    domain = Domain.unbounded(d) if entries.row_bound == Public() else Domain.ball(d)
    problem = Problem(
        n, d, int(k), Relation(options.relation), domain, rows_a_person=options.rows_a_person
    )
    private, picked = PrivateSteps.of(entries), ""
    if named is None:
        whole, picked = picked_for(problem, budget, private, options.spectrum, again=again)
    else:
        named.check(problem, budget)
        whole = prepared_mechanism(named, problem, budget, private)
    every = is_share(options.n_components)
    whole = with_variances(whole, options.variance_share, every=every)
    if options.whiten and not has_variances(whole):
        raise InvalidSetting(
            "variance_share", "above 0, because whiten needs variances", options.variance_share
        )
    return whole, picked


def _check_claim(options: FitOptions, whole: PreparedMechanism, status: Status) -> None:
    """Raise if a claim is false, or if a ledger needs an explicit word that is missing."""
    text, verdict = whole.mechanism.text, status.verdict
    sound = (Verdict.HOLDS, Verdict.LOOSE, Verdict.APPROXIMATE)
    if not (options.allow_refuted or verdict in sound):
        raise CannotRun(
            text, f"{status.words} here; allow_refuted=True allows the fit. {status.evidence}"
        )
    if options.ledger is None:
        return
    claim = _claim(whole) or whole.budget
    needed = words_needed(claim.epsilon, claim.delta, whole.problem.n)
    if verdict is Verdict.APPROXIMATE:
        needed[APPROXIMATE] = FIT_ACCEPT[APPROXIMATE]
    for word, meaning in needed.items():
        if word not in options.accept:
            raise CannotRun(text, f"{meaning}; to record it in a ledger, set accept=({word!r},)")


def _seed(state: Any) -> int:
    if state is None:
        return secrets.randbits(63)
    warnings.warn(
        "A fixed random_state repeats the noise, and anyone who knows the state can "
        "subtract it. Leave it None for a release.",
        PrivacyWarning,
        stacklevel=4,
    )
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**63 - 1))
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    return int(state)


def _spend_of(whole: PreparedMechanism, status: Status, settings: str, rows: int) -> Spend | None:
    """Return a fit's spend for a ledger, or None if no epsilon describes the fit."""
    spent, mechanism = whole.spent, whole.mechanism
    if spent is None or not np.isfinite(spent.epsilon):
        return None
    # `Budget` has a least epsilon, so a smaller epsilon is recorded as this minimum.
    least, most = EPSILON_RANGE
    parts = mechanism.calibrate(whole.problem, whole.rest).parts
    known = bool(parts) and mechanism.row_profile(whole.problem, whole.rest) is None
    return Spend(
        mechanism=mechanism.text,
        epsilon=min(max(spent.epsilon, least), most),
        delta=spent.delta,
        rho=rho_of((*whole.preparation.parts, *parts)) if known else None,
        purpose=FIT,
        settings=settings,
        approximate=status.verdict is Verdict.APPROXIMATE,
        rows=rows,
        composed=writable(whole.composed),
    )


def _completed(directions: FloatArray) -> FloatArray:
    """Return d orthonormal columns; the other columns determine the last one."""
    if directions.shape[1] == len(directions):
        return directions
    return np.hstack([directions, fix_signs(null_space(directions.T)[None])[0]])


def _bought(
    moment: SecondMoment, release: Release, directions: FloatArray, plan: Preparation, draws: Draws
) -> tuple[FloatArray, float]:
    """Return noisy variances along directions and of the rest, and their unit of length."""
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
        found[-1] = 0.0  # All components are released, so what remains is only noise.
    return found, radius or 1.0


def _claim(whole: PreparedMechanism) -> Budget | None:
    """Return the claim for preparation and release together."""
    own = whole.mechanism.claim(whole.problem, whole.rest)
    if own is None:
        return None
    pure = own.delta == 0 and whole.preparation.pure
    return Budget(whole.budget.epsilon, 0.0 if pure else whole.budget.delta)
