"""What a page shows is what the command of the same options prints as JSON."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import dpviz
from dpviz.cli import UNDER, main
from tests.ui.driver import commands, errors, nodes, press, start

LINK = {
    "table": "iris",
    "trials": "3",
    "k": "2",
    "delta": "1e-6",
    "m": "gaussian,wishart_difference",
}


@dataclass(frozen=True)
class Case:
    """One answer on a page.

    Attributes
    ----------
    page : str
    shown : callable
        The numbers that the page shows.
    answered : callable
        The same of the command's JSON.
    command : str
        The command; where it is a verb alone, the whole of it is the one that the page shows.
    opened : tuple of str
        What of the page is opened first.
    link : dict
        Settings besides `LINK`.
    pressed : tuple of str
        Buttons that are pressed then.
    """

    page: str
    shown: Callable[[AppTest], Sequence[float]]
    answered: Callable[[Any], Sequence[float]]
    command: str
    opened: tuple[str, ...] = ()
    link: dict[str, str] = field(default_factory=dict)
    pressed: tuple[str, ...] = ()


def heights(at: AppTest, key: str) -> list[float]:
    """Return the heights of the first curve of a chart on the page."""
    (found,) = [n for n in nodes(at) if n.type == "plotly_chart" and n.proto.id.endswith(key)]
    sent = json.loads(found.proto.spec)["data"][0]["y"]
    if isinstance(sent, dict):  # the bytes of an array
        return list(np.frombuffer(base64.b64decode(sent["bdata"]), dtype=sent["dtype"]))
    return list(sent)


def numbers_in(sentence: str) -> list[float]:
    """Return the numbers of a sentence."""
    return [float(text) for text in re.findall(r"\d+(?:\.\d+)?", sentence)]


def column(at: AppTest, name: str) -> list[float]:
    """Return a column of the one table on the page that has it."""
    (found,) = [frame.value for frame in at.dataframe if name in frame.value]
    return [float(value) for value in found[name]]


def means_of(table: dict[str, list[Any]], metric: str) -> list[float]:
    """Return the mean of a measure for each mechanism along epsilon."""
    rows = pd.DataFrame(table)
    chosen = rows[rows["metric"] == metric].groupby(["mechanism", "epsilon"])["value"]
    return [float(value) for value in chosen.mean()]


ACCOUNT = "account {} --epsilon 1 --delta 1e-6 --rows 150 --dimension 4 --relation replace"
CASES = {
    "waterfall": Case(
        "preparation",
        lambda at: column(at, "recovery"),
        lambda answer: [step["recovery"] for step in answer["steps"]],
        "account steps",
        ("numbers.waterfall",),
        {"scale": "private", "bounds": "known"},
    ),
    "account": Case(
        "mechanisms",
        lambda at: heights(at, "mechanisms.account.gaussian.curve"),
        lambda answer: [p["delta"] for p in answer["curve"] if p["delta"] > 1e-12],
        ACCOUNT.format("gaussian"),
        # its row stands below those that keep more
        (
            "mechanisms.all.The promise holds",
            "mechanisms.gaussian.open",
            "mechanisms.account.gaussian",
        ),
    ),
    "audit": Case(
        "claims",
        lambda at: numbers_in(
            next(box.value for box in at.main.markdown if "confidence" in box.value)
        ),
        lambda answer: numbers_in(answer["evidence"]),
        "audit",
        link={"part": "audit"},
        pressed=("claims.audit.run",),
    ),
    "task": Case(
        "tasks",
        lambda at: column(at, "mean"),
        lambda answer: [row["mean"] for row in answer["results"]],
        "task",
        link={"tuning": "fixed", "epsilons": "0.5,5"},
    ),
    "sweep": Case(
        "tradeoffs",
        lambda at: column(at, "mean"),
        lambda answer: means_of(answer["table"], "recovery"),
        "sweep",
        ("numbers.curve",),
    ),
    "account of a chain": Case(
        "preparation",
        lambda at: heights(at, "preparation.account.curve"),
        lambda answer: [p["delta"] for p in answer["curve"] if p["delta"] > 1e-12],
        ACCOUNT.format("gaussian") + " --center private --row-bound private:0.99",
        ("preparation.account",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_page_shows_what_its_command_answers(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    at = start(case.page, **LINK, **case.link)
    for key in case.opened:
        at.session_state[key] = True
        at.run()
    for key in case.pressed:
        press(at, key)
    assert errors(at) == []
    words = shlex.split(case.command)
    if len(words) == 1 or case.command in UNDER.values():
        (line,) = [line for line in commands(at) if f" {case.command} " in line]
        words = shlex.split(line.split("dpviz ", 1)[1].split(" --out ")[0])
    capsys.readouterr()
    assert main([*words, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    shown = [float(number) for number in case.shown(at)]
    assert shown
    assert shown == pytest.approx([float(number) for number in case.answered(answer)], rel=1e-12)


def test_an_experiment_on_the_page_is_that_of_the_front_door() -> None:
    at = start("papers", experiment="jiang_theorem5")
    press(at, "ask.run.Running")
    assert errors(at) == []
    shown = html.unescape("\n".join(node.proto.body for node in at.get("html")))
    claims = dpviz.reproduce("jiang_theorem5", quick=True).data()["claims"]
    assert claims
    for claim in claims:  # the reason has the measured numbers
        assert claim["reason"] in shown
