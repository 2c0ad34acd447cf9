"""Filters and joins over Python rows, without writing out every combination first.

In: relations, and conditions that all must hold. Out: functions that give the rows. Never here: the
NULL rows of outer joins, which the caller adds. A condition `a = b` with a side on either relation
is looked up in a dictionary; every other condition is tested on the combined row. That is the whole
difference to testing all conditions on all combinations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from secant.plan import nodes as n
from secant.plan.evaluate import values as v
from secant.plan.evaluate.scalars import Code, Frame, Row, RowLayout, code, widened
from secant.plan.facts.scopes import Borrowed
from secant.plan.typing import Fields
from secant.records import frozen
from secant.schema.types import Type, unify

Rows: TypeAlias = Callable[[Frame], list[Row]]


@frozen
class Use:
    """What a condition reads: columns of these relations, and whether anything else."""

    columns: frozenset[str]
    closed: bool
    """Whether it reads no column of an enclosing query."""
    plain: bool
    """Whether it holds no subquery."""


@frozen
class Pairing:
    """How rows of a right side are found for a left row."""

    left_keys: tuple[Code, ...]
    right_keys: tuple[Code, ...]
    early: tuple[Code, ...]
    """Conditions on the right row alone."""
    late: tuple[Code, ...]
    """Conditions on the combined row."""
    steady: bool
    """Whether right keys and early conditions are the same in every frame."""

    def prepare(self, rows: list[Row], frame: Frame) -> Callable[[Row], list[Row]]:
        """Give the function that finds the combined rows for a left row."""
        index = self._index(rows, frame)

        def matches(row: Row) -> list[Row]:
            key = _key(self.left_keys, row, frame)
            others = () if key is None else index.get(key, ())
            pairs = (row + other for other in others)
            return [pair for pair in pairs if all(c(pair, frame) is True for c in self.late)]

        return matches

    def _index(self, rows: list[Row], frame: Frame) -> dict[Any, list[Row]]:
        # Rows that are kept for the whole evaluation are indexed once for all outer values.
        cached = frame.answers.get(("index", id(self), id(rows)))
        if cached is not None:
            rows_by_key: dict[Any, list[Row]] = cached[0]
            return rows_by_key
        index: dict[Any, list[Row]] = {}
        for row in rows:
            if all(condition(row, frame) is True for condition in self.early):
                key = _key(self.right_keys, row, frame)
                if key is not None:
                    index.setdefault(key, []).append(row)
        if self.steady:
            # The objects are kept beside the index, so that their ids stay theirs.
            frame.answers["index", id(self), id(rows)] = index, rows, self
        return index


def _key(codes: tuple[Code, ...], row: Row, frame: Frame) -> tuple[Any, ...] | None:
    """Give the values to look up; None if one is NULL, which equals nothing."""
    values = [part(row, frame) for part in codes]
    return None if None in values else tuple(map(v.order_key, values))


@frozen
class Joiner:
    """Puts filters and joins together; what it needs to know of the plan is passed in."""

    place: Callable[[Fields], RowLayout]
    fields: Callable[[n.Relation], Fields]
    borrowed: Borrowed

    def use(self, scalar: n.Scalar, visible: frozenset[str]) -> Use:
        """Find what a scalar reads."""
        columns, closed, plain = set(), True, True
        for part in n.reached(scalar, lambda node: not isinstance(node, n.Relation)):
            if isinstance(part, n.Column):
                columns.add(part.name)
            elif isinstance(part, n.Relation):
                needs = self.borrowed[part].keys()
                columns |= needs & visible
                closed, plain = closed and needs <= visible, False
            closed = closed and not isinstance(part, n.Outer)
        return Use(frozenset(columns), closed, plain)

    def pairing(self, left: Fields, right: Fields, conditions: tuple[n.Scalar, ...]) -> Pairing:
        """Sort the conditions of one join by where they can be tested."""
        ours, theirs = (frozenset(column.name for column in side) for side in (left, right))
        keys: list[tuple[n.Scalar, n.Scalar, Type]] = []
        early: list[n.Scalar] = []
        late: list[n.Scalar] = []
        for condition in conditions:
            use = self.use(condition, ours | theirs)
            sides = self._equal_sides(condition, ours, theirs)
            if sides is not None:
                keys.append(sides)
            elif use.columns <= theirs and use.columns and use.plain and use.closed:
                early.append(condition)
            else:
                late.append(condition)
        late.sort(key=lambda condition: not self.use(condition, ours | theirs).plain)
        on_left, on_right, on_both = self.place(left), self.place(right), self.place(left + right)
        return Pairing(
            tuple(widened(a, target, on_left) for a, _, target in keys),
            tuple(widened(b, target, on_right) for _, b, target in keys),
            tuple(code(condition, on_right) for condition in early),
            tuple(code(condition, on_both) for condition in late),
            all(self.use(b, theirs).closed for _, b, _ in keys),
        )

    def _equal_sides(
        self, condition: n.Scalar, ours: frozenset[str], theirs: frozenset[str]
    ) -> tuple[n.Scalar, n.Scalar, Type] | None:
        """Split `a = b` into the side to look up and the side to index, with their common type."""
        if not isinstance(condition, n.Compare) or condition.op != "=":
            return None
        for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
            first, second = self.use(a, ours | theirs), self.use(b, ours | theirs)
            fits = first.columns <= ours and second.columns <= theirs and second.columns
            if fits and first.plain and second.plain:
                layout = self.place(())
                target = unify(layout.type_of(a), layout.type_of(b))
                return None if target is None else (a, b, target)
        return None

    def combine(self, leaves: list[tuple[n.Relation, Rows]], conditions: list[n.Scalar]) -> Rows:
        """Join the leaves one by one, each with all conditions that can be tested by then."""
        visible = frozenset(c.name for leaf, _ in leaves for c in self.fields(leaf))
        waiting = [(condition, self.use(condition, visible)) for condition in conditions]
        joined: Fields = ()
        steps: list[tuple[Rows, Pairing]] = []
        left = list(leaves)
        while left:
            leaf, rows = left.pop(self._next(left, joined, waiting))
            fields = self.fields(leaf)
            names = frozenset(c.name for c in joined + fields)
            ready = tuple(c for c, use in waiting if use.columns <= names)
            waiting = [(c, use) for c, use in waiting if not use.columns <= names]
            steps.append((rows, self.pairing(joined, fields, ready)))
            joined += fields
        columns = [c.name for leaf, _ in leaves for c in self.fields(leaf)]
        index_of = {column.name: index for index, column in enumerate(joined)}
        order = [index_of[name] for name in columns]
        in_order = order == sorted(order)

        def run(frame: Frame) -> list[Row]:
            result: list[Row] = [()]
            for rows, pairing in steps:
                matches = pairing.prepare(rows(frame), frame) if result else None
                result = [pair for row in result for pair in matches(row)] if matches else []
            if in_order:
                return result
            return [tuple(row[position] for position in order) for row in result]

        return run

    def _next(
        self,
        leaves: list[tuple[n.Relation, Rows]],
        joined: Fields,
        waiting: list[tuple[n.Scalar, Use]],
    ) -> int:
        """Choose the first relation that an equality ties to what is joined, else the first one."""
        ours = frozenset(column.name for column in joined)
        for index, (leaf, _) in enumerate(leaves):
            theirs = frozenset(column.name for column in self.fields(leaf))
            for condition, use in waiting:
                tied = use.columns & ours and self._equal_sides(condition, ours, theirs)
                if tied:
                    return index
        return 0
