"""What people get who only have SQL: both ends of each noisy number, what is left of the budget, and what was asked."""

from __future__ import annotations

import math

import psycopg
import pytest

from postgres_port import GROUPS, STATUSES, RunningPort

ASKED = "SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY status"


def test_ends_stand_behind_each_noisy_column(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute("SET secant.ends = on")
        cursor = client.execute(ASKED)
        assert [c.name for c in cursor.description or ()] == ["status", "n", "n_low", "n_high"]
        rows = cursor.fetchall()
        assert [row[0] for row in rows] == STATUSES
        assert all(isinstance(end, float) for row in rows for end in row[2:])
        assert all(low <= n <= high for _, n, low, high in rows)
        # Noise of a count at epsilon 50 leads nowhere; ends may not be made up around it.
        assert all(high - low < 5 for *_, low, high in rows)
        client.execute("RESET secant.ends")
        assert len(client.execute(ASKED).fetchall()[0]) == 2


def test_ends_are_described_before_anything_is_asked(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute("SET secant.ends = on")
        spent = secant_port.spent()
        empty = client.execute("SELECT count(*) AS low_count FROM orders LIMIT 0")
        names = [c.name for c in empty.description or ()]
        assert names == ["low_count", "low_count_low", "low_count_high"]
        assert secant_port.spent() == spent


def test_ends_have_names_that_are_free(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute("SET secant.ends = on")
        cursor = client.execute("SELECT count(*) AS n, 1 AS n_low FROM orders")
        names = [c.name for c in cursor.description or ()]
        assert names == ["n", "n_low_", "n_high", "n_low"]


def test_ends_come_by_copy_and_cursor_too(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address()) as client:
        client.execute("SET secant.ends = on")
        with client.cursor().copy(f"COPY ({ASKED}) TO STDOUT") as copy:
            assert all(len(row) == 4 for row in copy.rows())
        named = client.cursor("ends")
        named.execute(ASKED)
        assert all(len(row) == 4 for row in named.fetchall())


def test_an_end_that_nothing_bounds_is_null(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute("SET secant.ends = on")
        client.execute("SET secant.epsilon = 5")
        # What a median is off by in value, only the owner knows; where nothing says it, nothing is shown.
        row = client.execute("SELECT median(total) AS m FROM orders").fetchone()
        assert row is not None
        assert len(row) == 3
        assert all(end is None or math.isfinite(end) for end in row[1:])


def test_budget_is_a_view(secant_port: RunningPort) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute(GROUPS)
        text = "SELECT epsilon, spent_epsilon, remaining_epsilon FROM secant.budget WHERE analyst IS NULL"
        ((total, spent, left),) = client.execute(text).fetchall()
        assert spent == pytest.approx(secant_port.spent())
        assert total == pytest.approx(spent + left)
        client.execute("SELECT count(*) FROM orders WHERE status = 'paid'")
        ((_, later, _),) = client.execute(text).fetchall()
        assert later > spent or later == pytest.approx(secant_port.spent())


def test_a_prepared_statement_sees_the_budget_of_each_time(secant_port: RunningPort) -> None:
    text = "SELECT spent_epsilon FROM secant.budget WHERE protection = %s AND analyst IS NULL"
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        for number in range(3):
            client.execute(f"SELECT count(*) FROM orders WHERE total > {number}.125")
            (spent,) = client.execute(text, ["people"], prepare=True).fetchone() or (None,)
            assert spent == pytest.approx(secant_port.spent())


def test_history_is_a_view_with_prices(secant_port: RunningPort) -> None:
    asked = "SELECT count(*) AS seen_in_history FROM orders"
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        client.execute(asked)
        rows = client.execute(
            "SELECT outcome, protection, epsilon, asked_at <= now() FROM secant.history WHERE query LIKE %s",
            ["%seen_in_history%"],
        ).fetchall()
        assert rows[-1][0] == "answered"
        assert rows[-1][1] == "people"
        assert rows[-1][2] > 0
        assert rows[-1][3]


def test_views_are_listed_and_take_part_in_whatever_postgresql_does(
    secant_port: RunningPort,
) -> None:
    with psycopg.connect(secant_port.address(), autocommit=True) as client:
        listed = client.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'secant' ORDER BY 1"
        ).fetchall()
        assert listed == [("budget",), ("history",)]
        several = client.execute("SELECT 1; SELECT count(*) FROM secant.budget AS b")
        assert several.nextset()
        assert (several.fetchone() or (0,))[0] >= 1
        with client.cursor().copy("COPY (SELECT protection FROM secant.budget) TO STDOUT") as copy:
            assert ("people",) in set(copy.rows())


def test_a_view_that_was_not_filled_is_no_empty_view(secant_port: RunningPort) -> None:
    with secant_port.shadow() as beside, pytest.raises(psycopg.Error, match="secant_own"):
        beside.execute("SELECT * FROM secant.budget")
