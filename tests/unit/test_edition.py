"""The folder of the browser edition: what is in it, what it refuses, and its tables."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest

from dpviz.cli import browser_edition as edition
from dpviz.cli import main
from dpviz.cli.browser_edition import bundle
from dpviz.cli.browser_edition.bundle import Library, installed, libraries_of
from dpviz.cli.browser_edition.folder import UNDRAWN, drawn, export, page_names, third_party
from dpviz.cli.browser_edition.lock import (
    SOURCE,
    Component,
    EditionError,
    Lock,
    LockedFile,
    read_lock,
)
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.platform import in_browser
from dpviz.datasets import builtin
from dpviz.datasets.builtin import Embedded, described, embedded_tables, index_of
from tools.edition import CARRIER, SOURCES, at_hand, folder_of, gather, stated

_META = '<meta http-equiv="Content-Security-Policy" content="'
_CDN = "https://cdn.jsdelivr.net"
CSV = b"a,b,c\n1,2,3\n4,5,7\n2,1,0\n9,8,1\n"


@pytest.fixture(scope="module")
def wheels() -> Path | None:
    """Return the folder of the pinned wheels; None where this environment serves as well."""
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


def test_this_is_no_browser() -> None:
    assert not in_browser()


def test_there_is_a_page_for_each_address(folder: Path) -> None:
    assert set(page_names()) >= {"guide", "explore", "papers", "release"}
    top = (folder / "index.html").read_text(encoding="utf-8")
    for name in page_names():
        page = (folder / name / "index.html").read_text(encoding="utf-8")
        assert page == top.replace('"./', '"../')
        assert (folder / name / "favicon.png").is_file()
        for path in re.findall(r'(?:src|href)="(\.\./[^"]+)"', page):
            assert path.endswith("manifest.json") or (folder / name / path).is_file(), path


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


def test_the_first_page_shows_a_board_or_leads_to_a_lesson(
    small: tuple[Lock, Path], wheels: Path | None, tmp_path: Path
) -> None:
    out, (lock, files) = tmp_path / "out", small
    workflow = edition.WORKFLOW
    export(out, lock, files, (), wheels, lambda: b"<p>a board</p>", dict([workflow]))
    top, page = (
        (out / name).read_text(encoding="utf-8") for name in ("index.html", "guide/index.html")
    )
    assert (out / "board.html").read_bytes() == b"<p>a board</p>"
    # it waits for nothing of Streamlit's, and the other pages are as ever
    assert ("./board.html" in top, "board.html" in page) == (True, False)
    assert ('rel="modulepreload"' in top, 'rel="modulepreload"' in page) == (False, True)
    assert "actions/deploy-pages" in (out / workflow[0]).read_text(encoding="utf-8")
    export(out, lock, files, (), wheels, first=edition.lesson_address(4))
    led = (out / "index.html").read_text(encoding="utf-8")
    assert 'content="0; url=./guide/?lesson=4&amp;step=1"' in led
    assert not (out / "board.html").exists()
    with pytest.raises(InvalidSetting, match="lesson must be from 1 to"):
        edition.lesson_address(99)


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


@pytest.mark.slow
def test_no_host_drops_a_file_of_the_folder(folder: Path, wheels: Path | None) -> None:
    """Usual hosts of static pages drop what begins with ``_``, or ask for ``.nojekyll``."""
    static = dict(libraries_of(read_lock(), wheels)["streamlit"].below("streamlit/static"))
    old = {path.name for path in static if path.name.startswith("_")}
    assert len(old) > 5  # Streamlit has such files, so the rule is not empty
    written = [path.relative_to(folder) for path in folder.rglob("*")]
    assert [path for path in written if any(part[0] == "_" for part in path.parts)] == []
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.js")}
    texts |= {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}
    stale = re.compile("|".join(rf"(?<!u){re.escape(name)}" for name in old))
    # a name is looked for before its surroundings: the texts are megabytes
    named = {path: text for path, text in texts.items() if any(name in text for name in old)}
    assert [path for path, text in named.items() if stale.search(text)] == []
    assert (folder / ".nojekyll").read_bytes() == b""


def test_what_no_page_draws_is_left_out_and_nothing_else(folder: Path, wheels: Path | None) -> None:
    static = dict(libraries_of(read_lock(), wheels)["streamlit"].below("streamlit/static"))
    kept = drawn(static)
    gone = {path.name.partition(".")[0] for path in static.keys() - kept.keys()}
    assert {"DeckGlJsonChart", "StreamlitSyntaxHighlighter", "elk-QONTBCTQ"} <= gone
    assert sum(len(static[path]) for path in static.keys() - kept.keys()) > 10e6
    assert len([path for path in (folder / "static").rglob("*") if path.is_file()]) == sum(
        path.parts[0] == "static" for path in kept
    )
    # whatever a part that is kept loads at once is kept too
    parts = json.loads(static[PurePosixPath("manifest.json")])
    for part in parts.values():
        if PurePosixPath(part["file"]) in kept:
            needed = [parts[key]["file"] for key in part.get("imports", ())]
            assert {PurePosixPath(name) for name in needed} <= kept.keys()
    with pytest.raises(EditionError, match=r"names no part DeckGlJsonChart"):
        drawn({PurePosixPath("manifest.json"): b"{}"})


def drawing(source: str) -> set[str]:
    """Return what of `UNDRAWN` a source draws: by a method's name, or by a fence in its words."""
    words = {word: part for part, words in UNDRAWN.items() for word in words}
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(words.get(node.func.attr))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {part for word, part in words.items() if "`" in word and word in node.value}
    return found - {None}


def test_no_page_asks_for_what_is_left_out() -> None:
    root = Path(__file__).resolve().parents[2]
    sources = [root / "app.py", *(root / "pages").rglob("*.py")]
    sources += [*(root / "dpviz/report/sentences").rglob("*.py")]
    sources += [path for path in (root / "dpviz/lessons").rglob("*") if path.suffix == ".py"]
    assert len(sources) > 40
    asked = {path.name: drawing(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: parts for name, parts in asked.items() if parts} == {}
    assert drawing("st.code('x')\ncolumn.map(x)") == {
        "StreamlitSyntaxHighlighter",
        "DeckGlJsonChart",
    }
    assert "MermaidChart" in drawing("st.markdown('```mermaid')")


def test_an_address_without_a_page_leads_to_the_first(folder: Path) -> None:
    page = (folder / "404.html").read_text(encoding="utf-8")
    assert "There is no page at this address" in page
    (mark,) = re.findall(r'fetch\(top \+ "([^"]+)"', page)
    assert (folder / mark).is_file()
    assert "@" not in page.replace("@media", "")
    assert not re.findall(r'(?:src|href)="', page)  # shown at any address, so nothing is beside it


def test_pages_talk_to_their_own_address_alone(
    small: tuple[Lock, Path], folder: Path, wheels: Path | None, tmp_path: Path
) -> None:
    export(tmp_path / "out", small[0], None, (), wheels)
    for top, allowed in ((folder, ["'self'"]), (tmp_path / "out", ["'self'", _CDN])):
        for page in top.rglob("index.html"):
            text = page.read_text(encoding="utf-8")
            assert text.index("<meta charset") < text.index(_META) < text.index("<script")
            assert text.index("<meta charset") < 1024  # where browsers look for it
            rules = dict(
                rule.split(maxsplit=1)
                for rule in text.partition(_META)[2].partition('"')[0].split("; ")
            )
            assert rules["connect-src"].split() == allowed
            assert not [rule for rule in rules.values() if "*" in rule.split()]


# --------------------------------------------------------------------------- licences


def test_every_component_states_its_licence_and_its_source() -> None:
    lock = read_lock()
    named = {each.name for each in lock.components}
    assert named == {*lock.packages, *lock.wheels, "pyodide", "python", "emscripten"}
    for each in lock.components:
        assert each.version, each.name
        assert each.licence, each.name
        assert each.source.startswith(("https://", "http://")), each.name
    kept = {path.name for path in (SOURCE / "licences").iterdir()}
    assert {name for each in lock.components for name in each.texts} == kept


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
        assert f"\n{each.name} {each.version}: " in text, each.name  # and a text of its own
    assert "Copyright (c) 2005-2024, NumPy Developers" in text  # out of a wheel
    assert "Plotly Technologies Inc." in text  # out of a library that is slimmed
    # whatever slimming takes away, the terms stay
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
    with zipfile.ZipFile(sink, "w") as packed:
        packed.writestr("toy-1.dist-info/METADATA", f"Name: toy\n{facts}\n\nWords.\n")
    assert stated(sink.getvalue(), {}) == found
    assert stated(sink.getvalue(), {"source"}) == {"licence": found["licence"]}


def test_a_component_without_a_licence_is_not_shipped(tmp_path: Path) -> None:
    lock = _wheel(tmp_path)
    toys = libraries_of(lock, tmp_path)
    toy = Component("toy", "1.2", "MIT", "https://example.org", (), lock.wheels["toy"].name)
    with pytest.raises(EditionError, match=r"toy lacks its licence"):
        third_party(replace(lock, components=(toy,)), toys, {})
    for lacking in (replace(toy, licence=""), replace(toy, source="")):
        given = replace(lock, components=(replace(lacking, texts=("Apache-2.0.txt",)),))
        with pytest.raises(EditionError, match=r"toy lacks its licence"):
            third_party(given, toys, {})
    whole = replace(toy, texts=("Apache-2.0.txt",))
    text = third_party(replace(lock, components=(whole,)), toys, {})
    assert "toy 1.2 | MIT | https://example.org\n" in text
    assert "Apache License" in text


def test_the_folder_has_the_licences_and_the_start_screen_links_them(folder: Path) -> None:
    assert "click" in (folder / "THIRD_PARTY.txt").read_text(encoding="utf-8")
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    for page in (folder / "index.html", folder / "explore" / "index.html"):
        (link,) = re.findall(
            r'href="([^"]+)" target="_blank">Licences<', page.read_text(encoding="utf-8")
        )
        assert (page.parent / link).resolve() == (folder / "THIRD_PARTY.txt").resolve()


def test_libraries_are_pure_and_slim_and_the_app_is_whole(folder: Path) -> None:
    with zipfile.ZipFile(folder / "edition" / "libraries.zip") as packed:
        names = set(packed.namelist())
    assert "streamlit/__init__.py" in names
    assert any(name.startswith("streamlit-") and name.endswith("/METADATA") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc")) or ".." in name]
    assert not [name for name in names if name.startswith("streamlit/static/")]
    with zipfile.ZipFile(folder / "edition" / "app.zip") as packed:
        names = set(packed.namelist())
        assert packed.read("data/embedded/mine.csv") == CSV
    expected = {"app.py", ".streamlit/config.toml", "browser/bridge.py", "dpviz/studies/compare.py"}
    assert expected | {"pages/explore.py", "pages/ui/board.js"} <= names
    assert not [name for name in names if name.endswith((".pyc", "lock.json", "first_sight.zip"))]


def test_the_same_files_give_the_same_bytes() -> None:
    members = [("b.py", b"2"), ("a.py", b"1")]
    assert bundle.archive(members) == bundle.archive(members[::-1])
    with zipfile.ZipFile(io.BytesIO(bundle.archive(members))) as packed:
        assert packed.namelist() == ["a.py", "b.py"]


def test_a_file_that_is_not_on_record_is_refused(
    small: tuple[Lock, Path], wheels: Path | None, tmp_path: Path
) -> None:
    lock, source = small
    spoiled = tmp_path / "pyodide"
    spoiled.mkdir()
    with pytest.raises(EditionError, match=r"pyodide\.js is not there"):
        export(tmp_path / "out", lock, spoiled, wheels=wheels)
    for file in lock.files:
        (spoiled / file.name).write_bytes((source / file.name).read_bytes())
    (spoiled / "numpy.whl").write_bytes(b"whee1")
    with pytest.raises(EditionError, match=r"numpy\.whl is not the file on record: its sha256"):
        export(tmp_path / "out", lock, spoiled, wheels=wheels)
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
    """The official place lacks the files named, or does not answer at all."""
    lock, source = small
    asked: list[str] = []

    def own(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        if official is None:
            raise OSError("no answer")
        yield from ((name, (source / name).read_bytes()) for name in wanted if name not in official)

    def strangers(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        asked.extend(wanted)
        yield from ((name, (source / name).read_bytes()) for name in wanted)

    gather(lock, tmp_path, {"its own": own, "a stranger": strangers})
    assert tuple(asked) == carried
    assert at_hand(lock.files, tmp_path)
    said = capsys.readouterr().err
    assert f"{2 - len(carried)} of 2 files from its own" in said
    assert ("from a stranger" in said) == bool(carried)  # never without a word
    assert ("(no answer)" in said) == (official is None)

    order = [name for name in SOURCES if CARRIER in name]
    assert order == [[*SOURCES][-1]]  # of the places that are asked in truth, the last


def test_a_place_that_sends_another_file_is_not_passed_over(
    small: tuple[Lock, Path], tmp_path: Path
) -> None:
    lock, source = small

    def spoiled(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        yield from ((name, b"another") for name in wanted)

    def whole(_: Lock, wanted: Collection[str], __: Path) -> Iterator[tuple[str, bytes]]:
        yield from ((name, (source / name).read_bytes()) for name in wanted)

    with pytest.raises(EditionError, match=r"pyodide\.js is not the file on record"):
        gather(lock, tmp_path, {"its own": spoiled, "a stranger": whole})
    assert not list(tmp_path.iterdir())
    with pytest.raises(EditionError, match=r"pyodide\.js is in none of: nobody"):
        gather(lock, tmp_path, {"nobody": lambda *_: iter(())})


def _wheel(folder: Path) -> Lock:
    """Write a wheel of a library `toy`, and return a lock that pins it."""
    with zipfile.ZipFile(folder / "toy-1.2-py3-none-any.whl", "w") as packed:
        for name in ("toy/__init__.py", "toy/tests/test_toy.py", "toy/static/a/b.txt"):
            packed.writestr(name, name)
        packed.writestr("toy-1.2.dist-info/METADATA", "Name: toy")
        packed.writestr("toy-1.2.dist-info/RECORD", "")
        packed.writestr("toy-1.2.data/scripts/toy.py", "")
    content = (folder / "toy-1.2-py3-none-any.whl").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    wheel = LockedFile("toy-1.2-py3-none-any.whl", len(content), digest)
    return replace(read_lock(), wheels={"toy": wheel})


def test_a_library_comes_from_its_pinned_wheel(tmp_path: Path) -> None:
    toy = libraries_of(_wheel(tmp_path), tmp_path)["toy"]
    assert toy.version == "1.2"
    members = dict(bundle.members_of([toy]))
    assert set(members) == {"toy/__init__.py", "toy/static/a/b.txt", "toy-1.2.dist-info/METADATA"}
    assert [(str(path), text) for path, text in toy.below("toy/static")] == [
        ("a/b.txt", b"toy/static/a/b.txt")
    ]


def test_a_wheel_that_is_not_on_record_is_refused(tmp_path: Path) -> None:
    lock = _wheel(tmp_path)
    with pytest.raises(EditionError, match=r"toy-1\.2-py3-none-any\.whl is not there"):
        libraries_of(lock, tmp_path / "nowhere")
    with (tmp_path / lock.wheels["toy"].name).open("ab") as wheel:
        wheel.write(b"more")
    with pytest.raises(EditionError, match=r"toy-1\.2.* is not the file on record: its sha256"):
        libraries_of(lock, tmp_path)


def test_another_streamlit_of_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Library("streamlit", "1.99.0", ())
    monkeypatch.setattr("dpviz.cli.browser_edition.bundle.installed", lambda name: other)
    with pytest.raises(EditionError, match=r"pinned to Streamlit .*; here is 1\.99\.0: give"):
        libraries_of(read_lock(), None)


def test_the_environment_gives_the_files_of_a_wheel(wheels: Path | None) -> None:
    """Both ways to get click are compared where both are at hand and of one version."""
    here = installed("click")
    names = {name for name, _ in bundle.members_of([here])}
    assert {"click/__init__.py", f"click-{here.version}.dist-info/METADATA"} <= names
    lock = read_lock()
    if wheels is not None and lock.versions["click"] == here.version:
        pinned = libraries_of(lock, wheels)["click"]
        assert dict(bundle.members_of([pinned])) == dict(bundle.members_of([here]))


def test_a_folder_with_other_files_is_left_alone(
    small: tuple[Lock, Path], wheels: Path | None, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(EditionError, match="holds other files"):
        export(tmp_path, small[0], small[1], wheels=wheels)
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_the_lock_pins_every_file_and_every_dependency() -> None:
    lock = read_lock()
    files = [*lock.files, *lock.wheels.values()]
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in files)
    assert all(file.name.endswith("-none-any.whl") for file in lock.wheels.values())
    packages = lock.pyodide_lock["packages"]
    assert {each for entry in packages.values() for each in entry["depends"]} <= set(packages)
    assert f"v{lock.pyodide}/" in lock.cdn
    assert lock.pyodide_lock["info"]["version"] == lock.pyodide


def test_what_the_app_imports_is_in_pyodide_or_taken_along() -> None:
    root = Path(__file__).resolve().parents[2]
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    required = {re.split(r"[<>=]", line)[0] for line in lines if line and line[0] != "#"}
    lock = read_lock()
    # pooch and unlzw3 serve downloads, cloudpickle worker processes: a browser has neither;
    # python-calamine is compiled, so that a workbook is saved as CSV first;
    # segno draws the code of a class's room, which a browser cannot open
    absent = {"cloudpickle", "pooch", "python-calamine", "segno", "unlzw3"}
    assert required - set(lock.packages) - set(lock.wheels) == absent


# --------------------------------------------------------------------------- tables beside the app


def test_a_table_to_embed_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "My Table (1).csv"
    path.write_bytes(CSV)
    found = described(path)
    assert found == Embedded("my_table_1", "my_table_1.csv", 4, 3)
    (tmp_path / found.file).write_bytes(CSV)
    (tmp_path / "tables.json").write_bytes(index_of([found]))
    assert embedded_tables(tmp_path) == (found,)
    assert found.table(tmp_path).rows.shape == (4, 3)
    assert embedded_tables(tmp_path / "nowhere") == ()


def test_embedded_tables_are_built_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(CSV)
    monkeypatch.setattr(builtin, "embedded_tables", lambda: (Embedded("mine", "mine.csv", 4, 3),))
    monkeypatch.setattr(builtin, "place", lambda: tmp_path)
    assert list(builtin.builtin_tables())[-1] == "mine"
    assert builtin.load_builtin("mine").columns == ("a", "b", "c")
    assert builtin.dataset_rows()[-1]["n"] == 4


@pytest.mark.parametrize("name", ["nothing.csv", "table.txt", "..csv"])
def test_what_is_no_table_is_refused(tmp_path: Path, name: str) -> None:
    if name != "nothing.csv":
        (tmp_path / name).write_bytes(CSV)
    with pytest.raises(InvalidTable, match="embed"):
        described(tmp_path / name)


def test_the_command_says_what_is_wrong_in_one_line(
    tmp_path: Path,
    wheels: Path | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # and before it draws what takes seconds
    monkeypatch.setattr(edition, "board_file", lambda: pytest.fail("a board was drawn"))
    (tmp_path / "iris.csv").write_bytes(CSV)
    out = str(tmp_path / "out")
    assert main(["export-browser", out, "--embed", str(tmp_path / "iris.csv")]) == 2
    assert "a file whose name no other table has" in capsys.readouterr().err
    taken = [] if wheels is None else ["--libraries", str(wheels)]
    assert main(["export-browser", out, *taken, "--pyodide", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is not there" in said
