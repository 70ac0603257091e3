"""What may be shown to anybody of a table of one's own: read under a schema, paid by a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.entries import Public
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import params_of, text_of
from dpviz.core.problem import Relation, Unit
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.load import PlannedTable, without_paths
from dpviz.releasing.ledger import Ledger, Spend, ledger_at
from dpviz.releasing.making import content_of, digest, table_input
from dpviz.releasing.records import TableInput, declared_table
from dpviz.releasing.schema import Schema
from dpviz.studies import options as asked

SAID_BY_SCHEMA = {
    "label": None, "categories": "", "person": None, "rows_a_person": None, "leave_out": "",
    "codes": "", "read_as": "", "levels": "", "bounds": "max", "center": None, "missing": "drop",
    "categorical": "drop", "decimal": "auto", "encoding": "auto",
}  # fmt: skip
"""Options that a schema says in their place, and their defaults."""


def under_schema(
    table: Any, schema: Schema, options: Mapping[str, Any]
) -> tuple[Table, dict[str, Any]]:
    """Return a table as a release reads it, and options that take nothing from its rows.

    Without a row bound it is the farthest that a row can lie between the bounds.

    Raises
    ------
    InvalidSetting
        If an option is what the schema says, or would be found in the rows.
    """
    params = params_of(Settings)
    for name, default in SAID_BY_SCHEMA.items():
        if options.get(name, default) != default:
            allowed = "left out beside a schema, which says how the rows are read"
            raise InvalidSetting(name, allowed, text_of(options[name]), params[name].flag)
    if not isinstance(table, (str, PathLike, Table)):
        raise InvalidSetting("table", "a name or a file beside a schema", type(table).__name__)
    given = dict(options)
    sheet = given.pop("sheet", "")
    read = declared_table(
        table if isinstance(table, Table) else table_input(fspath(table), sheet), schema
    )
    assert read.bounds is not None
    given |= {"center": "none", "bounds": "known", "rows_a_person": schema.rows_a_person}
    if given.get("row_bound", "max") == "max":
        given["row_bound"] = float(np.linalg.norm(np.abs(read.bounds).max(axis=1)))
    entries = asked.settings_of(read.name, given).entries
    for name in ("scale", "row_bound", "count"):
        if not isinstance(getattr(entries, name), Public):
            allowed = "public beside a schema: nothing is taken from the rows"
            raise InvalidSetting(name, allowed, text_of(given[name]), params[name].flag)
    return read, given


def ready(
    table: Any,
    options: Mapping[str, Any],
    schema: str | PathLike[str] | Schema | None = None,
) -> tuple[BoundedTable | PlannedTable, Settings]:
    """Return the prepared table of a call, read under the schema where one is given."""
    if schema is not None:
        stated = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
        table, options = under_schema(table, stated, options)
    return asked.ready(table, options)


def enter(
    ledger: str | PathLike[str] | Ledger,
    table: Any,
    schema: str | PathLike[str] | Schema | None,
    prepared: BoundedTable | PlannedTable,
    settings: Settings,
) -> None:
    """Write down in a ledger what pictures of some mechanisms cost at most; call it before a draw.

    Raises
    ------
    InvalidSetting
        If the table is neither public nor read under a schema: what it costs is not known.
    LedgerError
        If the ledger cannot be read, or will not pay. Nothing is then written.
    """
    if not (isinstance(prepared, Prepared) and prepared.table.publishable):
        allowed = "given with a schema where the table is your own: else no account holds"
        raise InvalidSetting("ledger", allowed, "no schema", "--ledger")
    book = ledger if isinstance(ledger, Ledger) else ledger_at(fspath(ledger))
    stated = schema if schema is None or isinstance(schema, Schema) else Schema.read(Path(schema))
    content: TableInput = prepared.table
    if stated is not None and not isinstance(table, Table):
        content = table_input(fspath(table), settings.sheet)
    budget, count = prepared.budget(settings), len(settings.variants)
    book.spend(
        Spend(
            mechanism=", ".join(settings.variants),
            epsilon=count * budget.epsilon,
            delta=count * budget.delta,
            purpose="picture",
            settings=digest(without_paths(settings).to_json()),
            schema="" if stated is None else stated.digest,
            table=book.fingerprint(content_of(content)),
            # a column of the person cuts their rows, whatever their number is
            rows=0 if stated is not None and stated.person else settings.rows_a_person or 0,
        ),
        Relation(settings.relation),
        Unit.ROW if settings.rows_a_person is None else Unit.PERSON,
    )
