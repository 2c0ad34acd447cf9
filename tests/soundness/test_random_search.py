"""Random search for a pair of neighbors that refutes a certificate. Hypothesis draws, `evaluate` answers.

The default profile tries some thousands of (query, database, neighbor) triples, the long one (SECANT_PROFILE=long) more
than 100 000. The count is asserted, so that a grammar that is refused too often cannot pass unnoticed.
"""

import random
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from neighbor_check import Findings, World, neighbors, smallest
from planted_faults import FAULTS, without_walls
from search import attack

from chance import LONG
from secant.policy.policy import Policy, Protection, TableFacts
from secant.schema.catalog import Table, catalog
from secant.schema.types import INTEGER

EXAMPLES = 7_000 if LONG else 220
TRIPLES = 100_000 if LONG else 3_000
ACCEPTED = 0.2  # about 0.4 is usual: eight standard deviations away, so no false alarm
RULES = {"stability.count", "stability.count_distinct", "stability.count_units", "stability.filter",
    "stability.group", "stability.join", "stability.project",
         "stability.replace", "stability.scan", "stability.sum", "stability.sum_distinct",
         "stability.truncate"}  # fmt: skip
"""Rules that a long run must have put to the test."""
ATTACKS = 500
FOUND_ALONE = {
    "a table that differs is taken to be fixed",
    "the limit is halved",
    "no key is asked for",
    "half of it",
    "only the new row of a group is counted",
    "some owners are taken for all",
    "the sides need no tie",
    "the truncation is lost",
    "the clamp is lost",
}
"""Planted faults that the search notices without a directed case, well within ATTACKS questions."""


def test_no_neighbor_refutes_a_certificate(record_property):
    total = Findings()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False), st.integers(0, 2**64))
    def search(question, seed):
        findings = Findings()
        world = attack(question, random.Random(seed), findings)
        total.add(findings)
        assert [str(smallest(v, world)) for v in findings.violations[:1]] == []

    search()
    record_property("triples", total.triples)
    record_property("accepted", total.accepted)
    print(f"{total.triples} triples, {total.accepted} of {total.asked} queries accepted")
    assert total.triples >= TRIPLES
    assert total.accepted >= ACCEPTED * total.asked
    assert not LONG or set(total.rules) >= RULES


def test_neighbors_keep_what_the_engine_keeps():
    """A replaced row never breaks a key that the engine keeps; where it keeps none, equal rows are tried."""
    rows = Protection("rows", "rows", Fraction(1), replace=True)
    pair = [{"id": 1}, {"id": 3}]

    def worlds(unique):
        known = catalog(Table("person", (("id", INTEGER),), unique))
        return World(known, Policy("", {"person": TableFacts()}, (rows,)))

    def found(unique):
        others = neighbors({"person": pair}, worlds(unique), rows, {"person": [{"id": None}]})
        return [sorted(str(r["id"]) for r in other["person"]) for other in others]

    assert ["1", "1"] in found(())
    assert ["3", "3"] in found(())
    kept = found((("id",),))
    assert ["1", "None"] in kept  # engines allow NULL beside a key
    assert all(len(set(ids)) == 2 for ids in kept)


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if f.what in FOUND_ALONE], ids=lambda f: f"{f.rule}: {f.what}"
)
def test_the_search_alone_notices_a_planted_fault(fault, monkeypatch):
    without_walls(monkeypatch)
    fault.plant(monkeypatch)
    findings = Findings()
    for seed in range(
        ATTACKS
    ):  # seeded: the same questions each time, so this is no matter of luck
        attack(random.Random(seed), random.Random(seed), findings, starts=2, steps=6)
        if findings.violations:
            break
    assert findings.violations
