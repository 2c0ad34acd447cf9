"""A policy is held against names and types of the database; what nobody protects is said aloud."""

import datetime
from decimal import Decimal

import pytest

from secant.errors import PolicyError
from secant.policy.coverage import coverage, open_tables, protected_tables
from secant.policy.file import check_policy, fit_policy, read_policy
from secant.schema.catalog import Table, catalog
from secant.schema.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, decimal

CATALOG = catalog(
    Table("Patients", (("Id", INTEGER), ("born", DATE), ("city", TEXT))),
    Table(
        "visits",
        (
            ("patient", INTEGER),
            ("number", INTEGER),
            ("day", DATE),
            ("started", TIMESTAMP),
            ("cost", decimal(10, 2)),
            ("urgent", BOOLEAN),
        ),
    ),
    Table("drugs", (("visit_patient", INTEGER), ("visit", INTEGER), ("amount", INTEGER))),
    Table("cities", (("name", TEXT), ("people", INTEGER)), unique=(("name",),)),
    Table("complaints", (("patient", INTEGER), ("words", TEXT))),
)
GOOD = """
database.public = ["cities", "complaints", "Drugs"]
[tables.patients]
key = ["id"]
references = { city = "cities.name" }
[tables.visits]
key = ["patient", "number"]
references = { patient = "patients.id" }
[tables.visits.columns]
cost = { range = [0, 100.0] }
[protections.people]
kind = "unit"
unit = "patients.id"
epsilon = 1
[protections.people.limits]
visits = 20
"""


def said(text: str, severity: str) -> list[str]:
    return [str(p) for p in check_policy(read_policy(text), CATALOG) if p.severity == severity]


def test_a_policy_that_fits_has_no_errors():
    assert said(GOOD, "error") == []


def test_public_tables_that_look_like_people_are_warned_about():
    (warning,) = [w for w in said(GOOD, "warning") if "complaints" in w]
    assert warning.startswith("line 2: database.public: complaints is PUBLIC")
    assert "its column patient looks like a reference that is not declared" in warning


def test_which_tables_are_reached():
    policy = read_policy(GOOD)
    assert protected_tables(policy, policy.protections[0], CATALOG) == {"patients", "visits"}
    found = coverage(policy, CATALOG)
    assert [name for name, told in found.items() if told.public] == [
        "drugs",
        "cities",
        "complaints",
    ]
    assert found["visits"].rows == ("people",)
    assert open_tables(policy, CATALOG) == ()


def test_rows_protect_every_table_unless_some_are_named():
    everything = read_policy('[protections.r]\nkind = "rows"\nepsilon = 1')
    assert open_tables(everything, CATALOG) == ()
    one = read_policy('[protections.r]\nkind = "rows"\nepsilon = 1\ntables = ["visits"]')
    assert open_tables(one, CATALOG) == ("patients", "drugs", "cities", "complaints")


def test_cells_protect_the_tables_that_have_a_distance():
    text = '[protections.c]\nkind = "cells"\nepsilon = 1\ndistance = { visits = "cost" }'
    policy = read_policy(text)
    assert protected_tables(policy, policy.protections[0], CATALOG) == {"visits"}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[tables.visits]", "[tables.visitors]", "tables.visitors: there is no table visitors"),
        ('key = ["id"]', 'key = ["idd"]', "line 4: tables.patients.key: there is no column idd"),
        (
            "patient = ",
            "patent = ",
            "line 8: tables.visits.references.patent: there is no column patent",
        ),
        ("patients.id", "patients.idd", "there is no column patients.idd"),
        ("patients.id", "people.id", "there is no table people"),
        ("cities.name", "cities.people", "cities.people is not declared as the key of cities"),
        ("cities.name", "visits.cost", "visits.cost is not declared as the key of visits"),
        ('city = "cities.name"', 'born = "cities.name"', "is DATE, but cities.name is TEXT"),
        ("cost =", "costs =", "line 10: tables.visits.columns.costs: there is no column"),
        ("cost =", "day =", "the ends do not have the column's type, DATE"),
        ("cost =", "urgent =", "a range needs a number or a date, and the column is BOOLEAN"),
        ("cost = { range = [0, 100.0] }", 'cost = { values = ["a"] }', "DECIMAL(10,2)"),
        (
            "cost = { range = [0, 100.0] }",
            "number = { range = [0, 1.5] }",
            "the ends do not have the column's type, INTEGER",
        ),
        (
            "cost = { range = [0, 100.0] }",
            "number = { step = 0.5 }",
            "must be whole, because the column is INTEGER",
        ),
        (
            "cost = { range = [0, 100.0] }",
            "urgent = { step = 1 }",
            "a step needs a number or a date, and the column is BOOLEAN",
        ),
        (
            "cost = { range = [0, 100.0] }",
            'day = { values = ["soon"] }',
            "the values do not have the column's type, DATE",
        ),
        ('unit = "patients.id"', 'unit = "people.id"', "unit: there is no table people"),
        (
            'unit = "patients.id"',
            'unit = "patients.name"',
            "there is no column name; there are: born",
        ),
        ("visits = 20", "vists = 20", "there is no table vists"),
        (
            "visits = 20",
            "cities = 20",
            "no reference leads from cities to patients, so a limit says nothing",
        ),
    ],
)
def test_what_does_not_fit_is_an_error(old, new, sentence):
    assert old in GOOD
    text = GOOD.replace(old, new)
    assert sentence in "\n".join(said(text, "error"))
    with pytest.raises(PolicyError, match="does not fit the database") as caught:
        fit_policy(read_policy(text), CATALOG)
    assert sentence in "\n".join(caught.value.details)


def test_facts_worth_declaring():
    text = GOOD.replace("cost = { range = [0, 100.0] }", "").replace("visits = 20", "groups = 2")
    warnings = "\n".join(said(text, "warning"))
    found = (
        "no range for cost: SUM and AVG need none; for MIN, MAX and MEDIAN over them one is found"
    )
    assert found in warnings
    assert "no limit for visits" in warnings
    keyless = GOOD.replace('key = ["patient", "number"]', "")
    assert "visits is protected but has no key" in "\n".join(said(keyless, "warning"))


def test_a_unit_inside_one_table_counts_one_row_unless_a_limit_is_given():
    text = '[protections.p]\nkind = "unit"\nunit = "visits.patient"\nepsilon = 1\n'
    assert "no limit for visits: how much one unit adds" in "\n".join(said(text, "warning"))
    assert "no limit for visits" not in "\n".join(said(text + "limits.visits = 3", "warning"))


def test_two_ways_to_the_unit_are_pointed_out():
    text = GOOD.replace(
        'references = { patient = "patients.id" }',
        'references = { patient = "patients.id", number = "patients.id" }',
    )
    assert "visits leads to patients along more than one" in "\n".join(said(text, "warning"))


def test_errors_come_first_and_in_the_order_of_the_file():
    text = GOOD.replace("cost =", "costs =").replace('key = ["id"]', 'key = ["idd"]')
    problems = check_policy(read_policy(text), CATALOG)
    ranks = [("error", "warning", "note").index(p.severity) for p in problems]
    assert ranks == sorted(ranks)
    lines = [p.line for p in problems if p.severity == "error"]
    assert lines == sorted(lines)


def test_values_take_the_type_of_their_column():
    text = GOOD.replace(
        "cost = { range = [0, 100.0] }",
        'day = { values = ["2020-01-01", "2020-01-02"] }\n'
        "started = { range = [2020-01-01, 2020-12-31] }\n"
        "number = { range = [0, 9.0], step = 1.0 }",
    )
    columns = fit_policy(read_policy(text), CATALOG).facts("visits").columns
    assert columns["day"].values == (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2))
    assert columns["started"].range[0] == datetime.datetime.fromisoformat("2020-01-01")
    assert type(columns["started"].range[0]) is datetime.datetime
    assert (columns["number"].range, columns["number"].step) == ((0, 9), 1)
    assert not isinstance(columns["number"].range[1], Decimal)
