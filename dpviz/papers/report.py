"""What an experiment found, as files and as Markdown."""

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
    """A paper, and what a reader should take away of it.

    Attributes
    ----------
    name : str
        As in `Info.paper`.
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
"""By name, in the order in which they are shown."""
LINE_COLUMNS = (
    "experiment", "panel", "item", "reported", "measured", "agreement", "note",
    "reported_value", "reported_error", "mean", "mean_low", "mean_high", "draws",
)  # fmt: skip


def summary(found: Sequence[Findings]) -> list[dict[str, str]]:
    """Return one row for every printed claim, with `SUMMARY_KEYS`."""
    rows = []
    for one in found:
        for claim in one.claims:
            known = vars(claim) | {
                "paper": one.experiment.info.paper,
                "item": f"{claim.place}: {claim.item}",
                "verdict": str(claim.answer),
                "experiment": one.experiment.key,
            }
            rows.append({name: known[name] for name in SUMMARY_KEYS})
    return rows


def printing_order(found: Sequence[Findings], name: str) -> list[tuple[Claim, Experiment]]:
    """Return the claims of one paper in the order in which it prints them."""
    known = {
        claim.key: (claim, one.experiment) for one in _of_paper(found, name) for claim in one.claims
    }
    # an experiment answers claims from all over a paper, so its own order is not the printed one
    order = [said.key for said in said_of(PAPERS[name].folder)]
    return [known[key] for key in order if key in known]


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
    """Return how many claims have each answer, as text; those by construction are not counted."""
    # what holds by construction tells only of our own faults
    asked = [claim for claim in claims if claim.counts]
    counts = ", ".join(f"{n} {answer}" for answer, n in counted(asked).items())
    left = len(claims) - len(asked)
    more = f"; {left} more by construction, not counted" if left else ""
    return f"{len(asked)} claims: {counts}{more}"


def page(found: Sequence[Findings], address: Callable[[Experiment], str]) -> str:
    """Return the opening page: a sentence and a table for each paper.

    Parameters
    ----------
    found : sequence of Findings
    address : callable
        Takes an experiment to the address of its own report.
    """
    stopped = [f"`{one.experiment.key}`" for one in found if not one.complete]
    short = f" Stopped before their end: {' and '.join(stopped)}." if stopped else ""
    written = f"Written by `python -m benchmarks.reproduction docs` from full runs.{short}"
    first = f"Everything that the papers claim is answered once, on its fairest reading. {written}"
    text = ["# The four papers, redone", "", first, ""]
    for name, paper in PAPERS.items():
        claims = [claim for one in _of_paper(found, name) for claim in one.claims]
        text.append(f"- **{name}.** {paper.sentence} ({tally(claims)}.)")
    text += ["", "What the answers mean:", ""]
    text += [f"- **{answer}**: {meaning}" for answer, meaning in MEANINGS.items()]
    rows = "The same rows: `python -m dpviz reproduce --summary --format json`, or `latex`."
    text += ["", f"Intervals are 95 % intervals of a mean. {rows}", ""]
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


def _of_paper(found: Sequence[Findings], name: str) -> list[Findings]:
    return [one for one in found if one.experiment.info.paper == name]


def lines_table(reproduction: Findings) -> pd.DataFrame:
    """Return reported beside measured, one row per line, with `LINE_COLUMNS`."""
    key = reproduction.experiment.key
    rows = []
    for line in reproduction.lines:
        stated, mean = line.stated, line.mean
        printed = (stated.value, stated.error) if stated else (None, None)
        found = (mean.value, mean.low, mean.high, mean.draws) if mean else (None,) * 4
        words = (line.panel, line.item, line.reported, line.measured, str(line.agreement))
        rows.append((key, *words, line.note, *printed, *found))
    return pd.DataFrame(rows, columns=list(LINE_COLUMNS))


def drawn(reproduction: Findings) -> list[Chart]:
    """Return the charts that have points to draw."""
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
        Takes a chart to the address of its picture.
    level : int
        Of the heading.
    """
    experiment = reproduction.experiment
    text = [f"{'#' * level} {heading(experiment)}", "", experiment.info.about, ""]
    text += [f"Run by `{command(reproduction)}`, seed {reproduction.seed}.", ""]
    text += _listed("What the paper states", experiment.info.settings)
    text += _listed("What was chosen here", experiment.info.choices)
    text += _listed("Caution", experiment.info.cautions)
    if reproduction.absent:
        absent = ", ".join(reproduction.absent)
        text += [f"Data that was not at hand, so that nothing was measured on it: {absent}.", ""]
    if picture is not None:
        for chart in drawn(reproduction):
            text += [f"![{chart.title}]({picture(chart)})", ""]
    text += _listed("What was run", tuple(runs(reproduction)))
    if reproduction.claims:
        text += [f"The printed claims, each answered once ({tally(reproduction.claims)}):", ""]
        text += _claims(reproduction.claims)
    else:
        text += ["It answers no printed claim of its own.", ""]
    lines = reproduction.lines
    text += [f"<details><summary>Every claim in every panel ({len(lines)} lines)</summary>", ""]
    return "\n".join([*text, *_lines(lines), "</details>", ""])


def runs(found: Findings) -> list[str]:
    """Return what would have to be run for the printed numbers that are not reproduced.

    Of the experiment that solves for them, this is said of every table of the paper.
    """
    paper, own = found.experiment.paper, found.experiment.key
    if own != f"{paper}_{SOLVER}":
        return what_was_run(found.claims, shipped_points(f"{paper}_{SOLVER}"))
    lines = []
    for key in dict.fromkeys(said.experiment for said in said_of(paper)):
        known = Found.of(shipped_points(key))
        claims = [answer(said, known) for said in said_of(paper) if said.experiment == key]
        place = text_of(paper)["experiment"][key.partition("_")[2]]["place"]
        lines += [f"{place}: {line}" for line in what_was_run(claims, found.points)]
    return lines


def heading(experiment: Experiment) -> str:
    """Return an experiment's heading: paper, place and title."""
    info = experiment.info
    return f"{info.paper}, {info.place}: {info.title}"


def command(reproduction: Findings) -> str:
    """Return the command that finds the same numbers."""
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
        said = f"**{claim.answer}**. {claim.reason}"
        said += f" ({claim.extent}.)" if claim.extent else ""
        rows.append((claim.place, claim.item, claim.stated or "-", claim.measured or "-", said))
    return _table("| where | claim | printed | measured | answer |", rows)


def _lines(lines: list[Line]) -> list[str]:
    rows = []
    for line in lines:
        said = f"**{line.agreement}**" + (f". {line.note}" if line.note else "")
        rows.append((line.panel, line.item, line.reported or "-", line.measured or "-", said))
    return _table("| where | what | reported | measured | |", rows)


def _table(head: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    rule = "|---" * (head.count("|") - 1) + "|"
    # a bar would end the cell
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return [head, rule, *(f"| {' | '.join(row)} |" for row in cells), ""]


def reproduction_sentence(found: Findings) -> str:
    """Return how many of a paper's printed claims were met."""
    total = len(found.claims)
    if not total:
        return "What is measured here the paper does not print: it answers no claim."
    said = _counts(found.claims)
    subject = "the 1 printed claim" if total == 1 else f"{total} printed claims"
    return f"Of {subject}, {said}."


def _counts(claims: Iterable[Claim]) -> str:
    found = counted(claims).items()
    return ", ".join(f"**{count} {answer}**" for answer, count in found)
