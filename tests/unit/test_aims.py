"""The targets of mechanisms, and their bias: the recovery that no epsilon exceeds."""

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
    """A table in which one row in twenty is twelve times as long and has another direction."""
    rng = generator(0, "aims")
    rows = rng.standard_normal((2_000, 5)) * [1.0, 0.5, 0.5, 0.5, 0.5]
    rows[::20] = rng.standard_normal((100, 5)) * [0.1, 12.0, 0.1, 0.1, 0.1]
    table = Table("made", rows, tuple("abcde"))
    return prepare(table, Settings(row_bound=row_bound))


def cell_of(prepared: Prepared, mechanism: Mechanism, epsilon: float | None = None) -> Cell | None:
    settings = LOUD if epsilon is None else Settings(epsilon=epsilon, delta=1e-6, k=1, trials=8)
    cell = cell_at(prepared, settings, mechanism, range(8))
    return cell if isinstance(cell, Cell) else None


@pytest.mark.parametrize("mechanism", VARIANTS, ids=lambda m: m.text)
def test_every_mechanism_says_what_it_aims_at(mechanism: Mechanism) -> None:
    table = minority()
    problem = Problem(2_000, 5, 1, Relation.ZERO_OUT, Domain.ball(5))
    for epsilon in (0.1, 0.5):
        aim = mechanism.aims_at(problem, Budget(epsilon, 1e-6))
        if mechanism.why_not(problem, Budget(epsilon, 1e-6)) is not None:
            continue
        target = mechanism.target(table.moment_with_rows, problem, Budget(epsilon, 1e-6))
        assert (target is None) == (aim is Aim.NOTHING)
        if target is not None:
            assert target.d == 5
            np.testing.assert_array_equal(target.A, target.A.T)


# These mechanisms do not converge to PCA at epsilon 1e6: noise remains, or they stop early.
UNFINISHED = {"mvg", "mvg_data", "jl_transform", "sulq", "noisy_power", "oja", "random_projection"}


@pytest.mark.parametrize("mechanism", VARIANTS, ids=lambda m: m.text)
def test_a_huge_epsilon_reaches_the_bias_and_no_more(mechanism: Mechanism) -> None:
    table = minority()
    cell = cell_of(table, mechanism)
    if cell is None or mechanism.key in UNFINISHED:
        return
    result = run_cell(cell, table)
    assert result.bias is not None
    assert result.metrics["recovery"].mean() == pytest.approx(result.bias, abs=0.01)


def test_directions_lead_elsewhere_on_a_minority_table() -> None:
    """The bias is the share of A along the first component of the row directions."""
    table = minority()
    rows = table.moment_with_rows.rows
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
            cell = cell_of(table, parse_variant(key), epsilon)
            assert cell is not None
            assert bias_of(cell, table) == pytest.approx(expected, abs=1e-9)
    cell = cell_of(table, parse_variant("gaussian"))
    assert cell is not None
    assert bias_of(cell, table) == 1


def test_the_clipped_ones_turn_from_directions_to_all_of_it() -> None:
    table = minority()
    for key in ("clipped_gaussian", "clipped_pure"):
        mechanism = parse_variant(key)
        biases = []
        for epsilon in (0.01, 1.0, 1e6):
            cell = cell_of(table, mechanism, epsilon)
            assert cell is not None
            aim = mechanism.aims_at(cell.problem, cell.budget)
            biases.append((aim, bias_of(cell, table)))
        aims = [aim for aim, _ in biases]
        low, _, high = (bias for _, bias in biases)
        assert aims == [Aim.DIRECTIONS, Aim.CLIPPED, Aim.CLIPPED]
        assert low is not None
        assert low < 0.2
        assert high == pytest.approx(1, abs=1e-9)


def test_a_row_bound_that_shortens_rows_is_a_bias_of_every_mechanism() -> None:
    table = minority("quantile:0.5")
    cell = cell_of(table, parse_variant("gaussian"))
    assert cell is not None
    result = run_cell(cell, table)
    assert result.bias is not None
    assert result.bias < 0.9
    assert result.hint is not None
    assert result.hint.startswith("aims at rows within their bound: at best ")
    assert result.hint.endswith("\N{NO-BREAK SPACE}% here")
