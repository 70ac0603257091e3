"""Chaudhuri, Sarwate and Sinha 2012, Figure 2: utility against the privacy parameter.

The paper does not say how rows of unbounded Gaussian data met its assumption
that no row is longer than 1, and the answer decides the picture:

* **as drawn**: they did not. The noise is calibrated to R = 1 and most of the
  privacy is imaginary: this reading is **not private**, and is here to be
  compared with the figure only.
* **unit length**: every row is scaled to length 1.
* **clipped**: rows longer than 1 are scaled down to it.
* **divided**: all rows are divided by the largest norm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.datasets import Table, load
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.metrics import optimum
from dpviz.prepare.bounding import prepare
from dpviz.prepare.prepared import Measured
from dpviz.reproduce.chaudhuri._shared import ADDED, PAPER, PPCA, SULQ, URL, tail_loss
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, series_of
from dpviz.reproduce.lines import Agreement, Line, as_reading, beside, claim
from dpviz.reproduce.measurements import Measurements, Point
from dpviz.reproduce.verdicts import Claim, judged, of_item
from dpviz.run.cells import Cell, run_cell
from dpviz.settings import Settings
from dpviz.values.moments import SecondMoment
from dpviz.values.problem import Budget, Domain

DRAWN, UNIT, CLIPPED, DIVIDED = "as drawn", "unit length", "clipped", "divided"
READINGS = (DRAWN, UNIT, CLIPPED, DIVIDED)
TABLE, N, D, K, DELTA = "spiked", 5_000, 10, 2, 0.05
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0)
MODERATE = 0.1
SIZES = (500, 1_000, 2_000, N)
SHARE = "share of the optimum"
LONG_SHARE = "share of the optimum, 1,000 sweeps"
SHARE_BY_N = f"share of the optimum at alpha {MODERATE:g}"
CEILING = "q_F of the exact top 2"
LONGER = "share of rows longer than 1"
THOUSAND = parse_variant("ppca[sweeps=1000]")
THOUSAND_ALPHAS = (0.1, 0.5, 2.0)


def reading_of(table: Table, reading: str) -> Measured:
    """Return the table's moments in one of the readings.

    Rows are not centred: the paper's second moment is about zero.

    Parameters
    ----------
    table : Table
    reading : str
        One of `READINGS`.
    """
    settings = Settings(table=table.name, center="none", row_bound="1", delta=DELTA, k=K)
    if reading == CLIPPED:
        return prepare(table, settings)
    if reading == DIVIDED:
        return prepare(table, replace(settings, row_bound="max"))
    n, d = table.rows.shape
    rows, note = table.rows, "Rows are not bounded although the noise assumes it: not private."
    if reading == UNIT:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        note = "Every row is scaled to length 1."
    moment = SecondMoment(rows.T @ rows / n, n)
    return Measured(
        name=table.name,
        columns=table.columns,
        domain=Domain.ball(d),
        row_bound=1.0,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=(note,),
        assumed_public=(),
    )


def shares(
    measured: Measured, mechanism: Mechanism, alpha: float, draws: int, seed: int
) -> FloatArray:
    """Return each draw's share of the optimum, shape (draws,).

    Parameters
    ----------
    measured : Measured
        From `reading_of`.
    mechanism : Mechanism
    alpha : float
        The paper's name for epsilon.
    draws, seed : int
    """
    problem = measured.problem(Settings(table=TABLE, k=K))
    cell = Cell(mechanism, problem, Budget(alpha, DELTA), seed, range(draws))
    return run_cell(cell, measured, ["captured_share"]).metrics["captured_share"]


@dataclass(frozen=True)
class FigurePart(Part):
    """One mechanism in one reading, along alpha and along n; without a mechanism, the ceiling."""

    reading: str = ""
    mechanism: str = ""
    draws: int = 1


class ChaudhuriFigure2(Experiment):
    """The spiked table in four readings; see `info`."""

    info = Info(
        title="Captured variance against the privacy parameter",
        paper=PAPER,
        url=URL,
        place="Figure 2",
        about="Synthetic Gaussian rows with two strong directions among ten: the paper draws the "
        "variance that PPCA and MOD-SULQ capture as its alpha (our epsilon) grows, and finds PPCA "
        "far above at moderate alpha. It prints the curves and no numbers.",
        settings=(
            "n = 5,000 rows in d = 10, covariance eigenvalues .5, .3, .04, .03, .02, .01, .004, "
            ".003, .001, .001",
            "k = 2, delta = .05, 100 draws of each mechanism",
        ),
        choices=(
            "The paper assumes that no row is longer than 1 and does not say how Gaussian rows "
            "meet that. Four readings are drawn: as drawn, every row scaled to length 1, rows "
            "longer than 1 scaled down to 1, and all rows divided by the largest norm.",
            "The figure's axis is marked from .2 to .7, so its highest line lies between .7 and "
            ".8: that tells the readings apart by the variance that exact PCA captures.",
            "Utility is drawn as the share of what exact PCA captures, so that readings compare; "
            "in the clipped reading of the variance of the rows before clipping.",
            f"'Moderate alpha' is taken to be {MODERATE:g}, the value of the paper's other "
            "experiments.",
            "The legend's 'PPCA 1000' is not explained. It is taken to be 1,000 sweeps of the "
            "Gibbs sampler, and run so once for the rows as drawn; elsewhere it is the sampler's "
            "own number.",
            "The rows as drawn are the fairest reading: the only one besides unit length whose "
            "highest line fits the axis, and the text says nothing of scaling.",
            "Added: the curve along n at that alpha (the first n rows), and Gaussian and Wishart "
            "difference noise.",
        ),
        cautions=(
            "As drawn, the noise is calibrated to rows of length 1 and longer rows are kept: that "
            "reading is not private.",
        ),
        slot=23,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each reading and mechanism, and one for each reading's ceiling."""
        draws = 20 if effort is Effort.QUICK else 100  # the paper: 100
        mechanisms = (PPCA, SULQ, *ADDED)
        return [
            *(
                FigurePart(reading=reading, mechanism=mechanism.text, draws=draws)
                for reading in READINGS
                for mechanism in mechanisms
            ),
            *(FigurePart(reading=reading) for reading in READINGS),
            *(
                ()
                if effort is Effort.QUICK  # a minute
                else (FigurePart(reading=DRAWN, mechanism=THOUSAND.text, draws=draws),)
            ),
        ]

    def shared(self, data: str) -> dict[tuple[str, int], Measured]:
        """Return the spiked table's moments by reading and n."""
        whole = load(TABLE)
        return {
            (reading, n): reading_of(Table(TABLE, whole.rows[:n], whole.columns), reading)
            for reading in READINGS
            for n in SIZES
        }

    def run(self, part: Part, shared: dict[tuple[str, int], Measured], seed: int) -> Measurements:
        """Return the share of the optimum at every alpha and at every n."""
        assert isinstance(part, FigurePart)
        reading, whole = part.reading, shared[part.reading, N]
        if not part.mechanism:
            facts = {CEILING: optimum(whole.moment, K)}
            if reading == DRAWN:
                facts[LONGER] = float(np.mean(np.linalg.norm(load(TABLE).rows, axis=1) > 1))
            return Measurements(
                {Point(reading, "", key): np.array([value]) for key, value in facts.items()}
            )
        mechanism = parse_variant(part.mechanism)
        label, draws = mechanism.label, part.draws
        if mechanism == THOUSAND:
            return Measurements(
                {
                    Point(reading, label, LONG_SHARE, alpha): shares(
                        whole, mechanism, alpha, draws, seed
                    )
                    for alpha in THOUSAND_ALPHAS
                }
            )
        found = {
            Point(reading, label, SHARE, alpha): shares(whole, mechanism, alpha, draws, seed)
            for alpha in ALPHAS
        }
        for n in SIZES[:-1]:
            values = shares(shared[reading, n], mechanism, MODERATE, draws, seed)
            found[Point(reading, label, SHARE_BY_N, n)] = values
        found[Point(reading, label, SHARE_BY_N, N)] = found[Point(reading, label, SHARE, MODERATE)]
        return Measurements(found)

    def lines(self, found: Measurements) -> list[Line]:
        """Return each reading's ceiling, the mechanisms at moderate alpha, and the statements."""
        lines = []
        for reading in READINGS:
            lines += [_ceiling(reading, found)]
            for mechanism in (PPCA, SULQ, *ADDED):
                item = f"{mechanism.label}, share of the optimum at alpha {MODERATE:g}"
                values = found.get(reading, mechanism.label, SHARE, MODERATE)
                lines.append(beside(reading, item, None, values))
            lines += [
                _order(reading, found),
                *(_approach(reading, found, mechanism) for mechanism in (PPCA, SULQ)),
                *_at_moderate(reading, found),
            ]
            if reading != DRAWN:
                lines = [as_reading(line) if line.panel == reading else line for line in lines]
            if reading != CLIPPED:  # there the A that utility is measured by is not PPCA's own
                lines.append(_tail(reading, found))
        if found.curve(DRAWN, THOUSAND.label, LONG_SHARE):
            lines += [_long(found, alpha) for alpha in THOUSAND_ALPHAS]
        longer = found.get(DRAWN, "", LONGER)
        lines.append(beside(DRAWN, "rows longer than 1, as a share", None, longer))
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers for the rows as drawn."""
        lines = [line for line in self.lines(found) if line.panel == DRAWN]
        approach = "utility approaches that of exact PCA"
        return [
            judged(
                "the highest line lies within the printed axis",
                of_item(lines, "highest line within the printed axis"),
            ),
            judged(
                "PPCA approaches exact PCA as alpha grows",
                of_item(lines, f"{PPCA.label} approaches exact PCA as alpha grows"),
                stated=approach,
            ),
            judged(
                "MOD-SULQ approaches exact PCA as alpha grows",
                of_item(lines, f"{SULQ.label} approaches exact PCA as alpha grows"),
                stated=approach,
            ),
            judged(
                "PPCA captures most of the utility at moderate alpha",
                of_item(lines, f"PPCA captures most of the utility at alpha {MODERATE:g}"),
            ),
            judged(
                "there the gap between MOD-SULQ and PPCA becomes quite large",
                of_item(lines, f"PPCA far above MOD-SULQ at alpha {MODERATE:g}"),
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the figure and the added curve along n, one panel for each reading."""
        series = series_of((PPCA, SULQ, *ADDED))
        return (
            Chart(
                name="alpha",
                title="Share of the optimum that two components capture",
                quantity=SHARE,
                x_label="alpha (epsilon)",
                y_label=SHARE,
                series=series,
                log_x=True,
                share_y=True,
            ),
            Chart(
                name="n",
                title=f"The same at alpha {MODERATE:g}, against n (added)",
                quantity=SHARE_BY_N,
                x_label="n",
                y_label=SHARE,
                series=series,
                log_x=True,
                share_y=True,
            ),
        )


def _ceiling(reading: str, found: Measurements) -> Line:
    ceiling = found.get(reading, "", CEILING)
    held = 0 if ceiling is None else int(0.7 <= ceiling[0] < 0.8)
    value = "" if ceiling is None else f"Exact PCA captures {ceiling[0]:.3f}. "
    return claim(
        reading,
        "highest line within the printed axis",
        "the axis is marked up to .7",
        held,
        0 if ceiling is None else 1,
        why=f"{value}So this is not the reading behind the figure.",
        note=f"{value}So this reading may be the one behind the figure.",
    )


def _long(found: Measurements, alpha: float) -> Line:
    """Return PPCA after 1,000 sweeps beside the usual number."""
    values = found.get(DRAWN, THOUSAND.label, LONG_SHARE, alpha)
    usual = found.mean(DRAWN, PPCA.label, SHARE, alpha)
    note = "" if usual is None else f"With the usual number of sweeps {usual.value:.4g}."
    item = f"PPCA after 1,000 sweeps, share of the optimum at alpha {alpha:g}"
    return beside(DRAWN, item, None, values, note=note)


def _means(reading: str, found: Measurements, mechanism: Mechanism) -> dict[float, float]:
    curve = found.curve(reading, mechanism.label, SHARE)
    return {alpha: float(np.mean(values)) for alpha, values in curve.items()}


def _order(reading: str, found: Measurements) -> Line:
    upper, lower = _means(reading, found, PPCA), _means(reading, found, SULQ)
    item = "alphas at which PPCA is above MOD-SULQ"
    both = [alpha for alpha in upper if alpha in lower]
    if not both:
        return claim(reading, item, "", 0, 0, why="")
    above = ", ".join(f"{alpha:g}" for alpha in both if upper[alpha] > lower[alpha])
    return Line(
        reading,
        item,
        "",
        f"{above} of {', '.join(f'{alpha:g}' for alpha in both)}",
        Agreement.ADDED,
        "PPCA's loss falls like 1/(n alpha) and that of additive noise like its square, so that "
        "MOD-SULQ is ahead in the end, where both have next to nothing left to lose.",
    )


def _tail(reading: str, found: Measurements) -> Line:
    """Return PPCA's loss at the largest alpha beside its limit; see `tail_loss`."""
    values = found.get(reading, PPCA.label, SHARE, ALPHAS[-1])
    ceiling = found.get(reading, "", CEILING)
    loss = None if values is None or ceiling is None else (1 - values) * ceiling[0]
    limit = tail_loss(N, D, K, ALPHAS[-1])
    return beside(
        reading,
        f"{PPCA.label}, q_F below exact PCA at alpha {ALPHAS[-1]:g}",
        None,
        loss,
        note=f"For large n alpha it is k (d - k)/(n alpha) = {limit:.4g}, whatever the spectrum.",
    )


def _approach(reading: str, found: Measurements, mechanism: Mechanism) -> Line:
    means = list(_means(reading, found, mechanism).values())
    steps = [after > before for before, after in pairwise(means)]
    last = f"Reaches {means[-1]:.3f} of the optimum at alpha 2." if means else ""
    return claim(
        reading,
        f"{mechanism.label} approaches exact PCA as alpha grows",
        "utility approaches that of exact PCA",
        sum(steps),
        len(steps),
        why=f"{last} Steps that fall are within the noise of the draws.",
        note=last,
    )


def _at_moderate(reading: str, found: Measurements) -> list[Line]:
    ppca = found.mean(reading, PPCA.label, SHARE, MODERATE)
    sulq = found.mean(reading, SULQ.label, SHARE, MODERATE)
    asked = 0 if ppca is None or sulq is None else 1
    best = ppca.value if ppca is not None else 0.0
    gap = best - (sulq.value if sulq is not None else 0.0)
    return [
        claim(
            reading,
            f"PPCA captures most of the utility at alpha {MODERATE:g}",
            "most of the utility at moderate alpha (read as more than half)",
            int(best > 0.5),
            asked,
            why=f"It captures {best:.2f} of the optimum.",
            note=f"It captures {best:.2f} of the optimum.",
        ),
        claim(
            reading,
            f"PPCA far above MOD-SULQ at alpha {MODERATE:g}",
            "the gap becomes quite large (read as more than a fifth of the optimum)",
            int(gap > 0.2),
            asked,
            why=f"The gap is {gap:.2f} of the optimum.",
            note=f"The gap is {gap:.2f} of the optimum.",
        ),
    ]
