"""Which mechanism to take when nobody says: the regret of rules over tables, k and epsilon.

The regret of a choice in one setting is the best mean recovery of any mechanism
with the same kind of guarantee, less the choice's own. A rule is judged by its
mean and its largest regret. `dpviz.targets.defaults.advised` is the rule that
the core follows; single mechanisms stand beside it.

Run ``python -m benchmarks.defaults``: it writes docs/defaults.md and docs/newer.md. ``--keep FILE``
keeps the measurements and goes on from them, ``--minutes`` ends a piece of the run.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from dpviz.base.blas import one_blas_thread
from dpviz.datasets import load
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.prepare.bounding import Prepared, prepare
from dpviz.run.cells import Cell, run_cell
from dpviz.settings import Settings
from dpviz.targets.defaults import advised
from dpviz.values.problem import Budget, Problem
from dpviz.values.release import Verdict

ROOT = Path(__file__).resolve().parents[1]
TABLES = ("digits", "breast_cancer", "wine", "diabetes", "spiked", "waveform40")
KS = (1, 2, 5)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RELATIONS = ("replace", "zero-out")
KINDS = ("pure", "approximate")
NEWER = (
    "separate_covariance", "adaptive_clip_gaussian", "oja", "smooth_gap", "spherical",
    "spherical_wishart_difference",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One table, relation, k and epsilon, and the mean recovery of each mechanism."""

    table: str
    relation: str
    k: int
    epsilon: float
    problem: Problem
    budget: Budget
    means: dict[str, float]
    errors: dict[str, float]

    @property
    def words(self) -> str:
        return f"{self.table}, {self.relation}, k {self.k}, epsilon {self.epsilon:g}"

    def best(self, keys: list[str]) -> tuple[str, float]:
        key = max((key for key in keys if key in self.means), key=self.means.__getitem__)
        return key, self.means[key]


def sound(mechanism: Mechanism, problem: Problem, budget: Budget) -> bool:
    """Return whether the claim stands, exactly or up to a sampler's convergence."""
    return mechanism.status(problem, budget).verdict in (
        Verdict.HOLDS, Verdict.LOOSE, Verdict.APPROXIMATE,
    )  # fmt: skip


def recovery(prepared: Prepared, k: int, share: float) -> float:
    """Return (share - chance)/(1 - chance) of a share of the optimum."""
    true = prepared.reference
    chance = k / prepared.d * true.total / float(true.eigenvalues[:k].sum())
    return (share - chance) / (1 - chance)


def measure(trials: int, keep: Path | None, minutes: float) -> list[Setting] | None:
    """Return the mean recovery of every sound mechanism in every setting; None if unfinished."""
    kept: dict[str, dict[str, float]] = {}
    if keep is not None and keep.is_file():
        kept = json.loads(keep.read_text(encoding="utf-8"))
    ends = time.monotonic() + 60 * minutes
    found = []
    for name, relation in product(TABLES, RELATIONS):
        prepared = prepare(load(name), Settings(table=name))
        for k, epsilon in product(KS, EPSILONS):
            settings = Settings(table=name, relation=relation, k=k, epsilon=epsilon, trials=trials)
            problem, budget = prepared.problem(settings), prepared.budget(settings)
            cells = {}
            for key, cls in all_mechanisms().items():
                mechanism = cls()
                if mechanism.info.guarantee not in KINDS:
                    continue
                if mechanism.why_not(problem, budget, rows=True) is not None:
                    continue
                if not sound(mechanism, problem, budget):
                    continue
                place = f"{name}/{relation}/{k}/{epsilon:g}/{budget.delta:g}/{trials}/{key}"
                if place not in kept:
                    if time.monotonic() > ends:
                        return None
                    cell = Cell(mechanism, problem, budget, settings.seed, range(trials))
                    kept[place] = measured(cell, prepared)
                cells[key] = kept[place]
            means = {key: cell["recovery"] for key, cell in cells.items()}
            errors = {key: cell["error"] for key, cell in cells.items() if "error" in cell}
            found.append(Setting(name, relation, k, epsilon, problem, budget, means, errors))
            print(name, relation, k, epsilon, flush=True)
            if keep is not None:
                keep.write_text(json.dumps(kept, indent=0), encoding="utf-8")
    return found


def measured(cell: Cell, prepared: Prepared) -> dict[str, float]:
    """Return the mean recovery of a cell and, of a matrix, its mean error."""
    seen = run_cell(cell, prepared, ["captured_share", "noise_frobenius"]).metrics
    share = float(seen["captured_share"].mean())
    found = {"recovery": recovery(prepared, cell.problem.k, share)}
    if "noise_frobenius" in seen:
        found["error"] = float(seen["noise_frobenius"].mean())
    return found


def keys_of(kind: str, *, matrix: bool = False, rows: bool = True) -> list[str]:
    """Return the mechanisms that a choice is made among."""
    return [
        key
        for key, cls in all_mechanisms().items()
        if cls.info.guarantee == kind
        and (rows or not cls.info.needs_rows)
        and (not matrix or cls.info.release == "matrix")
    ]


Rule = Callable[[Setting], str | None]


def regret(settings: list[Setting], keys: list[str], rule: Rule) -> list[float]:
    """Return the regret of a rule among the keys, in each setting in which it has an answer."""
    found = []
    for setting in settings:
        chosen = rule(setting)
        if chosen is not None and chosen in setting.means:
            found.append(setting.best(keys)[1] - setting.means[chosen])
    return found


def advice(kind: str, *, matrix: bool, rows: bool) -> Rule:
    """Return the core's rule as a function of a setting."""

    def rule(setting: Setting) -> str:
        delta = setting.budget.delta if kind == "approximate" else 0.0
        budget = Budget(setting.epsilon, delta)
        return advised(setting.problem, budget, matrix=matrix, rows=rows).key

    return rule


def always(key: str) -> Rule:
    return lambda setting: key


def page(settings: list[Setting], trials: int) -> str:
    """Return docs/defaults.md."""
    lines = [
        "# Which mechanism, when nobody says",
        "",
        f"Regret: the best mean recovery of any sound mechanism with the same kind of guarantee, "
        f"less the choice's own. {len(settings)} settings: tables {', '.join(TABLES)}; relations "
        f"{' and '.join(RELATIONS)}; k {', '.join(map(str, KS))}; epsilon "
        f"{', '.join(f'{e:g}' for e in EPSILONS)}; {trials} draws each, "
        "delta as by default: the smaller of 1e-6 and 1/n^2, rounded down to one digit.",
        "",
        "`python -m benchmarks.defaults` writes this page. `dpviz.targets.defaults.advised` is the "
        "rule; the declarations it reads stand with the mechanisms (`advised_rank`), and their "
        "cards say the same:",
        "",
        *(
            f"- {cls.info.label}: {cls.info.advice}"
            for cls in all_mechanisms().values()
            if cls.advised_rank is not Mechanism.advised_rank
        ),
    ]
    for kind in KINDS:
        title = "Pure epsilon" if kind == "pure" else "With delta"
        for words, matrix, rows in (
            ("rows at hand, components wanted", False, True),
            ("second moment only, components wanted", False, False),
            ("second moment only, a matrix wanted", True, False),
        ):
            keys = keys_of(kind, matrix=matrix, rows=rows)
            table = [
                ("**advised**", regret(settings, keys, advice(kind, matrix=matrix, rows=rows)))
            ]
            single = [
                (parse_variant(key).label, regret(settings, keys, always(key))) for key in keys
            ]
            single = [item for item in single if item[1]]
            table += sorted(single, key=lambda item: float(np.mean(item[1])))
            lines += ["", f"## {title}: {words}", ""]
            lines += ["| choice | mean regret | largest | settings |", "|---|---|---|---|"]
            lines += [
                f"| {name} | {np.mean(found):.3f} | {max(found):.2f} | {len(found)} |"
                for name, found in table
            ]
        lines += ["", f"## {title}: the best of all by setting", ""]
        head = "| table, relation | " + " | ".join(
            f"k {k}, {e:g}" for k, e in product(KS, EPSILONS)
        )
        lines += [head + " |", "|---|" + "---|" * (len(KS) * len(EPSILONS))]
        for name, relation in product(TABLES, RELATIONS):
            cells = []
            for k, e in product(KS, EPSILONS):
                (here,) = (
                    s
                    for s in settings
                    if (s.table, s.relation, s.k, s.epsilon) == (name, relation, k, e)
                )
                key, value = here.best(keys_of(kind))
                cells.append(f"{parse_variant(key).label} {value:.2f}")
            lines.append(f"| {name}, {relation} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def row_bounds(trials: int) -> list[str]:
    """Return lines: what a tighter row bound does to the exact Gaussian, beside the sphere."""
    lines = [
        "",
        "How much of that is the row bound: recovery at epsilon 1, k 2, replace. The bound is a "
        "quantile of the rows' lengths, taken from the data (not private); longer rows are "
        "shortened to it. Below the shortest row every mechanism is spherical.",
        "",
        "| table | Gaussian, quantile 1 | .9 | .5 | .1 | Spherical | Wishart difference, 1 | .9 | "
        ".5 | .1 | Spherical Wishart difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in TABLES:
        cells = []
        for plain, unit in (("gaussian", "spherical"), ("wishart_difference", NEWER[-1])):
            for bound in (1, 0.9, 0.5, 0.1, None):
                settings = Settings(
                    table=name,
                    trials=trials,
                    row_bound="max" if bound is None else f"quantile:{bound:g}",
                )
                prepared = prepare(load(name), settings)
                mechanism = parse_variant(unit if bound is None else plain)
                cell = Cell(
                    mechanism,
                    prepared.problem(settings),
                    prepared.budget(settings),
                    settings.seed,
                    range(trials),
                )
                share = run_cell(cell, prepared, ["captured_share"]).metrics["captured_share"]
                cells.append(f"{recovery(prepared, settings.k, float(share.mean())):.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def newer(settings: list[Setting], trials: int) -> str:
    """Return the section on where the newer mechanisms win, of docs/newer.md."""
    against = {
        "approximate": parse_variant("gaussian"),
        "pure": parse_variant("wishart_difference"),
    }
    lines = [
        "# Where the newer mechanisms win",
        "",
        "Recovery against the exact Gaussian (with delta) or the Wishart difference (pure), in the "
        "settings of [defaults](defaults.md). A win is a mean recovery higher by more than .01.",
        "",
        "| mechanism | against | settings | wins | losses | mean gain | largest gain | at | "
        "largest loss | at |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, cls in all_mechanisms().items():
        if key not in NEWER:
            continue
        base = against[cls.info.guarantee]
        both = [s for s in settings if key in s.means and base.key in s.means]
        pairs = [(s.means[key] - s.means[base.key], s.words) for s in both]
        gains = [gain for gain, _ in pairs]
        most, least = max(pairs), min(pairs)
        wins, losses = sum(gain > 0.01 for gain in gains), sum(gain < -0.01 for gain in gains)
        lines.append(
            f"| {cls().label} | {base.label} | {len(gains)} | {wins} | {losses} | "
            f"{np.mean(gains):+.3f} | {most[0]:+.2f} | {most[1]} | {least[0]:+.2f} | {least[1]} |"
        )
    lines += row_bounds(trials)
    lines += [
        "",
        "Error of the released matrix (mean Frobenius norm of the difference to A) over that of "
        "the exact Gaussian; below 1 is better:",
        "",
        "| mechanism | settings | better in | median ratio | least | at | largest | at |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in NEWER:
        base = against["approximate"]
        both = [s for s in settings if key in s.errors and base.key in s.errors]
        ratios = [(s.errors[key] / s.errors[base.key], s.words) for s in both]
        if ratios:
            least, most = min(ratios), max(ratios)
            values = [ratio for ratio, _ in ratios]
            better = sum(value < 1 for value in values)
            lines.append(
                f"| {parse_variant(key).label} | {len(values)} | {better} | "
                f"{np.median(values):.2f} | {least[0]:.2f} | {least[1]} | {most[0]:.2f} | "
                f"{most[1]} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, then write docs/defaults.md and docs/newer.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="a file of measurements to go on from")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    with one_blas_thread():
        settings = measure(options.trials, options.keep, options.minutes)
    if settings is None:
        print("not finished: the same command goes on from there")
        return
    (options.out / "defaults.md").write_text(page(settings, options.trials), encoding="utf-8")
    (options.out / "newer.md").write_text(newer(settings, options.trials), encoding="utf-8")
    print(f"wrote {options.out / 'defaults.md'} and {options.out / 'newer.md'}")


if __name__ == "__main__":
    main()
