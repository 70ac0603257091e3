"""A precision allocation, read from a small file."""

from __future__ import annotations

from pathlib import Path

from dpviz.datasets.files import read_raw
from dpviz.errors import InvalidTable


def read_thetas(path: str) -> dict[str, float]:
    """Return the share of each feature or direction from a CSV or Parquet file.

    Parameters
    ----------
    path : str
        File with the columns theta and feature, or theta and direction.

    Raises
    ------
    InvalidTable
        If the file is not there, its columns are others, a name is repeated or
        a share is not a number.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidTable(f"The allocation file must exist; {file.name[:60]!r} does not.")
    raw = read_raw(file, name=file.name)
    kinds = {column.name: column for column in raw.columns}
    key = next((name for name in ("feature", "direction") if name in kinds), None)
    if key is None or "theta" not in kinds:
        raise InvalidTable(
            f"{file.name} must have the columns feature (or direction) and theta; it has "
            f"{', '.join(sorted(kinds))[:80]}."
        )
    if not kinds["theta"].is_feature or kinds["theta"].missing or kinds[key].missing:
        raise InvalidTable(f"{file.name} must have a name and a number theta in every row.")
    names = [_name(value) for value in raw.data[key].to_pylist()]
    if len(set(names)) != len(names):
        raise InvalidTable(f"{file.name} must name each direction once; one is repeated.")
    shares = [float(value) for value in raw.data["theta"].to_pylist()]
    return dict(zip(names, shares, strict=True))


def _name(value: object) -> str:
    """Return a cell as a name; whole numbers lose the point that parsing gave them."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
