"""A ledger of persons composes releases for one number of rows per person."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpviz
from dpviz.accounting.gaussian import epsilon_of, mu_of
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget
from dpviz.releasing.ledger import LedgerError
from dpviz.releasing.schema import Column, Schema

ABC = Schema(tuple(Column(name, -1, 1) for name in "abc"))
MU = mu_of(Budget(0.7, 1e-6))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text("who,a,b,c\n" + "".join(f"p{i},0.1,-0.2,0.{i}\n" for i in range(9)))
    return path


def _release(ledger: Path, table: Path, rows: int, *, person: str = "", delta: float = 1e-6) -> str:
    """Release at epsilon .7 for persons with some rows; return the refusal or an empty text."""
    schema = replace(ABC, rows_a_person=rows, person=person)
    options = {"row_bound": 1, "k": 1, "epsilon": 0.7, "delta": delta, "schema": schema}
    try:
        dpviz.release(table, ledger=ledger, **options)
    except LedgerError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("stated", [None, 3])
def test_spends_of_other_persons_are_priced_again_or_refused(
    tmp_path: Path, table: Path, stated: int | None
) -> None:
    """Releases for fewer rows a person are accounted for again; releases for more are refused."""
    book = tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(4, 1e-4), unit="person", rows_a_person=stated)
    assert _release(book, table, 3) == ""
    assert _release(book, table, 1) == ""
    contents = dpviz.ledger(book).contents
    # A person with three rows loses three times the mu that one row's noise is calibrated for.
    again = epsilon_of(1e-6, 3 * MU)
    assert contents.rows == 3
    assert contents.total[0] == pytest.approx(0.7 + again, rel=1e-4)
    assert contents.total[0] >= 0.7 * (1 - 1e-6) + again * (1 - 1e-6)
    assert "at most 3 rows. This release allows 10 rows a person" in _release(book, table, 10)
    assert _release(book, table, 3) == ""
    assert "epsilon 0.7 and delta" in _release(book, table, 3)
    message = _release(book, table, 1)  # The message has the requested and present value.
    assert "epsilon 0.7, which is 2.30196 for one person of at most 3 rows, and delta" in message
    answer = dpviz.ledger(book)
    assert answer.data()["rows"] == 3
    assert answer.data()["spends"][1]["counts"] == pytest.approx(again, rel=1e-4)
    assert "unit person of at most 3 rows" in answer.summary()
    assert answer.table()["epsilon"][1] == pytest.approx(again, rel=1e-4)


def test_a_pure_release_and_rhos_are_priced_by_their_own_rules(tmp_path: Path, table: Path) -> None:
    pure, rhos = (tmp_path / name / "mine.jsonl" for name in ("pure", "rhos"))
    for path in (pure, rhos):
        path.parent.mkdir()
    dpviz.ledger(pure, limit=(10, 1e-4), unit="person", rows_a_person=4)
    assert _release(pure, table, 2, delta=0) == ""
    assert dpviz.ledger(pure).contents.total == pytest.approx((1.4, 0), rel=1e-9)
    dpviz.ledger(rhos, limit=(10, 1e-4), unit="person", rows_a_person=4, account="zcdp")
    assert _release(rhos, table, 2) == ""
    (spend,), (counted,) = (
        getattr(dpviz.ledger(rhos).contents, name) for name in ("spends", "priced")
    )
    assert counted.rho == pytest.approx(4 * spend.rho, rel=1e-9)


def test_rows_that_a_column_cuts_are_all_of_hers(tmp_path: Path, table: Path) -> None:
    """A column limits each person's rows, so the promise holds for any number of rows."""
    book = tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(3, 1e-4), unit="person")
    for rows in (3, 1, 10):
        assert _release(book, table, rows, person="who") == ""
    assert dpviz.ledger(book).contents.rows is None
    assert dpviz.ledger(book).contents.total[0] == pytest.approx(2.1, rel=1e-3)


def test_a_ledger_is_told_its_rows_when_it_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ledger", "new", str(tmp_path / "mine.jsonl"), "--limit", "3,1e-5"]
    assert main([*words, "--rows-a-person", "5"]) == 2
    assert "left out unless the ledger counts persons" in capsys.readouterr().err
    assert main([*words, "--unit", "person", "--rows-a-person", "5"]) == 0
    assert "unit person of at most 5 rows" in capsys.readouterr().out
    with pytest.raises(InvalidSetting, match="rows_a_person must be a whole number"):
        dpviz.ledger(tmp_path / "other", limit=(3, 1e-5), unit="person", rows_a_person=0)


def test_a_fit_for_persons_is_paid_by_a_ledger_of_persons(tmp_path: Path) -> None:
    book, rows = tmp_path / "mine.jsonl", np.random.default_rng(0).uniform(-1, 1, (500, 3))
    dpviz.ledger(book, limit=(3, 1e-4), unit="person", rows_a_person=4)
    options = {"epsilon": 0.5, "delta": 1e-6, "row_bound": 2, "center": "none", "ledger": book}
    dpviz.PrivatePCA(1, rows_a_person=4, **options).fit(rows)
    assert dpviz.ledger(book).contents.total[0] == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(
        LedgerError, match=r"one person under .* This release states the loss of one r"
    ):
        dpviz.PrivatePCA(1, **options).fit(rows)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_least_epsilon_is_released(tmp_path: Path, table: Path, delta: float) -> None:
    """The least epsilon can be released, although its proved loss is slightly below .0001."""
    book = tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(3, 1e-4))
    options = {"row_bound": 1, "k": 1, "epsilon": 1e-4, "delta": delta, "schema": ABC}
    dpviz.release(table, ledger=book, **options)
    assert dpviz.ledger(book).contents.total[0] == pytest.approx(1e-4, rel=1e-9)
