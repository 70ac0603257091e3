"""Write docs/reproduction.md and what ships: every printed claim of the papers, answered once.

``python -m benchmarks.reproduction docs --workers 2`` runs all experiments in full (parts that an
earlier run finished are not run again), writes the results that ship with the package, draws the
pictures in Chromium and writes the report: one page, and a file for each experiment. With
``--shipped`` nothing is run, and the report is written from the results that ship; with
``--readme README.md`` the headline of that file alone. The raw files
are those that ``DPVIZ_DATA`` names, or those fetched before with ``python -m dpviz fetch``.
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


def picture(page: Page, found: Findings, chart: Chart, path: Path) -> None:
    """Draw a chart in the browser and save it as PNG."""
    figure = chart_figure(found.points, chart)
    figure.update_layout(template="plotly_white", width=WIDTH)
    # the page on disk and not its text: plotly alone has five megabytes
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


def opening(found: list[Findings]) -> str:
    """Return the opening page, docs/reproduction.md."""

    def address(experiment: Experiment) -> str:
        return f"reproduction/{experiment.key}.md"

    return page(found, address)


def own_report(found: Findings) -> str:
    """Return the report of one experiment, docs/reproduction/KEY.md."""

    def address(chart: Chart) -> str:
        return f"{found.experiment.key}-{chart.name}.png"

    return "[All papers](../reproduction.md)\n\n" + markdown(found, address, level=1)


def tell(progress: Progress) -> None:
    """Show how far an experiment is."""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    print(f"\r  {progress.done}/{progress.total}{left}   ", end="", file=sys.stderr, flush=True)


def run_all(workers: int, only: str | None = None) -> None:
    """Run every experiment in full, or one, and write what ships."""
    store = Store(default_folder())
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for key, item in experiments().items():
        if only not in (None, key):
            continue
        print(key, file=sys.stderr)
        done = reproduce(item, Effort.FULL, store=store, workers=workers, progress=tell)
        print(file=sys.stderr)
        ship(done, today)


def draw(found: list[Findings], folder: Path) -> int:
    """Draw all pictures into a folder, remove others, and return how many there are."""
    wanted = set()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=[*CHROMIUM_FLAGS])
        sheet = browser.new_page()
        for one in found:
            for chart in drawn(one):
                path = folder / f"{one.experiment.key}-{chart.name}.png"
                picture(sheet, one, chart, path)
                wanted.add(path)
        browser.close()
    for path in set(folder.glob("*.png")) - wanted:
        path.unlink()
    return len(wanted)


START, END = "<!-- papers: start -->", "<!-- papers: end -->"


def headline(found: list[Findings]) -> str:
    """Return the line of the README: how many claims have each answer, by what ships."""
    claims = [claim for one in found for claim in one.claims]
    lines = [f"  {line}" for line in textwrap.wrap(f"{tally(claims)}.", 110)]
    return "\n".join(lines)


def with_headline(text: str, found: list[Findings]) -> str:
    """Return the README with its headline as it should be."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{headline(found)}\n{END}{after}"


def main() -> None:
    """Run everything, ship it, draw it, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", help="where the report goes, such as docs; default none"
    )
    parser.add_argument("--readme", type=Path, help="write the headline of this file and no more")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=tuple(experiments()), metavar="KEY", help="run this one")
    parser.add_argument("--shipped", action="store_true", help="run nothing: report what ships")
    given = parser.parse_args()
    if given.readme is not None:
        text = given.readme.read_text(encoding="utf-8")
        given.readme.write_text(with_headline(text, all_shipped()), encoding="utf-8")
        return
    if given.folder is None:
        parser.error("a folder, or --readme")
    if find_chromium() is None:
        parser.exit(2, NO_BROWSER + "\n")
    if not given.shipped:
        run_all(given.workers, given.only)
    found = all_shipped()
    reports: Path = given.folder / "reproduction"
    reports.mkdir(parents=True, exist_ok=True)
    count = draw(found, reports)
    for stale in reports.glob("*.md"):
        stale.unlink()
    for one in found:
        path = reports / f"{one.experiment.key}.md"
        path.write_text(own_report(one), encoding="utf-8")
    (given.folder / "reproduction.md").write_text(opening(found), encoding="utf-8")
    print(f"{len(found)} experiments, {count} pictures in {given.folder}")


if __name__ == "__main__":
    main()
