"""The directed cases can fail: misprints and faults of public systems are planted, and each is noticed."""

import pytest
from joins_cases import CASES
from joins_check import analysis_of
from joins_faults import FAULTS
from joins_operators import OPERATORS, RESIDUALS

ALL = {**CASES, **OPERATORS, **RESIDUALS}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.rule}: {f.what}")
def test_a_planted_fault_is_noticed(fault, monkeypatch):
    analysis = analysis_of(fault.analysis)
    right = ALL[fault.case].findings(analysis, steps=0)
    assert bool(right.accepted) != fault.refused
    assert [str(v) for v in right.violations[:1]] == []
    fault.plant(monkeypatch)
    assert ALL[fault.case].findings(analysis, steps=0, first=True).violations
