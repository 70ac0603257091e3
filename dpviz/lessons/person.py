"""Chart with one movable person: what a release reveals about one row of two features.

If a matrix is released, the attacker knows all other rows. Only the release minus the others' share
of X'X matters: vv' + noise with the person, and noise alone without her. The noise does not depend
on the row, so one set of simulated noise serves every place of her row and every epsilon, without a
server.

A released direction is an angle (two features). Its distribution depends on the whole table, so the
other rows matter. The payload holds the distribution's parameters for each setting, and standard
random numbers for every place of the row and every epsilon.
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
"""Epsilons that the chart offers; the page receives the data for all of them at once."""

N = 100
"""People in the chart's table; the number is not visible, because the unit is one row."""

HER: FloatArray = in_the_disk()[-1]
"""Initial row of the person who can be moved."""
HER.setflags(write=False)

_GRAIN = 1_000  # Noise is sent as whole thousandths of its scale.
_FINE_GRAIN = 10_000  # Directions are sent as whole ten-thousandths.
_LAW_DRAWS = 400_000


def candidates() -> tuple[str, ...]:
    """Return the mechanisms that the chart offers, with the exact Gaussian first.

    These mechanisms add noise to the second moment, or release directions of known distribution.
    """
    problem = _problem()
    keys = directional(table()) + tuple(
        key
        for key, cls in all_mechanisms().items()
        if issubclass(cls, AdditiveMechanism)
        and cls().info.release == "matrix"
        and cls().why_not(problem, Budget(0.5, 1e-6)) is None
    )
    return tuple(sorted(keys, key=lambda key: key != plain().key))


def _problem() -> Problem:
    return Problem(N, 2, 1, Relation.ZERO_OUT, Domain.ball(2))


def table() -> Problem:
    """Return the chart's own problem: her row and the other rows, which matter for directions."""
    return replace(_problem(), n=len(in_the_disk()))


def others() -> FloatArray:
    """Return the other people's rows, shape (people, 2), inside the unit disk."""
    return in_the_disk()[:-1]


SCALE_BARS = tuple(
    (step * 10**power, "{count} rows" if step * 10**power > 1 else "one row",
     numeral(step * 10**power))
    for power in range(7)
    for step in (1, 2, 5)
)  # fmt: skip
"""Possible lengths of a scale bar, in rows, with their words and number. The chart zooms with the
noise and uses the first length that is long enough."""


def person_payload(
    mechanisms: Sequence[Mechanism],
    delta: float,
    *,
    epsilon: float = 1.0,
    view: str = "her",
    seed: int = 0,
    draws: int = 1_000,
) -> dict[str, Any]:
    """Return all data for the chart of one person, as JSON values.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        Mechanisms from `candidates`; the chart first shows the first one.
    delta : float
        Delta of the mechanisms that need a positive delta.
    epsilon : float
        Initial epsilon; the chart uses the nearest of `EPSILONS`.
    view : {"her", "cone"}
        Variance of the noise along the person's direction against variance across it. If the
        possible matrices form a cone, half the trace against the radius.
    seed, draws : int

    Returns
    -------
    dict
        ``mechanisms`` holds each mechanism's noise (``[N11, N12, N22]`` in thousandths of the
        scale). For each epsilon it also holds the scale in units of one row, the status and the
        rates of a balanced guesser from `both_worlds`, or None if the mechanism cannot run. For a
        mechanism that releases directions, the distribution of `directions` replaces the scale.
    """
    problem = _problem()
    # Find the nearest epsilon by ratio, because the axis of epsilon is logarithmic.
    start = min(range(len(EPSILONS)), key=lambda i: abs(np.log(EPSILONS[i] / epsilon)))
    return {
        "view": view,
        "epsilons": list(EPSILONS),
        "start": start,
        "row": np.round(HER, 3).tolist(),
        "others": np.round(others(), 3).tolist(),
        "bars": list(map(list, SCALE_BARS)),
        "mechanisms": [
            _draws(m, problem, delta, seed, draws)
            if isinstance(m, AdditiveMechanism)
            else _directions(m, delta, seed, draws)
            for m in mechanisms
        ],
    }


def _directions(mechanism: Mechanism, delta: float, seed: int, draws: int) -> dict[str, Any]:
    problem = table()
    budgets = [Budget(epsilon, delta) for epsilon in EPSILONS]
    # A mechanism may be impossible at some epsilons, so leave the chart empty there.
    able = [mechanism.why_not(problem, budget) is None for budget in budgets]
    possible = [budget for budget, can in zip(budgets, able, strict=True) if can]
    return {
        "key": mechanism.text,
        "label": mechanism.label,
        "oneSided": False,
        **draws_payload(mechanism, problem, possible, seed, draws),
        "at": [
            _account(mechanism, problem, budget) | law_at(mechanism, problem, budget)
            if can
            else None
            for budget, can in zip(budgets, able, strict=True)
        ],
    }


def _draws(
    mechanism: AdditiveMechanism, problem: Problem, delta: float, seed: int, draws: int
) -> dict[str, Any]:
    streams = Draws.batch(generator(seed, "guide", "person", mechanism.key), draws)
    noise = mechanism.standard_noise(problem, streams)[:, [0, 0, 1], [0, 1, 1]]
    grains = np.rint(_GRAIN * noise).astype(int)
    # Zoom so that most of the noise fits, and only the farthest points lie outside.
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
    """Return quantiles of |v'Nv|, in steps of 1/1000, if all unit v share its distribution.

    The simulations are numerous enough to give rates right to .1 % (four standard errors).
    """
    # A single table of quantiles needs the same distribution in all directions.
    if mechanism.dominates_input or mechanism.diagonal_std(problem) is None:
        return None
    streams = Draws.batch(generator(seed, "guide", "person", mechanism.key, "law"), _LAW_DRAWS)
    sizes = np.abs(mechanism.standard_noise(problem, streams)[:, 0, 0])
    # Include the maximum, so that a larger threshold counts as never exceeded.
    levels = np.append(np.linspace(0, 1, 250, endpoint=False), 1.0)
    grains: list[int] = np.rint(_GRAIN * np.quantile(sizes, levels)).astype(int).tolist()
    return grains


def _at(mechanism: AdditiveMechanism, problem: Problem, budget: Budget) -> dict[str, Any] | None:
    if mechanism.why_not(problem, budget) is not None:
        return None
    scale = mechanism.calibrate(problem, budget).scale * problem.n
    return _account(mechanism, problem, budget) | {
        "scale": scale,
        # If a unit row is zeroed, 1/(v'W^-1 v) is c times chi-square with 2 degrees of freedom.
        "betrayed": -float(np.expm1(-1 / (2 * scale))) if mechanism.dominates_input else 0.0,
    }


def _account(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, Any]:
    """Return the claim's status and upper bounds on a guesser's rates."""
    loss = mechanism.spent(problem, budget)
    status = mechanism.judged(problem, budget, loss)
    right = both_worlds(loss)
    return {
        "status": status.marked,
        "verdict": str(status.verdict),
        "limit": [right.rest.value, right.value],
    }


def directional(problem: Problem) -> tuple[str, ...]:
    """Return the mechanisms that release directions which the chart can show.

    Parameters
    ----------
    problem : Problem
        A problem with two features and one component.
    """
    return tuple(
        key
        for key, cls in all_mechanisms().items()
        if issubclass(cls, Ppca | PowerMethod) and cls().why_not(problem, Budget(0.5, 1e-6)) is None
    )


def draws_payload(
    mechanism: Mechanism, problem: Problem, budgets: Sequence[Budget], seed: int, draws: int
) -> dict[str, Any]:
    """Return the name of a mechanism's distribution and the standard random numbers it needs.

    Returns
    -------
    dict
        ``law`` names the distribution. ``bingham`` needs one uniform number a release, because the
        distribution on the circle can be inverted. ``power`` needs a start and one vector of normal
        noise for each step. ``frame`` needs one matrix of normal noise: the iterated frame is the
        whole plane and only the last step counts.
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
    """Return the distribution's parameters at a budget, in units of one row.

    A Bingham distribution has the weight of u'(X'X)u in the exponent. A power method has the
    standard deviation of a step's noise and the number of steps.
    """
    calibration = mechanism.calibrate(problem, budget)
    if not isinstance(mechanism, PowerMethod):
        return {"weight": calibration.scale / problem.n}
    return {
        "std": calibration.scale * problem.n,
        "steps": calibration.values["steps"],
        # Published noise shrinks with the largest entry of the frame, but exact noise does not.
        "flat": float(np.all(np.equal(mechanism.noise_factor(np.eye(problem.d)[None] / 2), 1.0))),
    }
