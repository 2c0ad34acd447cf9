"""`check`, `init` and `ledger`: what the data owner sees, and what is never overwritten."""

import json
import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace

import pytest

from secant.engines import sources
from secant.errors import BudgetError
from secant.policy.file import check_policy, load_policy, read_policy
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, INTEGER, TEXT, decimal

CATALOG = catalog(
    Table("patients", (("patient_id", INTEGER), ("age", INTEGER)), unique=(("patient_id",),)),
    Table(
        "visits",
        (("visit_id", INTEGER), ("patient_id", INTEGER), ("day", DATE), ("cost", decimal(9, 2))),
    ),
    Table("Wards", (("ward", TEXT), ('odd "name"', TEXT))),
)
POLICY = """\
[database]
public = ["WARDS"]
source = "duckdb:clinic.duckdb"
[tables.patients]
key = ["patient_id"]
[tables.visits]
key = ["visit_id"]
references = { patient_id = "patients.patient_id" }
[protections.people]
kind = "unit"
unit = "patients.patient_id"
epsilon = 1
limits = { visits = 9 }
"""


@pytest.fixture
def source(monkeypatch):
    """Put a source with the catalog above in the place of every source."""
    opened = SimpleNamespace(name=None, closed=False)

    def close():
        opened.closed = True

    def open_source(name, **_):
        opened.name = name
        return SimpleNamespace(
            catalog=lambda: CATALOG, close=close, extremes=lambda table, column: (1, 7)
        )

    module = ModuleType("secant.engines.sources")
    module.open_source, module.has_password = open_source, lambda _: False
    module.with_paths = sources.with_paths
    module.source_files = sources.source_files
    monkeypatch.setitem(sys.modules, "secant.engines.sources", module)
    return opened


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_tells_what_is_missing_and_what_is_public(source, folder, run):
    (folder / "policy.toml").write_text(POLICY)
    status, out, _ = run("check")
    assert status == 0
    assert (source.name, source.closed) == ("duckdb:clinic.duckdb", True)
    assert "warning line 4: tables.patients.columns: no range for age" in out
    assert "table   patients  rows protected by people\n" in out
    assert "table   visits    rows protected by people\n" in out
    assert "table   wards     PUBLIC: everybody may see every row\n" in out
    assert "0 errors, 2 warnings, 0 notes" in out
    assert "Protections in force: people" in out


def test_check_fails_on_errors(source, folder, run):
    (folder / "p.toml").write_text(POLICY.replace("visit_id", "vist_id"))
    status, out, _ = run("check", "p.toml")
    assert status == 2
    assert "error   line 7: tables.visits.key: there is no column vist_id" in out
    assert "fits the database" not in out
    status, out, _ = run("check", "-p", "p.toml", "--json")
    assert status == 2
    report = json.loads(out)
    assert (report["ok"], report["checked_against_database"]) == (False, True)
    assert report["problems"][0] == {
        "severity": "error",
        "line": 7,
        "place": "tables.visits.key",
        "message": "there is no column vist_id; did you mean visit_id?",
    }


def test_check_of_a_file_with_mistakes_names_their_lines(folder, run):
    (folder / "policy.toml").write_text("[protections.p]\nkind = 'rows'\nepsilon = 0\n")
    status, _, err = run("check")
    assert status == 2
    assert "line 3: protections.p.epsilon" in err
    (folder / "policy.toml").unlink()
    status, _, err = run("check")
    assert status == 2
    assert "POL-001  there is no policy file policy.toml" in err


def test_check_without_a_database_checks_the_file_alone(folder, run):
    (folder / "policy.toml").write_text("[protections.p]\nkind = 'rows'\nepsilon = 1\n")
    status, out, _ = run("check")
    assert status == 0
    assert "names no database, so nothing else was checked" in out
    assert json.loads(run("check", "--json")[1])["checked_against_database"] is False


def test_init_writes_a_policy_that_loads_and_fits(source, folder, run):
    status, out, err = run("init", "duckdb:c.duckdb")
    assert (status, err) == (0, "")
    assert "Wrote policy.toml for 3 tables" in out
    policy = load_policy("policy.toml")
    assert policy.source == "duckdb:c.duckdb"
    assert [p.kind for p in policy.protections] == ["rows"]
    assert not [p for p in check_policy(policy, CATALOG) if p.severity == "error"]


def test_the_guesses_of_init_are_right_when_they_are_uncommented(source, folder, run):
    run("init", "duckdb:c.duckdb")
    text = (folder / "policy.toml").read_text()
    assert '# references = { patient_id = "patients.patient_id" }' in text
    guessed = text.replace('# key = ["visit_id"]', 'key = ["visit_id"]')
    guessed = guessed.replace("# references", "references").replace("# cost", "cost")
    before, after = guessed.split("# [protections.people]")
    after, told = after.split("# No reference")
    assert '"wards"' in told
    guessed = before + "[protections.people]" + after.replace("\n# ", "\n")
    guessed = guessed.replace("public = []", 'public = ["wards"]')
    guessed = guessed.replace('[protections.rows]\nkind = "rows"\nepsilon = 1.0', "")
    guessed = guessed.replace("                        # all that may ever be spent", "")
    policy = read_policy(guessed)
    assert policy.protections[0].unit == ("patients", "patient_id")
    assert policy.protections[0].limits == {"visits": 10}
    assert not [p for p in check_policy(policy, CATALOG) if p.severity == "error"]


def test_init_writes_a_default_distance_that_works_when_it_is_uncommented(source, folder, run):
    run("init", "duckdb:c.duckdb")
    text = (folder / "policy.toml").read_text()
    before, after = text.split("# [protections.values]")
    values = "[protections.values]" + after.replace("\n# ", "\n")
    before = before.replace('[protections.rows]\nkind = "rows"\nepsilon = 1.0', "").replace(
        "public = []", 'public = ["wards"]'
    )
    policy = read_policy(before + values)
    (protection,) = policy.protections
    assert protection.kind == "cells"
    assert protection.distance == {"patients": "age", "visits": "linf(day, cost)"}
    assert not [p for p in check_policy(policy, CATALOG) if p.severity == "error"]


def test_init_never_overwrites_unless_forced(source, folder, run):
    (folder / "policy.toml").write_text("mine")
    status, _, err = run("init", "duckdb:c.duckdb")
    assert status == 2
    assert "policy.toml exists; it is not overwritten" in err
    assert (folder / "policy.toml").read_text() == "mine"
    assert run("init", "duckdb:c.duckdb", "--force")[0] == 0
    assert (folder / "policy.toml").read_text() != "mine"


def test_init_writes_where_it_is_told(source, folder, run):
    status, out, _ = run("init", "csv:x", "-p", "other.toml", "--json")
    assert status == 0
    assert json.loads(out) == {
        "policy": "other.toml",
        "tables": ["patients", "visits", "wards"],
        "looked": False,
    }
    status, _, err = run("init", "csv:x", "-p", "missing/dir.toml")
    assert status == 2
    assert "cannot write missing/dir.toml" in err


class Books:
    """A ledger with one release."""

    def __init__(self):
        charge = SimpleNamespace(protection="patients", epsilon=5 * 10**8, delta=10**10)
        self.release = SimpleNamespace(
            release_id="r-1",
            time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            analyst="ann",
            status="done",
            spent=True,
            charges=(charge,),
            note={"columns": 1},
        )

    def history(self):
        return [self.release]

    def export(self, form="jsonl"):
        return iter([f"{form} line 1", "line 2\n"])

    def verify(self):
        return SimpleNamespace(sequence=3, digest="abc")

    def unnamed(self):
        return {}


def test_ledger_shows_budgets_and_history(connection, run):
    connection.ledger = Books()
    status, out, _ = run("ledger")
    assert status == 0
    assert out == (
        "Budget    [#####...............] patients: ε 1 of 4 spent, 3 left; δ 1e-8 of 1e-6 spent\n"
    )
    _, out, _ = run("ledger", "--history", "--verify")
    assert "2026-01-02 03:04:05" in out
    assert "patients ε 0.5 δ 1e-08" in out
    assert "The chain of 3 records is intact; it ends in abc" in out


def test_ledger_as_json(connection, run):
    connection.ledger = Books()
    report = json.loads(run("ledger", "--history", "--verify", "--json")[1])
    assert report["budget"][0]["remaining"]["epsilon"] == 3
    assert report["verified"] == {"records": 3, "digest": "abc"}
    assert report["history"][0]["charges"] == [
        {"protection": "patients", "epsilon": 0.5, "delta": 1e-8}
    ]


def test_ledger_exports_and_never_overwrites(connection, run, folder):
    connection.ledger = Books()
    assert run("ledger", "--export", "copy.jsonl")[0] == 0
    assert (folder / "copy.jsonl").read_text() == "jsonl line 1\nline 2\n"
    assert run("ledger", "--export", "copy.csv")[0] == 0
    assert (folder / "copy.csv").read_text() == "csv line 1\nline 2\n"
    assert run("ledger", "--export", "-") == (0, "jsonl line 1\nline 2\n", "")
    status, _, err = run("ledger", "--export", "copy.csv")
    assert status == 2
    assert "exists; it is not overwritten" in err
    status, _, err = run("ledger", "--export", "no/where.csv")
    assert status == 2
    assert "cannot write" in err


def test_a_ledger_that_does_not_add_up_is_told(connection, run, monkeypatch):
    connection.ledger = Books()

    def broken(self):
        raise BudgetError("BUD-003", "record 2 does not follow from record 1")

    monkeypatch.setattr(Books, "verify", broken)
    status, _, err = run("ledger", "--verify")
    assert status == 4
    assert err.startswith("BUD-003")


def test_an_empty_history_says_so(connection, run, monkeypatch):
    connection.ledger = Books()
    monkeypatch.setattr(Books, "history", lambda self: [])
    assert "No release yet." in run("ledger", "--history")[1]
