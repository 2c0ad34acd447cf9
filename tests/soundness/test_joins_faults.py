"""The directed cases can fail: misprints and faults of public systems are planted, and each is noticed."""

import pytest
from joins_cases import CASES
from joins_check import room_of
from joins_faults import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.rule}: {f.what}")
def test_a_planted_fault_is_noticed(fault, monkeypatch):
    room = room_of(fault.room)
    right = CASES[fault.case].findings(room, steps=0)
    assert right.accepted
    assert [str(v) for v in right.violations[:1]] == []
    fault.plant(monkeypatch)
    assert CASES[fault.case].findings(room, steps=0, first=True).violations
