"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd

from dpviz import datasets
from dpviz.allocation import is_file, numbered, of_mapping
from dpviz.appfiles import app_path
from dpviz.claims import DEFAULT_TRIALS as CLAIMS_TRIALS
from dpviz.claims import claims_table
from dpviz.datasets import read_thetas, remote
from dpviz.errors import CannotRun, DpvizError, InvalidSetting, NotAvailable
from dpviz.grid import AXES, Progress, check_out, parse_values, sweep, write_table
from dpviz.measured import Measured
from dpviz.mechanisms import all_mechanisms, parse_variants, with_parameter
from dpviz.metrics import METRICS
from dpviz.narrative import duration
from dpviz.params import Declared, Param, params_of
from dpviz.plans import load_measured
from dpviz.privacy.audit import AuditOptions
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.reproduce import Effort, absent_data, experiment, experiments, reproduce, write
from dpviz.settings import Settings
from dpviz.store import Store, default_folder
from dpviz.sweeps import Comparison, compare
from dpviz.targets import Planned
from dpviz.tasks import Task, TaskPlan, band_table, finish, load_labelled, plan_task, words
from dpviz.workers import WORKERS_RANGE, Pool

# The setting at which `mechanisms` states status and evidence.
_LISTING_N, _LISTING_D, _LISTING_K = 1_000, 10, 2
_LISTING_BUDGET = Budget(1.0, 1e-6)


_CACHE_HELP = (
    "where finished cells are kept, so that the same command goes on where it was interrupted "
    f"(default {default_folder()}; none keeps nothing). The files hold measurements of the data "
    "that are not private."
)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"dpviz: {message}\n")


def add_settings(parser: argparse.ArgumentParser, cls: type[Declared] = Settings) -> None:
    """Add one option for every declared setting."""
    for name, param in params_of(cls).items():
        if not param.flag.startswith("-"):
            parser.add_argument(name, metavar=param.flag, help=param.help)
            continue
        parser.add_argument(
            param.flag,
            dest=name,
            metavar=_metavar(param),
            action="append" if param.kind == "list" else "store",
            default=None,
            help=f"{param.help} Default: {param.format(param.default) or 'all'}.".replace(
                "%", "%%"
            ),
        )


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``, the shorthand for a parameter of a mechanism."""
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="MECHANISM.PARAMETER=VALUE",
        action="append",
        default=[],
        help="Change a parameter of a mechanism, such as ppca.sweeps=50; repeatable.",
    )


def _metavar(param: Param) -> str:
    if param.kind == "choice":
        return "|".join(param.choices)
    return {"number": "NUMBER", "integer": "INTEGER", "list": "VARIANT"}.get(param.kind, "TEXT")


def settings_from(arguments: argparse.Namespace, cls: type[Settings] = Settings) -> Settings:
    """Return the settings that parsed arguments state."""
    values: dict[str, Any] = {}
    for name, param in params_of(cls).items():
        written = getattr(arguments, name)
        if written is None:
            continue
        if param.kind == "list":
            values[name] = tuple(item for text in written for item in param.parse(text))
        else:
            values[name] = param.parse(written)
    for assignment in getattr(arguments, "assignments", ()):
        values["mechanisms"] = with_parameter(values.get("mechanisms", ()), assignment)
    return cls(**values)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(prog="dpviz", description="See what differential privacy costs a PCA.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("datasets", help="list the built-in and the remote tables")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_datasets)

    fetching = commands.add_parser("fetch", help="download remote data sets that are not at hand")
    fetching.add_argument("keys", metavar="KEY", nargs="*", help="keys that --list shows, or all")
    fetching.add_argument("--list", action="store_true", help="list them, and which are at hand")
    fetching.set_defaults(run=_fetch)

    listing = commands.add_parser("mechanisms", help="list every mechanism and what holds of it")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_mechanisms)

    comparing = commands.add_parser("compare", help="run mechanisms side by side on one table")
    add_settings(comparing)
    add_set(comparing)
    comparing.add_argument("--format", choices=("table", "json"), default="table")
    comparing.set_defaults(run=_compare)

    sweeping = commands.add_parser("sweep", help="run mechanisms over a grid of settings")
    add_settings(sweeping)
    add_set(sweeping)
    _add_sweep_options(sweeping)
    sweeping.set_defaults(run=_sweep)

    auditing = commands.add_parser("audit", help="bound what a mechanism really costs, by attack")
    add_settings(auditing, AuditOptions)
    add_set(auditing)
    auditing.add_argument("--format", choices=("table", "json"), default="table")
    auditing.set_defaults(run=_audit)

    claiming = commands.add_parser("claims", help="audit every mechanism under every relation")
    claiming.add_argument("--seed", default="0", help="same seed, same table (default 0)")
    claiming.add_argument(
        "--trials", default=str(CLAIMS_TRIALS), help=f"draws of each audit ({CLAIMS_TRIALS})"
    )
    claiming.add_argument("--format", choices=("table", "json", "csv"), default="table")
    claiming.add_argument("--out", metavar="FILE", default=None, help="write there and not here")
    claiming.set_defaults(run=_claims)

    redoing = commands.add_parser(
        "reproduce", help="redo the papers' tables and figures, reported beside measured"
    )
    _add_reproduce_options(redoing)
    redoing.set_defaults(run=_reproduce)

    learning = commands.add_parser(
        "task", help="learn after a private projection, or from a private data release"
    )
    add_settings(learning)
    add_settings(learning, Task)
    add_set(learning)
    learning.add_argument(
        "--out", metavar="FILE", default=None, help="FILE.csv or FILE.parquet, for every round"
    )
    learning.add_argument("--cache", default=None, metavar="DIR|none", help=_CACHE_HELP)
    learning.set_defaults(run=_task)

    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, default=None, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)
    return parser


def _add_sweep_options(parser: argparse.ArgumentParser) -> None:
    """Add what `sweep` asks beside the settings."""
    parser.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="|".join(AXES),
        help="What to vary; repeatable, each followed by its --values. Their product is swept.",
    )
    parser.add_argument(
        "--values",
        action="append",
        required=True,
        metavar="A,B,C",
        help="Values, or low:high:count for a range spaced on a logarithmic scale.",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="FILE.csv or FILE.parquet")
    parser.add_argument(
        "--workers", default="1", metavar="N", help="processes that run cells (default 1)"
    )
    parser.add_argument(
        "--backend",
        default=None,
        metavar="NAME",
        help="joblib backend: loky (default), threading, multiprocessing or dask",
    )
    parser.add_argument(
        "--scheduler",
        default=None,
        metavar="ADDRESS",
        help="a Dask scheduler, such as tcp://host:8786, for --backend dask",
    )
    parser.add_argument("--cache", default=None, metavar="DIR|none", help=_CACHE_HELP)


def _add_reproduce_options(parser: argparse.ArgumentParser) -> None:
    """Add what `reproduce` asks."""
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", nargs="?", help="a key that --list shows, or all"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments and their data")
    parser.add_argument("--quick", action="store_true", help="few runs, in seconds each")
    parser.add_argument("--out", metavar="DIR", default=None, help="folder for the report's files")
    parser.add_argument("--seed", default="0", help="same seed, same bytes (default 0)")
    parser.add_argument("--workers", default="1", metavar="N", help="processes (default 1)")
    parser.add_argument(
        "--download",
        action="store_true",
        help="fetch the data sets that are not at hand; without it their parts are left out",
    )
    parser.add_argument(
        "--cache",
        default=None,
        metavar="DIR|none",
        help="where finished parts are kept, so that the same command goes on where it was "
        f"interrupted (default {default_folder()}; none keeps nothing)",
    )


def _with_negative_numbers(words: Sequence[str]) -> list[str]:
    """Return the words with every negative number tied to the option before it.

    argparse takes -1 for a number but -1e-3 and -inf for options, and would then
    complain of a missing value instead of showing the range.
    """
    tied: list[str] = []
    for word in words:
        option = tied[-1] if tied else ""
        if _is_negative(word) and option.startswith("--") and "=" not in option:
            tied[-1] = f"{option}={word}"
        else:
            tied.append(word)
    return tied


def _is_negative(word: str) -> bool:
    if not word.startswith("-"):
        return False
    try:
        float(word)
    except ValueError:
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    arguments = build_parser().parse_args(_with_negative_numbers(words))
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except InvalidSetting as error:
        print(f"dpviz: {error.as_option()}", file=sys.stderr)
        return 2
    except CannotRun as error:
        print(f"dpviz: --mechanism {error}", file=sys.stderr)
        return 2
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return status


def resolve_allocation(settings: Settings, prepared: Measured) -> Settings:
    """Return settings whose allocation has numbers for the features it names, or a file's shares.

    Raises
    ------
    DpvizError
        If a feature is not known, or the file is not an allocation of the table's features.
    """
    written = settings.allocation
    if is_file(written):
        resolved = of_mapping(read_thetas(written), prepared.columns, settings.directions)
    else:
        resolved = numbered(written, prepared.columns, settings.directions)
    return replace(settings, allocation=resolved)


def _compare(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    _fetch_table(settings.table)
    prepared = load_measured(settings)
    settings = resolve_allocation(settings, prepared)
    comparison = compare(prepared, settings, _progress)
    _progress_done()
    if arguments.format == "json":
        print(json.dumps(_finite(comparison.to_json()), indent=1))
    else:
        _print_comparison(comparison)
    return 0


def _sweep(arguments: argparse.Namespace) -> int:
    if len(arguments.over) != len(arguments.values):
        raise InvalidSetting(
            "values",
            "given once for each --over",
            f"{len(arguments.over)} --over and {len(arguments.values)} --values",
            "--values",
        )
    over: dict[str, list[Any]] = {}
    for axis, text in zip(arguments.over, arguments.values, strict=True):
        over.setdefault(axis, []).extend(parse_values(axis, text))
    out = check_out(arguments.out)
    dask = arguments.scheduler is not None and arguments.backend is None
    backend = "dask" if dask else arguments.backend or "loky"
    workers = _whole_number("workers", arguments.workers, *WORKERS_RANGE)
    pool = Pool(workers, backend, arguments.scheduler)
    store = _store(arguments.cache)
    settings = settings_from(arguments)
    _fetch_table(settings.table)
    prepared = load_measured(settings)
    settings = resolve_allocation(settings, prepared)
    watch = _Watch()
    try:
        found = sweep(prepared, over, settings, pool=pool, store=store, progress=watch.show)
    except KeyboardInterrupt:
        watch.end()
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {watch.words}; {kept}", file=sys.stderr)
        return 130
    watch.end()
    found.write(out)
    if isinstance(prepared, Planned):
        print(f"note: {prepared.notes[0]}")
    for (mechanism, reason), cells in found.skipped.groupby(["mechanism", "reason"], sort=False):
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        print(f"skipped {mechanism} in {count}: {reason}")
    print(f"{len(found.table)} rows in {arguments.out}: {watch.words}")
    return 0


def _whole_number(name: str, text: str, low: int, high: int) -> int:
    flag = f"--{name}"
    param = Param(name, "integer", None, name, "", flag, low=low, high=high)
    value: int = param.parse(text)
    return value


def _store(folder: str | None) -> Store | None:
    """Return where to keep finished cells; a default folder that cannot be written is none."""
    if folder == "none":
        return None
    if folder is not None:
        return Store(Path(folder))
    try:
        return Store(default_folder())
    except InvalidSetting:
        print(
            "dpviz: finished cells are not kept, as the default folder for them cannot be "
            "written; --cache names another",
            file=sys.stderr,
        )
        return None


class _Watch:
    """Shows a long run's progress on stderr: in place for a person, in a few lines for a log."""

    def __init__(self, noun: str = "cell") -> None:
        self.words = f"no {noun}"
        self._noun, self._shown = noun, 0.0

    def show(self, progress: Progress) -> None:
        """Take note of the progress, and show it now and then."""
        reused = f", {progress.reused} of them from the cache" if progress.reused else ""
        self.words = f"{progress.done} of {progress.total} {self._noun}s{reused}"
        person = sys.stderr.isatty()
        if progress.seconds - self._shown < (0.2 if person else 10):
            return
        self._shown = progress.seconds
        left = "" if progress.left is None else f", about {duration(progress.left)} left"
        start, end = ("\r\x1b[K", "") if person else ("", "\n")
        print(f"{start}{self.words}{left}", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        _progress_done()


def _finite(value: Any) -> Any:
    """Return JSON data with NaN and infinities, which JSON lacks, as null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _progress(done: int, total: int, name: str) -> None:
    """Show progress on stderr, where a person may be watching."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total} {name}", end="", file=sys.stderr, flush=True)


def _progress_done() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _print_comparison(comparison: Comparison) -> None:
    prepared, budget = comparison.prepared, comparison.budget
    print(
        f"{prepared.name}: n {prepared.n}, d {prepared.d}, {prepared.domain.kind}, "
        f"row bound {prepared.row_bound:.4g}; epsilon {budget.epsilon:g}, delta {budget.delta:g}, "
        f"k {comparison.problem.k}, {comparison.problem.relation}"
    )
    for note in prepared.notes:
        print(f"note: {note}")
    print("assumed public: " + "; ".join(prepared.assumed_public))
    print()
    names = [name for name in METRICS if any(name in r.metrics for r in comparison.results)]
    rows = []
    for result in comparison.results:
        summaries = result.summaries
        spent = f"{result.spent.epsilon:.3g}" if result.spent else "-"
        cells = [f"{summaries[name].mean:.4g}" if name in summaries else "-" for name in names]
        rows.append([result.mechanism.text, str(result.status.verdict), spent, *cells])
    _print_table(["mechanism", "status", "spent_epsilon", *names], rows)
    for item in comparison.skipped:
        print(f"skipped {item.mechanism}: {item.reason}")


def _datasets(arguments: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = [
        {**row, "origin": "built-in", "at_hand": True} for row in datasets.dataset_rows()
    ]
    rows += remote.dataset_rows()
    if arguments.format == "json":
        print(json.dumps(rows, indent=1))
    else:
        columns = ("key", "origin", "at_hand", "n", "d", "labels", "label", "licence")
        shown = [{**row, "at_hand": "yes" if row["at_hand"] else "no"} for row in rows]
        _print_table(columns, [[str(row[name]) for name in columns] for row in shown])
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    if arguments.list:
        columns = ("key", "at_hand", "n", "d", "papers", "page")
        shown = [
            {**row, "at_hand": "yes" if row["at_hand"] else "no"} for row in remote.dataset_rows()
        ]
        _print_table(columns, [[str(row[name]) for name in columns] for row in shown])
        return 0
    known = list(remote.sets())
    chosen = known if "all" in arguments.keys else arguments.keys
    wrong = [key for key in chosen if key not in known]
    if wrong or not chosen:
        given = wrong[0] if wrong else "none"
        raise InvalidSetting("KEY", f"all or some of {', '.join(known)}", given, "KEY")
    status = 0
    for key in chosen:  # one that cannot be got does not keep the others away
        try:
            folder = remote.fetch(key, _fetch_progress(key))
            _progress_done()
            print(f"{key}: {folder}")
        except NotAvailable as error:
            _progress_done()
            print(f"dpviz: {error}", file=sys.stderr)
            status = 2
    return status


def _fetch_table(table: str) -> None:
    """Get a remote set that is to be read, showing how far its download is."""
    if datasets.is_remote(table) and not remote.at_hand(table):
        remote.fetch(table, _fetch_progress(table))
        _progress_done()


def _fetch_progress(key: str) -> remote.Progress:
    """Return what shows a download on stderr, where a person may be watching."""
    shown = 0.0

    def show(done: int, total: int | None) -> None:
        nonlocal shown
        now = time.monotonic()
        if not sys.stderr.isatty() or (now - shown < 0.1 and done != total):
            return
        shown = now
        whole = "" if total is None else f" of {total / 1e6:.1f}"
        filled = 0 if not total else 20 * done // total
        bar = "" if total is None else f" [{'#' * filled}{'.' * (20 - filled)}]"
        print(f"\r\x1b[K{key}{bar} {done / 1e6:.1f}{whole} MB", end="", file=sys.stderr, flush=True)

    return show


def listing_rows() -> list[dict[str, Any]]:
    """Return one row per mechanism and relation: what it claims and what holds."""
    domain = Domain.ball(_LISTING_D)
    rows = []
    for key, cls in all_mechanisms().items():
        for relation in Relation:
            problem = Problem(_LISTING_N, _LISTING_D, _LISTING_K, relation, domain)
            status = cls().status(problem, _LISTING_BUDGET)
            rows.append(
                {
                    "key": key,
                    "label": cls.info.label,
                    "paper": cls.info.paper,
                    "relation": str(relation),
                    "release": cls.info.release,
                    "guarantee": cls.info.guarantee,
                    "status": str(status.verdict),
                    "evidence": status.evidence,
                }
            )
    return rows


def _mechanisms(arguments: argparse.Namespace) -> int:
    rows = listing_rows()
    if arguments.format == "json":
        print(json.dumps(rows, indent=1))
    else:
        columns = ("key", "relation", "release", "guarantee", "status", "paper")
        _print_table(columns, [[row[name] for name in columns] for row in rows])
    return 0


def _audit(arguments: argparse.Namespace) -> int:
    params = params_of(AuditOptions)
    written = {name: getattr(arguments, name) for name in params}
    values = {name: params[name].parse(text) for name, text in written.items() if text is not None}
    found = AuditOptions(**values).run(arguments.assignments)
    answer = found.to_json()
    if arguments.format == "json":
        print(json.dumps(_finite(answer), indent=1))
        return 0
    claimed = answer.pop("claimed")
    promise = "nothing" if claimed is None else f"epsilon {claimed['epsilon']:g}"
    if claimed is not None and claimed["delta"]:
        promise += f", delta {claimed['delta']:g}"
    rows = [[name, f"{x:.4g}" if isinstance(x, float) else str(x)] for name, x in answer.items()]
    _print_table(("claimed", promise), rows)
    return 0


def _claims(arguments: argparse.Namespace) -> int:
    params = params_of(AuditOptions)
    seed, trials = (params[name].parse(getattr(arguments, name)) for name in ("seed", "trials"))
    if arguments.out is not None and not Path(arguments.out).resolve().parent.is_dir():
        raise InvalidSetting("out", "a file in a folder that exists", arguments.out, "--out")
    table = claims_table(seed, trials, _progress)
    _progress_done()
    shown = arguments.format
    if shown == "json":
        text = json.dumps(_finite(table.to_dict("records")), indent=1) + "\n"
    elif shown == "csv":
        text = table.to_csv(index=False)
    else:
        columns = ["mechanism", "relation", "status", "evidence", "verdict", "epsilon_lower"]
        columns += ["delta_lower", "at_epsilon"]
        text = table[columns].to_string(index=False, na_rep="-", float_format="%.3g") + "\n"
    if arguments.out is None:
        print(text, end="")
    else:
        Path(arguments.out).write_text(text, encoding="utf-8")
    return 0


def _reproduce(arguments: argparse.Namespace) -> int:
    if arguments.list:
        rows = []
        for key, item in experiments().items():
            absent = absent_data(item)
            needs = [f"{name} (absent)" if name in absent else name for name in item.data()]
            rows.append(
                [key, item.info.paper, item.info.place, item.info.title, ", ".join(needs) or "-"]
            )
        _print_table(("key", "paper", "place", "title", "data"), rows)
        return 0
    if arguments.experiment is None:
        raise InvalidSetting("experiment", "a key that --list shows, or all", "", "EXPERIMENT")
    if arguments.experiment == "all":
        chosen = list(experiments().values())
    else:
        chosen = [experiment(arguments.experiment)]
    if arguments.out is None or not Path(arguments.out).resolve().parent.is_dir():
        given = "none" if arguments.out is None else arguments.out
        raise InvalidSetting(
            "out", "a folder, or one to be made in one that exists", given, "--out"
        )
    seed: int = params_of(Settings)["seed"].parse(arguments.seed)
    pool = Pool(_whole_number("workers", arguments.workers, *WORKERS_RANGE))
    store = _store(arguments.cache)
    effort = Effort.QUICK if arguments.quick else Effort.FULL
    folder = Path(arguments.out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        raise InvalidSetting("out", "a folder that can be written", folder, "--out") from None
    for item in chosen:
        for name in absent_data(item) if arguments.download else ():
            remote.fetch(name, _fetch_progress(name))
            _progress_done()
        watch = _Watch("part")
        try:
            found = reproduce(item, effort, seed=seed, store=store, pool=pool, progress=watch.show)
        except KeyboardInterrupt:
            watch.end()
            kept = "the same command goes on from there" if store else "nothing is kept"
            print(f"dpviz: {item.key} interrupted after {watch.words}; {kept}", file=sys.stderr)
            return 130
        watch.end()
        files = write(found, folder)
        print(f"{item.key}: {watch.words}; {len(found.lines)} lines in {files[0]}")
        for name in found.absent:
            print(f"note: {remote.missing(name)}")
        for line in found.lines:
            stated = f", reported {line.reported}" if line.reported else ""
            measured = f", measured {line.measured}" if line.measured else ""
            print(f"  {line.panel}: {line.item}{stated}{measured}: {line.agreement}")
    return 0


def _task(arguments: argparse.Namespace) -> int:
    out = None if arguments.out is None else check_out(arguments.out)
    settings = settings_from(arguments)
    params = params_of(Task)
    written = {name: getattr(arguments, name) for name in params}
    task = Task.from_texts({name: text for name, text in written.items() if text is not None})
    if arguments.epsilon is not None and arguments.epsilons is None:
        task = replace(task, epsilons=params["epsilons"].format(arguments.epsilon))
    store = _store(arguments.cache)
    _fetch_table(settings.table)
    table, bounds = load_labelled(settings)
    if is_file(settings.allocation):  # its shares are those of the columns that are released
        plain = plan_task(table, replace(settings, allocation="uniform"), task, bounds=bounds)
        settings = resolve_allocation(settings, plain.data(0).measured)
    mechanisms = parse_variants(settings.mechanisms)
    plan = plan_task(table, settings, task, None, mechanisms, bounds=bounds, strict=True)
    watch = _Watch("round")
    try:
        found = finish(plan, watch.show, store)
    except KeyboardInterrupt:
        watch.end()
        kept = "the same command goes on from there" if store else "nothing is kept without --cache"
        print(f"dpviz: interrupted after {watch.words}; {kept}", file=sys.stderr)
        return 130
    watch.end()
    if store is not None:
        store.prune()
    _print_task(plan, found)
    if out is not None:
        write_table(found, out)
        print(f"{len(found)} rows in {arguments.out}: {watch.words}")
    return 0


def _print_task(plan: TaskPlan, found: pd.DataFrame) -> None:
    print(words.facts(plan))
    for note in plan.notes:
        print(f"note: {note}")
    for item in words.protected(plan):
        print(f"protected: {item}")
    for item in words.unprotected(plan):
        print(f"not protected: {item}")
    print("assumed public: " + "; ".join(plan.assumed_public))
    print()
    score = plan.learner.score.label
    bands = band_table(plan, found)
    rows = [
        [name, "-" if math.isnan(epsilon) else f"{epsilon:g}", f"{mean:.4g}", f"{low:.4g}",
         f"{high:.4g}", str(rounds), verdict or "-"]
        for name, _, epsilon, mean, low, high, rounds, verdict in bands.itertuples(index=False)
    ]  # fmt: skip
    _print_table(("mechanism", "epsilon", score, "low", "high", "rounds", "status"), rows)
    for reason, names in words.left_out(plan).items():
        print(f"skipped {', '.join(names)}: {reason}")


def _app(arguments: argparse.Namespace) -> int:
    """Start Streamlit on the app's own files, from any folder."""
    command = [sys.executable, "-m", "streamlit", "run", str(app_path())]
    if arguments.port is not None:
        if not 1 <= arguments.port <= 65_535:
            raise InvalidSetting("port", "from 1 to 65535", arguments.port, "--port")
        command += ["--server.port", str(arguments.port)]
    if arguments.headless:
        command += ["--server.headless", "true"]
    try:
        # BLAS reads this at start only; its threads would fight over small matrices.
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
        return subprocess.run(command, env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 0
