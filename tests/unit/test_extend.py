"""A mechanism of one's own: five lines in a notebook, a file, or another package."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz import extend
from dpviz.cli import main
from dpviz.core import plugins
from dpviz.core.errors import CannotRun, InvalidSetting, WrongArgument
from dpviz.core.settings import Settings
from dpviz.extend import checks
from dpviz.mechanisms import all_mechanisms, featured, parse_variant
from dpviz.report.figures.theme import BROUGHT, GREY, HIGHLIGHTS, colour_of_key, panels_unjudged
from tests.workers import every_job

ROOT = Path(__file__).resolve().parents[2]

Rng = np.random.Generator


def table() -> pd.DataFrame:
    rows = np.random.default_rng(1).standard_normal((60, 4)) * [3, 2, 1, 1]
    return pd.DataFrame(rows, columns=list("abcd"))


@dpviz.mechanism(claim="pure", release="subspace")
def mine(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
    """Draw a random subspace"""
    return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]


@dpviz.mechanism(claim="approximate", release="matrix", label="My noise")
def noisy(
    rows: Any, epsilon: float, delta: float, k: int, rng: Rng, *, cushion: float = 2.0
) -> Any:
    d = rows.shape[1]
    noise = rng.standard_normal((d, d)) * cushion / epsilon / len(rows)
    return rows.T @ rows / len(rows) + (noise + noise.T) / 2


def test_a_function_runs_beside_a_key_and_says_that_nothing_proves_it() -> None:
    found = dpviz.compare(table(), mechanisms=[mine, "gaussian"], trials=200)
    shown = found.table().set_index("mechanism")
    assert shown["status"].to_dict() == {"mine": "unproven", "gaussian": "holds"}
    # a random subspace is recovery 0; 200 draws, each with a standard deviation below 1/2
    assert abs(shown.loc["mine", "recovery"]) < 5 * 0.5 / math.sqrt(200)
    status = found.comparison.results[0].status
    assert "No calibration was given" in status.evidence
    assert mine.info.summary == "Draw a random subspace."
    assert found.data()["settings"]["mechanisms"] == ["mine", "gaussian"]
    assert found.made is not None
    assert found.made.options["mechanisms"] == ["mine", "gaussian"]


def test_a_sweep_gives_the_same_bytes_with_one_worker_and_two() -> None:
    options = {"over": "epsilon", "values": [0.5, 5.0], "trials": 3}
    one, two = (
        dpviz.sweep(table(), mechanisms=[mine, noisy], workers=workers, **options).table()
        for workers in (1, 2)
    )
    assert one.equals(two)
    assert set(one["mechanism"]) == {"mine", "noisy"}


def test_least_board_audit_and_account_take_it(tmp_path: Path) -> None:
    needed = dpviz.least(table(), recovery=0.5, mechanisms=[noisy]).table()
    assert needed["mechanism"].tolist() == ["noisy"]
    assert not needed["counts"].any()  # nothing proves it
    board = dpviz.board(table(), mechanisms=[noisy, "gaussian"], trials=5)
    board.write(tmp_path / "board.html")
    assert "My noise" in (tmp_path / "board.html").read_text(encoding="utf-8")
    audited = dpviz.audit(noisy, epsilon=1.0, trials=2_000)
    assert audited.data()["mechanism"] == "noisy"
    with pytest.raises(CannotRun):
        dpviz.account(noisy)


def test_keywords_are_parameters() -> None:
    loud = noisy(cushion=50.0)
    assert loud.text == "noisy[cushion=50]"
    found = dpviz.compare(table(), mechanisms=[noisy, loud], trials=20).table()
    quiet, worse = found["recovery"]
    assert quiet > worse + 0.2


def test_a_calibration_says_what_is_spent() -> None:
    def calibrate(problem: extend.Problem, budget: extend.Budget) -> extend.Calibration:
        sensitivity = extend.frobenius(problem)
        scale = math.nextafter(sensitivity * extend.noise_std(budget), math.inf)
        part = extend.GaussianPart(sensitivity, scale, extend.frobenius_attained(problem))
        return extend.Calibration(problem, budget, scale, (part,))

    @dpviz.mechanism(claim="approximate", release="matrix", calibrate=calibrate)
    def proved(rows: Any, epsilon: float, delta: float, k: int, rng: Rng, scale: float) -> Any:
        d = rows.shape[1]
        noise = rng.standard_normal((d, d)) * scale
        return rows.T @ rows / len(rows) + (np.tril(noise) + np.tril(noise).T) / 2

    found = dpviz.compare(table(), mechanisms=[proved], trials=5).data()["results"][0]
    assert found["status"] == "holds"
    assert found["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert found["evidence"].startswith("By its author's own account")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda d, k: np.eye(d), "an array of shape (4, 2)"),
        (lambda d, k: "no array", "an array of numbers; got str"),
        (lambda d, k: np.full((d, k), np.nan), "finite numbers"),
        (lambda d, k: np.ones((d, k)), "orthonormal columns"),
        (lambda d, k: np.eye(d)[:, :k] + 0j, "real numbers; got complex ones"),
    ],
)
def test_what_comes_back_wrong_is_said_in_a_sentence(given: Any, words: str) -> None:
    @dpviz.mechanism(claim="pure")
    def wrong(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        return given(rows.shape[1], k)

    with pytest.raises(CannotRun, match="wrong cannot run: it must return") as caught:
        dpviz.compare(table(), k=2, mechanisms=[wrong], trials=2)
    assert words in str(caught.value)


def test_a_function_may_return_the_same_array_again() -> None:
    again = np.empty((5, 2))

    @dpviz.mechanism(claim="none")
    def kept(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        again[:] = np.linalg.qr(rng.standard_normal((5, 2)))[0]
        return again

    one = kept()
    _, found = checks.released(one, *next(checks.runnable(one)), trials=range(3))
    assert len(np.unique(found.raw, axis=0)) == 3


def test_a_function_of_another_form_and_an_unknown_claim_are_refused() -> None:
    with pytest.raises(WrongArgument, match=r"must be told what is claimed, as in @dpviz"):

        @dpviz.mechanism
        def bare(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
            return rows

    with pytest.raises(WrongArgument, match="must take rows, epsilon, delta, k, rng first"):
        dpviz.mechanism(claim="pure")(lambda X, e: X)
    with pytest.raises(InvalidSetting, match="claim must be one of pure, approximate, none"):
        dpviz.mechanism(claim="strong")


def test_rows_cannot_be_written_to() -> None:
    @dpviz.mechanism(claim="none", release="matrix")
    def writes(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        rows[0] = 0
        return rows.T @ rows

    with pytest.raises(
        CannotRun, match=r"^writes cannot run: ValueError in line \d+ of "
    ) as caught:
        dpviz.compare(table(), mechanisms=[writes], trials=1)
    assert "read-only" in str(caught.value.__cause__)


class Mine(dpviz.Mechanism):
    """A class needs no decorator and no more than three facts."""

    info = extend.MechanismInfo(label="Mine too", release="subspace", guarantee="pure")

    def calibrate(self, problem: extend.Problem, budget: extend.Budget) -> extend.Calibration:
        return extend.Calibration(problem, budget, 1.0)

    def release_many(
        self, data: extend.SecondMoment, calibration: extend.Calibration, draws: extend.Draws
    ) -> extend.Release:
        d, k = calibration.problem.d, calibration.problem.k
        return extend.Release.of_frames(np.linalg.qr(draws.normal(d, k))[0])

    def evidence(self, problem: Any, budget: Any, spent: Any) -> str:
        return "It looks at no row."


def test_a_class_is_handed_in_as_it_is() -> None:
    found = dpviz.compare(table(), mechanisms=[Mine, Mine(), "gaussian"], trials=5).table()
    assert found["mechanism"].tolist() == ["mine", "gaussian"]
    # no part says what it does with the data: that is no proof that it does nothing
    assert found["status"].tolist() == ["unproven", "holds"]
    assert str(dpviz.audit(Mine, trials=500).verdict) == "consistent"
    assert dpviz.compare(table(), mechanisms=Mine, trials=5).table()["mechanism"].tolist() == [
        "mine"
    ]


PLUGIN = '''
"""A plugin."""

import numpy as np

from dpviz.extend import mechanism


@mechanism(claim="pure", release="subspace", label="From a file")
def from_a_file(rows, epsilon, delta, k, rng, *, steps=1):
    return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with a mechanism; what it brings is gone afterwards."""
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN, encoding="utf-8")
    monkeypatch.setenv(plugins.VARIABLE, "")
    yield path
    monkeypatch.undo()
    all_mechanisms.cache_clear()
    plugins.plugin_module.cache_clear()


def bring(path: Path) -> None:
    all_mechanisms.cache_clear()
    plugins.add_plugins([str(path)])


def test_what_an_author_s_code_says_of_a_row_is_not_said_again(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin.write_text(QUOTES, encoding="utf-8")
    all_mechanisms.cache_clear()
    command = ["compare", "iris", "--plugin", str(plugin), "--mechanism", "quotes", "--trials", "1"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said == "dpviz: --mechanism quotes cannot run: RuntimeError in line 6 of mine.py\n"


QUOTES = """
from dpviz.extend import mechanism

@mechanism(claim="none", release="matrix")
def quotes(rows, epsilon, delta, k, rng):
    raise RuntimeError(str(rows[0]))
"""


def test_a_plugin_is_on_every_list_with_its_own_colour(plugin: Path) -> None:
    before = list(all_mechanisms())
    bring(plugin)
    assert list(all_mechanisms()) == [*before, "from_a_file"]  # nobody moves
    assert featured()[1] == "from_a_file"
    assert len(featured()) == 7
    assert parse_variant("from_a_file[steps=3]").text == "from_a_file[steps=3]"
    assert colour_of_key("from_a_file") in BROUGHT
    assert not {*HIGHLIGHTS, GREY} & set(BROUGHT)
    (panel,) = panels_unjudged([parse_variant("from_a_file")])
    assert panel.highlighted
    assert panel.dash != "solid"
    assert "from_a_file" in dpviz.list_mechanisms().keys
    # a command that is copied loads it too; where its file lies is nobody's business
    for command in (
        Settings(mechanisms=("from_a_file",)).command(),
        parse_variant("from_a_file").rerun,
        dpviz.account("gaussian").made.command,
    ):
        assert command.endswith(" --plugin YOUR_PLUGIN.py"), command


def test_a_plugin_of_the_command_line_reaches_workers(
    plugin: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_mechanisms.cache_clear()
    every_job(monkeypatch)
    out = tmp_path / "swept.csv"
    words = ["sweep", "iris", "--over", "epsilon", "--values", "1,2", "--trials", "2"]
    words += ["--mechanism", "from_a_file", "--workers", "2", "--cache", "none"]
    assert main([*words, "--out", str(out), f"--plugin={plugin}"]) == 0
    assert set(pd.read_csv(out)["mechanism"]) == {"from_a_file"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def broken(:\n", "mine.py, line 1: SyntaxError"),
        ("x = 1\nx.y\n", "mine.py, line 2: AttributeError"),
        (PLUGIN.replace("from_a_file", "gaussian"), "gaussian twice"),
        (
            "import dpviz\n@dpviz.mechanism(claim='pure', release='matrix')\n"
            "def f(A, epsilon, rng):\n    return A\n",
            "f must take rows, epsilon, delta, k, rng first",  # what to write is not cut off
        ),
    ],
)
def test_a_plugin_that_does_not_run_is_one_sentence(
    plugin: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    plugin.write_text(text, encoding="utf-8")
    all_mechanisms.cache_clear()
    assert main(["mechanisms", "--plugin", str(plugin)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert words in said
    assert "Traceback" not in said


def test_a_plugin_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--plugin", "nowhere.py"]) == 2
    assert capsys.readouterr().err == (
        "dpviz: --plugin must be a Python file that is there; got 'nowhere.py'.\n"
    )


def test_a_package_ships_one_by_entry_point(tmp_path: Path) -> None:
    """An installed package is a folder on the path with its module and its metadata."""
    (tmp_path / "outside_package.py").write_text(
        PLUGIN.replace("from_a_file", "from_a_package"), encoding="utf-8"
    )
    facts = tmp_path / "outside_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[dpviz.mechanisms]\nfrom_a_package = outside_package:from_a_package\n"
    )
    code = """
        import dpviz
        names = dpviz.list_mechanisms().keys
        found = dpviz.compare("iris", trials=2, mechanisms="from_a_package")
        print(names[-1], *found.table()["mechanism"])
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])}
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["from_a_package", "from_a_package"]


MEASURE_AND_TABLE = '''
import numpy as np

from dpviz.extend import BuiltIn, Table, metric


@metric("first angle", better="lower", unit="radians")
def first_angle(outcome):
    """Smallest principal angle to the true components."""
    return outcome.angles[:, 0]


def load():
    rows = np.random.default_rng(0).standard_normal((40, 3))
    return Table("little", rows, ("a", "b", "c"))


little = BuiltIn(
    "little", "Little", "A table of its author.", 40, 3, "none", "its author", "CC0", load
)
'''


def test_a_plugin_brings_measures_and_tables_too(tmp_path: Path, warm: Path) -> None:
    """In a process of its own: what is measured is listed when dpviz is loaded."""
    path = tmp_path / "more.py"
    path.write_text(MEASURE_AND_TABLE, encoding="utf-8")
    out = tmp_path / "swept.csv"

    def run(*words: str) -> str:
        return subprocess.run(
            [str(warm), "-m", "tests.workers", *words, "--plugin", str(path)],
            capture_output=True, text=True, check=True, cwd=ROOT,
        ).stdout  # fmt: skip

    words = ("little", "--trials", "2", "--mechanism", "gaussian")
    measured = json.loads(run("compare", *words, "--format", "json"))["results"][0]["metrics"]
    assert 0 <= measured["first_angle"]["mean"] <= measured["largest_angle"]["mean"]
    run("sweep", *words, "--over", "epsilon", "--values", "1,2", "--workers", "2",
        "--cache", "none", "--out", str(out))  # fmt: skip
    assert "first_angle" in set(pd.read_csv(out)["metric"])
    assert "little" in {row["key"] for row in json.loads(run("datasets", "--format", "json"))}


def test_what_an_author_imports_is_promised() -> None:
    """Taking a name away breaks somebody's file: this list only grows."""
    assert set(extend.__all__) >= {
        "AdditiveMechanism", "Budget", "Calibration", "CannotRun", "Domain", "Draws", "FloatArray",
        "GaussianPart", "InvalidSetting", "LaplacePart", "Mechanism", "MechanismInfo", "Problem",
        "Relation", "Release", "SecondMoment", "Spent", "Verdict", "choice", "frobenius",
        "frobenius_attained", "generator", "integer", "l1_upper", "mechanism", "noise_std",
        "number", "BuiltIn", "Metric", "Outcome", "Table", "metric", "one", "unlimited",
    }  # fmt: skip
    for name in extend.__all__:
        assert hasattr(extend, name)
