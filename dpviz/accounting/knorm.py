r"""How well an attacker distinguishes neighbours under K-norm noise: less than epsilon allows.

The noise N has density proportional to exp(-||N||) in nuclear norm, and neighbours shift it by D,
in units of its scale. tanh(epsilon/2) bounds the total variation of every mechanism with that
epsilon; the total variation of this noise is far smaller.

**The worst neighbours.** For any c > 0 the overlap O(D), the integral of min(f(N), c f(N - D)), is
log-concave in D, because the integrand is log-concave in N and D together (Prékopa 1973). O is even
like f. A log-concave function on a convex body is least at an extreme point. Replacing a row, of
length at most one before and after, shifts by D = epsilon/2 (uu' - vv'), whose eigenvalues are
epsilon/2 (p, -q) with p and q in [0, 1], else 0. These pairs (p, q) form a square; only its corners
(1, -1) and, by evenness, (1, 0) remain. Zero-out shifts by one eigenvalue of at most epsilon. The
law is invariant under rotations, so only eigenvalues matter: two shapes, ``pair`` and ``single``.

**Its total variation.** With L = ||N - D|| - ||N||, TV = E tanh(|L|/2): a release with loss L under
one neighbour has loss -L under the other (N to D - N), and the densities' ratio is e^L. Monte Carlo
with exact samples (`benchmarks.knorm_odds`) averages numbers from 0 to tanh(epsilon/2) and gives an
upper limit of the mean, wrong with probability 1e-6 at most, over all epsilons and shapes of a d
together. So the limit holds with a confidence and is not a proof. It describes how often an
attacker guesses right, and no epsilon or delta depends on the limit.

**Between epsilons.** -ln(1 - TV) of e D is convex in e, because O is log-concave, and 0 at e = 0.
So straight lines between limits are upper limits too.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np

from dpviz.core.problem import Relation

PATH = Path(__file__).with_name("knorm_odds.json")
CONFIDENCE = 1 - 1e-6
EPSILONS = (0.3, 1.0, 2.0, 3.0, 5.0, 8.0)
SIGNS: dict[str, tuple[float, ...]] = {"pair": (0.5, -0.5), "single": (1.0,)}


def most_apart(d: int, epsilon: float, relation: Relation) -> float:
    """Return an upper limit of the total variation between neighbours.

    Parameters
    ----------
    d : int
        Number of features; for a d that was not simulated only tanh(epsilon/2) is known.
    epsilon : float
        Nuclear sensitivity divided by the noise scale, for rows in a ball.
    relation : Relation
    """
    free = math.tanh(epsilon / 2)
    limits = _kept().get(d)
    if limits is None:
        return free
    if relation is Relation.ZERO_OUT:
        return min(free, _at(limits["single"], epsilon))
    # For shape ``single``, zeroing a row shifts half as much as replacing it, so halve epsilon.
    return min(free, max(_at(limits["pair"], epsilon), _at(limits["single"], epsilon / 2)))


def _at(limits: tuple[float, ...], epsilon: float) -> float:
    """Return the limit of the total variation at an epsilon, or 1 beyond the last of `EPSILONS`."""
    if epsilon > EPSILONS[-1]:
        return 1.0
    logs = -np.log1p(-np.array((0.0, *limits)))
    return -math.expm1(-float(np.interp(epsilon, (0.0, *EPSILONS), logs))) * (1 + 1e-12)


@cache
def _kept() -> dict[int, dict[str, tuple[float, ...]]]:
    """Return the limits at `EPSILONS`, for each number of features and shape of the shift."""
    limits = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        int(d): {name: tuple(one[name]["limits"]) for name in SIGNS} for d, one in limits.items()
    }
