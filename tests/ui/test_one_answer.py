"""Which epsilon keeps nine tenths: pages, commands and the printed plan give one answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.number_text import numeral
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_measured
from dpviz.studies.least import least_epsilons
from pages.ui import board
from tests.ui.driver import errors, start

QUICK = ("iris",)
TABLES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.long)
    for name in builtin_tables()
]
STEP = 1.05  # a step of the search, and what is rounded


def idealised(said: str) -> tuple[float, str]:
    """Return the epsilon that a sentence gives, and whose it is."""
    words = r"Idealised, 95 of 100 releases recover 90\s?% from about ε (\S+) \((.*?)\)"
    found = re.search(words, _read(said))
    assert found is not None, said
    return float(found[1]), found[2]


def _read(said: str) -> str:
    """Return a sentence without what keeps a page from making markup of it."""
    return said.replace("\u2060", "").replace("\\", "")


@pytest.mark.parametrize("table", TABLES)
def test_every_door_gives_one_epsilon(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(board, "_FEED", lambda data, **more: sent.append(json.loads(data)))
    at = start(table=table, trials="2")
    at.session_state["board.wanted"] = True  # as a browser asks, once it has painted
    assert errors(at.run()) == []
    (words,) = {message["least"] for message in sent if message.get("least")}
    explore = idealised(words)
    at = start("tradeoffs", table=table, trials="2")
    assert errors(at) == []
    (headline,) = (_read(box.value) for box in at.title if "needs about epsilon" in box.value)
    # of the mechanisms that both pages show; the least of all is said before it
    own = re.findall(r"(?:from about ε|on the board from) ([\d.]+)", _read(words))[-1]
    assert re.findall(r"about epsilon ([\d.]*\d)", headline) == [numeral(float(own), 2)]
    at = start("decide", table=table)
    assert errors(at) == []
    (beside,) = (box.value for box in at.caption if "Idealised" in box.value)
    assert explore == idealised(beside)

    # the command, the function's page and the printed plan: one decision
    assert main(["decide", table, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = dpviz.decide(table)
    assert json.loads(found.to_json()) == answer
    command = answer["idealised"]["least"]
    assert numeral(command["epsilon"], 2) == numeral(explore[0], 2)
    least = answer["epsilon"] and numeral(answer["epsilon"]["value"], 3)
    shown = [_read(box.value) for box in at.header if "ε" in box.value]
    assert shown == ([] if least is None else [f"{_mark(answer['verdict'])} ε {least}"])
    assert answer["headline"] in found.html()

    # the search with a confidence asks the same of the same releases
    named = ["--mechanism", command["key"], "--format", "json"]
    assert main(["decide", "least", table, "--recovery", "0.9", *named]) == 0
    (one,) = json.loads(capsys.readouterr().out)["answers"]
    assert one["low"] / STEP <= command["epsilon"] <= one["high"] * STEP


def _mark(verdict: str) -> str:
    return {"yes": "✓", "open": "?", "no": "✗"}[verdict]


def test_the_mean_is_another_question() -> None:
    """What the mean reaches, every second release misses: the control of the test above."""
    asked = {"recovery": 0.9, "mechanisms": "gaussian"}
    sure = dpviz.least("iris", **asked).targets[0]  # type: ignore[arg-type]
    mean = dpviz.least("iris", of_draws=None, **asked).targets[0]  # type: ignore[arg-type]
    assert sure.goal.of_draws == 0.95
    assert (mean.high or 9) < (sure.low or 0)
    settings = Settings(table="iris", mechanisms=("gaussian",))
    known = least_epsilons(load_measured(settings), settings)["chosen"]
    assert known is not None
    assert known["key"] == parse_variant("gaussian").text
    assert (sure.low or 0) / STEP <= known["epsilon"] <= (sure.high or 0) * STEP
