"""The tables that scikit-learn ships."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.datasets.builtin import BuiltIn
from dpviz.datasets.table import Table

_SIZES = ("length", "width")
_OF_NUCLEI = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave points", "symmetry", "fractal dimension",
)  # fmt: skip
_OF_WINES = (
    "alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols",
    "flavanoids", "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue",
    "od280/od315_of_diluted_wines", "proline",
)  # fmt: skip
UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository), shipped with scikit-learn"


def _named(codes: NDArray[Any], names: NDArray[Any]) -> NDArray[Any]:
    """Return the class name of each row; shape (n,)."""
    labels: NDArray[Any] = np.asarray([str(name) for name in names])[np.asarray(codes, dtype=int)]
    return labels


def _rows(data: NDArray[Any]) -> FloatArray:
    """Return a C-ordered float64 copy, so that freezing it leaves the original writable."""
    return np.array(data, dtype=np.float64, order="C")


def _file_of_sklearn(name: str) -> Path | None:
    """Return the path of a scikit-learn data file, or None if the file is elsewhere.

    Importing scikit-learn would take longer than the first chart of its small tables.
    """
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "datasets" / "data" / name
    return path if path.is_file() else None


def _digits_of_sklearn() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows and classes of scikit-learn's digits."""
    path = _file_of_sklearn("digits.csv.gz")
    if path is not None:
        values = np.loadtxt(path, delimiter=",")
        return values[:, :-1], values[:, -1]
    from sklearn.datasets import load_digits

    rows, classes = load_digits(return_X_y=True)
    return rows, classes


def _classes_of_sklearn(name: str, load: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows, classes and class names of a scikit-learn table, from its file or its loader."""
    path = _file_of_sklearn(name)
    if path is not None:
        with path.open(encoding="utf-8") as lines:
            _, _, *names = next(lines).strip().split(",")
            values = np.loadtxt(lines, delimiter=",")
        return values[:, :-1], values[:, -1], np.asarray(names)
    from sklearn import datasets

    bunch = getattr(datasets, load)()
    return bunch.data, bunch.target, bunch.target_names


def _digits() -> Table:
    rows, classes = _digits_of_sklearn()
    columns = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    # A pixel counts the dark dots in a block of 4 x 4, so it lies between 0 and 16.
    bounds = np.tile(np.array([0.0, 16.0]), (len(columns), 1))
    return Table("digits", _rows(rows), columns, classes.astype(np.int64), "digit", bounds=bounds)


def _breast_cancer() -> Table:
    rows, classes, names = _classes_of_sklearn("breast_cancer.csv", "load_breast_cancer")
    columns = tuple(
        form.format(what) for form in ("mean {}", "{} error", "worst {}") for what in _OF_NUCLEI
    )
    return Table("breast_cancer", _rows(rows), columns, _named(classes, names), "diagnosis")


def _wine() -> Table:
    rows, classes, names = _classes_of_sklearn("wine_data.csv", "load_wine")
    return Table("wine", _rows(rows), _OF_WINES, _named(classes, names), "cultivar")


def _iris() -> Table:
    rows, classes, names = _classes_of_sklearn("iris.csv", "load_iris")
    columns = tuple(f"{part} {what} (cm)" for part in ("sepal", "petal") for what in _SIZES)
    return Table("iris", _rows(rows), columns, _named(classes, names), "species")


def _diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes()
    return Table(
        "diabetes",
        _rows(bunch.data),
        tuple(str(name) for name in bunch.feature_names),
        np.array(bunch.target, dtype=np.float64),
        "disease progression",
        notes=(
            "The diabetes table arrives already centred and scaled to unit sums of squares, "
            "as scikit-learn ships it.",
        ),
        assumed_public=(
            "the means and scales with which scikit-learn standardised the diabetes table",
        ),
    )


TABLES = (
    BuiltIn(
        "digits",
        "Handwritten digits",
        "8 x 8 images of digits; each pixel is between 0 and 16, bounds that are public.",
        1797,
        64,
        "digit, 0 to 9",
        "Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI, "
        "doi:10.24432/C50P49",
        UCI_LICENCE,
        _digits,
        10,
    ),
    BuiltIn(
        "breast_cancer",
        "Breast cancer (Wisconsin diagnostic)",
        "Measurements of cell nuclei, on scales that differ by a factor of thousands.",
        569,
        30,
        "diagnosis, 2 classes",
        "Wolberg, Mangasarian, Street and Street 1995, Breast Cancer Wisconsin (Diagnostic), "
        "UCI, doi:10.24432/C5DW2B",
        UCI_LICENCE,
        _breast_cancer,
        20,
    ),
    BuiltIn(
        "wine",
        "Wine",
        "Chemical analyses of wines from three cultivars: few rows, so privacy is dear.",
        178,
        13,
        "cultivar, 3 classes",
        "Aeberhard and Forina 1991, Wine, UCI, doi:10.24432/C5PC7J",
        UCI_LICENCE,
        _wine,
        30,
    ),
    BuiltIn(
        "iris",
        "Iris",
        "Four flower measurements of three species.",
        150,
        4,
        "species, 3 classes",
        "Fisher 1936, Iris, UCI, doi:10.24432/C56C76",
        UCI_LICENCE,
        _iris,
        40,
    ),
    BuiltIn(
        "diabetes",
        "Diabetes",
        "Ten baseline variables of patients, already standardised with the data's own scales.",
        442,
        10,
        "disease progression after one year, a number",
        "Efron, Hastie, Johnstone and Tibshirani 2004, Least Angle Regression, "
        "doi:10.1214/009053604000000067",
        "no licence stated by the authors; shipped with scikit-learn (BSD-3-Clause)",
        _diabetes,
        50,
    ),
)
