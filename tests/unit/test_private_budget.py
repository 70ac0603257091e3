"""One budget covers all fits of a process, also by clones and by other processes."""

from __future__ import annotations

import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import dpviz
from dpviz import PrivatePCA
from dpviz.accounting.gaussian import epsilon_of, mu_of
from dpviz.core.errors import CannotRun, DpvizError
from dpviz.core.problem import Budget, Relation
from dpviz.releasing.declared import PrivacyWarning
from dpviz.releasing.ledger import Ledger, LedgerError

quiet = pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")
GAUSSIAN: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "row_bound": 5.0, "mechanism": "gaussian", "center": "none"
}  # fmt: skip


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((300, 5))


def _epsilon(fits: int, at: float) -> float:
    """Return the epsilon of these Gaussian fits together: their squared mu add up."""
    return epsilon_of(at, math.sqrt(fits) * mu_of(Budget(1.0, 1e-6)))


def test_the_second_fit_of_a_process_warns_once(rows: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(13):
            clone(PrivatePCA(2, **GAUSSIAN)).fit(rows)
    messages = [str(one.message) for one in caught]
    assert len(messages) == 1
    assert messages[0].startswith(f"2 fits, epsilon {_epsilon(2, 2e-6):.3g} in this process")
    assert dpviz.spending().fits == 13
    assert dpviz.spending().epsilon == pytest.approx(_epsilon(13, 13e-6), rel=1e-6)
    assert str(dpviz.spending()).startswith("13 fits, epsilon 3.59 in this process")
    # Control: the sum of all epsilons would be 13.
    assert dpviz.spending().epsilon < 4


@quiet
def test_a_search_is_counted_by_its_clones(rows: np.ndarray) -> None:
    pipeline = make_pipeline(PrivatePCA(1, **GAUSSIAN), LogisticRegression())
    grid = {"privatepca__n_components": [1, 2], "privatepca__epsilon": [0.5, 1.0]}
    GridSearchCV(pipeline, grid, cv=3).fit(rows, rows[:, 0] > 0)
    assert dpviz.spending().fits == 13


def test_a_budget_refuses_what_would_pass_it(rows: np.ndarray) -> None:
    class Untouched:
        """Data that reports any access."""

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the data was asked for {name}")

    with dpviz.budget(epsilon=3, delta=1e-6) as limit:
        for number in range(1, 20):
            if _epsilon(number, 1e-6) > 3:
                break
            clone(PrivatePCA(2, **GAUSSIAN)).fit(rows)
            assert limit.spent.fits == number
            assert limit.spent.epsilon == pytest.approx(_epsilon(number, 1e-6), rel=1e-6)
        assert number > 4  # Summing epsilons would allow 3, summing deltas 1.
        model = PrivatePCA(2, **GAUSSIAN)
        with pytest.raises(LedgerError, match=r"pass its limit of 3 and 1e-0?6"):
            model.fit(rows)
        assert not hasattr(model, "components_")
        assert limit.spent.fits == number - 1
        with pytest.raises(LedgerError, match="loss of one row under replace neighbours"):
            PrivatePCA(2, relation="zero-out", **{**GAUSSIAN, "epsilon": 0.01}).fit(rows)
        with pytest.raises(CannotRun, match="no epsilon bounds it"):
            PrivatePCA(
                2, mechanism="non_private", row_bound=5.0, allow_refuted=True, center="none"
            ).fit(rows)
    assert limit.spent.fits == number - 1  # The budget still reports the earlier loss.
    with dpviz.budget(epsilon=1, delta=1e-6):
        PrivatePCA(2, **{**GAUSSIAN, "delta": 1e-6}).fit(rows)
        with pytest.raises(DpvizError, match="would pass the limit"):
            PrivatePCA(2, **GAUSSIAN).fit(Untouched())


@quiet
def test_pure_and_other_fits_compose(rows: np.ndarray) -> None:
    with dpviz.budget(epsilon=1.0) as limit:
        for _ in range(2):
            PrivatePCA(2, epsilon=0.4, delta=0.0, center="none").fit(rows)
        assert limit.spent.epsilon == pytest.approx(0.8, abs=1e-6)
        with pytest.raises(DpvizError, match="would pass its limit"):
            PrivatePCA(2, epsilon=0.4, delta=0.0, center="none").fit(rows)
        with pytest.raises(DpvizError, match="would pass its limit"):
            PrivatePCA(2, **{**GAUSSIAN, "epsilon": 0.1}).fit(rows)  # This budget has delta 0.
    with dpviz.budget(epsilon=2.0, delta=1e-5) as limit:
        PrivatePCA(2, **GAUSSIAN).fit(rows)
        PrivatePCA(1, epsilon=0.5, delta=0.0, mechanism="ppca", row_bound=5.0, center="none").fit(
            rows
        )
        assert 1.0 < limit.spent.epsilon < 1.5


def test_budgets_hold_one_in_another(rows: np.ndarray) -> None:
    with dpviz.budget(epsilon=5, delta=1e-5) as outer:
        with dpviz.budget(epsilon=1, delta=1e-6) as inner:
            PrivatePCA(2, **GAUSSIAN).fit(rows)
            with pytest.raises(DpvizError, match="would pass the limit"):
                PrivatePCA(2, **GAUSSIAN).fit(rows)
        PrivatePCA(2, **GAUSSIAN).fit(rows)
        assert (inner.spent.fits, outer.spent.fits) == (1, 2)
        with pytest.raises(DpvizError, match="open in one program at a time"), outer:
            pass
    for wrong in ({"epsilon": 0}, {"epsilon": 1, "delta": 2}, {"epsilon": "1"}):
        with pytest.raises(DpvizError):
            dpviz.budget(**wrong)  # type: ignore[arg-type]


@pytest.mark.long
@quiet
def test_a_budget_covers_joblibs_workers(rows: np.ndarray) -> None:
    """A budget covers three folds in two processes; it refuses a fourth fit in this process."""
    pipeline = make_pipeline(PrivatePCA(2, **GAUSSIAN), LogisticRegression())
    limit = _epsilon(3, 1e-6) * (1 + 1e-6)
    with dpviz.budget(epsilon=limit, delta=1e-6) as budget:
        scores = cross_val_score(pipeline, rows, rows[:, 0] > 0, cv=3, n_jobs=2)
        assert len(scores) == 3
        assert budget.spent.fits == 3
        with pytest.raises(DpvizError, match="would pass the limit"):
            clone(pipeline).fit(rows, rows[:, 0] > 0)
        with pytest.raises(DpvizError, match="would pass the limit"):
            cross_val_score(
                clone(pipeline), rows, rows[:, 0] > 0, cv=3, n_jobs=2, error_score="raise"
            )
    # Outside the privacy budget, parallel workers may fit again.
    assert len(cross_val_score(pipeline, rows, rows[:, 0] > 0, cv=3, n_jobs=2)) == 3
    assert budget.spent.fits == 3


def test_what_was_packed_inside_a_budget_is_free_outside(rows: np.ndarray) -> None:
    with dpviz.budget(epsilon=1, delta=1e-6):
        copy = pickle.dumps(PrivatePCA(2, **GAUSSIAN))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            pickle.loads(copy).fit(rows)


def test_what_a_ledger_refuses_no_budget_pays_for(tmp_path: Path, rows: np.ndarray) -> None:
    """A budget is not charged for a fit that the ledger refuses, even if its rho is known late."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(1.0, 1e-6), Relation.REPLACE, "zcdp")
    fit = PrivatePCA(2, **{**GAUSSIAN, "epsilon": 1.5}, ledger=ledger.path)
    with dpviz.budget(epsilon=5, delta=1e-6) as limit:
        with pytest.raises(LedgerError, match="ledger ledger refuses"):
            fit.fit(rows)
        assert (limit.spent.fits, len(ledger.read().spends), dpviz.spending().fits) == (0, 0, 0)
        fit.set_params(epsilon=0.5).fit(rows)
        assert (limit.spent.fits, len(ledger.read().spends), dpviz.spending().fits) == (1, 1, 1)


def test_a_budget_keeps_the_exact_account_of_noise_without_parts(rows: np.ndarray) -> None:
    """A dpviz profile is restored from the file; two profiles together lose less than their sum."""
    wishart = {**GAUSSIAN, "mechanism": "wishart_exact"}
    with dpviz.budget(epsilon=5, delta=1e-5) as limit:
        epsilon = PrivatePCA(2, **wishart).fit(rows).spent_.epsilon
        once = limit.spent.epsilon
        PrivatePCA(2, **wishart).fit(rows)
        assert once < epsilon
        assert once < limit.spent.epsilon < 2 * epsilon * 0.99
