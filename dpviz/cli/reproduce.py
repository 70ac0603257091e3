"""The command ``reproduce``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpviz.cli.data import download_progress
from dpviz.cli.options import Commands, store_from, whole_number
from dpviz.cli.terminal import Line, end_progress
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import json_text
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.datasets import remote
from dpviz.papers import experiment, experiments
from dpviz.papers.experiment import Experiment
from dpviz.papers.report import tally
from dpviz.papers.run import absent_data
from dpviz.report.sentences.phrases import text_table
from dpviz.simulation.jobs import WORKERS_RANGE
from dpviz.simulation.store import default_folder
from dpviz.studies.reproduce import Reproduced, coverage, reproduce


def add(commands: Commands) -> None:
    """Add the parser of the command ``reproduce``."""
    redoing = commands.add_parser(
        "reproduce",
        help="repeat the papers' tables and figures, and compare printed with measured numbers",
    )
    redoing.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="all, or a key printed by --list"
    )
    redoing.add_argument("--list", action="store_true", help="list the experiments and their data")
    redoing.add_argument(
        "--summary",
        action="store_true",
        help="print our answer to every claim of the papers, without running anything",
    )
    redoing.add_argument(
        "--format",
        choices=("table", "json", "latex"),
        default="table",
        help="format of --summary and --list; latex (for --summary only) is a table to paste into "
        "a paper",
    )
    redoing.add_argument("--quick", action="store_true", help="make few runs, which takes seconds")
    redoing.add_argument("--out", metavar="DIR", help="folder for the report's files")
    redoing.add_argument(
        "--seed",
        default="0",
        help="random seed; the same seed gives the same bytes on the same machine (default 0)",
    )
    redoing.add_argument("--workers", default="1", metavar="N", help="processes (default 1)")
    redoing.add_argument(
        "--download",
        action="store_true",
        help="download missing data sets; without this option, parts that need them are left out",
    )
    redoing.add_argument(
        "--cache",
        metavar="DIR|none",
        help="folder for finished parts, with which the same command continues (default "
        f"{default_folder()}; with the value none, nothing is saved)",
    )
    redoing.set_defaults(run=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _list(arguments.format)
        return 0
    if arguments.summary:
        answer = coverage(arguments.experiment, store_from(arguments.cache))
        printers = {"json": answer.to_json, "latex": answer.latex, "table": answer.printed}
        print(printers[arguments.format]())
        return 0
    # Refuse an unknown experiment before checking the folder.
    items = _experiments_of(arguments.experiment)
    # Check all arguments before creating a folder or downloading anything.
    options = {
        "quick": arguments.quick,
        "seed": params_of(Settings)["seed"].parse(arguments.seed),
        "workers": whole_number("workers", arguments.workers, *WORKERS_RANGE),
        "cache": store_from(arguments.cache),
    }
    folder = _folder(arguments.out)
    for item in items:
        # Download the data of one experiment at a time, so that the first can start early.
        for name in absent_data(item) if arguments.download else ():
            remote.fetch(name, download_progress(name))
            end_progress()
        if not _redone(item, options, folder):
            # 130 is the usual exit status after Ctrl-C.
            return 130
    return 0


def _list(form: str) -> None:
    """Print the experiments, and which of their data sets are absent."""
    if form == "latex":
        raise InvalidSetting("format", "table or json when --list is used", form, "--format")
    header = ("key", "paper", "place", "title")
    entries, rows = [], []
    for key, item in experiments().items():
        cells = (key, item.info.paper, item.info.place, item.info.title)
        data, absent = list(item.data()), absent_data(item)
        entries.append({**dict(zip(header, cells, strict=True)), "data": data, "absent": [*absent]})
        needs = [f"{name} (absent)" if name in absent else name for name in data]
        rows.append([*cells, ", ".join(needs) or "-"])
    if form == "json":
        print(json_text(entries))
    else:
        print(text_table((*header, "data"), rows))


def _experiments_of(key: str | None) -> list[Experiment]:
    if key is None:
        raise InvalidSetting("experiment", "all, or a key printed by --list", "", "EXPERIMENT")
    return list(experiments().values()) if key == "all" else [experiment(key)]


def _folder(out: str | None) -> Path:
    """Return the folder for the report's files, created if missing."""
    if out is None or not Path(out).resolve().parent.is_dir():
        text = "none" if out is None else out
        raise InvalidSetting(
            "out", "a folder, or a new folder in a folder that exists", text, "--out"
        )
    folder = Path(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        raise InvalidSetting("out", "a folder that can be written", folder, "--out") from None
    return folder


def _redone(item: Experiment, options: Mapping[str, Any], folder: Path) -> bool:
    """Run one experiment, write its files and print its lines; return whether it finished."""
    line = Line("part")
    try:
        answer = reproduce(item.key, **options, progress=line.show)
    except KeyboardInterrupt:
        end_progress()
        note = "the same command continues the run" if options["cache"] else "no result was saved"
        print(f"dpviz: {item.key} interrupted after {line.words}; {note}", file=sys.stderr)
        return False
    end_progress()
    assert isinstance(answer, Reproduced)
    findings = answer.found
    # Import charts here: they load Plotly, which is slow and is not needed to list experiments.
    from dpviz.report.figures.reproduction import write_report

    files = write_report(findings, folder)
    print(f"{item.key}: {line.words}; {len(findings.lines)} lines in {files[0]}")
    print(f"  {tally(findings.claims)}")
    for claim in findings.claims:
        print(f"  {claim.place}: {claim.item}: {claim.answer}. {claim.reason}")
    for name in findings.absent:
        print(f"note: {remote.missing(name)}")
    for row in findings.lines:
        paper_value = f", reported {row.reported}" if row.reported else ""
        value = f", measured {row.measured}" if row.measured else ""
        print(f"  {row.panel}: {row.item}{paper_value}{value}: {row.agreement}")
    return True
