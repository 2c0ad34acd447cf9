"""What is a shown number made of? Follows every output of a plan down to rows of released tables.

In: the plan that runs on released tables. Out: the same plan with those rows and their noisy numbers carried along, and
each output as an expression over them, for `stated` to say how far it may be from the truth. Every place where a
released table stands has names of its own: two rows of one table carry different noise. What gathers released rows (an
aggregate, a subquery) is written out as a plan of its own, whose rows tell what was gathered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from secant.plan import nodes as n
from secant.plan.facts.scopes import borrowed_by
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.release.staged_tables import reads_released
from secant.schema import types as t

MOST_NODES = 2_000
"""An expression that repeats itself would grow without end."""
MOST_CELLS = 500
"""So would a plan whose parts are shared."""
LARGEST = float(2**63 - 1)
GATHERING = ("count", "sum", "avg", "min", "max")

Expressions = Mapping[str, "n.Scalar | None"]


@frozen
class Drawn:
    """A noisy number of a row of a released table: which table and column, and where the row's number stands."""

    release: str
    column: str
    row: str
    sign: int = 0
    """1 if the true number is never below zero, -1 if it is never above."""


@frozen
class Gathered:
    """An aggregate over released rows: what it adds up, counts or compares, and which group is meant."""

    rows: n.Relation
    """One row for each row that is gathered."""
    columns: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    """Column that tells the group where the number is shown, and the column of `rows` that says the same."""
    call: n.Aggregation
    argument: n.Scalar | None
    """What each row brings; None where every row counts."""
    single: bool
    """Whether there is one row, in the true answer as well."""
    near: Near | None = None
    """Which rows of the group are gathered, where a window counts from each row; None: all."""

    @property
    def running_sum(self) -> bool:
        """Whether it is a window that adds up from the first row to its own."""
        ends = None if self.near is None else (self.near.start, self.near.end)
        return ends == (None, 0) and self.call.function == "sum"


@frozen
class Near:
    """Rows whose place in their partition is at most so far from one's own: None is without end."""

    place: str
    """Column that holds the place, where the number is shown and in the rows that are gathered."""
    start: int | None
    end: int | None

    @property
    def running(self) -> bool:
        """Whether rows that the true answer lacks shift nothing: they lie inside or outside as they are."""
        return self.start is None and self.end in (0, None)


@frozen
class Alone:
    """A subquery of one row, and its columns."""

    rows: n.Relation
    columns: tuple[str, ...]


@frozen
class Traced:
    """A plan that also returns what its outputs rest on, and how each output is made of that."""

    plan: n.Relation
    outputs: tuple[str, ...]
    carried: tuple[str, ...]
    made: Expressions
    """Noisy output -> expression over symbols and carried columns; None if that is not known."""
    drawn: Mapping[str, Drawn]
    """Symbol -> the released number that it stands for."""
    gathered: Mapping[str, Gathered]
    """Symbol -> the aggregate over released rows that it stands for."""
    alone: tuple[Alone, ...]
    chosen: bool
    """Whether noise decides which rows are shown."""

    def made_of(self, output: str) -> n.Scalar | None:
        """Give an output as an expression over released columns, if it is made of single rows."""
        scalar = self.made.get(output)
        if scalar is None or columns_of(scalar) & self.gathered.keys():
            return None
        plain: dict[str, n.Scalar] = {
            name: n.Column(drawn.column, t.DOUBLE) for name, drawn in self.drawn.items()
        }
        return substitute(scalar, plain)

    def closing(self) -> Iterator[n.Relation]:
        """Give everything that runs on released tables: the plan first."""
        yield self.plan
        yield from dict.fromkeys(g.rows for g in self.gathered.values())
        yield from (a.rows for a in self.alone)


def trace(plan: n.Relation, noisy: Mapping[str, int], open_ended: frozenset[str]) -> Traced:
    """Follow every output column down to released rows, and carry those along.

    `noisy` are the columns that noise is on, with the sign of the true number (0 if it may have either); `open_ended`
    are the released tables that may lack rows.
    """
    outputs = tuple(f.name for f in fields_of(plan))
    names = {
        f.name for node in n.walk(plan) if isinstance(node, n.Relation) for f in fields_of(node)
    }
    prefix = "row"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    follower = _Follower(noisy, open_ended, prefix)
    followed = follower.follow(plan)
    return Traced(
        followed.plan,
        outputs,
        tuple(f.name for f in followed.carried),
        {c: s for c, s in followed.made.items() if c in outputs},
        follower.drawn,
        follower.gathered,
        tuple(follower.alone),
        followed.chosen,
    )


@frozen
class _Followed:
    plan: n.Relation
    made: Expressions
    """Noisy column -> what it is made of; columns that are not listed are exact."""
    carried: tuple[n.Field, ...] = ()
    steady: bool = True
    """Whether the rows are those of the true answer, but for groups without rows."""
    chosen: bool = False
    single: bool = False
    """Whether there is one row, in the true answer as well."""


class _Unknown(Exception):  # noqa: N818 - control flow in here only
    """Nothing is known of how a number is made."""


@dataclass
class _Follower:
    noisy: Mapping[str, int]
    open_ended: frozenset[str]
    prefix: str
    drawn: dict[str, Drawn] = field(default_factory=dict)
    gathered: dict[str, Gathered] = field(default_factory=dict)
    alone: list[Alone] = field(default_factory=list)
    places: int = 0

    def _name(self, word: str) -> str:
        self.places += 1
        return f"{self.prefix} {self.places} {word}"

    def follow(self, relation: n.Relation) -> _Followed:
        """Give a relation with what its columns are made of."""
        if not reads_released(relation):
            return _Followed(relation, {})
        if self.places > MOST_CELLS:
            return self._opaque(relation)
        if isinstance(relation, n.Released):
            return self._released(relation)
        if isinstance(relation, n.Project):
            return self._project(relation)
        if isinstance(relation, (n.Filter, n.Sort, n.Limit)):
            return self._picked(relation)
        if isinstance(relation, n.Join):
            return self._join(relation)
        if isinstance(relation, n.Aggregate):
            return self._aggregate(relation)
        if isinstance(relation, n.Union) and relation.all:
            return self._union(relation)
        if isinstance(relation, n.Window):
            return self._window(relation)
        return self._opaque(relation)

    def _opaque(self, relation: n.Relation) -> _Followed:
        expressions = {f.name: None for f in fields_of(relation)}
        return _Followed(relation, expressions, (), steady=False, chosen=True)

    def _released(self, relation: n.Released) -> _Followed:
        row = n.Field(self._name("number"), t.INTEGER)
        noisy = [f for f in relation.columns if f.name in self.noisy]
        symbols = {f.name: n.Field(self._name(f.name), f.type) for f in noisy}
        for f in noisy:
            sign = self.noisy[f.name]
            self.drawn[symbols[f.name].name] = Drawn(relation.name, f.name, row.name, sign)
        numbered = replace(relation, columns=(*relation.columns, row))
        items = [n.Named(f.name, n.Column(f.name, f.type)) for f in numbered.columns]
        items += [n.Named(symbols[f.name].name, n.Column(f.name, f.type)) for f in noisy]
        expressions = {c: n.Column(f.name, f.type) for c, f in symbols.items()}
        carried = (row, *symbols.values())
        steady = relation.name not in self.open_ended
        single = len(noisy) == len(relation.columns)  # no keys
        plan = n.Project(numbered, tuple(items))
        return _Followed(plan, expressions, carried, steady, single=single)

    def _project(self, relation: n.Project) -> _Followed:
        below = self.follow(relation.input)
        carried_items: dict[str, n.Named] = {}
        expressions: dict[str, n.Scalar | None] = {}
        for item in relation.items:
            if self._noisy(item.expression, below):
                expressions[item.name] = self._expression(item.expression, below, carried_items)
        items = [*relation.items, *_columns(below.carried), *carried_items.values()]
        carried = (*below.carried, *_fields(carried_items))
        plan = n.Project(below.plan, tuple(items))
        return replace(below, plan=plan, made=expressions, carried=carried)

    def _picked(self, relation: n.Filter | n.Sort | n.Limit) -> _Followed:
        below = self.follow(relation.input)
        plan = replace(relation, input=below.plan)
        if isinstance(relation, n.Sort):
            return replace(below, plan=plan)
        if isinstance(relation, n.Filter):
            by_noise = self._noisy(relation.predicate, below)
            steady, chosen = below.steady and not by_noise, below.chosen or by_noise
            return replace(below, plan=plan, steady=steady, chosen=chosen, single=False)
        order = relation.input
        exact = isinstance(order, n.Sort) and not any(
            self._noisy(k.expression, below) for k in order.keys
        )
        chosen = below.chosen or not exact
        return replace(below, plan=plan, steady=False, chosen=chosen, single=False)

    def _join(self, relation: n.Join) -> _Followed:
        left, right = self.follow(relation.left), self.follow(relation.right)
        expressions = {**left.made, **right.made}
        both = _Followed(relation, expressions)
        by_noise = relation.condition is not None and self._noisy(relation.condition, both)
        return _Followed(
            replace(relation, left=left.plan, right=right.plan),
            expressions,
            (*left.carried, *right.carried),
            left.steady and right.steady and not by_noise and relation.kind != "left",
            left.chosen or right.chosen or by_noise,
        )

    def _union(self, relation: n.Union) -> _Followed:
        """Carry from both sides what either needs, and a column that tells them apart."""
        sides = self.follow(relation.left), self.follow(relation.right)
        first = n.Field(self._name("first"), t.BOOLEAN)
        expressions: dict[str, n.Scalar | None] = {}
        shared: list[n.Field] = []
        outs = [[f.name for f in fields_of(r)] for r in (relation.left, relation.right)]
        for position, column in enumerate(relation.columns):
            names = outs[0][position], outs[1][position]
            if not any(c in s.made for c, s in zip(names, sides, strict=True)):
                continue
            same = n.Field(self._name("either"), column.type)
            shared.append(same)
            exact = n.Column(same.name, same.type)
            left, right = (s.made.get(c, exact) for c, s in zip(names, sides, strict=True))
            expressions[column.name] = None
            if left is not None and right is not None:
                from_first = n.Column(first.name, t.BOOLEAN)
                expressions[column.name] = n.Case((n.Branch(from_first, left),), right)
        plans = []
        for index, side in enumerate(sides):
            other = sides[1 - index].carried
            own = [n.Named(f.name, n.Column(f.name, f.type)) for f in side.carried]
            missing = [n.Named(f.name, n.Literal(None, f.type)) for f in other]
            kinds = {f.name: f.type for f in fields_of(side.plan)}
            shown = [n.Named(c, n.Column(c, kinds[c])) for c in outs[index]]
            places = [
                outs[index][i] for i, c in enumerate(relation.columns) if c.name in expressions
            ]
            again = [
                n.Named(k.name, n.Cast(n.Column(c, kinds[c]), k.type))
                for k, c in zip(shared, places, strict=True)
            ]
            mark = n.Named(first.name, n.Literal(index == 0, t.BOOLEAN))
            parts = [*own, *missing] if index == 0 else [*missing, *own]
            plans.append(n.Project(side.plan, (*shown, *parts, *again, mark)))
        carried = (*sides[0].carried, *sides[1].carried, *shared, first)
        return _Followed(
            n.Union(plans[0], plans[1], True, (*relation.columns, *carried), relation.span),
            expressions,
            carried,
            sides[0].steady and sides[1].steady,
            sides[0].chosen or sides[1].chosen,
        )

    def _aggregate(self, relation: n.Aggregate) -> _Followed:
        below = self.follow(relation.input)
        noisy_keys = [k for k in relation.keys if self._noisy(k.expression, below)]
        expressions: dict[str, n.Scalar | None] = {k.name: None for k in noisy_keys}
        if noisy_keys or not below.steady:
            expressions |= {a.name: None for a in relation.aggregations}
            untold = replace(relation, input=below.plan)
            return _Followed(untold, expressions, (), steady=False, chosen=bool(noisy_keys))
        carried_items: dict[str, n.Named] = {}
        key_fields = {
            k.name: n.Field(self._name("key"), type_of(k.expression)) for k in relation.keys
        }
        inside = [n.Named(key_fields[k.name].name, k.expression) for k in relation.keys]
        calls, arguments = [], {}
        for call in relation.aggregations:
            argument = None
            if call.argument is not None and not call.distinct and call.function in GATHERING:
                argument = self._expression(call.argument, below, carried_items)
            arguments[call.name] = argument
            calls.append(self._without_limits(call, below))
        source = n.Project(below.plan, (*_all(below.plan), *carried_items.values()))
        rows = n.Project(source, (*inside, *_columns((*below.carried, *_fields(carried_items)))))
        names = tuple(f.name for f in fields_of(rows))
        for call in relation.aggregations:
            argument = arguments[call.name]
            if call.argument is None and below.single:
                continue  # it counts one row
            if (
                call.function not in GATHERING
                or call.distinct
                or (call.argument and argument is None)
            ):
                expressions[call.name] = None
                continue
            symbol = self._name(call.name)
            keys = tuple((key_fields[k.name].name, key_fields[k.name].name) for k in relation.keys)
            self.gathered[symbol] = Gathered(rows, names, keys, call, argument, below.single)
            expressions[call.name] = n.Column(symbol, type_of(call))
        aggregate = n.Aggregate(source, relation.keys, tuple(calls), relation.span)
        again = [
            n.Named(key_fields[k.name].name, n.Column(k.name, key_fields[k.name].type))
            for k in relation.keys
        ]
        plan = n.Project(aggregate, (*_all(aggregate), *again))
        return _Followed(plan, expressions, tuple(key_fields.values()), single=not relation.keys)

    def _window(self, relation: n.Window) -> _Followed:
        """Follow calls whose windows no noise decides; numbers of other rows are told by how far away they are."""
        below = self.follow(relation.input)
        expressions: dict[str, n.Scalar | None] = {
            **below.made,
            **{c.name: None for c in relation.calls},
        }
        carried_items: dict[str, n.Named] = {}
        key_items: list[n.Named] = []
        places: list[n.WindowCall] = []
        windows: list[tuple[n.WindowCall, n.Scalar | None, Near | None, list[str]]] = []
        calls: list[n.WindowCall] = []
        for call in relation.calls:
            by = (*call.partition, *(k.expression for k in call.order))
            frame = _frame_of(call)
            if frame is None or not below.steady or any(self._noisy(x, below) for x in by):
                calls.append(call)
                continue
            argument = None
            if call.arguments:
                argument = self._expression(call.arguments[0], below, carried_items)
                one = n.Aggregation(call.name, "sum", call.arguments[0])
                raw = self._without_limits(one, below).argument if call.function != "max" else None
                call = replace(call, arguments=(raw or call.arguments[0], *call.arguments[1:]))
            calls.append(call)
            if call.arguments and argument is None:
                continue
            near = None
            if (frame.start, frame.end) != (None, None):
                word = "row_number" if frame.unit == "rows" else "dense_rank"
                name = self._name("place")
                places.append(n.WindowCall(name, word, (), call.partition, call.order))
                near = Near(name, frame.start, frame.end)
            keys = [n.Named(self._name("key"), x) for x in call.partition]
            key_items += keys
            windows.append((call, argument, near, [k.name for k in keys]))
        source = n.Project(below.plan, (*_all(below.plan), *carried_items.values()))
        placed = n.Window(source, (*calls, *places), relation.span)
        plan = n.Project(placed, (*_all(placed), *key_items))
        more = [*_fields(carried_items), *(n.Field(p.name, t.INTEGER) for p in places)]
        more += [n.Field(k.name, type_of(k.expression)) for k in key_items]
        carried = (*below.carried, *more)
        for call, argument, near, keys_ in windows:
            rows = n.Project(plan, tuple(_columns(carried)))
            symbol = self._name(call.name)
            word = call.function if call.function in GATHERING else "sum"
            gathers = n.Aggregation(call.name, word, call.arguments[0] if call.arguments else None)
            pairs = tuple((k, k) for k in keys_)
            names = tuple(f.name for f in carried)
            self.gathered[symbol] = Gathered(
                rows, names, pairs, gathers, argument, below.single, near
            )
            expressions[call.name] = n.Column(symbol, type_of(call))
        return replace(below, plan=plan, made=expressions, carried=carried)

    def _without_limits(self, call: n.Aggregation, below: _Followed) -> n.Aggregation:
        """Let sums take what noise made: sums of what was kept from falling below zero would be too large."""
        if call.argument is None or call.function not in ("sum", "avg") or call.distinct:
            return call
        raw: dict[str, n.Scalar] = {}
        for column in columns_of(call.argument) & below.made.keys():
            expression = below.made[column]
            unlimited_expression = None if expression is None else unlimited(expression, self.drawn)
            if unlimited_expression is not expression and isinstance(
                unlimited_expression, n.Column
            ):
                raw[column] = unlimited_expression
        return replace(call, argument=substitute(call.argument, raw)) if raw else call

    # ── expressions ──────────────────────────────────────────────────────────────────────────────

    def _noisy(self, scalar: n.Scalar, below: _Followed) -> bool:
        if columns_of(scalar) & below.made.keys():
            return True
        inner = [node for node in n.walk(scalar) if isinstance(node, n.Relation)]
        return any(reads_released(node) for node in inner)

    def _expression(
        self, scalar: n.Scalar, below: _Followed, carried: dict[str, n.Named]
    ) -> n.Scalar | None:
        """Give an expression over symbols; exact columns that it needs are kept under new names."""
        try:
            expression = self._over(scalar, below, carried)
        except _Unknown:
            return None
        return None if sum(1 for _ in n.walk(expression)) > MOST_NODES else expression

    def _over(self, node: n.Scalar, below: _Followed, carried: dict[str, n.Named]) -> n.Scalar:
        if isinstance(node, n.Column):
            if node.name not in below.made:
                return self._keep(node, node.name, carried)
            expression = below.made[node.name]
            if expression is None:
                raise _Unknown
            return expression
        if isinstance(node, n.ScalarSubquery):
            return self._one_row(node)
        if isinstance(node, (n.Outer, n.InSubquery, n.Exists)):
            raise _Unknown
        if isinstance(node, n.Case):
            guarded = _guarded(node)
            if guarded is not None:
                return self._over(guarded, below, carried)
            branches = tuple(
                n.Branch(
                    self._condition(b.condition, below, carried),
                    self._over(b.value, below, carried),
                )
                for b in node.branches
            )
            return n.Case(branches, self._over(node.default, below, carried))

        def change(child: n.Node) -> n.Node:
            if isinstance(child, n.Relation) or not isinstance(child, n.Scalar):
                raise _Unknown
            return self._over(child, below, carried)

        changed = n.rebuild(node, change)
        assert isinstance(changed, n.Scalar)
        return changed

    def _condition(
        self, condition: n.Scalar, below: _Followed, carried: dict[str, n.Named]
    ) -> n.Scalar:
        """Keep whether a condition holds that reads exact columns; one that could fail is not asked twice."""
        if self._noisy(condition, below) or not all(
            isinstance(x, _SAFE) for x in n.walk(condition)
        ):
            raise _Unknown
        return self._keep(condition, f"condition {id(condition)}", carried)

    def _keep(self, scalar: n.Scalar, key: str, carried: dict[str, n.Named]) -> n.Column:
        if key not in carried:
            carried[key] = n.Named(self._name("exact"), scalar)
        return n.Column(carried[key].name, type_of(scalar))

    def _one_row(self, node: n.ScalarSubquery) -> n.Scalar:
        if borrowed_by(node.relation) or not reads_released(node.relation):
            raise _Unknown
        followed = self.follow(node.relation)
        ((column),) = (f.name for f in fields_of(node.relation))
        expression = followed.made.get(column)
        if expression is None:
            raise _Unknown
        self.alone.append(Alone(followed.plan, tuple(f.name for f in fields_of(followed.plan))))
        return expression


def _frame_of(call: n.WindowCall) -> n.Frame | None:
    """Give the rows that a call adds up or compares; None for calls of which no error is told."""
    if call.function in GATHERING:
        return call.frame
    if call.function not in ("lag", "lead") or len(call.arguments) > 2:
        return None
    by = call.arguments[1] if len(call.arguments) == 2 else n.Literal(1, t.INTEGER)
    if not isinstance(by, n.Literal) or not isinstance(by.value, int):
        return None
    away = by.value if call.function == "lead" else -by.value
    return n.Frame("rows", away, away)


def _guarded(node: n.Case) -> n.Scalar | None:
    """Read CASE WHEN x fits into its type THEN x ELSE NULL END: noise that does not is not shown at all."""
    if (
        len(node.branches) != 1
        or not isinstance(node.default, n.Literal)
        or node.default.value is not None
    ):
        return None
    (branch,) = node.branches
    for part in n.conjuncts(branch.condition):
        if not isinstance(part, n.Compare) or part.op not in (">=", "<="):
            return None
        value = part.right.value if isinstance(part.right, n.Literal) else None
        size = n.Call("abs", (branch.value,))
        fits = same(part.left, branch.value) or (part.op == "<=" and same(part.left, size))
        if not isinstance(value, (int, Decimal, float)) or not fits:
            return None
        limit = float(value)
        if abs(limit) < LARGEST or (limit > 0) != (part.op == "<="):
            return None
    return branch.value


_SAFE = (n.Column, n.Literal, n.Compare, n.SameValue, n.And, n.Or, n.Not, n.IsNull, n.InList)


def unlimited(scalar: n.Scalar, drawn: Mapping[str, Drawn]) -> n.Scalar:
    """Take off the limits that a true number keeps to anyway: greatest(x, 0) of a count is x."""
    if isinstance(scalar, n.Call) and scalar.function in ("greatest", "least"):
        first, *others = scalar.arguments
        sign = drawn[first.name].sign if isinstance(first, n.Column) and first.name in drawn else 0
        fits = sign == (1 if scalar.function == "greatest" else -1)
        zero = all(isinstance(x, n.Literal) and not x.value for x in others)
        return first if fits and zero else scalar
    if isinstance(scalar, (n.Arithmetic, n.Negate, n.Cast, n.Attempt)):

        def change(child: n.Node) -> n.Node:
            return unlimited(child, drawn) if isinstance(child, n.Scalar) else child

        return n.rebuild(scalar, change)
    return scalar


def signs_of(finish: n.Project) -> dict[str, int]:
    """Give the measures that formulas keep on one side of zero, as the true ones are: 1 above, -1 below."""
    signs: dict[str, int] = {}
    for node in n.walk(finish):
        if isinstance(node, n.Call) and node.function in ("greatest", "least"):
            first = node.arguments[0]
            if isinstance(first, n.Column):
                signs[first.name] = 1 if node.function == "greatest" else -1
    return signs


def counts_of(finish: n.Project, counts: frozenset[str]) -> dict[str, str]:
    """Give for each measure of an average the measure that counts its values: 0 there means NULL."""
    counts_of_columns = {c: c for c in counts}
    for item in finish.items:
        named = columns_of(item.expression)
        if len(named & counts) == 1:
            (count,) = named & counts
            counts_of_columns |= dict.fromkeys(named - counts, count)
    return counts_of_columns


def _fields(carried: Mapping[str, n.Named]) -> tuple[n.Field, ...]:
    return tuple(n.Field(k.name, type_of(k.expression)) for k in carried.values())


def _columns(fields: tuple[n.Field, ...]) -> list[n.Named]:
    return [n.Named(f.name, n.Column(f.name, f.type)) for f in fields]


def _all(relation: n.Relation) -> list[n.Named]:
    return _columns(tuple(fields_of(relation)))
