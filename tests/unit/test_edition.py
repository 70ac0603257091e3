"""The folder of the browser edition: its contents, its refusals, and its tables."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from dpviz.cli.browser_edition import bundle
from dpviz.cli.browser_edition.bundle import libraries_of
from dpviz.cli.browser_edition.folder import export, third_party
from dpviz.cli.browser_edition.lock import (
    SOURCE,
    Component,
    EditionError,
    Lock,
    LockedFile,
    read_lock,
)
from tools.edition import CARRIER, SOURCES, at_hand, folder_of, gather, stated

pytestmark = pytest.mark.long

_META = '<meta http-equiv="Content-Security-Policy" content="'
_CDN = "https://cdn.jsdelivr.net"
CSV = b"a,b,c\n1,2,3\n4,5,7\n2,1,0\n9,8,1\n"


@pytest.fixture(scope="module")
def wheels() -> Path | None:
    """Return the folder of the pinned wheels, or None if this environment's Streamlit suffices."""
    lock = read_lock()
    if at_hand(lock.wheels.values(), folder_of(lock)):
        return folder_of(lock)
    if (here := metadata.version("streamlit")) != lock.streamlit:
        pytest.skip(
            f"here is Streamlit {here}, and the browser edition is pinned to {lock.streamlit}, "
            "which is not in this user's cache; get it with make browser-edition"
        )
    return None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lock, Path]:
    """Return a lock of two small files, and the folder that holds them."""
    folder = tmp_path_factory.mktemp("pyodide")
    files = []
    for name, content in (("pyodide.js", b"//"), ("numpy.whl", b"wheel")):
        (folder / name).write_bytes(content)
        files.append(LockedFile(name, len(content), hashlib.sha256(content).hexdigest()))
    lock = read_lock()
    two = {name: lock.wheels[name] for name in ("click", "streamlit")}
    return replace(lock, files=tuple(files), wheels=two), folder


@pytest.fixture(scope="module")
def folder(
    small: tuple[Lock, Path], wheels: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return an edition that hosts the two small files."""
    out = tmp_path_factory.mktemp("edition") / "out"
    export(out, small[0], small[1], [("data/embedded/mine.csv", CSV)], wheels)
    return out


def test_the_page_holds_streamlit_back_and_names_no_other_host(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    main_script = re.search(r'data-main="([^"]+)"', page)
    assert main_script is not None
    assert (folder / main_script[1]).is_file()
    assert f'src="./{main_script[1]}"' not in page
    assert page.index("edition/page.js") < page.index('id="edition"')
    assert "@" not in page[page.index('id="edition"') :].replace("@media", "")
    without_licence = page[page.index("<html") :]
    assert "://" not in without_licence
    assert "Your tables stay on this machine" in " ".join(page.split())


def test_the_lock_of_the_folder_has_the_sha256_of_each_file(folder: Path) -> None:
    lock = json.loads((folder / "edition" / "lock.json").read_text(encoding="utf-8"))
    assert lock["pyodide"]["from"] == "../pyodide/"
    for file in lock["pyodide"]["files"]:
        content = (folder / "pyodide" / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            file["bytes"], file["sha256"],
        )  # fmt: skip
    for file in lock["bundles"]:
        content = (folder / "edition" / file["url"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
    assert lock["streamlit"] == lock["libraries"]["streamlit"]


def test_pages_talk_to_their_own_address_alone(
    small: tuple[Lock, Path], folder: Path, wheels: Path | None, tmp_path: Path
) -> None:
    export(tmp_path / "out", small[0], None, (), wheels)
    for top, sources in ((folder, ["'self'"]), (tmp_path / "out", ["'self'", _CDN])):
        for page in top.rglob("index.html"):
            text = page.read_text(encoding="utf-8")
            assert text.index("<meta charset") < text.index(_META) < text.index("<script")
            assert text.index("<meta charset") < 1024  # Browsers read the charset only this far in.
            rules = dict(
                rule.split(maxsplit=1)
                for rule in text.partition(_META)[2].partition('"')[0].split("; ")
            )
            assert rules["connect-src"].split() == sources
            assert not [rule for rule in rules.values() if "*" in rule.split()]


# --------------------------------------------------------------------------- licences


def test_every_component_states_its_licence_and_its_source() -> None:
    lock = read_lock()
    names = {each.name for each in lock.components}
    assert names == {*lock.packages, *lock.wheels, "pyodide", "python", "emscripten"}
    for each in lock.components:
        assert each.version, each.name
        assert each.licence, each.name
        assert each.source.startswith(("https://", "http://")), each.name
    files = {path.name for path in (SOURCE / "licences").iterdir()}
    assert {name for each in lock.components for name in each.texts} == files


def test_every_component_has_its_licence_in_the_folder() -> None:
    lock = read_lock()
    cache = folder_of(lock)
    if not at_hand([*lock.files, *lock.wheels.values()], cache):
        pytest.skip("the locked files are not in this user's cache; make browser-edition gets them")
    core = {file.name: (cache / file.name).read_bytes() for file in lock.files}
    text = third_party(lock, libraries_of(lock, cache), core)
    for each in lock.components:
        line = f"{each.name} {each.version} | {each.licence} | {each.source}\n"
        assert line in text
        assert f"\n{each.name} {each.version}: " in text, each.name
    assert "Copyright (c) 2005-2024, NumPy Developers" in text  # NumPy's wheel has its licence.
    assert "Plotly Technologies Inc." in text  # The reduced library has its licence.
    # Reducing a library to the used files never removes its licence.
    members = {name for name, _ in bundle.members_of(libraries_of(lock, cache).values())}
    for library in libraries_of(lock, cache).values():
        terms = {path.as_posix() for path, _ in library.files if "/licenses/" in path.as_posix()}
        assert terms <= members


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (
            "License-Expression: MIT\nProject-URL: Source, https://example.org/s",
            {"licence": "MIT", "source": "https://example.org/s"},
        ),
        (
            "License: Copyright of many\nHome-page: https://example.org\n"
            "Classifier: License :: OSI Approved :: BSD License\n"
            "Classifier: License :: OSI Approved :: Apache Software License",
            {"licence": "BSD License, Apache Software License", "source": "https://example.org"},
        ),
        ("License: BSD", {"licence": "BSD", "source": None}),
    ],
)
def test_a_wheel_states_its_licence(facts: str, found: dict[str, str]) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as wheel:
        wheel.writestr("toy-1.dist-info/METADATA", f"Name: toy\n{facts}\n\nWords.\n")
    assert stated(sink.getvalue(), {}) == found
    assert stated(sink.getvalue(), {"source"}) == {"licence": found["licence"]}


def test_a_component_without_a_licence_is_not_shipped(tmp_path: Path) -> None:
    lock = _wheel(tmp_path)
    toys = libraries_of(lock, tmp_path)
    toy = Component("toy", "1.2", "MIT", "https://example.org", (), lock.wheels["toy"].name)
    with pytest.raises(EditionError, match=r"toy lacks its licence"):
        third_party(replace(lock, components=(toy,)), toys, {})
    for lacking in (replace(toy, licence=""), replace(toy, source="")):
        lock_without = replace(lock, components=(replace(lacking, texts=("Apache-2.0.txt",)),))
        with pytest.raises(EditionError, match=r"toy lacks its licence"):
            third_party(lock_without, toys, {})
    whole = replace(toy, texts=("Apache-2.0.txt",))
    text = third_party(replace(lock, components=(whole,)), toys, {})
    assert "toy 1.2 | MIT | https://example.org\n" in text
    assert "Apache License" in text


def test_libraries_are_pure_and_slim_and_the_app_is_whole(folder: Path) -> None:
    with zipfile.ZipFile(folder / "edition" / "libraries.zip") as archive:
        names = set(archive.namelist())
    assert "streamlit/__init__.py" in names
    assert any(name.startswith("streamlit-") and name.endswith("/METADATA") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or ".." in name]
    assert not [name for name in names if name.startswith("streamlit/static/")]
    with zipfile.ZipFile(folder / "edition" / "app.zip") as archive:
        names = set(archive.namelist())
        assert archive.read("data/embedded/mine.csv") == CSV
    expected = {"app.py", ".streamlit/config.toml", "browser/bridge.py", "dpviz/studies/compare.py"}
    assert expected | {"pages/explore.py", "pages/ui/board.js"} <= names
    assert not [name for name in names if name.endswith((".pyc", "lock.json", "first_sight.zip"))]


def test_the_same_files_give_the_same_bytes() -> None:
    members = [("b.py", b"2"), ("a.py", b"1")]
    assert bundle.archive(members) == bundle.archive(members[::-1])
    with zipfile.ZipFile(io.BytesIO(bundle.archive(members))) as archive:
        assert archive.namelist() == ["a.py", "b.py"]


def test_a_file_that_is_not_on_record_is_refused(
    small: tuple[Lock, Path], wheels: Path | None, tmp_path: Path
) -> None:
    lock, source = small
    copies = tmp_path / "pyodide"
    copies.mkdir()
    with pytest.raises(EditionError, match=r"pyodide\.js is missing"):
        export(tmp_path / "out", lock, copies, wheels=wheels)
    for file in lock.files:
        (copies / file.name).write_bytes((source / file.name).read_bytes())
    (copies / "numpy.whl").write_bytes(b"whee1")
    with pytest.raises(EditionError, match=r"numpy\.whl is not the expected file: its sha256"):
        export(tmp_path / "out", lock, copies, wheels=wheels)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("official", "carried"),
    [((), ()), (("numpy.whl",), ("numpy.whl",)), (None, ("pyodide.js", "numpy.whl"))],
)
def test_pyodides_own_places_are_asked_before_a_strangers_package(
    official: tuple[str, ...] | None,
    carried: tuple[str, ...],
    small: tuple[Lock, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the official source lacks files or does not answer, another source serves them."""
    lock, source = small
    requests: list[str] = []

    def own(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        if official is None:
            raise OSError("no answer")
        yield from ((name, (source / name).read_bytes()) for name in wanted if name not in official)

    def strangers(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        requests.extend(wanted)
        yield from ((name, (source / name).read_bytes()) for name in wanted)

    gather(lock, tmp_path, {"its own": own, "a stranger": strangers})
    assert tuple(requests) == carried
    assert at_hand(lock.files, tmp_path)
    message = capsys.readouterr().err
    assert f"{2 - len(carried)} of 2 files from its own" in message
    assert ("from a stranger" in message) == bool(carried)  # A third-party source is reported.
    assert ("(no answer)" in message) == (official is None)

    order = [name for name in SOURCES if CARRIER in name]
    assert order == [[*SOURCES][-1]]  # The third-party carrier is tried last.


def _wheel(folder: Path) -> Lock:
    """Write a wheel of a library `toy`, and return a lock that pins it."""
    with zipfile.ZipFile(folder / "toy-1.2-py3-none-any.whl", "w") as archive:
        for name in ("toy/__init__.py", "toy/tests/test_toy.py", "toy/static/a/b.txt"):
            archive.writestr(name, name)
        archive.writestr("toy-1.2.dist-info/METADATA", "Name: toy")
        archive.writestr("toy-1.2.dist-info/RECORD", "")
        archive.writestr("toy-1.2.data/scripts/toy.py", "")
    content = (folder / "toy-1.2-py3-none-any.whl").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    wheel = LockedFile("toy-1.2-py3-none-any.whl", len(content), digest)
    return replace(read_lock(), wheels={"toy": wheel})


def test_a_wheel_that_is_not_on_record_is_refused(tmp_path: Path) -> None:
    lock = _wheel(tmp_path)
    with pytest.raises(EditionError, match=r"toy-1\.2-py3-none-any\.whl is missing"):
        libraries_of(lock, tmp_path / "nowhere")
    with (tmp_path / lock.wheels["toy"].name).open("ab") as wheel:
        wheel.write(b"more")
    with pytest.raises(EditionError, match=r"toy-1\.2.* is not the expected file: its sha256"):
        libraries_of(lock, tmp_path)


def test_the_lock_pins_every_file_and_every_dependency() -> None:
    lock = read_lock()
    files = [*lock.files, *lock.wheels.values()]
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in files)
    assert all(file.name.endswith("-none-any.whl") for file in lock.wheels.values())
    packages = lock.pyodide_lock["packages"]
    assert {each for entry in packages.values() for each in entry["depends"]} <= set(packages)
    assert f"v{lock.pyodide}/" in lock.cdn
    assert lock.pyodide_lock["info"]["version"] == lock.pyodide


# --------------------------------------------------------------------------- tables beside the app
