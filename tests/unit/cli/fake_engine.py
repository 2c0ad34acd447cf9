"""A connection that answers from a script, so that commands are tested without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from secant.ledger.opening import Account, Accounts

ERROR = {
    "level": 0.95, "values": [[6]], "low": [[36]], "high": [[48]], "noise": [[6]], "leaves_out": None
}  # fmt: skip


def accounts() -> Accounts:
    spent, left = (Fraction(1), Fraction(1, 10**8)), (Fraction(3), Fraction(99, 10**8))
    return Accounts(patients=Account(Fraction(4), Fraction(1, 10**6), *spent, *left))


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
    budget: Accounts = field(default_factory=accounts)

    def to_dict(self) -> dict[str, Any]:
        return {"columns": self.columns, "rows": self.rows, "release_id": self.release_id}


@dataclass
class Explanation:
    statements: tuple[str, ...] = ("SELECT count(*) FROM t", "SELECT 2")

    def __str__(self) -> str:
        return "stability.count  bound 1"

    def to_dict(self) -> dict[str, Any]:
        return {"bound": 1}


@dataclass
class Connection:
    """Remembers what it was asked; `result` is returned, or raised if it is an exception."""

    result: Any = None
    budget: Accounts = field(default_factory=accounts)
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
