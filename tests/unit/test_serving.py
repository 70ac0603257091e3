"""Rules for requests to a server: names, origins, uploads and their space, answer headers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg

from pages.ui import class_room, limits, serving

PORT = 8501
MEGABYTE = 2**20
UPLOAD = "/_stcore/upload_file/mine/1"


class Streamlit:
    """The app behind the guard: it records each request and reads every body to its end."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        if scope["path"] == "/bug":
            raise RuntimeError("a bug")
        async for chunk in Request(scope, receive).stream():
            self.read += len(chunk)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(autouse=True)
def no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show no first picture for any link."""
    monkeypatch.setattr(serving.first_picture, "page", lambda query: None)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return Streamlit's options, so that a test can change them."""
    values = {
        "server.address": None, "browser.serverAddress": "localhost", "server.baseUrlPath": "",
        "server.maxUploadSize": 4,
    }  # fmt: skip
    monkeypatch.setattr(serving.st, "get_option", values.__getitem__)
    return values


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Return the uploads that Streamlit stores."""
    store: dict[str, dict[str, Any]] = {}
    manager = SimpleNamespace(file_storage=store)
    monkeypatch.setattr(
        serving.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=manager)
    )
    return store


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    limits.sessions.clear()
    yield
    limits.sessions.clear()


def ask(
    guard: serving.Guard,
    path: str = "/",
    *,
    method: str = "GET",
    host: str | None = f"localhost:{PORT}",
    other_host: str | None = None,
    origin: str | None = None,
    client: str | None = "127.0.0.1",
    body: tuple[bytes, ...] = (),
    length: int | None = None,
    kind: str = "http",
) -> list[Message]:
    """Return the messages of the answer; the request's body comes in pieces."""
    head = (("host", host), ("host", other_host), ("origin", origin), ("content-length", length))
    headers = [(name.encode(), str(text).encode()) for name, text in head if text is not None]
    scope = {"type": kind, "method": method, "path": path, "headers": headers}
    scope["query_string"] = b""
    scope["client"] = None if client is None else (client, 50_000)
    pieces, messages = list(body), list[Message]()

    async def receive() -> Message:
        if kind == "websocket":
            return {"type": "websocket.connect"}
        piece = pieces.pop(0) if pieces else b""
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(guard(scope, receive, send))
    return messages


def status(sent: list[Message]) -> int:
    return int(sent[0]["status"])


# Names ---------------------------------------------------------------------------------------

OWN = (
    "localhost", "LOCALHOST", "localhost:8501", "127.0.0.1:8501", "127.0.0.2", "[::1]:8501",
    "localhost.:8501",
)  # fmt: skip
FOREIGN = (
    "evil.example", "localhost.evil.example", "evil.example:8501", "0.0.0.0:8501", "10.0.0.7",
    "localhost:notaport", "", "[::1", "local host", "evil.example, localhost", "user@evil.example",
    "[::ffff:10.0.0.7]:8501", "xn--localhost",
)  # fmt: skip


@pytest.mark.parametrize("host", OWN)
@pytest.mark.usefixtures("options")
def test_names_of_this_machine_are_known(host: str) -> None:
    behind = Streamlit()
    assert status(ask(serving.Guard(behind), host=host)) == 200
    assert ask(serving.Guard(behind), "/_stcore/stream", kind="websocket", host=host) == [
        {"type": "websocket.accept"}
    ]


@pytest.mark.parametrize("host", [*FOREIGN, None])
@pytest.mark.usefixtures("options")
def test_another_name_reaches_nothing(host: str | None) -> None:
    behind = Streamlit()
    messages = ask(serving.Guard(behind), host=host)
    assert status(messages) == 421
    assert b"DPVIZ_HOSTS" in messages[1]["body"]
    (message,) = ask(serving.Guard(behind), "/_stcore/stream", kind="websocket", host=host)
    assert (message["type"], message["code"]) == ("websocket.close", 1008)
    assert behind.scopes == []


@pytest.mark.usefixtures("options")
def test_two_names_in_one_request_are_none() -> None:
    behind = Streamlit()
    answer = ask(serving.Guard(behind), host="evil.example", other_host="localhost")
    assert status(answer) == 421
    assert behind.scopes == []


@pytest.mark.parametrize(
    ("listed", "host", "known"),
    [
        ("dpviz.example.org", "dpviz.example.org", True),
        ("dpviz.example.org", "DPVIZ.example.org:443", True),
        ("dpviz.example.org", "x.dpviz.example.org", False),
        ("*.example.org", "dpviz.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("10.0.0.7", "10.0.0.7:8501", True),
        ("10.0.0.7", "10.0.0.8:8501", False),
        ("*", "anything.example", True),
        ("*", "", False),
        ("dpviz.example.org", "localhost", True),
    ],
)
@pytest.mark.usefixtures("options")
def test_a_list_names_others(
    listed: str, host: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", listed)
    answer = ask(serving.Guard(Streamlit()), host=host, client="10.0.0.9")
    assert status(answer) == (200 if known else 421)


def test_the_configured_address_is_known(options: dict[str, Any]) -> None:
    guard = serving.Guard(Streamlit())
    options["server.address"] = "192.168.0.4"
    assert status(ask(guard, host="192.168.0.4:8501", client="192.168.0.9")) == 200
    assert status(ask(guard, host="192.168.0.5:8501", client="192.168.0.9")) == 421
    options["browser.serverAddress"] = "dpviz.example.org"
    assert status(ask(guard, host="dpviz.example.org", client="192.168.0.9")) == 200


@pytest.mark.parametrize(
    ("client", "served"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), (None, True),
     ("192.168.0.9", False), ("::ffff:192.168.0.9", False), ("fe80::1%eth0", False)],
)  # fmt: skip
def test_until_it_is_opened_a_server_is_for_its_own_machine(
    client: str | None, served: bool, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests from another machine are refused, whatever name they contain."""
    guard = serving.Guard(Streamlit())
    for bound in (None, "localhost", "127.0.0.1", "::1"):
        options["server.address"] = bound
        assert status(ask(guard, client=client)) == (200 if served else 403)
    options["server.address"] = "0.0.0.0"
    assert status(ask(guard, client=client)) == 200
    options["server.address"] = None
    monkeypatch.setenv("DPVIZ_PUBLIC", "1")
    assert status(ask(guard, client=client)) == 200


# Origins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        ("http://localhost:8501", True),
        ("http://127.0.0.1:8501", True),
        ("http://[::1]:8501", True),
        ("https://dpviz.example.org", True),
        ("https://dpviz.example.org:8443", True),
        ("http://localhost:8888", False),  # This page belongs to another program.
        ("http://localhost", False),
        ("http://evil.example:8501", False),
        ("http://localhost.evil.example:8501", False),
        ("null", False),
        ("", False),
        ("http://localhost:port", False),
    ],
)
@pytest.mark.usefixtures("options")
def test_pages_of_others_speak_to_no_server(
    origin: str, welcome: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", "dpviz.example.org")
    behind = Streamlit()
    guard = serving.Guard(behind)
    assert status(ask(guard, origin=origin)) == (200 if welcome else 403)
    (answer,) = ask(guard, "/_stcore/stream", kind="websocket", origin=origin)
    assert answer["type"] == ("websocket.accept" if welcome else "websocket.close")
    # The guard removes the Origin header, so that Streamlit need not look up an address for it.
    assert all(name != b"origin" for scope in behind.scopes for name, _ in scope["headers"])
    assert len(behind.scopes) == 2 * welcome


# Answers -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("options")
def test_every_answer_carries_the_policy() -> None:
    guard = serving.Guard(Streamlit())
    for messages in (
        ask(guard), ask(guard, host="evil.example"), ask(guard, client="10.0.0.1"),
        ask(guard, UPLOAD, method="PUT"), ask(guard, "/_stcore/health"),
    ):  # fmt: skip
        headers = dict(messages[0]["headers"])
        policy = headers[b"content-security-policy"].decode()
        assert "frame-ancestors 'self'" in policy
        assert "default-src 'self'" in policy
        assert "http" not in policy
        assert headers[b"x-content-type-options"] == b"nosniff"


LINE: Scope = {
    "type": "websocket", "path": "/_stcore/stream", "client": None,
    "headers": [(b"host", b"localhost")],
}  # fmt: skip


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.usefixtures("options")
def test_who_leaves_while_being_told_something_is_no_bug(leaves: bool) -> None:
    """A visitor may leave during a message without an error, even if Streamlit asks for more."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        line = WebSocket(scope, receive, send)
        await line.accept()
        with suppress(WebSocketDisconnect):
            await line.send_bytes(b"a frame")
        if not leaves:
            await line.close()
        with pytest.raises(RuntimeError, match="not connected"):
            await line.receive_bytes()
        await line.close()

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        if message["type"] == "websocket.send" and leaves:
            raise BrokenPipeError

    with nullcontext() if leaves else pytest.raises(RuntimeError, match="once a close"):
        asyncio.run(serving.Guard(app)({**LINE}, receive, send))


@pytest.mark.parametrize("strange", [{"text": "a text"}, {"bytes": b"\xff no message"}])
@pytest.mark.usefixtures("options")
def test_who_sends_no_message_is_hung_up_on_without_a_traceback(strange: dict[str, Any]) -> None:
    """A message that Streamlit cannot read closes the connection without a traceback."""
    news, messages = list[bytes](), list[Message]()
    frame = BackMsg(stop_script=True).SerializeToString()
    events = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "bytes": frame},
        {"type": "websocket.receive", **strange},
    ]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        line = WebSocket(scope, receive, send)
        await line.accept()
        with suppress(WebSocketDisconnect):
            while True:
                news.append(await line.receive_bytes())

    async def receive() -> Message:
        return events.pop(0)

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(serving.Guard(app)({**LINE}, receive, send))
    assert news == [frame]
    assert [one["type"] for one in messages] == ["websocket.accept", "websocket.close"]
    assert messages[-1]["code"] == 1003


@pytest.mark.usefixtures("options")
def test_the_counters_are_closed_to_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status(ask(serving.Guard(Streamlit()), "/_stcore/metrics")) == 200
    monkeypatch.setenv("DPVIZ_PUBLIC", "on")
    for path in ("/_stcore/metrics", "/_stcore/metrics/", "/base/_stcore/metrics"):
        assert status(ask(serving.Guard(Streamlit()), path)) == 404


# Uploads -------------------------------------------------------------------------------------


def let_in(*sessions: str) -> None:
    for session in sessions:
        assert limits.sessions().admit(session, lambda one: True, 20)


@pytest.mark.parametrize(("name", "word"), [("DPVIZ_PUBLIC", "1"), ("DPVIZ_UPLOADS", "No")])
@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH"])
@pytest.mark.usefixtures("options", "files")
def test_where_uploads_are_off_none_is_read(
    name: str, word: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, word)
    let_in("mine")
    behind = Streamlit()
    messages = ask(serving.Guard(behind), UPLOAD, method=method, body=(b"x" * 100,))
    assert status(messages) == 403
    assert dict(messages[0]["headers"])[b"connection"] == b"close"
    assert (behind.scopes, behind.read) == ([], 0)


@pytest.mark.usefixtures("options", "files")
def test_a_session_without_a_place_stores_nothing() -> None:
    let_in("other")
    limits.sessions().admit("mine", lambda one: True, 1)  # One visitor too many is refused.
    behind = Streamlit()
    assert status(ask(serving.Guard(behind), UPLOAD, method="PUT", body=(b"x",))) == 403
    assert behind.scopes == []


def test_a_session_has_so_much_room(options: dict[str, Any], files: dict[str, Any]) -> None:
    let_in("mine", "other")
    behind = Streamlit()
    guard = serving.Guard(behind)
    most = options["server.maxUploadSize"] * MEGABYTE
    files["mine"] = {"0": SimpleNamespace(data=bytes(most - 10))}
    assert status(ask(guard, UPLOAD, method="PUT", body=(b"x" * 10,), length=10)) == 200
    refusal = ask(guard, UPLOAD, method="PUT", body=(b"x" * 11,), length=11)
    assert status(refusal) == 413
    assert b"One visitor may store 4 MB" in refusal[1]["body"]
    assert behind.read == 10  # The second upload was not read.
    there = UPLOAD.replace("mine", "other")
    assert status(ask(guard, there, method="PUT", body=(b"x" * 11,), length=11)) == 200
    files["mine"].clear()  # The owner of the upload removes the file.
    assert status(ask(guard, UPLOAD, method="PUT", body=(b"x" * 11,), length=11)) == 200


def test_a_body_of_no_stated_length_is_counted(
    options: dict[str, Any], files: dict[str, Any]
) -> None:
    let_in("mine")
    behind = Streamlit()
    guard = serving.Guard(behind)
    pieces = (bytes(MEGABYTE),) * (options["server.maxUploadSize"] + 2)
    with pytest.raises(serving.HTTPException) as caught:  # Streamlit itself catches this error.
        ask(guard, UPLOAD, method="PUT", body=pieces, length=3)
    assert caught.value.status_code == 413
    assert behind.read == options["server.maxUploadSize"] * MEGABYTE
    # An upload that breaks off uses no storage.
    assert status(ask(guard, UPLOAD, method="PUT", body=pieces[:3])) == 200


def test_all_together_have_so_much_room(
    options: dict[str, Any], files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options["server.maxUploadSize"] = 400
    assert limits.Caps().held == 2**30
    monkeypatch.setattr(limits, "caps", lambda: limits.Caps(held=10 * MEGABYTE))
    let_in("mine", "other")
    files["other"] = {"0": SimpleNamespace(data=bytes(9 * MEGABYTE))}
    guard = serving.Guard(Streamlit())
    assert status(ask(guard, UPLOAD, method="PUT", body=(bytes(MEGABYTE),))) == 200
    refusal = ask(guard, UPLOAD, method="PUT", length=MEGABYTE + 1)
    assert status(refusal) == 413
    assert b"all visitors together 10 MB" in refusal[1]["body"]


def test_what_is_on_its_way_counts_for_the_others(
    options: dict[str, Any], files: dict[str, Any]
) -> None:
    let_in("mine")
    meter = serving.Uploads()

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(3 * MEGABYTE), "more_body": True}

    most = options["server.maxUploadSize"] * MEGABYTE
    with meter.coming("mine", receive) as count:
        asyncio.run(count())  # type: ignore[arg-type]
        assert meter.room("mine") == most - 3 * MEGABYTE
        with meter.coming("mine", receive) as second, pytest.raises(serving.HTTPException):
            asyncio.run(second())  # type: ignore[arg-type]
    assert meter.room("mine") == most


# Departed visitors ---------------------------------------------------------------------------


def test_who_left_is_told_once_after_the_grace() -> None:
    here, sessions = {"one", "two"}, limits.Sessions()
    for session in ("one", "two"):
        sessions.admit(session, here.__contains__, 20)
    assert sessions.leaving(here.__contains__, 0, 100) == []
    here.discard("one")
    assert sessions.leaving(here.__contains__, 10, 100) == []
    assert sessions.leaving(here.__contains__, 109, 100) == []
    assert sessions.leaving(here.__contains__, 110, 100) == ["one"]
    assert sessions.leaving(here.__contains__, 999, 100) == []
    assert not sessions.empty
    here.clear()
    sessions.leaving(here.__contains__, 1000, 100)
    assert sessions.leaving(here.__contains__, 1100, 100) == ["two"]
    assert sessions.empty


def test_who_comes_back_in_time_stays() -> None:
    here, sessions = {"one"}, limits.Sessions()
    sessions.admit("one", here.__contains__, 20)
    here.clear()
    sessions.leaving(here.__contains__, 0, 100)
    here.add("one")
    sessions.leaving(here.__contains__, 99, 100)
    here.clear()
    assert sessions.leaving(here.__contains__, 150, 100) == []
    assert sessions.leaving(here.__contains__, 250, 100) == ["one"]


def test_a_probe_of_the_machine_is_answered_by_any_name(options: dict[str, Any]) -> None:
    guard = serving.Guard(Streamlit())
    there = "/_stcore/health"
    assert status(ask(guard, there, host="10.1.2.3:8501", client="10.0.0.1")) == 200
    assert status(ask(guard, f"/other{there}", host="10.1.2.3:8501", client="10.0.0.1")) == 403
    options["server.baseUrlPath"] = "/dpviz"
    assert status(ask(guard, f"/dpviz{there}", host="10.1.2.3:8501", client="10.0.0.1")) == 200
    assert status(ask(guard, there, host="10.1.2.3:8501")) == 421


def test_without_a_class_there_is_no_room() -> None:
    """Without a class, no phone, wall, bet or stream of a room exists."""
    for route in class_room.ROUTES:
        scope = {
            "type": "http",
            "path_params": {"room": "KELP"},
            "query_string": b"",
            "headers": [],
        }
        assert asyncio.run(route.endpoint(Request(scope))).status_code == 404, route.path
