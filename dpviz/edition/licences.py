"""What the folder owes to others: one file with every component, its licence, source and texts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import PurePosixPath

from dpviz.edition.bundle import is_licence
from dpviz.edition.lock import SOURCE, Component, EditionError, Lock
from dpviz.edition.sources import Library

NAME = "THIRD_PARTY.txt"
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
                f"{each.name} lacks its licence, its source or the licence's text: state them "
                "in browser/lock.json and put the text into browser/licences."
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
