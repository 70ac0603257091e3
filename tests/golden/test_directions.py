"""The planted example's figures, in docs/precision.md and in README, can be computed again."""

from __future__ import annotations

import re

import pytest

from benchmarks import directions
from benchmarks.directions import BELIEFS, EXACT, ISOTROPIC, PLANTED_EPSILON, planted
from dpviz.core.files import app_path

ROOT = app_path().parent
EQUAL, RIGHT, HALF, WRONG = BELIEFS


def written(domain: str, belief: str) -> list[float]:
    """Return the two means that docs/precision.md states."""
    text = (ROOT / "docs" / "precision.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| {domain} \| {re.escape(belief)} \|(.*)\|$", text, re.MULTILINE)
    return [float(cell.split("±")[0]) for cell in line.split("|")]


@pytest.mark.parametrize("domain", ["box", "ball"])
def test_the_planted_figures_are_what_the_command_writes(domain: str) -> None:
    # The same seed repeats the results, but other rounding may change the third decimal by one.
    for belief, summaries in planted(domain, 200).items():
        for summary, mean in zip(summaries, written(domain, belief), strict=True):
            assert abs(summary.mean - mean) <= 0.0011, (domain, belief)


def test_the_page_of_mechanisms_says_the_same() -> None:
    text = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    inside = text.partition(directions.START)[2].partition(directions.END)[0].strip()
    assert len(inside.splitlines()) == 4
    assert inside == directions.planted_summary(200)


def test_right_directions_multiply_recovery_on_the_box_and_not_on_the_ball() -> None:
    """Right directions multiply recovery on the box, but not on the ball.

    Repetitions use fresh randomness. A share lies in [0, 1]. A random subspace has k/d of .1157, of
    which two components have .1083: .107. So recovery has a range of 1/(1 - .107) = 1.12, and a
    mean of 60 repetitions has a standard error of at most 0.56/sqrt(60) = 0.073. Six standard
    errors are 0.44, less than each gap required on the box below.
    """
    shares = {domain: planted(domain, 60) for domain in ("box", "ball")}
    for place, key in enumerate(EXACT):
        box = {belief: shares["box"][belief][place].mean for belief in shares["box"]}
        ball = {belief: shares["ball"][belief][place].mean for belief in shares["ball"]}
        assert box[RIGHT] > 3 * box[EQUAL], key
        assert box[RIGHT] > box[EQUAL] + 0.44
        assert box[RIGHT] > box[WRONG] + 0.44  # Control: a wrong belief about directions is worse.
        assert box[HALF] < box[RIGHT]
        # With rows in the ball, equal shares already reach .99, so uneven shares can only lose.
        assert ball[RIGHT] < ball[EQUAL]
        assert ball[RIGHT] < ball[ISOTROPIC]


def test_the_gain_shrinks_as_epsilon_grows() -> None:
    gains = []
    for epsilon in (PLANTED_EPSILON, 1.0):
        box = planted("box", 30, epsilon)
        gains.append(box[RIGHT][0].mean - box[EQUAL][0].mean)
    assert gains[0] > 0.5 > gains[1]  # The measured gains are .81 and .12.
