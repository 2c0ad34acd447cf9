"""Values computed from protected rows, until a mechanism has drawn (I5).

In: a number that came from the data. Out: nothing, except through `unseal`, which only mechanisms
and the owner's own inspection call. A `Private` cannot be printed, compared, tested, hashed, copied
into a file or formatted into a message: each of these raises, so that a slip is loud.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar, overload

from secant.errors import InternalError

T = TypeVar("T")
U = TypeVar("U")
Content = TypeVar("Content", covariant=True)


def _sealed(*_: object, **__: object) -> NoReturn:
    raise InternalError("BUG-001", "a private value was looked at outside a mechanism (I5)")


class Private(Generic[Content]):
    """A value that may become the input of a mechanism and nothing else."""

    __slots__ = ("_content",)

    def __init__(self, content: Content) -> None:
        object.__setattr__(self, "_content", content)

    __repr__ = __str__ = __format__ = _sealed
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _sealed
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = _sealed
    __int__ = __float__ = __complex__ = __index__ = __round__ = _sealed
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _sealed
    __truediv__ = __rtruediv__ = __neg__ = __abs__ = _sealed
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _sealed
    __setattr__ = __delattr__ = _sealed

    __hash__ = _sealed


def sealed_map(value: Private[T], change: Callable[[T], U]) -> Private[U]:
    """Give what a function makes of a private value, private as well."""
    return Private(change(unseal(value)))


@overload
def unseal(value: Private[T]) -> T: ...
@overload
def unseal(value: T) -> T: ...
def unseal(value: Any) -> Any:
    """Give the content of a private value, or a plain value as it is.

    Called in `secant.noise.mechanisms` and by the owner's `inspect`; a test keeps it so.
    """
    if isinstance(value, Private):
        return object.__getattribute__(value, "_content")
    return value
