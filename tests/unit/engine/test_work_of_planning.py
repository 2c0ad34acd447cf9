"""Planning ends: the steps that a text takes are counted, and one that takes too many costs nothing."""

from fractions import Fraction

import pytest
from hostile_questions import HOSTILE, case_in_case, case_of_branches, doubled_column, joined

import secant
from private_shop import ROWWISE, UNIT, make_shop, open_shop
from secant.cli.program import main
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.print.print_sql import lower
from secant.engines.spark.scalars import SPARK
from secant.errors import SecantError, SqlError
from secant.noise import intervals
from secant.plan import nodes as n
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.runtime import work
from secant.sql.bind import from_sql

CELLS = """
[protections.values]
kind = "cells"
epsilon = 100000
delta = 0.001
composition = "basic"
distance = { orders = "l1(total, quantity, rate)", customers = "l1(income, age)" }
"""
STREAM = """
[streams.s]
query = "SELECT day, count(*) AS n FROM orders GROUP BY day"
step = "1 day"
start = "2024-01-01"
protection = "single"
epsilon = 1
"""
FEW = {"cells": 200_000, "rows": 600_000, "unit": 200_000}
"""Nothing in the table needs more; under `rows` a solver is asked about joins, whose steps count."""
WIDE = "SELECT " + ", ".join(f"sum(quantity + {i})" for i in range(40)) + " FROM orders"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile")
    make_shop(directory)
    kinds = {"cells": CELLS, "rows": ROWWISE, "unit": UNIT}
    opened = {name: open_shop(directory, text) for name, text in kinds.items()}
    yield opened
    for db in opened.values():
        db.close()


def code_of(db, text):
    try:
        db.explain(text, epsilon=1)
    except SecantError as error:
        return error.code
    return ""


@pytest.mark.parametrize("kind", ["cells", "rows", "unit"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_planned_or_refused_in_few_steps(worlds, monkeypatch, name, kind):
    monkeypatch.setattr(work, "MOST_STEPS", FEW[kind])
    assert code_of(worlds[kind], HOSTILE[name]) in ("", "REF-101", "SQL-006", "SQL-007")


@pytest.mark.parametrize(
    ("kind", "text", "steps"),
    [
        ("cells", case_of_branches(16), 6_000),
        ("cells", case_of_branches(32), 12_000),
        ("cells", case_in_case(32), 12_000),
        ("cells", doubled_column(40), 12_000),
        ("rows", doubled_column(40), 12_000),
        ("unit", doubled_column(40), 12_000),
        ("rows", joined("JOIN", "o{i}.id = o{j}.id", 31), 60_000),
    ],
)
def test_twice_as_long_takes_hardly_more_than_twice_as_many_steps(
    worlds, monkeypatch, kind, text, steps
):
    monkeypatch.setattr(work, "MOST_STEPS", steps)
    assert code_of(worlds[kind], text) in ("", "REF-101", "SQL-007")


def test_steps_do_not_hang_on_what_was_asked_before(worlds, monkeypatch):
    def least(text):
        low, high = 0, FEW["rows"]
        while high - low > 1:
            middle = (low + high) // 2
            monkeypatch.setattr(work, "MOST_STEPS", middle)
            low, high = (middle, high) if code_of(worlds["rows"], text) else (low, middle)
        return high

    text = "SELECT status, sum(total) FROM orders WHERE quantity > 3 GROUP BY status"
    assert least(text) == least(text)


def refusing(call, *arguments, **named):
    with pytest.raises(SqlError) as caught:
        call(*arguments, **named)
    assert caught.value.code == "SQL-009"


def test_too_much_work_is_refused_everywhere_and_costs_nothing(tmp_path, monkeypatch, capsys):
    make_shop(tmp_path)
    with open_shop(tmp_path, ROWWISE + STREAM) as db:
        assert db.budget["single"].spent_epsilon == 0
        monkeypatch.setattr(work, "MOST_STEPS", 300)
        refusing(db.sql, WIDE, epsilon=1)
        refusing(db.sql, WIDE, error="5% of 2000")
        refusing(db.explain, WIDE)
        refusing(db.inspect, WIDE)
        refusing(db.obligation, WIDE)
        refusing(db.describe, WIDE)
        refusing(db.ranges, WIDE)
        refusing(db.run, f"CREATE VIEW v AS SELECT * FROM orders; {WIDE}", epsilon=1)
        monkeypatch.setattr(work, "MOST_STEPS", 20)
        refusing(db.stream, "s")
        refusing(db.explain_stream, "s")
        monkeypatch.undo()
        assert db.budget["single"].spent_epsilon == 0
        assert not list(db.ledger.history())
    monkeypatch.setattr(work, "MOST_STEPS", 300)
    status = main(["query", WIDE, "--epsilon", "1", "-p", str(tmp_path / "policy0.toml")])
    assert status == 2
    assert "SQL-009" in capsys.readouterr().err


def test_what_is_paid_for_is_not_stopped_halfway(tmp_path, monkeypatch):
    make_shop(tmp_path)
    reserve = secant.ledger.store.Ledger.reserve

    def stricter(self, *arguments, **named):
        monkeypatch.setattr(work, "MOST_STEPS", 0)  # whatever is counted from here on is too much
        return reserve(self, *arguments, **named)

    with open_shop(tmp_path, ROWWISE) as db:
        monkeypatch.setattr(secant.ledger.store.Ledger, "reserve", stricter)
        answer = db.sql("SELECT status, avg(total) FROM orders GROUP BY status", epsilon=1000)
    assert len(answer.rows) == 5


def test_nothing_is_counted_where_nobody_plans():
    assert work.spend(10**12) is None


def test_a_block_inside_of_a_block_counts_for_itself(monkeypatch):
    monkeypatch.setattr(work, "MOST_STEPS", 10)
    with work.limited_work():
        work.spend(9)
        with work.limited_work():
            work.spend(9)
        work.spend(1)
        refusing(work.spend)
        refusing(work.spend)


def test_a_rewrite_keeps_what_is_shared(worlds):
    # What is seen once per place instead of once per node comes back as a tree, and doubles with each level.
    plan = normalize(from_sql(doubled_column(25), worlds["rows"].catalog))
    assert sum(1 for _ in n.walk(plan)) < 200


@pytest.mark.parametrize(
    ("dialect", "each"),
    [(SPARK, "abs({})"), (SPARK, "({}) / quantity"), (POSTGRES, "asin({})")],
    ids=["spark absolute", "spark quotient", "postgres arcsine"],
)
def test_text_that_doubles_at_each_level_is_not_written_to_its_end(
    worlds, monkeypatch, dialect, each
):
    # Sixteen nested abs were two gigabytes on their way to Spark: an engine's template may name a part twice.
    inner = "total"
    for _ in range(16):
        inner = each.format(inner)
    text = f"SELECT count(*) FROM orders WHERE {inner} > 1"
    plan = make_total(normalize(from_sql(text, worlds["rows"].catalog)))
    monkeypatch.setattr(work, "MOST_STEPS", 100_000)
    with work.limited_work():
        refusing(lower, plan, dialect)


def test_sums_of_many_noisy_numbers_are_counted(monkeypatch):
    # Each of 19,000 groups beside the sum of all: their errors were foreseen for three quarters of an hour.
    weights = {f"n{i}": 1.0 for i in range(8_000)}
    monkeypatch.setattr(work, "MOST_STEPS", 900)
    with work.limited_work():
        refusing(intervals._error, weights, {}, Fraction(95, 100))
