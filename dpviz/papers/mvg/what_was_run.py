"""Chanyaswad et al. 2018, Tables 3 to 5: settings that would give the printed figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.core.allocation import UNIFORM
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget
from dpviz.core.release import Calibration
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Mean, Measurements
from dpviz.papers.mvg import _ctg, _liver, _shared, section10, table3
from dpviz.papers.mvg import table4 as four
from dpviz.papers.mvg import table5 as five
from dpviz.papers.mvg._shared import EPSILON, TAUS, Row, calibrated, favouring
from dpviz.papers.solve import UNIT, Change, SolvePart, implied, read_as
from dpviz.simulation.simulate import Named, Trials, simulate, simulate_tables

TAU = TAUS[2]
"""One tau of the paper; a solution needs only one."""

N, ALPHA, HALF, NOISE = "n", "epsilon", "half width of the cube", "factor on the noise"
TAIL, SPLIT, WHOLE = "the tight tail", "one split of the patients", "all 13,197 rows"

FOUR: Mapping[str, Mechanism] = {
    "t4-random": four.RANDOM,
    "t4-theorem-2": four.THEOREM_2,
    "t4-theorem-3": four.THEOREM_3,
    "t4-gaussian": four.GAUSSIAN,
    "t4-jl": four.SKETCH,
    "t4-laplace": four.LAPLACE,
    "t4-exponential": four.EXPONENTIAL,
}
TAILS = {
    four.THEOREM_2: parse_variant("mvg[tail=tight]"),
    four.THEOREM_3: four.THEOREM_3_TIGHT,
}
_LIVER_ROWS = {row.name: row for row in table3.ROWS}
THREE: Mapping[str, str] = {
    "t3-non-private": _liver.NON_PRIVATE,
    "t3-binary": _liver.BINARY,
    "t3-maxpnr": _liver.MAX_PNR,
    "t3-gaussian": _liver.TEXTBOOK_ROW,
    "t3-laplace": table3.LAPLACE_ROW,
    "s10-number": _liver.TEXTBOOK_ROW,
}
FIVE: Mapping[str, str] = {
    "t5-random": five.RANDOM,
    "t5-mvg": "MVG",
    "t5-gaussian": five.TEXTBOOK_ROW,
    "t5-laplace": "Laplace",
}


class MvgWhatWasRun(Experiment):
    """Single changes that yield the printed figures; see `info`."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each table row and change."""
        few = effort is Effort.QUICK
        parts: list[Part] = []
        for row, mechanism in FOUR.items():
            changes = [UNIT, WHOLE] if mechanism == four.RANDOM else [UNIT, N, ALPHA, HALF]
            changes += [TAIL] if mechanism in TAILS else []
            parts += [
                SolvePart(_shared.DATA, row, change, 50 if few else 600) for change in changes
            ]
        for row in THREE:
            private = row != "t3-non-private"
            for change in (NOISE if private else UNIT, SPLIT):
                parts.append(SolvePart(_liver.DATA, row, change, 4 if few else 40))
        for row in FIVE:
            change = UNIT if row == "t5-random" else NOISE
            parts.append(SolvePart(_ctg.DATA, row, change, 4 if few else 200))
        return parts

    def shared(self, data: str) -> Any:
        """Return the data that the table needs on one data set."""
        if data == _liver.DATA:
            return _liver.Liver.load()
        if data == _ctg.DATA:
            return _ctg.Ctg.load()
        return {first: _shared.Movement.load(first) for first in (True, False)}

    def run(self, part: SolvePart, shared: Any, seed: int) -> Measurements:
        """Return the required value of one change, or the figure in another reading."""
        if part.change == UNIT:
            return read_as(part.row, UNIT, 1.0, 1.0)  # Printed and measured values give the unit.
        if part.data == _shared.DATA:
            return _movement_row(shared, part, seed)
        if part.data == _liver.DATA:
            return _liver_row(shared, part, seed)
        return _ctg_row(shared, part, seed)


def _movement_row(
    shared: Mapping[bool, _shared.Movement], part: SolvePart, seed: int
) -> Measurements:
    """Return the value of a change that would give a figure of Table 4."""
    movement, mechanism = shared[True], FOUR[part.row]

    def lost(
        of: Mechanism = mechanism, n: float = 0.0, epsilon: float = EPSILON, half: float = 0.0
    ) -> Mean:
        rows = replace(movement, n=math.ceil(n)) if n else movement
        favoured = favouring(_shared.COLUMNS, _shared.RIGHT, TAU)
        release = rows.outcome(
            of, epsilon, part.draws, seed, favoured if of in four.MVG or of in TAILS.values()
            else UNIFORM, half or None,
        ).release  # fmt: skip
        return Mean.of(movement.loss(release.components[:, :, 0]))

    if part.change == WHOLE:
        whole = shared[False].outcome(mechanism, EPSILON, part.draws, seed).release
        return _reading(part, Mean.of(shared[False].loss(whole.components[:, :, 0])))
    if part.change == TAIL:
        return _reading(part, lost(TAILS[mechanism]))
    changes = {
        N: Change(N, movement.n, 10, 1e9, lambda n: lost(n=n)),
        ALPHA: Change(ALPHA, EPSILON, 1e-4, 1e6, lambda epsilon: lost(epsilon=epsilon)),
        HALF: Change(HALF, movement.half, 1e-3, 1e3, lambda half: lost(half=half)),
    }
    return implied(part.row, changes[part.change], four.REPORTED[mechanism])


def _reading(part: SolvePart, mean: Mean) -> Measurements:
    return read_as(part.row, part.change, mean.value - mean.half, mean.value + mean.half)


def _liver_row(liver: _liver.Liver, part: SolvePart, seed: int) -> Measurements:
    """Return the noise factor that gives a ratio of Table 3, or the ratio's range over splits."""
    two, name = part.row.startswith("s10"), THREE[part.row]
    seen = liver.only(_liver.RIGHT) if two else liver
    reported = section10.REPORTED[section10.TWO, name] if two else _liver.REPORTED[name]
    plain = np.array(_errors(liver, None, 1.0, part.draws, seed))
    if name == _liver.NON_PRIVATE:
        low, high = np.quantile(plain, (0.025, 0.975))
        return read_as(part.row, part.change, float(low), float(high))
    row = _LIVER_ROWS[name]

    def ratios(factor: float) -> FloatArray:
        errors = _errors(seen, row, factor, part.draws, seed)
        return np.array(errors) / float(plain.mean())

    if part.change == SPLIT:
        low, high = np.quantile(ratios(1.0), (0.025, 0.975))
        return read_as(part.row, part.change, float(low), float(high))
    stated = reported.over(_liver.REPORTED[_liver.NON_PRIVATE])
    change = Change(NOISE, 1.0, _least(row), 10.0, lambda factor: Mean.of(ratios(factor)))
    return implied(part.row, change, stated)


def _least(row: Row) -> float:
    """Return the least noise factor to try; the theorems' noise is far larger than other noise."""
    return 1e-8 if row.mechanism == _liver.MVG else 1e-4


def _errors(
    liver: _liver.Liver, row: Row | None, factor: float, trials: int, seed: int
) -> list[float]:
    """Return the errors after training on rows with a multiple of a table row's noise."""
    calibration = None
    if row is not None:
        allocation = row.allocation or UNIFORM
        if row.tried:
            allocation = favouring(liver.columns, _liver.RIGHT, TAU)
        budget = Budget(EPSILON, 1 / _liver.PRIVATE)
        calibration = calibrated(row.mechanism, liver.problem(allocation), budget, row.account)
        calibration = _times(calibration, factor)
    found = []
    for trial in range(trials):
        private, test = liver.split(seed, trial)
        if row is not None and calibration is not None:
            streams = Named(seed, row.mechanism.key, range(trial, trial + 1))
            table = [private].__getitem__
            (private,) = simulate_tables(row.mechanism, calibration, table, streams)
        learned = _liver.learned(private, test, seed, trial, learner=_liver.GIVEN)
        found.append(learned[_liver.RMSE])
    return found


def _times(calibration: Calibration, factor: float) -> Calibration:
    """Return a calibration whose noise has the same shape and a multiple of the stds."""
    values = dict(calibration.values)
    if "precision" in values:  # A variance is 1/sqrt(theta P), and P = B^2/n.
        values["bound"] /= factor**2
        values["precision"] /= factor**4
    return replace(calibration, scale=calibration.scale * factor, values=values)


def _ctg_row(ctg: _ctg.Ctg, part: SolvePart, seed: int) -> Measurements:
    """Return the noise factor that would give a share of Table 5."""
    (row,) = (row for row in five.ROWS if row.name == FIVE[part.row])
    moment, budget = ctg.moment(_ctg.CENTRED), ctg.budget(EPSILON)
    exact = _ctg.descending(moment.A[None])[0]
    orders = _ctg.random_orders(exact, 20_000, seed)
    random = Mean.of(ctg.loss(orders, _ctg.CENTRED))
    allocation = favouring(ctg.columns, _ctg.RIGHT, TAU) if row.tried else UNIFORM
    calibration = calibrated(row.mechanism, ctg.problem(allocation), budget, row.account)
    streams = Named(seed, row.mechanism.key, range(part.draws))

    def share(factor: float) -> Mean:
        trials = Trials(row.mechanism, _times(calibration, factor), moment, streams)
        (release,) = simulate([trials], lambda _, release: release)
        return Mean.of(ctg.loss(release.components, _ctg.CENTRED)) / random

    stated = five.REPORTED[row.name].over(five.REPORTED[five.RANDOM])
    change = Change(NOISE, 1.0, 1e-9 if row.tried else 1e-5, 10.0, share)
    return implied(part.row, change, stated)
