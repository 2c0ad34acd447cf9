"""Joins whose bound the data decide: whether the figures that are measured, and how they are put together, suffice.

In: a measure over an inner join of two relations, each made row by row from one table, and the survey of its
certificate. Out: nothing, or Wrong, or NotKnown. One row of a table meets no more rows than the largest group of the
other side holds that agrees in the compared columns, and one more for each row that came there. The figures themselves
are private: that the formula is evaluated as it is written is in no record.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

from secant.verifier.measures import each_row
from secant.verifier.plans import (
    Node,
    NotKnown,
    Wrong,
    conjuncts,
    equalities,
    tables,
    tables_in_subqueries,
    unsorted,
)

RULES = frozenset({"residual.copies", "residual.split", "residual.measures", "residual.keys"})
"""Steps that say in words what is checked here by figures and formula."""
Powers = tuple[int, ...]
Polynomial = dict[tuple[Powers, tuple[int, ...]], int]
"""(powers of rows that came to each table, figures) -> how often."""


def check_survey(
    aggregate: Node,
    call: Node,
    bound: dict[str, Any],
    nodes: tuple[Any, ...],
    step: Fraction,
    covered: frozenset[str],
    listed: list[int | None],
) -> set[int]:
    """Check that every survey bounds the rows that differ; give the places of their statements."""
    low, high = each_row(call, step)
    if Fraction(bound["each"]) < max(high, -low):
        raise Wrong(f"one row adds up to {max(high, -low)}, and {bound['each']} is claimed")
    if bound["cap"] is not None or call.held("distinct"):
        raise NotKnown("a surveyed measure with a cap, or of different values, is not known here")
    if aggregate.several("keys"):
        sizes = [size for size in listed if size is not None]
        if len(sizes) != len(listed) or int(bound["groups"]) < prod(sizes):
            raise NotKnown("how many groups a joined row moves is not known here")
    sides, compared = _sides(aggregate)
    used: set[int] = set()
    for survey in bound["surveys"]:
        if survey["formula"] is None or survey["replaced"]:
            raise NotKnown(f"surveys of {survey['analysis']} are not checked here")
        figures: dict[int, Node] = {}
        for at in survey["statements"]:
            figures |= _figures(Node(nodes, at))
            used.add(at)
        _check_formula(survey["formula"], sides, compared, figures, covered)
    return used


def _sides(aggregate: Node) -> tuple[tuple[Node, Node], tuple[set[str], set[str]]]:
    """Give the two relations that are joined, and the columns of each that must be equal."""
    node = unsorted(aggregate.one("input"))
    while node.kind in ("Filter", "Project"):
        if tables_in_subqueries(node):
            raise NotKnown("a subquery beside a surveyed join is not known here")
        node = unsorted(node.one("input"))
    if (
        node.kind != "Join"
        or node.held("kind") not in ("inner", "cross")
        or tables_in_subqueries(node)
    ):
        raise NotKnown("a survey of something else than a join of two relations")
    pair = unsorted(node.one("left")), unsorted(node.one("right"))
    for side in pair:
        below = side
        while below.kind in ("Filter", "Project") and not tables_in_subqueries(below):
            below = unsorted(below.one("input"))
        if below.kind != "Scan":
            raise NotKnown("a survey of more than two relations is not known here")
    equal = equalities(node) if node.maybe("condition") is not None else set()
    return pair, ({a for a, _ in equal}, {b for _, b in equal})


def _figures(statement: Node) -> dict[int, Node]:
    """Give the number of each figure, and the counted groups whose largest it is."""
    statement = unsorted(statement)
    if statement.kind == "Union" and statement.held("all"):
        return _figures(statement.one("left")) | _figures(statement.one("right"))
    items = [i.one("expression") for i in statement.several("items")]
    largest = unsorted(statement.one("input"))
    if len(items) != 2 or items[0].kind != "Literal" or largest.kind != "Aggregate":
        raise NotKnown("a figure is measured in another way")
    (most,) = largest.several("aggregations")
    counted = unsorted(largest.one("input"))
    value = items[1].one("operand") if items[1].kind == "Cast" else items[1]
    if (
        largest.several("keys")
        or most.held("function") != "max"
        or counted.kind != "Aggregate"
        or value.kind != "Column"
        or value.held("name") != most.held("name")
    ):
        raise NotKnown("a figure is measured in another way")
    (count,) = counted.several("aggregations")
    if (
        count.held("function") != "count"
        or count.maybe("argument") is not None
        or most.one("argument").held("name") != count.held("name")
    ):
        raise NotKnown("a figure is measured in another way")
    return {int(items[0].held("value")): counted}


def _measures(counted: Node, side: Node, compared: set[str]) -> bool:
    """Whether groups of a side are counted by compared columns only, and nothing but NULLs in these is left out."""
    keys = {
        k.one("expression").held("name")
        for k in counted.several("keys")
        if k.one("expression").kind == "Column"
    }
    if len(keys) != len(counted.several("keys")) or not keys <= compared:
        return False
    node = unsorted(counted.one("input"))
    while node != side and node.kind == "Filter":
        for part in conjuncts(node.one("predicate")):
            operand = part.one("operand") if part.kind == "Not" else part
            if (
                part.kind != "Not"
                or operand.kind != "IsNull"
                or operand.one("operand").kind != "Column"
            ):
                return False
            if operand.one("operand").held("name") not in compared:
                return False
        node = unsorted(node.one("input"))
    return node == side


def _check_formula(
    formula: dict[str, Any],
    sides: tuple[Node, Node],
    compared: tuple[set[str], set[str]],
    figures: dict[int, Node],
    covered: frozenset[str],
) -> None:
    order = [str(name) for name in formula["tables"]]
    growths = {str(g["table"]): _expanded(g["products"], len(order)) for g in formula["growths"]}
    (left,), (right,) = tables(sides[0]), tables(sides[1])
    if left == right:
        raise NotKnown("a table that is joined with itself is not known here")
    nothing = (0,) * len(order)
    for here, there, other, columns in (
        (left, right, sides[1], compared[1]),
        (right, left, sides[0], compared[0]),
    ):
        if here not in covered:
            continue
        if here not in growths:
            raise Wrong(f"no figure bounds what one row of {here} meets")
        terms = growths[here]
        factors = [
            f for (p, fs), n in terms.items() if p == nothing and n >= 1 for f in fs if fs == (f,)
        ]
        if not any(f in figures and _measures(figures[f], other, columns) for f in factors):
            raise Wrong(f"no figure measures how many rows of {there} one row of {here} meets")
        if there in covered:
            came = tuple(int(name == there) for name in order)
            if terms.get((came, ()), 0) < 1:
                raise Wrong(f"rows that come to {there} are not counted")


def _expanded(products: list[Any], width: int) -> Polynomial:
    """Multiply the parts of each product, and add the products up."""
    total: Polynomial = {}
    for product in products:
        polynomial: Polynomial = {((0,) * width, ()): 1}
        for part in product:
            grown: Polynomial = {}
            for (powers, names), often in polynomial.items():
                for term in part:
                    both = tuple(a + int(b) for a, b in zip(powers, term["powers"], strict=True))
                    key = both, tuple(sorted((*names, *(int(f) for f in term["figures"]))))
                    grown[key] = grown.get(key, 0) + often
            polynomial = grown
        for key, often in polynomial.items():
            total[key] = total.get(key, 0) + often
    return total
