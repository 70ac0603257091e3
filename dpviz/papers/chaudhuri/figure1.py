"""Chaudhuri, Sarwate and Sinha 2012, Figure 1: captured variance against sample size."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpviz.accounting.gaussian import delta_of
from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import optimum
from dpviz.core.parts import GaussianPart
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.chaudhuri._shared import (
    ADDED,
    BUDGET,
    DATA_SETS,
    NON_PRIVATE,
    PPCA,
    STUDIED,
    SULQ,
    DataSet,
    UnitRows,
    load_unit_rows,
)
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

UTILITY = "q_F(U)"
ON_SAMPLE = "q_F(U) on the sample itself"
FIRST_GAP, LAST_GAP, RHAT, SWEEPS = (
    "gap between opposite starts before the first sweep, in standard errors",
    "the same after the last sweep",
    "split R-hat of the chains",
    "sweeps of the chains diagnosed",
)
DIAGNOSTICS = {
    "start_gap_first": FIRST_GAP,
    "start_gap_last": LAST_GAP,
    "split_rhat": RHAT,
    "gibbs_sweeps": SWEEPS,
}
ADVANTAGE = "largest advantage of any test for one row"
SPENT = "epsilon spent"
TOP_SHARE, TOP_TRACE, LEAST_NORM, LEAST_TRACE = (
    "q_F(V_k) over the Frobenius norm of A",
    "q_F(V_k) over the trace of A",
    "least k with 80 % of the Frobenius norm of A",
    "least k with 80 % of the trace of A",
)
ROWS, FEATURES = "rows", "features"
THRESHOLD = 0.8  # Share of variance in the paper's rule for choosing k.
NEAR = 0.15  # Distance to the floor, as a share of floor to ceiling, that we call near random.
_BATCH = 20  # Number of releases in memory at a time: they take 40 MB at d = 513.
_WIDE = 300
_APART = 100_000


class FigurePart(Part):
    """One mechanism over one permutation, for several n; without a mechanism, facts on the data.

    Attributes
    ----------
    permutation : int
    mechanism : str
    draws : int
    sizes : tuple of int
    diagnose : bool
        Whether to measure the convergence of the Markov chains instead of their captured variance.
    """

    permutation: int = 0
    mechanism: str = ""
    draws: int = 1
    sizes: tuple[int, ...] = ()
    diagnose: bool = False


class Samples:
    """Second moments of the first n rows of random permutations, each computed only once."""

    def __init__(self, rows: UnitRows, data: DataSet) -> None:
        self.rows, self.data = rows, data
        self._found: dict[tuple[int, int], dict[int, Measured]] = {}

    def measured(self, seed: int, permutation: int) -> dict[int, Measured]:
        """Return the samples of a permutation by size, with all rows as the reference."""
        if (seed, permutation) not in self._found:
            order = self.rows.order(seed, permutation)
            # The downloaded file may have fewer rows than the data set of the paper.
            sizes = [size for size in self.data.sizes if size <= self.rows.n]
            self._found[seed, permutation] = {
                moment.n: self.rows.measured(moment) for moment in self.rows.prefixes(order, sizes)
            }
        return self._found[seed, permutation]


class ChaudhuriFigure1(Experiment):
    """Captured variance on four data sets against n; see `info`."""

    pictures: ClassVar = {"n": (UTILITY, *STUDIED, *ADDED)}

    stand_in = "chaudhuri_standin"

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts of the experiment by data set, permutation and mechanism, in this order."""
        quick = effort is Effort.QUICK
        # With only 20 chains, the split R-hat varies by .06 by chance and may exceed its limit.
        sweeps, chains = (20, 6) if quick else (40, 100)
        parts: list[Part] = []
        for data in DATA_SETS.values():
            sizes = (data.sizes[0], data.sizes[-1]) if quick else data.sizes
            # At large d one sample size takes long, so each part of the experiment has only one.
            cuts = [sizes] if data.d <= _WIDE else [(size,) for size in sizes]
            parts.append(FigurePart(data.key))
            parts += [
                FigurePart(data.key, permutation, mechanism.text, _draws(mechanism, quick), some)
                for permutation in range(1 if quick else 5)  # The paper uses 5 permutations.
                for mechanism in (*STUDIED, *ADDED)
                for some in cuts
            ]
            text = f"{PPCA.key}[sweeps={sweeps}]"
            parts.append(FigurePart(data.key, 0, text, chains, data.sizes[-1:], diagnose=True))
        return parts

    def shared(self, data: str) -> Samples:
        """Return a data set's sparse rows and the moments computed from these rows so far."""
        return Samples(load_unit_rows(data), DATA_SETS[data])

    def run(self, part: FigurePart, shared: Samples, seed: int) -> Measurements:
        """Return q_F of every release at every sample size."""
        if not part.mechanism:
            return _facts(shared)
        mechanism, data = parse_variant(part.mechanism), shared.data
        samples = shared.measured(seed, part.permutation)
        # Chains for the diagnosis use other random streams than the chains shown in the figure.
        first = _APART if part.diagnose else part.permutation * part.draws
        found: dict[Point, FloatArray] = {}
        for n in part.sizes:
            problem = shared.rows.problem(n, data.k)
            captured, traces = [], []
            for low in range(first, first + part.draws, _BATCH):
                trials = range(low, min(low + _BATCH, first + part.draws))
                outcome = evaluate(Cell(mechanism, problem, BUDGET, seed, trials), samples[n])
                # Components are summed up, because q_F measures the subspace that they span.
                captured.append(outcome.captured_each.sum(axis=1))
                traces.append(outcome.release.trace)
            if part.diagnose:
                said = mechanism.diagnose(np.concatenate([t for t in traces if t is not None]))
                for name, quantity in DIAGNOSTICS.items():
                    found[Point(part.data, PPCA.label, quantity)] = np.array([said[name]])
                break
            label = mechanism.label
            found[Point(part.data, label, UTILITY, n)] = np.concatenate(captured)
            if mechanism == NON_PRIVATE:
                own = np.array([optimum(samples[n].moment, data.k)])
                found[Point(part.data, label, ON_SAMPLE, n)] = own
        return Measurements(found)


def _draws(mechanism: Mechanism, quick: bool) -> int:
    if mechanism == NON_PRIVATE:
        return 1
    if mechanism == PPCA:
        return 6 if quick else 10  # The paper uses 10 releases.
    if mechanism in ADDED:
        return 10 if quick else 20
    return 20 if quick else 100  # The paper uses 100 releases.


def _facts(shared: Samples) -> Measurements:
    """Return the shape of the data, the results of the rule for k, and MOD-SULQ's privacy loss."""
    rows, data = shared.rows, shared.data
    values = rows.moment.eigenvalues
    # All rows are used, because the paper's rule for k uses the whole data set.
    captured = np.cumsum(values)
    norm, trace = math.sqrt(float(values @ values)), float(values.sum())
    facts: dict[str, float] = {
        ROWS: rows.n,
        FEATURES: rows.d,
        TOP_SHARE: captured[data.k - 1] / norm,
        TOP_TRACE: captured[data.k - 1] / trace,
        LEAST_NORM: int(np.argmax(captured >= THRESHOLD * norm)) + 1,
        LEAST_TRACE: int(np.argmax(captured >= THRESHOLD * trace)) + 1,
    }
    found = Measurements(
        {Point(data.key, "", name): np.array([float(fact)]) for name, fact in facts.items()}
    )
    problem = rows.problem(data.sizes[-1], data.k)
    (part,) = SULQ.calibrate(problem, BUDGET).parts
    assert isinstance(part, GaussianPart)
    spent = SULQ.spent(problem, BUDGET)
    assert spent is not None
    # At epsilon 0, delta is the total variation distance between releases of neighbours.
    account = {SPENT: spent.epsilon, ADVANTAGE: delta_of(0.0, part.mu)}
    for name, value in account.items():
        found.draws[Point(data.key, SULQ.label, name)] = np.array([value])
    return found
