"""The learners, with their tuning and their scores.

scikit-learn does the learning. Every learner begins with the scaling that it needs, fitted on its
training rows only. If no parameters are given, a small grid is compared by cross-validation within
the training rows, and the best parameters are fitted to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting

Labels = NDArray[Any]
Parameters = Mapping[str, Any]

CLASSIFICATION, REGRESSION, CLUSTERING = "classification", "regression", "clustering"
FOLDS = 3
_MOST_PAIRED = 5_000  # Pairwise numbers of this many rows take 0.2 GB of memory.
_LONG = 2_000_000  # A fit processes this many numbers in a tenth of a second.
_LONG_PAIRED = 2_000


@dataclass(frozen=True)
class Score:
    """A score for predictions on test rows.

    Attributes
    ----------
    key, label, help : str
    low, high : float
        Range.
    better : {"higher", "lower"}
    chance : str
        Name of the constant guess, which every learned model should beat.
    measure : callable
        A function from true labels and predictions, each (n,), to the score.
    """

    key: str
    label: str
    help: str
    low: float
    high: float
    better: str
    chance: str
    measure: Callable[[Labels, Labels], float]


def _accuracy(true: Labels, predicted: Labels) -> float:
    return float(np.mean(true == predicted))


def _rmse(true: Labels, predicted: Labels) -> float:
    return float(np.sqrt(np.mean((true - predicted) ** 2)))


def _adjusted_rand(true: Labels, predicted: Labels) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(true, predicted))


SCORES = {
    score.key: score
    for score in (
        Score(
            "accuracy",
            "accuracy",
            "Share of the test rows whose class is predicted right.",
            0.0,
            1.0,
            "higher",
            "majority class",
            _accuracy,
        ),
        Score(
            "rmse",
            "root mean squared error",
            "Root of the mean squared error on the test rows, in units of the labels given.",
            0.0,
            np.inf,
            "lower",
            "mean of the labels",
            _rmse,
        ),
        Score(
            "adjusted_rand",
            "adjusted Rand index",
            "Agreement of the clusters of the test rows with their labels: 1 if they are the same, "
            "0 on average for clusters drawn at random.",
            -0.5,
            1.0,
            "higher",
            "one cluster",
            _adjusted_rand,
        ),
    )
}


@dataclass(frozen=True)
class Learner:
    """A learner with its tuning and scores.

    Attributes
    ----------
    key, label : str
    kind : {"classification", "regression", "clustering"}
    score : Score
    about : str
        One sentence on the model, its scaling and its tuning.
    grid : callable
        A function from the number of features to the parameters compared, the most regularised
        first, so that these win a tie. The middle entry is the fixed choice.
    make : callable
        A function from parameters and a random state to an unfitted estimator of scikit-learn.
    most : int or None
        Maximum number of training rows, if more would not fit in memory.
    """

    key: str
    label: str
    kind: str
    score: Score
    about: str
    grid: Callable[[int], tuple[dict[str, Any], ...]]
    make: Callable[[Parameters, int], Any]
    most: int | None = None

    def is_long(self, rows: FloatArray, labels: Labels) -> bool:
        """Return whether one fit, which cannot be stopped, may take seconds.

        The time cannot be known beforehand: it was 0.4 s for 2,000 rows of 60 features and 50
        classes, and more than 3 minutes for 500 features.
        """
        if self.most is not None:
            return len(rows) > _LONG_PAIRED
        classes = 1 if self.kind == REGRESSION else len(np.unique(labels))
        return rows.size * classes > _LONG

    def fixed(self, features: int) -> dict[str, Any]:
        """Return the parameters that are used without tuning."""
        grid = self.grid(features)
        return grid[len(grid) // 2]


def _linear_svm(parameters: Parameters, state: int) -> Any:
    from sklearn.svm import LinearSVC

    # Use the primal solver, because it is deterministic and converges for any C.
    return LinearSVC(dual=False, max_iter=10_000, random_state=state, **parameters)


def _logistic(parameters: Parameters, state: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=10_000, random_state=state, **parameters)


def _kernel_ridge(parameters: Parameters, state: int) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(kernel="rbf", **parameters)


def _ridge(parameters: Parameters, state: int) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(**parameters)


def _k_means(parameters: Parameters, state: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(n_init=10, random_state=state, **parameters)


def _penalties(features: int) -> tuple[dict[str, Any], ...]:
    return tuple({"C": C} for C in (0.1, 1.0, 10.0))


def _ridges(features: int) -> tuple[dict[str, Any], ...]:
    return tuple({"alpha": alpha} for alpha in (100.0, 10.0, 1.0, 0.1, 0.01))


def _kernels(features: int) -> tuple[dict[str, Any], ...]:
    # If features have unit variance, points are about sqrt(2 features) apart.
    return tuple(
        {"alpha": alpha, "gamma": width / features}
        for alpha in (1.0, 0.1, 0.01)
        for width in (0.03, 0.1, 0.3)
    )


LEARNERS = {
    learner.key: learner
    for learner in (
        Learner(
            "linear_svm",
            "Linear SVM",
            CLASSIFICATION,
            SCORES["accuracy"],
            "A linear support vector machine (squared hinge) on features scaled to unit variance; "
            "C among 0.1, 1 and 10.",
            _penalties,
            _linear_svm,
        ),
        Learner(
            "logistic",
            "Logistic regression",
            CLASSIFICATION,
            SCORES["accuracy"],
            "Logistic regression on features scaled to unit variance; C among 0.1, 1 and 10.",
            _penalties,
            _logistic,
        ),
        Learner(
            "kernel_ridge",
            "Kernel ridge",
            REGRESSION,
            SCORES["rmse"],
            "Ridge regression with a Gaussian kernel on features scaled to unit variance; alpha "
            "among 0.01, 0.1 and 1, gamma among 0.03, 0.1 and 0.3 over the number of features; at "
            f"most {_MOST_PAIRED:,} training rows, because every pair of them needs a number.",
            _kernels,
            _kernel_ridge,
            _MOST_PAIRED,
        ),
        Learner(
            "ridge",
            "Ridge",
            REGRESSION,
            SCORES["rmse"],
            "Ridge regression on features scaled to unit variance; alpha among 0.01, 0.1, 1, 10 "
            "and 100.",
            _ridges,
            _ridge,
        ),
        Learner(
            "k_means",
            "k-means",
            CLUSTERING,
            SCORES["adjusted_rand"],
            "k-means with as many clusters as there are labels, on features as they are; clusters "
            "are found without labels, which only judge them.",
            lambda features: ({},),
            _k_means,
        ),
    )
}


def learner_of(key: str) -> Learner:
    """Return the learner with a key.

    Raises
    ------
    InvalidSetting
        If no learner has this key.
    """
    if key not in LEARNERS:
        raise InvalidSetting("learner", f"one of {', '.join(LEARNERS)}", key, "--learner")
    return LEARNERS[key]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean and standard deviation of each column of some rows, or of labels."""

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Scaling:
        """Return the scaling that gives these values mean 0 and unit variance."""
        mean, scale = values.mean(axis=0), values.std(axis=0)
        # Do not scale a column that is constant up to rounding.
        constant = scale <= 10 * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
        return cls(mean, np.where(constant, 1.0, scale))

    def enter(self, values: FloatArray) -> FloatArray:
        """Return values in units of the scaling."""
        numbers: FloatArray = (values - self.mean) / self.scale
        return numbers

    def leave(self, values: FloatArray) -> FloatArray:
        """Return scaled values in their original units."""
        numbers: FloatArray = values * self.scale + self.mean
        return numbers


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator with the scaling of its rows and, for regression, of its labels."""

    model: Any
    rows: Scaling | None
    labels: Scaling | None

    def predict(self, rows: FloatArray) -> Labels:
        """Return the prediction for each row, shape (n,)."""
        labels: Labels = self.model.predict(rows if self.rows is None else self.rows.enter(rows))
        return labels if self.labels is None else self.labels.leave(labels)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Training rows and labels, scaled once for every estimator that is fitted to them."""

    learner: Learner
    rows: FloatArray
    labels: Labels
    scaling: Scaling
    target: Scaling | None

    @classmethod
    def of(cls, learner: Learner, rows: FloatArray, labels: Labels) -> _Prepared:
        scaling = Scaling.of(rows)
        target = Scaling.of(labels) if learner.kind == REGRESSION else None
        targets = labels if target is None else target.enter(labels)
        return cls(learner, scaling.enter(rows), targets, scaling, target)

    def fit(self, parameters: Parameters, state: int) -> Fitted:
        model = self.learner.make(parameters, state).fit(self.rows, self.labels)
        return Fitted(model, self.scaling, self.target)


def fitted(
    learner: Learner,
    rows: FloatArray,
    labels: Labels,
    state: int,
    parameters: Parameters | None = None,
    tick: Callable[[], object] | None = None,
) -> Fitted:
    """Fit a learner to rows.

    Parameters
    ----------
    learner : Learner
    rows : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        For clustering only the number of distinct labels is read, or no label if ``parameters``
        gives ``n_clusters``.
    state : int
        Random state for folds and for estimators that use random numbers.
    parameters : mapping, optional
        Fixed parameters of the estimator; if not given, the grid is compared.
    tick : callable, optional
        A function called before each fit, so that long work can be stopped.
    """
    from sklearn import config_context

    tell = tick or (lambda: None)
    # These rows and parameters are valid. Checking them again takes longer than a small fit.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        if learner.kind == CLUSTERING:
            tell()
            return _clusters(learner, rows, labels, parameters or {}, state)
        if learner.kind == CLASSIFICATION and len(np.unique(labels)) < 2:
            from sklearn.dummy import DummyClassifier

            constant = DummyClassifier(strategy="most_frequent").fit(rows, labels)
            return Fitted(constant, None, None)
        if parameters is None:
            parameters = _tuned(learner, rows, labels, state, tell)
        tell()
        return _Prepared.of(learner, rows, labels).fit(parameters, state)


def _clusters(
    learner: Learner, rows: FloatArray, labels: Labels, parameters: Parameters, state: int
) -> Fitted:
    """Cluster rows without scaling, to keep the prepared table's distances."""
    from threadpoolctl import threadpool_limits

    clusters = parameters.get("n_clusters", len(np.unique(labels)))
    different = len(np.unique(rows, axis=0))  # There cannot be more clusters than points.
    settings = {**parameters, "n_clusters": min(clusters, different)}
    with threadpool_limits(limits=1):  # Several threads would change the last digits of sums.
        return Fitted(learner.make(settings, state).fit(rows), None, None)


def _tuned(
    learner: Learner, rows: FloatArray, labels: Labels, state: int, tell: Callable[[], object]
) -> Parameters:
    """Return the grid's parameters that score best on folds of the training rows."""
    grid = learner.grid(rows.shape[1])
    folds = _folds(learner, rows, labels, state)
    if len(grid) == 1 or not folds:
        return learner.fixed(rows.shape[1])
    fold_scores = np.empty((len(grid), len(folds)))
    for column, (inside, outside) in enumerate(folds):
        if learner.kind == CLASSIFICATION and len(np.unique(labels[inside])) < 2:
            fold_scores[:, column] = 0.0  # With one class, nothing can be learnt: score 0.
            continue
        part = _Prepared.of(learner, rows[inside], labels[inside])
        for row, parameters in enumerate(grid):
            tell()
            guess = part.fit(parameters, state).predict(rows[outside])
            fold_scores[row, column] = learner.score.measure(labels[outside], guess)
    mean = fold_scores.mean(axis=1)
    best = mean.max() if learner.score.better == "higher" else mean.min()
    # If several parameters have equal scores up to rounding, take the first ones.
    return grid[int(np.flatnonzero(np.isclose(mean, best, rtol=1e-12, atol=1e-12))[0])]


def _folds(
    learner: Learner, rows: FloatArray, labels: Labels, state: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (training, held out) of each fold; empty if there are too few rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if len(rows) < 2 * FOLDS:
        return []
    if learner.kind == CLASSIFICATION:
        _, counts = np.unique(labels, return_counts=True)
        if counts.min() >= FOLDS:  # A rarer class would be missing from some folds.
            splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=state)
            return list(splitter.split(rows, labels))
    return list(KFold(FOLDS, shuffle=True, random_state=state).split(rows))
