"""The Release and Preparation pages in a real browser: declare, release, look, download."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from dpviz.core.problem import Budget, Relation
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.verifying import verify
from tests.e2e.harness import Server, open_app, rerun, travel, wait_idle

LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 420, "height": 900}


def write(page: Page, label: str, text: str) -> None:
    """Fill a text field and leave it, as a user does."""
    box = page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    with rerun(page):
        box.press("Tab")


def overflows(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


LIMIT = Budget(9.0, 1e-4)


def ledger_of(server: Server, name: str) -> Ledger:
    """Create a ledger in the server's folder of ledgers."""
    ledger = Ledger(server.folder / "ledgers" / f"{name}.jsonl")
    ledger.path.parent.mkdir(exist_ok=True)
    ledger.create(LIMIT, Relation.REPLACE)
    return ledger


def answer(page: Page) -> None:
    """State that nobody knows how many rows one person has."""
    page.get_by_role("button", name="rows of one person: not stated").click()
    with rerun(page):
        page.get_by_text("not known: one ROW is protected").click()
    page.keyboard.press("Escape")


def meant(page: Page) -> Locator:
    """Confirm each statement, and return the button that publishes."""
    for words in ("I understand that this cannot", "I agree to use epsilon"):
        with rerun(page):
            page.get_by_text(words).click()
    return page.get_by_role("button", name="Publish once at epsilon")


def confirm(page: Page, server: Server) -> Locator:
    """Fill the form for the ledger made last, show the cost, and return the button."""
    open_app(page, f"{server.url}/release?v=1&table=digits")
    answer(page)
    write(page, "Row bound", "60")
    write(page, "Delta", "1e-6")
    with rerun(page):
        page.get_by_role("button", name="Show the privacy cost").click()
    return meant(page)


@pytest.mark.first
def test_one_release_is_one_spend_and_is_there_for_the_next_visit(
    page: Page, server: Server, tmp_path: Path
) -> None:
    open_app(page, f"{server.url}/release?v=1&table=digits")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Publish once")
    answer(page)
    choice = page.get_by_role("combobox", name="Ledger")
    if "a new ledger" not in (choice.input_value() or ""):  # An earlier test created a ledger.
        choice.scroll_into_view_if_needed()
        wait_idle(page)  # If the page scrolls, an open list closes.
        choice.click()
        with rerun(page):
            page.get_by_role("option", name="a new ledger").click()
    write(page, "Name of the ledger", "browser")
    write(page, "Limit", "3,1e-5")
    with rerun(page):
        page.get_by_role("button", name="Make the ledger").click()
    look = page.get_by_role("button", name="Show the privacy cost")
    with rerun(page):
        look.click()
    expect(page.get_by_text("delta must be stated: a number from 0")).to_be_visible()
    write(page, "Row bound", "60")
    write(page, "Delta", "1e-6")
    with rerun(page):
        look.click()
    expect(page.get_by_text("This release by gaussian uses ε 1 and δ 1e-6")).to_be_visible()
    button = meant(page)
    with rerun(page):
        button.click()
    expect(page.get_by_text("spend number 1")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the release").click()
    target = tmp_path / "release.json"
    download.value.save_as(target)
    content = json.loads(target.read_text(encoding="utf-8"))
    assert content["dpviz_release"] == 1
    assert content["declared"]["row_bound"] == 60
    assert content["proved"]["epsilon"] == pytest.approx(1)
    assert verify(Ledger(server.folder / "ledgers" / "browser.jsonl"), [target]) == []
    # No later rerun of the page uses budget again.
    write(page, "Epsilon", "0.5")
    expect(page.get_by_text("spend number 1")).to_be_visible()
    page.set_viewport_size(PHONE)
    assert not overflows(page)
    # A later visit to the page shows the earlier release.
    page.set_viewport_size(LAPTOP)
    page.reload()
    wait_idle(page)
    expect(page.get_by_text("This is spend number")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the release").click()
    ledger = Ledger(server.folder / "ledgers" / "browser.jsonl")
    (release,) = ledger.kept().values()
    assert Path(download.value.path()).read_bytes() == release.read_bytes()
    assert len(ledger.read().spends) == 1


def test_a_double_click_on_the_cost_spends_nothing_and_one_on_the_release_once(
    page: Page, server: Server
) -> None:
    ledger = ledger_of(server, "double")
    button = confirm(page, server)
    page.get_by_role("button", name="Show the privacy cost").dblclick()
    expect(page.get_by_text("This release by gaussian uses ε 1")).to_be_visible()
    wait_idle(page)
    assert ledger.read().spends == ()
    for number, apart in enumerate((0, 80, 200, 400, 700), 1):
        if number > 1:
            with rerun(page):
                page.get_by_role("button", name="Show the privacy cost").click()
        meant(page)  # A new cost needs a new consent.
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.click(x, y)
        page.evaluate("pause => new Promise(done => setTimeout(done, pause))", apart)
        page.mouse.click(x, y)
        expect(page.get_by_text(f"This is spend number {number} of the ledger")).to_be_visible()
        wait_idle(page)
        assert len(ledger.read().spends) == number, f"{apart} ms apart"
        assert list(ledger.kept()) == list(range(1, number + 1))


def test_a_reload_right_after_the_click_loses_nothing(page: Page, server: Server) -> None:
    ledger = ledger_of(server, "reloaded")
    confirm(page, server).click()
    page.reload()
    wait_idle(page)
    # The click may have been too late. But if the ledger records a cost, its release must exist.
    releases, spends = ledger.kept(), ledger.read().spends
    assert list(releases) == list(range(1, len(spends) + 1))
    if not spends:
        return
    travel(page, f"{server.url}/release?v=1&table=digits")
    choice = page.get_by_role("combobox", name="Release", exact=True)
    expect(choice).to_have_value(re.compile("^1 · .* · gaussian"))
    expect(page.get_by_role("button", name="Download the release")).to_be_visible()


def test_on_a_phone_a_picture_of_people_is_refused_and_what_may_be_published_is_filled_in(
    page: Page, server: Server
) -> None:
    page.set_viewport_size(PHONE)
    open_app(page, f"{server.url}/decide?v=1&table=digits&hand_out=directions")
    still = page.locator(".st-key-decide-open")
    expect(still).to_contain_text("the release protects one ROW")
    page.get_by_role("button", name="rows of one person: not stated").click()
    with rerun(page):
        page.get_by_text("each row is a different person").click()
    page.keyboard.press("Escape")
    expect(still).to_contain_text("Nothing is left to do.")
    # The answer and the button for the next step stay visible while the page scrolls.
    bar = page.locator(".st-key-decide-bar")
    expect(bar).to_contain_text(re.compile(r"✓ ε 0\.\d+ · 1 → [\d.]+ in 100"))
    place = bar.bounding_box()
    assert place is not None
    assert place["y"] + place["height"] == PHONE["height"]
    step = page.get_by_role("button", name=re.compile("^Release at ε"))
    expect(step).to_be_visible()
    choice = page.get_by_role("combobox", name="What is published")
    answer = page.locator("[class*='st-key-decide-answer-']")
    for word, sentence in (
        ("a picture of the people", "No. A picture of the people cannot be published"),
        ("components alone", "the least that meets your goals"),
    ):
        choice.click()
        with rerun(page):
            page.get_by_role("option", name=word).click()
        expect(answer).to_contain_text(sentence)
        expect(step).to_have_count(0 if sentence.startswith("No.") else 1)
        assert not overflows(page)
    least = answer.get_by_role("heading", level=2).inner_text().removeprefix("✓ ε ")
    step.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Publish once")
    expect(page.get_by_role("textbox", name="Epsilon", exact=True)).to_have_value(least)
    expect(page.locator(".st-key-schema-unit")).to_contain_text("each row is a different person")
    receipt = page.locator(".dp-receipt").get_by_text("This protects a person, who has one row.")
    expect(receipt).to_be_visible()
    wait_idle(page)
    assert not overflows(page)
