"""The report of an experiment: its markdown, its pictures and its numbers as files."""

from __future__ import annotations

from pathlib import Path

from dpviz.core.files import atomic_write, write_csv
from dpviz.papers.report import drawn, lines_table, markdown
from dpviz.papers.run import Findings


def write(reproduction: Findings, folder: Path) -> list[Path]:
    """Write the report, the lines, the measured points and the pictures of an experiment.

    Parameters
    ----------
    reproduction : Findings
    folder : Path
        Must exist.

    Returns
    -------
    list of Path
        The files: ``KEY.md``, ``KEY-lines.csv``, ``KEY-points.csv`` and one
        ``KEY-CHART.html`` for each picture, which needs the ``plotly.min.js``
        beside it and no network.
    """
    # Pictures load plotly, which lists of experiments do not need.
    from plotly.offline import get_plotlyjs

    from dpviz.report.figures.reproduction import chart_figure

    key = reproduction.experiment.key
    report = folder / f"{key}.md"
    with atomic_write(report) as aside:
        aside.write_text(markdown(reproduction, level=1), encoding="utf-8")
    lines, points = folder / f"{key}-lines.csv", folder / f"{key}-points.csv"
    for path, table in ((lines, lines_table(reproduction)), (points, reproduction.points)):
        with atomic_write(path) as aside:
            write_csv(table, aside)
    files = [report, lines, points]
    library = folder / "plotly.min.js"
    if not library.is_file():  # else the first picture would write it, in place
        with atomic_write(library) as aside:
            aside.write_text(get_plotlyjs(), encoding="utf-8")
    for chart in drawn(reproduction):
        path = folder / f"{key}-{chart.name}.html"
        figure = chart_figure(reproduction.points, chart)
        with atomic_write(path) as aside:
            figure.write_html(aside, include_plotlyjs="directory", full_html=True)
        files.append(path)
    return files
