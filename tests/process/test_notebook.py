"""The documentation's notebook runs in a fresh environment, with the wheel and another package.

The environment holds the wheels of dpviz and of the package beside this test. Their requirements
come from the environment that runs the tests, so that no network is needed.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tools.docs import RUN

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "own_mechanism.ipynb"

_TELL = """
import json
print(json.dumps({
    "home": dpviz.__file__,
    "compared": found.table()["mechanism"].tolist(),
    "status": found.table()["status"].tolist(),
    "swept": sorted(set(swept.table()["mechanism"])),
    "sound": str(sound.verdict),
    "refuted": str(refuted.verdict),
    "listed": dpviz.list_mechanisms().keys[-1],
    "outside": dpviz.compare("wine", trials=3, mechanisms="rounded").table()["status"].tolist(),
}))
"""


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words, "--quiet", "--no-index"], check=True)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with both wheels."""
    folder = tmp_path_factory.mktemp("fresh")
    sources = [str(source) for source in (ROOT, ROOT / "tests" / "outside_package")]
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), *sources)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    wheels = [str(path) for path in folder.glob("*.whl")]
    assert len(wheels) == 2
    pip("--python", str(python), "install", "--no-deps", *wheels)
    inside = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "env")}))
    lent = [*site.getsitepackages(), sysconfig.get_path("purelib")]
    (inside / "lent.pth").write_text("\n".join(dict.fromkeys(lent)) + "\n", encoding="utf-8")
    return python


def test_the_notebook_has_at_most_20_lines() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in cell["source"]]
    assert sum(1 for line in lines if line.strip()) <= 20


def test_the_notebook_runs_in_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DPVIZ"))}
    notebook, folder = json.loads(NOTEBOOK.read_text(encoding="utf-8")), tmp_path / "run.ipynb"
    notebook["cells"].append({"cell_type": "code", "source": [_TELL]})
    (tmp_path / "told.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    answer = subprocess.run(
        [str(fresh), "-c", RUN, "told.ipynb", str(folder)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    *stream, last = [
        output
        for cell in json.loads(folder.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
    ]
    metrics = json.loads(last["text"])
    assert Path(metrics["home"]).is_relative_to(fresh.parents[1])  # The notebook ran the wheel.
    assert metrics["compared"] == ["mine", "gaussian"]
    assert metrics["status"] == ["unproven", "holds"]
    assert metrics["swept"] == ["mine"]
    assert metrics["sound"] == "consistent"
    assert metrics["refuted"] == "refuted"
    assert metrics["listed"] == "rounded"
    assert metrics["outside"] == ["unproven"]
    assert len(stream) == 7
    kinds = [{"text/html", "image/svg+xml"} & set(output["data"]) for output in stream]
    assert kinds == [set(), set(), {"text/html"}, {"image/svg+xml"}, *[{"text/html"}] * 3]
    board = stream[-1]["data"]["text/html"]
    assert board.startswith("<iframe")
    assert "Mine" in board
