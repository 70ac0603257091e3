"""Raw files, served from ``DPVIZ_DATA`` over localhost and downloaded by the real code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpviz.core.errors import NotAvailable
from dpviz.datasets import remote
from dpviz.datasets.remote.download import matches, text_digest
from dpviz.datasets.table import Table
from tests.papers.conftest import NEVER_THERE
from tests.serving import Answer, Site, serve

NO_FOLDER = "DPVIZ_DATA names no folder with the raw files"
SETS = {
    key: entry for key, entry in remote.sets().items()
    if key not in NEVER_THERE
}  # fmt: skip


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    folder = Path(os.environ.get("DPVIZ_DATA", ""))
    if "DPVIZ_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(NO_FOLDER)
    with serve(Site(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def cache(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of downloads, empty at first; the local mirror serves the files."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "linux")
        patch.setenv("XDG_CACHE_HOME", str(home))
        patch.setenv("DPVIZ_DATA", site.address)
        patch.setenv("NO_PROXY", "*")
        yield home / "dpviz" / "data"


@pytest.fixture
def table(request: pytest.FixtureRequest, cache: Path) -> Table:
    """Return the downloaded table of the data set under test."""
    return remote.load(request.param)


def about(key: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("table", [key], indirect=True)


@pytest.mark.parametrize("key", SETS)
def test_a_set_is_downloaded_verified_and_kept(key: str, site: Site, cache: Path) -> None:
    entry = SETS[key]
    steps: list[tuple[int, int | None]] = []
    folder = remote.fetch(key, lambda done, total: steps.append((done, total)))
    assert folder == cache / entry.folder
    assert sum(done == total for done, total in steps) >= len(entry.files)  # All files arrived.
    for file in entry.files:
        assert file.sha256 is not None
        assert matches(folder / file.name, file)
    beside = {
        file.name for one in SETS.values() if one.folder == entry.folder for file in one.files
    }
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {file.name for file in entry.files} <= files <= beside
    count = len(site.asked)
    assert remote.at_hand(key)
    assert remote.fetch(key) == folder
    assert len(site.asked) == count
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("key", [key for key in SETS if key != "kddcup99"])
def test_a_table_is_what_the_declaration_says(key: str, cache: Path) -> None:
    entry, table = SETS[key], remote.load(key)
    assert table.name == key
    assert table.rows.shape == (entry.n, entry.d)
    assert np.isfinite(table.rows).all()
    assert len(set(table.columns)) == entry.d
    assert table.notes[: len(entry.preparation)] == entry.preparation
    assert (table.labels is None) == (entry.labels == "none")
    assert table.labels is None or table.labels.shape == (entry.n,)


@pytest.mark.parametrize("key", sorted(set(remote.sets()) - set(SETS)))
def test_what_the_mirror_lacks_is_said(key: str, site: Site, cache: Path) -> None:
    if site.folder is not None and (site.folder / remote.sets()[key].folder).exists():
        pytest.skip(f"{key} is in the mirror")
    with pytest.raises(
        NotAvailable, match=r"answered 404 Not Found\): get .* and put (it|them) in"
    ):
        remote.fetch(key)
    assert not (cache / remote.sets()[key].folder).exists()


@about("kddcup99")
def test_kddcup99(table: Table) -> None:
    assert table.rows.shape == (494_021, 118)
    assert int((table.labels == "normal").sum()) == 97_278  # The documentation states this count.
    varying = table.rows.min(axis=0) < table.rows.max(axis=0)
    constant = [name for name, varies in zip(table.columns, varying, strict=True) if not varies]
    assert constant == ["num_outbound_cmds", "is_host_login"]
    assert int(varying.sum()) == SETS["kddcup99"].paper_d  # 116
    for field, count in (("protocol_type", 3), ("service", 66), ("flag", 11)):
        marks = [j for j, name in enumerate(table.columns) if name.startswith(f"{field} = ")]
        assert len(marks) == count
        assert (table.rows[::10, marks].sum(axis=1) == 1).all()
    # The first line of the file begins with 0,tcp,http,SF,181,5450.
    first = dict(zip(table.columns, table.rows[0].tolist(), strict=True))
    assert (first["src_bytes"], first["dst_bytes"], first["service = http"]) == (181, 5450, 1)


@about("insurance")
def test_insurance(table: Table) -> None:
    assert table.rows.shape == (9_822, 150)
    assert SETS["insurance"].paper_d == 150
    assert table.labels is not None
    # The documentation counts 348 of 5,822 training rows and 238 of 4,000 evaluation rows.
    assert int(table.labels[:5_822].sum()) == 348
    assert int(table.labels[5_822:].sum()) == 238
    counts = {"MOSTYPE": 40, "MGEMOMV": 6, "MGEMLEEF": 6, "MOSHOOFD": 10, "MKOOPKLA": 8}
    for field, count in counts.items():
        assert sum(name.startswith(f"{field} = ") for name in table.columns) == count
    assert (table.rows.min(axis=0) < table.rows.max(axis=0)).all()


@about("movementaal")
def test_movementaal(table: Table) -> None:
    assert table.rows.shape == (13_197, 4)
    assert np.abs(table.rows).max() == 1
    # These are the numbers in the first line of recording 1.
    assert table.rows[0].tolist() == [-0.90476, -0.48, 0.28571, 0.3]
    deviations = table.rows - table.rows.mean(axis=0)
    assert round(float(np.abs(deviations).max()), 3) == 1.159


@about("cardiotocography")
def test_cardiotocography(table: Table) -> None:
    assert (table.columns[0], table.columns[-1]) == ("LB", "Tendency")
    kinds, counts = np.unique(table.labels, return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "normal": 1_655, "suspect": 295, "pathologic": 176,
    }  # fmt: skip
    assert set(table.rows[:, -1].tolist()) == {-1, 0, 1}


@about("liver")
def test_liver(table: Table) -> None:
    assert np.unique(table.labels, return_counts=True)[1].tolist() == [145, 200]
    assert table.columns[-1] == "drinks"
    assert (table.rows[:, -1].min(), table.rows[:, -1].max()) == (0, 20)


@about("semeion")
def test_semeion(table: Table) -> None:
    assert set(np.unique(table.rows).tolist()) == {0, 1}
    counts = np.bincount(table.labels)
    assert counts.tolist() == [161, 162, 159, 159, 161, 159, 161, 158, 155, 158]


def test_semeion_as_the_repository_has_it(cache: Path, tmp_path: Path) -> None:
    """The repository's version of the file, with a blank and a CR on each line, is accepted.

    Restoring the blank and the CR reproduces, byte for byte, a digest known from elsewhere.
    """
    entry = SETS["semeion"]
    lines = (remote.fetch("semeion") / "semeion.data").read_bytes().splitlines()
    path = tmp_path / "semeion.data"
    path.write_bytes(b"".join(line.rstrip() + b" \r\n" for line in lines))
    (file,) = entry.files
    assert matches(path, file)
    assert matches(path, remote.File(file.name, file.sha256, (), text="0" * 64))


@about("waveform")
def test_waveform(table: Table) -> None:
    assert table.notes[-1].startswith("Line 43 of waveform.data has a tab within a number")
    assert table.rows[42, -1] == 0.68
    assert np.bincount(table.labels).tolist() == [1_657, 1_647, 1_696]


@about("waveform2")
def test_the_second_waveform_is_the_first_kind_with_noise_beside_it(table: Table) -> None:
    assert table.rows.shape == (5_000, 40)
    # The last 19 columns are unit noise: the variance of n samples has an error of sqrt(2/n).
    assert np.abs(table.rows[:, 21:].var(axis=0) - 1).max() < 4 * np.sqrt(2 / 5_000)
    first = remote.load("waveform").rows
    # The first 21 columns of both copies have one law with kurtosis below 3. Variances of n samples
    # vary by at most a relative sqrt(2/n), and ratios by 2/sqrt(n). Allow four of these.
    ratio = table.rows[:, :21].var(axis=0) / first.var(axis=0)
    assert np.abs(ratio - 1).max() < 4 * 2 / np.sqrt(5_000)


@about("musk")
def test_musk(table: Table) -> None:
    assert int((table.labels == "musk").sum()) == 207
    assert int((table.labels == "non-musk").sum()) == 269


@about("adult")
def test_adult(table: Table) -> None:
    assert table.rows.shape == (30_162, 104)  # 2,399 of 32,561 rows lack a value and are omitted.
    assert int((table.labels == ">50K").sum()) == 7_508
    assert sum(name.startswith("native-country = ") for name in table.columns) == 41


def test_a_cell_that_was_changed_is_seen(site: Site, cache: Path) -> None:
    """Control for all accepted copies: a changed cell is detected."""
    (cache / "liver-disorders" / "bupa.data").unlink(missing_ok=True)
    assert site.folder is not None
    content = (site.folder / "liver-disorders" / "bupa.data").read_bytes()
    site.answers["/liver-disorders/bupa.data"] = Answer(content.replace(b"85,92", b"85,93", 1))
    try:
        with pytest.raises(NotAvailable, match="its sha256 differs"):
            remote.fetch("liver")
    finally:
        del site.answers["/liver-disorders/bupa.data"]
    assert not (cache / "liver-disorders" / "bupa.data").exists()


@pytest.mark.parametrize("key", ["kddcup99", "adult", "semeion"])
def test_the_digest_of_the_text_is_that_of_the_files(key: str, cache: Path) -> None:
    """A repacked copy, or a copy with other line ends, is recognised by its text."""
    (file,) = SETS[key].files
    assert file.text is not None
    assert text_digest(remote.fetch(key) / file.name) == file.text
