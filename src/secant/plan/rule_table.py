"""RuleTable: one interpretation of the plan is a table from node class to one function.

A missing rule refuses (I3): there is no default and no lookup along base classes. Two rules for one node, or a
rule for something that is not a node, is an error at import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from secant.plan.nodes import NODES, Node
from secant.runtime.work import spend

F = TypeVar("F", bound=Callable[..., object])


class RuleTable(Generic[F]):
    """Rules of one interpretation, by node class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: dict[type[Node], F] = {}
        self.ids: dict[type[Node], str] = {}

    def rule(self, *nodes: type[Node], id: str = "") -> Callable[[F], F]:
        """Register the function below for these node classes, with its rule id."""

        def register(function: F) -> F:
            for node in nodes:
                if node not in NODES:
                    raise AssertionError(f"{node.__name__} is not listed in NODES")
                if node in self._rules:
                    raise AssertionError(f"two rules for {node.__name__} in {self.name}")
                self._rules[node] = function
                self.ids[node] = id
            return function

        return register

    def find(self, node: Node) -> F | None:
        """Give the rule of the node's class, or None: the caller must refuse then."""
        spend()
        return self._rules.get(type(node))

    def covered(self) -> frozenset[type[Node]]:
        """Give the node classes that have a rule."""
        return frozenset(self._rules)
