"""The second moment of released rows has the law of the release sampled from X'X alone.

If both routes sample equal noise, as with Laplace, the moments agree to rounding instead.

Every tolerance is 6.1 standard errors, which is one false alarm in 1e9 per figure. Each comparison
has a control, noise 5 % too large, that must fail.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpviz.core.allocation import Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant

Z = 6.1
ALARM = 1e-9
BUDGET = Budget(1.0, 1e-4)
D, SIZE = 4, 40_000
SHARES = Allocation("custom", theta=(0.5, 0.3, 0.15, 0.05))
BOUGHT = Allocation("custom", "private", theta=(0.5, 0.3, 0.15, 0.05), share=0.3)
RELEASING = [key for key, cls in all_mechanisms().items() if cls().why_no_rows is None]


def moment(n: int) -> tuple[FloatArray, SecondMoment]:
    rng = generator(3, "released rows", n)
    rows = rng.uniform(-1, 1, (n, D)) * np.linspace(1, 0.3, D)
    rows = rows @ np.linalg.qr(rng.standard_normal((D, D)))[0] / D
    A = rows.T @ rows / n
    return rows, SecondMoment((A + A.T) / 2, n, rows)


def gram(tables: FloatArray) -> FloatArray:
    return tables.transpose(0, 2, 1) @ tables / tables.shape[1]


def drawn(
    mechanism: Mechanism, calibration: Calibration, n: int, size: int = SIZE
) -> tuple[FloatArray, FloatArray]:
    """Return the moments that `release_many` and `release_rows` publish."""
    rows, data = moment(n)
    released_rows = mechanism.release_many(
        data, calibration, Draws.batch(generator(5, mechanism.key, "many"), size)
    )
    tables = mechanism.release_rows(
        rows, calibration, Draws.batch(generator(5, mechanism.key, "rows"), size)
    )
    assert tables is not None
    assert tables.shape == (size, n, D)
    return released_rows.raw, gram(tables)


def close(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two samples' means agree, by their own standard errors.

    Here an estimated standard error is off by about a per cent, so allow a factor of 1.1.
    """
    spread = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
    return bool(np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) <= 1.1 * Z * spread))


def test_some_mechanisms_release_rows() -> None:
    assert {"data_gaussian", "data_laplace", "mvg_data", "laplace_output"} == set(RELEASING)


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize(
    ("text", "allocation"),
    [
        ("data_gaussian", None),
        ("mvg_data[tail=tight]", SHARES),
        ("mvg_data[tail=tight]", replace(SHARES, directions="true")),
        ("mvg_data[tail=tight]", BOUGHT),
    ],
)
def test_moments_of_released_rows_follow_the_law_of_the_release(
    text: str, allocation: Allocation | None, n: int
) -> None:
    mechanism = parse_variant(text)
    problem = Problem(n, D, 2, Relation.REPLACE, Domain.ball(D))
    if allocation is not None:
        problem = replace(problem, allocation=allocation)
    calibration = mechanism.calibrate(problem, BUDGET)
    many, rows = drawn(mechanism, calibration, n)
    # Choose units in which the noise is about 1; otherwise its square is tiny.
    unit = np.sqrt((many**2).mean())
    many, rows = many / unit, rows / unit
    assert close(many, rows)
    assert close(many**2, rows**2)
    for measure in (
        lambda m: np.linalg.eigvalsh(m)[:, -1],
        lambda m: np.linalg.eigvalsh(m)[:, -2],
        lambda m: m[:, 0, 1],
    ):
        assert stats.ks_2samp(measure(many), measure(rows)).pvalue > ALARM
    # Control: the test detects noise 5 % too large, because the moment is nearly all noise here.
    assert not close(1.05**2 * many, rows)


@pytest.mark.parametrize("key", ["data_laplace", "laplace_output"])
def test_laplace_rows_are_the_very_table_of_the_same_draws(key: str) -> None:
    """Both routes sample the same noise in the same order, so the moments are equal."""
    rows, data = moment(30)
    mechanism = parse_variant(key)
    problem = Problem(30, D, 2, Relation.REPLACE, Domain.ball(D))
    calibration = mechanism.calibrate(problem, BUDGET)
    release = mechanism.release_many(data, calibration, Draws.trials(0, key, range(3)))
    tables = mechanism.release_rows(rows, calibration, Draws.trials(0, key, range(3)))
    assert tables is not None
    np.testing.assert_allclose(gram(tables), release.raw, rtol=1e-10)
    other = mechanism.release_rows(rows, calibration, Draws.trials(1, key, range(3)))
    assert other is not None
    assert np.abs(gram(other) / release.raw - 1).max() > 0.01


@pytest.mark.parametrize("key", ["data_gaussian", "data_laplace"])
def test_noise_on_each_cell_has_its_law(key: str) -> None:
    """Entries of a large table pass Kolmogorov-Smirnov and second-moment tests of the scaled noise.

    A normal square has variance 2, a squared Lap(1) 20, which gives the standard errors.
    """
    n = 10_000
    rows, _ = moment(n)
    mechanism = parse_variant(key)
    problem = Problem(n, D, 2, Relation.REPLACE, Domain.ball(D))
    calibration = mechanism.calibrate(problem, BUDGET)
    tables = mechanism.release_rows(rows, calibration, Draws.batch(generator(6, key), 1))
    assert tables is not None
    noise = ((tables[0] - rows) / calibration.scale).ravel()
    law, mean, spread = ("norm", 1.0, 2.0) if key == "data_gaussian" else ("laplace", 2.0, 20.0)
    assert stats.kstest(noise, law).pvalue > ALARM
    room = Z * np.sqrt(spread / len(noise))
    assert abs((noise**2).mean() - mean) < room
    # Control: the test detects noise that is 10 % too large.
    assert abs((1.1**2) * (noise**2).mean() - mean) > room
    assert stats.kstest(1.1 * noise, law).pvalue < ALARM
    # Entries of the noise are uncorrelated, both within a row and within a column.
    cells = noise.reshape(n, D)
    for products in (cells[:, 1:] * cells[:, :-1], cells[1:] * cells[:-1]):
        assert abs(products.mean()) < Z * mean / np.sqrt(products.size)
