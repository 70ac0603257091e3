"""What mechanisms aim at, and how far that leads: the recovery that no epsilon lifts."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Aim
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._base import Mechanism
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import bias_of, run_cell
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
