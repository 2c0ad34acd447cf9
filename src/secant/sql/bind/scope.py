"""Where a name is looked up: the tables of one SELECT, then those of the queries around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secant.errors import Span, SqlError, meant
from secant.plan.nodes import Column, Field, Outer, Relation, Scalar
from secant.records import frozen
from secant.schema.parts import Path
from secant.schema.types import Type


@frozen
class Source:
    """A table expression in FROM: its alias and, for each visible column, the plan's name and type."""

    alias: str
    columns: tuple[tuple[str, str, Type], ...]
    parts: Mapping[tuple[str, str, Path], Field] = field(default_factory=dict)
    """Parts of columns that the query writes: column, way and path -> the plan's column."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Columns of the source that cannot be taken, in lower case, each with the reason."""
    spread: tuple[str, Field] | None = None
    """The array, in lower case, whose elements are the rows here, and the plan's column for them."""
    meant: dict[str, list[tuple[str, Type]]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """The plan's columns by written name, in lower case; filled when one is first looked up."""

    @property
    def names(self) -> list[str]:
        """Give the plan's names of all that is visible here."""
        return [*(unique for _, unique, _ in self.columns), *(f.name for f in self.parts.values())]

    def find(self, name: str) -> list[tuple[str, Type]]:
        """Give the plan columns that a written name can mean here."""
        if not self.meant:
            for shown, unique, kind in self.columns:
                self.meant.setdefault(shown.lower(), []).append((unique, kind))
        return self.meant.get(name.lower(), [])


@frozen
class CommonTable:
    """A WITH query, bound once and shared by all its uses."""

    relation: Relation
    columns: tuple[tuple[str, str, Type], ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Of a view: columns that cannot be taken, each with the reason."""
    parts: Mapping[tuple[str, str, Path], Field] = field(default_factory=dict)
    """Of a view: parts of such columns that the query writes."""


@dataclass
class Scope:
    """The names visible in one SELECT. `hidden` are columns that USING has merged away."""

    text: str
    parent: Scope | None
    tables: Mapping[str, CommonTable]
    sources: list[Source] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    def add(self, source: Source, span: Span | None) -> None:
        """Make a source visible; two sources under one alias are an error."""
        if any(s.alias.lower() == source.alias.lower() for s in self.sources):
            raise SqlError(
                "SQL-003",
                f"the alias {source.alias} stands for two tables",
                text=self.text,
                span=span,
                hint="give each table its own alias",
            )
        self.sources.append(source)

    def resolve(self, table: str | None, name: str, span: Span | None) -> Scalar:
        """Give the column that a written name means: here first, then outside."""
        scope: Scope | None = self
        while scope is not None:
            matches = scope._matches(table, name)
            if len(matches) > 1:
                raise SqlError(
                    "SQL-003",
                    f"the column {name} is in several tables",
                    text=self.text,
                    span=span,
                    hint=f"write the table before it, such as {scope._owners(name)[0]}.{name}",
                )
            if matches:
                unique, kind = matches[0]
                return Column(unique, kind, span) if scope is self else Outer(unique, kind, span)
            scope = scope.parent
        raise self.unknown(table, name, span)

    def _matches(self, table: str | None, name: str) -> list[tuple[str, Type]]:
        matches = []
        for source in self.sources:
            if table is None:
                matches += [f for f in source.find(name) if f[0] not in self.hidden]
            elif source.alias.lower() == table.lower():
                matches += source.find(name)
        return matches

    def _owners(self, name: str) -> list[str]:
        return [s.alias for s in self.sources if s.find(name)]

    def unknown(self, table: str | None, name: str, span: Span | None) -> SqlError:
        """Build the error for a name that means nothing, listing near ones from the public catalog."""
        seen = [
            shown for s in self.sources for shown, _, _ in s.columns if table in (None, s.alias)
        ]
        if table is not None and all(s.alias.lower() != table.lower() for s in self.sources):
            return SqlError(
                "SQL-002",
                f"there is no table {table} here",
                text=self.text,
                span=span,
                hint="the tables here are: " + (", ".join(s.alias for s in self.sources) or "none"),
            )
        here = (s for s in self.sources if table is None or s.alias.lower() == table.lower())
        reason = next((s.refused[name.lower()] for s in here if name.lower() in s.refused), None)
        hint = "the columns here are: " + (", ".join(sorted(set(seen))[:40]) or "none")
        near = "" if reason else meant(name, seen)
        if near:
            hint = f"{near} {hint}"
        elif span is not None and self.text[span.start : span.end].endswith('"') and not reason:
            hint = f"text stands in single quotes, names in double ones: write '{name}'; {hint}"
        wrong = (
            f"the column {name} cannot be taken: {reason}"
            if reason
            else f"there is no column {name}"
        )
        return SqlError("SQL-002", wrong, text=self.text, span=span, hint=hint)


def fresh(base: str, names: set[str]) -> str:
    """Give the wanted name, or one like it that differs from all taken ones in more than case; it is taken then."""
    name, count = base, 2
    while name.lower() in names:
        name, count = f"{base}#{count}", count + 1
    names.add(name.lower())
    return name


def with_aliases(scope: Scope, aliases: dict[str, Scalar]) -> Scope:
    """Let HAVING and ORDER BY use output names where no column has that name."""
    return AliasScope(scope.text, scope.parent, scope.tables, scope.sources, scope.hidden, aliases)


@dataclass
class AliasScope(Scope):
    """A scope that falls back on the names of the SELECT list."""

    aliases: dict[str, Scalar] | None = None

    def resolve(self, table: str | None, name: str, span: Span | None) -> Scalar:
        """Give the column, or else the output of that name."""
        if table is None and not self._matches(None, name) and name.lower() in (self.aliases or {}):
            return (self.aliases or {})[name.lower()]
        return super().resolve(table, name, span)
