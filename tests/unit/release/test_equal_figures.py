"""Groups whose joins look alike have the same bound, which is worked out once: it is work after the charge."""

import duckdb
import pytest

import secant
from secant.sensitivity.elastic import analysis as elastic
from secant.sensitivity.residual import analysis as residual

POLICY = """
[database]
source = "duckdb:d.duckdb"
[tables.t.columns]
day = { range = ["2020-01-01", "2020-12-31"], step = "1 day" }
[protections.r]
kind = "rows"
epsilon = 1000
delta = 0.001
"""


@pytest.fixture
def db(tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as made:
        made.execute("CREATE TABLE t (id BIGINT, day DATE NOT NULL); CREATE TABLE u (t BIGINT)")
        made.execute(
            "INSERT INTO t SELECT i, DATE '2020-01-01' + CAST(i % 366 AS INTEGER) FROM range(732) r(i)"
        )
        made.execute("INSERT INTO u SELECT i // (1 + i % 2) FROM range(700) r(i)")
    (tmp_path / "policy.toml").write_text(POLICY)
    with secant.connect(policy=tmp_path / "policy.toml") as opened:
        yield opened


@pytest.mark.parametrize(
    ("module", "join"),
    [(elastic, "t LEFT JOIN u ON t.id = u.t"), (residual, "t JOIN u ON t.id = u.t")],
)
def test_a_year_of_days_has_few_different_bounds(db, monkeypatch, module, join):
    asked = []
    for name in ("largest_discounted", "largest_split"):
        one = getattr(module, name, None)
        if one is not None:
            monkeypatch.setattr(
                module, name, lambda *a, one=one, **k: asked.append(a) or one(*a, **k)
            )
    answer = db.sql(
        f"SELECT day, count(*) AS n, count(*) + 1 AS m FROM {join} GROUP BY day", epsilon=0.1
    )
    assert len(answer.rows) == 366
    assert 0 < len(asked) <= 40
