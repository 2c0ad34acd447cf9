"""The service on a small database, for the tests of the service."""

from __future__ import annotations

from pathlib import Path

import duckdb

from secant.service.asking import Service
from secant.service.settings import Settings, load_settings

PASSWORD = "correct horse battery staple"
CANARY = "CANARY-7f3a9"
POLICY = """
database.source = "duckdb:shop.duckdb"
database.public = ["loads"]
[tables.visits.columns]
cost = { range = [0, 100] }
[protections.rows]
kind = "rows"
tables = ["visits", "people"]
epsilon = 10
composition = "basic"
"""
SHARES = """
[protections.rows.analysts]
ada = { epsilon = 2 }
bob = { epsilon = 1 }
"""
COUNT = "SELECT count(*) AS n FROM visits"


def fill(place: Path, *, rows: int = 50) -> None:
    """Write the data; a name in them must appear nowhere else."""
    draft = place.with_name("draft.duckdb")  # as owners do it who replace data under a service
    with duckdb.connect(str(draft)) as connection:
        connection.execute("CREATE TABLE visits (id BIGINT, cost BIGINT, name VARCHAR)")
        connection.execute(
            f"INSERT INTO visits SELECT i, i % 7, '{CANARY}' FROM generate_series(1, {rows}) AS a(i)"
        )
        connection.execute("CREATE TABLE people (id BIGINT, name VARCHAR)")
        connection.execute(f"INSERT INTO people VALUES (1, '{CANARY}')")
        connection.execute("CREATE TABLE loads (loaded BIGINT)")
        connection.execute("INSERT INTO loads VALUES (1)")
    draft.replace(place)


def settings_at(folder: Path, policy: str = POLICY, **given: object) -> Settings:
    """Give settings of a service in a folder, which is filled if it is empty."""
    if not (folder / "shop.duckdb").exists():
        fill(folder / "shop.duckdb")
    if not (folder / "policy.toml").exists():
        (folder / "policy.toml").write_text(policy)
    return load_settings(None, {}, {"policy": folder / "policy.toml", **given})


def service_at(folder: Path, policy: str = POLICY, **given: object) -> Service:
    """Open the service in a folder."""
    return Service(settings_at(folder, policy, **given))
