"""Ours: a view in a DuckDB file was a table of its own to the policy, and no protection covered it.

Under `unit`, or `rows` with a list of tables, its rows were public: `SELECT name FROM view` gave the
names of a protected table as they are, for nothing. A view is read as its definition now, and its tables are protected.
"""

import duckdb
import pytest

import secant
from secant.errors import Refused

UNIT = 'kind = "unit"\nunit = "people.id"'
ROWS = 'kind = "rows"\ntables = ["people"]'


@pytest.mark.parametrize("kind", [UNIT, ROWS])
@pytest.mark.parametrize("view", ["everyone", "EVERYONE", "main.everyone"])
def test_a_view_shows_no_protected_row(tmp_path, kind, view):
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id BIGINT, name VARCHAR)")
        connection.execute("INSERT INTO people VALUES (1, 'SECRET_SMITH')")
        connection.execute("CREATE VIEW Everyone AS SELECT * FROM people")
    (tmp_path / "policy.toml").write_text(
        '[database]\nsource = "duckdb:town.duckdb"\n[tables.people]\nkey = ["id"]\n'
        f"[protections.all]\n{kind}\nepsilon = 1\n"
    )
    with secant.connect(policy=tmp_path / "policy.toml") as db:
        assert list(db.catalog.tables) == ["people"]
        with pytest.raises(Refused) as refused:
            db.sql(f"SELECT name FROM {view}", epsilon=0.1)
        assert "SMITH" not in str(refused.value)
        counted = db.sql(f"SELECT count(*) FROM {view}", epsilon=0.1)
        assert counted.guarantee[0]["epsilon"] == 0.1


def test_tables_of_a_directory_are_still_offered(tmp_path):
    duckdb.sql("SELECT 1 AS id").write_parquet(str(tmp_path / "people.parquet"))
    with secant.connect(f"parquet:{tmp_path}", policy=policy_of(tmp_path)) as db:
        assert list(db.catalog.tables) == ["people"]


def policy_of(directory):
    path = directory / "policy.toml"
    path.write_text('[protections.all]\nkind = "rows"\nepsilon = 1\n')
    return path
