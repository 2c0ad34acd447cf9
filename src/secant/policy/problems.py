"""One thing to say about a policy, and where in its file it stands."""

from __future__ import annotations

from secant.policy.policy import Policy
from secant.records import frozen

SEVERITIES = ("error", "warning", "note")


@frozen
class Problem:
    """One thing to say about a policy."""

    severity: str
    """`error` stops everything; `warning` is about to hurt; `note` is good to know."""
    place: str
    """Dotted path of the key."""
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{f'line {self.line}: ' if self.line else ''}{self.place}: {self.message}"


def problem_at(policy: Policy, severity: str, path: tuple[str, ...], message: str) -> Problem:
    """Make a problem with the line of its key, or of the nearest key around it."""
    line = None
    for length in range(
        len(path), min(1, len(path) - 1), -1
    ):  # the first [tables.T] is not the place of another T
        line = policy.lines.get(tuple(part.lower() for part in path[:length]))
        if line:
            break
    return Problem(severity, ".".join(path), message, line)
