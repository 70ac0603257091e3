"""Environment variables of a server: one reader for all switches, one sentence for errors."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.platform import ServerOptions, server_options, switch

ROOT = Path(__file__).resolve().parents[2]
SWITCHES = (
    "DPVIZ_PUBLIC", "DPVIZ_UPLOADS", "DPVIZ_RELEASE", "DPVIZ_LEDGERS_TEMPORARY", "DPVIZ_ONE_LEDGER"
)  # fmt: skip
ON = ("on", "ON", "1", "true", "True", "yes", " YES ")
OFF = ("off", "OFF", "Off", "0", "false", "False", "no", "NO")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SWITCHES, "DPVIZ_SESSIONS", "DPVIZ_HOSTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("written", "on"), [(w, True) for w in ON] + [(w, False) for w in OFF])
def test_every_switch_takes_every_word(
    written: str, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*SWITCHES, "DPVIZ_REQUIRE_BROWSER"):
        monkeypatch.setenv(name, written)
        assert switch(name, not on) is on
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("written", ["maybe", "2", "-", "onn", "\u0661"])
def test_another_word_is_refused_in_one_sentence(
    name: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, written)
    with pytest.raises(InvalidSetting) as caught:
        server_options()
    assert str(caught.value) == (
        f"{name} must be on or off (or 1, 0, true, false, yes, no); got {written!r}."
    )


@pytest.mark.parametrize("written", OFF)
def test_each_switch_turns_off_its_own(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_RELEASE", written)
    assert server_options() == ServerOptions(release=False)
    monkeypatch.setenv("DPVIZ_UPLOADS", written)
    assert server_options() == ServerOptions(release=False, uploads=False)


def test_strangers_get_neither_whatever_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SWITCHES:
        monkeypatch.setenv(name, "yes")
    assert server_options() == ServerOptions(
        public=True, uploads=False, release=False, temporary_ledgers=True, one_ledger=True
    )


def test_hosts_are_names_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", "dpviz.Example.org, *.example.net 10.0.0.7,::1")
    assert server_options().hosts == ("dpviz.example.org", "*.example.net", "10.0.0.7", "::1")


@pytest.mark.parametrize("written", ["https://a.org", "a.org/x", "a.org:80", "a..b", "*a.org", "ä"])
def test_what_is_no_host_is_refused(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", f"good.org,{written}")
    with pytest.raises(InvalidSetting, match=r"^DPVIZ_HOSTS must be names such as .*; got "):
        server_options()


PYTHON = """#!/bin/sh
case "$*" in
"-m venv "*)
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
    mkdir "$(dirname "$0")/killed" 2>/dev/null && kill -9 0
    touch "$3/pip" ;;
"-m pip "*) test -e "$(dirname "$0")/../pip" ;;
"-m dpviz app") echo served ;;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_an_environment_that_was_killed_on_its_way_is_made_again(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python, copy = tmp_path / "python", tmp_path / "own"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    command = ["make", "run", f"PYTHON={python}", f"VENV={copy}"]
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=outside, capture_output=True, text=True, check=False,
            timeout=60, start_new_session=True,
        )  # fmt: skip

    assert run().returncode == -signal.SIGKILL
    assert (copy / "bin" / "python").exists()
    again = run()
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.endswith("served\n")
    (copy / "mine").touch()  # A rebuild would delete this file.
    (copy / ".dpviz-run").unlink()
    assert run().returncode == 0
    assert (copy / "mine").exists()
