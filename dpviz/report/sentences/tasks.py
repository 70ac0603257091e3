"""The sentences of a task: its results, how rows were divided, and what is protected."""

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

_LEAST_ROUNDS = 5  # Fewer rounds give too few points to distinguish two mechanisms.

BAND = "central 95 % of the rounds (one release on one split each), not an interval of the mean"


def value_words(score: Score, value: float) -> str:
    """Return a score as text: a share in per cent, other numbers with two digits."""
    return per_cent(decimals(100 * value, 1)) if score.key == "accuracy" else decimals(value, 2)


def floor_words(name: str) -> str:
    """Return the text of a floor, which completes "against 51 % ..."."""
    return {CLEAN: CLEAN, CHANCE: f"after a {CHANCE}"}.get(name, f"for the {name}")


def verdict(plan: TaskPlan, bands: pd.DataFrame) -> str:
    """Return the sentences at the top: which mechanism keeps which score, at the setting's epsilon.

    Two mechanisms with overlapping bands are called indistinguishable.

    Parameters
    ----------
    plan : TaskPlan
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`.
    """
    score, epsilon = plan.learner.score, plan.shown_epsilon
    if not plan.mechanisms:
        return "No chosen mechanism can run at this setting; the reasons are below."
    here = _records(bands[bands["epsilon"] == epsilon])
    counting = [row for row in here if Verdict(row["verdict"]).counts]
    if not here:
        return f"Nothing has been measured at epsilon {numeral(epsilon, 6)} yet."
    if not counting:
        return f"At epsilon {numeral(epsilon, 6)} no chosen mechanism has a claim that holds."
    floors, labels = _floors(bands), _labels(plan)
    # Do not rank a mechanism whose claim fails, because it could win by publishing the rows.
    rows = sorted(counting, key=lambda row: row["mean"], reverse=score.better == "higher")
    best, others = rows[0], rows[1:]
    beside = join_words(
        f"{value_words(score, floors[name]['mean'])} {floor_words(name)}"
        for name in (CLEAN, _random_floor(plan, floors))
        if name in floors
    )
    start = (
        f"At epsilon {numeral(epsilon, 6)}, {plan.learner.label} {_after(plan)} "
        f"{labels[best['mechanism']]} reaches {_article(score)} {score.label} of "
        f"{value_words(score, best['mean'])}{_unit(plan)}, against {beside}."
    )
    # A band of few releases may be narrow by chance, and then seems to separate mechanisms.
    if min(row["rounds"] for row in here) < min(_LEAST_ROUNDS, plan.settings.trials):
        return f"{start} The rounds so far are too few to distinguish mechanisms."
    ties = [labels[row["mechanism"]] for row in others if _overlap(row, best)]
    if ties:
        start += f" These rounds cannot rank it above {join_words(ties)}: the bands overlap."
    return start + _at_the_floor(plan, rows, floors) + _failing_text(here, labels)


def lead(plan: TaskPlan, bands: pd.DataFrame) -> str | None:
    """Return the best score at the setting's epsilon and the floors, in at most 15 words.

    None if no claim that counts has been measured at this epsilon; `verdict` then explains why.

    Parameters
    ----------
    plan : TaskPlan
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`.
    """
    score = plan.learner.score
    rows = [
        row
        for row in _records(bands[bands["epsilon"] == plan.shown_epsilon])
        if Verdict(row["verdict"]).counts
    ]
    if not rows:
        return None
    # Rank only mechanisms whose privacy claims hold, as `verdict` does.
    best = (max if score.better == "higher" else min)(rows, key=lambda row: row["mean"])
    floors, blind = _floors(bands), _random_floor(plan, _floors(bands))
    beside = [
        f"{value_words(score, floors[name]['mean'])} {words}"
        for name, words in (
            (CLEAN, CLEAN),
            (blind, "at random" if blind == CHANCE else "by guessing"),
        )
        if name in floors
    ]
    label = _labels(plan)[best["mechanism"]]
    first = f"{label}: {score.label} {value_words(score, best['mean'])}"
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
    # A released table has no subspace that could be compared with a random subspace.
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


def _at_the_floor(plan: TaskPlan, rows: list[Row], floors: dict[str, Row]) -> str:
    """Return the sentences on mechanisms that are not better than the random floor."""
    name, labels = _random_floor(plan, floors), _labels(plan)
    if name not in floors:
        return ""
    floor, higher = floors[name], plan.learner.score.better == "higher"
    # Mechanisms whose bands overlap are indistinguishable, whichever mean is higher.
    lost = [labels[row["mechanism"]] for row in rows if _overlap(row, floor)]
    worse = [
        labels[row["mechanism"]]
        for row in rows
        if not _overlap(row, floor) and (row["mean"] < floor["mean"]) == higher
    ]
    words = f" Worse than the {name}: {join_words(worse)}." if worse else ""
    # If no mechanism is better than chance, the reader needs no further sentence.
    if len(lost) == len(rows):
        none = "No mechanism can" if len(rows) > 1 else "The mechanism cannot"
        return f" {none} be distinguished from the {name}."
    if lost:
        return f" Mechanisms not distinguished from the {name}: {join_words(lost)}.{words}"
    if worse:
        return words
    return f" Every mechanism whose claim holds does better than the {name}."


def _failing_text(here: list[Row], labels: dict[str, str]) -> str:
    text = ""
    for verdict, words in _FAILING.items():
        failing = [labels[row["mechanism"]] for row in here if row["verdict"] == verdict]
        if failing:
            verb, whose = ("is", "its") if len(failing) == 1 else ("are", "their")
            text += f" {join_words(failing)} {verb} not counted: {whose} claim {words}."
    return text


_FAILING = {
    Verdict.REFUTED: "is false",
    Verdict.OUT_OF_SCOPE: "fails at this setting, outside its scope",
    Verdict.UNPROVEN: "is not proved for the numbers that are released",
}


def gains(plan: TaskPlan, bands: pd.DataFrame) -> str:
    """Return the epsilon from which on each mechanism is better than the random floor."""
    floors = _floors(bands)
    name, higher = _random_floor(plan, floors), plan.learner.score.better == "higher"
    if name not in floors or not plan.mechanisms:
        return ""
    floor = floors[name]
    parts, never = [], []
    for mechanism in plan.mechanisms:
        start = None
        rows = _records(bands[bands["mechanism"] == mechanism.text])
        for row in sorted(rows, key=lambda row: row["epsilon"]):
            # Compare whole bands, because repeated runs of the floor vary as well.
            clear = row["low"] > floor["high"] if higher else row["high"] < floor["low"]
            if clear and start is None:
                start = row
            # Use the last epsilon at which the band rises above the floor, as it may fall back.
            elif not clear:
                start = None
        if start is None:
            never.append(mechanism.label)
        else:
            words, status = (
                f"{mechanism.label} from {numeral(start['epsilon'], 6)} on",
                start["verdict"],
            )
            aside = f" (at that epsilon its claim {_FAILING[status]})" if status in _FAILING else ""
            parts.append(words + aside)
    if not parts:
        return f"At every epsilon shown, each mechanism's band overlaps the band of the {name}."
    nowhere = f"; at no epsilon shown: {join_words(never)}" if never else ""
    beats = f"Mechanisms whose band no longer overlaps the band of the {name}"
    return f"{beats}: {join_words(parts)}{nowhere}."


def facts(plan: TaskPlan) -> str:
    """Return how the rows are divided, as a caption."""
    private, train, test = (f"{size:,}" for size in plan.sizes)
    labels = plan.table.labels
    assert labels is not None
    name = f" {plan.table.label_name}" if plan.table.label_name else ""
    tuning = (
        " Hyperparameters are chosen by cross-validation within the training rows of each round."
        if plan.task.tuning == TUNED and plan.learner.kind != CLUSTERING
        else ""
    )
    count = f"{len(plan.splits)} random split{'s' if len(plan.splits) > 1 else ''}"
    if plan.task.source != PROJECTION:
        what = "rows" if plan.learner.kind == CLUSTERING else "rows and labels"
        parts = (
            f"{train} {what} are released and used for training, {test} clean rows are used "
            "for testing"
        )
    # If rows for the subspace are also training rows, count them only once.
    elif plan.task.subspace == APART:
        parts = f"{private} rows for the subspace, {train} for training, {test} for testing"
    else:
        parts = f"{private} rows for the subspace, {train} of them for training, {test} for testing"
    delta = plan.problem_and_budget(0, plan.settings.epsilon)[1].delta
    return (
        f"The label{name} {label_words(labels)}. {parts}, in {count}. The noise is calibrated to "
        f"{private} rows, at delta {numeral(delta)}.{tuning}"
    )


def protected(plan: TaskPlan) -> list[str]:
    """Return what the privacy of a task covers, in a sentence or two for each point."""
    private = f"{plan.sizes[0]:,}"
    if plan.task.source != PROJECTION:
        return [_released_words(plan, private), _post_processing(plan)]
    k = plan.settings.k
    directions = f"the {k} directions of the subspace" if k > 1 else "one direction"
    whose = "a part for the subspace only" if plan.task.subspace == APART else "the training rows"
    return [
        f"The rows from which the subspace is computed, {whose} ({private} rows). Only "
        f"{directions} of these rows are released, as privately as the mechanism's status says. "
        "The labels of these rows are not read.",
        "Projecting other rows, such as test rows, on a released subspace is post-processing. The "
        "projection has no further privacy cost for the people behind the subspace.",
    ]


def _released_words(plan: TaskPlan, private: str) -> str:
    if plan.learner.kind == CLUSTERING:
        return (
            f"The {private} training rows are released once, as one noisy table, as private as the "
            "mechanism's status says. Clustering needs no labels, so no label is released."
        )
    return (
        f"The {private} training rows and their labels are released once, as one noisy table with "
        "the labels. The table is as private as the mechanism's status says."
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
    return f"{reading} is post-processing, so the learned model is as private as the release."


def unprotected(plan: TaskPlan) -> list[str]:
    """Return what the privacy of a task does not cover, in a sentence or two for each point."""
    items = []
    if plan.task.source == PROJECTION:
        labels = "" if plan.learner.kind == CLUSTERING else " and their labels"
        again = (
            ""
            if plan.task.subspace == APART
            else " The subspace uses the same rows, so subspace and model together are not private."
        )
        items.append(
            f"The training rows{labels}: the learner reads these rows without noise, so the "
            f"learned model is not private.{again}"
        )
    items.append("The test rows, their labels, and their scores.")
    return items
