"""Helpers that drive and read the page of the browser edition."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

SUB_PATH = "some/where"
CSV = b"a,b,c\n1,2,3\n4,5,7\n2,1,0\n9,8,1\n3,3,8\n5,0,2\n"
QUICK = "?v=1&table=iris&trials=5"
_IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def main_of(page: Page) -> Locator:
    """Return the main part of the page, without the menu."""
    return page.get_by_test_id("stMain")


def verdict_of(page: Page) -> Locator:
    """Return the verdict at the top of Explore, below the questions about an upload."""
    return main_of(page).locator("strong").filter(has_text="At epsilon", visible=True).first


def wait_idle(page: Page) -> None:
    """Wait until no script runs; after a change, first wait for its effect."""
    page.locator(_IDLE).wait_for()
    page.wait_for_function("() => !document.querySelector('[data-testid=\"stSkeleton\"]')")


def visit(page: Page, name: str) -> None:
    """Open a page by its menu link, which carries its address, and wait until it is rendered."""
    link = page.locator(f'a[data-testid="stTopNavLink"][href$="/{name}"]')
    menu_link = page.locator(f'a[data-testid="stTopNavDropdownLink"][href$="/{name}"]')
    page.mouse.move(0, 0)  # Help text under the pointer could cover the menu.
    for section in page.get_by_test_id("stTopNavSection").all() if not link.count() else ():
        section.click()
        if menu_link.count():
            link = menu_link
            break
    link.click()
    page.wait_for_url(re.compile(rf"/{SUB_PATH}/{name}(\?|$)"))
    wait_idle(page)


def send(page: Page, name: str, content: bytes) -> None:
    """Upload a file."""
    if not page.get_by_test_id("stFileUploaderDropzoneInput").count():
        page.get_by_role("button", name="Upload").first.click()
        page.get_by_test_id("stFileUploaderDropzoneInput").wait_for(state="attached")
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    expect(main_of(page)).to_contain_text("6 people (rows), 3 features")


def asked_hosts(log: Path) -> set[str]:
    """Return the hosts that local pages requested, according to a network log of Chromium.

    Chromium's own update requests belong to no page; they fail and are ignored.
    """
    hosts = set()
    for event in json.loads(log.read_text(encoding="utf-8"))["events"]:
        facts = event.get("params") or {}
        url, site = str(facts.get("url", "")), str(facts.get("initiator", ""))
        if site.startswith("http://127.0.0.1") and "://" in url:
            hosts.add(urlsplit(url).hostname or "")
    return hosts
