"""Records: frozen classes of fields, whose methods are written when they are first looked up.

In: a class with annotated fields. Out: the same class with slots, made and compared as `dataclass(frozen=True,
slots=True)` would. That one compiles six methods for each class at import, most of which a command never calls: with
five hundred classes this was a third of the time until a question was asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

_C = TypeVar("_C")
_UNSET = object()
"""Stands for a field that was not given and is made by its factory."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_C]) -> type[_C]:
    """Make a class a frozen record that is compared by its fields."""
    record = _record(cls)
    _write_later(record, "__eq__", _equal)
    _write_later(record, "__hash__", _hash)
    return record


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def by_identity(cls: type[_C]) -> type[_C]:
    """Make a class a frozen record that equals nothing but itself."""
    return _record(cls)


def _record(cls: type[_C]) -> type[_C]:
    # Frozen for the standard library would mean that it writes the methods itself.
    record = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    _write_later(record, "__init__", _init)
    _write_later(record, "__repr__", _repr)
    shared = (_refuse_to_set, _refuse_to_delete, _state, _set_state)
    names = ("__setattr__", "__delattr__", "__getstate__", "__setstate__")
    for name, method in zip(names, shared, strict=True):
        setattr(record, name, method)
    return record


class _Compiled:
    """A method that is compiled when it is first looked up; from then on it stands in the class itself."""

    __slots__ = ("name", "owner", "write")

    def __init__(self, owner: type, name: str, write: Callable[[type], Any]) -> None:
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        method = self.write(self.owner)
        method.__name__, method.__qualname__ = self.name, f"{self.owner.__qualname__}.{self.name}"
        setattr(self.owner, self.name, method)
        return method.__get__(instance, kind)


def _write_later(owner: type, name: str, write: Callable[[type], Any]) -> None:
    if vars(owner).get(name) is None:  # what the class says itself holds
        setattr(owner, name, _Compiled(owner, name, write))


_R = TypeVar("_R")
_GIVEN: dict[type, tuple[str, ...]] = {}
"""What the constructor of a record takes."""


def replace(record: _R, **changed: Any) -> _R:
    """Give a record with some fields exchanged, as `dataclasses.replace` does; planning asks for many of them."""
    kind = record.__class__
    given = _GIVEN.get(kind)
    if given is None:
        given = _GIVEN[kind] = tuple(f.name for f in fields(kind) if f.init)  # type: ignore[arg-type]
    for name in given:
        if name not in changed:
            changed[name] = getattr(record, name)
    return kind(**changed)


_ENDINGS: dict[type, tuple[list[str], dict[str, object]]] = {}


def end_constructor(owner: type, lines: list[str], known: dict[str, object]) -> None:
    """Let the constructor of a class, of which nothing was made yet, do this last: lines that know some names."""
    _ENDINGS[owner] = lines, known


# ── what is written ──────────────────────────────────────────────────────────────────────────────


def _init(owner: type) -> Any:
    initialized = [f for f in fields(owner) if f.init]
    namespace: dict[str, object] = {"_unset": _UNSET}
    lines = []
    for f in fields(owner):
        # The slot itself is set: asking the instance to set it would be refused, and is slower.
        namespace[f"_set_{f.name}"] = getattr(owner, f.name).__set__
        namespace[f"_default_{f.name}"] = f.default
        namespace[f"_make_{f.name}"] = f.default_factory
        if f.default_factory is not MISSING:
            default = f"_make_{f.name}()"
            value = f"{default} if {f.name} is _unset else {f.name}" if f.init else default
            lines.append(f"_set_{f.name}(self, {value})")
        elif f.init:
            lines.append(f"_set_{f.name}(self, {f.name})")
        elif f.default is not MISSING:
            lines.append(f"_set_{f.name}(self, _default_{f.name})")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    ending, names = _ENDINGS.get(owner, ([], {}))
    lines, namespace = lines + ending, namespace | names
    by_place = [_argument(f) for f in initialized if not f.kw_only]
    by_name = [_argument(f) for f in initialized if f.kw_only]
    arguments = ["self", *by_place, *(["*", *by_name] if by_name else [])]
    method = compiled(owner, arguments, lines, namespace)
    method.__annotations__ = {f.name: f.type for f in initialized} | {"return": None}
    return method


def _argument(f: Field[Any]) -> str:
    if f.default is not MISSING:
        return f"{f.name}=_default_{f.name}"
    return f"{f.name}=_unset" if f.default_factory is not MISSING else f.name


def _equal(owner: type) -> Any:
    mine, other = _tuple(owner, "self"), _tuple(owner, "other")
    lines = [
        "if self is other: return True",
        f"return {mine} == {other} if other.__class__ is self.__class__ else NotImplemented",
    ]
    return compiled(owner, ["self", "other"], lines, {})


def _hash(owner: type) -> Any:
    return compiled(owner, ["self"], [f"return hash({_tuple(owner, 'self')})"], {})


def _tuple(owner: type, name: str) -> str:
    compared = [f.name for f in fields(owner) if f.compare]
    return "(" + "".join(f"{name}.{field}, " for field in compared) + ")"


def _repr(owner: type) -> Any:
    values = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in fields(owner) if f.repr)
    lines = [f'return self.__class__.__qualname__ + f"({values})"']
    return recursive_repr()(compiled(owner, ["self"], lines, {}))


def compiled(owner: type, arguments: list[str], lines: list[str], known: dict[str, object]) -> Any:
    """Make a function of lines that know the names of a class's module, and some more."""
    body = "".join(f"  {line}\n" for line in lines or ["pass"])
    source = (
        f"def make({', '.join(known)}):\n def method({', '.join(arguments)}):\n{body} return method"
    )
    found: dict[str, Any] = {}
    # Names of fields only; nothing in it is from outside of this package.
    exec(source, vars(sys.modules[owner.__module__]), found)  # noqa: S102
    return found["make"](**known)


# ── what all records share ───────────────────────────────────────────────────────────────────────


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
