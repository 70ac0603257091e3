"""Tidy tables to CSV or Parquet files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from dpviz.core.csv_text import write_csv
from dpviz.core.errors import InvalidSetting
from dpviz.core.whole import whole


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV or Parquet, by the ending; whole or not at all.

    Raises
    ------
    InvalidSetting
        If the ending is another, or the folder cannot be written.
    CannotWrite
        If the system refuses, such as a full disk.
    """
    file = check_out(path)
    with whole(file) as aside:
        if file.suffix.lower() == ".csv":
            write_csv(table, aside)
        else:
            table.to_parquet(aside, index=False)


def check_out(path: str | Path) -> Path:
    """Return the path of a table to write, or raise InvalidSetting before any work."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidSetting("out", "a path that ends in .csv or .parquet", str(path), "--out")
    folder = file.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or file.is_dir():
        raise InvalidSetting("out", "in a folder that is there and writable", str(path), "--out")
    return file.absolute()
