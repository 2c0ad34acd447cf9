"""Later releases read earlier ones: their tables are put in front of a statement as constants (workflow.staged).

In: a statement that was printed from a bounded plan, and tables that noise is on. Out: the statement with the tables
that it names, or an engine that puts them in. Never here: a table that nothing was drawn for; before the first draw
rows of NULL stand for released ones, so that an engine can bind a statement without any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secant.engines.backend import PublicRows, Session
from secant.engines.dialect import Dialect, quote
from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.schema.catalog import Catalog

_WITH = "WITH "


def provided(statement: str, tables: Mapping[str, n.Values], dialect: Dialect) -> str:
    """Give a statement with the released tables that it names."""
    subqueries = [
        f"{quote(name)} AS ({lower(table, dialect)})"
        for name, table in tables.items()
        if quote(name) in statement
    ]
    if not subqueries:
        return statement
    if statement.startswith(_WITH):
        return _WITH + ", ".join([*subqueries, statement.removeprefix(_WITH)])
    return _WITH + ", ".join(subqueries) + " " + statement


def placeholders(tables: Mapping[str, tuple[n.Field, ...]]) -> dict[str, n.Values]:
    """Give a row of typed NULLs for each table that is not released yet."""
    return {name: n.Values(columns, ((None,) * len(columns),)) for name, columns in tables.items()}


def reads_released(relation: n.Relation) -> bool:
    """Whether a relation reads an earlier release."""
    return n.holds(relation, n.Released)


@dataclass(slots=True)
class Stage:
    """An engine as a later release sees it: with the tables that were released before."""

    engine: Session
    tables: Mapping[str, n.Values]
    dialect: Dialect

    def catalog(self) -> Catalog:
        """Give names and types of all tables of the engine."""
        return self.engine.catalog()

    def check(self, statement: str) -> None:
        """Check a statement with the released tables put in."""
        self.engine.check(provided(statement, self.tables, self.dialect))

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement with the released tables put in."""
        return self.engine.rows(provided(statement, self.tables, self.dialect))

    def keep(self, statement: str) -> str | None:
        """Keep the rows of a statement with the released tables put in."""
        return self.engine.keep(provided(statement, self.tables, self.dialect))

    @property
    def known(self) -> PublicRows:
        """Give what the engine knows of public tables."""
        return self.engine.known

    def confirm(self) -> None:
        """Raise if the data of the engine may have changed."""
        self.engine.confirm()


def stage(engine: Session, tables: Mapping[str, n.Values]) -> Stage:
    """Give the engine with released tables; later ones may be added to the mapping."""
    return Stage(engine, tables, engine.dialect)
