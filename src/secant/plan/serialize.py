"""A plan as plain values: a list of nodes that name each other by their places, for records and for other programs.

In: plans. Out: JSON values. Each node is its class and its fields; places in the user's text are left out, so that two
texts of one plan are written alike. Literals are what the user or the owner wrote; no row ever stands in a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.plan.nodes import Node, Quantize
from secant.plan.rewrites.steps import as_product
from secant.schema.types import Type

_SKIPPED = ("span",)
"""Fields that say where something stood in the text, and nothing about the plan."""


@dataclass(slots=True)
class SerializedPlans:
    """Several plans in one list; equal nodes are written once."""

    nodes: list[list[Any]] = field(default_factory=list)
    """Each is [class, {field: value}]; a node inside is {"node": place}."""
    _seen: dict[int, tuple[Node, int]] = field(default_factory=dict)
    """By identity, with the node itself, so that no identity is given twice."""
    _indexes: dict[str, int] = field(default_factory=dict)
    """By what is written: 0.0 and -0.0 are equal, and are not the same."""

    def place(self, node: Node) -> int:
        """Give the place of a node in the list, and write it if it is new; it is written as it is computed."""
        if isinstance(node, Quantize):
            return self.place(as_product(node))
        if id(node) not in self._seen:
            values = {
                f.name: self.value(getattr(node, f.name))
                for f in fields(node)
                if f.name not in _SKIPPED
            }
            item = [type(node).__name__, values]
            index = self._indexes.setdefault(repr(item), len(self.nodes))
            if index == len(self.nodes):
                self.nodes.append(item)
            self._seen[id(node)] = node, index
        return self._seen[id(node)][1]

    def value(self, value: object) -> Any:
        """Write what stands in a field."""
        if isinstance(value, Node):
            return {"node": self.place(value)}
        if isinstance(value, (tuple, list)):
            return [self.value(item) for item in value]
        return plain_value(value)


def plain_value(value: object) -> Any:
    """Write a value so that two different ones are never written alike."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Type):
        return str(value)
    if isinstance(value, float):
        return {"double": value.hex()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, (datetime, date)):
        return {"time": value.isoformat()}
    if isinstance(value, timedelta):
        return {"microseconds": value // timedelta(microseconds=1)}
    if isinstance(value, Mapping):
        pairs = [[plain_value(k), plain_value(v)] for k, v in value.items()]
        return {"map": sorted(pairs, key=repr)}
    if isinstance(value, (frozenset, set)):
        return {"set": sorted((plain_value(item) for item in value), key=repr)}
    if isinstance(value, (tuple, list)):
        return [plain_value(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_value(getattr(value, f.name)) for f in fields(value)}
    return {type(value).__name__: repr(value)}
