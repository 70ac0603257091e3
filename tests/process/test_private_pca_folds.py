"""`PrivatePCA` fitted by several processes at once: every fit is in the ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from dpviz import PrivatePCA
from dpviz.core.problem import Budget, Relation
from dpviz.releasing.ledger import Ledger


@pytest.mark.filterwarnings("ignore::dpviz.releasing.declared.PrivacyWarning")
def test_three_fold_cross_validation_spends_three_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = np.clip(rng.standard_normal((300, 5)) * [2, 1, 0.5, 0.5, 0.2], -4, 4)
    path = tmp_path / "ledger"
    Ledger(path).create(Budget(3.0, 1e-5), Relation.REPLACE)
    labels = (rows[:, 0] > 0).astype(int)
    estimator = PrivatePCA(
        epsilon=1.0,
        delta=1e-6,
        row_bound=5.0,
        mechanism="gaussian",
        ledger=str(path),
        center="none",
    )
    pipeline = make_pipeline(estimator, LogisticRegression())
    scores = cross_val_score(clone(pipeline), rows, labels, cv=3, n_jobs=2)
    assert len(scores) == 3
    spends = Ledger(path).read().spends
    assert len(spends) == 3
    assert {spend.purpose for spend in spends} == {"fit"}
    assert Ledger(path).read().total == pytest.approx((3.0, 3e-6))
    assert all(spend.rho is not None for spend in spends)
