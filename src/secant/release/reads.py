"""Which tables and columns does a release depend on? Told from the very plans whose statements are sent.

In: relations, before they are printed. Out: by table, the columns that their statements name. What is not listed cannot
have any influence on an answer: the printer writes no other column (I1). No data is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from secant.engines.print.blocks import printed_columns
from secant.plan import nodes as n
from secant.plan.facts.lineage import stored_columns
from secant.plan.facts.reads import scans
from secant.plan.typing import fields_of


def reads_of(relations: Iterable[n.Relation]) -> Mapping[str, frozenset[str]]:
    """Give the columns that statements name, table by table; a table whose rows are only counted has none."""
    found: dict[str, set[str]] = {}
    for relation in relations:
        named = {f.name for f in fields_of(relation)} | printed_columns(relation)
        for scan in scans(relation):
            columns = {base for name, base in stored_columns(scan).items() if name in named}
            found.setdefault(scan.table.lower(), set()).update(columns)
    return {table: frozenset(columns) for table, columns in found.items()}
