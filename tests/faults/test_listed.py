"""Each planted fault still applies: its file has the line once, and its tests exist."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.__main__ import ROOT
from tests.faults.listed import FAULTS, KINDS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.full_name)
def test_fault_applies_and_its_tests_exist(fault: Fault) -> None:
    was = (ROOT / fault.path).read_text(encoding="utf-8")
    assert fault.applied(was) != was
    for test in fault.tests:
        if "/" in test:
            assert (ROOT / test.partition("::")[0]).exists(), test


def test_every_kind_has_faults() -> None:
    assert {fault.kind for fault in FAULTS} == set(KINDS)
    assert [name for name, times in Counter(f.full_name for f in FAULTS).items() if times > 1] == []


def test_a_line_that_moved_is_refused() -> None:
    with pytest.raises(LookupError, match="stands 0 times"):
        Fault("x", "noise", "a.py", "no such line", "", ()).applied("something else")
