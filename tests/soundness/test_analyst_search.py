"""Everything that analysts write, drawn and held against neighbors: windows, GROUPING SETS, QUALIFY, JSON, arrays …

Some thousand comparisons by default, 1e6 with SECANT_PROFILE=long (`analyst_search.py` runs the same outside of
pytest). That every construct is drawn is asserted, so that none can fall out of the grammar unnoticed.
"""

import random
from collections import Counter

import pytest
from analyst_questions import CONSTRUCTS, Analyst
from analyst_search import Campaign, attack
from analyst_worlds import COLUMNS
from neighbor_check import smallest
from planted_faults import FAULTS, without_walls

from chance import LONG, fresh_seed

COMPARISONS = 1_000_000 if LONG else 1_500
FOUND = {
    ("owner.window", "a window may hold rows of all units"): ("window inside a unit", 1125),
    ("rewrite.range", "the clamp is lost"): ("JSON", 0),
    ("stability.rank", "one row for all rows of a unit"): ("rank", 0),
    ("stability.mode", "one row for all rows of a unit"): ("mode", 0),
}
"""Planted faults that this search notices by itself, and the construct by which, from some seed on."""
SEEDS = 500


def test_every_construct_is_drawn():
    drawn: Counter[str] = Counter()
    analyst = Analyst(random.Random(fresh_seed()), tuple(COLUMNS))
    for _ in range(1_500):
        analyst.question()
        drawn.update(analyst.used)
    print(drawn)
    assert [x for x in CONSTRUCTS if drawn[x] < 5] == []


def test_no_neighbor_refutes_what_analysts_write(record_property):
    campaign, seed = Campaign(), fresh_seed() * 10**9
    while campaign.findings.triples < COMPARISONS:
        text, world = attack(seed, campaign)
        found = [str(smallest(v, world)) for v in campaign.findings.violations[:1]]
        assert found == [], f"seed {seed}: {text}"
        seed += 1
    print(campaign.table())
    record_property("comparisons", campaign.findings.triples)
    assert campaign.findings.accepted >= 0.3 * campaign.findings.asked
    assert not LONG or [x for x in CONSTRUCTS if not campaign.compared[x]] == ["ASOF"]  # refused


@pytest.mark.parametrize(
    "fault",
    [f for f in FAULTS if (f.rule, f.what) in FOUND],
    ids=lambda f: f"{f.rule}: {f.what}",
)
def test_a_planted_fault_is_noticed(fault, monkeypatch):
    without_walls(monkeypatch)
    fault.plant(monkeypatch)
    campaign, (construct, first) = Campaign(), FOUND[fault.rule, fault.what]
    for seed in range(first, first + SEEDS):  # the same questions each time: no luck
        attack(seed, campaign, starts=2, steps=6, of=construct)
        if campaign.findings.violations:
            return
    pytest.fail(f"nobody notices: {campaign.table()}")
