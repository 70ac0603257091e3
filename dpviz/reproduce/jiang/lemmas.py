"""Jiang, Xie and Zhang 2016: Lemmas 1 and 2, definiteness, running time and rival bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.seeding import Draws, generator
from dpviz.datasets import load
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.metrics import measure
from dpviz.noise.wishart import wishart
from dpviz.prepare.bounding import prepare
from dpviz.prepare.plan import planned
from dpviz.privacy.sensitivity import l1_entries, nuclear
from dpviz.reproduce.experiment import Chart, Effort, Experiment, Info, Part, series_of
from dpviz.reproduce.jiang._shared import (
    DIFFERENCE,
    LAPLACE,
    NO_DATA,
    PAPER,
    REFUTED,
    URL,
    WISHART,
    share_interval,
)
from dpviz.reproduce.lines import Agreement, Line, beside, claim
from dpviz.reproduce.measurements import Mean, Measurements, Point
from dpviz.reproduce.verdicts import Answer, Claim, judged
from dpviz.run.cells import Cell, evaluate, run_cell
from dpviz.settings import Settings
from dpviz.theory.bounds import wishart_tail
from dpviz.values.problem import Budget, Domain, Problem, Relation

TAIL, SENSITIVITY, DEFINITE, TIME, RIVALS = (
    "Lemma 1",
    "Lemma 2",
    "positive semi-definite",
    "running time",
    "rival bounds",
)
TAIL_D = (2, 10, 50)
ETAS = (0.5, 0.1, 0.01)
BEYOND = "1 where the largest eigenvalue exceeds the bound"
SEARCH_D = (2, 3, 4, 6, 10)
L1, NUCLEAR = "l1 norm of the change of nA", "nuclear norm of the change of nA"
SEARCHES = 2_000
TABLES = ("wine", "breast_cancer", "digits")
NEGATIVE = "1 where a released matrix has a negative eigenvalue"
TIME_D = (20, 40, 80, 160, 320)
WORK = "multiplications over k d^2, subspace without forming the noise"
STEPS = "steps of subspace iteration"
K, TOLERANCE = 2, 1e-6
RIVAL_D, RIVAL_KS, EACH, N = 60, (1, 2, 4, 8, 16), 0.05, 10_000
SHARE = "share of the optimum"
RIVAL = parse_variant("kapralov_talwar")


@dataclass(frozen=True)
class LemmaPart(Part):
    """One check at one dimension, table or mechanism."""

    what: str = ""
    d: int = 0
    name: str = ""
    draws: int = 0


class JiangLemmas(Experiment):
    """What the paper states beside its theorems; see `info`."""

    info = Info(
        title="Lemmas 1 and 2, definiteness, running time and rival bounds",
        paper=PAPER,
        url=URL,
        place="Lemmas 1 and 2",
        about="The tail bound of Wishart noise, the sensitivities of the covariance, that the "
        "released matrix stays positive semi-definite, that k components take O(k d^2) time, and "
        "that the error bound beats those of Kapralov and Talwar and of Hardt and Price.",
        settings=(
            "Lemma 1: lambda_1 exceeds (m + sqrt(2 m t (r + 2)) + 2 t r) lambda_1(C) with "
            "probability at most d exp(-t); here r = d and m = d + 1",
            "Lemma 2: d/n < s_1 < 2d/n; in the proof of Theorem 4 the nuclear norm is at most 3/n",
            "O(k d^2) time against O(d^6/epsilon) of Kapralov and Talwar; error O(k^3 d/epsilon) "
            "of theirs, O(k^1.5 d ln^2 d/epsilon) of Hardt and Price, O(d ln d/epsilon) here",
        ),
        choices=(
            NO_DATA,
            f"Lemma 1: t such that d exp(-t) is {', '.join(f'{eta:g}' for eta in ETAS)}; d = "
            f"{', '.join(map(str, TAIL_D))}.",
            f"Lemma 2: the norms of vv' - ww' over {SEARCHES:,} random pairs of rows and the worst "
            "pairs known, beside the exact values this package calibrates with.",
            f"Definiteness: {', '.join(TABLES)}, epsilon 1.",
            "Time is counted as multiplications, which are the same at every run: subspace "
            "iteration with the noise as a product of Gaussian factors that is never multiplied "
            f"out, k = {K}, until the subspace moves by less than {TOLERANCE:g} in a step. To "
            "publish the noisy matrix itself the product of the factors costs d^3.",
            "The rivals' bounds have no constants: they are compared as orders. The mechanism of "
            "Kapralov and Talwar is drawn in the tractable form of this package, and compared by "
            "the variance captured, as its values are of other directions than its components; "
            "Hardt and Price's pure variant is not among the mechanisms here.",
        ),
        cautions=(REFUTED,),
        slot=16,
    )

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part for each check and dimension, table or mechanism."""
        quick = effort is Effort.QUICK
        draws = 2_000 if quick else 20_000
        parts: list[Part] = [LemmaPart("", TAIL, d, "", draws) for d in TAIL_D]
        parts += [LemmaPart("", SENSITIVITY, d) for d in SEARCH_D]
        parts += [
            LemmaPart("", DEFINITE, 0, f"{table} {mechanism.text}", 50 if quick else 400)
            for table in TABLES
            for mechanism in (WISHART, LAPLACE)
        ]
        parts += [LemmaPart("", TIME, d, "", 3 if quick else 10) for d in TIME_D]
        parts += [
            LemmaPart("", RIVALS, RIVAL_D, mechanism.text, 10 if quick else 100)
            for mechanism in (WISHART, DIFFERENCE, RIVAL)
        ]
        return parts

    def run(self, part: Part, shared: None, seed: int) -> Measurements:
        """Return what one check measures."""
        assert isinstance(part, LemmaPart)
        if part.what == TAIL:
            return _tail(part.d, part.draws, seed)
        if part.what == SENSITIVITY:
            return _sensitivities(part.d, seed)
        if part.what == DEFINITE:
            table, mechanism = part.name.split(" ")
            return _definite(table, parse_variant(mechanism), part.draws, seed)
        if part.what == TIME:
            return _work(part.d, part.draws, seed)
        return _rival(parse_variant(part.name), part.draws, seed)

    def lines(self, found: Measurements) -> list[Line]:
        """Return each statement beside what was measured."""
        lines = [_tail_line(found, d) for d in TAIL_D]
        lines += [line for d in SEARCH_D for line in _sensitivity_lines(found, d)]
        for table in TABLES:
            lines += _definite_lines(found, table)
        lines += _work_lines(found)
        lines += _rival_lines(found)
        return lines

    def claims(self, found: Measurements) -> list[Claim]:
        """Return the answers."""
        lines = self.lines(found)

        def lines_of(panel: str, start: str = "") -> list[Line]:
            return [line for line in lines if line.panel == panel and line.item.startswith(start)]

        kept, broken = (
            [line for line in lines if line.panel.startswith(DEFINITE) and name in line.item]
            for name in ("Wishart", "Laplace")
        )
        return [
            judged(
                "tail of the largest eigenvalue of Wishart noise",
                lines_of(TAIL),
                place="Lemma 1",
                held=Answer.BOUND,
                because="Never more often than stated, and mostly far less: the noise itself "
                "stays near 4 d lambda_1(C).",
            ),
            judged(
                "the l1 sensitivity lies between d/n and 2d/n",
                lines_of(SENSITIVITY, "l1"),
                place="Lemma 2",
                because="It is sqrt(2) d/n for even d, which a pair of rows attains.",
            ),
            judged(
                "the nuclear norm of the change is at most 3/n",
                lines_of(SENSITIVITY, "nuclear"),
                place="proof of Theorem 4",
                held=Answer.BOUND,
                because="The most it can be is 2/n.",
            ),
            judged(
                "the published matrix stays positive semi-definite",
                kept,
                place="sections 1 and 3",
                because="No release has a negative eigenvalue, as the noise has none; that is "
                "also why the mechanism is not private.",
            ),
            judged(
                "Laplace noise does not keep the matrix positive semi-definite",
                broken,
                place="section 3",
                because="Every release has negative eigenvalues, or nearly every one.",
            ),
            judged(
                "k components take O(k d^2) time",
                lines_of(TIME, "multiplications"),
                place="section 4",
                held=Answer.BOUND,
            ),
            judged(
                "a better bound than Kapralov and Talwar's where k^3 exceeds ln d",
                lines_of(RIVALS, "k^3"),
                place="section 4",
            ),
            judged(
                "a better bound than Hardt and Price's",
                lines_of(RIVALS, "k^1.5"),
                place="section 4",
            ),
        ]

    def charts(self) -> tuple[Chart, ...]:
        """Return the variance captured against k, beside the rival that can be drawn."""
        return (
            Chart(
                name="rivals",
                title=f"Variance captured against k, d = {RIVAL_D}",
                quantity=SHARE,
                x_label="k",
                y_label=SHARE,
                series=series_of((WISHART, DIFFERENCE, RIVAL)),
                log_x=True,
            ),
        )


# --- what is measured -------------------------------------------------------------------------


def _tail(d: int, draws: int, seed: int) -> Measurements:
    """Return for each draw of W_d(d + 1, I) whether its largest eigenvalue exceeds the bound."""
    rng = generator(seed, "reproduce", "jiang", TAIL, d)
    tops = []
    for low in range(0, draws, 1_000):
        batch = Draws.batch(rng, min(1_000, draws - low))
        tops.append(np.linalg.eigvalsh(wishart(batch, d, d + 1))[:, -1])
    top = np.concatenate(tops)
    return Measurements(
        {
            Point(TAIL, f"d = {d}", BEYOND, eta): (top > wishart_tail(d, d + 1, 1.0, eta)).astype(
                float
            )
            for eta in ETAS
        }
    )


def _sensitivities(d: int, seed: int) -> Measurements:
    """Return the largest l1 and nuclear norms of vv' - ww' over pairs of unit rows."""
    rng = generator(seed, "reproduce", "jiang", SENSITIVITY, d)
    pairs = rng.standard_normal((SEARCHES, 2, d))
    # the worst pair known for even d: (a, b) and (b, -a) on two halves, at an angle of pi/8
    first = np.arange(d) < d // 2
    a, b = math.cos(math.pi / 8), math.sin(math.pi / 8)
    worst = np.array([[np.where(first, a, b), np.where(first, b, -a)]])
    pairs = np.concatenate([pairs, worst])
    lengths = np.linalg.norm(pairs, axis=2, keepdims=True)
    v, w = np.moveaxis(pairs / lengths, 1, 0)
    change = v[:, :, None] * v[:, None, :] - w[:, :, None] * w[:, None, :]
    entries = np.abs(change).sum(axis=(1, 2)).max()
    values = np.abs(np.linalg.eigvalsh(change)).sum(axis=1).max()
    return Measurements(
        {
            Point(SENSITIVITY, f"d = {d}", L1): np.array([float(entries)]),
            Point(SENSITIVITY, f"d = {d}", NUCLEAR): np.array([float(values)]),
        }
    )


def _definite(table: str, mechanism: Mechanism, draws: int, seed: int) -> Measurements:
    """Return for each release whether its matrix has a negative eigenvalue."""
    settings = Settings(table=table, epsilon=1.0, k=1, seed=seed)
    measured = prepare(load(table), settings)
    cell = Cell(mechanism, measured.problem(settings), Budget(1.0), seed, range(draws))
    counts = measure(evaluate(cell, measured), ["negative_eigenvalues"])["negative_eigenvalues"]
    return Measurements(
        {Point(f"{DEFINITE}, {table}", mechanism.label, NEGATIVE): (counts > 0).astype(float)}
    )


def _work(d: int, draws: int, seed: int) -> Measurements:
    """Return the multiplications that the top k components of A + W take, W kept as factors.

    A is diagonal with eigenvalues that do not change with d, applied as a full
    matrix; W = c G G', G of shape (d, d + 1), with c d fixed, so that the noise is
    as large beside A at every d.
    """
    rng = generator(seed, "reproduce", "jiang", TIME, d)
    A = np.diag(np.concatenate([[0.4, 0.2], np.zeros(d - 2)]))
    steps = []
    for _ in range(draws):
        G = rng.standard_normal((d, d + 1)) * math.sqrt(0.005 / d)
        Q = np.linalg.qr(rng.standard_normal((d, K)))[0]
        count = 0
        while count < 1_000:
            count += 1
            P = np.linalg.qr(A @ Q + G @ (G.T @ Q))[0]
            moved = math.sqrt(max(K - float(np.sum((P.T @ Q) ** 2)), 0.0))
            Q = P
            if moved < TOLERANCE:
                break
        steps.append(float(count))
    count_of_steps = np.array(steps)
    # A Q: k d^2; G'Q and G(G'Q): 2 k d (d + 1); orthogonalisation: 2 k^2 d
    each = K * d**2 + 2 * K * d * (d + 1) + 2 * K**2 * d
    return Measurements(
        {
            Point(TIME, "", WORK, float(d)): count_of_steps * each / (K * d**2),
            Point(TIME, "", STEPS, float(d)): count_of_steps,
        }
    )


def _rival(mechanism: Mechanism, draws: int, seed: int) -> Measurements:
    """Return the share of the optimum along k, where k equal eigenvalues stand above 0."""
    found: dict[Point, FloatArray] = {}
    for k in RIVAL_KS:
        measured = planned([EACH] * k + [0.0] * (RIVAL_D - k), N, f"rank {k}")
        settings = Settings(table=measured.name, epsilon=1.0, k=k, seed=seed)
        cell = Cell(mechanism, measured.problem(settings), Budget(1.0), seed, range(draws))
        values = run_cell(cell, measured, ["captured_share"]).metrics["captured_share"]
        found[Point(RIVALS, mechanism.label, SHARE, float(k))] = values
    return Measurements(found)


def _here(k: int, d: int) -> float:
    return d * math.log(d)  # Theorem 9


def _kapralov_talwar(k: int, d: int) -> float:
    return float(k**3 * d)


def _hardt_price(k: int, d: int) -> float:
    return float(k**1.5 * d * math.log(d) ** 2)


# --- lines ------------------------------------------------------------------------------------


def _tail_line(found: Measurements, d: int) -> Line:
    item = f"how often the bound is exceeded, d = {d}"
    reported = f"with probability at most {', '.join(f'{eta:g}' for eta in ETAS)}"
    curve = found.curve(TAIL, f"d = {d}", BEYOND)
    if any(eta not in curve for eta in ETAS):  # the run is not there yet
        return claim(TAIL, item, reported, 0, 0, why="")
    # the exact interval of a share must not lie above the stated probability
    held = all(share_interval(values)[0] <= eta for eta, values in curve.items())
    shares = ", ".join(f"{curve[eta].mean():.2g}" for eta in ETAS)
    draws = len(curve[ETAS[0]])
    measured = f"in shares of {shares} of {draws:,} draws"
    note = "" if held else "The bound is exceeded more often than stated."
    return Line(TAIL, item, reported, measured, _agreement(held), note)


def _agreement(held: bool) -> Agreement:
    return Agreement.AGREES if held else Agreement.DIFFERS


def _problem(d: int) -> Problem:
    return Problem(N, d, 1, Relation.REPLACE, Domain.ball(d))


def _sensitivity_lines(found: Measurements, d: int) -> Iterator[Line]:
    for quantity, exact, name, reported in (
        (L1, N * l1_entries(_problem(d)), "l1", "above d and below 2d"),
        (NUCLEAR, N * nuclear(_problem(d)), "nuclear", "at most 3"),
    ):
        item = f"{name} norm, largest found, d = {d}"
        values = found.get(SENSITIVITY, f"d = {d}", quantity)
        if values is None:
            yield claim(SENSITIVITY, item, reported, 0, 0, why="")
            continue
        value = float(values[0])
        ends = (d, 2 * d) if quantity == L1 else (0, 3)
        held = ends[0] < value <= exact * (1 + 1e-9) and exact < ends[1]
        note = f"Largest found {value:.4g}, proved at most {exact:.4g}, at d = {d}."
        yield Line(SENSITIVITY, item, reported, f"{value:.4g}", _agreement(held), note)


def _definite_lines(found: Measurements, table: str) -> Iterator[Line]:
    panel = f"{DEFINITE}, {table}"
    for mechanism, reported in (
        (WISHART, "the noisy covariance stays positive semi-definite"),
        (LAPLACE, "cannot guarantee it"),
    ):
        item = f"{mechanism.label}: releases with a negative eigenvalue"
        values = found.get(panel, mechanism.label, NEGATIVE)
        if values is None:
            yield claim(panel, item, reported, 0, 0, why="")
            continue
        count = int(values.sum())
        held = count == 0 if mechanism == WISHART else count > 0
        measured = f"{count} of {len(values)}"
        note = f"A negative eigenvalue in {measured} releases of {table}."
        yield Line(panel, item, reported, measured, _agreement(held), note)


def _work_lines(found: Measurements) -> Iterator[Line]:
    item, reported = "multiplications over k d^2", "of order 1"
    curve = found.curve(TIME, "", WORK)
    if len(curve) < 2:
        yield claim(TIME, item, reported, 0, 0, why="")
    else:
        means = {d: Mean.of(values).value for d, values in curve.items()}
        first, last = min(means), max(means)
        held = means[last] <= 1.1 * means[first]
        measured = f"{means[first]:.0f} at d = {first:.0f}, {means[last]:.0f} at d = {last:.0f}"
        note = (
            f"Subspace iteration takes {measured} times k d^2 multiplications if the noise is "
            "kept as Gaussian factors; to publish the noisy matrix itself costs d^3."
        )
        yield Line(TIME, item, reported, measured, _agreement(held), note)
    for d in TIME_D:
        yield beside(TIME, f"{STEPS}, d = {d}", None, found.get(TIME, "", STEPS, float(d)))


def _rival_lines(found: Measurements) -> Iterator[Line]:
    places = [(k, d) for k in RIVAL_KS for d in TIME_D]
    reported = "the bound of the Wishart mechanism is the smaller"
    shares = {
        mechanism.label: found.curve(RIVALS, mechanism.label, SHARE)
        for mechanism in (WISHART, RIVAL)
    }
    for name, bound, asked in (
        ("k^3 d", _kapralov_talwar, [(k, d) for k, d in places if k**3 > math.log(d)]),
        ("k^1.5 d ln^2 d", _hardt_price, places),
    ):
        item = f"{name} against d ln d"
        if not found.draws:
            yield claim(RIVALS, item, reported, 0, 0, why="")
            continue
        held = sum(_here(k, d) < bound(k, d) for k, d in asked)
        note = f"As orders without constants, at {held} of {len(asked)} pairs of k and d."
        last = float(RIVAL_KS[-1])
        if bound is _kapralov_talwar and all(last in curve for curve in shares.values()):
            told = [f"{label} {curve[last].mean():.2f}" for label, curve in shares.items()]
            note += f" Measured at k = {last:.0f}, the shares of the optimum: {' and '.join(told)}."
        yield claim(RIVALS, item, reported, held, len(asked), note, note)
    for mechanism in (WISHART, DIFFERENCE, RIVAL):
        for k in (RIVAL_KS[0], RIVAL_KS[-1]):
            values = found.get(RIVALS, mechanism.label, SHARE, float(k))
            item = f"{mechanism.label}: share of the optimum, k = {k}, d = {RIVAL_D}"
            yield beside(RIVALS, item, None, values)
