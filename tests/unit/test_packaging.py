"""The wheel has the dashboard, the lists of requirements agree, and the settings are safe."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dpviz.core.files import app_path
from tests.sources import Import, imports

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
CONFIG = app_path().parent / ".streamlit" / "config.toml"

# These packages' import names differ from the names under which they are installed.
_DISTRIBUTION_OF = {"sklearn": "scikit-learn", "PIL": "pillow", "google": "protobuf"}
# These imported modules are not listed as requirements: the named requirement installs them.
_COMES_WITH = {
    "altair": "streamlit", "google": "streamlit", "requests": "pooch", "starlette": "streamlit",
}  # fmt: skip
_COMES_WITH_FOR_TESTS = {
    "PIL": "streamlit",
    "docutils": "sphinx",
    "packaging": "pytest",
    "starlette": "streamlit",
    "websockets": "streamlit",
}
# These scripts run in separate environments, which benchmarks.libraries makes.
_ELSEWHERE = {"benchmarks/libraries/worker.py": {"diffprivlib"}}


_APP = ("app", "files", "print")
"""Extras that a host of the app installs too: requirements.txt lists them."""


def _run(*arguments: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Return what the interpreter prints, or fail with its error message."""
    answer = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _required() -> list[Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def _sources() -> list[Path]:
    files = [ROOT / "app.py"]
    for folder in ("dpviz", "pages"):
        files += sorted((ROOT / folder).rglob("*.py"))
    return files


def _imported(found: Iterable[Import]) -> Iterator[str]:
    """Yield the top-level names of absolute imports."""
    for one in found:
        if one.plain:
            yield from (name.partition(".")[0] for name in one.names)
        elif one.level == 0 and one.module:
            yield one.module.partition(".")[0]


def _third_party(found: Iterable[Import]) -> set[str]:
    ours = {"dpviz", "pages", "app"}
    return {name for name in _imported(found) if name not in sys.stdlib_module_names} - ours


def test_requirements_agree_with_pyproject() -> None:
    project = _pyproject()["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name in _APP for text in extras[name])]
    assert sorted(map(str, _required())) == sorted(str(Requirement(text)) for text in texts)


def _extras() -> dict[str, set[str]]:
    """Return the distributions of each extra, with the extras of its requirements."""
    extras = {}
    for extra, texts in _pyproject()["project"]["optional-dependencies"].items():
        requirements = [Requirement(text) for text in texts]
        names = {requirement.name for requirement in requirements}
        names |= {name for requirement in requirements for name in requirement.extras}
        extras[extra] = {str(canonicalize_name(name)) for name in names}
    return extras


def _is_brought(name: str, carrier: str | None, required: set[str]) -> bool:
    """Return whether a module is in a required distribution or in a requirement that brings it."""
    distribution = str(canonicalize_name(_DISTRIBUTION_OF.get(name, name)))
    if carrier is None:
        return distribution in required
    depends = importlib.metadata.requires(carrier) or []
    names = {canonicalize_name(Requirement(text).name) for text in depends}
    return carrier in required and distribution in names


def test_every_import_is_required() -> None:
    names = {str(canonicalize_name(requirement.name)) for requirement in _required()}
    names |= set().union(*_extras().values())
    for path in _sources():
        elsewhere = _ELSEWHERE.get(path.relative_to(ROOT).as_posix(), set())
        for name in _third_party(imports(path)) - elsewhere:
            assert _is_brought(name, _COMES_WITH.get(name), names), (
                f"{path.relative_to(ROOT)} imports {name}, which requirements.txt lacks"
            )


def _declared_for_development() -> set[str]:
    """Return the distributions that ``make test`` installs by name."""
    groups = _pyproject()["dependency-groups"]
    texts = [text for group in groups.values() for text in group if isinstance(text, str)]
    requirements = [*_required(), *map(Requirement, texts)]
    names = {requirement.name for requirement in requirements}
    names |= {name for requirement in requirements for name in requirement.extras}
    return {str(canonicalize_name(name)) for name in names}


@pytest.mark.slow
def test_every_import_of_the_tests_and_tools_is_declared() -> None:
    """Every import is declared, because a fresh machine lacks developers' other packages."""
    packages = _declared_for_development()
    for folder in ("tests", "tools", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            names = _third_party(imports(path)) - _ELSEWHERE.get(file, set())
            for name in names - {"tests", "tools", "benchmarks", "browser"}:
                carrier = _COMES_WITH_FOR_TESTS.get(name)
                assert _is_brought(name, carrier, packages), f"pyproject.toml lacks {name} ({file})"


# --------------------------------------------------------------------------- the wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel's files, laid out as pip does."""
    folder = tmp_path_factory.mktemp("wheel")
    # hatchling is already installed for developers, so the build need not download an environment.
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    _run("-m", "pip", *build, "--wheel-dir", str(folder), str(ROOT), folder=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def _tree(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_carries_the_dashboard(installed: Path) -> None:
    inside = installed / "dpviz" / "_app"
    for name in ("pages", "data", "browser"):
        assert _tree(inside / name) == _tree(ROOT / name)
    # A page's stored first view must match the code byte for byte, in the wheel as in the checkout.
    assert "ui/first_sight.zip" in _tree(inside / "pages")
    for name in ("app.py", ".streamlit/config.toml"):
        assert (inside / name).read_bytes() == (ROOT / name).read_bytes()
    # The wheel must not contain a developer's private settings, such as secrets.
    assert _tree(inside / ".streamlit") == {"config.toml"}
    assert _tree(installed / "dpviz") >= _tree(ROOT / "dpviz")


def test_the_core_brings_about_a_dozen_packages() -> None:
    """The core has about a dozen packages, with the packages that these require here."""
    names: set[str] = set()
    todo = [Requirement(text).name for text in _pyproject()["project"]["dependencies"]]
    while todo:
        name = str(canonicalize_name(todo.pop()))
        if name in names:
            continue
        names.add(name)
        needs = map(Requirement, importlib.metadata.requires(name) or [])
        todo += [
            one.name for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    assert {"numpy", "scipy", "pandas"} <= names
    assert len(names) <= 14
    assert not names & {"streamlit", "plotly", "requests", "pooch", "dask", "opendp"}


_WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in %r else real(name, *rest)
import numpy as np, pandas as pd, dpviz
rows = pd.DataFrame(np.random.default_rng(0).standard_normal((50, 3)), columns=list("abc"))
found = dpviz.compare(rows, mechanisms=["gaussian"], trials=3)
assert found.summary() and len(found.table()) == 1 and found._repr_html_()
assert dpviz.compare("digits", mechanisms=["gaussian"], trials=2).table().shape[0] == 1
assert dpviz.compare("data/example.csv", mechanisms=["gaussian"], trials=2).table().shape[0] == 1
assert str(dpviz.audit("wishart", trials=500).verdict) == "refuted"
swept = dpviz.sweep(rows, values="1,2", trials=2, mechanisms=["gaussian"])
assert len(swept.table()) > 0
found.save(sys.argv[1])
try:
    found.figure()
except dpviz.core.errors.NotAvailable as error:
    print(error)
from dpviz.cli import main
assert main(["app"]) == 2
"""


def test_the_core_works_without_any_extra(tmp_path: Path) -> None:
    """Comparing, sweeping and auditing work; missing packages are named with a way to install."""
    absent = {name for names in _extras().values() for name in names} | {"requests"}
    code = _WITHOUT % (absent, absent)
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kept.json")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    plotly, segno, streamlit = _pyproject()["project"]["optional-dependencies"]["app"]
    assert answer.stdout.strip() == (
        f'A figure needs Plotly, which is not installed here: python -m pip install "{plotly}"'
    )
    assert answer.stderr.strip() == (
        "dpviz: The dashboard needs Streamlit, which is not installed here: python -m pip install "
        f'"{plotly}" "{segno}" "{streamlit}"'
    )


# --------------------------------------------------------------------------- settings


def _config() -> dict[str, Any]:
    return tomllib.loads((CONFIG).read_text(encoding="utf-8"))


def test_the_dashboard_keeps_to_itself() -> None:
    config = _config()
    # Set no address, so that hosts find the app; tests/process/test_server.py tests the default.
    assert "address" not in config["server"]
    assert config["logger"]["hideWelcomeMessage"] is True  # The message needs an outside server.
    assert config["server"]["maxUploadSize"] == 400
    assert config["server"]["showEmailPrompt"] is False
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "type"
    assert config["client"]["showErrorLinks"] is False
