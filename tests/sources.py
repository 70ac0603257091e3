"""The imports of a Python file, found once for all tests of a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Import(NamedTuple):
    """One import statement.

    ``module`` is what ``from`` names, and empty for a plain import; ``at_the_top`` says whether it
    is a statement of the module itself, which runs when the module does.
    """

    line: int
    module: str
    names: tuple[str, ...]
    level: int
    at_the_top: bool

    @property
    def plain(self) -> bool:
        """Whether it has no ``from``."""
        return not self.module and self.level == 0


def imports_in(source: str) -> tuple[Import, ...]:
    """Return the imports of a source text, inside functions as well."""
    tree = ast.parse(source)
    top = {id(node) for node in tree.body}
    found = []
    for node in _statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module, level = ("", 0)
            if isinstance(node, ast.ImportFrom):
                module, level = node.module or "", node.level
            names = tuple(alias.name for alias in node.names)
            found.append(Import(node.lineno, module, names, level, id(node) in top))
    return tuple(found)


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return the imports of a file."""
    return imports_in(path.read_text(encoding="utf-8"))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement: an import never stands inside an expression."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _BLOCKS:
            inner = getattr(node, name, None)
            if isinstance(inner, list):  # the body of a lambda is an expression
                waiting.extend(inner)
