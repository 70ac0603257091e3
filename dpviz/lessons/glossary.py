"""A dozen terms, each with one sentence and one chart; numbers and charts are computed."""

from __future__ import annotations

import math
import re
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
from dpviz.core.params import format_number, params_of
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
    """Return the settings behind most numbers; look up the mechanism only when it is needed."""
    return Settings(table="digits", delta=DELTA, k=COMPONENTS, trials=20, mechanisms=(plain().key,))


def _iris() -> Settings:
    return Settings(table="iris", delta=DELTA, k=2, trials=20, mechanisms=(plain().key,))


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a chart.

    Attributes
    ----------
    kind : str
        Kind of mark: ``dots``, ``line`` or ``bars``.
    x, y : ndarray of shape (points,)
    tone : str
        Emphasis: ``main``, ``other`` or ``faint``.
    """

    kind: str
    x: FloatArray
    y: FloatArray
    tone: str = "main"


@dataclass(frozen=True)
class Term:
    """One glossary term.

    Attributes
    ----------
    key, word, sentence : str
        Name in links, name in texts, and definition; each ``{name}`` in a definition is computed.
    picture : callable
        Function that returns the layers of the term's chart.
    shows : str
        The content of the chart, in a phrase.
    numbers : mapping of str to callable
    also : tuple of str
        Other names of the term in texts, besides ``word``.
    space : bool
        Whether both axes show features, so that both need the same scale.
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
        """The definition with its numbers filled in."""
        names = {name for _, name, _, _ in string.Formatter().parse(self.sentence) if name}
        return self.sentence.format(**{name: self.numbers[name]() for name in names})


# Charts ----------------------------------------------------------------------------


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
    """Return the Frobenius norm of the change in nA when a unit row turns by an angle."""
    first, second = np.array([1.0, 0.0]), np.array([math.cos(turn), math.sin(turn)])
    return float(np.linalg.norm(np.outer(first, first) - np.outer(second, second)))


def _sensitivity() -> tuple[Layer, ...]:
    # Stop after 180 degrees, because the row then lies on its original line again.
    turns = np.linspace(0, math.pi, 90)
    shifts = np.array([worst(float(turn)) for turn in turns])
    top = np.full_like(turns, _largest())
    return Layer("line", turns, top, "faint"), Layer("line", turns, shifts)


def _largest() -> float:
    # Scale to nA, as `worst` does, and use the bound with which mechanisms calibrate noise.
    return frobenius(Problem(100, 2, 1, Relation.REPLACE, Domain.ball(2))) * 100


def _noise() -> tuple[Layer, ...]:
    epsilons = np.geomspace(0.1, 10, 60)
    # Use the exact standard deviation at every epsilon, as mechanisms do.
    stds = np.array([noise_std(Budget(float(epsilon), DELTA)) for epsilon in epsilons])
    return (Layer("line", np.log10(epsilons), np.log10(stds)),)


def _component() -> tuple[Layer, ...]:
    table = table_of(_iris())
    rows = table.moment_with_rows.rows
    assert rows is not None
    plane = rows[:, [0, 2]]
    _, vectors = np.linalg.eigh(plane.T @ plane)
    # Show the line in both directions, because a component has no sign.
    along = np.array([-1.0, 1.0]) * float(np.linalg.norm(plane, axis=1).max())
    return (
        Layer("dots", plane[:, 0], plane[:, 1], "faint"),
        Layer("line", along * vectors[0, -1], along * vectors[1, -1]),
    )


def _spectrum() -> tuple[Layer, ...]:
    values = table_of(_digits()).moment.eigenvalues[:15]
    return (Layer("bars", np.arange(1.0, 16.0), values),)


def _gap() -> tuple[Layer, ...]:
    (bars,) = _spectrum()
    ends = bars.y[COMPONENTS - 1 : COMPONENTS + 1]
    return bars, *(Layer("line", np.array([2.0, 3.0]), np.full(2, end), "other") for end in ends)


def _gap_share() -> float:
    moment = table_of(_digits()).moment
    return -float(np.diff(moment.eigenvalues)[COMPONENTS - 1]) / moment.total


def _digits_noise() -> FreeNoise:
    """Return the distribution of the exact Gaussian's noise on the digits table."""
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
    shares = [float(recovery(replace(_digits(), epsilon=e), plain().key).mean()) for e in epsilons]
    return (Layer("line", np.log10(epsilons), np.array(shares)),)


def _bounded() -> tuple[Layer, ...]:
    rng = generator(0, "guide", "glossary", "row bound")
    rows = rng.normal(size=(40, 2)) * 0.7
    lengths = np.linalg.norm(rows, axis=1)
    inside = lengths <= 1
    clipped_rows = rows[~inside] / lengths[~inside][:, None]
    turn = np.linspace(0, 2 * math.pi, 120)
    return (
        Layer("line", np.cos(turn), np.sin(turn), "faint"),
        Layer("dots", rows[inside, 0], rows[inside, 1]),
        Layer("dots", rows[~inside, 0], rows[~inside, 1], "faint"),
        Layer("dots", clipped_rows[:, 0], clipped_rows[:, 1], "other"),
    )


@cache
def composed(releases: int) -> Quantity:
    """Return how often an attacker who names both tables equally often is right after releases."""
    # Use the accounting of the ledgers instead of adding up the epsilons of all releases.
    parts = (PurePart(ONE, pure().key),) * releases
    return both_worlds(accounting.spent(parts, Budget(ONE)))


def _composition() -> tuple[Layer, ...]:
    counts = np.arange(1.0, _RELEASES + 1)
    return (Layer("bars", counts, np.array([composed(int(count)).value for count in counts])),)


def _worlds() -> tuple[Layer, ...]:
    epsilons = np.linspace(0, 6, 60)
    bounds = [worlds_at(float(e)) for e in epsilons]
    return (
        Layer("line", epsilons, np.array([one.value for one in bounds])),
        Layer("line", epsilons, np.array([one.rest.value for one in bounds]), "other"),
    )


_ONE_WORLD = worlds_at(ONE)


def _setting(name: str, sentences: int = 1) -> str:
    """Return the first sentences of a setting's help, so that tooltip and glossary agree."""
    help_text: str = params_of(Settings)[name].help
    return " ".join(re.split(r"(?<=\.) ", help_text)[:sentences])


TERMS: tuple[Term, ...] = (
    Term(
        "epsilon",
        "epsilon",
        _setting("epsilon") + " At epsilon {one} the odds change by a factor of at most {factor}.",
        _epsilon,
        "what is released with a person and without the person, under Laplace noise",
        {"one": lambda: format_number(ONE), "factor": lambda: numeral(math.exp(ONE))},
    ),
    Term(
        "delta",
        "delta",
        _setting("delta")
        + " With the same noise, a larger delta gives a smaller epsilon. At delta {delta} the odds "
        "grow by more than twice what epsilon allows in at most {twice} of releases.",
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
        _setting("relation", 3),
        _neighbours,
        "two neighbouring tables: the same people, and one person in two places",
        also=("neighbour", "neighbouring", "zero-out"),
        space=True,
    ),
    Term(
        "sensitivity",
        "sensitivity",
        "How far one person can move the computed result. Replacing a row of length one moves "
        "the sum of squares by at most {most}.",
        _sensitivity,
        "how far the result moves against the angle between the two rows, and the most",
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
        "The variances along the components, from largest to smallest. The first {k} components "
        "of digits hold {share} of all variance.",
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
        "eigengap",
        "eigengap",
        "The difference between two consecutive variances of the spectrum. Noise that is larger "
        "than the eigengap mixes the two components. For digits the gap after component {k} is "
        "{share} of all variance.",
        _gap,
        "the largest variances of digits, and the gap after the last released component",
        {"k": lambda: str(COMPONENTS), "share": lambda: percent(_gap_share())},
    ),
    Term(
        "noise-edge",
        "noise edge",
        "The largest variance that pure noise would show. Components below the threshold, "
        "{half} of the edge for Gaussian noise, are lost. At the edge, the squared overlap "
        "of a component with the true component is {found}.",
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
        "Share of the structure that is kept: none for a random subspace, all for the exact "
        "subspace. For digits at epsilon {one} it is {seen}.",
        _recovery,
        "recovery of digits against epsilon, on a logarithmic scale",
        {
            "one": lambda: format_number(ONE),
            "seen": lambda: percent(
                float(recovery(replace(_digits(), epsilon=ONE), plain().key).mean())
            ),
        },
        also=("recovers", "recovered", "recover"),
    ),
    Term(
        "row-bound",
        "clipping",
        "Rows longer than the row-norm bound are shortened to that bound, so no row weighs more.",
        _bounded,
        "rows inside the bound, and longer rows before and after clipping",
        also=("clipped", "row-norm bound", "row-norm bounds"),
        space=True,
    ),
    Term(
        "composition",
        "composition",
        "Every release of the same people adds to the risk: squares of mu and values of rho add "
        "up. After one release at epsilon {one} a guesser finds at most {first} of {hundred} "
        "people, after {count} releases at most {last}.",
        _composition,
        "share of people found against the number of releases",
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
        "Risk as two counts. At epsilon {one} a balanced guesser says “in” for at least {out} of "
        "{hundred} releases without the person. With the person: at most {within}.",
        _worlds,
        "shares with and without the person, against epsilon",
        {
            "one": lambda: format_number(ONE),
            "hundred": lambda: str(100),
            "out": lambda: _ONE_WORLD.rest.of_hundred(),
            "within": lambda: _ONE_WORLD.of_hundred(),
        },
    ),
)


def term(key: str) -> Term:
    """Return a term by its key, or the first term if the key is unknown."""
    return next((one for one in TERMS if one.key == key), TERMS[0])
