"""Ends that hold for every database, where they are asked for: declared limits are taken, and nothing is estimated."""

from __future__ import annotations

import math

import duckdb
import pytest

import secant

TEXTS = (
    "SELECT sum(cost) FROM visits",
    "SELECT count(DISTINCT item) FROM visits",
    "SELECT count(*) FROM visits WHERE cost > 3",
)


def connection(path, limits):
    """Give 200 people with a few visits each."""
    with duckdb.connect(str(path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE people AS SELECT range AS id FROM range(200)")
        made.execute(
            "CREATE TABLE visits AS SELECT p.range AS person, (p.range + 7 * v.range) % 10 AS cost, "
            "(p.range * v.range) % 40 AS item FROM range(200) AS p, range(6) AS v"
        )
    policy = {
        "protections": {
            "people": {"kind": "unit", "unit": "people.id", "epsilon": 100, "delta": 1e-6, **limits}
        },
        "tables": {
            "people": {"key": ["id"]},
            "visits": {
                "references": {"person": "people.id"},
                "columns": {"cost": {"range": [0, 10]}},
            },
        },
    }
    source = f"duckdb:{path / 'shop.duckdb'}"
    return secant.connect(source, policy=policy, ledger=str(path / "l.ledger"))


@pytest.fixture
def declared(tmp_path):
    with connection(tmp_path, {"limits": {"visits": 20}}) as db:
        yield db


@pytest.mark.parametrize("text", TEXTS)
def test_the_declared_limit_gets_all_of_epsilon(declared, text):
    answer = declared.sql(text, epsilon=1, certain=True)
    assert answer.error["kind"] == "certain"
    (((low,),), ((high,),)) = answer.low, answer.high
    assert (low, high) == (answer.certain.low[0][0], answer.certain.high[0][0])
    assert math.isfinite(low)
    assert math.isfinite(high)
    most = 200 if "sum" in text else 20
    assert high - answer.rows[0][0] == pytest.approx(most * math.log(20), rel=0.05)
    assert not any("choosing" in x for x in answer.mechanisms)


@pytest.mark.parametrize("text", TEXTS[:2])
def test_otherwise_a_limit_is_chosen(declared, text):
    assert any("choosing" in x for x in declared.sql(text, epsilon=1).mechanisms)


@pytest.mark.parametrize("text", TEXTS)
def test_without_a_declared_limit_the_upper_end_stays_open(tmp_path, text):
    with connection(tmp_path, {}) as db:
        answer = db.sql(text, epsilon=50, certain=True)
        assert answer.high == [(None,)]
        assert "stays open: declare limits in protections.people" in str(answer)
        assert "stays open" in str(db.explain(text, epsilon=50, certain=True))
        assert "stays open" not in str(db.explain(text, epsilon=50))


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_explained_is_what_is_asked(declared, text):
    chosen = "is chosen privately (epsilon"
    assert chosen not in str(declared.explain(text, epsilon=1, certain=True))
