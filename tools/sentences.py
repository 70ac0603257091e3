"""Sample sentences of the project: ``python -m tools.sentences 300 --seed 2026-11-28``.

Each printed line has a surface, a place and one sentence. Every surface has an equal share.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import io
import random
import re
import subprocess
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SURFACES = ("interface", "errors", "docs", "docstrings", "comments", "commits")
SPOKEN = ("pages/", "app.py", "dpviz/lessons/", "dpviz/report/", "dpviz/cli/", "dpviz/studies/",
          "dpviz/core/settings.py")  # fmt: skip
"""Files in which every string that reads as a sentence is shown to a user."""
_FOLDERS = ("app.py", "dpviz/", "pages/", "tools/", "benchmarks/", "tests/", "docs/", "browser/")
_ENDS = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!al\.)\s+(?=[\"'(`{*A-ZÄÖÜ0-9]|dpviz )")
_SECTION = re.compile(r"^\s*(?:[A-Z][\w ]+\n\s*-{3,}|[\w*, ]+ : .*|\.\. .*)$", re.MULTILINE)
_NO_PROSE = re.compile(r"^\s*#\s*(?:-{3,}|noqa|type:|fmt:|!)")
_JAVASCRIPT = re.compile(r'(?P<line>//[^\n]*)|"(?P<one>[^"\n]+)"|`(?P<other>[^`]+)`')


class Sentence(NamedTuple):
    """A sentence, its place in the code, and the surface on which it is read."""

    surface: str
    path: str
    line: int
    text: str


def split(text: str) -> Iterator[str]:
    """Yield a paragraph's sentences of three words or more, without markup."""
    if ">>>" in text or re.search(r"\S {3,}\S", text):  # Code and tables have no sentences.
        return
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]+>|\*\*|::", r"\1", text)
    for sentence in _ENDS.split(" ".join(plain.split())):
        words = re.findall(r"[^\W\d_]{2,}", re.sub(r"`[^`]*`|\{[^}]*\}", "", sentence))
        if len(words) >= 3 <= len(sentence.split()) and sum(map(len, words)) > 0.55 * len(sentence):
            yield sentence


def sentences(path: str, text: str) -> list[Sentence]:
    """Return the sentences of a file, for each of its surfaces."""
    suffix = Path(path).suffix
    kinds = {".py": _of_python, ".md": _of_markdown, ".toml": _of_toml, ".js": _of_javascript}
    paragraphs = kinds[suffix](path, text) if suffix in kinds else ()
    return [
        Sentence(surface, path, line, sentence)
        for surface, line, paragraph in paragraphs
        for sentence in split(paragraph)
    ]


def _of_markdown(_: str, text: str) -> Iterator[tuple[str, int, str]]:
    text = re.sub(r"^```.*?^```|<!--.*?-->|^\|.*?$", lambda m: "\n" * m[0].count("\n"), text,
                  flags=re.DOTALL | re.MULTILINE)  # fmt: skip
    line = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|#+) ))", text):
        yield "docs", line, re.sub(r"^\s*(?:[-*]|\d+\.|#+) ", "", paragraph)
        line += paragraph.count("\n")


def _of_toml(path: str, text: str) -> Iterator[tuple[str, int, str]]:
    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                yield from strings(one)

    for value in strings(tomllib.loads(text)) if path.startswith(SPOKEN) else ():
        place = max(text.find(value.partition("\n")[0][:30]), 0)
        yield "interface", text.count("\n", 0, place) + 1, value


def _of_javascript(_: str, text: str) -> Iterator[tuple[str, int, str]]:
    for match in _JAVASCRIPT.finditer(text):
        surface = "comments" if match["line"] else "interface"
        words = match["line"] or re.sub(r"\$(?=\{)", "", match["one"] or match["other"])
        yield surface, text.count("\n", 0, match.start()) + 1, words.lstrip("/ ")


def _of_python(path: str, text: str) -> Iterator[tuple[str, int, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # ruff reports it
        return
    documentation = set()
    for node in ast.walk(tree):  # Docstrings below an attribute count too.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documentation.add(node.value)
            for paragraph in _SECTION.sub("\n", str(node.value.value)).split("\n\n"):
                yield "docstrings", node.lineno, paragraph
    if path.startswith("dpviz/") or path.startswith(SPOKEN):
        yield from _strings(tree, documentation, "interface" if path.startswith(SPOKEN) else "")
    last, words = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not _NO_PROSE.match(token.string):
            if token.start[0] > last + 1:
                yield "comments", last, words
                words = ""
            last, words = token.start[0], f"{words} {token.string.lstrip('#: ')}"
    yield "comments", last, words


def _strings(
    node: ast.AST, skip: set[ast.Constant], surface: str
) -> Iterator[tuple[str, int, str]]:
    """Yield the strings below a node that users read: all with a surface, else errors and help."""
    if isinstance(node, ast.Raise):
        surface = "errors"
    elif isinstance(node, ast.keyword) and node.arg == "help":
        surface = "interface"
    if isinstance(node, ast.JoinedStr):
        parts = (str(v.value) if isinstance(v, ast.Constant) else "{x}" for v in node.values)
        if surface:
            yield surface, node.lineno, "".join(parts)
    elif isinstance(node, ast.Constant):
        if surface and isinstance(node.value, str) and node not in skip:
            yield surface, node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child, skip, surface)


def git(root: Path, *words: str) -> str:
    """Return the output of a git command; empty if it has none."""
    command = ["git", *words]
    result = subprocess.run(command, cwd=root, capture_output=True, check=False)
    return result.stdout.decode("utf-8", errors="replace")


def main() -> None:
    """Print the requested number of sentences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", default=str(datetime.date.today()), help="usual: the date")
    options = parser.parse_args()
    every: dict[str, list[Sentence]] = defaultdict(list)
    for path in git(ROOT, "ls-files").splitlines():
        if path.startswith(_FOLDERS) or path.endswith(".md"):
            for one in sentences(path, (ROOT / path).read_text("utf-8", errors="ignore")):
                every[one.surface].append(one)
    for line in git(ROOT, "log", "-n300", "--format=%h %s").splitlines():
        commit, _, subject = line.partition(" ")
        every["commits"].append(Sentence("commits", commit, 0, subject))
    rng = random.Random(options.seed)
    for place, surface in enumerate(SURFACES):
        share = (options.count + place) // len(SURFACES)
        for one in rng.sample(every[surface], min(share, len(every[surface]))):
            print(f"{one.surface}\t{one.path}:{one.line}\t{one.text}")


if __name__ == "__main__":
    main()
