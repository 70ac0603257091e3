"""The mechanisms to take when nobody names one.

Each mechanism declares how strongly it is advised in a setting (`Mechanism.advised_rank`); the
rule takes the strongest that can run. The ranks follow measured regret:
``python -m benchmarks.defaults`` writes docs/defaults.md, where this rule stands beside every
single mechanism. Where a guess of the spectrum is public, what is predicted to keep most is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import (
    Verdict,
)
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, featured
from dpviz.preparation.account import PreparedMechanism, prepared_mechanism
from dpviz.preparation.load import spectrum_of
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import PrivateSteps
from dpviz.simulation.cells import cell_at
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell


def advised(
    problem: Problem,
    budget: Budget,
    *,
    matrix: bool = False,
    rows: bool = False,
    array: bool = True,
) -> Mechanism:
    """Return the mechanism advised for a problem and a budget.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        With delta 0 only mechanisms with pure epsilon are considered.
    matrix : bool
        Whether a noisy second moment is wanted, and not only its leading components.
    rows : bool
        Whether the rows are at hand, and not only their second moment.
    array : bool
        Whether they are in memory as a whole; else what needs them there is left out.

    Returns
    -------
    Mechanism
        With default parameters.

    Raises
    ------
    InvalidSetting
        If nothing that is advised can run here.
    """
    kind = "approximate" if budget.delta > 0 else "pure"
    candidates: list[tuple[float, Mechanism]] = []
    for cls in all_mechanisms().values():
        mechanism = cls()
        if mechanism.info.guarantee != kind or (matrix and mechanism.info.release != "matrix"):
            continue
        if not array and mechanism.needs_rows and not mechanism.by_length:
            continue
        rank = mechanism.advised_rank(problem, budget)
        if rank is not None and mechanism.why_not(problem, budget, rows=rows) is None:
            candidates.append((rank, mechanism))
    if not candidates:
        raise InvalidSetting("k", f"from 1 to {problem.d - 1} for subspaces", problem.k, "--k")
    return max(candidates, key=lambda item: item[0])[1]


def with_featured(measured: Measured, settings: Settings) -> Settings:
    """Return settings that name what is shown first where they name no mechanism.

    Those that are featured; in the place of one that cannot run here comes what is advised most of
    the others that can.
    """
    if settings.mechanisms:
        return settings
    first, problem, budget = featured(), measured.problem(settings), measured.budget(settings)
    others = {
        key: one.advised_rank(problem, budget) or 0.0
        for key, cls in all_mechanisms().items()
        if key not in first and (one := cls()).info.guarantee != "none"
    }
    run = (
        key
        for key in (*first, *sorted(others, key=others.__getitem__, reverse=True))
        if isinstance(cell_at(measured, settings, all_mechanisms()[key](), range(1)), Cell)
    )
    return replace(settings, mechanisms=tuple(islice(run, len(first))))


_EXPONENT, _TOTAL = 1.0, 0.25


@dataclass(frozen=True)
class Choice:
    """The mechanism that is predicted to keep most, and one sentence that says so."""

    prepared: PreparedMechanism
    captured_share: float
    sentence: str


def guessed(spectrum: str | FloatArray | None, d: int) -> FloatArray:
    """Return the public guess of A's eigenvalues, shape (d,), in squared row bounds.

    Parameters
    ----------
    spectrum : str, array-like or None
        A text of `dpviz.preparation.load.spectrum_of`, numbers, or None for 1/j.
    d : int
    """
    if spectrum is None:
        values = 1.0 / np.arange(1, d + 1) ** _EXPONENT
        return np.asarray(values * (_TOTAL / values.sum()), dtype=np.float64)
    if isinstance(spectrum, str):
        eigenvalues = spectrum_of(spectrum)
    else:
        try:
            eigenvalues = np.sort(np.asarray(spectrum, dtype=np.float64).ravel())[::-1]
        except (TypeError, ValueError):
            raise InvalidSetting(
                "spectrum", f"{d} finite numbers of at least 0, or a text", type(spectrum).__name__
            ) from None
    if (
        len(eigenvalues) != d
        or not np.isfinite(eigenvalues).all()
        or eigenvalues.min() < 0
        or eigenvalues.sum() == 0
    ):
        raise InvalidSetting(
            "spectrum",
            f"{d} finite numbers of at least 0, not all 0",
            f"{len(eigenvalues)} numbers",
        )
    return eigenvalues


def picked_for(
    problem: Problem, budget: Budget, private: PrivateSteps, spectrum: Any, *, array: bool = True
) -> tuple[PreparedMechanism, str]:
    """Return the mechanism that nobody named, and one sentence that says why it is that one.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    private : PrivateSteps
    spectrum : str, array-like or None
        Public guess of A's eigenvalues. Without one the measured rule decides, and where what it
        advises does not go with the preparation, a guess.
    array : bool
        As of `advised`.
    """
    if spectrum is None:
        rest = Budget((1 - private.total) * budget.epsilon, budget.delta)
        try:
            mechanism = advised(problem, rest, rows=True, array=array)
            whole = prepared_mechanism(mechanism, problem, budget, private)
        except (CannotRun, InvalidSetting):
            pass
        else:
            return whole, (
                f"{mechanism.text} was picked: the measured rule (docs/defaults.md) advises it for "
                f"{problem.n:,} rows, {problem.d} features and k {problem.k}; the data was not "
                "asked."
            )
    choice = choose(problem, budget, private, guessed(spectrum, problem.d))
    return choice.prepared, choice.sentence


def with_variances(whole: PreparedMechanism, share: float, *, every: bool) -> PreparedMechanism:
    """Return it with variances bought beside its release, where that has none of its own.

    Parameters
    ----------
    whole : PreparedMechanism
    share : float
        Of the budget; 0 buys none.
    every : bool
        Whether they are wanted also where a matrix is released, as its eigenvalues are too large.
    """
    if share == 0 or (_own_variances(whole) and not every):
        return whole
    bounded = whole.problem.domain.bounded
    combined = whole
    for radius in (False,) if bounded else (False, True):
        private = replace(whole.preparation.private, variance=share, radius=radius)
        combined = prepared_mechanism(whole.mechanism, whole.problem, whole.budget, private)
        if _own_variances(combined):
            break  # without a bound rows are cut where the release found a radius
    return combined


def has_variances(whole: PreparedMechanism) -> bool:
    """Return whether variances come with a release, bought ones or a matrix's own."""
    if whole.preparation.private.variance:
        return True
    return _own_variances(whole)


def _own_variances(whole: PreparedMechanism) -> bool:
    held = whole.mechanism.releases(whole.problem, whole.rest)
    return held != "subspace" or whole.mechanism.releases_variances


def choose(problem: Problem, budget: Budget, private: PrivateSteps, spectrum: FloatArray) -> Choice:
    """Return the mechanism that is predicted to capture most of a guessed spectrum.

    Candidates hold their claim in this setting and add noise whose effect can be predicted; the
    data is not asked.

    Raises
    ------
    CannotRun
        If none can run.
    """
    rest = Budget((1 - private.total) * budget.epsilon, budget.delta)
    ranked = []
    for cls in all_mechanisms().values():
        share = _predicted(cls(), problem, rest, spectrum)
        if share is not None:
            ranked.append((share, cls()))
    # the sort is stable: of equals the first in their order
    for _, mechanism in sorted(ranked, key=lambda pair: -round(pair[0], 9)):
        try:
            whole = prepared_mechanism(mechanism, problem, budget, private)
        except CannotRun:
            continue
        share = _predicted(mechanism, problem, whole.rest, spectrum) or 0.0
        sentence = (
            f"{mechanism.text} was picked: it is predicted to capture {percent(share)} of what the "
            f"best {problem.k} components of the guessed spectrum would; the data was not asked."
        )
        return Choice(whole, share, sentence)
    raise CannotRun("auto", "no mechanism whose claim holds can run here; name one")


def _predicted(
    mechanism: Mechanism, problem: Problem, budget: Budget, spectrum: FloatArray
) -> float | None:
    """Return the predicted captured share, or None where there is no claim or no prediction."""
    if mechanism.needs_rows or mechanism.why_not(problem, budget, rows=False) is not None:
        return None
    if mechanism.status(problem, budget).verdict not in (Verdict.HOLDS, Verdict.LOOSE):
        return None
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    return None if noise is None else predict(spectrum, problem.k, noise).captured_share
