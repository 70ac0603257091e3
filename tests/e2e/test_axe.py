"""axe-core on every page, light and dark, at a laptop's and a phone's width.

axe travels in the wheel of axe-playwright-python, so nothing is fetched. What Streamlit itself does
wrong is listed here with its place; everything else must be clean.
"""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page

from tests.e2e.harness import Server, open_app, wait_idle
from tests.ui.driver import PAGES

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")

# rule: a part of the element that Streamlit 1.67 draws. Reported upstream as issues of
# streamlit/streamlit: the uploader's drop zone is a focusable section with role presentation.
STREAMLITS_OWN = {"presentation-role-conflict": 'data-testid="stFileUploaderDropzone"'}

_RUN = "() => axe.run(document, {resultTypes: ['violations']})"


def violations(page: Page) -> list[str]:
    """Return what axe finds on the page as it is, but for Streamlit's own."""
    found = []
    for rule in page.evaluate(_RUN)["violations"]:
        own = STREAMLITS_OWN.get(rule["id"])
        for node in rule["nodes"]:
            if own is None or own not in node["html"]:
                summary = " ".join((node.get("failureSummary") or "").split())
                found.append(f"{rule['id']}: {node['html'][:120]} | {summary[:200]}")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_violation_of_ours(page: Page, server: Server, name: str) -> None:
    place = "" if name == "explore" else name
    open_app(page, f"{server.url}/{place}?table=iris&trials=5&m=gaussian,laplace")
    page.add_script_tag(content=AXE)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in (1400, 420):
            page.set_viewport_size({"width": width, "height": 900})
            wait_idle(page)
            found += [f"{scheme} {width}: {text}" for text in violations(page)]
    assert not found, "\n".join(found[:8])


def test_axe_sees_what_is_wrong(page: Page, server: Server) -> None:
    """The control: a picture without a text and grey on grey are found."""
    open_app(page, f"{server.url}/mechanisms?table=iris&trials=5&m=gaussian")
    page.add_script_tag(content=AXE)
    page.evaluate(
        """() => { const box = document.createElement('div');
        box.innerHTML = '<img src="data:,"><p style="color:#bbb;background:#ccc">faint</p>';
        document.querySelector('[data-testid="stMain"]').append(box); }"""
    )
    rules = {text.split(":")[0] for text in violations(page)}
    assert {"image-alt", "color-contrast"} <= rules


@pytest.mark.parametrize("name", PAGES)
def test_no_link_makes_the_browser_ask_another_host(page: Page, server: Server, name: str) -> None:
    """The page fixture fails on any request that leaves this machine."""
    picture = "!%5B%5D(http://host.invalid/p.png)"
    hostile = "&".join(f"{key}={picture}" for key in ("epsilon", "k", "m", "directions", "other"))
    place = "" if name == "explore" else name
    open_app(page, f"{server.url}/{place}?table={picture}&trials=5&{picture}={picture}&{hostile}")
    live = page.evaluate(
        "() => [...document.querySelectorAll('a[href], img[src]')]"
        ".map(e => e.href || e.src).filter(a => a.includes('host.invalid'))"
    )
    assert live == []
