"""Guards that are left out: where the size of operands is known, PostgreSQL computes plainly and still never raises.

Random expressions over clamped floats, decimals and whole numbers, on hostile values.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest
from engines import POSTGRES as ENGINE
from engines import on_engines
from scalar_grid import GRID

from chance import LONG
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.print.magnitude import Magnitudes, magnitudes_of
from secant.engines.print.print_sql import lower
from secant.errors import BackendError
from secant.plan import nodes as n
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.verify import verify
from secant.schema import types as t

pytestmark = on_engines(engines=[ENGINE])
ROUNDS = 60 if LONG else 6
EACH = 12
FLOAT, DECIMAL, WHOLE = (
    n.Column("a.v", t.DOUBLE),
    n.Column("b.v", t.decimal(12, 3)),
    n.Column("c.v", t.INTEGER),
)


def literal(value: float) -> n.Literal:
    return n.Literal(value, t.DOUBLE)


def call(name: str, *arguments: n.Scalar) -> n.Scalar:
    return n.Call(name, arguments)


class Draw:
    """Draws expressions; most of their parts are bounded by clamps or types."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, depth: int) -> n.Scalar:
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf()
        x, y = self.number(depth - 1), self.number(depth - 1)
        constant = literal(self.random.choice([0.5, -2.0, 1e-3, 3.0, 1e6, 1e-90, 1e120]))
        small = n.Literal(self.random.choice([2, 3]), t.INTEGER)
        return self.random.choice([
            n.Arithmetic("+", x, y), n.Arithmetic("-", x, y), n.Arithmetic("*", x, y), n.Arithmetic("*", constant, x),
            n.Arithmetic("/", x, y), n.Arithmetic("/", x, n.Arithmetic("+", call("abs", y), literal(1.0))),
            n.Arithmetic("/", x, constant), call("exp", x), call("exp", n.Negate(call("abs", x))),
            call("ln", n.Arithmetic("+", call("abs", x), literal(1.0))), call("ln", x), call("sqrt", call("abs", x)),
            call("sqrt", x), call("power", x, small), call("ramp", x), call("sigmoid", x, constant),
            call("tauoid", x, constant), call("greatest", x, y), call("least", x, y), self.clamped(x),
            n.Case((n.Branch(n.Compare(">", x, y), x),), y), n.Negate(x), call("abs", x),
        ])  # fmt: skip

    def clamped(self, x: n.Scalar) -> n.Clamp:
        low, high = sorted(
            self.random.sample([-1e200, -1e6, -1.0, 0.0, 1e-9, 1.0, 50.0, 650.0, 1e150, 1e300], 2)
        )
        return n.Clamp(x, literal(low), literal(high))

    def leaf(self) -> n.Scalar:
        return self.random.choice([
            FLOAT, self.clamped(FLOAT), self.clamped(FLOAT), n.Cast(DECIMAL, t.DOUBLE), n.Cast(WHOLE, t.DOUBLE),
            n.Cast(n.Clamp(DECIMAL, n.Literal(Decimal("-5.000"), t.decimal(4, 3)), n.Literal(Decimal("99.000"),
                   t.decimal(5, 3))), t.DOUBLE),
            literal(self.random.choice([0.0, 1.0, -0.25, 1e-30])),
        ])  # fmt: skip


def grid() -> n.Relation:
    names = (
        ("reals", "a", t.DOUBLE),
        ("decimals", "b", t.decimal(12, 3)),
        ("wholes", "c", t.INTEGER),
    )
    scans = [
        n.Scan(table, alias, (n.Field(f"{alias}.k", t.INTEGER), n.Field(f"{alias}.v", kind)))
        for table, alias, kind in names
    ]
    return n.Join("cross", n.Join("cross", scans[0], scans[1], None), scans[2], None)


def unlike(got: object, want: object) -> bool:
    if got is None or want is None:
        return got is not want
    if math.isnan(want) or math.isinf(want) or math.isinf(got):
        return repr(got) != repr(want)
    return not math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-290)


def known(row: tuple[object, ...]) -> bool:
    """Whether no value of the grid is NULL: the last of each table is."""
    ends = [len(GRID[name][1]) - 1 for name in ("reals", "decimals", "wholes")]
    return all(key != end for key, end in zip(row, ends, strict=False))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_bounded_expressions_never_raise(grid_there, grid_here, seed):
    ours, theirs = grid_there.backend, grid_here
    draw, rows = Draw(seed), grid()
    drawn = [draw.number(4) for _ in range(EACH)]
    items = tuple(n.Named(f"e{i}", e) for i, e in enumerate(drawn))
    keys = tuple(n.Named(f"{x}.k.key", n.Column(f"{x}.k", t.INTEGER)) for x in "abc")
    plan = make_total(n.Project(rows, keys + items))
    verify(plan)
    got, want = (
        sorted((row for row in answer if known(row)), key=lambda row: row[:3])
        for answer in (ours.rows(lower(plan, POSTGRES)), theirs.rows(lower(plan)))
    )
    wrong = sum(
        unlike(a, b)
        for mine, other in zip(got, want, strict=True)
        for a, b in zip(mine[3:], other[3:], strict=True)
    )
    assert len(got) == len(want) > 4_000
    assert wrong == 0


@pytest.mark.parametrize("fact", ["step", "magnitude"])
def test_a_wrong_fact_is_caught(grid_there, monkeypatch, fact):
    """If sizes were believed that do not hold, guards would be missing and a row would raise."""
    monkeypatch.setattr(Magnitudes, fact, lambda self, scalar: 1.0)

    def run() -> None:
        for seed in range(20):
            items = (n.Named("e", Draw(seed).number(4)),)
            grid_there.backend.rows(lower(make_total(n.Project(grid(), items)), POSTGRES))

    with pytest.raises(BackendError, match="failed while running"):
        run()


def test_what_is_known_of_sizes_holds_on_every_row(grid_there):
    """Intervals and steps against values: this is what decides which guards are left out."""
    ours = grid_there.backend
    draw, rows, checked = Draw(99), grid(), 0
    reach = magnitudes_of(rows)
    items = tuple(n.Named(f"e{i}", draw.number(3)) for i in range(60))
    plan = make_total(n.Project(rows, items))
    found = ours.rows(lower(plan, POSTGRES))
    for index, item in enumerate(items):
        interval, step = reach.of(item.expression), reach.step(item.expression)
        values = [
            row[index] for row in found if row[index] is not None and math.isfinite(row[index])
        ]
        if interval.bounded:
            low, high = interval.ends()
            slack = max(abs(low), abs(high)) / 10**9
            assert all(low - slack <= v <= high + slack for v in values), item
            checked += 1
        if step is not None:
            assert all(v == 0 or abs(v) >= step for v in values), item
            checked += 1
    assert checked > 40
