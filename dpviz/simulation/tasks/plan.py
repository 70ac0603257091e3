"""Plan the parts of a task, and the data that they need."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import FeatureBounds
from dpviz.core.errors import CannotRun, InvalidTable
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws
from dpviz.core.settings import FREE, Settings
from dpviz.datasets.table import Table
from dpviz.mechanisms import ALL, Mechanism, all_mechanisms, parse_variant
from dpviz.preparation.steps import PrivateSteps, private_steps
from dpviz.simulation.cells import (
    PrivateDraws,
    Skipped,
    account_of,
    part_of,
    private_draws,
    why_not,
)
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell, Named, simulate, simulate_tables
from dpviz.simulation.store import own_code, source_digest
from dpviz.simulation.tasks.learners import (
    CLASSIFICATION,
    CLUSTERING,
    REGRESSION,
    Labels,
    Learner,
    Parameters,
)
from dpviz.simulation.tasks.parts import (
    Projecting,
    Releasing,
    Sides,
    canonical,
    projecting,
    releasing,
    sides,
)
from dpviz.simulation.tasks.scores import Labelled, score_guess, score_learned
from dpviz.simulation.tasks.task import FIXED, LEAST_ROWS, PROJECTION, Task, learner_for

CLEAN, CHANCE = "without privacy", "random subspace"

_CHUNK = 5  # Each part of the work has this many rounds and takes tenths of a second.
_RARE = 5  # A class with fewer rows may be missing after a split of the rows.


@dataclass(frozen=True)
class TaskPart:
    """A few rounds of one mechanism at one epsilon, or of a floor (a reference without epsilon).

    Attributes
    ----------
    name : str
        Text of the variant, or the floor's name.
    epsilon : float or None
        Epsilon; None for a floor.
    trials : range
        Trial numbers; each trial is one release (or one random subspace) on one split.
    """

    name: str
    epsilon: float | None
    trials: range

    @property
    def floor(self) -> bool:
        """Whether the part is a floor."""
        return self.epsilon is None


@dataclass(frozen=True, eq=False)
class TaskPlan:
    """The plan of a task on one table, with the data of its splits, prepared on request.

    Attributes
    ----------
    table : Table
    settings : Settings
        Settings, of which preparation, delta, k, relation, allocation, trials and seed are used.
    task : Task
    learner : Learner
    epsilons : tuple of float
    mechanisms : tuple of Mechanism
        Mechanisms that can run at some epsilon.
    parts : tuple of TaskPart
        Parts in the order that fills a chart best.
    skipped : tuple of Skipped
    """

    table: Table
    settings: Settings
    task: Task
    learner: Learner
    epsilons: tuple[float, ...]
    mechanisms: tuple[Mechanism, ...] = ()
    parts: tuple[TaskPart, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    _splits: dict[int, Projecting | Releasing] = field(default_factory=dict)
    _verdicts: dict[tuple[Mechanism, float], Verdict] = field(default_factory=dict)

    @cached_property
    def private(self) -> PrivateSteps | None:
        """Private preparation steps; for a data release, the steps for the features."""
        steps = private_steps(self.settings)
        data = self.data(0) if steps is not None else None
        if steps is not None and isinstance(data, Releasing):
            return replace(steps, features=data.d)
        return steps

    @property
    def splits(self) -> range:
        """Numbers of the splits in use, at most the number of trials."""
        return range(min(self.task.splits, self.settings.trials))

    @cached_property
    def _canonical(self) -> tuple[Labels, float]:
        assert self.table.labels is not None
        return canonical(self.table.labels, self.learner)

    @property
    def labels(self) -> Labels:
        """Labels in the form that learners use."""
        return self._canonical[0]

    @property
    def unit(self) -> float:
        """Standard deviation of a numeric label, in its own units; 1 for other labels."""
        return self._canonical[1]

    @cached_property
    def sides(self) -> tuple[Sides, ...]:
        """Row numbers of each split in use."""
        n, seed = len(self.table.rows), self.settings.seed
        most = self.learner.most
        return tuple(sides(self.task, n, seed, number, most) for number in self.splits)

    @property
    def shown_epsilon(self) -> float:
        """The task's epsilon that is nearest to the setting's."""
        at = math.log(self.settings.epsilon)
        return min(self.epsilons, key=lambda epsilon: abs(math.log(epsilon) - at))

    def data(self, number: int) -> Projecting | Releasing:
        """Return the data of one split."""
        if number not in self._splits:
            arguments = (self.table, self.labels, self.sides[number], self.settings)
            if self.task.source == PROJECTION:
                self._splits[number] = projecting(*arguments)
            else:
                limits = self._label_bounds()
                self._splits[number] = releasing(*arguments, self.learner, limits)
        return self._splits[number]

    def _label_bounds(self) -> tuple[float, float] | None:
        """Return the bounds of a numeric label, if a file gave them."""
        bounds = self.settings.bounds
        pairs = bounds.pairs if isinstance(bounds, FeatureBounds) else {}
        pair = pairs.get(self.table.label_name or "")
        return None if pair is None else (pair[0] / self.unit, pair[1] / self.unit)

    def problem_and_budget(self, number: int, epsilon: float) -> tuple[Problem, Budget]:
        """Return the problem and budget of one split."""
        table = self.data(number).measured
        setting = replace(self.settings, epsilon=epsilon)
        return table.problem(setting), table.budget(setting)

    def verdict(self, mechanism: Mechanism, epsilon: float) -> Verdict:
        """Return the verdict on a mechanism's claim in the first split."""
        place = (mechanism, epsilon)
        if place not in self._verdicts:
            account = account_of(mechanism, *self.problem_and_budget(0, epsilon), self.private)
            self._verdicts[place] = account.status.verdict
        return self._verdicts[place]

    def why_not(self, mechanism: Mechanism, epsilon: float) -> str | None:
        """Return why a mechanism cannot run in this task, or None."""
        if self.task.source != PROJECTION and mechanism.why_no_rows is not None:
            return mechanism.why_no_rows
        for number in self.splits:
            problem, budget = self.problem_and_budget(number, epsilon)
            reason = why_not(mechanism, problem, budget, self.private)
            if reason is not None:
                return reason
        return None

    def _parameters(self, data: Projecting | Releasing) -> Parameters | None:
        """Return fixed parameters of the estimator, or None for cross-validation."""
        if self.learner.kind == CLUSTERING:
            return {"n_clusters": int(self.labels.max()) + 1}
        if self.task.tuning != FIXED:
            return None
        return self.learner.fixed(data.d if isinstance(data, Releasing) else self.settings.k)

    # Facts shown to the reader -------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of rows for the release, for training and for testing."""
        first = self.sides[0]
        return len(first.private), len(first.train), len(first.test)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on changes to the table."""
        n, sentences = len(self.table.rows), list(self.data(0).measured.notes)
        share = self.task.shares
        for name, part, size in (
            ("training", share[-2], self.sizes[1]),
            ("test", share[-1], self.sizes[2]),
        ):
            if round(part * n) > size + 1:
                sentences.append(f"Of about {round(part * n):,} {name} rows, {size:,} are used.")
        if self.learner.kind == REGRESSION:
            sentences.append(
                "Errors are in units of the label's standard deviation over the table."
            )
        return (*sentences, *self._class_notes())

    def _class_notes(self) -> Iterator[str]:
        """Yield sentences on how rare classes affect the scores."""
        if self.learner.kind == REGRESSION:
            return
        counts = np.bincount(self.labels)
        missing = sum(
            len(np.unique(self.labels[chosen.train])) < len(counts) for chosen in self.sides
        )
        if self.learner.kind == CLASSIFICATION and missing:
            yield (
                f"In {missing} of {len(self.sides)} splits a class has no training row. Its "
                "test rows cannot be predicted and count as errors."
            )
        rare = int((counts < _RARE).sum())
        if rare:
            verb = "class has" if rare == 1 else "classes have"
            yield f"{rare} of {len(counts)} {verb} fewer than {_RARE} rows."

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """Quantities taken from the data without protection."""
        assumptions = list(self.data(0).measured.assumed_public)
        if self.task.source != PROJECTION and self.learner.kind == REGRESSION:
            if self._label_bounds() is None:
                assumptions.append("the smallest and the largest training label")
        elif self.learner.kind != REGRESSION:
            assumptions.append("which classes there are")
        facts = (item for mechanism in self.mechanisms for item in mechanism.assumed_public)
        return (*assumptions, *facts)

    # Running the parts ---------------------------------------------------------------------

    def run(self, part: TaskPart, tick: Callable[[], object] | None = None) -> FloatArray:
        """Return the score of each trial of a part.

        Parameters
        ----------
        part : TaskPart
        tick : callable, optional
            A function called before each fit, so that long work can be stopped.
        """
        scores = np.empty(len(part.trials))
        count = self.task.splits
        # Run all trials of a split together, because they share its preparation and its parameters.
        for number in dict.fromkeys(trial % count for trial in part.trials):
            mine = [index for index, trial in enumerate(part.trials) if trial % count == number]
            trials = range(part.trials[mine[0]], part.trials[mine[-1]] + 1, count)
            scores[mine] = self._run(part, number, trials, tick)
        return scores

    def _run(
        self, part: TaskPart, number: int, trials: range, tick: Callable[[], object] | None
    ) -> FloatArray:
        """Return the scores of trials that share a split."""
        data, seed = self.data(number), self.settings.seed
        if part.name == self.learner.score.chance:
            return np.full(len(trials), score_guess(self.learner.key, data.train, data.test))
        parameters = self._parameters(data)
        if isinstance(data, Projecting):
            rounds = self._projected(part, data, trials)
        else:
            rounds = self._released(part, data, trials)
        scores = [
            score_learned(self.learner, train, test, seed, number, parameters, tick)
            for number, (train, test) in zip(trials, rounds, strict=True)
        ]
        return np.array(scores)

    def drawn(self, part: TaskPart) -> Mechanism:
        """Return the caller's mechanism object for a part."""
        return next(one for one in self.mechanisms if one.text == part.name)

    def _projected(
        self, part: TaskPart, data: Projecting, trials: range
    ) -> Iterator[tuple[Labelled, Labelled]]:
        """Yield projected training and test rows of each trial."""
        frames, private = self._frames(part, data, trials)
        for index, frame in enumerate(frames):
            train, test = data.train, data.test
            if private is not None:
                train, test = data.prepared(self.table, private.transform(index, data.transform))
            yield train.projected(frame), test.projected(frame)

    def _frames(
        self, part: TaskPart, data: Projecting, trials: range
    ) -> tuple[FloatArray, PrivateDraws | None]:
        """Return each trial's components, shape (trials, d, k), and any private preparation."""
        table, k, seed = data.measured, self.settings.k, self.settings.seed
        if part.name == CLEAN:
            frames = table.reference.eigenvectors[:, :k][None]
            return np.broadcast_to(frames, (len(trials), table.d, k)), None
        if part.name == CHANCE:
            # Columns of normal numbers span a uniformly random subspace.
            normal = Draws.trials(seed, "task random subspace", trials).normal(table.d, k)
            with one_blas_thread():
                return np.linalg.qr(normal)[0], None
        cell = self._cell(part, trials)
        source = data.with_rows(self.table) if cell.mechanism.needs_rows else table
        if self.private is None and self.settings.post == FREE:
            return run_cell(replace(cell, free=True), source, ()).components, None
        part_draws = part_of(cell, source)
        (frames,) = simulate([part_draws], lambda _, release: release.components)
        return frames, part_draws.private

    def _released(
        self, part: TaskPart, data: Releasing, trials: range
    ) -> Iterator[tuple[Labelled, Labelled]]:
        """Yield released training rows and clean test rows of each trial, one at a time."""
        if part.name == CLEAN:
            yield from itertools.repeat((data.train, data.test), len(trials))
            return
        cell = self._cell(part, trials)
        streams = Named(cell.seed, cell.mechanism.key, trials)
        private = None if self.private is None else private_draws(cell, data.measured)
        if private is None:
            calibration = cell.mechanism.calibrate(cell.problem, cell.budget)
        else:
            calibration = private.calibration

        def rows(index: int) -> FloatArray:
            if private is not None:
                return data.beside(private.rows(index))
            values = data.measured.moment_with_rows.rows
            assert values is not None
            return values

        tables = simulate_tables(cell.mechanism, calibration, rows, streams)
        for index, values in enumerate(tables):
            test = data.test
            if private is not None:
                test = data.prepared_test(self.table, private.transform(index, data.transform))
            yield data.read(values), test

    def _cell(self, part: TaskPart, trials: range) -> Cell:
        mechanism = self.drawn(part)
        assert part.epsilon is not None
        problem, budget = self.problem_and_budget(trials[0] % self.task.splits, part.epsilon)
        return Cell(mechanism, problem, budget, self.settings.seed, trials, self.private)

    # Keys of stored scores -----------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """Digest of everything a score depends on, except its part."""
        digest = hashlib.blake2b(digest_size=16)
        table, labels = self.table, self.table.labels
        assert labels is not None
        # Leave out settings that choose parts of the work, and table names: they change no score.
        settings = replace(
            self.settings, table="", label=None, mechanisms=(), trials=1, epsilon=1.0
        )
        task = replace(self.task, epsilons="1", learner=self.learner.key)
        facts = (
            source_digest(), settings, task, table.columns,
            table.label_name, labels.dtype.str, labels.tolist(),
            None if table.bounds is None else table.bounds.tolist(),
        )  # fmt: skip
        digest.update(repr(facts).encode())
        digest.update(np.ascontiguousarray(table.rows).tobytes())
        return digest.hexdigest()

    def key(self, part: TaskPart) -> str:
        """Return a part's key in a store: a digest of everything its scores depend on."""
        code = "" if part.floor else own_code(self.drawn(part))
        facts = "\x1f".join([self.digest, part.name, code, repr(part.epsilon), repr(part.trials)])
        return hashlib.blake2b(facts.encode(), digest_size=20).hexdigest()


def plan_task(
    table: Table,
    settings: Settings,
    task: Task,
    epsilons: Sequence[float] | None = None,
    mechanisms: Sequence[Mechanism] = (),
    *,
    strict: bool = False,
) -> TaskPlan:
    """Plan a task.

    Parameters
    ----------
    table : Table
        Table with labels.
    settings : Settings
        ``trials`` is the number of rounds, each one release on one split.
    task : Task
    epsilons : sequence of float, optional
        Epsilons; the task's own if not given.
    mechanisms : sequence of Mechanism
        Mechanisms without a claim are left out, because the floors cover them.
    strict : bool
        Whether a variant named in the settings that can run at no epsilon is an error.

    Raises
    ------
    InvalidTable
        If the table has no label, or too few rows.
    InvalidSetting
        If the learner does not suit the label, or a setting does not suit the table.
    CannotRun
        If ``strict`` and a named variant can run at no epsilon.
    """
    learner = learner_for(task, table.labels)
    values = task.values if epsilons is None else tuple(float(value) for value in epsilons)
    start = TaskPlan(table, settings, task, learner, values)
    _check_rows(start)
    choices = {parse_variant(text) for text in settings.mechanisms if text != ALL}
    places: list[tuple[Mechanism, float]] = []
    skips = []
    for mechanism in mechanisms:
        if mechanism.info.guarantee == "none":
            skips.append(Skipped(mechanism.text, "it is drawn as a floor"))
            continue
        reasons = {epsilon: start.why_not(mechanism, epsilon) for epsilon in values}
        able = [(mechanism, epsilon) for epsilon in values if reasons[epsilon] is None]
        refusals = [reason for reason in reasons.values() if reason is not None]
        if strict and not able and mechanism in choices:
            raise CannotRun(mechanism.text, refusals[0])
        if refusals:
            skips.append(Skipped(mechanism.text, refusals[0]))
        places += able
    return replace(
        start,
        mechanisms=tuple(dict.fromkeys(mechanism for mechanism, _ in places)),
        parts=tuple(_parts(start, places)),
        skipped=tuple(skips),
    )


def releasing_rows() -> list[Mechanism]:
    """Return every mechanism that releases rows to learn from."""
    mechanisms = (cls() for cls in all_mechanisms().values())
    return [mechanism for mechanism in mechanisms if mechanism.why_no_rows is None]


def _check_rows(plan: TaskPlan) -> None:
    """Raise InvalidTable if there are too few rows to split."""
    name, n = plan.table.name, len(plan.table.rows)
    if n < LEAST_ROWS:
        raise InvalidTable(f"A task needs at least {LEAST_ROWS} labelled rows; {name} has {n}.")
    private, train, test = plan.sizes
    least = int(plan.labels.max()) + 1 if plan.learner.kind == CLUSTERING else 2
    if min(private, train) < least or test < 2:
        raise InvalidTable(
            f"A task needs at least {least} rows to learn from and 2 to test on; these shares "
            f"leave {train} and {test} of the {n} rows of {name}."
        )


def _parts(plan: TaskPlan, places: Sequence[tuple[Mechanism, float]]) -> Iterator[TaskPart]:
    """Yield parts, first one round at each epsilon: the setting's, the ends, then the middles."""
    spread = dict.fromkeys([plan.shown_epsilon, *_spread(plan.epsilons)])
    order = {value: place for place, value in enumerate(spread)}
    in_order = sorted(places, key=lambda place: order[place[1]])
    trials, step = plan.settings.trials, max(plan.task.splits, _CHUNK)
    ends = sorted({0, 1, *range(step, trials, step), trials})
    once = min(trials, plan.task.splits)  # Results without randomness recur on each split.
    for start, stop in itertools.pairwise(ends):
        for floor in (CLEAN, plan.learner.score.chance):
            if start < once:
                yield TaskPart(floor, None, range(start, min(stop, once)))
        if plan.task.source == PROJECTION:
            yield TaskPart(CHANCE, None, range(start, stop))
        for mechanism, epsilon in in_order:
            yield TaskPart(mechanism.text, epsilon, range(start, stop))


def _spread(values: Sequence[float]) -> list[float]:
    """Order values so that the first few already span the range: the ends, then middles."""
    order: list[float] = []
    gaps = [(0, len(values) - 1)]
    places = {0, len(values) - 1}
    order += [values[index] for index in sorted(places)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if middle in places:
            continue
        places.add(middle)
        order.append(values[middle])
        gaps += [(low, middle), (middle, high)]
    return order
