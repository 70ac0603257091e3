"""The script and the notebook run, and print the same as the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dpviz.core.settings import Settings
from dpviz.studies import board

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Settings(table="iris", epsilon=2.0, delta=1e-6, trials=3, mechanisms=("gaussian",))


def run(source: str, folder: Path) -> str:
    path = folder / "view.py"
    path.write_text(source, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        # The BLAS variables of the tests decide the last digits, so this process needs them.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_script_runs_and_writes_its_figures(tmp_path: Path) -> None:
    output = run(board.script(SETTINGS), tmp_path)
    assert "At epsilon 2" in output
    for name in board.FIGURES:
        assert (tmp_path / f"dpviz-{name}.html").stat().st_size > 10_000


def test_the_notebooks_cells_run_and_give_the_commands_numbers(tmp_path: Path, warm: Path) -> None:
    cells = json.loads(board.notebook(SETTINGS))["cells"]
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    last_cell = "import json\nprint(json.dumps(found.data()['results'][0]['metrics']))"
    output = run("\n".join([*code, last_cell]), tmp_path).strip().splitlines()[-1]
    words = [*SETTINGS.command().split()[3:], "--format", "json"]
    answer = subprocess.run(
        [str(warm), "-m", "dpviz", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert json.loads(output) == json.loads(answer.stdout)["results"][0]["metrics"]
