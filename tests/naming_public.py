"""What the owner of made-up data writes: every table that no protection covers is public, by its name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from secant.cli.starter import quoted
from secant.policy.coverage import open_tables
from secant.policy.file import read_policy
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog, Table, catalog


def name_public(policy: Policy, known: Catalog) -> Policy:
    """Give the policy with everything that it leaves open named public."""
    return replace(policy, public=(*policy.public, *open_tables(policy, known)))


def naming_public(text: str, tables: Iterable[str]) -> str:
    """Give the text of a policy with the line that it needs, for these tables of its database."""
    known = catalog(*(Table(name, ()) for name in tables))
    found = name_public(read_policy(text), known).public
    line = f"public = [{', '.join(map(quoted, found))}]\n"
    head = "[database]\n"
    return text.replace(head, head + line, 1) if head in text else f"database.{line}{text}"
