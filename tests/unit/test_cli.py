"""The command line: its output format is a promise, and each refusal is one line."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpviz.cli import asking, main
from dpviz.core.seeding import Draws
from dpviz.mechanisms import all_mechanisms

ROOT = Path(__file__).resolve().parents[2]
SECRET = 7316.4859  # No error message may show the number in this cell.


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(words) == 0
    output = capsys.readouterr()
    assert output.err == ""
    # Accept only strict JSON: NaN and Infinity are errors.
    return json.loads(output.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = np.round(np.random.default_rng(0).normal(size=(40, 3)), 4)
    rows[7, 1] = SECRET
    lines = ["age,income,score", *(",".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# Printed output ------------------------------------------------------------------------------


def test_a_command_without_its_words_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["nonsense"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_set_is_short_for_a_variant(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", "--trials", "2", "--mechanism", "ppca", "--format", "json")
    short = printed(capsys, *words, "--set", "ppca.sweeps=3")
    assert [row["mechanism"] for row in short["results"]] == ["ppca[sweeps=3]"]


# Refused input -------------------------------------------------------------------------------

SUBSPACES = [key for key, cls in all_mechanisms().items() if cls.info.release == "subspace"]
NEEDS_DELTA = [key for key, c in all_mechanisms().items() if c.info.guarantee == "approximate"]

# Options, and the words that the message must contain: the option, allowed and given values.
BAD: list[tuple[str, tuple[str, ...]]] = [
    *((f"iris --k 4 --mechanism {key}", (f"--mechanism {key}", "k from 1 to 3", "got 4"))
      for key in SUBSPACES),
    *((f"iris --delta 0 --mechanism {key}", (f"--mechanism {key}", "delta above 0", "got 0"))
      for key in NEEDS_DELTA),
    ("iris --k 5", ("--k", "from 1 to 4", "5")),
    ("iris --k 0", ("--k", "a whole number from 1", "0")),
    ("iris --k 1.5", ("--k", "a whole number", "1.5")),
    ("iris --k two", ("--k", "a whole number", "two")),
    ("iris --epsilon 0", ("--epsilon", "from 0.0001 to 1e6", "'0'")),
    ("iris --epsilon -1", ("--epsilon", "from 0.0001 to 1e6", "'-1'")),
    ("iris --epsilon -1e-3", ("--epsilon", "from 0.0001 to 1e6", "'-1e-3'")),
    ("iris --epsilon -inf", ("--epsilon", "from 0.0001 to 1e6", "'-inf'")),
    ("iris --epsilon nan", ("--epsilon", "from 0.0001 to 1e6", "'nan'")),
    ("iris --epsilon 1e9", ("--epsilon", "from 0.0001 to 1e6", "'1e9'")),
    ("iris --epsilon one", ("--epsilon", "from 0.0001 to 1e6", "'one'")),
    ("iris --delta 1", ("--delta", "from 0 to below 1", "'1'")),
    ("iris --delta 1.5", ("--delta", "from 0 to below 1", "'1.5'")),
    ("iris --delta -0.1", ("--delta", "from 0 to below 1", "'-0.1'")),
    ("iris --delta nan", ("--delta", "from 0 to below 1", "'nan'")),
    ("iris --relation add-remove", ("--relation", "one of replace, zero-out", "'add-remove'")),
    ("iris --mechanism magic", ("--mechanism", "one of", "'magic'")),
    ("iris --mechanism ppca[speed=3]", ("ppca.speed", "one of sweeps", "'speed'")),
    ("iris --mechanism ppca[sweeps=0]", ("ppca.sweeps", "from 1 to 2000", "'0'")),
    ("iris --mechanism ppca[sweeps", ("--mechanism", "key[name=value,...]", "'ppca[sweeps'")),
    ("iris --domain box --center mean", ("--center", "midpoint or none", "'mean'")),
    ("iris --row-bound quantile:2", ("--row-bound", "Q above 0 and at most 1", "'quantile:2'")),
    ("iris --row-bound 0", ("--row-bound", "a number from 1e-100", "'0'")),
    ("iris --row-bound -3", ("--row-bound", "a number from 1e-100", "'-3'")),
    ("iris --domain box --bounds nowhere.csv", ("--bounds", "CSV or Parquet", "'nowhere.csv'")),
    ("iris --domain box --bounds known", ("--bounds", "max or a file", "'known'")),
    ("iris --domain sphere", ("--domain", "one of ball, box", "'sphere'")),
    ("iris --trials 0", ("--trials", "from 1 to 1e6", "'0'")),
    ("iris --seed -1", ("--seed", "from 0", "'-1'")),
    ("iris --scale robust", ("--scale", "one of none, standardize", "'robust'")),
    ("iris --label petals", ("label", "a column of iris", "'petals'")),
    ("nowhere.csv", ("table", "CSV or Parquet", "'nowhere.csv'")),
    ("iris --format xml", ("--format", "json", "'xml'")),
    ("iris --nonsense 3", ("--nonsense",)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "parts"), BAD, ids=[words for words, _ in BAD])
def test_bad_input_is_one_line(
    words: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main(["compare", *words.split()])
    except SystemExit as stopped:  # argparse raises SystemExit for wrong options.
        status = stopped.code
    output = capsys.readouterr()
    assert status == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("dpviz: ")
    assert "Traceback" not in output.err
    for part in parts:
        assert part in output.err


@pytest.mark.parametrize("flag", ["--out", "--save"])
def test_a_file_in_no_folder_is_refused_before_any_work(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    monkeypatch.setattr(Draws, "trials", drawn)
    words = ["sweep", "iris", "--over", "k", "--values", "1", "--mechanism", "gaussian"]
    assert main([*words, flag, str(tmp_path / "nowhere" / "file.csv")]) == 2
    assert "folder that exists" in capsys.readouterr().err


def test_a_run_that_found_a_fault_ends_with_another_status(tmp_path: Path) -> None:
    ledger, release, card = (str(tmp_path / name) for name in ("l.jsonl", "r.json", "c.json"))
    table, schema = str(ROOT / "data" / "example.csv"), str(ROOT / "data" / "example-schema.json")
    assert main(["ledger", "new", ledger, "--limit", "3,1e-5"]) == 0
    words = ["--ledger", ledger, "--schema", schema, "--row-bound", "10", "--delta", "1e-6"]
    assert main(["release", table, *words, "--out", release]) == 0
    assert main(["release", "card", release, "--ledger", ledger, "--out", card]) == 0
    assert main(["release", "verify", card, release, ledger]) == 0
    other = str(tmp_path / "other.json")
    assert main(["release", table, *words, "--out", other]) == 0
    assert main(["release", "verify", card, other, ledger]) == 1


@pytest.mark.parametrize(
    "words",
    [
        "--row-bound 1e-200", "--row-bound 1e200", "--label nobody", "--k 9", "--bounds x.csv",
        "--mechanism ppca --k 3", "--domain box --bounds known", "--row-bound quantile:0",
    ],
)  # fmt: skip
def test_no_message_shows_a_cell_or_a_statistic(
    table: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(table), *words.split()]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    numbers = set(re.findall(r"\d+(?:\.\d+)?", words))
    rows = np.loadtxt(table, delimiter=",", skiprows=1)
    deviations = rows - rows.mean(axis=0)
    longest = np.linalg.norm(deviations, axis=1).max()
    forbidden = [*rows.ravel(), *rows.mean(axis=0), longest, *np.linalg.svd(rows)[1]]
    decimals = {text for text in re.findall(r"\d+\.\d+", message) if text not in numbers}
    for value in forbidden:
        assert not any(text in (f"{abs(value):.4g}", repr(abs(float(value)))) for text in decimals)
    assert str(SECRET) not in message


def test_a_bad_cell_is_named_by_its_place_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n1,2\n3,4\nsecret-cell,5,6\n", encoding="utf-8")
    assert main(["compare", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "4" in message  # The message contains the number of the faulty line.
    assert "secret-cell" not in message


@pytest.mark.parametrize("port", ["0", "70000", "-5"])
def test_ports(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", "--port", port]) == 2
    assert capsys.readouterr().err == (f"dpviz: --port must be from 1 to 65535; got '{port}'.\n")


def test_bugs_stay_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(asking, "tell", broken)
    with pytest.raises(ZeroDivisionError):
        main(["datasets"])


def test_a_class_that_cannot_start_tells_nobody_an_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert main(["class", "--port", str(server.getsockname()[1])]) == 2
    monkeypatch.setitem(sys.modules, "streamlit", None)  # This imitates a missing Streamlit.
    assert main(["class", "--port", "8600"]) == 2
    assert capsys.readouterr().out == ""
