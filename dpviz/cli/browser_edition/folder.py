"""The folder itself: pages by address, Streamlit's files, archives, the lock, and what is owed.

What the folder owes to others is one file with every component, its licence, source and texts.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from dpviz.cli.browser_edition import bundle
from dpviz.cli.browser_edition.bundle import Library, is_licence, libraries_of
from dpviz.cli.browser_edition.lock import SOURCE, Component, EditionError, Lock, LockedFile
from dpviz.core.files import app_path
from dpviz.core.number_text import decimals

NAME = "THIRD_PARTY.txt"
BOARD = "board.html"
_TEXTS = SOURCE / "licences"


def third_party(lock: Lock, libraries: Mapping[str, Library], hosted: Mapping[str, bytes]) -> str:
    """Return the text of the file.

    Parameters
    ----------
    lock : Lock
    libraries : dict of str to Library
        What lies in the folder's own archive.
    hosted : dict of str to bytes
        Pyodide's files that lie in the folder; a visitor loads the others from elsewhere.

    Raises
    ------
    EditionError
        If the licence, the source or the text of anything in the folder is missing.
    """
    head = [
        "dpviz is under the Apache License 2.0: LICENSE, beside this file. With it come, each "
        "under its own licence:",
        "",
    ]
    body = []
    for each in lock.components:
        library = libraries.get(each.name)
        version = each.version if library is None else library.version
        texts = list(_texts(each, library, hosted))
        if not (each.licence and each.source and texts):
            raise EditionError(
                f"{each.name} lacks its licence, source or licence text. State licence and source "
                "in browser/lock.json; put the text into browser/licences."
            )
        where = "" if _is_here(each, library, hosted) else f" | loaded from {lock.cdn}"
        head.append(f"{each.name} {version} | {each.licence} | {each.source}{where}")
        if each.name == "streamlit":
            head.append(
                "  Its page is made of JavaScript libraries and fonts, whose notices its authors "
                f"keep: {each.source}/blob/{version}/NOTICES"
            )
        for name, text in texts:
            body += ["", "=" * 80, f"{each.name} {version}: {name}", "=" * 80, "", text.strip()]
    return "\n".join([*head, *body]) + "\n"


def _is_here(each: Component, library: Library | None, hosted: Mapping[str, bytes]) -> bool:
    return library is not None or (each.file in hosted if each.file else bool(hosted))


def _texts(
    each: Component, library: Library | None, hosted: Mapping[str, bytes]
) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a component's licences."""
    for name in each.texts:
        yield name, (_TEXTS / name).read_text(encoding="utf-8")
    if library is not None:
        for path, read in library.files:
            if is_licence(path):
                yield path.as_posix(), read().decode(errors="replace")
    elif each.file in hosted:
        with zipfile.ZipFile(BytesIO(hosted[each.file])) as archive:
            for name in archive.namelist():
                if is_licence(PurePosixPath(name)):
                    yield name, archive.read(name).decode(errors="replace")
    elif each.file:
        yield each.file, f"The text is in {each.file}, which a visitor's browser loads."


_MAIN = '<script type="module" crossorigin src="'
_ROOT = '<div id="root"></div>'
_BOARD = re.compile(r'<template data-part="board">.*?</template>\s*', re.DOTALL)
_AHEAD = re.compile(r'<link\s+rel="(?:module)?preload"[^>]*>\s*')
_CHARSET = '<meta charset="UTF-8" />'
# Parts of Streamlit's page that are loaded when something is drawn that no page of ours draws, and
# what would draw it: a function of Streamlit, or a fence in Markdown.
UNDRAWN = {
    "DeckGlJsonChart": ("pydeck_chart", "map"),
    "EChartsChart": ("echarts_chart",),
    "GraphVizChart": ("graphviz_chart",),
    "MermaidChart": ("```mermaid",),
    "StreamlitSyntaxHighlighter": ("code", "echo", "```"),
}  # fmt: skip
_SERVED = ("page.js", "files.js", "worker.js")
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}

# What a page, and the workers it starts, may do: everything comes from its own address, and nothing
# is sent elsewhere. Streamlit's page needs eval and inline styles, Pyodide WebAssembly and scripts
# from bytes that were checked. A page cannot say here who may frame it; a host can.
_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "frame-src": "'self' data: blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes
    ----------
    loaded : int
        Bytes that a first visit loads before the dashboard starts.
    written : int
        Bytes of all files of the folder.
    pages : int
    """

    loaded: int
    written: int
    pages: int


def export(
    out: Path,
    lock: Lock,
    pyodide: Path | None = None,
    tables: Iterable[bundle.Member] = (),
    wheels: Path | None = None,
    board: Callable[[], bytes] | None = None,
    extra: Mapping[str, str] | None = None,
    first: str | None = None,
) -> Written:
    """Write the folder.

    Parameters
    ----------
    out : Path
        Made if it is not there; has to be empty or an earlier export.
    lock : Lock
    pyodide : Path, optional
        Folder with Pyodide's files; without one they are loaded from the lock's address.
    tables : iterable of (name, bytes)
        Files to put beside the app.
    wheels : Path, optional
        Folder with the libraries' wheels; without one they come from this environment.
    board : callable, optional
        Draws a board's file, which the first page shows before Python is asked for; called once
        all other files are found to be right.
    extra : mapping of str to str, optional
        Texts of more files by their path in the folder.
    first : str, optional
        Where the folder's own address leads, such as a lesson's.

    Raises
    ------
    EditionError
        If a file is missing or not the one on record, or the folder holds something else.
    """
    # what may be refused comes first: an earlier export stays until all is right
    libraries = libraries_of(lock, wheels)
    static = _renamed(drawn(dict(libraries["streamlit"].below("streamlit/static"))))
    index, icon = (static[PurePosixPath(name)] for name in ("index.html", "favicon.png"))
    core = {} if pyodide is None else _verified(pyodide, lock.files)
    owed = third_party(lock, libraries, core)
    shown = None if board is None else board()
    _emptied(out)

    bundles, archives = _archives(libraries, tables)
    loaded = sum(file.size for file in lock.files) + sum(each["bytes"] for each in bundles)
    record = _record(lock, bundles, hosted=pyodide is not None)
    record["libraries"] = {name: each.version for name, each in libraries.items()}
    page = _page(index.decode(), loaded, None if pyodide else lock.cdn)
    files = {
        **archives,
        **{f"pyodide/{name}": content for name, content in core.items()},
        **{f"edition/{name}": (SOURCE / name).read_bytes() for name in _SERVED},
        "edition/lock.json": (json.dumps(record, indent=1) + "\n").encode(),
        **{str(path): content for path, content in static.items() if path.parts[0] == "static"},
        "favicon.png": icon,
        NAME: owed.encode(),
        "LICENSE": (app_path().parent / "LICENSE").read_bytes(),
        "404.html": lost_page("dpviz", "edition/lock.json").encode(),
        ".nojekyll": b"",  # a host that builds pages by Jekyll leaves these as they are
        **({} if shown is None else {BOARD: shown}),
        **{place: text.encode() for place, text in (extra or {}).items()},
        **_addresses(page, icon, first, board=shown is not None),
    }
    for place, content in files.items():
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        (out / place).write_bytes(content)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Written(loaded, size, len(page_names()) + 1)


def _archives(
    libraries: Mapping[str, Library], tables: Iterable[bundle.Member]
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return what the lock says of the two archives, and their bytes by place in the folder."""
    said, files = [], {}
    for name, into, members in (
        ("libraries.zip", bundle.SITE, bundle.members_of(libraries.values())),
        ("app.zip", bundle.APP, bundle.app(tables)),
    ):
        content = bundle.archive(members)
        file = LockedFile(name, len(content), hashlib.sha256(content).hexdigest())
        said.append(file.to_json() | {"url": name, "into": into})
        files[f"edition/{name}"] = content
    return said, files


def _addresses(page: str, icon: bytes, first: str | None, *, board: bool) -> dict[str, bytes]:
    """Return the page of every address, by its place in the folder."""
    plain = _BOARD.sub("", page)
    # what Streamlit's page would load ahead waits until Python is asked for
    top = _AHEAD.sub("", page) if board else plain
    if first is not None:
        led = f'<meta http-equiv="refresh" content="0; url=./{escape(first)}">'
        top = f'<!doctype html><html lang="en"><head>{_CHARSET}{led}<title>dpviz</title></head>'
        top += f'<body><a href="./{escape(first)}">dpviz</a></body></html>'
    found = {"index.html": top.encode()}
    for name in page_names():
        found[f"{name}/index.html"] = plain.replace('"./', '"../').encode()
        # Streamlit's page asks for its icon beside the address that it was opened at
        found[f"{name}/favicon.png"] = icon
    return found


def page_names() -> list[str]:
    """Return the addresses of the pages below the folder's own."""
    return sorted(path.stem for path in (app_path().parent / "pages").glob("*.py"))


def lost_page(title: str, mark: str) -> str:
    """Return the page that a host shows where there is none.

    Parameters
    ----------
    title : str
    mark : str
        A file at the top of the site, by which the page finds the way there.
    """
    page = (SOURCE / "404.html").read_text(encoding="utf-8")
    return page.replace("@TITLE@", title).replace("@MARK@", mark)


def drawn(static: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Return Streamlit's files without those that nothing but `UNDRAWN` asks for.

    Parameters
    ----------
    static : dict of path to bytes
        With its ``manifest.json``, which says of each part what it loads at once and on demand.

    Raises
    ------
    EditionError
        If a part has another name there.
    """
    parts = json.loads(static[PurePosixPath("manifest.json")])
    names = {PurePosixPath(key).stem: key for key in parts}
    for name in UNDRAWN:
        if name not in names:
            raise EditionError(f"Streamlit's manifest.json names no part {name}: see UNDRAWN.")

    def files(barred: Collection[str]) -> set[PurePosixPath]:
        todo = [key for key, part in parts.items() if part.get("isEntry")]
        seen: set[str] = set()
        while todo:
            key = todo.pop()
            if key not in seen and key not in barred:
                seen.add(key)
                todo += [*parts[key].get("imports", ()), *parts[key].get("dynamicImports", ())]
        each = (parts[key] for key in seen)
        found = (name for one in each for name in (one["file"], *one.get("css", ()),
                                                   *one.get("assets", ())))  # fmt: skip
        return {PurePosixPath(name) for name in found}

    unasked = files(()) - files([names[name] for name in UNDRAWN])
    return {path: content for path, content in static.items() if path not in unasked}


def _renamed(static: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Return Streamlit's files without a name that begins with ``_``.

    Usual hosts of static pages drop such files. The names have a digest in them, so each stands in
    a text only where the file is meant.
    """
    new = {path.name: f"u{path.name}" for path in static if path.name.startswith("_")}
    if not new:
        return static
    old = re.compile("|".join(re.escape(name) for name in new).encode())

    def put(found: re.Match[bytes]) -> bytes:
        return new[found[0].decode()].encode()

    return {
        path.with_name(new.get(path.name, path.name)): (
            old.sub(put, content) if path.suffix in {".js", ".css", ".html"} else content
        )
        for path, content in static.items()
    }


def _verified(folder: Path, files: Iterable[LockedFile]) -> dict[str, bytes]:
    """Return Pyodide's files from a folder, each as it is on record."""
    found = {}
    for file in files:
        path = folder / file.name
        if not path.is_file():
            raise EditionError(
                f"--pyodide must be a folder with Pyodide's files; {file.name} is not there."
            )
        found[file.name] = path.read_bytes()
        file.check(found[file.name])
    return found


def _emptied(out: Path) -> None:
    """Make room: an earlier export is replaced, anything else is left alone."""
    if out.exists() and not out.is_dir():
        raise EditionError("OUT must be a folder; a file is there.")
    if out.is_dir() and any(out.iterdir()):
        if not (out / "edition" / "lock.json").is_file():
            raise EditionError("OUT must be empty or an earlier export; it holds other files.")
        shutil.rmtree(out)


def _record(lock: Lock, bundles: list[dict[str, Any]], *, hosted: bool) -> dict[str, Any]:
    """Return what the worker reads: what to load, from where, and the sha256 of each file."""
    packages = lock.pyodide_lock["packages"].values()
    places = {each["file_name"]: bundle.PLACES[each["install_dir"]] for each in packages}
    digests = [file.sha256 for file in lock.files] + [each["sha256"] for each in bundles]
    build = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return {
        "streamlit": lock.streamlit,
        "pyodide": {
            "version": lock.pyodide,
            "from": "../pyodide/" if hosted else lock.cdn,
            "files": [_placed(file, places) for file in lock.files],
            "lock": lock.pyodide_lock,
        },
        "bundles": bundles,
        # what the browser makes of these files and keeps under names that change with them
        "made": [f"library-{build}", f"modules-{build}"],
        "app": bundle.APP,
        "environment": ENVIRONMENT,
    }


def _placed(file: LockedFile, places: dict[str, str]) -> dict[str, Any]:
    """Return what the worker reads of a file of Pyodide: of a package, where it is unpacked."""
    if file.name not in places:
        return file.to_json()
    return file.to_json() | {"into": places[file.name], "slim": True}


def _page(html: str, loaded: int, source: str | None) -> str:
    """Return Streamlit's page with the start screen, and with its script held back."""
    before, found, after = html.partition(_MAIN)
    main, closed, rest = after.partition('"></script>')
    if not found or not closed or _ROOT not in rest or _CHARSET not in before:
        raise EditionError("Streamlit's page is not laid out as the browser edition expects.")
    ours = '<script type="module" src="./edition/page.js"></script>'
    html = f"{before}{ours}{rest}"
    policy = _POLICY if source is None else _POLICY | {"connect-src": f"'self' {_origin(source)}"}
    words = {
        "@POLICY@": "; ".join(f"{name} {allowed}" for name, allowed in policy.items()),
        "@MAIN@": main.removeprefix("./"),
        "@SIZE@": f"{decimals(loaded / 1e6, 0)} MB",
        "@FROM@": "from this address" if source is None else f"from this address and {source}",
    }
    start = (SOURCE / "start.html").read_text(encoding="utf-8")
    for word, put in words.items():
        start = start.replace(word, put)
    # the policy counts for what stands below it in the head
    first, _, screen = start.partition("\n")
    lines = [line for line in html.splitlines() if "_stcore/agent" not in line]
    html = "\n".join(lines).replace("<title>Streamlit</title>", "<title>dpviz</title>")
    html = html.replace(_CHARSET, f"{_CHARSET}\n    {first}", 1)
    return html.replace(_ROOT, f"{_ROOT}\n{screen}", 1) + "\n"


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
