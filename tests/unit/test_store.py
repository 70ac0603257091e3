"""The key of a stored result covers the whole core: a changed mechanism never gets old numbers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.core.files import PACKAGE
from dpviz.core.plugins import code_digest
from dpviz.core.problem import Budget
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.preparation.steps import MEAN, PrivateSteps
from dpviz.simulation.cells import Cell, plan
from dpviz.simulation.picture.account import PictureOptions
from dpviz.simulation.store import _NOT_SOURCE, Keys, own_code, source_digest
from tests.sources import imports


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the package that a test may change."""
    package = tmp_path / "dpviz"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def changed(path: Path) -> None:
    """Change one byte of a file."""
    path.write_bytes(path.read_bytes() + b" ")


def test_nothing_that_makes_numbers_imports_what_the_digest_leaves_out() -> None:
    """Code that makes numbers imports nothing outside the digest; papers have their own digest."""
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
    assert asks(PACKAGE / "cli" / "release.py")  # Control: a higher layer does import it.


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
        "lessons/questions.py",
    ],
)
def test_words_and_pictures_do_not(copied: Path, inside: str) -> None:
    changed(copied / inside)
    assert source_digest(copied) == source_digest()


FILES = {
    "theirs.py": """
import json
import scipy.linalg
import dpviz
from helping import WIDTH
from aside import inner

@dpviz.mechanism(claim="none")
def plain(rows, epsilon, delta, k, rng):
    import late
    return scipy.linalg.qr(rows)[0][:, :k] * WIDTH * inner.S * late.S

@dpviz.metric("wide", better="lower")
def wide(outcome):
    return outcome.angles[:, 0] * WIDTH
""",
    "helping.py": "from pathlib import Path\n"
    "WIDTH = len(Path(__file__).with_name('read.txt').read_text())\n",
    "read.txt": "one",
    "aside/__init__.py": "",
    "aside/inner.py": "from .deep import S",
    "aside/deep.py": "S = 1.0",
    "late.py": "S = 1.0",
    "nobodys.py": "S = 1.0",
}
THEIRS = {Path(name).parts[0].removesuffix(".py") for name in FILES}


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a loader of the objects of `FILES`, some of them changed, as in a new process."""

    def forget() -> None:
        for name in [one for one in sys.modules if one.split(".")[0] in THEIRS]:
            del sys.modules[name]

    def bring(**changed: str) -> Any:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in FILES.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(changed.get(place.stem, text))
        forget()
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        return import_module("theirs")

    yield bring
    forget()


def test_what_others_bring_is_known_by_all_of_their_code(brought: Any) -> None:
    def digests(**changed: str) -> list[str]:
        module = brought(**changed)
        return [own_code(module.plain()), code_digest(module.wide.compute)]

    first = digests()
    assert digests() == first
    assert digests(nobodys="S = 2.0") == first  # Control: no file imports this module.
    for changes in (
        {"theirs": FILES["theirs.py"].replace("qr", "svd")},
        {"helping": "WIDTH = 4"},
        {"read": "three"},
        {"deep": "S = 2.0"},
        {"late": "S = 2.0"},
    ):
        assert not set(digests(**changes)) & set(first), changes


def test_what_stands_in_a_module_now_counts(brought: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = brought()
    first = own_code(module.plain())
    monkeypatch.setattr(module, "WIDTH", np.arange(3))
    second = own_code(module.plain())
    monkeypatch.setattr(module, "WIDTH", np.arange(4))
    assert len({first, second, own_code(module.plain())}) == 3


def _first(rows: Any, epsilon: float, delta: float, k: int, rng: Any) -> Any:
    return np.eye(rows.shape[1])[:, :k]


def test_every_part_of_a_cell_is_in_its_key() -> None:
    table = prepare(load("iris"), Settings())
    keys, cell = Keys(table), plan(table, Settings(mechanisms=("gaussian",))).cells[0]
    other: dict[str, Any] = {
        "mechanism": parse_variant("laplace_tight"),
        "problem": replace(cell.problem, k=3),
        "budget": Budget(2.0, cell.budget.delta),
        "seed": 1,
        "trials": range(3),
        "private": PrivateSteps((MEAN,)),
        "free": not cell.free,
        "picture": PictureOptions(),
    }
    assert set(other) == {field.name for field in fields(Cell)}
    cell_keys = {
        name: keys.key(replace(cell, **{name: value}), ()) for name, value in other.items()
    }
    assert len({keys.key(cell, ()), *cell_keys.values()}) == len(other) + 1


def test_a_metric_of_others_is_in_the_key(brought: Any) -> None:
    table = prepare(load("iris"), Settings()).light(with_rows=True)
    cell = Cell(
        dpviz.mechanism(claim="none")(_first)(),
        table.problem(Settings()),
        table.budget(Settings()),
        0,
        range(2),
    )
    keys = []
    for width in ("WIDTH = 3", "WIDTH = 4"):
        both = ("largest_angle", brought(helping=width).wide)
        keys.append([Keys(table).key(cell, metrics) for metrics in (both, both[:1])])
    assert [a == b for a, b in zip(*keys, strict=True)] == [False, True]
