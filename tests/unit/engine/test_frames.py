"""Frames in: every kind of table gives the same true answer, stays as it was, and is protected by one name."""

import logging

import pytest

import secant
from secant.errors import BackendError, PolicyError, Refused, UsageError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

ROWS = {"person": [1, 1, 2, 3], "ward": ["Eye", "Ear", "Eye", None], "cost": [1.5, 2.5, 4.0, None]}
POLICY = {
    "tables": {"visits": {"columns": {"cost": {"range": [0, 10]}}}},
    "protections": {"people": {"kind": "unit", "unit": "visits.person", "epsilon": 10}},
}
KINDS = ("pandas", "polars", "lazy", "arrow", "relation", "csv", "parquet", "folder")


def table(kind, tmp_path):
    import duckdb

    frame = pandas.DataFrame(ROWS)
    if kind == "pandas":
        return frame
    if kind == "polars":
        return polars.DataFrame(ROWS)
    if kind == "lazy":
        return polars.DataFrame(ROWS).lazy()
    if kind == "arrow":
        return pyarrow.table(ROWS)
    if kind == "relation":
        engine = duckdb.connect()
        engine.register("frame", frame)
        return engine.sql("SELECT * FROM frame")
    if kind == "csv":
        frame.to_csv(tmp_path / "v.csv", index=False)
        return tmp_path / "v.csv"
    place = tmp_path / ("folder/part.parquet" if kind == "folder" else "v.parquet")
    place.parent.mkdir(exist_ok=True)
    frame.to_parquet(place)
    return str(place.parent if kind == "folder" else place)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_scanned(kind, tmp_path):
    with secant.connect({"visits": table(kind, tmp_path)}, policy=POLICY) as db:
        (found,) = db.inspect("SELECT sum(cost) AS cost FROM visits WHERE ward = 'Eye'")
        assert found["exact"] == 5.5
        names = [name for name, _ in db.catalog.tables["visits"].columns]
        assert names == ["person", "ward", "cost"]
    people = {**POLICY["protections"]["people"], "limits": {"visits": 5}}
    limited = {**POLICY, "protections": {"people": people}}
    with secant.connect({"visits": table(kind, tmp_path)}, policy=limited) as db:
        answer = db.sql("SELECT count(*) AS n FROM visits", epsilon=1)
        # 60 times the scale: a false alarm is rarer than 1e-9.
        assert abs(answer.rows[0][0] - 4) < 60 * 5


def test_a_frame_stays_as_it_was():
    frame = pandas.DataFrame(ROWS)
    with secant.connect({"visits": frame}, policy=POLICY) as db:
        frame.loc[:, "cost"] = 9.0
        (found,) = db.inspect("SELECT sum(cost) AS cost FROM visits")
        assert found["exact"] == 8.0


def test_a_column_of_objects_has_the_type_of_all_of_them():
    mixed = pandas.DataFrame({"person": range(5000), "x": [1] * 4999 + ["late"]}, dtype=object)
    with secant.connect({"visits": mixed}, policy=POLICY | {"tables": {}}) as db:
        kinds = dict(db.catalog.tables["visits"].columns)
        assert kinds["x"].kind == "TEXT"
        (found,) = db.inspect("SELECT count(*) AS n FROM visits WHERE x = 'late'")
        assert found["exact"] == 1


def test_what_cannot_be_scanned_is_told(tmp_path):
    for tables, told in (
        ({"visits": [1, 2]}, "is a list, which cannot be scanned"),
        ({}, "the source '' is not understood"),
    ):
        with pytest.raises((UsageError, BackendError), match=told):
            secant.connect(tables, policy=POLICY)
    with pytest.raises(BackendError, match=r"is no \.csv or \.parquet file"):
        secant.connect({"visits": tmp_path / "missing.csv"}, policy=POLICY)


def test_one_table_has_one_name(tmp_path):
    frame = pandas.DataFrame(ROWS)
    path = table("csv", tmp_path)
    for same in ({"visits": frame, "copy": frame}, {"visits": path, "copy": str(path)}):
        with pytest.raises(UsageError, match="visits and copy are the same table"):
            secant.connect(same, policy=POLICY)


def test_programs_cannot_reach_variables_or_files_through_a_frame(tmp_path):
    hidden = pandas.DataFrame(ROWS)  # noqa: F841 - a question must not find it
    with secant.connect({"visits": pandas.DataFrame(ROWS)}, policy=POLICY) as db:
        for name in ("hidden", "secant_frame_0", "'/etc/passwd'"):
            with pytest.raises(secant.errors.SecantError):
                db.sql(f"SELECT count(*) FROM {name}", epsilon=1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"protections": {"p": {"kind": "rowz", "epsilon": 1}}}, "protections.p.kind"),
        ({"protections": {"p": {"kind": "rows", "epsilon": -1}}}, "protections.p.epsilon"),
        ({"protections": {"p": {"kind": "rows", "epsilom": 1}}}, "did you mean epsilon?"),
        ({"protections": {}}, "a policy without a protection protects nothing"),
    ],
)
def test_a_policy_of_python_values_has_the_mistakes_of_a_file(wrong, told):
    with pytest.raises(PolicyError, match=told) as from_python:
        secant.Policy(wrong)
    lines = ["[protections]"]
    for name, facts in wrong["protections"].items():
        lines.append(f"[protections.{name}]")
        lines += [f"{k} = {v!r}" for k, v in facts.items()]
    with pytest.raises(PolicyError) as from_file:
        secant.read_policy("\n".join(lines))
    without_lines = [d.partition(": ")[2] for d in from_file.value.details]
    assert sorted(from_python.value.details) == sorted(without_lines)


def test_numbers_of_a_policy_are_meant_as_they_print():
    policy = secant.Policy(protections={"p": {"kind": "rows", "epsilon": 0.1, "delta": 1e-6}})
    text = secant.read_policy('[protections.p]\nkind = "rows"\nepsilon = 0.1\ndelta = 1e-6')
    assert policy.protections == text.protections


def test_the_budget_of_frames_is_kept_where_it_is_asked_for(tmp_path, caplog):
    frame, place = pandas.DataFrame(ROWS), tmp_path / "visits.ledger"
    for _ in range(2):
        with secant.connect({"visits": frame}, policy=POLICY, ledger=place) as db:
            db.sql("SELECT count(*) FROM visits", epsilon=1)
            spent = db.budget["people"].spent_epsilon
    assert spent == 2
    caplog.clear()
    with caplog.at_level(logging.WARNING), secant.connect({"visits": frame}, policy=POLICY) as db:
        db.sql("SELECT count(*) FROM visits", epsilon=1)
        assert db.budget["people"].spent_epsilon == 1
    (said,) = (r.getMessage() for r in caplog.records)
    assert said.startswith("the budget is counted for this process only")
    assert "ledger='FILE'" in said


def test_three_lines_from_a_frame_to_an_answer():
    frame = pandas.DataFrame({"person": [i % 500 for i in range(2000)], "ward": ["Eye"] * 2000})
    db = secant.protect(frame, unit="person", epsilon=3)
    answer = db.sql("SELECT count(DISTINCT person) AS n FROM data", epsilon=1)
    assert abs(answer.rows[0][0] - 500) < 60
    assert [g["protection"] for g in answer.guarantee] == ["person"]
    assert db.budget["person"].remaining_epsilon == 2
    with pytest.raises(PolicyError, match="epsilon"):
        secant.protect(frame, unit="person", epsilon="much")
    with pytest.raises(PolicyError, match="persom"):
        secant.protect(frame, unit="persom", epsilon=3)


def test_how_many_rows_of_one_count_can_be_said():
    frame = pandas.DataFrame({"person": [i % 500 for i in range(2000)], "ward": ["Eye"] * 2000})
    db = secant.protect(frame, unit="person", epsilon=3, rows=4)
    answer = db.sql("SELECT count(*) AS n FROM data", epsilon=1)
    assert abs(answer.rows[0][0] - 2000) < 120
    assert not any(w.code == "WRN-009" for w in answer.warnings)
    with pytest.raises(UsageError, match="what one unit adds"):
        secant.protect(frame, epsilon=3, rows=4)


def test_a_question_that_is_refused_in_any_case_pays_for_no_fact():
    frame = pandas.DataFrame({"who": [1, 2, 3], "ward": ["a", "b", "a"], "cost": [1.0, 2.0, 3.0]})
    unit = {"kind": "unit", "unit": "visits.who", "epsilon": 9}
    policy = {"tables": {"visits": {}}, "protections": {"people": unit}}
    with secant.connect({"visits": frame}, policy=policy) as db:
        with pytest.raises(Refused) as refused:  # keys without a delta
            db.sql("SELECT ward, sum(cost) FROM visits GROUP BY ward", epsilon=1)
        assert refused.value.code == "REF-103"
        assert db.budget["people"].spent_epsilon == 0
        assert db.sql("SELECT sum(cost) FROM visits", epsilon=1).rows
        assert db.budget["people"].spent_epsilon == 1
