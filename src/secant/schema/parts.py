"""Parts of columns that cannot be asked for whole: a field of a JSON document, the length of an array, seconds.

A part is a column of its table like any other: it has a name, by which a policy speaks of it, and a type. What it
means is what the source's own engine computes from the stored value; the plan never takes it apart. In and out: names.
"""

from __future__ import annotations

import json
import re

from secant.records import frozen
from secant.schema import types as t
from secant.schema.types import Type

Path = tuple[str | int, ...]


FIELDS = {"field": "", "number": "double", "whole": "bigint"}
"""Ways to take a field of a document: as text, or as a number, NULL where it is none; and how the name says so."""
_TYPES = {
    "field": t.TEXT, "number": t.DOUBLE, "whole": t.INTEGER,
    "has": t.BOOLEAN, "count": t.INTEGER, "seconds": t.DOUBLE,
}  # fmt: skip


@frozen
class Part:
    """A part of a column: which column, what of it, and where or what is looked for."""

    column: str
    way: str
    """`field`, `number`, `whole`, `count`, `has` or `seconds`."""
    path: Path = ()
    """For fields the keys and places that lead to it, for `has` the element."""

    @property
    def name(self) -> str:
        """Give the name of the part, as one would write it in SQL."""
        if self.way in FIELDS:
            steps = [_step(step) for step in self.path]
            text = "".join([self.column, *(f"->{s}" for s in steps[:-1]), f"->>{steps[-1]}"])
            return text if self.way == "field" else f"({text})::{FIELDS[self.way]}"
        if self.way == "has":
            return f"{_step(self.path[0])} = ANY({self.column})"
        return f"cardinality({self.column})" if self.way == "count" else f"epoch({self.column})"

    @property
    def type(self) -> Type:
        """Give the type of the part."""
        return _TYPES[self.way]


ARRAYS = ("array", "array of TEXT", "array of INTEGER")
OF = {
    **dict.fromkeys(FIELDS, ("json", "jsonb")),
    "seconds": ("interval",),
    "count": ARRAYS,
    "has": ARRAYS[1:],
}
"""By way: what columns have such parts."""
TAKEN = {
    "json": "a JSON document: take a field of it, as in {0}->>'key'",
    "interval": "an interval has no one length in days: take its seconds, as in extract(epoch FROM {0})",
    "array": "an array: take its length, cardinality({0}), ask 'x' = ANY({0}), or unnest({0}) in FROM",
}
"""Why such a column is not a value, and what can be asked."""


def why(column: str, kind: str) -> str:
    """Say why a column cannot be taken whole, and what can be."""
    return TAKEN[kind.partition(" ")[0].replace("jsonb", "json")].format(column)


_STEP = r"(?:'(?:[^']|'')*'|-?\d+)"
_FIELD = re.compile(rf"(.+?)((?:->{_STEP})*)->>({_STEP})", re.DOTALL)
_HAS = re.compile(rf"({_STEP}) = ANY\((.+)\)", re.DOTALL)
_OTHER = re.compile(r"(cardinality|epoch)\((.+)\)", re.DOTALL)


def part_named(name: str) -> Part | None:
    """Read the name of a part.

    >>> part_named("note->'a'->>'b'")
    Part(column='note', way='field', path=('a', 'b'))
    >>> part_named("'x' = ANY(tags)").name
    "'x' = ANY(tags)"
    >>> part_named("note")
    """
    for way, end in FIELDS.items():
        if end and name.startswith("(") and name.endswith(f")::{end}"):
            inner = part_named(name[1 : -len(end) - 3])
            return Part(inner.column, way, inner.path) if inner and inner.way == "field" else None
    if match := _FIELD.fullmatch(name):
        steps = [*re.findall(rf"->({_STEP})", match[2]), match[3]]
        return Part(match[1], "field", tuple(map(_read, steps)))
    if match := _HAS.fullmatch(name):
        return Part(match[2], "has", (_read(match[1]),))
    if match := _OTHER.fullmatch(name):
        return Part(match[2], "count" if match[1] == "cardinality" else "seconds")
    return None


def _step(step: str | int) -> str:
    return str(step) if isinstance(step, int) else "'" + step.replace("'", "''") + "'"


def _read(text: str) -> str | int:
    return text[1:-1].replace("''", "'") if text.startswith("'") else int(text)


def json_path(path: Path) -> str:
    """Write a path as `$."a"[0]`, every key between quotes, so that nothing in it is a pattern."""
    return "$" + "".join(f"[{s}]" if isinstance(s, int) else f".{json.dumps(s)}" for s in path)


# ── arrays, element by element ───────────────────────────────────────────────────────────────────


@frozen
class Elements:
    """The elements of an array as rows: each with all columns of the row that holds it, whose owner it has."""

    table: str
    column: str

    @property
    def name(self) -> str:
        """Give the name of the table that these rows are."""
        return f"unnest({self.table}.{self.column})"

    @property
    def element(self) -> str:
        """Give the name of the column with the element."""
        return f"unnest({self.column})"


ELEMENTS = {"array of TEXT": t.TEXT, "array of INTEGER": t.INTEGER}
"""By what an array is: the type of its elements; others are not offered."""
_ELEMENTS = re.compile(r"unnest\((.+)\.([^.()]+)\)", re.DOTALL)


def elements_named(name: str) -> Elements | None:
    """Read the name of a table of elements.

    >>> elements_named("unnest(lab.results.flags)")
    Elements(table='lab.results', column='flags')
    """
    match = _ELEMENTS.fullmatch(name)
    return None if match is None else Elements(match[1], match[2])
