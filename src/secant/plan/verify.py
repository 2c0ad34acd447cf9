"""Check that a plan is well formed. Run after construction and after every rewrite.

In: a plan. Out: nothing, or InternalError BUG-001, because an ill-formed plan is always our fault.
Never here: repairs, and any judgment whether the plan means what the user wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.facts.scopes import borrowed_by, bottom_up, own_parts, relations_in, standing_on
from secant.plan.functions.windows import WINDOW_FUNCTIONS
from secant.plan.rule_table import RuleTable
from secant.plan.typing import Mistyped, fields_of, settle_one, type_of
from secant.schema.types import Type, unify

CHECKS: RuleTable[Callable[..., None]] = RuleTable("verify")
check = CHECKS.rule


def verify(relation: n.Relation) -> None:
    """Return if the plan is well formed; raise otherwise."""
    if hasattr(relation, "_sound") and not n.holds(relation, n.Outer):
        return  # what a query inside borrows is there in the plan that was sound, but not without that plan
    try:
        # What stands in a plan that was well formed is so wherever it stands: nothing is checked twice.
        nodes = tuple(bottom_up(relation, "_sound"))
    except AttributeError:  # the classes of the plan, and no others, know what stands below them
        raise _broken("it holds something that is not a node of the plan") from None
    try:
        for node in nodes:  # what it rests on stands before it
            if not _MAY_STAND[type(node)].issuperset(map(type, n.children(node))):
                raise _misplaced(node)
            if not hasattr(node, "_meaning"):
                settle_one(node)
        for node in nodes:
            rule = CHECKS.find(node)
            if rule is not None:
                rule(node)
            if isinstance(node, n.Relation):
                _check_relation(node)
    except Mistyped as error:
        raise _broken(str(error)) from None
    _check_aliases(relation)
    left_over = sorted(borrowed_by(relation))
    if left_over:
        raise _broken(f"the outer column {left_over[0]} belongs to no enclosing query")
    for node in nodes:
        object.__setattr__(node, "_sound", True)


def _check_aliases(relation: n.Relation) -> None:
    aliases: set[str] = set()
    for scan in scans(relation):
        if scan.alias in aliases:
            raise _broken(f"the alias {scan.alias} stands for two scans")
        aliases.add(scan.alias)


def _broken(message: str) -> InternalError:
    return InternalError("BUG-001", f"a plan is not well formed: {message}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise _broken(message)


# ── every node ───────────────────────────────────────────────────────────────────────────────────

_HOLDS: dict[type[n.Node], tuple[type[n.Node], ...]] = {
    n.Case: (n.Branch, n.Scalar),
    n.ScalarSubquery: (n.Relation,),
    n.InSubquery: (n.Scalar, n.Relation),
    n.Exists: (n.Relation,),
    n.Filter: (n.Relation, n.Scalar),
    n.Join: (n.Relation, n.Scalar),
    n.Project: (n.Relation, n.Named),
    n.Aggregate: (n.Relation, n.Named, n.Aggregation),
    n.Sort: (n.Relation, n.SortKey),
    n.Window: (n.Relation, n.WindowCall),
    n.WindowCall: (n.Scalar, n.SortKey),
}
"""What may stand directly below a node; other relations hold relations, all else holds scalars."""


def _may_stand(node: type[n.Node]) -> frozenset[type[n.Node]]:
    usual = (n.Relation,) if issubclass(node, n.Relation) else (n.Scalar,)
    return frozenset(x for x in n.NODES if issubclass(x, _HOLDS.get(node, usual)))


_MAY_STAND = {node: _may_stand(node) for node in n.NODES}


def _misplaced(node: n.Node) -> InternalError:
    wrong = next(x for x in n.children(node) if type(x) not in _MAY_STAND[type(node)])
    return _broken(f"{type(wrong).__name__} cannot stand in {type(node).__name__}")


_VALUES: dict[str, tuple[type, ...]] = {
    "BOOLEAN": (bool,),
    "INTEGER": (int,),
    "DECIMAL": (Decimal, int),
    "DOUBLE": (float, int, Decimal),
    "TEXT": (str,),
    "DATE": (date,),
    "TIMESTAMP": (datetime,),
    "INTERVAL": (tuple,),
    "NULL": (),
}


def _check_value(value: object, stated: Type) -> None:
    """A constant must be a value of its type. The message does not show it."""
    if value is None:
        return
    fits = isinstance(value, _VALUES[stated.kind])
    if isinstance(value, bool):
        fits = stated.kind == "BOOLEAN"
    if isinstance(value, datetime):
        fits = stated.kind == "TIMESTAMP"
    if not fits:
        raise _broken(f"a constant is not of its type {stated}")


@check(n.Literal)
def _literal(node: n.Literal) -> None:
    _check_value(node.value, node.type)


@check(n.Bucket)
def _bucket(node: n.Bucket) -> None:
    for limit in node.limits:
        _check_value(limit, type_of(node.operand))
    ascend = all(a < b for a, b in pairwise(node.limits))  # type: ignore[operator]
    _require(bool(node.limits) and ascend, "the limits of buckets do not ascend")


# ── every relation ───────────────────────────────────────────────────────────────────────────────


def _check_relation(node: n.Relation) -> None:
    names = [column.name for column in fields_of(node)]
    if len(set(names)) != len(names):
        raise _broken(f"{type(node).__name__} has two columns of one name")
    parts = own_parts(node)
    if not parts:
        return
    visible = {column.name: column.type for column in standing_on(node)}
    for part in parts:
        if isinstance(part, n.Column):
            if visible.get(part.name) is not part.type:  # most types are the very one
                _resolve(part, visible)
        elif type(part) in n.HOLDERS:
            for query in relations_in(part):
                for outer in borrowed_by(query).values():
                    if outer.name in visible:
                        _resolve(outer, visible)


def _resolve(column: n.Column | n.Outer, visible: dict[str, Type]) -> None:
    actual = visible.get(column.name)
    if actual is None:
        raise _broken(f"there is no column {column.name} where it is used")
    if actual != column.type:
        raise _broken(f"{column.name} is {actual}, not {column.type}")


def _check_condition(condition: n.Node) -> None:
    if not isinstance(condition, n.Scalar):
        raise _broken(f"{type(condition).__name__} cannot be a condition")
    kind = type_of(condition)
    if kind.kind not in ("BOOLEAN", "NULL"):
        raise _broken(f"a condition is {kind}")


# ── relations one by one ─────────────────────────────────────────────────────────────────────────


@check(n.Scan)
def _scan(node: n.Scan) -> None:
    for column in node.columns:
        if not column.name.startswith(node.alias + "."):
            raise _broken(f"{column.name} lacks its alias {node.alias}")


@check(n.Values)
def _values(node: n.Values) -> None:
    for row in node.rows:
        _require(len(row) == len(node.columns), "a row of constants has the wrong length")
        for value, column in zip(row, node.columns, strict=True):
            _check_value(value, column.type)


@check(n.Filter)
def _filter(node: n.Filter) -> None:
    _check_condition(node.predicate)


@check(n.Join)
def _join(node: n.Join) -> None:
    _require(node.kind in ("inner", "left", "cross"), "the kind of a join is unknown")
    _require(
        (node.condition is None) == (node.kind == "cross"), f"a {node.kind} join and its condition"
    )
    if node.condition is not None:
        _check_condition(node.condition)


@check(n.WindowCall)
def _window_call(node: n.WindowCall) -> None:
    _require(not n.has_subquery(node), "a subquery stands inside a window call")
    function, frame = WINDOW_FUNCTIONS.get(node.function), node.frame
    framed = function is None or function.framed
    _require(framed == (frame is not None), f"{node.function} and its frame")
    if frame is not None:
        _require(frame.unit in ("rows", "range", "groups"), "the unit of a frame is unknown")
        ends = (frame.start, frame.end)
        _require(frame.unit != "range" or set(ends) <= {None, 0}, "a range has an offset")
        _require(
            frame.unit == "rows" or bool(node.order) or ends == (None, None),
            "a frame without order",
        )


@check(n.Limit)
def _limit(node: n.Limit) -> None:
    _require(node.count is None or node.count >= 0, "a limit is negative")
    _require(node.offset >= 0, "an offset is negative")


@check(n.Union, n.Intersect, n.Except)
def _set_operation(node: n.Union | n.Intersect | n.Except) -> None:
    left, right = fields_of(node.left), fields_of(node.right)
    _require(
        len(left) == len(right) == len(node.columns),
        "a set operation of different numbers of columns",
    )
    for a, b, column in zip(left, right, node.columns, strict=True):
        if unify(a.type, b.type) != column.type:
            raise _broken(f"{column.name} is {column.type}, made from {a.type} and {b.type}")


@check(n.Truncate)
def _truncate(node: n.Truncate) -> None:
    _check_named(node, (*node.owner, *node.order))


@check(n.TruncateGroups)
def _truncate_groups(node: n.TruncateGroups) -> None:
    _check_named(node, (*node.owner, *node.groups))


def _check_named(node: n.Truncate | n.TruncateGroups, names: tuple[str, ...]) -> None:
    _require(node.limit >= 0, "a limit is negative")
    _require(bool(node.owner), "a truncation without owner")
    visible = {column.name for column in fields_of(node.input)}
    for name in names:
        _require(name in visible, f"there is no column {name} to truncate by")
