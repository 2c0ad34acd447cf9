"""E-rules: how many rows of a relation differ, and how many agree in some columns, operator by operator.

In: a relation of a release, and the tables of which one row may come or go. Out: for each such table an amount that
bounds the rows in the symmetric difference of the outputs, as bags; and for any columns an amount that bounds how
many rows agree in them, none being NULL. Amounts rest on figures that are measured later. One rule a node; a node
without a rule refuses (I3). Never here: data, and keys that nobody answers for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import expressions, tables_read
from secant.plan.rule_table import RuleTable
from secant.plan.show import show_scalar
from secant.plan.typing import fields_of
from secant.plural import first
from secant.policy.keys import Key
from secant.records import frozen
from secant.sensitivity.certificate import CannotBound, Step
from secant.sensitivity.elastic.amounts import (
    ONE,
    ZERO,
    Amount,
    Figure,
    add,
    least,
    measured,
    most,
    number,
    shown,
    times,
)
from secant.sensitivity.elastic.groups import Pins, names_on_side, pins_below, renamed
from secant.sensitivity.summands import shortened

Columns = frozenset[str]
Agreeing = Callable[[Columns], Amount | None]
"""Columns -> how many rows agree in them, as it follows from the inputs; None if it has to be measured."""


@frozen
class Reading:
    """What the rules say of one relation."""

    rows: Mapping[str, Amount]
    """Varying table -> rows that differ if one row of it comes or goes, at most."""
    steps: Mapping[str, Step]
    agreeing: Agreeing


ELASTIC: RuleTable[Callable[..., Reading]] = RuleTable("elastic")


@dataclass
class Elastic:
    """Readings of every relation of one plan. With pins, of its rows of one group only."""

    varying: frozenset[str]
    facts: Facts
    claims: set[Key] = field(default_factory=set)
    """Keys that the readings rest on."""
    readings: dict[tuple[n.Relation, Pins], Reading] = field(default_factory=dict)
    frequencies: dict[tuple[n.Relation, Columns, Pins], Amount] = field(default_factory=dict)

    def of(self, relation: n.Relation, pins: Pins) -> Reading:
        """Give the reading of a relation, or raise CannotBound."""
        reading = self.readings.get((relation, pins))
        if reading is None:
            rule = ELASTIC.find(relation)
            if rule is None:
                word = type(relation).__name__
                raise CannotBound(
                    "elastic.unknown", relation, f"{word} has no rule", "rewrite the query"
                )
            self.row_by_row(relation)
            reading = self._accounted(relation, rule(self, relation, pins))
            self.readings[relation, pins] = reading
        return reading

    def _accounted(self, relation: n.Relation, reading: Reading) -> Reading:
        """Let no rule say that nothing differs where rows that may differ are read: a second wall behind the rules."""
        if any(reading.rows[table] is ZERO for table in tables_read(relation) & self.varying):
            raise CannotBound(
                ELASTIC.ids[type(relation)],
                relation,
                "protected rows are read that no rule accounts for",
                "report this",
            )
        return reading

    def frequency(self, relation: n.Relation, columns: Columns, pins: Pins) -> Amount:
        """Give how many rows of a relation agree in some columns, none of them NULL, at most (elastic.measure)."""
        if isinstance(relation, n.Sort):
            return self.frequency(relation.input, columns, pins)
        if isinstance(relation, n.Project):
            names = renamed(relation, (*columns, *(pins or ())))
            if len(names) == len({*columns, *(pins or ())}):
                below = None if pins is None else tuple(names[p] for p in pins)
                return self.frequency(relation.input, frozenset(names[c] for c in columns), below)
        amount = self.frequencies.get((relation, columns, pins))
        if amount is None:
            amount = self._frequency(relation, columns, pins)
            self.frequencies[relation, columns, pins] = amount
        return amount

    def _frequency(self, relation: n.Relation, columns: Columns, pins: Pins) -> Amount:
        reading = self.of(relation, pins)
        follows = reading.agreeing(columns)
        if follows is not None and follows.op == "number" and follows.value <= 1:
            return follows
        if all(rows.degree == 0 for rows in reading.rows.values()):
            # As many rows differ in every database: the figure of the relation itself moves by no more than these.
            figure = Figure(relation, tuple(sorted(columns)), pins)
            whole = measured(figure, most(*reading.rows.values()))
            return whole if follows is None or follows.op != "number" else least(whole, follows)
        assert follows is not None, (
            "what cannot follow from inputs is a source, where one row differs"
        )
        return follows

    def row_by_row(self, relation: n.Relation) -> None:
        """Check that no expression of a relation sees anything that may differ beside its own row."""
        for part in expressions(relation):
            if not self.varying.isdisjoint(tables_read(part)):
                raise CannotBound(
                    ELASTIC.ids[type(relation)],
                    part,
                    "a subquery looks at protected rows",
                    "write it as a join, or release it first",
                )

    def reading(
        self,
        rule: str,
        description: str,
        rows: Callable[[str], Amount],
        inputs: tuple[Reading, ...],
        agreeing: Agreeing,
    ) -> Reading:
        """Put a reading together, with a step for every table that may differ."""
        amounts = {table: rows(table) for table in sorted(self.varying)}
        steps = {}
        for table, amount in amounts.items():
            amount_text = shown(amount)
            value = (
                "1 row differs"
                if amount_text == "1"
                else f"{shortened(amount_text, 160)} rows differ"
            )
            steps[table] = Step(rule, description, value, tuple(i.steps[table] for i in inputs))
        return Reading(amounts, steps, agreeing)


# ── sources ──────────────────────────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Scan, id="elastic.scan")
def _scan(e: Elastic, node: n.Scan, pins: Pins) -> Reading:
    table = node.table.lower()
    # Only keys that hold in every neighbor, too.
    unique = [(names, key) for names, key in e.facts.keys_in(node) if key.holds_unseen]

    def agreeing(columns: Columns) -> Amount | None:
        held = next((key for names, key in unique if names <= columns), None)
        if held is None:
            return None
        e.claims.update(held.claims)
        return ONE

    pinned = f"{table} differs in one row" if table in e.varying else f"{table} does not differ"
    return e.reading("elastic.scan", pinned, lambda x: ONE if x == table else ZERO, (), agreeing)


@ELASTIC.rule(n.Values, n.Released, id="elastic.public")
def _public(e: Elastic, node: n.Values | n.Released, pins: Pins) -> Reading:
    return e.reading("elastic.public", "public values", lambda x: ZERO, (), lambda columns: None)


# ── row by row ───────────────────────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Filter, id="elastic.filter")
def _filter(e: Elastic, node: n.Filter, pins: Pins) -> Reading:
    (below,) = pins_below(node, pins)
    inner = e.of(node.input, below)
    description = f"rows with {shortened(show_scalar(node.predicate), 70)}"

    def agreeing(columns: Columns) -> Amount:
        return e.frequency(node.input, columns, below)

    return e.reading("elastic.filter", description, inner.rows.__getitem__, (inner,), agreeing)


@ELASTIC.rule(n.Project, id="elastic.project")
def _project(e: Elastic, node: n.Project, pins: Pins) -> Reading:
    (below,) = pins_below(node, pins)
    inner = e.of(node.input, below)

    def agreeing(columns: Columns) -> Amount:
        return e.frequency(node.input, frozenset(renamed(node, columns).values()), below)

    return e.reading("elastic.project", "columns", inner.rows.__getitem__, (inner,), agreeing)


@ELASTIC.rule(n.Sort, id="elastic.sort")
def _sort(e: Elastic, node: n.Sort, pins: Pins) -> Reading:
    return e.of(node.input, pins)


@ELASTIC.rule(n.Limit, id="elastic.limit")
def _limit(e: Elastic, node: n.Limit, pins: Pins) -> Reading:
    inner = e.of(node.input, None)
    _must_be_still("elastic.limit", node, inner, "which rows LIMIT keeps depends on protected rows")

    def agreeing(columns: Columns) -> Amount:
        return e.frequency(node.input, columns, None)

    return e.reading("elastic.limit", "public rows by position", lambda x: ZERO, (inner,), agreeing)


def _must_be_still(rule: str, node: n.Relation, inner: Reading, reason: str) -> None:
    if any(rows is not ZERO for rows in inner.rows.values()):
        raise CannotBound(rule, node, reason, "aggregate first, then limit")


# ── rows that become one ─────────────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Distinct, id="elastic.distinct")
def _distinct(e: Elastic, node: n.Distinct, pins: Pins) -> Reading:
    (below,) = pins_below(node, pins)
    inner = e.of(node.input, below)
    whole = frozenset(f.name for f in fields_of(node))

    def agreeing(columns: Columns) -> Amount:
        return ONE if whole <= columns else e.frequency(node.input, columns, below)

    return e.reading(
        "elastic.distinct", "different rows", inner.rows.__getitem__, (inner,), agreeing
    )


@ELASTIC.rule(n.Aggregate, id="elastic.group")
def _aggregate(e: Elastic, node: n.Aggregate, pins: Pins) -> Reading:
    (below,) = pins_below(node, pins)
    inner = e.of(node.input, below)
    keys = {k.name: k.expression for k in node.keys}

    def rows(table: str) -> Amount:
        # A changed row changes its group's one row: the old one goes, a new one comes.
        changed = inner.rows[table]
        return times(number(2), changed) if node.keys or changed is ZERO else number(2)

    def agreeing(columns: Columns) -> Amount:
        if keys.keys() <= columns:
            return ONE
        grouped = (keys[c] for c in columns if c in keys)
        plain = frozenset(x.name for x in grouped if isinstance(x, n.Column))
        return e.frequency(node.input, plain, below)

    return e.reading("elastic.group", "inner groups", rows, (inner,), agreeing)


# ── joins ────────────────────────────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Join, id="elastic.join")
def _join(e: Elastic, node: n.Join, pins: Pins) -> Reading:
    return _Joined(e, node, pins).reading()


@frozen
class _Joined:
    """One join: partners of a row are those that agree with it in the columns that the condition makes equal."""

    e: Elastic
    node: n.Join
    pins: Pins

    def reading(self) -> Reading:
        node = self.node
        on_left, on_right = pins_below(node, self.pins)
        inputs = (self.e.of(node.left, on_left), self.e.of(node.right, on_right))
        pairs = equal_columns(node)
        description = ", ".join(f"{a} = {b}" for a, b in pairs) or "any pair of rows"
        if node.kind == "left":
            rows = self._padded_rows(*inputs)
            return self.e.reading("elastic.left_join", description, rows, inputs, self._padded)
        return self.e.reading("elastic.join", description, self._rows(*inputs), inputs, self._pairs)

    def _keys(self) -> tuple[Columns, Columns]:
        pairs = equal_columns(self.node)
        return frozenset(a for a, _ in pairs), frozenset(b for _, b in pairs)

    def _left(self, columns: Columns) -> Amount:
        return self.e.frequency(self.node.left, columns, pins_below(self.node, self.pins)[0])

    def _right(self, columns: Columns) -> Amount:
        return self.e.frequency(self.node.right, columns, pins_below(self.node, self.pins)[1])

    def _rows(self, left: Reading, right: Reading) -> Callable[[str], Amount]:
        left_key, right_key = self._keys()

        def rows(table: str) -> Amount:
            ours, theirs = left.rows[table], right.rows[table]
            return add(
                ZERO if ours is ZERO else times(ours, self._right(right_key)),
                ZERO if theirs is ZERO else times(theirs, self._left(left_key)),
                times(ours, theirs),
            )

        return rows

    def _padded_rows(self, left: Reading, right: Reading) -> Callable[[str], Amount]:
        left_key, right_key = self._keys()

        def rows(table: str) -> Amount:
            ours, theirs = left.rows[table], right.rows[table]
            changed = ZERO if ours is ZERO else times(ours, most(ONE, self._right(right_key)))
            if theirs is ZERO:
                return changed
            # A right row comes, and the padded row of each left row that it meets may go.
            return add(changed, times(number(2), theirs, add(self._left(left_key), ours)))

        return rows

    def _fixed(self, columns: Columns) -> tuple[Columns, Columns]:
        """Split columns by sides, with all columns of a pair that are equal to one of them."""
        pairs = equal_columns(self.node)
        grown = set(columns)
        changed = True
        while changed:
            more = {x for pair in pairs if grown & set(pair) for x in pair} - grown
            grown |= more
            changed = bool(more)
        ours = {f.name for f in fields_of(self.node.left)}
        return frozenset(grown & ours), frozenset(grown - ours)

    def _pairs(self, columns: Columns) -> Amount:
        """Choose a row of one side first, then one of its partners; whichever order gives less."""
        left_key, right_key = self._keys()
        on_left, on_right = self._fixed(columns)
        # To start from all rows of a side is rarely better, and costs figures: only where no column is known at all.
        orders = []
        if on_left or not on_right:
            orders.append(times(self._left(on_left), self._right(on_right | right_key)))
        if on_right or not on_left:
            orders.append(times(self._right(on_right), self._left(on_left | left_key)))
        return least(*orders)

    def _padded(self, columns: Columns) -> Amount:
        ours = {f.name for f in fields_of(self.node.left)}
        if not columns <= ours:
            return self._pairs(
                columns
            )  # a column of the right side is known: the row has a partner
        _, right_key = self._keys()
        return times(self._left(columns), most(ONE, self._right(right_key)))


# ── set operations ───────────────────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Union, n.Intersect, n.Except, id="elastic.set")
def _set_operation(e: Elastic, node: n.Union | n.Intersect | n.Except, pins: Pins) -> Reading:
    sides = tuple(zip((node.left, node.right), pins_below(node, pins), strict=True))
    left, right = (e.of(side, below) for side, below in sides)
    whole = frozenset(f.name for f in node.columns)

    def agreeing(columns: Columns) -> Amount:
        if not node.all and whole <= columns:
            return ONE
        on_left, on_right = (
            e.frequency(side, frozenset(names_on_side(node, side, columns).values()), below)
            for side, below in sides
        )
        if isinstance(node, n.Union):
            return add(on_left, on_right)
        return on_left if isinstance(node, n.Except) else least(on_left, on_right)

    def rows(table: str) -> Amount:
        return add(left.rows[table], right.rows[table])

    return e.reading("elastic.set", type(node).__name__, rows, (left, right), agreeing)


# ── limits of another protection ─────────────────────────────────────────────────────────────────


@ELASTIC.rule(n.Truncate, id="elastic.truncate")
def _truncate(e: Elastic, node: n.Truncate, pins: Pins) -> Reading:
    inner = e.of(node.input, None)

    def agreeing(columns: Columns) -> Amount:
        return e.frequency(node.input, columns, None)  # rows without owner agree, and all stay

    description = f"{first(node.limit, 'row')} of each {node.owner[0].rsplit('.', 1)[-1]}"
    return e.reading(
        "elastic.truncate",
        description,
        lambda x: times(number(2), inner.rows[x]),
        (inner,),
        agreeing,
    )


@ELASTIC.rule(n.TruncateGroups, id="elastic.truncate_groups")
def _truncate_groups(e: Elastic, node: n.TruncateGroups, pins: Pins) -> Reading:
    inner = e.of(node.input, None)
    reason = "one row can push a whole group of another protection's unit out"
    _must_be_still("elastic.truncate_groups", node, inner, reason)

    def agreeing(columns: Columns) -> Amount:
        return e.frequency(node.input, columns, None)

    return e.reading("elastic.truncate_groups", "first groups", lambda x: ZERO, (inner,), agreeing)
