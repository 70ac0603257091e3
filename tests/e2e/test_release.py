"""The Release and Preparation pages in a real browser: declare, spend, look, take away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import dpviz
from dpviz.core.problem import Budget, Relation
from dpviz.datasets import Table
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.schema import Column, Schema
from dpviz.releasing.verifying import verify
from tests.e2e.harness import Server, open_app, rerun, travel, wait_idle

LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 420, "height": 900}
VIEW = "?v=1&table=wine&trials=5&relation=zero-out"


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
    """Make a ledger where the server looks for them."""
    ledger = Ledger(server.folder / "ledgers" / f"{name}.jsonl")
    ledger.path.parent.mkdir(exist_ok=True)
    ledger.create(LIMIT, Relation.REPLACE)
    return ledger


def answer(page: Page) -> None:
    """Say that nobody knows how many rows one person has."""
    with rerun(page):
        page.get_by_text("not known: one ROW is protected").click()


def confirm(page: Page, server: Server) -> Locator:
    """Fill the form for the ledger last made, look at the cost, and return the button."""
    open_app(page, f"{server.url}/release?v=1&table=digits")
    answer(page)
    write(page, "Row bound", "60")
    write(page, "Delta", "1e-6")
    with rerun(page):
        page.get_by_role("button", name="Show what it costs").click()
    return page.get_by_role("button", name="Release, and spend")


def test_one_release_is_one_spend_and_is_there_for_the_next_visit(
    page: Page, server: Server, tmp_path: Path
) -> None:
    open_app(page, f"{server.url}/release?v=1&table=digits")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Release")
    answer(page)
    choice = page.get_by_role("combobox", name="Ledger")
    if "a new ledger" not in (choice.input_value() or ""):  # another test has made one
        choice.scroll_into_view_if_needed()
        wait_idle(page)  # an open list closes where anything is scrolled
        choice.click()
        with rerun(page):
            page.get_by_role("option", name="a new ledger").click()
    write(page, "Name of the ledger", "browser")
    write(page, "Limit", "3,1e-5")
    with rerun(page):
        page.get_by_role("button", name="Make the ledger").click()
    look = page.get_by_role("button", name="Show what it costs")
    with rerun(page):
        look.click()
    expect(page.get_by_text("delta must be stated: a number from 0")).to_be_visible()
    write(page, "Row bound", "60")
    write(page, "Delta", "1e-6")
    with rerun(page):
        look.click()
    expect(page.get_by_text("This release spends ε 1 and δ 1e-6 by gaussian")).to_be_visible()
    with rerun(page):
        page.get_by_role("button", name="Release, and spend").click()
    expect(page.get_by_text("spend number 1")).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download the release").click()
    target = tmp_path / "release.json"
    found.value.save_as(target)
    made = json.loads(target.read_text(encoding="utf-8"))
    assert made["dpviz_release"] == 1
    assert made["declared"]["row_bound"] == 60
    assert made["proved"]["epsilon"] == pytest.approx(1)
    assert verify(Ledger(server.folder / "ledgers" / "browser.jsonl"), [target]) == []
    # whatever else makes the page run again spends nothing
    write(page, "Epsilon", "0.5")
    expect(page.get_by_text("spend number 1")).to_be_visible()
    page.set_viewport_size(PHONE)
    assert not overflows(page)
    # the next visit finds what was released
    page.set_viewport_size(LAPTOP)
    page.reload()
    wait_idle(page)
    expect(page.get_by_text("This is spend number")).to_have_count(0)
    with page.expect_download() as found:
        page.get_by_role("button", name="Download the release").click()
    ledger = Ledger(server.folder / "ledgers" / "browser.jsonl")
    (kept,) = ledger.kept().values()
    assert Path(found.value.path()).read_bytes() == kept.read_bytes()
    assert len(ledger.read().spends) == 1


def test_a_double_click_on_the_cost_spends_nothing_and_one_on_the_release_once(
    page: Page, server: Server
) -> None:
    ledger = ledger_of(server, "double")
    button = confirm(page, server)
    page.get_by_role("button", name="Show what it costs").dblclick()
    expect(page.get_by_text("This release spends ε 1")).to_be_visible()
    wait_idle(page)
    assert ledger.read().spends == ()
    for number, apart in enumerate((0, 80, 200, 400, 700), 1):
        if number > 1:
            with rerun(page):
                page.get_by_role("button", name="Show what it costs").click()
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.click(x, y)
        page.evaluate("pause => new Promise(done => setTimeout(done, pause))", apart)
        page.mouse.click(x, y)
        expect(page.get_by_text(f"This is spend number {number} in the ledger")).to_be_visible()
        wait_idle(page)
        assert len(ledger.read().spends) == number, f"{apart} ms apart"
        assert list(ledger.kept()) == list(range(1, number + 1))


def test_a_reload_right_after_the_click_loses_nothing(page: Page, server: Server) -> None:
    ledger = ledger_of(server, "reloaded")
    confirm(page, server).click()
    page.reload()
    wait_idle(page)
    # the click may have been too late for the server: what was spent is what can be seen
    kept, spends = ledger.kept(), ledger.read().spends
    assert list(kept) == list(range(1, len(spends) + 1))
    if not spends:
        return
    travel(page, f"{server.url}/release?v=1&table=digits")  # a run that began after the spend
    shown = page.get_by_role("combobox", name="Release", exact=True)
    expect(shown).to_have_value(re.compile("^1 · .* · gaussian"))
    expect(page.get_by_role("button", name="Download the release")).to_be_visible()


def test_on_a_phone_a_picture_of_people_is_refused_and_what_may_leave_is_filled_in(
    page: Page, server: Server
) -> None:
    page.set_viewport_size(PHONE)
    open_app(page, f"{server.url}/decide?v=1&table=digits")
    card = page.locator(".dp-ceiling")
    expect(card).to_contain_text("? This protects one ROW")
    with rerun(page):
        page.get_by_text("each row is another person").click()
    expect(card).to_contain_text("This protects a person, who has one row.")
    # what is answered, and the way on, stay in sight
    bar = page.locator(".st-key-decide-bar")
    expect(bar).to_contain_text(re.compile(r"✓ Yes · 1 → 3 in 100 · \d+ of 100"))
    place = bar.bounding_box()
    assert place is not None
    assert place["y"] + place["height"] == PHONE["height"]
    expect(bar.get_by_role("button", name="Release this")).to_be_visible()
    handed = page.get_by_role("combobox", name="What is handed out?")
    for picked, said in (
        ("also a picture of the people", "No. A picture of the people cannot be published"),
        ("also points drawn from these", "parts survive at your ceiling"),
    ):
        handed.click()
        with rerun(page):
            page.get_by_role("option", name=picked).click()
        expect(card.get_by_role("heading", level=2)).to_contain_text(said)
        refused = said.startswith("No.")
        expect(page.get_by_role("button", name="Release this")).to_have_count(0 if refused else 1)
        assert card.locator("img").count() == 0 if refused else card.locator("img").count() > 0
        assert not overflows(page)
    page.get_by_role("button", name="Release this").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Release")
    expect(page.get_by_role("textbox", name="Epsilon", exact=True)).to_have_value("1.11")
    for place in (".st-key-schema-unit-said", ".dp-receipt"):
        told = page.locator(place).get_by_text("This protects a person, who has one row.")
        expect(told).to_be_visible()
    wait_idle(page)
    assert not overflows(page)


def test_what_is_paid_for_stands_in_the_link(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/preparation{VIEW}")
    expect(
        page.get_by_text(re.compile("Recovery is .* where everything but the rows"))
    ).to_be_visible()
    expect(page.get_by_text("The feature bounds are taken from the data")).to_be_visible()
    write(page, "Feature bounds", "0:2000")
    expect(page.get_by_text("The feature bounds are taken from the data")).to_have_count(0)
    assert page.locator(".js-plotly-plot").count() == 1
    slider = page.get_by_role("slider", name="Share for the mean")
    slider.focus()
    with rerun(page):
        page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("mean_share=0.11"))
    with rerun(page):
        page.get_by_role("button", name="Pay for all of it on every page").click()
    expect(page).to_have_url(re.compile("center=private.*row_bound=private"))
    page.set_viewport_size(PHONE)
    assert not overflows(page)


def test_a_card_stays_one_page_with_long_names_and_many_columns(page: Page, tmp_path: Path) -> None:
    long = "Laboratory value with a long name that nobody has cut short, "[:57]
    names = [f"{long}{number:03}" for number in range(40)]
    rows = np.random.default_rng(0).normal(size=(300, 40)) * np.linspace(3, 0.5, 40)
    book, out = dpviz.ledger(tmp_path / "book.jsonl", limit=(9, 1e-4)).ledger, tmp_path / "out"
    dpviz.release(
        Table("wide", rows, tuple(names)),
        schema=Schema(tuple(Column(name, -20, 20) for name in names)),
        ledger=book, out=out, rows="unit", center="private", delta=1e-6, epsilon=5, k=5,
    )  # fmt: skip
    said = ("reporting limits, sheet of 2024-03-01, page 7", "A. Example, data office")
    card = dpviz.card(
        out, ledger=book.path, title="T" * 60, purpose="quality report " * 8 + "2026",
        controller="A hospital", sources=dict.fromkeys(range(1, 6), said),
    )  # fmt: skip
    page.set_content(card.to_html())
    sheets = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", sheets)) == 1
    assert page.locator("main svg text").filter(has_text="…").count() == 12
    assert len(set(page.locator("main svg text").filter(has_text="…").all_text_contents())) == 12
    assert page.locator(".stamp.look").count() == 1  # 1 in 100 becomes 60
