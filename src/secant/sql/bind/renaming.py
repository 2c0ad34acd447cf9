"""Give the answer the column names that its reader knows."""

from __future__ import annotations

from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import substitute
from secant.plan.typing import fields_of


def renamed(relation: n.Relation, names: dict[str, str]) -> n.Relation:
    """Rename the output columns of a finished query, below its ORDER BY and LIMIT."""
    if isinstance(relation, n.Limit):
        return replace(relation, input=renamed(relation.input, names))
    if isinstance(relation, n.Sort):
        columns: dict[str, n.Scalar] = {
            f.name: n.Column(names.get(f.name, f.name), f.type) for f in fields_of(relation)
        }
        keys = tuple(
            replace(k, expression=substitute(k.expression, columns)) for k in relation.keys
        )
        return n.Sort(renamed(relation.input, names), keys)
    if isinstance(relation, n.Distinct):
        return replace(relation, input=renamed(relation.input, names))
    if isinstance(relation, n.Project) and not isinstance(relation.input, (n.Sort, n.Limit)):
        items = tuple(n.Named(names.get(i.name, i.name), i.expression) for i in relation.items)
        return n.Project(relation.input, items)
    fields = fields_of(relation)
    return n.Project(
        relation,
        tuple(n.Named(names.get(f.name, f.name), n.Column(f.name, f.type)) for f in fields),
    )
