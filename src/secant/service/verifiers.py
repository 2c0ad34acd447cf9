"""Verifiers of passwords: SCRAM-SHA-256 (RFC 5802, RFC 7677), for HTTP and for the PostgreSQL port alike.

In: a password, once. Out: salt, iterations, stored key and server key, from which the password cannot be read. One
verifier serves both ways in: a second, slower hash beside it would protect nothing, since whoever steals the store
attacks the quicker one. A name that nobody has gets a verifier as well, whose stored key comes from no password.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from secant.errors import UsageError
from secant.records import frozen

ITERATIONS = 1 << 16
"""Of PBKDF2. Clients of the PostgreSQL port do them as well, some in plain Python: more would cost seconds there."""
SALT_BYTES = 16
SHORTEST, LONGEST = 12, 200
"""Characters of a password."""


@frozen
class Verifier:
    """What is kept of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def verifier_of(password: str, *, iterations: int = ITERATIONS) -> Verifier:
    """Make the verifier of a new password."""
    check_password(password)
    salt = secrets.token_bytes(SALT_BYTES)
    salted = _salted(password, salt, iterations)
    return Verifier(
        salt, iterations, _digest(_keyed(salted, b"Client Key")), _keyed(salted, b"Server Key")
    )


def nobodys(salt: bytes) -> Verifier:
    """Give the verifier of a name that nobody has: matched by no password, empty or not.

    Its stored key is drawn, not hashed: finding what hashes to it is finding a preimage of SHA-256.
    """
    return Verifier(salt[:SALT_BYTES], ITERATIONS, secrets.token_bytes(32), secrets.token_bytes(32))


def matches(verifier: Verifier, password: str) -> bool:
    """Say whether a password is the verifier's. Takes as long for every password and every verifier."""
    salted = _salted(password, verifier.salt, verifier.iterations)
    return hmac.compare_digest(_digest(_keyed(salted, b"Client Key")), verifier.stored_key)


def signature_for(verifier: Verifier, message: bytes, proof: bytes) -> bytes | None:
    """Check a client's proof over a SCRAM exchange; give the server's signature, or None if the proof is wrong."""
    expected = _keyed(verifier.stored_key, message)
    if len(proof) != len(expected):
        return None
    client_key = bytes(a ^ b for a, b in zip(proof, expected, strict=True))
    if not hmac.compare_digest(_digest(client_key), verifier.stored_key):
        return None
    return _keyed(verifier.server_key, message)


def check_password(password: object) -> None:
    """Refuse what could not be typed alike everywhere, or is quickly tried out."""
    if not isinstance(password, str) or not password.isascii() or not password.isprintable():
        raise UsageError(
            "USE-001",
            "a password is written in printable ASCII characters",
            hint="programs disagree about how others are encoded; use letters, digits, signs",
        )
    if not SHORTEST <= len(password) <= LONGEST or len(set(password)) < 5:
        raise UsageError(
            "USE-001",
            f"a password has between {SHORTEST} and {LONGEST} characters, of which five differ",
            hint="leave it out to have one made",
        )


def generated_password() -> str:
    """Make a password that nobody tries out: 144 bits."""
    return secrets.token_urlsafe(18)


def _salted(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(
        "sha256", password.encode("utf-8", "surrogatepass"), salt, iterations
    )


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
