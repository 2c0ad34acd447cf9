"""Why there is no bound: one made-up row whose partners can be copied as often as one likes.

In: a relation and the keys of its tables. Out: a witness, or None where none of this simple form is found. Nothing
private rests on it: it only makes a refusal say more than that no bound was found.
"""

from __future__ import annotations

from collections.abc import Iterator

from secant.plan import nodes as n
from secant.plan.facts.domains import region_of
from secant.plan.facts.lineage import stored_columns
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.sensitivity.smt.rules import Encoder
from secant.sensitivity.smt.search import ask, described, solver_of


@frozen
class Pump:
    """One use of the table holds the removed row, and the rows of other scans can be copied."""

    relation: n.Relation
    removed: str
    copied: frozenset[str]


def boundless(
    encoder: Encoder, relation: n.Relation, labels: frozenset[str], deadline: float
) -> str | None:
    """Give rows that show that any number of rows can differ, if the query is simple (smt.unbounded)."""
    for pump in _pumps(encoder, relation):
        if not encoder.allowance.writes(pump.relation, 0):
            return None
        solver = solver_of(encoder)
        item = encoder.item(pump.relation)
        solver.add(*item.guard, item.differs)
        for row in item.rows:
            if row.alias == pump.removed:
                solver.add(row.row == encoder.removed)
            if row.alias in pump.copied:
                others = [x.row for x in item.rows if x is not row and x.table == row.table]
                others += [encoder.removed] if row.table == encoder.table else []
                solver.add(*(row.row != other for other in others))
        if ask(encoder, solver, labels, deadline):
            return described(encoder, pump.relation, solver.model(), [item])
    return None


def _pumps(encoder: Encoder, relation: n.Relation) -> Iterator[Pump]:
    region = region_of(relation)
    cut = (n.Truncate, n.TruncateGroups)
    if any(isinstance(x, cut) for x in n.walk(relation)):
        return
    scans = [leaf for leaf in region.leaves if isinstance(leaf, n.Scan)]
    if len(scans) == len(region.leaves) == len({s.alias for s in scans}):
        yield from _of_scans(encoder, relation, None)
    elif len(region.leaves) == 1 and not region.conditions:
        (leaf,) = region.leaves
        if isinstance(leaf, n.Union) and leaf.all:
            yield from _pumps(encoder, leaf.left)
            yield from _pumps(encoder, leaf.right)
        elif isinstance(leaf, n.Distinct):
            names: list[n.Scalar] = [n.Column(f.name, f.type) for f in fields_of(leaf)]
            yield from _of_scans(encoder, leaf.input, names)
        elif isinstance(leaf, n.Aggregate) and leaf.keys:
            yield from _of_scans(encoder, leaf.input, [k.expression for k in leaf.keys])


def _of_scans(
    encoder: Encoder, relation: n.Relation, told_apart: list[n.Scalar] | None
) -> Iterator[Pump]:
    """Look for scans whose rows are told apart by values that nothing else reads."""
    region = region_of(relation)
    scans = [leaf for leaf in region.leaves if isinstance(leaf, n.Scan)]
    uses = [s for s in scans if s.table.lower() == encoder.table]
    if len(scans) != len(region.leaves) or (told_apart is not None and len(uses) > 1):
        return
    classes = _Classes(scans, region.conditions)
    for use in uses:
        copied = {s.alias: s for s in scans if s is not use}
        while True:
            free = classes.free(frozenset(copied))
            remaining = {a: s for a, s in copied.items() if _loose(encoder, s, free)}
            if remaining == copied:
                break
            copied = remaining
        if told_apart is not None:
            conditions = [region.expand(x) for x in told_apart]
            if not any(isinstance(x, n.Column) and x.name in free for x in conditions):
                continue
        if copied:
            yield Pump(relation, use.alias, frozenset(copied))


def _loose(encoder: Encoder, scan: n.Scan, free: frozenset[str]) -> bool:
    """Whether every key of the table has a column that can take a new value."""
    names = {base for name, base in stored_columns(scan).items() if name in free}
    return all(any(c in names for c, _ in key.columns) for key in encoder.keys(scan.table.lower()))


class _Classes:
    """Columns that the conditions make equal, and whether what else is asked of them leaves room for new values."""

    def __init__(self, scans: list[n.Scan], conditions: tuple[n.Scalar, ...]) -> None:
        self.owner = {f.name: s.alias for s in scans for f in s.columns}
        self.fixed = {f.name for s in scans for f in s.columns if f.type.kind == "BOOLEAN"}
        self.limited: dict[str, set[str]] = {"<": set(), ">": set()}
        self.group = {name: frozenset({name}) for name in self.owner}
        for condition in conditions:
            self._read(condition)

    def _read(self, condition: n.Scalar) -> None:
        if isinstance(condition, n.Compare):
            left, right, op = condition.left, condition.right, condition.op
            if isinstance(right, n.Column) and isinstance(left, n.Literal):
                left, right, op = right, left, op if op == "<>" else op.translate(_TURNED)
            if isinstance(left, n.Column) and isinstance(right, (n.Column, n.Literal)):
                alike = left.type.kind == right.type.kind
                if isinstance(right, n.Column) and alike and op == "=":
                    joined = self.group[left.name] | self.group[right.name]
                    self.group.update(dict.fromkeys(joined, joined))
                    return
                if alike and op == "<>":  # a new value is another one
                    return
                if isinstance(right, n.Literal) and left.type.kind in _ENDLESS and op != "=":
                    self.limited[op[0]].add(left.name)
                    return
        self.fixed |= {x.name for x in n.walk(condition) if isinstance(x, (n.Column, n.Outer))}

    def free(self, scans: frozenset[str]) -> frozenset[str]:
        """Give the columns of these scans that can all take a new value together."""
        return frozenset(
            name
            for name, group in self.group.items()
            if not group & self.fixed
            and not (group & self.limited["<"] and group & self.limited[">"])
            and all(self.owner[x] in scans for x in group)
        )


_TURNED = str.maketrans("<>", "><")
_ENDLESS = ("INTEGER", "DECIMAL", "DATE", "TIMESTAMP")
"""Kinds with more values than one would count on either side of any value."""
