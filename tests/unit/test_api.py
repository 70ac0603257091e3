"""The front door: what it takes, what it hands back, and that the command line says the same."""

from __future__ import annotations

import base64
import doctest
import inspect
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.utils import Bunch

import dpviz
from dpviz import datasets
from dpviz.auditing import AuditOptions
from dpviz.cli import main
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable, WrongArgument
from dpviz.core.metrics import METRICS, chance_share
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import plan_of, prepared_of
from dpviz.studies import Answer
from dpviz.studies import options as asking
from dpviz.studies.audit import AuditKeywords
from dpviz.studies.compare import Compared
from dpviz.studies.least import Needed
from dpviz.studies.predict import Predictions
from dpviz.studies.sweep import Swept

ROOT = Path(__file__).resolve().parents[2]
SECRET = 7316.4859  # a cell that no message may show
PLAN = "plan:n=1e4,spectrum=power:d=6,exponent=1.5,total=0.5"


def frame() -> pd.DataFrame:
    rows = np.round(np.random.default_rng(0).normal(size=(40, 3)), 4)
    return pd.DataFrame(rows, columns=["age", "income", "score"])


# Examples and shape --------------------------------------------------------------------------


@pytest.mark.slow
def test_every_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # what an example says of a card holds for one of half the draws
    monkeypatch.setattr("dpviz.lessons.decide.DRAWS", 16)
    monkeypatch.setattr("dpviz.simulation.goal._NARROWINGS", 0)
    flags = doctest.ELLIPSIS
    for name in dpviz.__all__:
        finder = doctest.DocTestFinder(recurse=False)
        function = inspect.unwrap(getattr(dpviz, name))
        tests = finder.find(function, name, module=inspect.getmodule(function), globs={})
        assert sum(len(test.examples) for test in tests) >= 2, name
        for test in tests:
            failed = doctest.DocTestRunner(optionflags=flags).run(test).failed
            assert failed == 0, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"), [("README.md", 4), ("docs/python.md", 10), ("docs/private_pca.md", 10)]
)
def test_the_examples_of_a_page_run(name: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = text.split("```python\n")[1:]
    assert blocks
    source = "\n".join(block.partition("```")[0] for block in blocks)
    test = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    assert len(test.examples) >= least
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_a_wrong_example_fails() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed == 1


@pytest.mark.parametrize("name", asking.asking_functions())
def test_every_function_says_what_a_reader_needs(name: str) -> None:
    words = inspect.getdoc(getattr(dpviz, name)) or ""
    for section in ("Returns", "See Also", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}" in words
    if inspect.signature(getattr(dpviz, name)).parameters:
        for section in ("Parameters", "Raises", "Notes"):
            assert f"\n{section}\n{'-' * len(section)}" in words


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


# The same bytes as the command line ----------------------------------------------------------


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


COMPARED: list[tuple[str, dict[str, Any]]] = [
    ("iris --trials 2 --k 1", {"table": "iris", "trials": 2, "k": 1}),
    (
        "wine --epsilon .5 --delta 1e-5 --k 3 --trials 2 --relation zero-out "
        "--mechanism mvg[theorem=3] --mechanism gaussian",
        {
            "table": "wine", "epsilon": 0.5, "delta": 1e-5, "k": 3, "trials": 2,
            "relation": "zero-out", "mechanisms": ["mvg[theorem=3]", "gaussian"],
        },
    ),
    (
        "iris --domain box --center midpoint --trials 2 --mechanism laplace --k 1",
        {
            "table": "iris", "domain": "box", "center": "midpoint", "trials": 2,
            "mechanisms": parse_variant("laplace"), "k": 1,
        },
    ),
    (
        f"{PLAN} --trials 2 --mechanism gaussian",
        {"table": PLAN, "trials": 2, "mechanisms": "gaussian"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("words", "called"), COMPARED, ids=[words for words, _ in COMPARED])
def test_compare_writes_the_bytes_of_the_command_line(
    words: str, called: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, "compare", *words.split(), "--format", "json")
    assert dpviz.compare(**called).to_json() + "\n" == shown


def test_the_other_commands_write_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("audit", "wishart", "--epsilon", "1", "--trials", "400", "--format", "json")
    found = dpviz.audit("wishart", epsilon=1, trials=400)
    assert found.to_json() + "\n" == printed(capsys, *words)
    assert dpviz.list_mechanisms().to_json() + "\n" == printed(
        capsys, "mechanisms", "--format", "json"
    )
    assert dpviz.list_datasets().to_json() + "\n" == printed(capsys, "datasets", "--format", "json")


def test_sweep_writes_the_file_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "sweep iris --over epsilon --values .3,3 --over k --values 1,2 --trials 2 --cache none"
    printed(
        capsys, *words.split(), "--mechanism", "gaussian", "--out", str(tmp_path / "command.csv")
    )
    found = dpviz.sweep(
        "iris", over=["epsilon", "k"], values=[".3,3", [1, 2]], trials=2, mechanisms="gaussian"
    )
    found.write(tmp_path / "python.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "command.csv").read_bytes()


# What is taken as a table --------------------------------------------------------------------


def numbers(found: Any) -> Any:
    """Return what does not depend on how a table was handed over."""
    data = found.data()
    return data["reference"], data["results"]


def test_every_kind_of_frame_gives_the_numbers_of_the_file(tmp_path: Path) -> None:
    table = frame()
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    named: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": ["gaussian", "data_laplace"]}
    expected = numbers(dpviz.compare(str(path), **named))
    kinds: list[Any] = [path, table, table.set_index("age", drop=False), pl.from_pandas(table)]
    kinds += [pa.Table.from_pandas(table), table.to_numpy(), datasets.load(str(path))]
    for kind in kinds:
        assert numbers(dpviz.compare(kind, **named)) == expected, type(kind)
    prepared = dpviz.compare(table, **named).comparison.prepared
    assert numbers(dpviz.compare(prepared, **named)) == expected


class OnlyAnArray:
    """What another library's array shows of itself."""

    def __init__(self, inner: np.ndarray[Any, Any]) -> None:
        self._inner = inner
        self.shape = inner.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._inner


def test_lists_lazy_frames_and_other_peoples_arrays_are_read() -> None:
    table = frame()
    named: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": ["gaussian", "data_laplace"]}
    expected = numbers(dpviz.compare(table, **named))
    kinds: list[Any] = [table.to_numpy().tolist(), pl.from_pandas(table).lazy()]
    kinds += [tuple(map(tuple, table.to_numpy())), OnlyAnArray(table.to_numpy())]
    for kind in kinds:
        assert numbers(dpviz.compare(kind, **named)) == expected, type(kind)


def test_a_bunch_is_read_with_its_names_and_its_target_as_the_label() -> None:
    table = frame()
    target = np.array(["a", "b"] * 20)
    names = list(table.columns)
    bunch = Bunch(data=table.to_numpy(), feature_names=names, target=target)
    named: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    expected = numbers(dpviz.compare(table, **named))
    for label in (None, "target"):
        found = dpviz.compare(bunch, label=label, **named)
        assert numbers(found) == expected
        prepared = found.comparison.prepared
        assert prepared.columns == tuple(names)
        assert (prepared.table.labels is not None) == (label is not None)
    framed = Bunch(data=table, frame=table.assign(target=target), target=target)
    thin = Bunch(data=sparse.csr_array(table), feature_names=names, target=target)
    for given in (framed, thin):
        assert numbers(dpviz.compare(given, **named)) == expected
    with pytest.raises(InvalidTable, match="nobody"):
        dpviz.compare(bunch, label="nobody", **named)


@pytest.mark.parametrize(("gap", "off"), [(False, 0.0), (True, 0.0), (False, 1e6)])
@pytest.mark.parametrize("row_bound", ["max", "1.5"])
def test_a_sparse_matrix_is_read_as_its_dense_rows_are(
    gap: bool, off: float, row_bound: str
) -> None:
    """Also where a row has a gap, and where X'X less the mean's would lose the digits."""
    held = sparse.random_array(
        (500, 6), density=0.2, random_state=np.random.default_rng(0), format="csc"
    )
    rows = held.toarray()
    rows[:, 0] += off
    if gap:
        rows[3, 2] = np.nan
    settings = Settings(row_bound=row_bound, scale="standardize")
    whole = prepared_of(rows[~np.isnan(rows).any(axis=1)], settings)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        found = prepared_of(kind(rows), settings)
        assert found.columns == whole.columns
        for of in ("moment", "reference"):
            A, B = (getattr(one, of).A for one in (found, whole))
            np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-9 * np.abs(B).max())
        assert found.row_bound == pytest.approx(whole.row_bound, rel=1e-9)


def test_a_sparse_matrix_is_compared_and_refused_in_words() -> None:
    rows = sparse.random_array((200, 5), density=0.3, random_state=np.random.default_rng(1))
    named: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    expected, found = (
        dpviz.compare(given, **named).table().select_dtypes("number")
        for given in (rows.toarray(), rows)
    )
    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(InvalidSetting, match="label must be left out for a sparse matrix"):
        dpviz.compare(rows, label="a", **named)
    with pytest.raises(InvalidTable, match="real numbers"):
        dpviz.compare(rows * 1j, **named)


class OnlyTheInterface:
    """A frame of a library that has the data frame interface and no Arrow stream."""

    def __init__(self, inner: pa.Table) -> None:
        self._inner = inner

    @property
    def columns(self) -> list[str]:
        return list(self._inner.column_names)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._inner.__dataframe__(nan_as_null, allow_copy)


def test_the_data_frame_interface_is_enough() -> None:
    table = frame()
    given = OnlyTheInterface(pa.Table.from_pandas(table, preserve_index=False))
    named: dict[str, Any] = {"trials": 2, "k": 1, "mechanisms": "gaussian"}
    assert numbers(dpviz.compare(given, **named)) == numbers(dpviz.compare(table, **named))


def test_a_dask_frame_is_summed_where_it_is() -> None:
    table = frame()
    found = dpviz.compare(
        dd.from_pandas(table, npartitions=3), k=1, trials=2, mechanisms="gaussian"
    )
    plain = dpviz.compare(table, k=1, trials=2, mechanisms="gaussian")
    assert found.data()["reference"]["eigenvalues"] == pytest.approx(
        plain.data()["reference"]["eigenvalues"], rel=1e-12
    )
    with pytest.raises(InvalidSetting, match="not in memory"):
        found.figure("projection")


def test_labels_texts_and_gaps_of_a_frame() -> None:
    table = frame().assign(group=["a", "b"] * 20, day=pd.date_range("2020-01-01", periods=40))
    table.loc[3, "age"] = np.nan
    table["kind"] = pd.Categorical(["x", "y", "z", "x"] * 10)
    for given in (table, pl.from_pandas(table)):
        found = dpviz.compare(given, label="group", k=1, trials=2, mechanisms="gaussian")
        prepared = found.comparison.prepared
        assert (prepared.n, prepared.columns) == (39, ("age", "income", "score"))
        assert set(prepared.table.labels) == {"a", "b"}
        wide = dpviz.compare(
            given, categorical="onehot", missing="median", k=1, trials=2, mechanisms="gaussian"
        ).comparison.prepared
        assert wide.n == 40
        assert {"group=a", "kind=z"} <= set(wide.columns)


def test_an_array_keeps_its_numbers_and_may_have_a_label() -> None:
    rows = np.array(frame())
    kept = rows.copy()
    found = dpviz.compare(rows, label="column 3", k=1, trials=2, mechanisms="gaussian")
    assert found.data()["dataset"] | {"row_bound": 0} == {
        "name": "array", "n": 40, "d": 2, "row_bound": 0, "domain": "ball",
    }  # fmt: skip
    assert np.array_equal(rows, kept)
    assert rows.flags.writeable


def test_plans_and_spectra() -> None:
    named: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "mechanisms": "gaussian"}
    text = dpviz.predict(PLAN, **named).table()
    values = plan_of(PLAN).moment.eigenvalues
    again = dpviz.predict(n=10_000, spectrum=values, **named).table()
    written = dpviz.predict(n=1e4, spectrum="power:d=6,exponent=1.5,total=0.5", **named).table()
    pd.testing.assert_frame_equal(text, again)
    pd.testing.assert_frame_equal(text, written)
    more = dpviz.predict("iris", n=10**6, **named).table()["captured_share"].item()
    assert more > dpviz.predict("iris", **named).table()["captured_share"].item()


def test_bounds_and_allocation_from_python_and_from_files(tmp_path: Path) -> None:
    table = frame()
    limits = {"age": (-4.0, 4.0), "income": (-4.0, 4.0), "score": (-5.0, 5.0)}
    shares = {"age": 0.5, "income": 0.3, "score": 0.2}
    bounds_file, shares_file = tmp_path / "bounds.csv", tmp_path / "shares.csv"
    bounds_file.write_text(
        "feature,low,high\n" + "".join(f"{k},{a},{b}\n" for k, (a, b) in limits.items())
    )
    shares_file.write_text("feature,theta\n" + "".join(f"{k},{v}\n" for k, v in shares.items()))
    named: dict[str, Any] = {
        "domain": "box", "k": 1, "trials": 2, "mechanisms": "directional_gaussian",
    }  # fmt: skip
    mapped = dpviz.compare(table, bounds=limits, allocation=shares, **named)
    filed = dpviz.compare(table, bounds=bounds_file, allocation=shares_file, **named)
    assert numbers(mapped) == numbers(filed)
    assert mapped.data()["settings"]["allocation"] == "custom:0.5,0.3,0.2"
    assert mapped.data()["settings"]["bounds"] == "given"
    assert "feature bounds" not in " ".join(mapped.data()["assumed_public"])
    named |= {"bounds": limits, "allocation": shares_file}
    for found in (
        dpviz.sweep(table, over="epsilon", values=[1], **named),
        dpviz.least(table, captured_share=0.5, **named),
        dpviz.predict(table, **named),
    ):
        assert found.settings.allocation == "custom:0.5,0.3,0.2"


# What is handed back -------------------------------------------------------------------------

ANSWERS: dict[str, Callable[[], Answer]] = {
    "compare": lambda: dpviz.compare(
        "iris", trials=3, delta=1e-4, mechanisms=["gaussian", "wishart", "ppca", "mvg"]
    ),
    "compare box k=1": lambda: dpviz.compare(
        "iris", trials=2, k=1, domain="box", mechanisms=["gaussian", "laplace_output", "sulq"]
    ),
    "sweep": lambda: dpviz.sweep(
        "iris", over={"epsilon": "0.1:10:3", "k": [1, 2]}, trials=2,
        mechanisms=["gaussian", "laplace"],
    ),
    "sweep of the row bound": lambda: dpviz.sweep(
        "iris", over="row_bound", values=["quantile:0.5", "max", 1.5], trials=2,
        mechanisms=["gaussian"],
    ),
    "least": lambda: dpviz.least("iris", captured_share=0.9, mechanisms=["gaussian", "wishart"]),
    "least people": lambda: dpviz.least(
        "iris", over="n", captured_share=0.9, mechanisms=["gaussian", "random_projection"]
    ),
    "predict": lambda: dpviz.predict("iris", mechanisms=["gaussian", "laplace", "ppca"]),
    "audit": lambda: dpviz.audit("gaussian", epsilon=1, trials=300),
    "audit of no claim": lambda: dpviz.audit("non_private", trials=300),
    "list_mechanisms": lambda: dpviz.list_mechanisms(),
    "list_datasets": lambda: dpviz.list_datasets(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_can_be_read_in_every_way(name: str) -> None:
    found = ANSWERS[name]()
    assert repr(found) == found.summary()
    assert found.summary().splitlines()[0].endswith((".", ")"))
    assert len(found.table())
    json.loads(found.to_json(), parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    shown = found._repr_html_()
    assert "<table" in shown
    assert shown.count("<div") == shown.count("</div>")
    if isinstance(found, Compared | Swept | Needed | Predictions):
        (coded,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="[^"]+"', shown)
        picture = ElementTree.fromstring(base64.b64decode(coded))
        label = parse_variant(found.table()["mechanism"].iloc[0]).label
        assert any((text or "").startswith(label[:20]) for text in picture.itertext())
        assert "href" not in base64.b64decode(coded).decode()
    drawn = [figure for figure in found.figures if figure in found.table() or figure not in METRICS]
    for figure in drawn:
        assert len(found.figure(figure).data), figure
    if found.figures:
        assert found.figure().to_json() == found.figure(found.figures[0]).to_json()
    with pytest.raises(InvalidSetting, match="figure must be"):
        found.figure("portrait")


def test_names_of_a_table_are_escaped_in_a_notebook() -> None:
    table = frame().rename(columns={"age": "<script>alert(1)</script>"})
    table["<b>bold</b>"] = 1.0
    found = dpviz.compare(table, k=1, trials=2, mechanisms="gaussian")
    assert "<script>alert" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_a_sweep_is_drawn_along_the_axis_and_at_the_values_asked_for() -> None:
    found = ANSWERS["sweep"]()
    assert isinstance(found, Swept)
    first, second = (found.figure("captured_share", at={"k": k}) for k in (1, 2))
    assert first.to_json() != second.to_json()
    assert first.to_json() == found.figure("captured_share").to_json()
    along_k = found.figure("projection_distance", over="k", at={"epsilon": 10.0})
    assert "at epsilon 10" in along_k.layout.xaxis.title.text
    table = found.table()
    chosen = table[(table["metric"] == "captured_share") & (table["k"] == 2)]
    mean = chosen[(chosen["mechanism"] == "gaussian") & (chosen["epsilon"] == 1)]["value"].mean()
    assert any(mean == pytest.approx(y) for trace in second.data for y in np.ravel(trace.y))
    for wrong in ({"over": "n"}, {"at": {"k": 3}}, {"at": {"n": 3}}):
        with pytest.raises(InvalidSetting):
            found.figure(**wrong)


def test_least_judges_each_claim_at_its_own_answer() -> None:
    found = dpviz.least("wine", captured_share=0.5, mechanisms=["gaussian", "wishart"])
    table = found.table().set_index("mechanism")
    assert table.loc["gaussian", "counts"]
    assert not table.loc["wishart", "counts"]
    assert table.loc["gaussian", "low"] < table.loc["gaussian", "least"]
    assert table.loc["gaussian", "least"] < table.loc["gaussian", "high"]
    assert found.targets[0].mechanism.key == "gaussian"


def test_a_recovery_is_asked_as_the_share_that_means_it() -> None:
    named: dict[str, Any] = {"k": 1, "mechanisms": "gaussian"}
    found = dpviz.least("iris", recovery=0.8, **named)
    # iris has most of its variance along one direction: chance is well below one half.
    chance = chance_share(found.prepared.reference, 1)
    assert 0.2 < chance < 0.4
    same = dpviz.least("iris", captured_share=chance + 0.8 * (1 - chance), **named)
    assert found.table()["high"].item() == same.table()["high"].item()
    assert found.summary().startswith("The least epsilon for a recovery of at least 0.8 (a captur")
    assert found.data()["goal"]["metric"] == "recovery"


def test_the_answers_of_least_lie_where_the_measure_crosses() -> None:
    found = dpviz.least("iris", captured_share=0.95, k=1, mechanisms="gaussian").table()
    for end, side in (("low", -1), ("high", 1)):
        run = dpviz.compare(
            "iris", epsilon=found[end].item() * 3**side, k=1, trials=200, mechanisms="gaussian"
        )
        assert np.sign(run.table()["captured_share"].item() - 0.95) == side


# What is refused -----------------------------------------------------------------------------

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
    (lambda: dpviz.compare([[1, 2], [3]]), InvalidTable, ("as long as the others",)),
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
    (lambda: dpviz.least("iris", recovery=0.5, k=4), InvalidSetting, ("another", "recovery")),
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
    mixed = pd.DataFrame({"a": [SECRET, "text", 2.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 5.0, 3.0]})
    infinite = pd.DataFrame({"a": [SECRET, np.inf, 2.0], "b": [1.0, 2.0, 3.0]})
    nested = pd.DataFrame({"a": [[SECRET], [2.0], [3.0]], "b": [1.0, 2.0, 3.0]})
    rows = np.array([[SECRET, 1.0], [np.inf, 2.0], [3.0, 4.0]])
    for given in (mixed, infinite, nested, rows):
        with pytest.raises(InvalidTable) as caught:
            dpviz.compare(given, k=1, mechanisms="gaussian", trials=2)
        assert "7316" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_dask_array_is_read_as_the_table_it_is() -> None:
    da = pytest.importorskip("dask.array")
    rows = np.random.default_rng(3).standard_normal((90, 4)) * [3, 2, 1, 1]
    options = {"k": 2, "delta": 1e-6, "trials": 3, "mechanisms": "gaussian"}
    whole = dpviz.compare(rows, **options).table()
    found = dpviz.compare(da.from_array(rows, chunks=(20, 3)), **options)
    assert found.comparison.prepared.n == 90
    assert found.comparison.prepared.columns == tuple(f"column {j}" for j in range(1, 5))
    # sums in another order: the same to rounding
    assert found.table()["recovery"].item() == pytest.approx(whole["recovery"].item(), rel=1e-9)
    with pytest.raises(InvalidTable, match=r"shape \(n, d\); it has 1 dimension\."):
        dpviz.compare(da.ones(5), **options)
    with pytest.raises(InvalidTable, match="must hold real numbers; its dtype is complex128"):
        dpviz.compare(da.ones((5, 3), dtype=complex), **options)


def test_a_mask_is_a_gap_and_zeros_of_a_sparse_column_are_zeros() -> None:
    rows = np.round(np.random.default_rng(3).standard_normal((60, 3)))
    options = {"k": 1, "delta": 1e-6, "trials": 2, "mechanisms": "gaussian"}
    want = dpviz.compare(rows, **options).table()
    unmasked = np.ma.array(rows, mask=np.zeros_like(rows, dtype=bool))
    stored = pd.DataFrame(rows, columns=list("abc")).astype(pd.SparseDtype("float", 0.0))
    for table in (unmasked, stored):
        pd.testing.assert_frame_equal(dpviz.compare(table, **options).table(), want)
    with pytest.raises(InvalidTable, match=r"array must hold finite numbers; it has masked cells"):
        dpviz.compare(np.ma.array(rows, mask=rows > 2), **options)
