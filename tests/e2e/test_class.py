"""A class of phones on a real server: 200 phones bet at once, and one loses its connection."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from dpviz.core.files import app_path
from dpviz.lessons import course
from tests.e2e.harness import Server, free_port, is_free, open_app, open_popover, travel
from tests.e2e.test_stage import SCREENS, measured, on_a_screen

ROOT = Path(__file__).resolve().parents[2]
VALUES = (0.1, 0.25, 0.35, 0.6, 1.0, 2.5)
PHONES = 200
# Return whether the QR code is square, readable across a hall, and wholly on the screen.
MEASURE_CODE = """
code => {
  const box = code.getBoundingClientRect();
  const words = code.closest(".dps-words");
  return [
    Math.abs(box.width - box.height) < 1 && box.width >= 150,
    box.bottom <= innerHeight && words.scrollHeight <= words.clientHeight,
  ];
}
"""

Opened = Callable[[Path], AbstractContextManager[tuple[Server, str, str]]]


@pytest.fixture
def opened(warm: Path, spare_port: int) -> Opened:
    """Start ``dpviz class`` in a folder and yield its server, its room and its key."""
    return partial(_opened, warm, spare_port)


@contextmanager
def _opened(python: Path, spare: int, folder: Path) -> Iterator[tuple[Server, str, str]]:
    port = spare if is_free(spare) else free_port()
    command = [str(python), "-m", "dpviz", "class", "--port", str(port), "--address", "127.0.0.1"]
    log = folder / "server.log"
    env = {"XDG_CACHE_HOME": str(folder)}
    with Server(app_path(), log, env, ROOT, port=port, command=command) as running:
        text = log.read_text(encoding="utf-8")
        room = re.search(r"Room ([A-Z]{4}): phones open http://127\.0\.0\.1:(\d+)/c/\1\n", text)
        key = re.search(r"room=([\w-]+)\n", text)
        assert room is not None
        assert key is not None
        assert int(room[2]) == port
        yield running, room[1], key[1]


def on_the_wall(page: Page) -> None:
    """Check on three screens that the projector's picture is large enough and not cut off."""
    for size in SCREENS:
        sizes = measured(page, size)
        on_a_screen(sizes, size, f"the wall at {size}: {sizes}", headline=26)


class Stream:
    """The events that a server sends about a room, read on a separate thread."""

    def __init__(self, port: int, path: str) -> None:
        self.told: list[tuple[float, dict[str, Any]]] = []
        self.news = threading.Condition()
        self._link = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        self._file = self._link.makefile("rb")
        assert self._file.readline().split()[1] == b"200"
        self._reads = threading.Thread(target=self._read)
        self._reads.start()

    def _read(self) -> None:
        for line in self._file:
            if line.startswith(b"data: "):
                with self.news:
                    self.told.append((time.monotonic(), json.loads(line[6:])))
                    self.news.notify_all()

    def when(self, name: str, value: object, patience: float = 30.0) -> float:
        """Return the time at which a value first arrived."""

        def seen() -> float | None:
            return next((at for at, one in list(self.told) if one.get(name) == value), None)

        with self.news:
            assert self.news.wait_for(lambda: seen() is not None, patience), self.told[-1:]
        state = seen()
        assert state is not None
        return state

    def close(self) -> None:
        if self._link.fileno() < 0:
            return
        self._link.shutdown(socket.SHUT_RDWR)
        self._reads.join()
        self._file.close()
        self._link.close()


def post(port: int, path: str, body: object, **headers: str) -> tuple[int, str]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    link.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
    answer = link.getresponse()
    answer_now = answer.status, answer.read().decode()
    link.close()
    return answer_now


def test_200_phones_bet_within_a_second_and_a_lost_connection_loses_nothing(
    page: Page, tmp_path: Path, opened: Opened
) -> None:
    question = course()[2].question_at(1)
    assert question is not None
    with opened(tmp_path) as (server, name, key), ExitStack() as stack:
        port, base = server.port, f"/c/{name}"

        def stream(query: str = "") -> Stream:
            stream = Stream(port, f"{base}/events{query}")
            stack.callback(stream.close)
            return stream

        page.set_viewport_size({"width": 1400, "height": 900})
        open_app(page, f"{server.url}/guide?v=1&lesson=3&step=2&present=yes&room={key}")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        expect(page.locator(".dps-join")).to_contain_text(name)
        code = page.get_by_role("img", name=f"QR code of 127.0.0.1:{port}/c/{name}")
        assert code.evaluate(MEASURE_CODE) == [True, True]
        on_the_wall(page)
        wall = stream(f"?key={key}")
        phones = [stream() for _ in range(PHONES)]
        for phone in phones:
            phone.when("ask", question.ask)
        times: dict[int, float] = {}
        answers: list[tuple[int, str]] = []
        gate = threading.Barrier(PHONES - 1)

        def bet(place: int) -> None:
            gate.wait()
            times[place] = time.monotonic()
            value = VALUES[place % 6]
            answers.append(
                post(port, f"{base}/bet", {"step": "3.2", "phone": f"p{place}", "value": value})
            )

        threads = [threading.Thread(target=bet, args=(place,)) for place in range(1, PHONES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(answers) == {(200, "sent")}
        assert wall.when("count", PHONES - 1) - max(times.values()) < 1.0
        # If a phone loses the connection before the server's answer, it repeats its bet: count one.
        body = json.dumps({"step": "3.2", "phone": "p0", "value": 0.3})
        with socket.create_connection(("127.0.0.1", port)) as lost:
            head = f"POST {base}/bet HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            lost.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body[:20]}".encode())
        for _ in range(2):
            assert post(port, f"{base}/bet", json.loads(body)) == (200, "sent")
        wall.when("count", PHONES)
        # A phone that lost its connection reconnects and gets the current question.
        phones[0].close()
        phones[0] = stream()
        phones[0].when("ask", question.ask)
        assert all("bets" not in one for phone in phones for _, one in phone.told)
        assert all(one["bets"] is None for _, one in wall.told)
        expect(page.locator(".dps-count")).to_have_text(f"{PHONES} bets")
        assert page.locator(".dps-piles i").count() == 0
        # Only a visitor with the room's key can show the bets; the projector shows them with R.
        assert post(port, f"{base}/show", {})[0] == 404
        page.keyboard.press("r")
        expect(page.locator(".dps-piles i")).to_have_count(PHONES)
        on_the_wall(page)
        assert phones[0].when("shown", True)
        late = post(port, f"{base}/bet", {"step": "3.2", "phone": "late", "value": 1})
        assert late == (409, "Bets are closed, because the projector shows them already.")
        assert question.right_text not in page.locator(".dps-words").inner_text()
        page.keyboard.press("m")
        values = [0.3, *(VALUES[place % 6] for place in range(1, PHONES))]
        near = sum(question.right / 2 <= value <= 2 * question.right for value in values)
        assert 0 < near < PHONES
        expect(page.locator(".dps h1")).to_have_text(
            f"{near} of {PHONES} came within a factor of two."
        )
        assert page.locator('.dps-piles i[data-near="true"]').count() == near
        on_the_wall(page)
        page.reload()  # After a reload, the answer and the bets are still shown.
        expect(page.locator(".dps h1")).to_have_text(
            f"{near} of {PHONES} came within a factor of two."
        )
        # For the next class, the projector shows the question again without the earlier answer.
        travel(page, f"{server.url}/guide?v=1&lesson=3&step=1&present=yes&room={key}")
        page.keyboard.press("n")
        expect(page.locator(".dps h1")).to_have_text(question.ask)
        expect(page.locator(".dps-count")).to_have_text("0 bets")
        page.keyboard.press("r")
        expect(page.locator(".dps-piles")).to_be_attached()
        page.keyboard.press("m")
        expect(page.locator(".dps h1")).to_have_text("Nobody has bet.")


def test_a_room_takes_bets_alone_shows_its_code_whole_and_uploads_stay_off(
    page: Page, tmp_path: Path, opened: Opened
) -> None:
    with opened(tmp_path) as (server, name, key):
        port = server.port
        for path in ("/c/ABCD", f"/c/{name}/nothing"):
            assert post(port, path, {})[0] in (404, 405)
        open_app(page, f"{server.url}/guide?v=1&lesson=1&step=2&room=wrong")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        assert page.locator(".dps-join").count() == 0  # Without the key, a visitor can only read.
        wrong = [(b"{", 400), ({"step": "1.2"}, 400), ({"x": "y" * 400}, 413)]
        for body, status in wrong:
            assert (
                post(port, f"/c/{name}/bet", body if isinstance(body, dict) else "{")[0] == status
            )
        assert post(port, f"/c/{name}/bet", {"step": "1.2", "phone": "a", "value": 1})[0] == 409
        # A phone gets one page without Streamlit, on which a pupil answers and sees confirmation.
        travel(page, f"{server.url}/guide?v=1&lesson=1&step=2&room={key}")
        expect(page.locator(".dps-join")).to_contain_text(name)
        phone = page.context.browser.new_page(viewport={"width": 420, "height": 800})  # type: ignore[union-attr]
        asks: list[str] = []
        phone.on("request", lambda request: asks.append(request.url))
        phone.goto(f"{server.url}/c/{name}")
        question = course()[0].question_at(1)
        assert question is not None
        expect(phone.get_by_role("heading")).to_have_text(question.ask)
        phone.get_by_role("button", name=question.options[0]).click()
        phone.get_by_role("button", name="Send").click()
        expect(phone.locator("#send")).to_have_text("Sent. Look up.")
        expect(page.locator(".dps-count")).to_have_text("1 bet")
        assert not phone.evaluate("document.documentElement.scrollHeight > innerHeight")
        assert {one.split("/c/")[0] for one in asks} == {server.url}
        assert len(phone.content()) < 10_000
        phone.close()
        # If a pupil changes a bet while the connection is lost, the pupil can still send the bet.
        phone = page.context.browser.new_page(viewport={"width": 420, "height": 800})  # type: ignore[union-attr]
        phone.route("**/bet", lambda route: route.abort())
        phone.goto(f"{server.url}/c/{name}")
        phone.get_by_role("button", name=question.options[0]).click()
        send = phone.locator("#send")
        send.click()
        expect(send).to_have_text("Sending ...")
        phone.get_by_role("button", name=question.options[1]).click()
        phone.unroute("**/bet")
        expect(send).to_be_enabled()
        send.click()
        expect(send).to_have_text("Sent. Look up.")
        expect(page.locator(".dps-count")).to_have_text("2 bets")
        # A reloaded phone shows its own bet; once all bets are shown, it shows the bet that
        # counted.
        phone.reload()
        option = phone.locator("#options button[aria-pressed=true]")
        expect(option).to_have_text(question.options[1])
        expect(send).to_have_text("Sent. Look up.")
        phone.get_by_role("button", name=question.options[0]).click()
        expect(send).to_have_text("Send")
        page.keyboard.press("r")
        expect(send).to_have_text("Look up")
        expect(option).to_have_text(question.options[1])
        # If the server no longer knows a room, the phone reports that the room has ended.
        phone.route("**/events*", lambda route: route.fulfill(status=404))
        phone.reload()
        expect(phone.get_by_role("heading")).to_have_text("This room has ended.")
        phone.close()
        # The QR code gives way to the longest questions, but is never cut off.
        page.set_viewport_size({"width": 1024, "height": 768})
        for place in (
            "lesson=8&step=2",
            "lesson=8&step=2&language=de",
            "lesson=2&step=4&language=de",
        ):
            link = f"{server.url}/guide?v=1&{place}&present=yes&room={key}"
            travel(page, link)
            # Check that the page shows the new question, not the previous question.
            assert parse_qs(urlsplit(page.url).query) == parse_qs(urlsplit(link).query)
            expect(page.locator(".dps-join")).to_contain_text(name)
            for width, height in ((1024, 768), (1280, 720)):
                page.set_viewport_size({"width": width, "height": height})
                assert page.locator(".dps-code").evaluate(MEASURE_CODE) == [True, True]
        # Wait for the whole page: a half-loaded page would report missing answers of its server.
        travel(page, f"{server.url}/?v=1&table=iris&trials=2&m=gaussian")
        open_popover(page, "Upload")
        expect(page.get_by_text("This server does not accept uploads.")).to_be_visible()
        assert page.locator('input[type="file"]').count() == 0
