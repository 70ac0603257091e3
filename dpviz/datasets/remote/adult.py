"""A mixed table with missing values: numbers, categories and question marks."""

from __future__ import annotations

from pathlib import Path

from dpviz.datasets.remote.declared import UCI_LICENCE, File, Remote, uci_legacy, uci_page, uci_zip
from dpviz.datasets.remote.reading import (
    categories,
    categories_of,
    features,
    named,
    parts_of,
    read_columns,
    without,
)
from dpviz.datasets.table import Table

_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_FEATURES = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip


def _adult(folder: Path) -> Table:
    names = (*_FEATURES, "income")
    text = [name for name in names if name not in _NUMBERS]
    whole = read_columns(folder / "adult.data", names, text=text)
    # a row with a gap in a category has no place among its 0/1 features
    table = without(whole, [name for name in text if name != "income"], "?")
    rows, columns = features(parts_of(table, _FEATURES))
    labels = named(categories(table["income"]))
    dropped = whole.num_rows - table.num_rows
    note = f"{dropped:,} of {whole.num_rows:,} rows with a question mark were left out."
    public = categories_of([name for name in _FEATURES if name not in _NUMBERS])
    return Table("adult", rows, columns, labels, "income", notes=(note,), assumed_public=public)


SETS = (
    Remote(
        key="adult",
        label="Adult",
        folder="adult",
        files=(
            File(
                "adult.data",
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                (uci_zip(2, "adult"), uci_legacy("adult/adult.data")),
                text="df25a4e32ed6f1bd4b3910d21a7bd661a09061eced7cb45555a519d9667cc87b",
            ),
        ),
        n=30_162,
        d=104,
        labels="income, 2 classes",
        licence=UCI_LICENCE,
        citation="Becker and Kohavi 1996, Adult, UCI, doi:10.24432/C5XW20",
        page=uci_page(2, "adult"),
        papers=(),
        preparation=(
            "The training part alone; text fields became one 0/1 feature for each category.",
        ),
        read=_adult,
        openml="https://www.openml.org/d/1590",
    ),
)
