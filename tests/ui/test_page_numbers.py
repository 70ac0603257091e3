"""A page shows the numbers that the equivalent command prints as JSON."""

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
    """One answer on a page, and in a command.

    Attributes
    ----------
    page : str
    shown : callable
        Function that returns the numbers that the page shows.
    answered : callable
        Function that returns the same numbers from the command's JSON.
    command : str
        The equivalent command; if only a verb is given, the page shows the whole command.
    opened : tuple of str
        Part of the page to open first.
    link : dict
        Link settings in addition to `LINK`.
    pressed : tuple of str
        Buttons to press after that part is open.
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
    (chart,) = [n for n in nodes(at) if n.type == "plotly_chart" and n.proto.id.endswith(key)]
    sent_y = json.loads(chart.proto.spec)["data"][0]["y"]
    if isinstance(sent_y, dict):  # Plotly sends a NumPy array as base64 bytes.
        return list(np.frombuffer(base64.b64decode(sent_y["bdata"]), dtype=sent_y["dtype"]))
    return list(sent_y)


def numbers_in(sentence: str) -> list[float]:
    """Return the numbers of a sentence."""
    return [float(text) for text in re.findall(r"\d+(?:\.\d+)?", sentence)]


def column(at: AppTest, name: str) -> list[float]:
    """Return a column of the only table on the page that has this column."""
    (frame_of,) = [frame.value for frame in at.dataframe if name in frame.value]
    return [float(value) for value in frame_of[name]]


def means_of(table: dict[str, list[Any]], metric: str) -> list[float]:
    """Return the mean of a measure for each mechanism along epsilon."""
    rows = pd.DataFrame(table)
    groups = rows[rows["metric"] == metric].groupby(["mechanism", "epsilon"])["value"]
    return [float(value) for value in groups.mean()]


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
        # Open this group first, because it initially hides the mechanism's row.
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
    values = [float(number) for number in case.shown(at)]
    assert values
    assert values == pytest.approx([float(number) for number in case.answered(answer)], rel=1e-12)


def test_an_experiment_on_the_page_is_that_of_the_front_door() -> None:
    at = start("papers", experiment="jiang_theorem5")
    press(at, "ask.run.Running")
    assert errors(at) == []
    text = html.unescape("\n".join(node.proto.body for node in at.get("html")))
    claims = dpviz.reproduce("jiang_theorem5", quick=True).data()["claims"]
    assert claims
    for claim in claims:  # Each claim's reason contains the measured numbers.
        assert claim["reason"] in text
