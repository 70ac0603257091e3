"""The three sets of Chanyaswad, Dytso, Poor and Mittal 2018 (MVG)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpviz.core.errors import InvalidTable
from dpviz.datasets.remote.declared import (
    CHANYASWAD,
    UCI_LICENCE,
    File,
    Remote,
    uci_legacy,
    uci_page,
    uci_zip,
)
from dpviz.datasets.remote.reading import read_numbers
from dpviz.datasets.sheet import sheet_cells
from dpviz.datasets.table import Table

RECORDINGS = 314
_RECORDING = "dataset/MovementAAL_RSS_{}.csv"
_BLOOD_TESTS = ("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks")
_CTG_FEATURES = 21


def _liver(folder: Path) -> Table:
    cells = read_numbers(folder / "bupa.data", len(_BLOOD_TESTS) + 1, ",")
    return Table(
        "liver", cells[:, :-1].copy(), _BLOOD_TESTS, cells[:, -1].astype(np.int64), "selector"
    )


def _movement(folder: Path) -> Table:
    stacked = [
        read_numbers(folder / _RECORDING.format(number), 4, ",")
        for number in range(1, RECORDINGS + 1)
    ]
    return Table("movementaal", np.concatenate(stacked), tuple(f"ANC{j}" for j in range(4)))


def _cardiotocography(folder: Path) -> Table:
    # Sheet Data: a row of column numbers, the row of names, the recordings, then a blank row and
    # two of column sums.
    damaged = InvalidTable("CTG.xls must be the workbook of the UCI repository; it is another.")
    try:
        rows = sheet_cells(folder / "CTG.xls", "CTG.xls", "Data")
    except InvalidTable:
        raise damaged from None
    names = rows[1] if len(rows) > 1 else []
    if "LB" not in names or "NSP" not in names:
        raise damaged
    first, state = names.index("LB"), names.index("NSP")
    whole = [row for row in rows[2:] if len(row) > state]  # an empty end of a row is not there
    wanted = [[*row[first : first + _CTG_FEATURES], row[state]] for row in whole]
    numbers = np.array([row for row in map(_numbers, wanted) if row]).reshape(-1, _CTG_FEATURES + 1)
    states = np.array(["", "normal", "suspect", "pathologic"])
    codes = numbers[:, -1].astype(np.int64)
    if not np.isin(codes, (1, 2, 3)).all():
        raise damaged
    return Table(
        "cardiotocography",
        numbers[:, :-1].copy(),
        tuple(names[first : first + _CTG_FEATURES]),
        states[codes],
        "NSP",
    )


def _numbers(texts: list[str]) -> list[float]:
    """Return cells as numbers; none where one is something else."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        return []


def _recordings() -> tuple[File, ...]:
    """Return the declared recordings; their digests are in a list of their own."""
    listed = Path(__file__).with_name("movementaal.sha256").read_text(encoding="ascii")
    digests = {name: digest for digest, name in (line.split() for line in listed.splitlines())}
    addresses = (
        uci_zip(348, "indoor+user+movement+prediction+from+rss+data"),
        uci_legacy("00348/MovementAAL.zip"),
    )
    names = [_RECORDING.format(number) for number in range(1, RECORDINGS + 1)]
    return tuple(File(name, digests[name], addresses) for name in names)


SETS = (
    Remote(
        key="liver",
        label="Liver disorders",
        folder="liver-disorders",
        files=(
            File(
                "bupa.data",
                "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92",
                (uci_zip(60, "liver+disorders"), uci_legacy("liver-disorders/bupa.data")),
            ),
        ),
        n=345,
        d=6,
        labels="selector, 2 values: which part of the data, not a diagnosis",
        licence=UCI_LICENCE,
        citation="BUPA Medical Research Ltd. 1990, Liver Disorders, UCI, doi:10.24432/C54G67",
        page=uci_page(60, "liver+disorders"),
        papers=(CHANYASWAD,),
        preparation=(
            "The features are five blood tests and the daily drinks, in the units of the file.",
            "The seventh field, selector, is no diagnosis: its author made it to split the rows "
            "into training and test rows.",
        ),
        read=_liver,
        openml="https://www.openml.org/d/8",
    ),
    Remote(
        key="movementaal",
        label="Indoor user movement from radio signal strength",
        folder="movementaal",
        files=_recordings(),
        n=13_197,
        d=4,
        labels="none",
        licence=UCI_LICENCE,
        citation="Bacciu, Barsocchi, Chessa, Gallicchio and Micheli 2014, Indoor User Movement "
        "Prediction from RSS Data, UCI, doi:10.24432/C5761H",
        page=uci_page(348, "indoor+user+movement+prediction+from+rss+data"),
        papers=(CHANYASWAD,),
        preparation=(
            "The 314 recordings are stacked in the order of their numbers; nothing is dropped.",
            "Values are those of the file, in [-1, 1]; the paper scales them to [-100, 100] and "
            "reports 10,176 rows.",
        ),
        read=_movement,
        paper_d=4,
    ),
    Remote(
        key="cardiotocography",
        label="Cardiotocography",
        folder="cardiotocography",
        files=(
            File(
                "CTG.xls",
                "d6aa62e82625e59f9d5b05bc8fc52af9ea67bdf2a23f1faca8511d5618fcb421",
                (uci_zip(193, "cardiotocography"), uci_legacy("00193/CTG.xls")),
            ),
        ),
        n=2_126,
        d=_CTG_FEATURES,
        labels="fetal state NSP, 3 classes",
        licence=UCI_LICENCE,
        citation="Campos and Bernardes 2000, Cardiotocography, UCI, doi:10.24432/C51S4N",
        page=uci_page(193, "cardiotocography"),
        papers=(CHANYASWAD,),
        preparation=(
            "The features are the 21 columns of sheet Data from LB on, in the units of the file; "
            "file names, dates, the ten-class code and the rows of sums are left out.",
        ),
        read=_cardiotocography,
        openml="https://www.openml.org/d/1466",
        paper_d=21,
    ),
)
