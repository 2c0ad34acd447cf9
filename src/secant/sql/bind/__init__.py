"""Text and catalog in, plan out: every name resolved, every type known, nothing left of sqlglot.

What the binder does not know it refuses (I3); there is no pass-through.
"""

from __future__ import annotations

from secant.errors import PolicyError, SqlError
from secant.plan.facts.scopes import bottom_up
from secant.plan.nodes import Filter, Join, Node, Project, Relation, Sort, written_size
from secant.plan.rewrites.rewrite import normalize
from secant.plan.typing import fields_of
from secant.plan.verify import verify
from secant.schema.catalog import Catalog
from secant.sql.bind.relations import Binder
from secant.sql.bind.views import without_unused
from secant.sql.limits import MAX_JOINS
from secant.sql.parameters import Parameters
from secant.sql.parse import parse
from secant.sql.screen import screen

MAX_UNFOLDED = 40_000


def from_sql(
    text: str,
    catalog: Catalog,
    dialect: str = "duckdb",
    parameters: Parameters | None = None,
) -> Relation:
    """Give the verified plan of the one SELECT in `text`. Its columns are named as the user named them.

    With parameters it is the plan of the same text with literals in the places of placeholders.
    """
    tree = screen(parse(text, dialect, parameters), text)
    plan = Binder(catalog, text).bind(tree)
    if written_size(plan) > MAX_UNFOLDED or _joins_at_once(plan) > MAX_JOINS:
        raise SqlError(
            "SQL-007",
            "the query is too large once its WITH clauses are written out where they are used",
            hint="use each WITH table fewer times",
        )
    plan = without_unused(plan, catalog)
    verify(plan)
    for shown in fields_of(plan):
        if shown.type.form == "TIME":  # kept as a moment of one day, which nobody should be shown
            raise SqlError(
                "SQL-004",
                f"the column {shown.name[:80]} of the answer is a time of day",
                hint="take a part of it: extract(hour FROM ...)",
            )
    return plan


def bind(text: str, catalog: Catalog, parameters: Parameters | None = None) -> Relation:
    """Stage *bind*: give the plan of the one SELECT in `text`, in normal form."""
    return normalize(from_sql(text, catalog, parameters=parameters))


def check_named(catalog: Catalog) -> None:
    """Bind every view and every derived column of a policy once, so that no question is surprised by one."""
    texts: dict[str, str] = {}
    for name in catalog.views:
        if catalog.table(name) is not None:
            message = f"views.{name}: there is a table of that name"
            raise PolicyError("POL-002", message, hint="use another name")
        texts[f"views.{name}"] = f'SELECT * FROM "{name}"'
    for table, columns in catalog.derived.items():
        for column in columns:
            texts[f"tables.{table}.derived.{column}"] = f'SELECT "{column}" FROM "{table}"'
    for origin, text in texts.items():
        try:
            from_sql(text, catalog)
        except SqlError as error:
            hint = error.hint or "write it as it could be asked"
            raise PolicyError("POL-002", f"{origin}: {error.message}", hint=hint) from None


def _joins_at_once(plan: Relation) -> int:
    """Give the most joins that an engine puts in order together, once WITH tables stand where they are used."""
    joins: dict[Node, int] = {}
    for node in bottom_up(plan):
        if isinstance(node, Join):
            joins[node] = 1 + joins.get(node.left, 0) + joins.get(node.right, 0)
        elif isinstance(node, (Filter, Project, Sort)):
            joins[node] = joins.get(node.input, 0)
    return max(joins.values(), default=0)
