"""Sample data for the demo: a clinic that never existed, with a policy to match.

In: a directory. Out: a DuckDB file and a policy in it. The people are made by a seeded generator,
so that everybody sees the same clinic; noise never comes from it.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from pathlib import Path

PATIENTS = 2_000
MOST_VISITS = 6
DISTRICTS = ("Hill", "Lake", "Market", "Station")
WARDS = ("Cardiology", "Eye", "General", "Surgery")
TYPICAL_COST = {"Cardiology": 420, "Eye": 160, "General": 90, "Surgery": 700}
FIRST_DAY = datetime.date(2025, 1, 1)
DAYS = 365

POLICY = """\
# What this clinic protects: everything that belongs to one patient.
[database]
source = "duckdb:{database}"
public = ["wards"]                   # nothing in it is about patients: everybody may see it

[tables.patients]
key = ["patient_id"]
[tables.patients.columns]
age = {{ range = [0, 110], step = 1 }}
district = {{ values = {districts} }}

[tables.visits]
key = ["visit_id"]
references = {{ patient_id = "patients.patient_id", ward = "wards.ward" }}
[tables.visits.columns]
day = {{ range = ["2025-01-01", "2025-12-31"], step = "1 day" }}
cost = {{ range = [0, 1500] }}
ward = {{ values = {wards} }}

[tables.wards]
key = ["ward"]

[protections.patients]
kind = "unit"
unit = "patients.patient_id"
epsilon = 4.0
delta = 1e-6
[protections.patients.limits]
visits = {most}                          # at most so many visits of one patient count
groups = {groups}                           # and in at most so many groups of an answer
"""


def make_clinic(directory: Path) -> tuple[Path, Path]:
    """Write the database and the policy; give their paths."""
    import duckdb

    database = directory / "clinic.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE wards (ward VARCHAR PRIMARY KEY, beds INTEGER)")
        connection.execute(
            "CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, age INTEGER NOT NULL, "
            "district VARCHAR NOT NULL)"
        )
        connection.execute(
            "CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL, "
            "day DATE NOT NULL, ward VARCHAR NOT NULL, cost DECIMAL(9,2) NOT NULL)"
        )
        for table, columns in _clinic().items():
            unnested = ", ".join("unnest(?)" for _ in columns)
            connection.execute(f"INSERT INTO {table} SELECT {unnested}", columns)
    policy = directory / "policy.toml"
    policy.write_text(
        POLICY.format(
            database=database,
            districts=_toml_list(DISTRICTS),
            wards=_toml_list(WARDS),
            most=MOST_VISITS,
            groups=len(WARDS),
        ),
        encoding="utf-8",
    )
    return database, policy


def _toml_list(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def _clinic() -> dict[str, list[list[object]]]:
    """Give the columns of every table."""
    randomness = random.Random("a clinic that never existed")  # noqa: S311  # sample data, not noise
    patients: list[tuple[object, ...]] = []
    visits: list[tuple[object, ...]] = []
    for patient in range(1, PATIENTS + 1):
        age = min(104, int(randomness.triangular(0, 104, 48)))
        patients.append((patient, age, randomness.choices(DISTRICTS, (5, 2, 4, 3))[0]))
        for _ in range(min(MOST_VISITS, int(randomness.expovariate(1 / (2 + age / 20))))):
            ward = randomness.choices(WARDS, (3 + age / 20, 3, 8, 3))[0]
            cost = round(min(1500.0, randomness.lognormvariate(0, 0.4) * TYPICAL_COST[ward]), 2)
            day = FIRST_DAY + datetime.timedelta(randomness.randrange(DAYS))
            visits.append((len(visits) + 1, patient, day, ward, cost))
    wards = [(ward, 12 + 4 * index) for index, ward in enumerate(WARDS)]
    return {"wards": _columns(wards), "patients": _columns(patients), "visits": _columns(visits)}


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
