"""What each role may do. Whatever is not listed is refused."""

from __future__ import annotations

from secant.errors import AccessError
from secant.service.users import User

# The whole list (I8). True answers are not on it: no role gets one from the service.
MAY: dict[str, frozenset[str]] = {
    "ask": frozenset({"owner", "analyst"}),
    "say what is complete": frozenset({"owner"}),
    "explain": frozenset({"owner", "analyst", "auditor"}),
    "see tables": frozenset({"owner", "analyst", "auditor"}),
    "see own": frozenset({"owner", "analyst", "auditor"}),
    "see all": frozenset({"owner", "auditor"}),
    "see metrics": frozenset({"owner", "auditor"}),
    "cancel all": frozenset({"owner"}),
    "change users": frozenset({"owner"}),
}


def may(user: User, what: str) -> bool:
    """Say whether a user may do something."""
    return user.role in MAY[what]


def allow(user: User, what: str) -> None:
    """Raise AUT-002 unless a user may do something."""
    if not may(user, what):
        roles = " or ".join(sorted(MAY[what]))
        raise AccessError(
            "AUT-002",
            f"the role {user.role} does not allow this",
            hint=f"it needs the role {roles}",
        )
