"""Bring each row's owner along: carry the unit's column through the plan, look it up, limit rows where units mix.

In: the rows of an aggregate, a unit protection. Out: the same rows with the unit's own column among them, if every row
belongs to single units; else, below the operator that mixes units, each unit's first rows only. Adding a column to a
projection changes no row; the inner joins drop rows that have no owner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns
from secant.plan.facts.ownership import Ownership, Ownerships
from secant.plan.rewrites.measures import Problem, Stopped
from secant.plan.rewrites.rewrite import with_parts
from secant.plan.rewrites.semijoins import joined
from secant.plan.typing import fields_of
from secant.plural import first
from secant.policy.policy import Offers
from secant.schema import types as t
from secant.schema.catalog import Catalog

LARGEST_AMOUNT = 10**6  # no epsilon is larger


@dataclass
class OwnerColumns:
    """Brings owners along in one release; counts the tables that it joins, so that their aliases differ."""

    name: str
    catalog: Catalog
    notes: list[str]
    lookups: int = 0
    renamed: int = field(default=0)

    def bring(self, rows: n.Relation, ownerships: Ownerships) -> n.Relation:
        """Give the rows with the unit's column, or with every mixing operator standing on limited rows."""
        joined_rows = joined(rows, self.name, ownerships)
        if joined_rows is not rows:
            self.notes.append(
                "a subquery about other units' rows is asked as a join on a key (rewrite.exists)"
            )
        rows = self._attached(self._carried(joined_rows, ownerships), ownerships)
        return self._limited(rows, ownerships)

    # ── carry ────────────────────────────────────────────────────────────────────────────────────

    def _carried(self, rows: n.Relation, o: Ownerships) -> n.Relation:
        """Let projections and UNION ALL keep the columns that lead to the unit."""
        if isinstance(rows, (n.Filter, n.Sort, n.Window)):
            return with_parts(rows, input=self._carried(rows.input, o))
        if isinstance(rows, n.Join):
            left, right = self._carried(rows.left, o), self._carried(rows.right, o)
            if {f.name for f in fields_of(left)} & {f.name for f in fields_of(right)}:
                right = rows.right  # one query used on both sides: its column can be carried once
            return with_parts(rows, left=left, right=right)
        if isinstance(rows, n.Project):
            inner = self._carried(rows.input, o)
            kinds = {f.name: f.type for f in fields_of(inner)}
            columns = {x.column for x in o.of(inner).terms} - {i.name for i in rows.items}
            extra = tuple(n.Named(c, n.Column(c, kinds[c])) for c in sorted(columns))
            return with_parts(rows, input=inner, items=rows.items + extra)
        if isinstance(rows, n.Union) and rows.all:
            return self._carried_union(rows, o)
        return rows

    def _carried_union(self, rows: n.Union, o: Ownerships) -> n.Relation:
        sides = []
        for side in (rows.left, rows.right):
            carried = self._attached(self._carried(side, o), o)
            column = unit_column(o.of(carried), o)
            if column is None:
                return rows
            sides.append((side, carried, column))
        kinds = {f.name: f.type for _, relation, _ in sides for f in fields_of(relation)}
        if kinds[sides[0][2]] != kinds[sides[1][2]]:
            return rows
        self.renamed += 1
        owner = n.Field(f"{self.name}.union{self.renamed}.owner", kinds[sides[0][2]])
        inputs = []
        for index, (side, carried, column) in enumerate(sides):
            items = [n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(side)]
            unit = n.Named(f"{owner.name}{index}", n.Column(column, kinds[column]))
            inputs.append(n.Project(carried, (*items, unit)))
        return n.Union(inputs[0], inputs[1], True, (*rows.columns, owner), rows.span)

    # ── look up ──────────────────────────────────────────────────────────────────────────────────

    def _attached(self, rows: n.Relation, o: Ownerships) -> n.Relation:
        """Join the parents that lead from the rows to the unit's own column."""
        for _ in range(20):
            ownership = o.of(rows)
            if not ownership.local or unit_column(ownership, o) is not None:
                return rows
            usable = sorted(
                (x for x in ownership.terms if x.shared), key=lambda x: (x.via, x.column)
            )
            if not usable:
                return rows
            term = usable[0]
            parent, key = term.via.rsplit(".", 1)
            scan = self._parent(parent)
            kinds = {f.name: f.type for f in fields_of(rows)}
            here = n.Column(term.column, kinds[term.column])
            _, (exact,) = self.catalog.spelled(parent, [key])
            there = next(f for f in scan.columns if f.name == f"{scan.alias}.{exact}")
            condition = n.Compare("=", here, n.Column(there.name, there.type))
            rows = n.Join("inner", rows, scan, condition)
            self.notes.append(
                f"owner looked up: {term.column.rsplit('.', 1)[-1]} -> {parent}.{key}"
            )
        return rows

    def _parent(self, table: str) -> n.Scan:
        parent = self.catalog.table(table)
        assert parent is not None, "a reference leads to a table that the catalog lacks"
        alias = f"{self.name}.owner{self.lookups}.{table}"
        self.lookups += 1
        return n.Scan(
            parent.name, alias, tuple(n.Field(f"{alias}.{c}", kind) for c, kind in parent.columns)
        )

    # ── personal amounts ─────────────────────────────────────────────────────────────────────────

    def with_copies(
        self, rows: n.Relation, unit: str, column: tuple[str, str], offers: Offers
    ) -> tuple[n.Relation, str]:
        """Look up how often the rows of each unit are to be counted; rows of those who give less than all offers go.

        The least that stands beside the unit's id counts, so that nothing rests on the id being a key.
        """
        scan = self._parent(column[0])
        table = scan.alias.rsplit(".", 1)[-1]
        fields = {f.name.rsplit(".", 1)[-1].lower(): f for f in scan.columns}
        own, offered = fields[column[1]], fields[offers.column[1]]
        key = n.Named(f"{scan.alias}.unit", n.Column(own.name, own.type))
        least = n.Aggregation(f"{scan.alias}.gives", "min", n.Column(offered.name, offered.type))
        amounts = n.Aggregate(scan, (key,), (least,))
        kinds = {f.name: f.type for f in fields_of(rows)}
        there, gives = n.Column(key.name, own.type), n.Column(least.name, offered.type)
        joined = n.Join("inner", rows, amounts, n.Compare("=", n.Column(unit, kinds[unit]), there))
        pairs = zip(offers.amounts, offers.copies, strict=True)
        branches = tuple(
            n.Branch(n.Compare(">=", gives, number(amount)), n.Literal(copies, t.INTEGER))
            for amount, copies in reversed(list(pairs))
        )
        copies = n.Named(f"{scan.alias}.copies", n.Case(branches, n.Literal(0, t.INTEGER)))
        # NaN is above all numbers in an engine: what is no amount gives nothing.
        most = n.Compare("<=", gives, number(Fraction(LARGEST_AMOUNT)))
        enough = n.And((n.Compare(">=", gives, number(offers.amounts[0])), most))
        columns = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(rows))
        self.notes.append(f"epsilon of each unit looked up: {table}.{offers.column[1]}")
        return n.Project(n.Filter(joined, enough), (*columns, copies)), copies.name

    # ── limit ────────────────────────────────────────────────────────────────────────────────────

    def _limited(self, rows: n.Relation, o: Ownerships) -> n.Relation:
        """Below an operator that mixes units, and beside what it leads to, keep each unit's first rows."""
        blocked = o.of(rows).blocked
        if blocked is None:
            return rows

        def change(node: n.Node) -> n.Node:
            if not isinstance(node, n.Relation):
                return node
            if o.of(node).blocked is not None:
                return self._limited(node, o)
            if not o.of(node).local:
                return node  # public, or nothing that could be limited
            key = keys.get(node)
            limited = self._truncated(node, o)
            return limited if key is None else self._one_of_each(limited, key)

        keys = _declared_keys(rows, o) if isinstance(rows, n.Join) else {}
        try:
            return n.rebuild(rows, change)
        except Stopped:
            if isinstance(rows, n.Window):  # no limit would do: say which windows are possible
                problem = Problem(blocked.rule, blocked.node, blocked.reason, blocked.hint)
                raise Stopped(problem) from None
            raise

    def _one_of_each(self, rows: n.Relation, key: frozenset[str]) -> n.Relation:
        """Keep one row of each value of a declared key, which is not believed: then a row meets one row at most."""
        names = ", ".join(sorted(c.rsplit(".", 1)[-1] for c in key))
        self.notes.append(f"one row for each {names}, as its key is declared")
        return n.Truncate(rows, tuple(sorted(key)), (), 1)

    def _truncated(self, rows: n.Relation, o: Ownerships) -> n.Relation:
        carried = self._attached(self._carried(rows, o), o)
        owned = o.of(carried)
        column = unit_column(owned, o)
        if column is None:
            return rows
        limit = rows_of_unit(rows, owned, o)
        self.notes.append(
            f"{first(limit, 'row')} of a unit, before units are mixed ({o.paths.protection.name})"
        )
        order = tuple(c for c in min((sorted(k) for k in owned.keys), key=len, default=[]))
        names = {f.name for f in fields_of(carried)}
        truncated = n.Truncate(carried, (column,), tuple(c for c in order if c in names), limit)
        columns = tuple(n.Named(f.name, n.Column(f.name, f.type)) for f in fields_of(rows))
        return n.Project(truncated, columns)


def _declared_keys(join: n.Join, o: Ownerships) -> dict[n.Relation, frozenset[str]]:
    """Give for each side the declared key that a join compares, if it compares one of both."""
    keys: dict[n.Relation, frozenset[str]] = {}
    equal = equal_columns(join)
    for index, side in enumerate((join.left, join.right)):
        compared = {pair[index] for pair in equal}
        key = next((k for k in o.of(side).keys if k and k <= compared), None)
        if key is None:
            return {}
        keys[side] = key
    return keys


def number(amount: Fraction) -> n.Scalar:
    """Write an amount exactly, as it stands in the policy."""
    digits = Decimal(amount.numerator) / Decimal(amount.denominator)
    scale = max(0, -int(digits.as_tuple().exponent))
    return n.Literal(digits, t.decimal(len(digits.as_tuple().digits) + scale, scale))


def unit_column(owned: Ownership, o: Ownerships) -> str | None:
    """Give the column that holds the id of the one unit that a row belongs to."""
    if not owned.local:
        return None
    return min((x.column for x in owned.terms if x.via == o.paths.unit), default=None)


def rows_of_unit(node: n.Node, owned: Ownership, o: Ownerships) -> int:
    """Give how many rows of one unit count by the declared limits, or stop (rewrite.limit)."""
    if owned.expected is not None:
        return owned.expected
    name = o.paths.protection.name
    limits = ", ".join(owned.missing) or f"limits in protections.{name}"
    keys = " (columns that the join compares, or join a subquery that is grouped by these)"
    raise Stopped(
        Problem(
            "rewrite.limit",
            node,
            f"how many rows of one unit can count is not declared ({limits})",
            f"declare {limits} in the policy{keys if '.key' in limits else ''}",
        )
    )
