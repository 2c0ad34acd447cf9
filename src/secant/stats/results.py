"""What a statistic hands back: the value, its error, its guarantee, its cost, and why this mechanism.

In: public facts and one released number. Out: records and the sentences that they print. No private
number enters a record: where the noise follows a smooth bound, its size is not stated.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from secant.display.drawing import Picture
from secant.records import frozen
from secant.stats.plot import Curve, draw

Neighbors = Literal["add-remove", "replace"]
ADD_REMOVE: Neighbors = "add-remove"
REPLACE: Neighbors = "replace"
RELATIONS: dict[Neighbors, str] = {
    ADD_REMOVE: "one value added or removed",
    REPLACE: "one value replaced by another; how many there are is public",
}


@frozen
class ErrorBar:
    """How far the released value may be from the true one."""

    level: float
    amount: float | None
    """None where only the owner may know it."""
    unit: Literal["value", "rows"]
    words: str


@frozen
class Guarantee:
    """What is hidden, and how well."""

    protects: str
    epsilon: float
    delta: float
    neighbors: Neighbors
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        strength = f"{self.epsilon:g}-differential privacy"
        if self.delta:
            strength = f"({self.epsilon:g}, {self.delta:g})-differential privacy"
        assumed = "".join(f"; assuming that {a}" for a in self.assumptions)
        return f"{strength} for {self.protects}{assumed}"


@frozen
class Cost:
    """Who paid for the release."""

    charged_to: str | None
    epsilon: float
    delta: float
    release_id: str | None = None

    def __str__(self) -> str:
        price = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        if self.charged_to is None:
            return f"{price}, charged to nobody: keep count yourself"
        return f"{price}, charged to {self.charged_to}"


def closing_lines(
    guarantee: Guarantee, cost: Cost, mechanism: str, why: str, shared: str = ""
) -> list[str]:
    """Give the lines that every result of a statistic ends with; `shared` says for what all the cost was paid."""
    return [
        f"  guarantee  {guarantee}",
        f"  cost       {cost}{shared}",
        f"  mechanism  {mechanism}: {why}",
    ]


def closing_values(guarantee: Guarantee, cost: Cost, *, delta: bool = False) -> dict[str, Any]:
    """Give price and payer as the plain values that a result of several numbers ends with."""
    return {
        "epsilon": guarantee.epsilon,
        **({"delta": guarantee.delta} if delta else {}),
        "charged_to": cost.charged_to,
        "release_id": cost.release_id,
    }


@frozen
class Candidate:
    """A mechanism that could be used, with the mean error that it would have on made-up data."""

    mechanism: str
    expected: dict[str, float]
    """By the name of a public example: mean absolute error, in units of the values."""


@frozen
class Release:
    """A released statistic.

    >>> bar = ErrorBar(0.95, 3.0, "value", "")
    >>> promise = Guarantee("one value added or removed", 1.0, 0.0, "add-remove")
    >>> print(Release("count", 41, bar, promise, Cost(None, 1.0, 0.0), "discrete-laplace", "").value)
    41
    """

    statistic: str
    value: float
    error: ErrorBar
    guarantee: Guarantee
    cost: Cost
    mechanism: str
    why: str
    candidates: tuple[Candidate, ...] = ()
    curve: Curve | None = field(default=None, repr=False)
    """The density of the noise, in public units."""

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.statistic}: {self.value:.10g}",
                f"  error      {self.error.words}",
                *closing_lines(self.guarantee, self.cost, self.mechanism, self.why),
            ]
        )

    @property
    def words(self) -> str:
        """The whole result in sentences."""
        return str(self)

    def plot(self) -> Picture:
        """Draw the noise and the error; shows itself in a notebook, `.save(path)` writes SVG."""
        title = f"{self.statistic}, {self.mechanism}, epsilon {self.guarantee.epsilon:g}"
        return draw(title, self.curve, level=self.error.level)

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain values, for JSON."""
        return {
            "statistic": self.statistic,
            "value": self.value,
            "error": {
                "level": self.error.level,
                "amount": self.error.amount,
                "unit": self.error.unit,
            },
            "guarantee": {
                "protects": self.guarantee.protects,
                "epsilon": self.guarantee.epsilon,
                "delta": self.guarantee.delta,
                "neighbors": self.guarantee.neighbors,
                "assumptions": list(self.guarantee.assumptions),
            },
            "cost": {
                "charged_to": self.cost.charged_to,
                "epsilon": self.cost.epsilon,
                "delta": self.cost.delta,
                "release_id": self.cost.release_id,
            },
            "mechanism": self.mechanism,
            "why": self.why,
        }


def comparison(candidates: tuple[Candidate, ...], chosen: str, assumed: str) -> str:
    """Give the table that `compare=True` prints: mean errors on public examples, the data unseen."""
    names = list(candidates[0].expected) if candidates else []
    rows = [["mechanism", *names]]
    for c in candidates:
        mark = " *" if c.mechanism == chosen else ""
        rows.append([c.mechanism + mark, *(f"{c.expected[n]:.4g}" for n in names)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    head = f"Expected mean error on made-up data, {assumed}; your data were not looked at."
    return "\n".join([head, *(line.rstrip() for line in lines), "* chosen"])
