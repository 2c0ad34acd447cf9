"""Ours: a driver gives `infinity` as the last date there is, and drops nanoseconds.

Two groups of the engine then had one key in Python, and the later one took the earlier one's place: a
single new row with the date 9999-12-31 could move the count of that key by thousands.
"""

import duckdb
import pytest

import secant

POLICY = """
[database]
source = "duckdb:days.duckdb"
[protections.single]
kind = "rows"
epsilon = 1000
delta = 0.01
"""
FIRST = "CREATE TABLE days (day DATE, moment TIMESTAMP, fine TIMESTAMP_NS);"
MANY = """INSERT INTO days SELECT '{0}infinity', '{0}infinity', '2024-01-01 00:00:00.000000' FROM range(500);"""
ONE = """INSERT INTO days VALUES ('{1}', '{1}', '2024-01-01 00:00:00.000000{2}');"""


def counts(directory, rows, column):
    """Give the number of rows of each key, without noise."""
    directory.mkdir()
    with duckdb.connect(str(directory / "days.duckdb")) as connection:
        connection.execute(FIRST + rows)
    (directory / "policy.toml").write_text(POLICY)
    with secant.connect(policy=directory / "policy.toml") as db:
        shown = db.inspect(
            f"SELECT {column}, count(*) AS n FROM days GROUP BY {column}", epsilon=10
        )
        return dict(zip(map(str, listed(shown[0])), listed(shown[1]), strict=True))


def listed(column):
    found = column["softened"]
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("column", ["day", "moment", "fine"])
@pytest.mark.parametrize(("sign", "last"), [("", "9999-12-31"), ("-", "0001-01-01")])
def test_one_row_moves_the_groups_by_one(tmp_path, column, sign, last):
    many, one = MANY.format(sign), ONE.format(sign, last, "001" if column == "fine" else "")
    here = counts(tmp_path / "here", many, column)
    there = counts(tmp_path / "there", many + one, column)
    assert sum(here.values()) == 500
    assert sum(abs(here.get(key, 0) - there.get(key, 0)) for key in here | there) <= 1


def test_where_a_nan_stands_does_not_depend_on_other_rows(tmp_path):
    from secant.release.measured import order_of_keys as _order

    keys = [float("nan"), 1.0, None, -1.0, float("inf")]
    orders = [sorted(keys[i:] + keys[:i], key=_order) for i in range(len(keys))]
    assert len({repr(order) for order in orders}) == 1
