"""What an allocation of precision does: noise along directions, prices, gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.accounting.accounting import spent
from dpviz.core.allocation import SMALLEST_SHARE, SUM_TOLERANCE, UNIFORM, Allocation, refused
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import Draws
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.mechanisms._directional import (
    TRUE_DIRECTIONS,
    DirectionalMechanism,
    Directions,
    FollowsAllocation,
)
from dpviz.mechanisms._suppliers import own_problem, supplier_keys
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences.precision import DIRECTIONAL_FAMILY
from dpviz.simulation.compare import Comparison, Result

NOISE_COLUMNS = ("mechanism", "direction", "std")
PRICE_COLUMNS = ("mechanism", "share", "std")
GAIN_COLUMNS = (
    "mechanism", "name", "recovery", "low", "high", "uniform", "overlap", "spent", "status",
)  # fmt: skip
SPEND_COLUMNS = (
    "mechanism", "supplier", "epsilon_directions", "epsilon_release", "epsilon",
    "delta_directions", "delta_release", "delta", "directions_spent", "spent",
)  # fmt: skip


def precision_variants() -> tuple[str, ...]:
    """Return the variants that stand side by side on the Precision page."""
    return tuple(
        parse_variant(f"{key}[{parameters}]" if parameters else key).text
        for key, cls in all_mechanisms().items()
        for parameters in cls.info.precision
    )


def following() -> tuple[str, ...]:
    """Return the mechanisms that exist to follow an allocation, and earn from it.

    Of those that follow one, the ones that spend all of what they claim on it: their family is
    named for it.
    """
    return tuple(
        key
        for key, cls in all_mechanisms().items()
        if cls.follows_allocation and cls.info.family == DIRECTIONAL_FAMILY
    )


def direction_names(prepared: Prepared, allocation: Allocation) -> tuple[str, ...]:
    """Return a name for each direction of an allocation."""
    if allocation.directions == "features":
        return prepared.columns
    return tuple(f"direction {number}" for number in range(1, prepared.d + 1))


def noise_table(
    mechanisms: Sequence[Mechanism], prepared: Prepared, problem: Problem, budget: Budget, seed: int
) -> pd.DataFrame:
    """Return the noise along each direction of the problem's allocation.

    Returns
    -------
    DataFrame
        Columns `NOISE_COLUMNS`; directions count from 1; std in units of A.
        A mechanism that cannot run here, or whose noise has no such standard
        deviation, has no rows. Private directions are those of the first draw.
    """
    parts = []
    for mechanism in mechanisms:
        if mechanism.why_not(problem, budget) is not None:
            continue
        calibration = mechanism.calibrate(problem, budget)
        draws = Draws.trials(seed, mechanism.key, range(1))
        stds = mechanism.noise_along(prepared.moment, calibration, draws)
        # samplers have no noise that lies along a direction
        if stds is not None:
            # one frame each, joined at the end: a frame that grows is copied at every row
            parts.append(
                pd.DataFrame(
                    {
                        "mechanism": mechanism.text,
                        "direction": np.arange(1, problem.d + 1),
                        "std": stds,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*NOISE_COLUMNS])


_FLAT = 1e-9
"""Standard deviations within this factor of each other are one."""


def uneven(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of variants whose noise is not everywhere the same.

    Of a `noise_table`, over directions; of a `price_table`, over shares.
    """
    by = table.groupby("mechanism")["std"]
    return table[by.transform("max") > by.transform("min") * (1 + _FLAT)]


def account_table(
    mechanisms: Sequence[Mechanism], prepared: Prepared, problem: Problem, budget: Budget, seed: int
) -> pd.DataFrame:
    """Return what each account asks for at one budget, all with the uniform allocation.

    Returns
    -------
    DataFrame
        Columns mechanism, std (of the variance along one direction) and spent
        (the epsilon really spent at the budget's delta).
    """
    # with equal shares the accounts differ and nothing else does
    plain = replace(problem, allocation=UNIFORM)
    noise = noise_table(mechanisms, prepared, plain, budget, seed)
    rows = []
    for mechanism in mechanisms:
        stds = noise.loc[noise["mechanism"] == mechanism.text, "std"]
        if not stds.empty:
            cost = mechanism.spent(plain, budget)
            rows.append(
                {
                    "mechanism": mechanism.text,
                    "std": float(stds.iloc[0]),
                    "spent": None if cost is None else cost.epsilon,
                }
            )
    return pd.DataFrame(rows, columns=["mechanism", "std", "spent"])


def price_table(
    mechanisms: Sequence[Mechanism],
    prepared: Prepared,
    problem: Problem,
    budget: Budget,
    seed: int,
) -> pd.DataFrame:
    """Return the noise along one direction against its share of the precision.

    The other directions divide the rest equally.

    Returns
    -------
    DataFrame
        Columns `PRICE_COLUMNS`.
    """
    rows = []
    for mechanism in mechanisms:
        along = _noise_of_first(mechanism, prepared, seed)
        # noise falls as a power of the share, so that steps are even on its logarithm
        for share in np.geomspace(0.01, 0.99, 9):
            bought = replace(
                problem.allocation, strategy="binary", chosen=(1,), tau=float(share), theta=()
            )
            std = along(replace(problem, allocation=bought), budget)
            if std is not None:
                rows.append({"mechanism": mechanism.text, "share": float(share), "std": std})
    return pd.DataFrame(rows, columns=[*PRICE_COLUMNS])


def _noise_of_first(
    mechanism: Mechanism, prepared: Prepared, seed: int
) -> Callable[[Problem, Budget], float | None]:
    """Return how much noise lies along the first direction, as a function of the allocation.

    Directions do not depend on the shares, so they are released once for all.
    """
    released: list[Directions] = []

    def along(problem: Problem, budget: Budget) -> float | None:
        if mechanism.why_not(problem, budget) is not None:
            return None
        calibration = mechanism.calibrate(problem, budget)
        draws = Draws.trials(seed, mechanism.key, range(1))
        if not isinstance(mechanism, DirectionalMechanism):
            stds = mechanism.noise_along(prepared.moment, calibration, draws)
            return None if stds is None else float(stds[0])
        # directions do not depend on the share: they are released once, and each share only priced
        if not released:
            # kept in a list, which the function below sees filled
            released.append(mechanism.released_directions(prepared.moment, calibration, draws))
        return float(mechanism.direction_stds(calibration, released[0])[0, 0])

    return along


def spend_table(comparison: Comparison) -> pd.DataFrame:
    """Return how each budget is split between private directions and the release.

    Returns
    -------
    DataFrame
        Columns `SPEND_COLUMNS`, one row for each variant that buys directions:
        who supplies them, the parts for directions and for the release, their
        sums, the epsilon that the supplier really spends at its own delta, and
        the epsilon that both really spend together. Empty where none is bought.
    """
    problem, budget = comparison.problem, comparison.budget
    rows = []
    for result in comparison.results:
        mechanism = result.mechanism
        if not isinstance(mechanism, FollowsAllocation):
            continue
        bought = mechanism.purchase(problem, budget)
        # public directions cost nothing, and there is no split to show
        if bought.bought is None:
            continue
        # what is pure leaves the setting's delta unused
        whole = budget.delta if mechanism.info.guarantee == "approximate" else 0.0
        rows.append(
            {
                "mechanism": mechanism.label,
                "supplier": bought.supplier,
                "epsilon_directions": bought.bought.epsilon,
                "epsilon_release": bought.rest.epsilon,
                "epsilon": budget.epsilon,
                "delta_directions": bought.bought.delta,
                "delta_release": bought.rest.delta,
                "delta": whole,
                "directions_spent": spent(bought.parts, bought.bought).epsilon,
                "spent": None if result.spent is None else result.spent.epsilon,
            }
        )
    return pd.DataFrame(rows, columns=[*SPEND_COLUMNS])


def suppliers() -> dict[str, str]:
    """Return the mechanisms that can supply private directions, with their labels.

    The first, an empty text, is the default.
    """
    found = {"": "Gaussian or Wishart noise (default)"}
    return found | {key: all_mechanisms()[key].info.label for key in supplier_keys()}


def supplier_note(problem: Problem) -> str | None:
    """Return which directions a named supplier releases, or None where nobody is named."""
    if not problem.allocation.supplier:
        return None
    mechanism = parse_variant(problem.allocation.supplier)
    released = own_problem(mechanism, problem).k
    if mechanism.info.release == "matrix":
        return (
            f"{mechanism.label} releases a matrix: all {released} directions and their variances."
        )
    noun = "direction" if released == 1 else "directions"
    note = (
        f"{mechanism.label} releases a subspace: the first {released} {noun} (k, and at most d - 1)"
        f" are its own, the other {problem.d - released} complete the basis in no particular order"
    )
    if mechanism.releases_variances:
        return f"{note} and share the mean of the variances left."
    return f"{note}. It releases no variances, so shares by variance cannot be had from it."


def directions_warning(allocation: Allocation) -> str | None:
    """Return what is not private about an allocation's directions, or None."""
    return f"Not private. {TRUE_DIRECTIONS}" if allocation.directions == "true" else None


def overlap_with_chosen(result: Result, allocation: Allocation) -> float | None:
    """Return how much of the released space lies in the chosen features, averaged over draws.

    1 if the smaller of the two spaces lies inside the other, 0 if they are
    orthogonal. None unless features are the directions and some are chosen.
    """
    if allocation.strategy != "binary" or allocation.directions != "features":
        return None
    rows = result.components[:, np.array(allocation.chosen) - 1, :]
    # as many dimensions as two spaces can share, so that 1 is all of the smaller one
    most = min(rows.shape[1], rows.shape[2])
    return float(np.square(rows).sum(axis=(1, 2)).mean() / most)


def gain_table(comparison: Comparison, uniform: Comparison) -> pd.DataFrame:
    """Return what an allocation gained against equal shares.

    Returns
    -------
    DataFrame
        Columns `GAIN_COLUMNS`: the variant and its name, mean recovery with this allocation, the
        central 95 % of its draws, the mean with equal shares, overlap (see
        `overlap_with_chosen`), spent and status. Recovery is missing where nothing can be
        recovered: where any subspace is as good.
    """
    before = {result.mechanism.text: _recovery(result) for result in uniform.results}
    rows = [
        {
            "mechanism": result.mechanism.text,
            "name": result.mechanism.label,
            "recovery": _recovery(result),
            **_range(result),
            "uniform": before.get(result.mechanism.text),
            "overlap": overlap_with_chosen(result, comparison.problem.allocation),
            "spent": None if result.spent is None else result.spent.epsilon,
            "status": result.status.words,
        }
        for result in comparison.results
    ]
    return pd.DataFrame(rows, columns=[*GAIN_COLUMNS])


def _range(result: Result) -> dict[str, float]:
    told = result.summaries.get("recovery")
    return {} if told is None else {"low": told.low, "high": told.high}


def _recovery(result: Result) -> float | None:
    """Return the mean recovery of the draws, None where chance is as good as exact PCA."""
    # absent where nothing can be recovered, as no share of nothing is one
    values = result.metrics.get("recovery")
    return None if values is None else float(values.mean())


def bounds_of_rows(
    rows: Iterable[tuple[str, float | None, float | None]],
) -> dict[str, tuple[float, float]]:
    """Return edited bounds by feature.

    Parameters
    ----------
    rows : iterable of (str, float or None, float or None)
        Feature, low and high; None where a cell was left blank.

    Raises
    ------
    InvalidSetting
        If a bound is missing or not finite, or a low is not below its high. The
        numbers are not repeated: they may have been taken from the data.
    """
    found = {}
    for name, low, high in rows:
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            given = "a blank"
        elif not low < high:
            given = "low at or above high"
        else:
            found[name] = (float(low), float(high))
            continue
        # never the numbers: bounds that were taken from the data are people's
        allowed = "finite numbers with low below high"
        raise InvalidSetting(f"the bounds of {name[:60]!r}", allowed, given, "--bounds")
    return found


# The planted example ------------------------------------------------------------------------------


EPSILON, TAU = 0.1, 0.8

_PLANTED: dict[str, Any] = {
    "table": "planted", "epsilon": EPSILON, "delta": None, "k": 2, "relation": "replace",
    "center": None, "scale": "none", "row_bound": "max", "directions": "features",
}  # fmt: skip
_BOX: dict[str, Any] = {"domain": "box", "bounds": "known"}
_BALL: dict[str, Any] = {"domain": "ball", "bounds": "max"}


@dataclass(frozen=True)
class Example:
    """A setting in which directions pay, or do not.

    Attributes
    ----------
    label : str
    said : str
        What is believed, and of what.
    changes : mapping
        Fields of `Settings`, with every one that the outcome depends on but draws and seed.
    """

    label: str
    said: str
    changes: Mapping[str, Any] = field(hash=False)

    @property
    def allocation(self) -> str:
        """The belief, as an allocation."""
        return str(self.changes["allocation"])

    def of(self, settings: Settings) -> Settings:
        """Return settings with the example's in place."""
        return replace(settings, **self.changes)


def _example(label: str, said: str, allocation: str, domain: Mapping[str, Any]) -> Example:
    return Example(label, said, {**_PLANTED, **domain, "allocation": allocation})


EXAMPLES: dict[str, Example] = {
    "right": _example(
        "Right", "both features that vary are favoured", f"binary:1,2:{TAU}", _BOX
    ),
    "half": _example(
        "Half right", "one of the two features that vary is favoured", f"binary:1:{TAU}", _BOX
    ),
    "wrong": _example(
        "Wrong", "two features that hardly vary are favoured", f"binary:7,8:{TAU}", _BOX
    ),
    "ball": _example(
        "On the ball", "both features that vary are favoured, but only the norm of a row is public",
        f"binary:1,2:{TAU}", _BALL,
    ),
}  # fmt: skip
"""By key, in the order they are told; the first is where the Precision page opens."""


def shown(settings: Settings) -> str | None:
    """Return the key of the example that settings are, whatever their draws and mechanisms."""
    for key, example in EXAMPLES.items():
        if example.of(settings) == settings:
            return key
    return None


# Shares of the precision that a page lets a user edit, drag and take along ----------------------

SHARE_DIGITS = 6
"""Decimals of a share that was dragged."""


def rebalance(theta: FloatArray, locked: NDArray[np.bool_]) -> FloatArray:
    """Return theta with the unlocked entries rescaled so that all sum to 1.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        At least 0 each; unlocked entries keep their proportions, or become
        equal where they are all 0.
    locked : ndarray of bool, shape (d,)

    Raises
    ------
    InvalidSetting
        If the locked entries leave the others less than `SMALLEST_SHARE` each,
        or everything is locked and the sum is not 1.
    """
    fixed = math.fsum(theta[locked])
    free = int((~locked).sum())
    left = 1.0 - fixed
    if free == 0:
        if abs(left) > SUM_TOLERANCE:
            raise refused("shares that sum to 1; all are locked", f"a sum of {numeral(fixed, 7)}")
        return theta / fixed
    if left < free * SMALLEST_SHARE:
        raise refused(
            f"locked shares that leave at least {numeral(SMALLEST_SHARE, 6)} for each of the other "
            f"{free}",
            f"locked shares that sum to {numeral(fixed, 7)}",
        )
    result = theta.astype(np.float64)
    weights = np.maximum(theta[~locked], 0.0)
    total = math.fsum(weights)
    weights = weights / total if total > 0 else np.full(free, 1.0 / free)
    # What lies above the least share is divided in proportion, so no entry falls below it.
    result[~locked] = SMALLEST_SHARE + (left - free * SMALLEST_SHARE) * weights
    return result


def shares_table(allocation: Allocation, names: Sequence[str]) -> pd.DataFrame:
    """Return the shares to edit: columns direction, theta and locked.

    Where the shares follow from a spectrum, the table starts from equal ones.
    """
    d = len(names)
    shares = UNIFORM.shares(d) if allocation.needs_spectrum else allocation.shares(d)
    return pd.DataFrame({"direction": list(names), "theta": shares, "locked": False})


def rebalanced_text(table: pd.DataFrame) -> str:
    """Return the text of an edited table of shares after `rebalance`.

    Parameters
    ----------
    table : DataFrame
        As `shares_table` returns it, edited.

    Raises
    ------
    InvalidSetting
        If a share is missing, or the locked ones leave the others too little.
    """
    theta = table["theta"].to_numpy(dtype=np.float64)
    _check_numbers(theta)
    return custom_text(rebalance(theta, table["locked"].to_numpy(dtype=np.bool_)).tolist())


def moved_text(theta: Sequence[float], locked: Sequence[bool], moved: int) -> str:
    """Return the text of shares after one of them was dragged to its place.

    The one that moved stays, locked ones stay, and the others are rescaled by `rebalance`. Shares
    are rounded to `SHARE_DIGITS` decimals.

    Parameters
    ----------
    theta : sequence of float
    locked : sequence of bool
    moved : int
        Index of the share that was dragged.

    Raises
    ------
    InvalidSetting
        If these are not shares, or the ones that stay leave the others too little.
    """
    _check_numbers(theta)
    if len(locked) != len(theta) or not 0 <= moved < len(theta):
        raise refused("one lock for each share", f"{len(locked)} locks")
    shares, stays = np.array(theta, dtype=np.float64), np.array(locked, dtype=np.bool_)
    shares[moved] = max(shares[moved], SMALLEST_SHARE)
    stays[moved] = True
    shares = np.round(rebalance(shares, stays), SHARE_DIGITS)
    # What rounding leaves over goes where it is felt least, and not to what stays.
    place = int(np.where(stays & ~stays.all(), 0.0, shares).argmax())
    shares[place] = round(float(shares[place]) + 1 - math.fsum(shares), SHARE_DIGITS)
    return custom_text(shares.tolist())


def _check_numbers(shares: Sequence[float] | FloatArray) -> None:
    if not np.isfinite(np.asarray(shares, dtype=np.float64)).all():
        raise InvalidSetting("allocation", "shares that are numbers", "a blank", "--allocation")


def custom_text(shares: Sequence[float]) -> str:
    """Return the settings text of a custom allocation; raises unless it sums to 1."""
    _check_numbers(shares)
    return Allocation("custom", theta=tuple(float(share) for share in shares)).text[0]


def shares_file(allocation: Allocation, names: Sequence[str], shares: Sequence[float]) -> str:
    """Return shares as the text of a CSV file that can be read back.

    Features go by name; principal directions have numbers only.
    """
    key = "feature" if allocation.directions == "features" else "direction"
    keys = list(names) if key == "feature" else list(range(1, len(names) + 1))
    return csv_text(pd.DataFrame({key: keys, "theta": list(shares)}))
