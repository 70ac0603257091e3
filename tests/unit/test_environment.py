"""What the environment says to a server: one reader for all switches, one sentence for errors."""

from __future__ import annotations

import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.platform import ServerOptions, server_options, switch
from tests.e2e.browser import browser_required

SWITCHES = ("DPVIZ_PUBLIC", "DPVIZ_UPLOADS", "DPVIZ_RELEASE", "DPVIZ_LEDGERS_TEMPORARY")
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


def test_nothing_said_is_a_server_of_ones_own() -> None:
    assert server_options() == ServerOptions()


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
        public=True, uploads=False, release=False, temporary_ledgers=True
    )


def test_hosts_are_names_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", "dpviz.Example.org, *.example.net 10.0.0.7,::1")
    assert server_options().hosts == ("dpviz.example.org", "*.example.net", "10.0.0.7", "::1")


@pytest.mark.parametrize("written", ["https://a.org", "a.org/x", "a.org:80", "a..b", "*a.org", "ä"])
def test_what_is_no_host_is_refused(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_HOSTS", f"good.org,{written}")
    with pytest.raises(InvalidSetting, match=r"^DPVIZ_HOSTS must be names such as .*; got "):
        server_options()


def test_the_browser_tests_read_their_switch_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_REQUIRE_BROWSER", "no")
    assert not browser_required()
    monkeypatch.setenv("DPVIZ_REQUIRE_BROWSER", "On")
    assert browser_required()
