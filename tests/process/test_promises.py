"""The promises of SECURITY.md, tested on dpviz's servers and on an unprotected server."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from dpviz.core.files import app_path
from tests.e2e.harness import Server
from tools import promises
from tools.promises import Asking, check_of, outgoing, sentences, watching

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


def test_each_sentence_is_asked_or_is_no_promise_of_a_server() -> None:
    texts = sentences()
    assert len(texts) > 15
    for sentence in texts:
        promises_of = [start for start in promises.TOLD if sentence.startswith(start)]
        checks = [start for start in promises.CHECKS if sentence.startswith(start)]
        assert len(promises_of) + len(checks) == 1, sentence
    for start in (*promises.TOLD, *promises.CHECKS):
        assert any(sentence.startswith(start) for sentence in texts), start


@pytest.mark.parametrize("public", [False, True], ids=["normal", "public"])
def test_our_own_server_keeps_them(
    public: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path), "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5"}
    env |= {"DPVIZ_PUBLIC": "on"} if public else {}
    log = tmp_path / "log"
    with Server(app_path(), log, env) as server:
        words = ["--pid", str(server.pid), "--log", str(log), *["--public"] * public]
        failures = promises.main([server.url, *words])
        output = capsys.readouterr().out
        assert failures == 0, output
        assert server.new_traceback() == ""
    # A local and a public server each skip only the checks that need the other kind of server.
    skips = {check_of(line[6:]) for line in output.splitlines() if line.startswith("skip")}
    files = {
        promises.own_session, promises.survives, promises.room, promises.unlogged, promises.links,
    }  # fmt: skip
    assert skips == (files if public else {promises.switched_off})
    assert output.count("\npass") + output.startswith("pass") == 12 - len(skips)


def test_a_server_without_a_guard_is_found_out(tmp_path: Path) -> None:
    """Control: plain Streamlit, which shows a link's text and a file's first line, is detected."""
    app = tmp_path / "app.py"
    app.write_text(
        "import streamlit as st\n"
        "st.markdown(st.query_params.get('label', ''), unsafe_allow_html=True)\n"
        "path = st.text_input('A table', key='path')\n"
        "st.write(open(path).readline() if path.startswith('/') else '')\n"
        "if file := st.file_uploader('A workbook', key='upload'):\n"
        "    import python_calamine\n"
        "    python_calamine.load_workbook(file)\n"
    )
    with Server(app, tmp_path / "log") as server:
        server_asking = Asking(server.url, server.pid)
        for check in (
            promises.outside,
            promises.names,
            promises.health,
            promises.headers,
            promises.hostile,
        ):
            assert asyncio.run(check(server_asking)).kept is False, check.__name__
        public = Asking(server.url, public=True, _takes=True)
        assert asyncio.run(promises.switched_off(public)).kept is False
        server_asking._takes = True
        with pytest.raises(OSError, match="hung up"):  # The server's reader ends with an error.
            asyncio.run(promises.survives(server_asking))


def test_a_line_to_the_outside_is_seen() -> None:
    """A connection to the outside is detected; its address is reserved, so no packet arrives."""
    assert "198.51.100.7:9" not in outgoing(os.getpid())
    with watching(os.getpid()) as watch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("198.51.100.7", 9))
        except OSError:
            pytest.skip("this machine has no way out, so none is to be seen")
        end = time.monotonic() + 10
        while "198.51.100.7:9" not in watch and time.monotonic() < end:
            pass
    assert "198.51.100.7:9" in watch
    assert outgoing(os.getpid()) == set()


def test_a_socket_that_may_still_go_out_is_looked_at_again() -> None:
    def number(one: socket.socket) -> str:
        return str(os.fstat(one.fileno()).st_ino)

    quiet: set[str] = set()
    here, there = socket.socketpair()
    with here, there, socket.socket() as free, socket.create_server(("127.0.0.1", 0)) as door:
        assert outgoing(os.getpid(), quiet) == set()
        assert {number(here), number(there), number(door)} <= quiet
        assert number(free) not in quiet
