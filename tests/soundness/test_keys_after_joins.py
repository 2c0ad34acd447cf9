"""Joins of public tables keep keys: a protected row that is joined to several of them still meets one row.

All small public tables that keep their declared keys, and all rows of the protected table that can come. The planted
fault lets keys survive a join on columns that are no key.
"""

import itertools

import pytest

from naming_public import name_public
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.rewrite import normalize
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.stability import rules
from secant.sensitivity.stability.analysis import rows_moved
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table("f", (("o", t.INTEGER), ("v", t.INTEGER))),
    Table("o", (("o", t.INTEGER), ("c", t.INTEGER))),
    Table("c", (("c", t.INTEGER), ("n", t.INTEGER))),
)
POLICY = """
[database]
source = "duckdb:none"
public = ["o", "c"]
[tables.o]
key = ["o"]
[tables.c]
key = ["c"]
[protections.rows]
kind = "rows"
tables = ["f"]
epsilon = 1
"""
FACTS = Facts(fit_policy(name_public(read_policy(POLICY), CATALOG), CATALOG), CATALOG)
BOUNDED = (
    "SELECT f.v FROM f, c, o WHERE c.c = o.c AND f.o = o.o",
    "SELECT f.v FROM f JOIN (SELECT o.o FROM c JOIN o ON c.c = o.c) AS j ON f.o = j.o",
    "SELECT f.v FROM f JOIN (SELECT o.o FROM o JOIN c ON c.c = o.c) AS j ON f.o = j.o",
    "SELECT f.v FROM f LEFT JOIN (SELECT o.o FROM c JOIN o ON c.c = o.c) AS j ON f.o = j.o",
)
UNBOUNDED = (
    "SELECT f.v FROM f JOIN (SELECT o.o FROM c JOIN o ON c.n = o.c) AS j ON f.o = j.o",
    "SELECT f.v FROM f JOIN (SELECT c.c FROM c JOIN o ON c.c = o.c) AS j ON f.o = j.c",
)


def most_moved(text):
    """Give how many rows one row of f moves, over all small tables."""
    run = compiled(normalize(from_sql(text, CATALOG)))
    worst = 0
    numbers = (1, 2)
    for cs in itertools.product((None, 1, 2), repeat=2):
        for os in itertools.product((None, 1, 2), repeat=2):
            public = {
                "o": [{"o": k, "c": x} for k, x in zip(numbers, os, strict=True)],
                "c": [{"c": k, "n": x} for k, x in zip(numbers, cs, strict=True)],
            }
            for key in (None, 1, 2):
                row = {"o": key, "v": 5}
                before = len(run({**public, "f": []}))
                worst = max(worst, abs(len(run({**public, "f": [row]})) - before))
    return worst


@pytest.mark.parametrize("text", BOUNDED)
def test_a_row_meets_one_row_of_several_joined_tables(text):
    assert rows_moved(normalize(from_sql(text, CATALOG)), "f", FACTS) == 1
    assert most_moved(text) == 1


@pytest.mark.parametrize("text", UNBOUNDED)
def test_keys_that_do_not_survive_are_not_used(text, monkeypatch):
    plan = normalize(from_sql(text, CATALOG))
    assert rows_moved(plan, "f", FACTS) is None
    assert most_moved(text) > 1
    # Planted: every key survives every join.
    monkeypatch.setattr(rules, "_keys_after", lambda a, b, equal, kind: a.keys + b.keys)
    assert rows_moved(plan, "f", FACTS) == 1
