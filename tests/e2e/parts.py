"""Parts of a page that is drawn one part at a time, shown one after the other in one load."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from tests.e2e.harness import rerun
from tests.ui.driver import parts_of

CHOOSES = ".st-key-claims-back button"
"""The way back from a part to what opens it."""
SHOWN = ".st-key-claims-shown"
"""The part that is shown, below the way back."""


def show(page: Page, chosen: dict[str, str]) -> None:
    """Show a part, and of the refutations one exhibit, as a visitor would."""
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
    "person": "Drag one person",
    "code": "Found in public code",
    "exploring": "What no promise covers",
}
"""What no card opens, by what the buttons say."""


def each(page: Page, name: str) -> Iterator[str]:
    """Show every part of a page in turn and yield its name; a page without parts is as it is."""
    for chosen in parts_of(name):
        if chosen:
            show(page, chosen)
        yield " ".join([name, *chosen.values()])
