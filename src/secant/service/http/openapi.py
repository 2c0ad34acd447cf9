"""The description of the API, from the list of its addresses and the models of its bodies."""

from __future__ import annotations

from typing import Any

import secant
from secant.errors import CODES
from secant.service.http import bodies
from secant.service.http.bodies import ARROW, EVENTS, JSON

# Address, method, name of the function, body, status, what comes back, one line (I8).
OPERATIONS: tuple[tuple[str, str, str, type[bodies._Body] | None, int, str, str], ...] = (
    ("/v1/login", "POST", "login", bodies.Login, 200, "object", "Get a token for a name and a password."),
    ("/v1/logout", "POST", "logout", None, 204, "", "End the token that the request carries."),
    ("/v1/me", "GET", "me", None, 200, "object", "Say who the caller is."),
    ("/v1/query", "POST", "query", bodies.Query, 200, "answer", "Ask; spends budget unless the answer is reused."),
    ("/v1/explain", "POST", "explain", bodies.Explain, 200, "object", "Price, error and derivation; spends nothing."),
    ("/v1/budget", "GET", "budget", None, 200, "array", "What each protection has, has spent and has left."),
    ("/v1/history", "GET", "history", None, 200, "array", "Questions of before, newest first."),
    ("/v1/tables", "GET", "tables", None, 200, "array", "Tables, columns and what is declared of them."),
    ("/v1/functions", "GET", "functions", None, 200, "array", "Names of functions that questions may call."),
    ("/v1/rules/{id}", "GET", "rule", None, 200, "object", "Claim, proof and tests of a rule that a derivation names."),
    ("/v1/streams", "GET", "streams", None, 200, "array", "Declared streams and how far each has come."),
    ("/v1/streams/{name}", "GET", "stream", None, 200, "object", "What a stream costs; spends nothing."),
    ("/v1/streams/{name}", "POST", "stream", bodies.Steps, 200, "object", "Release complete steps; the first pays."),
    ("/v1/running", "GET", "running", None, 200, "array", "Questions that wait or run."),
    ("/v1/running/{id}", "DELETE", "cancel", None, 204, "", "Cancel a question; what was sent stays charged."),
    ("/v1/users", "GET", "users", None, 200, "array", "Users and roles (owner, auditor)."),
    ("/v1/users", "POST", "users", bodies.NewUser, 201, "object", "Add a user (owner)."),
    ("/v1/users/{name}", "DELETE", "user", None, 204, "", "Remove a user (owner)."),
    ("/v1/users/{name}/password", "POST", "password", bodies.NewPassword, 200, "object", "Change a password."),
    ("/v1/users/{name}/tokens", "DELETE", "revoke_all", None, 200, "object", "End all tokens of a user."),
    ("/v1/tokens", "GET", "tokens", None, 200, "array", "Tokens: one's own, or all (owner)."),
    ("/v1/tokens", "POST", "tokens", bodies.NewToken, 201, "object", "Make a token; it is shown once."),
    ("/v1/tokens/{id}", "DELETE", "token", None, 204, "", "Revoke a token."),
    ("/v1/audit", "GET", "audit", None, 200, "array", "Logins, refusals, changes (owner, auditor)."),
    ("/metrics", "GET", "metrics", None, 200, "text", "Counts for Prometheus (owner, auditor)."),
    ("/healthz", "GET", "health", None, 200, "object", "Whether the process lives."),
    ("/readyz", "GET", "ready", None, 200, "object", "Whether questions can be answered."),
)  # fmt: skip
OPEN = frozenset({"/v1/login", "/healthz", "/readyz", "/openapi.json"})
"""Addresses that ask for no token."""


def document() -> dict[str, Any]:
    """Give the description as OpenAPI 3.1."""
    models = {model for *_, model, _, _, _ in OPERATIONS if model is not None}
    schemas: dict[str, Any] = {
        model.__name__: model.model_json_schema()
        for model in sorted(models, key=lambda m: m.__name__)
    }
    schemas["Error"] = _ERROR
    paths: dict[str, Any] = {}
    for address, method, name, model, status, gives, line in OPERATIONS:
        paths.setdefault(address, {})[method.lower()] = {
            "operationId": f"{method.lower()}_{name}",
            "summary": line,
            "security": [] if address in OPEN else [{"token": []}],
            "parameters": _parameters(address, method),
            **({} if model is None else {"requestBody": _body(model.__name__)}),
            "responses": {
                str(status): _gives(gives),
                **({"503": _gives("object")} if address == "/readyz" else {}),
                "default": {
                    "description": "An error.",
                    "content": {JSON: {"schema": _ref("Error")}},
                },
            },
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Secant",
            "version": str(secant.__version__),
            "description": "Private answers about data that nobody who asks ever holds.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint", "span", "details"],
            "properties": {
                "code": {"type": "string", "enum": [code for code, _ in CODES]},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "span": {"type": ["array", "null"], "items": {"type": "integer"}},
                "details": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def _parameters(address: str, method: str) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in ("name", "id")
        if "{" + name + "}" in address
    ]
    if address == "/v1/query":
        key = {"type": "string", "maxLength": 200, "pattern": "^[ -~]*$"}
        parameters.append(
            {"name": "Idempotency-Key", "in": "header", "required": False, "schema": key}
        )
    if address == "/v1/history":
        limit = {"type": "integer", "minimum": 1, "maximum": 1000}
        parameters.append({"name": "limit", "in": "query", "required": False, "schema": limit})
        before = {"type": "string", "format": "date-time"}
        parameters.append({"name": "before", "in": "query", "required": False, "schema": before})
    return parameters


def _body(name: str) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": _ref(name)}}}


def _gives(kind: str) -> dict[str, Any]:
    if not kind:
        return {"description": "Done."}
    if kind == "text":
        return {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    if kind == "answer":
        forms: dict[str, Any] = {JSON: {"schema": {"type": "object"}}}
        forms[ARROW] = forms[EVENTS] = {"schema": {"type": "string"}}
        return {
            "description": "The answer, as JSON, Arrow, or events that end in it.",
            "content": forms,
        }
    return {"description": "Done.", "content": {JSON: {"schema": {"type": kind}}}}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
