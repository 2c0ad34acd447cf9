"""Text and catalog in, plan out: every name resolved, every type known, nothing left of sqlglot.

What the binder does not know it refuses (I3); there is no pass-through.
"""

from __future__ import annotations

from secant.plan.from_sql.relations import Binder
from secant.plan.nodes import Relation
from secant.plan.verify import verify
from secant.sql.parse import parse
from secant.sql.screen import screen
from secant.terms.catalog import Catalog


def from_sql(text: str, catalog: Catalog, dialect: str = "duckdb") -> Relation:
    """Give the verified plan of the one SELECT in `text`. Its columns are named as the user named them."""
    tree = screen(parse(text, dialect), text)
    plan = Binder(catalog, text).bind(tree)
    verify(plan)
    return plan
