"""Pages, commands and the printed plan state the same epsilon that keeps nine tenths."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.number_text import numeral, towards
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_measured
from dpviz.studies.least import least_epsilons
from pages.ui import board
from tests.ui.driver import errors, notices, start

QUICK = ("iris",)
TABLES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.long)
    for name in builtin_tables()
]
STEP = 1.05  # Two pages may differ by one step of the search, plus rounding.


def idealised(said: str) -> tuple[float, str]:
    """Return the epsilon in a sentence, and its mechanism."""
    words = r"Idealised, 95 of 100 releases recover 90\s?% from about ε (\S+) \((.*?)\)"
    match = re.search(words, _read(said))
    assert match is not None, said
    return float(match[1]), match[2]


def _read(said: str) -> str:
    """Return a sentence without the characters that prevent markup."""
    return said.replace("\u2060", "").replace("\\", "")


@pytest.mark.parametrize("table", TABLES)
def test_every_door_gives_one_epsilon(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    payloads: list[dict[str, Any]] = []
    monkeypatch.setattr(board, "_FEED", lambda data, **more: payloads.append(json.loads(data)))
    at = start(table=table, trials="2")
    at.session_state["board.wanted"] = True  # After painting, browsers request the rest.
    assert errors(at.run()) == []
    (words,) = {message["least"] for message in payloads if message.get("least")}
    explore = idealised(words)
    at = start("tradeoffs", table=table, trials="2")
    assert errors(at) == []
    (headline,) = (_read(box.value) for box in at.title if "needs about epsilon" in box.value)
    # Read the epsilon of the mechanisms on both pages; the text states the smallest epsilon first.
    text_epsilon = re.findall(r"(?:about|chosen mechanism from) ε ([\d.]+)", _read(words))[-1]
    assert re.findall(r"about epsilon ([\d.]*\d)", headline) == [numeral(float(text_epsilon), 2)]
    at = start("decide", table=table)
    assert errors(at) == notices(at) == []
    (beside,) = (box.value for box in at.caption if "Idealised" in box.value)
    assert explore == idealised(beside)

    # The command, the Python function's page and the printed plan all give the same decision.
    assert main(["decide", table, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    decision = dpviz.decide(table)
    assert json.loads(decision.to_json()) == answer
    command = answer["idealised"]["least"]
    assert towards(command["epsilon"], 2, 1) == explore[0]
    least = answer["epsilon"] and numeral(answer["epsilon"]["value"], 3)
    epsilons = [_read(box.value) for box in at.header if "ε" in box.value]
    assert epsilons == ([] if least is None else [f"{_mark(answer['verdict'])} ε {least}"])
    assert answer["headline"] in decision.html()

    # The search with a confidence level uses the same releases and goal as the page.
    flags = ["--mechanism", command["key"], "--format", "json"]
    assert main(["decide", "least", table, "--recovery", "0.9", *flags]) == 0
    (one,) = json.loads(capsys.readouterr().out)["answers"]
    assert one["low"] / STEP <= command["epsilon"] <= one["high"] * STEP


def _mark(verdict: str) -> str:
    return {"yes": "✓", "open": "?", "no": "✗"}[verdict]


def test_the_mean_is_another_question() -> None:
    """Control: every second release misses the goal at the epsilon at which the mean reaches it."""
    options = {"recovery": 0.9, "mechanisms": "gaussian"}
    sure = dpviz.least("iris", **options).targets[0]  # type: ignore[arg-type]
    mean = dpviz.least("iris", of_draws=None, **options).targets[0]  # type: ignore[arg-type]
    assert sure.goal.of_draws == 0.95
    assert (mean.high or 9) < (sure.low or 0)
    settings = Settings(table="iris", mechanisms=("gaussian",))
    epsilon = least_epsilons(load_measured(settings), settings)["chosen"]
    assert epsilon is not None
    assert epsilon["key"] == parse_variant("gaussian").text
    assert (sure.low or 0) / STEP <= epsilon["epsilon"] <= (sure.high or 0) * STEP
