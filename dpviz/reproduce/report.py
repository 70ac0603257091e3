"""What an experiment found, as files and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pandas as pd

from dpviz.reproduce.experiment import Chart, Effort, Experiment
from dpviz.reproduce.lines import Line
from dpviz.reproduce.papers import PAPERS
from dpviz.reproduce.said import MEANINGS
from dpviz.reproduce.verdicts import Claim, counted

SUMMARY_KEYS = (
    "paper", "item", "verdict", "reason", "place", "stated", "measured", "experiment",
)  # fmt: skip
LINE_COLUMNS = (
    "experiment", "panel", "item", "reported", "measured", "agreement", "note",
    "reported_value", "reported_error", "mean", "mean_low", "mean_high", "draws",
)  # fmt: skip


class Findings(Protocol):
    """What an experiment found: by a run here (`Reproduction`) or shipped (`Shipped`)."""

    @property
    def experiment(self) -> Experiment:
        """Which experiment."""

    @property
    def effort(self) -> Effort:
        """How much work was done."""

    @property
    def seed(self) -> int:
        """Of all streams."""

    @property
    def claims(self) -> list[Claim]:
        """One answer for every printed claim."""

    @property
    def lines(self) -> list[Line]:
        """Every number and statement beside what was measured."""

    @property
    def points(self) -> pd.DataFrame:
        """What was measured, one row per point; see `Measurements.table`."""

    @property
    def complete(self) -> bool:
        """Whether every part whose data is at hand was run."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Keys of the data sets that were not at hand."""


def summary(found: Sequence[Findings]) -> list[dict[str, str]]:
    """Return one row for every printed claim, with `SUMMARY_KEYS`."""
    rows = []
    for one in found:
        info = one.experiment.info
        for claim in one.claims:
            values = (
                info.paper,
                f"{claim.place}: {claim.item}",
                str(claim.answer),
                claim.reason,
                claim.place,
                claim.stated,
                claim.measured,
                one.experiment.key,
            )
            rows.append(dict(zip(SUMMARY_KEYS, values, strict=True)))
    return rows


def tally(claims: Sequence[Claim]) -> str:
    """Return how many claims have each answer, as text."""
    counts = counted(claims)
    return f"{len(claims)} claims: " + ", ".join(f"{n} {answer}" for answer, n in counts.items())


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
    text = [
        "# The four papers, redone",
        "",
        "Every claim that the papers print is answered once, on its fairest reading. "
        f"Written by `python -m benchmarks.reproduction docs` from full runs.{short}",
        "",
    ]
    for name, paper in PAPERS.items():
        claims = [claim for one in _of_paper(found, name) for claim in one.claims]
        text.append(f"- **{name}.** {paper.sentence} ({tally(claims)}.)")
    text += ["", "What the answers mean:", ""]
    text += [f"- **{answer}**: {meaning}" for answer, meaning in MEANINGS.items()]
    text += [
        "",
        "Intervals are 95 % intervals of a mean. Other readings of a claim, and mechanisms added "
        "here, stand in the experiment's own report and are not counted. The same rows: "
        "`python -m dpviz reproduce --summary --format json`.",
        "",
    ]
    for name, paper in PAPERS.items():
        text += [f"## {name}", "", f"*{paper.title}*", ""]
        text += ["| where | claim | answer | why |", "|---|---|---|---|"]
        for one in _of_paper(found, name):
            link = address(one.experiment)
            for claim in one.claims:
                cells = (
                    f"[{claim.place}]({link})",
                    claim.item,
                    f"**{claim.answer}**",
                    claim.reason,
                )
                text.append(_row(cells))
        text.append("")
    return "\n".join(text)


def _of_paper(found: Sequence[Findings], name: str) -> list[Findings]:
    return [one for one in found if one.experiment.info.paper == name]


def lines_table(reproduction: Findings) -> pd.DataFrame:
    """Return reported beside measured, one row per line, with `LINE_COLUMNS`."""
    key = reproduction.experiment.key
    rows = []
    for line in reproduction.lines:
        stated, mean = line.stated, line.mean
        rows.append(
            (
                key, line.panel, line.item, line.reported, line.measured, str(line.agreement),
                line.note,
                stated.value if stated else None,
                stated.error if stated else None,
                mean.value if mean else None,
                mean.low if mean else None,
                mean.high if mean else None,
                mean.draws if mean else None,
            )
        )  # fmt: skip
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
        text += [
            "Data that was not at hand, so that nothing was measured on it: "
            + ", ".join(reproduction.absent)
            + ".",
            "",
        ]
    for chart in drawn(reproduction) if picture is not None else ():
        assert picture is not None
        text += [f"![{chart.title}]({picture(chart)})", ""]
    if reproduction.claims:
        text += [f"The printed claims, each answered once ({tally(reproduction.claims)}):", ""]
        text += [_claims(reproduction.claims), ""]
    else:
        text += ["It answers no printed claim of its own.", ""]
    text += [
        "<details><summary>Every number, by data set and reading "
        f"({len(reproduction.lines)} lines)</summary>",
        "",
        _table(reproduction.lines),
        "",
        "</details>",
        "",
    ]
    return "\n".join(text)


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


def _claims(claims: list[Claim]) -> str:
    """Return the claims as a Markdown table."""
    rows = ["| where | claim | printed | measured | answer |", "|---|---|---|---|---|"]
    for claim in claims:
        said = f"**{claim.answer}**. {claim.reason}"
        cells = (claim.place, claim.item, claim.stated or "-", claim.measured or "-", said)
        rows.append(_row(cells))
    return "\n".join(rows)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(lines: list[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = ["| where | what | reported | measured | |", "|---|---|---|---|---|"]
    for line in lines:
        said = f"**{line.agreement}**" + (f". {line.note}" if line.note else "")
        cells = (line.panel, line.item, line.reported or "-", line.measured or "-", said)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
