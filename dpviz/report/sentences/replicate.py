"""A view as a script or a notebook that computes it again through the Python interface."""

from __future__ import annotations

import json
from typing import Any

from dpviz.core import VERSION
from dpviz.core.params import params_of
from dpviz.core.settings import Settings

FIGURES = ("spectrum", "distance", "projection")


def arguments(settings: Settings, table: str) -> str:
    """Return what `dpviz.compare` is called with: every setting, defaults included.

    Parameters
    ----------
    settings : Settings
    table : str
        What to write for the table, where it has no name of its own.
    """
    values: dict[str, Any] = {
        name: getattr(settings, name) for name in params_of(Settings) if name != "table"
    }
    values["mechanisms"] = list(settings.variants)
    lines = [f"    {table!r},", *(f"    {name}={value!r}," for name, value in values.items())]
    return "\n".join(lines)


def _heading(settings: Settings, table: str) -> str:
    return (
        f"{table}: what privacy costs this PCA. Made by dpviz {VERSION}, seed "
        f"{settings.seed}: the same version and seed give the same numbers."
    )


def script(settings: Settings, table: str | None = None) -> str:
    """Return a Python script that prints the view's numbers and writes its figures as files."""
    name = settings.table if table is None else table
    shown = "\n".join(
        f'    found.figure("{figure}").write_html("dpviz-{figure}.html")' for figure in FIGURES
    )
    return (
        f'"""{_heading(settings, name)}"""\n\n'
        "import dpviz\n\n"
        f"found = dpviz.compare(\n{arguments(settings, name)}\n)\n"
        "print(found.summary())\n"
        "print(found.table().to_string())\n\n"
        'if __name__ == "__main__":\n'
        f"{shown}\n"
    )


def notebook(settings: Settings, table: str | None = None) -> str:
    """Return a Jupyter notebook that shows the view again, as its file's text."""
    name = settings.table if table is None else table
    cells = [
        _cell("markdown", f"# dpviz\n\n{_heading(settings, name)}"),
        _cell("code", f"import dpviz\n\nfound = dpviz.compare(\n{arguments(settings, name)}\n)"),
        _cell("code", "print(found.summary())"),
        _cell("code", "found.table()"),
        *(_cell("code", f'found.figure("{figure}")') for figure in FIGURES),
    ]
    for place, cell in enumerate(cells):
        cell["id"] = f"dpviz-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": "", "metadata": {}, "source": source}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell
