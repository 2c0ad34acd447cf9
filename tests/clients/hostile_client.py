"""A client of the PostgreSQL port that keeps to no rule, byte by byte."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct

from postgres_port import PASSWORD, USER


class Raw:
    """A client that says what a test wants, byte by byte."""

    def __init__(self, port, *, user=USER, password=PASSWORD, login=True, source=""):
        self.socket = socket.create_connection(
            (port.host, port.port), timeout=30, source_address=(source, 0)
        )
        if login:
            self.startup(user)
            self.scram(password)
            while self.read()[0] != b"Z":
                pass

    def startup(self, user, **more):
        pairs = {"user": user, "database": "shop", "options": "-csecant.epsilon=50", **more}
        body = struct.pack("!i", 196608)
        body += b"".join(k.encode() + b"\0" + v.encode() + b"\0" for k, v in pairs.items()) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)

    def scram(self, password, *, spoil=lambda proof: proof):
        """Log in as RFC 5802 says; written apart from the server's side."""
        kind, body = self.read()
        assert (kind, body[:4]) == (b"R", struct.pack("!i", 10)), (kind, body)
        nonce = secrets.token_hex(12)
        bare = f"n=,r={nonce}"
        self.send(
            b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(bare) + 3) + b"n,," + bare.encode()
        )
        kind, body = self.read()
        assert kind == b"R", body
        first = body[4:].decode()
        fields = dict(part.split("=", 1) for part in first.split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        client = hmac.digest(salted, b"Client Key", "sha256")
        unproved = f"c=biws,r={fields['r']}"
        said = f"{bare},{first},{unproved}".encode()
        signature = hmac.digest(hashlib.sha256(client).digest(), said, "sha256")
        proof = spoil(bytes(a ^ b for a, b in zip(client, signature, strict=True)))
        self.send(b"p", f"{unproved},p={base64.b64encode(proof).decode()}".encode())

    def send(self, kind, body=b""):
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def read(self):
        head = self._exactly(5)
        return head[:1], self._exactly(struct.unpack("!i", head[1:])[0] - 4)

    def _exactly(self, count):
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def ended(self):
        """Whether the server ends the connection, whatever it says before."""
        try:
            while True:
                self.read()
        except (EOFError, ConnectionError):
            return True

    def until_ready(self):
        found = []
        while not found or found[-1][0] != b"Z":
            found.append(self.read())
        return found

    def error(self):
        """Give the SQLSTATE of the error that must come."""
        while True:
            kind, body = self.read()
            if kind == b"E":
                return _state(body)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()


def _state(body):
    return next(part[1:] for part in body.split(b"\0") if part.startswith(b"C")).decode()
