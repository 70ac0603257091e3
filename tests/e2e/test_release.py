"""The Release and Preparation pages in a real browser: declare, spend, look, take away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun

PHONE = {"width": 420, "height": 900}
VIEW = "?v=1&table=wine&trials=5&relation=zero-out"


def write(page: Page, label: str, text: str) -> None:
    """Fill a text field and leave it, as a user does."""
    box = page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    with rerun(page):
        box.press("Tab")


def overflows(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def test_one_release_is_one_spend(page: Page, server: Server, tmp_path: Path) -> None:
    open_app(page, f"{server.url}/release?v=1&table=digits")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Release")
    send = page.get_by_role("button", name="Release, and spend")
    with rerun(page):
        send.click()
    expect(page.get_by_text("row bound must be a number above 0")).to_be_visible()
    write(page, "Row bound", "60")
    write(page, "Ledger", "browser")
    write(page, "Limit of a new ledger", "3,1e-5")
    with rerun(page):
        send.click()
    expect(page.get_by_text("spend number 1")).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="Download the release").click()
    target = tmp_path / "release.json"
    found.value.save_as(target)
    made = json.loads(target.read_text(encoding="utf-8"))
    assert made["dpviz_release"] == 1
    assert made["declared"]["row_bound"] == 60
    assert made["proved"]["epsilon"] == pytest.approx(1)
    # whatever else makes the page run again spends nothing
    write(page, "Epsilon", "0.5")
    expect(page.get_by_text("spend number 1")).to_be_visible()
    page.set_viewport_size(PHONE)
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
