"""The suite can fail: a wrong rule of every id is planted, and the checker notices each."""

import importlib
import re
from pathlib import Path

import pytest
from directed_cases import CASES, REFUTED_ONCE
from planted_faults import ELSEWHERE, FAULTS, REFUSALS, without_walls

from secant.plan.facts import ownership
from secant.plan.rewrites import enforce, measures
from secant.plan.rewrites import null_on_error as total
from secant.sensitivity.stability import analysis, rules
from secant.sensitivity.truncation import analysis as clipping_analysis
from secant.sensitivity.truncation import clipping

NAMED = re.compile(r"(?<![\w.])(?:stability|owner|rewrite|truncation)\.[a-z_]+\b")


@pytest.mark.parametrize("name", CASES)
def test_no_neighbor_refutes_a_directed_case(name):
    findings = CASES[name].findings()
    assert [str(v) for v in findings.violations] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.rule}: {f.what} ({f.case})")
def test_a_planted_fault_is_noticed(fault, monkeypatch):
    without_walls(monkeypatch)
    fault.plant(monkeypatch)
    assert CASES[fault.case].findings().violations


@pytest.mark.parametrize("case", ["rows of one table", "a sort key that asks all rows"])
def test_a_second_wall_stands_behind_the_rules(case, monkeypatch):
    """Rules that say that nothing differs are not believed where protected rows are read."""
    for fault in FAULTS:
        if fault.rule in ("stability.scan", "stability.sort") and fault.case == case:
            fault.plant(monkeypatch)
    assert not CASES[case].findings().violations


def test_every_rule_id_has_a_planted_fault():
    named = set()
    for module in (
        analysis,
        rules,
        ownership,
        enforce,
        measures,
        total,
        clipping,
        clipping_analysis,
    ):
        named |= set(NAMED.findall(Path(module.__file__).read_text(encoding="utf-8")))
    planted = {fault.rule for fault in FAULTS}
    assert named - planted == {*REFUSALS, *ELSEWHERE}
    for module, test in ELSEWHERE.values():
        assert callable(getattr(importlib.import_module(module), test))


def test_every_directed_case_is_of_use():
    """Each either is accepted and tried on a neighbor, or is refused until a fault lets it pass."""
    used = {fault.case for fault in FAULTS} | REFUTED_ONCE
    assert used <= set(CASES)
    idle = [name for name in CASES if name not in used and not CASES[name].findings().triples]
    assert idle == []
