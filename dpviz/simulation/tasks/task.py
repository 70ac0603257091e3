"""`Task`: all options of a learning task, declared once, and the learners for each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.params import Declared, choice, format_number, integer, number, text
from dpviz.simulation.axes import parse_values
from dpviz.simulation.tasks.learners import (
    CLASSIFICATION,
    CLUSTERING,
    LEARNERS,
    REGRESSION,
    Labels,
    Learner,
    learner_of,
)

PROJECTION, RELEASE = "projection", "release"
APART, TRAINING = "apart", "training"
TUNED, FIXED = "cv", "fixed"

MOST_CLASSES = 50
"""A label with more classes than this counts as a name or a number, not as a class."""
FEW_VALUES, MANY_VALUES = 20, 11
"""Up to the first count of values, numbers are classes too; from the second on, quantities."""
LEAST_ROWS = 20

_MOST_EPSILONS = 50
_EPSILONS_ALLOWED = (
    f"at most {_MOST_EPSILONS} numbers from 0.0001 to 1e6 such as 0.1,1,10; each may be "
    "low:high:count"
)


def _check_epsilons(written: str) -> str:
    """Return the values as ascending numbers, with ranges expanded."""
    error = InvalidSetting("epsilons", _EPSILONS_ALLOWED, written, "--epsilons")
    try:
        values = sorted(set(parse_values("epsilon", written)))
    except InvalidSetting:
        raise error from None
    if len(values) > _MOST_EPSILONS:
        raise error
    return ",".join(format_number(value) for value in values)


@dataclass(frozen=True)
class Task(Declared):
    """Options of a learning task and of its split of the rows."""

    learner: str | None = choice(
        None,
        {key: learner.label for key, learner in LEARNERS.items()},
        label="Learner",
        help="Kind of learner; auto takes the first learner that suits the label.",
        optional=True,
        examples=("linear_svm", "k_means"),
    )
    source: str = choice(
        PROJECTION,
        {PROJECTION: "after a private projection", RELEASE: "from a private data release"},
        label="Learn",
        help="After a private projection: the subspace is private, and training rows projected on "
        "it are used with their true labels. From a private data release: rows and labels are "
        "released with noise, and the learner sees nothing else. Learners are tested on rows "
        "without noise.",
        examples=(RELEASE,),
    )
    epsilons: str = text(
        "0.1,0.3,1,3,10",
        label="Epsilons",
        help="Epsilons to measure at: numbers, or low:high:count for a range spaced on a "
        "logarithmic scale.",
        check=_check_epsilons,
        allowed_text=_EPSILONS_ALLOWED,
        examples=("0.1,1,10",),
    )
    splits: int = integer(
        5,
        1,
        1_000,
        label="Splits",
        help="Number of random splits of the rows. Repetitions use the splits in turn, so "
        "repetitions 1 and 1 + splits share a split.",
        examples=(2, 3),
    )
    subspace: str = choice(
        APART,
        {APART: "from separate rows", TRAINING: "from the training rows"},
        label="Subspace",
        help="Which rows the private subspace is computed from: a part that nothing else uses, or "
        "the training rows themselves.",
        examples=(TRAINING,),
    )
    subspace_share: float = number(
        0.5,
        0.05,
        0.9,
        label="Share for the subspace",
        help="Share of the rows for the subspace, if the subspace has its own rows. The subspace's "
        "privacy is calibrated to their number.",
        slider=(0.05, 0.9),
        examples=(0.4,),
    )
    test_share: float = number(
        0.25,
        0.05,
        0.9,
        label="Share for testing",
        help="Share of the rows used only for testing; the remaining rows are used for training.",
        slider=(0.05, 0.9),
        examples=(0.3,),
    )
    tuning: str = choice(
        TUNED,
        {TUNED: "by cross-validation", FIXED: "fixed"},
        label="Hyperparameters",
        help="Hyperparameters are chosen by 3-fold cross-validation within each repetition's "
        "training rows. The choice fixed takes the middle of the grid, which is faster.",
        examples=(FIXED,),
    )
    most: int = integer(
        2_000,
        50,
        1_000_000,
        label="Most rows",
        help="Larger training and test parts are thinned at random to this number of rows. The "
        "rows for the subspace are never thinned.",
        examples=(500,),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        together = self.test_share + (self.subspace_share if self.subspace == APART else 0.0)
        if together > 0.95 + 1e-9:
            raise InvalidSetting(
                "shares",
                "at most 0.95 in all for the subspace and testing, because training needs the rest",
                format_number(round(together, 6)),
                "--subspace-share and --test-share",
            )

    @property
    def values(self) -> tuple[float, ...]:
        """The epsilons, ascending."""
        return tuple(float(value) for value in self.epsilons.split(","))

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the rows: for a separate subspace, for training, for testing."""
        if self.source == PROJECTION and self.subspace == APART:
            train = 1 - self.subspace_share - self.test_share
            return (self.subspace_share, train, self.test_share)
        return (1 - self.test_share, self.test_share)


def kinds_of(labels: NDArray[Any]) -> tuple[str, ...]:
    """Return the kinds of task that suit a label: classification, regression, clustering.

    Texts and numbers of few different values are classes, and numbers of many values are
    quantities. In between, numbers count as both.
    """
    count = len(np.unique(labels))
    kinds: list[str] = []
    numeric = labels.dtype.kind in "iuf"
    if 2 <= count <= (FEW_VALUES if numeric else MOST_CLASSES):
        kinds += [CLASSIFICATION, CLUSTERING]
    if numeric and count >= MANY_VALUES:
        kinds.append(REGRESSION)
    return tuple(kinds)


def learners_for(labels: NDArray[Any] | None) -> list[Learner]:
    """Return the learners that suit a label.

    Raises
    ------
    InvalidTable
        If there is no label, or no learner suits it.
    """
    if labels is None:
        raise InvalidTable(
            "A task needs a label for each row; this table has none: choose the column that is "
            "the label, or another table."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidTable("A task needs a finite label for each row; some labels are not finite.")
    kinds = kinds_of(labels)
    if not kinds:
        count = len(np.unique(labels))
        raise InvalidTable(
            f"A task needs a label of numbers, or of 2 to {MOST_CLASSES} classes; this label has "
            f"{count:,} different texts."
            if count > 1
            else "A task needs a label with at least 2 different values; this label has 1."
        )
    return [learner for learner in LEARNERS.values() if learner.kind in kinds]


def learner_for(task: Task, labels: NDArray[Any] | None) -> Learner:
    """Return the task's learner, or the first suitable learner if none is named.

    Raises
    ------
    InvalidSetting
        If the named learner does not suit the label.
    InvalidTable
        In the same cases as `learners_for`.
    """
    suitable = learners_for(labels)
    if task.learner is None:
        return suitable[0]
    chosen = learner_of(task.learner)
    if chosen not in suitable:
        assert labels is not None
        raise InvalidSetting(
            "learner",
            f"one of {', '.join(learner.key for learner in suitable)} for this label, which "
            f"{label_words(labels)}",
            task.learner,
            "--learner",
        )
    return chosen


def label_words(labels: Labels) -> str:
    """Return a description of a label that completes "which ..."."""
    kinds, count = kinds_of(labels), len(np.unique(labels))
    if REGRESSION not in kinds:
        return f"has {count} classes"
    words = f"is a number of {count:,} different values"
    return f"{words}, few enough to be classes too" if CLASSIFICATION in kinds else words
