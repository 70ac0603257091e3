"""The figures of the house, on one that is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.house import FEW_LINES, House

LONG = "\n".join(f"x{number} = {number}" for number in range(FEW_LINES))
FILES = {
    "dpviz/__init__.py": "",
    "dpviz/core/__init__.py": "",
    "dpviz/core/shared.py": LONG,  # two users in the package
    "dpviz/core/single.py": LONG,  # one user in the package
    "dpviz/core/drawn.py": LONG,  # one in the package, and a page
    "dpviz/core/paged.py": LONG,  # one page alone
    "dpviz/core/tested.py": LONG,  # a test alone
    "dpviz/mechanisms/__init__.py": "from dpviz.mechanisms import laplace",
    "dpviz/mechanisms/laplace.py": "from dpviz.core import shared, single, drawn",
    "dpviz/mechanisms/_directional.py": "from dpviz.core.shared import x1",
    "dpviz/mechanisms/gaussian.py": "def late():\n    from dpviz.mechanisms._directional import x1",
    "dpviz/papers/mvg/figure1.py": "",
    "dpviz/papers/mvg/_said.py": "from dpviz.papers.mvg import figure1",
    "dpviz/papers/run.py": "from dpviz.papers.mvg import _said",
    "dpviz/datasets/__init__.py": "from dpviz.datasets.remote import adult, unpack",
    "dpviz/datasets/remote/adult.py": "SETS: tuple = ()\n" + LONG,
    "dpviz/datasets/remote/unpack.py": "sets = ()\n" + LONG,
    "pages/explore.py": "from dpviz.core.drawn import x1\nimport dpviz.core.paged",
    "tests/test_one.py": "from dpviz.core.tested import x1\nfrom dpviz.core.paged import x2",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return House(tmp_path / "dpviz")


def test_a_file_with_one_user_is_counted_unless_it_is_of_a_kind(house: House) -> None:
    assert house.with_one_user == [
        "core/paged.py",
        "core/single.py",
        "datasets/remote/unpack.py",
        "mechanisms/_directional.py",
        "papers/mvg/_said.py",
    ]


def test_small_files_are_counted_with_their_kind(house: House) -> None:
    small = house.small
    assert "core/shared.py" not in small
    assert [file for file in small if house.is_a_kind(file)] == [
        "mechanisms/gaussian.py", "mechanisms/laplace.py", "papers/mvg/figure1.py"
    ]  # fmt: skip
    assert [file for file in small if not house.is_a_kind(file)] == [
        "mechanisms/_directional.py", "papers/mvg/_said.py", "papers/run.py"
    ]  # fmt: skip
