"""Which aggregate is released, with which certificates, and what is refused."""

from fractions import Fraction

import pytest

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.bound import ANALYSES
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.split import Decomposition, RawRows, prepare
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table("person", (("id", t.INTEGER), ("city", t.TEXT), ("age", t.INTEGER)), ()),
    Table("visit", (("id", t.INTEGER), ("person", t.INTEGER), ("cost", t.INTEGER)), ()),
    Table("city", (("name", t.TEXT), ("size", t.INTEGER)), ()),
)
ROWS = Protection("rows", "rows", Fraction(1), tables=("person", "visit"))
POLICY = Policy(
    source="",
    tables={
        "visit": TableFacts(columns={"cost": ColumnFacts(range=(0, 10))}),
        "city": TableFacts(key=("name",)),
    },
    protections=(ROWS,),
    public=("city",),
)


def prepared(text, policy=POLICY):
    return prepare(normalize(from_sql(text, CATALOG)), policy, policy.protections, CATALOG)


def largest_bound(found):
    (bounded,) = found.bounded
    return max(bound.value for c in bounded.certificates for bound in c.bounds.values())


def test_analyses_are_an_explicit_tuple_with_names():
    assert isinstance(ANALYSES, tuple)
    names = [analysis.name for analysis in ANALYSES]
    assert len(set(names)) == len(names) > 0


def test_public_queries_pass_unchanged():
    found = prepared("SELECT name, size FROM city ORDER BY size")
    assert isinstance(found, Decomposition)
    assert found.bounded == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM person",
        "SELECT city.size FROM city JOIN person ON person.city = city.name",
        "SELECT name FROM city WHERE name IN (SELECT city FROM person)",
        "SELECT count(*), (SELECT max(age) FROM person) FROM visit",
        "SELECT name, count(*) FROM city WHERE EXISTS (SELECT 1 FROM person) GROUP BY name",
    ],
)
def test_protected_rows_never_stay_outside_of_a_release(text):
    found = prepared(text)
    assert not isinstance(found, Decomposition)


def test_raw_rows_are_named():
    found = prepared("SELECT age FROM person")
    assert isinstance(found, RawRows)
    assert found.scan.table == "person"


def test_the_outermost_aggregate_that_can_be_bounded_is_released():
    inner = "(SELECT person, sum(cost) AS s FROM visit GROUP BY person) AS u"
    outer = prepared(f"SELECT count(*) FROM {inner}")
    assert isinstance(outer, Decomposition)
    assert largest_bound(outer) == 2
    # max has no measures: its input is released instead, and max works on public numbers.
    further_in = prepared(f"SELECT max(s) FROM {inner}")
    assert isinstance(further_in, Decomposition)
    assert largest_bound(further_in) == 10
    assert further_in.bounded[0].release.chooses_keys


def test_what_follows_a_release_holds_no_protected_table():
    found = prepared(
        "SELECT a.n / b.n FROM (SELECT count(*) AS n FROM visit) AS a, "
        "(SELECT count(*) AS n FROM person) AS b"
    )
    assert isinstance(found, Decomposition)
    assert [b.release.name for b in found.bounded] == ["release1", "release2"]
    assert not [x for x in n.walk(found.post) if isinstance(x, n.Scan)]
    assert len([x for x in n.walk(found.post) if isinstance(x, n.Released)]) == 2


def test_a_shared_release_is_made_once():
    found = prepared(
        "WITH t AS (SELECT count(*) AS n FROM visit) SELECT x.n, y.n FROM t AS x, t AS y"
    )
    assert isinstance(found, Decomposition)
    assert len(found.bounded) in (1, 2)
    assert {b.release.name for b in found.bounded} == {
        x.name for x in n.walk(found.post) if isinstance(x, n.Released)
    }


def test_every_protection_needs_a_certificate():
    both = Protection("both", "rows+cells", Fraction(1), distance={"visit": "cost"})
    policy = Policy(source="", tables=POLICY.tables, protections=(ROWS, both))
    found = prepared("SELECT sum(cost) FROM visit", policy)
    assert not isinstance(found, Decomposition)
    assert {refusal.rule for refusal in found} == {"combined.both"}  # no row has a distance


def test_one_noise_serves_rows_and_values_together():
    cells = Protection("cells", "cells", Fraction(1), distance={"visit": "0.5*cost"})
    policy = Policy(source="", tables=POLICY.tables, protections=(ROWS, cells))
    found = prepared("SELECT sum(cost) FROM visit", policy)
    assert isinstance(found, Decomposition)
    (bounded,) = found.bounded
    by_protection = {c.protection: next(iter(c.bounds.values())) for c in bounded.certificates}
    step = bounded.release.measures[0].step
    assert by_protection["rows"] == GlobalBound(Fraction(10) / step)
    assert isinstance(by_protection["cells"], GlobalBound)
    assert by_protection["cells"].value * step == 2


def test_names_of_releases_avoid_names_of_the_query():
    found = prepared(
        'SELECT count(*) AS "release1.m0" FROM (SELECT * FROM visit LIMIT 2) AS release1'
    )
    assert not isinstance(found, Decomposition)  # LIMIT below an aggregate; the next one is bounded
    found = prepared('SELECT count(*) AS "release1_.m0" FROM visit AS release1')
    assert isinstance(found, Decomposition)
    (bounded,) = found.bounded
    assert bounded.release.name == "release1__"


def test_a_rank_beside_a_protection_that_is_not_touched_does_not_move():
    other = Protection("other", "rows", Fraction(1), tables=("city",))
    policy = Policy(source="", tables=POLICY.tables, protections=(ROWS, other))
    found = prepared("SELECT median(cost) FROM visit", policy)
    assert isinstance(found, Decomposition)
    (bounded,) = found.bounded
    (ranked,) = bounded.release.ranked
    bounds = {c.protection: c.bounds[ranked.column].value for c in bounded.certificates}
    assert bounds["other"] == 0
    assert bounds["rows"] > 0
