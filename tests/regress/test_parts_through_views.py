"""Fields of documents and lengths of arrays can be asked of a view that shows the column; they were not known there.

A window that mixes people is refused for what it is, also where a limit is missing.
"""

import duckdb
import pytest

import secant
from secant.errors import Refused, SqlError

POLICY = {
    "database": {"public": ["swapped"]},
    "tables": {"person": {"key": ["id"]}, "visit": {"references": {"owner": "person.id"}}},
    "protections": {
        "people": {"kind": "unit", "unit": "person.id", "epsilon": 10**6, "delta": 0.01}
    },
}


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "small.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, facts JSON, tags VARCHAR[])")
        engine.execute(
            "INSERT INTO person SELECT i, '{\"n\": ' || i % 4 || '}', ['a'] FROM range(400) r(i)"
        )
        engine.execute("CREATE TABLE visit AS SELECT i AS owner, i AS day FROM range(400) r(i)")
        engine.execute("CREATE VIEW first AS SELECT * FROM person WHERE id < 200")
        engine.execute(
            "CREATE VIEW named (who, what, has) AS SELECT id, facts, tags FROM person WHERE id < 200"
        )
        engine.execute("CREATE VIEW second AS SELECT id AS who, facts AS f, tags FROM first")
        engine.execute("CREATE VIEW third (who, what, has) AS SELECT who, f, tags FROM second")
        engine.execute(
            "CREATE VIEW fourth AS SELECT p.*, p.id + 1 AS next FROM person p WHERE id < 200"
        )
        engine.execute("CREATE VIEW fifth AS SELECT fourth.*, 1 AS one FROM fourth")
        engine.execute(
            "CREATE VIEW sixth AS SELECT a.*, b.id AS other FROM person a JOIN first b ON a.id = b.id"
        )
        engine.execute("CREATE TABLE swapped (id INTEGER PRIMARY KEY, x INTEGER, facts JSON)")
        engine.execute("CREATE VIEW names (x, id, facts) AS SELECT * FROM swapped")
    with secant.connect(f"duckdb:{path}", policy=POLICY, ledger=":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM first WHERE facts->>'n' = '3'",
        "SELECT count(*) FROM named n WHERE n.what->>'n' = '3'",
        "SELECT count(*) FROM named WHERE (what->>'n')::int = 2 AND cardinality(has) = 1",
        "SELECT count(*) FROM second WHERE f->>'n' = '3'",
        "SELECT count(*) FROM second WHERE (f->>'n')::int = 2 AND cardinality(tags) = 1",
        "SELECT count(*) FROM third WHERE what->>'n' = '3' AND 'a' = ANY(has)",
        "SELECT count(*) FROM named JOIN first f ON f.id = who WHERE what->>'n' = '1' AND 'a' = ANY(f.tags)",
        "SELECT count(*) FROM fourth WHERE facts->>'n' = '3'",
        "SELECT count(*) FROM fourth WHERE (facts->>'n')::int = 2 AND cardinality(tags) = 1",
        "SELECT count(*) FROM fifth WHERE (facts->>'n')::int = 2 AND 'a' = ANY(tags)",
        "SELECT count(*) FROM sixth s WHERE (s.facts->>'n')::int = 2 AND cardinality(s.tags) = 1",
    ],
)
def test_parts_are_taken_through_views(db, text):
    ((found,),) = db.sql(text, epsilon=1000).rows
    assert abs(found - 50) <= 5


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM (SELECT p.*, 1 AS one FROM person p) q WHERE (facts->>'n')::int > 5",
        "SELECT count(*) FROM (SELECT * FROM person) q WHERE facts->>'n' = '5'",
        "SELECT count(*) FROM person WHERE (id->>'n')::int > 5",
        "SELECT count(*) FROM person WHERE cardinality(id) > 5",
        "SELECT count(*) FROM person WHERE 5 = ANY(id)",
    ],
)
def test_what_has_no_parts_is_told(db, text):
    with pytest.raises(SqlError, match="is no document or array here") as refused:
        db.sql(text, epsilon=1)
    assert "where the table" in refused.value.hint


def test_a_view_that_gives_columns_names_of_others_is_not_read_by_them(db):
    with pytest.raises(SqlError, match="cannot be read"):
        db.sql("SELECT count(*) FROM names WHERE id = 3 AND facts->>'n' = '3'", epsilon=1)


def test_what_a_view_shows_whole_is_told(db):
    with pytest.raises(SqlError, match="shows it whole"):
        db.sql("SELECT facts FROM first", epsilon=1)


@pytest.mark.parametrize("view", ["first", "second"])
def test_elements_are_asked_of_the_table_that_a_view_reads(db, view):
    """The hint, followed, leads to an answer."""
    with pytest.raises(SqlError) as refused:
        db.sql(f"SELECT count(*) FROM {view} v, unnest(v.tags) AS a(x)", epsilon=1)
    assert "FROM t, unnest(t.array) AS a(x)" in refused.value.hint
    text = "SELECT count(*) FROM person p, unnest(p.tags) AS a(x) WHERE p.id < 200 AND x = 'a'"
    assert db.sql(text, epsilon=1000).rows[0][0] > 100
    with pytest.raises(SqlError, match="it stands in FROM only"):
        db.sql("SELECT unnest(tags) FROM person", epsilon=1)


def test_a_window_that_mixes_people_is_told(db):
    with pytest.raises(Refused) as refused:
        db.sql(
            "SELECT count(*) FROM (SELECT rank() OVER (ORDER BY day) AS r FROM visit) v WHERE r < 9",
            epsilon=1,
        )
    assert "PARTITION BY" in refused.value.hint
