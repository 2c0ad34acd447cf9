"""Which part of a table a plan looks at: what comparisons with constants say of the columns of its rows.

Rests on workflow.parts.

In: a relation and a table. Out: for each scan of the table the values of columns that a row must have to matter at all.
Two plans whose parts share no value of some column never look at the same row. What is not understood restricts
nothing. Never here: data.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_columns
from secant.plan.facts.reads import expressions
from secant.plan.rewrites.rewrite import substitute
from secant.records import frozen

Value: TypeAlias = Fraction | str
_ORDERED = ("INTEGER", "DECIMAL", "DOUBLE", "DATE")


@frozen
class Values:
    """Values that a column may have: some that are listed, or those between two ends."""

    listed: frozenset[Value] | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = False
    high_open: bool = False

    def holds(self, value: Value) -> bool:
        """Whether a value is among them."""
        if self.listed is not None:
            return value in self.listed
        if not isinstance(value, Fraction):
            return True
        above = self.low is None or value > self.low or (value == self.low and not self.low_open)
        below = self.high is None or value < self.high
        return above and (below or (value == self.high and not self.high_open))

    def apart(self, other: Values) -> bool:
        """Whether no value is among both."""
        if self.listed is not None:
            return not any(other.holds(v) for v in self.listed)
        if other.listed is not None:
            return other.apart(self)
        return _ends_before(self, other) or _ends_before(other, self)


def _ends_before(one: Values, two: Values) -> bool:
    if one.high is None or two.low is None:
        return False
    return one.high < two.low or (one.high == two.low and (one.high_open or two.low_open))


Part = dict[str, tuple[Values, ...]]
"""Column of a table -> what must hold of it, all together."""


def parts_read(relation: n.Relation, table: str) -> list[Part]:
    """Give for each scan of a table the part of it that matters."""
    return [part for scan, part in _scans(relation, ()) if scan.table.lower() == table]


def disjoint(one: list[Part], two: list[Part]) -> bool:
    """Whether one column tells all parts of one plan from all parts of another: no row is looked at by both."""
    columns = {c for part in (*one, *two) for c in part}
    return any(all(_disjoint(p.get(c), q.get(c)) for p in one for q in two) for c in columns)


def _disjoint(one: tuple[Values, ...] | None, two: tuple[Values, ...] | None) -> bool:
    return any(a.apart(b) for a in one or () for b in two or ())


def _scans(node: n.Node, conditions: tuple[n.Scalar, ...]) -> Iterator[tuple[n.Scan, Part]]:
    """Follow what must hold of a row down to the scans; a row for which it does not hold is left out above."""
    if isinstance(node, n.Scan):
        yield node, _part(node, conditions)
        return
    if isinstance(node, n.Relation):
        for part in expressions(node):
            yield from _below(part)
    if isinstance(node, n.Filter):
        yield from _scans(node.input, (*conditions, *n.conjuncts(node.predicate)))
    elif isinstance(node, n.Project):
        columns = {i.name: i.expression for i in node.items}
        yield from _scans(node.input, tuple(substitute(c, columns) for c in conditions))
    elif isinstance(node, n.Sort):
        yield from _scans(node.input, conditions)
    elif isinstance(node, n.Join) and node.kind != "left":
        both = (*conditions, *n.conjuncts(node.condition))
        yield from _scans(node.left, both)
        yield from _scans(node.right, both)
    else:  # groups, limits, set operations, padding: what stands above them says nothing of single rows
        for child in n.children(node):
            if isinstance(child, n.Relation):
                yield from _scans(child, ())


def _below(part: n.Node) -> Iterator[tuple[n.Scan, Part]]:
    """Find the scans of subqueries."""
    if isinstance(part, n.Relation):
        yield from _scans(part, ())
        return
    for child in n.children(part):
        yield from _below(child)


def _part(scan: n.Scan, conditions: tuple[n.Scalar, ...]) -> Part:
    names = stored_columns(scan)
    part: Part = {}
    for condition in conditions:
        values = _values_compared(condition)
        if values is not None and values[0] in names:
            column = names[values[0]]
            part[column] = (*part.get(column, ()), values[1])
    return part


def _values_compared(condition: n.Scalar) -> tuple[str, Values] | None:
    """Read a comparison of a column with constants of its own type; None for anything else."""
    if isinstance(condition, n.InList) and isinstance(condition.operand, n.Column):
        column = condition.operand
        values = [_constant(column, item) for item in condition.items]
        present = frozenset(v for v in values if v is not None)
        return (column.name, Values(present)) if None not in values else None
    if not isinstance(condition, n.Compare):
        return None
    op, left, right = condition.op, condition.left, condition.right
    if isinstance(right, n.Column):
        op, left, right = _TURNED.get(op, op), right, left
    value = _constant(left, right) if isinstance(left, n.Column) else None
    if value is None or not isinstance(left, n.Column):
        return None
    if op == "=":
        return left.name, Values(frozenset({value}))
    if left.type.kind not in _ORDERED or not isinstance(value, Fraction):
        return None  # the order of texts hangs on their collation
    if op in ("<", "<="):
        return left.name, Values(high=value, high_open=op == "<")
    if op in (">", ">="):
        return left.name, Values(low=value, low_open=op == ">")
    return None


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _constant(column: n.Column, scalar: n.Scalar) -> Value | None:
    """Read a constant that the engine compares exactly with a column; None if it may be rounded first."""
    if not isinstance(scalar, n.Literal):
        return None
    kinds = column.type.kind, scalar.type.kind
    if kinds[0] != kinds[1] and kinds != ("DECIMAL", "INTEGER"):
        return None
    return folded(scalar.value)


def folded(value: object) -> Value | None:
    """Give a value so that two are equal if an engine may take them for equal; None if that is not known."""
    if isinstance(value, datetime.datetime):
        return None
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    if isinstance(value, (int, Decimal)) or (isinstance(value, float) and abs(value) < 1e300):
        return Fraction(value)
    return _without_case(value) if isinstance(value, str) else None


def _without_case(text: str) -> str:
    """Give what texts have in common that a collation without case or accents takes for equal."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold().strip()
