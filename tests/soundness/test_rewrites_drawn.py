"""Statements that engines are sent in another form, on every engine: the same measures and bounds, on neighbors too.

Questions are drawn until each rewrite of an engine has fired: what never fires is not tested. A statement is run as it
is rewritten and as the plan says, joined rows counted and one by one, on databases and on others whose values moved.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import reduce

import pytest
from derivative_check import CLOSE
from derivative_moves import mover
from engine_tables import loaded, on_postgres, on_spark
from rewrites_drawn import (
    COLUMNS,
    ENABLED,
    START,
    as_it_is,
    asked_on,
    drawn,
    drawn_rows,
    rewriting_world,
    rewritten_by,
    watched,
)

from chance import LONG, fresh_seed
from secant.engines.dialect import DUCKDB
from secant.engines.optimize import preaggregate as by_margin
from secant.engines.postgres.scalars import POSTGRES
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import spell_out, transform
from secant.plan.show import same

WORLD = rewriting_world()
WANTED = {"duckdb": 60 if LONG else 3, "postgres": 40 if LONG else 2, "spark": 12 if LONG else 1}
"""Questions that each rewrite must fire in."""
PAIRS = {"duckdb": 6 if LONG else 2, "postgres": 4 if LONG else 2, "spark": 2 if LONG else 1}
MOST = 2_000 if LONG else 400
"""Questions that are drawn for one rewrite, at most."""
ROUNDED = ("by_column", "by_key")
"""What adds decimals up before they are rounded: no farther from the measure, and not the same (derivative.grid)."""
LAST_DIGITS = 1e-12
"""What sums of floats may differ by, written as one product; bounds are widened by far more for floats."""


@dataclass(frozen=True)
class Place:
    """A database at an engine, and one beside it whose values have moved."""

    before: tuple
    after: tuple


def places(name, opened):
    """Give pairs of neighbors, each with its backend."""
    every = "sale.day sale.due sale.came sale.price sale.rate sale.size part.level part.cost"
    moves = mover(WORLD, f"{every} 10 14 0.05 5 DATE '{START}' DATE '2020-02-15'")
    draw, found = random.Random(f"{fresh_seed()} {name}"), []
    for number in range(PAIRS[name]):
        one = drawn_rows(draw, nulls=number % 2 == 0)
        other = moves.change(draw, one)
        found.append(Place((one, opened(f"{number}a", one)), (other, opened(f"{number}b", other))))
    return found


@pytest.fixture(scope="module")
def at(request, tmp_path_factory):
    """Give what opens databases at an engine, once for all tests."""
    known = {}

    def opened(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(f"rewrites_{name}")
            if name == "duckdb":
                known[name] = places(
                    name, lambda i, rows: loaded(folder / f"{i}.duckdb", COLUMNS, rows)
                )
            else:
                server = request.getfixturevalue(f"{name}_server")
                known[name] = places(name, lambda i, rows: on_server(server, folder / i, rows))
        return known[name]

    yield opened
    for place in (p for found in known.values() for p in found):
        place.before[1].close()
        place.after[1].close()


def on_server(server, folder, rows):
    if hasattr(server, "create_database"):
        return on_postgres(server.address(server.create_database()), COLUMNS, rows)
    return on_spark(server, folder, COLUMNS, rows)


CASES = [
    pytest.param(name, aim, id=f"{name}-{aim}", marks=[getattr(pytest.mark, name)] if name != "duckdb" else [])
    for name, aims in ENABLED.items()
    for aim in aims
]  # fmt: skip


def held_together(question, found, meant, exact):
    """Compare what is read of one database by two statements."""
    for column, groups in meant.measures.items():
        assert found.measures[column].keys() == groups.keys(), question.text
        for key, other in groups.items():
            one = found.measures[column][key]
            allowed = 0 if exact else question.rounding(column)
            assert abs(one.value - other.value) <= allowed, (question.text, column, one, other)
            assert abs(one.bound - other.bound) <= LAST_DIGITS * other.bound, (question.text, one, other)  # fmt: skip


def compared(asked, fired, place):
    """Read a question on both databases in every form, and hold the readings against each other and the promise."""
    exact = not any(fired[label] for label in ROUNDED)
    row_by_row = asked.asked_row_by_row(WORLD)
    for question, plain in zip(asked.asked(WORLD), row_by_row, strict=True):
        readings = []
        for database, backend in (place.before, place.after):
            found = asked_on(question, backend, backend.dialect).read(database)
            forms = [asked_on(plain, backend, backend.dialect).read(database), plain.read(database)]
            if backend.dialect.name != "spark":  # which takes no plan as it is
                untouched = as_it_is(backend.dialect)
                forms += [asked_on(x, backend, untouched).read(database) for x in (question, plain)]
            assert found is not None
            for meant in forms:
                held_together(question, found, meant, exact)
            readings.append(found)
        distance = question.distance(place.before[0], place.after[0])
        ratio, promise, column = question.compare(*readings, distance)
        assert ratio <= 1 + CLOSE, (question.text, promise, column, distance)


def fires(asked, name):
    """Say which rewrites of an engine a question reaches."""
    fired = Counter()
    with watched(fired):
        for question in asked.asked(WORLD):
            for plan in question.job.readings[question.bounded.release.name].relations().values():
                rewritten_by(plan, name, fired)
    return fired


@pytest.mark.parametrize(("name", "aim"), CASES)
def test_a_rewrite_fires_and_changes_nothing(at, name, aim):
    seed, reached = fresh_seed(), 0
    for number in range(MOST):
        asked = drawn(random.Random(f"{seed} {aim} {number}"), aim)
        fired = fires(asked, name)
        if not fired[aim]:
            continue
        for place in at(name):
            compared(asked, fired, place)
        reached += 1
        if reached == WANTED[name]:
            break
    assert reached == WANTED[name], f"{aim} fired {reached} times in {MOST} questions"


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES], ids=["duckdb", "postgres"])
def test_engines_apply_what_is_listed_here(dialect):
    """A rewrite that is added to an engine and not to the list would never be looked for."""
    name = "duckdb" if dialect is DUCKDB else "postgres"
    for number in range(20):
        asked = drawn(random.Random(f"listed {number}"), "proved")
        for question in asked.asked(WORLD):
            for plan in question.job.readings[question.bounded.release.name].relations().values():
                spelled = spell_out(plan)
                printed = reduce(lambda made, step: step(made), dialect.optimize, spelled)
                assert same(printed, rewritten_by(plan, name, Counter()))


@pytest.mark.parametrize("aim", ["by_margin", "by_key"])
def test_a_wrong_rewrite_is_noticed(tmp_path, monkeypatch, aim):
    """Planted: of the rows that are gathered the least value is taken for the largest."""
    place = place_of_many(tmp_path)
    where = {"by_margin": "_rewritten", "by_key": "gathered_by_key"}[aim]
    right = getattr(by_margin, where)
    monkeypatch.setattr(by_margin, where, lambda *given: least_for_largest(right(*given)))
    for number in range(MOST):
        asked = drawn(random.Random(f"planted {number}"), aim)
        fired = fires(asked, "duckdb")
        if fired[aim]:
            try:
                compared(asked, fired, place)
            except AssertionError:
                return
    raise AssertionError("a wrong bound was not noticed")


def least_for_largest(plan):
    def change(node):
        calls = tuple(
            replace(c, function="min") if c.name.endswith(".largest") else c
            for c in node.aggregations
        )
        return replace(node, aggregations=calls)

    return None if plan is None else transform(plan, change_only(change), n.Aggregate)


def change_only(change):
    return lambda node: change(node) if isinstance(node, n.Aggregate) else node


def place_of_many(folder):
    """Give one pair of neighbors with many rows."""
    draw = random.Random("many rows")
    one = drawn_rows(draw, nulls=False, most=80)
    other = mover(WORLD, "sale price").change(draw, one)
    backends = [
        loaded(folder / f"{i}.duckdb", COLUMNS, rows) for i, rows in enumerate((one, other))
    ]
    return Place((one, backends[0]), (other, backends[1]))
