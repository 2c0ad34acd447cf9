"""Streams on PostgreSQL, with the books there as well: the same sums as DuckDB's, each number drawn once."""

import datetime

import psycopg
import pytest

import secant
from secant.cli.program import main
from secant.errors import Refused
from secant.streams.drawing import Buffer

pytestmark = pytest.mark.postgres
POLICY = """
[database]
source = "{address}"
[ledger]
location = "{books}"
[tables.visits]
key = ["id"]
[tables.visits.columns]
cost = {{ range = [0, 10] }}
ward = {{ values = ["a", "b"], null = false }}
{protection}
[streams.s]
query = "{query}"
step = "{step}"
start = "2025-01-01"
steps = 4
shows = "steps"
epsilon = 100000.0
append_only = true
{more}
"""
ROWS = '[protections.all]\nkind = "rows"\nepsilon = 1000000.0\n'
UNIT = """[protections.all]
kind = "unit"
unit = "visits.patient"
epsilon = 1000000.0
[protections.all.limits]
visits = 2
"""
WINDOW = """[protections.all]
kind = "window"
unit = "visits.patient"
within = "30 days"
time = { visits = "day" }
epsilon = 1000000.0
limits = { visits = 1 }
"""
CELLS = """[protections.all]
kind = "cells"
epsilon = 1000000.0
distance = { visits = "cost" }
"""
SUMS = "SELECT day, sum(cost) AS n, avg(cost) AS a FROM visits GROUP BY day"
GROUPED = "SELECT day, ward, count(*) AS n, sum(cost) AS c FROM visits GROUP BY day, ward"
HOURS = "SELECT date_trunc('hour', seen) AS h, count(*) AS n FROM visits GROUP BY 1"
PLAIN = "SELECT day, count(*) AS n FROM visits GROUP BY day"
CASES = [
    (ROWS, GROUPED, "1 day", "", [1, 1, 1, 0, 0, 0, 1, 0]),
    (UNIT, GROUPED, "1 day", "", [1, 1, 0, 0, 0, 0, 0, 0]),
    (ROWS, HOURS, "24 hours", "", [2, 1, 0, 1]),
    (UNIT, PLAIN, "1 day", 'personal = { visits = 1, period = "2 days" }', [1, 0, 0, 1]),
    (WINDOW, PLAIN, "1 day", "", [1, 1, 0, 1]),
    (
        WINDOW,
        PLAIN,
        "1 day",
        'personal = { visits = 2, period = "3 days" }',
        [2, 0, 0, 1],
    ),
    (WINDOW.replace('"day"', '"seen"'), HOURS, "24 hours", "", [1, 1, 0, 1]),
    (CELLS, SUMS, "1 day", "", [2, 1, 0, 1]),
    (ROWS, PLAIN, "1 day", 'arrival = "came"', [1, 1, 0, 1]),
    (ROWS, PLAIN, "1 day", 'arrival = "came"\nlate = "on arrival"', [1, 1, 1, 1]),
]


@pytest.fixture
def address(postgres_server):
    found = postgres_server.address(postgres_server.create_database())
    with psycopg.connect(found) as connection:
        connection.execute(
            "CREATE TABLE visits (id integer, patient integer, day date, ward text, cost integer,"
            " came date, seen timestamp)"
        )
        for number, (day, late, ward) in enumerate(
            [(1, 0, "a"), (1, 2, "b"), (2, 0, "a"), (4, 0, "a")]
        ):
            moment = datetime.datetime.fromisoformat(f"2025-01-0{day}T10:30")
            came = moment.date() + datetime.timedelta(days=late)
            connection.execute(
                "INSERT INTO visits VALUES (%s, 7, %s, %s, 1, %s, %s)",
                (9 - number, moment.date(), ward, came, moment),
            )
    return found


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_stream_is_read_and_kept_on_postgresql(address, postgres_server, tmp_path, case):
    protection, query, step, more, expected = case
    books = postgres_server.address(postgres_server.create_database())
    policy = tmp_path / "policy.toml"
    words = {"protection": protection, "query": query, "step": step, "more": more}
    policy.write_text(POLICY.format(address=address, books=books, **words))
    with secant.connect(policy=policy) as database:
        found = database.stream("s")
        place = found.columns.index("n")
        assert [row[place] for row in found.rows] == expected
    with secant.connect(policy=policy) as database:
        assert database.stream("s").rows == found.rows
        assert float(database.budget["all"].spent_epsilon) == 100000


def test_rows_that_go_stop_a_stream_and_the_owner_sees_single_units(
    address, postgres_server, tmp_path, capsys
):
    books = postgres_server.address(postgres_server.create_database())
    policy, kept = tmp_path / "policy.toml", Buffer()
    words = {"protection": UNIT, "query": PLAIN, "step": "1 day", "more": ""}
    policy.write_text(POLICY.format(address=address, books=books, **words))
    assert main(["inspect", "--stream", "s", "-p", str(policy)]) == 0
    assert "the largest unit adds 4" in capsys.readouterr().out
    with secant.connect(policy=policy) as database:
        database.stream("s", until="2025-01-02", kept=kept)
    with psycopg.connect(address) as connection:
        connection.execute("DELETE FROM visits WHERE day = '2025-01-01'")
    with secant.connect(policy=policy) as database, pytest.raises(Refused, match="are gone"):
        database.stream("s", until="2025-01-03", kept=kept)
