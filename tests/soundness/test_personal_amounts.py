"""Units that give different amounts of epsilon: none moves an answer by more than its part of what noise was made for.

Amounts are the ages of people here, wild ones among them. Who left a database, and what they gave, is found by a second
piece of code.
"""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from directed_cases import PEOPLE, world_of
from drawn_worlds import draw_database, draw_pool
from neighbor_check import Findings, _comparisons, _rank_comparisons, neighbors, target_for

from chance import LONG, fresh_seed
from secant.policy.policy import Offers

SEED = fresh_seed()
DATABASES = 400 if LONG else 30
GIVING = replace(
    PEOPLE,
    delta=Fraction(0),
    epsilon=Fraction(4),
    personal=Offers(("person", "age"), (Fraction(1), Fraction(2), Fraction(4))),
)
QUERIES = [
    "SELECT count(*) FROM person",
    "SELECT kind, sum(cost), count(*) FROM visit GROUP BY kind",
    "SELECT count(DISTINCT pid) FROM visit",
    "SELECT avg(cost) FROM visit",
    "SELECT kind, median(cost) FROM visit GROUP BY kind",
    "SELECT var_pop(v.cost) FROM visit v JOIN person p ON v.pid = p.id",
    "SELECT max(s) FROM (SELECT pid, sum(cost) AS s FROM visit GROUP BY pid) q",
]


def part_of(database, neighbor, offers) -> Fraction:
    """Give what the unit that is gone from the neighbor gives, of what anybody gives at most."""
    ids = [
        {*(r["id"] for r in d["person"]), *(r["pid"] for r in d["visit"])}
        for d in (database, neighbor)
    ]
    gone = (ids[0] | ids[1]) - (ids[0] & ids[1]) - {None}
    amounts = [
        row["age"]
        for row in (*database["person"], *neighbor["person"])
        if row["id"] in gone and row["age"] is not None
    ]
    reached = [a for a in offers.amounts if amounts and a <= min(amounts) <= 10**6]
    return max(reached, default=Fraction(0)) / offers.amounts[-1]


def refuted(queries, databases) -> list[tuple]:
    source, found, seen = random.Random(SEED), [], 0
    world = world_of(GIVING)
    for text in queries:
        target = target_for(text, world, Findings())
        assert target is not None, text
        (runner,) = target.runners
        (certificate,) = runner.bounded.certificates
        for _ in range(databases):
            database, pool = draw_database(source, world), draw_pool(source)
            for row in database["person"]:
                row["age"] = source.choice([1, 2, 3, 4, 4, 9, None, 0, row["age"]])
            before, cells = runner.measured(database), runner.cells(database)
            for neighbor in neighbors(database, world, GIVING, pool):
                after, moved = runner.measured(neighbor), runner.cells(neighbor)
                part = part_of(database, neighbor, GIVING.personal)
                claims = itertools.chain(
                    _comparisons(runner.bounded, certificate, before, after),
                    _rank_comparisons(runner.bounded, certificate, cells, moved),
                )
                for name, measure, claimed, shown in claims:
                    if name in ("bound", "ranks"):
                        seen += 1
                        if shown > claimed * part:
                            found.append((text, measure, claimed, part, shown, database, neighbor))
    assert seen > 100
    return found


def test_nobody_moves_an_answer_by_more_than_they_give():
    found = refuted(QUERIES, DATABASES)
    assert not found, (SEED, found[0])


@pytest.mark.parametrize("fault", ["all alike", "least", "half"])
def test_planted_faults_are_seen_by_those_who_give_little(fault, monkeypatch):
    if fault == "all alike":  # everybody counts as often as those who give most
        monkeypatch.setattr(Offers, "copies", property(lambda self: (4,) * len(self.amounts)))
    elif fault == "least":  # noise of counts is for those who give most
        monkeypatch.setattr(Offers, "least", Fraction(1))
    else:  # who gives least counts as who gives twice as much
        monkeypatch.setattr(Offers, "copies", property(lambda self: (2, 2, 4)))
    assert refuted(QUERIES, DATABASES)
