"""Write docs/reproduction.md: every experiment of the four papers, reported beside measured.

``python -m benchmarks.reproduction docs --workers 2`` runs all experiments in full and draws their
pictures in Chromium; parts that an earlier run finished are not run again. The raw files are those
that ``DPVIZ_DATA`` names, or those fetched before with ``python -m dpviz fetch``.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
from collections import Counter
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.screenshots import smaller
from dpviz.figures.reproduction import chart_figure
from dpviz.reproduce import (
    Agreement,
    Chart,
    Effort,
    Reproduction,
    drawn,
    experiments,
    heading,
    markdown,
    reproduce,
)
from dpviz.run.jobs import Pool, Progress
from dpviz.run.store import Store, default_folder
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium

WIDTH = 1_000
INTRODUCTION = """# The papers' experiments, redone

Written by `python -m benchmarks.reproduction docs`. Each experiment of the four papers runs with
the paper's settings; every number of its tables and every statement of its figures that can be
checked stands beside what was measured. One experiment alone: `python -m dpviz reproduce KEY --out
DIR`, or the Papers page.

How to read it:

- **agrees**: the two means are no farther apart than the paper's error, its rounding and our 95 %
  interval together. For a statement: no point of the figure speaks against it by more than three
  standard errors.
- **differs**: farther than that; the sentence beside it says why, as far as we know.
- **not reported**: measured here in addition, such as mechanisms with a proof that holds.
- **not measured**, **data absent**: nobody measured it; the sentence says why.
- After ± stands the half width of the 95 % confidence interval of a measured mean, and whatever the
  paper prints after its own sign. Pictures show means with that interval.

"""


def picture(page: Page, found: Reproduction, chart: Chart, path: Path) -> None:
    """Draw a chart in the browser and save it as PNG."""
    figure = chart_figure(found.found.table(), chart)
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


def overview(found: list[Reproduction]) -> str:
    """Return how many lines of each experiment agree."""
    shown = [item for item in Agreement if item is not Agreement.PENDING]
    lines = ["| experiment | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for item in found:
        counts = Counter(line.agreement for line in item.lines)
        cells = " | ".join(str(counts[agreement] or "") for agreement in shown)
        lines.append(f"| {heading(item.experiment)} | {cells} |")
    return "\n".join(lines)


def report(found: list[Reproduction], folder: Path) -> str:
    """Return the report, whose pictures stand in ``folder``."""
    text = [INTRODUCTION + overview(found), ""]
    paper = ""
    for item in found:
        info = item.experiment.info
        if info.paper != paper:
            paper = info.paper
            text += [f"## {paper}", ""]

        def address(chart: Chart, key: str = item.experiment.key) -> str:
            return f"{folder.name}/{key}-{chart.name}.png"

        text.append(markdown(item, address, level=3))
    return "\n".join(text)


def tell(progress: Progress) -> None:
    """Show how far an experiment is."""
    left = "" if progress.left is None else f", {progress.left:.0f} s left"
    print(f"\r  {progress.done}/{progress.total}{left}   ", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run everything, draw it, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the report goes, such as docs")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few runs: to try the command")
    given = parser.parse_args()
    browser_path = find_chromium()
    if browser_path is None:
        parser.exit(2, NO_BROWSER + "\n")
    pictures: Path = given.folder / "reproduction"
    pictures.mkdir(parents=True, exist_ok=True)
    store = Store(default_folder())
    effort = Effort.QUICK if given.quick else Effort.FULL
    found = []
    for key, item in experiments().items():
        print(key, file=sys.stderr)
        done = reproduce(item, effort, store=store, pool=Pool(given.workers), progress=tell)
        found.append(done)
        print(file=sys.stderr)
    wanted = set()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=[*CHROMIUM_FLAGS])
        page = browser.new_page()
        for one in found:
            for chart in drawn(one):
                path = pictures / f"{one.experiment.key}-{chart.name}.png"
                picture(page, one, chart, path)
                wanted.add(path)
        browser.close()
    for path in set(pictures.glob("*.png")) - wanted:
        path.unlink()
    (given.folder / "reproduction.md").write_text(report(found, pictures), encoding="utf-8")
    print(f"{len(found)} experiments, {len(wanted)} pictures in {given.folder}")


if __name__ == "__main__":
    main()
