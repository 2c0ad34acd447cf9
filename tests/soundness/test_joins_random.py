"""Random search for neighbors that refute what a room says of joins.

The default profile tries some ten thousand comparisons for each room, the long one (SECANT_PROFILE=long) more than a
million together. Counts are asserted, so that a grammar that is refused too often cannot pass unnoticed.
"""

import os

import pytest
from joins_check import ROOMS, Findings, room_of, smallest
from joins_search import attack

LONG = os.environ.get("SECANT_PROFILE") == "long"
SEEDS = 4_000 if LONG else 60
CHECKS = {"elastic": 300_000, "residual": 300_000, "multiplicity": 300_000, "smt": 100_000}
"""Comparisons that a long run makes, at least."""


@pytest.mark.parametrize("name", ROOMS)
def test_no_neighbor_refutes_a_room(name, record_property):
    room, findings = room_of(name), Findings()
    for seed in range(SEEDS):
        attack(room, seed, findings)
        assert [str(smallest(v, room)) for v in findings.violations[:1]] == []
    record_property("checks", findings.checks)
    print(
        f"{name}: {findings.checks} checks, {findings.pairs} pairs, "
        f"{findings.accepted} of {findings.asked} releases accepted"
    )
    assert findings.checks >= CHECKS[name] * (1 if LONG else SEEDS / 8_000)
