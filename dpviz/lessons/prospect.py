"""What releases of a table would keep, and what each epsilon tells about one person.

Everything is predicted from the rows for the pipeline that a release runs: internal, and only for
people who may see the rows.
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
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import Outlook, SchemaRows

PRIOR = 0.01
"""How likely a suspicion against one person is right before a release."""
EPSILONS: tuple[float, ...] = tuple(np.geomspace(0.05, 9.2, 14).tolist())
HARDLY = 0.5
"""What a suspicion of 1 % may become from which on there is hardly protection."""


def epsilon_under(ceiling: float) -> float:
    """Return the largest epsilon of three digits under which 1 % becomes at most the ceiling.

    With two digits, 25 in 100 would be answered by 24.

    Parameters
    ----------
    ceiling : float
        Of 100, above 1 and below 100.
    """
    share = ceiling / 100
    exact = math.log(share / (1 - share)) - math.log(PRIOR / (1 - PRIOR))
    return towards(exact, 3, -1)


def becomes(epsilon: float) -> float:
    """Return the share of suspicions that may be right after a release, of which 1 % were."""
    return posterior_bound(PRIOR, epsilon)


@dataclass(frozen=True, eq=False)
class Prospect:
    """What every pipeline keeps by epsilon: computed once for a table and its schema.

    Attributes
    ----------
    name : str
    rows : SchemaRows
    options : ReleaseOptions
        k, delta, relation and the share of a map; the rest is chosen.
    planned : bool
        Whether the rows are guessed: then nothing of them is anybody's.
    """

    name: str
    rows: SchemaRows
    options: ReleaseOptions
    planned: bool = False

    @cached_property
    def curves(self) -> list[tuple[ReleaseOptions, list[float], list[float]]]:
        """What 95 of 100 releases of each pipeline keep at least, and the mean, at `EPSILONS`."""
        # of twenty simulated releases the least; many features average out within one
        draws = range(max(5, min(20, 20_000 // len(self.rows.schema.used) ** 2)))
        found = []
        for each in self.rows.pipelines(self.options):
            kept = [self.rows.sample(replace(each, epsilon=at), draws) for at in EPSILONS]
            found.append(
                (each, [float(one.min()) for one in kept], [float(one.mean()) for one in kept])
            )
        return found

    @cached_property
    def curve(self) -> list[tuple[float, float, float]]:
        """Epsilon, what 95 of 100 releases keep at least and the mean, of the best pipeline."""
        best = [max(self.curves, key=lambda one: one[1][at]) for at in range(len(EPSILONS))]
        return [
            (epsilon, low[at], mean[at])
            for at, (epsilon, (_, low, mean)) in enumerate(zip(EPSILONS, best, strict=True))
        ]

    def at(self, epsilon: float) -> ReleaseOptions:
        """Return the pipeline that keeps most at an epsilon."""
        place, grid = math.log(epsilon), np.log(EPSILONS)
        best = max(self.curves, key=lambda one: float(np.interp(place, grid, one[1])))
        return replace(best[0], epsilon=epsilon)

    @cached_property
    def outlook(self) -> Callable[[ReleaseOptions], Outlook]:
        """To what a release would keep, computed once for each."""
        return cache(self.rows.outlook)

    @cached_property
    def map(self) -> Callable[[ReleaseOptions], dict[str, object]]:
        """To the map that a release could print, simulated once for each."""
        return cache(self.rows.map)

    @cached_property
    def without_noise(self) -> float:
        """What the best pipeline keeps before any noise."""
        return max(map(self.rows.without_noise, self.rows.pipelines(self.options)))

    @cached_property
    def least(self) -> Callable[[float], ReleaseOptions | None]:
        """To the release of about the least epsilon at which 95 of 100 keep so much.

        None where an epsilon of 100 is not enough.
        """
        return cache(self._least_release)

    def _likely(self, recovery: float) -> tuple[list[ReleaseOptions], float]:
        """Return the pipelines, the likeliest first, and about where that one keeps enough."""

        def near(kept: Sequence[float]) -> float:
            enough = (at for at, one in zip(EPSILONS, kept, strict=True) if one >= recovery)
            return next(enough, EPSILONS[-1])

        likely = sorted(self.curves, key=lambda one: near(one[1]))
        return [options for options, *_ in likely], near(likely[0][1])

    def _least_release(self, recovery: float) -> ReleaseOptions | None:
        # in this order the others answer at one look
        order, near = self._likely(recovery)
        return self._least(order, recovery, self.rows.n, near)

    @cached_property
    def helps(self) -> Callable[[float], tuple[tuple[str, float], ...]]:
        """To what would help, and the epsilon needed then, computed once for each recovery."""
        return cache(self._helps)

    def _helps(self, recovery: float) -> tuple[tuple[str, float], ...]:
        now, n = self.least(recovery), self.rows.n
        near = EPSILONS[-1] if now is None else now.epsilon
        # the pipeline in force, and the likeliest two: the others change by as much
        few = [options for options, *_ in sorted(self.curves, key=lambda one: -max(one[1]))][:2]
        few = few if now is None else [now]
        changes: list[tuple[str, list[ReleaseOptions], int]] = []
        if self.options.picture:
            every = [replace(one, picture=0.0) for one in self._likely(recovery)[0]]
            changes.append(("components alone", every, n))
        changes.append(("three times as many people", few, 3 * n))
        if self.options.k > 1:
            changes.append(("one component alone", [replace(one, k=1) for one in few], n))
        found = [(what, self._least(each, recovery, of, near)) for what, each, of in changes]
        # a change that asks for more than doing nothing is no help
        return tuple(
            (what, one.epsilon)
            for what, one in found
            if one is not None and (now is None or one.epsilon < now.epsilon)
        )

    def _least(
        self, pipelines: Sequence[ReleaseOptions], recovery: float, n: int, near: float
    ) -> ReleaseOptions | None:
        """Return the pipeline with about the least epsilon, at that epsilon."""
        best: ReleaseOptions | None = None
        for each in pipelines:
            # what bounds alone have lost no epsilon brings back
            if self.rows.without_noise(each) < recovery:
                continue
            most = math.inf if best is None else best.epsilon
            found = self.rows.least_epsilon(each, recovery, n=n, near=near, up_to=most)
            if found is not None and found < most:
                best = replace(each, epsilon=found)
        return best

    def steps(self, recovery: float) -> str:
        """Return what each step of a release costs beyond the idealised answer of other pages."""
        options = self.least(recovery)
        if options is None:
            return ""
        known = self.rows.least_epsilon(options, recovery, near=options.epsilon, mean_known=True)
        first = "more than ε 100" if known is None else f"about ε {numeral(known, 2)}"
        rows = (
            "scaled to length one"
            if options.rows == UNIT
            else f"clipped to {options.row_bound} half widths"
        )
        mean = "paying for the mean" if options.center == PRIVATE else "the stated centre"
        of_map = " A map takes its share of the budget." if options.picture else ""
        return (
            f"As released, with features over half their limits and rows {rows}: {first} around "
            f"the exact mean. With {mean} it is about ε {numeral(options.epsilon, 2)}.{of_map}"
        )
