"""The private names of Streamlit that the browser edition relies on are still what they were."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from browser.names import PRIVATE, Private, missing

BRIDGE = Path(__file__).resolve().parents[2] / "browser" / "bridge.py"


def test_streamlit_has_every_private_name() -> None:
    """Where this fails: mend browser/bridge.py, then write the new shape into the list."""
    assert missing() == []


@pytest.mark.parametrize(
    ("private", "says"),
    [
        (Private("streamlit.runtime.runtime", "Runtime.gone", ("self",), "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime._gone", None, "asks"), "has no"),
        (Private("streamlit.never", "anything", None, "asks"), "has no"),
        (Private("streamlit.runtime.runtime", "Runtime.stop", ("self", "hard"), "stops"), "takes"),
    ],
)
def test_a_change_is_told_in_a_sentence(private: Private, says: str) -> None:
    (sentence,) = missing((private,))
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
