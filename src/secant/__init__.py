"""Secant: private answers with noise that is just enough.

Public names, and nothing else. They are imported when they are first used, so that `import secant`
and `secant --help` stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secant import attack, blackbox, stats
    from secant.engine import Answer, Connection, Explanation, connect
    from secant.proofs import rule
    from secant.terms.policy_file import load_policy, read_policy

__all__ = [
    "Answer",
    "Connection",
    "Explanation",
    "__version__",
    "attack",
    "blackbox",
    "connect",
    "errors",
    "load_policy",
    "read_policy",
    "rule",
    "stats",
]

_HOMES = {
    "Answer": "secant.engine",
    "Connection": "secant.engine",
    "Explanation": "secant.engine",
    "connect": "secant.engine",
    "load_policy": "secant.terms.policy_file",
    "read_policy": "secant.terms.policy_file",
    "rule": "secant.proofs",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("secant")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("attack", "blackbox", "errors", "stats"):
        return importlib.import_module(f"secant.{name}")
    raise AttributeError(f"module 'secant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
