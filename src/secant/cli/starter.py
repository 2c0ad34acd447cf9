"""A policy to start from: every table and column of the schema, with guesses as comments.

In: the catalog and, if the owner asked for a look, smallest and largest values. Out: TOML that
loads as it is. What the engine keeps (keys, references, labels) is written as it is; guesses from names stay
comments: a wrong key or reference would be a wrong promise, so a person has to uncomment it. Where kept references
lead to people, the people are protected; else every row of every table. No table is ever made public here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from secant.policy.fit import untaken
from secant.policy.people import about_people, is_staff, named_after_people, person_column
from secant.policy.ties import accepted_name
from secant.records import frozen
from secant.schema.catalog import Catalog, Computed, Table
from secant.schema.types import Type

Looked = Mapping[tuple[str, str], tuple[object, object]]
"""By table and column: the smallest and the largest value in the data."""
Way = tuple[str, str, str]
"""A guessed reference: a column, and the table and key that it leads to."""

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_IN_NORMS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ENDS = ("_id", "id", "_key", "key", "_nr", "_no", "_number", "_ref")
_HEAD = """\
# A policy for Secant, written from the schema{looked}.
# Lines that start with "#" are guesses or examples: uncomment what is true. Then: secant check
# Facts are enforced, not believed: values outside a range are clamped, rows beyond a limit do not
# count.

[database]
source = {source}
# Tables that everybody may see whole. A table that is neither named here nor protected below is an
# error: nothing is answered before you decide.{harmless}
public = []
{views}"""
_ROWS = """
# What must stay hidden. To begin with: any single row of any table.
[protections.rows]
kind = "rows"
epsilon = 1.0                        # all that may ever be spent
"""
_UNIT = """
# If one person has several rows, protect the person instead, and delete [protections.rows]. The rows
# of a table are then a person's if its references, above, lead to the table of the people.
# [protections.people]
# kind = "unit"
# unit = {unit}
# epsilon = 1.0
# delta = 1e-9
# [protections.people.limits]        # how many rows of one person count at most
{limits}
"""
_DECLARED_UNIT = """
# What must stay hidden: everything about one person. The references above, which the database keeps, lead there.
[protections.people]
kind = "unit"
unit = {unit}
epsilon = 1.0                        # all that may ever be spent
delta = 1e-9                         # lets keys and limits be found that nobody declares
# How many rows of one person count is chosen privately for each question. If you know a limit, declare it:
# [protections.people.limits]
{limits}
"""
_CELLS = """
# If everybody may know which rows there are, and only their values must stay hidden, protect the values
# instead. A distance says how far the values of one row have moved: here as far as the column that moved
# most, each in its own unit, days for dates and moments. Weigh a column by one over the change that
# nobody should be able to tell: 0.01*salary counts 100 as 1.
# [protections.values]
# kind = "cells"
# epsilon = 1.0                      # spent for each unit of distance
# [protections.values.distance]
{distances}
"""
_LEFT = """
# No reference {known} leads from these tables to {unit}: {left}.
# Each needs a reference, a protection of its own or, if nothing in it is about people, its name in public.
"""
_OTHERS = """
# These look like people, too, and need a protection of their own: {others}.
"""


def starter_policy(source: str, catalog: Catalog, looked: Looked | None = None) -> str:
    """Write the policy."""
    note = " and from a look at the data" if looked else ""
    keys = {name: _key_guess(table, catalog) for name, table in catalog.tables.items()}
    references = {
        name: list(_database_references(t, catalog)) for name, t in catalog.tables.items()
    }
    guessed = {
        name: [
            way
            for way in _references(name, t, keys)
            if way[0] not in {c for c, _, _ in references[name]}
        ]
        for name, t in catalog.tables.items()
    }
    ways = {name: [*references[name], *guessed[name]] for name in catalog.tables}
    people = _people(catalog, keys, ways)
    sure = people is not None and _surely(people, catalog, references)
    apart: dict[str, list[Way]] = {}
    if sure and people is not None:  # only references that the database keeps protect anything yet
        references, apart = _one_way_each(people.root, references)
        reached = tuple(n for n in catalog.tables if people.root in _closure(n, references))
        people = replace(people, reached=reached, others=_others(catalog, people.root, reached))
    views = (
        f"# Views are written out where a question names them: {', '.join(catalog.stored_views)}.\n"
    )
    parts = [
        _HEAD.format(
            source=quoted(source),
            looked=note,
            harmless=_harmless(catalog, people),
            views=views if catalog.stored_views else "",
        )
    ]
    for name, table in catalog.tables.items():
        lines = _table(
            name, table, keys, references[name], guessed[name], apart.get(name, []), looked or {}
        )
        parts.append("\n".join(lines))
    parts += [
        "" if sure else _ROWS,
        "" if people is None else _unit(catalog, people, sure=sure),
        _cells({n: _measured(t, _linking(n, t, keys, ways[n])) for n, t in catalog.tables.items()}),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def quoted(text: str) -> str:
    """Write a TOML string."""
    escapes = {'"': '\\"', "\\": "\\\\"}
    plain = (escapes.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in text)
    return '"' + "".join(plain) + '"'


def _name(name: str) -> str:
    return name if _BARE.match(name) else quoted(name)


def _table(
    name: str,
    table: Table,
    keys: Mapping[str, str | None],
    references: Sequence[Way],
    guesses: Sequence[Way],
    apart: Sequence[Way],
    looked: Looked,
) -> Iterator[str]:
    notes = dict(table.comments)
    if notes.get(""):
        yield f"# {notes['']}"
    yield f"[tables.{_name(name)}]"
    if table.unique:
        columns = ", ".join(quoted(column) for column in table.unique[0])
        yield f"key = [{columns}]"
    elif keys[name]:
        yield f"# key = [{quoted(keys[name] or '')}]"
    if references:
        yield f"references = {{ {_listed(references)} }}"
    for column, target, _ in apart:
        yield f"# {_name(column)} leads to the people, too, through {target}: a row belongs to one, so it is left out"
    if guesses:
        yield f"# references = {{ {_listed([*references, *guesses])} }}"
    yield f"[tables.{_name(name)}.columns]"
    linking = _linking(name, table, keys, (*references, *guesses, *apart))
    labels = dict(table.labels)
    computed = {c.column: c for c in table.computed}
    for column, type_ in table.columns:
        if column in computed:
            yield f"# {_name(column)} {_follows(computed[column])}"
        elif column.lower() not in linking:
            line = _column(column, type_, looked.get((name, column)), labels.get(column))
            yield line + (f" - {notes[column]}" if notes.get(column) else "")
    for column, reason in untaken(table).items():
        yield f"# {_name(column)} is not offered: {reason}"
    for tie in table.ties:
        if tie.kind in ("trigger", "rule", "row policy", "function"):
            called = quoted(accepted_name(name, tie))
            question = (
                f"Does a {tie.kind} here bring what is protected to where everybody may see it?"
            )
            yield f"# {question} If not: accept = [{called}]"


def _follows(computed: Computed) -> str:
    if computed.inputs is None:
        return "is computed from others, nobody can tell how: it may not be offered"
    listed = ", ".join(sorted(computed.inputs))
    return f"is computed from {listed}: declare these" if listed else "is computed"


def _linking(
    name: str, table: Table, keys: Mapping[str, str | None], ways: Sequence[Way]
) -> set[str | None]:
    """Give the columns that tell rows apart or lead to other rows."""
    linking = {keys[name], *(c.lower() for c, _, _ in ways)}
    return linking | {column.lower() for columns in table.unique for column in columns}


def _measured(table: Table, linking: set[str | None]) -> list[str]:
    """Give the columns whose moves have a length: numbers, dates and moments that are not keys."""
    return [
        column
        for column, type_ in table.columns
        if (type_.numeric or type_.kind in ("DATE", "TIMESTAMP"))
        and column.lower() not in linking
        and column not in {c.column for c in table.computed}
        and _IN_NORMS.match(column)
    ]


def _cells(measured: Mapping[str, Sequence[str]]) -> str:
    """Write a default distance for every table that has one: the largest move of any column."""
    lines = []
    for name, columns in measured.items():
        listed = ", ".join(columns)
        if columns:
            lines.append(f'# {_name(name)} = "{f"linf({listed})" if len(columns) > 1 else listed}"')
    return _CELLS.format(distances="\n".join(lines)) if lines else ""


def _listed(ways: Sequence[Way]) -> str:
    return ", ".join(f"{_name(c)} = {quoted(f'{t}.{k}')}" for c, t, k in ways)


def _column(
    column: str,
    type_: Type,
    seen: tuple[object, object] | None,
    labels: tuple[str, ...] | None,
) -> str:
    if labels is not None:
        return f"{_name(column)} = {{ values = [{', '.join(map(quoted, labels))}] }}   # {type_}"
    if type_.kind == "BOOLEAN":
        return f"{_name(column)} = {{ values = [true, false] }}   # {type_}"
    if type_.form in ("TIME", "UUID", "BLOB"):
        return f"# {_name(column)}   # {type_}"
    if seen is not None and (type_.numeric or type_.temporal):
        low, high = (f'"{end}"' if type_.temporal else f"{end}" for end in seen)
        # A value of somebody: it stays a comment until the owner has rounded it to a public fact.
        return f"# {_name(column)} = {{ range = [{low}, {high}] }}   # {type_}, as seen: round it!"
    if type_.numeric:
        return f"# {_name(column)} = {{ }}   # {type_}; if you know one, declare range = [0, 100] or the like"
    if type_.temporal:
        return f'# {_name(column)} = {{ range = ["2020-01-01", "2029-12-31"] }}   # {type_}'
    return (
        f'# {_name(column)} = {{ values = ["...", "..."] }}   # {type_}; GROUP BY takes keys here'
    )


def _claims(table: str, column: str) -> bool:
    """Whether a column is named after a table: `patient_id` after `patients`."""
    stem = table.lower().removesuffix("s")
    stems = (stem, f"{stem[:-2]}y") if stem.endswith("ie") else (stem,)
    return any(column.lower() in (s, *(s + end for end in _ENDS)) for s in stems)


def _key_guess(table: Table, catalog: Catalog) -> str | None:
    """Guess the column that identifies a row, by name only."""
    if table.unique:
        return table.unique[0][0].lower() if len(table.unique[0]) == 1 else None
    names = [column.lower() for column, _ in table.columns]
    for column in names:
        if column == "id" or _claims(table.name, column):
            return column
    first = names[0] if names else ""
    # A column that is named after another table leads there; it does not tell this table's rows apart.
    if any(_claims(other, first) for other in catalog.tables):
        return None
    return first if first.endswith(("id", "key")) else None


def _database_references(table: Table, catalog: Catalog) -> Iterator[Way]:
    """Give the references that the engine keeps, one for each column, to keys of tables that are offered."""
    seen: set[str] = set()
    for column, target, key in table.references:
        there = catalog.table(target)
        unique = there is not None and any(k == (key,) for k in there.unique)
        if unique and table.type_of(column) is not None and column not in seen:
            seen.add(column)
            yield column, target.lower(), key.lower()


def _one_way_each(
    root: str, references: Mapping[str, list[Way]]
) -> tuple[dict[str, list[Way]], dict[str, list[Way]]]:
    """Leave one way from each table to the people, the shortest: a row that belonged to two would be refused."""
    distance = {root: 0}
    while True:
        further = {
            name: 1 + min(distance[t] for _, t, _ in ways if t in distance)
            for name, ways in references.items()
            if name not in distance and any(t in distance for _, t, _ in ways)
        }
        if not further:
            break
        distance |= further
    one: dict[str, list[Way]] = {}
    apart: dict[str, list[Way]] = {}
    for name, ways in references.items():
        leading = sorted((w for w in ways if w[1] in distance), key=lambda w: distance[w[1]])
        if name == root:
            leading = [leading[0], *leading] if leading else []  # its own people need no way
        one[name] = [w for w in ways if w not in leading[1:]]
        apart[name] = [w for w in ways if w in leading[1:]]
    return one, apart


def _surely(people: _People, catalog: Catalog, references: Mapping[str, Sequence[Way]]) -> bool:
    """Whether the engine keeps the key of the people, and references that lead to it."""
    unique = {tuple(c.lower() for c in key) for key in catalog.tables[people.root].unique}
    leads = any(target == people.root for ways in references.values() for _, target, _ in ways)
    return (people.column.lower(),) in unique and leads


def _references(name: str, table: Table, keys: Mapping[str, str | None]) -> Iterator[Way]:
    """Guess references: a column named after another table, or like another table's key."""
    for column in (column for column, _ in table.columns):
        if _claims(name, column):
            continue
        others = {other: key for other, key in keys.items() if key is not None and other != name}
        after = [other for other in others if _claims(other, column)]
        own = (
            column.lower() == keys[name]
        )  # a key may also lead to another table, if it is named after it
        alike = [o for o, key in others.items() if key == column.lower() != "id" and not own]
        if after or alike:
            target = (after or alike)[0]
            yield column, target, others[target] or ""


@frozen
class _People:
    """The table that seems to hold the people, and how the others stand to it."""

    root: str
    column: str
    """The column that tells people apart."""
    reached: tuple[str, ...]
    """Tables from which references lead to it."""
    others: tuple[str, ...]
    """Tables that are not reached, and look like people."""


def _people(
    catalog: Catalog, keys: Mapping[str, str | None], ways: Mapping[str, Sequence[Way]]
) -> _People | None:
    """Find the root of the references: a table that refers to nobody, from which the most others hang.

    Where names speak of people, theirs comes first. A table that most others refer to directly can be a visit.
    """
    further = {name: _closure(name, ways) for name in catalog.tables}
    likely = {name for name, table in catalog.tables.items() if about_people(table)}
    named = {name for name, table in catalog.tables.items() if named_after_people(table)}

    def rank(name: str) -> tuple[bool, bool, bool, bool, int]:
        return (
            name in named and not further[name] & named,
            name in likely and not further[name] & likely,
            not is_staff(catalog.tables[name]),
            not further[name],
            sum(name in targets for targets in further.values()),
        )

    if not catalog.tables:
        return None
    root = max(catalog.tables, key=rank)
    column = keys[root]
    if root not in named:  # nobody's own table: a visit, say, that tells in a column whose it is
        column = person_column(catalog.tables[root]) or column
    if column is None:
        return None
    reached = tuple(name for name in catalog.tables if root in further[name])
    return _People(root, column, reached, _others(catalog, root, reached))


def _others(catalog: Catalog, root: str, reached: Sequence[str]) -> tuple[str, ...]:
    """Give the tables that look like people and are not reached."""
    others = ((n, t) for n, t in catalog.tables.items() if n != root and n not in reached)
    return tuple(name for name, table in others if about_people(table))


def _closure(name: str, ways: Mapping[str, Sequence[Way]]) -> frozenset[str]:
    """Give all tables that references lead to from one, itself left out."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        targets = {target for _, target, _ in ways[ahead.pop()]} - reached
        reached |= targets
        ahead += sorted(targets)
    return frozenset(reached - {name})


def _harmless(catalog: Catalog, people: _People | None) -> str:
    """Name tables that could be public, as a comment: neither a guessed reference nor a name leads to people."""
    related = set() if people is None else {people.root, *people.reached, *people.others}
    tables = [quoted(name) for name in catalog.tables if people is not None and name not in related]
    return (
        f"\n# By their names, these could be without people: {', '.join(tables)}" if tables else ""
    )


def _unit(catalog: Catalog, people: _People, *, sure: bool) -> str:
    """Write the protection of the people, and what it leaves to decide."""
    limits = "\n".join(f"# {_name(other)} = 10" for other in sorted(people.reached))
    unit = quoted(f"{people.root}.{people.column}")
    text = (_DECLARED_UNIT if sure else _UNIT).format(unit=unit, limits=limits or "# ...")
    left = [n for n in catalog.tables if n != people.root and n not in people.reached]
    if left:
        origin = "that the database keeps" if sure else "that was guessed"
        text += _LEFT.lstrip("\n").format(
            unit=unit, known=origin, left=", ".join(map(quoted, left))
        )
    if people.others:
        text += _OTHERS.lstrip("\n").format(others=", ".join(map(quoted, people.others)))
    return text
