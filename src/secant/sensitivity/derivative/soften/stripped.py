"""Take the conditions on protected values out of a query, and write everything over columns of base tables.

In: the rows below an aggregate. Out: the same rows with public conditions only, what each column is
made of, and the protected conditions, apart. What remains depends on public columns alone: which rows
there are, and which belong together, cannot tell of a protected value (derivative.strip). Never here: softening.
"""

from __future__ import annotations

from collections.abc import Callable

from secant.plan import nodes as n
from secant.plan.facts.reads import columns_read
from secant.plan.rewrites.rewrite import substitute
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.derivative.soften.emptiness import moves

MOST_NODES = 5_000


@frozen
class Stripped:
    """Rows that public columns decide, and what was taken off them."""

    relation: n.Relation
    definitions: dict[str, n.Scalar]
    conditions: tuple[n.Scalar, ...]
    """Conditions on protected columns, over columns of `relation`."""


def unshared(relation: n.Relation, seen: set[str] | None = None) -> n.Relation:
    """Give every use of a table its own alias: a WITH table that is used twice reads its tables twice.

    Aliases in `seen` are taken; those that are given are added to it.
    """
    seen = set() if seen is None else seen

    def visit(node: n.Node) -> n.Node:
        if not isinstance(node, n.Scan):
            return n.rebuild(node, visit) if any(True for _ in n.children(node)) else node
        alias = node.alias
        while alias in seen:
            alias += "_"
        seen.add(alias)
        if alias == node.alias:
            return node
        prefix = len(node.alias)
        fresh = tuple(n.Field(alias + f.name[prefix:], f.type) for f in node.columns)
        scan = n.Scan(node.table, alias, fresh, node.span)
        names = tuple(
            n.Named(f.name, n.Column(own.name, own.type))
            for f, own in zip(node.columns, fresh, strict=True)
        )
        return n.Project(scan, names)

    changed = visit(relation)
    assert isinstance(changed, n.Relation)
    return changed


STRIPPED: RuleTable[Callable[..., Stripped]] = RuleTable("stripped")


def strip(relation: n.Relation, protected: frozenset[str]) -> Stripped:
    """Take protected conditions off, or raise CannotBound; a node without a rule must see nothing protected (I3)."""
    rule = STRIPPED.find(relation)
    if rule is not None:
        return rule(relation, protected)
    if not sees(relation, protected):
        return Stripped(relation, _identity(relation), ())
    raise _refusal(relation)


def _refusal(relation: n.Relation) -> CannotBound:
    reason, hint = _WITHOUT_RULE.get(type(relation), (None, None))
    return CannotBound(
        "derivative.strip",
        relation,
        reason or f"{type(relation).__name__.lower()} over protected values jumps",
        hint or "aggregate the joined and filtered rows directly",
    )


_SET = (
    "a set of rows that protected values decide has no rule where it is joined or grouped",
    "aggregate the set directly, or join the sides on public columns with conditions on values",
)
_WITHOUT_RULE: dict[type[n.Relation], tuple[str, str]] = {
    n.Union: _SET,
    n.Intersect: _SET,
    n.Except: _SET,
    n.Distinct: _SET,
    n.Aggregate: (
        "groups of protected values have no rule where they are joined or united",
        "aggregate the joined and filtered rows at once: a sum of sums is one sum",
    ),
}
"""What is refused for want of a rule, in words of its own."""


@STRIPPED.rule(n.Scan)
def _scan(relation: n.Scan, protected: frozenset[str]) -> Stripped:
    return Stripped(relation, _identity(relation), ())


@STRIPPED.rule(n.Filter)
def _filter(relation: n.Filter, protected: frozenset[str]) -> Stripped:
    below = strip(relation.input, protected)
    return _parted(below, n.conjuncts(relation.predicate), protected, relation)


@STRIPPED.rule(n.Project)
def _project(relation: n.Project, protected: frozenset[str]) -> Stripped:
    below = strip(relation.input, protected)
    computed = {i.name: _expanded(i.expression, below.definitions) for i in relation.items}
    return Stripped(below.relation, computed, below.conditions)


@STRIPPED.rule(n.Sort)
def _sort(relation: n.Sort, protected: frozenset[str]) -> Stripped:
    return strip(relation.input, protected)


@STRIPPED.rule(n.Aggregate)
def _aggregate(relation: n.Aggregate, protected: frozenset[str]) -> Stripped:
    """Groups stay whole where nothing protected is in them, or where what moves in them is known by name.

    Rests on derivative.nested.
    """
    named = any(c.name in protected for c in relation.aggregations)
    if sees(relation, protected) and not named:
        raise _refusal(relation)
    return Stripped(relation, _identity(relation), ())


def _identity(relation: n.Relation) -> dict[str, n.Scalar]:
    return {f.name: n.Column(f.name, f.type) for f in fields_of(relation)}


def _expanded(scalar: n.Scalar, definitions: dict[str, n.Scalar]) -> n.Scalar:
    if isinstance(scalar, n.Column):
        return definitions.get(scalar.name, scalar)
    expression = substitute(scalar, definitions)
    refuse_repeating(expression, scalar)
    return expression


def refuse_repeating(expression: n.Node, node: n.Node) -> None:
    """Refuse an expression that is too long once what it shares is written out, as it is looked through and printed."""
    if n.written_size(expression) > MOST_NODES:
        raise CannotBound(
            "derivative.strip", node, "the expression repeats itself too often", "shorten it"
        )


def _parted(
    below: Stripped, parts: tuple[n.Scalar, ...], protected: frozenset[str], relation: n.Relation
) -> Stripped:
    expressions = [_expanded(part, below.definitions) for part in parts]
    public = tuple(p for p in expressions if not moves(p, protected))
    private = tuple(p for p in expressions if moves(p, protected))
    for part in private:
        if n.has_subquery(part):
            raise _jumping(part, protected, relation)
    predicate = n.conjunction(public + _all_implied(private, protected))
    rows = below.relation if predicate is None else n.Filter(below.relation, predicate)
    return Stripped(rows, below.definitions, below.conditions + private)


def _jumping(part: n.Scalar, protected: frozenset[str], relation: n.Relation) -> CannotBound:
    """Say what is in the way of a condition on protected values with a subquery in it."""
    inner = (x for x in n.walk(part) if isinstance(x, (n.ScalarSubquery, n.InSubquery, n.Exists)))
    if any(moves(x, protected) for x in inner):
        reason, hint = "a subquery over protected values jumps", "join the inner table instead"
    else:
        reason = "a condition on protected values has no rule with a subquery in it"
        hint = "join the inner table, or let AND join the subquery and the other conditions"
    return CannotBound("derivative.strip", relation, reason, hint)


def _all_implied(
    conditions: tuple[n.Scalar, ...], protected: frozenset[str]
) -> tuple[n.Scalar, ...]:
    implications = (implied(c, protected) for c in conditions)
    return tuple(c for c in implications if c is not None)


def implied(condition: n.Scalar, protected: frozenset[str]) -> n.Scalar | None:
    """Give a public condition that holds wherever this one does, so that other rows are never looked at; or None."""
    if not moves(condition, protected):
        return condition
    if isinstance(condition, n.And):
        return n.conjunction(_all_implied(condition.operands, protected))
    if isinstance(condition, n.Or):
        parts = _all_implied(condition.operands, protected)
        return n.Or(parts) if len(parts) == len(condition.operands) else None
    return None


@STRIPPED.rule(n.Join)
def _joined(relation: n.Join, protected: frozenset[str]) -> Stripped:
    left, right = strip(relation.left, protected), strip(relation.right, protected)
    definitions = {**left.definitions, **right.definitions}
    conditions = left.conditions + right.conditions
    parts = tuple(_expanded(p, definitions) for p in n.conjuncts(relation.condition))
    if relation.kind == "left":
        plain = all(isinstance(d, n.Column) for d in right.definitions.values())
        if right.conditions or not plain or any(moves(p, protected) for p in parts):
            raise CannotBound(
                "derivative.strip",
                relation,
                "a left join that depends on protected values pads rows",
                "use an inner join",
            )
        joined: n.Relation = n.Join(
            "left", left.relation, right.relation, n.conjunction(parts), relation.span
        )
        return Stripped(joined, definitions, conditions)
    private = tuple(p for p in parts if moves(p, protected))
    public = tuple(p for p in parts if not moves(p, protected))
    condition = n.conjunction(public + _all_implied(private, protected))
    kind = "cross" if condition is None else "inner"
    joined = n.Join(kind, left.relation, right.relation, condition, relation.span)
    return Stripped(joined, definitions, conditions + private)


def sees(relation: n.Relation, protected: frozenset[str]) -> bool:
    """Whether a relation shows or uses a protected column."""
    shown = frozenset(f.name for f in fields_of(relation))
    return not protected.isdisjoint(shown | columns_read(relation))
