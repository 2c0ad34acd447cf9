"""Does a relation only gain rows where a table gains some? Then a row that is replaced brings back what it takes away.

In: a relation, and which tables may differ. Out: nothing where rows may go as well, else how many rows each row of
such a table brings. A node without a rule may lose rows (I3). Analyses that price a replaced row ask here
(combined.grows).
"""

from __future__ import annotations

from collections.abc import Callable

from secant.plan import nodes as n
from secant.plan.facts.reads import expressions, reads
from secant.plan.rule_table import RuleTable
from secant.records import frozen

Varying = Callable[[str], bool]


@frozen
class Growth:
    """A relation gains rows, and loses none, when a table does."""

    each: int | None
    """Rows that each row of the table brings, whatever stands in it; None if that hangs on the row or on others."""


GROWTH: RuleTable[Callable[..., Growth | None]] = RuleTable("growth")


def growth(relation: n.Relation, varying: Varying) -> Growth | None:
    """Give how a relation grows with the rows of the tables that may differ; None if it may lose rows."""
    if not reads(relation, varying):
        return Growth(0)
    if any(reads(part, varying) for part in expressions(relation)):
        return None
    rule = GROWTH.find(relation)
    return None if rule is None else rule(relation, varying)


@GROWTH.rule(n.Scan)
def _scan(node: n.Scan, varying: Varying) -> Growth:
    return Growth(1)


@GROWTH.rule(n.Project, n.Sort)
def _alike(node: n.Project | n.Sort, varying: Varying) -> Growth | None:
    return growth(node.input, varying)


@GROWTH.rule(n.Filter, n.Distinct)
def _some(node: n.Filter | n.Distinct, varying: Varying) -> Growth | None:
    return None if growth(node.input, varying) is None else Growth(None)


@GROWTH.rule(n.Join)
def _join(node: n.Join, varying: Varying) -> Growth | None:
    # A row that comes in on the right may end the padding of one on the left.
    if node.kind not in ("inner", "cross", "left"):
        return None
    if node.kind == "left" and reads(node.right, varying):
        return None
    sides = growth(node.left, varying), growth(node.right, varying)
    return None if None in sides else Growth(None)


@GROWTH.rule(n.Union)
def _union(node: n.Union, varying: Varying) -> Growth | None:
    left, right = growth(node.left, varying), growth(node.right, varying)
    if left is None or right is None:
        return None
    bounded = node.all and left.each is not None and right.each is not None
    return Growth((left.each or 0) + (right.each or 0) if bounded else None)


@GROWTH.rule(n.Intersect)
def _intersect(node: n.Intersect, varying: Varying) -> Growth | None:
    sides = growth(node.left, varying), growth(node.right, varying)
    return None if None in sides else Growth(None)


@GROWTH.rule(n.Except)
def _except(node: n.Except, varying: Varying) -> Growth | None:
    if reads(node.right, varying) or growth(node.left, varying) is None:
        return None
    return Growth(None)
