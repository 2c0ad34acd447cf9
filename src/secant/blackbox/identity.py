"""What makes a function the same one: its code, and everything that the code can reach.

In: any callable. Out: a digest, or None where something it reaches cannot be told apart by its value. An
estimate belongs to a function and not to a name: two lambdas have one name (blackbox.reuse). Nothing is called here.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

DEEPEST = 60
"""Nested so deep, values count as unknown."""
MOST_PARTS = 200_000
"""A function that reaches more than this is not read to its end."""
_REDUCING = ("__reduce_ex__", "__reduce__")  # who brings a way of its own keeps something elsewhere
_PLAIN = (bool, int, float, complex, str, bytes, Fraction, Decimal, range, slice)
_INSTALLED = tuple(
    Path(sysconfig.get_path(name)).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class _UnknownError(Exception):
    """Something is reached whose value cannot be read."""


class _Reading:
    """One digest in the making. Every part is written with its kind and length: no two read alike."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.met: dict[int, int] = {}
        self.kept: list[object] = []  # an id is good only as long as its object lives
        self.parts = 0

    def write(self, kind: str, content: bytes = b"") -> None:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise _UnknownError
        name = kind.encode()
        self.digest.update(struct.pack(">QQ", len(name), len(content)) + name + content)

    def value(self, obj: object, depth: int = 0) -> None:
        """Take in one value and all that it reaches."""
        if depth > DEEPEST:
            raise _UnknownError
        if obj is None or obj is Ellipsis or obj is NotImplemented:
            self.write("constant", repr(obj).encode())
        elif type(obj) in _PLAIN:
            self.write(type(obj).__name__, repr(obj).encode("utf-8", "surrogatepass"))
        elif id(obj) in self.met:
            self.write("again", str(self.met[id(obj)]).encode())
        else:
            self.met[id(obj)] = len(self.met)
            self.kept.append(obj)
            self._compound(obj, depth + 1)

    def _compound(self, obj: Any, depth: int) -> None:
        if type(obj) in (tuple, list):
            self._all(type(obj).__name__, obj, depth)
        elif type(obj) in (set, frozenset):
            self._unordered(type(obj).__name__, obj)
        elif type(obj) is dict or type(obj) is types.MappingProxyType:
            self._pairs("mapping", obj, depth)
        elif isinstance(obj, np.ndarray) and obj.dtype != object:
            self.write("array", f"{obj.dtype.str} {obj.shape}".encode())
            self.write("data", np.ascontiguousarray(obj).tobytes())
        elif isinstance(obj, np.generic) and not isinstance(obj, np.object_):
            self.write("scalar", obj.dtype.str.encode() + obj.tobytes())
        elif isinstance(obj, types.CodeType):
            self._code(obj, depth)
        elif _is_installed(obj):
            self.write("installed", _name_of(obj))
        elif isinstance(obj, types.FunctionType):
            self._function(obj, depth)
        elif isinstance(obj, types.MethodType):
            self._all("method", (obj.__func__, obj.__self__), depth)
        elif isinstance(obj, functools.partial):
            self._all("partial", (obj.func, obj.args, obj.keywords), depth)
        elif isinstance(obj, (staticmethod, classmethod)):
            self._all(type(obj).__name__, (obj.__func__,), depth)
        elif isinstance(obj, property):
            self._all("property", (obj.fget, obj.fset, obj.fdel), depth)
        elif isinstance(obj, Enum):
            self._all("enum", (type(obj), obj.name), depth)
        elif isinstance(obj, type):
            self._class(obj, depth)
        else:
            self._object(obj, depth)

    def _all(self, kind: str, parts: Iterable[object], depth: int) -> None:
        values = list(parts)
        self.write(kind, str(len(values)).encode())
        for part in values:
            self.value(part, depth)

    def _unordered(self, kind: str, parts: Iterable[object]) -> None:
        digests = sorted(_digest(part) for part in parts)
        self.write(kind, b"".join(digests))

    def _pairs(self, kind: str, pairs: Mapping[Any, Any], depth: int) -> None:
        self.write(kind, str(len(pairs)).encode())
        for key, entry in pairs.items():
            self.value(key, depth)
            self.value(entry, depth)

    def _code(self, code: types.CodeType, depth: int) -> None:
        self.write("code", code.co_code)
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._all("parts", (*shape, *names, code.co_consts, code.co_exceptiontable), depth)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        cells = function.__closure__ or ()
        try:
            closed = tuple(cell.cell_contents for cell in cells)
        except ValueError:  # a cell that is not filled yet
            raise _UnknownError from None
        reached = {
            name: function.__globals__[name]
            for name in sorted(_names_in(function.__code__))
            if name in function.__globals__
        }
        attributes = {k: v for k, v in vars(function).items() if k != "__wrapped__"}
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__)
        self._all("function", (*parts, closed, reached, attributes), depth)

    def _class(self, cls: type, depth: int) -> None:
        own = {
            name: entry
            for name, entry in vars(cls).items()
            if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
            and not isinstance(entry, (types.GetSetDescriptorType, types.MemberDescriptorType))
        }
        self._all("class", (cls.__qualname__, cls.__bases__, own), depth)

    def _object(self, obj: Any, depth: int) -> None:
        """Read an object by its class and its fields; one that keeps something elsewhere is unknown."""
        kind = type(obj)
        ways = [(getattr(kind, name), getattr(object, name)) for name in _REDUCING]
        if any(own is not usual for own, usual in ways):
            raise _UnknownError
        fields = dict(getattr(obj, "__dict__", {}))
        slots = [name for base in kind.__mro__ for name in _slots(base)]
        fields |= {name: getattr(obj, name) for name in slots if hasattr(obj, name)}
        if not fields and not isinstance(getattr(obj, "__dict__", None), dict) and not slots:
            raise _UnknownError  # made in C: what it holds is not seen
        if _keeps_more(kind):
            raise _UnknownError
        self._all("object", (kind, fields), depth)


def fingerprint(function: object) -> str | None:
    """Give a digest of a function and all that it reaches; None if that cannot be read.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    try:
        return _digest(function).hex()
    except (_UnknownError, RecursionError, AttributeError, TypeError, ValueError):
        return None


def _digest(obj: object) -> bytes:
    reading = _Reading()
    reading.value(obj)
    return reading.digest.digest()


def _names_in(code: types.CodeType) -> set[str]:
    """Give the names that code, and code inside of it, may look up."""
    names = set(code.co_names)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            names |= _names_in(part)
    return names


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _keeps_more(kind: type) -> bool:
    """Say whether instances hold more than their fields: those of a subclass of a container do."""
    return any(base.__module__ == "builtins" and base is not object for base in kind.__mro__)


def _is_installed(obj: Any) -> bool:
    """Say whether it is a module, a class or a function of an installed package, found by its name.

    A package's version stands for its code: it does not change while an estimate is used.
    """
    if isinstance(obj, types.ModuleType):
        return _from_package(obj.__name__)
    if not callable(obj) and not isinstance(obj, type):
        return False
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if module is None:  # a method of C code that belongs to no module
        module = getattr(getattr(obj, "__objclass__", None), "__module__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _from_package(module):
        return False
    here: Any = sys.modules.get(module)
    for part in name.split("."):
        here = getattr(here, part, None)
    return here is obj


def _from_package(module: str) -> bool:
    if module == "builtins" or module in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__" or not isinstance(file, str):
        return False
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in _INSTALLED)


def _name_of(obj: Any) -> bytes:
    if isinstance(obj, types.ModuleType):
        module = obj.__name__
    else:
        owner = obj if hasattr(obj, "__module__") else obj.__objclass__
        module = owner.__module__ or ""
    top = sys.modules.get(module.partition(".")[0])
    version = getattr(top, "__version__", sys.version)
    return f"{module}\n{getattr(obj, '__qualname__', '')}\n{version}".encode()
