"""The value types of the plan: few, engine-neutral, and ordered by promotion.

A type says which operations make sense, not how many bits an engine uses: INTEGER is any whole number,
DECIMAL keeps its scale because exact sums rest on it.
"""

from __future__ import annotations

from dataclasses import field

from secant.records import frozen

NUMERIC_KINDS = ("INTEGER", "DECIMAL", "DOUBLE")
KINDS = ("BOOLEAN", *NUMERIC_KINDS, "TEXT", "DATE", "TIMESTAMP", "INTERVAL", "NULL")
MAX_PRECISION = 38
FORMS = ("UUID", "ENUM", "BLOB", "TIME")
"""Types of sources that are shown as another kind: uuid, enum and blob as TEXT, time as TIMESTAMP of one day."""


@frozen
class Type:
    """One type: its kind and, for DECIMAL, precision and scale."""

    kind: str
    precision: int = 0
    scale: int = 0
    form: str = field(default="", compare=False)
    """What a source calls it, where that says how constants are read and what makes no sense: one of FORMS."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise AssertionError(f"unknown kind {self.kind}")

    def __str__(self) -> str:
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        return self.form or self.kind

    @property
    def numeric(self) -> bool:
        """Whether arithmetic makes sense on the type (NULL takes part in everything)."""
        return self.kind in NUMERIC_KINDS or self.kind == "NULL"

    @property
    def temporal(self) -> bool:
        """Whether the type is a point in time."""
        return self.kind in ("DATE", "TIMESTAMP")


BOOLEAN = Type("BOOLEAN")
INTEGER = Type("INTEGER")
DOUBLE = Type("DOUBLE")
TEXT = Type("TEXT")
DATE = Type("DATE")
TIMESTAMP = Type("TIMESTAMP")
INTERVAL = Type("INTERVAL")
NULL = Type("NULL")
UUID, ENUM, BLOB = (Type("TEXT", form=form) for form in FORMS[:3])
TIME = Type("TIMESTAMP", form="TIME")


def decimal(precision: int, scale: int) -> Type:
    """Give DECIMAL with at most the engine's widest precision."""
    return Type("DECIMAL", min(precision, MAX_PRECISION), scale)


def comparable(left: Type, right: Type) -> bool:
    """Whether `left = right` makes sense without a cast that the user did not write.

    Text beside a date is allowed only for literals, which the binder turns into dates first.
    """
    if "NULL" in (left.kind, right.kind) or left.kind == right.kind:
        return True
    return (left.numeric and right.numeric) or (left.temporal and right.temporal)


def unify(left: Type, right: Type) -> Type | None:
    """Give the type that holds the values of both, or None where there is none."""
    if left == right or right.kind == "NULL":
        return left
    if left.kind == "NULL":
        return right
    if left.numeric and right.numeric:
        if "DOUBLE" in (left.kind, right.kind):
            return DOUBLE
        return _unify_exact(left, right)
    if left.temporal and right.temporal:
        return TIMESTAMP
    return None


def _unify_exact(left: Type, right: Type) -> Type:
    if left.kind == right.kind == "INTEGER":
        return INTEGER
    # A whole number beside a decimal is taken as wide as 64 bits can be.
    shapes = [(19, 0) if t.kind == "INTEGER" else (t.precision, t.scale) for t in (left, right)]
    scale = max(s for _, s in shapes)
    return decimal(max(p - s for p, s in shapes) + scale, scale)
