"""Data for the animation page: one JSON payload for each step, computed by the core."""

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
from dpviz.simulation.compare import pictured
from dpviz.simulation.sweep import along

_FRAMES = 25
_DELTA = 1e-5
"""Default delta in the chart of one person, for mechanisms that need a positive delta."""


def stage(
    lesson: Lesson, step: int, course: Sequence[Lesson], scene: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the animation page shows for a step, from 0; bets do not change it.

    Parameters
    ----------
    lesson : Lesson
    step : int
    course : sequence of Lesson
        All lessons, for the links between lessons.
    scene : mapping
        The result of `scene` for the step.
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
        **_question(lesson.question_at(step)),
        **_ways(lesson, step, course),
    }


def _question(question: ShownQuestion | None) -> dict[str, Any]:
    """Return the question of a step, or an empty dict if the step asks no question."""
    if question is None:
        return {
            "ask": "", "options": [], "then": [], "right": None, "rightText": "",
            "asksAxis": False, "axis": None,
        }  # fmt: skip
    return {
        "ask": question.ask,
        "options": list(question.options),
        "then": list(question.then),
        "right": question.right,
        "rightText": question.right_text,
        "asksAxis": question.axis is not None,
        "axis": None if question.axis is None else _axis(question.axis),
    }


def _stops(lesson: Lesson, step: int) -> list[dict[str, Any]]:
    """Return the stops of a step's moves, named by epsilon or, if epsilon repeats, by order."""
    epsilons = [state.settings.epsilon for state in _states(lesson, step)]
    own = own_words(lesson.language)
    # Two stops of a step may have the same epsilon. Then their names state their order instead.
    texts = [
        f"ε {numeral(epsilon)}" if epsilons.count(epsilon) == 1 and len(epsilons) > 1 else own[word]
        for epsilon, word in zip(epsilons, ("opened", "moved", "farther"), strict=False)
    ]
    return [
        {"epsilon": epsilon, "text": text} for epsilon, text in zip(epsilons, texts, strict=True)
    ]


def _ways(lesson: Lesson, step: int, course: Sequence[Lesson]) -> dict[str, Any]:
    """Return the previous and the next step in the course, and the label of the next step."""
    own = own_words(lesson.language)
    before, after = [lesson.number, step], [lesson.number, step + 2]
    # Before the first step of a lesson comes the last step of the previous lesson.
    if step == 0:
        before = [lesson.number - 1, len(course[lesson.number - 2].steps)]
    name = own["next"]
    if step + 1 == len(lesson.steps):
        after = [lesson.number + 1, 1]
        if lesson.number < len(course):
            name = f"{own['lesson']}: {course[lesson.number].title}"
    # The last step of the last lesson has no next step.
    there = after[0] <= len(course)
    return {
        "before": before if before[0] else None,
        "after": after if there else None,
        "next": name if there else "",
    }


def tally(lesson: Lesson, step: int, course: Sequence[Lesson], bets: Mapping[str, float]) -> Any:
    """Return the number of right bets on other steps at the end of a lesson, else None."""
    if step + 1 < len(lesson.steps):
        return None
    others = [
        (question, bets[name])
        for one in course
        # Only the steps that ask a question have a bet, so the other steps are left out.
        for place in range(len(one.steps))
        if (name := f"{one.number}.{place + 1}") in bets
        and (one.number, place) != (lesson.number, step)
        and (question := one.question_at(place)) is not None
    ]
    ends = lesson.number == len(course)
    own = own_words(lesson.language)
    return {
        "right": sum(question.won(bet) for question, bet in others),
        "asked": len(others),
        "before": own["before"],
        "of": own["of"],
        "read": own["read"] if ends else "",
    }


def _of_hundred(fact: Fact) -> dict[str, Any]:
    """Return a share, or a count of 100, as a number of filled dots and a text."""
    # A share is written in per cent, so it is multiplied by 100. A count out of 100 stays as it is.
    count = 100 * fact.value if fact.text.endswith(PER_CENT) else fact.value
    return {"count": round(count), "text": fact.text.removesuffix(PER_CENT)}


def _axis(ends: tuple[float, float]) -> dict[str, Any]:
    low, high = ends
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 3)]
    # The tolerance allows for rounding: a tick at an end of the axis must not be lost.
    inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return {
        "low": low,
        "high": high,
        "ticks": [{"value": tick, "text": numeral(tick)} for tick in inside],
    }


def _states(lesson: Lesson, step: int) -> list[State]:
    return [lesson.state(step, count) for count in range(len(lesson.moves(step)) + 1)]


def scene(lesson: Lesson, step: int) -> dict[str, Any]:
    """Return the data of a step's chart at every stop of its moves."""
    states = _states(lesson, step)
    return {"kind": lesson.steps[step].scene} | _SCENES[lesson.steps[step].scene](states)


def board_epsilons(states: Sequence[State]) -> list[float]:
    """Return the epsilons of the frames in ascending order: the stops and values between them."""
    stops = [state.settings.epsilon for state in states]
    if len(set(stops)) == 1:
        return stops[:1]
    # Epsilons between the stops are rounded, but each stop keeps exactly the epsilon of its step.
    between = np.geomspace(min(stops), max(stops), _FRAMES)[1:-1]
    return sorted({*(float(f"{epsilon:.3g}") for epsilon in between), *stops})


def _boards(states: Sequence[State]) -> dict[str, Any]:
    groups: list[list[State]] = []
    stops = []
    for state in states:
        # Stops of a lesson that differ only in epsilon share one chart with a slider.
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
    """Return the payload, the mounting options and the other releases of an Explore figure.

    Parameters
    ----------
    state : State
    epsilons : list of float
    columns : sequence of BoardColumn
        Columns of the settings' mechanisms, with their colours.
    redraw : bool
        Whether to include the charts of all releases.

    Returns
    -------
    dict
        The chart shows the typical release for the question, unless the view names one of `DRAWS`.
    """
    settings = state.settings
    prepared = table_of(settings)
    label = state.view.get("line")
    # Simulated releases use the settings' own epsilon, which may be missing among the frames.
    own = [settings.epsilon] if redraw and settings.epsilon not in epsilons else []
    runs = list(along(prepared, settings, "epsilon", [*epsilons, *own], FRAME_METRICS))
    redraws = None
    if redraw:
        redraws = scrub.draws(runs[[*epsilons, *own].index(settings.epsilon)], settings.trials)
    runs = runs[: len(epsilons)]
    draw = _draw(state, epsilons)
    if draw is None:
        draw = scrub.typical_draw(runs)
    frames = scrub.frames_of(runs, [pictured(one) for one in runs], draw)
    for frame, one in zip(frames, runs, strict=True):
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
    """Return the index of the release to chart, or None for the one with typical recovery.

    A release that the view names is chosen at the least epsilon. If the chart has a separating
    line, the release is typical in how well the line separates.
    """
    name, label = state.view.get("draw"), state.view.get("line")
    key = state.settings.variants[0]
    at = [replace(state.settings, epsilon=epsilon) for epsilon in epsilons]
    if name is not None:
        return DRAWS[name](recovery(at[0], key))
    return None if label is None else typical([sorted_apart(one, key, label) for one in at])


def _persons(states: Sequence[State]) -> dict[str, Any]:
    groups: list[tuple[str, ...]] = []
    persons, stops = [], []
    for state in states:
        keys = tuple(state.view.get("mechanisms", state.settings.variants))
        # Stops of a lesson with the same mechanisms share one chart and its simulated releases.
        if keys not in groups:
            groups.append(keys)
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
        # The nearest epsilon is the one with the nearest logarithm, as on a logarithmic axis.
        at = min(range(len(EPSILONS)), key=lambda place: abs(math.log(EPSILONS[place] / epsilon)))
        stops.append({"person": groups.index(keys), "at": at, "epsilon": epsilon})
    return {"persons": persons, "stops": stops}


def _faces(states: Sequence[State]) -> dict[str, Any]:
    """Return how many of 100 equal suspects are members, before and at most after a release."""
    prior = float(states[0].view["prior"])
    frames = [(one, posterior_bound(prior, one)) for one in board_epsilons(states)]
    return {
        "before": 100 * prior,
        # The chart shows 100 faces. One face is one per cent, so the numbers need no per cent sign.
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
    case = leak()
    return {
        "features": [case.features[axis] for axis in case.axes],
        "rows": case.rows[:, case.axes].tolist(),
        "lastText": ", ".join(numeral(value, 3) for value in case.rows[-1]),
        "mean": case.mean[case.axes].tolist(),
        "recovered": case.recovered[case.axes].tolist(),
        "recoveredText": ", ".join(numeral(value, 3) for value in case.recovered),
        "within": case.bound_with,
        "withinText": numeral(case.bound_with, 3),
        "without": case.bound_without,
        "withoutText": numeral(case.bound_without, 3),
        "declared": case.declared_bound,
        "declaredText": numeral(case.declared_bound, 3),
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
    case = cloud()
    return {
        "features": list(case.features),
        "rows": np.round(case.rows, 3).tolist(),
        "components": np.round(case.components, 5).T.tolist(),
        "keptText": percent(case.kept),
        "stops": [
            {"widest": state.view.get("shown") == "widest", "epsilon": state.settings.epsilon}
            for state in states
        ],
    }


_SCENES = {
    "board": _boards, "person": _persons, "faces": _faces, "people": _people, "cloud": _cloud,
    "leak": _leak,
}  # fmt: skip
