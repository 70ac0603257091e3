"""Write docs/reproduction.md and the shipped results: an answer to each printed claim.

``python -m benchmarks.reproduction docs --workers 2`` runs all experiments in full, except for
parts that an earlier run finished. It writes the results that ship with the package, renders the
charts in Chromium and writes the report: one page, and a file for each experiment. ``--shipped``
runs no experiment and writes the report from the shipped results; ``--readme README.md`` writes
only that file's headline. The raw files must be in the folder that ``DPVIZ_DATA`` names, or be
fetched before with ``python -m dpviz fetch``.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import sys
import tempfile
import textwrap
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.screenshots import smaller
from dpviz.papers import all_shipped, experiments
from dpviz.papers.experiment import Chart, Effort, Experiment
from dpviz.papers.report import drawn, markdown, page, tally
from dpviz.papers.run import Findings, reproduce
from dpviz.papers.shipped import ship
from dpviz.report.figures.reproduction import chart_figure
from dpviz.simulation.jobs import Progress
from dpviz.simulation.store import Store, default_folder
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium

WIDTH = 1_000


def picture(page: Page, findings: Findings, chart: Chart, path: Path) -> None:
    """Render a chart in the browser and save it as PNG."""
    figure = chart_figure(findings.points, chart)
    figure.update_layout(template="plotly_white", width=WIDTH)
    # Load the page from a file, not from a string: Plotly alone has five megabytes.
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "figure.html"
        figure.write_html(file, include_plotlyjs=True)
        page.goto(file.as_uri())
        page.wait_for_selector(".main-svg")
        address: str = page.evaluate(
            "() => Plotly.toImage(document.querySelector('.plotly-graph-div'),"
            f" {{format: 'png', width: {WIDTH}, height: {figure.layout.height}, scale: 1.5}})"
        )
    path.write_bytes(smaller(base64.b64decode(address.partition(",")[2])))


def opening(findings: list[Findings]) -> str:
    """Return the opening page, docs/reproduction.md."""

    def address(experiment: Experiment) -> str:
        return f"reproduction/{experiment.key}.md"

    return page(findings, address)


def own_report(findings: Findings) -> str:
    """Return the report of one experiment, docs/reproduction/KEY.md."""

    def address(chart: Chart) -> str:
        return f"{findings.experiment.key}-{chart.name}.png"

    return "[All papers](../reproduction.md)\n\n" + markdown(findings, address, level=1)


def tell(progress: Progress) -> None:
    """Show the progress of an experiment."""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    print(f"\r  {progress.done}/{progress.total}{left}   ", end="", file=sys.stderr, flush=True)


def run_all(workers: int, only: str | None = None) -> None:
    """Run every experiment in full, or one, and write the shipped results."""
    store = Store(default_folder())
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for key, item in experiments().items():
        if only not in (None, key):
            continue
        print(key, file=sys.stderr)
        result = reproduce(item, Effort.FULL, store=store, workers=workers, progress=tell)
        print(file=sys.stderr)
        ship(result, today)


def draw(findings: list[Findings], folder: Path) -> int:
    """Render all charts into a folder, remove other files, and return the number of charts."""
    paths = set()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=[*CHROMIUM_FLAGS])
        sheet = browser.new_page()
        for one in findings:
            for chart in drawn(one):
                path = folder / f"{one.experiment.key}-{chart.name}.png"
                picture(sheet, one, chart, path)
                paths.add(path)
        browser.close()
    for path in set(folder.glob("*.png")) - paths:
        path.unlink()
    return len(paths)


START, END = "<!-- papers: start -->", "<!-- papers: end -->"


def headline(findings: list[Findings]) -> str:
    """Return the README's line: the number of claims per answer in the shipped results."""
    claims = [claim for one in findings for claim in one.claims]
    lines = [f"  {line}" for line in textwrap.wrap(f"{tally(claims)}.", 110)]
    return "\n".join(lines)


def with_headline(text: str, findings: list[Findings]) -> str:
    """Return the README with an up-to-date headline."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{headline(findings)}\n{END}{after}"


def main() -> None:
    """Run all experiments, save the shipped results and charts, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", help="where the report goes, such as docs; default none"
    )
    parser.add_argument("--readme", type=Path, help="write the headline of this file and no more")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=tuple(experiments()), metavar="KEY", help="run this one")
    parser.add_argument("--shipped", action="store_true", help="run nothing: report what ships")
    options = parser.parse_args()
    if options.readme is not None:
        text = options.readme.read_text(encoding="utf-8")
        options.readme.write_text(with_headline(text, all_shipped()), encoding="utf-8")
        return
    if options.folder is None:
        parser.error("a folder, or --readme")
    if find_chromium() is None:
        parser.exit(2, NO_BROWSER + "\n")
    if not options.shipped:
        run_all(options.workers, options.only)
    findings = all_shipped()
    reports: Path = options.folder / "reproduction"
    reports.mkdir(parents=True, exist_ok=True)
    count = draw(findings, reports)
    for stale in reports.glob("*.md"):
        stale.unlink()
    for one in findings:
        path = reports / f"{one.experiment.key}.md"
        path.write_text(own_report(one), encoding="utf-8")
    (options.folder / "reproduction.md").write_text(opening(findings), encoding="utf-8")
    print(f"{len(findings)} experiments, {count} pictures in {options.folder}")


if __name__ == "__main__":
    main()
