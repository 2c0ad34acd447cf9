"""Ours: rows of public columns came as they lie in the file, and they may lie by a column that is protected.

Under `cells`, `SELECT id FROM ships` costs nothing. A table that was loaded in the order of the speeds showed who is
fastest; LIMIT without ORDER BY, and ties of ORDER BY, likewise. Rows come in an order of what is read of them now.
"""

import duckdb
import pytest

import secant

QUESTIONS = (
    "SELECT id FROM ships",
    "SELECT id FROM ships LIMIT 3",
    "SELECT id, port FROM ships ORDER BY port",
    "SELECT id FROM ships ORDER BY port DESC LIMIT 4 OFFSET 1",
    "SELECT port || '!' FROM ships ORDER BY port, id",
    "SELECT DISTINCT port FROM ships",
    "SELECT port, count(*) FROM ships GROUP BY port",
    "SELECT port, max(id) FROM ships GROUP BY port LIMIT 1",
    "SELECT a.id, b.id FROM ships AS a JOIN ships AS b ON a.port = b.port",
    "SELECT id FROM ships UNION ALL SELECT id + 100 FROM ships",
    "SELECT id FROM ships UNION SELECT id + 100 FROM ships LIMIT 5",
    "SELECT sum(id) FROM (SELECT id FROM ships LIMIT 3)",
    "SELECT (SELECT id FROM ships LIMIT 1) AS one",
    "SELECT id FROM ships WHERE id IN (SELECT id FROM ships ORDER BY port LIMIT 2)",
    "SELECT id, rank() OVER (ORDER BY port) FROM ships",
    "SELECT id, row_number() OVER (PARTITION BY port) FROM ships",
    "SELECT port, sum(speed) FROM ships GROUP BY port",
    "SELECT q.id FROM (SELECT id, port FROM ships ORDER BY port LIMIT 6) AS q",
    "WITH few AS (SELECT id FROM ships LIMIT 4) SELECT a.id FROM few AS a, few AS b",
    "SELECT mode(port) FROM ships",
)


def answer(folder, question, order):
    path = folder / "port.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE ships AS SELECT i::INTEGER AS id, ['north', 'south', 'west'][i % 3 + 1] AS port, "
            f"(17 * i % 23)::DOUBLE AS speed FROM range(12) AS t (i) ORDER BY {order}"
        )
    policy = {
        "tables": {"ships": {"columns": {"speed": {"range": [0, 30]}}}},
        "protections": {"c": {"kind": "cells", "epsilon": 9, "distance": {"ships": "speed"}}},
    }
    with secant.connect(f"duckdb:{path}", policy=policy, ledger=":memory:") as database:
        found = database.sql(question, epsilon=1)
    free = found.guarantee[0]["epsilon"] == 0
    return [row if free else row[:1] for row in found.rows]


@pytest.mark.parametrize("question", QUESTIONS)
def test_where_rows_lie_shows_nowhere(tmp_path, question):
    shown = {str(answer(tmp_path, question, order)) for order in ("speed", "speed DESC", "id")}
    assert len(shown) == 1


def test_the_order_that_is_asked_for_stays(tmp_path):
    rows = answer(tmp_path, "SELECT id, port FROM ships ORDER BY port DESC, id DESC", "speed")
    assert rows == sorted(rows, key=lambda r: (r[1], r[0]), reverse=True)


def test_planted_rows_as_they_lie_tell_of_speeds(tmp_path, monkeypatch):
    monkeypatch.setattr("secant.sensitivity.split.in_public_order", lambda plan, _: plan)
    fastest = answer(tmp_path, "SELECT id FROM ships LIMIT 1", "speed DESC")
    slowest = answer(tmp_path, "SELECT id FROM ships LIMIT 1", "speed")
    assert fastest != slowest
