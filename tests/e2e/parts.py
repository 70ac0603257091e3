"""Show, in one load, each part of a page that displays one part at a time."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from tests.e2e.harness import rerun
from tests.ui.driver import parts_of

CHOOSES = ".st-key-page-next button:has-text('All promises')"
"""Selector of the button that leads back from a part."""
SHOWN = ".st-key-claims-shown"
"""Selector of the shown part, below the button that leads back."""


def show(page: Page, chosen: dict[str, str]) -> None:
    """Open a part, or one exhibit of the refutations, as a visitor would."""
    back = page.locator(CHOOSES)
    if back.count():
        with rerun(page):
            back.click()
    if chosen["part"] == "verdicts":
        return
    if beside := BESIDE.get(
        chosen["exhibit"] if chosen["part"] == "refutations" else chosen["part"]
    ):
        with rerun(page):
            page.get_by_role("button", name=beside).click()
        return
    lead = f'.dp-go[data-part="{chosen["part"]}"]'
    if chosen["part"] == "refutations":
        lead += f'[data-exhibit="{chosen["exhibit"]}"]'
    if "mechanism" in chosen:
        lead += f'[data-mechanism="{chosen["mechanism"]}"]'
    evidence = page.locator(".dp-evidence", has=page.locator(lead)).first
    name = (evidence.get_attribute("id") or "").removeprefix("claim-")
    page.locator(f'[data-opens="{name}"]').click()
    with rerun(page):
        evidence.locator(lead).click()


BESIDE = {
    "person": "Move one person's row",
    "code": "Errors found in public code",
    "exploring": "What no promise covers",
}
"""Button names of the parts that no card opens."""


def each(page: Page, name: str) -> Iterator[str]:
    """Show every part of a page in turn and yield its name; a page without parts stays as it is."""
    for part in parts_of(name):
        if part:
            show(page, part)
        yield " ".join([name, *part.values()])
