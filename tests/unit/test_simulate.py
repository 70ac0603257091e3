"""One simulation: mechanisms read data only there, and blocks give the same results as one run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dpviz
from dpviz.core.files import PACKAGE, app_path
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import (
    Release,
)
from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.simulation import simulate as simulation
from dpviz.simulation.simulate import Batch, Named, Trials, simulate

MEETING = {"release_many", "release_rows", "release_scaled"}
MECHANISMS = PACKAGE / "mechanisms"


def meeting(path: Path) -> set[str]:
    """Return the release-sampling methods that a file names in code, not only in comments."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in MEETING):  # Skip files that need no slow parsing.
        return set()
    tree = ast.parse(text)
    return {
        node.attr if isinstance(node, ast.Attribute) else node.value
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in MEETING)
        or (isinstance(node, ast.Constant) and node.value in MEETING)  # This finds getattr calls.
    }


def drawing(folder: Path) -> Iterator[Path]:
    """Yield the files outside the mechanisms that sample a release themselves."""
    for path in sorted(folder.rglob("*.py")):
        if not path.is_relative_to(MECHANISMS) and meeting(path):
            yield path


@pytest.mark.slow
def test_mechanisms_meet_data_in_one_file() -> None:
    # Only the checks of an author's own mechanism may call this method, because they test it.
    assert list(drawing(PACKAGE)) == [PACKAGE / "extend" / "checks.py", Path(simulation.__file__)]
    assert list(drawing(app_path().parent / "pages")) == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("found = mechanism.release_many(data, calibration, draws)", True),
        ("draw = partial(cell.mechanism.release_rows, rows)", True),
        ("draw = getattr(mechanism, 'release_scaled')", True),
        ("'''Says what `release_many` does.'''\nfound = simulate(cells, keep)", False),
    ],
)
def test_a_second_place_would_be_seen(tmp_path: Path, source: str, seen: bool) -> None:
    (tmp_path / "planted.py").write_text(source, encoding="utf-8")
    assert bool(list(drawing(tmp_path))) is seen


D, N = 4, 50


def trials(text: str, streams: Named | Batch, most: int | None = None) -> Trials:
    """Return repetitions of a variant on a small table."""
    mechanism = parse_variant(text)
    problem = Problem(N, D, 2, Relation.REPLACE, Domain.ball(D))
    rows = generator(0, "small").standard_normal((N, D))
    rows /= np.linalg.norm(rows, axis=1).max()
    data = SecondMoment(rows.T @ rows / N, N, rows)
    calibration = mechanism.calibrate(problem, Budget(1.0, 1e-6))
    return Trials(mechanism, calibration, data, streams, most)


def components(_: Trials, release: Release) -> np.ndarray:
    """Return the components of each repetition."""
    return release.components


@pytest.mark.parametrize("text", ["gaussian", "ppca", "wishart_exact", "data_laplace"])
def test_blocks_of_named_trials_join_without_a_seam(text: str) -> None:
    whole = list(simulate([trials(text, Named(3, text, range(2, 9)))], components))
    parts = list(simulate([trials(text, Named(3, text, range(2, 9)), 3)], components))
    assert [len(part) for part in parts] == [3, 3, 1]
    assert np.concatenate(parts).tobytes() == whole[0].tobytes()
    other = list(simulate([trials(text, Named(3, text, range(1, 8)), 3)], components))
    assert np.concatenate(other).tobytes() != whole[0].tobytes()


def test_what_a_block_raises_ends_the_work() -> None:
    sizes: list[int] = []

    def stop() -> None:
        if len(sizes) == 2:
            raise KeyboardInterrupt

    def keep(_: Trials, release: Release) -> None:
        sizes.append(len(release.components))

    with pytest.raises(KeyboardInterrupt):
        list(simulate([trials("gaussian", Named(0, "gaussian", range(9)), 4)], keep, stop))
    assert sizes == [4, 4]


def test_trials_may_each_see_their_own() -> None:
    cell = trials("gaussian", Named(0, "gaussian", range(3)))
    assert isinstance(cell.sees, SecondMoment)
    moments = [SecondMoment(cell.sees.A * factor, N) for factor in (1.0, 0.5, 0.1)]
    task = Trials(cell.mechanism, cell.calibration, moments.__getitem__, cell.streams)
    (raw,) = simulate([task], lambda _, release: release.raw)
    for place, moment in enumerate(moments):
        alone = Named(0, "gaussian", range(place, place + 1))
        one = Trials(cell.mechanism, cell.calibration, moment, alone)
        (expected,) = simulate([one], lambda _, release: release.raw)
        assert raw[place].tobytes() == expected[0].tobytes()


def test_the_noise_of_a_release_is_not_kept() -> None:
    """Exploring reuses stored noise for other epsilons; a release never does."""
    simulation._standard_noise.cache_clear()
    X = generator(0, "fit").uniform(-1, 1, (60, 3))
    dpviz.PrivatePCA(
        1, epsilon=1.0, delta=1e-6, mechanism="gaussian", bounds=(-1, 1), row_bound=2.0
    ).fit(X)
    assert simulation._standard_noise.cache_info().currsize == 0
    dpviz.compare("iris", mechanisms="gaussian", trials=2)
    assert simulation._standard_noise.cache_info().currsize > 0
