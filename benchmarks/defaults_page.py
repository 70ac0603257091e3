"""Write the page of `benchmarks.defaults`: the regret of each choice, goals, worst tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.defaults import BOUNDS, EPSILONS, KS, MECHANISMS, SCALES, others
from benchmarks.markdown import table_lines
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.simulation.defaults import advised

KINDS = {"approximate": "With delta", "pure": "Pure epsilon"}
GOALS = {"approximate": (0.008, 0.04, 0.3), "pure": (0.01, 0.05, 0.3)}
"""Goals for the regret: its mean, its 95 % quantile over settings, and its maximum."""
GOAL_SLOPE = 0.001
ADVISED = "**advised**"
BESIDE = {
    "approximate": ("spherical", "adaptive_clip_gaussian", "gaussian"),
    "pure": ("spherical_wishart_difference", "wishart_difference"),
}
"""Choices printed beside the advised choice in tables of split regrets."""
_RESAMPLES = 1_000
_WORST = 8


def settings_of(tables: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per setting: a table, its size and bound, a relation, an epsilon and a k.

    ``cell`` and ``place`` hold the results of `benchmarks.defaults.measured` and the index of k.
    """
    return pd.DataFrame(
        [
            {key: table[key] for key in ("name", "scale", "tuning")}
            | {key: cell[key] for key in ("n", "d", "bound", "relation", "epsilon")}
            | {"k": k, "cell": cell, "place": place}
            for table in tables
            for cell in table["cells"]
            for place, k in enumerate(cell["ks"])
        ]
    )


def _halves(setting: Any, choice: str) -> list[float]:
    """Return a choice's mean recovery on each half of the repetitions, or NaN if it has none.

    A mechanism without variants for other shares of rows serves as its own variant.
    """
    means = setting.cell["means"]
    both = means.get(choice) or means.get(choice.partition(",")[0])
    return (both and both[setting.place]) or [math.nan, math.nan]


def contenders(kind: str, *, matrix: bool = False, rows: bool = True) -> list[str]:
    """Return the mechanisms to choose from, and their variants with other shares to clip."""
    keys = []
    for key in MECHANISMS[kind]:
        mechanism = parse_variant(key)
        if (rows or not mechanism.needs_rows) and (
            not matrix or mechanism.info.release == "matrix"
        ):
            keys.append(key)
    return keys + ([other.text for other in others(kind)] if rows and not matrix else [])


def _advised(setting: Any, kind: str, matrix: bool, rows: bool) -> str:
    relation, domain = Relation(setting.relation), Domain.ball(setting.d)
    problem = Problem(setting.n, setting.d, int(setting.k), relation, domain)
    budget = Budget(setting.epsilon, setting.cell["delta"] if kind == "approximate" else 0.0)
    return advised(problem, budget, matrix=matrix, rows=rows).text


def regrets(settings: pd.DataFrame, kind: str, *, matrix: bool, rows: bool) -> pd.DataFrame:
    """Return the regrets of the core's rule and of each single contender, one column each.

    The best contender is chosen on one half of the repetitions and read on the other half.
    """
    keys = contenders(kind, matrix=matrix, rows=rows)
    every = list(settings.itertuples())
    halves = np.array([[_halves(one, key) for key in keys] for one in every])
    best_two = np.where(np.isnan(halves), -np.inf, halves).argmax(axis=1)
    numbers = np.arange(len(every))
    best = (halves[numbers, best_two[:, 1], 0] + halves[numbers, best_two[:, 0], 1]) / 2
    rule = [_halves(one, _advised(one, kind, matrix, rows)) for one in every]
    columns = {ADVISED: best - np.mean(rule, axis=1)}
    for number, key in enumerate(keys):
        if parse_variant(key.partition(",")[0]).info.family != "subspace":
            columns[key] = best - halves[:, number].mean(axis=1)
    return pd.DataFrame(columns, index=settings.index)


def _interval(values: pd.Series, names: pd.Series) -> tuple[float, float]:
    """Return the central 95 % of the mean over resampled tables, with all settings of a table."""
    groups = values.groupby(names.loc[values.index])
    sums, counts = groups.sum().to_numpy(), groups.count().to_numpy()
    rng = generator(0, "defaults", "bootstrap")
    places = rng.integers(len(sums), size=(_RESAMPLES, len(sums)))
    low, high = np.quantile(sums[places].sum(axis=1) / counts[places].sum(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _table(settings: pd.DataFrame, losses: pd.DataFrame) -> list[str]:
    """Return a table of choices: the core's rule, then others by regret on the test half."""
    test = losses[~settings["tuning"]]
    order = test.mean().drop(ADVISED).sort_values().index
    epsilons = [f"{epsilon:g}" for epsilon in EPSILONS]
    header = [
        "choice", "test half", "95 % interval", "95 % of settings within", "largest",
        "tuning half", f"test half at epsilon {epsilons[0]}", *epsilons[1:],
    ]  # fmt: skip
    rows = []
    for name in (ADVISED, *order):
        values = test[name].dropna()
        low, high = _interval(values, settings["name"])
        by = values.groupby(settings["epsilon"]).mean()
        rows.append([
            str(name), f"{values.mean():.3f}", f"{low:.3f} to {high:.3f}",
            f"{values.quantile(0.95):.2f}", f"{values.max():.2f}",
            f"{losses.loc[settings['tuning'], name].mean():.3f}",
            *(f"{by[epsilon]:.3f}" for epsilon in EPSILONS),
        ])  # fmt: skip
    return table_lines(header, rows)


def _goals(test: pd.Series, epsilons: pd.Series, kind: str) -> list[str]:
    """Return a table with a row for each goal."""
    goal_mean, goal_most, goal_largest = GOALS[kind]
    mean, most, largest = float(test.mean()), float(test.quantile(0.95)), float(test.max())
    by = test.groupby(epsilons).mean()
    slope = float(np.polyfit(np.log10(by.index.to_numpy()), by.to_numpy(), 1)[0])
    goals = [
        (f"mean at most {goal_mean:g}", f"{mean:.4f}", mean <= goal_mean),
        (f"95 % of settings within {goal_most:g}", f"{most:.3f}", most <= goal_most),
        (f"largest at most {goal_largest:g}", f"{largest:.2f}", largest <= goal_largest),
        (
            f"not rising with epsilon, by least squares, by more than {GOAL_SLOPE:g} a decade",
            f"{slope:+.4f}",
            slope <= GOAL_SLOPE,
        ),
    ]
    rows = [(goal, measured, "met" if met else "missed") for goal, measured, met in goals]
    return table_lines(("goal", "measured", "result"), rows)


def _reason(setting: Any, best: str) -> str:
    """Explain why another contender is ahead, from statistics known without simulation."""
    tail, directions = setting.cell["tail"], setting.cell["directions"][setting.place]
    more = best.startswith(("spherical", "ppca")) or "share of 0.5" in best or "2 times" in best
    if more:
        return (
            f"more clipping would do: directions alone recover {directions:.2f}, and its long rows "
            "point elsewhere or drown"
        )
    return (
        f"less clipping would do: the longest hundredth of its rows has {tail:.0%} of the "
        f"variance, and directions alone recover {directions:.2f}"
    )


def _worst(test: pd.Series, settings: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the tables with the largest mean regrets, each with its worst setting."""
    there = settings.loc[test.index]
    groups = test.groupby([there["name"], there["scale"]], sort=False)
    rows = []
    for name, mean in groups.mean().sort_values(ascending=False, kind="stable")[:_WORST].items():
        number = groups.idxmax()[name]
        (one,) = settings.loc[[number]].itertuples()
        means = {key: float(np.mean(_halves(one, key))) for key in keys}
        best = max(keys, key=lambda key: means[key] if means[key] > 0 else -math.inf)
        words = f"n {one.n:,}, {one.bound}, {one.relation}, k {one.k}, epsilon {one.epsilon:g}"
        rows.append([
            ", ".join(name), str(one.d), f"{mean:.3f}", f"{test[number]:.2f}", words,
            f"{best} {means[best]:.2f}", _reason(one, best),
        ])  # fmt: skip
    return table_lines(("table", "d", "mean regret", "largest", "at", "best there", "why"), rows)


def _split(losses: pd.DataFrame, settings: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return regrets of some choices on the test half, grouped by each other variable in turn."""
    test = settings[~settings["tuning"]]
    groups = {
        "n up to 500": test["n"] <= 500,
        "n 501 to 2,000": test["n"].between(501, 2_000),
        "n above 2,000": test["n"] > 2_000,
        **{scale: test["scale"] == scale for scale in SCALES},
        **{f"k {k}": test["k"] == k for k in KS},
        **{f"{bound} row as bound": test["bound"] == bound for bound in BOUNDS},
        **{str(relation): test["relation"] == str(relation) for relation in Relation},
    }
    rows = []
    for words, among in groups.items():
        values = losses.loc[test.index[among], list(names)]
        if count := values[names[0]].count():
            rows.append([words, f"{count:,}", *(f"{mean:.3f}" for mean in values.mean())])
    return table_lines(("settings", "how many", *names), rows)


def _tables_named(tables: Sequence[dict[str, Any]], *, tuning: bool) -> list[str]:
    origins: dict[str, list[str]] = {}
    for table in tables:
        if table["tuning"] is tuning and table["scale"] == next(iter(SCALES)):
            origin = table["origin"].replace("made", "synthetic")
            origins.setdefault(origin, []).append(table["name"])
    rows = [(origin, ", ".join(sorted(names))) for origin, names in origins.items()]
    return table_lines(("origin", f"tables of the {'tuning' if tuning else 'test'} half"), rows)


def _unfinished(measured: int, missing: int) -> list[str]:
    if not missing:
        return []
    return [
        f"Not finished: {measured} of {measured + missing} tables (each raw and z) are measured, "
        "the largest first. The same command goes on from there.",
        "",
    ]


def _advice() -> Iterator[str]:
    for cls in all_mechanisms().values():
        if cls.advised_rank is not Mechanism.advised_rank:
            yield f"- {cls.info.label}: {cls.info.advice}"


def page(tables: Sequence[dict[str, Any]], draws: int, missing: int = 0) -> str:
    """Return docs/defaults.md; ``missing`` lists tables and scales not measured yet."""
    settings = settings_of(tables)
    real = {table["name"] for table in tables if table["origin"] != "made"}
    drawn = {table["name"] for table in tables if table["origin"] == "made"}
    lines = [
        "# Which mechanism does dpviz choose by default?",
        "",
        "The regret of a choice is the mean recovery of the best contender with the same kind of "
        "guarantee, minus the recovery of the choice. Both recoveries are measured on the half of "
        "the releases that was not used to find the best contender. The contenders are those "
        "mechanisms below whose privacy claims hold. A clipped mechanism is also a contender with "
        "other shares of clipped rows. So the regret compares a choice with an oracle that knows "
        "the best mechanism and the best share.",
        "",
        f"We measured {len(settings):,} settings of {len(real)} real tables from Python packages "
        f"and {len(drawn)} synthetic tables (heavy tails, rare binary features, mixtures, low "
        "rank). Features are unchanged (raw) or standardised (z), and a setting uses a sample "
        "of 500 or 2,000 people, or all people. The row-norm bound is the longest row or the 0.9 "
        "quantile of the row lengths; neither bound is private. "
        "Settings cover both neighbouring relations, k "
        f"{', '.join(map(str, KS))}, and epsilon {', '.join(f'{e:g}' for e in EPSILONS)}. Each "
        f"setting has {draws} simulated releases and the default delta. Every choice uses "
        "only public numbers (n, d, k, epsilon, delta) and whether rows are available. A hash of "
        "its name puts each table into one of two halves. We choose the rule on the tuning half of "
        "the tables and report its regret on the test half. Confidence intervals of means come "
        "from resampling tables.",
        "",
        *_unfinished(len(tables), missing),
        "`python -m benchmarks.defaults` writes this page. `dpviz.simulation.defaults.advised` is "
        "the rule for the default. The rule uses `advised_rank` of each mechanism, and the page "
        "Mechanisms gives the same advice:",
        "",
        *_advice(),
    ]
    for kind, title in KINDS.items():
        losses = regrets(settings, kind, matrix=False, rows=True)
        means = losses[settings["tuning"]].mean()
        test = losses.loc[~settings["tuning"], ADVISED].dropna()
        lines += ["", f"## {title}: rows available, components released", ""]
        lines += [
            *_table(settings, losses),
            "",
            f"On the tuning half, {means.idxmin()} has the smallest regret, {means.min():.4f}; the "
            f"advised mechanism has the regret {means[ADVISED]:.4f}.",
            "",
            "Goals for the regret of the advised mechanism, on the test half:",
            "",
            *_goals(test, settings["epsilon"], kind),
            "",
            "The tables of the test half with the largest mean regret of the advised mechanism, "
            "each with its worst setting:",
            "",
            *_worst(test, settings, contenders(kind)),
            "",
            "Mean regret on the test half, for groups of settings:",
            "",
            *_split(losses, settings, (ADVISED, *BESIDE[kind])),
        ]
    for kind, title in KINDS.items():
        for matrix, words in ((False, "components"), (True, "a matrix")):
            lines += ["", f"## {title}: second moment only, {words} released", ""]
            lines += _table(settings, regrets(settings, kind, matrix=matrix, rows=False))
    lines += ["", "## The tables", ""]
    lines += [*_tables_named(tables, tuning=True), "", *_tables_named(tables, tuning=False)]
    return "\n".join(lines) + "\n"
