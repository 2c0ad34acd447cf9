"""A policy beside which users are kept."""

from __future__ import annotations

from pathlib import Path

POLICY = """
database.source = "duckdb:shop.duckdb"
[protections.rows]
kind = "rows"
epsilon = 10
"""


def policy_at(folder: Path) -> Path:
    """Write a policy; users need no data."""
    place = folder / "policy.toml"
    place.write_text(POLICY)
    return place
