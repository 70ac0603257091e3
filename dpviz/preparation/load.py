"""A table, a path or a plan, loaded and prepared by its settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.core.allocation import is_file, numbered, of_mapping
from dpviz.core.entries import BOUNDS_ALLOWED, FeatureBounds, names_file
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import params_of, text_of
from dpviz.core.settings import Settings, codes_in, levels_in, names_in
from dpviz.datasets import builtin_tables, load, read_bounds, read_thetas
from dpviz.datasets.table import NAMELESS
from dpviz.preparation.batches import is_large
from dpviz.preparation.bounding import BoundedRows, prepare, prepare_batches
from dpviz.preparation.plan import NEED_ROWS, PREFIX, Planned, plan_of
from dpviz.preparation.prepared import Measured


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


def handed_on(settings: Settings, file: str = NAMELESS) -> Settings:
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
    if settings.table.startswith(PREFIX):
        head, equals, spectrum = settings.table.partition("spectrum=")
        if Path(spectrum).is_file():
            changed["table"] = f"{head}{equals}{file}"
    elif settings.table not in builtin_tables() and Path(settings.table).is_file():
        changed["table"] = file
    if names_file(settings.bounds) and Path(text_of(settings.bounds)).is_file():
        changed["bounds"] = "bounds.csv"
    return replace(settings, **changed) if changed else settings


def load_measured(settings: Settings) -> BoundedRows | Planned:
    """Return the prepared table, or the plan, that settings name.

    Parameters
    ----------
    settings : Settings

    Raises
    ------
    InvalidSetting
        If a plan is not written as it should be, or comes with settings that
        are about rows.
    """
    if not settings.table.startswith(PREFIX):
        return load_prepared(settings)
    params = params_of(Settings)
    for name in NEED_ROWS:
        value, param = getattr(settings, name), params[name]
        if value != param.default:
            allowed = "left out of a plan, which has no rows"
            raise InvalidSetting(name, allowed, param.format(value), param.flag)
    found = plan_of(settings.table)
    return replace(found, name=settings.name or found.name)


def with_bounds_read(settings: Settings) -> Settings:
    """Return settings that hold the public bounds of the file that they name, if they name one."""
    named = settings.bounds
    if isinstance(named, FeatureBounds) or not names_file(named):
        return settings
    if not Path(named).is_file():
        raise InvalidSetting("feature bounds", BOUNDS_ALLOWED, named, "--bounds")
    return replace(settings, bounds=FeatureBounds.named(read_bounds(named), named))


def load_prepared(settings: Settings) -> BoundedRows:
    """Return the prepared table that settings name.

    A file whose numbers would take more than `dpviz.preparation.batches.LARGE_BYTES`
    in memory is read in batches.
    """
    settings = with_bounds_read(settings)
    if settings.table not in builtin_tables() and is_large(settings.table):
        return prepare_batches(settings.table, settings)
    table = load(
        settings.table,
        label=settings.label,
        categorical=settings.categorical,
        missing=settings.missing,
        decimal=settings.decimal,
        encoding=settings.encoding,
        sheet=settings.sheet,
        codes=codes_in(settings.codes),
        levels=levels_in(settings.levels),
        rows_a_person=settings.rows_a_person,
        person=settings.person,
        leave_out=names_in(settings.leave_out),
    )
    return prepare(table, settings)
