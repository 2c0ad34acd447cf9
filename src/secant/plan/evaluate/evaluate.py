"""What a plan means, on Python rows: the oracle that every other interpretation is tested against.

In: a plan and a database, for each table its rows as mappings (column to value) or as tuples in the
order of the scan's columns. Out: the rows of the answer as tuples. Never here: SQL, engines, noise.
Written to be obviously right; the only liberties are that equality conditions are looked up in a
dictionary and that a subquery is run once for each set of outer values. A computation that fails as
the engine would fail raises `Failure`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

from secant.errors import InternalError
from secant.plan import nodes as n
from secant.plan.evaluate import values as v
from secant.plan.evaluate.joins import Joiner, Pairing
from secant.plan.evaluate.scalars import Frame, Query, Row, RowLayout, code
from secant.plan.evaluate.values import Value
from secant.plan.facts.lineage import stored_column
from secant.plan.facts.regions import joined
from secant.plan.facts.scopes import Borrowed, borrowed
from secant.plan.functions.aggregates import AGGREGATES
from secant.plan.functions.windows import WINDOW_FUNCTIONS, Partition
from secant.plan.rule_table import RuleTable
from secant.plan.typing import Fields, fields_of
from secant.records import frozen
from secant.runtime.work import spend

Database: TypeAlias = Mapping[str, Sequence[Mapping[str, Any] | Sequence[Any]]]
Rows: TypeAlias = Callable[[Frame], list[Row]]
T = TypeVar("T")

RELATIONS: RuleTable[Callable[..., Rows]] = RuleTable("evaluate relations")
rule = RELATIONS.rule


def evaluate(relation: n.Relation, database: Database) -> list[Row]:
    """Give the rows of a plan over a database."""
    return prepare(relation)(database)


def prepare(relation: n.Relation) -> Callable[[Database], list[Row]]:
    """Give the function that answers a plan on any database; it keeps nothing between databases."""
    builder = Builder(borrowed(relation))
    rows = builder.rows(relation)
    return lambda database: rows(Frame(database, {}, {}))


@frozen
class Builder:
    """What is known of a plan while its functions are put together."""

    borrowed: Borrowed
    made: dict[n.Relation, Rows] = field(default_factory=dict)

    def fields(self, relation: n.Relation) -> Fields:
        """Give the columns of a relation."""
        return fields_of(relation)

    def place(self, fields: Fields) -> RowLayout:
        """Give the place of scalars that stand on these columns."""
        positions = {column.name: index for index, column in enumerate(fields)}
        return RowLayout(positions, self.subquery)

    def rows(self, relation: n.Relation) -> Rows:
        """Give the function for a relation; what needs no outer column is computed once."""
        if relation not in self.made:
            run = RELATIONS.find(relation)
            if run is None:
                raise InternalError(
                    "BUG-001", f"evaluate has no rule for {type(relation).__name__}"
                )
            compute: Rows = run(relation, self)
            closed = not self.borrowed[relation]
            self.made[relation] = _once(relation, compute) if closed else compute
        return self.made[relation]

    def subquery(self, relation: n.Relation, positions: Mapping[str, int]) -> Query:
        """Give the function that runs a subquery for a row, once for each set of outer values."""
        rows = self.rows(relation)
        names = sorted(self.borrowed[relation])
        here = [(name, positions[name]) for name in names if name in positions]

        def run(row: Row, frame: Frame) -> list[Row]:
            outer = {**frame.outer, **{name: row[position] for name, position in here}}
            # Two zeros are equal and still differ under division: written out they are different.
            key = (relation, *(repr(outer[name]) for name in names))
            if key not in frame.answers:
                frame.answers[key] = rows(Frame(frame.database, frame.answers, outer))
            answer: list[Row] = frame.answers[key]
            return answer

        return run


def _once(relation: n.Relation, compute: Rows) -> Rows:
    def run(frame: Frame) -> list[Row]:
        if relation not in frame.answers:
            frame.answers[relation] = compute(frame)
        answer: list[Row] = frame.answers[relation]
        return answer

    return run


# ── sources ──────────────────────────────────────────────────────────────────────────────────────


@rule(n.Scan)
def _scan(node: n.Scan, _: Builder) -> Rows:
    columns = tuple(n.Field(stored_column(node, f.name), f.type) for f in node.columns)
    return _stored(node.table, columns)


@rule(n.Released)
def _released(node: n.Released, _: Builder) -> Rows:
    return _stored(node.name, node.columns)


def _stored(table: str, columns: Fields) -> Rows:
    conformed = _conformer(columns)

    def run(frame: Frame) -> list[Row]:
        stored = (
            [row[c.name] for c in columns] if isinstance(row, Mapping) else row
            for row in frame.database[table]
        )
        return [conformed(row) for row in stored]

    return run


def _conformer(columns: Fields) -> Callable[[Sequence[Any]], Row]:
    """Give the function that makes a row's values values of the columns' types."""
    kinds = ("DECIMAL", "DOUBLE", "TIMESTAMP")  # only these take in values of other kinds
    wider = [(index, c.type) for index, c in enumerate(columns) if c.type.kind in kinds]

    def run(row: Sequence[Any]) -> Row:
        if len(row) != len(columns):
            raise InternalError("BUG-001", "a row has another number of values than its relation")
        values = list(row)
        for index, kind in wider:
            values[index] = v.conform(values[index], kind)
        return tuple(values)

    return run


@rule(n.Values)
def _values(node: n.Values, _: Builder) -> Rows:
    spend(len(node.rows))  # declared values are computed with one by one
    rows = [*map(_conformer(node.columns), node.rows)]
    return lambda _: rows


# ── filters and joins ────────────────────────────────────────────────────────────────────────────


@rule(n.Filter)
def _filter(node: n.Filter, builder: Builder) -> Rows:
    return _inner(node, builder)


@rule(n.Join)
def _join(node: n.Join, builder: Builder) -> Rows:
    return _left_join(node, builder) if node.kind == "left" else _inner(node, builder)


def _inner(node: n.Relation, builder: Builder) -> Rows:
    """Filters and inner joins in one: all combinations of rows for which all conditions hold."""
    region = joined(node)
    joiner = Joiner(builder.place, builder.fields, builder.borrowed)
    return joiner.combine([(x, builder.rows(x)) for x in region.leaves], region.conditions)


def _left_join(node: n.Join, builder: Builder) -> Rows:
    left, right = builder.rows(node.left), builder.rows(node.right)
    left_fields, right_fields = builder.fields(node.left), builder.fields(node.right)
    joiner = Joiner(builder.place, builder.fields, builder.borrowed)
    pairing: Pairing = joiner.pairing(left_fields, right_fields, n.conjuncts(node.condition))
    empty: Row = (None,) * len(right_fields)

    def run(frame: Frame) -> list[Row]:
        matches = pairing.prepare(right(frame), frame)
        rows: list[Row] = []
        for row in left(frame):
            matched = matches(row)
            rows += matched or [row + empty]
        return rows

    return run


# ── projection and grouping ──────────────────────────────────────────────────────────────────────


@rule(n.Project)
def _project(node: n.Project, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    layout = builder.place(builder.fields(node.input))
    items = [code(item.expression, layout) for item in node.items]
    return lambda frame: [tuple(item(row, frame) for item in items) for row in source(frame)]


@rule(n.Aggregate)
def _aggregate(node: n.Aggregate, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    layout = builder.place(builder.fields(node.input))
    keys = [code(key.expression, layout) for key in node.keys]
    folds = [_fold(aggregation, layout) for aggregation in node.aggregations]

    def run(frame: Frame) -> list[Row]:
        # Without keys there is one group, also if it is empty.
        groups: dict[Any, tuple[Row, list[Row]]] = {} if keys else {(): ((), [])}
        for row in source(frame):
            values = tuple(key(row, frame) for key in keys)
            groups.setdefault(_row_key(values), (values, []))[1].append(row)
        return [
            values + tuple(fold(members, frame) for fold in folds)
            for values, members in groups.values()
        ]

    return run


def _fold(node: n.Aggregation, layout: RowLayout) -> Callable[[list[Row], Frame], Value]:
    if node.argument is None:
        return lambda rows, _: len(rows)
    argument, apply = code(node.argument, layout), AGGREGATES[node.function].apply
    target = layout.type_of(node)  # type: ignore[arg-type]  # an aggregation has a type as well
    if node.second is not None:
        second = code(node.second, layout)

        def paired(rows: list[Row], frame: Frame) -> Value:
            pairs = [(argument(row, frame), second(row, frame)) for row in rows]
            return v.conform(apply([p for p in pairs if None not in p]), target)

        return paired

    def run(rows: list[Row], frame: Frame) -> Value:
        values = [x for row in rows if (x := argument(row, frame)) is not None]
        if node.distinct:
            values = list({v.same_key(value): value for value in reversed(values)}.values())
        extra = () if node.fraction is None else (node.fraction,)
        return v.conform(apply(values, *extra), target)

    return run


def _row_key(row: Row) -> Any:
    """Give a key under which two rows are the same."""
    return tuple(map(v.same_key, row))


@rule(n.Distinct)
def _distinct(node: n.Distinct, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    return lambda frame: _unique(source(frame))


def _unique(rows: list[Row]) -> list[Row]:
    first: dict[Any, Row] = {}
    for row in rows:
        first.setdefault(_row_key(row), row)
    return list(first.values())


@rule(n.Window)
def _window(node: n.Window, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    layout = builder.place(builder.fields(node.input))
    calls = [_window_values(call, layout) for call in node.calls]

    def run(frame: Frame) -> list[Row]:
        rows = sorted(source(frame), key=_ascending)
        columns = [call(rows, frame) for call in calls]
        return [row + tuple(column[i] for column in columns) for i, row in enumerate(rows)]

    return run


def _window_values(
    node: n.WindowCall, layout: RowLayout
) -> Callable[[list[Row], Frame], dict[int, Value]]:
    """Give the function that computes a call for rows that lie in the order which breaks ties."""
    partition = [code(part, layout) for part in node.partition]
    order = [(code(key.expression, layout), key) for key in node.order]
    arguments = [code(argument, layout) for argument in node.arguments]
    target = layout.type_of(node)  # type: ignore[arg-type]  # a window call has a type as well

    def run(rows: list[Row], frame: Frame) -> dict[int, Value]:
        parts: dict[Any, list[int]] = {}
        for i, row in enumerate(rows):
            parts.setdefault(_row_key(tuple(p(row, frame) for p in partition)), []).append(i)
        inputs: dict[int, Value] = {}
        for members in parts.values():
            for value, key in reversed(order):
                members = _sorted([(value(rows[i], frame), i) for i in members], key)
            values = _of_partition(node, [rows[i] for i in members], order, arguments, frame)
            inputs |= {i: v.conform(x, target) for i, x in zip(members, values, strict=True)}
        return inputs

    return run


def _of_partition(
    node: n.WindowCall, rows: list[Row], order: Any, arguments: Any, frame: Frame
) -> list[Value]:
    keys = [_row_key(tuple(value(row, frame) for value, _ in order)) for row in rows]
    peers = [0]
    for before, own in pairwise(keys):
        peers.append(peers[-1] + (before != own))
    argument_rows = [tuple(argument(row, frame) for argument in arguments) for row in rows]
    partition = Partition(argument_rows, peers)
    function = WINDOW_FUNCTIONS.get(node.function)
    values: list[Value] = []
    for index in range(len(rows)):
        seen = [i for i in range(len(rows)) if _in_frame(node.frame, peers, index, i)]
        if function is not None:
            values.append(function.apply(partition, index, seen))
        elif not node.arguments:
            values.append(len(seen))
        else:
            members = [x for i in seen if (x := argument_rows[i][0]) is not None]
            values.append(AGGREGATES[node.function].apply(members))
    return values


def _in_frame(frame: n.Frame | None, peers: list[int], index: int, other: int) -> bool:
    if frame is None:
        return True
    away = other - index if frame.unit == "rows" else peers[other] - peers[index]
    return (frame.start is None or away >= frame.start) and (frame.end is None or away <= frame.end)


# ── order ────────────────────────────────────────────────────────────────────────────────────────


@rule(n.Sort)
def _sort(node: n.Sort, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    layout = builder.place(builder.fields(node.input))
    keys = [(code(key.expression, layout), key) for key in node.keys]

    def run(frame: Frame) -> list[Row]:
        rows = list(source(frame))
        for value, key in reversed(keys):  # the sort is stable: the first key goes last
            rows = _sorted([(value(row, frame), row) for row in rows], key)
        return rows

    return run


def _sorted(pairs: list[tuple[Value, T]], key: n.SortKey) -> list[T]:
    present = [pair for pair in pairs if pair[0] is not None]
    unknown = [row for value, row in pairs if value is None]
    present.sort(key=lambda pair: v.order_key(pair[0]), reverse=key.descending)
    ordered = [row for _, row in present]
    return unknown + ordered if key.nulls_first else ordered + unknown


@rule(n.Limit)
def _limit(node: n.Limit, builder: Builder) -> Rows:
    source = builder.rows(node.input)
    end = None if node.count is None else node.offset + node.count
    return lambda frame: source(frame)[node.offset : end]


# ── set operations ───────────────────────────────────────────────────────────────────────────────


def _both(
    node: n.Union | n.Intersect | n.Except, builder: Builder
) -> Callable[[Frame], tuple[list[Row], list[Row]]]:
    """Give both sides with values of the common types."""
    left, right = builder.rows(node.left), builder.rows(node.right)
    conformed = _conformer(node.columns)
    return lambda frame: ([*map(conformed, left(frame))], [*map(conformed, right(frame))])


@rule(n.Union)
def _union(node: n.Union, builder: Builder) -> Rows:
    both = _both(node, builder)

    def run(frame: Frame) -> list[Row]:
        left, right = both(frame)
        return left + right if node.all else _unique(left + right)

    return run


@rule(n.Intersect)
def _intersect(node: n.Intersect, builder: Builder) -> Rows:
    both = _both(node, builder)

    def run(frame: Frame) -> list[Row]:
        left, right = both(frame)
        return _semijoin(left if node.all else _unique(left), right, keep=True)

    return run


@rule(n.Except)
def _except(node: n.Except, builder: Builder) -> Rows:
    both = _both(node, builder)

    def run(frame: Frame) -> list[Row]:
        left, right = both(frame)
        if node.all:
            return _semijoin(left, right, keep=False)
        barred = set(map(_row_key, right))
        return [row for row in _unique(left) if _row_key(row) not in barred]

    return run


def _semijoin(left: list[Row], right: list[Row], keep: bool) -> list[Row]:
    """Pair each right row with an equal left row; give the left rows with a partner, or without."""
    partners = Counter(map(_row_key, right))
    rows = []
    for row in left:
        paired = partners[_row_key(row)] > 0
        if paired:
            partners[_row_key(row)] -= 1
        if paired is keep:
            rows.append(row)
    return rows


# ── truncation ───────────────────────────────────────────────────────────────────────────────────


def _ascending(row: Row) -> Any:
    """Give a key for ascending order with NULLs last."""
    return tuple((value is None, v.same_key(value)) for value in row)


def _picker(fields: Fields, names: Sequence[str]) -> Callable[[Row], Row]:
    index_of = {column.name: index for index, column in enumerate(fields)}
    positions = [index_of[name] for name in names]
    return lambda row: tuple(row[position] for position in positions)


def _by_owner(rows: list[Row], owner: Callable[[Row], Row]) -> tuple[list[list[Row]], list[Row]]:
    """Give the rows of each owner, and those of nobody."""
    owners: dict[Any, list[Row]] = {}
    nobodys: list[Row] = []
    for row in rows:
        if None in owner(row):
            nobodys.append(row)
        else:
            owners.setdefault(_row_key(owner(row)), []).append(row)
    return list(owners.values()), nobodys


@rule(n.Truncate)
def _truncate(node: n.Truncate, builder: Builder) -> Rows:
    source, fields = builder.rows(node.input), builder.fields(node.input)
    owner = _picker(fields, node.owner)
    others = [c.name for c in fields if c.name not in node.owner and c.name not in node.order]
    order = _picker(fields, (*node.order, *others))

    def run(frame: Frame) -> list[Row]:
        owned, nobodys = _by_owner(source(frame), owner)
        cut = nobodys if node.limit else []
        for rows in owned:
            cut += sorted(rows, key=lambda row: _ascending(order(row)))[: node.limit]
        return cut

    return run


@rule(n.TruncateGroups)
def _truncate_groups(node: n.TruncateGroups, builder: Builder) -> Rows:
    source, fields = builder.rows(node.input), builder.fields(node.input)
    owner, group = _picker(fields, node.owner), _picker(fields, node.groups)

    def run(frame: Frame) -> list[Row]:
        owned, nobodys = _by_owner(source(frame), owner)
        cut = nobodys if node.limit else []
        for rows in owned:
            first = sorted({_ascending(group(row)) for row in rows})[: node.limit]
            cut += [row for row in rows if _ascending(group(row)) in first]
        return cut

    return run
