"""One person's part in a released direction, for mechanisms that release no matrix.

With two features a released direction is an angle. Its law depends on the whole table and not only
on the person's row, so the picture's other rows count: the payload holds what the law takes from
each setting, and standard draws that serve every place of the row and every epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._power import PowerMethod
from dpviz.mechanisms.ppca import Ppca

_GRAIN = 10_000  # draws travel as whole ten-thousandths


def directional(problem: Problem) -> tuple[str, ...]:
    """Return the mechanisms whose released direction can be drawn.

    Parameters
    ----------
    problem : Problem
        Of two features and one component.
    """
    return tuple(
        key
        for key, cls in all_mechanisms().items()
        if issubclass(cls, Ppca | PowerMethod) and cls().why_not(problem, Budget(0.5, 1e-6)) is None
    )


def draws_payload(
    mechanism: Mechanism, problem: Problem, budgets: Sequence[Budget], seed: int, draws: int
) -> dict[str, Any]:
    """Return a mechanism's law by name and the standard draws that it needs.

    Returns
    -------
    dict
        ``law``: ``bingham``, one uniform number a draw, for on the circle the law can be inverted;
        ``power``, a start and one vector of normal noise for each step; ``frame``, one matrix of
        normal noise where the iterated frame is the whole plane, so that only the last step counts.
    """
    streams = Draws.batch(generator(seed, "guide", "person", mechanism.key), draws)
    if not isinstance(mechanism, PowerMethod):
        law, numbers = "bingham", streams.uniform(1)
    elif mechanism.width(problem) == problem.d:
        law, numbers = "frame", streams.normal(problem.d, problem.d)
    else:
        steps = max(mechanism.length(problem, budget) for budget in budgets)
        law, numbers = "power", streams.normal(steps + 1, problem.d)
    grains = np.rint(_GRAIN * numbers).astype(int).reshape(draws, -1)
    return {"kind": "direction", "law": law, "grain": _GRAIN, "noise": grains.tolist()}


def law_at(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, float]:
    """Return what the law takes from a budget, in units of one row.

    The weight of u'(X'X)u in the exponent of a Bingham law; the standard deviation of a step's
    noise and the number of steps of a power method.
    """
    calibration = mechanism.calibrate(problem, budget)
    if not isinstance(mechanism, PowerMethod):
        return {"weight": calibration.scale / problem.n}
    return {
        "std": calibration.scale * problem.n,
        "steps": calibration.values["steps"],
        # the published noise shrinks with the frame's largest entry, the exact one does not
        "flat": float(np.all(np.equal(mechanism.noise_factor(np.eye(problem.d)[None] / 2), 1.0))),
    }
