"""Pictures as a browser draws them: equal scales, numbers by one rule, a board that holds still."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from plotly.offline import get_plotlyjs

from dpviz.auditing import exhibits
from dpviz.core.number_text import numeral, of_hundred, percent, script
from dpviz.core.settings import Settings
from dpviz.lessons.person import directional, person_payload, table
from dpviz.mechanisms import parse_variant, parse_variants
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import load_prepared
from dpviz.report.figures import side_by_side
from dpviz.report.figures.board import board_html, shown
from dpviz.report.figures.claims import cone_figure, turning_figure
from dpviz.report.figures.precision import ellipses_figure
from dpviz.report.figures.theme import panels
from dpviz.report.tables import board, scrub
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.compare import compare
from tests.person_page import person_page

# Every circle that goes into a path, by path: where the dots of a picture are drawn.
_WATCH_CIRCLES = """
(() => {
  window.dpvizPaths = [];
  const arc = Path2D.prototype.arc;
  const fill = CanvasRenderingContext2D.prototype.fill;
  Path2D.prototype.arc = function (x, y, r, ...rest) {
    (this.dpvizCircles ??= []).push([x, y, r]);
    return arc.call(this, x, y, r, ...rest);
  };
  CanvasRenderingContext2D.prototype.fill = function (path, ...rest) {
    if (path?.dpvizCircles) {
      const column = this.canvas.closest('[data-key]')?.dataset.key ?? 'large';
      window.dpvizPaths.push([column, path.dpvizCircles]);
    }
    return path ? fill.call(this, path, ...rest) : fill.call(this);
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
        context.new_page()  # it stays open, and with it the process
        yield context


@pytest.fixture
def plain_page(plain_session: BrowserContext) -> Iterator[Page]:
    """A page without a server, for what needs none."""
    page, said = plain_session.new_page(), []
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    page.close()
    assert said == []


@cache
def small_board() -> dict[str, Any]:
    """Return a board of the wine table without labels, at one epsilon."""
    settings = Settings(table="wine", mechanisms=("gaussian",), trials=3)
    ready = load_prepared(settings)
    columns = shown(parse_variants(settings.mechanisms))
    frame = scrub.compute(ready, settings, 1.0)  # type: ignore[arg-type]
    made = board.payload(ready, settings, columns, [1.0], [frame])  # type: ignore[arg-type]
    made["labels"] = {"name": None, "kinds": None, "codes": None, "ends": None, "values": None}
    return made


def units(payload: dict[str, Any], packed: str) -> np.ndarray:
    """Return the places of a picture in units of the rows."""
    places = np.frombuffer(base64.b64decode(packed), dtype="<i2").astype(float).reshape(-1, 2)
    return places * payload["limits"]["scale"] / 32767


def slope(drawn: np.ndarray, meant: np.ndarray) -> float:
    """Return pixels a unit along one axis; every dot must lie on the line."""
    fitted = np.polyfit(meant, drawn, 1)
    # A dot is placed in single precision; one that was moved to the frame would be far off.
    np.testing.assert_allclose(np.polyval(fitted, meant), drawn, atol=0.01)
    return float(fitted[0])


def scales(page: Page, payload: dict[str, Any], column: str) -> tuple[float, float]:
    """Return pixels a unit across and up of the exact picture in a column."""
    meant = units(payload, payload["truth"]["picture"])
    paths = [
        np.array(circles)
        for where, circles in page.evaluate("() => window.dpvizPaths")
        if where == column and len(circles) == len(meant)
    ]
    # Behind a release the truth is drawn first, in smaller dots.
    drawn = min(paths[-2:], key=lambda path: float(path[0, 2]))
    return slope(drawn[:, 0], meant[:, 0]), -slope(drawn[:, 1], meant[:, 1])


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
    # It fills the box one way, but for a margin of three pixels.
    filled = [2 * limit * up / side for limit, side in zip(limits, box, strict=True)]
    assert 0.95 < max(filled) <= 1
    # Presented, and one column large, it is so too.
    plain_page.evaluate("() => board.present(true)")
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across == pytest.approx(up, rel=1e-4)
    plain_page.evaluate("() => { board.present(false); board.open('gaussian'); }")
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "large")
    assert across == pytest.approx(up, rel=1e-4)


def test_a_unit_is_as_long_across_as_up_tells_a_stretched_picture(plain_page: Page) -> None:
    """The control: the same measure of a board whose canvas is stretched afterwards."""
    payload = small_board()
    script_ = _WATCH_CIRCLES.replace("push([x, y, r])", "push([x, 1.1 * y, r])")
    page = board_html(payload).replace("<script>", f"<script>{script_}</script><script>", 1)
    plain_page.set_viewport_size({"width": 1400, "height": 900})
    plain_page.set_content(page)
    plain_page.evaluate(_TWO_FRAMES)
    across, up = scales(plain_page, payload, "exact")
    assert across != pytest.approx(up, rel=1e-2)


# Pixels a unit, across and up, of every plot of a figure.
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
    """Return the figures both of whose axes are features, variances or directions."""
    settings = Settings(table="wine", mechanisms=("gaussian", "laplace", "wishart"), trials=3)
    ready = load_prepared(settings)
    results = list(compare(ready, settings).results)
    shown_ = panels(results)
    rows = picture_table(ready, results, 0, "aligned", 100)  # type: ignore[arg-type]
    rows["y"] /= 7  # one variance dwarfs the other
    found = {
        "pictures": side_by_side.pictures(rows, shown_),
        "turning": turning_figure(exhibits.turning_rows(), exhibits.turning_table(1.0, 0)),
        "cone": cone_figure(exhibits.cone_table(1.0, 0)),
        "ellipses": ellipses_figure(
            pd.DataFrame({"mechanism": ["gaussian"], "first": [1.0], "second": [0.2]}),
            shown_, "one", "two",
        ),
    }  # fmt: skip
    return found


def test_a_unit_is_as_long_across_as_up_in_every_plot_of_space(plain_page: Page) -> None:
    plain_page.set_content("<div id='plot'></div>")
    plain_page.add_script_tag(content=get_plotlyjs())
    for name, figure in plots_in_space().items():
        for width in (1000, 380):
            figure.update_layout(width=width)
            drawn = json.loads(figure.to_json())
            found = plain_page.evaluate(_PIXELS_A_UNIT, [drawn["data"], drawn["layout"]])
            assert found
            for across, up in found:
                assert across == pytest.approx(up, rel=0.01), (name, width)


def written_in(page: Page, function: str, values: Sequence[float], *digits: int) -> list[str]:
    """Return what the browser's rule writes."""
    more = "".join(f", {one}" for one in digits)
    found: list[str] = page.evaluate(
        f"values => values.map(value => numbers.{function}(value{more}))", list(values)
    )
    return found


def test_a_browser_writes_numbers_by_the_same_rule(plain_page: Page) -> None:
    rng = np.random.default_rng(5)
    awkward = [
        *(0.0, 0.25, 0.125, 2.5, 12.5, -0.05, -0.0005, -24.0, -2.5e-7, 1e-5, 1e5, 999_999.5),
        *(0.99999, 0.999, 0.0099, 0.00995, 0.995, 0.9995, 1 - 1e-9, 1 - 1e-12, 1.0),
        -18_000.5,
    ]
    ties = [step / 800 for step in range(-800, 1_700)]  # halves of the last digit, many exact
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


def test_ends_of_a_legend_are_numbers_as_people_write_them(plain_page: Page) -> None:
    settings = Settings(table="wine", mechanisms=("gaussian",), trials=3)
    ready = load_prepared(settings)
    labels = np.linspace(-24.0, 3.14159, ready.n)
    table = replace(ready.table, labels=labels, label_name="balance")  # type: ignore[union-attr]
    ready = replace(ready, table=table)  # type: ignore[type-var]
    frame = scrub.compute(ready, settings, 1.0)  # type: ignore[arg-type]
    columns = shown(parse_variants(settings.mechanisms))
    payload = board.payload(ready, settings, columns, [1.0], [frame])  # type: ignore[arg-type]
    plain_page.set_content(board_html(payload))
    said = plain_page.locator(".dpv-legend").inner_text()
    assert "-24" in said
    assert "3.14" in said
    assert "e1" not in said


# Where what stands below the answer begins, and how far down its own text reaches, at each epsilon.
_EVERY_EPSILON = """
async () => {
  const answer = document.querySelector('.dpv-answer');
  const found = [];
  for (const epsilon of board.payload.epsilons) {
    board.setEpsilon(epsilon);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const phone = answer.closest('[data-phone]');
    const below = document.querySelector(phone ? '.dpv-legend' : '.dpv-grid');
    const top = below.getBoundingClientRect().top;
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
    frames = scrub.compute_each(ready, settings, epsilons)
    payload = board.payload(ready, settings, columns, epsilons, frames)
    payload["least"] = scrub.least_epsilons(ready, settings)
    if width == 1400:  # a sentence that takes a line more at one epsilon only
        columns[0]["label"] = payload["columns"][0]["label"] = (
            "A mechanism of a very long name " * 3
        )
    plain_page.set_viewport_size({"width": width, "height": 900})
    plain_page.set_content(board_html(payload))
    plain_page.evaluate(_TWO_FRAMES)
    tops, ends = zip(*plain_page.evaluate(_EVERY_EPSILON), strict=True)
    assert len({round(end) for end in ends}) > 1, "no sentence wraps, so nothing is tried"
    assert len(set(tops)) == 1
    assert max(ends) <= tops[0]
    if width == 420:  # the picture comes before what is said of it
        grid = plain_page.locator(".dpv-grid").bounding_box()
        assert grid is not None
        assert grid["y"] < 140


# What one person's picture is made of: circles of its clouds, bars of its histograms.
_WATCH_PERSON = """
window.dpvizDrawn = [];
for (const name of ['arc', 'fillRect', 'strokeRect', 'fillText', 'lineTo']) {
  const own = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    if (this.canvas.getAttribute('role') === 'img') window.dpvizDrawn.push([name, ...given]);
    return own.apply(this, given);
  };
}
"""


def person_drawn(page: Page, keys: Sequence[str]) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return a payload of one person, and what is drawn of it at first."""
    payload = person_payload([parse_variant(key) for key in keys], 1e-5)
    page.set_viewport_size({"width": 1000, "height": 800})
    page.set_content(
        person_page(payload).replace("<script>", f"<script>{_WATCH_PERSON}</script><script>", 1)
    )
    page.evaluate(_TWO_FRAMES)
    page.evaluate("() => { window.dpvizDrawn = []; }")
    page.locator(".dp-handle").press("ArrowUp")  # drawn once more, and only once
    return payload, page.evaluate("() => window.dpvizDrawn")


def test_releases_of_both_worlds_lie_among_each_other_at_one_scale(plain_page: Page) -> None:
    payload, drawn = person_drawn(plain_page, ["gaussian"])
    circles = [one for one in drawn if one[0] == "arc"]
    assert {one[3] for one in circles[::2]} == {3}  # without her and with her in turn
    assert {one[3] for one in circles[1::2]} == {2.6}
    (one,) = payload["mechanisms"]
    unit = one["at"][payload["start"]]["scale"] / one["grain"]
    row = np.add(payload["row"], [0.0, 0.05])
    row /= max(1.0, float(np.linalg.norm(row)))
    c, s = row / np.linalg.norm(row)
    p, q, r = unit * np.array(one["noise"][: len(circles) // 2], dtype=float).T
    along, across = c * c * p + 2 * c * s * q + s * s * r, s * s * p - 2 * c * s * q + c * c * r
    places = np.array([[x, y] for _, x, y, *_ in circles[1::2]])
    scale = slope(places[:, 0], along + row @ row)
    assert scale == pytest.approx(-slope(places[:, 1], across))
    # the bar is as long as the rows that it says
    said = next(one[1] for one in drawn if one[0] == "fillText" and "row" in one[1])
    turns = [one[1] for one in drawn if one[0] == "lineTo"][-3:]
    rows = 1 if said == "one row" else int(said.removesuffix(" rows"))
    assert turns[1] - turns[0] == pytest.approx(rows * scale, rel=1e-6)
    assert turns[1] - turns[0] >= 20
    # A move zooms through what lies between two epsilons; what is said is of the nearer one.
    seen = plain_page.evaluate(
        """payload => {
          const root = document.querySelector(".dp-root");
          const person = dpvizPerson(root, payload, null);
          return [3, 3.4, 4].map(place => {
            person.at(place);
            return [root.querySelector(".dp-right canvas").toDataURL(),
              root.querySelector(".dp-sentence").textContent];
          });
        }""",
        payload,
    )
    assert len({picture for picture, _ in seen}) == 3
    assert seen[0][1] == seen[1][1] != seen[2][1]


def test_directions_of_both_worlds_are_two_histograms_with_the_guessers_threshold(
    plain_page: Page,
) -> None:
    for key in directional(table()):
        plain_page.goto("about:blank")
        payload, drawn = person_drawn(plain_page, [key])
        up = [one[1:] for one in drawn if one[0] == "fillRect"][1:]  # the first is the shade
        down = [one[1:] for one in drawn if one[0] == "strokeRect"]
        (x, _, shaded, _) = next(one[1:] for one in drawn if one[0] == "fillRect")
        assert len(up) == len(down) == 18
        zero = {round(y + tall, 6) for _, y, _, tall in up} | {round(y, 6) for _, y, _, _ in down}
        assert len(zero) == 1, "both stand on one line"
        assert [one[0] for one in up] == [one[0] for one in down]
        heights = np.array([[one[3] for one in up], [one[3] for one in down]])
        within, out = heights / heights.sum(axis=1, keepdims=True)
        # Releases are as many in both worlds, so one scale makes both areas the same.
        assert heights[0].sum() == pytest.approx(heights[1].sum(), rel=1e-6)
        # The rates that are said are the shares that are drawn before the threshold.
        said = plain_page.locator(".dp-sentence").inner_text()
        (told,) = re.findall(r": (\d+) right, (\d+) wrong", said)
        rates = [int(told[1]), int(told[0])]
        starts = np.array([one[0] for one in up]) - 1.5
        wide = starts[1] - starts[0]
        before = np.clip((x + shaded - starts) / wide, 0, 1)
        # A bar that the threshold cuts is not divided evenly: by a share of it at most.
        slack = 100 * max(within.max(), out.max())
        assert abs(100 * out @ before - rates[0]) <= 0.5 + slack * 0.5
        assert abs(100 * within @ before - rates[1]) <= 0.5 + slack * 0.5
        assert rates[0] + rates[1] == 100
        assert payload["mechanisms"][0]["kind"] == "direction"
