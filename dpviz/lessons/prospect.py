"""Predict what releases of a table would keep, and what each epsilon reveals about one person.

Predictions come from the rows, for the pipeline that a release runs. Only people who may see the
rows may see these predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from dpviz.auditing.attack import posterior_bound
from dpviz.core.entries import PRIVATE, UNIT
from dpviz.core.number_text import numeral, towards
from dpviz.core.params import params_of
from dpviz.lessons.questions import Answers
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import Outlook, SchemaRows

PRIOR = 0.01
"""Probability that a suspicion against one person is right before a release."""
EPSILONS: tuple[float, ...] = tuple(np.geomspace(0.05, 9.2, 14).tolist())
HARDLY = 0.5
"""A suspicion of 1 % that may rise to this share or more has hardly any protection."""


def epsilon_under(ceiling: float) -> float:
    """Return the largest three-digit epsilon at which a 1 % suspicion stays within the ceiling.

    Two digits would be too coarse: a ceiling of 25 in 100 would give 24.

    Parameters
    ----------
    ceiling : float
        Highest acceptable risk in 100, above 1 and below 100.
    """
    share = ceiling / 100
    exact = math.log(share / (1 - share)) - math.log(PRIOR / (1 - PRIOR))
    return towards(exact, 3, -1)


def becomes(epsilon: float) -> float:
    """Return the largest share of suspicions right after a release, if 1 % were right before."""
    return posterior_bound(PRIOR, epsilon)


@dataclass(frozen=True, eq=False)
class Prospect:
    """Recovery of every pipeline at each epsilon, computed once for a table and its schema.

    Attributes
    ----------
    name : str
    rows : SchemaRows
    options : ReleaseOptions
        Options that give k, delta, neighbours and the map's budget share; others are chosen here.
    planned : bool
        Whether the rows are guesses, so that they belong to no person.
    """

    name: str
    rows: SchemaRows
    options: ReleaseOptions
    planned: bool = False

    @cached_property
    def curves(self) -> list[tuple[ReleaseOptions, list[float], list[float]]]:
        """Recovery that 95 of 100 releases of each pipeline reach, and its mean, at `EPSILONS`."""
        # Use the minimum of twenty simulated releases, or of fewer for tables with many features.
        draws = range(max(5, min(20, 20_000 // len(self.rows.schema.used) ** 2)))
        curves = []
        for each in self.rows.pipelines(self.options):
            runs = [self.rows.sample(replace(each, epsilon=at), draws) for at in EPSILONS]
            curves.append(
                (each, [float(one.min()) for one in runs], [float(one.mean()) for one in runs])
            )
        return curves

    @cached_property
    def curve(self) -> list[tuple[float, float, float]]:
        """For the best pipeline: epsilon, the recovery that 95 of 100 releases reach, the mean."""
        best = [max(self.curves, key=lambda one: one[1][at]) for at in range(len(EPSILONS))]
        return [
            (epsilon, low[at], mean[at])
            for at, (epsilon, (_, low, mean)) in enumerate(zip(EPSILONS, best, strict=True))
        ]

    def at(self, epsilon: float) -> ReleaseOptions:
        """Return the pipeline with the highest recovery at an epsilon."""
        place, grid = math.log(epsilon), np.log(EPSILONS)
        best = max(self.curves, key=lambda one: float(np.interp(place, grid, one[1])))
        return replace(best[0], epsilon=epsilon)

    @cached_property
    def outlook(self) -> Callable[[ReleaseOptions], Outlook]:
        """Predict what a release would keep; each result is cached."""
        return cache(self.rows.outlook)

    @cached_property
    def map(self) -> Callable[[ReleaseOptions], dict[str, object]]:
        """Simulate the map that a release could publish; each result is cached."""
        return cache(self.rows.map)

    @cached_property
    def without_noise(self) -> float:
        """Recovery of the best pipeline before any noise."""
        return max(map(self.rows.without_noise, self.rows.pipelines(self.options)))

    @cached_property
    def least(self) -> Callable[[float], ReleaseOptions | None]:
        """Find a release of about the least epsilon at which 95 of 100 reach a recovery.

        The result is None if an epsilon of 100 is not enough.
        """
        return cache(self._least_release)

    def _likely(self, recovery: float) -> tuple[list[ReleaseOptions], float]:
        """Return the pipelines, most promising first, and the first one's approximate epsilon."""

        def near(recoveries: Sequence[float]) -> float:
            enough = (at for at, one in zip(EPSILONS, recoveries, strict=True) if one >= recovery)
            return next(enough, EPSILONS[-1])

        likely = sorted(self.curves, key=lambda one: near(one[1]))
        return [options for options, *_ in likely], near(likely[0][1])

    def _least_release(self, recovery: float) -> ReleaseOptions | None:
        # Start with the most promising pipeline: its result rules out the others quickly.
        order, near = self._likely(recovery)
        return self._least(order, recovery, self.rows.n, near)

    @cached_property
    def helps(self) -> Callable[[float], tuple[tuple[str, float], ...]]:
        """Find changes that would help, with the epsilon they need, cached for each recovery."""
        return cache(self._helps)

    def _helps(self, recovery: float) -> tuple[tuple[str, float], ...]:
        now, n = self.least(recovery), self.rows.n
        near = EPSILONS[-1] if now is None else now.epsilon
        # Test changes on the current pipeline, or else on the best two; all pipelines gain alike.
        few = [options for options, *_ in sorted(self.curves, key=lambda one: -max(one[1]))][:2]
        few = few if now is None else [now]
        changes: list[tuple[str, list[ReleaseOptions], int]] = []
        if self.options.picture:
            every = [replace(one, picture=0.0) for one in self._likely(recovery)[0]]
            changes.append((params_of(Answers)["hand_out"].choices["directions"], every, n))
        changes.append(("three times as many people", few, 3 * n))
        if self.options.k > 1:
            changes.append(("one component alone", [replace(one, k=1) for one in few], n))
        gains = [(what, self._least(each, recovery, of, near)) for what, each, of in changes]
        # Leave out a change that saves no epsilon compared with the unchanged release.
        return tuple(
            (what, one.epsilon)
            for what, one in gains
            if one is not None and (now is None or one.epsilon < now.epsilon)
        )

    def _least(
        self, pipelines: Sequence[ReleaseOptions], recovery: float, n: int, near: float
    ) -> ReleaseOptions | None:
        """Return the pipeline with about the least epsilon, set to that epsilon."""
        best: ReleaseOptions | None = None
        for each in pipelines:
            # Even without noise, these bounds lose too much.
            if self.rows.without_noise(each) < recovery:
                continue
            most = math.inf if best is None else best.epsilon
            epsilon = self.rows.least_epsilon(each, recovery, n=n, near=near, up_to=most)
            if epsilon is not None and epsilon < most:
                best = replace(each, epsilon=epsilon)
        return best

    def steps(self, recovery: float) -> str:
        """Return what each step of a release costs beyond the idealised answer of other pages."""
        options = self.least(recovery)
        if options is None:
            return ""
        least = self.rows.least_epsilon(options, recovery, near=options.epsilon, mean_known=True)
        first = "more than ε 100" if least is None else f"about ε {numeral(least, 2)}"
        rows = (
            "scaled to length one"
            if options.rows == UNIT
            else f"clipped to {options.row_bound} half widths"
        )
        mean = "a private mean" if options.center == PRIVATE else "the stated centre"
        of_map = " A map uses its own share of the budget." if options.picture else ""
        return (
            f"As released, with features divided by half of their limits' width and rows {rows}: "
            f"{first} around the exact mean. With {mean} the least is about ε "
            f"{numeral(options.epsilon, 2)}.{of_map}"
        )
