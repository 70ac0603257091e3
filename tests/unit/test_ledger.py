"""The ledger: whole lines, one process at a time, one name, and a limit never exceeded."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpviz
from dpviz.accounting.composition import epsilon_of_rho
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import PACKAGE
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.releasing import ledger as ledger_module
from dpviz.releasing.ledger import Ledger, LedgerError, Receipt, Spend
from dpviz.releasing.schema import Schema

DATA = PACKAGE.parent / "data"


def _new(path: Path, epsilon: float = 10.0, delta: float = 1e-5, **more: Any) -> Ledger:
    ledger = Ledger(path)
    ledger.create(Budget(epsilon, delta), more.pop("relation", Relation.REPLACE), **more)
    return ledger


def _spend(ledger: Ledger, epsilon: float = 0.5, delta: float = 1e-7, **more: Any) -> Receipt:
    relation = more.pop("relation", Relation.REPLACE)
    return ledger.spend(Spend("m", epsilon, delta, **more), relation)


def _bytes(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder except the locks, which have no content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def test_spends_are_kept_in_order_and_added_up(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    receipts = [_spend(ledger, epsilon, 1e-8, rho=0.01) for epsilon in (0.1, 0.2, 0.3)]
    contents = ledger.read()
    assert [spend.epsilon for spend in contents.spends] == [0.1, 0.2, 0.3]
    assert all(spend.when.startswith("20") for spend in contents.spends)
    assert contents.total == pytest.approx((0.6, 3e-8))
    assert contents.left == pytest.approx((9.4, 1e-5 - 3e-8))
    assert [receipt.number for receipt in receipts] == [1, 2, 3]
    assert tuple(receipt.head for receipt in receipts) == contents.heads
    assert {receipt.ledger for receipt in receipts} == {contents.identity}
    assert receipts == [contents.receipt(number) for number in (1, 2, 3)]
    assert receipts[1].total == pytest.approx((0.3, 2e-8))
    assert receipts[1].left == pytest.approx((9.7, 1e-5 - 2e-8))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["ledger", "ledger.head", "ledger.lock"]


def test_only_the_owner_may_read_it_and_a_shared_one_stays_shared(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    _spend(ledger)
    for name in ("ledger", "ledger.head"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    ledger.path.chmod(0o660)
    _spend(ledger)
    for name in ("ledger", "ledger.head"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o660


def test_a_limit_refuses_and_writes_nothing(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", 1.0, 1e-6)
    _spend(ledger, 0.5, 5e-7)
    _spend(ledger, 0.5, 5e-7)  # This spend reaches the limit exactly.
    assert ledger.read().left == (0.0, 0.0)
    before = _bytes(tmp_path)
    with pytest.raises(LedgerError, match=r"refuses: .* would pass its limit of 1 and 1e-6"):
        _spend(ledger, 1e-3, 0.0)
    with pytest.raises(LedgerError, match="refuses"):
        ledger.check(Spend("m", 1e-3), Relation.REPLACE)
    assert _bytes(tmp_path) == before
    with pytest.raises(LedgerError, match="exists already"):
        _new(tmp_path / "ledger", 5.0)


def test_what_roundings_leave_of_a_limit_is_nothing(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "l.jsonl", epsilon=1.05, delta=2e-7)
    _spend(ledger, 1 - 1e-14)
    receipt = _spend(ledger, 0.05 - 5e-15)
    assert receipt.left == ledger.read().left == (0.0, 0.0)
    assert "epsilon 0 and delta 0 are left" in receipt.said


def test_delta_alone_can_pass_the_limit(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="refuses"):
        _spend(_new(tmp_path / "ledger", 10.0, 1e-6), 0.5, 1e-5)


def test_a_zcdp_ledger_adds_rho(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", 2.0, 1e-6, account="zcdp")
    for _ in range(3):  # By basic composition, 1e-6 allows only one spend.
        before = ledger.read().left
        _spend(ledger, 1.0, 1e-6, rho=0.0243)
    with pytest.raises(LedgerError, match="refuses"):
        _spend(ledger, 1.0, 1e-6, rho=0.0243)
    contents = ledger.read()
    assert contents.total == pytest.approx((epsilon_of_rho(3 * 0.0243, 1e-6), 1e-6))
    # The remaining budget is stated as one release. Less was accepted; more will be refused.
    assert epsilon_of_rho(0.0243, 1e-6) < before[0]
    assert 0 < contents.left[0] < epsilon_of_rho(0.0243, 1e-6)
    with pytest.raises(LedgerError, match="refuses"):  # This delta alone reaches the limit.
        _spend(_new(tmp_path / "pure", 1.0, 1e-6, account="zcdp"), 0.01, 1e-6)
    with pytest.raises(InvalidSetting, match="delta above 0 for a zcdp account"):
        _new(tmp_path / "none", 1.0, 0.0, account="zcdp")


# --- names and places --------------------------------------------------------------------------


def test_a_spend_never_makes_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(
        LedgerError, match=r"ledger typo does not exist: make one with dpviz ledger new typo"
    ):
        _spend(Ledger(tmp_path / "typo"))
    with pytest.raises(LedgerError, match="ledger typo does not exist"):
        Ledger(tmp_path / "typo").check(Spend("m", 1.0), Relation.REPLACE)
    assert not (tmp_path / "typo").exists()


def test_two_names_of_one_file_are_one_ledger(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").symlink_to(tmp_path / "here")
    _new(tmp_path / "here" / "ledger", 1.0)
    (tmp_path / "link").symlink_to(tmp_path / "here" / "ledger")
    names = [tmp_path / "here" / "ledger", tmp_path / "link", tmp_path / "there" / "ledger"]
    assert [_spend(Ledger(name), 0.3).number for name in names] == [1, 2, 3]
    for name in names:
        with pytest.raises(LedgerError, match="refuses"):
            _spend(Ledger(name), 0.3)
    assert (tmp_path / "link").is_symlink()  # The link must remain a link, not a file.
    assert not (tmp_path / "link.lock").exists()


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", 1.0)
    os.link(ledger.path, tmp_path / "second")
    before = _bytes(tmp_path)
    for name in ("ledger", "second"):
        with pytest.raises(LedgerError, match=r"has 2 names \(hard links\).*nothing was spent"):
            _spend(Ledger(tmp_path / name))
    assert _bytes(tmp_path) == before
    (tmp_path / "second").unlink()
    assert _spend(ledger).number == 1


def test_what_is_no_file_is_no_ledger(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # Reading a pipe would wait for ever.
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("pipe", "folder"):
        with pytest.raises(LedgerError, match=f"ledger {name} is not a file"):
            Ledger(tmp_path / name).read()
    with pytest.raises(LedgerError, match="ledger loop cannot be read"):
        Ledger(tmp_path / "loop").read()
    with pytest.raises(LedgerError, match="cannot be written: the folder does not exist"):
        _new(tmp_path / "missing" / "ledger")


def test_a_deleted_ledger_does_not_give_its_budget_back(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    _spend(ledger)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="or one of its files exists already"):
        _new(tmp_path / "ledger")


# --- what it is about --------------------------------------------------------------------------


def test_another_relation_or_unit_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", relation=Relation.ZERO_OUT)
    before = _bytes(tmp_path)
    with pytest.raises(LedgerError, match=r"under zero-out neighbours.* under replace neighbours"):
        _spend(ledger, relation=Relation.REPLACE)
    with pytest.raises(
        LedgerError, match=r"one row under .* This release states the loss of one p"
    ):
        ledger.spend(Spend("m", 1.0), Relation.ZERO_OUT, Unit.PERSON)
    assert _bytes(tmp_path) == before
    assert _spend(ledger, relation=Relation.ZERO_OUT).number == 1
    other = _new(tmp_path / "other", unit=Unit.PERSON)
    with pytest.raises(
        LedgerError, match=r"one person under .* This release states the loss of one r"
    ):
        _spend(other)


def test_a_ledger_pays_for_its_purpose_alone(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", purpose="annual report")
    with pytest.raises(
        LedgerError, match="is for the purpose 'annual report', and this release is for 'a w"
    ):
        _spend(ledger, stated_purpose="a war")
    assert ledger.read().spends == ()
    assert _spend(ledger, stated_purpose="Annual report").number == 1


def test_the_first_table_is_bound_and_another_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    one, other = (ledger.fingerprint([table]) for table in (b"1,2\n3,4\n", b"1,2\n3,5\n"))
    _spend(ledger, table=one)
    _spend(ledger, table=one)
    with pytest.raises(LedgerError, match=r"to a different table. .* dpviz ledger bind ledger"):
        _spend(ledger, table=other)
    _spend(ledger)  # The ledger knows the number of rows, not which rows.
    ledger.bind(other, "row 2 corrected")
    ledger.bind(other)
    _spend(ledger, table=other)
    contents = ledger.read()
    assert contents.tables == (one, other)
    assert [spend.table for spend in contents.spends] == [one, one, "", other]
    with pytest.raises(LedgerError, match="a different table"):
        _spend(ledger, table=ledger.fingerprint([b"x"]))


def test_a_table_can_be_bound_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    ledger.bind(ledger.fingerprint([b"one"]))
    with pytest.raises(LedgerError, match="a different table"):
        _spend(ledger, table=ledger.fingerprint([b"other"]))


def test_a_fingerprint_tells_nothing_without_the_ledger(tmp_path: Path) -> None:
    first, second = _new(tmp_path / "1"), _new(tmp_path / "2")
    assert first.fingerprint([b"a", b"b"]) == first.fingerprint([b"ab"])
    assert first.fingerprint([b"ab"]) != second.fingerprint([b"ab"])
    salt = first.read().salt
    assert salt in first.path.read_text()
    assert len(bytes.fromhex(salt)) == 32
    assert salt not in dpviz.ledger(first.path).to_json()
    assert salt not in repr(first.read())
    assert salt not in json.dumps(_spend(first, table=first.fingerprint([b"ab"])).to_json())


def test_a_schema_can_be_fixed_when_the_ledger_is_made(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", schema="abc")
    with pytest.raises(LedgerError, match="made for one schema, and this release has another"):
        _spend(ledger, schema="abd")
    assert _spend(ledger, schema="abc").number == 1
    free = _new(tmp_path / "free")
    _spend(free, schema="abc")
    _spend(free, schema="abd")  # Two schemas for the same people share one budget.
    assert [spend.schema for spend in free.read().spends] == ["abc", "abd"]


def test_a_form_is_spent_once(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    _spend(ledger, token="one")
    with pytest.raises(LedgerError, match=r"sent before: .* is number 1 .* no further budget"):
        _spend(ledger, token="one")
    assert _spend(ledger, token="two").number == 2
    assert [ledger.read().number_of(token) for token in ("two", "three")] == [2, None]
    assert _spend(ledger).number == 3
    assert _spend(ledger).number == 4


# --- damage ------------------------------------------------------------------------------------


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
        (lambda text: "null\n", 1),
        (lambda text: text.splitlines()[0] + "\n" + "[" * 200_000 + "\n", 2),
        (lambda text: text.splitlines()[0] + '\n{"spend": ' + "9" * 5_000 + "}\n", 2),
        (lambda text: text.splitlines()[0] + '\n{"spend": NaN}\n', 2),
        (lambda text: "[" * 200_000 + "\n", 1),
        (lambda text: '{"dpviz_ledger": ' + "9" * 5_000 + "}\n", 1),
    ],
)
def test_damage_is_one_sentence_and_nothing_is_spent(
    tmp_path: Path, damage: Callable[[str], str], line: int
) -> None:
    ledger = _new(tmp_path / "ledger")
    for _ in range(2):
        _spend(ledger)
    bad = damage(ledger.path.read_text())
    ledger.path.write_text(bad)
    with pytest.raises(LedgerError, match=f"damaged from line {line} on") as error:
        ledger.read()
    assert str(error.value).count(".") == 1
    with pytest.raises(LedgerError, match="nothing was spent"):
        _spend(ledger)
    assert ledger.path.read_text() == bad


def _rewritten(text: str, number: int, **changed: object) -> str:
    """Return a ledger with one line changed and every digest rebuilt, as a forger would."""
    lines, before = [], ledger_module._START
    for at, line in enumerate(text.splitlines(), start=1):
        entry = {key: value for key, value in json.loads(line).items() if key != "check"}
        if at == number:
            entry.update(changed)
        entry["check"] = before = ledger_module._check(entry, before)
        lines.append(json.dumps(entry))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (1, {"limit": "3"}),
        (1, {"limit": [3]}),
        (1, {"limit": None}),
        (1, {"relation": "add"}),
        (1, {"relation": []}),
        (1, {"unit": "house"}),
        (1, {"account": {}}),
        (1, {"salt": "xyz"}),
        (1, {"salt": 3}),
        (2, {"epsilon": -1.0}),
        (2, {"epsilon": "1"}),
        (2, {"epsilon": 10**400}),
        (2, {"epsilon": True}),
        (2, {"delta": 2.0}),
        (2, {"rho": -1.0}),
        (2, {"rho": [1.0]}),
        (2, {"spend": 7}),
        (2, {"purpose": None}),
        (2, {"approximate": "no"}),
    ],
)
def test_a_line_with_good_digests_and_bad_contents_is_one_sentence(
    tmp_path: Path, number: int, changed: dict[str, object]
) -> None:
    ledger = _new(tmp_path / "ledger")
    _spend(ledger)
    (tmp_path / "ledger.head").unlink()
    text = ledger.path.read_text()
    ledger.path.write_text(_rewritten(text, number))
    assert ledger.path.read_text() == text  # A forger can compute all digests again.
    ledger.path.write_text(_rewritten(text, number, **changed))
    with pytest.raises(LedgerError, match=f"damaged from line {number} on"):
        ledger.read()


def test_a_ledger_of_the_old_format_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old"
    path.write_text('{"dpviz_ledger": 1, "limit": null, "account": "basic", "check": "0"}\n')
    with pytest.raises(LedgerError, match="another format; this version reads format 3 only"):
        _spend(Ledger(path))
    assert main(["ledger", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# --- tails -------------------------------------------------------------------------------------


def _cut(path: Path, lines: int) -> None:
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:lines]))


def test_a_cut_tail_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger", 1.0)
    for _ in range(2):
        _spend(ledger)
    _cut(ledger.path, 1)  # As head -n 1 does: the remaining digests are valid.
    with pytest.raises(LedgerError, match="has only 1 of its 3 lines: it was truncated"):
        ledger.read()
    before = _bytes(tmp_path)
    with pytest.raises(LedgerError, match=r"it was truncated.*nothing was spent"):
        _spend(ledger)
    assert _bytes(tmp_path) == before


def test_a_tail_behind_a_kept_release_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    _spend(ledger)
    receipt = _spend(ledger)
    ledger.folder.mkdir()
    ledger.name_of(receipt).write_text("{}")
    assert ledger.kept() == {2: ledger.name_of(receipt)}
    assert len(ledger.read().spends) == 2
    (tmp_path / "ledger.head").unlink()
    _cut(ledger.path, 2)
    text = r"ends at spend 1, but the saved release 000002-\w+\.json is spend 2: it was truncated"
    with pytest.raises(LedgerError, match=text):
        ledger.read()
    with pytest.raises(LedgerError, match=text):
        _spend(ledger)


def test_a_ledger_that_went_on_from_a_copy_is_refused(tmp_path: Path) -> None:
    ledger = _new(tmp_path / "ledger")
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(ledger.path, copy / "ledger")
    receipt = _spend(ledger, 1.0)
    other = Ledger(copy / "ledger")
    assert _spend(other, 0.1).number == 1  # A ledger copied to another folder is separate.
    shutil.copy(other.path, ledger.path)
    with pytest.raises(
        LedgerError, match=r"line 2 of ledger ledger is not the line that was written"
    ):
        _spend(ledger)
    (tmp_path / "ledger.head").unlink()
    ledger.folder.mkdir()
    ledger.name_of(receipt).write_text("{}")
    with pytest.raises(LedgerError, match=r"is not spend 1 of ledger ledger: it continued"):
        _spend(ledger)


def test_a_head_that_stayed_behind_refuses_nothing(tmp_path: Path) -> None:
    """A killed process may leave an old head; the next release is still accepted."""
    ledger = _new(tmp_path / "ledger")
    old = (tmp_path / "ledger.head").read_bytes()
    _spend(ledger)
    (tmp_path / "ledger.head").write_bytes(old)
    assert _spend(ledger).number == 2


@pytest.mark.parametrize("text", ["", "{}", "[" * 200_000, '{"lines": "1", "head": ""}', "\xff"])
def test_a_damaged_head_is_one_sentence(tmp_path: Path, text: str) -> None:
    ledger = _new(tmp_path / "ledger")
    (tmp_path / "ledger.head").write_bytes(text.encode("latin-1"))
    with pytest.raises(LedgerError, match=r"ledger\.head is damaged"):
        _spend(ledger)


# --- the command -------------------------------------------------------------------------------


def test_the_command_makes_shows_and_keeps_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger"
    words = ["ledger", "new", str(path), "--limit", "3,1e-5", "--relation", "zero-out"]
    assert main([*words, "--purpose", "a study"]) == 0
    assert "epsilon 3, delta 1e-5 left" in capsys.readouterr().out
    assert main(["ledger", "show", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "limit": {"epsilon": 3.0, "delta": 1e-5},
        "account": "basic",
        "relation": "zero-out",
        "unit": "row",
        "rows": None,
        "schema": "",
        "purpose": "a study",
        "total": {"epsilon": 0.0, "delta": 0.0},
        "left": {"epsilon": 3.0, "delta": 1e-5},
        "spends": [],
    }
    facts = {"stated_purpose": "a study", "by": "A. Example"}
    spend = Spend("some_key", 0.25, 1e-7, purpose="release", **facts)
    Ledger(path).spend(spend, Relation.ZERO_OUT)
    assert main(["ledger", str(path)]) == 0
    output = capsys.readouterr().out
    assert "some_key" in output
    assert "a study  A. Example" in output  # The list names the purpose and responsible person.
    assert output.splitlines()[-1].endswith("no file")  # This spend has no release file.
    assert main(["ledger", str(path), "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["total"] == {"epsilon": 0.25, "delta": 1e-7}
    assert answer["spends"][0]["mechanism"] == "some_key"
    assert answer["spends"][0]["when"].startswith("20")
    assert main(["ledger", "new", str(path), "--limit", "9,1e-5"]) == 2
    assert "The limit of an existing ledger cannot be changed" in capsys.readouterr().err
    assert main(["ledger", "new", str(tmp_path / "other"), "--limit", "much"]) == 2
    assert capsys.readouterr().err.startswith("dpviz: --limit must be written EPSILON,DELTA")
    assert main(["ledger", "new", str(tmp_path / "other")]) == 2
    assert "--limit must be stated as EPSILON,DELTA; got 'nothing'" in capsys.readouterr().err
    assert main(["ledger", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.startswith("dpviz: ledger other does not exist: make one with")


def test_the_command_binds_a_corrected_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, table = tmp_path / "ledger", tmp_path / "t.csv"
    assert main(["ledger", "new", str(path), "--limit", "3,1e-5"]) == 0
    for content in ("a,b\n1,2\n", "a,b\n1,3\n"):
        table.write_text(content)
        assert main(["ledger", "bind", str(path), str(table), "--purpose", "corrected"]) == 0
    assert "now covers 2 tables of the same people" in capsys.readouterr().out
    assert len(Ledger(path).read().tables) == 2


def test_the_command_fixes_a_schema(tmp_path: Path) -> None:
    path, schema = tmp_path / "ledger", DATA / "example-schema.json"
    words = ["ledger", "new", str(path), "--limit", "3,1e-5", "--schema", str(schema)]
    assert main(words) == 0
    digest = Schema.read(schema).digest
    assert Ledger(path).read().schema == digest
    words[2], words[-1] = str(tmp_path / "other"), str(tmp_path / "missing.json")
    assert main(words) == 2
    assert not (tmp_path / "other").exists()


def test_a_table_that_another_ledger_pays_for_is_told_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another ledger has the table, a release warns; with DPVIZ_ONE_LEDGER it is refused."""
    table, schema = DATA / "example.csv", str(DATA / "example-schema.json")

    def paid(name: str, table: Path = table) -> tuple[int, str]:
        book, out = str(tmp_path / name), str(tmp_path / f"{name}-out.json")
        assert main(["ledger", "new", book, "--limit", "1,1e-5"]) == 0
        words = ["release", str(table), "--schema", schema, "--ledger", book, "--row-bound", "60"]
        status = main([*words, "--epsilon", "1", "--delta", "1e-7", "--out", out])
        return status, capsys.readouterr().err

    assert paid("a.jsonl") == (0, "")
    (tmp_path / "no.head").write_text("{}")
    status, text = paid("b.jsonl")
    assert status == 0
    assert text.startswith("dpviz: a.jsonl in the same folder records this table too. Their costs")
    assert text.count("\n") == 1
    other = tmp_path / "other.csv"
    other.write_text(table.read_text() + "1,1,1,1,1\n")
    assert paid("c.jsonl", other) == (0, "")
    monkeypatch.setenv("DPVIZ_ONE_LEDGER", "on")
    status, text = paid("d.jsonl")
    assert status == 2
    assert "a.jsonl and b.jsonl in the same folder record this table too" in text
    assert "this machine allows one ledger a table; nothing was spent." in text
    assert Ledger(tmp_path / "d.jsonl").read().spends == ()


MOUNTS = """\
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 27 0:30 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g
41 40 0:31 / /tmp/kept rw master:2 propagate_from:1 - ext4 /dev/vdb rw
42 27 0:32 / /with\\040blank rw - ramfs ramfs rw
43 27 0:33 / /twice rw - ext4 /dev/vdc rw
44 43 0:34 / /twice rw - tmpfs tmpfs rw
"""
CONTAINER = """\
50 1 0:40 / / ro,relatime - overlay overlay ro,lowerdir=/x
51 50 0:41 / /tmp rw - tmpfs tmpfs rw,size=1g
52 50 8:1 /volumes/ledgers /var/lib/dpviz/ledgers rw - ext4 /dev/vda rw
"""


@pytest.mark.parametrize(
    ("mounts", "folder", "where"),
    [
        (MOUNTS, "/srv/me/ledgers", None),
        (MOUNTS, "/tmp/ledgers", "in memory"),
        (MOUNTS, "/tmpother/ledgers", None),
        (MOUNTS, "/tmp/kept/ledgers", None),
        (MOUNTS, "/with blank/ledgers", "in memory"),
        (MOUNTS, "/twice", "in memory"),
        (CONTAINER, "/tmp/.local/share/dpviz/ledgers", "in memory"),
        (CONTAINER, "/srv/dpviz/ledgers", "inside the container, which can be deleted"),
        (CONTAINER, "/var/lib/dpviz/ledgers", None),
    ],
)
def test_where_a_folder_does_not_last(
    mounts: str, folder: str, where: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(mounts, encoding="utf-8")
    assert ledger_module._fleeting(Path(folder), file) == where
    assert ledger_module._fleeting(Path(folder), tmp_path / "nothing") is None


def test_a_ledger_known_by_a_name_is_refused_where_it_does_not_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_LEDGERS", str(tmp_path))
    monkeypatch.setattr(ledger_module, "_fleeting", lambda folder: "in memory")
    monkeypatch.setenv("DPVIZ_LEDGERS_TEMPORARY", "no")
    with pytest.raises(LedgerError) as error:
        ledger_module.ledger_named("mine")
    assert str(error.value) == (
        "ledger mine would lie in memory. If a ledger is lost, its budget can be spent "
        "again. Set DPVIZ_LEDGERS to a permanent folder, such as a volume, or set "
        "DPVIZ_LEDGERS_TEMPORARY=on; nothing was spent."
    )
    monkeypatch.setenv("DPVIZ_LEDGERS_TEMPORARY", "Yes")
    assert ledger_module.ledger_named("mine") == tmp_path / "mine.jsonl"


def test_a_ledger_that_pages_made_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPVIZ_LEDGERS", str(tmp_path))
    monkeypatch.setenv("DPVIZ_LEDGERS_TEMPORARY", "on")
    assert main(["ledger", "new", str(tmp_path / "study.jsonl"), "--limit", "3,1e-5"]) == 0
    assert main(["ledger", "study"]) == 0
    assert main(["ledger", "verify", "study"]) == 0
    output = capsys.readouterr()
    assert "study.jsonl: epsilon 0" in output.out
    assert main(["ledger", "studies"]) == 2  # An unknown subcommand is not a ledger.


def test_a_link_into_memory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "memory")
    file = tmp_path / "mountinfo"
    disk = "27 1 8:1 / / rw - ext4 /dev/vda rw\n"
    memory = f"45 27 0:35 / {tmp_path.resolve() / 'memory'} rw - tmpfs tmpfs rw\n"
    file.write_text(disk + memory, encoding="utf-8")
    assert ledger_module._fleeting(tmp_path / "ledgers", file) is None
    assert ledger_module._fleeting(tmp_path / "link" / "ledgers", file) == "in memory"
