"""The sets of Xu, Yang and Bai 2019 (Laplace input and output perturbation).

Two of the five folders that the paper names hold two versions: both are here.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from dpviz.core.errors import InvalidTable
from dpviz.datasets.remote.declared import (
    UCI_LICENCE,
    XU,
    File,
    Remote,
    uci_legacy,
    uci_page,
    uci_zip,
)
from dpviz.datasets.remote.reading import (
    features,
    parse_numbers,
    parts_of,
    read_columns,
    read_lines,
    read_numbers,
)
from dpviz.datasets.table import Table

_PIXELS = 256
_TAB_IN_A_NUMBER = re.compile(r"(?<=\d)\t(?=\d)")
_COVERTYPE_NAMES = (
    "Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology", "Horizontal_Distance_To_Roadways", "Hillshade_9am",
    "Hillshade_Noon", "Hillshade_3pm", "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area_{j}" for j in range(1, 5)), *(f"Soil_Type_{j}" for j in range(1, 41)),
)  # fmt: skip


def _semeion(folder: Path) -> Table:
    path = folder / "semeion.data"
    cells = read_numbers(path, _PIXELS + 10)
    pixels, marks = cells[:, :_PIXELS], cells[:, _PIXELS:]
    # ten marks follow the pixels, one of them set: what looks otherwise is another file
    if not (np.isin(cells, (0.0, 1.0)).all() and (marks.sum(axis=1) == 1).all()):
        raise InvalidTable("semeion.data must hold pixels of 0 and 1 and one digit for each row.")
    columns = tuple(f"pixel {row},{column}" for row in range(1, 17) for column in range(1, 17))
    bounds = np.tile(np.array([0.0, 1.0]), (_PIXELS, 1))  # a pixel is blank or ink
    return Table("semeion", pixels.copy(), columns, marks.argmax(axis=1), "digit", bounds=bounds)


def _waveform(folder: Path) -> Table:
    path = folder / "waveform.data"
    lines, notes = read_lines(path), []
    # the file on record has such a line, and its digest is of the file as it is
    for index, line in enumerate(lines):
        whole, count = _TAB_IN_A_NUMBER.subn("", line)
        if count:
            lines[index] = whole
            notes.append(
                f"Line {index + 1} of {path.name} has a tab within a number, which was removed: "
                "the number then has two decimals like all others."
            )
    cells = parse_numbers(path, lines, 22, ",")
    return Table(
        "waveform",
        cells[:, :-1].copy(),
        tuple(f"x{j}" for j in range(1, 22)),
        cells[:, -1].astype(np.int64),
        "class",
        notes=tuple(notes),
    )


def _musk(folder: Path) -> Table:
    columns = tuple(f"f{j}" for j in range(1, 167))
    names = ("molecule", "conformation", *columns, "class")
    # a molecule has many shapes: the first two columns name which, and are no features
    table = read_columns(folder / "clean1.data", names, text=names[:2])
    rows, columns = features(parts_of(table, columns))
    is_musk = table["class"].to_numpy() == 1
    return Table("musk", rows, columns, np.where(is_musk, "musk", "non-musk"), "class")


def _musk2(folder: Path) -> Table:
    columns = tuple(f"f{j}" for j in range(1, 167))
    table = read_columns(folder / "musk2.csv", ("class", "molecule", *columns))
    is_musk = table["class"].to_numpy() == 1
    rows, columns = features(parts_of(table, columns))
    return Table("musk2", rows, columns, np.where(is_musk, "musk", "non-musk"), "class")


def _waveform2(folder: Path) -> Table:
    cells = read_numbers(folder / "waveform-+noise.data", 41, ",")
    columns = tuple(f"x{j}" for j in range(1, 41))
    return Table("waveform2", cells[:, :-1].copy(), columns, cells[:, -1].astype(np.int64), "class")


def _secom(folder: Path) -> Table:
    rows = read_numbers(folder / "secom.data", 590)
    path = folder / "secom_labels.data"
    marks = parse_numbers(path, [line.split()[0] for line in read_lines(path)], 1)[:, 0]
    if len(marks) != len(rows):
        raise InvalidTable(
            f"secom_labels.data must hold a line for each of the {len(rows)} rows of secom.data; "
            f"it holds {len(marks)}."
        )
    gaps = np.isnan(rows)
    holed = np.flatnonzero(gaps.any(axis=0))
    for j in holed:
        seen = rows[~gaps[:, j], j]
        # a sensor that never said anything is constant, and dropped with the constants
        rows[gaps[:, j], j] = np.median(seen) if len(seen) else 0.0
    return Table(
        "secom",
        rows,
        tuple(f"sensor {j}" for j in range(1, 591)),
        np.where(marks > 0, "fail", "pass"),
        "test",
        notes=(f"{int(gaps.sum())} cells in {len(holed)} of 590 columns were missing.",),
        assumed_public=("the medians that replaced missing cells",),
    )


def _covertype(folder: Path) -> Table:
    names = (*_COVERTYPE_NAMES, "cover type")
    table = read_columns(folder / "covtype.data.gz", names)
    rows, columns = features(parts_of(table, _COVERTYPE_NAMES))
    kinds = table["cover type"].to_numpy().astype(np.int64)
    return Table("covertype", rows, columns, kinds, "cover type")


SETS = (
    Remote(
        key="semeion",
        label="Semeion handwritten digits",
        folder="semeion",
        files=(
            File(
                "semeion.data",
                "f43228ae3da5ea6a3c95069d53450b86166770e3b719dcc333182128fe08d4b1",
                (uci_zip(178, "semeion+handwritten+digit"), uci_legacy("semeion/semeion.data")),
                # copies without the blank at the end of each line are about
                text="8fcb0cc6c0e569860b789491407c2bd60dd7c29b6d619894c12e7ea0907c954c",
            ),
        ),
        n=1_593,
        d=_PIXELS,
        labels="digit, 0 to 9",
        licence=UCI_LICENCE,
        citation="Semeion Research Center 1998, Semeion Handwritten Digit, UCI, "
        "doi:10.24432/C5SC8V",
        page=uci_page(178, "semeion+handwritten+digit"),
        papers=(XU,),
        preparation=(
            "The features are the 256 pixels, 0 or 1; the ten marks after them are the digit.",
        ),
        read=_semeion,
        openml="https://www.openml.org/d/1501",
    ),
    Remote(
        key="waveform",
        label="Waveform, the published sample",
        folder="waveform",
        files=(
            File(
                "waveform.data",
                "5a199d8ad86df252c58f6f68b7ddcae968e886e3636e681f18fa6275890d5d95",
                (
                    uci_zip(107, "waveform+database+generator+version+1"),
                    uci_legacy("waveform/waveform.data.Z"),
                ),
            ),
        ),
        n=5_000,
        d=21,
        labels="class, 3 classes",
        licence=UCI_LICENCE,
        citation="Breiman and Stone 1988, Waveform Database Generator (Version 1), UCI, "
        "doi:10.24432/C5CS3C",
        page=uci_page(107, "waveform+database+generator+version+1"),
        papers=(XU,),
        preparation=(
            "The features are those of the file, in its units. As a table's name, `waveform` is "
            "the built-in generator and not this sample of it.",
        ),
        read=_waveform,
    ),
    Remote(
        key="musk",
        label="Musk, version 1",
        folder="musk",
        files=(
            File(
                "clean1.data",
                "59e3be669d645a72b2de7e7baa21e7d4e537be918e4320e8dea6aadc9227f379",
                (uci_zip(74, "musk+version+1"), uci_legacy("musk/clean1.data.Z")),
            ),
        ),
        n=476,
        d=166,
        labels="musk or non-musk",
        licence=UCI_LICENCE,
        citation="Chapman and Jain 1994, Musk (Version 1), UCI, doi:10.24432/C5ZK5B",
        page=uci_page(74, "musk+version+1"),
        papers=(XU,),
        preparation=(
            "A row is a conformation; the names of molecule and conformation are left out. The "
            "paper does not say which of the two versions it uses.",
        ),
        read=_musk,
    ),
    Remote(
        key="musk2",
        label="Musk, version 2",
        folder="musk2",
        files=(
            File(
                "musk2.csv",
                "14040c8891369392f87f4ce8969a20657e615e40e042f02d1a2fe2cabab01717",
                (
                    "https://raw.githubusercontent.com/rosasalberto/mil/a2c6414122da38dbfeea94d5a660e7"
                    "306e2408aa/mil/data/datasets/csv/musk2.csv",
                ),
            ),
        ),
        n=6_598,
        d=166,
        labels="musk or non-musk",
        licence=UCI_LICENCE,
        citation="Chapman and Jain 1994, Musk (Version 2), UCI, doi:10.24432/C51608",
        page=uci_page(75, "musk+version+2"),
        papers=(XU,),
        preparation=(
            "Read from the copy in the package mil 1.0.5, whose version 1 has the cells of the "
            "repository's file; no copy of the repository's version 2 could be examined.",
        ),
        read=_musk2,
    ),
    Remote(
        key="waveform2",
        label="Waveform with noise, the published sample",
        folder="waveform",
        files=(
            File(
                "waveform-+noise.data",
                "b95842ef008156c06fbdebd9b6b1c45b058dfd6592d41f21c73b8c164b9579c6",
                (
                    uci_zip(108, "waveform+database+generator+version+2"),
                    uci_legacy("waveform/waveform-+noise.data.Z"),
                ),
            ),
        ),
        n=5_000,
        d=40,
        labels="class, 3 classes",
        licence=UCI_LICENCE,
        citation="Breiman and Stone 1988, Waveform Database Generator (Version 2), UCI, "
        "doi:10.24432/C56014",
        page=uci_page(108, "waveform+database+generator+version+2"),
        papers=(XU,),
        preparation=("The features are those of the file, in its units; the last 19 are noise.",),
        read=_waveform2,
    ),
    Remote(
        key="secom",
        label="SECOM, a semiconductor line",
        folder="secom",
        files=(
            File(
                "secom.data",
                "20f0e7ee434f7dcbae0eea9ffff009a2b57f42d6b0dc9a5bd4f00782c0a3374c",
                (uci_zip(179, "secom"), uci_legacy("secom/secom.data")),
            ),
            File(
                "secom_labels.data",
                "126884cf453705c9e61a903fe906f0665a3b45ce3639e621edc5c93c89627e03",
                (uci_zip(179, "secom"), uci_legacy("secom/secom_labels.data")),
            ),
        ),
        n=1_567,
        d=590,
        labels="test of the product, pass or fail",
        licence=UCI_LICENCE,
        citation="McCann and Johnston 2008, SECOM, UCI, doi:10.24432/C54305",
        page=uci_page(179, "secom"),
        papers=(XU,),
        preparation=(
            "A missing cell becomes the median of its column, 0 in a column without any; the "
            "paper does not say what it does. No column is dropped, and no row is complete.",
        ),
        read=_secom,
    ),
    Remote(
        key="covertype",
        label="Forest cover type",
        folder="covertype",
        files=(
            File(
                "covtype.data.gz",
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
                (
                    uci_zip(31, "covertype"),
                    uci_legacy("covtype/covtype.data.gz"),
                    "https://ndownloader.figshare.com/files/5976039",
                ),
            ),
        ),
        n=581_012,
        d=54,
        labels="cover type, 7 classes",
        licence=UCI_LICENCE,
        citation="Blackard 1998, Covertype, UCI, doi:10.24432/C50K5N",
        page=uci_page(31, "covertype"),
        papers=(XU,),
        preparation=(
            "The features are ten measurements, in the units of the file, and 44 of 0 or 1 for "
            "wilderness area and soil type.",
        ),
        read=_covertype,
        openml="https://www.openml.org/d/1596",
    ),
)
