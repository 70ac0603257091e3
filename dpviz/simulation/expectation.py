"""Predict a mechanism's results on a table in one setting, without simulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpviz.core.problem import Budget, Problem
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured, reference_variances
from dpviz.simulation.cells import CellAccount, Skipped, account_of
from dpviz.simulation.predict import Prediction, predict


@dataclass(frozen=True)
class Expectation:
    """A variant's prediction in one setting.

    Attributes
    ----------
    mechanism : Mechanism
    problem : Problem
    budget : Budget
    prediction : Prediction
    """

    mechanism: Mechanism
    problem: Problem
    budget: Budget
    prediction: Prediction

    @cached_property
    def account(self) -> CellAccount:
        """Status of the claim, and edges and threshold of the noise; computed on first use."""
        return account_of(self.mechanism, self.problem, self.budget)

    def metric(self, key: str) -> float | None:
        """Return an expected metric by its key, or None if the noise law does not give it."""
        return self.prediction.metric(key, self.problem.k)


def expect(measured: Measured, settings: Settings, mechanism: Mechanism) -> Expectation | Skipped:
    """Return the expectation for a variant, or the reason why there is none."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    reason = mechanism.why_not(problem, budget, rows=measured.serves(mechanism))
    if reason is not None:
        return Skipped(mechanism.text, reason)
    if measured.raw is not None:
        # Each repetition prepares the table again, so no single matrix predicts the results of all.
        return Skipped(mechanism.text, "a private preparation has no limiting law for a prediction")
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return Skipped(mechanism.text, "the noise has no limiting law for a prediction")
    prediction = predict(
        measured.moment.eigenvalues, problem.k, noise, reference_variances(measured)
    )
    return Expectation(mechanism, problem, budget, prediction)
