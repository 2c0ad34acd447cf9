"""The page of accepted SQL is level with the binder: functions, aggregates, examples."""

import re

import pytest
from repository import ROOT, blocks

from secant.plan.from_sql import from_sql
from secant.plan.functions import AGGREGATES, FUNCTIONS
from secant.terms.catalog import Table, catalog
from secant.terms.types import DATE, INTEGER, TEXT, decimal

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


def test_every_function_is_documented():
    listed = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    operators = {"concat_op", "array_agg"}  # written `a || b`; and what only plans call
    written = {name for name, f in FUNCTIONS.items() if f.written}
    assert (written | set(AGGREGATES)) - operators - listed == set()


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_accepted(text):
    assert from_sql(text, SHOP) is not None
