"""Choose mechanisms if the user names none.

Each mechanism declares how strongly it is advised in a setting (`Mechanism.advised_rank`). The rule
takes the highest rank that can run. The ranks follow measured regret: ``python -m
benchmarks.defaults`` writes docs/defaults.md, which compares this rule with every single mechanism.
If a guess of the spectrum is public, the mechanism predicted to capture most is taken.
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
    again: bool = True,
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
        Whether the rows are available, and not only their second moment.
    again : bool
        Whether the rows can be read again; else mechanisms that read in passes are left out.

    Returns
    -------
    Mechanism
        A mechanism with default parameters.

    Raises
    ------
    InvalidSetting
        If no advised mechanism can run in this setting.
    """
    kind = "approximate" if budget.delta > 0 else "pure"
    candidates: list[tuple[float, Mechanism]] = []
    for cls in all_mechanisms().values():
        mechanism = cls()
        if mechanism.info.guarantee != kind or (matrix and mechanism.info.release != "matrix"):
            continue
        if not again and mechanism.needs_rows and not mechanism.by_length:
            continue
        rank = mechanism.advised_rank(problem, budget)
        if rank is not None and mechanism.why_not(problem, budget, rows=rows) is None:
            candidates.append((rank, mechanism))
    if not candidates:
        raise InvalidSetting("k", f"a whole number from 1 to {problem.d - 1}", problem.k, "--k")
    return max(candidates, key=lambda item: item[0])[1]


def with_featured(measured: Measured, settings: Settings) -> Settings:
    """Return settings with default mechanisms if they name none.

    The defaults are the featured mechanisms. The most advised other mechanism that can run replaces
    one that cannot.
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
    """The mechanism predicted to capture most variance, and one sentence on it."""

    prepared: PreparedMechanism
    captured_share: float
    sentence: str


def guessed(spectrum: str | FloatArray | None, d: int) -> FloatArray:
    """Return the public guess of A's eigenvalues, shape (d,), in squared row-norm bounds.

    Parameters
    ----------
    spectrum : str, array-like or None
        A text of `dpviz.preparation.load.spectrum_of`, numbers, or None for the spectrum 1/j.
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
            f"{d} finite numbers of at least 0, with at least one above 0",
            f"{len(eigenvalues)} numbers",
        )
    return eigenvalues


def picked_for(
    problem: Problem, budget: Budget, private: PrivateSteps, spectrum: Any, *, again: bool = True
) -> tuple[PreparedMechanism, str]:
    """Choose a mechanism if the user named none; return it and one sentence with the reason.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    private : PrivateSteps
    spectrum : str, array-like or None
        Public guess of A's eigenvalues. Without a guess, the measured rule decides. If its
        mechanism does not fit the preparation, a default guess decides.
    again : bool
        The same parameters as in `advised`.
    """
    if spectrum is None:
        rest = Budget((1 - private.total) * budget.epsilon, budget.delta)
        try:
            mechanism = advised(problem, rest, rows=True, again=again)
            whole = prepared_mechanism(mechanism, problem, budget, private)
        except (CannotRun, InvalidSetting):
            pass
        else:
            return whole, (
                f"dpviz chose {mechanism.text}: the measured rule (docs/defaults.md) "
                f"recommends it for {problem.n:,} rows, {problem.d} features and k "
                f"{problem.k}. The choice did not use the data."
            )
    choice = choose(problem, budget, private, guessed(spectrum, problem.d))
    return choice.prepared, choice.sentence


def with_variances(whole: PreparedMechanism, share: float, *, every: bool) -> PreparedMechanism:
    """Return the mechanism with variances from extra budget, if its release has no variances.

    Parameters
    ----------
    whole : PreparedMechanism
    share : float
        Share of the budget for the variances; 0 adds no variances.
    every : bool
        Whether to add variances also to a released matrix, as its eigenvalues are too large.
    """
    if share == 0 or (_own_variances(whole) and not every):
        return whole
    has_bound = whole.problem.domain.bounded
    both = whole
    for radius in (False,) if has_bound else (False, True):
        private = replace(whole.preparation.private, variance=share, radius=radius)
        both = prepared_mechanism(whole.mechanism, whole.problem, whole.budget, private)
        if _own_variances(both):
            break  # The released radius clips the rows, so variances are possible.
    return both


def has_variances(whole: PreparedMechanism) -> bool:
    """Return whether a release has variances, either added or from its matrix."""
    if whole.preparation.private.variance:
        return True
    return _own_variances(whole)


def _own_variances(whole: PreparedMechanism) -> bool:
    releases = whole.mechanism.releases(whole.problem, whole.rest)
    return releases != "subspace" or whole.mechanism.releases_variances


def choose(problem: Problem, budget: Budget, private: PrivateSteps, spectrum: FloatArray) -> Choice:
    """Return the mechanism predicted to capture most of a guessed spectrum.

    Candidates have a valid claim in this setting and noise with a predictable effect. The data is
    not used.

    Raises
    ------
    CannotRun
        If no mechanism can run.
    """
    rest = Budget((1 - private.total) * budget.epsilon, budget.delta)
    choices = []
    for cls in all_mechanisms().values():
        share = _predicted(cls(), problem, rest, spectrum)
        if share is not None:
            choices.append((share, cls()))
    # The sort is stable, so mechanisms with equal values keep their order.
    for _, mechanism in sorted(choices, key=lambda pair: -round(pair[0], 9)):
        try:
            whole = prepared_mechanism(mechanism, problem, budget, private)
        except CannotRun:
            continue
        share = _predicted(mechanism, problem, whole.rest, spectrum) or 0.0
        sentence = (
            f"dpviz chose {mechanism.text}: it is predicted to capture {percent(share)} of "
            f"the variance of the best {problem.k} components of the guessed spectrum. The "
            "choice did not use the data."
        )
        return Choice(whole, share, sentence)
    raise CannotRun("auto", "no mechanism with a valid privacy claim can run; name a mechanism")


def _predicted(
    mechanism: Mechanism, problem: Problem, budget: Budget, spectrum: FloatArray
) -> float | None:
    """Return the predicted captured share, or None without a valid claim or a prediction."""
    if mechanism.needs_rows or mechanism.why_not(problem, budget, rows=False) is not None:
        return None
    if mechanism.status(problem, budget).verdict not in (Verdict.HOLDS, Verdict.LOOSE):
        return None
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    return None if noise is None else predict(spectrum, problem.k, noise).captured_share
