"""The command line as people use it every day: a first look, hints, pipes, defaults, completion."""

from __future__ import annotations

import io
import json
import re
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import dpviz
from dpviz.cli import look, main, terminal
from dpviz.cli.look import ROWS, glance
from dpviz.mechanisms import featured

QUICK = ("--trials", "2", "--mechanism", "gaussian")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    try:
        status = main(words)
    except SystemExit as ended:
        status = int(str(ended.code))
    said = capsys.readouterr().err
    assert status == 2
    assert said.count("\n") == 1
    return said


# A first look --------------------------------------------------------------------------------


def three_sentences(lines: list[str]) -> list[str]:
    """Return the verdict, and hold it to its number of sentences: one a line, then a blank."""
    assert lines[3] == ""
    for line in lines[:3]:
        assert re.findall(r"[.!?](?= |$)", line) == ["."]
        assert line.endswith(".")
    return lines[:3]


def test_a_table_alone_is_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    lines = printed(capsys, "iris").splitlines()
    best, false, public = three_sentences(lines)
    assert best.startswith("At epsilon 1 and delta 1e-6, ")
    assert re.fullmatch(r"Not counted: Wishart, .* is false; Analyze Gauss, .* fails here.*", false)
    assert public.startswith("iris has 150 people (rows) and 4 features; assumed public: ")
    assert "the row bound R (largest row norm)" in public
    rows = lines[4 : 4 + ROWS]
    assert all(len(row) <= 72 for row in rows)
    assert max(map(len, rows)) > 60  # the bars use the width
    shares = [int(found[1]) for row in rows if (found := re.search(r"(\d+)\u00a0%", row))]
    assert len(shares) == ROWS
    fails = ["✗" in row or "⊘" in row or "?" in row for row in rows]
    assert fails == sorted(fails)  # false claims last
    assert any(fails)
    good = shares[: fails.index(True)]
    assert good == sorted(good, reverse=True)
    assert shares[fails.index(True)] > good[-1]  # and not by their recovery
    commands = [line.strip() for line in lines[4 + ROWS :] if line.startswith("  dpviz ")]
    assert len(commands) == 3
    assert "\x1b" not in "".join(lines)  # no terminal, no colour


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("iris --delta 0", ROWS),  # half of what is featured needs one
        ("iris --mechanism all --delta 0", ROWS),
        ("wine --domain box", ROWS),
        ("iris --center private", ROWS),
        ("data/example.csv --mechanism wishart", 1),
        ("iris --mechanism non_private", 1),
        ("iris --k 4", ROWS),
        ("plan:n=1e5,spectrum=power:d=50,exponent=1.5,total=0.5", ROWS),
    ],
)
def test_the_verdict_has_three_sentences_in_any_setting(
    words: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, *words.split(), "--trials", "2").splitlines()
    _, claims, public = three_sentences(lines)
    assert re.search("; assumed public: .*number of (rows|people) n", public)
    rows = lines[4 : lines.index("", 4)]
    assert len(rows) == count
    if " all " in words:  # what cannot run is said, with its reason
        assert "clipped_gaussian cannot run, as it needs a delta above 0; got 0" in claims


def test_a_recovery_below_chance_keeps_its_sign_and_has_no_bar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = [
        "wine",
        "--domain",
        "box",
        "--epsilon",
        "0.02",
        "--trials",
        "5",
        "--mechanism",
        "gaussian",
    ]
    row = printed(capsys, *asked).splitlines()[4]
    assert re.search("· +-[0-9]+\u00a0%", row), row
    assert "█" not in row


def test_what_reading_left_out_is_said_before_what_comes_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, "data/example.csv", "--mechanism", "gaussian", "--trials", "2")
    said = [line for line in lines.splitlines() if line.startswith("note: ")]
    assert said[-1] == "note: 3 rows of 120 without a value were left out."
    assert lines.index(said[-1]) < lines.index("Next:")


def test_what_a_board_shows_unasked_can_run() -> None:
    shown = dpviz.board("iris", delta=0).settings.mechanisms
    assert len(shown) == ROWS
    assert {"ppca", "wishart"} < set(shown)
    assert "gaussian" not in shown
    assert dpviz.board("iris").settings.mechanisms == featured()


@pytest.mark.parametrize("width", [40, 60, 200])
def test_rows_fit_the_terminal(width: int) -> None:
    found = dpviz.compare("iris", trials=2, mechanisms=["gaussian", "wishart_difference"])
    plain = glance(found.comparison, "iris", width, colour=False).splitlines()
    rows = [line for line in plain if "\u00a0% " in line and "claim holds" in line][-2:]
    assert len(rows) == 2
    assert max(map(len, rows)) <= width
    coloured = glance(found.comparison, "iris", width, colour=True)
    assert "\x1b[32m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured).splitlines() == plain


@pytest.mark.parametrize(
    ("terminal", "variables", "coloured"),
    [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False),
     (False, {}, False)],
)  # fmt: skip
def test_colour_is_for_terminals_whose_owner_wants_it(
    terminal: bool, variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(look.sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    assert look._coloured() is coloured


def test_a_file_and_options_are_looked_at_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my table.csv"
    path.write_text("a,b,c\n" + "1,2,4\n2,1,0\n5,3,3\n" * 20, encoding="utf-8")
    asked = ("--epsilon", "2", "--k", "1", "--relation", "zero-out", "--scale", "standardize")
    shown = printed(capsys, str(path), *asked, *QUICK)
    assert "At epsilon 2" in shown
    # what comes next asks the same of the same table
    same = "--k 1 --relation zero-out --scale standardize"
    assert f"dpviz board '{path}' --epsilon 2 {same} --out board.html" in shown
    assert f"dpviz sweep '{path}' {same} --over epsilon" in shown
    assert "dpviz audit gaussian --epsilon 2 --delta 1e-6 --k 1 --relation zero-out\n" in shown
    whole = printed(capsys, str(path), *QUICK, "--format", "json")
    assert json.loads(whole) == json.loads(
        printed(capsys, "compare", str(path), *QUICK, "--format", "json")
    )


def test_nothing_prints_help_with_examples_and_the_version_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed(capsys)
    assert "examples:\n  dpviz digits" in shown
    assert "--plugin" in shown
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"dpviz {dpviz.__version__}\n"


# Hints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("comprae iris", "(did you mean compare?)"),
        ("compare digist", "(did you mean digits?)"),
        ("compare iris --mechanism gausian", "(did you mean gaussian?)"),
        ("compare iris --epsiln 2", "(did you mean --epsilon?)"),
        ("compare iris --relation replaced", "(did you mean replace?)"),
        ("compare iris --format jsom", "(did you mean json?)"),
    ],
)
def test_a_slip_of_the_hand_is_told_from_nonsense(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hint in refused(capsys, *words.split())
    assert "did you mean" not in refused(capsys, "compare", "iris", "--mechanism", "xyzzyx")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nowhere.csv", "nowhere.csv is no command, no built-in table and no file that is here;"),
        (
            "digist",
            "digist is no command, no built-in table and no file that is here (did you mean",
        ),
        ("kept", "kept is a folder; dpviz takes a command or a table first"),
    ],
)
def test_a_first_word_that_is_nothing_may_be_a_table(
    word: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It listed the commands alone, where a file's name was mistyped."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").mkdir()
    assert said in refused(capsys, word)


def test_a_port_that_is_taken_names_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(capsys, "app", "--port", str(port))
    assert said.startswith("dpviz: --port must be a port that no other program answers at")
    assert str(port) in said


# Formats, pipes and defaults -----------------------------------------------------------------


def test_every_answer_comes_in_four_formats(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", *QUICK, "--format")
    table = pd.read_csv(io.StringIO(printed(capsys, *words, "csv")))
    rows = [json.loads(line) for line in printed(capsys, *words, "jsonl").splitlines()]
    whole = json.loads(printed(capsys, *words, "json"))
    assert table["mechanism"].tolist() == [row["mechanism"] for row in rows] == ["gaussian"]
    assert rows[0]["recovery"] == whole["results"][0]["metrics"]["recovery"]["mean"]
    listed = printed(capsys, "mechanisms", "--format", "csv")
    assert listed.startswith("key,label,")


def test_a_sweep_without_a_file_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "iris", "--over", "epsilon", "--values", "1,2", *QUICK, "--cache", "none"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert set(pd.read_csv(io.StringIO(said.out))["epsilon"]) == {1, 2}
    assert main([*words, "--format", "jsonl"]) == 0
    assert {json.loads(line)["epsilon"] for line in capsys.readouterr().out.splitlines()} == {1, 2}


def test_a_table_comes_by_stdin(warm: Path) -> None:
    text = "a,b,c\n" + "1,2,4\n2,1,0\n5,3,3\n" * 20
    answers = [
        subprocess.run(
            [str(warm), "-m", "dpviz", *words, *QUICK, "--format", "json"],
            input=text, capture_output=True, text=True, check=True,
        ).stdout
        for words in (["compare", "-"], ["-"])
    ]  # fmt: skip
    assert answers[0] == answers[1]
    found = json.loads(answers[0])
    assert (found["dataset"]["n"], found["dataset"]["d"]) == (60, 3)


def test_defaults_come_from_the_folder_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("dpviz.toml")
    path.write_text('epsilon = 0.5\nmechanisms = ["gaussian", "laplace"]\ntrials = 2\n')
    assert main(["compare", "iris", "--trials", "3", "--format", "json"]) == 0
    said = capsys.readouterr()
    settings = json.loads(said.out)["settings"]
    assert (settings["epsilon"], settings["trials"]) == (0.5, 3)  # what is typed comes first
    assert settings["mechanisms"] == ["gaussian", "laplace"]
    assert said.err == "dpviz: from dpviz.toml: epsilon, mechanisms\n"
    path.write_text("epsilom = 0.5\n")
    assert "(did you mean epsilon?)" in refused(capsys, "compare", "iris")
    path.write_text("epsilon 0.5\n")
    assert "dpviz.toml must be a TOML file" in refused(capsys, "compare", "iris")
    path.write_text("epsilon = -1\n")
    assert main(["compare", "iris"]) == 2
    assert "dpviz: --epsilon must be a number from" in capsys.readouterr().err


# A log and a shell ---------------------------------------------------------------------------


def test_a_log_is_told_how_far_a_run_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    steps = terminal.Steps()
    for done in range(30):
        now[0] += 1.0
        steps.show(done, 30, "laplace")
    assert capsys.readouterr().err.splitlines() == [
        "9/30 laplace", "19/30 laplace", "29/30 laplace",
    ]  # fmt: skip


def test_bash_completes_commands_options_and_keys(tmp_path: Path, warm: Path) -> None:
    script = tmp_path / "completion.bash"
    words = [str(warm), "-m", "dpviz", "completion", "bash"]
    script.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    def completed(*typed: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in ("dpviz", *typed))
        code = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(typed)}; _dpviz; "
        code += 'printf "%s\\n" "${COMPREPLY[@]}"'
        answer = subprocess.run(
            ["bash", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return set(answer.stdout.split())

    assert completed("comp") == {"compare", "completion", "completion.bash"}
    assert "--epsilon" in completed("compare", "--eps")
    assert "digits" in completed("compare", "dig")
    assert {"gaussian"} <= completed("compare", "digits", "--mechanism", "gau")


def test_options_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    shown = capsys.readouterr().out
    places = [shown.index(f"\n{group}:") for group in ("Privacy", "Preparation", "Precision")]
    assert places[0] != places[1]
    assert shown.index("--epsilon NUMBER", places[0]) > places[0]
