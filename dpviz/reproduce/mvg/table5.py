"""Chanyaswad et al. 2018, Table 5: the covariance of CTG from noisy rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms.mvg_data import MvgData
from dpviz.privacy.accounting import spent
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, NotMeasured, Part, Series
from dpviz.reproduce.lines import Agreement, Line, Stated, beside, decided
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.mvg._ctg import (
    CENTRED,
    DATA,
    PLAIN,
    RANGE,
    READINGS,
    RIGHT,
    RSS,
    SENSITIVITY,
    UNITS,
    Ctg,
    descending,
    random_frames,
    random_orders,
    residual,
)
from dpviz.reproduce.mvg._shared import (
    BEST_TAU,
    BLUM,
    CLASSICAL,
    EPSILON,
    EXACT,
    FROM_DATA,
    LOOSE,
    PAPER,
    TAUS,
    TEXTBOOK,
    UPADHYAY,
    URL,
    Row,
    at_best,
    best_of,
    favouring,
    log_pnr,
    single,
    spent_note,
)
from dpviz.reproduce.verdicts import Answer, Claim, judged, of_item
from dpviz.values.allocation import UNIFORM

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
"""At this tau the favoured three of 21 features get no more than the others."""
COVARIANCE = "Gaussian, exact, on the covariance"
BIASED = "noise covariance left in"
BIASED_RSS = f"{RSS}, {BIASED}"
RANDOM, NON_PRIVATE = "Random guess", "Non-private"
BASIS = "Random basis"
STATEMENTS = "statements"
_NOTHING = "The exact components lose nothing."
SPENT, STD = "epsilon really spent", "std of the noise on a cell (range 1)"
PNR, NEEDED = "log PNR", "std on a cell that gives MVG's reported share of a random basis"

ROUNDING = 0.000005
REPORTED = {
    NON_PRIVATE: Stated(0.0, rounding=ROUNDING),
    RANDOM: Stated(0.12393, rounding=ROUNDING),
    "MVG": Stated(0.06657, 0.00193, ROUNDING),
    TEXTBOOK_ROW: Stated(0.07029, 0.00216, ROUNDING),
    "Laplace": Stated(0.07109, 0.00211, ROUNDING),
}
SHARE = {CENTRED: "share of random, centred", PLAIN: "share of random, not centred"}
OTHER_UNITS = "random guess in other units"

_UNKNOWN = "We do not know what was run."
_DROWNED = {
    "MVG": "By the published condition the noise on a cell is about a hundred million times its "
    f"range, so the components are those of noise. {_UNKNOWN}",
    BASIS: "What the mechanisms come to here.",
    TEXTBOOK_ROW: "By its formula the noise on a cell is about eighteen times its "
    f"range, and the components are close to random. {_UNKNOWN}",
    "Laplace": "By its formula the noise on a cell is about thirty times its range, and the "
    f"components are close to random. {_UNKNOWN}",
    RANDOM: "No preprocessing we tried gives the reported figure, so the two are not in one unit.",
    NON_PRIVATE: "The exact components lose nothing.",
}


@dataclass(frozen=True)
class CtgPart(Part):
    """One kind of noise in one reading; or, by its name alone, a baseline."""

    row: str = ""
    reading: str = ""
    draws: int = 0


class MvgTable5(Experiment):
    """RSS over all components of the covariance of noisy rows; see `info`."""

    info = Info(
        title="Covariance of CTG from noisy rows",
        paper=PAPER,
        url=URL,
        place="Table 5",
        about="Noise is added to the 21 features of 2,126 cardiotocograms, and the covariance of "
        "the noisy rows is compared with the true one, component by component. The paper finds MVG "
        "with precision on three clinical features ahead of all others. By the published formulas "
        "the noise on a cell is millions of times its range, and no noise on the rows leaves "
        "components visibly better than random directions.",
        settings=(
            "2,126 rows, 21 features in [0, 1]; identity query, s2 = sqrt(21)",
            "loss: sum over components of (eigenvalue - captured variance) squared",
            "epsilon 1, delta 1/n (0 for Laplace), 100 trials, mean and 95 % confidence interval",
            "precision on FHR, ASV and ALV, tau the best of .55, .65, .75, .85, .95",
        ),
        choices=(
            RANGE,
            SENSITIVITY,
            UNITS,
            "The estimate subtracts the known covariance of the noise. The paper takes "
            "X~X~'/n as it is; those lines say 'noise covariance left in'. For noise that is alike "
            "in all directions it makes no difference.",
            "PNR is |X'X + S|/|S| (Eq. 24 with the paper's estimate of the query's covariance).",
            "Gaussian noise on the covariance instead of the rows is added for comparison.",
        ),
        cautions=(BEST_TAU, FROM_DATA, LOOSE, CLASSICAL),
        slot=42,
        not_measured=(
            NotMeasured("JL transform (Upadhyay)", "0.06718 ± 0.00229", UPADHYAY),
            NotMeasured("Exponential (Blum et al.)", "0.07223 ± 0.00211", BLUM),
        ),
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each kind of noise and reading."""
        draws = 20 if effort is Effort.QUICK else 100  # the paper: 100
        parts: list[Part] = []
        for reading in READINGS:
            parts += [CtgPart(DATA, name, reading, draws) for name in (RANDOM, BASIS, NON_PRIVATE)]
            parts += [CtgPart(DATA, row.name, reading, draws) for row in ROWS]
        parts += [CtgPart(DATA, name, CENTRED, draws) for name in (NEEDED, COVARIANCE)]
        return [*parts, CtgPart(DATA, OTHER_UNITS, "", draws)]

    def shared(self, data: str) -> Ctg:
        """Return the rows: Laplace noise on rows needs them."""
        return Ctg.load()

    def run(self, part: Part, shared: Ctg, seed: int) -> Measurements:
        """Return the loss of one kind of noise, at every tau where it has one."""
        assert isinstance(part, CtgPart)
        reading, draws = part.reading, part.draws
        d = len(shared.columns)
        if part.row == OTHER_UNITS:
            return _other_units(shared, seed)
        if part.row == NEEDED:
            return _needed(shared, part, seed)
        if part.row == RANDOM:
            # far more than the paper's draws: everything is set beside its mean
            exact = descending(shared.moment(reading).A[None])[0]
            frames = random_orders(exact, 1_000, seed)
        elif part.row == BASIS:
            frames = random_frames(d, 1_000, seed)
        elif part.row == NON_PRIVATE:
            frames = descending(shared.moment(reading).A[None])
        elif part.row == COVARIANCE:
            frames = shared.release_of_covariance(ON_COVARIANCE, EPSILON, draws, seed).components
        else:
            (row,) = (row for row in ROWS if row.name == part.row)
            return _noisy(shared, row, part, seed)
        return Measurements({Point(reading, part.row, RSS): shared.loss(frames, reading)})

    def lines(self, found: Measurements) -> list[Line]:
        """Return Table 5 in both readings and without units, and the statement of section 9.3."""
        lines = []
        for reading in READINGS:
            lines += _table(reading, found)
        for reading in READINGS:
            lines += _shares(reading, found)
        lines += [
            beside(
                OTHER_UNITS,
                unit,
                REPORTED[RANDOM],
                found.get(OTHER_UNITS, unit, RSS),
                note=note,
                fairest=False,
            )
            for unit, note in _UNITS_TRIED.items()
        ]
        return [*lines, *(line for reading in READINGS for line in _orders(reading, found))]

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers to the table's rows and to section 9.3."""
        lines = self.lines(found)

        def row(panel: str, item: str) -> list[Line]:
            return [line for line in lines if (line.panel, line.item) == (panel, item)]

        def order(of: str) -> list[Line]:
            return of_item(lines, f"MVG loses less than {of}, {CENTRED}")

        shares = SHARE[CENTRED]
        claims = [
            judged("RSS of the exact components", row(CENTRED, NON_PRIVATE), because=_NOTHING),
            judged("RSS of a random guess", row(CENTRED, RANDOM)),
        ]
        claims += [
            judged(
                f"RSS of {name}, over that of the random guess",
                row(shares, item),
                because="So it is for noise of any size that drowns the rows: these components "
                "are as good as a random basis.",
            )
            for name, item in (
                ("MVG", "MVG, best tau"),
                (TEXTBOOK_ROW, TEXTBOOK_ROW),
                ("Laplace", "Laplace"),
            )
        ]
        claims += [
            judged(f"MVG loses less than {name}", order(name), place="section 9.3")
            for name in (TEXTBOOK_ROW, "Laplace")
        ]
        claims.append(
            Claim(
                "MVG beats the JL transform and the exponential mechanism",
                Answer.NOT_HERE,
                f"{UPADHYAY} {BLUM}",
                "by .001 and .006",
                place="section 9.3",
            )
        )
        return claims

    def charts(self) -> tuple[Chart, ...]:
        """Return the loss against the share of the favoured features."""
        shaped = [row for row in ROWS if row.tried]
        return (
            Chart(
                name="tau",
                title="RSS against the share of the precision for FHR, ASV and ALV",
                quantity=RSS,
                x_label="tau",
                y_label="RSS (features of range 1)",
                series=tuple(Series(row.name) for row in shaped),
            ),
        )


def _noisy(shared: Ctg, row: Row, part: CtgPart, seed: int) -> Measurements:
    """Return the loss, the noise on a cell, what it spends and the PNR of one kind of noise."""
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
            # Laplace noise of scale b has the variance 2 b^2
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


def _needed(shared: Ctg, part: CtgPart, seed: int) -> Measurements:
    """Return the std of i.i.d. noise on a cell that gives the reported share of a random basis."""
    from scipy.optimize import brentq

    rows, (n, d) = shared.read(part.reading), shared.raw.shape
    covariance = rows.T @ rows / n
    rng = generator(seed, "reproduce", MvgTable5.key, part.reading, "needed")
    crosses, squares = [], []
    for _ in range(20):
        noise = rng.standard_normal((n, d))
        crosses.append(rows.T @ noise / n)
        squares.append(noise.T @ noise / n)
    cross, square = np.array(crosses), np.array(squares)
    cross = cross + cross.transpose(0, 2, 1)
    basis = residual(random_frames(d, 1_000, seed), covariance).mean()
    target = basis * REPORTED["MVG"].value / REPORTED[RANDOM].value

    def excess(log_std: float) -> float:
        std = np.exp(log_std)
        frames = descending(covariance + std * cross + std**2 * square)
        return float(residual(frames, covariance).mean() - target)

    std = float(np.exp(brentq(excess, np.log(1e-3), np.log(1e3), xtol=1e-3)))
    return Measurements({Point(part.reading, NEEDED, STD): single(std)})


_OTHER = "Not the reported figure."
_UNITS_TRIED = {
    "[-1, 1], centred": _OTHER,
    "divided by the largest value, centred": _OTHER,
    "divided by the largest value, not centred": _OTHER,
    "[0, 1] divided by the largest row norm, not centred": _OTHER,
    "standardised": _OTHER,
    "[0, 1] centred, variances as shares of their sum": "The nearest we found; the text says "
    "nothing of shares.",
    "standardised, variances as shares of their sum": _OTHER,
}


def _other_units(shared: Ctg, seed: int) -> Measurements:
    """Return the loss of random directions under other preprocessings."""
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


def _values(
    found: Measurements, reading: str, name: str, quantity: str = RSS
) -> tuple[FloatArray | None, str]:
    """Return the draws of a row, at its best tau where it has one, and a sentence on the tau."""
    best = best_of(found.curve(reading, name, quantity))
    if best is not None:
        return best.values, at_best(best)
    return found.get(reading, name, quantity), ""


def _table(reading: str, found: Measurements) -> list[Line]:
    """Return the table in one reading; the centred one is the fairer."""
    fair = reading == CENTRED
    lines = []
    for name in (NON_PRIVATE, RANDOM, BASIS):
        values = found.get(reading, name, RSS)
        # the figure of the random guess is set beside every reading of it
        stated, note = REPORTED.get(RANDOM if name == BASIS else name), ""
        fairest = fair and name != BASIS
        why = _DROWNED[name]
        lines.append(beside(reading, name, stated, values, why, note, fairest=fairest))
    for row in ROWS:
        values, chosen = _values(found, reading, row.name)
        item = f"{row.name}, best tau" if row.tried else row.name
        stated, note = REPORTED.get(row.name), f"{_DROWNED.get(row.name, '')} {chosen}".strip()
        lines.append(beside(reading, item, stated, values, "", note, fairest=False))
        if row.tried:
            values, chosen = _values(found, reading, row.name, BIASED_RSS)
            lines.append(
                beside(reading, f"{item}, {BIASED}", stated, values, "", chosen, fairest=False)
            )
            values = found.get(reading, row.name, RSS, EQUAL)
            lines.append(beside(reading, f"{row.name}, equal shares", None, values))
        if reading == CENTRED:
            lines += _facts(row, found)
    if reading == CENTRED:
        values = found.get(CENTRED, NEEDED, STD)
        lines.append(beside(CENTRED, NEEDED, None, values))
        lines.append(beside(CENTRED, COVARIANCE, None, found.get(CENTRED, COVARIANCE, RSS)))
    return lines


def _facts(row: Row, found: Measurements) -> list[Line]:
    """Return the noise on a cell, what is spent and the PNR of one kind of noise."""
    x = EQUAL if row.tried else None
    at = ", equal shares" if row.tried else ""
    lines = []
    for quantity in (STD, SPENT, PNR):
        fact = found.get(CENTRED, row.name, quantity, x)
        note = spent_note(fact) if quantity == SPENT else ""
        lines.append(beside(CENTRED, f"{row.name}: {quantity}{at}", None, fact, note=note))
    if row.tried:
        item = f"{row.name}: {PNR}, tau {TAUS[-1]:g}"
        values = found.get(CENTRED, row.name, PNR, TAUS[-1])
        lines.append(beside(CENTRED, item, None, values))
    return lines


def _shares(reading: str, found: Measurements) -> list[Line]:
    """Return the losses as shares of that of random directions, in one reading."""
    random = found.get(reading, RANDOM, RSS)
    unit = REPORTED[RANDOM].value
    lines = []
    for row in ROWS:
        values, chosen = _values(found, reading, row.name)
        stated = REPORTED.get(row.name)
        if stated is not None:
            stated = Stated(stated.value / unit, stated.error / unit, stated.rounding / unit)
        shares = None if values is None or random is None else values / random.mean()
        why = f"{_DROWNED.get(row.name, '')} {chosen}".strip()
        item = f"{row.name}, best tau" if row.tried else row.name
        fairest = reading == CENTRED
        lines.append(beside(SHARE[reading], item, stated, shares, why, chosen, fairest=fairest))
    basis = found.get(reading, BASIS, RSS)
    shares = None if basis is None or random is None else basis / random.mean()
    lines.append(beside(SHARE[reading], BASIS, None, shares))
    values = found.get(reading, COVARIANCE, RSS)
    if reading == CENTRED:
        shares = None if values is None or random is None else values / random.mean()
        lines.append(beside(SHARE[reading], COVARIANCE, None, shares))
    return lines


_SHAPE = "All are close to random directions, and the shape of pure noise decides."


def _orders(reading: str, found: Measurements) -> Iterator[Line]:
    """Yield whether MVG loses clearly less than Gaussian and Laplace noise on the rows."""
    mvg, _ = _values(found, reading, "MVG")
    for name in (TEXTBOOK_ROW, "Laplace"):
        values, _ = _values(found, reading, name)
        item = f"MVG loses less than {name}, {reading}"
        line = decided(STATEMENTS, item, "stated in section 9.3", values, mvg, _SHAPE, _SHAPE)
        if reading != CENTRED and line.agreement is not Agreement.ABSENT:
            line = replace(line, agreement=Agreement.READING)
        yield line
