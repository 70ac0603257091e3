"""The private names of Streamlit that the browser edition relies on are still what they were."""

from __future__ import annotations

import ast
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
    own = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.name] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else [node.attr] if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name) and node.value.id == "self"
            and isinstance(node.ctx, ast.Store)
            else []
        )
    }  # fmt: skip
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }
    listed = {part for private in PRIVATE for part in private.name.split(".")}
    assert "_enqueued_some_message" in listed & own
    assert used - own - listed == {"_script_thread", "_session_mgr"} - listed
