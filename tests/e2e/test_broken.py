"""What goes wrong between browser and server.

Uploads that break off or follow each other, the browser's own buttons, two tabs of one link.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from playwright.sync_api import Page, Route, expect

from tests.e2e.harness import (
    Server,
    new_page,
    open_app,
    problems_of,
    rerun,
    wait_idle,
)
from tests.e2e.test_journeys import (
    epsilon_box,
    errors,
    numbers,
    send,
    type_into,
    verdict,
    visit,
)

SMALL = "v=1&table=iris&trials=5&m=gaussian,laplace"


def people(count: int) -> bytes:
    """Return a table of so many people."""
    rows = np.random.default_rng(count).normal(size=(count, 4)).round(3)
    return pd.DataFrame(rows, columns=list("abcd")).to_csv(index=False).encode()


def test_an_upload_that_breaks_off_leaves_nothing_behind(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?{SMALL}")
    send(page, "table.csv", people(60))
    assert "60 people" in numbers(page)
    shown = numbers(page)

    def cut(route: Route) -> None:
        if route.request.method == "PUT":
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/upload_file/**", cut)
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "table.csv", "mimeType": "text/csv", "buffer": people(61)}
    )
    expect(page.get_by_test_id("stFileChipIconError")).to_be_visible()
    wait_idle(page)
    # Either the table that is there, or the question for one: never something of the one cut off.
    assert numbers(page) == shown or "Upload the file" in errors(page)[0]
    page.unroute("**/upload_file/**")
    send(page, "table.csv", people(62))
    assert "62 people" in numbers(page)
    assert errors(page) == []


def test_a_file_replaced_while_work_runs_is_never_mixed_with_the_new_one(
    page: Page, server: Server
) -> None:
    open_app(page, f"{server.url}/?v=1&table=upload&trials=200")
    send_only(page, people(900))
    page.wait_for_function("() => document.querySelector('[data-test-script-state=\"running\"]')")
    send_only(page, people(63))  # of the same name, while the first is drawn
    expect(page.get_by_text("63 people").first).to_be_visible()
    wait_idle(page)
    assert "63 people" in numbers(page)
    assert "900 people" not in numbers(page)
    assert errors(page) == []


def send_only(page: Page, content: bytes) -> None:
    """Upload a file and wait for nothing."""
    drop = page.get_by_test_id("stFileUploaderDropzoneInput")
    if not drop.count():
        page.get_by_role("button", name="Upload").first.click()
        drop.wait_for(state="attached")
    drop.set_input_files({"name": "table.csv", "mimeType": "text/csv", "buffer": content})


def test_back_and_forward_reload_and_two_tabs(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?{SMALL}&epsilon=2")
    shown = numbers(page)
    type_into(page, "Epsilon", "3")
    visit(page, "Mechanisms")
    # The menu's address and the same with its settings are two steps of the browser's.
    for _ in range(2):
        with rerun(page):
            page.go_back()
    expect(epsilon_box(page)).to_have_value("3")
    with rerun(page):
        page.go_back()
    expect(epsilon_box(page)).to_have_value("2")
    assert numbers(page) == shown
    with rerun(page):
        page.go_forward()
    expect(epsilon_box(page)).to_have_value("3")
    with rerun(page):
        page.go_back()
    twin = new_page(page.context)
    open_app(twin, page.url)
    assert numbers(twin) == shown
    type_into(twin, "Epsilon", "5")
    assert "At epsilon 5" in verdict(twin)
    assert numbers(page) == shown
    page.reload()
    wait_idle(page)
    assert numbers(page) == shown
    assert problems_of(twin) == ""


def test_reloading_while_presenting_keeps_the_settings(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?{SMALL}&epsilon=2")
    shown = numbers(page)
    page.get_by_role("button", name="present").click()
    page.reload()
    wait_idle(page)
    expect(page.locator(".st-key-bar")).to_be_visible()
    assert numbers(page) == shown
