"""`secant check --look`: exact figures for the owner, alike on both engines, and out of reach for anybody else."""

import datetime
import json
import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from bench.postgres_data import copy_tables

import secant
from secant.cli import main
from secant.cli.commands.look import WARNING
from secant.release import owner_report as looking
from secant.release.owner_report import round_up, rounded_outward

POLICY = """
[database]
source = "{source}"
[tables.patients]
key = "id"
[tables.patients.columns]
age = {{ range = [0, 100] }}
ward = {{ values = ["Bay", "Hill"] }}
[tables.visits]
references = {{ patient = "patients.id" }}
[tables.visits.columns]
cost = {{ range = [0, 1000] }}
day = {{ range = [2024-01-01, 2024-06-30] }}
[protections.people]
kind = "unit"
unit = "patients.id"
epsilon = 10
delta = 1e-6
limits = {{ visits = 2 }}
"""
DATA = (
    "CREATE TABLE patients (id INTEGER, age INTEGER, ward VARCHAR)",
    "CREATE TABLE visits (patient INTEGER, cost DOUBLE, day DATE)",
    "INSERT INTO patients VALUES (1, 30, 'Bay'), (2, 104, 'Oak'), (3, NULL, 'Hill'), (4, -2, NULL)",
    "INSERT INTO visits SELECT 1, 10 * i, DATE '2024-03-01' + CAST(i AS INTEGER) FROM range(17) r(i)",
    "INSERT INTO visits VALUES (2, 1234.5, DATE '2024-08-09'), (3, NULL, NULL), (NULL, -0.03, NULL)",
)


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def policy(request, tmp_path):
    """The same data on both engines, and a policy for it."""
    place = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        for statement in DATA:
            connection.execute(statement)
        source = "duckdb:clinic.duckdb"
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            source = server.address(server.create_database())
            copy_tables(connection, ("patients", "visits"), source)
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(source=source))
    return path


def looked(policy, capsys):
    assert main(["check", "--look", "--json", "--policy", str(policy)]) == 0
    said = capsys.readouterr()
    assert WARNING in said.err
    found = json.loads(said.out)["look"]
    assert found["owner_only"] == WARNING
    return found


def test_figures_are_exact(policy, capsys):
    found = looked(policy, capsys)
    own, visits = found["limits"]
    assert (own["limit"], own["units"], own["units_over"]) == (1, 4, 0)
    assert visits == visits | {
        "units": 3, "rows": 19, "units_over": 1, "rows_lost": 15, "rows_without_unit": 1, "most": 17,
        "proposed": 20,
    }  # fmt: skip
    columns = {c["column"]: c for c in found["columns"]}
    assert [columns["age"][k] for k in ("rows", "nulls", "below", "above")] == [4, 1, 1, 1]
    assert [columns["ward"][k] for k in ("nulls", "unlisted")] == [1, 1]
    assert [columns["cost"][k] for k in ("rows", "nulls", "below", "above")] == [20, 1, 1, 1]
    assert [columns["day"][k] for k in ("nulls", "below", "above")] == [2, 0, 1]


def test_proposals_can_be_pasted_and_cut_nothing(policy, capsys):
    found = looked(policy, capsys)
    lines = [line for part in (*found["limits"], *found["columns"]) for line in part["toml"]]
    pasted = tomllib.loads("\n".join(lines))
    assert pasted["protections"]["people"]["limits"] == {"visits": 20}
    assert pasted["tables"]["patients"]["columns"]["age"]["range"] == [-2, 110]
    assert pasted["tables"]["visits"]["columns"]["cost"]["range"] == [-0.03, 1300]
    day = pasted["tables"]["visits"]["columns"]["day"]["range"]
    assert day == [datetime.date(2024, 1, 1), datetime.date(2024, 8, 31)]
    better = policy.read_text()
    better = better.replace("visits = 2", "visits = 20").replace("[0, 100]", "[-2, 110]")
    better = better.replace("[0, 1000]", "[-0.03, 1300]").replace("2024-06-30", "2024-08-31")
    policy.write_text(better)
    again = looked(policy, capsys)
    assert [x["units_over"] for x in again["limits"]] == [0, 0]
    assert [(x["below"], x["above"], x["toml"]) for x in again["columns"]] == [(0, 0, [])] * 4


def test_without_the_word_nothing_is_read(policy, capsys, monkeypatch):
    monkeypatch.setattr(looking, "look", lambda *_: pytest.fail("the data were read"))
    assert main(["check", "--json", "--policy", str(policy)]) == 0
    assert "look" not in json.loads(capsys.readouterr().out)


def test_the_words_say_whose_they_are(policy, capsys):
    assert main(["check", "--look", "--policy", str(policy)]) == 0
    said = capsys.readouterr()
    assert WARNING in said.out
    assert "the limit 2 cuts 1 unit and 15 rows" in said.out
    assert "public from then on" in said.out


def test_no_connection_leads_there():
    """Analysts hold connections: one command asks the module, and nothing else does."""
    source = Path(secant.__file__).parent
    asking = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(
            r"secant\.release\.owner_report\b|release import (\w+, )*owner_report\b",
            path.read_text(),
        )
    ]
    assert asking == ["cli/commands/look.py"]
    assert not hasattr(secant, "look")


@pytest.mark.parametrize(("value", "expected"), [(0, 1), (1, 1), (3, 5), (17, 20), (51, 100)])
def test_limits_are_rounded_up(value, expected):
    assert round_up(value) == expected


@pytest.mark.parametrize("seen", [(-1234.5, 17.2), (0.00123, 9e12), (5, 5), (0, 0)])
def test_proposed_ranges_hold_everything(seen):
    low, high = rounded_outward((3, 4), *seen)
    assert low <= min(3, seen[0])
    assert high >= max(4, seen[1])
    assert rounded_outward((3, 4), float("nan"), 5.0) is None
