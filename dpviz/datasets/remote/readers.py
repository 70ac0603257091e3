"""The readers of the remote data sets, which turn raw files into a table.

A file with a digest on record is verified before reading. Chaudhuri, Sarwate and Sinha state the
number of features of each set after preprocessing, but not the method: 116, 513, 44 and 150. If a
plain encoding gives the number, that encoding is used here.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.datasets.remote.declared import Read
from dpviz.datasets.sheet import sheet_cells
from dpviz.datasets.source import Source
from dpviz.datasets.table import Table

_KDD = (
    "duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land",
    "wrong_fragment", "urgent", "hot", "num_failed_logins", "logged_in", "num_compromised",
    "root_shell", "su_attempted", "num_root", "num_file_creations", "num_shells",
    "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login", "count",
    "srv_count", "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate",
    "same_srv_rate", "diff_srv_rate", "srv_diff_host_rate", "dst_host_count",
    "dst_host_srv_count", "dst_host_same_srv_rate", "dst_host_diff_srv_rate",
    "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate",
    "dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
)  # fmt: skip
_KDD_TEXT = ("protocol_type", "service", "flag")

_CENSUS = (
    "age", "class of worker", "industry code", "occupation code", "education", "wage per hour",
    "enrolled in education", "marital status", "major industry", "major occupation", "race",
    "hispanic origin", "sex", "union member", "reason for unemployment", "employment",
    "capital gains", "capital losses", "dividends", "tax filer", "previous region",
    "previous state", "household detail", "household summary", "instance weight",
    "migration msa", "migration region", "migration within region", "same house a year ago",
    "from sunbelt", "employer size", "parents present", "father's country", "mother's country",
    "country", "citizenship", "own business", "veterans questionnaire", "veterans benefits",
    "weeks worked", "year",
)  # fmt: skip
_CENSUS_NUMBERS = (
    "age", "wage per hour", "capital gains", "capital losses", "dividends", "instance weight",
    "employer size", "weeks worked",
)  # fmt: skip

_LOCALIZATION = ("sequence", "tag", "timestamp", "date", "x", "y", "z", "activity")

_INSURANCE = (
    "MOSTYPE", "MAANTHUI", "MGEMOMV", "MGEMLEEF", "MOSHOOFD", "MGODRK", "MGODPR", "MGODOV",
    "MGODGE", "MRELGE", "MRELSA", "MRELOV", "MFALLEEN", "MFGEKIND", "MFWEKIND", "MOPLHOOG",
    "MOPLMIDD", "MOPLLAAG", "MBERHOOG", "MBERZELF", "MBERBOER", "MBERMIDD", "MBERARBG",
    "MBERARBO", "MSKA", "MSKB1", "MSKB2", "MSKC", "MSKD", "MHHUUR", "MHKOOP", "MAUT1", "MAUT2",
    "MAUT0", "MZFONDS", "MZPART", "MINKM30", "MINK3045", "MINK4575", "MINK7512", "MINK123M",
    "MINKGEM", "MKOOPKLA", "PWAPART", "PWABEDR", "PWALAND", "PPERSAUT", "PBESAUT", "PMOTSCO",
    "PVRAAUT", "PAANHANG", "PTRACTOR", "PWERKT", "PBROM", "PLEVEN", "PPERSONG", "PGEZONG",
    "PWAOREG", "PBRAND", "PZEILPL", "PPLEZIER", "PFIETS", "PINBOED", "PBYSTAND", "AWAPART",
    "AWABEDR", "AWALAND", "APERSAUT", "ABESAUT", "AMOTSCO", "AVRAAUT", "AAANHANG", "ATRACTOR",
    "AWERKT", "ABROM", "ALEVEN", "APERSONG", "AGEZONG", "AWAOREG", "ABRAND", "AZEILPL",
    "APLEZIER", "AFIETS", "AINBOED", "ABYSTAND",
)  # fmt: skip
_INSURANCE_CODES = ("MOSTYPE", "MGEMOMV", "MGEMLEEF", "MOSHOOFD", "MKOOPKLA")

_COVERTYPE_NAMES = (
    "Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology", "Horizontal_Distance_To_Roadways", "Hillshade_9am",
    "Hillshade_Noon", "Hillshade_3pm", "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area_{j}" for j in range(1, 5)), *(f"Soil_Type_{j}" for j in range(1, 41)),
)  # fmt: skip

_ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
_ADULT_NUMBERS = (
    "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week",
)  # fmt: skip


# Text to numbers and categories --------------------------------------------------------------


def read_columns(path: Path, names: Sequence[str], text: Sequence[str] = ()) -> pd.DataFrame:
    """Read the columns of a text without a header, numbers as float64.

    Parameters
    ----------
    path : Path
        A plain or gzipped text; a gzip is read in pieces and never unpacked to disk.
    names : sequence of str
        Names of all columns, in order.
    text : sequence of str
        Columns of categories.

    Raises
    ------
    InvalidTable
        If a line has another number of cells, or a numeric cell is not a number.
    """
    category = pa.dictionary(pa.int32(), pa.string())
    types = {name: category if name in text else pa.float64() for name in names}
    try:
        table = csv.read_csv(
            Source(path, path.name).open_text(),
            read_options=csv.ReadOptions(column_names=list(names)),
            # No file here quotes its cells, so a quotation mark is an ordinary character.
            parse_options=csv.ParseOptions(quote_char=False),
            # Read a question mark as a category; each table's own reader later makes it missing.
            convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except (pa.ArrowInvalid, EOFError, gzip.BadGzipFile, zlib.error):
        raise InvalidTable(
            f"{path.name} must hold {len(names)} values a line; the file is damaged or wrong."
        ) from None
    frame: pd.DataFrame = table.unify_dictionaries().to_pandas(self_destruct=True)
    for name in text:
        # Remove blanks, which follow a comma in some files: both spellings are one category.
        frame[name] = _codes(frame[name].astype(object).str.strip())
    return frame


def _codes(values: pd.Series) -> pd.Series:
    """Return a column with its sorted values as categories, named without decimals."""
    codes = values.astype("category")
    if pd.api.types.is_numeric_dtype(codes.cat.categories.dtype):
        codes = codes.cat.rename_categories([str(round(value)) for value in codes.cat.categories])
    return codes


def features(frame: pd.DataFrame) -> tuple[FloatArray, tuple[str, ...]]:
    """Return rows of numbers and of one 0/1 feature per category, and their names.

    Features of categories are named ``name = category``. Columns are converted one by one, so half
    a million rows need no second copy.
    """
    columns: list[str] = []
    for name, values in frame.items():
        codes = isinstance(values.dtype, pd.CategoricalDtype)
        columns += [f"{name} = {one}" for one in values.cat.categories] if codes else [str(name)]
    rows = np.zeros((len(frame), len(columns)))
    everyone, at = np.arange(len(frame)), 0
    for _, values in frame.items():
        if isinstance(values.dtype, pd.CategoricalDtype):
            rows[everyone, at + values.cat.codes.to_numpy(dtype=np.intp)] = 1.0
            at += len(values.cat.categories)
        else:
            rows[:, at] = values
            at += 1
    return rows, tuple(columns)


def read_numbers(lines: Path | Iterable[str], delimiter: str | None = None) -> FloatArray:
    """Return the numbers of lines without a header; the default delimiter is blanks."""
    cells: FloatArray = np.loadtxt(lines, delimiter=delimiter, ndmin=2, encoding="latin-1")
    return cells


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}{j}" for j in range(1, count + 1))


def _names(labels: pd.Series) -> NDArray[np.str_]:
    """Return the category of each row as text."""
    names: NDArray[np.str_] = np.array(list(labels.cat.categories))[labels.cat.codes]
    return names


def _lists_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the public assumption of a table whose fields became 0/1 features."""
    return (f"the lists of categories in {', '.join(names[:-1])} and {names[-1]}",)


def _with_class(key: str, file: str, columns: tuple[str, ...], label: str, folder: Path) -> Table:
    """Return the table of a file of numbers whose last column is the class."""
    cells = read_numbers(folder / file, ",")
    return Table(key, cells[:, :-1].copy(), columns, cells[:, -1].astype(np.int64), label)


# Chanyaswad, Dytso, Poor and Mittal 2018 -----------------------------------------------------

_BLOOD_TESTS = ("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks")


def _movement(folder: Path) -> Table:
    paths = (folder / f"dataset/MovementAAL_RSS_{number}.csv" for number in range(1, 315))
    rows = np.concatenate([read_numbers(path, ",") for path in paths])
    return Table("movementaal", rows, tuple(f"ANC{j}" for j in range(4)))


def _cardiotocography(folder: Path) -> Table:
    # The sheet Data has column numbers, names and recordings. Then a blank row and two rows of
    # column sums follow, which have no state.
    _, names, *rows = sheet_cells(folder / "CTG.xls", "CTG.xls", "Data")
    first, state = names.index("LB"), names.index("NSP")
    recordings = [row for row in rows if len(row) > state and row[state].strip()]
    cells = np.array([[*row[first : first + 21], row[state]] for row in recordings], dtype=float)
    states = np.array(["", "normal", "suspect", "pathologic"])[cells[:, -1].astype(np.int64)]
    return Table(
        "cardiotocography", cells[:, :-1].copy(), tuple(names[first : first + 21]), states, "NSP"
    )


# Tables of Xu, Yang and Bai 2019: two of the paper's five folders have two versions. --------------

_TAB_IN_A_NUMBER = re.compile(r"(?<=\d)\t(?=\d)")


def _semeion(folder: Path) -> Table:
    cells = read_numbers(folder / "semeion.data")
    pixels, marks = cells[:, :256], cells[:, 256:]  # Each row has a mark for one of ten digits.
    columns = tuple(f"pixel {row},{column}" for row in range(1, 17) for column in range(1, 17))
    bounds = np.tile(np.array([0.0, 1.0]), (256, 1))  # Each pixel is 0 (blank) or 1 (dark).
    return Table("semeion", pixels.copy(), columns, marks.argmax(axis=1), "digit", bounds=bounds)


def _waveform(folder: Path) -> Table:
    lines = (folder / "waveform.data").read_text(encoding="latin-1").splitlines()
    notes = tuple(
        f"Line {number} of waveform.data has a tab within a number, which was removed: the number "
        "then has two decimals like all others."
        for number, line in enumerate(lines, start=1)
        if _TAB_IN_A_NUMBER.search(line)
    )
    cells = read_numbers([_TAB_IN_A_NUMBER.sub("", line) for line in lines], ",")
    kinds = cells[:, -1].astype(np.int64)
    return Table("waveform", cells[:, :-1].copy(), _numbered("x", 21), kinds, "class", notes=notes)


def _musk(key: str, file: str, names: Sequence[str], text: Sequence[str], folder: Path) -> Table:
    # Leave out the names of molecule and shape, because a molecule has many shapes.
    frame = read_columns(folder / file, names, text)
    rows, columns = features(frame[list(_numbered("f", 166))])
    labels = np.where(frame["class"] == 1, "musk", "non-musk")
    return Table(key, rows, columns, labels, "class")


def _secom(folder: Path) -> Table:
    rows = pd.DataFrame(read_numbers(folder / "secom.data"))
    marks = (folder / "secom_labels.data").read_text(encoding="latin-1").split("\n")
    verdicts = [line.split()[0] for line in marks if line.strip()]
    gaps = rows.isna()
    # A sensor without any value becomes constant, and constant columns are dropped later.
    whole = rows.fillna(rows.median()).fillna(0.0).to_numpy(dtype=np.float64)
    note = f"{int(gaps.sum().sum())} cells in {int(gaps.any().sum())} of 590 columns were missing."
    return Table(
        "secom",
        np.ascontiguousarray(whole),
        _numbered("sensor ", 590),
        np.where(np.array(verdicts, dtype=float) > 0, "fail", "pass"),
        "test",
        notes=(note,),
        assumed_public=("the medians that replaced missing cells",),
    )


def _covertype(folder: Path) -> Table:
    frame = read_columns(folder / "covtype.data.gz", (*_COVERTYPE_NAMES, "cover type"))
    kinds = frame.pop("cover type").to_numpy().astype(np.int64)
    rows, columns = features(frame)
    return Table("covertype", rows, columns, kinds, "cover type")


# Chaudhuri, Sarwate and Sinha 2012 -----------------------------------------------------------


def _insurance(folder: Path) -> Table:
    train, rest, answers = (
        read_numbers(folder / name)
        for name in ("ticdata2000.txt", "ticeval2000.txt", "tictgts2000.txt")
    )
    # The contest had a training part and a test part; this table joins both.
    frame = pd.DataFrame(np.vstack([train[:, :-1], rest]), columns=list(_INSURANCE))
    for name in _INSURANCE_CODES:  # These codes name kinds of customers; their size means nothing.
        frame[name] = _codes(frame[name])
    rows, columns = features(frame)
    labels = np.concatenate([train[:, -1], answers[:, 0]]).astype(np.int64)
    return Table(
        "insurance", rows, columns, labels, "CARAVAN", assumed_public=_lists_of(_INSURANCE_CODES)
    )


def _kddcup99(folder: Path) -> Table:
    path, names = folder / "kddcup.data_10_percent.gz", (*_KDD, "connection")
    frame = read_columns(path, names, (*_KDD_TEXT, "connection"))
    # As in the paper, the label only says normal or attack: all attacks form one class.
    labels = np.where(frame.pop("connection") == "normal.", "normal", "attack")
    rows, columns = features(frame)
    public = _lists_of(_KDD_TEXT)
    return Table("kddcup99", rows, columns, labels, "connection", assumed_public=public)


def _leaks(count: int, label: str, before: str = "") -> str:
    return (
        f"{before}The last {'two' if count == 2 else count} features are the label, {label}, "
        "itself: whoever predicts it from them predicts nothing."
    )


def _census(folder: Path, *, as_paper: bool = False) -> Table:
    names = (*_CENSUS, "income")
    text = [name for name in names if name not in _CENSUS_NUMBERS]
    frame = read_columns(folder / "census-income.data", names, text)
    # The file writes the two classes as "- 50000." and "50000+.".
    income = frame["income"].cat.rename_categories(
        lambda kind: "below 50,000" if kind.startswith("-") else "50,000 or more"
    )
    frame["income"] = income
    notes: tuple[str, ...] = ()
    if as_paper:  # The paper has 513 features: they include the weight and the label's two classes.
        notes = (_leaks(2, "income", "The instance weight is a feature too. "),)
    else:  # Leave out the weight, which counts the people that a row represents.
        frame = frame.drop(columns=["instance weight", "income"])
    rows, columns = features(frame)
    public = ("the lists of values of the nominal fields",)
    return Table(
        "census", rows, columns, _names(income), "income", notes=notes, assumed_public=public
    )


def _localization(folder: Path, *, as_paper: bool = False) -> Table:
    text = ("sequence", "tag", "date", "activity")
    frame = read_columns(folder / "ConfLongDemo_JSI.txt", _LOCALIZATION, text)
    activity = frame["activity"]
    # Leave out the date, which repeats the time stamp, and the activity, which is the label.
    left_out = ["date"] if as_paper else ["date", "activity"]
    rows, columns = features(frame.drop(columns=left_out))
    notes = (_leaks(len(activity.cat.categories), "activity"),) if as_paper else ()
    public = _lists_of(("sequence", "tag", "activity") if as_paper else ("sequence", "tag"))
    return Table(
        "localization", rows, columns, _names(activity), "activity", notes=notes,
        assumed_public=public,
    )  # fmt: skip


def _adult(folder: Path) -> Table:
    """Return a mixed table with missing values: numbers, categories and question marks."""
    names = (*_ADULT, "income")
    text = [name for name in names if name not in _ADULT_NUMBERS]
    whole = read_columns(folder / "adult.data", names, text)
    # Leave out rows with a missing category, which would have 0 in all features of that column.
    frame = whole[~(whole[text[:-1]] == "?").any(axis=1)].copy()
    for name in text:
        frame[name] = frame[name].cat.remove_unused_categories()
    income = frame.pop("income")
    rows, columns = features(frame)
    note = f"{len(whole) - len(rows):,} of {len(whole):,} rows with a question mark were left out."
    public = _lists_of(text[:-1])
    return Table(
        "adult", rows, columns, _names(income), "income", notes=(note,), assumed_public=public
    )


_MUSK = _numbered("f", 166)
READERS: dict[str, Read] = {
    "liver": partial(_with_class, "liver", "bupa.data", _BLOOD_TESTS, "selector"),
    "movementaal": _movement,
    "cardiotocography": _cardiotocography,
    "semeion": _semeion,
    "waveform": _waveform,
    "musk": partial(
        _musk, "musk", "clean1.data", ("molecule", "conformation", *_MUSK, "class"),
        ("molecule", "conformation"),
    ),
    "musk2": partial(_musk, "musk2", "musk2.csv", ("class", "molecule", *_MUSK), ()),
    "waveform2": partial(
        _with_class, "waveform2", "waveform-+noise.data", _numbered("x", 40), "class"
    ),
    "secom": _secom,
    "covertype": _covertype,
    "insurance": _insurance,
    "kddcup99": _kddcup99,
    "census": _census,
    "localization": _localization,
    "adult": _adult,
}  # fmt: skip
AS_PAPER: dict[str, Read] = {
    "census": partial(_census, as_paper=True),
    "localization": partial(_localization, as_paper=True),
}
"""Readers that give the number of features in a paper, if it differs."""
