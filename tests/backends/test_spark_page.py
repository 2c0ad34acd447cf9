"""The page about Spark says what is so: its policy is read, and what it lists as refused is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from secant.engines.print.print_sql import lower
from secant.engines.spark.scalars import SPARK
from secant.engines.spark.text import in_spark_syntax
from secant.errors import BackendError
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.policy.file import read_policy
from secant.sql.bind import from_sql

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-spark.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL))
PROTECTED = '[protections.all]\nkind = "rows"\nepsilon = 1.0\n'


def test_the_policy_is_read():
    assert read_policy(BLOCKS["toml"] + PROTECTED).source.endswith("?schema=clinic")


@pytest.mark.parametrize(
    "expression",
    ["CAST(height AS VARCHAR)", "height % 2.5e0", "seen - seen", "regexp_extract(name, 'a')",
     "regexp_replace(name, 'a', 'b')", "product(height)", "median(balance)"],
)  # fmt: skip
def test_what_is_refused(small, expression):
    plan = make_total(normalize(from_sql(f"SELECT {expression} FROM person", small.catalog())))
    with pytest.raises(BackendError) as caught:
        lower(plan, SPARK)
    assert caught.value.code == "BAK-003"


def test_quoted_parts_are_spelled_and_nothing_else():
    statement = """SELECT "a`b", 'it''s "x" \\ ${env}' FROM "t""u" WHERE 'q' = "c" """
    assert (
        in_spark_syntax(statement)
        == r"""SELECT `a``b`, 'it\'s "x" \\ ${env}' FROM `t"u` WHERE 'q' = `c` """
    )
