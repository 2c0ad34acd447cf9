"""Responses: answers and errors as JSON, Arrow or events."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from secant.errors import SecantError
from secant.service.http.bodies import ARROW, JSON
from secant.service.remembered import Reply
from secant.service.views import answer_view

_STATUS = {
    "AUT-001": 401, "AUT-002": 403, "AUT-003": 429, "AUT-004": 429, "BUD-001": 402, "SRV-001": 503, "SRV-002": 422,
    "SRV-003": 409, "SRV-004": 400, "SRV-005": 503, "BAK-005": 504, "BAK-006": 409,
}  # fmt: skip
_FAMILIES = {"USE": 400, "SQL": 400, "POL": 422, "REF": 422, "BUD": 503, "BAK": 503, "BUG": 500}


def status_of(error: SecantError) -> int:
    """Give the status of a response that tells an error."""
    return _STATUS.get(error.code) or _FAMILIES[error.family]


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Any:
    """Give a response of JSON; a number that JSON does not have becomes null."""
    return Response(json_text(value), status, headers, media_type=JSON)


def json_text(value: Any) -> str:
    """Write JSON."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"))


def error_response(error: SecantError) -> Any:
    """Give a response that tells an error."""
    headers = {"WWW-Authenticate": "Bearer"} if error.code == "AUT-001" else {}
    wait = 5 if error.code == "SRV-001" else error.retry_after
    if wait is not None:
        headers["Retry-After"] = str(wait)
    return json_response({"error": error.to_dict()}, status_of(error), headers)


def answer_response(result: Reply, accept: str) -> Any:
    """Give a response that tells an answer, in the form that the client wants."""
    if ARROW in accept:
        return Response(arrow_bytes(result), media_type=ARROW)
    return json_response(answer_view(result))


def arrow_bytes(result: Reply) -> bytes:
    """Give the rows with both ends of each noisy number as an Arrow stream; the rest is metadata of its schema."""
    table = result.answer.to_arrow(errors=True)
    import pyarrow as arrow

    view = answer_view(result)
    metadata = {
        name: value
        for name, value in view.items()
        if name not in ("rows", "raw", "columns", "error")
    }
    table = table.replace_schema_metadata({"secant": json_text(metadata)})
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def event(kind: str, value: Any) -> str:
    """Write one server-sent event."""
    return f"event: {kind}\ndata: {json_text(value)}\n\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
