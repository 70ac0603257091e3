"""What the experiments of Jiang, Xie and Zhang 2016 share: citations, fits, exact intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.mechanisms import parse_variant
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.lines import Agreement, Line, Stated
from dpviz.reproduce.measurements import Mean
from dpviz.reproduce.verdicts import Answer, Claim, judged
from dpviz.theory.growth import fitted_power
from dpviz.values.moments import SecondMoment

PAPER = "Jiang, Xie and Zhang 2016"
URL = "https://arxiv.org/abs/1511.05680"
DELTA = 1e-6  # of the approximate mechanisms

WISHART = parse_variant("wishart")
DIFFERENCE = parse_variant("wishart_difference")
LAPLACE = parse_variant("laplace")
GAUSSIAN = parse_variant("gaussian")

REFUTED = (
    "Theorem 4, that the Wishart mechanism is (epsilon, 0)-private, is false: the noise is "
    "positive definite, so the set of possible releases moves with the data. Its utility is "
    "measured as published, and Wishart difference, which is private, beside it."
)
NO_DATA = (
    "The paper has no experiment on data: it states rates and sample sizes. What is drawn here is "
    "ours to choose."
)

# The top eigenvalue of a Wishart matrix with d + 1 degrees of freedom falls short of its limit by
# a share of 0.76 d^(-2/3), more than the other noises here: the mean -1.2065 of the Tracy-Widom
# law, in the scale of Johnstone 2001, Theorem 1.1. It lifts a fitted power of d.
_SHORTFALL = 0.76


def lift(dimensions: Sequence[float]) -> float:
    """Return by how much the shortfall at small d can lift a power fitted over these d."""
    return fitted_power(dimensions, [1 - _SHORTFALL * d ** (-2 / 3) for d in dimensions])[0]


@dataclass(frozen=True)
class Power:
    """A power fitted to the means along an axis.

    Attributes
    ----------
    mean : Mean
        The power with its 95 % interval, by the normal law.
    places : tuple of float
        Where along the axis.
    """

    mean: Mean
    places: tuple[float, ...]

    @classmethod
    def of(cls, curve: Mapping[float, FloatArray], least: float = 0.0) -> Power | None:
        """Return the power of x along a curve from ``least`` on; None with fewer than 3 points."""
        places = tuple(x for x in curve if x >= least)
        if len(places) < 3:
            return None
        means = [Mean.of(curve[x]) for x in places]
        power, error = fitted_power(places, [m.value for m in means], [m.se for m in means])
        from scipy import stats

        half = float(stats.norm.ppf(0.975)) * error
        draws = min(mean.draws for mean in means)
        return cls(Mean(power, error, power - half, power + half, draws), places)

    @property
    def text(self) -> str:
        """The power and its half width as text."""
        return f"{self.mean.value:.3f} ± {self.mean.high - self.mean.value:.1g}"


def power_line(
    panel: str,
    item: str,
    words: str,
    stated: float | None,
    power: Power | None,
    why: str,
    *,
    more: str = "",
    note: str = "",
    upper: bool = False,
) -> Line:
    """Return a stated rate beside a fitted power.

    They agree where the stated rate's own power over the same places lies
    within the fit's interval, or below it by no more than `lift`; an upper bound
    also where it lies above.

    Parameters
    ----------
    panel, item : str
    words : str
        The rate as stated; empty with ``stated`` None.
    stated : float or None
        The power that a fit finds for the stated rate itself.
    power : Power or None
        None where too little was measured.
    why : str
        The sentence to show where they differ.
    more : str
        To put behind the measured power.
    note : str
        The sentence to show otherwise.
    upper : bool
        Whether the rate is stated as an upper bound, O(.); where it lies above
        what was measured, ``why`` says so.
    """
    said = None if stated is None else Stated(stated)
    reported = "" if said is None else f"{words}, a power of {said.text}"
    if power is None:
        return Line(panel, item, reported, "", Agreement.ABSENT, "The data is not at hand.", said)
    measured = power.text + more
    if stated is None:
        return Line(panel, item, "", measured, Agreement.ADDED, note, None, power.mean)
    near = no_faster(stated, power) and stated <= power.mean.high
    held = near or (upper and no_faster(stated, power))
    agreement = Agreement.AGREES if held else Agreement.DIFFERS
    return Line(panel, item, reported, measured, agreement, note if near else why, said, power.mean)


def rate_claim(item: str, line: Line, place: str, because: str = "") -> Claim:
    """Return the answer to a rate that is stated as an upper bound.

    Parameters
    ----------
    item : str
    line : Line
        From `power_line`.
    place : str
    because : str
        The reason where the rate is met.
    """
    stated, mean = line.stated, line.mean
    level = stated is not None and mean is not None and stated.value <= mean.high
    held = Answer.REPRODUCED if level else Answer.BOUND
    met = because or "The fitted power is that of the rate."
    return judged(item, [line], place=place, held=held, because=met if level else line.note)


def no_faster(stated: float, power: Power) -> bool:
    """Return whether a measured power does not lie above the stated one."""
    return power.mean.low - lift(power.places) <= stated


def ratio_draws(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """Return draws whose mean is the ratio of two means, with its delta-method spread.

    Parameters
    ----------
    upper, lower : ndarray of shape (draws,)
        Independent of each other.
    """
    ratio = float(upper.mean() / lower.mean())
    values: FloatArray = ratio + (upper - ratio * lower) / lower.mean()
    return values


def share_interval(met: FloatArray) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability (Clopper and Pearson 1934).

    Parameters
    ----------
    met : ndarray of shape (draws,)
        1 where the event was seen, else 0.
    """
    from scipy import stats

    found = stats.binomtest(round(float(np.sum(met))), len(met)).proportion_ci(0.95, "exact")
    return float(found.low), float(found.high)


def share_text(met: FloatArray) -> str:
    """Return in how many draws an event was seen, with the exact 95 % interval of its share."""
    low, high = share_interval(met)
    return f"{met.sum():.0f} of {len(met)} draws, share {low:.3g} to {high:.3g}"


def with_people(measured: Measured, n: int) -> Measured:
    """Return the same second moment, of another number of people."""
    moment = SecondMoment(measured.moment.A, n)
    return Measured(
        name=measured.name,
        columns=measured.columns,
        domain=measured.domain,
        row_bound=measured.row_bound,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=measured.notes,
        assumed_public=measured.assumed_public,
    )
