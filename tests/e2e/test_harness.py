"""The harness must see what it promises to see: each promise with an app that breaks it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dpviz.core.files import app_path
from tests.e2e.harness import Server, new_page, open_app, problems_of, rerun, watch_of

ServerFactory = Callable[..., Server]

_COUNTER = """
import time
import streamlit as st

st.session_state["runs"] = st.session_state.get("runs", 0) + 1
if st.button("slow"):
    time.sleep(0.5)
st.button("quick")
st.write(f"runs: {st.session_state['runs']}")
"""

_BROKEN = """
import streamlit as st

if st.button("break"):
    raise LookupError("planted")
st.write("well")
"""

_LEAKY = """
import streamlit as st

st.html('<img src="http://elsewhere.invalid/pixel.png" alt="">')
"""


def _write(folder: Path, text: str) -> Path:
    """Write an app beside the dashboard's own settings, without which Streamlit phones home."""
    shutil.copytree(app_path().parent / ".streamlit", folder / ".streamlit")
    script = folder / "app.py"
    script.write_text(text)
    return script


def test_rerun_waits_for_the_run_it_set_off_and_reloading_is_waited_for_too(
    page: Page, fresh_server: ServerFactory, tmp_path: Path
) -> None:
    server = fresh_server(app=_write(tmp_path, _COUNTER))
    for button in ("quick", "slow"):
        open_app(page, server.url)
        # No retrying assertion here: the text is there, or the harness is wrong.
        assert "runs: 1" in page.locator("body").inner_text()
        for runs in (2, 3, 4):
            with rerun(page):
                page.get_by_role("button", name=button).click()
            assert f"runs: {runs}" in page.locator("body").inner_text()


def test_an_exception_is_kept_after_the_page_recovered(
    context: BrowserContext, fresh_server: ServerFactory, tmp_path: Path
) -> None:
    server = fresh_server(app=_write(tmp_path, _BROKEN))
    page = new_page(context)
    open_app(page, server.url)
    assert problems_of(page) == ""
    with rerun(page):
        page.get_by_role("button", name="break").click()
    with rerun(page):
        page.keyboard.press("r")
    expect(page.get_by_text("well")).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    assert "LookupError" in problems_of(page)
    # The server's log tells as well; asking for it here takes it away from the fixture.
    assert "LookupError: planted" in server.new_traceback()
    assert server.new_traceback() == ""


def test_a_request_to_another_host_is_a_problem(
    context: BrowserContext, fresh_server: ServerFactory, tmp_path: Path
) -> None:
    server = fresh_server(app=_write(tmp_path, _LEAKY))
    page = new_page(context)
    open_app(page, server.url)
    page.locator("img[alt='']").first.wait_for(state="attached")
    assert watch_of(page).problems == ["request to another host: elsewhere.invalid"]


def test_a_server_that_cannot_start_says_so_at_once(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.py"
    with (
        pytest.raises(RuntimeError, match="ended with status") as caught,
        Server(missing, tmp_path / "server.log", directory=tmp_path),
    ):
        pass
    assert "does not exist" in str(caught.value)
    assert missing.name in str(caught.value)
