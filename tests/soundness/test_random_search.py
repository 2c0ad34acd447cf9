"""Random search for a pair of neighbors that refutes a certificate. Hypothesis draws, `evaluate` answers.

The default profile tries some thousands of (query, database, neighbor) triples, the long one (SECANT_PROFILE=long) more
than 100 000. The count is asserted, so that a grammar that is refused too often cannot pass unnoticed.
"""

import os
import random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from neighbor_check import Findings, smallest
from search import attack

LONG = os.environ.get("SECANT_PROFILE") == "long"
EXAMPLES = 7_000 if LONG else 350
TRIPLES = 100_000 if LONG else 4_000
ACCEPTED = 0.25
RULES = {"G-COUNT", "G-COUNT-DISTINCT", "G-COUNT-UNITS", "G-FILTER", "G-GROUP", "G-JOIN", "G-PROJECT",
         "G-REPLACE", "G-SCAN", "G-SUM", "G-SUM-DISTINCT", "G-TRUNCATE"}  # fmt: skip
"""Rules that any run must have put to the test."""


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
    assert RULES - set(total.rules) == set()
