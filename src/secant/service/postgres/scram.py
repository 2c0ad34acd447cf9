"""SCRAM-SHA-256 as a server speaks it (RFC 5802, 7677), also bound to the TLS channel (RFC 5929).

In: what a client sends in turn. Out: what is answered, and in the end a user. Whether a proof is right is decided in
`logins` alone, after every field was held against what this exchange said before.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets

from secant.records import frozen
from secant.service.logins import Exchange, Logins
from secant.service.postgres.messages import Malformed
from secant.service.users import User

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{8,200}")
_BINDING = "p=tls-server-end-point"


@frozen
class Begun:
    """An exchange after the server's first message."""

    exchange: Exchange
    header: bytes
    """The client's first three characters or more: whether it binds the channel."""
    bare: str
    first: str
    nonce: str


def mechanisms(end_point: bytes | None) -> list[str]:
    """Give the mechanisms that are offered; `end_point` is the hash of the server's certificate under TLS."""
    return [BOUND, PLAIN] if end_point is not None else [PLAIN]


def begin(
    logins: Logins, name: str, mechanism: str, raw: bytes, end_point: bytes | None
) -> tuple[Begun, bytes]:
    """Read the client's first message; give the server's. The name is the one of the connection."""
    text = _ascii(raw)
    flag, _, remainder = text.partition(",")
    authorized, _, bare = remainder.partition(",")
    if mechanism not in mechanisms(end_point) or authorized:
        raise Malformed
    if mechanism == BOUND and flag != _BINDING:
        raise Malformed
    # "y": the client can bind and believes that we cannot. If we offered it, somebody took the offer away.
    if mechanism == PLAIN and flag not in (("n", "y") if end_point is None else ("n",)):
        raise Malformed
    parts = bare.split(",")
    if len(parts) < 2 or not parts[0].startswith("n=") or not parts[1].startswith("r="):
        raise Malformed
    if not _NONCE.fullmatch(parts[1][2:]):
        raise Malformed
    exchange = logins.begin(name)
    nonce = parts[1][2:] + base64.b64encode(secrets.token_bytes(18)).decode()
    salt = base64.b64encode(exchange.verifier.salt).decode()
    first = f"r={nonce},s={salt},i={exchange.verifier.iterations}"
    begun = Begun(exchange, f"{flag},{authorized},".encode(), bare, first, nonce)
    return begun, first.encode()


def finish(
    logins: Logins, begun: Begun, raw: bytes, end_point: bytes | None, address: str
) -> tuple[User, bytes]:
    """Read the client's last message; give the user and the server's, or raise AUT-001 or AUT-003."""
    text = _ascii(raw)
    unproved, mark, proof = text.rpartition(",p=")
    parts = unproved.split(",")
    if (
        not mark
        or len(parts) < 2
        or not parts[0].startswith("c=")
        or parts[1] != f"r={begun.nonce}"
    ):
        raise Malformed
    bound = end_point if begun.header.startswith(b"p=") else b""
    if bound is None or _unpacked(parts[0][2:]) != begun.header + bound:
        raise Malformed
    message = f"{begun.bare},{begun.first},{unproved}".encode()
    user, signature = logins.finish(
        begun.exchange, message, _unpacked(proof), way="postgres", address=address
    )
    return user, b"v=" + base64.b64encode(signature)


def _ascii(raw: bytes) -> str:
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError:
        raise Malformed from None


def _unpacked(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed from None
