"""Ours: a table that no protection covered was public, and an owner who followed `init` published the people.

`init` proposed the most referenced table as the person (a stay, not the patient), `check` said that it fits, and
`SELECT patient_id, birth, postcode FROM patients` printed rows. Now a table is public only because the policy names
it; everything else that nobody protects is an error of `check`, `query` and `connect`, and no plan reads it.
"""

import json
import re

import duckdb
import psycopg
import pytest

import secant
from secant.cli import main
from secant.errors import BackendError, PolicyError, Refused, SecantError, SqlError
from secant.policy import check as policy_check
from secant.policy.file import load_policy, read_policy
from secant.sensitivity import split as splitting

SCHEMA = """
CREATE TABLE wards (ward_id INTEGER PRIMARY KEY, name VARCHAR(20));
CREATE TABLE doctors (doctor_id INTEGER PRIMARY KEY, name VARCHAR(20), ward_id INTEGER);
CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, birth DATE, postcode VARCHAR(20));
CREATE TABLE stays (
    stay_id INTEGER PRIMARY KEY, patient_id INTEGER, ward_id INTEGER, doctor_id INTEGER, cost INTEGER
);
CREATE TABLE labs (lab_id INTEGER PRIMARY KEY, stay_id INTEGER, result INTEGER);
CREATE TABLE prescriptions (prescription_id INTEGER PRIMARY KEY, stay_id INTEGER, drug_id INTEGER);
CREATE TABLE diagnoses (stay_id INTEGER, code VARCHAR(20));
CREATE TABLE drugs (drug_id INTEGER PRIMARY KEY, name VARCHAR(20));
INSERT INTO patients VALUES (1, DATE '1950-01-01', 'SECRET_TOWN'), (2, DATE '1960-01-01', 'B');
INSERT INTO stays VALUES (1, 1, 1, 1, 10), (2, 2, 1, 1, 20);
INSERT INTO wards VALUES (1, 'north');
INSERT INTO drugs VALUES (1, 'aspirin');
INSERT INTO diagnoses VALUES (1, 'SECRET_CODE');
"""
RAW = "SELECT patient_id, birth, postcode FROM patients"
TABLES = ("diagnoses", "doctors", "drugs", "labs", "patients", "prescriptions", "stays", "wards")


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def hospital(request, tmp_path, monkeypatch):
    """Give the source of a hospital's database; the working directory is empty."""
    monkeypatch.chdir(tmp_path)
    if request.param == "duckdb":
        with duckdb.connect("hospital.duckdb") as connection:
            connection.execute(SCHEMA)
        return "duckdb:hospital.duckdb"
    server = request.getfixturevalue("postgres_server")
    address = server.address(server.create_database())
    with psycopg.connect(address) as connection:
        connection.execute(SCHEMA)
    return address


@pytest.fixture
def run(capsys):
    """Run a command; give its status, standard output and standard error."""

    def command(*words):
        status = main(list(words))
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def as_proposed(text):
    """Do what the comments of `init` say: believe its guesses, and protect the people instead of the rows."""
    head, rest = text.split("# What must stay hidden.")
    people = rest.split("# [protections.people]")[1].split("\n# No reference")[0]
    head = head.replace("# references", "references").replace("# key", "key")
    return head + "[protections.people]" + people.replace("\n# ", "\n") + "\n"


def shown(policy, text, source=None):
    """Give the rows that a question prints, or None if it is refused."""
    try:
        with secant.connect(source, policy=policy, ledger="unused.ledger") as db:
            return db.sql(text, epsilon=1).rows
    except SecantError:
        return None


# ── the owner's way ──────────────────────────────────────────────────────────────────────────────


def test_what_init_writes_shows_nobody(hospital, run):
    assert run("init", hospital)[0] == 0
    assert run("check")[0] == 0
    status, out, err = run("query", RAW, "--epsilon", "0.1")
    assert (status, out) == (3, "")
    assert err.startswith("REF-102")


def test_an_owner_who_follows_init_protects_the_people(hospital, run, tmp_path):
    run("init", hospital)
    written = (tmp_path / "policy.toml").read_text()
    assert '# unit = "patients.patient_id"' in written
    assert '# By their names, these could be without people: "drugs", "wards"\n' in written
    assert "public = []\n" in written
    (tmp_path / "policy.toml").write_text(as_proposed(written))
    status, out, _ = run("check")
    assert status == 2
    for name in ("doctors", "drugs", "wards"):
        assert f"tables.{name}: no protection covers it, and it is not named public" in out
    assert 'write in [database]: public = ["drugs", "wards"]' in out
    for command in ("query", "explain", "inspect"):
        status, out, err = run(command, "SELECT count(*) FROM stays", "--epsilon", "0.1")
        assert (status, out) == (2, "")
        assert "POL-005" in err
    decided = (tmp_path / "policy.toml").read_text()
    decided = decided.replace("public = []", 'public = ["drugs", "wards", "doctors"]')
    (tmp_path / "policy.toml").write_text(decided)
    status, out, _ = run("check")
    assert status == 0
    assert "doctors is PUBLIC, everybody may see every row of it; doctors looks like a name" in out
    for name in ("patients", "stays", "labs", "prescriptions", "diagnoses"):
        assert re.search(rf"^table +{name} +rows protected by people$", out, re.MULTILINE)
    for name in ("drugs", "wards", "doctors"):
        assert re.search(
            rf"^table +{name} +PUBLIC: everybody may see every row$", out, re.MULTILINE
        )
    assert run("query", RAW, "--epsilon", "0.1")[0] == 3
    assert "north" in run("query", "SELECT name FROM wards", "--epsilon", "0.1")[1]
    assert run("query", "SELECT count(*) FROM stays", "--epsilon", "0.1")[0] == 0


def test_deleting_a_reference_closes_a_table(hospital, run, tmp_path):
    run("init", hospital)
    text = as_proposed((tmp_path / "policy.toml").read_text())
    text = text.replace("public = []", 'public = ["drugs", "wards", "doctors"]')
    without = text.replace(
        'references = { stay_id = "stays.stay_id" }\n[tables.diagnoses', "[tables.diagnoses"
    )
    without = re.sub(r"^diagnoses = 10\n", "", without, flags=re.MULTILINE)
    assert without != text
    (tmp_path / "policy.toml").write_text(without)
    status, out, _ = run("check", "--json")
    assert status == 2
    report = json.loads(out)
    (problem,) = [p for p in report["problems"] if p["severity"] == "error"]
    assert problem["place"] == "tables.diagnoses"
    assert "its column stay_id looks like a reference that is not declared" in problem["message"]
    assert "public" not in report["hint"].replace("named public", "")  # not proposed to be opened
    status, out, err = run("query", "SELECT code FROM diagnoses", "--epsilon", "0.1")
    assert (status, out) == (2, "")
    assert err.startswith("POL-005")


def test_the_old_fault_planted_is_seen(hospital, tmp_path, monkeypatch):
    """With both walls taken away, the stay as the person prints patients; either wall stops it."""
    policy = read_policy(
        f'[database]\nsource = "{hospital}"\n[tables.stays]\nkey = "stay_id"\n'
        '[protections.people]\nkind = "unit"\nunit = "stays.stay_id"\nepsilon = 9\n'
    )
    assert shown(policy, RAW) is None
    with monkeypatch.context() as planted:
        planted.setattr(policy_check, "open_tables", lambda *_: ())
        assert shown(policy, RAW) is None
        planted.setattr(splitting, "refuse_uncovered", lambda *_: None)
        assert "SECRET_TOWN" in str(shown(policy, RAW))


# ── the key `public` ─────────────────────────────────────────────────────────────────────────────

PEOPLE = """
[tables.patients]
key = "patient_id"
[tables.stays]
references = { patient_id = "patients.patient_id" }
[protections.people]
kind = "unit"
unit = "patients.patient_id"
epsilon = 9
limits = { stays = 5 }
"""
OTHERS = '"wards", "doctors", "labs", "prescriptions", "diagnoses", "drugs"'


@pytest.mark.parametrize(
    ("public", "sentence"),
    [
        (f"[{OTHERS}, 'patients']", "patients is named public, but people protects it"),
        (f"[{OTHERS}, 'Stays']", "stays is named public, but people protects it"),
        (f"[{OTHERS}, 'nowhere']", "database.public: there is no table nowhere"),
        ("['*']", "name each table that is public"),
        ("'*'", "must be a list of tables"),
        ("['ward*']", "name each table that is public"),
        ("'wards'", "must be a list of tables"),
        ("true", "must be a list of tables"),
        ("['wards', 'WARDS']", "a name is given twice"),
        ("[1]", "must be a list of names"),
    ],
)
def test_what_cannot_be_public(hospital, tmp_path, public, sentence):
    (tmp_path / "p.toml").write_text(f"database.public = {public}\n{PEOPLE}")
    with pytest.raises(PolicyError) as caught:
        secant.connect(hospital, policy="p.toml")
    assert sentence in caught.value.render()


def test_rows_of_every_table_leave_nothing_to_name(hospital, tmp_path):
    (tmp_path / "p.toml").write_text(
        'database.public = ["wards"]\n[protections.r]\nkind = "rows"\nepsilon = 1\n'
    )
    with pytest.raises(PolicyError) as caught:
        secant.connect(hospital, policy="p.toml")
    assert (
        "give it tables = [...] without wards, or take wards out of public" in caught.value.render()
    )


def test_names_differ_in_case_and_mean_the_same(hospital, tmp_path):
    (tmp_path / "p.toml").write_text(
        f"database.public = [{OTHERS.upper()}]\n{PEOPLE.replace('tables.stays', 'tables.STAYS')}"
    )
    assert shown("p.toml", "SELECT name FROM WARDS", hospital) == [("north",)]
    assert shown("p.toml", RAW, hospital) is None
    assert shown("p.toml", "SELECT cost FROM Stays", hospital) is None


def test_a_policy_object_that_spells_a_table_otherwise_opens_nothing(hospital):
    """A record made by hand may keep its case: then it covers nothing, and nothing is read."""
    from dataclasses import replace

    good = read_policy(f"database.public = [{OTHERS}]\n{PEOPLE}")
    (people,) = good.protections
    shouted = replace(good, protections=(replace(people, unit=("PATIENTS", "patient_id")),))
    assert shown(good, "SELECT name FROM wards", hospital) == [("north",)]
    assert shown(shouted, RAW, hospital) is None


# ── tables that come, go and change their names ──────────────────────────────────────────────────


def execute(source, statement):
    if source.startswith("duckdb:"):
        with duckdb.connect(source.removeprefix("duckdb:")) as connection:
            connection.execute(statement)
    else:
        with psycopg.connect(source) as connection:
            connection.execute(statement)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE leavers AS SELECT * FROM patients",
        "ALTER TABLE wards RENAME TO wings",
        "ALTER TABLE labs RENAME TO tests",
    ],
)
def test_a_new_name_in_the_database_stops_everything(hospital, change):
    policy = read_policy(f"database.public = [{OTHERS}]\n{PEOPLE}")
    assert shown(policy, "SELECT name FROM drugs", hospital) == [("aspirin",)]
    execute(hospital, change)
    with pytest.raises(PolicyError) as caught:
        secant.connect(hospital, policy=policy, ledger="unused.ledger")
    assert caught.value.code == "POL-005"


@pytest.mark.postgres
def test_a_table_that_comes_after_the_connection_is_not_there(postgres_server, tmp_path):
    address = postgres_server.address(postgres_server.create_database())
    execute(address, SCHEMA)
    policy = read_policy(f"database.public = [{OTHERS}]\n{PEOPLE}")
    with secant.connect(address, policy=policy, ledger=tmp_path / "ledger") as db:
        assert db.sql("SELECT name FROM drugs", epsilon=1).rows == [("aspirin",)]
        execute(address, "CREATE TABLE leavers AS SELECT * FROM patients")
        with pytest.raises(SqlError):
            db.sql("SELECT postcode FROM leavers", epsilon=1)


@pytest.mark.postgres
@pytest.mark.parametrize(
    "twin",
    [
        'CREATE TABLE "Wards" AS SELECT * FROM patients',
        'ALTER TABLE stays ADD COLUMN "Cost" integer',
    ],
)
def test_names_that_a_policy_cannot_tell_apart_are_refused(postgres_server, tmp_path, twin):
    """`public = ["wards"]` must not open "Wards", nor a norm that names cost leave "Cost" to chance."""
    address = postgres_server.address(postgres_server.create_database())
    execute(address, SCHEMA)
    execute(address, twin)
    with pytest.raises(BackendError, match="differ in case only"):
        secant.connect(
            address, policy=read_policy(f"database.public = [{OTHERS}]\n{PEOPLE}"), ledger="unused"
        )


# ── alternatives ─────────────────────────────────────────────────────────────────────────────────

STAYS = '[protections.stays]\nkind = "rows"\ntables = ["stays"]\nepsilon = 9\n'
COSTS = '[protections.{name}]\nkind = "cells"\nepsilon = 9\ndistance = {{ {distance} }}\n'


def chosen(hospital, protections, names, text, protection):
    listed = ", ".join(f'"{name}"' for name in names)
    policy = read_policy(
        f"database.public = [{OTHERS}]\nalternatives = [{listed}]\n{PEOPLE}{protections}"
    )
    with secant.connect(hospital, policy=policy, ledger="unused.ledger") as db:
        return db.sql(text, epsilon=1, protection=protection).rows


def test_choosing_a_protection_opens_no_table_of_another(hospital, monkeypatch):
    names = ("people", "stays")
    with pytest.raises(Refused) as caught:
        chosen(hospital, STAYS, names, RAW, "stays")
    assert caught.value.code == "REF-105"
    assert "patients is protected by people, which was not chosen" in caught.value.render()
    joined = "SELECT count(*) FROM stays JOIN patients ON stays.patient_id = patients.patient_id"
    with pytest.raises(Refused):
        chosen(hospital, STAYS, names, joined, "stays")
    assert chosen(hospital, STAYS, names, "SELECT count(*) FROM stays", "stays")
    assert chosen(hospital, STAYS, names, "SELECT count(*) FROM patients", "people")
    assert chosen(hospital, STAYS, names, "SELECT name FROM wards", "stays") == [("north",)]
    monkeypatch.setattr(splitting, "refuse_uncovered", lambda *_: None)  # the old fault
    assert "SECRET_TOWN" in str(chosen(hospital, STAYS, names, RAW, "stays"))


def test_values_of_one_alternative_are_not_public_under_another(hospital, monkeypatch):
    head = f"database.public = [{OTHERS}, 'patients']\nalternatives = ['costs', 'wards']\n"
    facts = "[tables.stays.columns]\ncost = { range = [0, 100] }\nward_id = { range = [0, 9] }\n"
    costs = COSTS.format(name="costs", distance='stays = "cost"')
    wards = COSTS.format(name="wards", distance='stays = "ward_id"')
    policy = read_policy(head + facts + costs + wards)
    with secant.connect(hospital, policy=policy, ledger="unused.ledger") as db:
        for text in (
            "SELECT cost FROM stays",
            "SELECT stay_id FROM stays ORDER BY cost",
            "SELECT * FROM stays",
        ):
            with pytest.raises(Refused) as caught:
                db.sql(text, epsilon=1, protection="wards")
            assert caught.value.code in ("REF-105", "REF-102")
        assert db.sql("SELECT sum(ward_id) FROM stays", epsilon=1, protection="wards").rows
        assert db.sql("SELECT patient_id FROM stays", epsilon=1, protection="wards").rows
        monkeypatch.setattr(splitting, "refuse_uncovered", lambda *_: None)  # the old fault
        assert db.sql("SELECT cost FROM stays ORDER BY 1", epsilon=1, protection="wards").rows == [
            (10,),
            (20,),
        ]


def test_check_says_what_a_choice_closes_and_what_it_opens(hospital, run, tmp_path):
    costs = COSTS.format(name="costs", distance='stays = "cost"')
    facts = "[tables.stays.columns]\ncost = { range = [0, 100] }\n"
    (tmp_path / "policy.toml").write_text(
        f"database.public = [{OTHERS}]\nalternatives = ['people', 'costs']\n{PEOPLE}{facts}{costs}"
    )
    status, out, _ = run("check", "--source", hospital)
    assert status == 0
    assert re.search(
        r"^table +patients +rows protected by people; not answered with --protection costs$",
        out,
        re.M,
    )
    sentence = "who chooses to protect only values of stays sees its rows and stay_id, patient_id, ward_id, doctor_id"
    assert sentence in out
    asked = ("--epsilon", "0.5", "--protection", "costs", "--source", hospital)
    assert run("query", "SELECT postcode FROM patients", *asked)[0] == 3
    assert run("query", "SELECT cost FROM stays", *asked)[0] == 3
    assert run("query", "SELECT doctor_id FROM stays", *asked)[0] == 0  # as the warning says


# ── values ───────────────────────────────────────────────────────────────────────────────────────


def test_columns_that_no_norm_names_are_said_to_be_public(hospital, run, tmp_path):
    costs = COSTS.format(name="costs", distance='stays = "cost"')
    facts = "[tables.stays.columns]\ncost = { range = [0, 100] }\n"
    (tmp_path / "policy.toml").write_text(
        f"database.public = [{OTHERS}, 'patients']\n{facts}{costs}"
    )
    status, out, _ = run("check", "--source", hospital)
    assert status == 0
    told = re.search(
        r"^table +stays +values of cost protected by costs; PUBLIC: which rows there are, and (.*)$",
        out,
        re.M,
    )
    assert told is not None
    public = told[1].split(", ")
    assert public == ["stay_id", "patient_id", "ward_id", "doctor_id"]
    for column in public:
        assert (
            run("query", f"SELECT {column} FROM stays", "--epsilon", "1", "--source", hospital)[0]
            == 0
        )
    assert run("query", "SELECT cost FROM stays", "--epsilon", "1", "--source", hospital)[0] == 3


# ── the root of the references ───────────────────────────────────────────────────────────────────

SHAPES = {
    "the visit is referred to most": (
        ("CREATE TABLE patient (id INTEGER PRIMARY KEY, born DATE); "
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, patient_id INTEGER); "
        "CREATE TABLE test (visit_id INTEGER); CREATE TABLE bill (visit_id INTEGER); CREATE TABLE b (visit_id INTEGER)"
        ),
        "patient.id",
    ),
    "people live in towns that everything refers to": (
        ("CREATE TABLE towns (town_id INTEGER PRIMARY KEY); "
        "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, town_id INTEGER); "
        "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER, town_id INTEGER); "
        "CREATE TABLE shops (shop_id INTEGER PRIMARY KEY, town_id INTEGER)"),
        "customers.customer_id",
    ),
    "no name speaks of people": (
        ("CREATE TABLE a (a_id INTEGER PRIMARY KEY); CREATE TABLE b (b_id INTEGER PRIMARY KEY, a_id INTEGER); "
        "CREATE TABLE c (b_id INTEGER); CREATE TABLE d (b_id INTEGER)"),
        "a.a_id",
    ),
    "people have details under the same key": (
        ("CREATE TABLE details (person_id INTEGER PRIMARY KEY, note VARCHAR); "
        "CREATE TABLE persons (person_id INTEGER PRIMARY KEY); CREATE TABLE trips (trip_id INTEGER, person_id INTEGER)"
        ),
        "persons.person_id",
    ),
    "nobody has a table of their own": (
        "CREATE TABLE trips (trip_id INTEGER PRIMARY KEY, passenger_nr INTEGER); CREATE TABLE stops (trip_id INTEGER)",
        "trips.passenger_nr",
    ),
    "staff serve the people": (
        ("CREATE TABLE nurses (nurse_id INTEGER PRIMARY KEY); CREATE TABLE residents (resident_id INTEGER PRIMARY KEY);"
        "CREATE TABLE rounds (nurse_id INTEGER, resident_id INTEGER); CREATE TABLE shifts (nurse_id INTEGER)"),
        "residents.resident_id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_init_proposes_the_root(name, tmp_path, monkeypatch, run):
    schema, unit = SHAPES[name]
    monkeypatch.chdir(tmp_path)
    execute("duckdb:shape.duckdb", schema)
    assert run("init", "duckdb:shape.duckdb")[0] == 0
    text = (tmp_path / "policy.toml").read_text()
    assert f'# unit = "{unit}"' in text
    assert load_policy("policy.toml").public == ()
    (tmp_path / "policy.toml").write_text(text)
    assert run("check")[0] == 0
