"""Score a learner on rows that it has not learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import InvalidSetting
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.worker import own_process
from dpviz.simulation.tasks.learners import (
    CLASSIFICATION,
    REGRESSION,
    Labels,
    Learner,
    Parameters,
    fitted,
    learner_of,
)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows and their labels.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Labels, as texts or numbers.
    """

    rows: FloatArray
    labels: Labels

    def projected(self, components: FloatArray) -> Labelled:
        """Return the rows in the coordinates of components, shape (d, k), with the same labels."""
        return Labelled(self.rows @ components, self.labels)


def split(
    n: int, shares: Sequence[float], rng: np.random.Generator
) -> tuple[NDArray[np.intp], ...]:
    """Return disjoint random parts of n rows.

    Parameters
    ----------
    n : int
    shares : sequence of float
        Share of each part, above 0; the shares sum to at most 1. Other rows are in no part.
    rng : Generator

    Returns
    -------
    tuple of ndarray
        Row numbers of each part, in random order.

    Raises
    ------
    InvalidSetting
        If the shares are not legal, or a part would be empty.
    """
    if not shares or min(shares) <= 0 or sum(shares) > 1 + 1e-9:
        raise InvalidSetting("shares", "above 0, with a sum of at most 1", tuple(shares))
    ends = np.rint(n * np.minimum(np.cumsum(shares), 1.0)).astype(int)
    sizes = np.diff(ends, prepend=0)
    if sizes.min() < 1:
        raise InvalidSetting("the number of rows", "enough for one row in each share", n)
    order = rng.permutation(n)
    return tuple(np.split(order[: ends[-1]], ends[:-1]))


def score_projected(
    learner: str,
    components: FloatArray,
    train: Labelled,
    test: Labelled,
    seed: int,
    *,
    parameters: Parameters | None = None,
    numbers: Sequence[int] | None = None,
) -> FloatArray:
    """Return the score of a learner after projection on each of several subspaces.

    Training and test rows are projected, the learner learns from the projected
    training rows with their true labels, and predicts the projected test rows.

    Parameters
    ----------
    learner : str
        Key of `LEARNERS`.
    components : ndarray of shape (trials, d, k)
    train, test : Labelled
        Training and test rows, in the coordinates of the components.
    seed : int
        Seed of the streams, named (seed, learner, trial), for folds and random estimators.
    parameters : mapping, optional
        Fixed parameters of the estimator (``C``; ``alpha``; ``alpha`` and
        ``gamma``; ``n_clusters``). If not given, they are chosen by
        cross-validation within the training rows; ``n_clusters`` is the number
        of labels in the training rows.
    numbers : sequence of int, optional
        Trial numbers; by default they start at 0.

    Returns
    -------
    ndarray of shape (trials,)
        Accuracy, root mean squared error in units of the labels, or adjusted
        Rand index.
    """
    method = learner_of(learner)
    each = zip(range(len(components)) if numbers is None else numbers, components, strict=True)
    scores = [
        score_learned(
            method, train.projected(frame), test.projected(frame), seed, number, parameters
        )
        for number, frame in each
    ]
    return np.array(scores)


def score_guess(learner: str, train: Labelled, test: Labelled) -> float:
    """Return the score of a constant guess: the majority class, the mean, or one cluster."""
    method = learner_of(learner)
    if method.kind == REGRESSION:
        guess = train.labels.mean()
    elif method.kind == CLASSIFICATION:
        values, counts = np.unique(train.labels, return_counts=True)
        guess = values[counts.argmax()]
    else:
        guess = 0
    return method.score.measure(test.labels, np.full(len(test.labels), guess))


def score_learned(
    learner: Learner,
    train: Labelled,
    test: Labelled,
    seed: int,
    number: int,
    parameters: Parameters | None,
    tick: Callable[[], object] | None = None,
) -> float:
    """Return the test score of a learner fitted to the training rows in one trial.

    Parameters are as in `score_projected`, with these additions:

    number : int
        Trial number.
    tick : callable, optional
        A function called before each fit, and repeatedly while a long fit runs in its own process;
        an exception from it ends the work.
    """
    state = int(generator(seed, "learner", learner.key, number).integers(2**31 - 1))
    facts = (learner.key, train, test, state, parameters)
    if tick is None or not learner.is_long(train.rows, train.labels):
        return _learned(*facts, tick)

    def told() -> None:
        tick()

    # A tick may cancel the work, but a long fit calls none, so use a process of its own.
    with cancelled_by(told), own_process() as run:
        return float(run(_learned, *facts))


def _learned(
    key: str,
    train: Labelled,
    test: Labelled,
    state: int,
    parameters: Parameters | None,
    tick: Callable[[], object] | None = None,
) -> float:
    learner = learner_of(key)
    with one_blas_thread():
        model = fitted(learner, train.rows, train.labels, state, parameters, tick)
        return learner.score.measure(test.labels, model.predict(test.rows))
