"""What an owner sees of a group is held against the truth of that group, in whatever order the rows come."""

import duckdb
import pytest

import secant

POLICY = """
[database]
source = "duckdb:{place}"
[tables.parcels.columns]
weight = {{ range = [0, 40] }}
[protections.cells]
kind = "cells"
epsilon = 100
softening = {{ kind = "ramp", width = 2 }}
distance = {{ parcels = "weight" }}
"""


def test_groups_are_compared_by_their_keys(tmp_path):
    place = tmp_path / "parcels.duckdb"
    with duckdb.connect(str(place)) as data:
        data.execute("CREATE TABLE parcels (depot VARCHAR, weight DOUBLE)")
        # Three parcels just above the threshold count in half; two far above it count fully.
        data.execute("INSERT INTO parcels SELECT 'near', 20.001 FROM range(3)")
        data.execute("INSERT INTO parcels SELECT 'far', 39.0 FROM range(2)")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.format(place=place))
    text = (
        "SELECT depot, count(*) AS n FROM parcels WHERE weight > 20 GROUP BY depot ORDER BY n DESC"
    )
    with secant.connect(policy=str(policy), ledger=str(tmp_path / "ledger")) as db:
        seen = {record["column"]: record for record in db.inspect(text, epsilon=10)}
    assert seen["depot"]["softened"] == seen["depot"]["exact"] == ["far", "near"]
    assert seen["n"]["exact"] == [2, 3]
    assert seen["n"]["softened"] == pytest.approx([2, 1.5], abs=0.1)
