"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from dpviz import datasets
from dpviz.allocation import is_file, numbered, of_mapping
from dpviz.appfiles import app_path
from dpviz.datasets.thetas import read_thetas
from dpviz.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.mechanisms import all_mechanisms, with_parameter
from dpviz.metrics import METRICS
from dpviz.params import Param, params_of
from dpviz.prepare import Prepared, prepare
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.settings import Settings
from dpviz.sweeps import Comparison, compare

# The setting at which `mechanisms` states status and evidence.
_LISTING_N, _LISTING_D, _LISTING_K = 1_000, 10, 2
_LISTING_BUDGET = Budget(1.0, 1e-6)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"dpviz: {message}\n")


def add_settings(parser: argparse.ArgumentParser, cls: type[Settings] = Settings) -> None:
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

    listing = commands.add_parser("datasets", help="list the built-in tables")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_datasets)

    listing = commands.add_parser("mechanisms", help="list every mechanism and what holds of it")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(run=_mechanisms)

    comparing = commands.add_parser("compare", help="run mechanisms side by side on one table")
    add_settings(comparing)
    add_set(comparing)
    comparing.add_argument("--format", choices=("table", "json"), default="table")
    comparing.set_defaults(run=_compare)

    app = commands.add_parser("app", help="start the dashboard")
    app.add_argument("--port", type=int, default=None, help="port on localhost (default 8501)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    app.set_defaults(run=_app)
    return parser


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


def load_prepared(settings: Settings) -> Prepared:
    """Return the prepared table that settings name."""
    table = datasets.load(
        settings.table,
        label=settings.label,
        categorical=settings.categorical,
        missing=settings.missing,
    )
    bounds = None
    if settings.bounds not in ("max", "known"):
        if not Path(settings.bounds).is_file():
            raise InvalidSetting(
                "feature bounds",
                "max, known or the path of a CSV or Parquet file",
                settings.bounds,
                "--bounds",
            )
        bounds = datasets.read_bounds(settings.bounds)
    return prepare(table, settings, bounds)


def resolve_allocation(settings: Settings, prepared: Prepared) -> Settings:
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
    prepared = load_prepared(settings)
    settings = resolve_allocation(settings, prepared)
    comparison = compare(prepared, settings, _progress)
    _progress_done()
    if arguments.format == "json":
        print(json.dumps(_finite(comparison.to_json()), indent=1))
    else:
        _print_comparison(comparison)
    return 0


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
        f"{prepared.table.name}: n {prepared.n}, d {prepared.d}, {prepared.domain.kind}, "
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
    rows = datasets.dataset_rows()
    if arguments.format == "json":
        print(json.dumps(rows, indent=1))
    else:
        columns = ("key", "n", "d", "labels", "label", "licence")
        _print_table(columns, [[str(row[name]) for name in columns] for row in rows])
    return 0


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
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 0
