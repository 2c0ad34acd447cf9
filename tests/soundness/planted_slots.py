"""A protected subquery in every place of a plan that can hold one.

In: the classes of nodes and the types of their fields, as `nodes.slots` lists them. Out: plans, each with one subquery
over the protected table `b` in one place, and otherwise over public rows, or over other protected rows that are treated
row by row. Scalars are found by trial: fields are filled until the plan is well formed, so that a new class is covered
as soon as it exists, or its slot has no plan and the test says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from neighbor_check import Database, World, rows_like

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.functions.aggregates import AGGREGATES, QUANTILES
from secant.plan.typing import fields_of, type_of
from secant.plan.verify import verify
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

COLUMNS = {
    "b": (("id", t.INTEGER), ("n", t.INTEGER)),
    "c": (("bid", t.INTEGER), ("k", t.INTEGER), ("w", t.INTEGER)),
    "p": (("k", t.INTEGER), ("w", t.INTEGER)),
}
"""b and c are protected, p is public."""
PROTECTIONS = {
    "rows": Protection("rows", "rows", Fraction(1), tables=("b", "c")),
    "unit": Protection("unit", "unit", Fraction(1), unit=("b", "id"), limits={"c": 2}),
    "cells": Protection("cells", "cells", Fraction(1), distance={"b": "n", "c": "w"}),
}
BASES = ("p", "c")


def world_of(kind: str) -> World:
    """Give the schema under one protection."""
    ranged = ColumnFacts(range=(0, 9))
    tables = {
        "b": TableFacts(("id",), {}, {"n": ranged}),
        "c": TableFacts((), {"bid": ("b", "id")}, {"w": ranged}),
        "p": TableFacts(("k",), {}, {"w": ranged}),
    }
    known = catalog(*(Table(name, columns) for name, columns in COLUMNS.items()))
    return World(known, Policy("", tables, (PROTECTIONS[kind],), public=("p",)))


DATABASES: tuple[Database, ...] = (
    rows_like(COLUMNS, b=[(1, 5)], c=[(1, 1, 3), (2, 2, 9), (2, 3, 9)], p=[(1, 4), (2, 9), (3, 9)]),
    rows_like(COLUMNS, b=[(1, 0), (2, 5)], c=[(1, 1, 9), (3, 2, 9)], p=[(1, 9), (2, 0)]),
)
"""Somebody is the only one whose n is 5: whether b has such a row is what plans ask."""


def scan(table: str, alias: str) -> n.Scan:
    """Give a use of a table."""
    return n.Scan(table, alias, tuple(n.Field(f"{alias}.{c}", kind) for c, kind in COLUMNS[table]))


def column(relation: n.Relation, name: str) -> n.Column:
    """Give a column by the end of its name."""
    return next(
        n.Column(f.name, f.type) for f in fields_of(relation) if f.name.split(".")[-1] == name
    )


def whole(value: int) -> n.Literal:
    """Write a number."""
    return n.Literal(value, t.INTEGER)


# ── what is planted ──────────────────────────────────────────────────────────────────────────────


def _large(alias: str) -> n.Relation:
    rows = scan("b", alias)
    return n.Filter(rows, n.Compare(">", column(rows, "n"), whole(3)))


def _values(alias: str) -> n.Relation:
    rows = scan("b", alias)
    return n.Project(rows, (n.Named(f"{alias}.out", column(rows, "n")),))


def _most(alias: str) -> n.Relation:
    rows = scan("b", alias)
    return n.Aggregate(rows, (), (n.Aggregation(f"{alias}.out", "max", column(rows, "n")),))


SUBQUERIES: dict[str, Callable[[], n.Scalar]] = {
    "Exists": lambda: n.Exists(_large("asked")),
    "InSubquery": lambda: n.InSubquery(whole(5), _values("asked")),
    "ScalarSubquery": lambda: n.ScalarSubquery(_most("asked")),
}
RELATIONS: tuple[Callable[[], n.Relation], ...] = (
    lambda: _values("asked"),
    lambda: _most("asked"),
)


def truth(scalar: n.Scalar) -> n.Scalar:
    """Give a condition that hangs on a scalar."""
    if type_of(scalar).kind == "BOOLEAN":
        return scalar
    if type_of(scalar).kind == "INTEGER":
        return n.Compare(">", scalar, whole(3))
    return n.Not(n.IsNull(scalar))


def number(scalar: n.Scalar) -> n.Scalar:
    """Give a number, 0 or 1, that hangs on a scalar."""
    return n.Case((n.Branch(truth(scalar), whole(1)),), whole(0))


# ── scalars in scalars ───────────────────────────────────────────────────────────────────────────

_TEXT = n.Literal("a", t.TEXT)
_CONSTANTS: tuple[n.Scalar, ...] = (
    whole(5), n.Literal(False, t.BOOLEAN), _TEXT, n.Literal(1.5, t.DOUBLE),
    n.Cast(n.Literal("2020-02-02", t.TEXT), t.DATE),
)  # fmt: skip
_WORDS = ("+", "=", "abs", "lower", "coalesce", "year", "inner", "count", "out")


def _planted_scalars() -> Iterator[n.Scalar]:
    """Give protected subqueries of several types, to be put where a scalar fits."""
    asked = SUBQUERIES["Exists"]()
    yield asked
    for constant in _CONSTANTS:
        yield n.Case((n.Branch(asked, constant),), n.Literal(None, type_of(constant)))


def _fillers(kind: str, planted: bool) -> list[Any]:
    """Give values that a field of this type may have; planted ones hold the subquery."""
    if kind.startswith("tuple[") and kind.endswith(", ...]") and kind != "tuple[str, ...]":
        one = _fillers(kind[6:-6], planted)
        # A disjunction of one is none: it is rewritten before anybody looks at it.
        two = itertools.product(one, _CONSTANTS) if kind == "tuple[Scalar, ...]" else ()
        return [*two, *((x,) for x in one)]
    scalars = list(_planted_scalars()) if planted else list(_CONSTANTS)
    if kind in ("Scalar", "Scalar | None"):
        return scalars
    if kind == "Branch":
        tested = [n.Branch(x, whole(1)) for x in scalars]
        return tested + [n.Branch(_CONSTANTS[1], x) for x in scalars]
    if kind == "Relation":
        one = n.Project(n.Values((), ((),)), (n.Named("one.out", whole(5)),))
        return [make() for make in RELATIONS] if planted else [one]
    known = {
        "str": _WORDS, "Type": (t.TEXT, t.INTEGER), "bool": (True,), "int": (1,), "int | None": (1,),
        "object": (5,), "tuple[object, ...]": ((3, 6),), "Fraction": (Fraction(1, 4),),
        "Fraction | None": (None,), "Span | None": (None,),
    }  # fmt: skip
    return list(known.get(kind, ()))


def scalar_slots() -> tuple[tuple[type[n.Node], str], ...]:
    """Give the places in scalars, and in the branches of CASE."""
    return tuple((node, name) for node, name in n.slots() if issubclass(node, (n.Scalar, n.Branch)))


def scalars_with(node: type[n.Node], name: str) -> Iterator[n.Scalar]:
    """Give well-formed scalars of a class with a protected subquery in one place."""
    if node is n.Branch:
        for made in scalars_with(n.Case, "branches"):
            assert isinstance(made, n.Case)
            (branch,) = made.branches
            if n.has_subquery(getattr(branch, name)):
                yield made
        return
    places = [f for f in fields(node) if f.name == name or f.default is MISSING]
    options = [_fillers(str(f.type), f.name == name) for f in places]
    for chosen in itertools.product(*options):
        made = node(**{f.name: value for f, value in zip(places, chosen, strict=True)})
        assert isinstance(made, n.Scalar)
        if _well_formed(n.Project(n.Values((), ((),)), (n.Named("x.out", made),))):
            yield made


def _well_formed(plan: n.Relation) -> bool:
    try:
        verify(plan)
        type_of(plan.items[0].expression) if isinstance(plan, n.Project) else None
    except (InternalError, KeyError, TypeError, ValueError, AttributeError, AssertionError):
        return False
    return True


# ── scalars in relations ─────────────────────────────────────────────────────────────────────────


def _base(table: str) -> n.Scan:
    return scan(table, "base")


def _summed(rows: n.Relation) -> n.Aggregate:
    calls = (
        n.Aggregation("out.rows", "count", None),
        n.Aggregation("out.w", "sum", column(rows, "w")),
    )
    return n.Aggregate(rows, (), calls)


def _largest(rows: n.Relation) -> n.Aggregate:
    return n.Aggregate(rows, (), (n.Aggregation("out.most", "max", column(rows, "w")),))


Plan = Callable[[str, n.Scalar], n.Relation]
"""From a table and a scalar to an aggregate over the table, with the scalar somewhere in it."""


def _joined(kind: str) -> Plan:
    def plan(table: str, x: n.Scalar) -> n.Relation:
        left, right = _base(table), scan("p", "other")
        tied = n.Compare("=", column(left, "k"), column(right, "k"))
        joined = n.Join(kind, left, right, n.And((tied, truth(x))))
        kept = (n.Named("j.w", n.Column("base.w", t.INTEGER)),)
        return _summed(n.Project(joined, kept))

    return plan


def _sorted(table: str, x: n.Scalar) -> n.Relation:
    rows = _base(table)
    return n.Sort(rows, (n.SortKey(_chosen(rows, x), True, False),))


def _chosen(rows: n.Relation, x: n.Scalar) -> n.Scalar:
    """Give w, or 0, as a scalar says. It cannot fail: what can is refused before anybody asks what it reads."""
    return n.Case((n.Branch(truth(x), column(rows, "w")),), whole(0))


def _inner_groups(table: str, x: n.Scalar) -> n.Relation:
    rows = _base(table)
    keys = (n.Named("g.w", number(x)), n.Named("g.k", column(rows, "k")))
    return _summed(n.Aggregate(rows, keys, (n.Aggregation("g.rows", "count", None),)))


def _inner_argument(function: str) -> Plan:
    def plan(table: str, x: n.Scalar) -> n.Relation:
        rows = _base(table)
        call = _call("g.w", function, number(x))
        grouped = n.Aggregate(rows, (n.Named("g.k", column(rows, "k")),), (call,))
        made = n.Column("g.w", type_of(call))
        # All values of a group are no number, whatever their type says: all that is asked is whether there are any.
        held = number(made) if function == "array_agg" else n.Cast(made, t.INTEGER)
        held = n.Clamp(held, whole(0), whole(9))
        return _summed(n.Project(grouped, (n.Named("held.w", held),)))

    return plan


def _call(
    name: str, function: str, argument: n.Scalar, second: n.Scalar | None = None
) -> n.Aggregation:
    """Give a call; a pair's other side is the same scalar if none is given."""
    fraction = Fraction(1, 4) if function in QUANTILES else None
    other = (second or argument) if AGGREGATES[function].pairs else None
    return n.Aggregation(name, function, argument, fraction=fraction, second=other)


def _outer_argument(function: str) -> Plan:
    def plan(table: str, x: n.Scalar) -> n.Relation:
        rows = _base(table)
        return n.Aggregate(rows, (), (_call("out.x", function, _chosen(rows, x)),))

    return plan


def _outer_second(table: str, x: n.Scalar) -> n.Relation:
    """The other side of a pair alone."""
    rows = _base(table)
    call = _call("out.x", "covar_pop", column(rows, "w"), _chosen(rows, x))
    return n.Aggregate(rows, (), (call,))


def _inner_second(table: str, x: n.Scalar) -> n.Relation:
    rows = _base(table)
    call = _call("g.w", "covar_pop", column(rows, "w"), number(x))
    grouped = n.Aggregate(rows, (n.Named("g.k", column(rows, "k")),), (call,))
    held = n.Clamp(n.Cast(n.Column("g.w", type_of(call)), t.INTEGER), whole(0), whole(9))
    return _summed(n.Project(grouped, (n.Named("held.w", held),)))


def _outer_constant(function: str) -> Plan:
    def plan(table: str, x: n.Scalar) -> n.Relation:
        return n.Aggregate(_base(table), (), (_call("out.x", function, number(x)),))

    return plan


def _outer_key(table: str, x: n.Scalar) -> n.Relation:
    rows = _base(table)
    keys = (n.Named("out.key", number(x)),)
    return n.Aggregate(rows, keys, (n.Aggregation("out.rows", "count", None),))


def _windowed(make: Callable[[n.Relation, n.Scalar], n.WindowCall]) -> Plan:
    """Sum what a window call says of each row."""

    def plan(table: str, x: n.Scalar) -> n.Relation:
        rows = _base(table)
        call = make(rows, x)
        held = n.Clamp(n.Column(call.name, type_of(call)), whole(0), whole(9))
        return _summed(n.Project(n.Window(rows, (call,)), (n.Named("held.w", held),)))

    return plan


def _key(rows: n.Relation) -> n.Column:
    """Give the first column: of protected rows, their owner, without whom no window is accepted."""
    return n.Column(fields_of(rows)[0].name, t.INTEGER)


def _window_argument(rows: n.Relation, x: n.Scalar) -> n.WindowCall:
    whole_partition = n.Frame("rows", None, None)
    return n.WindowCall("win.w", "max", (_chosen(rows, x),), (_key(rows),), (), whole_partition)


def _window_partition(rows: n.Relation, x: n.Scalar) -> n.WindowCall:
    parts = (_key(rows), _chosen(rows, x))
    return n.WindowCall("win.w", "count", (), parts, (), n.Frame("rows", None, None))


def _window_order(rows: n.Relation, x: n.Scalar) -> n.WindowCall:
    order = (n.SortKey(_chosen(rows, x), True, False),)
    return n.WindowCall("win.w", "rank", (), (_key(rows),), order)


PLACES: dict[str, tuple[tuple[type[n.Node], str], Plan]] = {
    "a condition": (
        (n.Filter, "predicate"), lambda table, x: _summed(n.Filter(_base(table), truth(x))),
    ),
    "a condition, ranked": (
        (n.Filter, "predicate"), lambda table, x: _largest(n.Filter(_base(table), truth(x))),
    ),
    "a column": ((n.Named, "expression"), lambda table, x: _summed(
        n.Project(_base(table), (n.Named("made.w", number(x)),)))),
    "a column, ranked": ((n.Named, "expression"), lambda table, x: _largest(
        n.Project(_base(table), (n.Named("made.w", number(x)),)))),
    "an inner join": ((n.Join, "condition"), _joined("inner")),
    "a left join": ((n.Join, "condition"), _joined("left")),
    "a sort key": ((n.SortKey, "expression"), lambda table, x: _summed(_sorted(table, x))),
    "a sort key under a limit": (
        (n.SortKey, "expression"), lambda table, x: _summed(n.Limit(_sorted(table, x), 1, 0)),
    ),
    "a sort key under a limit, ranked": (
        (n.SortKey, "expression"), lambda table, x: _largest(n.Limit(_sorted(table, x), 1, 0)),
    ),
    "a window's argument": ((n.WindowCall, "arguments"), _windowed(_window_argument)),
    "a window's partition": ((n.WindowCall, "partition"), _windowed(_window_partition)),
    "a window's order": ((n.SortKey, "expression"), _windowed(_window_order)),
    "an inner key": ((n.Named, "expression"), _inner_groups),
    "a key": ((n.Named, "expression"), _outer_key),
    **{
        f"an inner {f}": ((n.Aggregation, "argument"), _inner_argument(f)) for f in AGGREGATES
    },
    **{f"an outer {f}": ((n.Aggregation, "argument"), _outer_argument(f)) for f in AGGREGATES},
    "the other side of an inner pair": ((n.Aggregation, "second"), _inner_second),
    "the other side of an outer pair": ((n.Aggregation, "second"), _outer_second),
    **{
        f"an outer {f} of constants": ((n.Aggregation, "argument"), _outer_constant(f))
        for f in ("count", "sum", "min", "max", "median")
    },
}  # fmt: skip
"""Where in relations a scalar can stand, by the place that holds it."""


# ── relations in relations ───────────────────────────────────────────────────────────────────────


def _asked() -> n.Relation:
    rows = scan("b", "asked")
    return n.Project(
        rows, (n.Named("asked.k", column(rows, "id")), n.Named("asked.w", column(rows, "n")))
    )


def _both(make: Any, left: bool, *, all_: bool) -> n.Relation:
    sides = [_asked(), n.Project(_base("p"), tuple(
        n.Named(f"made.{c}", n.Column(f"base.{c}", t.INTEGER)) for c in ("k", "w")))]  # fmt: skip
    if not left:
        sides.reverse()
    columns = (n.Field("both.k", t.INTEGER), n.Field("both.w", t.INTEGER))
    return _summed(make(*sides, all_, columns))


def _join_side(kind: str, left: bool) -> n.Relation:
    sides = [_asked(), _base("p")] if left else [_base("p"), _asked()]
    tied = n.Compare("=", n.Column("asked.k", t.INTEGER), n.Column("base.k", t.INTEGER))
    joined = n.Join(kind, sides[0], sides[1], None if kind == "cross" else tied)
    return _summed(n.Project(joined, (n.Named("j.w", n.Column("base.w", t.INTEGER)),)))


def _first(make: Any) -> n.Relation:
    names = {"owner": ("asked.k",), "limit": 1}
    given = {"order": ("asked.w",)} if make is n.Truncate else {"groups": ("asked.w",)}
    return _summed(make(_asked(), **names, **given))


def _numbered(function: str) -> n.Relation:
    """Sum what a window over the protected rows of each owner says."""
    owner, value = n.Column("asked.k", t.INTEGER), n.Column("asked.w", t.INTEGER)
    if function == "max":
        call = n.WindowCall("win.w", function, (value,), (owner,), (), n.Frame("rows", None, None))
    else:
        call = n.WindowCall("win.w", function, (), (owner,), (n.SortKey(value, True, False),))
    held = n.Clamp(n.Column("win.w", t.INTEGER), whole(0), whole(9))
    return _summed(n.Project(n.Window(_asked(), (call,)), (n.Named("held.w", held),)))


INPUTS: dict[tuple[type[n.Node], str], tuple[Callable[[], n.Relation], ...]] = {
    (n.Filter, "input"): (lambda: _summed(
        n.Filter(_asked(), n.Compare(">", n.Column("asked.w", t.INTEGER), whole(3)))),),
    (n.Project, "input"): (lambda: _summed(_asked()), lambda: _largest(_asked())),
    (n.Aggregate, "input"): (lambda: n.Aggregate(_asked(), (), (
        n.Aggregation("out.w", "max", n.Column("asked.w", t.INTEGER)),)), lambda: _summed(_most_of())),
    (n.Distinct, "input"): (lambda: _summed(n.Distinct(_asked())),),
    (n.Sort, "input"): (lambda: _summed(n.Limit(n.Sort(_asked(), (
        n.SortKey(n.Column("asked.w", t.INTEGER), True, False),)), 1, 0)),),
    (n.Limit, "input"): (lambda: _summed(n.Limit(_asked(), 1, 0)),),
    (n.Window, "input"): tuple(
        lambda f=function: _numbered(f) for function in ("row_number", "rank", "max")),
    (n.Truncate, "input"): (lambda: _first(n.Truncate),),
    (n.TruncateGroups, "input"): (lambda: _first(n.TruncateGroups),),
    **{(n.Join, side): tuple(lambda k=kind, s=side: _join_side(k, s == "left")
                             for kind in ("inner", "left", "cross")) for side in ("left", "right")},
    **{(make, side): tuple(lambda m=make, s=side, a=all_: _both(m, s == "left", all_=a)
                           for all_ in (True, False))
       for make in (n.Union, n.Intersect, n.Except) for side in ("left", "right")},
}  # fmt: skip
"""For each relation in a relation, plans that read the protected table through it."""


def _most_of() -> n.Relation:
    calls = (n.Aggregation("g.w", "max", n.Column("asked.w", t.INTEGER)),)
    return n.Aggregate(_asked(), (n.Named("g.k", n.Column("asked.k", t.INTEGER)),), calls)


@dataclass(frozen=True)
class Case:
    """A plan with a protected subquery in it, and where it stands."""

    name: str
    plan: n.Relation


def direct_cases(base: str) -> Iterator[Case]:
    """Give each form of subquery in each place of relations."""
    for (word, make), (place, (_, plan)) in itertools.product(SUBQUERIES.items(), PLACES.items()):
        yield Case(f"{word} in {place} over {base}", plan(base, make()))


def nested_cases(base: str) -> Iterator[Case]:
    """Give each place in scalars, below a condition, a sort key and a ranked argument."""
    for node, name in scalar_slots():
        made: dict[t.Type, n.Scalar] = {}
        for scalar in scalars_with(node, name):
            made.setdefault(type_of(scalar), scalar)
        for kind, place in itertools.product(
            made, ("a condition", "a sort key under a limit", "an outer max")
        ):
            title = f"{node.__name__}.{name} of type {kind} in {place} over {base}"
            yield Case(title, PLACES[place][1](base, made[kind]))


def input_cases() -> Iterator[Case]:
    """Give each place of a relation in a relation."""
    for (node, name), plans in INPUTS.items():
        for index, make in enumerate(plans):
            yield Case(f"{node.__name__}.{name} {index}", make())


def slots_of(node: n.Node) -> frozenset[tuple[type[n.Node], str]]:
    """Give the places on the way to the protected table, read off the fields without the walk that is tested."""
    found: set[tuple[type[n.Node], str]] = set()
    if _asks(node):
        for f in fields(node):
            held = getattr(node, f.name)
            for part in held if isinstance(held, tuple) else (held,):
                if isinstance(part, n.Node) and _asks(part):
                    found |= {(type(node), f.name)} | slots_of(part)
    return frozenset(found)


def _asks(node: n.Node) -> bool:
    if isinstance(node, n.Scan):
        return node.table == "b"
    held = [getattr(node, f.name) for f in fields(node)]
    parts = [x for value in held for x in (value if isinstance(value, tuple) else (value,))]
    return any(_asks(part) for part in parts if isinstance(part, n.Node))


def forgetful(node: type[n.Node], name: str) -> SimpleNamespace:
    """Give the module of nodes with a walk that skips one field of one class: the planted fault."""

    def children(whole: n.Node) -> list[n.Node]:
        held = getattr(whole, name, None) if type(whole) is node else ()
        skipped = held if isinstance(held, tuple) else (held,)
        return [part for part in n.children(whole) if not any(part is x for x in skipped)]

    def walk(root: n.Node) -> Iterator[n.Node]:
        pending = [root]
        while pending:
            yield pending[-1]
            pending += children(pending.pop())

    return SimpleNamespace(**{**vars(n), "children": children, "walk": walk})
