"""Learning after a private projection, or from a private data release."""

from dpviz.simulation.tasks.learners import LEARNERS, SCORES, Learner, Score, learner_of
from dpviz.simulation.tasks.plan import (
    CHANCE,
    CLEAN,
    TaskPart,
    TaskPlan,
    plan_task,
    releasing_rows,
)
from dpviz.simulation.tasks.run import (
    FLOOR,
    TASK_BAND_COLUMNS,
    TASK_COLUMNS,
    TaskStep,
    band_table,
    score_table,
    work,
)
from dpviz.simulation.tasks.scores import (
    Labelled,
    score_projected,
    split,
)
from dpviz.simulation.tasks.task import Task, kinds_of, label_words, learner_for, learners_for

__all__ = [
    "CHANCE",
    "CLEAN",
    "FLOOR",
    "LEARNERS",
    "SCORES",
    "TASK_BAND_COLUMNS",
    "TASK_COLUMNS",
    "Labelled",
    "Learner",
    "Score",
    "Task",
    "TaskPart",
    "TaskPlan",
    "TaskStep",
    "band_table",
    "kinds_of",
    "label_words",
    "learner_for",
    "learner_of",
    "learners_for",
    "plan_task",
    "releasing_rows",
    "score_projected",
    "score_table",
    "split",
    "work",
]
