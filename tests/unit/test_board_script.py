"""The Explore figure's scripts and payload: joined modules, a published format, own tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.report.figures import board as renderer
from dpviz.report.figures.board import assets, in_one_scope
from dpviz.studies.board import full_payload
from tools import payload as published

FOLDER = Path(renderer.__file__).parent
MODULES = sorted(FOLDER.glob("*.js"))
SCRIPTS = Path(__file__).parents[1] / "script"
_DECLARED = re.compile(r"^(?:export )?(?:const|let|function|class) (\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Return a whole payload as text in the form that JSON sends."""
    settings = Settings(table="iris", mechanisms=("gaussian", "ppca", "wishart"), trials=2)
    return dict(json.loads(json.dumps(full_payload(load_prepared(settings), settings))))


def test_modules_are_joined_in_order_and_once() -> None:
    texts = in_one_scope(FOLDER / "board.js")
    assert len(texts) == len(MODULES) > 5  # The figure's script imports every module.
    assert "class Board " in texts[-1]
    script = assets().js
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    at = [script.index(name) for name in ("function unpack", "function drawPicture", "class Board")]
    assert at == sorted(at)


def test_one_scope_has_room_for_every_name() -> None:
    """No two joined modules declare the same name, because they share one scope."""
    names = [name for path in MODULES for name in _DECLARED.findall(path.read_text("utf-8"))]
    assert len(names) > 50
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_module_is_joined_without_its_imports_and_notes(tmp_path: Path) -> None:
    (tmp_path / "one.js").write_text("export const one = 1;\n", encoding="utf-8")
    two = 'import { one } from "./one.js";\n/**\n * A note.\n */\n/** @type {T} */ (one);\n'
    (tmp_path / "two.js").write_text(two + "/** Another. */\none;\n", encoding="utf-8")
    modules = ["const one = 1;\n", "/** @type {T} */ (one);\none;\n"]
    assert in_one_scope(tmp_path / "two.js") == modules


def test_every_module_asks_for_its_types_to_be_checked() -> None:
    for path in MODULES:
        assert path.read_text("utf-8").startswith("// @ts-check\n"), path.name


@pytest.mark.long
def test_types_hold_in_every_module() -> None:
    checker = shutil.which("tsc")
    if checker is None:
        pytest.skip("no tsc on the path: types of the script are checked by editors alone")
    for folder in (FOLDER, FOLDER.parent / "stage"):  # This checks types of both scripts.
        result = subprocess.run(
            [checker, "--project", folder / "jsconfig.json"], capture_output=True
        )
        assert result.returncode == 0, result.stdout.decode()


def test_the_modules_alone() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on the path: the modules are tested in the browser alone")
    process = subprocess.run(
        [node, "--test", *map(str, SCRIPTS.glob("*.test.mjs"))],
        env={**os.environ, "DPVIZ_BOARD": str(FOLDER)},
        capture_output=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stdout.decode()
    ran = re.search(r"# pass (\d+)", process.stdout.decode())
    assert ran is not None
    assert int(ran[1]) >= 10


def test_the_published_files_are_as_written() -> None:
    assert published.SCHEMA.read_text("utf-8") == published.schema()
    assert published.TYPES.read_text("utf-8") == published.script_types()


def test_a_payload_has_the_published_shape(made: dict[str, Any]) -> None:
    schema = json.loads(published.SCHEMA.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(made)] == []
    for change in (
        lambda broken: broken["frames"][0]["cells"]["gaussian"].pop("texts"),
        lambda broken: broken["frames"][0].update(more=1),
        lambda broken: broken["limits"].update(picture=[1.0]),
        lambda broken: broken.update(now="1"),
    ):
        broken = deepcopy(made)
        change(broken)
        assert list(validator.iter_errors(broken)), "the control"


def test_the_answer_is_the_best_claim_that_counts(made: dict[str, Any]) -> None:
    labels = {column["key"]: column["label"] for column in made["columns"]}
    assert {frame["answer"]["risk"] is None for frame in made["frames"]} == {False}
    for frame in made["frames"]:
        cells = frame["cells"]
        assert cells["wishart"]["status"]["counts"] is False
        best = max(("gaussian", "ppca"), key=lambda key: cells[key]["recovery"][0])
        text = f", {labels[best]} keeps {cells[best]['texts']['recovery']} of the structure"
        assert text in frame["answer"]["recovery"]
        assert labels["wishart"] not in frame["answer"]["recovery"].partition(" keeps ")[0]
