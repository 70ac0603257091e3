"""The four sets of Chaudhuri, Sarwate and Sinha 2012 (near-optimal private PCA).

The paper states how many features each set has after preprocessing, and not how
they were made: 116, 513, 44 and 150. Where a plain encoding gives the number it
is what is done here, and the sentences of each set say what was found out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.errors import InvalidTable
from dpviz.datasets.remote.declared import (
    CHAUDHURI,
    UCI_LICENCE,
    File,
    Remote,
    uci_legacy,
    uci_page,
    uci_zip,
)
from dpviz.datasets.remote.reading import (
    Codes,
    categories,
    categories_of,
    features,
    levels,
    named,
    parts_of,
    read_columns,
    read_numbers,
)
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

_CENSUS_PUBLIC = ("the lists of values of the nominal fields",)

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


def _kddcup99(folder: Path) -> Table:
    names = (*_KDD, "connection")
    path = folder / "kddcup.data_10_percent.gz"
    table = read_columns(path, names, text=(*_KDD_TEXT, "connection"))
    # every kind of attack is one class: as in the paper's task: the label is normal or not
    codes, kinds = categories(table["connection"])
    normal = np.array([kind == "normal." for kind in kinds])
    labels = np.where(normal[codes], "normal", "attack")
    rows, columns = features(parts_of(table, _KDD))
    return Table(
        "kddcup99", rows, columns, labels, "connection", assumed_public=categories_of(_KDD_TEXT)
    )


def _census_columns(folder: Path) -> Any:
    names = (*_CENSUS, "income")
    text = [name for name in names if name not in _CENSUS_NUMBERS]
    return read_columns(folder / "census-income.data", names, text=text)


def _income(table: Any) -> Codes:
    codes, kinds = categories(table["income"])
    # the file writes "- 50000." and "50000+."
    return codes, ["below 50,000" if kind.startswith("-") else "50,000 or more" for kind in kinds]


def _census(folder: Path) -> Table:
    table = _census_columns(folder)
    # the weight says how many people a row stands for, and nothing of the one in it
    kept = [name for name in _CENSUS if name != "instance weight"]
    rows, columns = features(parts_of(table, kept))
    return Table(
        "census", rows, columns, named(_income(table)), "income", assumed_public=_CENSUS_PUBLIC
    )


def _census_as_paper(folder: Path) -> Table:
    table = _census_columns(folder)
    income = _income(table)
    # the 513 features that are printed are ours, the weight and the two classes of the label
    rows, columns = features([*parts_of(table, _CENSUS), ("income", income)])
    return Table(
        "census",
        rows,
        columns,
        named(income),
        "income",
        notes=(_leaks("two", "income", "The instance weight is a feature too. "),),
        assumed_public=_CENSUS_PUBLIC,
    )


def _localization_columns(folder: Path) -> Any:
    text = ("sequence", "tag", "date", "activity")
    return read_columns(folder / "ConfLongDemo_JSI.txt", _LOCALIZATION, text=text)


def _localization(folder: Path) -> Table:
    table = _localization_columns(folder)
    # the date is the time stamp written out, and the activity is the label
    kept = [name for name in _LOCALIZATION if name not in ("date", "activity")]
    rows, columns = features(parts_of(table, kept))
    return Table(
        "localization",
        rows,
        columns,
        named(categories(table["activity"])),
        "activity",
        assumed_public=categories_of(_LOCALIZATION[:2]),
    )


def _localization_as_paper(folder: Path) -> Table:
    table = _localization_columns(folder)
    activity = categories(table["activity"])
    kept = [name for name in _LOCALIZATION if name != "date"]
    rows, columns = features(parts_of(table, kept))
    return Table(
        "localization",
        rows,
        columns,
        named(activity),
        "activity",
        notes=(_leaks(str(len(activity[1])), "activity"),),
        assumed_public=categories_of((*_LOCALIZATION[:2], "activity")),
    )


def _leaks(count: str, label: str, before: str = "") -> str:
    return (
        f"{before}The last {count} features are the label, {label}, itself: whoever predicts it "
        "from them predicts nothing."
    )


def _insurance(folder: Path) -> Table:
    width = len(_INSURANCE)
    train = read_numbers(folder / "ticdata2000.txt", width + 1)
    rest = read_numbers(folder / "ticeval2000.txt", width)
    answers = read_numbers(folder / "tictgts2000.txt", 1)
    if len(answers) != len(rest):
        raise InvalidTable(
            f"tictgts2000.txt must hold a line for each of the {len(rest)} rows of "
            f"ticeval2000.txt; it holds {len(answers)}."
        )
    # both parts of the contest are one table here
    cells = np.vstack([train[:, :-1], rest])
    parts: list[tuple[str, Any]] = [
        # numbers that only name a kind of customer: more of one means nothing
        (name, levels(cells[:, j]) if name in _INSURANCE_CODES else cells[:, j])
        for j, name in enumerate(_INSURANCE)
    ]
    rows, columns = features(parts)
    labels = np.concatenate([train[:, -1], answers[:, 0]]).astype(np.int64)
    return Table(
        "insurance",
        rows,
        columns,
        labels,
        "CARAVAN",
        assumed_public=categories_of(_INSURANCE_CODES),
    )


_COIL = uci_zip(125, "insurance+company+benchmark+coil+2000")

SETS = (
    Remote(
        key="insurance",
        label="Insurance company benchmark (CoIL 2000)",
        folder="coil2000",
        files=(
            File(
                "ticdata2000.txt",
                "4e967da7c4d1759b9f2ddbd39aace45af6a6685a7a7ecd6febb161a60dd8fe0a",
                (_COIL, uci_legacy("tic-mld/ticdata2000.txt")),
            ),
            File(
                "ticeval2000.txt",
                "26bd871a5fef8dc05b9505bc58af2a47479f3782db69fcd42e43b80da48b1f3d",
                (_COIL, uci_legacy("tic-mld/ticeval2000.txt")),
            ),
            File(
                "tictgts2000.txt",
                "43233f77ce0c182b3ec6b175a6d9c53a0ca8e6d4a5d76e01d8165935d43d7e4b",
                (_COIL, uci_legacy("tic-mld/tictgts2000.txt")),
            ),
        ),
        n=9_822,
        d=150,
        labels="CARAVAN, 1 for the holder of a caravan policy",
        licence=UCI_LICENCE,
        citation="van der Putten 2000, Insurance Company Benchmark (COIL 2000), UCI, "
        "doi:10.24432/C5630S",
        page=uci_page(125, "insurance+company+benchmark+coil+2000"),
        papers=(CHAUDHURI,),
        preparation=(
            "The 5,822 training rows are followed by the 4,000 evaluation rows with the targets "
            "published later.",
            "The five fields that are codes of a class of households (MOSTYPE 40, MGEMOMV 6, "
            "MGEMLEEF 6, MOSHOOFD 10 and MKOOPKLA 8 codes in use) became one 0/1 feature for each "
            "code; with the 80 other fields that makes the 150 features of the paper, which does "
            "not say how it encodes them.",
        ),
        read=_insurance,
        openml="https://www.openml.org/d/298",
        paper_d=150,
    ),
    Remote(
        key="kddcup99",
        label="KDD Cup 1999, ten per cent sample",
        folder="kddcup99",
        files=(
            File(
                "kddcup.data_10_percent.gz",
                "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
                (
                    uci_zip(130, "kdd+cup+1999+data"),
                    uci_legacy("kddcup99-mld/kddcup.data_10_percent.gz"),
                    "https://ndownloader.figshare.com/files/5976042",
                ),
                text="f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
            ),
        ),
        n=494_021,
        d=118,
        labels="connection, normal or attack",
        licence=UCI_LICENCE,
        citation="Stolfo, Fan, Lee, Prodromidis and Chan 1999, KDD Cup 1999 Data, UCI, "
        "doi:10.24432/C51C7N",
        page=uci_page(130, "kdd+cup+1999+data"),
        papers=(CHAUDHURI,),
        preparation=(
            "protocol_type, service and flag (3, 66 and 11 categories) became one 0/1 feature for "
            "each category: 118 features, of which num_outbound_cmds and is_host_login never vary; "
            "the 116 others are those of the paper.",
            "All kinds of attack are one class, as in the paper's task normal against all.",
        ),
        read=_kddcup99,
        openml="https://www.openml.org/d/1113",
        paper_d=116,
    ),
    Remote(
        key="census",
        label="Census income (KDD), 1994 and 1995",
        folder="census-income",
        files=(
            File(
                "census-income.data",
                None,
                (
                    uci_zip(117, "census+income+kdd"),
                    uci_legacy("census-income-mld/census-income.data.gz"),
                    uci_legacy("census-income-mld/census.tar.gz"),
                ),
            ),
        ),
        n=199_523,
        d=510,
        labels="income, below 50,000 or more",
        licence=UCI_LICENCE,
        citation="U.S. Census Bureau 2000, Census-Income (KDD), UCI, doi:10.24432/C5N30T",
        page=uci_page(117, "census+income+kdd"),
        papers=(CHAUDHURI,),
        preparation=(
            "The training part alone, which has the paper's 199,523 rows. The 33 nominal fields "
            "became one 0/1 feature for each of their 503 values, a question mark being one; 7 "
            "are numbers. The instance weight is left out, as the set's description asks.",
            "The paper states 513 features and not how: the weight and the two classes of income, "
            "which is the label, would make them 513.",
        ),
        read=_census,
        openml="https://www.openml.org/d/4535",
        paper_d=513,
        read_as_paper=_census_as_paper,
    ),
    Remote(
        key="localization",
        label="Localization data for person activity",
        folder="localization",
        files=(
            File(
                "ConfLongDemo_JSI.txt",
                None,
                (
                    uci_zip(196, "localization+data+for+person+activity"),
                    uci_legacy("00196/ConfLongDemo_JSI.txt"),
                ),
            ),
        ),
        n=164_860,
        d=33,
        labels="activity, 11 classes",
        licence=UCI_LICENCE,
        citation="Vidulin, Lustrek, Kaluza, Piltaver and Krivec 2010, Localization Data for Person "
        "Activity, UCI, doi:10.24432/C57G8X",
        page=uci_page(196, "localization+data+for+person+activity"),
        papers=(CHAUDHURI,),
        preparation=(
            "The 25 sequences and 4 tags became one 0/1 feature each; with the timestamp and the "
            "coordinates x, y and z that makes 33. The date repeats the timestamp and is left out.",
            "The paper states 44 features and not how: the 11 activities, which are the label, as "
            "0/1 features would make them 44, and its accuracy of 100 % agrees.",
        ),
        read=_localization,
        paper_d=44,
        read_as_paper=_localization_as_paper,
    ),
)
