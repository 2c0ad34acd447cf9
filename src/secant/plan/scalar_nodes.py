"""The expressions of a plan: nodes with one value for each row.

In: built by `from_sql` and by rewrites. Out: read as `plan.nodes`, which has all nodes under one name. Structure and no
behavior, as there.
"""

from __future__ import annotations

from fractions import Fraction

from secant.errors import Span
from secant.plan.node_cache import Node, Relation, Scalar
from secant.records import by_identity
from secant.schema.types import Type


@by_identity
class Column(Scalar):
    """A column of the relation that the expression stands on."""

    name: str
    type: Type
    span: Span | None = None


@by_identity
class Outer(Scalar):
    """A column of an enclosing query, seen from inside a subquery."""

    name: str
    type: Type
    span: Span | None = None


@by_identity
class Literal(Scalar):
    """A constant. Intervals are (months, days, microseconds)."""

    value: object
    type: Type


@by_identity
class Arithmetic(Scalar):
    """`left op right` with op one of + - * / // %; also date ± interval, date ± integer, date - date."""

    op: str
    left: Scalar
    right: Scalar


@by_identity
class Negate(Scalar):
    """`-operand`."""

    operand: Scalar


@by_identity
class Compare(Scalar):
    """`left op right` with op one of = <> < <= > >=; unknown if a side is NULL."""

    op: str
    left: Scalar
    right: Scalar
    span: Span | None = None


@by_identity
class SameValue(Scalar):
    """`left IS NOT DISTINCT FROM right`: NULL equals NULL, never unknown."""

    left: Scalar
    right: Scalar


@by_identity
class And(Scalar):
    """Conjunction in three-valued logic."""

    operands: tuple[Scalar, ...]


@by_identity
class Or(Scalar):
    """Disjunction in three-valued logic."""

    operands: tuple[Scalar, ...]


@by_identity
class Not(Scalar):
    """Negation in three-valued logic."""

    operand: Scalar


@by_identity
class IsNull(Scalar):
    """True or false, never unknown."""

    operand: Scalar


@by_identity
class Like(Scalar):
    """SQL pattern match: % any run, _ one character, each itself after the character that escapes."""

    operand: Scalar
    pattern: Scalar
    escape: str = ""


@by_identity
class InList(Scalar):
    """Membership in a written list; unknown by SQL's rule if no match and a NULL is about."""

    operand: Scalar
    items: tuple[Scalar, ...]


@by_identity
class Branch(Node):
    """WHEN condition THEN value."""

    condition: Scalar
    value: Scalar


@by_identity
class Case(Scalar):
    """The value of the first branch whose condition is true, else the default."""

    branches: tuple[Branch, ...]
    default: Scalar


@by_identity
class Cast(Scalar):
    """Conversion to a type."""

    operand: Scalar
    type: Type


@by_identity
class Call(Scalar):
    """A scalar function from the whitelist in `plan.functions`."""

    function: str
    arguments: tuple[Scalar, ...]
    span: Span | None = None


@by_identity
class Extract(Scalar):
    """A part of a date or timestamp: year, quarter, month, day, dow, doy, hour, minute, second."""

    part: str
    operand: Scalar


@by_identity
class Attempt(Scalar):
    """The operand, or NULL where computing it fails on a row. An error that one row can raise would tell of it."""

    operand: Scalar


@by_identity
class Clamp(Scalar):
    """The operand moved into [low, high]; NULL stays NULL, a NaN goes to `high`."""

    operand: Scalar
    low: Scalar
    high: Scalar


@by_identity
class Quantize(Scalar):
    """A real as a whole number of public steps, rounded, and moved into [low, high] where they are given.

    NULL stays NULL, a NaN goes to `high`. `plan.steps` says how it is computed.
    """

    operand: Scalar
    step: Fraction
    low: int | None = None
    high: int | None = None


@by_identity
class Bucket(Scalar):
    """How many of some numbers, which ascend and are of its type, lie below the operand; 0 where that is NULL."""

    operand: Scalar
    limits: tuple[object, ...]


@by_identity
class ScalarSubquery(Scalar):
    """The one value of a relation with one column; NULL if it has no row."""

    relation: Relation
    span: Span | None = None


@by_identity
class InSubquery(Scalar):
    """Membership in the one column of a relation."""

    operand: Scalar
    relation: Relation
    span: Span | None = None


@by_identity
class Exists(Scalar):
    """Whether a relation has a row."""

    relation: Relation
    span: Span | None = None
