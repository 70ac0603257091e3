"""One answer for every printed claim: how it is drawn, and that none is missing."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.base.paths import app_path
from dpviz.reproduce import (
    Agreement,
    Answer,
    Line,
)
from dpviz.reproduce.lines import Stated, above, as_reading, beside, decided
from dpviz.reproduce.verdicts import Claim, judged, of_item

DOCS = app_path().parent / "docs"


def line(agreement: Agreement, panel: str = "A", note: str = "Because.") -> Line:
    return Line(panel, "item", "said", "seen", agreement, note)


@pytest.mark.parametrize(
    ("agreements", "answer"),
    [
        ([Agreement.AGREES], Answer.REPRODUCED),
        ([Agreement.AGREES, Agreement.CANNOT_TELL], Answer.REPRODUCED),
        ([Agreement.AGREES, Agreement.ABSENT], Answer.REPRODUCED),
        ([Agreement.CANNOT_TELL, Agreement.CANNOT_TELL], Answer.FEW_DRAWS),
        ([Agreement.AGREES, Agreement.DIFFERS], Answer.NOT_REPRODUCED),
        ([Agreement.CANNOT_TELL, Agreement.DIFFERS], Answer.NOT_REPRODUCED),
        ([Agreement.ABSENT], Answer.NOT_HERE),
        # another reading and what was added decide nothing
        ([Agreement.READING, Agreement.ADDED], Answer.NOT_HERE),
        ([Agreement.READING, Agreement.AGREES], Answer.REPRODUCED),
    ],
)
def test_one_line_against_fails_a_claim_and_none_decided_cannot_be_told(
    agreements: list[Agreement], answer: Answer
) -> None:
    lines = [line(item, panel=str(place)) for place, item in enumerate(agreements)]
    assert judged("claim", lines).answer is answer


def test_a_claim_that_says_all_at_once_needs_all() -> None:
    lines = [line(Agreement.AGREES), line(Agreement.CANNOT_TELL, "B")]
    assert judged("claim", lines, every=True).answer is Answer.FEW_DRAWS
    assert judged("claim", lines[:1], every=True).answer is Answer.REPRODUCED
    bound = judged("claim", lines[:1], held=Answer.BOUND)
    assert bound.answer is Answer.BOUND


def test_where_a_claim_fails_the_reason_says_where_it_holds() -> None:
    said = judged("claim", [line(Agreement.AGREES), line(Agreement.DIFFERS, "B", "It falls.")])
    assert said.reason == "So on A, but not on B. It falls."
    absent = judged("claim", [line(Agreement.AGREES), line(Agreement.ABSENT, "C")])
    assert absent.reason.endswith("Without measurement: C.")


def test_a_renamed_line_cannot_drop_a_claim() -> None:
    with pytest.raises(LookupError, match="gone"):
        of_item([line(Agreement.AGREES)], "gone")
    with pytest.raises(ValueError, match="sentence"):
        Claim("claim", Answer.REPRODUCED, "no full stop")


def test_an_order_that_no_point_decides_cannot_be_told() -> None:
    rng = np.random.default_rng(0)
    one = {1.0: rng.standard_normal(100)}
    same = {1.0: rng.standard_normal(100)}
    assert above("p", "i", "r", one, same, "why").agreement is Agreement.CANNOT_TELL
    higher = {1.0: one[1.0] + 5}
    assert above("p", "i", "r", higher, same, "why").agreement is Agreement.AGREES
    assert above("p", "i", "r", same, higher, "Why.").agreement is Agreement.DIFFERS
    assert decided("p", "i", "r", one[1.0], same[1.0], "Why.").agreement is Agreement.CANNOT_TELL
    assert decided("p", "i", "r", higher[1.0], one[1.0], "Why.", paired=True).agreement is (
        Agreement.AGREES
    )
    assert decided("p", "i", "r", one[1.0], higher[1.0], "Why.").agreement is Agreement.DIFFERS
    assert decided("p", "i", "r", None, one[1.0], "").agreement is Agreement.ABSENT


def test_another_reading_is_shown_and_not_judged() -> None:
    far = beside("p", "i", Stated(1.0), np.array([2.0, 2.1]), "Why.", fairest=False)
    assert far.agreement is Agreement.READING
    assert far.reported == "1"
    near = beside("p", "i", Stated(1.0), np.array([2.0, 2.1]), "Why.")
    assert near.agreement is Agreement.DIFFERS
    assert as_reading(near).agreement is Agreement.READING
    added = beside("p", "i", None, np.array([2.0, 2.1]))
    assert as_reading(added) is added
