"""How many values can a column have after it was moved into its range?

In: a clamp. Out: a number that types and declared ranges tell, which is public. Never here: data.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from secant.plan import nodes as n
from secant.plan.typing import type_of


def values_within(clamp: n.Clamp) -> int | None:
    """Give the most values that a clamp leaves, an empty one among them; None if its type has no steps."""
    kind = type_of(clamp.operand)
    ends = [x.value if isinstance(x, n.Literal) else None for x in (clamp.low, clamp.high)]
    if None in ends or kind.kind not in ("DATE", "INTEGER", "DECIMAL"):
        return None
    low, high = ends
    apart: Any = high - low  # type: ignore[operator]
    whole = apart.days if kind.kind == "DATE" else apart
    scale = kind.scale if kind.kind == "DECIMAL" else 0
    return int(Decimal(whole) * 10 ** (scale or 0)) + 2
