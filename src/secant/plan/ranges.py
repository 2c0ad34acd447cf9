"""Between which values can an expression lie? Interval arithmetic over declared ranges and the query's own filters.

In: declared facts (policy) and conditions that every row has passed. Out: an interval in numbers (dates count as
days). The result is a wish, not a belief: whoever uses it clamps the value to it (I2).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from secant.numeric import affine
from secant.numeric import interval as iv
from secant.numeric.powers import power_range
from secant.plan import nodes as n
from secant.plan.rewrite import columns_of
from secant.plan.rules import RuleTable
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.terms.policy import Policy

NOTHING_DECLARED = Policy(source="", tables={}, protections=())
"""With it, only what the plan itself clamps counts."""
RANGES: RuleTable[Callable[..., iv.Interval]] = RuleTable("ranges")


def as_number(value: object) -> Fraction | None:
    """Read a constant as a number: dates as days, truth values and text not at all."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, Decimal, float, Fraction)):
        return Fraction(value) if math.isfinite(value) else None
    if isinstance(value, datetime.datetime):
        seconds = (value - datetime.datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001
        return Fraction(seconds) / 86_400
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal() - datetime.date(1970, 1, 1).toordinal())
    return None


@dataclass
class Ranges:
    """What is known of each column of one plan region: where it comes from, and what filters say of it."""

    policy: Policy
    origins: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Column -> (table, column) for columns of base tables."""
    definitions: dict[str, n.Scalar] = field(default_factory=dict)
    """Column -> expression, for computed columns."""
    aggregations: dict[str, tuple[n.Aggregation, int | None]] = field(default_factory=dict)
    """Column -> inner aggregate and the rows that one group can have, if that is declared."""
    merged: dict[str, tuple[n.Column, n.Column]] = field(default_factory=dict)
    """Column of a set operation -> the columns of both sides."""
    filtered: dict[str, iv.Interval] = field(default_factory=dict)
    """Column -> what the conditions on the way leave of it."""
    remembered: dict[n.Node, iv.Interval] | None = None
    """What was found before, for whoever asks about parts of one expression again and again."""

    def of(self, scalar: n.Scalar) -> iv.Interval:
        """Give an interval that holds the expression whenever declared facts hold (and it is not NULL)."""
        if self.remembered is not None and scalar in self.remembered:
            return self.remembered[scalar]
        rule = RANGES.find(scalar)
        found = iv.EVERYTHING if rule is None else rule(self, scalar)
        if self.remembered is not None:
            self.remembered[scalar] = found
        return found


def ranges_of(
    relation: n.Relation, policy: Policy, rows: Callable[[n.Aggregate], int | None]
) -> Ranges:
    """Collect what is known about the columns of a relation. `rows` bounds the rows of a group by declared limits."""
    found = Ranges(policy)
    for node in n.walk(relation):
        if isinstance(node, n.Scan):
            prefix = len(node.alias) + 1
            for f in node.columns:
                found.origins[f.name] = (node.table.lower(), f.name[prefix:].lower())
        elif isinstance(node, n.Project):
            for item in node.items:
                found.definitions[item.name] = item.expression
        elif isinstance(node, n.Aggregate):
            for key in node.keys:
                found.definitions.setdefault(key.name, key.expression)
            for call in node.aggregations:
                found.aggregations[call.name] = (call, rows(node))
        elif isinstance(node, (n.Union, n.Intersect, n.Except)):
            sides = (fields_of(node.left), fields_of(node.right))
            for f, *both in zip(node.columns, *sides, strict=True):
                left, right = (n.Column(side.name, side.type) for side in both)
                found.merged[f.name] = (left, right)
    for condition in conditions_on(relation):
        _learn(found, condition)
    return found


def conditions_on(relation: n.Relation) -> list[n.Scalar]:
    """Give the conditions that every row of the relation has passed."""
    if isinstance(relation, n.Filter):
        return [*conditions_on(relation.input), *n.conjuncts(relation.predicate)]
    if isinstance(relation, (n.Project, n.Sort, n.Distinct, n.Limit, n.Truncate, n.TruncateGroups)):
        return conditions_on(relation.input)
    if isinstance(relation, n.Aggregate) and relation.keys:
        return conditions_on(relation.input)  # they speak of columns, and only key columns live on
    if isinstance(relation, n.Join):
        left = conditions_on(relation.left)
        if relation.kind == "left":
            return left
        return [*left, *conditions_on(relation.right), *n.conjuncts(relation.condition)]
    return []


def _learn(found: Ranges, condition: n.Scalar) -> None:
    """Take what a condition says about a single column beside a constant."""
    if isinstance(condition, n.Compare):
        for a, b, op in (
            (condition.left, condition.right, condition.op),
            (condition.right, condition.left, _FLIPPED[condition.op]),
        ):
            if (
                isinstance(a, n.Column)
                and isinstance(b, n.Literal)
                and type_of(b).kind != "TIMESTAMP"
            ):
                value = as_number(b.value)
                if value is not None:
                    _narrow(found, a.name, _half_line(op, value))
    elif isinstance(condition, n.InList) and isinstance(condition.operand, n.Column):
        values = [as_number(i.value) if isinstance(i, n.Literal) else None for i in condition.items]
        numbers = [v for v in values if v is not None]
        if len(numbers) == len(values) and numbers:
            _narrow(found, condition.operand.name, iv.Interval(min(numbers), max(numbers)))


_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _half_line(op: str, value: Fraction) -> iv.Interval:
    if op == "=":
        return iv.point(value)
    if op in ("<", "<="):
        return iv.Interval(None, value)
    if op in (">", ">="):
        return iv.Interval(value, None)
    return iv.EVERYTHING


def _narrow(found: Ranges, name: str, by: iv.Interval) -> None:
    both = iv.meet(found.filtered.get(name, iv.EVERYTHING), by)
    if both is not None:  # contradictory filters: no row passes, any interval is right
        found.filtered[name] = both


# ── rules ────────────────────────────────────────────────────────────────────────────────────────


@RANGES.rule(n.Column, id="R-COLUMN")
def _column(r: Ranges, node: n.Column) -> iv.Interval:
    known = iv.EVERYTHING
    if node.name in r.origins:
        known = declared(r.policy, *r.origins[node.name])
    elif node.name in r.aggregations:
        known = _aggregation(r, *r.aggregations[node.name])
    elif node.name in r.merged:
        known = iv.hull(*(r.of(side) for side in r.merged[node.name]))
    elif node.name in r.definitions:
        inner = r.definitions[node.name]
        if not (isinstance(inner, n.Column) and inner.name == node.name):
            known = r.of(inner)
    both = iv.meet(known, r.filtered.get(node.name, iv.EVERYTHING))
    return known if both is None else both


def declared(policy: Policy, table: str, column: str) -> iv.Interval:
    """Give the interval that the policy declares for a column."""
    facts = policy.column(table, column)
    if facts.range is not None:
        low, high = as_number(facts.range[0]), as_number(facts.range[1])
        if low is not None and high is not None:
            return iv.Interval(low, high)
    if facts.values is not None:
        numbers = [as_number(v) for v in facts.values]
        known = [v for v in numbers if v is not None]
        if known and len(known) == len(numbers):
            return iv.Interval(min(known), max(known))
    return iv.EVERYTHING


def _aggregation(r: Ranges, call: n.Aggregation, rows: int | None) -> iv.Interval:
    count = iv.Interval(Fraction(0), None if rows is None else Fraction(rows))
    if call.function == "count":
        return count
    assert call.argument is not None
    inner = r.of(call.argument)
    if call.function in ("min", "max", "avg", "median", "quantile_cont", "quantile_disc"):
        return inner
    if call.function == "sum":
        return iv.hull(iv.multiply(inner, count), iv.point(0)) if rows else iv.EVERYTHING
    return iv.Interval(Fraction(0), None)


@RANGES.rule(n.Literal, id="R-LITERAL")
def _literal(r: Ranges, node: n.Literal) -> iv.Interval:
    value = as_number(node.value)
    return iv.EVERYTHING if value is None else iv.point(value)


@RANGES.rule(n.Arithmetic, id="R-ARITHMETIC")
def _arithmetic(r: Ranges, node: n.Arithmetic) -> iv.Interval:
    if "INTERVAL" in (type_of(node.left).kind, type_of(node.right).kind):
        return iv.EVERYTHING
    a, b = r.of(node.left), r.of(node.right)
    if node.op == "+":
        return _repeated(r, node, iv.add(a, b))
    if node.op == "-":
        return _repeated(r, node, iv.add(a, iv.negate(b)))
    if node.op == "*":
        if same(node.left, node.right):
            return iv.whole_power(a, 2)
        return _repeated(r, node, iv.multiply(a, b))
    if node.op == "/":
        return iv.divide(a, b)
    return iv.EVERYTHING


def _repeated(r: Ranges, node: n.Arithmetic, found: iv.Interval) -> iv.Interval:
    """Narrow a range where a column stands on both sides: x * (1 - x) on [0, 1] is at most 1/4 (R-AFFINE)."""
    if not columns_of(node.left) & columns_of(node.right):
        return found
    form = _affine(r, node)
    both = None if form is None else iv.meet(found, form.range())
    return found if both is None else both


def _affine(r: Ranges, scalar: n.Scalar) -> affine.Affine | None:
    """Give an expression as a straight line in its columns; None where it is none and not nearly one."""
    if isinstance(scalar, n.Literal):
        value = as_number(scalar.value)
        return None if value is None else affine.constant(value)
    if isinstance(scalar, n.Cast) and scalar.type.kind == "DOUBLE":
        return _affine(r, scalar.operand)
    if isinstance(scalar, n.Column) or (
        isinstance(scalar, n.Clamp) and isinstance(scalar.operand, n.Column)
    ):
        limits = r.of(scalar)
        column = scalar.operand if isinstance(scalar, n.Clamp) else scalar
        assert isinstance(column, n.Column)
        # A clamped column and the bare one are different values.
        name = f"{column.name} in {limits.low} {limits.high}"
        return affine.variable(name, limits) if limits.bounded else None
    if isinstance(scalar, n.Negate):
        inner = _affine(r, scalar.operand)
        return None if inner is None else affine.negate(inner)
    if isinstance(scalar, n.Arithmetic) and scalar.op in _AFFINE:
        left, right = _affine(r, scalar.left), _affine(r, scalar.right)
        return None if left is None or right is None else _AFFINE[scalar.op](left, right)
    return None


_AFFINE = {"+": affine.add, "-": affine.subtract, "*": affine.multiply}


@RANGES.rule(n.Negate, id="R-NEGATE")
def _negate(r: Ranges, node: n.Negate) -> iv.Interval:
    return iv.negate(r.of(node.operand))


@RANGES.rule(n.Case, id="R-CASE")
def _case(r: Ranges, node: n.Case) -> iv.Interval:
    values = [b.value for b in node.branches] + [node.default]
    known = [r.of(v) for v in values if not (isinstance(v, n.Literal) and v.value is None)]
    result = known[0] if known else iv.EVERYTHING
    for item in known[1:]:
        result = iv.hull(result, item)
    return result


@RANGES.rule(n.Cast, id="R-CAST")
def _cast(r: Ranges, node: n.Cast) -> iv.Interval:
    inner = r.of(node.operand)
    source = type_of(node.operand)
    if node.type.kind in ("DOUBLE", "TIMESTAMP") or node.type == source:
        return inner
    if source.kind == "BOOLEAN" and node.type.numeric:
        return iv.interval(0, 1)
    if node.type.kind in ("INTEGER", "DECIMAL") and source.numeric:
        # Rounding to the target's step moves a value by at most half a step.
        half = Fraction(1, 2 * 10**node.type.scale)
        return iv.add(inner, iv.Interval(-half, half))
    return iv.EVERYTHING


@RANGES.rule(n.Attempt, id="R-ATTEMPT")
def _attempt(r: Ranges, node: n.Attempt) -> iv.Interval:
    return r.of(node.operand)


@RANGES.rule(n.Clamp, id="R-CLAMP")
def _clamp(r: Ranges, node: n.Clamp) -> iv.Interval:
    return iv.smaller(iv.larger(r.of(node.operand), r.of(node.low)), r.of(node.high))


@RANGES.rule(n.Extract, id="R-EXTRACT")
def _extract(r: Ranges, node: n.Extract) -> iv.Interval:
    fixed = {"quarter": (1, 4), "month": (1, 12), "day": (1, 31), "dow": (0, 6), "doy": (1, 366),
             "hour": (0, 23), "minute": (0, 59), "second": (0, 60)}  # fmt: skip
    if node.part in fixed:
        return iv.interval(*fixed[node.part])
    inner = r.of(node.operand)
    if node.part != "year" or not inner.bounded:
        return iv.EVERYTHING
    years = [year_of(end) for end in inner.ends()]
    return iv.interval(*years) if None not in years else iv.EVERYTHING  # type: ignore[arg-type]


def year_of(days: Fraction) -> int | None:
    """Give the year of a day count, or None outside the calendar."""
    ordinal = int(days.__floor__()) + datetime.date(1970, 1, 1).toordinal()
    return datetime.date.fromordinal(ordinal).year if 1 <= ordinal <= 3_652_059 else None


@RANGES.rule(n.Call, id="R-CALL")
def _call(r: Ranges, node: n.Call) -> iv.Interval:
    parts = [r.of(a) for a in node.arguments]
    simple = _CALLS.get(node.function)
    if simple is not None:
        return simple(parts[0])
    if node.function in ("lowest", "highest"):
        strict = iv.smaller if node.function == "lowest" else iv.larger
        result = parts[0]
        for part in parts[1:]:
            result = strict(result, part)
        return result
    if node.function in ("least", "greatest", "coalesce"):
        join = {"least": iv.smaller, "greatest": iv.larger, "coalesce": iv.hull}[node.function]
        result = parts[0]
        for part in parts[1:]:
            # NULL arguments are skipped, so any argument alone may decide.
            result = iv.hull(iv.hull(join(result, part), result), part)
        return result
    if node.function == "power" and isinstance(node.arguments[1], n.Literal):
        exponent = as_number(node.arguments[1].value)
        if exponent is not None and abs(exponent) <= 64:
            return power_range(parts[0], exponent)
    if node.function == "nullif":
        return parts[0]
    if node.function == "date_diff" and as_text(node.arguments[0]) == "day":
        return iv.add(parts[2], iv.negate(parts[1]))
    if node.function == "length":
        return iv.Interval(Fraction(0), None)
    return iv.EVERYTHING


def as_text(node: n.Scalar) -> str | None:
    """Read a written text."""
    return node.value if isinstance(node, n.Literal) and isinstance(node.value, str) else None


def _whole_part(a: iv.Interval) -> iv.Interval:
    return iv.add(a, iv.interval(-1, 1))


_CALLS: dict[str, Callable[[iv.Interval], iv.Interval]] = {
    "exp": iv.exponential,
    "ln": iv.logarithm,
    "sqrt": iv.square_root,
    "abs": iv.absolute,
    "floor": _whole_part,
    "ceil": _whole_part,
    "sign": lambda a: iv.interval(-1, 1),
    "ramp": lambda a: iv.interval(0, 1),
    "sigmoid": lambda a: iv.interval(0, 1),
    "tauoid": lambda a: iv.interval(0, 1),
}
