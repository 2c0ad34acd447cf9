"""Keys that one row or one person brings in are shown with probability delta at most, on real neighbors.

A public system set the threshold as if one contribution were all that a person could make. Here the keys that only
one side of a pair has are looked up, and the exact probability that any of them is shown is held against delta.
"""

import math
import random
from decimal import Decimal
from fractions import Fraction

import neighbor_check
import pytest
from directed_cases import PEOPLE, rows, world_of
from joins_worlds import World, database, draw_database, neighbors, world

from naming_public import name_public
from private_shop import reaches
from secant.noise import shares
from secant.noise.mechanisms import whole
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.evaluate.values import same_key
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy, TableFacts
from secant.sensitivity.portfolio import Decomposition, prepare
from secant.sql.bind import from_sql

DELTA = Fraction(1, 1000)
ROWS = (
    "SELECT a, count(*) FROM r GROUP BY a",
    "SELECT a, count(*) FROM (SELECT a FROM r UNION ALL SELECT a FROM r) q GROUP BY a",
    "SELECT a, count(*) FROM (SELECT a FROM r UNION ALL SELECT b FROM r) q GROUP BY a",
)
UNITS = (
    "SELECT code, count(*) FROM visit GROUP BY code",
    "SELECT kind, code, sum(cost) FROM visit GROUP BY kind, code",
)


def row_world():
    """Give the world in which nothing is declared: keys are chosen privately."""
    place = world(("r",))
    policy = Policy("", {}, place.policy.protections)
    return World(place.catalog, name_public(policy, place.catalog))


def row_pairs():
    place, draw = row_world(), random.Random(5)
    starts = [database(), *(draw_database(draw, frozenset({"r"}), place) for _ in range(4))]
    for start in starts:
        for other in neighbors(start, frozenset({"r"}), place, draw):
            yield start, other


def unit_pairs():
    visits = [(i, 1 + i % 2, i, Decimal("1.25"), "ab"[i % 2]) for i in range(8)]
    full = rows(person=[(1, "a", 1, "a"), (2, "b", 1, "a")], visit=visits)
    place = unit_world()
    for other in neighbor_check.neighbors(full, place, PEOPLE, {}):
        yield full, other


def unit_world():
    place = world_of(PEOPLE)
    ranges = {
        name: TableFacts(
            facts.key, {k: v for k, v in facts.references.items() if v[0] == "person"},
            {c: f for c, f in facts.columns.items() if f.values is None},
        )
        for name, facts in place.policy.tables.items()
    }  # fmt: skip
    policy = name_public(Policy("", ranges, (PEOPLE,)), place.catalog)
    return neighbor_check.World(place.catalog, policy)


def most_likely(text, place, pairs):
    """Give the largest probability with which keys that one side lacks are shown, and delta."""
    plan = normalize(from_sql(text, place.catalog))
    protections = place.policy.protections
    outcome = prepare(plan, place.policy, protections, place.catalog)
    assert isinstance(outcome, Decomposition), outcome
    (bounded,) = outcome.bounded
    release = bounded.release
    made = shares.calibrate(
        outcome.bounded, protections, Fraction(1), {p.name: DELTA for p in protections}
    )
    choice, law = made.choices[release.name], made.noise[release.selector].law
    run, width = compiled(release.exact), len(release.exact.keys)
    column = width + [m.column for m in release.measures].index(release.selector)

    def counts(data):
        return {tuple(map(same_key, row[:width])): row[column] for row in run(data)}

    def shown(count):
        far = choice.threshold - count
        return 1.0 if far < 1 else reaches(law, far)

    worst = 0.0
    for before, after in pairs:
        one, two = counts(before), counts(after)
        new = [two[k] for k in two if k not in one] + [one[k] for k in one if k not in two]
        worst = max(worst, 1 - math.prod(1 - shown(count) for count in new))
    return worst


@pytest.mark.parametrize("text", ROWS)
def test_keys_of_one_row_are_hidden(text):
    worst = most_likely(text, row_world(), row_pairs())
    assert 0 < worst <= float(DELTA) * (1 + 1e-9)


@pytest.mark.parametrize("text", UNITS)
def test_keys_of_one_person_are_hidden(text):
    worst = most_likely(text, unit_world(), unit_pairs())
    assert 0 < worst <= float(DELTA) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "place", "pairs"),
    [(ROWS[2], row_world, row_pairs), (UNITS[0], unit_world, unit_pairs)],
    ids=["rows", "people"],
)
def test_a_threshold_that_ignores_the_limit_is_noticed(text, place, pairs, monkeypatch):
    for name in ("noisy_threshold", "gaussian_threshold"):
        right = getattr(whole, name)
        monkeypatch.setattr(
            whole, name, lambda x, right=right, **facts: right(x, **{**facts, "groups": 1})
        )
    assert most_likely(text, place(), pairs()) > float(DELTA)
