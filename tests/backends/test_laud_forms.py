"""The 17 queries and their policies: texts bind, forms agree, policies fit the database."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from bench.suites.laud import database, forms
from bench.suites.laud.compare import expected

from apart import apart
from secant.engines.print.print_sql import lower
from secant.engines.sources import open_source
from secant.errors import UsageError
from secant.plan.rewrites.rewrite import normalize
from secant.policy.check import check_policy
from secant.sql.bind import from_sql

SHIPPED_PROFILES = {p.name: p for p in forms.PROFILES}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SF 0.1, as in the paper: the exact answers are known for it."""
    return database.duckdb_file("0.1", tmp_path_factory.mktemp("laud"))


@pytest.mark.parametrize("query", forms.QUERIES)
def test_every_form_gives_the_known_exact_answer(made, query):
    known = expected()[query]["exact"]
    # The known answer is rounded to the digits that it is written with.
    half = 0.5 * 10.0 ** -len(str(known).partition(".")[2])
    with duckdb.connect(str(made), read_only=True) as connection:
        for profile in forms.PROFILES:
            (answer,) = connection.execute(forms.text_of(profile, query)).fetchone()
            assert abs(float(answer) - known) <= half


def test_the_statement_printed_from_the_plan_gives_the_same(made):
    source = apart(open_source(f"duckdb:{made}", threads=1))
    for profile in forms.PROFILES:
        for query in forms.QUERIES:
            text = forms.text_of(profile, query)
            ours = source.rows(lower(normalize(from_sql(text, source.catalog()))))
            theirs = source.rows(text)
            assert float(ours[0][0]) == pytest.approx(float(theirs[0][0]), rel=1e-12)
    source.close()


def test_months_are_thirty_days_since_1980_and_dates_are_kept(made):
    with duckdb.connect(str(made), read_only=True) as connection:
        off, rows = connection.execute(
            "SELECT max(abs(l_shipdateG * 30 - date_diff('day', DATE '1980-01-01', l_shipdate))), count(*) "
            "FROM lineitem"
        ).fetchone()
    assert rows > 600_000
    assert off < 1e-9


def test_the_native_form_knows_no_months_and_the_paper_no_dates():
    for query in forms.QUERIES:
        assert not re.search(r"dateG\b", forms.text_of(SHIPPED_PROFILES["native"], query))
        assert "DATE '" not in forms.text_of(SHIPPED_PROFILES["paper"], query)
        for name in SHIPPED_PROFILES:
            operators = re.findall(
                r"<=|>=|<>|<|>|between", forms.text_of(SHIPPED_PROFILES[name], query)
            )
            assert operators == re.findall(
                r"<=|>=|<>|<|>|between", forms.text_of(SHIPPED_PROFILES["paper"], query)
            )


@pytest.mark.parametrize("name", SHIPPED_PROFILES)
def test_the_policy_fits_the_database(made, name):
    source = apart(open_source(f"duckdb:{made}", threads=1))
    policy = forms.policy_of(SHIPPED_PROFILES[name], "b1_1")
    problems = check_policy(policy, source.catalog())
    source.close()
    assert [p for p in problems if p.severity == "error"] == []


@pytest.mark.parametrize("name", SHIPPED_PROFILES)
def test_declared_facts_hold_on_the_data(made, name):
    """Clamping would otherwise change the answers."""
    policy = forms.policy_of(SHIPPED_PROFILES[name], "b1_1")
    checked = 0
    with duckdb.connect(str(made), read_only=True) as connection:
        for table, facts in policy.tables.items():
            for column, fact in facts.columns.items():
                low, high = connection.execute(
                    f"SELECT min({column}), max({column}) FROM {table}"
                ).fetchone()
                smallest, largest = fact.range
                assert smallest <= _exact(low, column)
                assert _exact(high, column) <= largest
                checked += 1
    assert checked == 14


def _exact(value, column):
    return round(Fraction(value), 9) if column.endswith("g") else value


def test_the_paper_prescribes_smoothness_and_the_native_form_does_not():
    paper, one_norm, native = forms.PROFILES
    for profile, query, beta, epsilon in (
        (paper, "b1_1", "0.1", 1),
        (paper, "b6", "1.6", "8.5"),
        (paper, "b16", "0.8", "4.5"),
        (paper, "b19", "1.3", 7),
        (one_norm, "b6", "0.4", "2.5"),
    ):
        (protection,) = forms.policy_of(profile, query).protections
        assert protection.beta == profile.beta_of(query) == Fraction(beta)
        assert protection.softening.kind == "sigmoid"
        assert protection.softening.slope == Fraction(1, 10)
        assert profile.epsilon_of(query) == Fraction(epsilon)
    (protection,) = forms.policy_of(native, "b6").protections
    assert protection.beta is None
    assert protection.softening is None
    assert native.epsilon_of("b6") == 1


def test_names_that_do_not_exist_are_wrong_use():
    with pytest.raises(UsageError, match="no profile"):
        forms.profile_of("papr")
    with pytest.raises(UsageError, match="no query"):
        forms.chosen_queries("b1_1,b2")
    assert forms.chosen_queries("") == forms.QUERIES
    assert forms.chosen_queries("B6,b1_1") == ("b1_1", "b6")


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e9", "0.001", "one", ""])
def test_a_scale_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(UsageError):
        database.scale_of(bad)


def test_nothing_half_made_is_left_behind(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "_with_months", interrupted)
    with pytest.raises(KeyboardInterrupt):
        database.duckdb_file("0.01", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sf0.01"]


@pytest.mark.postgres
def test_a_postgres_database_is_loaded_once_and_never_overwritten(postgres_database, tmp_path):
    import psycopg

    assert database.postgres_address("0.01", tmp_path, postgres_database) == postgres_database
    database.postgres_address("0.01", tmp_path, postgres_database)
    with duckdb.connect(str(tmp_path / "laud-sf0.01.duckdb"), read_only=True) as connection:
        wanted = connection.execute("SELECT count(*), sum(l_shipdateG) FROM lineitem").fetchone()
    with psycopg.connect(postgres_database) as server:
        found = server.execute("SELECT count(*), sum(l_shipdateg) FROM lineitem").fetchone()
        assert found[0] == wanted[0]
        assert found[1] == pytest.approx(wanted[1], rel=1e-12)
        server.execute("DROP SCHEMA secant_bench_laud CASCADE")
    with pytest.raises(UsageError, match="did not make"):
        database.postgres_address("0.01", tmp_path, postgres_database)
