"""Reports of an experiment's results, as files and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from dpviz.papers.experiment import Chart, Experiment
from dpviz.papers.measurements import Found, shipped_points
from dpviz.papers.run import Findings
from dpviz.papers.said import MEANINGS, Claim, Line, answer, counted, said_of, text_of
from dpviz.papers.solve import SOLVER, what_was_run

SUMMARY_KEYS = (
    "paper", "item", "verdict", "coverage", "reason", "place", "quote", "stated", "measured",
    "experiment", "key",
)  # fmt: skip
_FOLDERS = ("jiang", "chaudhuri", "xu", "mvg")


@dataclass(frozen=True)
class Paper:
    """A paper, and what a reader should learn from the paper.

    Attributes
    ----------
    name : str
        Name, as in `Info.paper`.
    folder, title : str
    sentence : str
    """

    name: str
    folder: str
    title: str
    sentence: str


PAPERS = {
    text["name"]: Paper(text["name"], folder, text["title"], text["sentence"])
    for folder in _FOLDERS
    for text in [text_of(folder)]
}
"""Papers by name, in the order of the Papers page."""
LINE_COLUMNS = (
    "experiment", "panel", "item", "reported", "measured", "agreement", "note",
    "reported_value", "reported_error", "mean", "mean_low", "mean_high", "draws",
)  # fmt: skip


def summary(found: Sequence[Findings]) -> list[dict[str, str]]:
    """Return a row for every printed claim, with `SUMMARY_KEYS`."""
    rows = []
    for one in found:
        for claim in one.claims:
            facts = vars(claim) | {
                "paper": one.experiment.info.paper,
                "item": f"{claim.place}: {claim.item}",
                "verdict": str(claim.answer),
                "experiment": one.experiment.key,
            }
            rows.append({name: facts[name] for name in SUMMARY_KEYS})
    return rows


def printing_order(found: Sequence[Findings], name: str) -> list[tuple[Claim, Experiment]]:
    """Return the claims of one paper in printing order."""
    by_key = {
        claim.key: (claim, one.experiment) for one in _of_paper(found, name) for claim in one.claims
    }
    # Claims are sorted as in the paper, because one experiment may test claims from all over it.
    order = [said.key for said in said_of(PAPERS[name].folder)]
    return [by_key[key] for key in order if key in by_key]


def latex(found: Sequence[Findings]) -> str:
    """Return the claims as a LaTeX table that an author can paste (package longtable)."""
    text = [
        r"\begin{longtable}{p{.16\textwidth}p{.3\textwidth}p{.2\textwidth}p{.24\textwidth}}",
        r"where & the paper says & answer & why \\ \hline",
    ]
    for name in PAPERS:
        claims = printing_order(found, name)
        if claims:
            text.append(rf"\multicolumn{{4}}{{l}}{{\textbf{{{_tex(name)}}}}} \\")
        for claim, _ in claims:
            verdict = f"{claim.answer} ({claim.coverage})" if claim.coverage else str(claim.answer)
            cells = (claim.place, claim.item, verdict, claim.reason)
            text.append(" & ".join(map(_tex, cells)) + r" \\")
    return "\n".join([*text, r"\end{longtable}"])


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{mark: "\\" + mark for mark in "&%$#_{}"},
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(mark, mark) for mark in text)


def tally(claims: Sequence[Claim]) -> str:
    """Return the number of claims with each answer, as text, without those by construction."""
    # A claim that holds by construction is left out, because it tests only our own code.
    counting = [claim for claim in claims if claim.counts]
    counts = ", ".join(f"{n} {answer}" for answer, n in counted(counting).items())
    others = len(claims) - len(counting)
    more = f"; {others} more by construction, not counted" if others else ""
    return f"{len(counting)} claims: {counts}{more}"


def page(found: Sequence[Findings], address: Callable[[Experiment], str]) -> str:
    """Return the first page of the report: a sentence and a table for each paper.

    Parameters
    ----------
    found : sequence of Findings
    address : callable
        Function that returns the address of an experiment's own report.
    """
    stopped = [f"`{one.experiment.key}`" for one in found if not one.complete]
    short = f" Stopped before their end: {' and '.join(stopped)}." if stopped else ""
    written = f"Written by `python -m benchmarks.reproduction docs` from full runs.{short}"
    first = f"Each claim of the papers gets one answer, under its fairest reading. {written}"
    text = ["# The four papers, redone", "", first, ""]
    for name, paper in PAPERS.items():
        claims = [claim for one in _of_paper(found, name) for claim in one.claims]
        text.append(f"- **{name}.** {paper.sentence} ({tally(claims)}.)")
    text += ["", "What the answers mean:", ""]
    text += [f"- **{answer}**: {meaning}" for answer, meaning in MEANINGS.items()]
    rows = (
        "`python -m dpviz reproduce --summary --format json` (or `latex`) prints the same claims."
    )
    text += ["", f"Intervals are 95 % confidence intervals of a mean. {rows}", ""]
    for name, paper in PAPERS.items():
        text += [f"## {name}", "", f"*{paper.title}*", ""]
        text += _table(
            "| where | the paper says | answer | why |",
            (
                (
                    f"[{claim.place}]({address(experiment)})",
                    f"{claim.item} (\u201c{claim.quote}\u201d)",
                    f"**{claim.answer}**" + (f" ({claim.extent})" if claim.extent else ""),
                    claim.reason,
                )
                for claim, experiment in printing_order(found, name)
            ),
        )
    return "\n".join(text)


def _of_paper(results: Sequence[Findings], name: str) -> list[Findings]:
    return [one for one in results if one.experiment.info.paper == name]


def lines_table(reproduction: Findings) -> pd.DataFrame:
    """Return a table of reported and measured values, with `LINE_COLUMNS`."""
    key = reproduction.experiment.key
    rows = []
    for line in reproduction.lines:
        number, mean = line.stated, line.mean
        paper_cells = (number.value, number.error) if number else (None, None)
        cells = (mean.value, mean.low, mean.high, mean.draws) if mean else (None,) * 4
        words = (line.panel, line.item, line.reported, line.measured, str(line.agreement))
        rows.append((key, *words, line.note, *paper_cells, *cells))
    return pd.DataFrame(rows, columns=list(LINE_COLUMNS))


def drawn(reproduction: Findings) -> list[Chart]:
    """Return the charts that have at least one point."""
    points = reproduction.points
    quantities = set(points["quantity"][points["x"].notna()])
    return [chart for chart in reproduction.experiment.charts() if chart.quantity in quantities]


def markdown(
    reproduction: Findings,
    picture: Callable[[Chart], str] | None = None,
    level: int = 2,
) -> str:
    """Return an experiment's report.

    Parameters
    ----------
    reproduction : Findings
    picture : callable, optional
        Function that returns the address of a chart's image.
    level : int
        Level of the Markdown heading.
    """
    experiment = reproduction.experiment
    text = [f"{'#' * level} {heading(experiment)}", "", experiment.info.about, ""]
    text += [f"Run by `{command(reproduction)}`, seed {reproduction.seed}.", ""]
    text += _listed("What the paper states", experiment.info.settings)
    text += _listed("What was chosen here", experiment.info.choices)
    text += _listed("Caution", experiment.info.cautions)
    if reproduction.absent:
        absent = ", ".join(reproduction.absent)
        text += [f"We measured nothing on data that was not available: {absent}.", ""]
    if picture is not None:
        for chart in drawn(reproduction):
            text += [f"![{chart.title}]({picture(chart)})", ""]
    text += _listed("What was run", tuple(runs(reproduction)))
    if reproduction.claims:
        text += [f"The printed claims, each answered once ({tally(reproduction.claims)}):", ""]
        text += _claims(reproduction.claims)
    else:
        text += ["The paper prints no claim that this experiment could check.", ""]
    lines = reproduction.lines
    text += [f"<details><summary>Every claim in every panel ({len(lines)} lines)</summary>", ""]
    return "\n".join([*text, *_lines(lines), "</details>", ""])


def runs(found: Findings) -> list[str]:
    """Return the settings that would give the printed numbers that are not reproduced.

    The experiment that solves for these settings covers every table of the paper.
    """
    paper, own = found.experiment.paper, found.experiment.key
    if own != f"{paper}_{SOLVER}":
        return what_was_run(found.claims, shipped_points(f"{paper}_{SOLVER}"))
    lines = []
    for key in dict.fromkeys(said.experiment for said in said_of(paper)):
        means = Found.of(shipped_points(key))
        claims = [answer(said, means) for said in said_of(paper) if said.experiment == key]
        place = text_of(paper)["experiment"][key.partition("_")[2]]["place"]
        lines += [f"{place}. {line}" for line in what_was_run(claims, found.points)]
    return lines


def heading(experiment: Experiment) -> str:
    """Return an experiment's heading: paper, place and title."""
    info = experiment.info
    return f"{info.paper}, {info.place}: {info.title}"


def command(reproduction: Findings) -> str:
    """Return the command that reproduces the numbers."""
    quick = " --quick" if str(reproduction.effort) == "quick" else ""
    seed = f" --seed {reproduction.seed}" if reproduction.seed else ""
    return f"python -m dpviz reproduce {reproduction.experiment.key}{quick}{seed} --out DIR"


def _listed(title: str, items: tuple[str, ...]) -> list[str]:
    if not items:
        return []
    return [f"{title}:", "", *(f"- {item}" for item in items), ""]


def _claims(claims: list[Claim]) -> list[str]:
    rows = []
    for claim in claims:
        text = f"**{claim.answer}**. {claim.reason}"
        text += f" ({claim.extent}.)" if claim.extent else ""
        rows.append((claim.place, claim.item, claim.stated or "-", claim.measured or "-", text))
    return _table("| where | claim | printed | measured | answer |", rows)


def _lines(lines: list[Line]) -> list[str]:
    rows = []
    for line in lines:
        text = f"**{line.agreement}**" + (f". {line.note}" if line.note else "")
        rows.append((line.panel, line.item, line.reported or "-", line.measured or "-", text))
    return _table("| where | what | reported | measured | |", rows)


def _table(head: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    rule = "|---" * (head.count("|") - 1) + "|"
    # A bar inside a cell is escaped, because it would otherwise end the cell of the table.
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return [head, rule, *(f"| {' | '.join(row)} |" for row in cells), ""]


def reproduction_sentence(found: Findings) -> str:
    """Return a sentence that counts the answers to the printed claims."""
    total = len(found.claims)
    if not total:
        return "The paper does not print these results, so this experiment checks no claim."
    counts = _counts(found.claims)
    subject = "the 1 printed claim" if total == 1 else f"{total} printed claims"
    return f"Of {subject}, {counts}."


def _counts(claims: Iterable[Claim]) -> str:
    counts = counted(claims).items()
    return ", ".join(f"**{count} {answer}**" for answer, count in counts)
