"""One file lists the Streamlit internals that dpviz relies on, and Streamlit has all of them.

For the browser edition, the tests read the pinned wheel if it has been fetched, else this
environment's Streamlit if it is the pinned version. A newer Streamlit on the index then changes no
test result.
"""

from __future__ import annotations

import ast
import re
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from browser.names import MARKS, PRIVATE, SERVED, Private, missing, missing_marks
from dpviz.cli.browser_edition.lock import read_lock
from tests.sources import imports
from tools.edition import folder_of

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = ROOT / "browser" / "bridge.py"
HERE = Path(str(metadata.distribution("streamlit").locate_file("")))
FOLDERS = ("pages", "browser", "dpviz", "tools", "benchmarks")
_MARK = re.compile(
    r"""data-testid[~^*|$]?=[\\\\]*["']?(st\w+)|\b(data-test-script-state|stActiveTheme)\b"""
)
# Find attributes of Streamlit's runtime or run context, by the variable names in our files.
_ASKED = re.compile(r"\b(?:get_instance\(\)|here|context|uploaded_file_mgr)\.(\w+)")


@pytest.fixture(scope="module")
def source() -> Path | zipfile.Path:
    """Return the folder or wheel of the Streamlit version to which the edition is pinned."""
    lock = read_lock()
    wheel = folder_of(lock) / lock.wheels["streamlit"].name
    if wheel.is_file():
        lock.wheels["streamlit"].check(wheel.read_bytes())
        return zipfile.Path(wheel)
    if (here := metadata.version("streamlit")) == lock.streamlit:
        return HERE
    pytest.skip(
        f"here is Streamlit {here}, and the browser edition is pinned to {lock.streamlit}, which "
        "is not in this user's cache; get it with make browser-edition"
    )


def test_streamlit_has_every_private_name(source: Path | zipfile.Path) -> None:
    """Streamlit has every listed name; if not, fix browser/bridge.py, then update the list."""
    assert missing(source) == []


@pytest.mark.parametrize("private", SERVED, ids=lambda one: f"{one.module}.{one.name}")
def test_the_installed_streamlit_has_what_the_server_uses(private: Private) -> None:
    assert missing(HERE, (private,)) == []


def test_the_installed_streamlit_marks_what_our_styles_look_for() -> None:
    assert missing_marks(HERE) == []
    (sentence,) = missing_marks(HERE, (*MARKS, "stNeverThere"))
    assert "stNeverThere" in sentence


def test_the_list_has_every_mark() -> None:
    marks = {
        mark
        for folder in FOLDERS
        for kind in ("py", "js", "css")
        for path in (ROOT / folder).rglob(f"*.{kind}")
        for found in _MARK.findall(path.read_text(encoding="utf-8"))
        for mark in found
        if mark
    }
    assert marks == set(MARKS)


def test_the_list_has_everything_imported_from_inside_of_streamlit() -> None:
    every = (*PRIVATE, *SERVED)
    names = {one.name.partition(".")[0] for one in every}
    modules = {part for one in every for part in one.module.split(".")}
    whole = {one.module for one in every if not one.name}
    imports_inside = [
        (str(path.relative_to(ROOT)), one.module, name)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for one in imports(path)
        for name in one.names
        if one.module.partition(".")[0] == "streamlit" or name.startswith("streamlit.")
    ]
    assert len(imports_inside) > 20
    assert [
        one for one in imports_inside if one[1] not in whole and one[2] not in names | modules
    ] == []


@pytest.mark.parametrize("name", ["limits", "serving", "state"])
def test_the_list_has_what_is_asked_of_the_runtime(name: str) -> None:
    text = (ROOT / "pages" / "ui" / f"{name}.py").read_text(encoding="utf-8")
    names = set(_ASKED.findall(text))
    assert names
    assert names <= {one.name.rpartition(".")[2] for one in SERVED}


@pytest.mark.parametrize(
    ("private", "says"),
    [
        (Private("streamlit.runtime.runtime", "Runtime.gone", ("self",), "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime._gone", None, "asks"), "has no"),
        (Private("streamlit.never", "anything", None, "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime.stop", ("self", "hard"), "stops"), "takes"),
    ],
)
def test_a_change_is_told_in_a_sentence(
    source: Path | zipfile.Path, private: Private, says: str
) -> None:
    (sentence,) = missing(source, (private,))
    assert f"{says} " in sentence
    assert private.name in sentence
    assert sentence.endswith(".")


def test_the_list_has_every_private_name_that_the_bridge_uses() -> None:
    """The list has each name with an underscore that the bridge uses but does not define."""
    tree = ast.parse(BRIDGE.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    methods = {"_call", "_due"}
    methods |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    names = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)
    }
    parts = {part for private in PRIVATE for part in private.name.split(".")}
    assert len(names & parts) >= 8
    assert names - methods - parts == set()
