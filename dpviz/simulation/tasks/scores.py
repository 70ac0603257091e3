"""Scores of what is learned from some rows, on others."""

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
        Texts or numbers.
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
        Share of each part, above 0; together at most 1. Rows beyond their sum
        are in no part.
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
        raise InvalidSetting("shares", "above 0 and at most 1 together", tuple(shares))
    ends = np.rint(n * np.minimum(np.cumsum(shares), 1.0)).astype(int)
    sizes = np.diff(ends, prepend=0)
    if sizes.min() < 1:
        raise InvalidSetting("rows", "enough for one in every part", n)
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
        Rows in the coordinates of the components.
    seed : int
        Streams are named (seed, learner, trial): folds, and estimators that draw.
    parameters : mapping, optional
        Fixed parameters of the estimator (``C``; ``alpha``; ``alpha`` and
        ``gamma``; ``n_clusters``). If not given, they are chosen by
        cross-validation within the training rows; ``n_clusters`` is the number
        of labels in the training rows.
    numbers : sequence of int, optional
        Trial numbers; from 0 if not given.

    Returns
    -------
    ndarray of shape (trials,)
        Accuracy, root mean squared error in units of the labels, or adjusted
        Rand index.
    """
    chosen = learner_of(learner)
    each = zip(range(len(components)) if numbers is None else numbers, components, strict=True)
    scores = [
        score_learned(
            chosen, train.projected(frame), test.projected(frame), seed, number, parameters
        )
        for number, frame in each
    ]
    return np.array(scores)


def score_guess(learner: str, train: Labelled, test: Labelled) -> float:
    """Return the score of a constant guess: the majority class, the mean, or one cluster."""
    chosen = learner_of(learner)
    if chosen.kind == REGRESSION:
        guess = train.labels.mean()
    elif chosen.kind == CLASSIFICATION:
        values, counts = np.unique(train.labels, return_counts=True)
        guess = values[counts.argmax()]
    else:
        guess = 0
    return chosen.score.measure(test.labels, np.full(len(test.labels), guess))


def score_learned(
    learner: Learner,
    train: Labelled,
    test: Labelled,
    seed: int,
    number: int,
    parameters: Parameters | None,
    tick: Callable[[], object] | None = None,
) -> float:
    """Return the score on test rows of what is learned from training rows in one trial.

    Parameters are those of `score_projected`, and:

    number : int
        Of the trial.
    tick : callable, optional
        Called before each fit, and all the time while a long one goes on in a process of its
        own; what it raises ends the work.
    """
    state = int(generator(seed, "learner", learner.key, number).integers(2**31 - 1))
    given = (learner.key, train, test, state, parameters)
    if tick is None or not learner.is_long(train.rows, train.labels):
        return _learned(*given, tick)

    def told() -> None:
        tick()

    # whoever ticks may stop, and a long fit looks up nowhere
    with cancelled_by(told), own_process() as run:
        return float(run(_learned, *given))


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
