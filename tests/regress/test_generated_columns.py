"""Ours: a generated column of a protected column was public under `cells`.

`copy DOUBLE GENERATED ALWAYS AS (speed)`, with a distance on `speed` alone: `SELECT id, copy` gave all speeds as they
are, for nothing. What an engine computes from columns that move is computed anew in every question, and moves with
them; what is not understood is not offered. PostgreSQL: `test_generated_columns_on_postgres.py`.
"""

import duckdb
import pytest

import secant
from secant.errors import PolicyError, Refused, SqlError

TABLE = """
CREATE TABLE ships (
    id INTEGER, kind VARCHAR, speed DOUBLE,
    copy DOUBLE GENERATED ALWAYS AS (speed) VIRTUAL,
    further DOUBLE GENERATED ALWAYS AS (copy + 1),
    fast BOOLEAN GENERATED ALWAYS AS (speed > 20),
    digest VARCHAR GENERATED ALWAYS AS (md5(speed::VARCHAR)),
    twice INTEGER GENERATED ALWAYS AS (id * 2),
    parsed INTEGER GENERATED ALWAYS AS (kind::INTEGER),
    drawn DOUBLE GENERATED ALWAYS AS (random())
)
"""
CELLS = 'kind = "cells"\nepsilon = 1000\ndistance = { ships = "speed" }'
SPEEDS = [float(7 * i % 40) for i in range(12)]
MOVED = [s + 0.5 for s in SPEEDS]
FREE = (
    "SELECT id FROM ships",
    "SELECT id, twice FROM ships WHERE twice > 4",
    "SELECT twice, count(*) FROM ships GROUP BY twice",
    "SELECT a.id FROM ships AS a JOIN ships AS b ON a.twice = b.id",
)
GUARDED = (
    "SELECT id, copy FROM ships",
    "SELECT further FROM ships",
    "SELECT id FROM ships WHERE fast",
    "SELECT id FROM ships WHERE copy > 3",
    "SELECT digest FROM ships",
    "SELECT id FROM ships ORDER BY further",
    "SELECT copy, count(*) FROM ships GROUP BY copy",
    "SELECT id FROM ships WHERE id IN (SELECT id FROM ships WHERE fast)",
    "SELECT id, row_number() OVER (ORDER BY copy) FROM ships",
    "SELECT a.id FROM ships AS a JOIN ships AS b ON a.copy = b.copy",
    "SELECT max(copy) FROM (SELECT copy FROM ships LIMIT 1)",
)


def made(folder, speeds=SPEEDS, *, table=TABLE):
    path = folder / "port.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(table)
        rows = [(i, str(i), speed) for i, speed in enumerate(speeds)]
        connection.executemany("INSERT INTO ships (id, kind, speed) VALUES (?, ?, ?)", rows)
    return path


def opened(folder, protection=CELLS, *, facts="", speeds=SPEEDS, table=TABLE):
    path = made(folder, speeds, table=table)
    file = folder / "policy.toml"
    file.write_text(
        f'[database]\nsource = "duckdb:{path}"\n{facts}\n[tables.ships.columns]\n'
        f"speed = {{ range = [0, 50] }}\n[protections.it]\n{protection}\n"
    )
    return secant.connect(policy=file, ledger=":memory:")


@pytest.mark.parametrize("question", GUARDED)
def test_no_question_gives_a_computed_copy_for_nothing(tmp_path, question):
    with opened(tmp_path) as database:
        try:
            answer = database.sql(question, epsilon=1)
        except Refused:
            return
        assert answer.guarantee[0]["epsilon"] == 1


@pytest.mark.parametrize("question", FREE)
def test_what_follows_from_public_columns_stays_public(tmp_path, question):
    """Brute force: what costs nothing is the same on two databases that differ in protected values alone."""
    answers = []
    for speeds in (SPEEDS, MOVED):
        with opened(tmp_path, speeds=speeds) as database:
            answers.append(database.sql(question, epsilon=1))
    assert answers[0].guarantee[0]["epsilon"] == 0
    assert answers[0].rows == answers[1].rows


@pytest.mark.parametrize(
    "measure", ["sum(copy)", "sum(further)", "sum(copy + speed)", "sum(2 * further)"]
)
def test_a_computed_copy_moves_as_far_as_the_bound_says(tmp_path, measure):
    exact, bounds = [], []
    for speeds in (SPEEDS, MOVED):
        with opened(tmp_path, speeds=speeds) as database:
            found = database.inspect(f"SELECT {measure} AS x FROM ships", epsilon=1)[0]
            exact.append(float(found["exact"]))
            bounds.append(float(found["sensitivity"]))
    distance = sum(abs(a - b) for a, b in zip(SPEEDS, MOVED, strict=True))
    assert exact[0] != exact[1]
    assert abs(exact[0] - exact[1]) <= distance * max(bounds) * (1 + 1e-9)


def test_planted_a_column_that_is_read_as_it_is_stored_moves_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("secant.policy.following._must_follow", lambda *_: False)
    shown = []
    for speeds in (SPEEDS, MOVED):
        with opened(tmp_path, speeds=speeds) as database:
            answer = database.sql("SELECT id, copy FROM ships", epsilon=1)
            shown.append((answer.guarantee[0]["epsilon"], answer.rows))
    assert shown[0][0] == 0
    assert shown[0][1] != shown[1][1]


@pytest.mark.parametrize("kind", [CELLS, 'kind = "rows"\nepsilon = 10'])
@pytest.mark.parametrize("column", ["drawn", "unknown"])
def test_what_is_not_understood_is_not_offered(tmp_path, kind, column):
    table = TABLE.replace(
        "drawn DOUBLE", "unknown AS (md5_number_lower(speed::VARCHAR)), drawn DOUBLE"
    )
    told = rf"derived = \{{ {column} = "
    with opened(tmp_path, kind, table=table) as database, pytest.raises(SqlError, match=told):
        database.sql(f"SELECT {column} FROM ships", epsilon=1)


def test_an_owner_may_say_how_a_column_is_computed(tmp_path):
    facts = '[tables.ships]\nderived = { drawn = "speed * 2" }'
    with opened(tmp_path, facts=facts) as database:
        assert database.sql("SELECT sum(drawn) FROM ships", epsilon=1).guarantee[0]["epsilon"] == 1


def test_a_column_that_fails_when_it_is_read_is_not_read(tmp_path):
    """DuckDB checks a generated column when a row comes, not when it changes."""
    with opened(tmp_path, 'kind = "rows"\nepsilon = 10') as database:
        path = tmp_path / "port.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE ships SET kind = 'tug' WHERE id = 3")
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT parsed FROM ships").fetchall()
    with secant.connect(policy=tmp_path / "policy.toml", ledger=":memory:") as database:
        question = "SELECT count(*) FROM ships WHERE parsed > 2"
        assert database.sql(question, epsilon=1).guarantee[0]["epsilon"] == 1


@pytest.mark.parametrize(
    ("protection", "facts"),
    [
        (CELLS.replace('"speed"', '"copy"'), ""),
        (CELLS.replace('"speed"', '"l1(speed, twice)"'), ""),
        (CELLS, '[tables.ships]\nkey = "copy"'),
        ('kind = "unit"\nunit = "ships.twice"\nepsilon = 1', ""),
    ],
)
def test_a_computed_column_has_no_distance_and_is_no_key(tmp_path, protection, facts):
    with pytest.raises(PolicyError, match=r"is derived|is not computed"):
        opened(tmp_path, protection, facts=facts)


def test_rows_are_not_public_by_a_computed_column(tmp_path):
    protection = CELLS + '\npublic_rows = { ships = "fast" }'
    with opened(tmp_path, protection) as database, pytest.raises(Refused) as refused:
        database.sql("SELECT sum(speed) FROM ships", epsilon=1)
    assert "rests on protected values" in str(refused.value)


def test_under_rows_and_cells_a_copy_moves_too(tmp_path):
    protection = CELLS.replace('"cells"', '"rows+cells"') + "\nadd_remove = { ships = 30.0 }"
    with opened(tmp_path, protection) as database:
        told = database.explain("SELECT sum(copy) FROM ships").text
        alone = database.explain("SELECT sum(speed) FROM ships").text
    assert told.replace("copy'", "speed").count("speed") >= alone.count("speed")
    assert "does not move" not in told


def test_check_says_what_follows_from_what(tmp_path, capsys):
    from secant.cli.commands.check import check

    opened(tmp_path).close()
    assert check(str(tmp_path / "policy.toml")) == 0
    told = capsys.readouterr().out
    assert "columns.further: the source computes it from speed" in told
    assert "values of speed, copy, further, fast, digest protected by it" in told
    assert "ships.drawn: it is computed when it is read" in told
    public = next(line for line in told.splitlines() if "PUBLIC" in line).partition("PUBLIC")[2]
    assert "copy" not in public
    assert "twice" in public


def test_init_declares_nothing_of_computed_columns(tmp_path, capsys):
    from secant.cli.commands.init import init

    path, target = made(tmp_path), tmp_path / "started.toml"
    assert init(f"duckdb:{path}", policy=str(target), look=True) == 0
    text = target.read_text()
    assert "# further is computed from speed: declare these" in text
    assert "# drawn is computed from others, nobody can tell how" in text
    assert '# ships = "speed"' in text  # no distance of what follows
