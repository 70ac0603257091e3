"""The commands ``mechanisms``, ``audit`` and ``claims``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpviz.base.params import params_of
from dpviz.claims.audit import AuditOptions
from dpviz.claims.table import claims_table, listing_rows
from dpviz.cli.terminal import _finite, _print_table, _progress, _progress_done
from dpviz.errors import InvalidSetting


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
