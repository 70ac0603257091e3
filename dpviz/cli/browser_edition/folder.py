"""The exported folder: pages, Streamlit's files, archives, the lock and third-party licences.

One file lists every third-party component with its licence, source and licence texts.
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
    """Return the text of ``THIRD_PARTY.txt``.

    Parameters
    ----------
    lock : Lock
    libraries : dict of str to Library
        Libraries in the archive of the exported folder.
    hosted : dict of str to bytes
        Pyodide's files in the exported folder; a visitor loads the others from elsewhere.

    Raises
    ------
    EditionError
        If the licence, the source or the licence text of any component is missing.
    """
    head = [
        "dpviz is under the Apache License 2.0; the file LICENSE in this folder has its text. "
        "These components come with dpviz, each under its own licence:",
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
                "in browser/lock.json, and save the licence text in browser/licences."
            )
        where = "" if _is_here(each, library, hosted) else f" | loaded from {lock.cdn}"
        head.append(f"{each.name} {version} | {each.licence} | {each.source}{where}")
        if each.name == "streamlit":
            head.append(
                "  Streamlit's page uses JavaScript libraries and fonts. Streamlit's authors list "
                f"their notices: {each.source}/blob/{version}/NOTICES"
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
        for path, load in library.files:
            if is_licence(path):
                yield path.as_posix(), load().decode(errors="replace")
    elif each.file in hosted:
        with zipfile.ZipFile(BytesIO(hosted[each.file])) as archive:
            for name in archive.namelist():
                if is_licence(PurePosixPath(name)):
                    yield name, archive.read(name).decode(errors="replace")
    elif each.file:
        yield each.file, f"The licence's text is in {each.file}, which a visitor's browser loads."


_MAIN = '<script type="module" crossorigin src="'
_ROOT = '<div id="root"></div>'
_BOARD = re.compile(r'<template data-part="board">.*?</template>\s*', re.DOTALL)
_AHEAD = re.compile(r'<link\s+rel="(?:module)?preload"[^>]*>\s*')
_CHARSET = '<meta charset="UTF-8" />'
# No page of dpviz needs these parts of Streamlit's page. Each part has the feature that would load
# it: a function of Streamlit, or a code fence in Markdown.
UNDRAWN = {
    "DeckGlJsonChart": ("pydeck_chart", "map"),
    "EChartsChart": ("echarts_chart",),
    "GraphVizChart": ("graphviz_chart",),
    "MermaidChart": ("```mermaid",),
    "StreamlitSyntaxHighlighter": ("code", "echo", "```"),
}  # fmt: skip
_SERVED = ("page.js", "files.js", "worker.js")
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}

# This content security policy allows a page and its workers to load files from their own address
# only. Streamlit's page needs eval and inline styles. Pyodide needs WebAssembly and scripts from
# checked bytes. Only a host can set who may show the page in a frame.
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
    """Size of an exported folder.

    Attributes
    ----------
    loaded : int
        Number of bytes that a first visit loads before the dashboard starts.
    written : int
        Total bytes of the files in the folder.
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
    """Write the exported folder and return its size.

    Parameters
    ----------
    out : Path
        The folder is created if missing; it must be empty or an earlier export.
    lock : Lock
    pyodide : Path, optional
        Folder with Pyodide's files; if None, they are loaded from the lock's address.
    tables : iterable of (name, bytes)
        Table files to put beside the app.
    wheels : Path, optional
        Folder with the libraries' wheels; if None, the libraries come from this environment.
    board : callable, optional
        Returns the file of the comparison that the first page shows before Python starts; called
        once all other files have been checked.
    extra : mapping of str to str, optional
        Texts of additional files by their path in the folder.
    first : str, optional
        Address that visitors of the folder's own address are led to, such as a lesson's.

    Raises
    ------
    EditionError
        If a file is missing or differs from the lock, or the folder holds files of another origin.
    """
    # Check everything before writing, so that a failed check leaves an earlier export intact.
    libraries = libraries_of(lock, wheels)
    static = _rename_files(drawn(dict(libraries["streamlit"].below("streamlit/static"))))
    index, icon = (static[PurePosixPath(name)] for name in ("index.html", "favicon.png"))
    core = {} if pyodide is None else _verify_files(pyodide, lock.files)
    notices = third_party(lock, libraries, core)
    board_page = None if board is None else board()
    _make_room(out)

    bundles, archives = _archives(libraries, tables)
    size_loaded = sum(file.size for file in lock.files) + sum(each["bytes"] for each in bundles)
    record = _record(lock, bundles, hosted=pyodide is not None)
    record["libraries"] = {name: each.version for name, each in libraries.items()}
    page = _page(index.decode(), size_loaded, None if pyodide else lock.cdn)
    files = {
        **archives,
        **{f"pyodide/{name}": content for name, content in core.items()},
        **{f"edition/{name}": (SOURCE / name).read_bytes() for name in _SERVED},
        "edition/lock.json": (json.dumps(record, indent=1) + "\n").encode(),
        **{str(path): content for path, content in static.items() if path.parts[0] == "static"},
        "favicon.png": icon,
        NAME: notices.encode(),
        "LICENSE": (app_path().parent / "LICENSE").read_bytes(),
        "404.html": lost_page("dpviz", "edition/lock.json").encode(),
        ".nojekyll": b"",  # This empty file keeps hosts with Jekyll from dropping files.
        **({} if board_page is None else {BOARD: board_page}),
        **{place: text.encode() for place, text in (extra or {}).items()},
        **_addresses(page, icon, first, board=board_page is not None),
    }
    for place, content in files.items():
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        (out / place).write_bytes(content)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Written(size_loaded, size, len(page_names()) + 1)


def _archives(
    libraries: Mapping[str, Library], tables: Iterable[bundle.Member]
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return the lock entries of the two archives, and their bytes by path in the folder."""
    entries, files = [], {}
    for name, into, members in (
        ("libraries.zip", bundle.SITE, bundle.members_of(libraries.values())),
        ("app.zip", bundle.APP, bundle.app(tables)),
    ):
        content = bundle.archive(members)
        file = LockedFile(name, len(content), hashlib.sha256(content).hexdigest())
        entries.append(file.to_json() | {"url": name, "into": into})
        files[f"edition/{name}"] = content
    return entries, files


def _addresses(page: str, icon: bytes, first: str | None, *, board: bool) -> dict[str, bytes]:
    """Return the page and icon of every address, by path in the folder."""
    plain = _BOARD.sub("", page)
    # With a comparison on the first page, Python starts only on request, so do not preload.
    top = _AHEAD.sub("", page) if board else plain
    if first is not None:
        meta = f'<meta http-equiv="refresh" content="0; url=./{escape(first)}">'
        top = f'<!doctype html><html lang="en"><head>{_CHARSET}{meta}<title>dpviz</title></head>'
        top += f'<body><a href="./{escape(first)}">dpviz</a></body></html>'
    pages = {"index.html": top.encode()}
    for name in page_names():
        pages[f"{name}/index.html"] = plain.replace('"./', '"../').encode()
        # Streamlit's page requests its icon from the address where it was opened.
        pages[f"{name}/favicon.png"] = icon
    return pages


def page_names() -> list[str]:
    """Return the addresses of the pages, relative to the folder's own."""
    return sorted(path.stem for path in (app_path().parent / "pages").glob("*.py"))


def lost_page(title: str, mark: str) -> str:
    """Return the page that a host shows for an unknown address.

    Parameters
    ----------
    title : str
    mark : str
        A file at the top of the site, by which the page finds the site's address.
    """
    page = (SOURCE / "404.html").read_text(encoding="utf-8")
    return page.replace("@TITLE@", title).replace("@MARK@", mark)


def drawn(static: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Return Streamlit's files without those that only parts in `UNDRAWN` use.

    Parameters
    ----------
    static : dict of path to bytes
        Streamlit's files with ``manifest.json``, which lists what each part loads and when.

    Raises
    ------
    EditionError
        If the manifest lacks a part that `UNDRAWN` names.
    """
    parts = json.loads(static[PurePosixPath("manifest.json")])
    names = {PurePosixPath(key).stem: key for key in parts}
    for name in UNDRAWN:
        if name not in names:
            raise EditionError(f"Streamlit's manifest.json does not list {name}; correct UNDRAWN.")

    def files(barred: Collection[str]) -> set[PurePosixPath]:
        todo = [key for key, part in parts.items() if part.get("isEntry")]
        keys: set[str] = set()
        while todo:
            key = todo.pop()
            if key not in keys and key not in barred:
                keys.add(key)
                todo += [*parts[key].get("imports", ()), *parts[key].get("dynamicImports", ())]
        each = (parts[key] for key in keys)
        names = (name for one in each for name in (one["file"], *one.get("css", ()),
                                                   *one.get("assets", ())))  # fmt: skip
        return {PurePosixPath(name) for name in names}

    undrawn = files(()) - files([names[name] for name in UNDRAWN])
    return {path: content for path, content in static.items() if path not in undrawn}


def _rename_files(static: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Return Streamlit's files, renamed so that no name begins with ``_``.

    Common hosts of static pages drop files whose names begin with ``_``. Each name contains a
    digest, so it occurs in a text only as the name of that file.
    """
    new = {path.name: f"u{path.name}" for path in static if path.name.startswith("_")}
    if not new:
        return static
    old = re.compile("|".join(re.escape(name) for name in new).encode())

    def put(match: re.Match[bytes]) -> bytes:
        return new[match[0].decode()].encode()

    return {
        path.with_name(new.get(path.name, path.name)): (
            old.sub(put, content) if path.suffix in {".js", ".css", ".html"} else content
        )
        for path, content in static.items()
    }


def _verify_files(folder: Path, files: Iterable[LockedFile]) -> dict[str, bytes]:
    """Return Pyodide's files from a folder, each checked against the lock."""
    contents = {}
    for file in files:
        path = folder / file.name
        if not path.is_file():
            raise EditionError(
                f"--pyodide must be a folder with Pyodide's files; {file.name} is missing."
            )
        contents[file.name] = path.read_bytes()
        file.check(contents[file.name])
    return contents


def _make_room(out: Path) -> None:
    """Delete an earlier export; raise if the folder holds anything else."""
    if out.exists() and not out.is_dir():
        raise EditionError("OUT must be a folder, but the path is a file.")
    if out.is_dir() and any(out.iterdir()):
        if not (out / "edition" / "lock.json").is_file():
            raise EditionError("OUT must be empty or an earlier export; it holds other files.")
        shutil.rmtree(out)


def _record(lock: Lock, bundles: list[dict[str, Any]], *, hosted: bool) -> dict[str, Any]:
    """Return the worker's list of files: what to load, from which address, with each sha256."""
    packages = lock.pyodide_lock["packages"].values()
    places = {each["file_name"]: bundle.PLACES[each["install_dir"]] for each in packages}
    digests = [file.sha256 for file in lock.files] + [each["sha256"] for each in bundles]
    build = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return {
        "streamlit": lock.streamlit,
        "pyodide": {
            "version": lock.pyodide,
            "from": "../pyodide/" if hosted else lock.cdn,
            "files": [_file_entry(file, places) for file in lock.files],
            "lock": lock.pyodide_lock,
        },
        "bundles": bundles,
        # The browser caches results computed from these files under these names. A new export
        # changes the names.
        "made": [f"library-{build}", f"modules-{build}"],
        "app": bundle.APP,
        "environment": ENVIRONMENT,
    }


def _file_entry(file: LockedFile, places: dict[str, str]) -> dict[str, Any]:
    """Return the worker's entry of a Pyodide file; for a package, with its target folder."""
    if file.name not in places:
        return file.to_json()
    return file.to_json() | {"into": places[file.name], "slim": True}


def _page(html: str, loaded: int, source: str | None) -> str:
    """Return Streamlit's page with the start screen; its script waits until Python is ready."""
    before, mark, after = html.partition(_MAIN)
    main, end, rest = after.partition('"></script>')
    if not mark or not end or _ROOT not in rest or _CHARSET not in before:
        raise EditionError("Streamlit's page lacks the lines that the browser edition replaces.")
    ours = '<script type="module" src="./edition/page.js"></script>'
    html = f"{before}{ours}{rest}"
    policy = _POLICY if source is None else _POLICY | {"connect-src": f"'self' {_origin(source)}"}
    words = {
        "@POLICY@": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "@MAIN@": main.removeprefix("./"),
        "@SIZE@": f"{decimals(loaded / 1e6, 0)} MB",
        "@FROM@": "this address" if source is None else f"this address and {source}",
    }
    start = (SOURCE / "start.html").read_text(encoding="utf-8")
    for word, text in words.items():
        start = start.replace(word, text)
    # Put the content policy first: it applies only to what follows it in the head.
    first, _, screen = start.partition("\n")
    lines = [line for line in html.splitlines() if "_stcore/agent" not in line]
    html = "\n".join(lines).replace("<title>Streamlit</title>", "<title>dpviz</title>")
    html = html.replace(_CHARSET, f"{_CHARSET}\n    {first}", 1)
    return html.replace(_ROOT, f"{_ROOT}\n{screen}", 1) + "\n"


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
