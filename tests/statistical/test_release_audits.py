"""Audits of whole releases: two protections at once, order statistics under both, and a release in stages.

Each protection is audited on its own neighbors against what it is charged, so a release that is charged to the wrong
one, or to too few, shows. Planted faults, too little noise and a charge to the other protection only, are caught. False
alarms: 1e-9 an audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from judging import ALARM, draws, violation

from chance import LONG
from private_shop import ROWWISE, UNIT, Compiled, compile_release, make_shop, open_shop
from secant.engine import Connection

ROWS = """
INSERT INTO towns VALUES ('Riga', 'LV', 1);
INSERT INTO customers SELECT i, 'n', 'Riga', 30, 10, 1 FROM range(1, 31) AS r(i);
INSERT INTO orders
    SELECT i, 1 + i % 30, ['open', 'paid'][1 + i % 2], DATE '2024-01-01', 50 + i % 3, 9 * (i % 2), 0.5, 'x', 1
    FROM range(1, 61) AS r(i);
"""
ONE_ORDER = "INSERT INTO orders VALUES (500, 1, 'open', DATE '2024-01-01', 100, 9, 0.5, 'x', 1);"
ONE_CUSTOMER = """
INSERT INTO customers VALUES (77, 'n', 'Riga', 30, 10, 1);
INSERT INTO orders SELECT 600 + i, 77, 'open', DATE '2024-01-01', 100, 9, 0.5, 'x', 1 FROM range(5) AS r(i);
"""
BOTH = UNIT.replace("composition", 'truncation = "fixed"\ncomposition') + ROWWISE
NEIGHBORS = {"people": ONE_CUSTOMER, "single": ONE_ORDER}


RELEASES = {
    "count": "SELECT count(*) FROM orders",
    "median": "SELECT median(quantity) FROM orders",
    "staged": "SELECT count(*) FROM orders WHERE total >= (SELECT avg(total) FROM orders)",
}
if LONG:
    RELEASES["sum"] = "SELECT sum(total) FROM orders WHERE status = 'open'"
    RELEASES["maximum"] = "SELECT max(total) FROM orders"
LEFT = Fraction(1, 256)
"""What of the noise is left in the planted fault."""
COUNT = {"staged": 150}
"""Draws on each side, where not 300: a second stage asks the engine in each of them."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give a directory with the shop for the common database and for each neighbor of it."""
    found = {}
    for name, more in {"plain": "", **NEIGHBORS}.items():
        found[name] = tmp_path_factory.mktemp(name)
        make_shop(found[name], rows=ROWS + more)
    return found


def quieter(compiled: Compiled, part: Fraction) -> Compiled:
    """Plant a fault: less noise, and choices that are sharper, for the same charge."""
    less = compiled.with_noise_times(part)
    ranks = {
        column: replace(r, choice=replace(r.choice, sharpness=r.choice.sharpness / part))
        for column, r in less.job.noise.ranks.items()
        if r.choice is not None
    }
    job = replace(less.job, noise=replace(less.job.noise, ranks=ranks))
    return Compiled(job, less.keys, less.backend)


def compiled(near: Connection, plain: Connection, name: str) -> tuple[Compiled, Compiled]:
    here, there = (compile_release(db, RELEASES[name], epsilon=1) for db in (near, plain))
    return here, there


def worst(sides: Sequence[Compiled], epsilon: float, count: int) -> float:
    """Give by how much some event is certainly too likely on one side; nothing here costs any δ."""
    one, two = ([float(str(side.draw_rows()[0][0])) for _ in range(count)] for side in sides)
    pairs = ((one, two), (two, one))
    return max(violation(a, b, epsilon, alarm=ALARM / len(pairs)) for a, b in pairs)


@pytest.mark.parametrize("protection", list(NEIGHBORS))
@pytest.mark.parametrize("name", list(RELEASES))
def test_each_protection_gets_what_it_is_charged_for(
    places: dict[str, Path], name: str, protection: str
) -> None:
    with open_shop(places[protection], BOTH) as near, open_shop(places["plain"], BOTH) as plain:
        sides = compiled(near, plain, name)
        costs = {p: tuple(map(float, cost)) for p, cost in sides[0].job.noise.costs.items()}
        assert 0 < costs["single"][0] < costs["people"][0] <= 1
        assert costs["single"][1] == costs["people"][1] == 0
        assert (len(sides[0].job.prepared.bounded) > 1) == (name == "staged")
        charged = costs[protection][0]
        count = COUNT.get(name, 300)
        assert worst(sides, charged, draws(count, 50 * count)) <= 0
        assert worst([quieter(side, LEFT) for side in sides], charged, count) > 0


def test_a_release_that_is_charged_to_another_protection_only_is_caught(
    places: dict[str, Path],
) -> None:
    """The planted fault: what moves with a customer is not charged to the protection of customers."""
    with open_shop(places["people"], BOTH) as near, open_shop(places["plain"], BOTH) as plain:
        assert worst(compiled(near, plain, "count"), 0, 1600) > 0
