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
    from secant.frames import protect
    from secant.policy.file import load_policy, read_policy
    from secant.policy.file import policy_of as Policy  # noqa: N812
    from secant.proofs import rule

__all__ = [
    "Answer",
    "Connection",
    "Explanation",
    "Policy",
    "__version__",
    "attack",
    "blackbox",
    "connect",
    "errors",
    "load_policy",
    "protect",
    "read_policy",
    "rule",
    "stats",
]

_HOMES = {
    "Answer": "secant.engine",
    "Connection": "secant.engine",
    "Explanation": "secant.engine",
    "Policy": "secant.policy.file:policy_of",
    "connect": "secant.engine",
    "load_ipython_extension": "secant.notebook",
    "protect": "secant.frames",
    "load_policy": "secant.policy.file",
    "read_policy": "secant.policy.file",
    "rule": "secant.proofs",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("secant")
    if name in _HOMES:
        home, _, inside = _HOMES[name].partition(":")
        return getattr(importlib.import_module(home), inside or name)
    if name in ("attack", "blackbox", "errors", "stats"):
        if name in ("blackbox", "stats"):
            from secant.numeric.arrays import required

            required("scipy")  # or it says what to install
        return importlib.import_module(f"secant.{name}")
    raise AttributeError(f"module 'secant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
