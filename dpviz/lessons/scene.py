"""What the stage is fed with: one JSON payload a step, from the core's results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.auditing.attack import posterior_bound
from dpviz.auditing.exhibits import leak
from dpviz.core.number_text import PER_CENT, numeral, percent, thousands
from dpviz.datasets.builtin.school import PUPILS
from dpviz.lessons.cast import cloud
from dpviz.lessons.languages import names, own_words, words
from dpviz.lessons.lesson import INVENTED, NEAR, Lesson, ShownQuestion, State
from dpviz.lessons.measures import (
    DRAWS,
    above_lone_threshold,
    people_needed,
    recovery,
    sorted_apart,
    sorting_line,
    table_of,
    typical,
)
from dpviz.lessons.measures import (
    found as components_found,
)
from dpviz.lessons.person import EPSILONS, person_payload
from dpviz.lessons.quantities import Fact
from dpviz.mechanisms import parse_variant
from dpviz.report.figures.board import shown
from dpviz.report.sentences.phrases import belief
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import FRAME_METRICS
from dpviz.report.tables.payload import BoardColumn
from dpviz.simulation.compare import along, pictured

_FRAMES = 25
_DELTA = 1e-5
"""Of the mechanisms in one person's picture that need a delta, where a lesson says none."""


def stage(
    lesson: Lesson, step: int, course: Sequence[Lesson], scene: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the stage shows of a step, from 0, whatever was bet.

    Parameters
    ----------
    lesson : Lesson
    step : int
    course : sequence of Lesson
        All of them, for the way on and back.
    scene : mapping
        What `scene` returns for the step.
    """
    at, own = lesson.steps[step], own_words(lesson.language)
    return {
        "id": f"{lesson.number}.{step + 1}",
        "language": lesson.language,
        "languages": names(),
        "says": words(lesson.language),
        "lesson": lesson.number,
        "step": step + 1,
        "steps": len(lesson.steps),
        "course": [{"title": one.title, "experts": one.experts} for one in course],
        "say": lesson.filled(at.say),
        "near": NEAR,
        "why": lesson.filled(at.why),
        "moved": lesson.filled(at.moved),
        "stops": _stops(lesson, step),
        "hidesEpsilon": at.scene in INVENTED,
        "hundred": [_of_hundred(lesson.numbers[name].fact) for name in at.hundred],
        "ringed": [
            _of_hundred(lesson.numbers[name].fact) | {"name": own.get(name, name)}
            for name in at.ringed
        ],
        "scene": {**scene, "texts": list(map(lesson.written, scene.get("texts", ())))},
        "leaves": own[lesson.page(step)],
        "words": own,
        **_asked(lesson.question_at(step)),
        **_ways(lesson, step, course),
    }


def _asked(asked: ShownQuestion | None) -> dict[str, Any]:
    """Return what a step asks; a step that asks nothing has an empty question."""
    if asked is None:
        return {
            "ask": "", "options": [], "then": [], "right": None, "rightText": "",
            "asksAxis": False, "axis": None,
        }  # fmt: skip
    return {
        "ask": asked.ask,
        "options": list(asked.options),
        "then": list(asked.then),
        "right": asked.right,
        "rightText": asked.right_text,
        "asksAxis": asked.axis is not None,
        "axis": None if asked.axis is None else _axis(asked.axis),
    }


def _stops(lesson: Lesson, step: int) -> list[dict[str, Any]]:
    """Return the stops of a step's moves: epsilon, or before, after and more where it stays."""
    epsilons = [state.settings.epsilon for state in _states(lesson, step)]
    own = own_words(lesson.language)
    # an epsilon that comes twice would not tell its stops apart: those are named by their order
    texts = [
        f"ε {numeral(epsilon)}" if epsilons.count(epsilon) == 1 and len(epsilons) > 1 else own[word]
        for epsilon, word in zip(epsilons, ("opened", "moved", "farther"), strict=False)
    ]
    return [
        {"epsilon": epsilon, "text": text} for epsilon, text in zip(epsilons, texts, strict=True)
    ]


def _ways(lesson: Lesson, step: int, course: Sequence[Lesson]) -> dict[str, Any]:
    """Return the steps before and after, through the course, and what the way on is called."""
    own = own_words(lesson.language)
    before, after = [lesson.number, step], [lesson.number, step + 2]
    # back from a first step is the last of the lesson before
    if step == 0:
        before = [lesson.number - 1, len(course[lesson.number - 2].steps)]
    name = own["next"]
    if step + 1 == len(lesson.steps):
        after = [lesson.number + 1, 1]
        if lesson.number < len(course):
            name = f"{own['lesson']}: {course[lesson.number].title}"
    # the last lesson leads nowhere
    there = after[0] <= len(course)
    return {
        "before": before if before[0] else None,
        "after": after if there else None,
        "next": name if there else "",
    }


def tally(lesson: Lesson, step: int, course: Sequence[Lesson], bets: Mapping[str, float]) -> Any:
    """Return how many bets were right before this step's own, where a lesson ends; else None."""
    if step + 1 < len(lesson.steps):
        return None
    others = [
        (asked, bets[name])
        for one in course
        # steps that ask nothing have no bet and fall out below
        for place in range(len(one.steps))
        if (name := f"{one.number}.{place + 1}") in bets
        and (one.number, place) != (lesson.number, step)
        and (asked := one.question_at(place)) is not None
    ]
    ends = lesson.number == len(course)
    own = own_words(lesson.language)
    return {
        "right": sum(asked.won(bet) for asked, bet in others),
        "asked": len(others),
        "before": own["before"],
        "of": own["of"],
        "read": own["read"] if ends else "",
    }


def _of_hundred(fact: Fact) -> dict[str, Any]:
    """Return a share, or a count of 100, as how many dots are filled and what is written."""
    # a share is written in per cent; a count of 100 is written as it is
    count = 100 * fact.value if fact.text.endswith(PER_CENT) else fact.value
    return {"count": round(count), "text": fact.text.removesuffix(PER_CENT)}


def _axis(ends: tuple[float, float]) -> dict[str, Any]:
    low, high = ends
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 3)]
    # powers of ten are rounded: a tick at an end stays on its axis
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return {
        "low": low,
        "high": high,
        "ticks": [{"value": tick, "text": numeral(tick)} for tick in inside],
    }


def _states(lesson: Lesson, step: int) -> list[State]:
    return [lesson.state(step, made) for made in range(len(lesson.moves(step)) + 1)]


def scene(lesson: Lesson, step: int) -> dict[str, Any]:
    """Return what a step's picture is drawn from, at every stop of its moves."""
    states = _states(lesson, step)
    return {"kind": lesson.steps[step].scene} | _SCENES[lesson.steps[step].scene](states)


def board_epsilons(states: Sequence[State]) -> list[float]:
    """Return the epsilons that a board is drawn at, ascending: its stops and what lies between."""
    stops = [state.settings.epsilon for state in states]
    if len(set(stops)) == 1:
        return stops[:1]
    # what lies between is passed through; a stop is to the digit what its step says
    between = np.geomspace(min(stops), max(stops), _FRAMES)[1:-1]
    return sorted({*(float(f"{epsilon:.3g}") for epsilon in between), *stops})


def _boards(states: Sequence[State]) -> dict[str, Any]:
    groups: list[list[State]] = []
    stops = []
    for state in states:
        # stops that differ in epsilon alone are one board that is scrubbed; any other is another
        same = groups and _at_one(groups[-1][0]) == _at_one(state)
        if not same:
            groups.append([])
        groups[-1].append(state)
        stops.append({"board": len(groups) - 1, "epsilon": state.settings.epsilon})
    boards = [
        board_scene(
            group[0], board_epsilons(group),
            shown([parse_variant(text) for text in group[0].settings.variants]),
            redraw=bool(group[0].view.get("play_draws")),
        )
        for group in groups
    ]  # fmt: skip
    return {"boards": boards, "stops": stops}


def _at_one(state: State) -> State:
    return State(replace(state.settings, epsilon=1.0), state.view)


def board_scene(
    state: State, epsilons: list[float], columns: Sequence[BoardColumn], *, redraw: bool
) -> dict[str, Any]:
    """Return the board's payload, the options that it is mounted with, and its redraws.

    Parameters
    ----------
    state : State
    epsilons : list of float
    columns : sequence of BoardColumn
        Of the settings' mechanisms, with their colours.
    redraw : bool
        Whether the pictures of every draw come along.

    Returns
    -------
    dict
        The picture is of the typical draw by what is asked, unless the view names one of `DRAWS`.
    """
    settings = state.settings
    prepared = table_of(settings)
    label = state.view.get("line")
    # pictured and not kept: redraws are of the settings' own epsilon, which need be no frame
    own = [settings.epsilon] if redraw and settings.epsilon not in epsilons else []
    seen = list(along(prepared, settings, [*epsilons, *own], FRAME_METRICS))
    redraws = None
    if redraw:
        redraws = scrub.draws(seen[[*epsilons, *own].index(settings.epsilon)], settings.trials)
    seen = seen[: len(epsilons)]
    draw = _draw(state, epsilons)
    if draw is None:
        draw = scrub.typical_draw(seen)
    frames = scrub.frames_of(seen, [pictured(one) for one in seen], draw)
    for frame, one in zip(frames, seen, strict=True):
        if label is not None:
            spaces = {result.mechanism.text: result.components[draw] for result in one.results}
            spaces["exact"] = prepared.reference.eigenvectors[:, : settings.k]
            frame["lines"] = {
                key: sorting_line(settings, space, label) for key, space in spaces.items()
            }
        if state.view.get("counted"):
            there = replace(settings, epsilon=frame["epsilon"])
            frame["counted"] = {
                key: [
                    count(there, parse_variant(key))
                    for count in (components_found, above_lone_threshold)
                ]
                for key in settings.variants
            }
    payload = board.payload(prepared, settings, columns, epsilons, frames)
    if state.view.get("marked"):
        payload["marked"] = list(range(PUPILS))
    return {
        "payload": payload,
        "options": {"rows": list(state.view.get("measures", ("picture", "recovery")))},
        "publishable": bool(state.view.get("publishable")),
        "draws": redraws,
    }


def _draw(state: State, epsilons: Sequence[float]) -> int | None:
    """Return the draw, from 0, that a picture is of; None for the typical one by recovery.

    One that a view names is judged at the least epsilon. Where a line is drawn, the typical one is
    typical in what the line sorts.
    """
    named, label = state.view.get("draw"), state.view.get("line")
    key = state.settings.variants[0]
    at = [replace(state.settings, epsilon=epsilon) for epsilon in epsilons]
    if named is not None:
        return DRAWS[named](recovery(at[0], key))
    return None if label is None else typical([sorted_apart(one, key, label) for one in at])


def _persons(states: Sequence[State]) -> dict[str, Any]:
    chosen: list[tuple[str, ...]] = []
    persons, stops = [], []
    for state in states:
        keys = tuple(state.view.get("mechanisms", state.settings.variants))
        # stops of the same mechanisms are one picture, with its draws
        if keys not in chosen:
            chosen.append(keys)
            persons.append(
                person_payload(
                    [parse_variant(key) for key in keys],
                    state.settings.delta or _DELTA,
                    epsilon=state.settings.epsilon,
                    view=str(state.view.get("clouds", "her")),
                    seed=state.settings.seed,
                )
            )
        epsilon = state.settings.epsilon
        # nearest as a ratio: epsilons stand on a logarithm
        at = min(range(len(EPSILONS)), key=lambda place: abs(math.log(EPSILONS[place] / epsilon)))
        stops.append({"person": chosen.index(keys), "at": at, "epsilon": epsilon})
    return {"persons": persons, "stops": stops}


def _faces(states: Sequence[State]) -> dict[str, Any]:
    """Of a hundred suspected alike, how many are in: before a release, and at most after it."""
    prior = float(states[0].view["prior"])
    frames = [(one, posterior_bound(prior, one)) for one in board_epsilons(states)]
    return {
        "before": 100 * prior,
        # one face is one per cent, so numbers stand without the sign
        "beforeText": belief(prior).removesuffix(PER_CENT),
        "frames": [
            {"epsilon": epsilon, "count": 100 * share, "text": belief(share).removesuffix(PER_CENT)}
            for epsilon, share in frames
        ],
        "stops": [{"epsilon": state.settings.epsilon} for state in states],
    }


def _people(states: Sequence[State]) -> dict[str, Any]:
    crowds = [
        {
            "epsilon": state.settings.epsilon,
            "people": people_needed(state.settings, parse_variant(state.settings.variants[0])),
        }
        for state in states
    ]
    return {
        "crowds": crowds,
        "texts": [thousands(crowd["people"]) for crowd in crowds],
        "own": table_of(states[0].settings).n,
    }


def _leak(states: Sequence[State]) -> dict[str, Any]:
    found = leak()
    return {
        "features": [found.features[axis] for axis in found.axes],
        "rows": found.rows[:, found.axes].tolist(),
        "lastText": ", ".join(numeral(value, 3) for value in found.rows[-1]),
        "mean": found.mean[found.axes].tolist(),
        "recovered": found.recovered[found.axes].tolist(),
        "recoveredText": ", ".join(numeral(value, 3) for value in found.recovered),
        "within": found.bound_with,
        "withinText": numeral(found.bound_with, 3),
        "without": found.bound_without,
        "withoutText": numeral(found.bound_without, 3),
        "declared": found.declared_bound,
        "declaredText": numeral(found.declared_bound, 3),
        "stops": [
            {
                "shown": state.view.get("shown", ""),
                "declared": bool(state.view.get("declared")),
                "epsilon": state.settings.epsilon,
            }
            for state in states
        ],
    }


def _cloud(states: Sequence[State]) -> dict[str, Any]:
    found = cloud()
    return {
        "features": list(found.features),
        "rows": np.round(found.rows, 3).tolist(),
        "components": np.round(found.components, 5).T.tolist(),
        "keptText": percent(found.kept),
        "stops": [
            {"widest": state.view.get("shown") == "widest", "epsilon": state.settings.epsilon}
            for state in states
        ],
    }


_SCENES = {
    "board": _boards, "person": _persons, "faces": _faces, "people": _people, "cloud": _cloud,
    "leak": _leak,
}  # fmt: skip
