"""Whose rows are these? By the definition: a row belongs to the units that its references lead to.

In: the owner's references and a plan. Out: which columns tell the one unit of a row. If a unit is taken out of the
database, exactly the rows go that belong to nobody else; an operator is known here only if that stays so above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from secant.verifier.plans import (
    Node,
    NotKnown,
    columns,
    conjuncts,
    equalities,
    renamed,
    tables,
    tables_in_subqueries,
    unsorted,
)

Lead = tuple[str, str, bool]
"""(table.column, a column here, all): the row belongs to the units of the rows with that value; to all, or to some."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The way from rows to units of one protection."""

    unit: tuple[str, str]
    references: dict[str, dict[str, tuple[str, str]]]

    @classmethod
    def of(cls, policy: dict[str, Any], protection: dict[str, Any]) -> Owners:
        """Read the references of a policy."""
        references = {}
        for table, facts in policy["tables"]["map"]:
            references[table] = {c: (p, k) for c, (p, k) in facts["references"]["map"]}
        table, column = protection["unit"]
        return cls((table, column), references)

    @property
    def reached(self) -> set[str]:
        """Give the tables whose rows belong to units."""
        linked, more = {self.unit[0]}, True
        while more:
            new = {
                t
                for t, ways in self.references.items()
                if t not in linked and any(p in linked for p, _ in ways.values())
            }
            linked, more = linked | new, bool(new)
        return linked

    def columns(self, node: Node) -> set[str]:
        """Give the columns that hold the id of the one unit of each row; none if units do not matter."""
        return {c for via, c, _ in self.leads(node) if via == ".".join(self.unit)}

    def touched(self, node: Node) -> bool:
        """Whether rows of units are read."""
        return bool(tables(node) & self.reached)

    def leads(self, node: Node) -> frozenset[Lead]:
        """Give all ways from the columns of a relation to units, or raise NotKnown where units are mixed."""
        node = unsorted(node)
        if not self.touched(node):
            return frozenset()
        if tables_in_subqueries(node) & self.reached:
            self._check_condition(node)
        rule = _RULES.get(node.kind)
        if rule is None:
            raise NotKnown(f"whose rows {node.kind} gives is not known here")
        return frozenset(rule(self, node))

    def _check_condition(self, node: Node) -> None:
        """A condition may ask whether there are rows of the same units: they stay as long as the row that asks does.

        The rows that are asked about belong to all units that the outer column leads to, and the row that asks to some.
        """
        if node.kind != "Filter":
            raise NotKnown("a subquery looks at rows of units")
        outer = {(via, c) for via, c, _ in self.leads(node.one("input"))}
        for part in conjuncts(node.one("predicate")):
            condition = part.one("operand") if part.kind == "Not" else part
            if not tables(part) & self.reached:
                continue
            if condition.kind != "Exists" or not self._tied(condition.one("relation"), outer):
                raise NotKnown("a subquery looks at rows of units")

    def _tied(self, relation: Node, outer: set[tuple[str, str]]) -> bool:
        relation = unsorted(relation)
        while relation.kind == "Project":
            if tables_in_subqueries(relation):
                return False
            relation = unsorted(relation.one("input"))
        if relation.kind != "Filter" or tables_in_subqueries(relation):
            return False
        whole = {(via, c) for via, c, all_of in self.leads(relation.one("input")) if all_of}
        for part in conjuncts(relation.one("predicate")):
            if part.kind != "Compare" or part.held("op") != "=":
                continue
            sides = {part.one(s).kind: part.one(s) for s in ("left", "right")}
            if set(sides) != {"Column", "Outer"}:
                continue
            here, there = sides["Column"], sides["Outer"]
            if here.held("type") != there.held("type") or here.held("type") == "DOUBLE":
                continue
            if any(
                (via, there.held("name")) in outer and c == here.held("name") for via, c in whole
            ):
                return True
        return False


def _scan(o: Owners, node: Node) -> set[Lead]:
    table, alias = str(node.held("table")).lower(), str(node.held("alias"))
    names = {name[len(alias) + 1 :].lower(): name for name, _ in columns(node)}
    reached = o.reached
    keys = {k for ways in o.references.values() for p, k in ways.values() if p == table}
    leads: set[Lead] = {(f"{table}.{c}", names[c], False) for c in keys if c in names}
    if table == o.unit[0]:
        leads = {x for x in leads if x[0] != ".".join(o.unit)}
        return leads | {(".".join(o.unit), names[c], True) for c in o.unit[1:] if c in names}
    ways = {
        c: x for c, x in o.references.get(table, {}).items() if x[0] in reached and x[0] != table
    }
    if len(ways) != 1:
        raise NotKnown(f"rows of {table} lead to units along several references")
    ((column, parent),) = ways.items()
    return leads | ({(".".join(parent), names[column], True)} if column in names else set())


def _same(o: Owners, node: Node) -> set[Lead]:
    return set(o.leads(node.one("input")))


def _project(o: Owners, node: Node) -> set[Lead]:
    names = renamed(node, "items")
    inner = o.leads(node.one("input"))
    return {(via, new, s) for via, c, s in inner for new in names.get(c, ())}


def _distinct(o: Owners, node: Node) -> set[Lead]:
    apart: set[Lead] = {x for x in o.leads(node.one("input")) if x[2]}
    if not apart:
        raise NotKnown("DISTINCT merges rows of units")
    return apart


def _aggregate(o: Owners, node: Node) -> set[Lead]:
    names = renamed(node, "keys")
    inner = o.leads(node.one("input"))
    apart: set[Lead] = {(via, new, s) for via, c, s in inner for new in names.get(c, ()) if s}
    if not apart:
        raise NotKnown("groups mix units")
    return apart


def _truncate(o: Owners, node: Node) -> set[Lead]:
    if len(node.held("owner")) != 1 or node.held("owner")[0] not in o.columns(node.one("input")):
        raise NotKnown("rows are limited by something else than their unit")
    return set(o.leads(node.one("input")))


PLAIN_CALLS = frozenset({
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "count", "min", "max",
})  # fmt: skip
"""Calls whose value is a function of the rows of their window; ties are broken by all columns."""


def _window(o: Owners, node: Node) -> set[Lead]:
    """Every call looks at rows of one set of units only, which stay or go together; rows of nobody never go."""
    inner = o.leads(node.one("input"))
    apart = {c for _, c, all_of in inner if all_of}
    for call in node.several("calls"):
        if call.held("function") not in PLAIN_CALLS:
            raise NotKnown(f"{call.held('function')} over a window is not known here")
        by = {p.held("name") for p in call.several("partition") if p.kind == "Column"}
        if not by & apart:
            raise NotKnown("a window holds rows of different units")
    return set(inner)


def _union(o: Owners, node: Node) -> set[Lead]:
    sides: list[set[Lead]] = []
    for name in ("left", "right"):
        side = node.one(name)
        if not o.touched(side):
            raise NotKnown("one side of a union belongs to nobody")
        pairs = list(zip(columns(side), columns(node), strict=True))
        names = {a[0]: b[0] for a, b in pairs if a[1] == b[1]}
        sides.append({(via, names[c], s) for via, c, s in o.leads(side) if s and c in names})
    both: set[Lead] = sides[0] & sides[1]
    if not both:
        raise NotKnown("the sides of a union do not hold the unit in one column")
    return both


def _join(o: Owners, node: Node) -> set[Lead]:
    kind = node.held("kind")
    if kind not in ("inner", "left", "cross"):
        raise NotKnown(f"{kind} joins are not known here")
    left, right = node.one("left"), node.one("right")
    if not o.touched(right):
        return set(o.leads(left))
    if not o.touched(left):
        if kind == "left":
            raise NotKnown("padded rows depend on all units")
        return set(o.leads(right))
    unit, equal = ".".join(o.unit), equalities(node)
    a, b = o.leads(left), o.leads(right)
    for via, here, all_here in a:
        for other, there, all_there in b:
            if via != other or (here, there) not in equal:
                continue
            if via == unit or (all_here and all_there):
                return set(a) if kind == "left" else {*a, *b}
            if all_there:  # rows on the right refer to rows on the left
                return set(a) if kind == "left" else {*a, *_weak(b, unit)}
            if all_here and kind != "left":
                return {*_weak(a, unit), *b}
    raise NotKnown("the sides of a join are not tied by their unit")


def _weak(leads: frozenset[Lead], unit: str) -> set[Lead]:
    return {(via, c, s and via == unit) for via, c, s in leads}


_RULES = {
    "Scan": _scan,
    "Filter": _same,
    "Project": _project,
    "Distinct": _distinct,
    "Aggregate": _aggregate,
    "Truncate": _truncate,
    "TruncateGroups": _truncate,
    "Window": _window,
    "Union": _union,
    "Join": _join,
}
