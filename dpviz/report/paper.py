"""Material for a paper: figures, tables, references, methods and the command of an answer.

Figures are one column wide, as SVG and PDF (`dpviz.report.print`); tables use LaTeX with booktabs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.core import VERSION
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import atomic_write
from dpviz.core.number_text import decimals, numeral, parseable
from dpviz.core.problem import Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.handout import bibtex, references, sources_of
from dpviz.report.print import to_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "≤": r"$\le$", "±": r"$\pm$", "✓": "", "✗": "",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$",
}  # fmt: skip


def latex(words: str) -> str:
    """Return plain text as LaTeX."""
    return "".join(_LATEX.get(letter, letter) for letter in words)


_ROUNDING = 1e-12
"""Errors below this limit, relative or absolute, are rounding and differ between processors."""


def with_error(mean: float, se: float) -> str:
    r"""Return a mean and its standard error, to two digits of the error: ``$0.913 \pm 0.012$``."""
    if not se > _ROUNDING * max(1.0, abs(mean)):  # There is one release, or only rounding error.
        return f"${parseable(mean, 3)}$"
    places = max(0, 1 - math.floor(math.log10(se)))
    return rf"${decimals(mean, places)} \pm {decimals(se, places)}$"


def booktabs(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a LaTeX table from cells in LaTeX; the first column holds words."""
    columns = "l" + "r" * (len(header) - 1)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(header) + r" \\"]
    lines += [r"\midrule", *(" & ".join(row) + r" \\" for row in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def cited(mechanism: Mechanism) -> str:
    """Return a mechanism's name with the citation of its papers."""
    by_source = {one.names: one.key.lower() for one in references([mechanism])}
    keys = [
        by_source[source] for source in dict.fromkeys(sources_of(mechanism)) if source in by_source
    ]
    return latex(mechanism.label) + (rf"~\cite{{{','.join(keys)}}}" if keys else "")


_SOFTWARE = f"""@software{{dpviz,
  author = {{{{The dpviz authors}}}},
  title = {{dpviz: see what differential privacy costs a principal component analysis}},
  version = {{{VERSION}}}
}}"""
"""Version and year, as in CITATION.cff."""

_NEIGHBOURS = {
    Relation.REPLACE: "one row is replaced by any other legal row",
    Relation.ZERO_OUT: "one row becomes the zero row",
}


def methods(
    prepared: Measured,
    settings: Settings,
    claims: Sequence[tuple[Mechanism, str]],
    assumed_public: Sequence[str],
    axes: Mapping[str, Sequence[Any]],
) -> str:
    """Return one paragraph of LaTeX: neighbours, public assumptions, and every verdict.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
    claims : sequence of (Mechanism, str)
        Shown mechanisms, each with the verdict on its claim in words.
    assumed_public : sequence of str
    axes : mapping of str to sequence
        Axes and their values; empty for a single setting.
    """
    budget = prepared.budget(settings)
    at = {
        r"$\varepsilon$": ("epsilon", budget.epsilon), r"$\delta$": ("delta", budget.delta),
        "$k$": ("k", settings.k),
    }  # fmt: skip
    facts = [f"{name} {numeral(value, 6)}" for name, (key, value) in at.items() if key not in axes]
    along = [
        f"{latex(axis)} from {numeral(min(values), 6)} to {numeral(max(values), 6)} in "
        f"{len(values)} values"
        for axis, values in axes.items()
    ]
    kind = {"ball": "rows of length at most 1 after scaling by the row-norm bound", "box": "a box"}
    sentences = [
        f"We ran {len(claims)} private PCA mechanisms on {latex(prepared.name)} ({prepared.n} "
        f"rows, {prepared.d} features) at {', '.join([*facts, *along])}.",
        f"Tables are neighbours if {_NEIGHBOURS[Relation(settings.relation)]}; the number of "
        f"rows is public. The domain is {kind.get(prepared.domain.kind, prepared.domain.kind)}.",
        "We took these values from the data without protection: "
        f"{latex('; '.join(dict.fromkeys(assumed_public)))}.",
        "Recovery is the captured variance beyond a random subspace, 1 for exact PCA. "
        f"Numbers are means of {settings.trials} simulated releases $\\pm$ one standard "
        f"error, seed {settings.seed}.",
        "Claims were checked against exact privacy accounting and refutations: "
        + "; ".join(f"{cited(one)}: {latex(words).strip()}" for one, words in claims)
        + ".",
        rf"We computed everything with dpviz {VERSION}~\cite{{dpviz}}, in floating point, and "
        "compared it with the exact components. No number here is a private release.",
    ]
    return "\n".join(sentences)


def write_paper(
    folder: str | PathLike[str],
    *,
    figures: Mapping[str, Figure],
    table: str,
    mechanisms: Sequence[Mechanism],
    methods: str,
    command: str | None,
) -> list[Path]:
    """Write an answer's files into a folder, each as a whole or not at all, and return their paths.

    Parameters
    ----------
    folder : path
        Target folder, created if missing; its parent folder must exist.
    figures : mapping of str to Figure
        Figures by their file names.
    table, methods : str
        LaTeX.
    mechanisms : sequence of Mechanism
        Shown mechanisms, whose papers are listed.
    command : str or None
        Command that repeats the answer's computation.

    Raises
    ------
    InvalidSetting
        If the folder cannot be created.
    """
    home = Path(folder)
    if home.is_file() or not home.resolve().parent.is_dir():
        raise InvalidSetting(
            "folder", "a folder, or a new folder in a folder that exists", home.name
        )
    home.mkdir(exist_ok=True)
    again = f"% To repeat it: {command}\n" if command else ""
    files: dict[str, bytes] = {}
    for name, picture in figures.items():
        files |= {f"{name}.{kind}": to_bytes(kind, picture) for kind in ("svg", "pdf")}
    files["table.tex"] = (again + table).encode()
    files["references.bib"] = f"{_SOFTWARE}\n\n{bibtex(mechanisms)}\n".encode()
    files["methods.tex"] = (again + methods + "\n").encode()
    for name, content in files.items():
        with atomic_write(home / name) as aside:
            aside.write_bytes(content)
    return [home / name for name in files]
