"""Declared facts become operators: clamp to a range, keep listed keys, keep the first rows of a unit (I2).

In: one aggregate over protected rows, and the policy. Out: a Release: an exact aggregate over enforced rows that
computes whole-number measures only, and formulas that turn noisy measures into what the user asked for.
A room bounds exactly this plan, and exactly this plan runs (I1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from secant.plan import nodes as n
from secant.plan.domains import Chosen, Domain, Listed, Looked, domains_of, region_of
from secant.plan.ownership import Ownerships, Paths
from secant.plan.ranges import Ranges, ranges_of
from secant.plan.show import same
from secant.plan.total import make_total, many_rowed, total
from secant.plan.typing import fields_of, type_of
from secant.plan.verify import verify
from secant.terms import types as t
from secant.terms.policy import Policy, Protection

MAX_FILTERED = (
    1_000  # longer lists are not written into the statement; stray keys are dropped afterwards
)
GRID_BITS = 40  # a real summand is rounded to 2^-40 of its bound: far below any noise
WHOLE = 2**62


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an aggregate cannot be enforced: rule, place, reason, and what to do."""

    rule: str
    node: n.Node
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A whole-number sum over the enforced rows."""

    column: str
    step: Fraction
    """What one whole unit is worth."""
    type: t.Type
    """Type of the released number."""
    weight: float
    """How much the user's outputs lean on it; decides its share of epsilon. Public."""
    words: str
    """What it is, for explain."""


@dataclass(frozen=True, slots=True)
class Release:
    """One aggregate, ready to be bounded and run."""

    name: str
    exact: n.Aggregate
    measures: tuple[Measure, ...]
    domains: tuple[Domain, ...]
    finish: n.Project
    """From released measures to the aggregate that the user wrote."""
    original: n.Aggregate
    notes: tuple[str, ...]
    """What was enforced, in words, for explain."""
    selector: str | None = None
    """The measure by which private keys are chosen: a unit or a row adds at most one to it for each key."""


def is_protected(table: str, policy: Policy, protections: tuple[Protection, ...]) -> bool:
    """Whether some protection covers rows of the table."""
    return any(table in tables_of(policy, p) for p in protections)


def tables_of(policy: Policy, protection: Protection) -> frozenset[str] | _Every:
    """Give the tables that a protection covers."""
    if protection.kind == "unit":
        return Paths(policy, protection).reached
    if protection.kind == "rows":
        return _EVERY if protection.tables is None else frozenset(protection.tables)
    return frozenset(protection.distance)


class _Every:
    """The set of all tables."""

    def __contains__(self, table: object) -> bool:
        return True


_EVERY = _Every()


def enforce(
    aggregate: n.Aggregate,
    name: str,
    policy: Policy,
    protections: tuple[Protection, ...],
) -> Release | Problem:
    """Turn one aggregate into a release, or say why that cannot be done."""
    builder = _Builder(aggregate, name, policy, protections)
    try:
        return builder.build()
    except _Stopped as stopped:
        return stopped.problem


class _Stopped(Exception):  # noqa: N818 - control flow inside this module only
    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem


@dataclass
class _Builder:
    aggregate: n.Aggregate
    name: str
    policy: Policy
    protections: tuple[Protection, ...]
    items: list[n.Named] = field(default_factory=list)
    calls: list[n.Aggregation] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def build(self) -> Release:
        several = many_rowed(self.aggregate.input)
        if several is not None:
            raise _Stopped(
                Problem(
                    "T-SUBQUERY",
                    several,
                    "the scalar subquery might return several rows, and the error would tell",
                    "aggregate inside the subquery, for example with max()",
                )
            )
        outside = free_columns(self.aggregate)
        if outside:
            raise _Stopped(
                Problem(
                    "T-CORRELATED",
                    self.aggregate,
                    "the aggregate is computed anew for each row of an outer query",
                    "aggregate in a subquery of its own, grouped by the outer key, and join it",
                )
            )
        rows = make_total(self.aggregate.input)
        owners = {
            p.name: Ownerships(Paths(self.policy, p)) for p in self.protections if p.kind == "unit"
        }
        rows = self._carry(rows, owners)
        region = region_of(rows)
        ranges = ranges_of(rows, self.policy, lambda r: _rows_per_group(r, owners))
        domains = domains_of(self.aggregate.keys, region, ranges, self._public)
        self._refuse_telling_keys(rows, domains, owners)
        outputs = [self._output(call, ranges) for call in self.aggregate.aggregations]
        selector = self._selector(rows, domains, owners)
        if not self.calls:
            self._count_rows(
                weight=1.0
            )  # the keys alone were asked for: something must be measured
        enforced = self._rows(rows, domains, owners)
        keys = tuple(
            n.Named(k.name, n.Column(k.name, type_of(k.expression))) for k in self.aggregate.keys
        )
        exact = n.Aggregate(enforced, keys, tuple(self.calls), self.aggregate.span)
        verify(exact)
        released = n.Released(
            self.name,
            tuple(n.Field(k.name, type_of(k.expression)) for k in self.aggregate.keys)
            + tuple(n.Field(m.column, m.type) for m in self.measures),
        )
        finish = n.Project(released, (*keys, *outputs))
        return Release(
            self.name,
            exact,
            tuple(self.measures),
            domains,
            finish,
            self.aggregate,
            tuple(self.notes),
            selector,
        )

    def _selector(
        self, rows: n.Relation, domains: tuple[Domain, ...], owners: dict[str, Ownerships]
    ) -> str | None:
        """Count units (or rows) for each key, if keys must be chosen privately."""
        if not any(isinstance(d, Chosen) for d in domains):
            return None
        if len(owners) > 1:
            raise _Stopped(
                Problem(
                    "T-KEYS",
                    self.aggregate,
                    "keys can be chosen privately under one unit protection only",
                    "declare the values of the grouped columns",
                )
            )
        kinds = {f.name: f.type for f in fields_of(rows)}
        for ownerships in owners.values():
            terms = ownerships.of(rows).terms
            columns = sorted(x.column for x in terms if x.via == ownerships.paths.unit)
            if columns:
                unit = n.Column(columns[0], kinds[columns[0]])
                call = n.Aggregation("", "count", self._argument(unit), True, self.aggregate.span)
                return self._measure(call, Fraction(1), t.INTEGER, 0.5, "number of units").name
        return self._count_rows(weight=0.5).name

    def _refuse_telling_keys(
        self, rows: n.Relation, domains: tuple[Domain, ...], owners: dict[str, Ownerships]
    ) -> None:
        """A group that belongs to one unit never passes the threshold: the answer would always be empty."""
        chosen = {k for d in domains if isinstance(d, Chosen) for k in d.keys}
        for ownerships in owners.values():
            leading = {x.column for x in ownerships.of(rows).terms}
            for key in self.aggregate.keys:
                if (
                    key.name in chosen
                    and isinstance(key.expression, n.Column)
                    and key.expression.name in leading
                ):
                    raise _Stopped(
                        Problem(
                            "T-KEYS",
                            key.expression,
                            f"each value of {_short(key.name)} belongs to one unit, so no group can be shown",
                            "group by something that many units share",
                        )
                    )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def _public(self, relation: n.Relation) -> bool:
        return not any(
            isinstance(s, n.Scan) and is_protected(s.table.lower(), self.policy, self.protections)
            for s in n.walk(relation)
        )

    def _carry(self, rows: n.Relation, owners: dict[str, Ownerships]) -> n.Relation:
        """Carry unit columns through projections, and look them up where a table only refers to its owner."""
        for ownerships in owners.values():
            rows = _carried(rows, ownerships)
            rows = self._attached(rows, ownerships)
        return rows

    def _attached(self, rows: n.Relation, ownerships: Ownerships) -> n.Relation:
        """Join the parents that lead from the rows to the unit's own column."""
        paths = ownerships.paths
        for step in range(20):
            found = ownerships.of(rows)
            if not found.local or any(term.via == paths.unit for term in found.terms):
                return rows
            usable = sorted((x for x in found.terms if x.shared), key=lambda x: (x.via, x.column))
            if not usable:
                return rows
            term = usable[0]
            parent, key = term.via.split(".", 1)
            alias = f"{self.name}.owner{step}.{parent}"
            upward = [c for c, _, _ in paths.parents.get(parent, ())]
            unit_table, unit_column = paths.unit.split(".", 1)
            if parent == unit_table:
                upward.append(unit_column)
            names = list(dict.fromkeys([key, *upward]))
            kinds = {f.name: f.type for f in fields_of(rows)}
            # The types of parents' columns are those of the columns that refer to them: they are compared as equals.
            fields = tuple(n.Field(f"{alias}.{c}", kinds[term.column]) for c in names)
            scan = n.Scan(parent, alias, fields)
            condition = n.Compare(
                "=",
                n.Column(term.column, kinds[term.column]),
                n.Column(f"{alias}.{key}", kinds[term.column]),
            )
            rows = n.Join("inner", rows, scan, condition)
            self.notes.append(
                f"owner looked up: {term.column.rsplit('.', 1)[-1]} -> {parent}.{key}"
            )
        return rows

    def _rows(
        self, rows: n.Relation, domains: tuple[Domain, ...], owners: dict[str, Ownerships]
    ) -> n.Relation:
        keys = tuple(self.aggregate.keys)
        unit_columns: dict[str, str] = {}
        carried: dict[str, n.Named] = {}
        orders: dict[str, tuple[str, ...]] = {}
        for name, ownerships in owners.items():
            found = ownerships.of(rows)
            columns = sorted(x.column for x in found.terms if x.via == ownerships.paths.unit)
            if found.local and columns:
                unit_columns[name] = columns[0]
                kinds = {f.name: f.type for f in fields_of(rows)}
                order = sorted(min(found.keys, key=len)) if found.keys else []
                orders[name] = tuple(c for c in order if c in kinds)
                for column in (columns[0], *orders[name]):
                    carried[column] = n.Named(column, n.Column(column, kinds[column]))
        taken = {k.name for k in keys} | {i.name for i in self.items}
        items = [*keys, *self.items, *(i for c, i in carried.items() if c not in taken)]
        projected: n.Relation = n.Project(rows, tuple(items))
        projected = self._listed(projected, domains)
        for protection in self.protections:
            if protection.kind == "unit" and protection.name in unit_columns:
                projected = self._truncated(
                    projected, rows, protection, owners[protection.name], unit_columns[protection.name],
                    orders[protection.name],
                )  # fmt: skip
        return projected

    def _listed(self, rows: n.Relation, domains: tuple[Domain, ...]) -> n.Relation:
        """Drop rows whose key is not listed, before they use up a unit's limit."""
        kinds = {f.name: f.type for f in fields_of(rows)}
        parts: list[n.Scalar] = []
        for domain in domains:
            if isinstance(domain, Listed) and 0 < len(domain.values) <= MAX_FILTERED:
                kind = kinds[domain.key]
                literals = tuple(n.Literal(v, kind) for v in domain.values if v is not None)
                test: n.Scalar = n.InList(n.Column(domain.key, kind), literals)
                if None in domain.values:
                    test = n.Or((test, n.IsNull(n.Column(domain.key, kind))))
                parts.append(test)
                self.notes.append(
                    f"keys {_short(domain.key)}: {len(domain.values)} from {domain.source}"
                )
            elif isinstance(domain, Looked):
                names = ", ".join(_short(k) for k in domain.keys)
                self.notes.append(f"keys {names}: from {domain.source}")
            elif isinstance(domain, Chosen):
                names = ", ".join(_short(k) for k in domain.keys)
                self.notes.append(f"keys {names}: chosen privately with delta")
        predicate = n.conjunction(tuple(parts))
        return rows if predicate is None else n.Filter(rows, predicate)

    def _truncated(
        self,
        projected: n.Relation,
        rows: n.Relation,
        protection: Protection,
        ownerships: Ownerships,
        column: str,
        order: tuple[str, ...],
    ) -> n.Relation:
        """Keep the first rows (and groups) of each unit."""
        found = ownerships.of(rows)
        if protection.groups is not None and self.aggregate.keys:
            groups = tuple(k.name for k in self.aggregate.keys)
            projected = n.TruncateGroups(projected, (column,), groups, protection.groups)
            self.notes.append(f"first {protection.groups} groups of a unit ({protection.name})")
        if found.guaranteed is not None and (
            found.expected is None or found.guaranteed <= found.expected
        ):
            self.notes.append(
                f"at most {found.guaranteed} row of a unit by construction ({protection.name})"
            )
            return projected
        if found.expected is None:
            wanted = ", ".join(found.missing) or f"limits in protections.{protection.name}"
            raise _Stopped(
                Problem(
                    "T-LIMIT",
                    self.aggregate,
                    f"how many rows of one unit can count is not declared ({wanted})",
                    f"declare {wanted} in the policy",
                )
            )
        self.notes.append(f"first {found.expected} rows of a unit ({protection.name})")
        return n.Truncate(projected, (column,), order, found.expected)

    # ── measures and formulas ────────────────────────────────────────────────────────────────────

    def _output(self, call: n.Aggregation, ranges: Ranges) -> n.Named:
        if call.function == "count":
            return n.Named(call.name, self._not_negative(self._count(call, weight=1.0)))
        rule = _FORMULAS.get(call.function)
        if rule is None:
            raise _Stopped(
                Problem(
                    "T-AGGREGATE",
                    call,
                    f"{call.function} over protected rows has no measures yet",
                    "use count, sum, avg, variance or stddev",
                )
            )
        assert call.argument is not None
        low, high = self._range(call, ranges)
        return n.Named(call.name, rule(self, call, low, high))

    def _range(self, call: n.Aggregation, ranges: Ranges) -> tuple[Fraction, Fraction]:
        assert call.argument is not None
        if not type_of(call.argument).numeric:
            raise _Stopped(Problem("T-RANGE", call, "only numbers can be summed", "sum a number"))
        found = ranges.of(call.argument)
        if not found.bounded:
            missing = _undeclared(call.argument, ranges)
            columns = ", ".join(f"tables.{a}.columns.{b}.range" for a, b in missing)
            raise _Stopped(
                Problem(
                    "T-RANGE",
                    call,
                    "the summed value has no bound that follows from declared ranges",
                    f"declare {columns}" if columns else "use only columns with declared ranges",
                )
            )
        return found.ends()

    def _count(self, call: n.Aggregation, weight: float) -> n.Column:
        if call.argument is None:
            return self._count_rows(weight)
        argument = self._argument(call.argument)
        words = "number of different values" if call.distinct else "number of values"
        return self._measure(
            n.Aggregation("", "count", argument, call.distinct, call.span),
            Fraction(1),
            t.INTEGER,
            weight,
            words,
        )

    def _count_rows(self, weight: float) -> n.Column:
        return self._measure(
            n.Aggregation("", "count", None), Fraction(1), t.INTEGER, weight, "number of rows"
        )

    def _argument(self, scalar: n.Scalar) -> n.Column:
        """Compute an argument once, below the truncation, and give its column."""
        scalar = total(scalar)
        for item in self.items:
            if same(item.expression, scalar):
                return n.Column(item.name, type_of(scalar))
        item = n.Named(f"{self.name}.value{len(self.items)}", scalar)
        self.items.append(item)
        return n.Column(item.name, type_of(scalar))

    def _sum(
        self,
        call: n.Aggregation,
        low: Fraction,
        high: Fraction,
        center: Fraction,
        power: int,
        weight: float,
    ) -> n.Column:
        """Sum (x - center)^power over clamped x, as whole multiples of a public step."""
        assert call.argument is not None
        column = self._argument(call.argument)
        kind = type_of(column)
        exact = (
            kind.kind in ("INTEGER", "DECIMAL") and power == 1 and max(abs(low), abs(high)) < WHOLE
        )
        words = "sum" if power == 1 else "sum of squares"
        if exact:
            step = Fraction(1, 10**kind.scale)
            lows, highs = low // step * step, -(-high // step) * step
            shift = center // step * step
            summand: n.Scalar = n.Clamp(column, _literal(lows, kind), _literal(highs, kind))
            if shift:
                summand = n.Arithmetic("-", summand, _literal(shift, kind))
            released = t.INTEGER if kind.kind == "INTEGER" else t.decimal(38, kind.scale)
            call = n.Aggregation("", "sum", summand, call.distinct, call.span)
            return self._measure(call, step, released, weight, words)
        clamped = n.Clamp(
            n.Cast(column, t.DOUBLE), _literal(low, t.DOUBLE, -1), _literal(high, t.DOUBLE, +1)
        )
        summand = clamped
        if center:
            summand = n.Arithmetic("-", clamped, _literal(center, t.DOUBLE))
        if power == 2:
            half = (high - low) ** 2 / 8
            summand = n.Arithmetic(
                "-", n.Arithmetic("*", summand, summand), _literal(half, t.DOUBLE)
            )
        reach = max(abs(low - center), abs(high - center)) ** power
        step = _grid(reach)
        whole = n.Cast(n.Arithmetic("*", summand, _literal(1 / step, t.DOUBLE)), t.INTEGER)
        # The rounded multiple is clamped once more, so that the bound can be read off the plan.
        bound = _whole_bound(low, high, center, power, step)
        limited = n.Clamp(whole, _literal(-bound, t.INTEGER), _literal(bound, t.INTEGER))
        aggregation = n.Aggregation("", "sum", limited, call.distinct, call.span)
        return self._measure(aggregation, step, t.DOUBLE, weight, words)

    def _measure(
        self, call: n.Aggregation, step: Fraction, kind: t.Type, weight: float, words: str
    ) -> n.Column:
        """Register a measure; equal ones are computed and paid once."""
        for index, known in enumerate(self.calls):
            if same(replace(call, name=known.name), known):
                measure = self.measures[index]
                self.measures[index] = replace(measure, weight=measure.weight + weight)
                return n.Column(measure.column, measure.type)
        column = f"{self.name}.m{len(self.measures)}"
        self.measures.append(Measure(column, step, kind, weight, words))
        self.calls.append(replace(call, name=column))
        return n.Column(column, kind)

    @staticmethod
    def _not_negative(column: n.Column) -> n.Scalar:
        return n.Call("greatest", (column, n.Literal(0, t.INTEGER)))

    def _number_of_values(self, call: n.Aggregation, weight: float) -> n.Scalar:
        count = self._count(replace(call, function="count"), weight)
        return n.Cast(n.Call("greatest", (count, n.Literal(1, t.INTEGER))), t.DOUBLE)

    def sum_formula(self, call: n.Aggregation, low: Fraction, high: Fraction) -> n.Scalar:
        """SUM is its own measure; a sum of values of one sign keeps that sign."""
        total_column = self._sum(call, low, high, Fraction(0), 1, 1.0)
        zero = (
            n.Literal(0, t.INTEGER)
            if total_column.type.kind != "DOUBLE"
            else _literal(Fraction(0), t.DOUBLE)
        )
        if low >= 0:
            return n.Call("greatest", (total_column, zero))
        return n.Call("least", (total_column, zero)) if high <= 0 else total_column

    def _mean(
        self, call: n.Aggregation, low: Fraction, high: Fraction, weight: float
    ) -> tuple[n.Scalar, Fraction]:
        """The mean of x - center, and the center: halving the range halves the noise."""
        assert call.argument is not None
        kind = type_of(call.argument)
        step = (
            Fraction(1, 10**kind.scale)
            if kind.kind in ("INTEGER", "DECIMAL")
            else _grid(high - low or Fraction(1))
        )
        center = (low + high) / 2 // step * step
        # Shares: the error of S/N is (dS, (mean - center) dN)/N; under a flat prior E(mean - center)^2 is a third.
        summed = self._sum(call, low, high, center, 1, weight)
        count = self._number_of_values(call, weight / 3)
        return n.Arithmetic("/", n.Cast(summed, t.DOUBLE), count), center

    def average_formula(self, call: n.Aggregation, low: Fraction, high: Fraction) -> n.Scalar:
        """AVG is center + S/N, moved into the declared range."""
        mean, center = self._mean(call, low, high, 1.0)
        value = n.Arithmetic("+", mean, _literal(center, t.DOUBLE))
        return n.Clamp(value, _literal(low, t.DOUBLE), _literal(high, t.DOUBLE))

    def variance_formula(self, call: n.Aggregation, low: Fraction, high: Fraction) -> n.Scalar:
        """VARIANCE is Q/N - (S/N)^2 about the center, moved into [0, (range/2)^2]; the sample one by N/(N-1)."""
        mean, center = self._mean(call, low, high, 1.0)
        squares = self._sum(call, low, high, center, 2, 1.0)
        count = self._number_of_values(call, 1 / 12)
        half = (high - low) ** 2 / 8
        second = n.Arithmetic(
            "+", n.Arithmetic("/", n.Cast(squares, t.DOUBLE), count), _literal(half, t.DOUBLE)
        )
        spread = n.Arithmetic("-", second, n.Arithmetic("*", mean, mean))
        zero, top = _literal(Fraction(0), t.DOUBLE), _literal((high - low) ** 2 / 4, t.DOUBLE)
        result: n.Scalar = n.Clamp(spread, zero, top)
        if call.function in ("var_samp", "stddev_samp"):
            two = n.Call("greatest", (count, _literal(Fraction(2), t.DOUBLE)))
            less = n.Arithmetic("-", two, _literal(Fraction(1), t.DOUBLE))
            result = n.Arithmetic("*", result, n.Arithmetic("/", two, less))
        return n.Call("sqrt", (result,)) if call.function.startswith("stddev") else result


_FORMULAS: dict[str, Callable[[_Builder, n.Aggregation, Fraction, Fraction], n.Scalar]] = {
    "sum": _Builder.sum_formula,
    "avg": _Builder.average_formula,
    "var_samp": _Builder.variance_formula,
    "var_pop": _Builder.variance_formula,
    "stddev_samp": _Builder.variance_formula,
    "stddev_pop": _Builder.variance_formula,
}


def _carried(rows: n.Relation, ownerships: Ownerships) -> n.Relation:
    """Let projections keep the columns that lead to the unit; a column more changes no count of rows."""
    if isinstance(rows, n.Filter):
        return replace(rows, input=_carried(rows.input, ownerships))
    if isinstance(rows, n.Sort):
        return replace(rows, input=_carried(rows.input, ownerships))
    if isinstance(rows, n.Join):
        left, right = _carried(rows.left, ownerships), _carried(rows.right, ownerships)
        return replace(rows, left=left, right=right)
    if isinstance(rows, n.Project):
        inner = _carried(rows.input, ownerships)
        kinds = {f.name: f.type for f in fields_of(inner)}
        names = {i.name for i in rows.items}
        wanted = sorted({x.column for x in ownerships.of(inner).terms} - names)
        extra = tuple(n.Named(c, n.Column(c, kinds[c])) for c in wanted)
        return n.Project(inner, rows.items + extra)
    return rows


def _rows_per_group(relation: n.Relation, owners: dict[str, Ownerships]) -> int | None:
    counts = [o.of(relation).expected for o in owners.values()]
    known = [c for c in counts if c is not None]
    return min(known) if known else None


def _undeclared(scalar: n.Scalar, ranges: Ranges) -> list[tuple[str, str]]:
    """Give the base columns that an expression rests on and that have no declared bounds."""
    found: list[tuple[str, str]] = []
    stack: list[n.Node] = [scalar]
    seen: set[str] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, n.Column) and node.name not in seen:
            seen.add(node.name)
            if node.name in ranges.origins and not ranges.of(node).bounded:
                found.append(ranges.origins[node.name])
            elif node.name in ranges.definitions:
                stack.append(ranges.definitions[node.name])
            elif node.name in ranges.aggregations:
                argument = ranges.aggregations[node.name][0].argument
                stack += [argument] if argument is not None else []
        elif not isinstance(node, n.Relation):
            stack.extend(n.children(node))
    return sorted(set(found))


def _literal(value: Fraction, kind: t.Type, direction: int = 0) -> n.Literal:
    """Write a rational as a constant of a type; doubles may be rounded outward."""
    if kind.kind == "INTEGER":
        return n.Literal(int(value), kind)
    if kind.kind == "DECIMAL":
        scaled = value * 10**kind.scale
        return n.Literal(Decimal(int(scaled)).scaleb(-kind.scale), t.decimal(38, kind.scale))
    number = float(value)
    if direction and Fraction(number) * direction < value * direction:
        number = math.nextafter(number, math.inf * direction)
    return n.Literal(number, t.DOUBLE)


def _grid(reach: Fraction) -> Fraction:
    """Give the power of two that is 2^-GRID_BITS of the bound, so that scaling a double by it is exact."""
    if reach <= 0:
        return Fraction(1)
    exponent = reach.numerator.bit_length() - reach.denominator.bit_length()
    return Fraction(2) ** (exponent - GRID_BITS)


def _whole_bound(
    low: Fraction, high: Fraction, center: Fraction, power: int, step: Fraction
) -> Fraction:
    reach = max(abs(low - center), abs(high - center))
    if power == 2:
        half = (high - low) ** 2 / 8
        reach = max(abs(reach**2 - half), half)
    return Fraction(-((-reach) // step))


def free_columns(relation: n.Relation) -> frozenset[str]:
    """Give the outer columns that a relation takes from queries around it."""
    inside = {f.name for r in n.walk(relation) if isinstance(r, n.Relation) for f in fields_of(r)}
    return frozenset(
        x.name for x in n.walk(relation) if isinstance(x, n.Outer) and x.name not in inside
    )


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
