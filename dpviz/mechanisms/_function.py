"""A mechanism made from one function.

The function receives the rows, the budget, k and a generator, and returns one release. Without a
calibration its privacy loss is unknown, so its claim is "not proved"; an audit may refute it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting, WrongArgument
from dpviz.core.moments import SecondMoment
from dpviz.core.params import integer, number, params_of
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import _NEARLY, Mechanism, MechanismInfo

Calibrate = Callable[[Problem, Budget], Calibration]

_TOLD = ("rows", "epsilon", "delta", "k", "rng", "scale")
_NEEDED = _TOLD[:5]
_GUARANTEES = ("pure", "approximate", "none")
_RELEASES = ("subspace", "matrix")


@dataclass(frozen=True)
class FunctionMechanism(Mechanism):
    """Base of the classes that `mechanism` makes."""

    function: ClassVar[Callable[..., Any]]
    calibration: ClassVar[Calibrate | None] = None

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the author's calibration, or an empty calibration if there is none."""
        calibration = type(self).calibration
        if calibration is None:
            return Calibration(problem, budget, 0.0)
        return calibration(problem, budget)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Call the function once for each repetition, each with its own generator."""
        assert data.rows is not None, "`why_not` asks for rows"
        budget, k = calibration.budget, calibration.problem.k
        scale = {"scale": calibration.scale} if "scale" in _named(type(self).function) else {}
        options = {name: getattr(self, name) for name in params_of(type(self))} | scale
        rows = data.rows.view()
        rows.setflags(write=False)
        shape = (data.d, data.d if self.info.release == "matrix" else k)
        arrays = [
            self._array(
                type(self).function(
                    rows, budget.epsilon, budget.delta, k, single.generators[0], **options
                ),
                shape,
            )
            for single in draws.single()
        ]
        checked = self._checked(np.stack(arrays))
        if self.info.release == "matrix":
            return Release.of_matrices(checked, k)
        return Release.of_frames(checked)

    def _array(self, given: Any, shape: tuple[int, int]) -> FloatArray:
        """Return one release as an array, or raise `CannotRun` with the fault."""
        if np.iscomplexobj(given):  # NumPy would silently drop the imaginary parts.
            raise CannotRun(self.text, "it must return real numbers; got complex numbers")
        try:
            array = np.array(given, dtype=np.float64)  # Copy it: the function may reuse its array.
        except (TypeError, ValueError):
            raise CannotRun(
                self.text, f"it must return an array of numbers; got {type(given).__name__}"
            ) from None
        if array.shape != shape:
            raise CannotRun(
                self.text, f"it must return an array of shape {shape}; got {array.shape}"
            )
        return array

    def _checked(self, found: FloatArray) -> FloatArray:
        """Return the releases, exactly symmetric or orthonormal, or raise `CannotRun`."""
        if not np.isfinite(found).all():
            raise CannotRun(self.text, "it must return finite numbers; some are not finite")
        across = found.transpose(0, 2, 1)
        if self.info.release == "matrix":
            size = np.abs(found).max(axis=(1, 2))
            if (np.abs(found - across).max(axis=(1, 2)) > _NEARLY * size).any():
                raise CannotRun(self.text, "it must return a symmetric matrix; its matrix is not")
            return (found + across) / 2
        if np.abs(across @ found - np.eye(found.shape[2])).max() > _NEARLY:
            raise CannotRun(self.text, "it must return orthonormal columns; its columns are not")
        # QR removes only rounding errors of the frame. The released subspace stays the same.
        frames, upper = np.linalg.qr(found)
        turned = np.diagonal(upper, axis1=1, axis2=2) < 0
        signed: FloatArray = frames * np.where(turned, -1.0, 1.0)[:, None, :]
        return signed

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return one sentence on the claim."""
        if self.info.guarantee == "none":
            return "It makes no claim."
        if spent is None:
            return "No calibration was given, so its privacy loss is unknown."
        return "The account follows from its calibration."


_F = TypeVar("_F", bound=Callable[..., Any])


def mechanism(
    *bare: Callable[..., Any],
    claim: str = "",
    release: str = "subspace",
    label: str | None = None,
    calibrate: Calibrate | None = None,
    **facts: Any,
) -> Callable[[Callable[..., Any]], type[FunctionMechanism]]:
    """Register a function ``f(rows, epsilon, delta, k, rng)`` for one release as a mechanism.

    The result is a mechanism class: pass it to `dpviz.compare`, `dpviz.sweep`, `dpviz.least`,
    `dpviz.board` and `dpviz.audit`, alone or with keys of mechanisms.

    Parameters
    ----------
    *bare : callable
        Must be empty, because a decorator without arguments states no claim.
    claim : {"pure", "approximate", "none"}
        The claim: (epsilon, 0), (epsilon, delta), or nothing.
    release : {"subspace", "matrix"}
        The function returns k orthonormal columns, shape (d, k), or a symmetric estimate of A =
        X'X/n, shape (d, d).
    label : str, optional
        Name on pages, by default the function's name.
    calibrate : callable, optional
        ``calibrate(problem, budget)`` returns a `dpviz.extend.Calibration`: the noise that meets
        the claim, from shapes and budget alone. Its parts state the privacy loss. A function with a
        keyword ``scale`` receives its scale. Without a calibration the claim is "not proved".
    **facts
        Further attributes of `dpviz.extend.MechanismInfo`, such as ``paper`` and ``url``.

    Returns
    -------
    callable
        Decorator. Keywords of the function that have a number as default are parameters of the
        mechanism, written ``name[keyword=value]``.

    Raises
    ------
    WrongArgument
        If the function takes other arguments, or was passed in place of the claim.
    InvalidSetting
        If the claim or the release is not one of the listed values.

    See Also
    --------
    check : Runs the contract suite over it.
    audit : Bounds what it really costs, by attack.
    metric : Makes a metric of a function.

    Notes
    -----
    ``rows`` are the prepared rows, shape (n, d), at most 1 long (on a box, between -1 and 1) and
    read-only. ``rng`` is one repetition's own `numpy.random.Generator`. All randomness has to come
    from it: the same seed then gives the same bytes with any number of workers.

    Examples
    --------
    >>> import dpviz, numpy as np
    >>> @dpviz.mechanism(claim="pure", release="subspace")
    ... def by_chance(rows, epsilon, delta, k, rng):
    ...     return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]
    >>> found = dpviz.compare("iris", k=2, trials=5, mechanisms=[by_chance, "gaussian"])
    >>> found.table()["status"].tolist()
    ['unproven', 'holds']
    """
    if bare:
        raise WrongArgument('mechanism must state a claim, as in @dpviz.mechanism(claim="pure").')
    if claim not in _GUARANTEES:
        raise InvalidSetting("claim", f"one of {', '.join(_GUARANTEES)}", claim)
    if release not in _RELEASES:
        raise InvalidSetting("release", f"one of {', '.join(_RELEASES)}", release)

    def made(function: Callable[..., Any]) -> type[FunctionMechanism]:
        parameters = _parameters(function)
        name = function.__name__
        info = MechanismInfo(
            **{
                "label": label or name.replace("_", " ").capitalize(),
                "release": release,
                "guarantee": claim,
                "summary": _first_line(function, name),
                "needs_rows": True,
                "redraws": True,
                **facts,
            }
        )
        namespace = {
            "__module__": function.__module__ or "__main__",
            "__qualname__": function.__qualname__,
            "__doc__": function.__doc__ or info.summary,
            "__annotations__": {key: type(value.default) for key, value in parameters.items()},
            "info": info,
            "function": staticmethod(function),
            "calibration": None if calibrate is None else staticmethod(calibrate),
            **parameters,
        }
        return dataclass(frozen=True)(type(name, (FunctionMechanism,), namespace))

    return made


def black_box(function: Callable[..., Any], delta: float, d: int, k: int) -> FunctionMechanism:
    """Return a mechanism from a function of rows, epsilon, delta, k and a generator, in this order.

    Parameters
    ----------
    function : callable
    delta : float
        The claimed delta; 0 means a pure claim.
    d, k : int
        Size of a table for one test call of the function, which shows the form of its release.
    """
    name = str(getattr(function, "__name__", type(function).__name__))
    probe = np.shape(
        function(np.eye(d)[np.arange(2 * d) % d] / 2, 1.0, delta, k, np.random.default_rng(0))
    )

    def called(rows: Any, epsilon: float, delta: float, k: int, rng: np.random.Generator) -> Any:
        return function(rows, epsilon, delta, k, rng)

    called.__name__ = called.__qualname__ = name if name.isidentifier() else "function"
    called.__module__ = str(getattr(function, "__module__", "__main__"))
    release = "matrix" if probe == (d, d) else "subspace"
    return mechanism(claim="approximate" if delta else "pure", release=release)(called)()


def _named(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the mechanism parameters that a function's keyword arguments declare."""
    named = _named(function)
    first = tuple(named)[: len(_NEEDED)]
    if first != _NEEDED:
        raise WrongArgument(
            f"{function.__name__} must take {', '.join(_NEEDED)} first; it takes "
            f"{', '.join(named) or 'nothing'}."
        )
    parameters: dict[str, Any] = {}
    for name, one in named.items():
        if name in _TOLD:
            continue
        words = {"label": name.replace("_", " "), "help": f"The keyword {name} of its function."}
        if isinstance(one.default, int) and not isinstance(one.default, bool):
            parameters[name] = integer(one.default, -(2**53), 2**53, **words)
        elif isinstance(one.default, float):
            parameters[name] = number(one.default, -1e300, 1e300, **words)
        else:
            raise WrongArgument(
                f"further keywords of {function.__name__} need a number as default; "
                f"{name} has no such default."
            )
    return parameters


def _first_line(function: Callable[..., Any], name: str) -> str:
    words = (inspect.getdoc(function) or f"The function {name} of its author").strip()
    return words.splitlines()[0].rstrip(".") + "."
