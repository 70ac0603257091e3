"""The public functions: inputs, results, and the same answers on the command line."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.utils import Bunch

import dpviz
from dpviz.auditing import AuditOptions
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable, WrongArgument
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.preparation.load import prepared_of
from dpviz.studies import options as asking
from dpviz.studies.audit import AuditKeywords

ROOT = Path(__file__).resolve().parents[2]
SECRET = 7316.4859  # No error message may show the number in this cell.
PLAN = "plan:n=1e4,spectrum=power:d=6,exponent=1.5,total=0.5"


def frame() -> pd.DataFrame:
    rows = np.round(np.random.default_rng(0).normal(size=(40, 3)), 4)
    return pd.DataFrame(rows, columns=["age", "income", "score"])


# Examples and shape --------------------------------------------------------------------------


@pytest.mark.slow
def test_every_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # Search with half the usual releases, to save time; the example's output does not change.
    monkeypatch.setattr("dpviz.simulation.goal._NARROWINGS", 0)
    flags = doctest.ELLIPSIS
    for name in dpviz.__all__:
        finder = doctest.DocTestFinder(recurse=False)
        function = inspect.unwrap(getattr(dpviz, name))
        tests = finder.find(function, name, module=inspect.getmodule(function), globs={})
        assert sum(len(test.examples) for test in tests) >= 2, name
        for test in tests:
            failures = doctest.DocTestRunner(optionflags=flags).run(test).failed
            assert failures == 0, name


def test_the_front_door_is_complete_and_typed() -> None:
    assert sorted(dpviz.__all__) == dpviz.__all__
    assert {*asking.asking_functions()} < set(dpviz.__all__)
    assert set(dpviz.__all__) <= set(dir(dpviz))
    assert (ROOT / "dpviz" / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        _ = dpviz.compere


def test_keywords_are_the_fields_of_settings_in_their_order() -> None:
    fields = [name for name in params_of(Settings) if name != "table"]
    assert list(asking.Options.__annotations__) == fields
    assert list(AuditKeywords.__annotations__) == list(params_of(AuditOptions))[1:]
    for function in (dpviz.compare, dpviz.sweep, dpviz.predict, dpviz.least):
        assert list(inspect.signature(function).parameters)[-len(fields) :] == fields
    defaults = inspect.signature(dpviz.compare).parameters
    for name in fields:
        assert defaults[name].default == params_of(Settings)[name].default


# Accepted tables -----------------------------------------------------------------------------


def numbers(found: Any) -> Any:
    """Return the results that do not depend on how a table was passed."""
    data = found.data()
    return data["reference"], data["results"]


class OnlyAnArray:
    """An array of another library, with only a shape."""

    def __init__(self, inner: np.ndarray[Any, Any]) -> None:
        self._inner = inner
        self.shape = inner.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._inner


def test_lists_lazy_frames_and_other_peoples_arrays_are_read() -> None:
    table = frame()
    options: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": ["gaussian", "data_laplace"]}
    expected = numbers(dpviz.compare(table, **options))
    kinds: list[Any] = [table.to_numpy().tolist(), pl.from_pandas(table).lazy()]
    kinds += [tuple(map(tuple, table.to_numpy())), OnlyAnArray(table.to_numpy())]
    for kind in kinds:
        assert numbers(dpviz.compare(kind, **options)) == expected, type(kind)


def test_a_bunch_is_read_with_its_names_and_its_target_as_the_label() -> None:
    table = frame()
    target = np.array(["a", "b"] * 20)
    names = list(table.columns)
    bunch = Bunch(data=table.to_numpy(), feature_names=names, target=target)
    options: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    expected = numbers(dpviz.compare(table, **options))
    for label in (None, "target"):
        comparison = dpviz.compare(bunch, label=label, **options)
        assert numbers(comparison) == expected
        prepared_table = comparison.comparison.prepared
        assert prepared_table.columns == tuple(names)
        assert (prepared_table.table.labels is not None) == (label is not None)
    with_frame = Bunch(data=table, frame=table.assign(target=target), target=target)
    thin = Bunch(data=sparse.csr_array(table), feature_names=names, target=target)
    for kind in (with_frame, thin):
        assert numbers(dpviz.compare(kind, **options)) == expected
    with pytest.raises(InvalidTable, match="nobody"):
        dpviz.compare(bunch, label="nobody", **options)


@pytest.mark.parametrize(("gap", "off"), [(False, 0.0), (True, 0.0), (False, 1e6)])
@pytest.mark.parametrize("row_bound", ["max", "1.5"])
def test_a_sparse_matrix_is_read_as_its_dense_rows_are(
    gap: bool, off: float, row_bound: str
) -> None:
    """Sparse equals dense, also with missing values, or if X'X minus the mean's loses digits."""
    sparse_rows = sparse.random_array(
        (500, 6), density=0.2, random_state=np.random.default_rng(0), format="csc"
    )
    rows = sparse_rows.toarray()
    rows[:, 0] += off
    if gap:
        rows[3, 2] = np.nan
    settings = Settings(row_bound=row_bound, scale="standardize")
    whole = prepared_of(rows[~np.isnan(rows).any(axis=1)], settings)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        table = prepared_of(kind(rows), settings)
        assert table.columns == whole.columns
        for of in ("moment", "reference"):
            A, B = (getattr(one, of).A for one in (table, whole))
            np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-9 * np.abs(B).max())
        assert table.row_bound == pytest.approx(whole.row_bound, rel=1e-9)


class OnlyAStream:
    """A frame with only column names and Arrow's stream interface."""

    def __init__(self, inner: pl.DataFrame) -> None:
        self._inner = inner

    @property
    def columns(self) -> list[str]:
        return self._inner.columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._inner.__arrow_c_stream__(requested_schema)


def test_the_stream_of_arrow_is_enough() -> None:
    table = frame()
    stream = OnlyAStream(pl.from_pandas(table))
    options: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    assert numbers(dpviz.compare(stream, **options)) == numbers(dpviz.compare(table, **options))


# Returned results ----------------------------------------------------------------------------


def test_names_of_a_table_are_escaped_in_a_notebook() -> None:
    table = frame().rename(columns={"age": "<script>alert(1)</script>"})
    table["<b>bold</b>"] = 1.0
    comparison = dpviz.compare(table, k=1, trials=2, mechanisms="gaussian")
    assert "<script>alert" not in comparison._repr_html_()
    assert "<b>" not in comparison._repr_html_()


# Refused arguments ---------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = [
    (lambda: dpviz.audit("gaussian", 1.0), WrongArgument, ("by name", "epsilon=...", "2")),
    (lambda: dpviz.compare("iris", 1.0), WrongArgument, ("by name", "epsilon=...")),
    (lambda: dpviz.compare("iris", epsilom=1), WrongArgument, ("'epsilom'", "epsilon?")),
    (lambda: dpviz.compare("iris", draws=3), WrongArgument, ("'draws'", "trials")),
    (lambda: dpviz.compare("iris", epsilon=0), InvalidSetting, ("epsilon", "0.0001", "'0'")),
    (lambda: dpviz.compare("iris", epsilon="1"), InvalidSetting, ("epsilon", "a number")),
    (lambda: dpviz.compare("iris", epsilon=float("nan")), InvalidSetting, ("epsilon", "nan")),
    (lambda: dpviz.compare("iris", k=7), InvalidSetting, ("k", "from 1 to 4", "7")),
    (lambda: dpviz.compare("iris", mechanisms="magic"), InvalidSetting, ("one of", "magic")),
    (lambda: dpviz.compare("iris", mechanisms=3), InvalidSetting, ("mechanism", "3")),
    (lambda: dpviz.compare("iris", k=4, mechanisms="ppca"), CannotRun, ("ppca", "got 4")),
    (lambda: dpviz.compare("iris", bounds=3), InvalidSetting, ("bounds", "3")),
    (lambda: dpviz.compare("iris", domain="box", bounds={"a": (0, 1)}), InvalidSetting,
     ("bounds", "every feature")),
    (lambda: dpviz.compare("iris", allocation={"a": 1.0}), DpvizError, ("a",)),
    (lambda: dpviz.compare("iris", allocation="nowhere.csv"), DpvizError, ("nowhere.csv",)),
    (lambda: dpviz.compare(3), WrongArgument, ("table must be", "data frame", "an int")),
    (lambda: dpviz.compare(None), WrongArgument, ("table must be", "NoneType")),
    (lambda: dpviz.compare([[1, 2], [3]]), InvalidTable, ("must have the same length",)),
    (lambda: dpviz.compare([["a", "b"], ["c", "d"]]), InvalidTable, ("real numbers",)),
    (lambda: dpviz.compare([1, 2, 3]), InvalidTable, ("(n, d)",)),
    (lambda: dpviz.compare({"a": [1, 2]}), WrongArgument, ("table must be", "a dict")),
    (lambda: dpviz.compare(pd.Series([1.0, 2.0])), WrongArgument, ("a Series",)),
    (lambda: dpviz.compare(pl.Series([1.0, 2.0])), WrongArgument, ("a Series",)),
    (lambda: dpviz.compare(pl.LazyFrame({"a": [1]})), InvalidTable, ("frame",)),
    (lambda: dpviz.compare(pd.DataFrame), WrongArgument, ("a type",)),
    (lambda: dpviz.compare(np.zeros(4)), InvalidTable, ("(n, d)",)),
    (lambda: dpviz.compare(np.array([["a", "b"]] * 3)), InvalidTable, ("real numbers",)),
    (lambda: dpviz.compare(np.array([[1.0, np.nan]] * 3)), InvalidTable, ("column 2",)),
    (lambda: dpviz.compare(frame()[["age"]]), InvalidTable, ("at least 2",)),
    (lambda: dpviz.compare(frame(), label="nobody"), InvalidTable, ("nobody",)),
    (lambda: dpviz.compare("nowhere.csv"), InvalidTable, ("nowhere.csv",)),
    (lambda: dpviz.compare(PLAN, domain="box"), InvalidSetting, ("domain", "plan")),
    (lambda: dpviz.sweep("iris", over="speed", values=[1]), InvalidSetting, ("over", "speed")),
    (lambda: dpviz.sweep("iris", over="k"), InvalidSetting, ("values", "0.1:10:9")),
    (lambda: dpviz.sweep("iris", over=["k"], values="1,2"), InvalidSetting, ("each axis",)),
    (lambda: dpviz.sweep("iris", over={"k": [1]}, values=[1]), InvalidSetting, ("mapping",)),
    (lambda: dpviz.sweep("iris", over="k", values=[9]), InvalidSetting, ("k", "4", "9")),
    (lambda: dpviz.least("iris"), InvalidSetting, ("goal", "recovery", "none")),
    (lambda: dpviz.least("iris", captured_share=0.9, captured_total=0.1), InvalidSetting,
     ("one of", "captured_share, captured_total")),
    (lambda: dpviz.least("iris", recovery=1.5), InvalidSetting, ("recovery", "below 1", "1.5")),
    (lambda: dpviz.least("iris", recovery=0.5, k=4), InvalidSetting, ("other than", "recovery")),
    (lambda: dpviz.least("iris", captured_share=2), InvalidSetting, ("goal", "below 1", "2")),
    (lambda: dpviz.least("iris", captured_share="much"), InvalidSetting, ("goal", "much")),
    (lambda: dpviz.least("iris", captured_share=0.9, over="k"), InvalidSetting, ("over", "n", "k")),
    (lambda: dpviz.least("iris", captured_share=0.9, confidence=1), InvalidSetting,
     ("confidence", "below 1")),
    (lambda: dpviz.predict(), InvalidSetting, ("table", "spectrum", "none")),
    (lambda: dpviz.predict("iris", spectrum=[0.1, 0.2]), InvalidSetting, ("both",)),
    (lambda: dpviz.predict(spectrum=[0.1, 0.2]), InvalidSetting, ("n must be", "none")),
    (lambda: dpviz.predict(n="many", spectrum=[0.1, 0.2]), InvalidSetting, ("n must be", "many")),
    (lambda: dpviz.predict(n=100, spectrum=3), InvalidSetting, ("spectrum", "int")),
    (lambda: dpviz.predict(n=100, spectrum=[2.0, 0.2]), InvalidSetting, ("spectrum", "at most 1")),
    (lambda: dpviz.audit(3), WrongArgument, ("mechanism", "int")),
    (lambda: dpviz.audit("magic"), InvalidSetting, ("magic",)),
    (lambda: dpviz.audit("gaussian", n=3), WrongArgument, ("'n'", "rows")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "parts"), REFUSED)
def test_a_wrong_argument_is_one_sentence(
    call: Callable[[], object], kind: type[Exception], parts: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, DpvizError)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".") or kind is CannotRun
    for part in parts:
        assert part in message


def test_no_message_about_a_frame_shows_a_cell() -> None:
    mix = pd.DataFrame({"a": [SECRET, "text", 2.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 5.0, 3.0]})
    infinite = pd.DataFrame({"a": [SECRET, np.inf, 2.0], "b": [1.0, 2.0, 3.0]})
    lists = pd.DataFrame({"a": [[SECRET], [2.0], [3.0]], "b": [1.0, 2.0, 3.0]})
    rows = np.array([[SECRET, 1.0], [np.inf, 2.0], [3.0, 4.0]])
    for bad in (mix, infinite, lists, rows):
        with pytest.raises(InvalidTable) as caught:
            dpviz.compare(bad, k=1, mechanisms="gaussian", trials=2)
        assert "7316" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_dask_array_is_read_as_the_table_it_is() -> None:
    da = pytest.importorskip("dask.array")
    rows = np.random.default_rng(3).standard_normal((90, 4)) * [3, 2, 1, 1]
    options = {"k": 2, "delta": 1e-6, "trials": 3, "mechanisms": "gaussian"}
    whole = dpviz.compare(rows, **options).table()
    answer = dpviz.compare(da.from_array(rows, chunks=(20, 3)), **options)
    assert answer.comparison.prepared.n == 90
    assert answer.comparison.prepared.columns == tuple(f"column {j}" for j in range(1, 5))
    # A sum of the same numbers in another order is equal up to rounding.
    assert answer.table()["recovery"].item() == pytest.approx(whole["recovery"].item(), rel=1e-9)
    with pytest.raises(InvalidTable, match=r"shape \(n, d\); it has 1 dimension\."):
        dpviz.compare(da.ones(5), **options)
    with pytest.raises(InvalidTable, match="must hold real numbers; its dtype is complex128"):
        dpviz.compare(da.ones((5, 3), dtype=complex), **options)


def test_numbers_under_a_mask_are_none() -> None:
    rows = np.random.default_rng(3).standard_normal((60, 3))
    with pytest.raises(InvalidTable, match=r"must hold finite numbers; some cells are masked"):
        dpviz.compare(np.ma.array(rows, mask=rows > 2), k=1, trials=2, mechanisms="gaussian")
