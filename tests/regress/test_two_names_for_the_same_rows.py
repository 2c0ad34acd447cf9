"""Ours: file names were patterns. Beside `people.csv` a file `peopl?.csv`, `*.csv`, `[p]eople.csv`, or a link, was a
public table with people's rows: protection goes by the name of a table, and these rows had two.

Every second name for rows is the same fault: links, names that fold into one, and, in a DuckDB file, macros that take
the name of a function, so that not what was bounded runs.
"""

import os
import socket

import duckdb
import pytest

import secant
from apart import apart
from secant.engines import directory
from secant.engines.dialect import quote
from secant.engines.duckdb import session as engine
from secant.engines.sources import open_source
from secant.errors import BackendError
from secant.schema.catalog import Table, catalog
from secant.schema.types import INTEGER

SECRET = 7001
PATTERNS = ["peopl?", "*", "[p]eople", "peop*", "p[a-z]ople", "**", "{people,x}", "[!x]eople"]


def write(path, kind, value):
    plain = path.with_name("being_written")
    if kind == "parquet":
        duckdb.sql(f"SELECT CAST({value} AS BIGINT) AS v").write_parquet(str(plain))
    else:
        plain.write_text(f"v\n{value}\n")
    plain.rename(path)


def shown(place, kind):
    backend = apart(open_source(f"{kind}:{place}"))
    try:
        return {
            name: sorted(backend.rows(f"SELECT v FROM {quote(table.name)}"))
            for name, table in backend.catalog().tables.items()
        }
    finally:
        backend.close()


@pytest.fixture(params=["csv", "parquet"])
def kind(request):
    return request.param


@pytest.fixture
def place(tmp_path, kind):
    found = tmp_path / "da[t]a*"  # the directory's own name is no pattern either
    found.mkdir()
    write(found / f"people.{kind}", kind, SECRET)
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_a_name_is_no_pattern(place, kind, name):
    write(place / f"{name}.{kind}", kind, 1)
    assert shown(place, kind) == {name: [(1,)], "people": [(SECRET,)]}


def test_files_of_a_folder_are_no_patterns(place, kind):
    (place / "p*").mkdir()
    for number, part in enumerate(["*", "people?", "k=v"]):
        write(place / "p*" / f"{part}.{kind}", kind, number)
    assert shown(place, kind) == {"p*": [(0,), (1,), (2,)], "people": [(SECRET,)]}


def test_planted_names_that_are_not_escaped_show_other_rows(tmp_path, kind, monkeypatch):
    write(tmp_path / f"people.{kind}", kind, SECRET)
    write(tmp_path / f"peopl?.{kind}", kind, 1)
    monkeypatch.setattr(directory, "_PATTERN", frozenset())
    assert shown(tmp_path, kind)["peopl?"] == [(1,), (SECRET,)]


def test_a_folder_above_adds_no_column(tmp_path, kind):
    (tmp_path / "year=2024").mkdir()
    write(tmp_path / "year=2024" / f"people.{kind}", kind, SECRET)
    backend = apart(open_source(f"{kind}:{tmp_path / 'year=2024'}"))
    assert backend.catalog().tables["people"].columns == (("v", INTEGER),)
    backend.close()


# ── links, and names that fold ───────────────────────────────────────────────────────────────────────


def a_link(place, people):
    (place / people.with_stem("all").name).symlink_to(people.name)


def a_hard_link(place, people):
    os.link(people, place / people.with_stem("all").name)


def a_link_in_a_folder(place, people):
    (place / "all").mkdir()
    (place / "all" / people.name).symlink_to(f"../{people.name}")


def a_link_to_the_directory(place, people):
    (place / "all").symlink_to(".")


def a_link_out(place, people):
    outside = place.parent / people.name
    outside.write_bytes(people.read_bytes())
    (place / people.with_stem("all").name).symlink_to(outside)


def a_folder_out(place, people):
    (place.parent / "elsewhere").mkdir()
    (place.parent / "elsewhere" / people.name).write_bytes(people.read_bytes())
    (place / "all").symlink_to(place.parent / "elsewhere")


def a_name_in_capitals(place, people):
    (place / people.with_stem("PEOPLE").name).write_bytes(people.read_bytes())


def a_folder_of_that_name(place, people):
    (place / "people").mkdir()
    (place / "people" / people.with_stem("part").name).write_bytes(people.read_bytes())


def a_circle(place, people):
    (place / people.with_stem("all").name).symlink_to(people.with_stem("all").name)


def a_link_to_nothing(place, people):
    (place / people.with_stem("all").name).symlink_to("nothing")


def a_pipe(place, people):
    os.mkfifo(place / people.with_stem("all").name)


def a_pipe_in_a_folder(place, people):
    (place / "all").mkdir()
    os.mkfifo(place / "all" / people.name)


def a_device(place, people):
    (place / people.with_stem("all").name).symlink_to("/dev/zero")


def a_socket(place, people):
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(place, os.O_RDONLY)
        try:  # the name of a socket must be short
            made.bind(f"/proc/self/fd/{here}/{people.with_stem('all').name}")
        finally:
            os.close(here)


def a_line_break(place, people):
    (place / people.with_stem("a\nb").name).write_bytes(people.read_bytes())


def a_backslash(place, people):
    (place / people.with_stem("b\\*").name).write_bytes(people.read_bytes())


def a_backslash_in_a_folder(place, people):
    (place / "all").mkdir()
    (place / "all" / people.with_stem("b\\*").name).write_bytes(people.read_bytes())


def no_text(place, people):
    with open(os.fsencode(place) + b"/\xff" + os.fsencode(people.suffix), "wb") as file:
        file.write(people.read_bytes())


SECOND_NAMES = (
    a_link, a_hard_link, a_link_in_a_folder, a_link_to_the_directory, a_link_out, a_folder_out, a_name_in_capitals,
    a_folder_of_that_name, a_circle, a_link_to_nothing, a_pipe, a_pipe_in_a_folder, a_device, a_socket, a_line_break,
    a_backslash, a_backslash_in_a_folder, no_text,
)  # fmt: skip


@pytest.mark.parametrize("second", SECOND_NAMES, ids=lambda f: f.__name__)
def test_a_second_name_and_what_is_no_file_is_refused(place, kind, second):
    second(place, place / f"people.{kind}")
    with pytest.raises(BackendError) as refused:
        open_source(f"{kind}:{place}")
    assert refused.value.code == "BAK-001"
    assert refused.value.hint
    assert str(SECRET) not in refused.value.render()


def test_a_link_inside_to_a_file_without_another_name_is_a_table(place, kind):
    (place / ".store").mkdir()
    write(place / ".store" / f"v3.{kind}", kind, 3)
    (place / f"current.{kind}").symlink_to(f".store/v3.{kind}")
    assert shown(place, kind) == {"current": [(3,)], "people": [(SECRET,)]}


def test_hidden_files_are_not_offered(place, kind):
    for name in (f".{kind}", f"._people.{kind}"):
        write(place / name, kind, SECRET)
    assert list(shown(place, kind)) == ["people"]


def test_an_empty_csv_file_has_no_columns(tmp_path):
    (tmp_path / "people.csv").touch()
    with pytest.raises(BackendError, match="no columns"):
        open_source(f"csv:{tmp_path}")


def test_quotes_in_names_are_only_quotes(place, kind):
    write(place / f'it\'s "x".{kind}', kind, 1)
    assert shown(place, kind) == {'it\'s "x"': [(1,)], "people": [(SECRET,)]}


def test_names_that_fold_into_one_are_no_catalog():
    columns = (("v", INTEGER),)
    with pytest.raises(BackendError, match="differ in case"):
        catalog(Table("People", columns), Table("people", columns))


# ── a DuckDB file ────────────────────────────────────────────────────────────────────────────────────

MACROS = [
    "least(a, b) AS a",
    "sum(x) AS 0",
    '"+"(a, b) AS a',
    "COUNT_STAR() AS 7",
    "greatest(a, b) AS b",
]


def town(tmp_path, *more):
    path = tmp_path / "town.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (id BIGINT)")
        for statement in more:
            connection.execute(statement)
    return path


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_takes_no_name_of_sql(tmp_path, macro):
    path = town(tmp_path, f"CREATE MACRO {macro}")
    with pytest.raises(BackendError, match="macro"):
        open_source(f"duckdb:{path}")


def test_planted_a_macro_changes_what_runs(tmp_path, monkeypatch):
    path = town(tmp_path, "CREATE MACRO least(a, b) AS a")
    monkeypatch.setattr(engine, "_refuse_own_meanings", lambda connection: None)
    backend = apart(open_source(f"duckdb:{path}"))
    assert backend.rows("SELECT least(1000, 1)") == [(1000,)]
    backend.close()


def test_other_schemas_and_macros_of_their_own_name_do_no_harm(tmp_path):
    path = town(
        tmp_path,
        "CREATE MACRO half(x) AS x / 2",
        "CREATE SCHEMA other",
        "CREATE TABLE other.people (id BIGINT, name VARCHAR)",
        "CREATE TABLE other.strangers (id BIGINT)",
        "CREATE VIEW everyone AS SELECT * FROM people",
    )
    backend = apart(open_source(f"duckdb:{path}"))
    assert {n: t.columns for n, t in backend.catalog().tables.items()} == {
        "people": (("id", INTEGER),)
    }
    backend.close()


def test_a_name_is_never_a_variable_of_the_program(tmp_path):
    backend = apart(open_source(f"duckdb:{town(tmp_path)}"))
    strangers = duckdb.sql("SELECT 1 AS id")
    assert strangers is not None
    with pytest.raises(BackendError):
        backend.rows("SELECT * FROM strangers")
    backend.close()


def test_the_question_that_read_people_for_nothing(tmp_path):
    (tmp_path / "people.csv").write_text("id,name\n1,SECRET_SMITH\n")
    (tmp_path / "all.csv").symlink_to("people.csv")
    (tmp_path / "policy.toml").write_text(
        '[database]\nsource = "csv:."\n[tables.people]\nkey = "id"\n'
        '[protections.p]\nkind = "unit"\nunit = "people.id"\nepsilon = 1\n'
    )
    with pytest.raises(BackendError, match="one file"):
        secant.connect(policy=tmp_path / "policy.toml")
