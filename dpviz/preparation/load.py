"""A table, a path or a plan, loaded and prepared by its settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.core.entries import BOUNDS_ALLOWED, FeatureBounds, names_file
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import text_of
from dpviz.core.settings import Settings
from dpviz.datasets import ReadOptions, builtin_tables, read_bounds, read_table
from dpviz.datasets.table import NAMELESS, Table
from dpviz.preparation.bounding import BoundedTable, prepare, prepare_batches
from dpviz.preparation.plan import PREFIX, PlannedTable, plan_with


def without_paths(settings: Settings, file: str = NAMELESS) -> Settings:
    """Return settings as results carry them: where files lie is nobody else's business.

    Parameters
    ----------
    settings : Settings
    file : str
        What stands for a table's file or a plan's.

    Returns
    -------
    Settings
        The same object where no file is named.
    """
    changed: dict[str, Any] = {}
    # a plan may name a file as well, of its spectrum
    if settings.table.startswith(PREFIX):
        head, equals, spectrum = settings.table.partition("spectrum=")
        if Path(spectrum).is_file():
            changed["table"] = f"{head}{equals}{file}"
    elif settings.table not in builtin_tables() and Path(settings.table).is_file():
        changed["table"] = file
    if names_file(settings.bounds) and Path(text_of(settings.bounds)).is_file():
        changed["bounds"] = "bounds.csv"
    return replace(settings, **changed) if changed else settings


def prepared_of(table: Any, settings: Settings) -> BoundedTable | PlannedTable:
    """Return a table prepared by its settings.

    Parameters
    ----------
    table : str, Path, DataFrame, ndarray, Table, BoundedTable or PlannedTable
        Whatever `dpviz.datasets.read_table` takes, or the text of a plan. Rows that are prepared
        already, and plans, are returned as they are.
    settings : Settings

    Raises
    ------
    DpvizError
        If the table cannot be read or used with these settings, or a plan comes with settings that
        are about rows.
    """
    if isinstance(table, (BoundedTable, PlannedTable)):
        return table
    if isinstance(table, str) and table.startswith(PREFIX):
        return plan_with(settings)
    # bounds first: a missing file of them is said before a large table is read
    settings = with_bounds_read(settings)
    table = read_table(table, ReadOptions.of(settings))
    return (prepare if isinstance(table, Table) else prepare_batches)(table, settings)


def load_measured(settings: Settings) -> BoundedTable | PlannedTable:
    """Return the prepared table, or the plan, that settings name."""
    return prepared_of(settings.table, settings)


def load_prepared(settings: Settings) -> BoundedTable:
    """Return the prepared table that settings name, which is no plan."""
    found = prepared_of(settings.table, settings)
    assert isinstance(found, BoundedTable)
    return found


def with_bounds_read(settings: Settings) -> Settings:
    """Return settings that hold the public bounds of the file that they name, if they name one."""
    named = settings.bounds
    if isinstance(named, FeatureBounds) or not names_file(named):
        return settings
    if not Path(named).is_file():
        raise InvalidSetting("feature bounds", BOUNDS_ALLOWED, named, "--bounds")
    return replace(settings, bounds=FeatureBounds.named(read_bounds(named), named))
