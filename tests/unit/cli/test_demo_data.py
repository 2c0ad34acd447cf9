"""The sample clinic is the same for everybody, and its policy fits it."""

import duckdb
import pytest

from secant.cli.commands.demo import QUESTIONS, TOO_CURIOUS
from secant.cli.demo_data import DISTRICTS, MOST_VISITS, PATIENTS, WARDS, make_clinic
from secant.policy.coverage import coverage
from secant.policy.file import check_policy, load_policy
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, INTEGER, TEXT, decimal

CLINIC = catalog(
    Table("wards", (("ward", TEXT), ("beds", INTEGER))),
    Table("patients", (("patient_id", INTEGER), ("age", INTEGER), ("district", TEXT))),
    Table(
        "visits",
        (
            ("visit_id", INTEGER),
            ("patient_id", INTEGER),
            ("day", DATE),
            ("ward", TEXT),
            ("cost", decimal(9, 2)),
        ),
    ),
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    return make_clinic(tmp_path_factory.mktemp("clinic"))


def ask(database, sql):
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_the_clinic_is_made_deterministically(clinic, tmp_path):
    again, _ = make_clinic(tmp_path)
    for table in CLINIC.tables:
        everything = f"SELECT * FROM {table} ORDER BY ALL"
        assert ask(clinic[0], everything) == ask(again, everything)


def test_the_declared_facts_hold_on_the_clinic(clinic):
    database, _ = clinic
    assert ask(database, "SELECT count(*) FROM patients") == [(PATIENTS,)]
    most = "SELECT max(n) FROM (SELECT count(*) AS n FROM visits GROUP BY patient_id)"
    assert ask(database, most)[0][0] <= MOST_VISITS
    assert {d for (d,) in ask(database, "SELECT DISTINCT district FROM patients")} == set(DISTRICTS)
    assert {w for (w,) in ask(database, "SELECT DISTINCT ward FROM visits")} == set(WARDS)
    low, high = ask(database, "SELECT min(cost), max(cost) FROM visits")[0]
    assert 0 <= low <= high <= 1500


def test_its_policy_fits_and_leaves_only_the_wards_public(clinic):
    policy = load_policy(clinic[1])
    problems = check_policy(policy, CLINIC)
    assert [p for p in problems if p.severity == "error"] == []
    assert [name for name, found in coverage(policy, CLINIC).items() if found.public] == ["wards"]


def test_the_budget_covers_the_questions(clinic):
    (protection,) = load_policy(clinic[1]).protections
    assert sum(float(epsilon) for _, _, epsilon in QUESTIONS) < protection.epsilon


def test_the_questions_have_true_answers(clinic):
    for _, sql, _ in QUESTIONS:
        assert ask(clinic[0], sql)
    assert ask(clinic[0], TOO_CURIOUS)
