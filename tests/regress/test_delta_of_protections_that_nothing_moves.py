"""Choosing keys privately takes delta from the protections that the question moves, and from no others.

A protection without any delta that the question does not touch had it refused (REF-103).
"""

import duckdb
import pytest

import secant
from secant.errors import Refused

POLICY = {
    "protections": {
        "visits": {"kind": "rows", "tables": ["visit"], "epsilon": 100, "delta": 0.01},
        "staff": {"kind": "rows", "tables": ["staff"], "epsilon": 100},
    }
}


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "small.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute(
            "CREATE TABLE visit AS SELECT 'ward ' || i % 2 AS ward FROM range(4000) r(i)"
        )
        engine.execute("CREATE TABLE staff AS SELECT 'ward ' || i % 2 AS ward FROM range(9) r(i)")
    with secant.connect(f"duckdb:{path}", policy=POLICY, ledger=":memory:") as opened:
        yield opened


def test_a_protection_that_is_not_moved_need_not_have_delta(db):
    answer = db.sql("SELECT ward, count(*) FROM visit GROUP BY ward", epsilon=4)
    assert {ward for ward, _ in answer.rows} == {"ward 0", "ward 1"}
    spent = db.budget
    assert spent["visits"].spent_delta > 0
    assert spent["staff"].spent_delta == spent["staff"].spent_epsilon == 0


def test_a_protection_that_is_moved_must_have_delta(db):
    with pytest.raises(Refused) as refused:
        db.sql("SELECT ward, count(*) FROM staff GROUP BY ward", epsilon=4)
    assert refused.value.code == "REF-103"
