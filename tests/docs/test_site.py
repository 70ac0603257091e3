"""The documentation builds strictly and completely, without dead links or other hosts."""

from __future__ import annotations

import ast
import contextlib
import functools
import http.client
import http.server
import inspect
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

import dpviz
from dpviz.core.metrics import METRICS
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import all_mechanisms
from dpviz.studies import Answer
from dpviz.studies.listing import Listing
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tools import docs, gallery

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, in its own process, which also searches for faults."""
    out = tmp_path_factory.mktemp("site")
    answer = subprocess.run(
        [sys.executable, "-m", "tools.docs", str(out)],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    return out


def text_of(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")


def test_nothing_is_wrong_with_the_site(site: Path) -> None:
    """The site has no faults: a fault would have changed the build's exit status."""
    assert len(list(site.rglob("*.html"))) > 35


class _Host(http.server.SimpleHTTPRequestHandler):
    """Handler that drops names with a leading ``_``, as static hosts do without ``.nojekyll``."""

    def do_GET(self) -> None:
        top = Path(self.directory)
        if "/_" in self.path and not (top / ".nojekyll").is_file():
            self.send_error(404)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def loaded(site: Path) -> set[Path]:
    """Return the site's own files that its pages load."""
    return {
        (path.parent / unquote(urlsplit(target).path)).resolve().relative_to(site.resolve())
        for path in site.rglob("*.html")
        for target in docs._read(path).assets
        if not urlsplit(target).scheme
    }


def dropped(site: Path, files: set[Path]) -> list[str]:
    """Return the files of a site that a host without ``.nojekyll`` does not serve."""
    handler = functools.partial(_Host, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        vain = []
        for path in sorted(files):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            connection.request("GET", "/" + path.as_posix())
            if connection.getresponse().status != 200:
                vain.append(path.as_posix())
            connection.close()
        server.shutdown()
        serving.join()
    return vain


def test_the_site_is_whole_on_a_usual_host(site: Path, tmp_path: Path) -> None:
    files = loaded(site)
    assert len(files) > 5
    assert dropped(site, files) == []
    lost = (site / "404.html").read_text(encoding="utf-8")
    assert "There is no page at this address" in lost
    assert 'fetch(top + "objects.inv"' in lost
    assert (site / "objects.inv").is_file()
    bare = tmp_path / "bare"  # control
    shutil.copytree(site, bare, ignore=shutil.ignore_patterns(".nojekyll"))
    assert "_static/styles/furo.css" in dropped(bare, files)


def test_every_function_and_answer_is_in_the_reference(site: Path) -> None:
    functions, answers = text_of(site, "reference/functions"), text_of(site, "reference/answers")
    names = [name for name in dpviz.__all__ if inspect.isfunction(getattr(dpviz, name))]
    for name in names:
        assert f'id="dpviz.{name}"' in functions
    assert functions.count('class="admonition seealso"') == len(names)

    assert 'id="dpviz.PrivatePCA"' in text_of(site, "reference/estimator")
    kinds = {*Answer.__subclasses__(), *Listing.__subclasses__()} - {Listing}
    for cls in (Answer, *kinds):
        assert f'id="{cls.__module__}.{cls.__name__}"' in answers
        assert f'id="{cls.__module__}.{cls.__name__}.to_json"' in answers or cls is not Answer


def test_what_is_declared_is_in_the_reference(site: Path) -> None:
    pages = {name: text_of(site, f"reference/{name}") for name in ("options", "metrics", "tables")}
    for name, param in params_of(Settings).items():
        assert f">{name}</span>" in pages["options"]
        assert param.flag in pages["options"]
    assert all(f">{key}</span>" in pages["metrics"] for key in METRICS)
    assert all(f">{key}</span>" in pages["tables"] for key in dpviz.list_datasets().keys)
    text = text_of(site, "reference/mechanisms")
    assert all(f">{key}</span>" in text for key in all_mechanisms())
    commands = text_of(site, "reference/commands")
    assert "usage: dpviz sweep" in commands
    assert str(Path.home()) not in commands


def test_the_theory_says_of_every_mechanism_its_law_its_proof_and_what_fails(site: Path) -> None:
    rows = dpviz.list_mechanisms()
    text = text_of(site, "reference/mechanisms")
    for key, cls in all_mechanisms().items():
        page, anchor = f"theory/{cls.info.family}", f"theory-{key.replace('_', '-')}"
        before, _, section = text_of(site, page).partition(f'id="{anchor}">')
        assert before.endswith(("<section ", "<span ")), key
        section = section.partition("<section")[0]
        assert section.count("<math") == 2, key  # One formula is for the law, one for calibration.
        assert (cls.info.guarantee == "none") != ("Neighbours, sensitivity, proof" in section), key
        for row in (row for row in rows if row["key"] == key):
            assert f"<strong>{row['status']}</strong>" in section, key
        assert f'href="../{page}.html#{anchor}"' in text, key
    arguments = " ".join(text_of(site, "theory/arguments").split())
    assert "Orthogonal rows of length R attain this bound" in arguments  # The proof is shown.


def test_the_first_page_is_dragged_within_a_second_and_a_megabyte(site: Path) -> None:
    """A first visitor moves the home page's figure in time (3 s allowed while other tests run)."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip(NO_BROWSER)
    handler = functools.partial(_Host, directory=str(site))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        contextlib.ExitStack() as ending,
        sync_playwright() as driver,
    ):
        threading.Thread(target=server.serve_forever).start()
        ending.callback(server.shutdown)  # This also ends the server's thread if the test fails.
        with driver.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS)) as browser:
            page = browser.new_page()
            came: list[int] = []
            page.on("response", lambda answer: came.append(len(answer.body())))
            began = time.monotonic()
            page.goto(f"http://127.0.0.1:{server.server_port}/", wait_until="commit")
            slider = page.frame_locator("iframe").get_by_label("Epsilon", exact=True)
            slider.press("Home")
            expect(slider).to_have_attribute("aria-valuetext", "epsilon 0.05")
            seconds = time.monotonic() - began
            page.wait_for_load_state("networkidle")
    assert seconds < 3
    assert len(came) > 5
    assert sum(came) < 1e6


def test_every_figure_has_its_page_with_a_picture_and_its_code(site: Path) -> None:
    index = text_of(site, "gallery/index")
    for page in gallery.pages():
        text = text_of(site, f"gallery/{page.__name__}")
        assert f'id="figure-{page.__name__}"' in text
        assert "Plotly.newPlot" in text
        assert f'href="{page.__name__}.html"' in index
        ast.parse(docs._body(page))  # The shown code must be valid Python.
    assert (site / "_static" / "plotly.min.js").stat().st_size > 1_000_000


def figure_functions() -> Iterator[str]:
    """Yield the public functions of `dpviz.report.figures` that make a Plotly figure."""
    for path in sorted((ROOT / "dpviz" / "report" / "figures").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                returns = "" if node.returns is None else ast.unparse(node.returns)
                types = [ast.unparse(arg.annotation) for arg in node.args.args if arg.annotation]
                # Skip functions that take a figure, because they only complete this figure.
                if returns.startswith("go.Figure") and "go.Figure" not in types:
                    yield node.name


def test_no_figure_is_missing_from_the_gallery() -> None:
    drawing = [ROOT / "tools" / "gallery.py", *(ROOT / "dpviz" / "studies").glob("*.py")]
    calls = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for path in drawing
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
    }
    figures = set(figure_functions())
    assert len(figures) > 15
    assert figures - calls == set()


# Negative controls ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="nowhere.html">x</a>', "links to nowhere.html, which is not there"),
        ('<a href="#nowhere">x</a>', "which has no such place"),
        ('<a href="other.html#nowhere">x</a>', "which has no such place"),
        ('<script src="https://example.org/x.js"></script>', "fetches https://example.org"),
        ('<img src="//example.org/x.png">', "fetches //example.org"),
        ('<link rel="stylesheet" href="http://example.org/x.css">', "fetches http://example.org"),
    ],
)
def test_a_fault_is_found_and_fails_the_build(
    body: str,
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(docs, "build", lambda out: 0)
    (tmp_path / "_static").mkdir()
    (tmp_path / "other.html").write_text('<p id="here">x</p>')
    (tmp_path / "index.html").write_text(f'<a href="other.html#here">x</a>{body}')
    assert docs.main([str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line
