"""A dozen terms: one sentence and one picture each, both computed."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from dpviz.accounting import accounting
from dpviz.accounting.gaussian import delta_of, noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.auditing.attack import both_worlds, worlds_at
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral, percent
from dpviz.core.params import format_number
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.quantity import Quantity
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.lessons.cast import in_the_disk, plain, pure
from dpviz.lessons.measures import recovery, table_of
from dpviz.sampling.limits import FreeNoise

ONE = 1.0
DELTA = 1e-6
COMPONENTS = Settings().k
_RELEASES = 4


def _digits() -> Settings:
    """Return the setting of most numbers; its mechanism is found when the first is asked for."""
    return Settings(table="digits", delta=DELTA, k=COMPONENTS, trials=20, mechanisms=(plain().key,))


def _iris() -> Settings:
    return Settings(table="iris", delta=DELTA, k=2, trials=20, mechanisms=(plain().key,))


@dataclass(frozen=True, eq=False)
class Layer:
    """One thing drawn in a picture.

    Attributes
    ----------
    kind : str
        ``dots``, ``line`` or ``bars``.
    x, y : ndarray of shape (points,)
    tone : str
        ``main``, ``other`` or ``faint``.
    """

    kind: str
    x: FloatArray
    y: FloatArray
    tone: str = "main"


@dataclass(frozen=True)
class Term:
    """One term.

    Attributes
    ----------
    key, word, sentence : str
        What a link names it, what it is called, and what it means; ``{name}`` is computed.
    picture : callable
        To the layers of its picture.
    shows : str
        What the picture shows, in a phrase.
    numbers : mapping of str to callable
    also : tuple of str
        What texts call it besides ``word``.
    space : bool
        Whether both axes of the picture are features: a unit is then as long across as up.
    """

    key: str
    word: str
    sentence: str
    picture: Callable[[], tuple[Layer, ...]]
    shows: str
    numbers: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    space: bool = False

    @cached_property
    def said(self) -> str:
        """The sentence with its numbers."""
        names = {name for _, name, _, _ in string.Formatter().parse(self.sentence) if name}
        return self.sentence.format(**{name: self.numbers[name]() for name in names})


# Pictures --------------------------------------------------------------------------


def _epsilon() -> tuple[Layer, ...]:
    x = np.linspace(-5, 6, 240)
    tones = ((0.0, "other"), (1.0, "main"))
    return tuple(Layer("line", x, np.exp(-np.abs(x - at) * ONE) / 2, tone) for at, tone in tones)


def _profile() -> tuple[Layer, ...]:
    mu = 1 / noise_std(Budget(ONE, DELTA))
    x = np.linspace(0.2, 1.4, 60)
    y = np.log10([delta_of(float(epsilon), mu) for epsilon in x])
    return (
        Layer("line", x, y),
        Layer("dots", np.array([ONE]), np.array([math.log10(delta_of(ONE, mu))]), "other"),
    )


def _neighbours() -> tuple[Layer, ...]:
    *rows, (x, y) = in_the_disk()
    across, up = np.transpose(rows)
    return (
        Layer("dots", across, up, "faint"),
        Layer("dots", np.array([x]), np.array([y])),
        Layer("dots", np.array([-0.3]), np.array([-0.8]), "other"),
    )


def worst(turn: float) -> float:
    """Return how far nA moves when a unit row is replaced by one turned by an angle."""
    first, second = np.array([1.0, 0.0]), np.array([math.cos(turn), math.sin(turn)])
    return float(np.linalg.norm(np.outer(first, first) - np.outer(second, second)))


def _sensitivity() -> tuple[Layer, ...]:
    # a half turn: beyond it a row comes round to its own direction
    turns = np.linspace(0, math.pi, 90)
    moved = np.array([worst(float(turn)) for turn in turns])
    top = np.full_like(turns, _largest())
    return Layer("line", turns, top, "faint"), Layer("line", turns, moved)


def _largest() -> float:
    # of nA, as `worst` is: the bound that mechanisms calibrate by and not one of its own
    return frobenius(Problem(100, 2, 1, Relation.REPLACE, Domain.ball(2))) * 100


def _noise() -> tuple[Layer, ...]:
    epsilons = np.geomspace(0.1, 10, 60)
    # exact at every epsilon, as mechanisms calibrate it
    stds = np.array([noise_std(Budget(float(epsilon), DELTA)) for epsilon in epsilons])
    return (Layer("line", np.log10(epsilons), np.log10(stds)),)


def _component() -> tuple[Layer, ...]:
    table = table_of(_iris())
    rows = table.moment_with_rows.rows
    assert rows is not None
    shown = rows[:, [0, 2]]
    _, vectors = np.linalg.eigh(shown.T @ shown)
    # both ways, as a component has no sign
    along = np.array([-1.0, 1.0]) * float(np.linalg.norm(shown, axis=1).max())
    return (
        Layer("dots", shown[:, 0], shown[:, 1], "faint"),
        Layer("line", along * vectors[0, -1], along * vectors[1, -1]),
    )


def _spectrum() -> tuple[Layer, ...]:
    values = table_of(_digits()).moment.eigenvalues[:15]
    return (Layer("bars", np.arange(1.0, 16.0), values),)


def _digits_noise() -> FreeNoise:
    """Return the law of the exact Gaussian's noise on digits."""
    table = table_of(_digits())
    calibration = plain().calibrate(table.problem(_digits()), table.budget(_digits()))
    noise = plain().free_noise(calibration)
    assert noise is not None
    return noise


def _edge() -> tuple[Layer, ...]:
    place, noise = np.arange(1.0, 16.0), _digits_noise()
    return (
        Layer("bars", place, table_of(_digits()).moment.eigenvalues[:15]),
        Layer("line", place, np.full(15, noise.edges[1]), "other"),
        Layer("line", place, np.full(15, noise.visible_above), "faint"),
    )


def _recovery() -> tuple[Layer, ...]:
    epsilons = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
    seen = [float(recovery(replace(_digits(), epsilon=e), plain().key).mean()) for e in epsilons]
    return (Layer("line", np.log10(epsilons), np.array(seen)),)


def _bounded() -> tuple[Layer, ...]:
    rng = generator(0, "guide", "glossary", "row bound")
    rows = rng.normal(size=(40, 2)) * 0.7
    lengths = np.linalg.norm(rows, axis=1)
    inside = lengths <= 1
    shortened = rows[~inside] / lengths[~inside][:, None]
    turn = np.linspace(0, 2 * math.pi, 120)
    return (
        Layer("line", np.cos(turn), np.sin(turn), "faint"),
        Layer("dots", rows[inside, 0], rows[inside, 1]),
        Layer("dots", rows[~inside, 0], rows[~inside, 1], "faint"),
        Layer("dots", shortened[:, 0], shortened[:, 1], "other"),
    )


@cache
def composed(releases: int) -> Quantity:
    """Return how often a balanced guesser finds somebody after so many pure releases."""
    # composed by the account that ledgers use, and not by adding up
    parts = (PurePart(ONE, pure().key),) * releases
    return both_worlds(accounting.spent(parts, Budget(ONE)))


def _composition() -> tuple[Layer, ...]:
    counts = np.arange(1.0, _RELEASES + 1)
    return (Layer("bars", counts, np.array([composed(int(count)).value for count in counts])),)


def _worlds() -> tuple[Layer, ...]:
    epsilons = np.linspace(0, 6, 60)
    seen = [worlds_at(float(e)) for e in epsilons]
    return (
        Layer("line", epsilons, np.array([one.value for one in seen])),
        Layer("line", epsilons, np.array([one.rest.value for one in seen]), "other"),
    )


_ONE_WORLD = worlds_at(ONE)

TERMS: tuple[Term, ...] = (
    Term(
        "epsilon",
        "epsilon",
        "Epsilon limits how much one person's row can change the odds of any guess. At "
        "epsilon {one} the odds change by a factor of at most {factor}.",
        _epsilon,
        "what is released with a person and without, under Laplace noise",
        {"one": lambda: format_number(ONE), "factor": lambda: numeral(math.exp(ONE))},
    ),
    Term(
        "delta",
        "delta",
        "Extra probability allowed beyond epsilon. With the same noise, a larger delta gives "
        "a smaller epsilon. At delta {delta} odds pass twice the factor of epsilon in at most "
        "{twice} of releases.",
        _profile,
        "delta, on a logarithmic scale, against epsilon, for one amount of Gaussian noise",
        {
            "delta": lambda: numeral(DELTA, 1),
            "twice": lambda: numeral(2 * DELTA, 1),
        },
    ),
    Term(
        "neighbours",
        "neighbours",
        "Two tables that differ in one person's row: replaced by any other row, or set to zero "
        "(zero-out).",
        _neighbours,
        "the same people, and one of them in two places",
        also=("neighbour", "neighbouring", "zero-out"),
        space=True,
    ),
    Term(
        "sensitivity",
        "sensitivity",
        "How far one person can move the computed result. Replacing a row of length one moves "
        "the sum of squares by at most {most}.",
        _sensitivity,
        "how far it moves against the angle between the two rows, and the most",
        {"most": lambda: numeral(_largest(), 3)},
    ),
    Term(
        "noise",
        "noise",
        "Random numbers that a mechanism adds to hide one person. At delta {delta} and "
        "epsilon {one}, Gaussian noise has a standard deviation of {std} times the "
        "sensitivity.",
        _noise,
        "standard deviation against epsilon, both on logarithmic scales",
        {
            "delta": lambda: numeral(DELTA, 1),
            "one": lambda: format_number(ONE),
            "std": lambda: numeral(noise_std(Budget(ONE, DELTA))),
        },
    ),
    Term(
        "component",
        "principal component",
        "The direction along which the rows vary most. The next component varies most among "
        "the directions at right angles to it.",
        _component,
        "two features of iris, and the direction of largest variance",
        also=("component", "components", "principal components"),
        space=True,
    ),
    Term(
        "eigenspectrum",
        "eigenspectrum",
        "The variances along the components, from the largest down: the first {k} of digits hold "
        "{share} of all.",
        _spectrum,
        "the largest variances of digits",
        {
            "k": lambda: str(COMPONENTS),
            "share": lambda: percent(
                float(table_of(_digits()).moment.eigenvalues[:COMPONENTS].sum())
                / table_of(_digits()).moment.total
            ),
        },
        also=("spectrum",),
    ),
    Term(
        "noise-edge",
        "noise edge",
        "The largest variance that pure noise would show. Components below the threshold, "
        "{half} of the edge for Gaussian noise, are lost. At the edge a component overlaps "
        "the true one by {found} (squared).",
        _edge,
        "variances of digits, the noise edge at epsilon one and, below it, the threshold",
        {
            "half": lambda: percent(_digits_noise().visible_above / _digits_noise().edges[1]),
            "found": lambda: percent(float(_digits_noise().lone_overlap(_digits_noise().edges[1]))),
        },
    ),
    Term(
        "recovery",
        "recovery",
        "Share of the structure that is kept: zero for a random subspace and {whole} for the "
        "exact one. For digits at epsilon {one} it is {seen}.",
        _recovery,
        "recovery of digits against epsilon, on a logarithmic scale",
        {
            "whole": lambda: percent(1.0),
            "one": lambda: format_number(ONE),
            "seen": lambda: percent(
                float(recovery(replace(_digits(), epsilon=ONE), plain().key).mean())
            ),
        },
        also=("recovers", "recovered", "recover"),
    ),
    Term(
        "row-bound",
        "row bound",
        "The largest length that a row may have. Longer rows are clipped to it, so that no "
        "person weighs more.",
        _bounded,
        "rows inside the bound, and longer ones before and after",
        also=("row bounds",),
        space=True,
    ),
    Term(
        "composition",
        "composition",
        "Every release of the same people adds to the risk: squares of mu add up, and so does "
        "rho. After one release at epsilon {one} a guesser finds at most {first} of {hundred} "
        "people, after {count} releases at most {last}.",
        _composition,
        "share found against the number of releases",
        {
            "one": lambda: format_number(ONE),
            "hundred": lambda: str(100),
            "first": lambda: composed(1).of_hundred(),
            "count": lambda: str(_RELEASES),
            "last": lambda: composed(_RELEASES).of_hundred(1),
        },
        also=("mu", "rho"),
    ),
    Term(
        "both-worlds",
        "both worlds",
        "Risk as two counts. At epsilon {one} a balanced guesser says “in” for at least {out} "
        "of {hundred} releases without the person. With the person it is at most {within}.",
        _worlds,
        "both shares against epsilon",
        {
            "one": lambda: format_number(ONE),
            "hundred": lambda: str(100),
            "out": lambda: _ONE_WORLD.rest.of_hundred(),
            "within": lambda: _ONE_WORLD.of_hundred(),
        },
    ),
)


def term(key: str) -> Term:
    """Return a term by its key, the first where there is none."""
    return next((one for one in TERMS if one.key == key), TERMS[0])
