"""What is worked out when it is first asked for: most of it never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A value that is made once, by who first reads it; what makes it is let go then."""

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._value: T

    def value(self) -> T:
        """Make the value, or give the one that was made."""
        make = self._make
        if make is not None:
            self._value, self._make = make(), None
        return self._value
