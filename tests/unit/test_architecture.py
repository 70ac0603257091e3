"""The one-way layers: the core imports no browser code, and no file names a machine."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.sources import imports

ROOT = Path(__file__).resolve().parents[2]

_IMPORT_ALL = """
import importlib, pkgutil, sys
import dpviz
count = 0
for module in pkgutil.walk_packages(dpviz.__path__, "dpviz."):
    skipped = ("dpviz.report.figures", "dpviz.__main__", "dpviz._app")
    if not module.name.startswith(skipped):
        importlib.import_module(module.name)
        count += 1
unwanted = {"streamlit", "plotly", "altair"} & set(sys.modules)
print(count, *sorted(unwanted))
"""

# Write each search pattern in two parts, so that this test file does not match it.
_MACHINE = [
    re.compile(text)
    for text in (
        r"(?<![\w.])/(?:work|root|home|Users)" + r"/\w",
        r"\bpypi\." + r"org\b",
        r"\bpythonhosted\." + r"org\b",
        r"--(?:extra-)?index-" + r"url\b",
        r"--find-" + r"links\b",
    )
]


def _repository_files() -> list[Path]:
    """Return the files that are committed, or would be.

    An unpacked archive has no git, so all files outside hidden and cache folders are taken.
    """
    if (ROOT / ".git").exists():
        output = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        ).stdout
        return [path for name in output.split("\0") if name and (path := ROOT / name).is_file()]
    aside = re.compile(r"^(?:\.(?!ci$|streamlit$|github$).*|__pycache__|build|dist)$")
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not any(aside.match(part) for part in path.relative_to(ROOT).parts[:-1])
    ]


def test_a_button_that_acts_is_primary() -> None:
    """Buttons that run, continue, make or publish are primary, and so is a page's next step."""
    acts = re.compile("(Run|Go on|Make|Publish|Release)\\b")
    buttons = []
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if not (is_call and node.func.attr == "button" and node.args):
                continue
            texts = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
            if any(isinstance(one, str) and acts.match(one) for one in texts):
                kinds = [ast.unparse(one.value) for one in node.keywords if one.arg == "type"]
                buttons.append((path.name, texts[0], kinds))
    assert len(buttons) >= 5
    assert [one for one in buttons if one[2] != ["'primary'"]] == []


def test_the_core_loads_no_browser_library() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    count, *unwanted = answer.stdout.split()
    assert int(count) > 10  # The search did find files in the package.
    assert unwanted == []


def test_only_pages_import_streamlit_and_only_figures_draw() -> None:
    """Only pages import Streamlit and only figures import plotting, also inside functions."""
    for path in sorted((ROOT / "dpviz").rglob("*.py")):
        bans = {"streamlit"}
        if "figures" not in path.relative_to(ROOT).parts:
            bans |= {"plotly", "altair"}
        for one in imports(path):
            names = one.names if one.plain else (one.module,)
            names_in = {name.partition(".")[0] for name in names} & bans
            assert not names_in, f"{path.relative_to(ROOT)}:{one.line} imports {names_in}"


def test_what_benchmarks_and_tools_import_of_ours_is_there() -> None:
    """Names that benchmarks and tools import exist, although most are run only by hand."""
    gone = [
        f"{path.name}:{one.line} {one.module}.{name}"
        for folder in ("benchmarks", "tools")
        for path in sorted((ROOT / folder).glob("*.py"))
        for one in imports(path)
        if one.module.partition(".")[0] in ("dpviz", "pages")
        for module in (importlib.import_module(one.module),)
        for name in one.names
        if not hasattr(module, name)
        and not (hasattr(module, "__path__") and find_spec(f"{one.module}.{name}"))
    ]
    assert gone == []


def test_a_table_meets_a_mechanism_in_one_file() -> None:
    asking = {
        path.relative_to(ROOT).as_posix()
        for folder in ("dpviz", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if ".release_many(" in path.read_text(encoding="utf-8")
    }
    assert asking == {"dpviz/mechanisms/_base.py"}


def test_no_file_names_a_machine_or_an_index() -> None:
    places = []
    for path in _repository_files():
        if path == Path(__file__).resolve():
            continue
        raw = path.read_bytes()
        if b"\0" in raw[:8192]:  # Binary files, such as images, are skipped.
            continue
        text = raw.decode("utf-8", errors="replace")
        if not any(pattern.search(text) for pattern in _MACHINE):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if any(pattern.search(line) for pattern in _MACHINE):
                places.append(f"{path.relative_to(ROOT)}:{number}")
    assert places == []


def test_the_search_for_machines_finds_one() -> None:
    def hits(line: str) -> bool:
        return any(pattern.search(line) for pattern in _MACHINE)

    assert hits("open('/home" + "/me/table.csv')")
    assert hits("pip install --index-" + "url https://x")
    assert not hits("pages/home/index.md and ../shared/datasets")
