"""A cell's key covers the whole core: a changed mechanism never serves stale numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpviz.core.files import PACKAGE
from dpviz.simulation.store import _NOT_SOURCE, source_digest
from tests.sources import imports


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the package that may be changed."""
    package = tmp_path / "dpviz"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def changed(path: Path) -> None:
    """Change one byte of a file."""
    path.write_bytes(path.read_bytes() + b" ")


def test_the_default_covers_the_package() -> None:
    assert (PACKAGE / "mechanisms" / "gaussian.py").is_file()
    assert (PACKAGE / "simulation" / "store.py").is_file()


def test_nothing_that_makes_numbers_imports_what_the_digest_leaves_out() -> None:
    """Papers have a digest of their own beside this one, and import none of it either."""
    above = {one for one in _NOT_SOURCE if not one.startswith(("core/", "simulation/"))}
    assert {"auditing", "releasing", "report", "lessons", "studies"} <= above
    left_out = tuple(
        f"dpviz.{one.removesuffix('.py').replace('/', '.')}" for one in above - {"papers"}
    )

    def asks(path: Path) -> list[str]:
        return [
            name
            for one in imports(path)
            for name in (one.module, *(f"{one.module}.{name}" for name in one.names), *one.names)
            if f"{name}.".startswith(tuple(f"{each}." for each in left_out))
        ]

    files = {path: path.relative_to(PACKAGE) for path in PACKAGE.rglob("*/*.py")}
    inside = [
        path
        for path, name in files.items()
        if not any(name.is_relative_to(one) for one in above - {"papers"})
    ]
    assert len(inside) > 150
    assert {str(files[path]): found for path in inside if (found := asks(path))} == {}
    assert asks(PACKAGE / "cli" / "release.py")  # the control: who is above does


def test_a_copy_has_the_same_digest(copied: Path) -> None:
    assert source_digest(copied) == source_digest()


@pytest.mark.parametrize(
    "inside",
    [
        "mechanisms/gaussian.py",
        "sampling/ensembles.py",
        "accounting/gaussian.py",
        "core/metrics/_base.py",
        "core/metrics/measures.py",
        "simulation/cells.py",
    ],
)
def test_a_byte_of_what_makes_numbers_changes_the_key(copied: Path, inside: str) -> None:
    changed(copied / inside)
    assert source_digest(copied) != source_digest()


@pytest.mark.parametrize(
    "inside",
    [
        "report/figures/distance.py",
        "report/sentences/explore.py",
        "cli/board.py",
        "auditing/run.py",
        "releasing/making.py",
        "lessons/decide.py",
    ],
)
def test_words_and_pictures_do_not(copied: Path, inside: str) -> None:
    changed(copied / inside)
    assert source_digest(copied) == source_digest()
