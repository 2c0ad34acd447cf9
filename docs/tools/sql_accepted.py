"""Write the lists of docs/reference/sql-accepted.md from the records that bind, print and bound SQL.

Run it after a function, an aggregate or a refusal was added; a test compares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from secant.engines.postgres.scalars import _CALLS as SPELLED
from secant.engines.postgres.scalars import POSTGRES
from secant.plan.functions.aggregates import AGGREGATES
from secant.plan.functions.scalar import FUNCTIONS, UNLIMITED, Function
from secant.plan.functions.windows import WINDOW_AGGREGATES, WINDOW_FUNCTIONS
from secant.plan.rewrites.measures import _FORMULAS as SUMMED
from secant.plan.rewrites.order_statistics import FUNCTIONS as RANKED
from secant.plan.typing import EXTRACT_PARTS
from secant.schema import types as t
from secant.sql.bind.calls import NAMED, PART_NAMES
from secant.sql.bind.expressions import AGGREGATES as CALLED
from secant.sql.bind.expressions import NAMED_AGGREGATES
from secant.sql.bind.unknown import OTHER_NAMES, REASONS

PAGE = Path(__file__).parents[1] / "reference" / "sql-accepted.md"
BEGIN, END = "<!-- lists: written by docs/tools/sql_accepted.py -->", "<!-- end of lists -->"
KINDS = (t.INTEGER, t.decimal(9, 2), t.DOUBLE, t.TEXT, t.DATE, t.TIMESTAMP, t.BOOLEAN)
OPERATOR = {"concat_op": "a \\|\\| b"}


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(*titles: str) -> str:
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def _kinds(function: Function) -> tuple[str, str]:
    """Give what the first argument may be, and what comes out, by asking the record."""
    first, results = [], []
    width = min(function.least, 4)
    for types in itertools.product(KINDS, repeat=width):
        given = types
        if function.parts:  # the name of a part stands first
            given = (t.TEXT, *types[1:])
        found = function.result(given)
        if found is not None:
            first.append((types[1] if function.parts else types[0]).kind)
            results.append(found.kind)
    return tuple(", ".join(dict.fromkeys(x)).lower() for x in (first, results))  # type: ignore[return-value]


def _arguments(function: Function) -> str:
    if function.most == UNLIMITED:
        return f"{function.least} or more"
    if function.least == function.most:
        return str(function.least)
    return f"{function.least} to {function.most}"


def _functions() -> Iterator[str]:
    yield _table("function", "arguments", "of", "gives", "as a key", "PostgreSQL")
    for f in sorted(FUNCTIONS.values(), key=lambda f: f.name):
        if not f.written:
            continue
        of, gives = _kinds(f)
        name = OPERATOR.get(f.name, f.name)
        there = f.name in POSTGRES.functions or f.name in SPELLED
        constants = f", {len(f.constants)} constant" if f.constants else ""
        yield (
            f"| `{name}` | {_arguments(f)}{constants} | {of} | {gives} | {'listed' if f.stepwise else ''} "
            f"| {'yes' if there else 'refused'} |"
        )


def _answered(name: str) -> str:
    if name == "count" or name in SUMMED or AGGREGATES[name].pairs:
        return "noise on sums"
    return "a private choice" if name in RANKED else "public tables, or values that move"


def _aggregates() -> Iterator[str]:
    yield _table("aggregate", "of", "gives", "over protected rows")
    for a in sorted(AGGREGATES.values(), key=lambda a: a.name):
        if a.written:
            results = {k.kind: found.kind for k in KINDS if (found := a.result(k)) is not None}
            of, gives = (", ".join(dict.fromkeys(x)).lower() for x in (results, results.values()))
            yield f"| `{a.name}`{' of pairs' * a.pairs} | {of} | {gives} | {_answered(a.name)} |"


def lists() -> str:
    """Give the lists as Markdown."""
    made = sorted({*CALLED.values(), *NAMED_AGGREGATES} - set(AGGREGATES))
    parts = [
        "### Functions",
        "`as a key` says which may stand in GROUP BY over a column with declared values or range, without δ.",
        "\n".join(_functions()),
        f"Other names and forms for these: {_code(sorted({*NAMED, *OTHER_NAMES}))}.",
        (
            f"Parts of a date (`EXTRACT(part FROM d)`, `date_part('part', d)`): {_code(EXTRACT_PARTS)}; also "
            f"{_code(sorted(PART_NAMES))}. `date_trunc` takes {_code(FUNCTIONS['date_trunc'].parts)}, `date_diff` "
            f"{_code(FUNCTIONS['date_diff'].parts)}."
        ),
        "### Aggregates",
        "\n".join(_aggregates()),
        f"Made of these: {_code(made)}.",
        "### Windows",
        f"{_code(WINDOW_FUNCTIONS)}, and the aggregates {_code(WINDOW_AGGREGATES)}.",
        "### Refused by name",
        "\n".join(
            [
                _table("function", "why", "instead"),
                *(
                    f"| {_code(n for n in REASONS if REASONS[n] == told)} | {told[0]} | {told[1]} |"
                    for told in dict.fromkeys(REASONS.values())
                ),
            ]
        ),
    ]
    return "\n\n".join(parts)


def page(text: str) -> str:
    """Give the page with its lists as the records have them."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{lists()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
