"""The sentences of a task: what it found, how rows were divided, and what is protected."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpviz.core.number_text import decimals, numeral, per_cent
from dpviz.core.release import Verdict
from dpviz.report.sentences.phrases import join_words
from dpviz.simulation.tasks.learners import CLUSTERING, REGRESSION, Score
from dpviz.simulation.tasks.plan import CHANCE, CLEAN, TaskPlan
from dpviz.simulation.tasks.run import FLOOR
from dpviz.simulation.tasks.task import APART, PROJECTION, TUNED, label_words

_LEAST_ROUNDS = 5  # below this a band is a few points and tells nothing apart

BAND = "central 95 % of the rounds (a release on a split each), not an interval of the mean"


def value_words(score: Score, value: float) -> str:
    """Return a score as text: a share in per cent, other numbers with two digits."""
    return per_cent(decimals(100 * value, 1)) if score.key == "accuracy" else decimals(value, 2)


def floor_words(name: str) -> str:
    """Return a floor, completing "against 51 % ..."."""
    return {CLEAN: CLEAN, CHANCE: f"after a {CHANCE}"}.get(name, f"for the {name}")


def verdict(plan: TaskPlan, bands: pd.DataFrame) -> str:
    """Return the sentences on top: which mechanism keeps what, at the setting's epsilon.

    Two mechanisms whose bands overlap count as not told apart.

    Parameters
    ----------
    plan : TaskPlan
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`.
    """
    score, epsilon = plan.learner.score, plan.shown_epsilon
    if not plan.mechanisms:
        return "None of the chosen mechanisms can run here; why is said below."
    here = _records(bands[bands["epsilon"] == epsilon])
    made = [row for row in here if Verdict(row["verdict"]).counts]
    if not here:
        return f"Nothing has been measured at epsilon {numeral(epsilon, 6)} yet."
    if not made:
        return (
            f"At epsilon {numeral(epsilon, 6)} none of these mechanisms makes a claim that holds."
        )
    floors, known = _floors(bands), _labels(plan)
    # who makes no claim that holds is not ranked: it may win by giving the rows away
    ranked = sorted(made, key=lambda row: row["mean"], reverse=score.better == "higher")
    best, others = ranked[0], ranked[1:]
    beside = join_words(
        f"{value_words(score, floors[name]['mean'])} {floor_words(name)}"
        for name in (CLEAN, _random_floor(plan, floors))
        if name in floors
    )
    start = (
        f"At epsilon {numeral(epsilon, 6)}, {plan.learner.label} {_after(plan)} "
        f"{known[best['mechanism']]} "
        f"reaches {_article(score)} {score.label} of {value_words(score, best['mean'])}"
        f"{_unit(plan)}, against {beside}."
    )
    # an early band is narrow by luck, and would tell apart what is not
    if min(row["rounds"] for row in here) < min(_LEAST_ROUNDS, plan.settings.trials):
        return f"{start} Too few rounds so far to tell mechanisms apart."
    tied = [known[row["mechanism"]] for row in others if _overlap(row, best)]
    if tied:
        start += f" These rounds cannot tell it from {join_words(tied)}: the bands overlap."
    return start + _at_the_floor(plan, ranked, floors) + _not_counted(here, known)


def lead(plan: TaskPlan, bands: pd.DataFrame) -> str | None:
    """Return the best score at the setting's epsilon and the floors, in at most 15 words.

    None where no claim that counts has been measured there; `verdict` says so.

    Parameters
    ----------
    plan : TaskPlan
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`.
    """
    score = plan.learner.score
    made = [
        row
        for row in _records(bands[bands["epsilon"] == plan.shown_epsilon])
        if Verdict(row["verdict"]).counts
    ]
    if not made:
        return None
    # of claims that hold alone, as `verdict` ranks them
    best = (max if score.better == "higher" else min)(made, key=lambda row: row["mean"])
    floors, blind = _floors(bands), _random_floor(plan, _floors(bands))
    beside = [
        f"{value_words(score, floors[name]['mean'])} {words}"
        for name, words in (
            (CLEAN, CLEAN),
            (blind, "at random" if blind == CHANCE else "by guessing"),
        )
        if name in floors
    ]
    named = _labels(plan)[best["mechanism"]]
    first = f"{named}: {score.label} {value_words(score, best['mean'])}"
    return f"{', '.join([first, *beside])}."


Row = dict[str, Any]


def _records(table: pd.DataFrame) -> list[Row]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]


def _floors(bands: pd.DataFrame) -> dict[str, Row]:
    return {row["mechanism"]: row for row in _records(bands[bands["source"] == FLOOR])}


def _labels(plan: TaskPlan) -> dict[str, str]:
    return {mechanism.text: mechanism.label for mechanism in plan.mechanisms}


def _random_floor(plan: TaskPlan, floors: dict[str, Row]) -> str:
    """Return the floor that a mechanism should beat: a random subspace, or a constant guess."""
    # where rows are released there is no subspace to be drawn at random
    return CHANCE if CHANCE in floors else plan.learner.score.chance


def _after(plan: TaskPlan) -> str:
    return "after" if plan.task.source == PROJECTION else "from rows released by"


def _unit(plan: TaskPlan) -> str:
    return " standard deviations of the label" if plan.learner.kind == REGRESSION else ""


def _article(score: Score) -> str:
    return "an" if score.label[0] in "aeiou" else "a"


def _overlap(one: Row, other: Row) -> bool:
    """Return whether two bands share a value."""
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def _at_the_floor(plan: TaskPlan, ranked: list[Row], floors: dict[str, Row]) -> str:
    """Return the sentences on mechanisms that do not beat the random floor."""
    name, known = _random_floor(plan, floors), _labels(plan)
    if name not in floors:
        return ""
    floor, higher = floors[name], plan.learner.score.better == "higher"
    # bands that share a value are not told apart, whichever mean is higher
    lost = [known[row["mechanism"]] for row in ranked if _overlap(row, floor)]
    worse = [
        known[row["mechanism"]]
        for row in ranked
        if not _overlap(row, floor) and (row["mean"] < floor["mean"]) == higher
    ]
    words = f" Worse than the {name}: {join_words(worse)}." if worse else ""
    # if none beats chance, that alone is what a reader needs
    if len(lost) == len(ranked):
        none = "None of them can" if len(ranked) > 1 else "It cannot"
        return f" {none} be told from the {name}."
    if lost:
        return f" Not told from the {name}: {join_words(lost)}.{words}"
    if worse:
        return words
    return f" {'All of them do' if len(ranked) > 1 else 'It does'} better than the {name}."


def _not_counted(here: list[Row], known: dict[str, str]) -> str:
    said = ""
    for verdict, words in _FAILING.items():
        failing = [known[row["mechanism"]] for row in here if row["verdict"] == verdict]
        if failing:
            verb, whose = ("is", "its") if len(failing) == 1 else ("are", "their")
            said += f" {join_words(failing)} {verb} not counted: {whose} claim {words}."
    return said


_FAILING = {
    Verdict.REFUTED: "is false",
    Verdict.OUT_OF_SCOPE: "fails here, outside its scope",
    Verdict.UNPROVEN: "is not proved for what is released",
}


def gains(plan: TaskPlan, bands: pd.DataFrame) -> str:
    """Return from which epsilon on each mechanism does better than the random floor."""
    floors = _floors(bands)
    name, higher = _random_floor(plan, floors), plan.learner.score.better == "higher"
    if name not in floors or not plan.mechanisms:
        return ""
    floor = floors[name]
    found, never = [], []
    for mechanism in plan.mechanisms:
        start = None
        rows = _records(bands[bands["mechanism"] == mechanism.text])
        for row in sorted(rows, key=lambda row: row["epsilon"]):
            # band against band: the floor has rounds of its own, and they vary as well
            clear = row["low"] > floor["high"] if higher else row["high"] < floor["low"]
            if clear and start is None:
                start = row
            # a band that falls back is not above the floor from there on: the last rise counts
            elif not clear:
                start = None
        if start is None:
            never.append(mechanism.label)
        else:
            words, status = (
                f"{mechanism.label} from {numeral(start['epsilon'], 6)} on",
                start["verdict"],
            )
            aside = f" (there its claim {_FAILING[status]})" if status in _FAILING else ""
            found.append(words + aside)
    if not found:
        return f"On this axis no band is clear of that of the {name}."
    nowhere = f"; nowhere on this axis: {join_words(never)}" if never else ""
    return f"Band clear of that of the {name}: {join_words(found)}{nowhere}."


def facts(plan: TaskPlan) -> str:
    """Return how the rows are divided, as a caption."""
    private, train, test = (f"{size:,}" for size in plan.sizes)
    labels = plan.table.labels
    assert labels is not None
    name = f" {plan.table.label_name}" if plan.table.label_name else ""
    tuned = (
        " Hyperparameters are chosen by cross-validation within the training rows of each round."
        if plan.task.tuning == TUNED and plan.learner.kind != CLUSTERING
        else ""
    )
    count = f"{len(plan.splits)} random split{'s' if len(plan.splits) > 1 else ''}"
    if plan.task.source != PROJECTION:
        what = "rows" if plan.learner.kind == CLUSTERING else "rows and labels"
        parts = f"{train} {what} released and learned from, {test} clean rows tested on"
    # rows that train and are in the subspace are counted once
    elif plan.task.subspace == APART:
        parts = f"{private} rows for the subspace, {train} trained on, {test} tested on"
    else:
        parts = f"{private} rows for the subspace, {train} of them trained on, {test} tested on"
    delta = plan.problem_and_budget(0, plan.settings.epsilon)[1].delta
    return (
        f"The label{name} {label_words(labels)}. {parts}, in {count}. Privacy is calibrated to the "
        f"{private}, at delta {numeral(delta)}.{tuned}"
    )


def protected(plan: TaskPlan) -> list[str]:
    """Return what the privacy of a task covers, a sentence or two each."""
    private = f"{plan.sizes[0]:,}"
    if plan.task.source != PROJECTION:
        return [_released_words(plan, private), _post_processing(plan)]
    k = plan.settings.k
    directions = f"the {k} directions of the subspace" if k > 1 else "one direction"
    whose = "a part that nothing else uses" if plan.task.subspace == APART else "the training rows"
    return [
        f"The rows that the subspace is computed from, {whose} ({private} rows): nothing is "
        f"released about them but {directions}, as private as the mechanism's status says. Their "
        "labels are not read.",
        "Projecting other rows on a released subspace, test rows included, is post-processing: it "
        "costs those people nothing more.",
    ]


def _released_words(plan: TaskPlan, private: str) -> str:
    if plan.learner.kind == CLUSTERING:
        return (
            f"The training rows ({private}): they are released once, as one noisy table, as "
            "private as the mechanism's status says. No label is released, for clustering needs "
            "none."
        )
    return (
        f"The training rows and their labels ({private}): they are released once, as one noisy "
        "table with the label beside the features, as private as the mechanism's status says."
    )


def _post_processing(plan: TaskPlan) -> str:
    reading = {
        CLUSTERING: "Finding clusters",
        REGRESSION: "Clipping noisy labels to their bounds, tuning, learning and predicting",
    }.get(
        plan.learner.kind,
        "Reading a class from its noisy cells (the sign for two classes, else the largest), "
        "tuning, learning and predicting",
    )
    return f"{reading} is post-processing, so what is learned is as private as the release."


def unprotected(plan: TaskPlan) -> list[str]:
    """Return what the privacy of a task does not cover, a sentence or two each."""
    found = []
    if plan.task.source == PROJECTION:
        labels = "" if plan.learner.kind == CLUSTERING else " and their labels"
        again = (
            ""
            if plan.task.subspace == APART
            else " They are the rows of the subspace too, so nothing protects them as a whole."
        )
        found.append(
            f"The training rows{labels}: the learner reads them as they are, so what it learns is "
            f"not private.{again}"
        )
    found.append("The test rows, their labels, and their scores.")
    return found
