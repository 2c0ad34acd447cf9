"""S-rules: one row of a relation, on either of two neighboring databases, as terms and formulas.

In: a relation. Out: an Item: what an occurrence of a row holds, when it is one, what makes it differ, and what
tells it from another occurrence. Never here: solving. D is the larger database and D' is D without one row; an item
is an occurrence of a row in the larger of Out(D) and Out(D'), counted as bags. One rule a node; a node without a
rule refuses (I3). All formulas are necessary conditions, so a search that finds nothing proves a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_columns
from secant.plan.facts.reads import expressions, tables_read
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.smt.allowance import Allowance
from secant.sensitivity.smt.language import MANY_FACES, Expression, Language, Value
from secant.sensitivity.smt.marks import Branch, Each, Mark, Outputs, Padding, Rows, Some
from secant.sensitivity.smt.scalars import Scope

MOST_SERIALIZED = 64
"""Public constants of more rows than this are read as a table of that many unknown rows."""


# ── occurrences ──────────────────────────────────────────────────────────────────────────────────


@frozen
class Row:
    """A row of a base table that an occurrence is made of."""

    table: str
    alias: str
    row: Expression
    columns: Mapping[str, Value]
    present: Expression
    """Holds if the occurrence really has this row, which may stand on the other side of a union."""

    def where(self, language: Language, condition: Expression) -> Row:
        """Give the row, there only if a condition holds as well."""
        return replace(self, present=language.all_of([self.present, condition]))


@frozen
class Item:
    """One occurrence of a row."""

    columns: Mapping[str, Value]
    guard: tuple[Expression, ...]
    """All hold if there is such an occurrence on D or on D'."""
    differs: Expression
    """Holds if the occurrence is on one of them only."""
    mark: Mark
    order: tuple[Expression, ...]
    """Numbers by which occurrences may be sorted, whichever they are."""
    rows: tuple[Row, ...] = ()


@frozen
class EncodedKey:
    """Columns that no two rows of a table share, unless one of them is NULL."""

    columns: tuple[tuple[str, str], ...]
    """Name and kind."""
    label: str = ""
    """What a proof that uses the key must name; empty if the engine keeps the key."""


@dataclass
class Encoder:
    """Gives items of one plan, for one table that a row is taken out of."""

    language: Language
    table: str
    keys: Callable[[str], tuple[EncodedKey, ...]]
    copy: int | None = None
    """With a number, only that use of the table differs, and every use is a table of its own (smt.copies)."""
    counted: n.Relation | None = None
    """A DISTINCT whose values are only counted: which of several equal values stands for them is not seen."""
    allowance: Allowance = field(default_factory=Allowance)
    uses: dict[str, int] = field(default_factory=dict)
    """Where in the plan the table is used."""
    solved: int = 0
    """Steps of the solver that were counted."""

    @property
    def removed(self) -> Expression:
        """Give the row that only the larger database has."""
        return self.language.whole("the removed row")

    def differs(self, relation: n.Relation) -> bool:
        """Whether a relation looks at the table at all."""
        return self.table in tables_read(relation)

    def item(
        self, relation: n.Relation, path: str = "", columns: frozenset[str] | None = None
    ) -> Item:
        """Give a new occurrence of a row of the relation, with the wanted columns."""
        if columns is None:
            columns = _names(relation)
        rule = RELATIONS.find(relation)
        if rule is None:
            word = type(relation).__name__
            raise CannotBound("smt.unknown", relation, f"{word} has no rule", "rewrite the query")
        for part in expressions(relation):
            if self.table in tables_read(part):
                raise CannotBound(
                    "smt.subquery",
                    part,
                    "a subquery looks at protected rows",
                    "join on a key instead of using a subquery",
                )
        item: Item = rule(self, relation, path, columns)
        return item

    def scope(self, columns: Mapping[str, Value]) -> Scope:
        """Give the place of expressions over these columns."""
        return Scope(self.language, columns, self.differs)

    def key_facts(self, space: str, table: str, row: Expression) -> list[Expression]:
        """A key that is not NULL is a function to the one row that has it."""
        facts = []
        language = self.language
        for key in self.keys(table):
            values = [language.column(space, name, kind, row) for name, kind in key.columns]
            name = "row of " + space + " by " + ", ".join(name for name, _ in key.columns)
            back = language.function(name, [value.kind for value in values], "INTEGER")
            used = [language.named_flag(key.label)] if key.label else []
            condition = language.all_of([*used, *(language.no(value.null) for value in values)])
            facts.append(language.z3.Implies(condition, back(*(x.term for x in values)) == row))
        return facts


RELATIONS: RuleTable[Callable[..., Item]] = RuleTable("smt relations")
rule = RELATIONS.rule


@rule(n.Scan, id="smt.scan")
def _scan(e: Encoder, node: n.Scan, path: str, columns: frozenset[str]) -> Item:
    language, table = e.language, node.table.lower()
    row = language.whole(f"row of {node.alias}!{next(language.numbers)}")
    space, differs = table, language.truth(False)
    if table == e.table:
        use = e.uses.setdefault(path, len(e.uses))
        if e.copy is not None:
            space = f"{table} use {use}"
        if e.copy in (None, use):
            differs = row == e.removed
    base = stored_columns(node)
    by_name = {
        f.name: language.column(space, base[f.name], f.type.kind, row)
        for f in node.columns
        if f.name in columns
    }
    keys = [
        language.column(space, name, kind, row).term
        for key in e.keys(table)[:1]
        for name, kind in key.columns
        if kind != "BOOLEAN"
    ]
    return Item(
        by_name,
        tuple(e.key_facts(space, table, row)),
        differs,
        Rows(row),
        (*keys, row),
        (Row(table, node.alias, row, by_name, language.truth(True)),),
    )


@rule(n.Values, id="smt.constant")
def _values(e: Encoder, node: n.Values, path: str, columns: frozenset[str]) -> Item:
    language = e.language
    row = language.whole(f"constant!{next(language.numbers)}")
    by_name = {
        f.name: language.column(f"constants {path}", f.name, f.type.kind, row) for f in node.columns
    }
    guard = [row >= 0, row < len(node.rows)]
    if len(node.rows) <= MOST_SERIALIZED:
        rows = [
            language.all_of([row == index, *(
                language.same(by_name[f.name], language.constant(value, f.type))
                for f, value in zip(node.columns, values, strict=True)
            )])
            for index, values in enumerate(node.rows)
        ]  # fmt: skip
        guard.append(language.any_of(rows))
    return Item(by_name, tuple(guard), language.truth(False), Rows(row), (row,))


@rule(n.Released, id="smt.constant")
def _released(e: Encoder, node: n.Released, path: str, columns: frozenset[str]) -> Item:
    language = e.language
    row = language.whole(f"released!{next(language.numbers)}")
    by_name = {
        f.name: language.column(f"released {node.name}", f.name, f.type.kind, row)
        for f in node.columns
    }
    return Item(by_name, (), language.truth(False), Rows(row), (row,))


@rule(n.Filter, id="smt.filter")
def _filter(e: Encoder, node: n.Filter, path: str, columns: frozenset[str]) -> Item:
    inner = e.item(node.input, path, columns | columns_of(node.predicate))
    return replace(inner, guard=(*inner.guard, e.scope(inner.columns).holds(node.predicate)))


@rule(n.Project, id="smt.filter")
def _project(e: Encoder, node: n.Project, path: str, columns: frozenset[str]) -> Item:
    items = [i for i in node.items if i.name in columns]
    inner = e.item(node.input, path, _read(items))
    scope = e.scope(inner.columns)
    return replace(inner, columns={i.name: scope.value(i.expression) for i in items})


@rule(n.Sort, n.Limit, id="smt.order")
def _ordered(e: Encoder, node: n.Sort | n.Limit, path: str, columns: frozenset[str]) -> Item:
    if isinstance(node, n.Limit) and e.differs(node):
        raise CannotBound(
            "smt.order",
            node,
            "which rows LIMIT keeps depends on protected rows",
            "aggregate first, then limit",
        )
    return e.item(node.input, path, columns)


@rule(n.Join, id="smt.join")
def _join(e: Encoder, node: n.Join, path: str, needed: frozenset[str]) -> Item:
    language = e.language
    read = needed if node.condition is None else needed | columns_of(node.condition)
    left, right = e.item(node.left, path + "l", read), e.item(node.right, path + "r", read)
    columns = {**left.columns, **right.columns}
    meets = e.scope(columns).holds(node.condition)
    order = left.order + right.order
    if node.kind != "left":
        return Item(
            columns,
            (*left.guard, *right.guard, meets),
            language.any_of([left.differs, right.differs]),
            Some((left.mark, right.mark)),
            order,
            left.rows + right.rows,
        )
    padded = language.flag("padded")
    partner = language.all_of([*right.guard, meets])
    hidden = {
        name: Value(value.kind, value.term, language.any_of([padded, value.null]))
        for name, value in right.columns.items()
    }
    return Item(
        {**left.columns, **hidden},
        (*left.guard, language.any_of([padded, partner])),
        # a common row is padded on one side only because a partner is there on the other side only
        language.any_of([left.differs, language.all_of([partner, right.differs])]),
        Padding(padded, left.mark, right.mark, right.differs),
        (
            *left.order,
            language.choose(padded, language.number(1), language.number(0)),
            *right.order,
        ),
        (*left.rows, *(row.where(language, partner) for row in right.rows)),
    )


@rule(n.Distinct, id="smt.distinct")
def _distinct(e: Encoder, node: n.Distinct, path: str, columns: frozenset[str]) -> Item:
    inner = e.item(node.input, path)
    return _merged(e, inner, inner.columns, seen=node is not e.counted)


def _merged(e: Encoder, inner: Item, columns: Mapping[str, Value], seen: bool = True) -> Item:
    """Give the occurrence that stands for all that hold the same values in these columns."""
    mark = Each((inner.mark, Outputs(tuple(columns.values()))))
    item = replace(inner, columns=columns, mark=mark)
    if seen and any(value.kind in MANY_FACES for value in columns.values()):
        return _twice(
            e.language, item
        )  # another one of several equal values may come to stand for them
    return item


def _twice(language: Language, item: Item) -> Item:
    """Give one of two occurrences, before and after, if the occurrence differs."""
    after = language.flag("after")
    return replace(
        item,
        guard=(*item.guard, language.z3.Implies(after, item.differs)),
        mark=Branch(after, (item.mark, item.mark)),
        order=(language.choose(after, language.number(1), language.number(0)), *item.order),
    )


@rule(n.Aggregate, id="smt.group")
def _aggregate(e: Encoder, node: n.Aggregate, path: str, columns: frozenset[str]) -> Item:
    """A group that differs has a row on D and another one on D'; one that does not differ has one row."""
    language = e.language
    inner = e.item(node.input, path, _read(node.keys))
    scope = e.scope(inner.columns)
    keys = {k.name: scope.value(k.expression) for k in node.keys}
    read = columns - keys.keys()
    folded = {f.name: f.type.kind for f in fields_of(node) if f.name in read}
    merged = _merged(e, inner, keys, seen=not folded)
    if node.keys and not folded:  # what is not read does not differ
        return merged
    changed = language.all_of([*inner.guard, inner.differs])
    group = Item(
        {**keys, **{name: language.fresh(name, kind) for name, kind in folded.items()}},
        inner.guard if node.keys else (),
        changed,
        merged.mark if node.keys else Some(()),
        inner.order,
        tuple(row.where(language, language.all_of(inner.guard)) for row in inner.rows),
    )
    return _twice(language, group)


# ── set operations ───────────────────────────────────────────────────────────────────────────────


@rule(n.Union, id="smt.set")
def _union(e: Encoder, node: n.Union, path: str, needed: frozenset[str]) -> Item:
    language = e.language
    left, right = _sides(e, node, path, needed if node.all else _names(node))
    second = language.flag("second")
    choose = language.choose
    columns = {
        name: Value(
            x.kind, choose(second, y.term, x.term), choose(second, y.null, x.null)
        )
        for (name, x), y in zip(left.columns.items(), right.columns.values(), strict=True)
    }  # fmt: skip
    item = Item(
        columns,
        (choose(second, language.all_of(right.guard), language.all_of(left.guard)),),
        choose(second, right.differs, left.differs),
        Branch(second, (left.mark, right.mark)),
        _orders(language, second, left, right),
        (
            *(row.where(language, language.no(second)) for row in left.rows),
            *(row.where(language, second) for row in right.rows),
        ),
    )
    return item if node.all else _merged(e, item, item.columns)


@rule(n.Intersect, n.Except, id="smt.set")
def _cut(e: Encoder, node: n.Intersect | n.Except, path: str, columns: frozenset[str]) -> Item:
    """An occurrence has a row on the left; it can differ because that one does, or an equal one on the right."""
    language = e.language
    left, right = _sides(e, node, path, _names(node))
    same = [
        language.same(x, y)
        for x, y in zip(left.columns.values(), right.columns.values(), strict=True)
    ]
    partner = language.all_of([*right.guard, *same])
    changed = language.all_of([partner, right.differs])
    guard = (*left.guard, partner) if isinstance(node, n.Intersect) else left.guard
    rows = (*left.rows, *(row.where(language, partner) for row in right.rows))
    if not node.all:
        differs = language.any_of([left.differs, changed])
        item = Item(left.columns, guard, differs, left.mark, left.order + right.order, rows)
        return _merged(e, item, item.columns)
    if e.differs(node) and any(value.kind in MANY_FACES for value in left.columns.values()):
        raise CannotBound(
            "smt.set",
            node,
            "which of several equal values are left depends on protected rows",
            "cast them to DECIMAL first",
        )
    second = language.flag("second")
    return Item(
        left.columns,
        (*guard, language.z3.Implies(second, changed)),
        language.choose(second, changed, left.differs),
        Branch(second, (left.mark, right.mark)),
        _orders(language, second, left, right),
        rows,
    )


def _sides(
    e: Encoder, node: n.Union | n.Intersect | n.Except, path: str, columns: frozenset[str]
) -> tuple[Item, Item]:
    """Give an occurrence of either side, with the wanted columns of the whole."""
    sides = []
    for part, step in ((node.left, "l"), (node.right, "r")):
        pairs = zip(node.columns, fields_of(part), strict=True)
        inside = [(whole, own.name) for whole, own in pairs if whole.name in columns]
        item = e.item(part, path + step, frozenset(name for _, name in inside))
        by_name = {f.name: e.language.convert(item.columns[x], f.type.kind) for f, x in inside}
        sides.append(replace(item, columns=by_name))
    return sides[0], sides[1]


def _names(relation: n.Relation) -> frozenset[str]:
    return frozenset(f.name for f in fields_of(relation))


def _read(items: Iterable[n.Named]) -> frozenset[str]:
    return frozenset().union(*(columns_of(i.expression) for i in items))


def _orders(
    language: Language, second: Expression, left: Item, right: Item
) -> tuple[Expression, ...]:
    side = language.choose(second, language.number(1), language.number(0))
    return (side, *left.order, *right.order)
