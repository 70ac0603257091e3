"""Xu, Yang and Bai 2019, Figure 5: accuracy of a linear SVM on projected rows, along epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.datasets import remote
from dpviz.datasets.table import Table
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu import _shared as _xu
from dpviz.papers.xu._shared import EXACT, LIP, RANDOM
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell
from dpviz.simulation.tasks import Labelled, learner_of, score_projected, split

AG, PPM = parse_variant("analyze_gauss"), parse_variant("noisy_power")
LONG = parse_variant("noisy_power[steps=20]")
# The source of PPM requires lambda_k/(lambda_k - lambda_k+1) ln d steps.
BY_SOURCE = {
    "semeion": parse_variant("noisy_power[steps=186]"),
    "waveform": parse_variant("noisy_power[steps=252]"),
}
SOURCE_RUNS = "PPM with the steps of its source"
ADDED = (
    LONG,
    parse_variant("laplace_tight"),
    parse_variant("wishart_difference"),
    parse_variant("gaussian"),
)
PRIVATE = (LIP, AG, PPM, *ADDED)
NAMES = {LIP: "LIP", AG: "AG", PPM: "PPM"}
LEVEL = (RANDOM, EXACT)  # Random projection and exact PCA do not depend on epsilon.

ACCURACY = "accuracy"
EPSILONS = (0.1, 1.0, 10.0, 100.0, 1000.0)
LOW, HIGH, TOP = 0.1, 10.0, 1000.0  # Epsilons: our least, Figure 4's greatest, our greatest.
SOME = 20  # Number of runs of PPM with the number of steps that its source requires.
MANY = 250  # Number of runs at the largest epsilon, enough to resolve half a percentage point.
FAR = 100_000.0  # Epsilon at which statements about a large enough epsilon are tested.
DELTAS = {"semeion": 4e-4, "waveform": 1e-4}
"""Delta is 1/n^1.1 for the training rows, rounded down to one digit; the paper states no delta."""

SHARES = (0.7, 0.3)
LEARNER = "linear_svm"
WITHIN = 0.005  # Largest difference of accuracies that count as equal.
SETS = tuple(data for data in _xu.SETS if data.key in ("semeion", "waveform"))


class AccuracyRuns(_xu.Runs):
    """Runs of one mechanism on one data set, at the given epsilons."""

    epsilons: tuple[float, ...] = EPSILONS


@dataclass(frozen=True)
class Shared:
    """A table, and the least k for 85 % of its variance."""

    table: Table
    k: int


class XuFigure5(Experiment):
    """Accuracy of a linear SVM after LIP, Analyze Gauss and the noisy power method."""

    pictures: ClassVar = {"accuracy": (ACCURACY, *PRIVATE, *LEVEL, SOURCE_RUNS)}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts with several runs of each mechanism on each data set."""
        epsilons = (LOW, HIGH, TOP) if effort is Effort.QUICK else EPSILONS
        # A part has only few runs, because each run fits a model, and a part may be interrupted.
        runs = _xu.run_parts(effort, SETS, (*LEVEL, *PRIVATE), quick=3, block=10)
        some, many = (3, 3) if effort is Effort.QUICK else (SOME, MANY)
        beyond: tuple[float, ...] = (HIGH, 100.0, TOP)
        if effort is Effort.QUICK:
            beyond = (HIGH, TOP)
        more: list[tuple[str, Mechanism, int, tuple[float, ...]]] = [
            (data.key, BY_SOURCE[data.key], some, beyond) for data in SETS
        ]
        more += [(data.key, mechanism, many, (FAR,)) for data in SETS for mechanism in (LIP, AG)]
        return [
            *(
                AccuracyRuns(part.data, part.mechanism, part.first, part.count, epsilons)
                for part in runs
            ),
            *(
                AccuracyRuns(key, mechanism.text, 0, count, places)
                for key, mechanism, count, places in more
            ),
        ]

    def shared(self, data: str) -> Shared:
        """Return a data set and its number of components, k."""
        table = remote.load(data, download=False)
        return Shared(table, _xu.least_k(_xu.prepared(table).moment.eigenvalues))

    def run(self, part: AccuracyRuns, shared: Shared, seed: int) -> Measurements:
        """Return the accuracy of each run at each epsilon."""
        mechanism, label = parse_variant(part.mechanism), _xu.BY_KEY[part.data].label
        # If epsilon does not affect a mechanism, one simulation serves every epsilon.
        asked = (HIGH,) if mechanism in LEVEL else part.epsilons
        runs = [accuracies(shared, part.data, mechanism, asked, seed, r) for r in part.runs]
        found = np.broadcast_to(np.stack(runs, axis=1), (len(part.epsilons), part.count))
        draws = {
            Point(label, _series(part.data, mechanism), ACCURACY, epsilon): values.copy()
            for epsilon, values in zip(part.epsilons, found, strict=True)
        }
        if mechanism == EXACT and part.first == 0:
            n, d = shared.table.rows.shape
            draws |= _xu.facts_draws(label, round(SHARES[0] * n), d, shared.k)
        return Measurements(draws)


def accuracies(
    shared: Shared,
    data: str,
    mechanism: Mechanism,
    epsilons: Sequence[float],
    seed: int,
    run: int,
) -> FloatArray:
    """Return the accuracy of one run at each epsilon, shape (len(epsilons),).

    The split of the rows is the same for all mechanisms.
    """
    table = shared.table
    assert table.labels is not None
    rng = generator(seed, "reproduce", "xu", data, "split", run)
    # The split depends only on the random stream of the run, so it is equal for all mechanisms.
    inside, outside = split(len(table.rows), SHARES, rng)
    measured = _xu.prepared(replace(table, rows=table.rows[inside], labels=None))
    train, test = (
        Labelled(measured.transform.unbounded(table.rows[part]), table.labels[part])
        for part in (inside, outside)
    )
    problem = Problem(measured.n, measured.d, shared.k, Relation.REPLACE, measured.domain)
    frames = []
    for epsilon in epsilons:
        budget = Budget(epsilon, DELTAS[data])
        cell = Cell(mechanism, problem, budget, seed, range(run, run + 1))
        # Each setting has one trial with the run's number, so every epsilon has the same noise.
        frames.append(evaluate(cell, measured).release.components[0])
    return score_projected(
        LEARNER,
        np.stack(frames),
        train,
        test,
        seed,
        parameters=learner_of(LEARNER).fixed(shared.k),
        numbers=[run] * len(frames),
    )


def _series(data: str, mechanism: Mechanism) -> str:
    """Return the name of a mechanism's runs; the steps of PPM's source differ by data set."""
    return SOURCE_RUNS if mechanism == BY_SOURCE[data] else mechanism.label


def name(of: Mechanism | str) -> str:
    """Return the paper's name of a mechanism, or a given text unchanged."""
    return of if isinstance(of, str) else NAMES.get(of, of.label)
