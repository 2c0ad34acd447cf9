"""The space in which values move: which columns a protection names, and how long a move is.

In: a protection of kind `cells` and the scans of a plan. Out: variables (a column seen through one
scan of its table), duals of gradients as numbers and as expressions, and the smoothness that a
product of factors has along the worst direction. Never here: data, epsilon, a rule about a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_columns
from secant.policy.norms import (
    Leaf,
    Measure,
    Norm,
    ScaledNorm,
    columns_of,
    combined,
    dual_power,
    each_once,
    measures_of,
    parse_norm,
    read_power,
)
from secant.policy.policy import Protection
from secant.records import frozen
from secant.schema.types import Type
from secant.sensitivity.derivative import shapes

V = TypeVar("V")
HIGHEST_POWER = quick(2)


@frozen
class Variable:
    """One protected column as one scan shows it: the value that may move."""

    role: str
    """Alias of the scan."""
    column: str
    """Lower-cased name in the base table, as the norm spells it."""
    name: str
    """Name in the plan."""
    type: Type
    measure: Measure
    """The coordinate in which the owner measures its moves."""

    def __hash__(self) -> int:
        return hash(
            self.name
        )  # which a plan has once; gradients are looked up by variable all the time


@frozen
class Role:
    """One scan of a protected table."""

    alias: str
    table: str
    norm: Norm


@frozen
class Block:
    """Part of a gradient of which only the dual norm is known: the columns it may touch, and the bound."""

    role: str
    columns: frozenset[str]


Key = Variable | Block
"""Where a piece of a gradient stands: at one variable, or somewhere in a block."""


@frozen
class Space:
    """All variables of one plan under one protection."""

    roles: Mapping[str, Role]
    variables: Mapping[str, Variable]
    """Plan column -> variable."""
    row_powers: Mapping[str, Fraction | None]
    """Table -> p of the norm over its rows; None is infinity."""
    table_power: Fraction | None

    def tables(self) -> tuple[str, ...]:
        """Give the protected tables, in order."""
        return tuple(sorted({r.table for r in self.roles.values()}))

    def dual(self, role: str, gradient: Mapping[Key, Fraction]) -> Fraction:
        """Give the dual norm of a gradient in one role's row, rounded up (derivative.dual)."""
        return _dual_number(self.roles[role].norm, _in_role(role, gradient))

    def dual_expression(self, role: str, gradient: Mapping[Key, n.Scalar]) -> n.Scalar:
        """Write the dual norm of a gradient whose entries are computed from the row (derivative.dual)."""
        dual = _dual_scalar(self.roles[role].norm, _in_role(role, gradient))
        return shapes.number(0.0) if dual is None else dual

    def reach(self, by_role: Mapping[str, Fraction]) -> Fraction:
        """Give the most that a function moves a unit of distance, from what it moves in each role (derivative.reach).

        Scans of one table may show the same row: their parts add up.
        """
        if len(by_role) == 1:
            (alone,) = by_role.values()
            return alone if alone.numerator > 0 else quick(0)
        tables: dict[str, Fraction] = {}
        for role, value in by_role.items():
            table = self.roles[role].table
            tables[table] = tables.get(table, quick(0)) + value
        return combined(dual_power(self.table_power), tables.values())

    def smoothness(self, rates: Mapping[Key, Fraction]) -> Fraction:
        """Give the smoothness of a positive function from the rates of its logarithm (derivative.rates)."""
        return self.reach(
            {role: self.dual(role, rates) for role in self.roles if _in_role(role, rates)}
        )


@dataclass(slots=True)
class _SpaceParts:
    roles: dict[str, Role] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def _read(text: str) -> Norm:
    return each_once(parse_norm(text))


def space_of(protection: Protection, scans: Iterable[n.Scan]) -> Space:
    """Collect the variables that a protection has in the scans of a plan."""
    visitor = _SpaceParts()
    for scan in scans:
        table = scan.table.lower()
        text = protection.distance.get(table)
        if text is None:
            continue
        norm = _read(text)
        visitor.roles[scan.alias] = Role(scan.alias, table, norm)
        measures = measures_of(norm)
        columns = stored_columns(scan)
        for f in scan.columns:
            column = columns[f.name]
            if column in measures:
                visitor.variables[f.name] = Variable(
                    scan.alias, column, f.name, f.type, measures[column]
                )
    powers = {t: read_power(p) for t, p in protection.row_norms.items()}
    rows = {r.table: powers.get(r.table, quick(1)) for r in visitor.roles.values()}
    return Space(visitor.roles, visitor.variables, rows, read_power(protection.table_norm))


# ── duals (derivative.dual) ───────────────────────────────────────────────────────────────────────────────


def _in_role(role: str, gradient: Mapping[Key, V]) -> dict[Key, V]:
    return {key: value for key, value in gradient.items() if key.role == role}


def _touches(key: Key, columns: frozenset[str]) -> bool:
    if isinstance(key, Variable):
        return key.column in columns
    return bool(key.columns & columns)


def _inside(key: Key, columns: frozenset[str]) -> bool:
    if isinstance(key, Variable):
        return key.column in columns
    return key.columns <= columns


def _split(
    parts: tuple[Norm, ...], dual: Fraction | None, gradient: Mapping[Key, V]
) -> tuple[list[tuple[Norm, dict[Key, V]]], list[V]]:
    """Deal a gradient out to the parts of a combination, with the blocks that span several parts.

    Under an l1 combination the dual is a maximum, so a spanning block may stand in each part that it
    touches; otherwise it is added once, outside.
    """
    dealt: list[tuple[Norm, dict[Key, V]]] = []
    outside: list[V] = []
    sets = [_column_set(p) for p in parts]
    spanning = {
        key
        for key in gradient
        if isinstance(key, Block) and not any(key.columns <= columns for columns in sets)
    }
    for part, columns in zip(parts, sets, strict=True):
        mine = {
            key: value
            for key, value in gradient.items()
            if (_touches(key, columns) if dual is None else _inside(key, columns))
        }
        dealt.append((part, mine))
    if dual is not None:
        outside = [gradient[key] for key in gradient if key in spanning]
    return dealt, outside


_COLUMN_SETS: dict[int, tuple[Norm, frozenset[str]]] = {}
"""By identity: norms are read once, kept by their reader, and asked for their columns again and again."""


def _column_set(norm: Norm) -> frozenset[str]:
    cached = _COLUMN_SETS.get(id(norm))
    if cached is None or cached[0] is not norm:
        if len(_COLUMN_SETS) > 10_000:
            _COLUMN_SETS.clear()
        cached = _COLUMN_SETS[id(norm)] = norm, frozenset(columns_of(norm))
    return cached[1]


def _dual_number(norm: Norm, gradient: Mapping[Key, Fraction]) -> Fraction:
    if len(gradient) <= 1:
        if not gradient:
            return quick(0)
        ((key, value),) = gradient.items()
        if isinstance(key, Variable) and value.numerator >= 0:
            return value / _weight(norm, key.column)
    if isinstance(norm, Leaf):
        return sum(gradient.values(), quick(0))
    if isinstance(norm, ScaledNorm):
        # A block's entry already is a dual norm of the whole role: the factor must not divide it.
        lifted = {k: v * norm.factor if isinstance(k, Block) else v for k, v in gradient.items()}
        return _dual_number(norm.inner, lifted) / norm.factor
    dual = dual_power(norm.power)
    dealt, outside = _split(norm.parts, dual, gradient)
    inner = [_dual_number(part, mine) for part, mine in dealt]
    power = None if dual is None else min(dual, HIGHEST_POWER)  # as the expression is written
    return combined(power, inner) + sum(outside, quick(0))


_WEIGHTS: dict[tuple[int, str], tuple[Norm, Fraction]] = {}
"""By identity of the norm, as above, and column."""


def _weight(norm: Norm, column: str) -> Fraction:
    """Multiply the factors on the way to a column (it stands once, norm.once): what a unit of it counts."""
    cached = _WEIGHTS.get((id(norm), column))
    if cached is not None and cached[0] is norm:
        return cached[1]
    weight, part = quick(1), norm
    while not isinstance(part, Leaf):
        if isinstance(part, ScaledNorm):
            weight, part = weight * part.factor, part.inner
        else:
            part = next(p for p in part.parts if column in _column_set(p))
    if len(_WEIGHTS) > 10_000:
        _WEIGHTS.clear()
    _WEIGHTS[id(norm), column] = norm, weight
    return weight


def _dual_scalar(norm: Norm, gradient: Mapping[Key, n.Scalar]) -> n.Scalar | None:
    if not gradient:
        return None
    if isinstance(norm, Leaf):
        return _sum(list(gradient.values()))
    if isinstance(norm, ScaledNorm):
        up = shapes.float_above(norm.factor)
        lifted = {
            k: shapes.times(up, v) if isinstance(k, Block) else v for k, v in gradient.items()
        }
        inner = _dual_scalar(norm.inner, lifted)
        factor = shapes.float_above(1 / norm.factor)
        return None if inner is None else shapes.times(factor, inner)
    dual = dual_power(norm.power)
    dealt, outside = _split(norm.parts, dual, gradient)
    parts = [s for s in (_dual_scalar(part, mine) for part, mine in dealt) if s is not None]
    joined = _combined_scalar(dual, parts)
    return _sum([*([joined] if joined is not None else []), *outside])


def _combined_scalar(power: Fraction | None, parts: list[n.Scalar]) -> n.Scalar | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    if power is None:
        return _largest(parts)
    if power == 1:
        return _sum(parts)
    exponent = min(power, HIGHEST_POWER)  # higher ones leave the floats, and give less
    raised = [shapes.call("power", p, shapes.number(float(exponent))) for p in parts]
    root = shapes.call("power", _sum(raised), shapes.number(float(1 / exponent)))
    return shapes.call("greatest", root, *parts)  # no underflow can take the largest part away


def _largest(parts: list[n.Scalar]) -> n.Scalar:
    """Write the largest of some parts. Where a part may be empty it is skipped, which is slower."""
    different = list(dict.fromkeys(parts))
    if len(different) == 1:
        return different[0]
    may_be_empty = any(
        isinstance(x, n.Call) and x.function == "coalesce" for p in different for x in n.walk(p)
    )
    return shapes.call("greatest" if may_be_empty else "highest", *different)


def _sum(parts: list[n.Scalar]) -> n.Scalar:
    total = parts[0]
    for part in parts[1:]:
        total = shapes.plus(total, part)
    return total
