"""One budget for all fits of a process, by clones and by other processes too."""

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
    """Return what so many Gaussian fits cost together: their squared mu add."""
    return epsilon_of(at, math.sqrt(fits) * mu_of(Budget(1.0, 1e-6)))


def test_the_second_fit_of_a_process_warns_once(rows: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(13):
            clone(PrivatePCA(2, **GAUSSIAN)).fit(rows)
    said = [str(one.message) for one in caught]
    assert len(said) == 1
    assert said[0].startswith(f"2 fits, epsilon {_epsilon(2, 2e-6):.3g} in this process")
    assert dpviz.spending().fits == 13
    assert dpviz.spending().epsilon == pytest.approx(_epsilon(13, 13e-6), rel=1e-6)
    assert str(dpviz.spending()).startswith("13 fits, epsilon 3.59 in this process")
    # the control: added up it would be 13
    assert dpviz.spending().epsilon < 4


@quiet
def test_a_search_is_counted_by_its_clones(rows: np.ndarray) -> None:
    pipeline = make_pipeline(PrivatePCA(1, **GAUSSIAN), LogisticRegression())
    grid = {"privatepca__n_components": [1, 2], "privatepca__epsilon": [0.5, 1.0]}
    GridSearchCV(pipeline, grid, cv=3).fit(rows, rows[:, 0] > 0)
    assert dpviz.spending().fits == 13


def test_a_budget_refuses_what_would_pass_it(rows: np.ndarray) -> None:
    class Untouched:
        """Data that tells when it is asked for anything."""

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the data was asked for {name}")

    with dpviz.budget(epsilon=3, delta=1e-6) as limit:
        for done in range(1, 20):
            if _epsilon(done, 1e-6) > 3:
                break
            clone(PrivatePCA(2, **GAUSSIAN)).fit(rows)
            assert limit.spent.fits == done
            assert limit.spent.epsilon == pytest.approx(_epsilon(done, 1e-6), rel=1e-6)
        assert done > 4  # epsilons added up would end after 3, and deltas after 1
        unfitted = PrivatePCA(2, **GAUSSIAN)
        with pytest.raises(LedgerError, match=r"pass its limit of 3 and 1e-0?6"):
            unfitted.fit(rows)
        assert not hasattr(unfitted, "components_")
        assert limit.spent.fits == done - 1
        with pytest.raises(LedgerError, match="adds up releases under the relation replace"):
            PrivatePCA(2, relation="zero-out", **{**GAUSSIAN, "epsilon": 0.01}).fit(rows)
        with pytest.raises(CannotRun, match="no epsilon describes it"):
            PrivatePCA(
                2, mechanism="non_private", row_bound=5.0, allow_refuted=True, center="none"
            ).fit(rows)
    assert limit.spent.fits == done - 1  # what was spent is still said after it
    with dpviz.budget(epsilon=1, delta=1e-6):
        PrivatePCA(2, **{**GAUSSIAN, "delta": 1e-6}).fit(rows)
        with pytest.raises(DpvizError, match="would pass its limit"):
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
            PrivatePCA(2, **{**GAUSSIAN, "epsilon": 0.1}).fit(rows)  # a budget of delta 0
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
            with pytest.raises(DpvizError, match="would pass its limit"):
                PrivatePCA(2, **GAUSSIAN).fit(rows)
        PrivatePCA(2, **GAUSSIAN).fit(rows)
        assert (inner.spent.fits, outer.spent.fits) == (1, 2)
        with pytest.raises(DpvizError, match="entered once at a time"), outer:
            pass
    for wrong in ({"epsilon": 0}, {"epsilon": 1, "delta": 2}, {"epsilon": "1"}):
        with pytest.raises(DpvizError):
            dpviz.budget(**wrong)  # type: ignore[arg-type]


@pytest.mark.long
@quiet
def test_a_budget_covers_joblibs_workers(rows: np.ndarray) -> None:
    """Three folds in two processes; a fourth fit, at home, is refused."""
    pipeline = make_pipeline(PrivatePCA(2, **GAUSSIAN), LogisticRegression())
    limit = _epsilon(3, 1e-6) * (1 + 1e-6)
    with dpviz.budget(epsilon=limit, delta=1e-6) as found:
        scores = cross_val_score(pipeline, rows, rows[:, 0] > 0, cv=3, n_jobs=2)
        assert len(scores) == 3
        assert found.spent.fits == 3
        with pytest.raises(DpvizError, match="would pass its limit"):
            clone(pipeline).fit(rows, rows[:, 0] > 0)
        with pytest.raises(DpvizError, match="would pass its limit"):
            cross_val_score(
                clone(pipeline), rows, rows[:, 0] > 0, cv=3, n_jobs=2, error_score="raise"
            )
    # outside of it workers are free again
    assert len(cross_val_score(pipeline, rows, rows[:, 0] > 0, cv=3, n_jobs=2)) == 3
    assert found.spent.fits == 3


def test_what_was_packed_inside_a_budget_is_free_outside(rows: np.ndarray) -> None:
    with dpviz.budget(epsilon=1, delta=1e-6):
        packed = pickle.dumps(PrivatePCA(2, **GAUSSIAN))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            pickle.loads(packed).fit(rows)


def test_what_a_ledger_refuses_no_budget_pays_for(tmp_path: Path, rows: np.ndarray) -> None:
    """Its rho is known late: a budget that was charged before kept what nobody got."""
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
    """A profile of ours comes back from the file; two of them cost less than their sum."""
    wishart = {**GAUSSIAN, "mechanism": "wishart_exact"}
    with dpviz.budget(epsilon=5, delta=1e-5) as limit:
        own = PrivatePCA(2, **wishart).fit(rows).spent_.epsilon
        once = limit.spent.epsilon
        PrivatePCA(2, **wishart).fit(rows)
        assert once < own
        assert once < limit.spent.epsilon < 2 * own * 0.99
