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
    """Add the parser of the command."""
    redoing = commands.add_parser(
        "reproduce", help="redo the papers' tables and figures, reported beside measured"
    )
    redoing.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="a key that --list shows, or all"
    )
    redoing.add_argument("--list", action="store_true", help="list the experiments and their data")
    redoing.add_argument(
        "--summary",
        action="store_true",
        help="print one answer for every claim that the papers print, without running anything",
    )
    redoing.add_argument(
        "--format",
        choices=("table", "json", "latex"),
        default="table",
        help="of --summary and --list; latex, of --summary, is a table that an author can paste",
    )
    redoing.add_argument("--quick", action="store_true", help="few runs, in seconds each")
    redoing.add_argument("--out", metavar="DIR", help="folder for the report's files")
    redoing.add_argument(
        "--seed", default="0", help="same seed, same bytes on the same machine (default 0)"
    )
    redoing.add_argument("--workers", default="1", metavar="N", help="processes (default 1)")
    redoing.add_argument(
        "--download",
        action="store_true",
        help="download missing data sets; without it their parts are left out",
    )
    redoing.add_argument(
        "--cache",
        metavar="DIR|none",
        help="folder of finished parts; the same command, run again, continues from them (default "
        f"{default_folder()}; none keeps nothing)",
    )
    redoing.set_defaults(run=_reproduce)


def _reproduce(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _list(arguments.format)
        return 0
    if arguments.summary:
        said = coverage(arguments.experiment, store_from(arguments.cache))
        shown = {"json": said.to_json, "latex": said.latex, "table": said.printed}
        print(shown[arguments.format]())
        return 0
    # an unknown key is refused before the folder is asked for
    chosen = _chosen(arguments.experiment)
    # all that can be refused is, before a folder is made or a byte loaded
    asked = {
        "quick": arguments.quick,
        "seed": params_of(Settings)["seed"].parse(arguments.seed),
        "workers": whole_number("workers", arguments.workers, *WORKERS_RANGE),
        "cache": store_from(arguments.cache),
    }
    folder = _folder(arguments.out)
    for item in chosen:
        # one experiment's data at a time: the first can run while others are still away
        for name in absent_data(item) if arguments.download else ():
            remote.fetch(name, download_progress(name))
            end_progress()
        if not _redone(item, asked, folder):
            # as a shell says of what an interrupt ended
            return 130
    return 0


def _list(form: str) -> None:
    """Print the experiments, and which of their data are absent."""
    if form == "latex":
        raise InvalidSetting("format", "table or json where --list is said", form, "--format")
    header = ("key", "paper", "place", "title")
    told, rows = [], []
    for key, item in experiments().items():
        cells = (key, item.info.paper, item.info.place, item.info.title)
        data, absent = list(item.data()), absent_data(item)
        told.append({**dict(zip(header, cells, strict=True)), "data": data, "absent": [*absent]})
        needs = [f"{name} (absent)" if name in absent else name for name in data]
        rows.append([*cells, ", ".join(needs) or "-"])
    if form == "json":
        print(json_text(told))
    else:
        print(text_table((*header, "data"), rows))


def _chosen(key: str | None) -> list[Experiment]:
    if key is None:
        raise InvalidSetting("experiment", "a key that --list shows, or all", "", "EXPERIMENT")
    return list(experiments().values()) if key == "all" else [experiment(key)]


def _folder(out: str | None) -> Path:
    """Return the folder for the report's files, made where it is not there."""
    if out is None or not Path(out).resolve().parent.is_dir():
        given = "none" if out is None else out
        raise InvalidSetting(
            "out", "a folder, or one to be made in one that exists", given, "--out"
        )
    folder = Path(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        raise InvalidSetting("out", "a folder that can be written", folder, "--out") from None
    return folder


def _redone(item: Experiment, asked: Mapping[str, Any], folder: Path) -> bool:
    """Run one experiment, write its files, print its lines; return whether it came to its end."""
    line = Line("part")
    try:
        answer = reproduce(item.key, **asked, progress=line.show)
    except KeyboardInterrupt:
        end_progress()
        kept = "the same command goes on from there" if asked["cache"] else "nothing is kept"
        print(f"dpviz: {item.key} interrupted after {line.words}; {kept}", file=sys.stderr)
        return False
    end_progress()
    assert isinstance(answer, Reproduced)
    found = answer.found
    # the pictures load Plotly, which a list of experiments does not need
    from dpviz.report.figures.reproduction import write_report

    files = write_report(found, folder)
    print(f"{item.key}: {line.words}; {len(found.lines)} lines in {files[0]}")
    print(f"  {tally(found.claims)}")
    for claim in found.claims:
        print(f"  {claim.place}: {claim.item}: {claim.answer}. {claim.reason}")
    for name in found.absent:
        print(f"note: {remote.missing(name)}")
    for row in found.lines:
        stated = f", reported {row.reported}" if row.reported else ""
        measured = f", measured {row.measured}" if row.measured else ""
        print(f"  {row.panel}: {row.item}{stated}{measured}: {row.agreement}")
    return True
