"""Audit the whole chain: from raw rows, through a private preparation, to the release.

Neighbours differ in one raw row, before clipping, centring or scaling. The attacker sees every
published value: centre, scale, row-norm bound, count and release. A logistic regression on half of
the simulated releases chooses the event; the other half counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.auditing.bounds import epsilon_bound, lower_limit, upper_limit
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Relation
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.preparation.account import PreparedMechanism
from dpviz.preparation.draws import PreparedDraws, run
from dpviz.preparation.transform import Transform

Prepare = Callable[[FloatArray, NDArray[np.bool_], Draws], PreparedDraws]
"""Maps raw rows, presence and random numbers to prepared data; tests plant faults here."""

_THRESHOLDS = 60
_MOST_FEATURES = 60


@dataclass(frozen=True)
class RawPair:
    """Two raw tables that differ in row 0.

    Attributes
    ----------
    name : str
    first, second : ndarray of shape (n, d)
    present : bool
        Whether the person of row 0 is in the second table (False: withdrawn, zero-out).
    """

    name: str
    first: FloatArray
    second: FloatArray
    present: bool


@dataclass(frozen=True)
class ChainAudit:
    """Result of an attack on the whole chain.

    Attributes
    ----------
    claimed : float
        Epsilon of the whole chain, at ``delta``.
    delta : float
    epsilon_lower : float
        Lower bound on the chain's epsilon, at the stated confidence.
    confidence : float
    pair : str
        Name of the neighbouring tables that gave the bound.
    """

    claimed: float
    delta: float
    epsilon_lower: float
    confidence: float
    pair: str

    @property
    def refuted(self) -> bool:
        """Whether the chain's privacy loss exceeds its claim."""
        return self.epsilon_lower > self.claimed


def raw_pairs(low: FloatArray, high: FloatArray, n: int, relation: Relation) -> list[RawPair]:
    """Return neighbours at corners of the bounds, with other rows in the middle or scattered."""
    d = len(low)
    middle = (low + high) / 2
    rows_there = low + (high - low) * generator(1, "others", n, d).uniform(0.3, 0.7, (n, d))
    pairs = []
    for name, others in (("the others in the middle", np.tile(middle, (n, 1))),
                         ("the others scattered", rows_there)):  # fmt: skip
        first, second = others.copy(), others.copy()
        first[0] = high
        second[0] = low
        if relation is Relation.REPLACE:
            pairs.append(
                RawPair(f"a row moves to the opposite corner, {name}", first, second, True)
            )
            # Rows at opposite corners have equal outer products; rows along two axes do not.
            along, across = others.copy(), others.copy()
            along[0] = np.where(np.arange(d) == 0, high, middle)
            across[0] = np.where(np.arange(d) == 1, high, middle)
            pairs.append(RawPair(f"an edge against another, {name}", along, across, True))
        else:
            pairs.append(RawPair(f"a corner withdrawn, {name}", first, first.copy(), False))
    return pairs


def audit_chain(
    whole: PreparedMechanism,
    public: Transform,
    *,
    trials: int = 6_000,
    seed: int = 0,
    confidence: float = 0.999,
    prepare: Prepare | None = None,
) -> ChainAudit:
    """Attack a mechanism together with its private preparation.

    Parameters
    ----------
    whole : PreparedMechanism
        Its problem sets the size of the synthetic tables; with few rows one person weighs most.
    public : Transform
    trials : int
        Simulated releases of each table; half of the releases choose the event.
    seed : int
    confidence : float
        Joint confidence over all pairs.
    prepare : callable, optional
        Replacement for the preparation that the chain accounts for.
    """
    make = prepare or (
        lambda rows, present, draws: run(rows, public, whole.preparation, draws, present)
    )
    problem = whole.problem
    claim = whole.mechanism.claim(problem, whole.rest)
    pure = whole.preparation.pure and (claim is None or claim.delta == 0)
    delta = 0.0 if pure else whole.budget.delta
    pairs = raw_pairs(public.low, public.high, problem.n, problem.relation)
    alpha = (1 - confidence) / (4 * len(pairs))  # Each order of a pair needs two limits.
    best, name = 0.0, pairs[0].name
    for index, pair in enumerate(pairs):
        everybody = np.ones(problem.n, dtype=bool)
        others = everybody.copy()
        others[0] = pair.present
        with one_blas_thread():
            sample = [
                _published(
                    whole, make, public, rows, here, generator(seed, "chain", index, side), trials
                )
                for side, (rows, here) in enumerate(
                    ((pair.first, everybody), (pair.second, others))
                )
            ]
        bound = epsilon_lower(sample[0], sample[1], delta, alpha)
        if bound > best:
            best, name = bound, pair.name
    return ChainAudit(whole.budget.epsilon, delta, best, confidence, name)


def _published(
    whole: PreparedMechanism,
    prepare: Prepare,
    public: Transform,
    rows: FloatArray,
    present: NDArray[np.bool_],
    rng: np.random.Generator,
    trials: int,
) -> FloatArray:
    """Return everything that is published, shape (trials, features)."""
    calibration = whole.mechanism.calibrate(whole.problem, whole.rest)
    draws = Draws.batch(rng, trials)
    data = prepare(rows, present, draws)
    n = whole.problem.n
    raw: list[FloatArray] = []
    if isinstance(whole.mechanism, AdditiveMechanism):
        # This release is only the moment plus scaled noise, so compute all repetitions at once.
        noise = whole.mechanism.standard_noise(whole.problem, draws)
        raw.extend((data.moments + calibration.scale * noise).reshape(trials, -1))
    for index in range(len(raw), trials):
        one = Draws.batch(rng, 1)
        moment = (
            data.moment_with_rows(rows, public, index, present)
            if whole.mechanism.needs_rows
            else data.moment(index, n)
        )
        release = whole.mechanism.release_many(moment, calibration, one)
        # The signs of a basis are arbitrary; its projection has the same information without signs.
        matrix = release.raw if release.matrix is not None else _projection(release.components)
        raw.append(matrix.reshape(-1))
    features = np.array(raw)[:, :_MOST_FEATURES]
    columns = [data.center, data.scale, data.row_bound[:, None], data.count[:, None], features]
    if data.reach is not None:
        columns.append(np.log2(data.reach)[:, None])
    return np.concatenate(columns, axis=1)


def _projection(frames: FloatArray) -> FloatArray:
    return frames @ frames.transpose(0, 2, 1)


def epsilon_lower(first: FloatArray, second: FloatArray, delta: float, alpha: float) -> float:
    """Return a lower bound on epsilon from a pair of tables, taken in both orders."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    half = len(first) // 2
    features = np.concatenate([first[:half], second[:half]])
    labels = np.repeat([1, 0], half)
    middle = np.median(features, axis=0)  # The median of both tables favours neither table.
    expansion = _expanded(features, middle)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(expansion, labels)
    scores = [model.decision_function(_expanded(table, middle)) for table in (first, second)]
    best = 0.0
    for p, q in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        levels = np.quantile(np.concatenate([p[:half], q[:half]]), np.linspace(0, 1, _THRESHOLDS))
        p_train = np.array([(p[:half] >= level).sum() for level in levels])
        q_train = np.array([(q[:half] >= level).sum() for level in levels])
        gain = epsilon_bound(
            lower_limit(p_train, half, alpha), upper_limit(q_train, half, alpha), delta
        )
        level = levels[int(np.argmax(gain))]
        rest = len(p) - half
        bound = epsilon_bound(
            lower_limit(np.array([(p[half:] >= level).sum()]), rest, alpha),
            upper_limit(np.array([(q[half:] >= level).sum()]), rest, alpha),
            delta,
        )
        best = max(best, float(bound[0]))
    return best


def _expanded(features: FloatArray, middle: FloatArray) -> FloatArray:
    return np.concatenate([features, np.square(features - middle)], axis=1)
