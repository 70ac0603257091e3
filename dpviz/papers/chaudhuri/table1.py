"""Chaudhuri, Sarwate and Sinha 2012, Table 1: accuracy of a linear SVM in released subspaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpviz.core.arrays import FloatArray
from dpviz.mechanisms import parse_variant
from dpviz.papers.chaudhuri._shared import (
    ADDED,
    BUDGET,
    DATA_SETS,
    NON_PRIVATE,
    PPCA,
    RANDOM,
    STUDIED,
    SULQ,
    UnitRows,
    load_unit_rows,
)
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.said import Stated
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

ACCURACY = "accuracy, %"
MAJORITY = "always saying the larger class, %"
COSTS = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
TRAINING_SHARE = 0.1
POSITIVE = {"kddcup99": "normal", "localization": "falling"}
FOOTNOTE = ("insurance", "census")
"""Data sets on which the paper finds a linear SVM no better than naming the larger class."""

TRIED = "exact PCA, accuracy with another learner or scaling, %"
LEAKS = ("localization",)
"""Data sets whose stated number of features includes the label."""

STATED = {
    ("kddcup99", NON_PRIVATE): Stated(98.97, 0.05, 0.005),
    ("kddcup99", PPCA): Stated(98.95, 0.05, 0.005),
    ("kddcup99", SULQ): Stated(98.18, 0.65, 0.005),
    ("kddcup99", RANDOM): Stated(98.23, 0.49, 0.005),
    ("localization", NON_PRIVATE): Stated(100.0, 0.0, 0.5),
    ("localization", PPCA): Stated(100.0, 0.0, 0.5),
    ("localization", SULQ): Stated(97.06, 2.17, 0.005),
    ("localization", RANDOM): Stated(96.28, 2.34, 0.005),
}
ALMOST = 0.5  # In percentage points. We read "almost as well" as at most this difference.


class TablePart(Part):
    """One mechanism over one permutation; without a mechanism, the share of the larger class."""

    permutation: int = 0
    mechanism: str = ""
    projections: int = 1
    with_label: bool = True
    tried: str = ""


class Tables:
    """Rows of a data set with the paper's number of features, and rows without the label."""

    def __init__(self, data: str) -> None:
        self.data = data
        self._rows: dict[bool, UnitRows] = {}

    def rows(self, with_label: bool) -> UnitRows:
        """Return the rows, which are read on first use."""
        if with_label not in self._rows:
            # The rows take much memory, so each variant is read only when it is first needed.
            self._rows[with_label] = load_unit_rows(self.data, as_paper=with_label)
        return self._rows[with_label]


class ChaudhuriTable1(Experiment):
    """Accuracy for normal or attack, and falling or not, in k dimensions; see `info`."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return parts of the experiment by data set, permutation and mechanism, in this order."""
        quick = effort is Effort.QUICK
        parts: list[Part] = []
        for key in POSITIVE:
            parts.append(TablePart(key))
            for permutation in range(1 if quick else 5):  # The paper uses 5 permutations.
                for with_label in (True, False) if key in LEAKS else (True,):
                    for mechanism in (*STUDIED, *ADDED):
                        count = 3 if quick else 5  # The paper uses 5 permutations.
                        if mechanism == NON_PRIVATE:
                            count = 1  # All releases of this mechanism would be equal.
                        parts.append(TablePart(key, permutation, mechanism.text, count, with_label))
        parts += [
            TablePart("kddcup99", 0, mechanism.text, 1 if quick else 2, True, name)
            for name in TRIED_NAMES
            for mechanism in (NON_PRIVATE, RANDOM)
        ]
        for key in FOOTNOTE:
            parts.append(TablePart(key))
            parts += [
                TablePart(key, permutation, NON_PRIVATE.text)
                for permutation in range(1 if quick else 5)
            ]
        return parts

    def shared(self, data: str) -> Tables:
        """Return the rows of a data set, as a sparse matrix."""
        return Tables(data)

    def run(self, part: TablePart, shared: Tables, seed: int) -> Measurements:
        """Return the test accuracy in each released subspace."""
        rows = shared.rows(part.with_label)
        if part.tried in _NORMALISED:
            rows = replace(rows, rows=_NORMALISED[part.tried](rows.rows))
        assert rows.labels is not None
        target = rows.labels == POSITIVE.get(part.data, 1)
        if part.data == "census":
            target = rows.labels == rows.labels[0]  # The labels are two classes of income.
        if not part.mechanism:
            larger = max(target.mean(), 1 - target.mean())
            return Measurements({Point(part.data, "", MAJORITY): np.array([100 * larger])})
        mechanism = parse_variant(part.mechanism)
        order = rows.order(seed, part.permutation)
        # As in the paper, one half of the rows gives the subspace. The other half is for the SVM.
        half = rows.n // 2
        (held_out,) = rows.prefixes(order, [half])
        # Each permutation has its own random streams, so that their releases are independent.
        first = part.permutation * part.projections
        cell = Cell(
            mechanism,
            rows.problem(half, DATA_SETS[part.data].k),
            BUDGET,
            seed,
            range(first, first + part.projections),
        )
        frames = evaluate(cell, rows.measured(held_out)).release.components
        rest = rows.rows[order[half:]]
        if part.tried:
            learn = _TRIED.get(part.tried, accuracy)
            values = [learn(rest @ frame, target[order[half:]]) for frame in frames]
            point = Point(part.data, f"{mechanism.label}, {part.tried}", TRIED)
            return Measurements({point: 100 * np.array(values)})
        found = [accuracy(rest @ frame, target[order[half:]]) for frame in frames]
        panel = _panel(part.data, part.with_label)
        return Measurements({Point(panel, mechanism.label, ACCURACY): 100 * np.array(found)})


def accuracy(
    projected: FloatArray,
    target: NDArray[np.bool_],
    costs: Sequence[float] = COSTS,
    loss: str = "squared_hinge",
) -> float:
    """Return the accuracy of a linear SVM, tuned and trained on the first rows.

    Parameters
    ----------
    projected : ndarray of shape (n, k)
        Rows in random order: the first tenth trains the SVM, the rest tests it.
    target : ndarray of bool, shape (n,)
    costs : sequence of float
        Values of C that are compared.
    loss : {"squared_hinge", "hinge"}
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import LinearSVC

    count = int(TRAINING_SHARE * len(projected))
    if loss == "squared_hinge":
        machine = LinearSVC(dual=False)  # The primal solver is deterministic.
    else:
        machine = LinearSVC(loss=loss, max_iter=100_000, random_state=0)
    search: Any = GridSearchCV(
        machine, {"C": list(costs)}, cv=StratifiedKFold(FOLDS), scoring="accuracy"
    )
    search.fit(projected[:count], target[:count])
    return float(search.score(projected[count:], target[count:]))


def _costly(projected: FloatArray, target: NDArray[np.bool_]) -> float:
    return accuracy(projected, target, (*COSTS, 1_000.0, 10_000.0))


def _plain_hinge(projected: FloatArray, target: NDArray[np.bool_]) -> float:
    return accuracy(projected, target, COSTS[:2], "hinge")


def _unit_variance(projected: FloatArray, target: NDArray[np.bool_]) -> float:
    count = int(TRAINING_SHARE * len(projected))
    return accuracy(projected / projected[:count].std(axis=0), target)


_TRIED = {
    "C up to 10,000": _costly,
    "plain hinge": _plain_hinge,
    "projected features of unit variance": _unit_variance,
}


def _own_length(rows: Any) -> Any:
    """Return each row divided by its own length, not by the length of the longest row."""
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ rows)


def _scaled(rows: Any) -> Any:
    """Return columns of unit variance, not centred, divided by the longest row's length."""
    variance = rows.multiply(rows).mean(axis=0) - rows.mean(axis=0) ** 2
    scaled = sparse.csr_array(rows @ sparse.diags_array(1 / np.sqrt(variance)))
    scaled.data /= np.sqrt(scaled.multiply(scaled).sum(axis=1).max())
    return scaled


def _scaled_own_length(rows: Any) -> Any:
    return _own_length(_scaled(rows))


_NORMALISED: dict[str, Callable[[Any], Any]] = {
    "every row of length 1": _own_length,
    "columns of unit variance": _scaled,
    "columns of unit variance, every row of length 1": _scaled_own_length,
}
TRIED_NAMES = (*_TRIED, *_NORMALISED)


def _panel(key: str, with_label: bool) -> str:
    return key if with_label else f"{key} without the activity"
