"""What people do, in a real browser: look, move, share, upload, and make mistakes.

The tests of this module share one server; each has a browser session of its own.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from dpviz.base.paths import app_path
from tests.e2e.harness import (
    Server,
    new_context,
    new_page,
    open_app,
    problems_of,
    rerun,
    wait_idle,
    watch_of,
)

ROOT = app_path().parent
EXAMPLE = ROOT / "data" / "example.csv"
PAGES = tuple(sorted(path.stem for path in (ROOT / "pages").glob("*.py")))
QUICK = "?v=1&table=iris&trials=5"  # small and soon drawn; digits where the size matters
CHARTS = '[data-testid="stEChartsChart"], [data-testid="stPlotlyChart"]'

# For each canvas and each drawing: whether anything is on it.
_PAINTED = """
chart => {
  const svg = chart.querySelector('svg.main-svg');
  if (svg) return svg.querySelectorAll('path.point').length > 0;
  const canvas = chart.querySelector('canvas');
  if (!canvas || !canvas.width || !canvas.height) return false;
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 3; i < data.length; i += 4) if (data[i]) return true;
  return false;
}
"""


def numbers(page: Page) -> str:
    """Return all text of the page's main part: verdict, captions, command."""
    return page.get_by_test_id("stMain").inner_text()


def verdict_of(page: Page) -> Locator:
    """Return the sentence on top: the first bold text that is not folded away."""
    return page.get_by_test_id("stMain").locator("strong").filter(visible=True).first


def verdict(page: Page) -> str:
    return verdict_of(page).inner_text()


def charts(page: Page) -> list[Locator]:
    """Return the charts, having made sure that the page has three and has drawn them."""
    found = page.locator(CHARTS)
    expect(found).to_have_count(3)
    return found.all()


def epsilon_slider(page: Page) -> Locator:
    """Return the slider of the sidebar; a page may have one of its own."""
    return page.get_by_test_id("stSidebar").get_by_role("slider", name="Epsilon")


def errors(page: Page) -> list[str]:
    # The icon's name comes first, on a line of its own.
    boxes = page.get_by_test_id("stAlertContentError").all_inner_texts()
    return ["\n".join(line for line in box.splitlines()[1:] if line) for box in boxes]


def type_into(page: Page, label: str, text: str) -> None:
    """Replace the text of a box and leave it, which runs the script."""
    box = page.get_by_label(label, exact=True)
    with rerun(page):
        box.fill(text)
        box.press("Enter")


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option of a select box."""
    page.get_by_role("combobox", name=label, exact=True).click()
    with rerun(page):
        page.get_by_role("option", name=option, exact=True).click()


def send(page: Page, name: str, content: bytes) -> None:
    """Upload a file."""
    with rerun(page):
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
            {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        )


def test_first_visit(page: Page, server: Server) -> None:
    open_app(page, server.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("What does privacy cost this PCA?")
    assert re.search(r"At epsilon 1 and delta \S+, .+ keeps \d+ % of the variance", verdict(page))
    assert "digits: 1,797 people" in numbers(page)
    for chart in charts(page):
        assert chart.evaluate(_PAINTED)
    assert errors(page) == []
    assert page.url.endswith("?v=1")


def test_a_blank_chart_would_be_noticed(page: Page) -> None:
    # The control of the check above: an empty canvas of the same make.
    page.set_content('<div id="c"><canvas width="50" height="50"></canvas></div>')
    assert page.locator("#c").evaluate(_PAINTED) is False


def test_moving_epsilon_by_keyboard_changes_the_numbers(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK)
    before = verdict(page)
    slider = epsilon_slider(page)
    slider.focus()
    with rerun(page):
        slider.press("ArrowLeft")
    assert verdict(page) != before
    assert "At epsilon 0.89" in verdict(page)
    assert page.get_by_label("Epsilon, exact").input_value() == "0.89"
    assert "epsilon=0.89" in page.url
    # and the slider keeps the focus for the next press
    with rerun(page):
        page.keyboard.press("ArrowLeft")
    assert "At epsilon 0.79" in verdict(page)


def test_typing_an_epsilon_and_a_bad_one(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK)
    type_into(page, "Epsilon, exact", "0.05")
    assert "At epsilon 0.05" in verdict(page)
    assert "Below 0.1" in numbers(page)
    before = numbers(page)
    type_into(page, "Epsilon, exact", "minus one")
    (said,) = errors(page)
    assert "epsilon must be a number from 0.0001 to 1e+06; got 'minus one'." in said
    assert page.get_by_label("Epsilon, exact").input_value() == "minus one"
    assert numbers(page) == before
    type_into(page, "Epsilon, exact", "6")
    assert errors(page) == []
    assert "Above 5" in numbers(page)


def test_changing_k(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK)
    box = page.get_by_role("spinbutton", name="Components k")
    box.focus()
    with rerun(page):
        box.press("ArrowDown")
    assert "keeps" in verdict(page)
    assert "one component" in verdict(page)
    assert "&k=1" in page.url
    assert "strip" in numbers(page)


def test_ten_quick_moves_end_at_the_last(page: Page, server: Server) -> None:
    open_app(page, server.url)
    slider = epsilon_slider(page)
    slider.focus()
    with rerun(page):
        for _ in range(10):
            slider.press("ArrowLeft")
    # The presses may have made one run or ten; the last thing shown is the last thing asked for.
    expect(page.get_by_label("Epsilon, exact")).to_have_value("0.32")
    expect(verdict_of(page)).to_contain_text("At epsilon 0.32")
    wait_idle(page)
    assert "epsilon=0.32" in page.url
    slow = numbers(page)
    open_app(page, page.url)
    assert numbers(page) == slow


def test_a_link_shows_the_same_numbers_elsewhere(
    page: Page, server: Server, browser: Browser
) -> None:
    open_app(page, server.url + "/?v=1&table=wine&trials=7")
    type_into(page, "Epsilon, exact", "2.5")
    choose(page, "Neighbours", "zero out one person")
    link, shown = page.url, numbers(page)
    with new_context(browser) as other:
        guest = new_page(other)
        open_app(guest, link)
        assert numbers(guest) == shown
        assert guest.url == link
        expect(guest.get_by_label("Epsilon, exact")).to_have_value("2.5")
        # The control: another link shows other numbers.
        open_app(guest, link.replace("epsilon=2.5", "epsilon=2.4"))
        assert numbers(guest) != shown
        assert problems_of(guest) == ""


def test_an_upload_is_analysed_and_its_link_asks_for_the_file(
    page: Page, server: Server, browser: Browser
) -> None:
    open_app(page, server.url + "/?v=1&trials=5&epsilon=4")
    send(page, "patients.csv", EXAMPLE.read_bytes())
    assert "people" in numbers(page)
    assert "epsilon 4" in verdict(page)
    choose(page, "Label column", "variety")
    assert "Colour: variety" in numbers(page)
    link, shown = page.url, numbers(page)
    assert "table=upload" in link
    for private in ("patients", "csv", "variety", "mass_g", "brix"):
        assert private not in link
    with new_context(browser) as other:
        guest = new_page(other)
        open_app(guest, link)
        (said,) = errors(guest)
        assert "Upload the file" in said
        expect(guest.get_by_label("Epsilon, exact")).to_have_value("4")
        assert guest.url == link
        assert guest.locator(CHARTS).count() == 0
        send(guest, "patients.csv", EXAMPLE.read_bytes())
        assert errors(guest) == []
        assert numbers(guest) == shown
        assert guest.url == link
        assert problems_of(guest) == ""


def bomb() -> bytes:
    """Return 2.6 MB that unpack to 2.5 GiB: one gzip member forty times over."""
    return gzip.compress(b"1,2\n" * (16 << 20), 9) * 40


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(2000), "PNG"),
        ("empty.csv", b"", "empty"),
        ("table.parquet", b"a,b\n1,2\n3,4\n", "Parquet"),
        ("bomb.csv.gz", None, "2 GiB"),
    ],
)
def test_a_bad_upload_is_one_sentence(
    page: Page, server: Server, name: str, content: bytes | None, word: str
) -> None:
    open_app(page, server.url + "/" + QUICK + "&epsilon=3")
    send(page, name, bomb() if content is None else content)
    (said,) = errors(page)
    assert word in said
    assert "\n" not in said
    assert said.endswith(".")
    assert page.locator(CHARTS).count() == 0
    expect(page.get_by_label("Epsilon, exact")).to_have_value("3")
    choose(page, "Table", "Wine")
    assert errors(page) == []
    assert "At epsilon 3" in verdict(page)


def test_an_upload_survives_pages_sliders_and_clicks(page: Page, server: Server) -> None:
    open_app(page, server.url + "/?v=1&trials=5")
    send(page, "example.csv", EXAMPLE.read_bytes())
    shown = numbers(page)
    page.get_by_text("What am I looking at?").click()
    page.get_by_text("What am I looking at?").click()
    with rerun(page):
        page.get_by_text("The numbers behind this chart").first.click()
    with rerun(page):
        page.get_by_text("The numbers behind this chart").first.click()
    assert numbers(page) == shown
    links = page.get_by_test_id("stTopNavLink")
    for number in range(links.count()):
        with rerun(page):
            links.nth(number).click()
        assert errors(page) == []
        slider = epsilon_slider(page)
        slider.focus()
        with rerun(page):
            slider.press("ArrowRight")
        with rerun(page):
            slider.press("ArrowLeft")
    if links.count():
        with rerun(page):
            page.get_by_test_id("stTopNavLink").filter(has_text="Explore").click()
    assert numbers(page) == shown


def test_unrelated_clicks_leave_the_view_alone(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK + "&k=3&epsilon=0.7")
    shown, link, runs = numbers(page), page.url, watch_of(page).runs
    page.get_by_role("heading", level=1).click()
    for chart in charts(page):
        chart.click(position={"x": 30, "y": 30})
    assert numbers(page) == shown
    page.get_by_text("What this assumes to be public").click()
    expect(page.get_by_text("Taken as public knowledge here")).to_be_visible()
    assert (verdict(page), page.url, watch_of(page).runs) == (shown_verdict(shown), link, runs)


def shown_verdict(text: str) -> str:
    """Return the verdict's line of a page's text."""
    return next(line for line in text.splitlines() if line.startswith("At epsilon"))


def test_downloads_hold_what_the_page_shows(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Summary (CSV)").click()
    text = Path(waiting.value.path()).read_text()
    assert waiting.value.suggested_filename == "dpviz-summary.csv"
    assert text.splitlines()[0].startswith("mechanism,status,claimed_epsilon")
    assert len(text.splitlines()) == 1 + 6


@pytest.mark.parametrize("page_name", PAGES)
def test_a_deep_link_on_a_fresh_server(page: Page, fresh_server: object, page_name: str) -> None:
    started: Server = fresh_server()  # type: ignore[operator]
    path = "" if page_name == "explore" else page_name
    open_app(page, f"{started.url}/{path}?v=1&table=iris&trials=5&epsilon=2&k=3")
    assert errors(page) == []
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_label("Epsilon, exact")).to_have_value("2")
    assert "epsilon=2" in page.url
    assert "k=3" in page.url
    if path:
        assert f"/{path}" in page.url
