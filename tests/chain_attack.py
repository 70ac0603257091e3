"""An audit of the whole chain: from raw rows, over a private preparation, to the release.

Neighbours differ in one raw row, before anything is cut, centred or scaled. What an attacker sees
is everything that is published on the way: centre, scale, row bound, count and release. A logistic
regression on one half of the draws chooses the event, the other half counts it.
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
"""Raw rows, who is present and draws to what was prepared; the seam where a fault is planted."""

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
    """What an attack on the whole chain shows.

    Attributes
    ----------
    claimed : float
        Epsilon of the whole, at ``delta``.
    delta : float
    epsilon_lower : float
        What the chain costs at least, with the confidence stated.
    confidence : float
    pair : str
        The neighbours that showed it.
    """

    claimed: float
    delta: float
    epsilon_lower: float
    confidence: float
    pair: str

    @property
    def refuted(self) -> bool:
        """Whether the chain costs more than it claims."""
        return self.epsilon_lower > self.claimed


def raw_pairs(low: FloatArray, high: FloatArray, n: int, relation: Relation) -> list[RawPair]:
    """Return neighbours at the corners of the bounds, among others in the middle or scattered."""
    d = len(low)
    middle = (low + high) / 2
    scattered = low + (high - low) * generator(1, "others", n, d).uniform(0.3, 0.7, (n, d))
    found = []
    for name, others in (("the others in the middle", np.tile(middle, (n, 1))),
                         ("the others scattered", scattered)):  # fmt: skip
        first, second = others.copy(), others.copy()
        first[0] = high
        second[0] = low
        if relation is Relation.REPLACE:
            found.append(
                RawPair(f"a row moves to the opposite corner, {name}", first, second, True)
            )
            # opposite corners have the same square; edges along two features do not
            along, across = others.copy(), others.copy()
            along[0] = np.where(np.arange(d) == 0, high, middle)
            across[0] = np.where(np.arange(d) == 1, high, middle)
            found.append(RawPair(f"an edge against another, {name}", along, across, True))
        else:
            found.append(RawPair(f"a corner withdrawn, {name}", first, first.copy(), False))
    return found


def audit_chain(
    whole: PreparedMechanism,
    public: Transform,
    *,
    trials: int = 6_000,
    seed: int = 0,
    confidence: float = 0.999,
    prepare: Prepare | None = None,
) -> ChainAudit:
    """Attack a mechanism behind its private preparation.

    Parameters
    ----------
    whole : PreparedMechanism
        Its problem says how many rows the made-up tables have; few let one person weigh most.
    public : Transform
    trials : int
        Draws of each table; half choose the event.
    seed : int
    confidence : float
        Of the bound over all pairs together.
    prepare : callable, optional
        In place of the preparation that the chain accounts for.
    """
    used = prepare or (
        lambda rows, present, draws: run(rows, public, whole.preparation, draws, present)
    )
    problem = whole.problem
    claim = whole.mechanism.claim(problem, whole.rest)
    pure = whole.preparation.pure and (claim is None or claim.delta == 0)
    delta = 0.0 if pure else whole.budget.delta
    pairs = raw_pairs(public.low, public.high, problem.n, problem.relation)
    alpha = (1 - confidence) / (4 * len(pairs))  # two limits for each order of each pair
    best, name = 0.0, pairs[0].name
    for index, pair in enumerate(pairs):
        everybody = np.ones(problem.n, dtype=bool)
        others = everybody.copy()
        others[0] = pair.present
        with one_blas_thread():
            seen = [
                _published(
                    whole, used, public, rows, here, generator(seed, "chain", index, side), trials
                )
                for side, (rows, here) in enumerate(
                    ((pair.first, everybody), (pair.second, others))
                )
            ]
        bound = epsilon_lower(seen[0], seen[1], delta, alpha)
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
    made = prepare(rows, present, draws)
    n = whole.problem.n
    raw: list[FloatArray] = []
    if isinstance(whole.mechanism, AdditiveMechanism):
        # its release is final: the moment plus the scaled noise, here for all draws at once
        noise = whole.mechanism.standard_noise(whole.problem, draws)
        raw.extend((made.moments + calibration.scale * noise).reshape(trials, -1))
    for index in range(len(raw), trials):
        one = Draws.batch(rng, 1)
        moment = (
            made.moment_with_rows(rows, public, index, present)
            if whole.mechanism.needs_rows
            else made.moment(index, n)
        )
        released = whole.mechanism.release_many(moment, calibration, one)
        # a subspace has no sign: its projection is the same information
        shown = released.raw if released.matrix is not None else _projection(released.components)
        raw.append(shown.reshape(-1))
    seen = np.array(raw)[:, :_MOST_FEATURES]
    columns = [made.center, made.scale, made.row_bound[:, None], made.count[:, None], seen]
    if made.reach is not None:
        columns.append(np.log2(made.reach)[:, None])
    return np.concatenate(columns, axis=1)


def _projection(frames: FloatArray) -> FloatArray:
    return frames @ frames.transpose(0, 2, 1)


def epsilon_lower(first: FloatArray, second: FloatArray, delta: float, alpha: float) -> float:
    """Return a lower bound on epsilon from both orders of a pair."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    half = len(first) // 2
    features = np.concatenate([first[:half], second[:half]])
    labels = np.repeat([1, 0], half)
    middle = np.median(features, axis=0)  # one for both tables: it must not tell them apart
    expanded = _expanded(features, middle)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(expanded, labels)
    scores = [model.decision_function(_expanded(table, middle)) for table in (first, second)]
    best = 0.0
    for p, q in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        levels = np.quantile(np.concatenate([p[:half], q[:half]]), np.linspace(0, 1, _THRESHOLDS))
        p_train = np.array([(p[:half] >= level).sum() for level in levels])
        q_train = np.array([(q[:half] >= level).sum() for level in levels])
        gained = epsilon_bound(
            lower_limit(p_train, half, alpha), upper_limit(q_train, half, alpha), delta
        )
        level = levels[int(np.argmax(gained))]
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
