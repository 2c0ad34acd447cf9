"""A small clinic with a day for every visit, and the policy of a stream over it."""

from pathlib import Path

import duckdb

import secant

HEAD = """
[database]
source = "duckdb:clinic.duckdb"
[tables.visits]
key = ["id"]
[tables.visits.columns]
cost = { range = [0, 10] }
ward = { values = ["a", "b"], null = false }
"""
ROWS = '[protections.visits]\nkind = "rows"\nepsilon = 1000000.0\ndelta = 1e-3\n'
UNIT = """
[protections.patients]
kind = "unit"
unit = "visits.patient"
epsilon = 1000000.0
[protections.patients.limits]
visits = 2
"""
BY_DAY = "SELECT day, count(*) AS n FROM visits GROUP BY day"


def stream(query: str = BY_DAY, **keys: object) -> str:
    """Write the section of a stream; the noise is next to nothing unless another epsilon is given."""
    known = {"step": "1 day", "start": "2025-01-01", "epsilon": 100000.0, **keys}
    lines = [f"{k} = {written(v)}" for k, v in known.items() if v is not None]
    return "\n".join(["[streams.s]", f'query = "{query}"', *lines, ""])


def written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {written(v)}" for k, v in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value)


class Clinic:
    """A folder with a database that can be written to between two questions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = iter(range(1, 10**6))
        self.execute(
            "CREATE TABLE visits (id INTEGER, patient INTEGER, day DATE, ward VARCHAR, cost INTEGER,"
            " came DATE, seen TIMESTAMP, week INTEGER)"
        )

    def execute(self, *statements: str) -> None:
        with duckdb.connect(str(self.folder / "clinic.duckdb")) as engine:
            for statement in statements:
                engine.execute(statement)

    def add(
        self, day: str | None, patient: int = 1, ward: str = "a", cost: int = 1, came=None
    ) -> None:
        at = "NULL" if day is None else f"'{day} 10:00:00'"
        when = "NULL" if day is None else f"'{day}'"
        arrival = when if came is None else f"'{came}'"
        self.execute(
            f"INSERT INTO visits VALUES ({next(self.numbers)}, {patient}, {when}, '{ward}', {cost},"
            f" {arrival}, {at}, {patient})"
        )

    def declare(self, *sections: str) -> None:
        (self.folder / "policy.toml").write_text(HEAD + "\n".join(sections))

    def connect(self):
        return secant.connect(policy=self.folder / "policy.toml")

    def stream(self, **options):
        with self.connect() as database:
            return database.stream("s", **options)

    def numbers_of(self, column: str = "n", **options) -> list[object]:
        found = self.stream(**options)
        place = found.columns.index(column)
        return [row[place] for row in found.rows]
