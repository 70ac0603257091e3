"""Effects of an allocation of precision: noise along directions, cost, gains."""

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
    """Return the variants that the Precision page compares."""
    return tuple(
        parse_variant(f"{key}[{parameters}]" if parameters else key).text
        for key, cls in all_mechanisms().items()
        for parameters in cls.info.precision
    )


def following() -> tuple[str, ...]:
    """Return the mechanisms that are designed to follow an allocation and can gain from it.

    These mechanisms form the family that follows an allocation and uses all of its claimed budget.
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
        Table with `NOISE_COLUMNS`; directions count from 1; std in units of A. A mechanism that
        cannot run here, or whose noise has no such standard deviation, has no rows. Private
        directions come from the first release.
    """
    parts = []
    for mechanism in mechanisms:
        if mechanism.why_not(problem, budget) is not None:
            continue
        calibration = mechanism.calibrate(problem, budget)
        draws = Draws.trials(seed, mechanism.key, range(1))
        stds = mechanism.noise_along(prepared.moment, calibration, draws)
        # Mechanisms that sample have no noise along a direction.
        if stds is not None:
            # Join one frame per mechanism at the end. Growing a frame copies every row.
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
"""Standard deviations within this relative distance count as equal."""


def uneven(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of variants whose noise is not the same everywhere.

    The noise varies over directions in a `noise_table`, and over shares in a `price_table`.
    """
    by = table.groupby("mechanism")["std"]
    return table[by.transform("max") > by.transform("min") * (1 + _FLAT)]


def account_table(
    mechanisms: Sequence[Mechanism], prepared: Prepared, problem: Problem, budget: Budget, seed: int
) -> pd.DataFrame:
    """Return the noise by each accounting method at one budget, with the uniform allocation.

    Returns
    -------
    DataFrame
        Table with columns mechanism, std (of the variance along one direction) and spent (the
        actual epsilon at the budget's delta).
    """
    # The shares are equal, so the mechanisms differ only in their privacy accounting.
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

    The other directions divide the remaining precision equally.

    Returns
    -------
    DataFrame
        Table with `PRICE_COLUMNS`.
    """
    rows = []
    for mechanism in mechanisms:
        along = _noise_of_first(mechanism, prepared, seed)
        # Noise is a power of the share, so use steps that are even on a logarithmic scale.
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
    """Return a function of problem and budget that gives the noise along the first direction.

    Directions do not depend on the shares, so the mechanism releases them only once.
    """
    directions: list[Directions] = []

    def along(problem: Problem, budget: Budget) -> float | None:
        if mechanism.why_not(problem, budget) is not None:
            return None
        calibration = mechanism.calibrate(problem, budget)
        draws = Draws.trials(seed, mechanism.key, range(1))
        if not isinstance(mechanism, DirectionalMechanism):
            stds = mechanism.noise_along(prepared.moment, calibration, draws)
            return None if stds is None else float(stds[0])
        if not directions:
            # Store the released directions in this list, so that later calls reuse them.
            directions.append(mechanism.released_directions(prepared.moment, calibration, draws))
        return float(mechanism.direction_stds(calibration, directions[0])[0, 0])

    return along


def spend_table(comparison: Comparison) -> pd.DataFrame:
    """Return how each budget is divided between private directions and the release.

    Returns
    -------
    DataFrame
        Table with `SPEND_COLUMNS`, one row for each variant with private directions: their
        supplier, the budgets for directions and for the release, their sums, the supplier's actual
        epsilon at its own delta, and the actual epsilon of both. Empty if there is no such variant.
    """
    problem, budget = comparison.problem, comparison.budget
    rows = []
    for result in comparison.results:
        mechanism = result.mechanism
        if not isinstance(mechanism, FollowsAllocation):
            continue
        bought = mechanism.purchase(problem, budget)
        # Public directions use no budget, so there is no split of the budget to show.
        if bought.bought is None:
            continue
        # A mechanism with pure privacy does not use the delta of the setting.
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

    The first key, an empty text, means no supplier and is the default.
    """
    names = {"": "Gaussian or Wishart noise (default)"}
    return names | {key: all_mechanisms()[key].info.label for key in supplier_keys()}


def supplier_note(problem: Problem) -> str | None:
    """Return which directions a named supplier releases, or None if no supplier is named."""
    if not problem.allocation.supplier:
        return None
    mechanism = parse_variant(problem.allocation.supplier)
    count = own_problem(mechanism, problem).k
    if mechanism.info.release == "matrix":
        return f"{mechanism.label} releases a matrix: all {count} directions and their variances."
    noun = "direction" if count == 1 else "directions"
    note = (
        f"{mechanism.label} releases a subspace. The first {count} {noun} (k, and at most d - 1) "
        f"span the released subspace. The other {problem.d - count} directions complete the basis "
        "in no order"
    )
    if mechanism.releases_variances:
        return f"{note} and share the mean of the remaining variances."
    return f"{note}. The mechanism releases no variances, so shares by variance are impossible."


def directions_warning(allocation: Allocation) -> str | None:
    """Return which facts about an allocation's directions are not private, or None."""
    return f"Not private. {TRUE_DIRECTIONS}" if allocation.directions == "true" else None


def overlap_with_chosen(result: Result, allocation: Allocation) -> float | None:
    """Return how much of the released space lies in the chosen features, averaged over releases.

    The result is 1 if the smaller of the two spaces lies inside the other, and 0 if they are
    orthogonal. It is None unless features are the directions and some features are chosen.
    """
    if allocation.strategy != "binary" or allocation.directions != "features":
        return None
    rows = result.components[:, np.array(allocation.chosen) - 1, :]
    # Divide by the most dimensions in common, so that 1 means the whole smaller space.
    most = min(rows.shape[1], rows.shape[2])
    return float(np.square(rows).sum(axis=(1, 2)).mean() / most)


def gain_table(comparison: Comparison, uniform: Comparison) -> pd.DataFrame:
    """Return the gain of an allocation over equal shares.

    Returns
    -------
    DataFrame
        Table with `GAIN_COLUMNS`: the variant and its name, mean recovery with this allocation and
        its central 95 %, the mean with equal shares, overlap (see `overlap_with_chosen`), spent and
        status. Recovery is missing if all subspaces are equally good.
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
    summary = result.summaries.get("recovery")
    return {} if summary is None else {"low": summary.low, "high": summary.high}


def _recovery(result: Result) -> float | None:
    """Return the mean recovery of the releases; None if chance is as good as exact PCA."""
    # If nothing can be recovered, the share is undefined and the metric is absent.
    values = result.metrics.get("recovery")
    return None if values is None else float(values.mean())


def bounds_of_rows(
    rows: Iterable[tuple[str, float | None, float | None]],
) -> dict[str, tuple[float, float]]:
    """Return bounds by feature from an edited table.

    Parameters
    ----------
    rows : iterable of (str, float or None, float or None)
        Table of feature, low and high; None for a blank cell.

    Raises
    ------
    InvalidSetting
        If a bound is missing or not finite, or a low is not below its high. The message omits the
        numbers, which may have been taken from the data.
    """
    bounds = {}
    for name, low, high in rows:
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            entry = "a blank"
        elif not low < high:
            entry = "low at or above high"
        else:
            bounds[name] = (float(low), float(high))
            continue
        # Do not show the wrong numbers, because bounds taken from the data are values of people.
        rule = "finite numbers with low below high"
        raise InvalidSetting(f"the bounds of {name[:60]!r}", rule, entry, "--bounds")
    return bounds


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
    """A setting in which low-noise directions help, or do not help.

    Attributes
    ----------
    label : str
    said : str
        The belief about useful directions, in words.
    changes : mapping
        Fields of `Settings` that determine the outcome, except number of releases and seed.
    """

    label: str
    said: str
    changes: Mapping[str, Any] = field(hash=False)

    @property
    def allocation(self) -> str:
        """The belief about useful directions, as an allocation."""
        return str(self.changes["allocation"])

    def of(self, settings: Settings) -> Settings:
        """Return settings with the example's values."""
        return replace(settings, **self.changes)


def _example(label: str, text: str, allocation: str, domain: Mapping[str, Any]) -> Example:
    return Example(label, text, {**_PLANTED, **domain, "allocation": allocation})


EXAMPLES: dict[str, Example] = {
    "right": _example(
        "Right", "the shares favour both features that vary", f"binary:1,2:{TAU}", _BOX
    ),
    "half": _example(
        "Half right", "the shares favour one of the two features that vary", f"binary:1:{TAU}", _BOX
    ),
    "wrong": _example(
        "Wrong", "the shares favour two features that hardly vary", f"binary:7,8:{TAU}", _BOX
    ),
    "ball": _example(
        "On the ball", "the shares favour both features that vary; only a row-norm bound is public",
        f"binary:1,2:{TAU}", _BALL,
    ),
}  # fmt: skip
"""Examples by key, in teaching order; the Precision page starts with the first example."""


def shown(settings: Settings) -> str | None:
    """Return the key of the example that settings match; trials and mechanisms may differ."""
    for key, example in EXAMPLES.items():
        if example.of(settings) == settings:
            return key
    return None


# Shares of the precision that a page lets a user edit, drag and download ------------------------

SHARE_DIGITS = 6
"""Number of decimals of a dragged share."""


def rebalance(theta: FloatArray, locks: NDArray[np.bool_]) -> FloatArray:
    """Return theta with the unlocked entries rescaled so that all sum to 1.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        Shares, each at least 0. Unlocked entries keep their proportions, or become equal if all of
        them are 0.
    locks : ndarray of bool, shape (d,)

    Raises
    ------
    InvalidSetting
        If the locked entries leave less than `SMALLEST_SHARE` for each other entry, or all entries
        are locked and the sum is not 1.
    """
    mass = math.fsum(theta[locks])
    free = int((~locks).sum())
    rest = 1.0 - mass
    if free == 0:
        if abs(rest) > SUM_TOLERANCE:
            raise refused("shares that sum to 1 if all are locked", f"a sum of {numeral(mass, 7)}")
        return theta / mass
    if rest < free * SMALLEST_SHARE:
        raise refused(
            f"locked shares that leave at least {numeral(SMALLEST_SHARE, 6)} for each of the "
            f"{free} other shares",
            f"locked shares that sum to {numeral(mass, 7)}",
        )
    result = theta.astype(np.float64)
    weights = np.maximum(theta[~locks], 0.0)
    total = math.fsum(weights)
    weights = weights / total if total > 0 else np.full(free, 1.0 / free)
    # Give every share the least value, and divide only the rest, so that none falls below it.
    result[~locks] = SMALLEST_SHARE + (rest - free * SMALLEST_SHARE) * weights
    return result


def shares_table(allocation: Allocation, names: Sequence[str]) -> pd.DataFrame:
    """Return the table of shares for editing, with columns direction, theta and locked.

    If the shares follow from a spectrum, the table starts with equal shares.
    """
    d = len(names)
    shares = UNIFORM.shares(d) if allocation.needs_spectrum else allocation.shares(d)
    return pd.DataFrame({"direction": list(names), "theta": shares, "locked": False})


def rebalanced_text(table: pd.DataFrame) -> str:
    """Return the text of an edited table of shares after `rebalance`.

    Parameters
    ----------
    table : DataFrame
        Table from `shares_table`, edited.

    Raises
    ------
    InvalidSetting
        If a share is missing, or the locked shares leave too little for the others.
    """
    theta = table["theta"].to_numpy(dtype=np.float64)
    _check_numbers(theta)
    return custom_text(rebalance(theta, table["locked"].to_numpy(dtype=np.bool_)).tolist())


def moved_text(theta: Sequence[float], locks: Sequence[bool], index: int) -> str:
    """Return the text of all shares after a user dragged one of them.

    The dragged share and locked shares keep their values; `rebalance` rescales the other shares.
    Shares are rounded to `SHARE_DIGITS` decimals.

    Parameters
    ----------
    theta : sequence of float
    locks : sequence of bool
    index : int
        Index of the dragged share.

    Raises
    ------
    InvalidSetting
        If the values are not shares, or the fixed shares leave too little for the others.
    """
    _check_numbers(theta)
    if len(locks) != len(theta) or not 0 <= index < len(theta):
        raise refused("a list with one lock for each share", f"{len(locks)} locks")
    shares, stays = np.array(theta, dtype=np.float64), np.array(locks, dtype=np.bool_)
    shares[index] = max(shares[index], SMALLEST_SHARE)
    stays[index] = True
    shares = np.round(rebalance(shares, stays), SHARE_DIGITS)
    # Add the rounding error to the largest share that may change, where it matters least.
    place = int(np.where(stays & ~stays.all(), 0.0, shares).argmax())
    shares[place] = round(float(shares[place]) + 1 - math.fsum(shares), SHARE_DIGITS)
    return custom_text(shares.tolist())


def _check_numbers(shares: Sequence[float] | FloatArray) -> None:
    if not np.isfinite(np.asarray(shares, dtype=np.float64)).all():
        raise InvalidSetting("allocation", "shares that are all numbers", "a blank", "--allocation")


def custom_text(shares: Sequence[float]) -> str:
    """Return the settings text of a custom allocation; raise unless its sum is 1."""
    _check_numbers(shares)
    return Allocation("custom", theta=tuple(float(share) for share in shares)).text[0]


def shares_file(allocation: Allocation, names: Sequence[str], shares: Sequence[float]) -> str:
    """Return shares as the text of a CSV file that can be read back.

    Features are written by name; principal directions have only numbers.
    """
    key = "feature" if allocation.directions == "features" else "direction"
    keys = list(names) if key == "feature" else list(range(1, len(names) + 1))
    return csv_text(pd.DataFrame({key: keys, "theta": list(shares)}))
