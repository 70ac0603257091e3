"""`PrivatePCA`: one private release of principal components behind scikit-learn's interface."""

from __future__ import annotations

import hashlib
import os
import secrets
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpviz.base.arrays import FloatArray
from dpviz.base.blas import one_blas_thread
from dpviz.base.seeding import Draws
from dpviz.errors import CannotRun, InvalidSetting, InvalidTable
from dpviz.estimator.choosing import picked_for
from dpviz.estimator.declared import AUTO, NONE, Declared, PrivacyWarning
from dpviz.mechanisms import parse_variant
from dpviz.paid.account import Chain, chain
from dpviz.paid.chain import Public, run
from dpviz.privacy.composition import rho_of
from dpviz.releasing.ledger import FIT, Ledger, Spend
from dpviz.releasing.options import ACCEPT, DELTA_STATED, words_needed
from dpviz.run.simulate import Named, Trials, simulate
from dpviz.values.problem import EPSILON_RANGE, Budget, Domain, Problem, Relation, default_delta
from dpviz.values.release import Status, Verdict

APPROXIMATE = "approximate-draws"
_WORDS = ACCEPT | {
    APPROXIMATE: "its draws have the law that was proved only in the limit, and the epsilon of "
    "that law is what would be written down"
}


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
    n_components : int, default=2
        k, from 1 to the number of features (below it where a mechanism releases a subspace).
    mechanism : str, default="auto"
        Key or variant such as ``"mvg[theorem=3]"``. ``"auto"`` takes the one that the measured
        rule of `dpviz.targets.defaults` advises for n, d, k and the budget, or with ``spectrum``
        the one that is predicted to capture most of it. Neither looks at the data.
    epsilon : float, default=1.0
    delta : float, default=None
        None is the default of the command line for this n; 0 needs a pure mechanism.
    row_bound : float or str, default=None
        Largest length R of a centred and scaled row; longer rows are scaled down. A number must
        have been known before anybody looked at the data. ``"private"`` and ``"adaptive"`` find
        one with a share of the budget, ``"from data (not private)"`` takes the longest row and
        warns. None declares nothing: rows stay as long as they come, and only a mechanism that
        bounds what each does by itself can run, as what ``"auto"`` takes does.
    relation : {"replace", "zero-out"}, default="replace"
        What one person may change: their row, or whether they are in.
    center : {"none", "midpoint", "private", "from data (not private)"}, default=None
        None is ``"midpoint"`` where bounds are given and ``"none"`` elsewhere.
    scale : {"none", "private", "from data (not private)"}, default="none"
    bounds : pair of float or array-like of shape (n_features,), or "private", default=None
        Public lowest and highest value of each feature; rows are cut to them. What is private
        about the preparation needs them. ``"private"`` buys one range about zero for all.
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
        Share of the budget of each private step: ``range``, ``mean``, ``scale``, ``bound``.
    allow_refuted : bool, default=False
        Whether a mechanism whose claim is false here, or that claims nothing, may run.
    accept : sequence of str, default=()
        What may go into a ledger all the same: ``"epsilon-above-10"``, ``"delta-above-1/n"``,
        ``"approximate-draws"`` (the law is exact only in the limit; the ledger's line says so).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    mean_, scale_ : ndarray of shape (n_features,)
        What is subtracted, and then divided by.
    row_bound_ : float
        Infinite where none was declared.
    clipping_radius_ : float
        Length, in scaled units, at which the mechanism clipped rows; only where it found one. It is
        released too.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Noisy, in scaled units, of clipped rows where rows were clipped; only where a matrix or
        variances are released.
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
    losses (`dpviz.privacy.accounting.Composition`). ``spent_`` is that account.

    Noise is drawn in doubles (idealised numerics): low-order bits of continuous noise can leak
    (Mironov 2012). ``python -m dpviz release`` makes a release without that weakness.

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
        n_components: int = 2,
        *,
        mechanism: str = AUTO,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | str | None = None,
        relation: str = "replace",
        center: str | None = None,
        scale: str = NONE,
        bounds: tuple[ArrayLike, ArrayLike] | str | None = None,
        random_state: Any = None,
        ledger: str | Path | None = None,
        spectrum: Any = None,
        shares: Mapping[str, float] | None = None,
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
        self.allow_refuted = allow_refuted
        self.accept = accept

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a parameter; a ledger's path is made absolute where it is given."""
        if name == "ledger" and isinstance(value, (str, Path)) and not os.path.isabs(value):
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
        declared = self._check_parameters()
        ledger = None if self.ledger is None else Ledger(Path(self.ledger))
        if ledger is not None:
            # before a single value is looked at
            ledger.check(
                # what it costs as a rho is known only once n is
                Spend(str(self.mechanism), self.epsilon, self.delta or 0.0, rho=0.0),
                Relation(self.relation),
            )
        again = getattr(self, "fits_", 0)
        rows: FloatArray = validate_data(
            self,
            X,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2,
            ensure_min_features=2,
        )
        if not np.isfinite(rows).all():
            raise InvalidTable(
                "X must hold finite numbers; it has NaN or infinity (inf) in it: nothing was spent."
            )
        n, d = rows.shape
        domain = Domain.unbounded(d) if declared.row_bound is None else Domain.ball(d)
        problem = Problem(n, d, self.n_components, Relation(self.relation), domain)
        budget = Budget(self.epsilon, default_delta(n) if self.delta is None else self.delta)
        wanted = declared.wanted(self.shares)
        picked = ""
        if self.mechanism == AUTO:
            whole, picked = picked_for(problem, budget, wanted, self.spectrum)
        else:
            mechanism = parse_variant(self.mechanism)
            mechanism.check(problem, budget)
            whole = chain(mechanism, problem, budget, wanted)
        status = whole.mechanism.status(problem, whole.rest)
        self._check_claim(whole, status)
        if ledger is not None:
            self._check_words(whole, status)
        public, assumed = declared.public(rows, *declared.limits(d), whole)
        seed = self._seed()
        if again:
            warnings.warn(
                f"This estimator has been fitted {again} time(s) before: every fit is a release of "
                "its own and spends its budget again.",
                PrivacyWarning,
                stacklevel=2,
            )
        if ledger is not None:
            self._spend(ledger, whole, status)
        with one_blas_thread():
            self._release(rows, public, whole, seed)
        self.mechanism_, self.picked_ = whole.mechanism.text, picked
        self.claim_, self.spent_, self.status_ = _claim(whole), whole.spent, status
        self.assumed_public_ = (*assumed, *whole.mechanism.assumed_public)
        self.fits_ = again + 1
        self._transformed = _Once()
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return rows along the private components, shape (n_samples, n_components).

        The components are private; what comes out is about the rows that go in, and is not.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if not self._transformed.said:
            self._transformed.said = True
            warnings.warn(
                "Rows seen through private components are still rows: what transform returns is "
                "not protected.",
                PrivacyWarning,
                stacklevel=2,
            )
        projected = ((rows - self.mean_) / self.scale_) @ self.components_.T
        return np.asarray(projected, dtype=np.float64)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Return rows of the original space that have these coordinates along the components."""
        check_is_fitted(self)
        back = (np.asarray(X, dtype=np.float64) @ self.components_) * self.scale_ + self.mean_
        return np.asarray(back, dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(self.components_)

    # --- what fit is made of ------------------------------------------------------------------

    def _check_parameters(self) -> Declared:
        """Return what is declared of the rows; the data is not needed for it."""
        k = self.n_components
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise InvalidSetting("n_components", "a whole number of at least 1", k)
        if self.relation not in tuple(Relation):
            raise InvalidSetting("relation", f"one of {', '.join(Relation)}", self.relation)
        declared = Declared.checked(self.center, self.scale, self.row_bound, self.bounds)
        Budget(self.epsilon, self.delta or 0.0)
        if self.ledger is not None and self.delta is None:
            raise InvalidSetting("delta", f"{DELTA_STATED}, where a ledger is given", None)
        for word in self.accept:
            if word not in _WORDS:
                raise InvalidSetting("accept", f"among {', '.join(_WORDS)}", word)
        if self.mechanism != AUTO:
            parse_variant(self.mechanism)
        return declared

    def _check_claim(self, whole: Chain, status: Status) -> None:
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

    def _check_words(self, whole: Chain, status: Status) -> None:
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

    def _spend(self, ledger: Ledger, whole: Chain, status: Status) -> None:
        spent = whole.spent
        if spent is None or not np.isfinite(spent.epsilon):
            raise CannotRun(
                whole.mechanism.text, "no epsilon describes it, so no ledger can take it down"
            )
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

    def _release(self, rows: FloatArray, public: Public, whole: Chain, seed: int) -> None:
        """Prepare and release, and keep what came out."""
        mechanism, n = whole.mechanism, len(rows)
        prepared = run(rows, public, whole.preparation, Draws.trials(seed, "prepare", [0]))
        calibration = mechanism.calibrate(whole.problem, whole.rest)
        moment = prepared.moment(0, n)
        if mechanism.needs_rows:
            moment = prepared.moment_with_rows(rows, public, 0)
        streams = Named(seed, mechanism.key, range(1))
        (release,) = simulate(
            [Trials(mechanism, calibration, moment, streams)], lambda _, release: release
        )
        self.components_ = np.ascontiguousarray(release.components[0].T)
        self.mean_, self.scale_ = prepared.center[0], prepared.scale[0]
        self.row_bound_ = float(prepared.row_bound[0])
        values = release.eigenvalues if release.eigenvalues is not None else release.variances
        for name in ("explained_variance_", "explained_variance_ratio_", "clipping_radius_"):
            if hasattr(self, name):
                delattr(self, name)
        unit = float(prepared.unit[0])
        if release.radius is not None:
            self.clipping_radius_ = float(release.radius[0]) * unit
        if values is not None:
            unit = unit**2
            self.explained_variance_ = values[0, : self.n_components] * unit
            total = float(values[0].sum()) * unit
            if total > 0:
                self.explained_variance_ratio_ = self.explained_variance_ / total


def _claim(whole: Chain) -> Budget | None:
    """Return what is promised of preparation and release together."""
    own = whole.mechanism.claim(whole.problem, whole.rest)
    if own is None:
        return None
    pure = own.delta == 0 and whole.preparation.pure
    return Budget(whole.budget.epsilon, 0.0 if pure else whole.budget.delta)
