"""`[streams.NAME]` of a policy file: which keys there are and what each holds.

In: what the TOML parser gave. Out: `Stream` records, or pydantic's list of mistakes, which `policy_file` turns into
sentences with lines. Whether a question can be a stream is found out when it is first explained or released.
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ValidationInfo, field_validator, model_validator

from secant.numeric.parameters import delta_of, epsilon_of
from secant.policy.column_models import STRICT, limit_of, number_of
from secant.policy.streams import (
    LATE,
    MONTHS,
    MOST_STEPS,
    SECONDS,
    Calendar,
    Moment,
    Personal,
    Stream,
    Width,
    as_time,
)
from secant.policy.values import moment_of

_WIDTH = re.compile(r"\s*([1-9][0-9]{0,5})\s+([a-z]+?)s?\s*\Z")
SHOWS = ("running", "steps")
OBJECTIVES = ("mean", "largest")
_LONGEST_WAIT = 366 * 86_400


class StreamModel(BaseModel):
    """`[streams.S]`."""

    model_config = STRICT

    query: Any
    step: Any
    start: Any
    epsilon: Any
    delta: Any = 0
    steps: Any = None
    shows: Any = SHOWS[0]
    objective: Any = OBJECTIVES[0]
    protection: Any = None
    append_only: bool = False
    arrival: Any = None
    late: Any = LATE[0]
    wait: Any = None
    personal: Any = None

    @field_validator("query", mode="before")
    @classmethod
    def _query(cls, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("must be a SELECT whose first column is the step")
        return value

    @field_validator("step", mode="before")
    @classmethod
    def _step(cls, value: object) -> Width:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_STEPS:
            return Width(value)
        return width_of(value, 'must be a length of time such as "1 day", or a whole number')

    @field_validator("start", mode="before")
    @classmethod
    def _start(cls, value: object, info: ValidationInfo) -> Moment:
        moment = moment_of(value) if isinstance(value, str) else value
        width = info.data.get("step")
        if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
            raise ValueError("a time with a zone is not accepted; write it without one, in UTC")
        if isinstance(moment, bool) or not isinstance(moment, (int, datetime.date)):
            raise ValueError("must be a date, a time, or a whole number")
        if isinstance(width, Width) and isinstance(moment, int) != (width.unit == ""):
            raise ValueError(f"does not fit steps of {width}")
        if isinstance(moment, int):
            if abs(moment) > 2**53:
                raise ValueError("must be a number of at most 2^53")
        elif isinstance(width, Width) and width.unit in MONTHS and moment.day > 28:
            raise ValueError("steps of months begin on a day that every month has, up to the 28th")
        elif isinstance(width, Width) and SECONDS.get(width.unit, 86_400) < 86_400:
            return as_time(moment)
        return moment

    @field_validator("epsilon", mode="before")
    @classmethod
    def _epsilon(cls, value: object) -> Fraction:
        return number_of(epsilon_of, value)

    @field_validator("delta", mode="before")
    @classmethod
    def _delta(cls, value: object) -> Fraction:
        return number_of(delta_of, value)

    @field_validator("steps", mode="before")
    @classmethod
    def _steps(cls, value: object) -> int | None:
        if value is not None and limit_of(value) > MOST_STEPS:
            raise ValueError(f"must be at most {MOST_STEPS}; leave it out for an open horizon")
        return value  # type: ignore[return-value]

    @field_validator("shows", mode="before")
    @classmethod
    def _shows(cls, value: object) -> str | int:
        if isinstance(value, dict) and set(value) == {"window"}:
            return limit_of(value["window"])
        if not isinstance(value, str) or value not in SHOWS:
            raise ValueError('must be "running", "steps" or { window = 30 }')
        return value

    @field_validator("objective", "late", mode="before")
    @classmethod
    def _one_of(cls, value: object, info: ValidationInfo) -> object:
        allowed = OBJECTIVES if info.field_name == "objective" else LATE
        if value not in allowed:
            raise ValueError(f"must be {' or '.join(allowed)}")
        return value

    @field_validator("protection", "arrival", mode="before")
    @classmethod
    def _name(cls, value: object) -> str | None:
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ValueError("must be a name")
        return value

    @field_validator("wait", mode="before")
    @classmethod
    def _wait(cls, value: object) -> int:
        if value is None:
            return 0
        width = width_of(value, 'must be a length of time such as "6 hours"')
        if width.unit in MONTHS or width.count * SECONDS[width.unit] > _LONGEST_WAIT:
            raise ValueError("must be at most a year, in seconds, minutes, hours, days or weeks")
        return width.count * SECONDS[width.unit]

    @field_validator("personal", mode="before")
    @classmethod
    def _personal(cls, value: object) -> Personal | None:
        if value is None:
            return None
        if not isinstance(value, dict) or len(value) != 2 or "period" not in value:
            raise ValueError('must name a table and a period: { visits = 3, period = "1 month" }')
        ((table, rows),) = ((k, v) for k, v in value.items() if k != "period")
        period = width_of(value["period"], 'the period must be a length of time such as "1 month"')
        return Personal(str(table).lower(), limit_of(rows), period)

    @model_validator(mode="after")
    def _together(self) -> StreamModel:
        if self.late != LATE[0] and self.arrival is None:
            raise ValueError('late = "on arrival" needs `arrival`, the column that says when')
        if self.steps is not None:
            try:
                Calendar(self.start, self.step).first(self.steps + 1)
            except OverflowError:
                raise ValueError("the last step lies beyond the last date there is") from None
        return self

    def record(self, name: str) -> Stream:
        """Give the stream."""
        return Stream(
            name=name,
            query=self.query,
            step=self.step,
            start=self.start,
            epsilon=self.epsilon,
            delta=self.delta,
            steps=self.steps,
            shows=self.shows,
            objective=self.objective,
            protection=self.protection,
            append_only=self.append_only,
            arrival=None if self.arrival is None else self.arrival.lower(),
            late=self.late,
            wait=self.wait,
            personal=self.personal,
        )


def width_of(value: object, otherwise: str) -> Width:
    """Read a length of time."""
    match = _WIDTH.match(value) if isinstance(value, str) else None
    if match is None or match[2] not in {*SECONDS, *MONTHS}:
        raise ValueError(otherwise)
    return Width(int(match[1]), match[2])
