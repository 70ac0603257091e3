"""What people do, in a real browser: look, move, share, upload, and make mistakes.

The tests of this module share one server; each has a browser session of its own.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

import dpviz
from dpviz.core.files import app_path
from dpviz.core.seeding import generator
from dpviz.releasing.schema import Column, Schema
from tests.e2e.harness import (
    LEAST_TEXT,
    Server,
    new_page,
    open_app,
    problems_of,
    rerun,
)
from tests.unit.test_datasets_formats import workbook

ROOT = app_path().parent
EXAMPLE = ROOT / "data" / "example.csv"
QUICK = "?v=1&table=iris&trials=5"  # iris is small and fast. Tests of size use digits instead.
TWO = f"{QUICK}&m=gaussian,laplace"  # Tests that allow any number of mechanisms use two.
CHARTS = '[data-testid="stEChartsChart"], [data-testid="stPlotlyChart"]'
BOARD = ".dpv"
SCREEN = {"width": 1400, "height": 900}
ANSWER = '[class*="st-key-decide-answer-"]'
PANELS = 3  # A column shows three panels: picture, spectrum and distance.

# Return whether a canvas or chart shows anything, so that an empty figure fails the test.
_PAINTED = """
chart => {
  const canvas = chart.matches('canvas') ? chart : chart.querySelector('canvas');
  if (!canvas || !canvas.width || !canvas.height) return false;
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 3; i < data.length; i += 4) if (data[i]) return true;
  return false;
}
"""


def numbers(page: Page) -> str:
    """Return all text below the row of settings: verdict, captions, command.

    The result omits texts of charts, because charts may be painted at any time.
    """
    text: str = page.get_by_test_id("stMain").evaluate(
        """main => {
          const aside = '.st-key-bar, [data-testid="stPlotlyChart"]';
          let text = main.innerText;
          main.querySelectorAll(aside).forEach(node => text = text.replace(node.innerText, ''));
          return text.split('\\n').filter(line => line.trim()).join('\\n');
        }"""
    )
    return text


def verdict_of(page: Page) -> Locator:
    """Return the verdict, the first sentence of the page, below the questions about an upload."""
    bold = page.get_by_test_id("stMain").locator("strong").filter(has_text="At epsilon")
    return bold.filter(visible=True).first


def verdict(page: Page) -> str:
    return verdict_of(page).inner_text()


def panels(page: Page, columns: int = 7) -> list[Locator]:
    """Return the Explore figure's canvases after checking that all columns are present."""
    canvases = page.locator(f"{BOARD} .dpv-col canvas")
    expect(canvases).to_have_count(columns * PANELS)
    return canvases.all()


def scrubber(page: Page) -> Locator:
    """Return the Explore figure's own slider."""
    return page.get_by_role("slider", name="Epsilon")


def epsilon_box(page: Page) -> Locator:
    """Return the text box that accepts any epsilon."""
    return page.locator(".st-key-bar").get_by_role("textbox", name="Epsilon")


def errors(page: Page) -> list[str]:
    # Drop the first line of an error box, because it is the name of an icon.
    boxes = page.get_by_test_id("stAlertContentError").all_inner_texts()
    return ["\n".join(line for line in box.splitlines()[1:] if line) for box in boxes]


def type_into(page: Page, label: str, text: str) -> None:
    """Replace the text of a box and leave the box, which runs the script."""
    box = page.locator(".st-key-bar").get_by_role("textbox", name=label)
    with rerun(page):
        box.fill(text)
        box.press("Enter")


def working_view(page: Page) -> None:
    """Open the working view, which shows an upload's rows."""
    with rerun(page):
        page.get_by_role("button", name="working view").click()


def send(page: Page, name: str, content: bytes) -> None:
    """Upload a file in the box that the Upload button opens."""
    if not page.get_by_test_id("stFileUploaderDropzoneInput").count():
        page.get_by_role("button", name="Upload").first.click()
        page.get_by_test_id("stFileUploaderDropzoneInput").wait_for(state="attached")
    with rerun(page):
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
            {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        )


def test_first_visit(page: Page, server: Server) -> None:
    """A first visit shows the whole figure on the first screen of a projector or laptop."""
    page.set_viewport_size(SCREEN)  # type: ignore[arg-type]
    open_app(page, server.url)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "How small can epsilon be before the structure disappears?"
    )
    best = r"At epsilon 1 and delta \S+, .+ recovers \d+\u00a0% of the structure"
    assert re.search(best, verdict(page))
    assert "digits: 1,797 people" in numbers(page)
    for panel in panels(page):
        assert panel.evaluate(_PAINTED)
    assert errors(page) == []
    assert page.url.endswith("?v=1")
    columns = page.locator(".dpv-col")
    expect(columns).to_have_count(7)  # The columns are six mechanisms and the exact result.
    tops = set()
    for column in columns.all():
        for part in ("canvas.dpv-picture", "canvas.dpv-spectrum", "canvas.dpv-distance",
                     ".dpv-recovery"):  # fmt: skip
            box = column.locator(part).bounding_box()
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= SCREEN["height"]
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= SCREEN["width"]
            assert box["width"] > 120
        head = column.locator(".dpv-head").bounding_box()
        assert head is not None
        tops.add(head["y"])
    assert len(tops) == 1, "the columns stand side by side"
    strip = page.locator("canvas.dpv-strip").bounding_box()
    assert strip is not None
    assert strip["y"] + strip["height"] <= SCREEN["height"]


def test_a_blank_chart_would_be_noticed(page: Page) -> None:
    # Control: the test detects that an empty canvas shows nothing.
    page.set_content('<canvas id="c" width="50" height="50"></canvas>')
    assert page.locator("#c").evaluate(_PAINTED) is False


@pytest.mark.first
def test_epsilon_by_keyboard_and_typed_changes_the_numbers(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + TWO)
    before = verdict(page)
    scrubber(page).focus()
    with rerun(page):
        page.keyboard.press("ArrowRight")
    assert "At epsilon 1.25" in verdict(page)
    assert verdict(page) != before
    assert "epsilon=1.25" in page.url
    # The slider keeps the focus, so that the next key press moves it again.
    with rerun(page):
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
    assert "At epsilon 0.8" in verdict(page)
    # The box accepts any epsilon, and an invalid value changes nothing on the page.
    type_into(page, "Epsilon", "0.05")
    assert "At epsilon 0.05" in verdict(page)
    assert "Below epsilon 0.1" in numbers(page)
    before = numbers(page)
    type_into(page, "Epsilon", "minus one")
    (message,) = errors(page)
    assert "epsilon must be a number from 0.0001 to 1e6; got 'minus one'." in message
    assert epsilon_box(page).input_value() == "minus one"
    assert numbers(page) == before
    type_into(page, "Epsilon", "6")
    assert errors(page) == []
    assert "Above epsilon 5" in numbers(page)


def test_downloads_hold_what_the_page_shows_and_k_changes_it(page: Page, server: Server) -> None:
    open_app(page, server.url + "/" + QUICK)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Summary (CSV)").click()
    text = Path(waiting.value.path()).read_text()
    assert waiting.value.suggested_filename == "dpviz-summary.csv"
    assert text.splitlines()[0].startswith("mechanism,status,aims_at,bias,claimed_epsilon")
    assert len(text.splitlines()) == 1 + 6
    box = page.get_by_role("spinbutton", name="Components k")
    box.focus()
    with rerun(page):
        box.press("ArrowDown")
    assert "recovers" in verdict(page)
    assert "one component" in verdict(page)
    assert "&k=1" in page.url
    for panel in panels(page):
        assert panel.evaluate(_PAINTED)


@pytest.mark.first
def test_an_upload_is_analysed_and_its_link_asks_for_the_file(
    page: Page, server: Server, other_context: BrowserContext
) -> None:
    open_app(page, server.url + "/" + TWO + "&epsilon=4")
    send(page, "patients.csv", EXAMPLE.read_bytes())
    assert "people" in numbers(page)
    # An open upload box would cover the messages about the uploaded file.
    expect(page.get_by_test_id("stFileUploaderDropzoneInput")).to_have_count(0)
    survives = "At epsilon 4, the chart of .* shows the structure that survives its noise. "
    answer = page.locator(f"{BOARD} .dpv-answer")
    expect(answer).to_have_text(re.compile(f"{survives}A guess .*a coin: 50"))
    expect(page.get_by_role("button", name="colour: variety")).to_be_visible()  # guessed
    working_view(page)
    page.set_viewport_size({"width": 1400, "height": 900})
    expect(page.locator(f"{BOARD} .dpv-bar")).to_be_in_viewport(ratio=1)
    assert "epsilon 4" in verdict(page)
    expect(page.locator(f"{BOARD} .dpv-legend")).to_contain_text("variety")
    link, values = page.url, numbers(page)
    assert "table=upload" in link
    for private in ("patients", "csv", "variety", "mass_g", "brix"):
        assert private not in link
    guest = new_page(other_context)
    open_app(guest, link)
    (message,) = errors(guest)
    assert "Upload the file" in message
    expect(epsilon_box(guest)).to_have_value("4")
    assert guest.url == link
    assert guest.locator(BOARD).count() == 0
    send(guest, "patients.csv", EXAMPLE.read_bytes())
    working_view(guest)
    assert errors(guest) == []
    assert numbers(guest) == values
    assert guest.url == link
    assert problems_of(guest) == ""


def test_pictures_of_uploaded_rows_carry_a_ribbon_and_a_wall_shows_none_of_them(
    page: Page, server: Server
) -> None:
    """An upload is shown with noise only; its rows are shown only on request."""
    words = "working view of real rows: internal, do not share"
    open_app(page, server.url + "/" + TWO)
    ribbon = page.locator(f"{BOARD} .dpv-ribbon")
    expect(ribbon).to_be_hidden()  # The page shows no warning if the data is public.
    cost = "This chart uses epsilon 1 in total for axes and points."
    caution = (
        f"{cost} Do not publish this chart: no schema says how the file is read. "
        "Publish a release instead."
    )
    inside = """board => [".dpv-bar", ".dpv-grid"].map(part => board.querySelector(part)
      .getBoundingClientRect().top - board.getBoundingClientRect().top)"""
    places = page.locator(BOARD).evaluate(inside)
    page.get_by_role("button", name="publishable").click()
    expect(page.locator(f"{BOARD} .dpv-answer")).to_have_text(cost)
    assert page.locator(BOARD).evaluate(inside) == places  # No element of the figure has moved.
    page.get_by_role("button", name="working view").click()
    send(page, "patients.csv", EXAMPLE.read_bytes())
    expect(ribbon).to_have_text(caution)
    labels = page.locator(f"{BOARD} canvas.dpv-picture").filter(visible=True)

    def drawn() -> list[str]:
        return [canvas.get_attribute("aria-label") or "" for canvas in labels.all()]

    assert not any("Rows of" in label for label in drawn()), drawn()
    page.get_by_role("button", name="working view").click()  # This view shows the uploaded rows.
    expect(labels.first).to_have_attribute("aria-label", re.compile("^Rows of"))
    expect(ribbon).to_have_text(words)
    page.emulate_media(media="print")
    expect(ribbon).to_be_visible()
    page.emulate_media(media="screen")
    page.get_by_role("button", name="present", exact=True).click()
    expect(labels.first).to_have_attribute("aria-label", "the truth stays here")
    assert not any("Rows of" in label for label in drawn()), drawn()
    assert any(label.startswith("Noisy picture, Gaussian") for label in drawn()), drawn()
    expect(ribbon).to_have_text(caution)
    page.get_by_role("button", name="working view").click()
    expect(labels.first).to_have_attribute("aria-label", re.compile("^Rows of"))
    expect(ribbon).to_have_text(words)
    page.keyboard.press("Escape")
    assert all(label.startswith("Rows of") for label in drawn()), drawn()
    assert problems_of(page) == ""


def bomb() -> bytes:
    """Return 2.6 MB that unpack to 2.5 GiB: one gzip member repeated forty times."""
    return gzip.compress(b"1,2\n" * (16 << 20), 9) * 40


def titles(page: Page) -> list[str]:
    """Open the menu's headings and return the title of every page."""
    links = page.get_by_test_id("stTopNavLink").all_inner_texts()
    for section in page.get_by_test_id("stTopNavSection").all():
        section.click()
        links += page.get_by_test_id("stTopNavDropdownLink").all_inner_texts()
        page.keyboard.press("Escape")
    return [text.splitlines()[-1] for text in links]


def visit(page: Page, title: str) -> None:
    """Go to a page by the menu."""
    page.mouse.move(0, 0)  # Help text under the pointer could cover the menu.
    link = page.get_by_test_id("stTopNavLink").filter(has_text=title)
    menu = page.get_by_test_id("stTopNavDropdownLink")
    for section in page.get_by_test_id("stTopNavSection").all() if not link.count() else ():
        section.click()
        menu.first.wait_for()
        link = menu.filter(has_text=title)
        if link.count():
            break
        page.keyboard.press("Escape")
        expect(menu).to_have_count(0)
    with rerun(page):
        link.click()


def hospital() -> bytes:
    """Return a hospital's workbook: umlauts, -999 for missing values, three visits a patient."""
    rng = generator(0, "tests", "hospital")
    names = ["Patient Nr", "Größe (cm)", "Gewicht (kg)", "CRP (mg/l)", "Kalium", "Bemerkung"]
    rows: list[list[object]] = [[*names]]
    for i in range(900):
        numbers: list[object] = [round(float(x), 2) for x in rng.normal((170, 75, 40, 4), 5)]
        if i % 20 == 0:
            numbers[2] = -999.0
        remark = "seit Montag wieder Schmerzen im linken Arm" if i % 7 else "ohne Befund"
        rows.append([float(70_000 + 31 * (i // 3)), *numbers, remark])
    return workbook({"Hinweise": [["Export der Station"]], "Labor": rows})


LIMITS = (
    Schema(
        (
            Column("Patient Nr", use=False), Column("Größe (cm)", 100, 240),
            Column("Gewicht (kg)", 20, 240, missing=(-999.0,)), Column("CRP (mg/l)", 0, 240),
            Column("Kalium", 0, 20), Column("Bemerkung", use=False),
        ),
        rows_a_person=1,
        person="Patient Nr",
    )
    .to_text()
    .encode()
)  # fmt: skip


def answers_on_the_first_screen(page: Page) -> None:
    """Check that the question, the answer with its risk, and all epsilons need no scrolling."""
    plot = ".st-key-decide-room .cartesianlayer .xy"
    for answer in (".st-key-decide-question", ANSWER, f"{ANSWER} h2", plot):
        box = page.locator(answer).first.bounding_box()
        assert box is not None, answer
        assert 0 < box["y"] < box["y"] + box["height"] <= SCREEN["height"], answer


@pytest.mark.first
def test_from_a_hospitals_workbook_to_a_verified_card(
    page: Page, server: Server, tmp_path: Path
) -> None:
    open_app(page, f"{server.url}/?v=1&table=upload&trials=5&m=gaussian&k=1")
    send(page, "labor.xlsx", hospital())
    page.keyboard.press("Escape")
    unit = page.locator(".st-key-check-unit")
    question = page.get_by_role("radiogroup", name="How many rows can one person have?")
    page.set_viewport_size(SCREEN)  # type: ignore[arg-type]
    visit(page, "Decide")
    expect(page.locator(".st-key-decide-open")).to_contain_text("the release protects one ROW")
    answers_on_the_first_screen(page)  # Decide answers before a unit of privacy is declared.
    unit.get_by_role("button", name="rows of one person: not stated").click()
    with rerun(page):
        question.get_by_text("a column identifies the person", exact=True).click()
    expect(page.get_by_text("This protects a person, who has one row.")).to_be_visible()
    page.keyboard.press("Escape")
    answers_on_the_first_screen(page)
    visit(page, "Explore")
    expect(unit).to_contain_text("identifies the person")
    with rerun(page):
        page.get_by_role("button", name="missing values").click()
    code = page.locator('[class*="st-key-check-code-"]')
    expect(code).to_contain_text("Is -999 a value? The number occurs in 45 cells")
    assert page.get_by_test_id("stPopoverBody").evaluate(LEAST_TEXT) >= 15
    with rerun(page):
        code.get_by_role("button", name="Treat -999 as missing").click()
    expect(code).to_have_count(0)
    expect(page.locator(BOARD)).to_have_count(1)
    assert "Montag" not in page.locator("body").inner_text()
    visit(page, "Decide")
    expect(page.locator(".st-key-decide-open")).not_to_contain_text("one ROW")
    answers_on_the_first_screen(page)
    with rerun(page):  # The release still needs declared limits.
        page.get_by_role("button", name="State the limits").click()
    expect(page.get_by_text("Sheet Labor: each cell is read by itself")).to_be_visible()
    page.get_by_role("button", name="Load a schema").click()
    with rerun(page):
        page.locator(".st-key-schema-file input").set_input_files(
            {"name": "limits.json", "mimeType": "application/json", "buffer": LIMITS}
        )
    page.keyboard.press("Escape")
    visit(page, "Decide")
    with rerun(page):
        page.get_by_role("button", name="State other limits").click()
    for label, text in (("Name of the ledger", "ward"), ("Limit", "3,1e-5")):
        box = page.get_by_role("textbox", name=label, exact=True)
        box.fill(text)
        with rerun(page):
            box.press("Tab")
    for name in ("Make the ledger", "Show the privacy cost"):
        with rerun(page):
            page.get_by_role("button", name=name).click()
    for words in ("I understand that this cannot", "I agree to use epsilon"):
        with rerun(page):
            page.get_by_text(words).click()
    with rerun(page):
        page.get_by_role("button", name="Publish once at epsilon").click()
    expect(page.get_by_text("This is spend number 1")).to_be_visible()
    page.get_by_text("Privacy card for your records").click()
    names = {"release": "Download the release", "card": "Card file for dpviz release verify"}
    for name, button in names.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        download.value.save_as(tmp_path / name)
    card = json.loads((tmp_path / "card").read_text())
    assert card["unit"]["protected"] == "person"
    ledger = server.folder / "ledgers" / "ward.jsonl"
    assert dpviz.verify(tmp_path / "card", tmp_path / "release", ledger).status == 0
    # The command line reads the same sheet as the page, so the ledger and card know its table.
    (tmp_path / "labor.xlsx").write_bytes(hospital())
    (tmp_path / "limits.json").write_bytes(LIMITS)
    card_file = dpviz.card(
        tmp_path / "release", ledger=ledger, table=tmp_path / "labor.xlsx", sheet="Labor",
        schema=tmp_path / "limits.json",
    )  # fmt: skip
    assert card_file.data()["data"]["rows"] == 300
