"""What is expected of a mechanism on a table in one setting, without a draw."""

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
        """Status of its claim, and edges and threshold of its noise; judged when it is asked."""
        return account_of(self.mechanism, self.problem, self.budget)

    def metric(self, key: str) -> float | None:
        """Return an expected metric by its key, None where the law does not say it."""
        return self.prediction.metric(key, self.problem.k)


def expect(measured: Measured, settings: Settings, mechanism: Mechanism) -> Expectation | Skipped:
    """Return what is expected of a variant, or why nothing is."""
    problem, budget = measured.problem(settings), measured.budget(settings)
    reason = mechanism.why_not(problem, budget, rows=measured.serves(mechanism))
    if reason is not None:
        return Skipped(mechanism.text, reason)
    if measured.raw is not None:
        # each draw prepares the table anew, so that there is no one matrix to predict from
        return Skipped(mechanism.text, "a paid preparation has no limiting law to predict from")
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return Skipped(mechanism.text, "there is no limiting law of the noise to predict from")
    seen = predict(measured.moment.eigenvalues, problem.k, noise, reference_variances(measured))
    return Expectation(mechanism, problem, budget, seen)
