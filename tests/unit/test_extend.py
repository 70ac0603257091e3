"""Custom mechanisms: five lines in a notebook, a file, or another package."""

from __future__ import annotations

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
from dpviz.core.errors import CannotRun
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms, featured, parse_variant
from dpviz.report.figures.theme import BROUGHT, GREY, HIGHLIGHTS, colour_of_key, panels_unjudged

Rng = np.random.Generator


def table() -> pd.DataFrame:
    rows = np.random.default_rng(1).standard_normal((60, 4)) * [3, 2, 1, 1]
    return pd.DataFrame(rows, columns=list("abcd"))


@dpviz.mechanism(claim="pure", release="subspace")
def mine(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
    """Sample a random subspace."""
    return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]


def test_a_function_runs_beside_a_key_and_says_that_nothing_proves_it() -> None:
    comparison = dpviz.compare(table(), mechanisms=[mine, "gaussian"], trials=200)
    rows = comparison.table().set_index("mechanism")
    assert rows["status"].to_dict() == {"mine": "unproven", "gaussian": "holds"}
    # A random subspace has mean recovery 0. The standard deviation of 200 samples is below 1/2.
    assert abs(rows.loc["mine", "recovery"]) < 5 * 0.5 / math.sqrt(200)
    status = comparison.comparison.results[0].status
    assert "No calibration was given" in status.evidence
    assert mine.info.summary == "Sample a random subspace."
    assert comparison.data()["settings"]["mechanisms"] == ["mine", "gaussian"]
    assert comparison.made is not None
    assert comparison.made.options["mechanisms"] == ["mine", "gaussian"]


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

    result = dpviz.compare(table(), mechanisms=[proved], trials=5).data()["results"][0]
    assert result["status"] == "holds"
    assert result["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert result["evidence"].startswith("According to its author")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda d, k: np.eye(d), "an array of shape (4, 2)"),
        (lambda d, k: "no array", "an array of numbers; got str"),
        (lambda d, k: np.full((d, k), np.nan), "finite numbers"),
        (lambda d, k: np.ones((d, k)), "orthonormal columns"),
        (lambda d, k: np.eye(d)[:, :k] + 0j, "real numbers; got complex numbers"),
    ],
)
def test_what_comes_back_wrong_is_said_in_a_sentence(given: Any, words: str) -> None:
    @dpviz.mechanism(claim="pure")
    def wrong(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        return given(rows.shape[1], k)

    with pytest.raises(CannotRun, match="wrong cannot run: it must return") as caught:
        dpviz.compare(table(), k=2, mechanisms=[wrong], trials=2)
    assert words in str(caught.value)


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
    """A file with a mechanism, which is unregistered after the test."""
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


def test_a_plugin_is_on_every_list_with_its_own_colour(plugin: Path) -> None:
    before = list(all_mechanisms())
    bring(plugin)
    assert list(all_mechanisms()) == [*before, "from_a_file"]  # The new mechanism is listed last.
    assert featured()[1] == "from_a_file"
    assert len(featured()) == 7
    assert parse_variant("from_a_file[steps=3]").text == "from_a_file[steps=3]"
    assert colour_of_key("from_a_file") in BROUGHT
    assert not {*HIGHLIGHTS, GREY} & set(BROUGHT)
    (panel,) = panels_unjudged([parse_variant("from_a_file")])
    assert panel.highlighted
    assert panel.dash != "solid"
    assert "from_a_file" in dpviz.list_mechanisms().keys
    # A copied command also loads the mechanism's file, even if it does not name the folder.
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
            "f must take rows, epsilon, delta, k, rng first",
        ),
    ],
)
def test_a_plugin_that_does_not_run_is_one_sentence(
    plugin: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    plugin.write_text(text, encoding="utf-8")
    all_mechanisms.cache_clear()
    assert main(["mechanisms", "--plugin", str(plugin)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert words in message
    assert "Traceback" not in message


def test_a_package_ships_one_by_entry_point(tmp_path: Path) -> None:
    """A package on the path provides a mechanism by an entry point in its metadata."""
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


def test_rows_cannot_be_written_to() -> None:
    @dpviz.mechanism(claim="none", release="matrix")
    def writes(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            rows[0] = 0
        return rows.T @ rows

    assert not dpviz.compare(table(), mechanisms=[writes], trials=1).comparison.skipped
