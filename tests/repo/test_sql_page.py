"""The page of accepted SQL is level with the binder: functions, aggregates, examples."""

import pytest
from repository import ROOT, blocks, docs_tool

from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, INTEGER, TEXT, decimal
from secant.sql.bind import from_sql

PAGE = ROOT / "docs" / "reference" / "sql-accepted.md"
SHOP = catalog(
    Table(
        "orders",
        (
            ("id", INTEGER),
            ("customer", INTEGER),
            ("day", DATE),
            ("status", TEXT),
            ("total", decimal(9, 2)),
        ),
    ),
    Table("customers", (("id", INTEGER), ("region", TEXT), ("born", DATE))),
)
EXAMPLES = [
    line.rstrip(";") for b in blocks(PAGE) if b.language == "sql" for line in b.text.splitlines()
]


def test_the_lists_are_those_of_the_records():
    written = PAGE.read_text(encoding="utf-8")
    assert docs_tool("sql_accepted").page(written) == written, "run docs/tools/sql_accepted.py"
    assert "`regexp_matches` | 2, 1 constant | text | boolean" in written
    assert "| `mode` |" in written


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_accepted(text):
    assert from_sql(text, SHOP) is not None
