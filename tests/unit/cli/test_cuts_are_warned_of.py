"""`check --look` warns of declared ranges and limits that cut more than a little, with the share that they cut."""

import duckdb
import pytest

POLICY = """
[database]
source = "duckdb:bank.duckdb"
[tables.moves.columns]
balance = {{ range = [0, {high}] }}
[protections.people]
kind = "unit"
unit = "moves.person"
epsilon = 10
limits = {{ moves = {limit} }}
"""


@pytest.mark.parametrize(
    ("high", "limit", "words"),
    [
        (969, 10, ("warning 3 % of the values of moves.balance lie outside of 0 to 969",)),
        (999, 9, ("warning the limit 9 of moves cuts 10 % of its rows",)),
        (999, 10, ()),
    ],
)
def test_what_is_cut_is_warned_of(tmp_path, monkeypatch, run, high, limit, words):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("bank.duckdb") as connection:
        connection.execute(
            "CREATE TABLE moves AS SELECT i % 100 AS person, i AS balance FROM range(1000) AS r(i)"
        )
    (tmp_path / "policy.toml").write_text(POLICY.format(high=high, limit=limit))
    status, out, _ = run("check", "--look")
    assert status == 0
    flat = " ".join(out.split())
    for word in words:
        assert word in flat
    assert ("warning the limit" in flat or "lie outside" in flat) == bool(words)
