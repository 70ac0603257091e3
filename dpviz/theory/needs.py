"""What papers state, beside what is measured: people needed, and growth of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.mod_sulq import ModSulq
from dpviz.mechanisms.ppca import Ppca
from dpviz.mechanisms.wishart import Wishart
from dpviz.mechanisms.wishart_difference import WishartDifference
from dpviz.preparation.prepared import Measured
from dpviz.theory.bounds import (
    mod_sulq_scaling,
    ppca_sample_size,
    pure_lower_sample_size,
    wishart_difference_sample_size,
    wishart_sample_size,
)

PROVED, READING, SCALING = "proved", "our reading", "scaling only"


@dataclass(frozen=True)
class Need:
    """How many people a statement asks for.

    Attributes
    ----------
    mechanism : Mechanism or None
        None for a statement about every mechanism.
    statement : str
    people : int or None
        Rounded up; None where the statement is silent here.
    kind : {PROVED, READING, SCALING}
    """

    mechanism: Mechanism | None
    statement: str
    people: int | None
    kind: str


def needs(measured: Measured, settings: Settings, rho: float, eta: float) -> list[Need]:
    """Return the people that theorems ask for, to find the first component.

    The event is ``|<v^_1, v_1>| >= rho`` with probability at least ``1 - eta``,
    at k = 1.

    Parameters
    ----------
    measured : Measured
    settings : Settings
        Reads epsilon, delta and the relation.
    rho : float
        At least 1/sqrt(2) and below 1.
    eta : float

    Raises
    ------
    InvalidSetting
        If the two largest eigenvalues agree, so that there is no first component.
    """
    if not measured.domain.bounded:
        raise InvalidSetting("row bound", "declared: the theorems are about rows in a ball", "none")
    # The theorems are about rows in the unit ball.
    values = measured.moment.eigenvalues / measured.domain.radius**2
    first, second = float(values[0]), float(values[1])
    gap, d, epsilon = first - second, measured.d, settings.epsilon
    if not gap > 0:
        raise InvalidSetting("the table", "one whose two largest variances differ", "equal ones")
    problem, budget = measured.problem(replace(settings, k=1)), measured.budget(settings)

    def need(mechanism: Mechanism | None, words: str, people: float | None, kind: str) -> Need:
        return Need(mechanism, words, None if people is None else math.ceil(people), kind)

    said = [
        need(
            Wishart(), "Jiang et al. 2016, Theorem 7, as printed",
            wishart_sample_size(d, epsilon, rho, eta, gap), PROVED,
        ),
        need(
            Wishart(), "Jiang et al. 2016, Theorem 7, with the dropped square root",
            wishart_sample_size(d, epsilon, rho, eta, gap, reading="ours"), PROVED,
        ),
        need(
            WishartDifference(), "the same argument for the difference",
            wishart_difference_sample_size(
                d, epsilon, rho, eta, gap, relation=problem.relation
            ), PROVED,
        ),
        need(
            Ppca(), "Chaudhuri et al. 2012, Theorem 3",
            ppca_sample_size(d, epsilon, rho, eta, first, second), PROVED,
        ),
        need(
            None, "Chaudhuri et al. 2012, Theorem 4: no pure mechanism does with fewer",
            pure_lower_sample_size(d, epsilon, rho, gap), READING,
        ),
    ]  # fmt: skip
    if budget.delta > 0:
        order = mod_sulq_scaling(d, epsilon, budget.delta)
        words = "Chaudhuri et al. 2012, Theorem 5: d^1.5 sqrt(ln(d/delta))/epsilon"
        said.append(need(ModSulq(), words, order, SCALING))
    return said
