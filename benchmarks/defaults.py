"""Which mechanism to take when nobody says: the regret of rules over tables, k and epsilon.

The regret of a choice in one setting is the best mean recovery of any mechanism
with the same kind of guarantee, less the choice's own. A rule is judged by its
mean and its largest regret. `dpviz.targets.defaults.advised` is the rule that
the core follows; single mechanisms stand beside it.

Run ``python -m benchmarks.defaults``: it writes docs/defaults.md.
"""

from __future__ import annotations

import argparse
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


def measure(trials: int) -> list[Setting]:
    """Return the mean recovery of every sound mechanism in every setting."""
    found = []
    for name, relation in product(TABLES, RELATIONS):
        prepared = prepare(load(name), Settings(table=name))
        for k, epsilon in product(KS, EPSILONS):
            settings = Settings(
                table=name, relation=relation, k=k, epsilon=epsilon, trials=trials
            )
            problem, budget = prepared.problem(settings), prepared.budget(settings)
            means = {}
            for key, cls in all_mechanisms().items():
                mechanism = cls()
                if mechanism.info.guarantee not in KINDS:
                    continue
                if mechanism.unable(problem, budget, rows=True) is not None:
                    continue
                if not sound(mechanism, problem, budget):
                    continue
                cell = Cell(mechanism, problem, budget, settings.seed, range(trials))
                share = run_cell(cell, prepared, ["captured_share"]).metrics["captured_share"]
                means[key] = recovery(prepared, k, float(share.mean()))
            found.append(Setting(name, relation, k, epsilon, problem, budget, means))
            print(name, relation, k, epsilon, flush=True)
    return found


def keys_of(kind: str) -> list[str]:
    return [key for key, cls in all_mechanisms().items() if cls.info.guarantee == kind]


def regret(settings: list[Setting], kind: str, rule: Callable[[Setting], str | None]) -> list[float]:
    """Return the regret of a rule in each setting in which it has an answer."""
    keys = keys_of(kind)
    found = []
    for setting in settings:
        chosen = rule(setting)
        if chosen is not None and chosen in setting.means:
            found.append(setting.best(keys)[1] - setting.means[chosen])
    return found


def advice(kind: str, *, matrix: bool, rows: bool) -> Callable[[Setting], str | None]:
    """Return the core's rule as a function of a setting."""

    def rule(setting: Setting) -> str:
        delta = setting.budget.delta if kind == "approximate" else 0.0
        budget = Budget(setting.epsilon, delta)
        return advised(setting.problem, budget, matrix=matrix, rows=rows).key

    return rule


def always(key: str) -> Callable[[Setting], str | None]:
    return lambda setting: key


def page(settings: list[Setting], trials: int) -> str:
    """Return docs/defaults.md."""
    lines = [
        "# Which mechanism, when nobody says",
        "",
        f"Regret: the best mean recovery of any sound mechanism with the same kind of guarantee, "
        f"less the choice's own. {len(settings)} settings: tables {', '.join(TABLES)}; relations "
        f"{' and '.join(RELATIONS)}; k {', '.join(map(str, KS))}; epsilon "
        f"{', '.join(f'{e:g}' for e in EPSILONS)}; {trials} draws each, delta as by default.",
        "",
        "`python -m benchmarks.defaults` writes this page. `dpviz.targets.defaults.advised` is the "
        "rule; the declarations it reads stand with the mechanisms (`advised_rank`).",
    ]
    for kind in KINDS:
        title = "Pure epsilon" if kind == "pure" else "With delta"
        lines += [
            "", f"## {title}", "",
            "| choice | mean regret | largest | settings |", "|---|---|---|---|",
        ]  # fmt: skip
        rows: list[tuple[str, list[float]]] = [
            ("**advised, rows at hand**", regret(settings, kind, advice(kind, matrix=False, rows=True))),
            ("**advised, second moment only**", regret(settings, kind, advice(kind, matrix=False, rows=False))),
            ("**advised, a matrix is wanted**", regret(settings, kind, advice(kind, matrix=True, rows=False))),
        ]  # fmt: skip
        single = [(key, regret(settings, kind, always(key))) for key in keys_of(kind)]
        single = [(parse_variant(key).label, found) for key, found in single if found]
        rows += sorted(single, key=lambda item: float(np.mean(item[1])))
        lines += [
            f"| {name} | {np.mean(found):.3f} | {max(found):.2f} | {len(found)} |"
            for name, found in rows
        ]
        lines += ["", "Best by setting (k, then epsilon):", ""]
        head = "| table, relation | " + " | ".join(
            f"k {k}, {e:g}" for k, e in product(KS, EPSILONS)
        )
        lines += [head + " |", "|---|" + "---|" * (len(KS) * len(EPSILONS))]
        for name, relation in product(TABLES, RELATIONS):
            cells = []
            for k, e in product(KS, EPSILONS):
                (here,) = (
                    s for s in settings if (s.table, s.relation, s.k, s.epsilon) == (name, relation, k, e)
                )
                key, value = here.best(keys_of(kind))
                cells.append(f"{parse_variant(key).label} {value:.2f}")
            lines.append(f"| {name}, {relation} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def newer(settings: list[Setting]) -> str:
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
        if cls.info.guarantee not in KINDS or key not in {
            "separate_covariance", "adaptive_clip_gaussian", "oja", "smooth_gap", "spherical",
            "spherical_wishart_difference",
        }:  # fmt: skip
            continue
        base = against[cls.info.guarantee]
        pairs = [
            (s.means[key] - s.means[base.key], f"{s.table}, {s.relation}, k {s.k}, eps {s.epsilon:g}")
            for s in settings
            if key in s.means and base.key in s.means
        ]
        gains = [gain for gain, _ in pairs]
        most, least = max(pairs), min(pairs)
        lines.append(
            f"| {cls().label} | {base.label} | {len(gains)} | {sum(g > 0.01 for g in gains)} | "
            f"{sum(g < -0.01 for g in gains)} | {np.mean(gains):+.3f} | {most[0]:+.2f} | {most[1]} | "
            f"{least[0]:+.2f} | {least[1]} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, then write docs/defaults.md and docs/newer.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    with one_blas_thread():
        settings = measure(options.trials)
    (options.out / "defaults.md").write_text(page(settings, options.trials), encoding="utf-8")
    (options.out / "newer.md").write_text(newer(settings), encoding="utf-8")
    print(f"wrote {options.out / 'defaults.md'} and {options.out / 'newer.md'}")


if __name__ == "__main__":
    main()
