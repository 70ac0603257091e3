"""Chanyaswad et al. 2018, Table 5: the covariance of CTG from noisy rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpviz.accounting.accounting import spent
from dpviz.core.allocation import UNIFORM
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms.mvg_data import MvgData
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg._ctg import (
    CENTRED,
    DATA,
    READINGS,
    RIGHT,
    RSS,
    Ctg,
    descending,
    random_frames,
    random_orders,
    residual,
)
from dpviz.papers.mvg._shared import EPSILON, EXACT, TAUS, TEXTBOOK, Row, favouring, log_pnr, single
from dpviz.papers.said import Stated

MVG, MVG_TIGHT = parse_variant("mvg_data"), parse_variant("mvg_data[tail=tight]")
GAUSSIAN, LAPLACE = parse_variant("data_gaussian"), parse_variant("data_laplace")
ON_COVARIANCE = parse_variant("gaussian")


TEXTBOOK_ROW = "Gaussian, textbook scale"
ROWS = (
    Row("MVG", MVG),
    Row("MVG, tight tail", MVG_TIGHT),
    Row("MVG shape, exact account", MVG, EXACT),
    Row(TEXTBOOK_ROW, GAUSSIAN, TEXTBOOK),
    Row("Gaussian, exact", GAUSSIAN),
    Row("Laplace", LAPLACE),
)
EQUAL = len(RIGHT) / 21
"""At this tau the three favoured features of 21 get the same share as the others."""
COVARIANCE = "Gaussian, exact, on the covariance"
BIASED = "noise covariance left in"
BIASED_RSS = f"{RSS}, {BIASED}"
RANDOM, NON_PRIVATE = "Random guess", "Non-private"
BASIS = "Random basis"
SPENT, STD = "epsilon really spent", "std of the noise on a cell (range 1)"
PNR = "log PNR"

ROUNDING = 0.000005
REPORTED = {
    NON_PRIVATE: Stated(0.0, rounding=ROUNDING),
    RANDOM: Stated(0.12393, rounding=ROUNDING),
    "MVG": Stated(0.06657, 0.00193, ROUNDING),
    TEXTBOOK_ROW: Stated(0.07029, 0.00216, ROUNDING),
    "Laplace": Stated(0.07109, 0.00211, ROUNDING),
}
OTHER_UNITS = "random guess in other units"


class CtgPart(Part):
    """One kind of noise in one reading, or a baseline that needs only its name."""

    row: str = ""
    reading: str = ""
    draws: int = 0


class MvgTable5(Experiment):
    """RSS over all components of the covariance of noisy rows; see `info`."""

    pictures: ClassVar = {"tau": (RSS, *(row.name for row in ROWS if row.tried))}

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each kind of noise and reading."""
        draws = 20 if effort is Effort.QUICK else 4_000  # The paper uses 100 releases.
        parts: list[Part] = []
        for reading in READINGS:
            parts += [CtgPart(DATA, name, reading, draws) for name in (RANDOM, BASIS, NON_PRIVATE)]
            parts += [CtgPart(DATA, row.name, reading, draws) for row in ROWS]
        parts.append(CtgPart(DATA, COVARIANCE, CENTRED, draws))
        return [*parts, CtgPart(DATA, OTHER_UNITS, "", draws)]

    def shared(self, data: str) -> Ctg:
        """Return the rows, which Laplace noise on rows needs."""
        return Ctg.load()

    def run(self, part: CtgPart, shared: Ctg, seed: int) -> Measurements:
        """Return the loss with one kind of noise, at every tau if it has one."""
        reading, draws = part.reading, part.draws
        d = len(shared.columns)
        if part.row == OTHER_UNITS:
            return _other_units(shared, seed)
        if part.row == RANDOM:
            # There are more random orders than in the paper: each loss is compared with their mean.
            exact = descending(shared.moment(reading).A[None])[0]
            frames = random_orders(exact, max(1_000, 5 * draws), seed)
        elif part.row == BASIS:
            frames = random_frames(d, max(1_000, 5 * draws), seed)
        elif part.row == NON_PRIVATE:
            frames = descending(shared.moment(reading).A[None])
        elif part.row == COVARIANCE:
            frames = shared.release_of_covariance(ON_COVARIANCE, EPSILON, draws, seed).components
        else:
            (row,) = (row for row in ROWS if row.name == part.row)
            return _noisy(shared, row, part, seed)
        return Measurements({Point(reading, part.row, RSS): shared.loss(frames, reading)})


def _noisy(shared: Ctg, row: Row, part: CtgPart, seed: int) -> Measurements:
    """Return the loss, std on an entry, used epsilon and PNR of one kind of noise."""
    reading, mechanism = part.reading, row.mechanism
    moment = shared.moment(reading)
    found = {}
    for tau in (EQUAL, *TAUS) if row.tried else (None,):
        allocation = UNIFORM if tau is None else favouring(shared.columns, RIGHT, tau)
        release, calibration = shared.release(
            mechanism, reading, EPSILON, part.draws, seed, allocation, row.account
        )
        losses = {RSS: release.components}
        if isinstance(mechanism, MvgData):
            losses[BIASED_RSS] = descending(release.raw)
            variances = mechanism.shape(calibration, None)[0]
        else:
            # Laplace noise of scale b has the variance 2 b^2.
            factor = 2.0 if mechanism == LAPLACE else 1.0
            variances = np.full(moment.d, factor * calibration.scale**2)
        for quantity, frames in losses.items():
            found[Point(reading, row.name, quantity, tau)] = shared.loss(frames, reading)
        chosen = np.sqrt(variances[[shared.columns.index(name) for name in RIGHT]]).mean()
        cost = spent(calibration.parts, calibration.budget)
        ratio = log_pnr(moment.n * moment.A, np.diag(variances))
        for quantity, value in ((STD, chosen / 2), (SPENT, cost.epsilon), (PNR, ratio)):
            found[Point(reading, row.name, quantity, tau)] = single(float(value))
    return Measurements(found)


_UNITS_TRIED = (
    "[-1, 1], centred",
    "divided by the largest value, centred",
    "divided by the largest value, not centred",
    "[0, 1] divided by the largest row norm, not centred",
    "standardised",
    "[0, 1] centred, variances as shares of their sum",
    "standardised, variances as shares of their sum",
)


def _other_units(shared: Ctg, seed: int) -> Measurements:
    """Return the loss of random directions with other ways of preprocessing."""
    raw, rows = shared.raw, shared.rows
    largest = raw / np.abs(raw).max(axis=0)
    centred = rows - rows.mean(axis=0)
    standard = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    tables = (
        2 * centred,
        largest - largest.mean(axis=0),
        largest,
        rows / np.linalg.norm(rows, axis=1).max(),
        standard,
        centred / np.sqrt(np.square(centred).mean(axis=0).sum()),
        standard / np.sqrt(np.square(standard).mean(axis=0).sum()),
    )
    frames = random_frames(raw.shape[1], 1_000, seed)
    return Measurements(
        {
            Point(OTHER_UNITS, unit, RSS): residual(frames, table.T @ table / len(table))
            for unit, table in zip(_UNITS_TRIED, tables, strict=True)
        }
    )
