"""What mechanisms aim at, and how far that leads: the recovery that no epsilon lifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpviz.cli import main
from dpviz.core import moments
from dpviz.core.by_length import GRID, InBlocks
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Aim
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import adaptive_clip_gaussian, all_mechanisms, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.report.tables.scrub import compute
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import bias_of, compare, run_cell
from dpviz.simulation.simulate import Cell

VARIANTS = [*(cls() for cls in all_mechanisms().values()), parse_variant("ppca[rows=unit]")]
LOUD = Settings(table="made", epsilon=1e6, delta=1e-6, k=1, trials=8)


def minority(row_bound: str = "max") -> Prepared:
    """A table where one row in twenty is twelve times as long and points another way."""
    rng = generator(0, "aims")
    rows = rng.standard_normal((2_000, 5)) * [1.0, 0.5, 0.5, 0.5, 0.5]
    rows[::20] = rng.standard_normal((100, 5)) * [0.1, 12.0, 0.1, 0.1, 0.1]
    table = Table("made", rows, tuple("abcde"))
    return prepare(table, Settings(row_bound=row_bound))


def cell_of(prepared: Prepared, mechanism: Mechanism, epsilon: float | None = None) -> Cell | None:
    settings = LOUD if epsilon is None else Settings(epsilon=epsilon, delta=1e-6, k=1, trials=8)
    found = cell_at(prepared, settings, mechanism, range(8))
    return found if isinstance(found, Cell) else None


@pytest.mark.parametrize("mechanism", VARIANTS, ids=lambda m: m.text)
def test_every_mechanism_says_what_it_aims_at(mechanism: Mechanism) -> None:
    prepared = minority()
    problem = Problem(2_000, 5, 1, Relation.ZERO_OUT, Domain.ball(5))
    for epsilon in (0.1, 0.5):
        aim = mechanism.aims_at(problem, Budget(epsilon, 1e-6))
        if mechanism.why_not(problem, Budget(epsilon, 1e-6)) is not None:
            continue
        target = mechanism.target(prepared.moment_with_rows, problem, Budget(epsilon, 1e-6))
        assert (target is None) == (aim is Aim.NOTHING)
        if target is not None:
            assert target.d == 5
            np.testing.assert_array_equal(target.A, target.A.T)


# Those whose noise does not vanish at epsilon 1e6, or that stop after a few steps.
UNFINISHED = {"mvg", "mvg_data", "jl_transform", "sulq", "noisy_power", "oja", "random_projection"}


@pytest.mark.parametrize("mechanism", VARIANTS, ids=lambda m: m.text)
def test_a_huge_epsilon_reaches_the_bias_and_no_more(mechanism: Mechanism) -> None:
    prepared = minority()
    cell = cell_of(prepared, mechanism)
    if cell is None or mechanism.key in UNFINISHED:
        return
    result = run_cell(cell, prepared)
    assert result.bias is not None
    assert result.metrics["recovery"].mean() == pytest.approx(result.bias, abs=0.01)


def test_directions_lead_elsewhere_on_a_minority_table() -> None:
    """The exact figure, by hand: the share of A along the first component of directions."""
    prepared = minority()
    rows = prepared.moment_with_rows.rows
    assert rows is not None
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    first = np.linalg.eigh(unit.T @ unit)[1][:, -1]
    A = rows.T @ rows / len(rows)
    values = np.linalg.eigvalsh(A)
    chance = values.mean() / values[-1]
    expected = (first @ A @ first / values[-1] - chance) / (1 - chance)
    assert expected < 0.2
    for key in ("spherical", "spherical_wishart_difference", "ppca[rows=unit]"):
        for epsilon in (0.3, 3.0):
            cell = cell_of(prepared, parse_variant(key), epsilon)
            assert cell is not None
            assert bias_of(cell, prepared) == pytest.approx(expected, abs=1e-9)
    cell = cell_of(prepared, parse_variant("gaussian"))
    assert cell is not None
    assert bias_of(cell, prepared) == 1


def test_the_clipped_ones_turn_from_directions_to_all_of_it() -> None:
    prepared = minority()
    for key in ("clipped_gaussian", "clipped_pure"):
        mechanism = parse_variant(key)
        found = []
        for epsilon in (0.01, 1.0, 1e6):
            cell = cell_of(prepared, mechanism, epsilon)
            assert cell is not None
            aim = mechanism.aims_at(cell.problem, cell.budget)
            found.append((aim, bias_of(cell, prepared)))
        aims = [aim for aim, _ in found]
        low, _, high = (bias for _, bias in found)
        assert aims == [Aim.DIRECTIONS, Aim.CLIPPED, Aim.CLIPPED]
        assert low is not None
        assert low < 0.2
        assert high == pytest.approx(1, abs=1e-9)


def test_a_row_bound_that_shortens_rows_is_a_bias_of_every_mechanism() -> None:
    prepared = minority("quantile:0.5")
    cell = cell_of(prepared, parse_variant("gaussian"))
    assert cell is not None
    result = run_cell(cell, prepared)
    assert result.bias is not None
    assert result.bias < 0.9
    assert result.hint is not None
    assert result.hint.startswith("aims at rows within their bound: at best ")
    assert result.hint.endswith("\N{NO-BREAK SPACE}% here")


def test_it_is_said_in_json_tables_and_on_the_board(
    capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    prepared = minority()
    settings = Settings(
        table="made", epsilon=1.0, delta=1e-6, k=1, trials=3,
        mechanisms=("spherical", "gaussian", "random_projection"),
    )  # fmt: skip
    found = compare(prepared, settings)
    rows = {row["mechanism"]: row for row in found.to_json()["results"]}
    assert rows["spherical"]["aims_at"] == "the directions of rows"
    assert rows["spherical"]["bias"] < 0.2
    assert (rows["gaussian"]["aims_at"], rows["gaussian"]["bias"]) == ("components of A", 1)
    assert (rows["random_projection"]["aims_at"], rows["random_projection"]["bias"]) == (
        "nothing", None,
    )  # fmt: skip
    table = found.summary_table().set_index("mechanism")
    assert table.loc["spherical", "bias"] == rows["spherical"]["bias"]
    cells = compute(prepared, settings, 1.0)["cells"]
    best = f"at best {percent(max(rows['spherical']['bias'], 0))} here"
    texts = cells["spherical"]["texts"]
    assert texts["said"].endswith(f"; {best}")
    assert texts["aim"] == f"aims at the directions of rows: {best}"
    assert cells["gaussian"]["texts"]["aim"] == ""
    assert "at best" not in cells["gaussian"]["texts"]["said"]
    assert main(["compare", "iris", "--trials", "2", "--row-bound", "quantile:0.2"]) == 0
    said = capsys.readouterr().out
    assert "aims at" not in said or "at best" in said


@pytest.mark.parametrize(
    ("key", "most"),
    [
        # the mean over unit rows, once for all epsilons, chunks and the bias
        ("spherical", 1),
        ("spherical_wishart_difference", 1),
        ("spherical_knorm", 1),
        ("ppca[rows=unit]", 1),
        ("funnel", 1),
        ("pure_funnel", 1),
        # lengths once, then each radius that a draw or the bias asks for
        ("clipped_gaussian", 1 + 12),
        ("clipped_pure", 1 + 12),
    ],
)
def test_rows_are_passed_once_for_what_they_say_once(
    key: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, mechanism = minority(), parse_variant(key)
    asked: list[object] = []
    fold = InBlocks.fold

    def counted(self: InBlocks, new: Callable[[], Any]) -> Any:
        found = fold(self, new)
        if self._rows is prepared.table.rows:  # and not rows inside what a funnel found
            asked.append(getattr(found, "radius", "lengths"))
        return found

    monkeypatch.setattr(InBlocks, "fold", counted)
    for epsilon in (0.1, 1.0, 1e6):
        settings = Settings(epsilon=epsilon, delta=1e-6, k=1)
        for trials in (range(4), range(4, 8)):
            cell = cell_at(prepared, settings, mechanism, trials)
            assert isinstance(cell, Cell)
            run_cell(cell, prepared)
    assert len(asked) == len(set(asked))
    assert 1 <= len(asked) <= most


def test_few_matrices_of_shortened_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as fit; the one asked for longest ago goes first, and comes back with its bytes."""
    monkeypatch.setattr(moments, "_KEPT_ENTRIES", 3 * 5 * 5)
    data = minority().moment_with_rows
    radii = [None, *(float(radius) for radius in GRID[200:204])]
    first = [data.shortened(radius).A.copy() for radius in radii]
    assert data.shortened(radii[-1]) is data.shortened(radii[-1])
    assert len(data._shortened) == 3
    for radius, matrix in zip(radii, first, strict=True):
        np.testing.assert_array_equal(data.shortened(radius).A, matrix)
        np.testing.assert_array_equal(data.lengths.moment(radius), matrix)
        assert not data.shortened(radius).A.flags.writeable


def test_adaptive_clipping_bounds_the_rows_once_for_each_radius(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared, mechanism = minority(), parse_variant("adaptive_clip_gaussian")
    asked: list[float] = []
    clipped = adaptive_clip_gaussian.clipped_moment

    def counted(data: SecondMoment, lengths: Any, radius: float) -> Any:
        asked.append(radius)
        return clipped(data, lengths, radius)

    monkeypatch.setattr(adaptive_clip_gaussian, "clipped_moment", counted)
    for trials in (range(4), range(4, 8)):
        cell = cell_at(prepared, LOUD, mechanism, trials)
        assert isinstance(cell, Cell)
        run_cell(cell, prepared)
    assert len(asked) == len(set(asked))
