"""Drag one person: what a release says of one row of a table with two features.

Where a matrix is released the attacker knows everybody else, so only the difference counts: a
release less the others' share of X'X. With the person that is vv' + noise, without her noise alone.
The noise does not depend on the row, so one set of draws serves every place she is dragged to and
every epsilon, and the page needs no server for either.

Where only a direction is released it is, with two features, an angle. Its law depends on the whole
table, so the other rows count: the payload holds what the law takes from each setting, and standard
draws that serve every place of the row and every epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.auditing.attack import both_worlds
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.lessons.cast import in_the_disk, plain
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.mechanisms._power import PowerMethod
from dpviz.mechanisms.ppca import Ppca

EPSILONS: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
"""Where the clouds can be looked at; all of them travel to the page at once."""

N = 100
"""People in the picture's table; everything is in units of one row, so it shows nowhere."""

HER: FloatArray = in_the_disk()[-1]
"""Her row, where the picture opens."""
HER.setflags(write=False)

_GRAIN = 1_000  # draws travel as whole thousandths of the noise's own scale
_FINE_GRAIN = 10_000  # and those of a direction as ten-thousandths
_LAW_DRAWS = 400_000


def candidates() -> tuple[str, ...]:
    """Return the mechanisms whose clouds can be dragged, the exact Gaussian first.

    Noise added to the second moment, and directions whose law is known.
    """
    problem = _problem()
    found = directional(table()) + tuple(
        key
        for key, cls in all_mechanisms().items()
        if issubclass(cls, AdditiveMechanism)
        and cls().info.release == "matrix"
        and cls().why_not(problem, Budget(0.5, 1e-6)) is None
    )
    return tuple(sorted(found, key=lambda key: key != plain().key))


def _problem() -> Problem:
    return Problem(N, 2, 1, Relation.ZERO_OUT, Domain.ball(2))


def table() -> Problem:
    """Return the picture's own table, hers and the other rows; these count in a direction."""
    return replace(_problem(), n=len(in_the_disk()))


def others() -> FloatArray:
    """Return the rows that nobody drags, shape (people, 2), inside the unit disk."""
    return in_the_disk()[:-1]


SCALE_BARS = tuple(
    (step * 10**power, "{count} rows" if step * 10**power > 1 else "one row",
     numeral(step * 10**power))
    for power in range(7)
    for step in (1, 2, 5)
)  # fmt: skip
"""Lengths that a scale bar may have, in rows, with their words and number: clouds zoom with their
noise, and whoever draws them takes the first that is long enough."""


def person_payload(
    mechanisms: Sequence[Mechanism],
    delta: float,
    *,
    epsilon: float = 1.0,
    view: str = "her",
    seed: int = 0,
    draws: int = 1_000,
) -> dict[str, Any]:
    """Return all that the picture of one person needs, as JSON values.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        Of `candidates`; the first is shown first.
    delta : float
        Of the mechanisms that need one; above 0.
    epsilon : float
        Where the picture opens; the nearest of `EPSILONS`.
    view : {"her", "cone"}
        Variance along the person's direction against variance across it, or half the trace
        against the radius, where the matrices that can be are a cone.
    seed, draws : int

    Returns
    -------
    dict
        ``mechanisms``: for each its noise (``[N11, N12, N22]`` in thousandths of the scale), and
        for each epsilon its scale in units of one row, the status and the rates of a balanced
        guesser of `both_worlds`, None where it cannot run. A mechanism that releases directions
        has its law of `directions` in place of the scale.
    """
    problem = _problem()
    # nearest as a ratio: epsilons stand on a logarithm
    start = min(range(len(EPSILONS)), key=lambda i: abs(np.log(EPSILONS[i] / epsilon)))
    return {
        "view": view,
        "epsilons": list(EPSILONS),
        "start": start,
        "row": np.round(HER, 3).tolist(),
        "others": np.round(others(), 3).tolist(),
        "bars": list(map(list, SCALE_BARS)),
        "mechanisms": [
            _shown(m, problem, delta, seed, draws)
            if isinstance(m, AdditiveMechanism)
            else _turned(m, delta, seed, draws)
            for m in mechanisms
        ],
    }


def _turned(mechanism: Mechanism, delta: float, seed: int, draws: int) -> dict[str, Any]:
    problem = table()
    budgets = [Budget(epsilon, delta) for epsilon in EPSILONS]
    # not every one runs at every epsilon, and the picture then has a gap
    able = [mechanism.why_not(problem, budget) is None for budget in budgets]
    chosen = [budget for budget, can in zip(budgets, able, strict=True) if can]
    return {
        "key": mechanism.text,
        "label": mechanism.label,
        "oneSided": False,
        **draws_payload(mechanism, problem, chosen, seed, draws),
        "at": [
            _account(mechanism, problem, budget) | law_at(mechanism, problem, budget)
            if can
            else None
            for budget, can in zip(budgets, able, strict=True)
        ],
    }


def _shown(
    mechanism: AdditiveMechanism, problem: Problem, delta: float, seed: int, draws: int
) -> dict[str, Any]:
    streams = Draws.batch(generator(seed, "guide", "person", mechanism.key), draws)
    noise = mechanism.standard_noise(problem, streams)[:, [0, 0, 1], [0, 1, 1]]
    grains = np.rint(_GRAIN * noise).astype(int)
    # what most draws need; the picture zooms by it, and the farthest may lie outside
    reach = float(np.quantile(np.abs(noise).max(axis=1), 0.9))
    return {
        "key": mechanism.text,
        "label": mechanism.label,
        "oneSided": mechanism.dominates_input,
        "grain": _GRAIN,
        "noise": grains.tolist(),
        "sizes": reach,
        "quantiles": _quantiles(mechanism, problem, seed),
        "at": [_at(mechanism, problem, Budget(epsilon, delta)) for epsilon in EPSILONS],
    }


def _quantiles(mechanism: AdditiveMechanism, problem: Problem, seed: int) -> list[int] | None:
    """Return quantiles of the size of v'Nv, in grains, where its law is the same for all unit v.

    Of so many draws that a rate read off them is right to .1 % (four standard errors).
    """
    # the law along her direction must be that along any other, or a table of one would be wrong
    if mechanism.dominates_input or mechanism.diagonal_std(problem) is None:
        return None
    streams = Draws.batch(generator(seed, "guide", "person", mechanism.key, "law"), _LAW_DRAWS)
    sizes = np.abs(mechanism.standard_noise(problem, streams)[:, 0, 0])
    # with the largest: a threshold beyond it is read as never passed
    levels = np.append(np.linspace(0, 1, 250, endpoint=False), 1.0)
    grains: list[int] = np.rint(_GRAIN * np.quantile(sizes, levels)).astype(int).tolist()
    return grains


def _at(mechanism: AdditiveMechanism, problem: Problem, budget: Budget) -> dict[str, Any] | None:
    if mechanism.why_not(problem, budget) is not None:
        return None
    scale = mechanism.calibrate(problem, budget).scale * problem.n
    return _account(mechanism, problem, budget) | {
        "scale": scale,
        # a unit row zeroed: 1/(v'W^-1 v) is c chi-square with two degrees of freedom
        "betrayed": -float(np.expm1(-1 / (2 * scale))) if mechanism.dominates_input else 0.0,
    }


def _account(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, Any]:
    """Return the claim's status and what no guesser gets beyond."""
    spent = mechanism.spent(problem, budget)
    status = mechanism.judged(problem, budget, spent)
    right = both_worlds(spent)
    return {
        "status": status.marked,
        "verdict": str(status.verdict),
        "limit": [right.rest.value, right.value],
    }


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
    grains = np.rint(_FINE_GRAIN * numbers).astype(int).reshape(draws, -1)
    return {"kind": "direction", "law": law, "grain": _FINE_GRAIN, "noise": grains.tolist()}


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
