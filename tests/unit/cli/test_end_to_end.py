"""The commands against the real engine, on the demo's clinic."""

import json
import shutil

import pytest

from secant.cli.demo_data import make_clinic

COUNT = "SELECT count(*) AS n FROM patients"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make the clinic once; tests work on copies, because a ledger remembers."""
    folder = tmp_path_factory.mktemp("made")
    make_clinic(folder)
    return folder


@pytest.fixture
def clinic(made, tmp_path, monkeypatch):
    folder = tmp_path / "clinic"
    shutil.copytree(made, folder)
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace(str(made), str(folder)))
    monkeypatch.chdir(folder)
    return folder


def spent(run) -> float:
    return json.loads(run("ledger", "--json")[1])["budget"][0]["spent"]["epsilon"]


def test_a_query_is_answered_and_charged(clinic, run):
    status, out, err = run("query", COUNT, "--epsilon", "0.5", "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert answer["columns"] == ["n"]
    # 40 times the standard deviation: a false alarm is rarer than 1e-9.
    assert abs(answer["rows"][0][0] - 2000) < 120
    assert answer["guarantee"][0]["protection"] == "patients"
    assert answer["guarantee"][0]["epsilon"] == 0.5
    assert answer["error"]["level"] == 0.95
    assert answer["error"]["values"][0][0] > 0
    assert answer["mechanisms"]
    assert answer["release_id"]
    assert spent(run) == 0.5


def test_the_answer_as_a_person_reads_it(clinic, run):
    status, out, _ = run("query", COUNT, "--epsilon", "0.5")
    assert status == 0
    assert "± (95 %)" in out
    assert "Guarantee: " in out
    assert "ε 0.5 of 4 spent, 3.5 left" in out


def test_a_public_table_is_answered_exactly_for_nothing(clinic, run):
    status, out, _ = run("query", "SELECT ward, beds FROM wards ORDER BY ward", "--epsilon", "1")
    assert status == 0
    assert "answered exactly" in out
    assert "Cardiology" in out
    assert spent(run) == 0


def test_explain_spends_nothing(clinic, run):
    status, out, _ = run("explain", COUNT, "--epsilon", "0.5", "--sql")
    assert status == 0
    assert "stability." in out
    assert "-- statement 1" in out
    assert json.loads(run("explain", COUNT, "--json")[1])
    assert spent(run) == 0


def test_inspect_tells_the_truth_to_the_owner_and_charges_nothing(clinic, run):
    status, out, err = run("inspect", COUNT, "--json")
    assert status == 0
    assert "OWNER ONLY" in err
    column = json.loads(out.splitlines()[0])
    assert column["column"] == "n"
    assert column["exact"] in (2000, [2000])
    promised = {"sensitivity", "noise_scale", "error95", "mechanism", "analysis", "seconds"}
    assert promised <= set(column)
    assert set(column["seconds"]) == {"compile", "plain", "release"}
    assert run("inspect", COUNT)[0] == 0
    assert spent(run) == 0


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ((COUNT, "--epsilon", "0"), 2, "USE-002"),
        ((COUNT, "--epsilon", "-1"), 2, "USE-002"),
        ((COUNT, "--epsilon", "nan"), 2, "USE-002"),
        ((COUNT, "--epsilon", "inf"), 2, "USE-002"),
        ((COUNT, "--epsilon", "much"), 2, "USE-002"),
        ((COUNT, "--epsilon", "1", "--delta", "1"), 2, "USE-003"),
        ((COUNT, "--epsilon", "1", "--level", "1"), 2, "USE-004"),
        ((COUNT, "--epsilon", "1", "--protection", "nobody"), 2, "USE-005"),
        ((COUNT, "--epsilon", "99"), 4, "BUD-001"),
        (("SELECT count(*) FROM nowhere", "--epsilon", "1"), 2, "SQL-002"),
        (("SELECT nothing FROM patients", "--epsilon", "1"), 2, "SQL-002"),
        (("SELECT patient_id FROM patients", "--epsilon", "1"), 3, "REF-102"),
        (("DROP TABLE patients", "--epsilon", "1"), 2, "SQL-005"),
        (("SELECT 1; SELECT 2", "--epsilon", "1"), 2, "SQL-005"),
        (("SELECT random()", "--epsilon", "1"), 2, "SQL-006"),
        (("SELEC", "--epsilon", "1"), 2, None),
        (("", "--epsilon", "1"), 2, "SQL-001"),
        (("SELECT 1" + " " * 300_000, "--epsilon", "1"), 2, "SQL-007"),
    ],
)
def test_bad_input_is_told_and_costs_nothing(clinic, run, words, status, code):
    got, out, err = run("query", *words, "--json")
    assert (got, out) == (status, "")
    error = json.loads(err)["error"]
    assert code in (None, error["code"])
    assert "Traceback" not in err
    assert spent(run) == 0


def test_the_last_of_the_budget_can_be_spent_and_no_more(clinic, run):
    assert run("query", COUNT, "--epsilon", "4", "--delta", "0")[0] == 0
    status, _, err = run("query", COUNT, "--epsilon", "0.000001")
    assert status == 4
    assert err.startswith("BUD-001")


def test_a_policy_that_does_not_fit_is_refused(clinic, run):
    policy = clinic / "policy.toml"
    policy.write_text(policy.read_text().replace("cost = {", "coost = {"))
    status, _, err = run("query", COUNT, "--epsilon", "1")
    assert status == 2
    assert "coost: there is no column coost" in err


def test_a_source_that_cannot_be_opened(clinic, run):
    (clinic / "clinic.duckdb").unlink()
    status, _, err = run("query", COUNT, "--epsilon", "1")
    assert status == 5
    assert err.startswith("BAK-001")
    (clinic / "clinic.duckdb").write_bytes(b"this is no database" * 1000)
    status, _, err = run("query", COUNT, "--epsilon", "1")
    assert status == 5
    assert err.startswith("BAK-001")


def test_no_policy_at_all(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    status, _, err = run("query", COUNT, "--epsilon", "1")
    assert status == 2
    assert err.startswith("POL-001")


def test_check_and_init_on_a_real_database(clinic, run):
    status, out, _ = run("check")
    assert status == 0
    assert "wards     PUBLIC: everybody may see every row" in out
    source = f"duckdb:{clinic / 'clinic.duckdb'}"
    assert run("init", source, "-p", "started.toml")[0] == 0
    assert run("check", "started.toml")[0] == 0
    text = (clinic / "started.toml").read_text()
    assert 'key = ["patient_id"]' in text
    assert '# references = { patient_id = "patients.patient_id"' in text


def test_init_says_what_to_do_where_there_is_no_table(clinic, run):
    import duckdb

    with duckdb.connect(str(clinic / "elsewhere.duckdb")) as db:
        db.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id INTEGER PRIMARY KEY)")
    source = f"duckdb:{clinic / 'elsewhere.duckdb'}"
    status, _, err = run("init", source, "-p", "nothing.toml")
    assert status != 0
    assert "there is no table" in err
    assert "?schema=NAME" in err
    assert not (clinic / "nothing.toml").exists()
    status, _, err = run("init", source + "?schema=nowhere", "-p", "nothing.toml")
    assert status != 0
    assert "has no schema 'nowhere'" in err
    assert "shop" in err
    assert run("init", source + "?schema=shop", "-p", "there.toml")[0] == 0


def test_init_looks_at_values_only_if_asked(clinic, run):
    source = f"duckdb:{clinic / 'clinic.duckdb'}"
    status, _, err = run("init", source, "-p", "looked.toml", "--look")
    assert status == 0
    assert "values of real people" in err
    text = (clinic / "looked.toml").read_text()
    assert "as seen: round it!" in text
    assert run("check", "looked.toml")[0] == 0


def test_the_ledger_lists_verifies_and_exports(clinic, run):
    run("query", COUNT, "--epsilon", "0.5", "--analyst", "ann")
    status, out, _ = run("ledger", "--history", "--verify")
    assert status == 0
    assert "ann" in out
    assert "is intact" in out
    assert run("ledger", "--export", "copy.jsonl")[0] == 0
    assert (clinic / "copy.jsonl").read_text().count("\n") > 1
    assert run("ledger", "--export", "copy.csv")[0] == 0


def test_the_ledger_is_read_without_the_data(clinic, run):
    run("query", COUNT, "--epsilon", "0.5")
    spent = json.loads(run("ledger", "--json")[1])["budget"]
    (clinic / "clinic.duckdb").rename(clinic / "away.duckdb")
    status, out, _ = run("ledger", "--json")
    assert status == 0
    assert json.loads(out)["budget"] == spent


def test_the_demo_answers_refuses_and_shows_the_budget(tmp_path, run):
    status, out, err = run("demo", "--keep", str(tmp_path / "kept"))
    assert (status, err) == (0, "")
    assert out.count("Guarantee: ") == 3
    assert "true (sample data)" in out
    assert "REF-102" in out
    assert "ε 3 of 4 spent, 1 left" in out
    assert (tmp_path / "kept" / "policy.toml").exists()
    status, _, err = run("demo", "--keep", str(tmp_path / "kept"))
    assert status == 2
    assert "is not empty" in err


def test_the_demo_as_json(run):
    status, out, _ = run("demo", "--json")
    assert status == 0
    report = json.loads(out)
    assert report["sample_data"] is True
    assert len(report["questions"]) == 3
    assert report["refused"]["error"]["code"] == "REF-102"
    for question in report["questions"]:
        assert len(question["true_rows"]) == len(question["answer"]["rows"])
