"""The mechanisms to take when nobody names one.

Each mechanism declares how strongly it is advised in a setting (`Mechanism.advised_rank`); the
rule takes the strongest that can run. The ranks follow measured regret:
``python -m benchmarks.defaults`` writes docs/defaults.md, where this rule stands beside every
single mechanism.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Problem
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, featured
from dpviz.mechanisms._base import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import cell_at
from dpviz.simulation.simulate import Cell


def advised(
    problem: Problem, budget: Budget, *, matrix: bool = False, rows: bool = False
) -> Mechanism:
    """Return the mechanism advised for a problem and a budget.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        With delta 0 only mechanisms with pure epsilon are considered.
    matrix : bool
        Whether a noisy second moment is wanted, and not only its leading components.
    rows : bool
        Whether the rows are at hand, and not only their second moment.

    Returns
    -------
    Mechanism
        With default parameters.

    Raises
    ------
    InvalidSetting
        If nothing that is advised can run here.
    """
    kind = "approximate" if budget.delta > 0 else "pure"
    found: list[tuple[float, Mechanism]] = []
    for cls in all_mechanisms().values():
        mechanism = cls()
        if mechanism.info.guarantee != kind or (matrix and mechanism.info.release != "matrix"):
            continue
        rank = mechanism.advised_rank(problem, budget)
        if rank is not None and mechanism.why_not(problem, budget, rows=rows) is None:
            found.append((rank, mechanism))
    if not found:
        raise InvalidSetting("k", f"from 1 to {problem.d - 1} for subspaces", problem.k, "--k")
    return max(found, key=lambda item: item[0])[1]


def with_featured(measured: Measured, settings: Settings) -> Settings:
    """Return settings that name what is shown first where they name no mechanism.

    Those that are featured; in the place of one that cannot run here comes what is advised most of
    the others that can.
    """
    if settings.mechanisms:
        return settings
    first, problem, budget = featured(), measured.problem(settings), measured.budget(settings)
    others = {
        key: one.advised_rank(problem, budget) or 0.0
        for key, cls in all_mechanisms().items()
        if key not in first and (one := cls()).info.guarantee != "none"
    }
    run = (
        key
        for key in (*first, *sorted(others, key=others.__getitem__, reverse=True))
        if isinstance(cell_at(measured, settings, all_mechanisms()[key](), range(1)), Cell)
    )
    return replace(settings, mechanisms=tuple(islice(run, len(first))))
