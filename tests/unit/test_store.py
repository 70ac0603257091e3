"""A cell's key covers the whole core: a changed mechanism never serves stale numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpviz.core.paths import PACKAGE
from dpviz.simulation.store import source_digest


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


def test_a_copy_has_the_same_digest(copied: Path) -> None:
    assert source_digest(copied) == source_digest()


@pytest.mark.parametrize(
    "inside",
    [
        "mechanisms/gaussian.py",
        "sampling/goe.py",
        "accounting/gaussian.py",
        "metrics/_base.py",
        "metrics/subspaces.py",
        "simulation/cells.py",
    ],
)
def test_a_byte_of_what_makes_numbers_changes_the_key(copied: Path, inside: str) -> None:
    changed(copied / inside)
    assert source_digest(copied) != source_digest()


@pytest.mark.parametrize(
    "inside", ["report/figures/distance.py", "report/sentences/explore.py", "cli/board.py"]
)
def test_words_and_pictures_do_not(copied: Path, inside: str) -> None:
    changed(copied / inside)
    assert source_digest(copied) == source_digest()
