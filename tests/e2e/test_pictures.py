"""Charts as a browser draws them: equal scales, one rule for numbers, no moving elements."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from plotly.offline import get_plotlyjs

from dpviz.auditing import exhibits
from dpviz.core.number_text import numeral, of_hundred, percent, script
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import load_prepared
from dpviz.report.figures import side_by_side
from dpviz.report.figures.board import board_html, shown
from dpviz.report.figures.claims import cone_figure, turning_figure
from dpviz.report.figures.theme import panels
from dpviz.report.tables import board
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.compare import compare
from dpviz.studies.board import steps
from dpviz.studies.least import least_epsilons

# Record every circle that a canvas draws, to find where a picture's dots are.
_WATCH_CIRCLES = """
(() => {
  window.dpvizPaths = [];
  const pens = CanvasRenderingContext2D.prototype;
  const { beginPath, arc, fill } = pens;
  pens.beginPath = function () {
    this.dpvizCircles = [];
    beginPath.call(this);
  };
  pens.arc = function (x, y, r, ...rest) {
    this.dpvizCircles?.push([x, y, r]);
    return arc.call(this, x, y, r, ...rest);
  };
  pens.fill = function (...given) {
    if (this.dpvizCircles?.length) {
      const column = this.canvas.closest('[data-key]')?.dataset.key ?? '';
      window.dpvizPaths.push([column, this.dpvizCircles]);
    }
    return fill.apply(this, given);
  };
})();
"""
_TWO_FRAMES = """
() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))
"""


@pytest.fixture(scope="module")
def plain_session(browser: Browser) -> Iterator[BrowserContext]:
    """One browser session for all pages without a server: its process starts once."""
    with browser.new_context(reduced_motion="reduce") as context:
        context.new_page()  # An open page prevents the browser's process from ending.
        yield context


@pytest.fixture
def plain_page(plain_session: BrowserContext) -> Iterator[Page]:
    """A page without a server, for tests that need none."""
    page, texts = plain_session.new_page(), []
    page.on("pageerror", lambda error: texts.append(str(error)))
    yield page
    page.close()
    assert texts == []


@cache
def small_board() -> dict[str, Any]:
    """Return an Explore figure of the wine table without labels, at one epsilon."""
    settings = Settings(table="wine", mechanisms=("gaussian",), trials=3)
    ready = load_prepared(settings)
    columns = shown(parse_variants(settings.mechanisms))
    *_, (frame,) = steps(ready, settings, [1.0])  # type: ignore[arg-type]
    payload = board.payload(ready, settings, columns, [1.0], [frame])  # type: ignore[arg-type]
    payload["labels"] = {"name": None, "kinds": None, "codes": None, "ends": None, "values": None}
    return payload


def units(payload: dict[str, Any], packed: str) -> np.ndarray:
    """Return the points of a picture in units of the table's rows."""
    places = np.frombuffer(base64.b64decode(packed), dtype="<i2").astype(float).reshape(-1, 2)
    return places * payload["limits"]["scale"] / 32767


def slope(drawn: np.ndarray, meant: np.ndarray) -> float:
    """Return pixels per unit along one axis, and check that every dot fits the line."""
    fit = np.polyfit(meant, drawn, 1)
    # Dots have positions in single precision. A dot moved into view would be far off the line.
    np.testing.assert_allclose(np.polyval(fit, meant), drawn, atol=0.01)
    return float(fit[0])


def scales(page: Page, payload: dict[str, Any], column: str) -> tuple[float, float]:
    """Return the pixels per unit, across and up, of the exact picture in a column."""
    meant = units(payload, payload["truth"]["picture"])
    paths = [
        np.array(circles)
        for where, circles in page.evaluate("() => window.dpvizPaths")
        if where == column and len(circles) == len(meant)
    ]
    # A picture draws the exact result first, as smaller dots behind the dots of a release.
    curve = min(paths[-2:], key=lambda path: float(path[0, 2]))
    return slope(curve[:, 0], meant[:, 0]), -slope(curve[:, 1], meant[:, 1])


@pytest.mark.parametrize("size", [(1400, 900), (420, 800)], ids=["projector", "phone"])
@pytest.mark.parametrize("box", [(185, 212), (464, 212), (670, 210), (200, 420)])
def test_a_unit_is_as_long_across_as_up_on_every_board(
    plain_page: Page, size: tuple[int, int], box: tuple[int, int]
) -> None:
    payload = small_board()
    plain_page.set_viewport_size({"width": size[0], "height": size[1]})
    page = board_html(payload).replace("<script>", f"<script>{_WATCH_CIRCLES}</script><script>", 1)
    style = f".dpv-box-picture {{ width: {box[0]}px; height: {box[1]}px !important; }}"
    plain_page.set_content(page.replace("</style>", f"{style}</style>", 1))
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across == pytest.approx(up, rel=1e-4)
    limits = payload["limits"]["picture"]
    # The picture fills the width or height of its box, except for a margin of three pixels.
    scale = [2 * limit * up / side for limit, side in zip(limits, box, strict=True)]
    assert 0.95 < max(scale) <= 1
    # In presentation, with one large column, both axes also have the same scale.
    plain_page.evaluate("() => board.present(true)")
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across == pytest.approx(up, rel=1e-4)
    plain_page.evaluate("() => { board.present(false); board.open('gaussian'); }")
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across == pytest.approx(up, rel=1e-4)


def test_a_unit_is_as_long_across_as_up_tells_a_stretched_picture(plain_page: Page) -> None:
    """The check of equal scales detects an Explore figure whose canvas is stretched afterwards."""
    payload = small_board()
    script_ = _WATCH_CIRCLES.replace("push([x, y, r])", "push([x, 1.1 * y, r])")
    page = board_html(payload).replace("<script>", f"<script>{script_}</script><script>", 1)
    plain_page.set_viewport_size({"width": 1400, "height": 900})
    plain_page.set_content(page)
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across != pytest.approx(up, rel=1e-2)


# Return the pixels per unit of every plot in a figure, horizontally and vertically.
_PIXELS_A_UNIT = """
async ([data, layout_]) => {
  const layout = (await Plotly.newPlot('plot', data, layout_))._fullLayout;
  const unit = axis => axis._length / Math.abs(axis.range[1] - axis.range[0]);
  return Object.keys(layout).filter(key => /^yaxis/.test(key)).map(key => {
    const across = layout[layout[key].anchor.replace('x', 'xaxis')];
    return [unit(across), unit(layout[key])];
  });
}
"""


def plots_in_space() -> dict[str, go.Figure]:
    """Return the figures whose axes both show features, variances or directions."""
    settings = Settings(table="wine", mechanisms=("gaussian", "laplace", "wishart"), trials=3)
    ready = load_prepared(settings)
    results = list(compare(ready, settings).results)
    shown_ = panels(results)
    rows = picture_table(ready, results, 0, "aligned", 100)  # type: ignore[arg-type]
    rows["y"] /= 7  # The variance of y is now far smaller than x's variance.
    figures = {
        "pictures": side_by_side.pictures(rows, shown_),
        "turning": turning_figure(exhibits.turning_rows(), exhibits.turning_table(1.0, 0)),
        "cone": cone_figure(exhibits.cone_table(1.0, 0)),
    }  # fmt: skip
    return figures


def test_a_unit_is_as_long_across_as_up_in_every_plot_of_space(plain_page: Page) -> None:
    plain_page.set_content("<div id='plot'></div>")
    plain_page.add_script_tag(content=get_plotlyjs())
    for name, figure in plots_in_space().items():
        for width in (1000, 380):
            figure.update_layout(width=width)
            spec = json.loads(figure.to_json())
            lengths = plain_page.evaluate(_PIXELS_A_UNIT, [spec["data"], spec["layout"]])
            assert lengths
            for across, up in lengths:
                assert across == pytest.approx(up, rel=0.01), (name, width)


def written_in(page: Page, function: str, values: Sequence[float], *digits: int) -> list[str]:
    """Return the texts that the browser's number rule writes."""
    more = "".join(f", {one}" for one in digits)
    texts: list[str] = page.evaluate(
        f"values => values.map(value => numbers.{function}(value{more}))", list(values)
    )
    return texts


def test_a_browser_writes_numbers_by_the_same_rule(plain_page: Page) -> None:
    rng = np.random.default_rng(5)
    awkward = [
        *(0.0, 0.25, 0.125, 2.5, 12.5, -0.05, -0.0005, -24.0, -2.5e-7, 1e-5, 1e5, 999_999.5),
        *(0.99999, 0.999, 0.0099, 0.00995, 0.995, 0.9995, 1 - 1e-9, 1 - 1e-12, 1.0),
        -18_000.5,
    ]
    ties = [step / 800 for step in range(-800, 1_700)]  # These values are halfway between digits.
    random = rng.uniform(-1.2, 1.2, 10_000) * 10.0 ** rng.uniform(-12, 7, 10_000)
    values = [*awkward, *ties, *random.tolist()]
    rules: list[tuple[str, Callable[..., str], tuple[int, ...]]] = [
        ("percent", percent, ()), ("ofHundred", of_hundred, ()),
        *(("numeral", numeral, (digits,)) for digits in (1, 2, 3, 6)),
    ]  # fmt: skip
    plain_page.set_content(f"<script>{script()}; globalThis.numbers = DpvizNumbers;</script>")
    for name, rule, digits in rules:
        assert written_in(plain_page, name, values, *digits) == [rule(v, *digits) for v in values]
    assert written_in(plain_page, "numeral", [-24.0, -2.4, 1e-7], 2) == ["-24", "-2.4", "1e-7"]


# For each epsilon, return the top of the element below the answer, and the answer's bottom.
_EVERY_EPSILON = """
async () => {
  const answer = document.querySelector('.dpv-answer');
  const found = [];
  for (const epsilon of board.payload.epsilons) {
    board.setEpsilon(epsilon);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const top = document.querySelector('.dpv-grid').getBoundingClientRect().top;
    const said = document.createRange();
    said.selectNodeContents(answer);
    found.push([top, said.getBoundingClientRect().bottom]);
  }
  return found;
}
"""


@pytest.mark.parametrize("width", [1400, 620, 420])
def test_the_board_holds_still_while_its_sentence_wraps(plain_page: Page, width: int) -> None:
    keys = ("gaussian", "wishart_difference", "directional_wishart_difference", "laplace_tight")
    settings = Settings(table="wine", mechanisms=keys, trials=5)
    ready = load_prepared(settings)
    assert isinstance(ready, Prepared)
    epsilons = [0.05, 0.1, 0.5, 1.0, 10.0]
    columns = shown(parse_variants(keys))
    *_, frames = steps(ready, settings, epsilons)
    payload = board.payload(ready, settings, columns, epsilons, frames)
    payload["least"] = least_epsilons(ready, settings)
    if width == 1400:  # Make the answer one line longer, at this epsilon only.
        payload["frames"][0]["answer"]["recovery"] += ", and a mechanism of a long name" * 8
    plain_page.set_viewport_size({"width": width, "height": 900})
    plain_page.set_content(board_html(payload))
    plain_page.evaluate(_TWO_FRAMES)
    tops, ends = zip(*plain_page.evaluate(_EVERY_EPSILON), strict=True)
    assert len({round(end) for end in ends}) > 1, "no sentence wraps, so nothing is tried"
    assert len(set(tops)) == 1
    assert max(ends) <= tops[0]
