"""How many rows of a relation differ between two neighboring databases: one rule for each operator.

In: a relation, and how many rows of its inputs differ (None: nothing bounds them yet). Out: how many rows of it differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secant.verifier.owners import Owners
from secant.verifier.plans import (
    Node,
    NotKnown,
    columns,
    conjuncts,
    equalities,
    number,
    renamed,
    tables,
    tables_in_subqueries,
    unsorted,
)

Number = int | None


@dataclass(frozen=True, slots=True)
class Setting:
    """What may differ: rows of some tables, or all rows of one unit."""

    varying: frozenset[str]
    owners: Owners | None
    """For a unit: whose rows are whose."""
    keys: dict[str, list[tuple[str, ...]]]
    """Table that stays as it is -> columns that identify a row, kept by the engine or claimed by the certificate."""

    def differ(self, node: Node, inputs: list[Number]) -> Number:
        """Apply the rule of one operator."""
        rule = _RULES.get(node.kind)
        if rule is None:
            raise NotKnown(f"no rule here bounds {node.kind}")
        if tables_in_subqueries(node) & self.varying and not self.local(node):
            raise NotKnown("a subquery looks at rows that may differ")
        changed = rule(self, node, inputs)
        if changed == 0 and tables(node) & self.varying:
            raise NotKnown("rows that may differ are not accounted for")
        return changed

    def count(self, node: Node) -> Number:
        """Apply the rules from the tables up."""
        node = unsorted(node)
        return self.differ(node, [self.count(x) for x in node.inputs])

    def own(self, node: Node) -> set[str]:
        """Give the columns that hold the one unit of each row; none where units are mixed or do not matter."""
        try:
            return set() if self.owners is None else self.owners.columns(node)
        except NotKnown:
            return set()

    def local(self, node: Node) -> bool:
        """Whether every row belongs to its units alone."""
        if self.owners is None or not self.owners.touched(node):
            return False
        try:
            self.owners.leads(node)
        except NotKnown:
            return False
        return True

    def at_most(self, node: Node) -> Number:
        """Give how many rows one unit has by how the relation is made; None if nothing says it."""
        node = unsorted(node)
        if node.kind in ("Filter", "Project", "TruncateGroups", "Window") and self.local(node):
            first = self._first_rows(node) if node.kind == "Filter" else None
            return self.at_most(node.one("input")) if first is None else first
        if node.kind == "Truncate" and set(node.held("owner")) <= self.own(node.one("input")):
            inner = self.at_most(node.one("input"))
            limit = int(node.held("limit"))
            return limit if inner is None else min(limit, inner)
        if node.kind == "Aggregate" and len(node.several("keys")) == 1:
            names = renamed(node, "keys")
            if set(names) & self.own(node.one("input")) and self.local(node):
                return 1
        return None

    def _first_rows(self, node: Node) -> Number:
        """Give how many rows of a unit a condition on their numbers lets through; None if it asks for none."""
        calls: dict[str, Node] = {}
        below = unsorted(node.one("input"))
        while below.kind in ("Filter", "Window"):
            if below.kind == "Window":
                calls |= {str(c.held("name")): c for c in below.several("calls")}
            below = unsorted(below.one("input"))
        own = self.own(node)
        for part in conjuncts(node.one("predicate")):
            if part.kind != "Compare" or part.held("op") not in ("=", "<="):
                continue
            name, limit = part.one("left"), part.one("right")
            if name.kind != "Column" or limit.kind != "Literal":
                continue
            call = calls.get(str(name.held("name")))
            if call is None or call.held("function") != "row_number":
                continue
            by = [p.held("name") if p.kind == "Column" else "" for p in call.several("partition")]
            if by and set(by) <= own:  # a unit's rows are numbered 1, 2, 3, …
                return 1 if part.held("op") == "=" else max(0, int(number(limit)))
        return None


def _scan(s: Setting, node: Node, inputs: list[Number]) -> Number:
    if str(node.held("table")).lower() not in s.varying:
        return 0
    return 1 if s.owners is None else None


def _nothing(s: Setting, node: Node, inputs: list[Number]) -> Number:
    return 0


def _same(s: Setting, node: Node, inputs: list[Number]) -> Number:
    return inputs[0]


def _twice(s: Setting, node: Node, inputs: list[Number]) -> Number:
    # The row of a group goes, and another one comes.
    return None if inputs[0] is None else 2 * inputs[0]


def _still(s: Setting, node: Node, inputs: list[Number]) -> Number:
    if inputs[0] != 0:
        raise NotKnown(f"{node.kind} over rows that differ")
    return 0


def _sum(s: Setting, node: Node, inputs: list[Number]) -> Number:
    finite = [x for x in inputs if x is not None]
    return sum(finite) if len(finite) == len(inputs) else None


def _truncate(s: Setting, node: Node, inputs: list[Number]) -> Number:
    (inner,), owner = inputs, node.held("owner")
    if len(owner) == 1 and owner[0] in s.own(node.one("input")):
        limit = int(node.held("limit"))
        return limit if inner is None else min(limit, inner)
    return None if inner is None else 2 * inner  # a new row can push another one out


def _truncate_groups(s: Setting, node: Node, inputs: list[Number]) -> Number:
    owner = node.held("owner")
    if len(owner) == 1 and owner[0] in s.own(node.one("input")):
        return inputs[0]
    return _still(s, node, inputs)


def _window(s: Setting, node: Node, inputs: list[Number]) -> Number:
    if s.local(node):  # a unit's rows come and go together, and no others look at them
        return inputs[0]
    return _still(s, node, inputs)


def _join(s: Setting, node: Node, inputs: list[Number]) -> Number:
    left, right = inputs
    kind = node.held("kind")
    if kind not in ("inner", "left", "cross"):
        raise NotKnown(f"{kind} joins are not known here")
    if s.local(node):
        return None
    if left == 0 and right == 0:
        return 0
    equal = equalities(node)
    if right == 0 and left is not None and _met_once(s, node.one("right"), {b for _, b in equal}):
        return left
    outer = kind == "left"
    if left == 0 and not outer and _met_once(s, node.one("left"), {a for a, _ in equal}):
        return right
    if left == 0 and outer and right and _met_once(s, node.one("left"), {a for a, _ in equal}):
        return 2 * right  # each joined row, and the padded one in whose place it stands
    if left is None or right is None:
        raise NotKnown("nothing bounds how many joined rows differ")
    if _one_of_each(node.one("left"), {a for a, _ in equal}) and _one_of_each(
        node.one("right"), {b for _, b in equal}
    ):
        # A row that differs meets one row; a row that stays is padded where the one that it meets has gone.
        return left + right * (2 if outer else 1)
    raise NotKnown("a row may meet many rows")


def _one_of_each(side: Node, compared: set[str]) -> bool:
    """Whether an operator of the plan lets one row through for each value of the compared columns, whatever the data.

    NULLs may be many: they meet nothing.
    """
    side = unsorted(side)
    if side.kind == "Truncate" and side.held("limit") == 1 and set(side.held("owner")) <= compared:
        return True
    if side.kind in ("Filter", "Truncate", "TruncateGroups"):
        return _one_of_each(side.one("input"), compared)
    if side.kind == "Project":
        below = {old for old, new in renamed(side, "items").items() if compared & set(new)}
        return _one_of_each(side.one("input"), below)
    if side.kind == "Distinct":
        return {name for name, _ in columns(side)} <= compared or _one_of_each(
            side.one("input"), compared
        )
    if side.kind == "Aggregate":
        return {k.held("name") for k in side.several("keys")} <= compared
    return False


def _met_once(s: Setting, side: Node, compared: set[str]) -> bool:
    """Whether the compared columns identify a row of a side that stays as it is."""
    return any(key <= compared for key in identifying(s, side))


def identifying(s: Setting, node: Node) -> list[frozenset[str]]:
    """Give sets of columns that identify a row of a relation that stays as it is."""
    node = unsorted(node)
    if node.kind == "Scan":
        alias = str(node.held("alias"))
        names = {name[len(alias) + 1 :].lower(): name for name, _ in columns(node)}
        declared = s.keys.get(str(node.held("table")).lower(), [])
        return [frozenset(names[c] for c in key) for key in declared if set(key) <= set(names)]
    if node.kind in ("Filter", "Distinct", "Truncate"):
        keys = identifying(s, node.one("input"))
        whole = frozenset(name for name, _ in columns(node))
        return [*keys, whole] if node.kind == "Distinct" else keys
    if node.kind == "Project":
        above = renamed(node, "items")
        inner = identifying(s, node.one("input"))
        return [frozenset(above[c][0] for c in key) for key in inner if key <= set(above)]
    if node.kind == "Aggregate":
        return [frozenset(k.held("name") for k in node.several("keys"))]
    return []


_RULES: dict[str, Callable[[Setting, Node, list[Number]], Number]] = {
    "Scan": _scan,
    "Values": _nothing,
    "Released": _nothing,
    "Filter": _same,
    "Project": _same,
    "Distinct": _same,
    "Aggregate": _twice,
    "Join": _join,
    "Union": _sum,
    "Intersect": _sum,
    "Except": _sum,
    "Truncate": _truncate,
    "TruncateGroups": _truncate_groups,
    "Limit": _still,
    "Window": _window,
}


def setting_of(
    policy: dict[str, Any], protection: dict[str, Any], claims: list[Any], covered: set[str]
) -> Setting:
    """Give what may differ under a protection, and which keys of other tables may be used."""
    owners = Owners.of(policy, protection) if protection["kind"] == "unit" else None
    keys: dict[str, list[tuple[str, ...]]] = {}
    for table, unique in policy["unique"].items():
        keys.setdefault(table, []).extend(tuple(key) for key in unique)
    for table, claimed, trust in claims:
        if trust in ("checked", "accepted"):
            keys.setdefault(table, []).append(tuple(claimed))
    return Setting(frozenset(covered), owners, keys)
