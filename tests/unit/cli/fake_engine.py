"""A connection that answers from a script, so that commands are tested without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


@dataclass
class Account:
    epsilon: Fraction = Fraction(4)
    delta: Fraction = Fraction(1, 10**6)
    spent_epsilon: Fraction = Fraction(1)
    spent_delta: Fraction = Fraction(1, 10**8)
    remaining_epsilon: Fraction = Fraction(3)
    remaining_delta: Fraction = Fraction(99, 10**8)
    gamma: Fraction = Fraction(0)
    spent_gamma: Fraction = Fraction(0)


@dataclass
class Answer:
    columns: list[str]
    rows: list[tuple[Any, ...]]
    error: dict[str, Any]
    guarantee: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {
                "protection": "patients",
                "protects": "everything of one patient",
                "epsilon": 0.5,
                "delta": 1e-8,
            }
        ]
    )
    release_id: str = "r-1"
    warnings: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"columns": self.columns, "rows": self.rows, "release_id": self.release_id}


@dataclass
class Explanation:
    statements: tuple[str, ...] = ("SELECT count(*) FROM t", "SELECT 2")

    def __str__(self) -> str:
        return "G-COUNT  bound 1"

    def to_dict(self) -> dict[str, Any]:
        return {"bound": 1}


@dataclass
class Connection:
    """Remembers what it was asked; `result` is returned, or raised if it is an exception."""

    result: Any = None
    budget: dict[str, Account] = field(default_factory=lambda: {"patients": Account()})
    ledger: Any = None
    has_ledger: bool = True
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    opened: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.opened["closed"] = True

    def _give(self, *asked: Any) -> Any:
        self.asked.append(asked)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    def sql(self, text: str, **options: Any) -> Any:
        return self._give("sql", text, options)

    def explain(self, text: str, **options: Any) -> Any:
        return self._give("explain", text, options)

    def inspect(self, text: str, **options: Any) -> Any:
        return self._give("inspect", text, options)
