"""What every node of a plan is, and what it remembers about itself.

In: nothing. Out: the base classes of `plan.nodes`. A node never changes, so neither does what was found out about it:
each fact is kept in the node, is found once, and goes when the node goes. A node never remembers itself: who holds
itself is not let go when the question ends. Each fact is written by one function, named beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from secant.records import by_identity

if TYPE_CHECKING:
    from secant.plan.nodes import Field, Outer, Scan
    from secant.schema.types import Type


class _Remembered:
    """Facts about one node; each has a slot that is empty until it is asked for."""

    __slots__ = (
        "_all_below", "_below", "_borrowed", "_fails", "_holding", "_kinds", "_meaning", "_named", "_own", "_reads",
        "_scans", "_shape", "_size", "_sound", "_stored", "_total",
    )  # fmt: skip
    _all_below: tuple[Node, ...]
    """`nodes.walk`, of relations."""
    _below: tuple[Node, ...]
    """`nodes.children`."""
    _borrowed: dict[str, Outer]
    """`scopes.borrowed_by`, of relations."""
    _fails: bool
    """`total.can_fail`."""
    _holding: tuple[Node, ...]
    """`scopes.holders`, one step."""
    _kinds: int
    """`nodes.kinds`."""
    _meaning: Type | tuple[Field, ...]
    """`typing.type_of` or `typing.fields_of`."""
    _named: frozenset[str]
    """`scopes.own_names`, of relations."""
    _own: tuple[Node, ...]
    """`scopes.own_parts`, of relations."""
    _reads: frozenset[str]
    """`columns_of`."""
    _scans: tuple[Scan, ...]
    """`reads.scans`."""
    _shape: int
    """`show.shape`."""
    _size: int
    """`nodes.written_size`; a node knows it, `_below` and `_kinds` from the beginning."""
    _sound: bool
    """`verify.verify`: it stood in a plan that was well formed."""
    _stored: Mapping[str, str]
    """`lineage.stored_columns`, of scans."""
    _total: Relation | None
    """`total.make_total`, of relations; None for one that stays what it is."""


@by_identity
class Node(_Remembered):
    """Anything in a plan."""


@by_identity
class Scalar(Node):
    """An expression with one value for each row."""


@by_identity
class Relation(Node):
    """A bag of rows with named, typed columns."""
