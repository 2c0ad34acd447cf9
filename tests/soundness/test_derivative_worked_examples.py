"""The worked examples of the papers come out as they are printed there, or smaller where what is printed is too large.

Time to the port (appendix A of "Database sensitivity", examples 3.8 and 3.9 of the report), polar coordinates (example
3.5), and the two queries whose sensitivities the papers show as SQL. Each is asked for every way of storing and of
writing it: a bound that is right and many times too large is a fault, too.
"""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from derivative_check import ask, world

from secant.schema import types as t
from secant.schema.catalog import Table, catalog

CLOSE = 1.001
"""What factors for floats and the rounding to whole steps may add."""
STORED = {"double": t.DOUBLE, "decimal": t.decimal(9, 3), "whole": t.INTEGER}
SHIPS = (((1000, 1000, 4),), ((30, 40, 1),), ((2000, 2000, 20), (3, 4, 25)), ((0, 0, 8),))
WAYS = (
    "SELECT min(sqrt(x*x + y*y) / speed) FROM ships",
    "SELECT min(sqrt(x*x + y*y) * power(speed, -1)) FROM ships",
    "SELECT min(sqrt(power(x, 2) + power(y, 2)) / CAST(speed AS DOUBLE)) FROM ships",
)
POLICY = """
[database]
source = "duckdb:none"
[tables.ships]
key = ["id"]
[tables.ships.columns]
x = {{ range = [-4000, 4000] }}
y = {{ range = [-4000, 4000] }}
speed = {{ range = [1, 50] }}
[protections.cells]
kind = "cells"
epsilon = 1000.0
distance = {{ ships = "{norm}" }}
"""


def asked(text, norm, kind, beta):
    columns = (("id", t.INTEGER), ("x", kind), ("y", kind), ("speed", kind))
    here = world(catalog(Table("ships", columns)), POLICY.format(norm=norm))
    questions = ask(text, here, beta=beta)
    assert not isinstance(questions, str), questions
    return questions[0]


def bound(question, ships, kind):
    """Read the bound of the one measure in the measure's own unit."""
    cell = {"DOUBLE": float, "DECIMAL": Decimal, "INTEGER": int}[kind.kind]
    rows = [
        {"id": i, "x": cell(x), "y": cell(y), "speed": cell(v)} for i, (x, y, v) in enumerate(ships)
    ]
    reading = question.read({"ships": rows})
    ((column, groups),) = reading.measures.items()
    ((_, group),) = groups.items()
    (measure,) = question.bounded.release.measures
    assert measure.column == column
    return group.bound * float(measure.step)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("text", WAYS)
def test_the_next_ship(text, stored):
    """Example 3.9: alpha = 0.02, zeta = 10 and the smoothness 1/zeta that the example chooses."""
    kind, alpha, zeta = STORED[stored], 0.02, 10.0
    question = asked(text, "l1(l2(0.02*x, 0.02*y), 10*ln(speed))", kind, Fraction(1, 10))

    def printed(x, y, v):
        length = alpha * math.hypot(x, y)
        smooth = length if length >= zeta else zeta * math.exp(length / zeta - 1)
        return max(1.0, smooth / zeta) / v / alpha

    for ships in SHIPS:
        largest = max(printed(*ship) for ship in ships)
        found = bound(question, ships, kind)
        assert largest * (1 - 1e-9) <= found <= CLOSE * largest, (ships, found, largest)
    assert bound(question, (SHIPS[0]), kind) == pytest.approx(1000 * math.sqrt(2) / 40, rel=1e-3)


@pytest.mark.parametrize("stored", STORED)
def test_one_ship_by_its_components(stored):
    """Example 3.8, where (x, y) is a length: 1/(av), not the printed √2/(av); a rough bound is the derivative."""
    kind, a, b = STORED[stored], 0.02, 0.5
    question = asked(WAYS[0], "l1(l2(0.02*x, 0.02*y), 0.5*speed)", kind, Fraction(20))
    for ship in ((300, 400, 20), (3000, 0, 30), (30, 40, 10)):
        x, y, v = ship
        exact = max(1 / (a * v), math.hypot(x, y) / (b * v * v))
        found = bound(question, (ship,), kind)
        assert exact * (1 - 1e-9) <= found <= CLOSE * exact, (ship, found, exact)


@pytest.mark.parametrize("beta", [Fraction(1, 100), Fraction(5)])
def test_polar_coordinates(beta):
    """Example 3.5: twice the radius moves by 2 for each coordinate, and so in their Euclidean norm."""
    question = asked("SELECT sum(2 * sqrt(x*x + y*y)) FROM ships", "l2(x, y)", t.DOUBLE, beta)
    for ship in ((3, 4, 1), (0, 0, 1), (4000, -4000, 1)):
        assert 2 * (1 - 1e-9) <= bound(question, (ship,), t.DOUBLE) <= 2 * CLOSE


@pytest.mark.parametrize("power", [-2, -1, 1, 2, 3])
def test_powers_of_what_moves_in_its_logarithm(power):
    """e^(rw) is its own smooth bound where |r| is at most the smoothness, and moves |r| times itself."""
    text = f"SELECT max(power(speed, {power})) FROM ships"
    question = asked(text, "10*ln(speed)", t.DOUBLE, Fraction(abs(power), 10))
    for v in (1, 4, 50):
        exact = abs(power) * float(v) ** power / 10
        found = bound(question, ((0, 0, v),), t.DOUBLE)
        assert exact * (1 - 1e-9) <= found <= CLOSE * exact, (v, found, exact)


LINES = """
[database]
source = "duckdb:none"
[tables.lineitem]
key = ["id"]
[tables.lineitem.columns]
quantity = { range = [0, 50] }
shipdate = { range = [146.1, 231.3] }
[protections.cells]
kind = "cells"
epsilon = 1000.0
softening = { kind = "sigmoid", slope = 0.1 }
distance = { lineitem = "l1(quantity, 30*shipdate)" }
"""


@pytest.mark.parametrize("value", ["quantity", "1"])
def test_the_sensitivity_queries_of_the_paper(value):
    """b1_1 and b1_5 as appendix D.4 prints them: sigmoids of slope 0.1, smoothness 0.1."""
    columns = (("id", t.INTEGER), ("quantity", t.DOUBLE), ("shipdate", t.DOUBLE))
    here = world(catalog(Table("lineitem", columns)), LINES)
    text = f"SELECT sum({value}) FROM lineitem WHERE shipdate <= 200.3"
    (question,) = ask(text, here, beta=Fraction(1, 10))

    def printed(quantity, shipdate):
        truth = 1 / (1 + math.exp(-0.1 * (200.3 - shipdate)))
        slope = 0.1 * truth * (1 - truth) / 30
        if value == "1":
            return slope
        smooth = quantity if quantity >= 10 else 10 * math.exp(quantity / 10 - 1)
        return max(truth, slope * smooth)

    for rows in (((40, 200.3),), ((5, 150),), ((50, 231), (2, 225), (50, 146.1))):
        cells = [{"id": i, "quantity": float(q), "shipdate": d} for i, (q, d) in enumerate(rows)]
        ((_, groups),) = question.read({"lineitem": cells}).measures.items()
        ((_, group),) = groups.items()
        (measure,) = question.bounded.release.measures
        found, largest = group.bound * float(measure.step), max(printed(*row) for row in rows)
        assert largest * (1 - 1e-9) <= found <= CLOSE * largest, (rows, found, largest)
