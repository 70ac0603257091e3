"""What `benchmarks.defaults` writes: the regret of every choice, goals, and the worst tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from benchmarks.defaults import BOUNDS, EPSILONS, KS, MECHANISMS, SCALES, others
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.simulation.defaults import advised

KINDS = {"approximate": "With delta", "pure": "Pure epsilon"}
GOALS = {"approximate": (0.008, 0.04, 0.3), "pure": (0.01, 0.05, 0.3)}
"""Mean regret, that of 95 % of settings, and the largest."""
GOAL_SLOPE = 0.001
_RESAMPLES = 1_000
_WORST = 8


@dataclass(frozen=True, eq=False)
class Setting:
    """A table, its size and bound, a relation, an epsilon and a k.

    Attributes
    ----------
    table, scale : str
    tuning : bool
    cell : dict
        As `benchmarks.defaults.measured` has it.
    place : int
        Of k among the cell's.
    """

    table: str
    scale: str
    tuning: bool
    cell: dict[str, Any]
    place: int

    @property
    def k(self) -> int:
        return int(self.cell["ks"][self.place])

    @property
    def epsilon(self) -> float:
        return float(self.cell["epsilon"])

    @cached_property
    def problem(self) -> Problem:
        n, d = self.cell["n"], self.cell["d"]
        return Problem(n, d, self.k, Relation(self.cell["relation"]), Domain.ball(d))

    def budget(self, kind: str) -> Budget:
        return Budget(self.epsilon, self.cell["delta"] if kind == "approximate" else 0.0)

    def mean(self, choice: str, half: int | None = None) -> float | None:
        """Return the mean recovery of a choice; other shares are the mechanism where none apply.

        Parameters
        ----------
        choice : str
        half : int, optional
            Of the draws: 0 or 1; else of all.
        """
        means = self.cell["means"]
        found = means.get(choice) or means.get(choice.partition(",")[0])
        both = None if found is None else found[self.place]
        if both is None:
            return None
        return float(np.mean(both)) if half is None else float(both[half])

    @cached_property
    def _best(self) -> dict[tuple[str, ...], tuple[float, float]]:
        return {}

    def best(self, keys: tuple[str, ...]) -> tuple[float, float]:
        """Return the mean recovery on each half of the contender that is best on the other."""
        if keys not in self._best:
            known = [key for key in keys if self.mean(key) is not None]
            first, second = (
                max(known, key=lambda key: self.mean(key, 1 - half) or 0.0) for half in range(2)
            )
            self._best[keys] = self.mean(first, 0) or 0.0, self.mean(second, 1) or 0.0
        return self._best[keys]

    @property
    def words(self) -> str:
        cell = self.cell
        return (
            f"n {cell['n']:,}, {cell['bound']}, {cell['relation']}, k {self.k}, "
            f"epsilon {self.epsilon:g}"
        )


def settings_of(tables: Sequence[dict[str, Any]]) -> list[Setting]:
    """Return every setting of every table."""
    return [
        Setting(table["name"], table["scale"], table["tuning"], cell, place)
        for table in tables
        for cell in table["cells"]
        for place in range(len(cell["ks"]))
    ]


Choice = Callable[[Setting], str]


def contenders(kind: str, *, matrix: bool = False, rows: bool = True) -> list[str]:
    """Return the mechanisms that a choice is made among, and their other shares."""
    found = []
    for key in MECHANISMS[kind]:
        mechanism = parse_variant(key)
        if (rows or not mechanism.needs_rows) and (
            not matrix or mechanism.info.release == "matrix"
        ):
            found.append(key)
    return found + ([other.text for other in others(kind)] if rows and not matrix else [])


@cache
def _advised(problem: Problem, budget: Budget, matrix: bool, rows: bool) -> str:
    return advised(problem, budget, matrix=matrix, rows=rows).text


def choices(kind: str, *, matrix: bool, rows: bool) -> dict[str, Choice]:
    """Return the core's rule, every single contender and switches on public numbers, by name."""

    def rule(setting: Setting) -> str:
        budget = setting.budget(kind)
        return _advised(setting.problem, budget, matrix, rows)

    def always(text: str) -> Choice:
        return lambda setting: text

    found = {"**advised**": rule}
    for text in contenders(kind, matrix=matrix, rows=rows):
        if parse_variant(text.partition(",")[0]).info.family != "subspace":
            found[text] = always(text)
    return found


@dataclass(frozen=True, eq=False)
class Regrets:
    """The regrets of one choice and the settings they are of."""

    settings: list[Setting]
    values: np.ndarray[Any, np.dtype[np.float64]]

    @classmethod
    def of(cls, settings: Sequence[Setting], keys: Sequence[str], choice: Choice) -> Regrets:
        kept, values, among = [], [], tuple(keys)
        for setting in settings:
            own = setting.mean(choice(setting))
            if own is not None:
                kept.append(setting)
                values.append(sum(setting.best(among)) / 2 - own)
        return cls(kept, np.array(values))

    def where(self, test: Callable[[Setting], bool]) -> np.ndarray[Any, np.dtype[np.float64]]:
        chosen = np.array([test(setting) for setting in self.settings], dtype=bool)
        return self.values[chosen]

    @property
    def interval(self) -> tuple[float, float]:
        """The central 95 % of the mean over tables drawn anew, all settings of one together."""
        names = sorted({setting.table for setting in self.settings})
        index = {name: number for number, name in enumerate(names)}
        each = np.array([index[setting.table] for setting in self.settings])
        sums = np.bincount(each, weights=self.values, minlength=len(names))
        counts = np.bincount(each, minlength=len(names))
        rng = generator(0, "defaults", "bootstrap")
        drawn = rng.integers(len(names), size=(_RESAMPLES, len(names)))
        means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        return float(low), float(high)


def _table(
    settings: Sequence[Setting], kind: str, *, matrix: bool, rows: bool
) -> tuple[list[str], dict[str, tuple[Regrets, Regrets]]]:
    """Return a table of choices, best on the test half first, and their regrets (tuning, test)."""
    keys = contenders(kind, matrix=matrix, rows=rows)
    found = {}
    for name, choice in choices(kind, matrix=matrix, rows=rows).items():
        halves = [[s for s in settings if s.tuning is half] for half in (True, False)]
        found[name] = (
            Regrets.of(halves[0], keys, choice), Regrets.of(halves[1], keys, choice),
        )  # fmt: skip
    by = " | ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    lines = [
        f"| choice | test half | 95 % interval | 95 % of settings within | largest | tuning half | "
        f"test half at epsilon {by} |",
        "|---|---|---|---|---|---|" + "---|" * len(EPSILONS),
    ]
    order = sorted(found, key=lambda name: (name != "**advised**", found[name][1].values.mean()))
    for name in order:
        tuning, test = found[name]
        low, high = test.interval
        cells = [
            name, f"{test.values.mean():.3f}", f"{low:.3f} to {high:.3f}",
            f"{np.quantile(test.values, 0.95):.2f}", f"{test.values.max():.2f}",
            f"{tuning.values.mean():.3f}",
            *(f"{test.where(lambda s, e=e: s.epsilon == e).mean():.3f}" for e in EPSILONS),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines, found


def _goals(test: Regrets, kind: str) -> list[str]:
    """Return a table with a row for each goal."""

    def said(met: bool) -> str:
        return "met" if met else "missed"

    goal_mean, goal_most, goal_largest = GOALS[kind]
    mean, most = float(test.values.mean()), float(np.quantile(test.values, 0.95))
    largest = float(test.values.max())
    by = [float(test.where(lambda s, e=e: s.epsilon == e).mean()) for e in EPSILONS]
    slope = float(np.polyfit(np.log10(EPSILONS), by, 1)[0])
    return [
        "| goal | measured | |",
        "|---|---|---|",
        f"| mean at most {goal_mean:g} | {mean:.4f} | {said(mean <= goal_mean)} |",
        f"| 95 % of settings within {goal_most:g} | {most:.3f} | {said(most <= goal_most)} |",
        f"| largest at most {goal_largest:g} | {largest:.2f} | {said(largest <= goal_largest)} |",
        f"| not rising with epsilon, by least squares, by more than {GOAL_SLOPE:g} a decade | "
        f"{slope:+.4f} | {said(slope <= GOAL_SLOPE)} |",
    ]


def _reason(setting: Setting, best: str) -> str:
    """Return why another contender is ahead, from what is known of the table without a draw."""
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


def _worst(test: Regrets, keys: Sequence[str]) -> list[str]:
    """Return the tables with the largest mean regrets, each with its worst setting."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, setting in enumerate(test.settings):
        groups.setdefault((setting.table, setting.scale), []).append(number)
    means = {name: float(test.values[numbers].mean()) for name, numbers in groups.items()}
    lines = [
        "| table | d | mean regret | largest | at | best there | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in sorted(means, key=lambda name: -means[name])[:_WORST]:
        number = max(groups[name], key=lambda number: test.values[number])
        setting = test.settings[number]
        known = [key for key in keys if setting.mean(key) is not None]
        best = max(known, key=lambda key: setting.mean(key) or -math.inf)
        lines.append(
            f"| {name[0]}, {name[1]} | {setting.cell['d']} | {means[name]:.3f} | "
            f"{test.values[number]:.2f} | {setting.words} | {best} {setting.mean(best):.2f} | "
            f"{_reason(setting, best)} |"
        )
    return lines


def _split(found: dict[str, tuple[Regrets, Regrets]], names: Sequence[str]) -> list[str]:
    """Return the regrets of some choices by everything else that varies, on the test half."""
    sizes = {
        "n up to 500": lambda s: s.cell["n"] <= 500,
        "n 501 to 2,000": lambda s: 500 < s.cell["n"] <= 2_000,
        "n above 2,000": lambda s: s.cell["n"] > 2_000,
    }
    tests: dict[str, Callable[[Setting], bool]] = dict(sizes)
    tests |= {f"{scale}": lambda s, scale=scale: s.scale == scale for scale in SCALES}
    tests |= {f"k {k}": lambda s, k=k: s.k == k for k in KS}
    tests |= {f"{b} row as bound": lambda s, b=b: s.cell["bound"] == b for b in BOUNDS}
    tests |= {str(r): lambda s, r=r: s.cell["relation"] == str(r) for r in Relation}
    lines = [
        "| settings | how many | " + " | ".join(names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    for words, test in tests.items():
        values = [found[name][1].where(test) for name in names]
        if len(values[0]):
            cells = " | ".join(f"{value.mean():.3f}" for value in values)
            lines.append(f"| {words} | {len(values[0]):,} | {cells} |")
    return lines


def _tables_named(tables: Sequence[dict[str, Any]], *, tuning: bool) -> str:
    origins: dict[str, list[str]] = {}
    for table in tables:
        if table["tuning"] is tuning and table["scale"] == next(iter(SCALES)):
            origins.setdefault(table["origin"], []).append(table["name"])
    return "; ".join(f"{origin}: {', '.join(sorted(names))}" for origin, names in origins.items())


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
    """Return docs/defaults.md; ``missing`` tables and scales have not been measured yet."""
    settings = settings_of(tables)
    real = {table["name"] for table in tables if table["origin"] != "made"}
    made = {table["name"] for table in tables if table["origin"] == "made"}
    lines = [
        "# Which mechanism, when nobody says",
        "",
        "Regret: the mean recovery of the best contender with the same kind of guarantee, less the "
        "choice's own, each on the half of the draws that the best was not chosen on. Contenders "
        "are the sound mechanisms below and, for the clipped ones, other "
        "shares of rows to clip than their rule says: so a regret is against an oracle over both.",
        "",
        f"{len(settings):,} settings of {len(real)} real tables from packages on the index and "
        f"{len(made)} made ones (heavy tails, rare marks, mixtures, low rank): as they are (raw) "
        "and standardised (z); 500 and 2,000 people drawn from them, and all; the longest row or "
        "the .9 quantile of the lengths as row bound, neither private; both relations; k "
        f"{', '.join(map(str, KS))}; epsilon {', '.join(f'{e:g}' for e in EPSILONS)}; {draws} "
        "draws each; delta as by default. Whatever is chosen is chosen from public numbers alone: "
        "n, d, k, epsilon, delta, and whether rows are at hand. The tables were split once, by a "
        "hash of their names: rules are chosen on the tuning half and reported on the test half. "
        "Intervals are of the mean, over tables drawn anew.",
        "",
        *_unfinished(len(tables), missing),
        "`python -m benchmarks.defaults` writes this page. `dpviz.simulation.defaults.advised` is "
        "the rule; the declarations it reads stand with the mechanisms (`advised_rank`), and their "
        "cards say the same:",
        "",
        *_advice(),
    ]
    for kind, title in KINDS.items():
        table, found = _table(settings, kind, matrix=False, rows=True)
        keys = contenders(kind)
        least = min(found, key=lambda name: float(found[name][0].values.mean()))
        own = float(found["**advised**"][0].values.mean())
        lines += ["", f"## {title}: rows at hand, components wanted", "", *table, ""]
        lines += [
            f"Least on the tuning half: {least}, {found[least][0].values.mean():.4f}; what is "
            f"advised has {own:.4f}.",
            "",
            "Goals for what is advised, on the test half:",
            "",
            *_goals(found["**advised**"][1], kind),
            "",
            "Its worst tables there, by mean regret, each with its worst setting:",
            "",
            *_worst(found["**advised**"][1], keys),
            "",
            "By everything else that varies, on the test half:",
            "",
            *_split(found, _beside(kind)),
        ]
    for kind, title in KINDS.items():
        for matrix, words in ((False, "components"), (True, "a matrix")):
            table, _ = _table(settings, kind, matrix=matrix, rows=False)
            lines += ["", f"## {title}: second moment only, {words} wanted", "", *table]
    lines += ["", "## The tables", ""]
    lines += [f"Tuning half. {_tables_named(tables, tuning=True)}.", ""]
    lines += [f"Test half. {_tables_named(tables, tuning=False)}."]
    return "\n".join(lines) + "\n"


def _beside(kind: str) -> list[str]:
    """Return the choices that stand beside the advised one where regrets are split."""
    rest = ("spherical", "adaptive_clip_gaussian", "gaussian")
    if kind == "pure":
        rest = ("spherical_wishart_difference", "wishart_difference")
    return ["**advised**", *rest]
