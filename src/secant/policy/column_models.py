"""The facts of a column as a policy file writes them: ranges, values, steps, and what is believed of values.

In: what the TOML parser gave for one column. Out: `ColumnFacts`, or pydantic's list of mistakes. The readers of
numbers that the rest of the file needs too stand here.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from secant.errors import UsageError
from secant.numeric.parameters import positive
from secant.policy.beliefs import (
    DISTRIBUTIONS,
    SMALLEST_TAIL,
    Belief,
    pieces_of,
    shares_of,
    suggested_range,
)
from secant.policy.policy import PLACES, ColumnFacts
from secant.policy.values import (
    days_of,
    describe_range,
    moment_of,
    range_of,
    same_kind,
    scalar_of,
    values_of,
)

SMALLEST_MOVE, LARGEST_MOVE = Fraction(1, 10**100), Fraction(10**100)  # squares stay in the doubles

# Unknown means refused (I3). Defaults are validated, so that a key that a kind needs is missed.
# The parts of a file are built as parts of the whole, not once more each by themselves: that took 40 ms of every start.
STRICT = ConfigDict(extra="forbid", validate_default=True, strict=True, defer_build=True)


def limit_of(value: object) -> int:
    """Read a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**15:
        raise ValueError("must be a whole number of at least 1")
    return value


def number_of(reader: Callable[[Any], Fraction], value: object) -> Fraction:
    """Use the readers of parameters; what they refuse is a mistake of the file here."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError("must be a number")
    try:
        return reader(value)
    except UsageError as error:
        raise ValueError(error.message) from None


def positive_of(value: object, name: str) -> Fraction | None:
    """Read a positive number, if one is given."""
    return None if value is None else number_of(lambda number: positive(number, name), value)


class ColumnModel(BaseModel):
    """`[tables.T.columns] C = { ... }`."""

    model_config = STRICT

    range: Any = None
    values: Any = None
    step: Any = None
    density: Any = None
    exact: Any = None
    total: Any = None
    mean: Any = None
    deviation: Any = None
    tail: Any = None
    prior: Any = None
    moves: Any = None
    center: Any = None
    null: Any = None
    distribution: Any = None  # after all that it needs

    @field_validator("range", mode="before")
    @classmethod
    def _range(cls, value: object) -> tuple[object, object] | None:
        return None if value is None else range_of(value)

    @field_validator("values", mode="before")
    @classmethod
    def _values(cls, value: object, info: ValidationInfo) -> tuple[object, ...] | None:
        if value is None:
            return None
        values = values_of(value)
        limits = info.data.get("range")
        if limits:
            low, high = limits
            for one in values:
                if not same_kind(one, low) or not low <= one <= high:
                    raise ValueError(f"{one} is outside the range {describe_range(limits)}")
        return values

    @field_validator("step", mode="before")
    @classmethod
    def _step(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return None
        temporal = isinstance(value, str)
        step = days_of(value) if isinstance(value, str) else value
        if not isinstance(step, (int, Decimal)) or isinstance(step, bool):
            raise ValueError('must be a number, or "1 day" for dates')
        limits = info.data.get("range")
        if limits and isinstance(limits[0], datetime.date) != temporal:
            expected = 'a number of days, such as "1 day"' if not temporal else "a number"
            raise ValueError(f"must be {expected}, as the range says")
        if not Decimal(step).is_finite() or step <= 0:
            raise ValueError("must be positive and finite")
        scalar_of(step)  # as many digits as a number of a range has
        return step

    @field_validator("density", mode="before")
    @classmethod
    def _density(cls, value: object) -> Fraction | None:
        return positive_of(value, "a density")

    @field_validator("exact", mode="before")
    @classmethod
    def _exact(cls, value: object) -> bool:
        if value is not None and not isinstance(value, bool):
            raise ValueError("must be true or false")
        return bool(value)

    @field_validator("null", mode="before")
    @classmethod
    def _null(cls, value: object) -> bool:
        if value is not None and not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value is not False

    @field_validator("total", mode="before")
    @classmethod
    def _total(cls, value: object, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("values"):
            raise ValueError("the values are named, so their number is known")
        return None if value is None else limit_of(value)

    @field_validator("mean", mode="before")
    @classmethod
    def _mean(cls, value: object) -> object:
        if value is None:
            return None
        mean = moment_of(value) if isinstance(value, str) else scalar_of(value)
        if isinstance(mean, (bool, datetime.datetime)):
            raise ValueError("must be a number or a date")
        return mean

    @field_validator("deviation", mode="before")
    @classmethod
    def _deviation(cls, value: object) -> Fraction | None:
        return positive_of(None if value is None else scalar_of(value), "a deviation")

    @field_validator("tail", mode="before")
    @classmethod
    def _tail(cls, value: object) -> Fraction | None:
        tail = positive_of(value, "a tail")
        if tail is not None and not SMALLEST_TAIL <= tail < 1:
            raise ValueError("must be a share between 1e-100 and 1")
        return tail

    @field_validator("prior", mode="before")
    @classmethod
    def _prior(cls, value: object, info: ValidationInfo) -> Belief | None:
        if value is None:
            return None
        values = info.data.get("values")
        if values:
            return Belief("weights", shares=shares_of(value, len(values), "value"))
        return pieces_of(value, info.data.get("range"))

    @field_validator("moves", mode="before")
    @classmethod
    def _moves(cls, value: object) -> dict[str, Fraction]:
        """Read one number for all statistics in the unit of the column, or one for each."""
        if value is None:
            return {}
        allowed = (*PLACES, "variance")
        by_place = value if isinstance(value, dict) else dict.fromkeys(PLACES, value)
        unknown = [key for key in by_place if key not in allowed]
        if unknown or not by_place:
            raise ValueError(f"must be a number, or numbers for some of {', '.join(allowed)}")
        numbers = {key: number_of(lambda n: positive(n, "moves"), x) for key, x in by_place.items()}
        if not all(SMALLEST_MOVE <= x <= LARGEST_MOVE for x in numbers.values()):
            raise ValueError("must be between 1e-100 and 1e100")
        return numbers

    @field_validator("center", mode="before")
    @classmethod
    def _center(cls, value: object, info: ValidationInfo) -> Fraction:
        moves = info.data.get("moves") or {}
        if not any(key in moves for key in PLACES):
            if value is not None:
                raise ValueError("goes with moves of an average, a median, a quantile, min or max")
            return Fraction(0)
        if value is None:
            raise ValueError("is missing: say about where the statistics lie, by what is public")
        center = number_of(Fraction, value)
        if abs(center) > LARGEST_MOVE:
            raise ValueError("must be between -1e100 and 1e100")
        return center

    @field_validator("distribution", mode="before")
    @classmethod
    def _distribution(cls, value: object, info: ValidationInfo) -> Belief | None:
        """Put together what is believed; what belongs to another distribution is refused."""
        read = info.data.get
        if len(info.data) + 1 < len(cls.model_fields):
            return None  # something that it rests on is wrong, and is reported
        if value is not None and value not in DISTRIBUTIONS:
            raise ValueError(f"must be one of {', '.join(DISTRIBUTIONS)}")
        bell = [key for key in ("mean", "deviation", "tail") if read(key) is not None]
        if bell and value != "normal":
            raise ValueError(f'{bell[0]} belongs to distribution = "normal"')
        if read("prior") is not None and value is not None:
            raise ValueError("is given by prior already")
        if read("exact") and (value is not None or read("prior") is not None):
            raise ValueError("an exact value is known, so nothing is left to be believed")
        if value == "uniform" and not any(read(key) for key in ("range", "values", "total")):
            raise ValueError("uniform over what? Declare range, values or total")
        if value == "uniform":
            return Belief("uniform")
        prior: Belief | None = read("prior")
        return prior if value is None else _bell_of(info)

    def record(self) -> ColumnFacts:
        """Give the facts of the column; a belief suggests the range that was not declared."""
        belief: Belief | None = self.distribution
        limits = self.range
        if limits is None and belief is not None and belief.kind == "normal":
            limits = suggested_range(belief)
        elif limits is None and belief is not None and belief.kind == "histogram":
            limits = belief.edges[0], belief.edges[-1]
        assumed = limits is not None and self.range is None
        return ColumnFacts(
            limits,
            self.values,
            self.step,
            self.density,
            self.exact,
            self.total,
            belief,
            assumed,
            self.moves,
            self.center,
            null=self.null,
        )


def _bell_of(info: ValidationInfo) -> Belief:
    """Read a normal distribution; without a declared range it must suggest one that can be written."""
    read = info.data.get
    missing = [key for key in ("mean", "deviation") if read(key) is None]
    if missing:
        raise ValueError(f"a normal distribution needs {' and '.join(missing)}")
    if read("values"):
        raise ValueError("a normal distribution has no list of values")
    belief = Belief("normal", read("mean"), read("deviation"), read("tail"))
    limits = read("range")
    if limits is None:
        suggested_range(belief)
    elif not same_kind(limits[0], belief.mean):
        raise ValueError("mean and range must be of one kind")
    return belief
