"""Parts of a page that is drawn one part at a time, shown one after the other in one load."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from dpviz.core.params import params_of
from pages.ui.page_options import ClaimsView
from tests.e2e.harness import rerun
from tests.ui.driver import parts_of

CHOOSES = ".st-key-claims-part *"
"""What is inside the row that chooses a part."""
SHOWN = ".st-key-claims-shown"
"""The part that is shown, below what chooses it."""


def show(page: Page, chosen: dict[str, str]) -> None:
    """Show a part, and of the refutations one exhibit, as a visitor would."""
    for name, param in params_of(ClaimsView).items():
        if name == "exhibit" and chosen["part"] != "refutations":
            continue
        choice = page.get_by_role("radio", name=param.choices[chosen[name]], exact=True)
        if not choice.is_checked():
            with rerun(page):
                choice.click()


def each(page: Page, name: str) -> Iterator[str]:
    """Show every part of a page in turn and yield its name; a page without parts is as it is."""
    for chosen in parts_of(name):
        if chosen:
            show(page, chosen)
        yield " ".join([name, *chosen.values()])
