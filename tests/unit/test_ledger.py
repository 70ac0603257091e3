"""The ledger: appended to whole, by one process at a time, and never under-counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpviz.cli import main
from dpviz.errors import InvalidSetting
from dpviz.privacy.composition import epsilon_of_rho
from dpviz.releasing.ledger import Ledger, LedgerError
from dpviz.values.problem import Budget


def test_spends_are_kept_in_order_and_added_up(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    for epsilon in (0.1, 0.2, 0.3):
        ledger.spend("some_key", Budget(epsilon, 1e-8), rho=0.01, purpose="fit")
    contents = ledger.read()
    assert [spend.epsilon for spend in contents.spends] == [0.1, 0.2, 0.3]
    assert contents.total == pytest.approx((0.6, 3e-8))
    assert contents.limit is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "ledger.lock"]


def test_a_limit_refuses_and_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(1.0, 1e-6))
    ledger.spend("m", Budget(0.5, 5e-7))
    ledger.spend("m", Budget(0.5, 5e-7))  # just the limit
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=r"refuses: .* would pass its limit of 1 and 1e-06"):
        ledger.spend("m", Budget(1e-3, 0.0))
    with pytest.raises(LedgerError, match="refuses"):
        ledger.check(Budget(1e-3, 0.0))
    assert ledger.path.read_bytes() == before
    with pytest.raises(LedgerError, match="there already"):
        ledger.create(Budget(5.0, 1e-6))


def test_delta_alone_can_pass_the_limit(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(10.0, 1e-6))
    with pytest.raises(LedgerError, match="refuses"):
        ledger.spend("m", Budget(0.5, 1e-5))


def test_a_zcdp_ledger_adds_rho(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.create(Budget(2.0, 1e-6), "zcdp")
    for _ in range(3):  # basic would have stopped at one: 1e-6 each
        ledger.spend("m", Budget(1.0, 1e-6), rho=0.0243)
    with pytest.raises(LedgerError, match="refuses"):
        ledger.spend("m", Budget(1.0, 1e-6), rho=0.0243)
    assert ledger.read().total == pytest.approx((epsilon_of_rho(3 * 0.0243, 1e-6), 1e-6))
    other = Ledger(tmp_path / "pure")
    other.create(Budget(1.0, 1e-6), "zcdp")
    with pytest.raises(LedgerError, match="refuses"):  # its delta alone is all there is
        other.spend("m", Budget(0.01, 1e-6))
    with pytest.raises(InvalidSetting, match="delta above 0 for a zcdp account"):
        Ledger(tmp_path / "none").create(None, "zcdp")


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda text: text.replace('"epsilon": 0.5', '"epsilon": 0.4', 1), 2),
        (lambda text: text[:-10], 3),
        (lambda text: "\n".join(text.splitlines()[:1] + text.splitlines()[2:]) + "\n", 2),
        (lambda text: text + text.splitlines()[-1] + "\n", 4),
        (lambda text: "not a ledger\n", 1),
        (lambda text: "", 1),
        (lambda text: "[]\n", 1),
    ],
)
def test_damage_is_one_sentence_and_nothing_is_spent(
    tmp_path: Path, damage: object, line: int
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    for _ in range(2):
        ledger.spend("m", Budget(0.5, 1e-7))
    assert callable(damage)
    damaged = str(damage(ledger.path.read_text()))
    ledger.path.write_text(damaged)
    with pytest.raises(LedgerError, match=f"damaged or .* from line {line} on") as found:
        ledger.read()
    assert str(found.value).count(".") == 1
    with pytest.raises(LedgerError, match="nothing was spent"):
        ledger.spend("m", Budget(0.5))
    assert ledger.path.read_text() == damaged


def test_a_ledger_that_cannot_be_written_spends_nothing(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "missing" / "ledger").spend("m", Budget(0.5))
    with pytest.raises(LedgerError, match="there is no ledger nowhere"):
        Ledger(tmp_path / "nowhere").read()


def test_the_command_makes_shows_and_keeps_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger"
    assert main(["ledger", str(path), "--limit", "3,1e-5", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "limit": {"epsilon": 3.0, "delta": 1e-5},
        "account": "basic",
        "total": {"epsilon": 0.0, "delta": 0.0},
        "spends": [],
    }
    Ledger(path).spend("some_key", Budget(0.25, 1e-7))
    assert main(["ledger", str(path)]) == 0
    assert "some_key" in capsys.readouterr().out
    assert main(["ledger", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == {"epsilon": 0.25, "delta": 1e-7}
    assert found["spends"][0]["mechanism"] == "some_key"
    assert found["spends"][0]["when"].startswith("20")
    assert main(["ledger", str(path), "--limit", "9,1e-5"]) == 2
    assert "cannot be changed" in capsys.readouterr().err
    assert main(["ledger", str(tmp_path / "other"), "--limit", "much"]) == 2
    assert capsys.readouterr().err == "dpviz: --limit must be written EPSILON,DELTA; got 'much'.\n"
    assert main(["ledger", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err == "dpviz: there is no ledger other.\n"
