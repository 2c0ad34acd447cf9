"""Plan in, SQL text out (I1): the only printer of statements that touch data.

Relations become nested SELECT blocks; a block stays open for further WHERE, ORDER BY and LIMIT as long as that keeps
its meaning. A relation that is used twice becomes one WITH table. Only columns that something reads are printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from secant.engines.dialect import (
    DUCKDB,
    Dialect,
    bucket_text,
    constant,
    constant_rows,
    quote,
    table_text,
    type_name,
)
from secant.engines.print.blocks import Block, Env, Writer, counted, first_extreme, printed_columns
from secant.engines.print.windows import window_text
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.scopes import borrowed_by, holders, relations_in
from secant.plan.functions.scalar import FUNCTIONS
from secant.plan.rewrites.rewrite import spell_out
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of, type_of
from secant.records import replace
from secant.schema.types import INTEGER, TEXT, Type

SMALL = 2**20  # 64 bits hold it 2^43 times
RELATIONS: RuleTable[Callable[..., Block]] = RuleTable("lower relations")
SCALARS: RuleTable[Callable[..., str]] = RuleTable("lower scalars")
Cut = n.Truncate | n.TruncateGroups
Reading = Callable[[Sequence[str]], str]
"""Columns -> a table of the rows with these columns, if not more."""


def lower(plan: n.Relation, dialect: Dialect = DUCKDB) -> str:
    """Give the one statement that computes the plan."""
    plan = spell_out(plan)
    for step in dialect.optimize:
        plan = step(plan)
    uses = Counter(
        child
        for node in holders(plan)
        for child in relations_in(node)
        if not isinstance(child, (n.Scan, n.Released))
    )
    repeated = [r for r, times in uses.items() if times > 1]
    # A correlated one differs from row to row.
    shared = frozenset(r for r in repeated if not borrowed_by(r))
    outputs = [f.name for f in fields_of(plan)]
    used = frozenset(outputs) | printed_columns(plan)
    writer = Writer(dialect, used, shared, plan=plan)
    body = _select(writer, _shown(writer, plan), outputs, distinct=False)
    tables = "WITH " + ", ".join(writer.tables) + " " if writer.tables else ""
    return tables + body


def _shown(w: Writer, plan: n.Relation) -> Block:
    """Write the whole plan with its columns as the driver should give them."""
    block = _relation(w, plan, {})
    if not w.dialect.shown:
        return block
    refs = {
        f.name: w.dialect.shown.get(f.type.kind, "{0}").format(
            block.refs[f.name], scale=f.type.scale
        )
        for f in fields_of(plan)
    }
    return replace(block, refs=refs)


def _relation(w: Writer, relation: n.Relation, env: Env) -> Block:
    if relation in w.shared:
        return _common_table(w, relation)
    rule = RELATIONS.find(relation)
    if rule is None:
        raise AssertionError(f"no way to print {type(relation).__name__}")
    return rule(w, relation, env)


def _common_table(w: Writer, relation: n.Relation) -> Block:
    names = [f.name for f in fields_of(relation) if f.name in w.used]
    if relation not in w.written:
        rule = RELATIONS.find(relation)
        assert rule is not None
        body = _select(w, rule(w, relation, {}), names, distinct=False)
        w.written[relation] = name = w.alias()
        w.tables.append(f"{name} AS {w.dialect.kept}({body})")
    alias = w.alias()
    return Block(f"{w.written[relation]} AS {alias}", w.refs(alias, names))


def _select(w: Writer, block: Block, names: list[str], *, distinct: bool) -> str:
    items = [f"{block.refs[c]} AS {w.column(c)}" for c in names] or ["1"]
    return f"{block.fence}SELECT {'DISTINCT ' if distinct else ''}{', '.join(items)}{block.tail()}"


def _closed(
    w: Writer, block: Block, names: list[str] | None = None, *, distinct: bool = False
) -> Block:
    """Wrap a block into a derived table."""
    columns = [c for c in (names if names is not None else block.refs) if c in block.refs]
    alias = w.alias()
    source = f"({_select(w, block, columns, distinct=distinct)}) AS {alias}"
    return Block(source, w.refs(alias, columns))


def _open(w: Writer, block: Block) -> Block:
    """Give a block that more conditions can be added to."""
    return _closed(w, block) if block.order or block.limit else block


# ── relations ────────────────────────────────────────────────────────────────────────────────────


@RELATIONS.rule(n.Scan)
def _scan(w: Writer, node: n.Scan, env: Env) -> Block:
    alias = w.alias()
    refs = {
        f.name: w.read(node.table, stored_column(node, f.name), f.type, alias)
        for f in node.columns
        if f.name in w.used
    }
    return Block(f"{table_text(w.dialect, node.table)} AS {alias}", refs)


@RELATIONS.rule(n.Released)
def _released(w: Writer, node: n.Released, env: Env) -> Block:
    alias = w.alias()
    # Columns of a released table are named here, by place: the statement that makes it spells them for itself.
    names = [f.name for f in node.columns]
    return Block(f"{quote(node.name)} AS {alias}({w.columns(names)})", w.refs(alias, names))


@RELATIONS.rule(n.Values)
def _values(w: Writer, node: n.Values, env: Env) -> Block:
    alias = w.alias()
    if not node.columns:
        one = len(node.rows) == 1
        return Block("" if one else f"(SELECT 1 WHERE FALSE) AS {alias}", {})
    names = w.columns(f.name for f in node.columns)
    refs = w.refs(alias, [f.name for f in node.columns])
    rows = constant_rows(w.dialect, [f.type for f in node.columns], node.rows)
    return Block(f"({rows}) AS {alias}({names})", refs)


@RELATIONS.rule(n.Filter)
def _filter(w: Writer, node: n.Filter, env: Env) -> Block:
    block = _open(w, _relation(w, node.input, env))
    scope = {**env, **block.refs}
    conditions = tuple(_condition(w, part, scope) for part in n.conjuncts(node.predicate))
    return replace(block, where=block.where + conditions)


@RELATIONS.rule(n.Project)
def _project(w: Writer, node: n.Project, env: Env) -> Block:
    block = _relation(w, node.input, env)
    read = w.fenced.get(node, w.used)
    items = [i for i in node.items if i.name in read]
    scope = {**env, **block.refs}
    refs = {i.name: write(w, i.expression, scope) for i in items}
    plain = all(isinstance(i.expression, (n.Column, n.Literal)) for i in items)
    renamed = replace(block, refs=refs)
    last = node is w.plan and not any(f.type.kind in w.dialect.shown for f in fields_of(node))
    if plain or last:  # nothing stands above the answer's own columns
        return renamed
    # Computed once in a derived table, so that nothing above repeats the expression.
    if node in w.fenced:
        renamed = replace(renamed, fence=w.dialect.fence.format(w.alias()))
    return _closed(w, renamed)


@RELATIONS.rule(n.Join)
def _join(w: Writer, node: n.Join, env: Env) -> Block:
    left = _open(w, _relation(w, node.left, env))
    right = _open(w, _relation(w, node.right, env))
    if node.kind == "left" and (right.where or not _bare(node.right)):
        # Its conditions belong inside: outside they would drop padded rows. So do its constants:
        # outside they would not be padded.
        right = _closed(w, right)
    left = left if left.source else _closed(w, left)
    right = right if right.source else _closed(w, right)
    refs = {**left.refs, **right.refs}
    right_source = f"({right.source})" if right.joined else right.source
    scope = {**env, **refs}
    parts = n.conjuncts(node.condition) if node.kind == "inner" else ()
    # Engines look into a subquery for all pairs of a join before other conditions; as a filter it waits for them.
    looking = tuple(p for p in parts if n.has_subquery(p))
    on = n.conjunction(tuple(p for p in parts if p not in looking)) if looking else node.condition
    if on is None:
        source = f"{left.source} CROSS JOIN {right_source}"
    else:
        word = "LEFT JOIN" if node.kind == "left" else "JOIN"
        source = f"{left.source} {word} {right_source} ON {_condition(w, on, scope)}"
    where = left.where + right.where + tuple(_condition(w, p, scope) for p in looking)
    return Block(source, refs, where, joined=True)


def _bare(relation: n.Relation) -> bool:
    """Whether every column of the relation is printed as a column of some table."""
    return not any(
        isinstance(item.expression, n.Literal)
        for node in n.walk(relation)
        if isinstance(node, n.Project)
        for item in node.items
    )


@RELATIONS.rule(n.Aggregate)
def _aggregate(w: Writer, node: n.Aggregate, env: Env) -> Block:
    block = _open(w, _relation(w, node.input, env))
    scope = {**env, **block.refs}
    values = [write(w, k.expression, scope) for k in node.keys]
    keys = [f"{x} AS {w.column(k.name)}" for x, k in zip(values, node.keys, strict=True)]
    calls = [
        f"{_aggregation(w, a, scope)} AS {w.column(a.name)}"
        for a in node.aggregations
        if a.name in w.used
    ]
    alias = w.alias()
    items = ", ".join(keys + calls) or "count(*)"
    source = f"(SELECT {items}{block.tail()}{w.groups(values)}) AS {alias}"
    names = [k.name for k in node.keys] + [a.name for a in node.aggregations if a.name in w.used]
    return Block(source, w.refs(alias, names))


def _aggregation(w: Writer, node: n.Aggregation, scope: Env) -> str:
    if node.argument is None:
        return "count(*)"
    shift = _shift(node)
    if shift is not None:
        # sum(x - c) is sum(x) - c * count(x), exactly; sums and counts of other measures are computed only once.
        clamped, shifted_by = shift
        summed = _aggregation(w, replace(node, argument=clamped), scope)
        counted = write(w, clamped.operand, scope)
        return f"({summed} - {write(w, shifted_by, scope)} * count({counted}))"
    own = w.dialect.rules.find(node) if w.dialect.rules else None
    if own is not None:
        return own(w, node, scope)
    distinct = "DISTINCT " if node.distinct else ""
    # Engines read which quantile it is as a double.
    which = "" if node.fraction is None else f", {float(node.fraction)!r}"
    which += "" if node.second is None else f", {write(w, node.second, scope)}"
    if node.function == "mode":  # of several, the least: not the one that a thread saw first
        which = f" ORDER BY {write(w, node.argument, scope)}"
    return f"{node.function}({distinct}{write(w, node.argument, scope)}{which})"


def _shift(node: n.Aggregation) -> tuple[n.Clamp, n.Scalar] | None:
    """Give (x, c) for an exact sum of x - c with a clamped x, NULL where its operand is, and a constant c."""
    argument = node.argument
    if (
        node.function == "sum"
        and not node.distinct
        and isinstance(argument, n.Arithmetic)
        and argument.op == "-"
        and isinstance(argument.left, n.Clamp)
        and isinstance(argument.right, n.Literal)
        and _fits(argument.right, type_of(argument))
    ):
        return argument.left, argument.right
    return None


def _fits(constant_: n.Literal, kind: Type) -> bool:
    """Whether the constant times any number of rows stays in the engine's numbers: it raises beyond them."""
    if kind.kind == "INTEGER":
        return isinstance(constant_.value, int) and abs(constant_.value) < SMALL
    return kind.kind == "DECIMAL"  # multiplied in 128 bits, the constant has 64


@RELATIONS.rule(n.Window)
def _window(w: Writer, node: n.Window, env: Env) -> Block:
    block = _open(w, _relation(w, node.input, env))
    scope = {**env, **block.refs}
    names = [f.name for f in fields_of(node.input)]
    alike = [scope[c] for c in names]  # every column may break a tie
    calls = [call for call in node.calls if call.name in w.used]
    items = [f"{block.refs[c]} AS {w.column(c)}" for c in names]
    items += [f"{window_text(w, c, scope, alike, write)} AS {w.column(c.name)}" for c in calls]
    alias = w.alias()
    source = f"(SELECT {', '.join(items) or '1'}{block.tail()}) AS {alias}"
    return Block(source, w.refs(alias, [*names, *(c.name for c in calls)]))


@RELATIONS.rule(n.Distinct)
def _distinct(w: Writer, node: n.Distinct, env: Env) -> Block:
    block = _open(w, _relation(w, node.input, env))
    return _closed(w, block, [f.name for f in fields_of(node)], distinct=True)


@RELATIONS.rule(n.Sort)
def _sort(w: Writer, node: n.Sort, env: Env) -> Block:
    block = _relation(w, node.input, env)
    block = _closed(w, block) if block.limit else block
    scope = {**env, **block.refs}
    keys = tuple(
        f"{write(w, k.expression, scope)} {'DESC' if k.descending else 'ASC'} "
        f"NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in node.keys
        if not _constant(k.expression, node.input)
    )
    return replace(block, order=keys)


def _constant(scalar: n.Scalar, rows: n.Relation) -> bool:
    """Whether a sort key is one constant for all rows: engines read a written number as a position, or refuse it."""
    while isinstance(scalar, n.Column):
        if isinstance(rows, n.Project):
            name = scalar.name
            scalar = next(i.expression for i in rows.items if i.name == name)
            rows = rows.input
        elif isinstance(rows, (n.Filter, n.Sort, n.Limit, n.Distinct)):
            rows = rows.input
        elif isinstance(rows, n.Join):
            on_left = any(f.name == scalar.name for f in fields_of(rows.left))
            if rows.kind == "left" and not on_left:
                return False  # padded with NULL
            rows = rows.left if on_left else rows.right
        else:
            return False
    return isinstance(scalar, n.Literal)


@RELATIONS.rule(n.Limit)
def _limit(w: Writer, node: n.Limit, env: Env) -> Block:
    block = _relation(w, node.input, env)
    block = _closed(w, block) if block.limit else block
    limit = f" LIMIT {node.count}" if node.count is not None else ""
    return replace(block, limit=limit + (f" OFFSET {node.offset}" if node.offset else ""))


def _set_operation(word: str) -> Callable[[Writer, n.Union | n.Intersect | n.Except, Env], Block]:
    def write(w: Writer, node: n.Union | n.Intersect | n.Except, env: Env) -> Block:
        sides = []
        for side in (node.left, node.right):
            block = _relation(w, side, env)
            items = [
                f"CAST({block.refs[f.name]} AS {type_name(w.dialect, out.type)}) AS {w.column(out.name)}"
                if f.type != out.type and out.type.kind != "NULL"
                else f"{block.refs[f.name]} AS {w.column(out.name)}"
                for f, out in zip(fields_of(side), node.columns, strict=True)
            ]
            sides.append(f"(SELECT {', '.join(items)}{block.tail()})")
        alias = w.alias()
        source = f"({sides[0]} {word}{' ALL' if node.all else ''} {sides[1]}) AS {alias}"
        return Block(source, w.refs(alias, [f.name for f in node.columns]))

    return write


RELATIONS.rule(n.Union)(_set_operation("UNION"))
RELATIONS.rule(n.Intersect)(_set_operation("INTERSECT"))
RELATIONS.rule(n.Except)(_set_operation("EXCEPT"))


@RELATIONS.rule(n.Truncate)
def _truncate(w: Writer, node: n.Truncate, env: Env) -> Block:
    read, names = _owned_rows(w, node)
    order = _ascending(w, (*node.order, *(c for c in names if c not in node.order)))
    rank = f"row_number() OVER (PARTITION BY {w.columns(node.owner)} ORDER BY {order})"
    return _first_of_owners(w, node, read(names), read(node.owner), rank)


@RELATIONS.rule(n.TruncateGroups)
def _truncate_groups(w: Writer, node: n.TruncateGroups, env: Env) -> Block:
    read, names = _owned_rows(w, node)
    both = list(dict.fromkeys((*node.owner, *node.groups)))
    order = _ascending(w, node.groups)
    counted = f"(SELECT DISTINCT {w.columns(both)} FROM {read(both)} AS owned)"
    rank = f"dense_rank() OVER (PARTITION BY {w.columns(node.owner)} ORDER BY {order})"
    return _first_of_owners(w, node, read(names), counted, rank)


def _ascending(w: Writer, columns: Iterable[str]) -> str:
    """Order by columns as the plan means it: engines differ in where NULL stands if nobody says."""
    return ", ".join(f"{w.column(c)} ASC NULLS LAST" for c in columns)


def _first_of_owners(w: Writer, node: Cut, rows: str, counted: str, rank: str) -> Block:
    """Keep what ranks first for each owner, and all rows without one.

    Ranking every row is dear: only owners over the limit are ranked. No equality holds for an owner that is NULL.
    """
    over, alias, owner = w.alias(), w.alias(), w.columns(node.owner)
    w.tables.append(
        f"{over} AS {w.dialect.kept}(SELECT {owner} FROM {counted} AS counted "
        f"GROUP BY {owner} HAVING count(*) > {node.limit})"
    )
    names = [f.name for f in fields_of(node) if f.name in w.used]
    columns = w.columns(names)
    few, many = (side.format(over=over, owner=owner) for side in w.dialect.split)
    source = (
        f"(SELECT {columns} FROM {rows} AS owned {few} UNION ALL "
        f"SELECT {columns} FROM (SELECT {columns}, {rank} AS place FROM {rows} AS owned {many}) AS ranked "
        f"WHERE place <= {node.limit}) AS {alias}"
    )
    return Block(source, w.refs(alias, names))


def _owned_rows(w: Writer, node: Cut) -> tuple[Reading, list[str]]:
    """Give how the rows are read, and their columns.

    Kept rows take memory, so rows that are the same each time are read anew where the engine does that fast. Others are
    computed once: counted by one set of rows and cut by another, an owner could keep more than the limit.
    """
    block = _open(w, _relation(w, node.input, {}))
    names = [f.name for f in fields_of(node) if f.name in w.used]
    if not node.limit:  # whoever has one row has too many
        block = replace(block, where=(*block.where, "FALSE"))
    if w.dialect.rereads and _same_each_time(node.input):
        return lambda columns: f"({_select(w, block, list(columns), distinct=False)})", names
    body = _select(w, block, names, distinct=False)
    name = w.alias()
    w.tables.append(f"{name} AS {w.dialect.kept}({body})")
    return lambda columns: name, names


def _same_each_time(rows: n.Relation) -> bool:
    """Whether rows are picked and joined one by one; sums of floats may come out otherwise when read again."""
    simple = (n.Scan, n.Filter, n.Project, n.Join)
    return all(isinstance(x, simple) for x in n.walk(rows) if isinstance(x, n.Relation))


# ── scalars ──────────────────────────────────────────────────────────────────────────────────────


def _condition(w: Writer, scalar: n.Scalar, env: Env) -> str:
    return "FALSE" if type_of(scalar).kind == "NULL" else write(w, scalar, env)


def write(w: Writer, scalar: n.Scalar, env: Env) -> str:
    """Write an expression inside a statement; also for the rules of an engine."""
    if type_of(scalar).kind == "NULL":
        # An engine gives it a type of its own, and casts what stands beside it to that: a cast that may fail.
        return "NULL"
    own = w.dialect.rules.find(scalar) if w.dialect.rules else None
    rule = own or SCALARS.find(scalar)
    if rule is None:
        raise AssertionError(f"no way to print {type(scalar).__name__}")
    return counted(rule(w, scalar, env))


@SCALARS.rule(n.Column, n.Outer)
def _column(w: Writer, node: n.Column | n.Outer, env: Env) -> str:
    return env[node.name]


@SCALARS.rule(n.Literal)
def _literal(w: Writer, node: n.Literal, env: Env) -> str:
    return constant(w.dialect, node.value, node.type)


@SCALARS.rule(n.Arithmetic)
def _arithmetic(w: Writer, node: n.Arithmetic, env: Env) -> str:
    left, right = write(w, node.left, env), write(w, node.right, env)
    if type_of(node) == INTEGER and type_of(node.left) == type_of(node.right) == INTEGER:
        left = _of_64_bits(w, node.left, left)
        if not isinstance(node.right, n.Literal):
            right = _of_64_bits(w, node.right, right)
    if type_of(node).temporal and type_of(node.right) == INTEGER:
        right = f"CAST({right} AS INTEGER)"  # engines add days as 32-bit numbers only
    return f"({left} {node.op} {right})"


def _of_64_bits(w: Writer, operand: n.Scalar, text: str) -> str:
    """Write a whole number as the plan has it: a column may have fewer bits, an engine's sums have more."""
    if isinstance(operand, n.Arithmetic):
        return text
    return f"CAST({text} AS {type_name(w.dialect, INTEGER)})"


@SCALARS.rule(n.Compare)
def _compare(w: Writer, node: n.Compare, env: Env) -> str:
    return f"({write(w, node.left, env)} {node.op} {write(w, node.right, env)})"


@SCALARS.rule(n.Negate)
def _negate(w: Writer, node: n.Negate, env: Env) -> str:
    operand = write(w, node.operand, env)
    return f"(- {_of_64_bits(w, node.operand, operand) if type_of(node) == INTEGER else operand})"


@SCALARS.rule(n.SameValue)
def _same_value(w: Writer, node: n.SameValue, env: Env) -> str:
    return f"({write(w, node.left, env)} IS NOT DISTINCT FROM {write(w, node.right, env)})"


@SCALARS.rule(n.And)
def _and(w: Writer, node: n.And, env: Env) -> str:
    return "(" + " AND ".join(write(w, o, env) for o in node.operands) + ")"


@SCALARS.rule(n.Or)
def _or(w: Writer, node: n.Or, env: Env) -> str:
    return "(" + " OR ".join(write(w, o, env) for o in node.operands) + ")"


@SCALARS.rule(n.Not)
def _not(w: Writer, node: n.Not, env: Env) -> str:
    if isinstance(
        node.operand, n.IsNull
    ):  # a scan knows this by itself, a negation it computes for each row
        return f"({write(w, node.operand.operand, env)} IS NOT NULL)"
    return f"(NOT {write(w, node.operand, env)})"


@SCALARS.rule(n.IsNull)
def _is_null(w: Writer, node: n.IsNull, env: Env) -> str:
    return f"({write(w, node.operand, env)} IS NULL)"


@SCALARS.rule(n.Like)
def _like(w: Writer, node: n.Like, env: Env) -> str:
    escape = node.escape and f" ESCAPE {constant(w.dialect, node.escape, TEXT)}"
    return f"({write(w, node.operand, env)} LIKE {write(w, node.pattern, env)}{escape})"


@SCALARS.rule(n.InList)
def _in_list(w: Writer, node: n.InList, env: Env) -> str:
    items = ", ".join(write(w, i, env) for i in node.items)
    return f"({write(w, node.operand, env)} IN ({items}))"


@SCALARS.rule(n.Case)
def _case(w: Writer, node: n.Case, env: Env) -> str:
    branches = "".join(
        f" WHEN {write(w, b.condition, env)} THEN {write(w, b.value, env)}" for b in node.branches
    )
    return f"CASE{branches} ELSE {write(w, node.default, env)} END"


@SCALARS.rule(n.Cast)
def _cast(w: Writer, node: n.Cast, env: Env) -> str:
    # What is wrapped or clamped cannot fail; an engine that drops a clamp must find no conversion that can.
    whole = node.type.kind == "INTEGER" and type_of(node.operand).kind == "DOUBLE"
    word = "TRY_CAST" if whole else "CAST"
    return f"{word}({write(w, node.operand, env)} AS {type_name(w.dialect, node.type)})"


@SCALARS.rule(n.Call)
def _call(w: Writer, node: n.Call, env: Env) -> str:
    arguments = [write(w, a, env) for a in node.arguments]
    if type_of(node) == INTEGER and FUNCTIONS[node.function].partial:
        arguments[0] = _of_64_bits(w, node.arguments[0], arguments[0])
    if node.function in ("lowest", "highest"):
        return first_extreme(arguments, "<=" if node.function == "lowest" else ">=")
    return w.dialect.functions[node.function].format(*arguments, all=", ".join(arguments))


@SCALARS.rule(n.Extract)
def _extract(w: Writer, node: n.Extract, env: Env) -> str:
    return f"EXTRACT({node.part} FROM {write(w, node.operand, env)})"


@SCALARS.rule(n.Attempt)
def _attempt(w: Writer, node: n.Attempt, env: Env) -> str:
    operand = write(w, node.operand, env)
    assert w.dialect.attempt is not None
    return w.dialect.attempt.format(operand)


@SCALARS.rule(n.Clamp)
def _clamp(w: Writer, node: n.Clamp, env: Env) -> str:
    # CASE, not least/greatest: those would turn NULL into a bound. NaN compares above everything.
    x, low, high = (write(w, part, env) for part in (node.operand, node.low, node.high))
    return f"CASE WHEN {x} > {high} THEN {high} WHEN {x} < {low} THEN {low} ELSE {x} END"


@SCALARS.rule(n.Bucket)
def _bucket(w: Writer, node: n.Bucket, env: Env) -> str:
    return bucket_text(write(w, node.operand, env), node.limits)


@SCALARS.rule(n.ScalarSubquery)
def _scalar_subquery(w: Writer, node: n.ScalarSubquery, env: Env) -> str:
    return f"({_select(w, _relation(w, node.relation, env), [fields_of(node.relation)[0].name], distinct=False)})"


@SCALARS.rule(n.InSubquery)
def _in_subquery(w: Writer, node: n.InSubquery, env: Env) -> str:
    operand = write(w, node.operand, env)
    (column,), block = fields_of(node.relation), _relation(w, node.relation, env)
    kind = type_of(node.operand)
    if column.type.kind == "NULL" and kind.kind != "NULL":  # PostgreSQL takes a bare NULL for text
        null = f"CAST({block.refs[column.name]} AS {type_name(w.dialect, kind)})"
        block = replace(block, refs={**block.refs, column.name: null})
    return f"({operand} IN ({_select(w, block, [column.name], distinct=False)}))"


@SCALARS.rule(n.Exists)
def _exists(w: Writer, node: n.Exists, env: Env) -> str:
    block = _relation(w, node.relation, env)
    return f"EXISTS (SELECT 1{block.tail()})"
