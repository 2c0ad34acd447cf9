"""No pair of small databases refutes the bound of a directed query, in any setting.

Each query is asked in each setting that it is answered in, with and without empty cells, with keys that hold and keys
that do not. By default a drawn third of the settings is tried for each query, with SECANT_PROFILE=long all of them.
"""

import random
from fractions import Fraction

import pytest
from derivative_cases import (
    COUNTED,
    FILTERS,
    GROUPS,
    JOINS,
    LOOKED_UP,
    NESTED,
    QUERIES,
    SETS,
    SHIP,
    SHIP_NORM,
    UNIONS,
    VALUES,
    settings,
)
from derivative_check import ask
from derivative_moves import Tally, attack, attack_known, mover
from derivative_worlds import small_database, small_world

from chance import LONG
from secant.sensitivity.derivative.branch import Branch

PAIRS = 300 if LONG else 24
SETTINGS = settings()
BETAS = (Fraction(1, 50), Fraction(1, 5), Fraction(1), Fraction(20))


def still_in(name):
    if name != "open rows":
        return None
    return lambda table, row: (table == "a" and row["g"] == 1) or (table == "b" and row["k"] == 2)


def attacked(name, world, text, pairs, tally, draw):
    questions = ask(
        text,
        world,
        beta=draw.choice(BETAS),
        rows=draw.choice((None, 10, 10**6)),
    )
    if isinstance(questions, str):
        return False
    moves = mover(world, text, still_in(name))
    for nulls, clean in ((False, True), (True, False)):
        attack(draw, questions, moves, small_database(nulls=nulls, clean=clean), pairs // 2, tally)
    return True


@pytest.mark.parametrize(
    "queries",
    [VALUES, FILTERS, JOINS, GROUPS, UNIONS, NESTED, SETS, COUNTED],
    ids=["values", "filters", "joins", "groups", "unions", "nested", "sets", "counted"],
)
def test_no_pair_refutes_a_directed_case(queries, record_property):
    tally = Tally()
    answered = asked = 0
    for text in queries:
        draw = random.Random(text)
        names = list(SETTINGS) if LONG else draw.sample(list(SETTINGS), 3)
        for name in names:
            asked += 1
            answered += attacked(name, SETTINGS[name], text, PAIRS, tally, draw)
    record_property("pairs", tally.pairs)
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert answered >= asked * (0.4 if queries in (GROUPS, NESTED, SETS) else 0.75)
    assert tally.pairs >= answered * PAIRS // 2
    assert tally.moving >= tally.pairs // 10
    assert tally.nearest > 0.9, "no pair came near to its bound: the search is too weak"


def test_what_public_columns_tell_of_joins():
    """A connection looks up how many rows agree in public columns, and how many there are."""
    tally, answered = Tally(), 0
    for text in (*JOINS, *GROUPS, *(f for f in FILTERS if "JOIN" in f)):
        draw = random.Random(f"known {text}")
        for name in SETTINGS if LONG else draw.sample(list(SETTINGS), 2):
            world, beta = SETTINGS[name], draw.choice(BETAS)
            answered += attack_known(
                draw,
                lambda database, t=text, w=world, b=beta: ask(
                    t, w, beta=b, rows=10**6, known=database
                ),
                mover(world, text, still_in(name)),
                small_database(nulls=draw.random() < 0.3, clean=draw.random() < 0.5),
                30 if LONG else 3,
                12,
                tally,
            )
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert answered >= 100
    assert tally.moving >= tally.pairs // 10


def looked_up(text, tries):
    """Attack a query that is answered only where public columns are looked up, under a norm that adds rows up."""
    tally, draw = Tally(), random.Random(f"looked up {text}")
    world = SETTINGS["plain"]
    answered = attack_known(
        draw,
        lambda database: ask(text, world, beta=Fraction(1, 5), rows=10**6, known=database),
        mover(world, text, still_in("plain")),
        small_database(clean=True),
        tries,
        24,
        tally,
    )
    assert answered >= tries // 2
    return tally


@pytest.mark.parametrize("text", LOOKED_UP)
def test_groups_that_one_row_moves_together(text):
    tally = looked_up(text, 60 if LONG else 8)
    assert not tally.violations, f"{len(tally.violations)} violations\n{tally.violations[-1]}"
    assert tally.moving >= tally.pairs // 10


def test_several_groups_of_one_row_taken_for_one_would_be_noticed(monkeypatch):
    """A planted fault: lookups are said to find no more than two rows."""
    monkeypatch.setattr(Branch, "_product", lambda branch, fans: 1)
    assert any(looked_up(text, 8).violations for text in LOOKED_UP[:2])


def walked(question, cell, database, index, points):
    """Move one cell through its range in small steps; give the worst of neighboring points."""
    worst, last = (0.0, "", ""), None
    for i in range(points + 1):
        x = cell.low + (cell.high - cell.low) * i / points
        rows = [dict(row) for row in database[cell.table]]
        rows[index][cell.column] = cell.value(x)
        here = {**database, cell.table: rows}
        reading = question.read(here)
        if last is not None and question.distance(last[0], here) > 0:
            found = question.compare(last[1], reading, question.distance(last[0], here))
            worst = max(worst, found)
        last = here, reading
    return worst


def test_bounds_do_not_jump_on_a_walk():
    """Neighboring points on a line: a bound that jumps, however little, needs more than their distance."""
    walks, points = 0, 2_000 if LONG else 150
    for text in FILTERS:
        draw = random.Random(f"walk {text}")
        for name in SETTINGS if LONG else draw.sample(list(SETTINGS), 2):
            world = SETTINGS[name]
            questions = ask(text, world, beta=draw.choice(BETAS), rows=10**6)
            moves = mover(world, text, still_in(name))
            cells = [c for group in moves.cells.values() for c in group]
            if isinstance(questions, str) or not cells:
                continue
            cell = draw.choice(cells)
            database = moves.fill(draw, small_database(clean=True)(draw))
            free = [
                i for i, row in enumerate(database[cell.table]) if not moves.still(cell.table, row)
            ]
            for question in questions if free else ():
                found = walked(question, cell, database, draw.choice(free), points)
                assert found[0] <= 1 + 1e-5, (text, name, float(question.beta), cell, found)
                walks += 1
    assert walks >= len(FILTERS)


def test_the_time_until_the_first_ship_arrives():
    """The calculus paper, appendix A: a distance in l2, a speed in its logarithm."""
    world = small_world(SHIP_NORM)
    tally = Tally()
    draw = random.Random(3)
    for beta in BETAS:
        questions = ask(SHIP, world, beta=beta)
        assert not isinstance(questions, str), questions
        attack(draw, questions, mover(world, SHIP), small_database(clean=True), 8 * PAIRS, tally)
    assert not tally.violations, tally.violations[-1]
    assert tally.nearest > 0.5


def test_every_query_is_answered_somewhere():
    refused = {
        text for text in QUERIES if all(isinstance(ask(text, w), str) for w in SETTINGS.values())
    }
    assert refused <= NEVER


NEVER = {
    "SELECT sum(x/p) FROM a",  # a public divisor whose range holds 0
    "SELECT count(*) FROM a WHERE x*0 > 1",
    "SELECT a.g, min(a.x) FROM a JOIN a AS o ON a.k = o.id GROUP BY a.g",  # a row is in two groups
}
