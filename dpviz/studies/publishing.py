"""How a user's own table is read for publication: under a schema, with a ledger."""

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
    "delimiter": "auto", "header": "auto",
}  # fmt: skip
"""Options that a schema replaces, with their defaults."""


def under_schema(
    table: Any, schema: Schema, options: Mapping[str, Any]
) -> tuple[Table, dict[str, Any]]:
    """Return a table as a release reads it, and options that take no value from its rows.

    By default the row-norm bound is the largest norm that the bounds allow.

    Raises
    ------
    InvalidSetting
        If the schema states an option, or an option would be taken from the rows.
    """
    params = params_of(Settings)
    for name, default in SAID_BY_SCHEMA.items():
        if options.get(name, default) != default:
            rule = "left out, because the schema says how the rows are read"
            raise InvalidSetting(name, rule, text_of(options[name]), params[name].flag)
    if not isinstance(table, (str, PathLike, Table)):
        raise InvalidSetting("table", "a name or a file if a schema is given", type(table).__name__)
    values = dict(options)
    sheet = values.pop("sheet", "")
    source = declared_table(
        table if isinstance(table, Table) else table_input(fspath(table), sheet), schema
    )
    assert source.bounds is not None
    values |= {"center": "none", "bounds": "known", "rows_a_person": schema.rows_a_person}
    if values.get("row_bound", "max") == "max":
        values["row_bound"] = float(np.linalg.norm(np.abs(source.bounds).max(axis=1)))
    entries = asked.settings_of(source.name, values).entries
    for name in ("scale", "row_bound", "count"):
        if not isinstance(getattr(entries, name), Public):
            rule = "public if a schema is given, because nothing is taken from the rows"
            raise InvalidSetting(name, rule, text_of(values[name]), params[name].flag)
    return source, values


def ready(
    table: Any,
    options: Mapping[str, Any],
    schema: str | PathLike[str] | Schema | None = None,
) -> tuple[BoundedTable | PlannedTable, Settings]:
    """Return the prepared table of a call, read under the schema if one is given."""
    if schema is not None:
        rules = schema if isinstance(schema, Schema) else Schema.read(Path(schema))
        table, options = under_schema(table, rules, options)
    return asked.ready(table, options)


def enter(
    ledger: str | PathLike[str] | Ledger,
    table: Any,
    schema: str | PathLike[str] | Schema | None,
    prepared: BoundedTable | PlannedTable,
    settings: Settings,
) -> None:
    """Record in a ledger the maximum cost of the maps of several mechanisms; call it first.

    Raises
    ------
    InvalidSetting
        If the table is neither public nor read under a schema, because its cost is then unknown.
    LedgerError
        If the ledger cannot be read, or its limit is too low. Then no cost is recorded.
    """
    if not (isinstance(prepared, Prepared) and prepared.table.publishable):
        rule = "given with a schema if the table is your own; without a schema no account holds"
        raise InvalidSetting("ledger", rule, "no schema", "--ledger")
    book = ledger if isinstance(ledger, Ledger) else ledger_at(fspath(ledger))
    rules = schema if schema is None or isinstance(schema, Schema) else Schema.read(Path(schema))
    content: TableInput = prepared.table
    if rules is not None and not isinstance(table, Table):
        content = table_input(fspath(table), settings.sheet)
    budget, count = prepared.budget(settings), len(settings.variants)
    book.spend(
        Spend(
            mechanism=", ".join(settings.variants),
            epsilon=count * budget.epsilon,
            delta=count * budget.delta,
            purpose="picture",
            settings=digest(without_paths(settings).to_json()),
            schema="" if rules is None else rules.digest,
            table=book.fingerprint(content_of(content)),
            # A person column limits each person's rows, so the cost holds for any number of rows.
            rows=0 if rules is not None and rules.person else settings.rows_a_person or 0,
        ),
        Relation(settings.relation),
        Unit.ROW if settings.rows_a_person is None else Unit.PERSON,
    )
