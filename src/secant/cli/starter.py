"""A policy to start from: every table and column of the schema, with guesses as comments.

In: the catalog and, if the owner asked for a look, smallest and largest values. Out: TOML that
loads as it is and protects every row of every table. Guesses from names stay comments: a wrong key
or reference would be a wrong promise, so a person has to uncomment it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from secant.terms.catalog import Catalog, Table
from secant.terms.types import Type

Looked = Mapping[tuple[str, str], tuple[object, object]]
"""By table and column: the smallest and the largest value in the data."""

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEAD = """\
# A policy for Secant, written from the schema{looked}.
# Lines that start with "#" are guesses or examples: uncomment what is true. Then: secant check
# Facts are enforced, not believed: values outside a range are clamped, rows beyond a limit do not
# count.

[database]
source = {source}
"""
_ROWS = """
# What must stay hidden. To begin with: any single row of any table.
[protections.rows]
kind = "rows"
epsilon = 1.0                        # all that may ever be spent
"""
_UNIT = """
# If one person has several rows, protect the person instead, and delete [protections.rows]:
# [protections.people]
# kind = "unit"
# unit = "{table}.{column}"
# epsilon = 1.0
# delta = 1e-9
# [protections.people.limits]        # at most so many rows of one person count
{limits}
"""


def starter_policy(source: str, catalog: Catalog, looked: Looked | None = None) -> str:
    """Write the policy."""
    note = " and from a look at the data" if looked else ""
    parts = [_HEAD.format(source=quoted(source), looked=note)]
    keys = {name: _key_guess(table) for name, table in catalog.tables.items()}
    for name, table in catalog.tables.items():
        parts.append("\n".join(_table(name, table, keys, looked or {})))
    parts += [_ROWS, _unit(catalog, keys)]
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def quoted(text: str) -> str:
    """Write a TOML string."""
    escapes = {'"': '\\"', "\\": "\\\\"}
    plain = (escapes.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in text)
    return '"' + "".join(plain) + '"'


def _name(name: str) -> str:
    return name if _BARE.match(name) else quoted(name)


def _table(
    name: str, table: Table, keys: Mapping[str, str | None], looked: Looked
) -> Iterator[str]:
    yield f"[tables.{_name(name)}]"
    if table.unique:
        columns = ", ".join(quoted(column) for column in table.unique[0])
        yield f"key = [{columns}]"
    elif keys[name]:
        yield f"# key = [{quoted(keys[name] or '')}]"
    guesses = list(_references(name, table, keys))
    if guesses:
        listed = ", ".join(f'{_name(c)} = "{t}.{k}"' for c, t, k in guesses)
        yield f"# references = {{ {listed} }}"
    yield f"[tables.{_name(name)}.columns]"
    linking = {keys[name], *(c.lower() for c, _, _ in guesses)}
    linking |= {column.lower() for columns in table.unique for column in columns}
    for column, type_ in table.columns:
        if column.lower() not in linking:
            yield _column(column, type_, looked.get((name, column)))


def _column(column: str, type_: Type, seen: tuple[object, object] | None) -> str:
    if seen is not None and (type_.numeric or type_.temporal):
        low, high = (f'"{end}"' if type_.temporal else f"{end}" for end in seen)
        # A value of somebody: it stays a comment until the owner has rounded it to a public fact.
        return f"# {_name(column)} = {{ range = [{low}, {high}] }}   # {type_}, as seen: round it!"
    if type_.numeric:
        return f"# {_name(column)} = {{ range = [0, 100] }}   # {type_}; SUM and AVG need a range"
    if type_.temporal:
        return f'# {_name(column)} = {{ range = ["2020-01-01", "2029-12-31"] }}   # {type_}'
    return (
        f'# {_name(column)} = {{ values = ["...", "..."] }}   # {type_}; GROUP BY takes keys here'
    )


def _key_guess(table: Table) -> str | None:
    """Guess the column that identifies a row, by name only."""
    if table.unique:
        return table.unique[0][0].lower() if len(table.unique[0]) == 1 else None
    names = [column.lower() for column, _ in table.columns]
    stem = table.name.lower().removesuffix("s")
    for wanted in ("id", f"{stem}_id", f"{stem}id", f"{stem}_key", f"{stem}key", stem):
        if wanted in names:
            return wanted
    first = names[0] if names else ""
    return first if first.endswith(("id", "key")) else None


def _references(
    name: str, table: Table, keys: Mapping[str, str | None]
) -> Iterator[tuple[str, str, str]]:
    """Guess references: a column named like another table's key, or like that table with `_id`."""
    for column, _ in table.columns:
        for other, key in keys.items():
            if key is None or other == name or column.lower() == keys[name]:
                continue
            stem = other.removesuffix("s")
            same_name = key != "id" and column.lower() == key
            if same_name or column.lower() in (f"{stem}_id", f"{stem}id", f"{stem}_key"):
                yield column, other, key
                break


def _unit(catalog: Catalog, keys: Mapping[str, str | None]) -> str:
    """Suggest the table that most others seem to refer to as the one that holds people."""
    pointed: dict[str, set[str]] = {}
    for name, table in catalog.tables.items():
        for _, target, _ in _references(name, table, keys):
            pointed.setdefault(target, set()).add(name)
    candidates = [name for name in catalog.tables if keys[name]]
    if not candidates:
        return ""
    best = max(candidates, key=lambda name: len(pointed.get(name, ())))
    limits = "\n".join(f"# {_name(other)} = 10" for other in sorted(pointed.get(best, ())))
    return _UNIT.format(table=best, column=keys[best], limits=limits or "# ...")
