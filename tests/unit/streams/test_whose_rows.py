"""Under limits a step reads, of what came before, the rows of its own units alone, and counts the same.

Rests on stream.part.
"""

import random

import pytest
from stream_clinic import UNIT, stream

from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.schema.types import INTEGER
from secant.streams import reading

BY_WARD = "SELECT day, ward, count(*) AS n, sum(cost) AS c FROM visits GROUP BY day, ward"
JOINED = (
    "SELECT v.day, count(*) AS n, sum(v.cost) AS c FROM visits v JOIN wards w ON v.ward = w.name"
    " GROUP BY v.day"
)
PUBLIC = 'source = "duckdb:clinic.duckdb"\npublic = ["wards"]'
KEYED = '[tables.wards]\nkey = ["name"]\n'


def filled(clinic, query) -> None:
    draw = random.Random(7)
    rows = [
        f"({i}, {draw.choice(['NULL', *range(4)])}, DATE '2025-01-01' + {draw.randrange(9)}, "
        f"'{draw.choice('ab')}', {draw.randrange(11)}, NULL, NULL, {draw.randrange(3)})"
        for i in range(80)
    ]
    clinic.execute(
        f"INSERT INTO visits VALUES {', '.join(rows)}",
        "CREATE TABLE wards (name VARCHAR)",
        "INSERT INTO wards VALUES ('a')",
    )
    clinic.declare(KEYED, UNIT, stream(query, steps=9, append_only=True))
    place = clinic.folder / "policy.toml"
    place.write_text(place.read_text().replace('source = "duckdb:clinic.duckdb"', PUBLIC))


def sums(clinic):
    """Read each step by itself, and three at once."""
    with clinic.connect() as database:
        opened = database._stream("s")
        texts = [
            lower(reading.statement(opened.compiled, a, b), opened.backend.dialect)
            for a, b in [*((day, day) for day in range(1, 10)), (4, 6)]
        ]
        with opened.session() as session:
            return texts, [sorted(session.rows(text)) for text in texts]


@pytest.mark.parametrize("query", [BY_WARD, JOINED])
def test_the_same_rows_count_as_if_all_of_history_were_read(clinic, monkeypatch, query):
    filled(clinic, query)
    texts, found = sums(clinic)
    assert " IN (SELECT" in texts[-1]
    monkeypatch.setattr(reading, "owner_of", lambda rows: None)
    whole, expected = sums(clinic)
    assert " IN (SELECT" not in whole[-1]
    assert found == expected
    # limits bite, and rows without a unit count beside them
    assert 0 < sum(row[-2] for step in found[:9] for row in step) < 80


def test_limits_by_two_columns_would_get_all_rows():
    rows = n.Values((n.Field("a", INTEGER), n.Field("b", INTEGER)), ())
    by_a, other = n.Truncate(rows, ("a",), (), 1), ("b",)
    assert reading.owner_of(n.TruncateGroups(by_a, ("a",), ("b",), 1)) == "a"
    assert reading.owner_of(n.Truncate(by_a, other, (), 1)) is None
    assert reading.owner_of(n.Truncate(rows, ("a", "b"), (), 1)) is None
