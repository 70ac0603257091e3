"""The command line: what it prints is a promise, and what it refuses is one line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.cli import asking, build_parser, dashboard, main
from dpviz.core.metrics import METRICS
from dpviz.core.params import params_of
from dpviz.core.problem import Relation, default_delta
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms

ROOT = Path(__file__).resolve().parents[2]
SECRET = 7316.4859  # a cell that no message may show


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    # Strict JSON: no NaN, no Infinity.
    return json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = np.round(np.random.default_rng(0).normal(size=(40, 3)), 4)
    rows[7, 1] = SECRET
    lines = ["age,income,score", *(",".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# What is printed -----------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def test_the_listing_tells_three_kinds_of_failure_apart(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "mechanisms", "--format", "json")
    assert isinstance(rows, list)
    status = {(row["key"], row["relation"]): row["status"] for row in rows}
    assert set(status.values()) <= set(Verdict)
    for relation in Relation:
        assert status["wishart", relation] == status["laplace_output", relation] == "refuted"
        assert status["noisy_power", relation] == "unproven"
    assert status["analyze_gauss", Relation.REPLACE] == "out_of_scope"
    assert status["analyze_gauss", Relation.ZERO_OUT] == "loose"
    assert status["wishart_exact", Relation.REPLACE] == "holds"


def test_compare_counts_the_components_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A lone-spike threshold would count 40 of 40 for the Gaussian."""
    words = ["compare", "waveform40", "--epsilon", "3", "--delta", "1e-6", "--trials", "2"]
    for key in ("gaussian", "laplace", "wishart_difference", "ppca"):
        words += ["--mechanism", key]
    rows = printed(capsys, *words, "--format", "json")["results"]
    found = {row["mechanism"]: row["components_found"] for row in rows}
    assert found == {"gaussian": 2, "laplace": 1, "wishart_difference": 2, "ppca": None}


def test_compare_prints_the_promised_object(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "compare", "wine", "--trials", "5", "--k", "3", "--format", "json")
    assert {"dataset", "assumed_public", "settings", "reference", "results", "skipped"} <= set(
        found
    )
    dataset = found["dataset"]
    assert set(dataset) == {"name", "n", "d", "row_bound", "domain"}
    assert (dataset["name"], dataset["n"], dataset["d"], dataset["domain"]) == (
        "wine", 178, 13, "ball",
    )  # fmt: skip
    assert dataset["row_bound"] > 0
    assert found["assumed_public"]
    assert all(isinstance(line, str) for line in found["assumed_public"])
    assert set(found["settings"]) == set(params_of(Settings))
    assert found["settings"]["delta"] == default_delta(178)
    assert found["settings"]["center"] == "mean"
    reference = found["reference"]
    assert len(reference["eigenvalues"]) == 13
    assert reference["eigenvalues"] == sorted(reference["eigenvalues"], reverse=True)
    assert reference["captured"] == pytest.approx(sum(reference["eigenvalues"][:3]))
    names = [row["mechanism"] for row in found["results"]]
    skipped = [row["mechanism"] for row in found["skipped"]]
    assert sorted(names + skipped) == sorted(all_mechanisms())
    assert all(set(row) == {"mechanism", "reason"} for row in found["skipped"])
    for row in found["results"]:
        assert {"mechanism", "status", "evidence", "claimed", "spent", "metrics"} <= set(row)
        assert row["status"] in set(Verdict)
        assert row["evidence"].endswith(".")
        info = all_mechanisms()[row["mechanism"]].info
        if info.guarantee == "none":
            assert row["claimed"] is None
        else:
            assert set(row["claimed"]) == {"epsilon", "delta"}
            assert row["claimed"]["epsilon"] == 1
        if row["spent"] is not None:
            assert {"epsilon", "delta", "source"} <= set(row["spent"])
            assert row["spent"]["source"]
        wanted = {
            key
            for key, metric in METRICS.items()
            if metric.needs == "subspace"
            or (metric.needs == "matrix" and info.release != "subspace")
        }
        assert set(row["metrics"]) == wanted
        for summary in row["metrics"].values():
            assert set(summary) == {"mean", "se", "low", "high"}
            assert all(is_number(value) for value in summary.values())
            assert summary["low"] <= summary["high"]


def test_compare_without_a_row_bound(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "wine", "--trials", "2", "--row-bound", "none"]
    found = printed(capsys, *words, "--format", "json")
    assert found["dataset"]["row_bound"] is None
    assert found["dataset"]["domain"] == "unbounded"
    assert not any("row bound" in line for line in found["assumed_public"])
    classes = all_mechanisms()
    for row in found["results"]:
        assert not classes[row["mechanism"]]().needs_row_bound
    reasons = {row["mechanism"]: row["reason"] for row in found["skipped"]}
    assert "row bound" in reasons["gaussian"]
    assert main(words) == 0
    assert "no row bound" in capsys.readouterr().out
    assert main([*words, "--mechanism", "gaussian"]) == 2
    assert "needs a row bound" in capsys.readouterr().err


def test_promised_metric_names() -> None:
    assert {
        "recovery", "captured_share", "captured_total", "projection_distance", "largest_angle",
        "noise_spectral", "noise_frobenius", "low_rank_error", "negative_eigenvalues",
    } <= set(METRICS)  # fmt: skip


def test_another_seed_gives_other_draws(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", "--trials", "3", "--mechanism", "laplace", "--format", "json")
    one, two = (printed(capsys, *words, "--seed", seed)["results"][0] for seed in ("1", "2"))
    assert one["metrics"]["captured_share"] != two["metrics"]["captured_share"]


def test_a_command_without_its_words_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["nonsense"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_one_draw_has_no_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", "--trials", "1", "--mechanism", "gaussian", "--format", "json")
    (row,) = printed(capsys, *words)["results"]
    assert row["metrics"]["captured_share"]["se"] is None


def test_compare_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "iris", "--trials", "3", "--delta", "0"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("iris: n 150, d 4, ball")
    (header,) = [line for line in lines if line.startswith("mechanism ")]
    assert header.split()[:3] == ["mechanism", "status", "spent_epsilon"]
    columns = len(header.split())
    (laplace,) = [line for line in lines if line.startswith("laplace ")]
    assert len(laplace.split()) == columns
    (ppca,) = [line for line in lines if line.startswith("ppca ")]
    assert ppca.split()[-1] == "-"  # a metric that does not apply
    (left,) = [line for line in lines if "it needs a delta above 0" in line]
    assert left.startswith("gaussian, analyze_gauss, ")  # each reason once
    assert left.endswith(" were left out: it needs a delta above 0; got 0.")
    assert captured.err == ""


def test_compare_reads_a_file(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--trials", "3", "--mechanism", "gaussian,laplace", "--format", "json")
    found = printed(capsys, "compare", str(table), *words)
    assert (found["dataset"]["name"], found["dataset"]["n"]) == ("table", 40)
    assert [row["mechanism"] for row in found["results"]] == ["gaussian", "laplace"]


def test_every_option_is_taken(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = table.with_name("bounds.csv")
    bounds.write_text("feature,low,high\nage,-3,3\nincome,-3,3\nscore,-3,3\n", encoding="utf-8")
    words = ["compare", str(table), "--epsilon", "2", "--delta", "1e-3", "--k", "1"]
    words += ["--relation", "zero-out", "--mechanism", "ppca[sweeps=3]", "--mechanism", "laplace"]
    words += ["--trials", "4", "--seed", "9", "--center", "midpoint", "--domain", "box"]
    words += ["--bounds", str(bounds), "--scale", "none", "--row-bound", "quantile:0.5"]
    found = printed(capsys, *words, "--format", "json")
    assert [row["mechanism"] for row in found["results"]] == ["ppca[sweeps=3]", "laplace"]
    expected = {
        "epsilon": 2.0, "delta": 1e-3, "k": 1, "relation": "zero-out", "trials": 4, "seed": 9,
        "center": "midpoint", "domain": "box", "row_bound": "quantile:0.5", "scale": "none",
    }  # fmt: skip
    assert {key: found["settings"][key] for key in expected} == expected
    assert found["dataset"]["domain"] == "box"
    assert found["dataset"]["row_bound"] == pytest.approx(3**0.5)


def test_set_is_short_for_a_variant(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", "--trials", "2", "--mechanism", "ppca", "--format", "json")
    short = printed(capsys, *words, "--set", "ppca.sweeps=3")
    assert [row["mechanism"] for row in short["results"]] == ["ppca[sweeps=3]"]


def test_mechanisms_lists_one_row_per_key_and_relation(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "mechanisms", "--format", "json")
    pairs = [(row["key"], row["relation"]) for row in rows]
    assert pairs == [(key, str(relation)) for key in all_mechanisms() for relation in Relation]
    for row in rows:
        assert set(row) == {
            "key", "label", "paper", "relation", "release", "guarantee", "status", "evidence",
        }  # fmt: skip
        assert row["release"] in ("matrix", "subspace", "data")
        assert row["guarantee"] in ("pure", "approximate", "none")
    assert main(["mechanisms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(rows)


def test_datasets_lists_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed(capsys, "datasets", "--format", "json")
    assert {"digits", "wine", "iris"} <= {row["key"] for row in rows}
    assert main(["datasets"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for param in params_of(Settings).values():
        assert param.flag in shown
    promised = "epsilon delta k relation mechanism trials seed center scale row-bound domain bounds"
    for flag in [*promised.split(), "label"]:
        assert f"--{flag}" in shown


@pytest.mark.parametrize("command", ["compare", "release", "claims", "card"])
def test_help_says_one_default_and_none_where_there_is_none(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """An option that is empty unless given said "all": of columns to leave out, of a title."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    options = re.split(r"\n  (?=-)", capsys.readouterr().out)
    said = {
        text.split()[0]: re.findall(r"Default: ([^.]*)", " ".join(text.split())) for text in options
    }
    assert all(len(defaults) <= 1 for defaults in said.values())
    assert {name for name, defaults in said.items() if defaults == ["all"]} <= {"--mechanism"}


def test_app_starts_streamlit_on_its_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    class Became(Exception):
        """This process has become another program."""

    def execve(program: str, command: list[str], environment: dict[str, str]) -> None:
        assert program == command[0] == sys.executable
        assert environment["OPENBLAS_NUM_THREADS"]  # small matrices: threads would only fight
        raise Became(command[1:])

    monkeypatch.setattr(dashboard.os, "execve", execve)
    monkeypatch.delenv("STREAMLIT_SERVER_ADDRESS", raising=False)
    with pytest.raises(Became) as caught:
        main(["app", "--port", "8600", "--headless"])
    (command,) = caught.value.args
    assert command[:3] == ["-m", "streamlit", "run"]
    assert Path(command[3]).name == "app.py"
    rest = ["--server.port", "8600", "--server.headless", "true"]
    assert command[4:] == ["--server.address", "localhost", *rest]
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "0.0.0.0")
    with pytest.raises(Became) as caught:
        main(["app"])
    assert caught.value.args[0][4:] == []  # the environment has the word


def test_where_no_program_becomes_another_the_server_ends_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    program = "import sys, signal; print('there', flush=True); signal.pause()"
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], env: dict[str, str]) -> None:
            super().__init__([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE)
            started.append(self)

        def wait(self, timeout: float | None = None) -> int:
            if self.poll() is None and not self.stdout.closed:  # type: ignore[union-attr]
                assert self.stdout.readline() == b"there\n"  # type: ignore[union-attr]
                self.stdout.close()  # type: ignore[union-attr]
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(dashboard.os, "name", "nt")
    monkeypatch.setattr(dashboard.subprocess, "Popen", Popen)
    assert main(["app"]) == 130
    assert started[0].returncode == -signal.SIGTERM


# What is refused -----------------------------------------------------------------------------

SUBSPACES = [key for key, cls in all_mechanisms().items() if cls.info.release == "subspace"]
NEEDS_DELTA = [key for key, c in all_mechanisms().items() if c.info.guarantee == "approximate"]

# Options, then what the line must hold: the option, the range, what was given.
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
    except SystemExit as stopped:  # argparse's own way
        status = stopped.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("dpviz: ")
    assert "Traceback" not in captured.err
    for part in parts:
        assert part in captured.err


def test_delta_0_skips_unnamed_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "iris", "--trials", "2", "--delta", "0", "--format", "json")
    found = printed(capsys, *words)
    reasons = {row["mechanism"]: row["reason"] for row in found["skipped"]}
    assert set(NEEDS_DELTA) <= set(reasons)
    assert {row["mechanism"] for row in found["results"]}.isdisjoint(NEEDS_DELTA)


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
    given = set(re.findall(r"\d+(?:\.\d+)?", words))
    rows = np.loadtxt(table, delimiter=",", skiprows=1)
    centred = rows - rows.mean(axis=0)
    longest = np.linalg.norm(centred, axis=1).max()
    forbidden = [*rows.ravel(), *rows.mean(axis=0), longest, *np.linalg.svd(rows)[1]]
    shown = {text for text in re.findall(r"\d+\.\d+", message) if text not in given}
    for value in forbidden:
        assert not any(text in (f"{abs(value):.4g}", repr(abs(float(value)))) for text in shown)
    assert str(SECRET) not in message


def test_a_bad_cell_is_named_by_its_place_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n1,2\n3,4\nsecret-cell,5,6\n", encoding="utf-8")
    assert main(["compare", str(path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "4" in message  # the line
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


def test_every_command_has_a_parser() -> None:
    shown = build_parser().format_help()
    for command in ("datasets", "fetch", "mechanisms", "compare", "app"):
        assert command in shown


def test_a_column_named_auto_is_a_label_when_it_is_written_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3)).round(3)
    path = tmp_path / "t.csv"
    lines = ["a,b,c,auto", *(",".join(map(str, (*row, i % 2))) for i, row in enumerate(rows))]
    path.write_text("\n".join(lines))

    def features(label: str) -> int:
        words = ["compare", str(path), "--label", label, "--trials", "2", "--format", "json"]
        assert main([*words, "--mechanism", "gaussian", "--k", "1"]) == 0
        return int(json.loads(capsys.readouterr().out)["dataset"]["d"])

    assert features("auto") == 4  # no label: the column is a feature
    assert features("=auto") == 3


def test_a_comma_alone_names_no_mechanism(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "iris", "--trials", "2", "--mechanism", ","]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dpviz: --mechanism must be mechanism keys")


def test_a_step_that_costs_nothing_changes_nothing() -> None:
    """A random subspace does not look at the rows: what its means differ by is their rounding."""
    bars = dpviz.waterfall("iris", mechanisms=("random_projection",), trials=2, k=1).table()
    assert bars["change"].tolist()[1:] == [0.0, 0.0, 0.0]


def test_a_waterfall_needs_no_bounds_that_nobody_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``waterfall TABLE``, for a table without public bounds: they are listed as taken from it."""
    path = tmp_path / "mine.csv"
    rows = np.random.default_rng(2).standard_normal((60, 3)) * [3, 1, 1]
    np.savetxt(path, rows, delimiter=",", header="a,b,c", comments="")
    assert main(["waterfall", str(path), "--trials", "2", "--k", "1", "--format", "json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["step"] for step in steps][:2] == ["everything public", "mean private"]
    assert any(
        "the feature bounds (smallest and largest" in text for text in steps[1]["assumed_public"]
    )
    assert main(["waterfall", "iris", "--trials", "2", "--k", "1"]) == 0
    said = capsys.readouterr().out
    # noise, batches and divisors are sized by n, so n is public in every bar, paid count or not
    assert "count private" in said
    bars = [line for line in said.splitlines() if "the number of rows n" in line]
    assert len(bars) == said.count("private  ") + 1 == 4
    assert "the number of rows n of the padded table, of whom how many are present" in bars[-1]
    # what is stated is kept
    words = ["waterfall", str(path), "--trials", "2", "--k", "1", "--bounds", "known"]
    assert main(words) == 2
    assert "this table has no known ones" in capsys.readouterr().err
