"""Chanyaswad et al. 2018, Figure 4: the effect of the choice of directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dpviz.core.allocation import UNIFORM
from dpviz.core.arrays import FloatArray
from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg import _ctg, _liver, _shared
from dpviz.papers.mvg._shared import CLAIMED, EXACT, TAUS, Row, favouring, single

EQUAL, HINDSIGHT = "equal shares", "(hindsight) the 6 of largest variance"
DIRECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    _liver.DATA: {
        "(a) ALT, Y": _liver.RIGHT,
        "(b) ALT": ("sgpt",),
        "(c) Y": (_liver.TEACHER,),
        "(d) ALT, AST, Y": ("sgpt", "sgot", _liver.TEACHER),
        EQUAL: (),
    },
    _shared.DATA: {
        "(a) ANC0, ANC3": _shared.RIGHT,
        "(b) ANC0": ("ANC0",),
        "(c) ANC3": ("ANC3",),
        "(d) ANC1, ANC2": ("ANC1", "ANC2"),
        EQUAL: (),
    },
    # The features of panel (b), and those chosen in hindsight, are computed from the table.
    _ctg.DATA: {
        "(a) FHR, ASV, ALV": _ctg.RIGHT,
        "(b) the other 18": (),
        EQUAL: (),
        HINDSIGHT: (),
    },
}
EPSILONS = {
    _liver.DATA: (0.1, 0.3, 1.0, 3.0, 10.0),
    _shared.DATA: (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
    _ctg.DATA: (0.1, 0.3, 1.0, 3.0, 10.0),
}
PUBLISHED, BY_EXACT, COVARIANCE, SCALED, SCALED_EXACT = (
    "as published",
    "exact account",
    "exact account, on the covariance",
    "as published, learner on scaled values",
    "exact account, learner on scaled values",
)
PANELS = {
    _liver.DATA: (PUBLISHED, BY_EXACT, SCALED, SCALED_EXACT),
    _shared.DATA: (PUBLISHED, BY_EXACT),
    _ctg.DATA: (PUBLISHED, BY_EXACT, COVARIANCE),
}
NAMES = {_liver.DATA: "Liver", _shared.DATA: "MovementAAL", _ctg.DATA: "CTG"}
QUANTITIES = {_liver.DATA: _liver.RMSE, _shared.DATA: _shared.LOSS, _ctg.DATA: _ctg.RSS}
BEST, NONE = "best tau", 0.0
"""`NONE` means no tau: all directions have equal shares."""

_DIRECTIONAL, _MVG = parse_variant("directional_gaussian"), parse_variant("mvg")


class DirectionPart(Part):
    """One choice of directions and accounting, at one epsilon or, if epsilon is 0, at all of them.

    Attributes
    ----------
    account : str
        Panel, one of `PANELS`.
    direction : str
    epsilon : float
    taus : tuple of float
    draws : int
    """

    account: str = ""
    direction: str = ""
    epsilon: float = 0.0
    taus: tuple[float, ...] = TAUS
    draws: int = 0


class MvgFigure4(Experiment):
    """Three losses against epsilon, by the choice of directions; see `info`."""

    pictures: ClassVar = {data: (QUANTITIES[data], *names) for data, names in DIRECTIONS.items()}

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts of the experiment by directions and accounting; for Liver by epsilon too."""
        quick = effort is Effort.QUICK
        found: list[Part] = []
        for data, names in DIRECTIONS.items():
            for account in PANELS[data]:
                for direction in names:
                    taus = (NONE,) if direction == EQUAL else (0.55, 0.95) if quick else TAUS
                    draws = {_shared.DATA: 200, _ctg.DATA: 20}.get(data, 10)
                    if not quick:  # The paper uses 100 simulations.
                        draws = 2_000 if data == _shared.DATA else 100
                        draws = 1_000 if (data, account) == (_ctg.DATA, PUBLISHED) else draws
                    each: tuple[float, ...] = (0.0,)
                    if account in (SCALED, SCALED_EXACT):
                        each = (1.0,) if quick else EPSILONS[data]
                    elif data == _liver.DATA:
                        each = (1.0, 10.0) if quick else EPSILONS[data]
                    found += [
                        DirectionPart(data, account, direction, epsilon, taus, draws)
                        for epsilon in each
                    ]
        return found

    def shared(self, data: str) -> Any:
        """Return the rows or moments of one data set."""
        if data == _liver.DATA:
            return _liver.Liver.load()
        return _shared.Movement.load() if data == _shared.DATA else _ctg.Ctg.load()

    def run(self, part: DirectionPart, shared: Any, seed: int) -> Measurements:
        """Return the loss at the best tau, and the best tau, at each epsilon."""
        found = {}
        panel, quantity = panel_of(part.data, part.account), QUANTITIES[part.data]
        for epsilon in (part.epsilon,) if part.epsilon else EPSILONS[part.data]:
            losses = {
                tau: _LOSSES[part.data](shared, part, epsilon, tau, seed) for tau in part.taus
            }
            best = min(losses, key=lambda tau: float(losses[tau].mean()))
            found[Point(panel, part.direction, quantity, epsilon)] = losses[best]
            found[Point(panel, part.direction, BEST, epsilon)] = single(best)
        return Measurements(found)


def panel_of(data: str, account: str) -> str:
    """Return the name of the panel for a choice of accounting."""
    return f"{NAMES[data]}, {account}"


# --- losses -----------------------------------------------------------------------------------


def _liver_loss(
    liver: _liver.Liver, part: DirectionPart, epsilon: float, tau: float, seed: int
) -> FloatArray:
    features = DIRECTIONS[part.data][part.direction]
    account = CLAIMED if part.account in (PUBLISHED, SCALED) else EXACT
    learner = _liver.GIVEN if part.account in (PUBLISHED, BY_EXACT) else _liver.FIXED
    row = Row(part.direction, _liver.MVG, account)
    quantity = _liver.RMSE if learner == _liver.GIVEN else _liver.SCALED_RMSE
    return _liver.measured_row(
        liver,
        row,
        tau if features else None,
        seed,
        part.draws,
        learner=learner,
        features=features,
        epsilon=epsilon,
    )[quantity]


def _movement_loss(
    movement: _shared.Movement, part: DirectionPart, epsilon: float, tau: float, seed: int
) -> FloatArray:
    features = DIRECTIONS[part.data][part.direction]
    allocation = favouring(_shared.COLUMNS, features, tau) if features else UNIFORM
    mechanism = _MVG if part.account == PUBLISHED else _DIRECTIONAL
    outcome = movement.outcome(mechanism, epsilon, part.draws, seed, allocation)
    return movement.loss(outcome.release.components[:, :, 0])


def _ctg_loss(
    ctg: _ctg.Ctg, part: DirectionPart, epsilon: float, tau: float, seed: int
) -> FloatArray:
    features = {
        "(b) the other 18": tuple(name for name in ctg.columns if name not in _ctg.RIGHT),
        HINDSIGHT: ctg.favoured(),
    }.get(part.direction, DIRECTIONS[part.data][part.direction])
    allocation = favouring(ctg.columns, features, tau) if features else UNIFORM
    if part.account == COVARIANCE:
        release = ctg.release_of_covariance(_DIRECTIONAL, epsilon, part.draws, seed, allocation)
    else:
        account = CLAIMED if part.account == PUBLISHED else EXACT
        release, _ = ctg.release(
            _liver.MVG, _ctg.CENTRED, epsilon, part.draws, seed, allocation, account
        )
    return ctg.loss(release.components, _ctg.CENTRED)


_LOSSES: Mapping[str, Callable[[Any, DirectionPart, float, float, int], FloatArray]] = {
    _liver.DATA: _liver_loss,
    _shared.DATA: _movement_loss,
    _ctg.DATA: _ctg_loss,
}
