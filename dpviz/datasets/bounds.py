"""Public bounds of features, read from a small file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpviz.datasets.files import read_raw
from dpviz.errors import InvalidTable

_COLUMNS = ("feature", "low", "high")


def read_bounds(path: str) -> dict[str, tuple[float, float]]:
    """Return low and high of each feature from a CSV or Parquet file.

    Parameters
    ----------
    path : str
        File with the columns feature, low and high, one row per feature.

    Raises
    ------
    InvalidTable
        If the file is not there, or its columns are not those three.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidTable(f"The bounds file must exist; {file.name[:60]!r} does not.")
    raw = read_raw(file, name=file.name)
    names = {column.name for column in raw.columns}
    if not names.issuperset(_COLUMNS):
        raise InvalidTable(
            f"{file.name} must have the columns feature, low and high; it has "
            f"{', '.join(sorted(names))[:80]}."
        )
    table = raw.to_table(label="feature", categorical="drop", missing="drop")
    low, high = (table.columns.index(name) for name in ("low", "high"))
    features = np.asarray(table.labels).astype(str)
    if len(set(features)) != len(features):
        raise InvalidTable(f"{file.name} must name each feature once; a feature is repeated.")
    return {
        name: (float(row[low]), float(row[high]))
        for name, row in zip(features, table.rows, strict=True)
    }
