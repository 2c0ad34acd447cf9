"""G-rules: how many rows of a relation differ between neighboring databases, operator by operator.

`changed` counts rows in the symmetric difference of the two outputs, as bags. One rule a node; a node without a rule
refuses (I3). For a unit, rows are unbounded until a truncation; O-rules (plan.ownership) say whose rows they are.
A rule speaks of the inputs of a node. Its expressions, whatever fields they stand in, are checked for all rules alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns
from secant.plan.facts.facts import Facts
from secant.plan.facts.ownership import Ownerships
from secant.plan.facts.reads import expressions, reads, scans
from secant.plan.rule_table import RuleTable
from secant.plan.show import show_scalar
from secant.plan.typing import fields_of
from secant.plural import first
from secant.policy.keys import Key
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound, Step
from secant.sensitivity.summands import rows_differ, shortened

Keys = tuple[tuple[frozenset[str], tuple[Key, ...]], ...]
"""Columns that identify a row, and what must be claimed for that."""


@frozen
class Stable:
    """At most `changed` rows differ; None means that no number bounds them yet. `keys` identify a row."""

    changed: int | None
    step: Step
    keys: Keys = ()


STABILITY: RuleTable[Callable[..., Stable]] = RuleTable("stability")


@dataclass
class Stabilities:
    """Stability of every relation of one plan, for one set of tables that may differ."""

    varying: Callable[[str], bool]
    """Whether rows of a table may differ between the neighbors."""
    facts: Facts
    ownerships: Ownerships | None
    """For a unit: whose rows are whose."""
    done: dict[n.Relation, Stable] = field(default_factory=dict)
    claims: set[Key] = field(default_factory=set)

    def of(self, relation: n.Relation) -> Stable:
        """Give the stability of a relation, or raise CannotBound."""
        stable = self.done.get(relation)
        if stable is None:
            rule = STABILITY.find(relation)
            if rule is None:
                word = type(relation).__name__
                raise CannotBound(
                    "stability.unknown", relation, f"{word} has no rule", "rewrite the query"
                )
            self._row_by_row(relation)
            stable = self.done[relation] = self._accounted(relation, rule(self, relation))
        return stable

    def _accounted(self, relation: n.Relation, stable: Stable) -> Stable:
        """Let no rule say that nothing differs where rows that may differ are read: a second wall behind the rules."""
        if stable.changed == 0 and reads(relation, self.varying):
            raise CannotBound(
                STABILITY.ids[type(relation)],
                relation,
                "protected rows are read that no rule accounts for",
                "report this",
            )
        return stable

    def _row_by_row(self, relation: n.Relation) -> None:
        """Check that expressions depend on their row alone, or on its row's unit."""
        if self.ownerships is not None and self.ownerships.of(relation).local:
            return
        for part in expressions(relation):
            if reads(part, self.varying):
                raise CannotBound(
                    STABILITY.ids[type(relation)],
                    part,
                    "a subquery looks at protected rows",
                    "join on a key instead, or protect units rather than rows",
                )


def _step(
    rule: str, node: n.Node, value: int | None, *premises: Stable, description: str = ""
) -> Step:
    shown = "no bound yet" if value is None else rows_differ(value)
    before = tuple(p.step for p in premises)
    return Step(rule, description or type(node).__name__, shown, before, node, value)


@STABILITY.rule(n.Scan, id="stability.scan")
def _scan(s: Stabilities, node: n.Scan) -> Stable:
    table = node.table.lower()
    keys = tuple((columns, key.claims) for columns, key in s.facts.keys_in(node) if key.holds)
    if not s.varying(table):
        return Stable(
            0, _step("stability.scan", node, 0, description=f"{table} does not differ"), keys
        )
    if s.ownerships is not None:
        return Stable(
            None,
            _step("stability.scan", node, None, description=f"{table} holds rows of units"),
            keys,
        )
    return Stable(
        1, _step("stability.scan", node, 1, description=f"{table} differs in one row"), keys
    )


@STABILITY.rule(n.Values, n.Released, id="stability.public")
def _public(s: Stabilities, node: n.Relation) -> Stable:
    return Stable(
        0, _step("stability.public", node, 0, description="public values"), _constant_keys(node)
    )


def _constant_keys(node: n.Relation) -> Keys:
    """Give the columns in which all rows of a table of constants differ; reals and NULLs are not compared."""
    if not isinstance(node, n.Values):
        return ()
    keys: list[tuple[frozenset[str], tuple[Key, ...]]] = []
    for index, f in enumerate(node.columns):
        values = [row[index] for row in node.rows]
        comparable = f.type.kind in ("INTEGER", "TEXT", "DATE") and None not in values
        if comparable and len(set(values)) == len(values):
            keys.append((frozenset((f.name,)), ()))
    return tuple(keys)


@STABILITY.rule(n.Filter, id="stability.filter")
def _filter(s: Stabilities, node: n.Filter) -> Stable:
    inner = s.of(node.input)
    description = f"rows with {shortened(show_scalar(node.predicate), 70)}"
    return Stable(
        inner.changed,
        _step("stability.filter", node, inner.changed, inner, description=description),
        inner.keys,
    )


@STABILITY.rule(n.Project, id="stability.project")
def _project(s: Stabilities, node: n.Project) -> Stable:
    inner = s.of(node.input)
    names = {i.expression.name: i.name for i in node.items if isinstance(i.expression, n.Column)}
    keys = tuple(
        (frozenset(names[c] for c in key), claims)
        for key, claims in inner.keys
        if all(c in names for c in key)
    )
    return Stable(inner.changed, _step("stability.project", node, inner.changed, inner), keys)


@STABILITY.rule(n.Sort, id="stability.sort")
def _sort(s: Stabilities, node: n.Sort) -> Stable:
    inner = s.of(node.input)
    return Stable(inner.changed, inner.step, inner.keys)


@STABILITY.rule(n.Window, id="stability.window")
def _window(s: Stabilities, node: n.Window) -> Stable:
    inner = s.of(node.input)
    owned = s.ownerships.of(node) if s.ownerships is not None else None
    if inner.changed != 0 and (owned is None or not owned.local):
        blocked = owned.blocked if owned is not None else None
        raise CannotBound(
            "stability.window",
            node,
            blocked.reason if blocked is not None else "a window shows a row what others hold",
            blocked.hint
            if blocked is not None
            else "protect units, and let windows be of one unit",
        )
    return Stable(inner.changed, _step("stability.window", node, inner.changed, inner), inner.keys)


@STABILITY.rule(n.Limit, id="stability.limit")
def _limit(s: Stabilities, node: n.Limit) -> Stable:
    inner = s.of(node.input)
    if inner.changed != 0:
        raise CannotBound(
            "stability.limit",
            node,
            "which rows LIMIT keeps depends on protected rows",
            "aggregate first, then limit",
        )
    return Stable(0, _step("stability.limit", node, 0, inner))


@STABILITY.rule(n.Distinct, id="stability.distinct")
def _distinct(s: Stabilities, node: n.Distinct) -> Stable:
    inner = s.of(node.input)
    whole = frozenset(f.name for f in fields_of(node))
    return Stable(
        inner.changed, _step("stability.distinct", node, inner.changed, inner), ((whole, ()),)
    )


@STABILITY.rule(n.Aggregate, id="stability.group")
def _aggregate(s: Stabilities, node: n.Aggregate) -> Stable:
    inner = s.of(node.input)
    keys = ((frozenset(k.name for k in node.keys), ()),)
    if inner.changed is None:
        return Stable(None, _step("stability.group", node, None, inner), keys)
    # A changed row changes its group's one output row: the old one goes, a new one comes.
    changed = 2 * inner.changed
    return Stable(
        changed, _step("stability.group", node, changed, inner, description="inner groups"), keys
    )


@STABILITY.rule(n.Join, id="stability.join")
def _join(s: Stabilities, node: n.Join) -> Stable:
    left, right = s.of(node.left), s.of(node.right)
    if s.ownerships is not None and s.ownerships.of(node).local:
        return Stable(
            None, _step("stability.join", node, None, left, right, description="join inside units")
        )
    equal = equal_columns(node)
    if left.changed == 0 and right.changed == 0:
        step = _step(
            "stability.join", node, 0, left, right, description="nothing that is joined differs"
        )
        return Stable(0, step, _keys_after(left, right, equal, node.kind))
    if right.changed == 0 and left.changed is not None:
        claims = _partner(s, node, right, [b for _, b in equal], node.right)
        step = _step(
            "stability.join",
            node,
            left.changed,
            left,
            right,
            description=f"join on a key of {claims}",
        )
        return Stable(left.changed, step, _keys_after(left, right, equal, node.kind))
    if left.changed == 0 and right.changed is not None and node.kind != "left":
        claims = _partner(s, node, left, [a for a, _ in equal], node.left)
        step = _step(
            "stability.join",
            node,
            right.changed,
            left,
            right,
            description=f"join on a key of {claims}",
        )
        return Stable(right.changed, step, _keys_after(left, right, equal, node.kind))
    if left.changed == 0 and right.changed is not None:
        claims = _partner(s, node, left, [a for a, _ in equal], node.left)
        changed = 2 * right.changed  # the joined row, and the padded one that it stands for
        description = f"rows of {claims} on their key, padded"
        return Stable(
            changed, _step("stability.join", node, changed, left, right, description=description)
        )
    if left.changed is not None and right.changed is not None and _meets_one(left, right, equal):
        # A right row that comes or goes also unpads or pads the left row that it meets.
        changed = left.changed + right.changed * (2 if node.kind == "left" else 1)
        description = "each row meets at most one row of the other side"
        return Stable(
            changed, _step("stability.join", node, changed, left, right, description=description)
        )
    raise CannotBound(
        "stability.join",
        node,
        "both sides of the join hold protected rows, so one row can meet many",
        "join on a declared key of each side, or tie them by a unit that owns both",
    )


def _meets_one(left: Stable, right: Stable, equal: list[tuple[str, str]]) -> bool:
    """Whether the join compares a key of either side that holds by itself, without a claim."""
    sides = (left, {a for a, _ in equal}), (right, {b for _, b in equal})
    return all(any(k <= names and not claims for k, claims in s.keys) for s, names in sides)


def _partner(
    s: Stabilities, node: n.Join, fixed: Stable, columns: list[str], side: n.Relation
) -> str:
    """Check that a row meets at most one row of the fixed side; remember the claim."""
    tables = ", ".join(sorted({x.table for x in scans(side)}))
    for key, claims in fixed.keys:
        if key <= set(columns):
            s.claims.update(claims)
            return tables or "constants"
    raise CannotBound(
        "stability.join",
        node,
        f"a row may meet many rows of {tables}: the join is not on a key of it that can be checked",
        f"join {tables} on its key, and declare tables.{tables}.key",
    )


def _keys_after(left: Stable, right: Stable, equal: list[tuple[str, str]], kind: str) -> Keys:
    """Keys of one side survive a join on a key of the other; padded rows have no keys of the right side."""
    left_names, right_names = {a for a, _ in equal}, {b for _, b in equal}
    used = next((claims for key, claims in right.keys if key <= right_names), None)
    keys = () if used is None else tuple((key, claims + used) for key, claims in left.keys)
    back = next((claims for key, claims in left.keys if key <= left_names), None)
    if back is not None and kind != "left":
        keys += tuple((key, claims + back) for key, claims in right.keys)
    return keys


@STABILITY.rule(n.Union, n.Intersect, n.Except, id="stability.set")
def _set_operation(s: Stabilities, node: n.Union | n.Intersect | n.Except) -> Stable:
    left, right = s.of(node.left), s.of(node.right)
    if left.changed is None or right.changed is None:
        return Stable(None, _step("stability.set", node, None, left, right))
    changed = left.changed + right.changed
    return Stable(
        changed, _step("stability.set", node, changed, left, right, description=type(node).__name__)
    )


@STABILITY.rule(n.Truncate, id="stability.truncate")
def _truncate(s: Stabilities, node: n.Truncate) -> Stable:
    inner = s.of(node.input)
    description = f"{first(node.limit, 'row')} of each {node.owner[0].rsplit('.', 1)[-1]}"
    # One row of each owner: then the owner tells rows apart, but for those that are NULL and meet nothing.
    keys = ((frozenset(node.owner), ()), *inner.keys) if node.limit <= 1 else inner.keys
    if s.ownerships is not None and owned_by(s.ownerships, node.input, node.owner):
        least = node.limit if inner.changed is None else min(node.limit, inner.changed)
        return Stable(
            least, _step("stability.truncate", node, least, inner, description=description), keys
        )
    if inner.changed is None:
        return Stable(
            None, _step("stability.truncate", node, None, inner, description=description), keys
        )
    # A new row can push another one of the same owner out.
    changed = 2 * inner.changed
    return Stable(
        changed, _step("stability.truncate", node, changed, inner, description=description), keys
    )


def owned_by(ownerships: Ownerships, relation: n.Relation, owner: tuple[str, ...]) -> bool:
    """Whether the owner column holds the id of the one unit that a row belongs to."""
    ownership = ownerships.of(relation)
    units = {t.column for t in ownership.terms if t.via == ownerships.paths.unit}
    return ownership.local and len(owner) == 1 and owner[0] in units


@STABILITY.rule(n.TruncateGroups, id="stability.truncate_groups")
def _truncate_groups(s: Stabilities, node: n.TruncateGroups) -> Stable:
    inner = s.of(node.input)
    if s.ownerships is not None and owned_by(s.ownerships, node.input, node.owner):
        return Stable(
            inner.changed,
            _step("stability.truncate_groups", node, inner.changed, inner),
            inner.keys,
        )
    if inner.changed == 0:
        return Stable(0, _step("stability.truncate_groups", node, 0, inner), inner.keys)
    raise CannotBound(
        "stability.truncate_groups",
        node,
        "one row can push a whole group of another protection's unit out",
        "remove `groups` from the limits of the other protection",
    )
