"""Build the documentation: ``python -m tools.docs OUT``, or ``make docs``.

The sources are `docs/`, the docstrings, the declared options, and the gallery, whose charts this
tool renders. Everything is first copied to another folder, so a build leaves the checkout
unchanged. Warnings, dead links and pages that contact another host are errors. No network is used.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args
from urllib.parse import unquote, urlsplit

import plotly.graph_objects as go
from docutils.utils.math.latex2mathml import tex2mathml
from plotly.offline import get_plotlyjs
from sphinx.cmd.build import build_main

import dpviz
from dpviz import extend
from dpviz.cli import build_parser
from dpviz.cli.browser_edition import board_file
from dpviz.cli.browser_edition.folder import lost_page
from dpviz.core.metrics import METRICS
from dpviz.core.params import Param, params_of
from dpviz.core.problem import Relation
from dpviz.core.settings import Settings
from dpviz.lessons.glossary import TERMS
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.studies import Answer, Made
from tools import gallery

ROOT = Path(__file__).resolve().parent.parent
_WIDTH = "92"  # Help texts of commands are this many characters wide.
Figure = Callable[[], go.Figure]


# Generated pages ---------------------------------------------------------------------------


def write_generated(sources: Path) -> None:
    """Write every page that is not committed."""
    (sources / "gallery").mkdir()
    (sources / "reference").mkdir()
    static = sources / "_static"
    static.mkdir(exist_ok=True)
    (static / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    # Show four columns: a fifth, with the theme's files, would make the first page exceed 1 MB.
    (static / "board.html").write_bytes(board_file(4))
    (sources / "glossary.md").write_text(_glossary(), encoding="utf-8")
    _write_gallery(sources / "gallery")
    _write_reference(sources / "reference")
    papers = sources / "reproduction.md"
    parts = ["", "```{toctree}", ":hidden:", ":glob:", "", "reproduction/*", "```", ""]
    papers.write_text(papers.read_text(encoding="utf-8") + "\n".join(parts), encoding="utf-8")
    (sources / "theory").mkdir()
    for name, text in _theory().items():
        (sources / "theory" / f"{name}.md").write_text(text, encoding="utf-8")
    for notebook in sources.glob("*.ipynb"):
        notebook.with_suffix(".md").write_text(notebook_page(notebook), encoding="utf-8")
        for page in sources.glob("*.md"):  # Links from the repository open the notebook itself.
            words = page.read_text(encoding="utf-8")
            page.write_text(
                words.replace(f"]({notebook.name})", f"]({notebook.stem}.md)"), encoding="utf-8"
            )


def _glossary() -> str:
    """Return the terms as the dashboard explains them, with computed numbers."""
    lines = ["# Glossary", "", "As on every page of the dashboard; numbers are computed.", ""]
    for term in TERMS:
        also = f" Also: {', '.join(term.also)}." if term.also else ""
        lines += [f"## {term.word.capitalize()}", "", f"{term.said}{also}", ""]
    return "\n".join(lines)


def _write_gallery(folder: Path) -> None:
    index = [
        "# Gallery",
        "",
        "Every figure, drawn from built-in data when this site was built.",
        "",
    ]
    for section, pages in gallery.SECTIONS.items():
        index += [f"## {section}", ""]
        for page in pages:
            words = (inspect.getdoc(page) or "").partition("\n")[0]
            index.append(f"- [{gallery.title_of(page)}]({page.__name__}.md): {words}")
            (folder / f"{page.__name__}.md").write_text(_figure_page(page), encoding="utf-8")
        index.append("")
    names = [page.__name__ for page in gallery.pages()]
    index += ["```{toctree}", ":hidden:", "", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def _figure_page(page: Figure) -> str:
    """Return one page of the gallery: the words, the chart, and its code."""
    figure = page()
    figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font_color="#7f7f7f"
    )
    figure.update_xaxes(gridcolor="rgba(127,127,127,0.2)", zerolinecolor="rgba(127,127,127,0.4)")
    figure.update_yaxes(gridcolor="rgba(127,127,127,0.2)", zerolinecolor="rgba(127,127,127,0.4)")
    html = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"figure-{page.__name__}",
        config={"displaylogo": False, "responsive": True},
    )  # fmt: skip
    words = inspect.getdoc(page) or ""
    return "\n".join(
        [
            f"# {gallery.title_of(page)}", "", words, "",
            "```{raw} html", '<script src="../_static/plotly.min.js"></script>', html, "```", "",
            "```python", _body(page), "```", "",
        ]
    )  # fmt: skip


def _body(page: Figure) -> str:
    """Return the source of a page's function without its docstring, and the helpers it uses."""
    source = inspect.getsource(page)
    helpers = [
        inspect.getsource(inspect.unwrap(helper)).replace("@cache\n", "").strip()
        for name, helper in vars(gallery).items()
        if name.startswith("_") and f"{name}()" in source
    ]
    body = textwrap.dedent(source.split('"""')[2]).strip()
    text = "\n\n\n".join([*helpers, body.replace("return ", "figure = ")])
    text = text.replace("  # fmt: skip", "")
    constants = [
        f"{name} = {value!r}"
        for name, value in vars(gallery).items()
        if name.isupper() and name != "SECTIONS" and name in text
    ]
    return "\n".join([*constants, "", text] if constants else [text])


# Run the cells in __main__ without a file and show the last expression, as a notebook does.
RUN = """
import ast, contextlib, io, json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    notebook = json.load(file)
space = sys.modules["__main__"].__dict__
for cell in notebook["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree, shown, said = ast.parse("".join(cell["source"])), None, io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, "<cell>", "exec"), space)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    data = {} if shown is None else {"text/plain": repr(shown)}
    if hasattr(shown, "_repr_mimebundle_"):
        data |= shown._repr_mimebundle_()
    elif hasattr(shown, "_repr_html_"):
        data["text/html"] = shown._repr_html_()
    cell["outputs"] = [{"text": said.getvalue(), "data": data}]
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump(notebook, file)
"""


def notebook_page(notebook: Path) -> str:
    """Return a notebook as a page, with the output of its cells when run now.

    Raises
    ------
    RuntimeError
        If a cell of the notebook fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run.ipynb"
        answer = subprocess.run(
            [sys.executable, "-c", RUN, str(notebook.resolve()), str(copy)],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if answer.returncode:
            raise RuntimeError(f"{notebook.name} fails: {answer.stderr}")
        cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
    lines = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            data = output["data"]
            image = data.get("text/html") or data.get("image/svg+xml")
            text = output["text"] + ("" if image else data.get("text/plain", ""))
            lines += ["```text", text.rstrip(), "```", ""] if text.strip() else []
            if image:
                lines += [
                    "````{raw} html",
                    f'<div class="output" style="overflow-x:auto">{image}</div>',
                    "````",
                    "",
                ]
    words = f"Run when this site was built. {{download}}`The notebook itself <{notebook.name}>`."
    return "\n".join([*lines, words, ""])


def _write_reference(folder: Path) -> None:
    pages = {
        "functions": _functions(),
        "answers": _answers(),
        "estimator": _estimator(),
        "options": _options(),
        "metrics": _metrics(),
        "mechanisms": _mechanisms(),
        "tables": _tables(),
        "commands": _commands(),
        "contract": _contract(),
        "errors": _errors(),
    }
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    index = ["# Reference", "", "```{toctree}", "", *pages, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def _automatic(title: str, words: str, directives: Sequence[str]) -> str:
    return "\n".join([f"# {title}", "", words, "", "```{eval-rst}", *directives, "```", ""])


def _functions() -> str:
    lines = [".. currentmodule:: dpviz", ""]
    for name in dpviz.__all__:
        if inspect.isfunction(getattr(dpviz, name)):
            lines += [f".. autofunction:: {name}", ""]
    words = (
        "Each is reached as `dpviz.NAME`. Keywords are the [options](options.md) of the command "
        "line, always by name."
    )
    return _automatic("Functions", words, lines)


def _answers() -> str:
    types = {  # These classes are returned by functions.
        cls
        for function in (getattr(dpviz, name) for name in dpviz.__all__)
        if inspect.isfunction(function)
        for signature in [inspect.signature(inspect.unwrap(function), eval_str=True)]
        for cls in get_args(signature.return_annotation) or [signature.return_annotation]
        if isinstance(cls, type)  # A decorator returns a Callable, not a class.
    }
    lines = []
    for cls in (Answer, Made, *sorted(types, key=lambda one: str(one.__name__))):
        lines += [f".. currentmodule:: {cls.__module__}", ""]
        lines += [f".. autoclass:: {cls.__name__}()", "   :members:", ""]
    words = "What the functions hand back. A notebook shows the words, the table and the picture."
    return _automatic("Answers", words, lines)


def _estimator() -> str:
    lines = [".. currentmodule:: dpviz", "", ".. autoclass:: PrivatePCA", "   :members:", ""]
    lines += [".. autoclass:: budget", "   :members:", "", ".. autoexception:: PrivacyWarning", ""]
    words = "One private release as a scikit-learn estimator: `dpviz.PrivatePCA`."
    return _automatic("Estimator", words, lines)


def _contract() -> str:
    lines = []
    for name in ("mechanisms._base.Mechanism", "mechanisms._base.AdditiveMechanism",
                 "core.problem.Problem", "core.problem.Budget", "core.release.Calibration",
                 "core.release.Release", "core.release.Status"):  # fmt: skip
        module, _, cls = f"dpviz.{name}".rpartition(".")
        lines += [f".. currentmodule:: {module}", "", f".. autoclass:: {cls}", "   :members:", ""]
    names = ", ".join(f"`{name}`" for name in extend.__all__)
    words = (
        "What a mechanism is. CONTRIBUTING.md in the repository says how to add one in one file; "
        "`dpviz.mechanism` makes one of a function. Authors of other packages import from "
        f"`dpviz.extend`, whose names keep their meaning between minor versions: {names}."
    )
    return _automatic("A mechanism", words, lines)


def _errors() -> str:
    lines = [".. automodule:: dpviz.core.errors", "   :members:", "   :member-order: bysource", ""]
    return _automatic("Errors", "Each is one sentence, and none shows a value of the data.", lines)


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [_row(*header), _row(*["---"] * len(header)), *(_row(*row) for row in rows), ""]


def _options() -> str:
    def given(param: Param) -> str:
        return f"`{param.format(param.default)}`" if param.format(param.default) else "all"

    rows = [
        (f"`{name}`", f"`{param.flag}`", given(param), param.allowed, param.help)
        for name, param in params_of(Settings).items()
    ]
    words = "Every option, declared once: the keyword in Python and the flag on the command line."
    header = ("keyword", "flag", "default", "allowed", "what it is")
    return "\n".join(["# Options", "", words, "", *_table(header, rows)])


def _metrics() -> str:
    rows = [
        (f"`{key}`", metric.help, metric.unit or "ratio", metric.better, metric.needs)
        for key, metric in METRICS.items()
    ]
    header = ("metric", "what it is", "unit", "better", "needs a released")
    return "\n".join(["# Metrics", "", *_table(header, rows)])


def _mechanisms() -> str:
    listing = dpviz.list_mechanisms()
    by_key: dict[str, list[dict[str, str]]] = {}
    for row in listing:
        by_key.setdefault(row["key"], []).append(row)
    rows = [
        (f"[`{key}`](../theory/{all_mechanisms()[key].info.family}.md#theory-{key})",
         pair[0]["label"], pair[0]["paper"], pair[0]["release"], pair[0]["guarantee"],
         *(row["status"] for row in pair))
        for key, pair in by_key.items()
    ]  # fmt: skip
    relations = [row["relation"] for row in next(iter(by_key.values()))]
    header = ("key", "mechanism", "source", "releases", "guarantee", *relations)
    words = (
        "What is known of each claim at epsilon 1, delta 1e-6, n 1000, d 10 and k 2; the "
        "[theory](../theory/index.md) has why."
    )
    return "\n".join(["# Mechanisms", "", words, "", *_table(header, rows)])


def _tables() -> str:
    rows = [
        (f"`{row['key']}`", row["origin"], row["n"], row["d"], row["description"], row["source"],
         row["licence"])
        for row in dpviz.list_datasets()
    ]  # fmt: skip
    header = ("key", "origin", "n", "d", "what it is", "source", "licence")
    return "\n".join(["# Tables", "", *_table(header, rows)])


def _commands() -> str:
    """Return the help of every command, at a fixed width."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        actions = build_parser()._subparsers
        assert actions is not None
        choices = actions._group_actions[0].choices
        assert isinstance(choices, dict)
        parts = ["# Commands", "", "`dpviz COMMAND`, or `python -m dpviz COMMAND`.", ""]
        for name, parser in choices.items():
            # Replace the home folder, because defaults contain the build machine's own folders.
            help_text = parser.format_help().rstrip().replace(str(Path.home()), "~")
            parts += [f"## {name}", "", "```text", help_text, "```", ""]
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(parts)


_LINK = re.compile(r"\[([^\]]*)\]\((\.\./)([\w./-]+)\)")


def bring_linked(sources: Path) -> None:
    """Adapt links to files of the repository for the site.

    A Markdown file above `docs/` that a page links to joins the site. A link to any other existing
    file becomes the file's name as code.
    """
    waiting = sorted(sources.glob("*.md"))
    while waiting:
        page = waiting.pop()

        def mended(match: re.Match[str]) -> str:
            text, _, name = match.groups()
            above = ROOT / name
            if not above.is_file():
                return match.group()  # The documentation build reports this dead link.
            if above.suffix != ".md" or above.parent != ROOT or name == "README.md":
                return f"`{text.strip('`')}`"
            brought = sources / name
            if not brought.exists():
                # Make links relative to docs/, because all links of the site are.
                above_docs = re.sub(
                    r"\]\((?!\w+:|#|docs/)", "](../", above.read_text(encoding="utf-8")
                )
                brought.write_text(above_docs.replace("](docs/", "]("), encoding="utf-8")
                waiting.append(brought)
            return f"[{text}]({name})"

        page.write_text(_LINK.sub(mended, page.read_text(encoding="utf-8")), encoding="utf-8")


# Theory: the docstrings of mechanisms and accounts ----------------------------------

_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_TICKED = re.compile(r"(``?[^`]+``?)")
_CITED = re.compile(r"`(dpviz\.[\w.]+)`")
_MARKED = re.compile(r"([\\*_<>\[\]|$])")
_ASIDE = "arguments"


def sections_of(docstring: str) -> dict[str, str]:
    """Return a docstring's sections by their headings; the text before the first has none."""
    first, *rest = _SECTION.split(docstring)
    return {"": first.strip()} | {
        name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)
    }


def _theory() -> dict[str, str]:
    """Return the theory pages: one per family of mechanisms, and the shared arguments."""
    classes = all_mechanisms()
    links = {key: f"{cls.info.family}.md#theory-{key}" for key, cls in classes.items()}
    rows = dpviz.list_mechanisms()
    pages: dict[str, list[str]] = {}
    for key, cls in classes.items():
        judgements = [row for row in rows if row["key"] == key]
        family = cls.info.family
        page = pages.setdefault(family, [f"# {family.capitalize()} mechanisms", ""])
        page += _mechanism_section(cls, judgements, links)
    sources = _docstrings("\n".join(inspect.getdoc(cls) or "" for cls in classes.values()))
    common = ["# Arguments that are shared", ""]
    for name, words in sources.items():
        parts = sections_of(words)
        paragraphs = [parts[""], *(parts[each] for each in ("Notes", "Source") if each in parts)]
        common += [f"({name.lower()})=", f"## {name.removeprefix('dpviz.')}", ""]
        common += [_prose("\n\n".join(paragraphs), links), ""]
    index = [
        "# Theory", "", _prose(inspect.getdoc(Relation) or "", links), "",
        "Of each mechanism: its law, how its noise follows from the budget, how far a row moves it "
        "and why that is enough, and where the promise fails (at epsilon 1, delta 1e-6, n 1000, "
        "d 10 and k 2). All of it comes from the docstrings of the code that draws.", "",
        *_table(("mechanism", "what it does"), [
            (f"[{cls.info.label}]({links[key]})", cls.info.summary) for key, cls in classes.items()
        ]),
        "```{toctree}", ":hidden:", "", *pages, _ASIDE, "```", "",
    ]  # fmt: skip
    texts = {name: "\n".join(page) for name, page in pages.items()}
    return texts | {_ASIDE: "\n".join(common), "index": "\n".join(index)}


def _mechanism_section(
    cls: type[Mechanism], judgements: Sequence[Mapping[str, str]], links: Mapping[str, str]
) -> list[str]:
    """Return the section of one mechanism."""
    info, sections = cls.info, sections_of(inspect.getdoc(cls) or "")
    lines = [
        f"(theory-{cls.key})=",
        f"## {info.label}",
        "",
        info.summary,
        "",
        _prose(sections[""], links),
        "",
    ]
    for words, law in (("Law", info.law), ("Calibration", info.calibration)):
        # MathML needs no script and no files from other hosts, because the browser renders it.
        formula = tex2mathml(law.replace(r"\dots", r"\ldots"), as_block=True)
        lines += [f"**{words}**", "", "```{raw} html", formula, "```", ""]
    if "Notes" in sections:
        lines += ["**Neighbours, sensitivity, proof**", "", _prose(sections["Notes"], links), ""]
    lines += ["**What holds and what fails**", ""]
    under: dict[str, list[str]] = {}
    for row in judgements:
        under.setdefault(f"**{row['status']}**. {row['evidence']}", []).append(row["relation"])
    lines += [f"- {' and '.join(names)}: {words}" for words, names in under.items()]
    lines += [f"- Not covered by its guarantee: {one}." for one in cls().assumed_public]
    source = _prose(sections["Source"], links) if "Source" in sections else info.paper
    where = f" [Read it]({info.url})" if info.url else ""
    return [*lines, "", f"**When** {info.advice}", "", f"**Source** {source}{where}", ""]


def _docstrings(text: str) -> dict[str, str]:
    """Return the docstrings that a text names, and the docstrings that these name, by name."""
    texts: dict[str, str] = {}
    waiting = _CITED.findall(text)
    while waiting:
        name = waiting.pop(0)
        if name not in texts:
            texts[name] = inspect.getdoc(resolve_name(name)) or ""
            waiting += _CITED.findall(texts[name])
    return {name: texts[name] for name in sorted(texts)}


def _prose(text: str, links: Mapping[str, str]) -> str:
    """Return a docstring's text as Markdown, with mechanisms and arguments as links."""

    def put(word: str) -> str:
        name = word.strip("`")
        if name in links:
            return f"[{word}]({links[name]})"
        return f"[{word}]({_ASIDE}.md#{name.lower()})" if _CITED.fullmatch(word) else word

    parts = _TICKED.split(text)
    return "".join(
        put(part) if place % 2 else _MARKED.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


# The build ---------------------------------------------------------------------------------


def build(out: Path, docs: Path = ROOT / "docs", *, generated: bool = True) -> int:
    """Build the site into a folder; return 0 if there was no warning.

    Parameters
    ----------
    out : Path
    docs : Path
        The committed sources.
    generated : bool
        Whether to write the gallery and the reference as well.
    """
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "docs"
        shutil.copytree(docs, sources)
        bring_linked(sources)
        if generated:
            write_generated(sources)
        # Option -n makes a dead reference a warning too. Option -j costs more time than it saves.
        words = ["-b", "html", "-W", "--keep-going", "-n", "-q", "-E", "-d", f"{folder}/trees"]
        # Documents stay in memory to the end: garbage collection would take a quarter of the time.
        gc.disable()
        try:
            status: int = build_main([*words, str(sources), str(out)])
        finally:
            gc.enable()
    if status == 0:
        page = lost_page("dpviz: documentation", "objects.inv")
        (out / "404.html").write_text(page, encoding="utf-8")
    return status


# Faults of a built site -----------------------------------------------------------


class _Page(HTMLParser):
    """The links, assets and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        target = values.get("href") if tag in ("a", "link") else values.get("src")
        if target is None:
            return
        # The attribute rel states a link element's purpose; values such as next load nothing.
        kinds = set((values.get("rel") or "").split())
        kinds_loaded = {"stylesheet", "icon", "preload", "preconnect", "manifest"}
        if tag == "a" or (tag == "link" and not kinds & kinds_loaded):
            self.links.append(target)
        else:
            self.assets.append(target)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> Iterator[str]:
    """Yield faults: dead links within the site, and assets of other hosts."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        for target in page.assets:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                yield f"{name} fetches {target}"
        for target in (*page.links, *page.assets):
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if goal.is_dir():
                goal /= "index.html"
            if not goal.is_file():
                yield f"{name} links to {target}, which is not there"
            elif goal in pages and unquote(parts.fragment) not in pages[goal].anchors | {""}:
                yield f"{name} links to {target}, which has no such place"
    for path in sorted((site / "_static").rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            yield f"{path.name} fetches from another host"


def main(arguments: Sequence[str]) -> int:
    """Build the site, then report its faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the site")
    out: Path = parser.parse_args(arguments).out
    status = build(out)
    wrong = list(faults(out)) if status == 0 else []
    for line in wrong:
        print(line, file=sys.stderr)
    return status or int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
