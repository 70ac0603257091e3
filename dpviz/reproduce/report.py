"""What an experiment found, as files and as Markdown."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpviz.reproduce.experiment import Chart, Experiment
from dpviz.reproduce.lines import Line
from dpviz.reproduce.run import Reproduction

LINE_COLUMNS = (
    "experiment", "panel", "item", "reported", "measured", "agreement", "note",
    "reported_value", "reported_error", "mean", "mean_low", "mean_high", "draws",
)  # fmt: skip


def lines_table(reproduction: Reproduction) -> pd.DataFrame:
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


def drawn(reproduction: Reproduction) -> list[Chart]:
    """Return the charts that have points to draw."""
    quantities = {point.quantity for point in reproduction.found if point.x is not None}
    return [chart for chart in reproduction.experiment.charts() if chart.quantity in quantities]


def markdown(
    reproduction: Reproduction,
    picture: Callable[[Chart], str] | None = None,
    level: int = 2,
) -> str:
    """Return an experiment's report.

    Parameters
    ----------
    reproduction : Reproduction
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
    text += [_table(reproduction.lines), ""]
    return "\n".join(text)


def heading(experiment: Experiment) -> str:
    """Return an experiment's heading: paper, place and title."""
    info = experiment.info
    return f"{info.paper}, {info.place}: {info.title}"


def command(reproduction: Reproduction) -> str:
    """Return the command that finds the same numbers."""
    quick = " --quick" if str(reproduction.effort) == "quick" else ""
    seed = f" --seed {reproduction.seed}" if reproduction.seed else ""
    return f"python -m dpviz reproduce {reproduction.experiment.key}{quick}{seed} --out DIR"


def _listed(title: str, items: tuple[str, ...]) -> list[str]:
    if not items:
        return []
    return [f"{title}:", "", *(f"- {item}" for item in items), ""]


def _table(lines: list[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = ["| where | what | reported | measured | |", "|---|---|---|---|---|"]
    for line in lines:
        said = f"**{line.agreement}**" + (f". {line.note}" if line.note else "")
        cells = (line.panel, line.item, line.reported or "-", line.measured or "-", said)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
