"""The private names of Streamlit that the browser edition relies on are those of its pin.

What is read is the pinned wheel where it has been fetched, and this environment's Streamlit where
it is the pinned one: a newer Streamlit of the index changes nothing here.
"""

from __future__ import annotations

import ast
import re
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from browser.names import PRIVATE, Private, missing
from dpviz.edition.lock import read_lock
from tools.edition import folder_of

BRIDGE = Path(__file__).resolve().parents[2] / "browser" / "bridge.py"


@pytest.fixture(scope="module")
def source() -> Path | zipfile.Path:
    """Return what holds the Streamlit that the edition is pinned to."""
    lock = read_lock()
    wheel = folder_of(lock) / lock.wheels["streamlit"].name
    if wheel.is_file():
        lock.wheels["streamlit"].check(wheel.read_bytes())
        return zipfile.Path(wheel)
    if (here := metadata.version("streamlit")) == lock.streamlit:
        return Path(str(metadata.distribution("streamlit").locate_file("")))
    pytest.skip(
        f"here is Streamlit {here}, and the browser edition is pinned to {lock.streamlit}, which "
        "is not in this user's cache; get it with make browser-edition"
    )


def test_streamlit_has_every_private_name(source: Path | zipfile.Path) -> None:
    """Where this fails: mend browser/bridge.py, then write the new shape into the list."""
    assert missing(source) == []


@pytest.mark.parametrize(
    ("private", "says"),
    [
        (Private("streamlit.runtime.runtime", "Runtime.gone", ("self",), "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime._gone", None, "asks"), "has no"),
        (Private("streamlit.never", "anything", None, "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime.stop", ("self", "hard"), "stops"), "takes"),
    ],
)
def test_a_change_is_told_in_a_sentence(
    source: Path | zipfile.Path, private: Private, says: str
) -> None:
    (sentence,) = missing(source, (private,))
    assert f"{says} " in sentence
    assert private.name in sentence
    assert sentence.endswith(".")


def test_the_list_has_every_private_name_that_the_bridge_uses() -> None:
    """A name with an underscore that is not the bridge's own belongs to somebody else."""
    tree = ast.parse(BRIDGE.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    own = {"_call", "_due"}
    own |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)
    }
    listed = {part for private in PRIVATE for part in private.name.split(".")}
    assert len(used & listed) >= 8
    assert used - own - listed == set()
