"""Experiment I of Chanyaswad et al. 2018: regression on noisy rows of Liver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import spent
from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.datasets import remote
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.mechanisms.mvg_data import MvgData
from dpviz.papers.mvg._shared import EPSILON, Row, calibrated, favouring, log_pnr, single
from dpviz.papers.said import Stated
from dpviz.simulation.simulate import Named, simulate_tables
from dpviz.simulation.tasks.learners import fitted, learner_of

DATA = "liver"
TEACHER = "drinks"
RIGHT = ("sgpt", TEACHER)
"""ALT (sgpt in the file) and the target, Y: the features that the paper favours."""

MVG, MVG_TIGHT = parse_variant("mvg_data"), parse_variant("mvg_data[tail=tight]")
GAUSSIAN, LAPLACE = parse_variant("data_gaussian"), parse_variant("data_laplace")

PRIVATE, TEST = 248, 97
LEARNER = "kernel_ridge"

SPENT, STD, PNR = "epsilon really spent", "std of the noise on ALT and Y cells", "log PNR"
RMSE = "RMSE"
SCALED_RMSE = "RMSE, learner on scaled values"
CLIPPED = "RMSE, learner on scaled values, predictions clipped to [-1, 1]"
SIZE = "root mean square of the predictions"
GIVEN, FIXED, TUNED = "as given", "scaled, fixed", "scaled, tuned"
"""Learners: one as in the paper's source, and two on scaled values."""

ALPHA_GIVEN, GAMMA_GIVEN = 1.0, 1 / 5


NON_PRIVATE, RANDOM = "Non-private", "Random guess"
BINARY, MAX_PNR = "MVG, binary", "MVG, max-PNR, directions by SuLQ"
TEXTBOOK_ROW = "Gaussian, textbook scale"
ROUNDING = 0.000005
REPORTED = {
    NON_PRIVATE: Stated(0.01226, rounding=ROUNDING),
    RANDOM: Stated(0.03989, rounding=ROUNDING),
    BINARY: Stated(0.01624, 0.00026, ROUNDING),
    MAX_PNR: Stated(0.01611, 0.00046, ROUNDING),
    TEXTBOOK_ROW: Stated(0.01913, 0.00069, ROUNDING),
    "Laplace": Stated(0.02482, 0.00189, ROUNDING),
}
"""Values of Table 3, as plain numbers instead of hundredths."""


@dataclass(frozen=True, eq=False)
class Liver:
    """Blood tests and daily drinks of 345 patients, centred and in [-1, 1].

    Attributes
    ----------
    rows : ndarray of shape (345, d)
        Rows with the target in the last column.
    columns : tuple of str
    """

    rows: FloatArray
    columns: tuple[str, ...]

    @classmethod
    def load(cls) -> Liver:
        """Read the file; means and ranges are computed from all rows."""
        table = remote.load(DATA, download=False)
        # The target becomes the last column, whatever the order of columns in the file is.
        order = [name for name in table.columns if name != TEACHER] + [TEACHER]
        rows = table.rows[:, [table.columns.index(name) for name in order]]
        rows = rows - rows.mean(axis=0)
        return cls(rows / np.abs(rows).max(axis=0), tuple(order))

    def only(self, features: tuple[str, ...]) -> Liver:
        """Return the same patients with only some of the columns."""
        places = [self.columns.index(name) for name in features]
        return Liver(self.rows[:, places], features)

    def split(self, seed: int, trial: int) -> tuple[FloatArray, FloatArray]:
        """Return the private rows and the test rows of a trial."""
        order = generator(seed, "reproduce", DATA, trial).permutation(len(self.rows))
        return self.rows[order[:PRIVATE]], self.rows[order[PRIVATE : PRIVATE + TEST]]

    def problem(self, allocation: Allocation = UNIFORM) -> Problem:
        """Return the problem of the identity query on the cube, with replacement neighbours."""
        d = len(self.columns)
        return Problem(PRIVATE, d, d, Relation.REPLACE, Domain.box(d), allocation)


def learned(
    train: FloatArray, test: FloatArray, seed: int, trial: int, *, learner: str
) -> dict[str, float]:
    """Return the RMSE, on clean test rows, of a model trained on (noisy) rows.

    Parameters
    ----------
    train : ndarray of shape (n, d)
    test : ndarray of shape (m, d)
    seed, trial : int
        Names of the random stream of the folds.
    learner : str
        Learner: `GIVEN`, `FIXED` or `TUNED`.

    Returns
    -------
    dict of str to float
        `RMSE` and the predictions' `SIZE` for the learner as given; `SCALED_RMSE` and `CLIPPED` for
        the other learners.
    """
    true = test[:, -1]
    if learner == GIVEN:
        predicted = as_given(train, test)
        return {
            RMSE: float(np.sqrt(np.mean((predicted - true) ** 2))),
            SIZE: float(np.sqrt(np.mean(predicted**2))),
        }
    method = learner_of(LEARNER)
    state = int(generator(seed, "reproduce", DATA, "folds", trial).integers(2**31 - 1))
    with one_blas_thread():
        parameters = None if learner == TUNED else method.fixed(train.shape[1] - 1)
        model = fitted(method, train[:, :-1], train[:, -1], state, parameters)
        predicted = model.predict(test[:, :-1])
    return {
        SCALED_RMSE: method.score.measure(true, predicted),
        CLIPPED: method.score.measure(true, np.clip(predicted, -1.0, 1.0)),
    }


def as_given(train: FloatArray, test: FloatArray) -> FloatArray:
    """Return the predictions of kernel ridge without an intercept, on unscaled values."""
    from sklearn.kernel_ridge import KernelRidge  # This import is slow, and lists do not need it.

    model = KernelRidge(kernel="rbf", alpha=ALPHA_GIVEN, gamma=GAMMA_GIVEN)
    with one_blas_thread():
        model.fit(train[:, :-1], train[:, -1])
        predicted: FloatArray = model.predict(test[:, :-1])
    return predicted


def by_trial(found: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Return the values of several trials as arrays."""
    # All trials have the same keys, so the keys of the first trial are used.
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def measured_row(
    liver: Liver,
    row: Row,
    tau: float | None,
    seed: int,
    trials: int,
    *,
    learner: str = GIVEN,
    features: tuple[str, ...] = RIGHT,
    epsilon: float = EPSILON,
) -> dict[str, FloatArray]:
    """Return the errors after training with one kind of noise, and facts on the noise.

    Parameters
    ----------
    liver : Liver
    row : Row
    tau : float or None
        Share of the precision for favoured features; None for a fixed allocation or none.
    seed, trials : int
    learner : str
        Learner, as in `learned`.
    features : tuple of str
        Names of the favoured features.
    epsilon : float

    Returns
    -------
    dict of str to ndarray
        Arrays over trials: the results of `learned` and of `noise_facts`.
    """
    allocation = row.allocation or UNIFORM
    if tau is not None:
        allocation = favouring(liver.columns, features, tau)
    problem, budget = liver.problem(allocation), Budget(epsilon, 1 / PRIVATE)
    row.mechanism.check(problem, budget)
    calibration = calibrated(row.mechanism, problem, budget, row.account)
    found = []
    for trial in range(trials):
        private, test = liver.split(seed, trial)
        streams = Named(seed, row.mechanism.key, range(trial, trial + 1))
        (released,) = simulate_tables(row.mechanism, calibration, [private].__getitem__, streams)
        found.append(learned(released, test, seed, trial, learner=learner))
    facts = noise_facts(liver, row.mechanism, calibration, seed, trials)
    return {**by_trial(found), **facts}


def noise_facts(
    liver: Liver, mechanism: Mechanism, calibration: Calibration, seed: int, trials: int
) -> dict[str, FloatArray]:
    """Return the noise's mean std on favoured entries, the log PNR and the used epsilon.

    Private directions come from a release; other directions are the features. The used epsilon is a
    single number; without a claim it is absent.
    """
    d = len(liver.columns)
    chosen = [liver.columns.index(name) for name in RIGHT]
    stds, ratios = [], []
    for trial in range(trials):
        private, _ = liver.split(seed, trial)
        signal = private.T @ private
        if isinstance(mechanism, MvgData):
            draws = Draws.trials(seed, f"{mechanism.key} directions", [trial])
            moment = SecondMoment(signal / PRIVATE, PRIVATE)
            directions = mechanism.directions(moment, calibration, draws)
            basis = directions.basis(0, d)
            variances = mechanism.shape(calibration, directions.spectrum(0))[0]
            noise = (basis * variances) @ basis.T
        else:
            # Laplace noise of scale b has the variance 2 b^2.
            factor = 2.0 if mechanism.info.guarantee == "pure" else 1.0
            noise = factor * calibration.scale**2 * np.eye(d)
        stds.append(np.sqrt(np.diag(noise)[chosen]).mean())
        ratios.append(log_pnr(signal, noise))
    # If directions are not private, the noise is the same in every trial, so one value is enough.
    bought = calibration.problem.allocation.directions == "private"
    found = {STD: np.array(stds if bought else stds[:1]), PNR: np.array(ratios)}
    if calibration.problem.allocation.directions != "true":
        found[SPENT] = single(spent(calibration.parts, calibration.budget).epsilon)
    return found
