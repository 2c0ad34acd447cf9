"""Bodies of requests: read up to a limit of bytes and of time, then held against a model.

In: bytes from anybody. Out: a model, or one SRV-004 that names what is wrong and quotes nothing.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from secant.errors import ServiceError

JSON, ARROW, EVENTS = "application/json", "application/vnd.apache.arrow.stream", "text/event-stream"
SECONDS = 20.0
"""For a whole body: somebody who sends a byte now and then must not keep a place."""
Amount = float | int | str | None
"""A number, or its text, which is read exactly."""
_TEXT = 1_000_000
LARGEST_LOGIN = 10_000
"""Bytes of a login: whoever sends it has not shown who they are."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(_Body):
    """A question."""

    sql: str = Field(max_length=_TEXT, description="One SELECT statement.")
    parameters: list[str | int | float | bool | None] = Field(
        default=[], max_length=1000, description="Values for the placeholders of the statement."
    )
    epsilon: Amount = Field(default=None, description="Privacy to spend.")
    error: Amount = Field(
        default=None,
        description='Instead of epsilon: find the least for this error, `20` or `"5% of 2000"`.',
    )
    max_error: Amount = Field(
        default=None, description="Refuse to spend where the error would be larger."
    )
    certain: bool = Field(
        default=False, description="Whether ends have to hold for every database."
    )
    attacker: str | None = Field(
        default=None, max_length=10_000, description="Refuse to spend where more could be guessed."
    )
    delta: Amount = Field(
        default=None, description="By default a hundredth of the protection's delta."
    )
    level: Amount = Field(default="0.95", description="How sure the told error is.")
    protection: str | None = Field(
        default=None, max_length=200, description="One of the owner's alternatives."
    )


class Query(Asked):
    """A question that is answered."""

    reuse: bool = Field(
        default=True, description="Whether a stored answer will do; it costs nothing."
    )


class Explain(Asked):
    """A question that is explained."""

    ranges: bool = Field(default=False, description="Add which ranges follow from declared facts.")


class Steps(_Body):
    """Which steps of a stream are released."""

    until: str | int | None = Field(
        default=None, description="For owners: up to which step all rows are there."
    )


class Login(_Body):
    """A name and a password."""

    user: str = Field(max_length=200)
    password: str = Field(max_length=1000)


_CURRENT = "The caller's own present password: what outlives a token needs more than the token."


class NewUser(_Body):
    """Somebody who may ask from now on."""

    current: str | None = Field(default=None, max_length=1000, description=_CURRENT)

    user: str = Field(max_length=200)
    role: str = Field(max_length=20, description="owner, analyst or auditor")
    password: str | None = Field(
        default=None, max_length=1000, description="Without one, one is made and given back once."
    )


class NewPassword(_Body):
    """Another password."""

    current: str | None = Field(default=None, max_length=1000, description=_CURRENT)
    password: str | None = Field(
        default=None, max_length=1000, description="Without one, one is made and given back once."
    )


class NewToken(_Body):
    """A token for a program."""

    user: str | None = Field(default=None, max_length=200, description="For owners: whose it is.")
    current: str | None = Field(
        default=None,
        max_length=1000,
        description="The caller's own present password. Without it the token is a child of the one that the request"
        " carries: it lives no longer, and ends with it.",
    )
    days: float = Field(default=90, gt=0, le=366)
    note: str = Field(default="", max_length=100)


B = TypeVar("B", bound=_Body)


async def read_body(request: Any, largest: int) -> bytes:
    """Read a body of so many bytes at most, in so many seconds at most."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    raise too_large(largest)
                parts.append(part)
    except TimeoutError:
        raise unreadable("the body of the request did not come in time") from None
    return b"".join(parts)


async def read_model(request: Any, model: type[B], largest: int) -> B:
    """Read a body as JSON that a model describes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A form of another site cannot send JSON without asking first.
        raise unreadable("the body of the request is not application/json")
    return modeled(await read_body(request, largest), model)


def modeled(body: bytes, model: type[B]) -> B:
    """Read JSON that a model describes."""
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_refused)
        json.dumps(data, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        raise unreadable("the body of the request is not JSON in UTF-8") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = tuple(
            dict.fromkeys(
                f"{'.'.join(_short(part) for part in each['loc'][:3]) or 'body'}: {each['type']}"
                for each in error.errors(
                    include_url=False, include_input=False, include_context=False
                )
            )
        )
        raise ServiceError(
            "SRV-004",
            "the body of the request is not what is expected",
            details=wrong[:20],
            hint="see /openapi.json",
        ) from None


def unreadable(what: str) -> ServiceError:
    """Say that a request cannot be read."""
    return ServiceError("SRV-004", what, hint="see /openapi.json")


def too_large(largest: int) -> ServiceError:
    """Say that a request is too large."""
    return ServiceError(
        "SRV-004", f"the request is larger than {largest} bytes", hint="ask for less"
    )


def _short(part: object) -> str:
    return str(part)[:40]


def _refused(name: str) -> None:
    raise ValueError(name)
