"""The imports of a Python file, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Import(NamedTuple):
    """One import statement.

    ``module`` is the name after ``from``, empty for a plain import. ``at_the_top`` states whether
    the statement is at module level and so runs with the module.
    """

    line: int
    module: str
    names: tuple[str, ...]
    level: int
    at_the_top: bool

    @property
    def plain(self) -> bool:
        """Whether the import has no ``from``."""
        return not self.module and self.level == 0


def imports_in(source: str) -> tuple[Import, ...]:
    """Return the imports in a source text, including imports inside functions."""
    tree = ast.parse(source)
    top = {id(node) for node in tree.body}
    out = []
    for node in _statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module, level = ("", 0)
            if isinstance(node, ast.ImportFrom):
                module, level = node.module or "", node.level
            names = tuple(alias.name for alias in node.names)
            out.append(Import(node.lineno, module, names, level, id(node) in top))
    return tuple(out)


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return the imports of a file."""
    return imports_in(path.read_text(encoding="utf-8"))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement but no expression, because an expression never contains an import."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _BLOCKS:
            inner = getattr(node, name, None)
            if isinstance(inner, list):  # A lambda's body is a node instead of a list.
                waiting.extend(inner)
