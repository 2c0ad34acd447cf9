"""JSON fields and elements of arrays beside outer joins: found by the search over what analysts write.

A field of a document was lost in a FULL JOIN (BUG-001). UNNEST of an array that a join pads was read as if the join
padded the elements: persons without visits were counted, which SQL leaves out. And `corr` of NaN was 1.
"""

from __future__ import annotations

import math

import duckdb
import pytest

import secant
from secant.errors import SqlError
from secant.plan.evaluate.evaluate import evaluate
from secant.sql.bind import from_sql

PADDED = (
    "SELECT count(*) FROM person p LEFT JOIN visit v ON v.owner = p.id, unnest(v.codes) AS c(code)"
)


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "small.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute("CREATE TABLE person (id INTEGER, facts JSON)")
        engine.execute("CREATE TABLE other (id INTEGER)")
        engine.execute("CREATE TABLE visit (owner INTEGER, codes INTEGER[], rate DOUBLE)")
        engine.execute("""INSERT INTO person VALUES (1, '{"n": 2}'), (2, '{"n": 5}')""")
        engine.execute("INSERT INTO visit VALUES (1, [7, 8], 1), (3, [9], 'NaN'), (3, [9], 2)")
    policy = {
        "database": {"public": ["person", "visit"]},
        "protections": {"rows": {"kind": "rows", "tables": ["other"], "epsilon": 1}},
    }
    with secant.connect(f"duckdb:{path}", policy=policy, ledger=":memory:") as opened:
        yield opened


def test_fields_of_documents_go_through_a_full_join(db):
    text = "SELECT sum((p.facts->>'n')::int), count(*) FROM person p FULL JOIN visit v ON v.owner = p.id"
    assert db.sql(text, epsilon=1).rows == [(7, 4)]


def test_arrays_that_a_join_pads_are_not_taken_apart(db):
    for word in ("LEFT", "FULL"):
        with pytest.raises(SqlError, match="an outer join may lack") as told:
            db.sql(PADDED.replace("LEFT", word), epsilon=1)
        assert "in a derived table" in str(told.value.hint)
    kept = "SELECT count(*) FROM visit v LEFT JOIN person p ON v.owner = p.id, unnest(v.codes) AS c(code)"
    assert db.sql(kept, epsilon=1).rows == [(4,)]


def test_nothing_is_correlated_with_what_is_no_number(db):
    plan = from_sql("SELECT corr(rate, owner) FROM visit", db.catalog)
    rows = [{"owner": 1, "rate": 1.0}, {"owner": 3, "rate": math.nan}, {"owner": 3, "rate": 2.0}]
    assert evaluate(plan, {"visit": rows}) == [(None,)]
    ((found,),) = evaluate(plan, {"visit": [rows[0], rows[2]]})
    assert math.isclose(found, 1)
