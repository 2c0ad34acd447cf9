"""Plans as text that people read, and the comparison of two plans by structure.

In: nodes. Out: an indented tree, a one-line expression, or whether two plans say the same. Never
here: SQL that runs (that is `lower`), and rows: constants written by the user are shown, no others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

from secant.plan import nodes as n
from secant.plan.facts.scopes import bottom_up, relations_in
from secant.plan.rewrites.steps import as_product
from secant.plan.rule_table import RuleTable
from secant.schema.types import Type

SCALAR_TEXT: RuleTable[Callable[..., str]] = RuleTable("show scalars")
RELATION_TEXT: RuleTable[Callable[..., str]] = RuleTable("show relations")
INDENT = "  "


def show(relation: n.Relation) -> str:
    """Give a plan as an indented tree, what is computed first at the bottom.

    A relation that is used twice is written once and then referred to by its number.
    """
    uses: dict[n.Node, int] = {}
    for node in n.walk(relation):
        for child in n.children(node):
            uses[child] = uses.get(child, 0) + 1
    shared = {node: 0 for node, count in uses.items() if count > 1 and isinstance(node, n.Relation)}
    lines: list[str] = []
    pending: list[tuple[n.Relation, int, str]] = [(relation, 0, "")]
    while pending:
        node, depth, label = pending.pop()
        line = INDENT * depth + label
        if shared.get(node):
            lines.append(f"{line}#{shared[node]} again")
            continue
        if node in shared:
            shared[node] = 1 + max(shared.values())
            line += f"#{shared[node]} "
        lines.append(line + _relation_line(node))
        below = [(query, depth + 1, "? ") for query in _subqueries(node)]
        below += [(source, depth + 1, "") for source in relations_in(node)]
        pending.extend(reversed(below))
    return "\n".join(lines)


def show_scalar(scalar: n.Node) -> str:
    """Give an expression on one line. A subquery is `(?)`; `show` writes it below its relation."""
    rule = SCALAR_TEXT.find(scalar)
    return rule(scalar) if rule else type(scalar).__name__


_WORDS: dict[type[n.Node], Callable[[object], object] | None] = {}
_COMPARED: dict[type[n.Node], tuple[str, ...]] = {}
"""Fields of each class that hold a name or a sign, read at once and compared first; and its other fields."""
for _node in n.NODES:
    _words = [f.name for f in fields(_node) if f.type in ("str", "bool")]
    _WORDS[_node] = attrgetter(*_words) if _words else None
    _COMPARED[_node] = tuple(f.name for f in fields(_node) if f.name not in (*_words, "span"))

_PLAIN = frozenset((str, int, bool))
"""Of these, what is equal is written alike."""


def shape(root: n.Node) -> int:
    """Give a number that plans of the same structure share; found once for a node and for all below it."""
    for node in () if hasattr(root, "_shape") else bottom_up(root, "_shape"):
        parts: list[object] = [type(node), *(part._shape for part in node._below)]
        words = _WORDS[type(node)]
        if words is not None:
            parts.append(words(node))
        if not node._below:  # constants and types tell leaves apart
            values = (getattr(node, name) for name in _COMPARED[type(node)])
            parts += [x if isinstance(x, Type) else repr(x) for x in values]
        object.__setattr__(node, "_shape", hash(tuple(parts)))
    return root._shape


def same(left: n.Node, right: n.Node) -> bool:
    """Whether two plans have the same structure; places in the user's text do not count."""
    if left is right:
        return True
    if left._size != right._size or shape(left) != shape(right):
        return False
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[object, object]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if type(a) is not type(b):  # 1, 1.0 and True differ
            return False
        if isinstance(a, n.Node):
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            description = _WORDS[type(a)]
            if description is not None and description(a) != description(b):
                return False
            pending += [(getattr(a, name), getattr(b, name)) for name in _COMPARED[type(a)]]
        elif isinstance(a, tuple):
            if len(a) != len(b):  # type: ignore[arg-type]
                return False
            pending += zip(a, b, strict=True)  # type: ignore[call-overload]
        elif type(a) in _PLAIN:
            if a != b:
                return False
        elif isinstance(a, Type) and isinstance(b, Type):
            if a != b or a.form != b.form:
                return False
        elif repr(a) != repr(b):  # both zeros differ, and a NaN is like another
            return False
    return True


def same_call(a: n.Aggregation, b: n.Aggregation) -> bool:
    """Whether two aggregates compute the same, whatever each is called."""
    if (a.function, a.distinct, a.fraction) != (b.function, b.distinct, b.fraction):
        return False
    sides = (a.argument, b.argument), (a.second, b.second)
    return all(p is q if p is None or q is None else same(p, q) for p, q in sides)


def canonical(plan: n.Relation) -> str:
    """Give a text that two plans share exactly if they have the same structure, as `same` compares them.

    Each different node has one line, which names its parts by their lines: what is shared is written once.
    """
    lines: dict[str, int] = {}
    numbers: dict[n.Node, int] = {}
    pending: list[n.Node] = [plan]
    while pending:
        node = pending[-1]
        missing = [child for child in n.children(node) if child not in numbers]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        names = [f.name for f in fields(node) if f.name != "span"]
        parts = ", ".join(f"{name}={_part(getattr(node, name), numbers)}" for name in names)
        numbers[node] = lines.setdefault(f"{type(node).__name__}({parts})", len(lines))
    return "\n".join(lines)


def _part(value: object, numbers: dict[n.Node, int]) -> str:
    if isinstance(value, n.Node):
        return f"#{numbers[value]}"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_part(item, numbers)}," for item in value) + ")"
    return f"{type(value).__name__} {value!r}"  # 1, 1.0 and True differ


def _relation_line(node: n.Relation) -> str:
    rule = RELATION_TEXT.find(node)
    detail = rule(node) if rule else ""
    return f"{type(node).__name__} {detail}".rstrip()


def _subqueries(node: n.Relation) -> list[n.Relation]:
    parts = [c for c in n.children(node) if not isinstance(c, n.Relation)]
    nodes = (x for part in parts for x in n.reached(part, lambda x: not isinstance(x, n.Relation)))
    return [x for x in nodes if isinstance(x, n.Relation)]


# ── scalars ──────────────────────────────────────────────────────────────────────────────────────

scalar = SCALAR_TEXT.rule


def _all(parts: tuple[n.Scalar, ...], glue: str) -> str:
    return glue.join(map(show_scalar, parts))


@scalar(n.Column)
def _column(node: n.Column) -> str:
    return node.name


@scalar(n.Outer)
def _outer(node: n.Outer) -> str:
    return f"^{node.name}"


@scalar(n.Literal)
def _literal(node: n.Literal) -> str:
    return _constant(node.value, node.type)


def _constant(value: object, stated: Type) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, tuple):
        months, days, microseconds = value
        return f"INTERVAL {months} months {days} days {microseconds} us"
    return f"{stated} '{value}'" if stated.temporal else str(value)


@scalar(n.Arithmetic, n.Compare)
def _infix(node: n.Arithmetic | n.Compare) -> str:
    return f"({show_scalar(node.left)} {node.op} {show_scalar(node.right)})"


@scalar(n.Negate)
def _negate(node: n.Negate) -> str:
    return f"(- {show_scalar(node.operand)})"


@scalar(n.SameValue)
def _same_value(node: n.SameValue) -> str:
    return f"({show_scalar(node.left)} IS {show_scalar(node.right)})"


@scalar(n.And)
def _and(node: n.And) -> str:
    return f"({_all(node.operands, ' AND ')})"


@scalar(n.Or)
def _or(node: n.Or) -> str:
    return f"({_all(node.operands, ' OR ')})"


@scalar(n.Not)
def _not(node: n.Not) -> str:
    return f"NOT {show_scalar(node.operand)}"


@scalar(n.IsNull)
def _is_null(node: n.IsNull) -> str:
    return f"({show_scalar(node.operand)} IS NULL)"


@scalar(n.Like)
def _like(node: n.Like) -> str:
    escape = f" ESCAPE {node.escape!r}" if node.escape else ""
    return f"({show_scalar(node.operand)} LIKE {show_scalar(node.pattern)}{escape})"


@scalar(n.InList)
def _in_list(node: n.InList) -> str:
    return f"({show_scalar(node.operand)} IN ({_all(node.items, ', ')}))"


@scalar(n.Branch)
def _branch(node: n.Branch) -> str:
    return f"WHEN {show_scalar(node.condition)} THEN {show_scalar(node.value)}"


@scalar(n.Case)
def _case(node: n.Case) -> str:
    branches = " ".join(map(show_scalar, node.branches))
    return f"CASE {branches} ELSE {show_scalar(node.default)} END"


@scalar(n.Cast)
def _cast(node: n.Cast) -> str:
    return f"CAST({show_scalar(node.operand)} AS {node.type})"


@scalar(n.Call)
def _call(node: n.Call) -> str:
    return f"{node.function}({_all(node.arguments, ', ')})"


@scalar(n.Extract)
def _extract(node: n.Extract) -> str:
    return f"{node.part}({show_scalar(node.operand)})"


@scalar(n.Attempt)
def _attempt(node: n.Attempt) -> str:
    return f"attempt({show_scalar(node.operand)})"


@scalar(n.Clamp)
def _clamp(node: n.Clamp) -> str:
    return f"clamp({_all((node.operand, node.low, node.high), ', ')})"


@scalar(n.Quantize)
def _quantize(node: n.Quantize) -> str:
    return show_scalar(as_product(node))


@scalar(n.Bucket)
def _bucket(node: n.Bucket) -> str:
    limits = node.limits
    ends = f" from {limits[0]} to {limits[-1]}" if limits else ""
    return f"bucket({show_scalar(node.operand)}, {len(limits)} limits{ends})"


@scalar(n.ScalarSubquery)
def _scalar_subquery(_: n.ScalarSubquery) -> str:
    return "(?)"


@scalar(n.InSubquery)
def _in_subquery(node: n.InSubquery) -> str:
    return f"({show_scalar(node.operand)} IN (?))"


@scalar(n.Exists)
def _exists(_: n.Exists) -> str:
    return "EXISTS (?)"


@scalar(n.Named)
def _named(node: n.Named) -> str:
    shown = show_scalar(node.expression)
    return shown if shown == node.name else f"{node.name} := {shown}"


@scalar(n.Aggregation)
def _aggregation(node: n.Aggregation) -> str:
    argument = "*" if node.argument is None else show_scalar(node.argument)
    which = "" if node.fraction is None else f", {node.fraction}"
    which += "" if node.second is None else f", {show_scalar(node.second)}"
    return f"{node.name} := {node.function}({'DISTINCT ' * node.distinct}{argument}{which})"


@scalar(n.SortKey)
def _sort_key(node: n.SortKey) -> str:
    direction = "DESC" if node.descending else "ASC"
    nulls = "FIRST" if node.nulls_first else "LAST"
    return f"{show_scalar(node.expression)} {direction} NULLS {nulls}"


@scalar(n.WindowCall)
def _window_call(node: n.WindowCall) -> str:
    parts = [f"by {_all(node.partition, ', ')}"] if node.partition else []
    parts += [f"order {', '.join(map(show_scalar, node.order))}"] if node.order else []
    if node.frame is not None:
        ends = ("all" if e is None else str(e) for e in (node.frame.start, node.frame.end))
        parts.append(f"{node.frame.unit} {' to '.join(ends)}")
    called = f"{node.function}({_all(node.arguments, ', ')})"
    return f"{node.name} := {called} over ({' '.join(parts)})"


# ── relations ────────────────────────────────────────────────────────────────────────────────────

relation = RELATION_TEXT.rule


def _names(columns: tuple[n.Field, ...]) -> str:
    return ", ".join(column.name for column in columns)


@relation(n.Scan)
def _scan(node: n.Scan) -> str:
    return node.table if node.table == node.alias else f"{node.table} AS {node.alias}"


@relation(n.Values)
def _values(node: n.Values) -> str:
    return f"({_names(node.columns)}) {len(node.rows)} rows"


@relation(n.Released)
def _released(node: n.Released) -> str:
    return f"{node.name} ({_names(node.columns)})"


@relation(n.Filter)
def _filter(node: n.Filter) -> str:
    return show_scalar(node.predicate)


@relation(n.Project)
def _project(node: n.Project) -> str:
    return ", ".join(map(show_scalar, node.items))


@relation(n.Join)
def _join(node: n.Join) -> str:
    condition = "" if node.condition is None else f" on {show_scalar(node.condition)}"
    return node.kind + condition


@relation(n.Aggregate)
def _aggregate(node: n.Aggregate) -> str:
    computed = ", ".join(map(show_scalar, node.aggregations))
    keys = ", ".join(map(show_scalar, node.keys))
    return f"{computed} by {keys}" if keys else computed


@relation(n.Window)
def _window(node: n.Window) -> str:
    return ", ".join(map(show_scalar, node.calls))


@relation(n.Distinct)
def _distinct(_: n.Distinct) -> str:
    return ""


@relation(n.Sort)
def _sort(node: n.Sort) -> str:
    return ", ".join(map(show_scalar, node.keys))


@relation(n.Limit)
def _limit(node: n.Limit) -> str:
    count = "all" if node.count is None else str(node.count)
    return f"{count} after {node.offset}" if node.offset else count


@relation(n.Union, n.Intersect, n.Except)
def _set_operation(node: n.Union | n.Intersect | n.Except) -> str:
    return f"{'all ' * node.all}({_names(node.columns)})"


@relation(n.Truncate)
def _truncate(node: n.Truncate) -> str:
    order = f" by {', '.join(node.order)}" if node.order else ""
    return f"{node.limit} rows of each {', '.join(node.owner)}{order}"


@relation(n.TruncateGroups)
def _truncate_groups(node: n.TruncateGroups) -> str:
    return f"{node.limit} groups ({', '.join(node.groups)}) of each {', '.join(node.owner)}"
