"""Statistics of columns for which `moves` is declared: on all neighbors of small databases, and against Algorithm 1.

What is compared is what runs: the bounded plan by the interpreter, and `in_steps`. Planted faults show that the check
can fail.
"""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from directed_cases import PEOPLE, ROWS, SWAP, world_of
from drawn_worlds import draw_database, draw_pool
from neighbor_check import Findings, World, target_for

from chance import LONG, fresh_seed
from secant.plan.rewrites.measures import STEPS_OF_A_MOVE, Preprocessed
from secant.policy.policy import ColumnFacts
from secant.stats.preprocessing import preprocessed
from secant.stats.preprocessing.preprocessed import preprocessed_steps

SEED = fresh_seed()
DATABASES = 150 if LONG else 8
MOVES = dict.fromkeys(("avg", "median", "quantile", "min", "max", "variance"), Fraction(1, 2))
DECLARED = {("visit", "cost"), ("person", "age"), ("item", "price"), ("item", "qty")}
QUERIES = [
    "SELECT avg(cost), median(cost) FROM visit",
    "SELECT kind, avg(cost), quantile_cont(cost, 0.9) FROM visit GROUP BY kind",
    "SELECT min(cost), max(cost) FROM visit WHERE code > 0",
    "SELECT var_pop(age), stddev_pop(age) FROM person",
    "SELECT tag, avg(qty), var_pop(price) FROM item GROUP BY tag",
    "SELECT avg(v.cost) FROM visit v JOIN person p ON v.pid = p.id WHERE p.age > 1",
    "SELECT p.region, avg(v.cost) FROM visit v JOIN place p ON v.code = p.code GROUP BY p.region",
    "SELECT avg(age) FROM (SELECT id, age FROM person) q",
    "SELECT avg(s) FROM (SELECT age AS s FROM person WHERE age IS NOT NULL) q",
]
PROTECTIONS = [ROWS, SWAP, PEOPLE]


def world_with_moves(protection) -> World:
    """Give the schema where statistics of some columns rest on `moves` alone: ranges of these are not declared."""
    world = world_of(protection)
    tables = dict(world.policy.tables)
    for table, column in DECLARED:
        facts = ColumnFacts(moves=MOVES, center=Fraction(1))
        columns = {**tables[table].columns, column: facts}
        tables[table] = replace(tables[table], columns=columns)
    return World(world.catalog, replace(world.policy, tables=tables))


def attack(queries, protections, databases) -> Findings:
    source, findings = random.Random(SEED), Findings()
    for text, protection in itertools.product(queries, protections):
        world = world_with_moves(protection)
        target = target_for(text, world, findings)
        assert target is not None, (text, protection.name)
        for _ in range(databases):
            database, pool = draw_database(source, world), draw_pool(source)
            target.try_on(database, pool)
    return findings


def test_no_neighbor_moves_a_statistic_by_more_than_declared():
    findings = attack(QUERIES, PROTECTIONS, DATABASES)
    assert not findings.violations, (SEED, findings.violations[0])
    assert findings.rules["stability.moves"] >= 2 * len(QUERIES)
    assert findings.triples > 1000


@pytest.mark.parametrize("fault", ["half a bound", "twice the move", "not preprocessed", "present"])
def test_planted_faults_are_seen(fault, monkeypatch):
    if fault == "half a bound":
        monkeypatch.setattr("secant.sensitivity.summands.STEPS_OF_A_MOVE", STEPS_OF_A_MOVE // 2)
    else:
        monkeypatch.setattr(preprocessed, "preprocessed_steps", FAULTS[fault])
    assert attack(QUERIES[:4], PROTECTIONS, DATABASES).violations


def twice(made, values):
    return 2 * preprocessed_steps(replace(made, moves=2 * made.moves), values)


def plain(made, values):
    """Give the mean itself."""
    known = [Fraction(x) for x in values if x is not None]
    mean = sum(known, Fraction(0)) / len(known) if known else made.center
    return int((mean - made.center) / made.moves * STEPS_OF_A_MOVE)


def centered(made, values):
    """Take the center from those who are there."""
    first = min((x for x in values if x is not None), default=0)
    return preprocessed_steps(replace(made, center=Fraction(first)), values) + int(
        (Fraction(first) - made.center) / made.moves * STEPS_OF_A_MOVE
    )


FAULTS = {"twice the move": twice, "not preprocessed": plain, "present": centered}


def construction(function, values: tuple[int, ...], made: Preprocessed, known) -> Fraction:
    """Give g by Algorithm 1: over all parts of the values, in exact numbers."""
    if values not in known:
        if not values:
            known[values] = made.center
        else:
            rest = {values[:i] + values[i + 1 :] for i in range(len(values))}
            parts = [construction(function, part, made, known) for part in rest]
            low, high = max(parts) - made.moves, min(parts) + made.moves
            known[values] = max(min(function(values), high), low)
    return known[values]


def quantile(share):
    def function(values):
        place = (len(values) - 1) * share
        below, above = values[int(place)], values[min(int(place) + 1, len(values) - 1)]
        return below + (place - int(place)) * (above - below)

    return function


def mean(values):
    return Fraction(sum(values), len(values))


def variance(values):
    return mean([x * x for x in values]) - mean(values) ** 2


FUNCTIONS = {
    ("mean", None): mean,
    ("variance", None): variance,
    **{("quantile", Fraction(k, 4)): quantile(Fraction(k, 4)) for k in range(5)},
}


def test_what_runs_is_algorithm_1():
    source = random.Random(SEED)
    for _ in range(4000 if LONG else 60):
        values = tuple(sorted(source.randint(-9, 9) for _ in range(source.randint(0, 7))))
        for (name, share), function in FUNCTIONS.items():
            center = Fraction(0 if name == "variance" else source.randint(-5, 5))
            made = Preprocessed(name, share, Fraction(source.randint(1, 12), 4), center)
            right = construction(function, values, made, {})
            steps = preprocessed_steps(made, [float(x) for x in values])
            assert abs(steps * made.moves / STEPS_OF_A_MOVE + center - right) <= made.moves / 2**32
