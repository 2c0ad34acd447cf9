"""What a release leaves to be checked later: documents, and the digests by which its record names them.

In: public texts. Out: one record that the ledger takes. A document says what was asked, under which policy, why it is
private and how large its noise is; never an answer, never a row. The version of the data is a name that the owner or
the file system gives it: a digest of rows would let anybody who holds a guess of them test it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from secant.records import frozen

FORMAT = 1
"""Of the documents; a checker that knows another one says so."""
KINDS = ("text", "plan", "policy", "certificate")


@frozen
class Evidence:
    """The documents of one release."""

    documents: Mapping[str, str]
    """Kind -> canonical JSON."""
    software: str
    """The version of Secant that made the release."""
    data: str
    """Names the version of the data; empty where nothing tells it."""

    @property
    def bodies(self) -> dict[str, str]:
        """Give the documents by digest."""
        return {digest(text): text for text in self.documents.values()}

    @property
    def fields(self) -> dict[str, str]:
        """Give what the record of the release holds: digests, and the two versions."""
        digests = {kind: digest(self.documents[kind]) for kind in KINDS}
        return {**digests, "software": self.software, "data": self.data}


def document(content: Mapping[str, Any]) -> str:
    """Write a document in the one form that it has."""
    return json.dumps({"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"))


@cache
def software() -> str:
    """Give the version of Secant."""
    return version("secant")


def digest(text: str) -> str:
    """Name a document."""
    return sha256(text.encode()).hexdigest()
