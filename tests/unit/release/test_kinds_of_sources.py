"""DuckDB files with views, schemas and attached files; files and patterns; addresses that are kept elsewhere."""

from __future__ import annotations

import duckdb
import pytest

import secant
from secant.cli import main
from secant.engines.sources import has_password, open_source, resolved, with_paths
from secant.errors import BackendError, SqlError
from secant.schema import types as t

MADE = """
CREATE TYPE mood AS ENUM ('good', 'it''s bad');
CREATE SCHEMA hr;
CREATE TABLE patients (id UUID PRIMARY KEY, mood mood, seen TIMESTAMPTZ, came TIME, tags VARCHAR[], doc JSON,
                       photo BLOB UNIQUE, big HUGEINT UNIQUE, exact TIMESTAMP_NS UNIQUE, stay INTERVAL,
                       s STRUCT(a INTEGER), ok BOOLEAN);
COMMENT ON TABLE patients IS 'who was here';
CREATE TABLE visits (visit INTEGER PRIMARY KEY, patient UUID REFERENCES patients (id), cost INTEGER);
CREATE TABLE hr.shifts (who UUID, hours INTEGER);
CREATE VIEW happy AS SELECT *, year(seen) AS y FROM patients WHERE mood = 'good';
CREATE VIEW busy (who, n) AS SELECT patient, count(*) FROM visits GROUP BY patient;
CREATE VIEW hr.long AS SELECT who FROM hr.shifts WHERE hours > 3;
INSERT INTO patients SELECT md5('p' || i)::UUID, CASE WHEN i % 2 = 0 THEN 'good' ELSE 'it''s bad' END,
    TIMESTAMPTZ '2024-01-01 00:00:00+02' + to_hours(i), CASE i WHEN 3 THEN TIME '24:00:00' ELSE TIME '01:00' END,
    CASE i WHEN 1 THEN NULL WHEN 2 THEN [] ELSE ['a', 'b'] END, '{"k": ' || i || ', "t": "' || i % 2 || '"}',
    ('x' || i)::BLOB, i, NULL, INTERVAL 2 DAY, {'a': 1}, i % 3 = 0 FROM range(100) AS t(i);
INSERT INTO visits SELECT i, md5('p' || i // 2)::UUID, 7 FROM range(100) AS t(i);
INSERT INTO hr.shifts SELECT id, 5 FROM patients;
"""


@pytest.fixture
def clinic(tmp_path):
    with duckdb.connect(str(tmp_path / "c.duckdb")) as engine:
        engine.execute(MADE)
    with duckdb.connect(str(tmp_path / "lab.duckdb")) as engine:
        engine.execute("CREATE TABLE results (patient UUID, v INTEGER)")
    return f"duckdb:{tmp_path / 'c.duckdb'}?schema=main,hr&attach={tmp_path / 'lab.duckdb'}"


def test_what_a_file_offers(clinic):
    backend = open_source(clinic)
    known = backend.catalog()
    backend.close()
    assert set(known.tables) == {"patients", "visits", "hr.shifts", "lab.results"}
    assert set(known.stored_views) == {"happy", "busy", "hr.long"}
    patients = known.tables["patients"]
    assert dict(patients.columns) == {
        "id": t.UUID, "mood": t.ENUM, "seen": t.TIMESTAMP, "came": t.TIME, "photo": t.BLOB, "big": t.DOUBLE,
        "exact": t.TIMESTAMP, "ok": t.BOOLEAN,
    }  # fmt: skip
    assert patients.labels == (("mood", ("good", "it's bad")),)
    assert patients.unique == (("id",),), "what becomes another value may meet a second one"
    assert dict(patients.parts) == {"tags": "array of TEXT", "doc": "json", "stay": "interval"}
    assert [name for name, _ in patients.missing] == ["s"]
    assert dict(patients.comments)[""] == "who was here"
    assert known.tables["visits"].references == (("patient", "patients", "id"),)


QUESTIONS = {
    "SELECT count(*) FROM happy": 50,
    "SELECT count(*) FROM busy WHERE n = 2": 50,
    "SELECT count(*) FROM hr.long": 100,
    "SELECT count(*) FROM hr.shifts": 100,
    "SELECT count(*) FROM lab.results": 0,
    "SELECT count(*) FROM patients p, unnest(p.tags) AS t(x) WHERE x = 'a'": 98,
    "SELECT count(*) FROM patients WHERE list_contains(tags, 'b') AND len(tags) = 2": 98,
    "SELECT count(*) FROM patients WHERE came > TIME '23:00'": 1,
    "SELECT count(*) FROM patients WHERE extract(hour FROM came) = 1": 99,
    "SELECT count(*) FROM patients WHERE seen < '2024-01-01 00:00'": 2,
    "SELECT count(*) FROM patients WHERE (doc->>'k')::int < 10 AND doc->>'$.t' = '1'": 5,
    "SELECT sum(extract(epoch FROM stay)) FROM patients WHERE extract(epoch FROM stay) BETWEEN 0 AND 1e6": 17280000,
}


def test_questions_of_all_types(clinic):
    policy = {
        "database": {"source": clinic},
        "tables": {
            "hr.shifts": {"references": {"who": "patients.id"}},
            "visits": {"references": {"patient": "patients.id"}},
            "lab.results": {"references": {"patient": "patients.id"}},
            "patients": {"columns": {"doc->>'t'": {"values": ["0", "1"]}}},
        },
        "protections": {
            "people": {"kind": "unit", "unit": "patients.id", "epsilon": 1, "limits": {"unnest(patients.tags)": 2}}
        },
    }  # fmt: skip
    with secant.connect(policy=policy, ledger=":memory:") as db:
        for question, value in QUESTIONS.items():
            (seen,) = db.inspect(question)
            assert seen["exact"] == value, question
        for column in ("mood", "ok", "doc->>'t'"):
            assert (
                "declared values"
                in str(db.explain(f"SELECT {column}, count(*) FROM patients GROUP BY 1"))
                or column == "ok"
            )
        for text in ("doc->>'a.b'", "doc->>'$.a.b'", "doc->>'*'"):
            with pytest.raises(SqlError, match="JSON"):
                db.sql(f"SELECT count({text}) FROM patients", epsilon=1)
        (seen,) = db.inspect("SELECT count(json_extract_string(doc, '$.a.b')) AS n FROM patients")
        assert seen["exact"] == 0
        with pytest.raises(SqlError, match="STRUCT, has no counterpart"):
            db.sql("SELECT s FROM patients", epsilon=1)


def test_a_schema_or_file_that_is_not_there(clinic):
    for old, new, word in (
        ("main,hr", "main,hrr", "no schema 'hrr'"),
        ("lab.duckdb", "bal.duckdb", "there is no DuckDB file"),
        ("schema=main,hr&", "schema=main,hr,hr&", "have one name"),
    ):
        with pytest.raises(BackendError, match=word):
            open_source(clinic.replace(old, new))


def test_a_file_and_a_pattern_are_one_table(tmp_path):
    for name in ("events-1", "events-2", "other"):
        (tmp_path / f"{name}.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    for path, name, rows in (
        ("other.csv", "other", 2),
        ("events-*.csv", "events", 4),
        ("*.csv", tmp_path.name, 6),
    ):
        backend = open_source(f"csv:{tmp_path / path}")
        assert list(backend.catalog().tables) == [name.lower()]
        with backend.session() as session:
            assert session.rows(f'SELECT count(*) FROM "{name}"') == [(rows,)]
        backend.close()
    with pytest.raises(BackendError, match=r"no directory and no \.csv file"):
        open_source(f"csv:{tmp_path / 'none-*.csv'}")


def test_paths_are_seen_from_elsewhere():
    assert with_paths("env:X", str.upper) == "env:X"
    assert with_paths("postgresql://a/b", str.upper) == "postgresql://a/b"
    assert with_paths("duckdb:a?schema=hr&attach=b,c", str.upper) == "duckdb:A?schema=hr&attach=B,C"
    assert with_paths("csv:a?b", str.upper) == "csv:A?B"


def test_addresses_are_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("CLINIC", "duckdb:x.duckdb")
    assert resolved("env:CLINIC") == "duckdb:x.duckdb"
    with pytest.raises(BackendError, match="the environment has no NOTHING"):
        resolved("env:NOTHING")
    place = tmp_path / "p.source"
    place.write_text("duckdb:y.duckdb\n", encoding="utf-8")
    place.chmod(0o644)
    with pytest.raises(BackendError, match="others may read"):
        resolved("file:p.source", beside=tmp_path)
    place.chmod(0o600)
    assert resolved("file:p.source", beside=tmp_path) == "duckdb:y.duckdb"
    assert has_password("postgresql://a:b@c/d")
    assert has_password("postgresql://a@c/d?password=b")
    assert not has_password("postgresql://a@c/d?schema=x")
    assert has_password("spark:sc://h:443/;use_ssl=true;token=b?schema=x")
    assert not has_password("spark:sc://h:15002?schema=x")


def test_a_password_never_enters_a_policy(tmp_path, monkeypatch, capsys, clinic):
    """The server is not there: what is written hangs on the address alone."""
    from secant.engines import sources

    real = sources.open_source
    monkeypatch.setattr(sources, "open_source", lambda source, **how: real(clinic, **how))
    policy = tmp_path / "policy.toml"
    assert main(["init", "postgresql://ana:s3cret@db/clinic", "-p", str(policy)]) == 0
    assert "s3cret" not in policy.read_text(encoding="utf-8") + capsys.readouterr().out
    assert 'source = "file:policy.source"' in policy.read_text(encoding="utf-8")
    kept = tmp_path / "policy.source"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text(encoding="utf-8").strip() == "postgresql://ana:s3cret@db/clinic"


def test_init_writes_what_the_database_keeps(tmp_path, clinic):
    policy = tmp_path / "policy.toml"
    assert main(["init", clinic, "-p", str(policy)]) == 0
    written = policy.read_text(encoding="utf-8")
    assert 'references = { patient = "patients.id" }' in written
    assert 'mood = { values = ["good", "it\'s bad"] }' in written
    assert "ok = { values = [true, false] }" in written
    assert "# who was here" in written
    assert 'unit = "patients.id"' in written
    assert "# s is not offered: its type, STRUCT" in written
    assert main(["check", str(policy)]) == 2  # hr.shifts and lab.results: nobody has decided yet
