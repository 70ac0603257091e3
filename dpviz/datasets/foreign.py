"""SPSS and Stata files as Parquet, read by a process of its own, which may die of it without harm.

A damaged file of SPSS can end its reader, and a small file of either may claim any number of rows
or give one long text to many cells. So `dpviz.datasets.formats` runs this file as a script.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

from dpviz.datasets.columns import listed
from dpviz.datasets.source import Limits
from dpviz.datasets.workbook import TOO_LARGE, cell_text, limited


def as_parquet(frame: pd.DataFrame, limits: Limits) -> bytes | None:
    """Return a frame as Parquet, columns of mixed kinds as text; None beyond the limits.

    Parameters
    ----------
    frame : DataFrame
    limits : Limits
    """
    if frame.shape[1] > limits.columns or frame.size > limits.cells:
        return None
    arrays = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        try:
            arrays.append(pa.Array.from_pandas(column))
        except (pa.ArrowException, TypeError, ValueError):
            arrays.append(
                pa.array([None if pd.isna(v) else cell_text(v) for v in column], pa.large_string())
            )
    # many cells of a small file may share one long text
    if sum(column.nbytes for column in arrays) > 2 * limits.text_bytes:
        return None
    sink = io.BytesIO()
    names = [str(name) for name in frame.columns]
    parquet.write_table(pa.Table.from_arrays(arrays, names), sink)
    return sink.getvalue()


def _labelled(
    codes: pd.DataFrame, words: Mapping[Any, Any], labelled: Collection[Any]
) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame with words for the codes of the columns that have them for every code."""
    read = {name: words.get(name, codes[name]) for name in codes}
    partly = [name for name in labelled if name not in words]
    notes = [f"Value labels were read as words in {listed(list(words))}."] if words else []
    if partly:
        notes.append(
            f"Some numbers have no value label in {listed(partly)}: all stayed numbers, codes for "
            "missing among them."
        )
    return pd.DataFrame(read), notes


def _stata(data: bytes) -> tuple[pd.DataFrame, list[str]]:
    codes = pd.read_stata(io.BytesIO(data), convert_categoricals=False)
    worded = pd.read_stata(io.BytesIO(data))
    labelled = [name for name in worded if isinstance(worded[name].dtype, pd.CategoricalDtype)]
    # where a code has no word the categories hold the code
    whole = [n for n in labelled if all(isinstance(c, str) for c in worded[n].cat.categories)]
    return _labelled(codes, {name: worded[name].astype(object) for name in whole}, labelled)


def _spss(data: bytes) -> tuple[pd.DataFrame, list[str]]:
    import pyreadstat  # here: an extra

    codes, about = pyreadstat.read_sav(io.BytesIO(data))
    labels = about.variable_value_labels
    whole = [name for name, words in labels.items() if codes[name].dropna().isin(words).all()]
    return _labelled(codes, {name: codes[name].map(labels[name]) for name in whole}, labels)


SPSS, STATA = "an SPSS file", "a Stata file"
"""What messages call them."""
READERS = {SPSS: _spss, STATA: _stata}
"""What reads them."""


def _main() -> None:
    """Answer what is asked by one line on the standard input, with the file behind it."""
    what, *numbers = json.loads(sys.stdin.buffer.readline())
    limits = Limits(*numbers)
    limited(limits.cells)
    warnings.simplefilter("ignore")
    frame, notes = READERS[what](sys.stdin.buffer.read())
    written = as_parquet(frame, limits)
    if written is None:
        sys.exit(TOO_LARGE)
    sys.stdout.buffer.write(json.dumps(notes).encode() + b"\n" + written)


if __name__ == "__main__":
    _main()
