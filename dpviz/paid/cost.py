"""What each step of a preparation costs when it is paid for: one waterfall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.base.arrays import FloatArray
from dpviz.base.blas import one_blas_thread
from dpviz.base.params import Declared, choice, integer, number, text
from dpviz.base.seeding import Draws
from dpviz.datasets import Table
from dpviz.errors import InvalidSetting
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.paid.account import BOUND, COUNT, DEFAULT_SHARES, MEAN, SCALE, Chain, Wanted, chain
from dpviz.paid.chain import Public, noise_edge, run
from dpviz.privacy.gaussian import mu_of
from dpviz.values.problem import EPSILON_RANGE, Budget, Domain, Problem, Relation, default_delta

COLUMNS = ("step", "recovery", "se", "low", "high", "change", "epsilon_left", "assumed_public")
_CELLS = 50_000_000  # n d draws: what a page or a command does in a minute


def default_mechanism() -> str:
    """Return the key of the Gaussian mechanism that a real release would use."""
    return next(
        key
        for key, cls in all_mechanisms().items()
        if cls.info.discrete and cls.info.guarantee == "approximate"
    )


def _share(step: str, what: str) -> Any:
    return number(
        DEFAULT_SHARES[step],
        0.001,
        0.9,
        label=f"Share for the {what}",
        help=f"Share of the budget (of squared mu, or of epsilon where all is pure) that the "
        f"private {what} gets.",
        slider=(0.005, 0.5),
        examples=(0.2,),
    )


@dataclass(frozen=True)
class PaidOptions(Declared):
    """What is prepared privately, by which mechanism, and how the budget is shared."""

    mechanism: str = text(
        default_mechanism(),
        label="Mechanism",
        help="Mechanism or variant that makes the release.",
        flag="--mechanism",
        examples=("some_key",),
    )
    bounds: str = text(
        "known",
        label="Feature bounds",
        help="Public bounds of each feature: LOW:HIGH for all of them; a CSV or Parquet file with "
        "the columns feature, low, high; or known (the table's own public bounds).",
        examples=("0:16",),
    )
    epsilon: float = number(
        1.0,
        *EPSILON_RANGE,
        label="Epsilon",
        help="Of preparation and release together.",
        slider=(0.01, 100.0),
        log=True,
        examples=(2.0,),
    )
    delta: float | None = number(
        None,
        0.0,
        math.nextafter(1.0, 0.0),
        label="Delta",
        help="Of both together; auto is the default for this n.",
        optional=True,
        allowed_text="a number from 0 to below 1",
        examples=(1e-6,),
    )
    k: int = integer(
        2, 1, 100_000, label="Components k", help="Components to release.", examples=(3,)
    )
    relation: str = choice(
        "zero-out",
        {"replace": "replace one person", "zero-out": "zero out one person"},
        label="Neighbours",
        help="What one person may change. n can be private under zero-out only: replacing a "
        "person does not change it.",
        examples=("replace",),
    )
    scale: str = choice(
        "none",
        {"none": "none", "standardize": "divide by standard deviation"},
        label="Scaling",
        help="Scaling of each feature before the row bound.",
        examples=("standardize",),
    )
    clip: str = choice(
        "quantile",
        {"quantile": "private quantile of the lengths", "adaptive": "adaptive clip"},
        label="Private row bound",
        help="A quantile by the exponential mechanism, or the radius at which halving its square "
        "stops to pay, by the sparse vector technique.",
        examples=("adaptive",),
    )
    level: float = number(
        0.9,
        0.01,
        1.0,
        label="Quantile",
        help="Of the row lengths, for the private quantile.",
        examples=(0.8,),
    )
    mean_share: float = _share(MEAN, "mean")
    scale_share: float = _share(SCALE, "scale")
    bound_share: float = _share(BOUND, "row bound")
    count_share: float = _share(COUNT, "number of people")
    trials: int = integer(
        20, 2, 10_000, label="Draws", help="Whole chains simulated for each step.", examples=(5,)
    )
    seed: int = integer(0, 0, 2**63 - 1, label="Seed", help="Same seed, same bytes.", examples=(1,))

    def wanted(self, steps: tuple[str, ...]) -> Wanted:
        """Return these steps with the shares that the options give them."""
        shares = (
            (MEAN, self.mean_share),
            (SCALE, self.scale_share),
            (BOUND, self.bound_share),
            (COUNT, self.count_share),
        )
        return Wanted(steps, tuple((n, s) for n, s in shares if n in steps), self.clip, self.level)


@dataclass(frozen=True, eq=False)
class Stage:
    """One bar: some steps are private, the others are assumed public.

    Attributes
    ----------
    step : str
        What became private here; the first bar has everything public.
    chain : Chain
    recovery : ndarray of shape (trials,)
    assumed_public : tuple of str
    """

    step: str
    chain: Chain
    recovery: FloatArray
    assumed_public: tuple[str, ...]


WORDS = {
    MEAN: "mean private",
    SCALE: "scale private",
    BOUND: "row bound private",
    COUNT: "n private",
}
_ASSUMED = {
    MEAN: "the feature means",
    SCALE: "the feature scales (standard deviations)",
    BOUND: "the row bound R (largest row norm)",
    COUNT: "the number of rows n",
}
EVERYTHING = "everything public"


def stages(table: Table, limits: FloatArray, options: PaidOptions) -> list[Stage]:
    """Return the bars: all public, then mean, scale, bound and n private, each with those before.

    Parameters
    ----------
    table : Table
    limits : ndarray of shape (d, 2)
        Public bounds of its features.
    options : PaidOptions

    Raises
    ------
    DpvizError
        If the options do not fit the table, or leave nothing for the mechanism.

    Notes
    -----
    Recovery compares with the exact components of the exactly prepared table, so this is for
    teaching: it looks at the true answer.
    """
    n, d = table.rows.shape
    if n * d * options.trials > _CELLS:
        raise InvalidSetting(
            "trials", f"at most {max(_CELLS // (n * d), 1)} for {n:,} rows of {d}", options.trials
        )
    if options.k >= d:
        raise InvalidSetting("k", f"a whole number from 1 to {d - 1}", options.k, "--k")
    order = [MEAN, *([SCALE] if options.scale != "none" else []), BOUND]
    if options.relation == Relation.ZERO_OUT:
        order.append(COUNT)
    found = []
    for count in range(len(order) + 1):
        steps = tuple(order[:count])
        found.append(_stage(table, limits, options, order, steps))
    return found


def _stage(
    table: Table,
    limits: FloatArray,
    options: PaidOptions,
    order: list[str],
    steps: tuple[str, ...],
) -> Stage:
    rows = table.rows
    n, d = rows.shape
    relation = Relation(options.relation)
    budget = Budget(options.epsilon, default_delta(n) if options.delta is None else options.delta)
    problem = Problem(n, d, options.k, relation, Domain.ball(d))
    mechanism = parse_variant(options.mechanism)
    mechanism.check(problem, budget)
    whole = chain(mechanism, problem, budget, options.wanted(steps))
    mean, spread = rows.mean(axis=0), np.ones(d)
    if options.scale != "none":
        spread = rows.std(axis=0)
        spread[spread == 0] = 1.0  # a constant column stays as it is
    exact = (rows - mean) / spread
    lengths = np.linalg.norm(exact, axis=1)
    calibration = mechanism.calibrate(problem, whole.rest)
    edges = mechanism.spectrum_edges(calibration)
    if edges is not None:
        edge = n * max(abs(edges[0]), abs(edges[1]))
    else:
        mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
        edge = noise_edge(d, relation, mu)
    public = Public(
        limits[:, 0], limits[:, 1], mean, spread, float(lengths.max()), MEAN not in steps, edge
    )
    numbers = range(options.trials)
    with one_blas_thread():
        prepared = run(
            rows, public, whole.preparation, Draws.trials(options.seed, "prepare", numbers)
        )
        reference = exact.T @ exact / n
        values = np.linalg.eigvalsh(reference)
        best, chance = values[-options.k :].sum(), values.sum() * options.k / d
        captured = np.empty(options.trials)
        for index, draw in enumerate(Draws.trials(options.seed, mechanism.key, numbers).single()):
            moment = (
                prepared.moment_with_rows(rows, public, index)
                if mechanism.info.needs_rows
                else prepared.moment(index, n)
            )
            V = mechanism.release_many(moment, calibration, draw).components[0]
            captured[index] = np.einsum("ij,ij->", V, reference @ V)
    # 0 is a random subspace, 1 the best one
    recovery = (captured - chance) / (best - chance)
    assumed = ["the features' names", "the feature bounds"]
    assumed += [_ASSUMED[step] for step in order if step not in steps]
    if COUNT not in order:
        assumed.append("the number of rows n, the same for all neighbours")
    step = WORDS[steps[-1]] if steps else EVERYTHING
    return Stage(step, whole, recovery, tuple(assumed))


def waterfall_table(found: list[Stage]) -> pd.DataFrame:
    """Return one row per bar with `COLUMNS`; low and high are the central 95 % of the draws."""
    rows = []
    before = math.nan
    for stage in found:
        values = stage.recovery
        mean = float(values.mean())
        low, high = np.quantile(values, (0.025, 0.975))
        rows.append(
            {
                "step": stage.step,
                "recovery": mean,
                "se": float(values.std(ddof=1) / math.sqrt(len(values))),
                "low": float(low),
                "high": float(high),
                "change": mean - before,
                "epsilon_left": stage.chain.rest.epsilon,
                "assumed_public": "; ".join(stage.assumed_public),
            }
        )
        before = mean
    return pd.DataFrame(rows, columns=list(COLUMNS))


def told(table: pd.DataFrame) -> str:
    """Return the waterfall in one sentence."""
    rows = table.to_dict("records")
    sentence = (
        f"Recovery is {rows[0]['recovery']:.2f} where everything but the rows is public, and "
        f"{rows[-1]['recovery']:.2f} where all of it is paid for"
    )
    at = min(range(1, len(rows)), key=lambda index: float(rows[index]["change"]))
    dearest, before = rows[at], rows[at - 1]
    if dearest["change"] < -2 * math.hypot(dearest["se"], before["se"]):
        sentence += f"; the dearest step is the {str(dearest['step']).removesuffix(' private')}"
    return sentence + "."
