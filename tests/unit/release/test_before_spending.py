"""What is said and refused before anything is spent: warnings, wanted errors, allowed errors. Public facts only."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from private_shop import ROWS, ROWWISE, TABLES, UNIT, make_shop, open_shop
from secant.accuracy import forecast as foreseeing
from secant.accuracy import target_error as wanted
from secant.accuracy import warnings as said
from secant.accuracy.forecast import forecast_errors
from secant.accuracy.warnings import Caution
from secant.engines.duckdb.session import DuckDBSession
from secant.errors import WARNINGS, Refused, UsageError
from secant.stages import limits
from secant.stages import open as opening
from secant.workflows import infer_facts as finding

COUNT = "SELECT count(*) AS n FROM customers"
SIZED = TABLES.replace(
    '[tables.customers]\nkey = "id"', '[tables.customers]\nkey = "id"\nrows = 60'
)


def codes(told) -> set[str]:
    return {w.code for w in told.warnings}


# ── warnings ─────────────────────────────────────────────────────────────────────────────────────


def test_a_word_of_another_case_is_not_a_declared_value(people):
    text = "SELECT count(*) FROM customers WHERE town = 'riga'"
    (told,) = people.explain(text).warnings
    assert (told.code, told.hint) == ("WRN-003", "did you mean 'Riga'?")
    assert "'riga' is not among the declared values of customers.town" in told.message
    assert people.sql(text, epsilon=1).warnings == (told,)
    assert people.sql(text, epsilon=1).to_dict()["warnings"] == [told.to_dict()]
    assert people.explain(text).to_dict()["warnings"] == [told.to_dict()]
    assert str(told) in str(people.explain(text)).replace("\n    ", "\n  ")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("town = 'Riga'", set()),
        ("town IN ('Riga', 'Osol')", {"WRN-003"}),
        ("'Ryga' = town", {"WRN-003"}),
        ("town <> 'Paris'", {"WRN-003"}),
        ("town < 'riga'", set()),
        ("age > 300", {"WRN-004"}),
        ("300 > age", {"WRN-004"}),
        ("age >= 120", set()),
        ("age > 60", set()),
        ("age BETWEEN -5 AND 30", {"WRN-004"}),
        ("score > 100.01", {"WRN-004"}),
        ("name = 'anybody'", set()),
        ("CASE WHEN town = 'riga' THEN age ELSE 0 END > 3", {"WRN-003"}),
    ],
)
def test_literals_are_held_against_what_is_declared(people, condition, expected):
    assert codes(people.explain(f"SELECT count(*) FROM customers WHERE {condition}")) == expected


def test_literals_are_followed_through_subqueries_and_aggregates(people):
    inner = "SELECT town AS place, age AS years FROM customers"
    text = f"SELECT sum(CASE WHEN x.place = 'OSLO' THEN 1 ELSE 0 END) FROM ({inner}) AS x WHERE x.years < 1000"
    assert codes(people.explain(text)) == {"WRN-003", "WRN-004"}


def test_a_declared_range_tells_what_passes(people):
    (none,) = people.explain("SELECT count(*) FROM customers WHERE age > 300").warnings
    (each,) = people.explain("SELECT count(*) FROM customers WHERE age < 300").warnings
    assert "no row passes" in none.message
    assert "every row passes" in each.message


def test_hidden_keys_are_named_beside_the_answer(people):
    text = "SELECT name, count(*) AS n FROM customers GROUP BY name"
    answer = people.sql(text, epsilon=1, delta="0.000001")
    (told,) = answer.warnings
    (keys,) = [m for m in answer.mechanisms if m["measure"] == "keys"]
    assert told.code == "WRN-002"
    assert f"fewer than about {keys['threshold']:,} units are hidden" in told.message


def test_keys_of_many_more_units_than_is_said_are_shown(tmp_path):
    """Noise is about a tenth of the threshold: false alarms have a probability below 1e-9."""
    text = "SELECT note, count(*) AS n FROM orders GROUP BY note"
    with open_shop(tmp_path) as db:
        (told,) = db.explain(text, epsilon=1, delta="0.0001").warnings
    least = max(int(w.replace(",", "")) for w in told.message.split() if w[0].isdigit())
    others = f"FROM range({4 * least}) AS r(i);"
    more = f"INSERT INTO customers SELECT 5000 + i, 'x', 'Riga', 30, 1, 1 {others}"
    more += (
        f"INSERT INTO orders SELECT 10000 + i, 5000 + i, 'open', NULL, 1, 1, 1, 'many', 1 {others}"
    )
    full = tmp_path / "full"
    full.mkdir()
    make_shop(full, rows=ROWS + more)
    with open_shop(full) as db:
        assert [row[0] for row in db.sql(text, epsilon=1, delta="0.0001").rows] == ["many"]


def test_careless_amounts(people):
    assert codes(people.explain(COUNT, epsilon=10)) == set()
    assert codes(people.explain(COUNT, epsilon="10.1")) == {"WRN-006"}
    grouped = "SELECT name, count(*) AS n FROM customers GROUP BY name"
    assert codes(people.explain(grouped, delta="0.001")) == {"WRN-002"}
    assert codes(people.explain(grouped, delta="0.0011")) == {"WRN-002", "WRN-007"}
    assert codes(people.explain(COUNT, delta="0.5")) == set()  # no delta is spent


def test_a_delta_above_one_in_the_declared_number_of_rows(tmp_path):
    grouped = "SELECT name, count(*) AS n FROM customers GROUP BY name"
    large = SIZED.replace("rows = 60", "rows = 50000")
    with open_shop(tmp_path, tables=large) as db:
        assert "WRN-007" not in codes(db.explain(grouped, delta="0.00002"))
        (told,) = [w for w in db.explain(grouped, delta="0.000021").warnings if w.code == "WRN-007"]
        assert "1 in the 50,000 rows of customers" in told.message


def test_an_error_as_large_as_the_whole_range(people, tmp_path):
    text = "SELECT count(DISTINCT town) AS towns FROM customers"  # four declared values
    assert "WRN-001" not in codes(people.explain(text, epsilon=1))
    (told,) = people.explain(text, epsilon="0.1").warnings
    assert told.code == "WRN-001"
    assert "(4)" in told.message
    with open_shop(tmp_path, tables=SIZED) as db:
        assert codes(db.explain(COUNT, epsilon="0.01")) == {"WRN-001"}
        assert codes(db.explain(COUNT, epsilon="1")) == set()
        assert codes(db.explain("SELECT sum(age) FROM customers", epsilon="0.01")) == {"WRN-001"}


def test_few_rows_behind_a_number(people):
    rare = "SELECT count(*) FROM orders WHERE note = 'a' AND status = 'open' AND quantity = 3"
    assert codes(people.explain(rare + " AND customer = 7")) == {"WRN-005"}
    by = "status, quantity, extract(month FROM day)"
    grouped = f"SELECT {by}, count(*) FROM orders WHERE note = 'a' GROUP BY {by}"
    assert "WRN-005" in codes(people.explain(grouped))
    assert codes(people.explain("SELECT count(*) FROM orders WHERE status = 'open'")) == set()


def test_public_questions_have_no_warning(people):
    assert people.sql("SELECT count(*) FROM towns", epsilon=100).warnings == ()


def test_warnings_come_before_the_charge(people):
    spent = people.budget["people"].spent_epsilon
    heard: list[Caution] = []

    def listen(caution):
        heard.append(caution)
        assert people.budget["people"].spent_epsilon == spent
        raise UsageError("USE-001", "stopped by the test")

    with pytest.raises(UsageError, match="stopped by the test"):
        people.sql("SELECT count(*) FROM customers WHERE age > 300", epsilon=1, warn=listen)
    assert len(heard) == 1
    assert people.budget["people"].spent_epsilon == spent


def test_every_code_is_listed_and_said():
    written = "".join(
        Path(str(module.__file__)).read_text(encoding="utf-8") for module in (said, finding)
    )
    assert all(f'"{code}"' in written for code, _ in WARNINGS)
    with pytest.raises(AssertionError):
        Caution("WRN-999", "x", "")


# Whatever rows there are, the same is said: a warning that follows the data tells about them.
QUESTIONS = (
    COUNT,
    "SELECT town, count(*) AS n FROM customers GROUP BY town",
    "SELECT name, avg(age) AS a FROM customers WHERE age > 200 GROUP BY name",
    "SELECT sum(total) AS s FROM orders WHERE status = 'OPEN' AND quantity = 3 AND note = 'x'",
    "SELECT count(DISTINCT town) AS n FROM customers",
)


def everything_said(directory, rows) -> list[object]:
    directory.mkdir()
    make_shop(directory, rows=rows)
    with open_shop(directory) as db:
        return [db.explain(q, epsilon="0.1", delta="0.00001").warnings for q in QUESTIONS]


EMPTY = "INSERT INTO towns VALUES ('Riga', 'LV', 600000), ('Tartu', 'EE', 95000), ('Oslo', 'NO', 700000);"


def test_warnings_do_not_follow_the_data(tmp_path):
    full, empty = (
        everything_said(tmp_path / name, rows) for name, rows in (("a", ROWS), ("b", EMPTY))
    )
    assert full == empty
    assert any(full)


def test_a_warning_that_follows_the_data_is_seen(tmp_path, monkeypatch):
    """Planted: how many rows there are is asked of the protected table itself."""
    honest = opening.public_facts

    def planted(policy, session):
        def count(table):
            ((found,),) = session.rows(f'SELECT count(*) FROM "{table}"')
            return found

        return replace(honest(policy, session), count=count)

    monkeypatch.setattr(opening, "public_facts", planted)
    full, empty = (
        everything_said(tmp_path / name, rows) for name, rows in (("a", ROWS), ("b", EMPTY))
    )
    assert full != empty


# ── wanted errors ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        COUNT,
        "SELECT sum(age) AS n FROM customers",
        "SELECT 2 * count(*) + 1 AS n FROM customers",
        "SELECT status, count(*) AS n, sum(total) AS s FROM orders GROUP BY status",
        "SELECT count(*) - sum(age) AS d FROM customers",
    ],
)
def test_the_printed_error_is_what_was_wanted_and_no_smaller_epsilon_gives_it(people, text):
    amount = 70
    answer = people.sql(text, error=amount)
    printed = [e for row in answer.error["values"] for e in row if e is not None]
    assert max(printed) <= amount
    spent = Fraction(str(answer.guarantee[0]["epsilon"]))
    places = [p for p in range(wanted._LAST) if wanted.grid(p) < spent]
    # Without a word about errors, limits may be chosen otherwise; so the same is planned.
    smaller = people.sql(text, epsilon=wanted.grid(places[-1]), max_error=10**9)
    assert max(e for row in smaller.error["values"] for e in row if e is not None) > amount


def test_a_solved_epsilon_that_is_too_small_is_seen(people, monkeypatch):
    """Planted: the search stops one step too early."""
    honest = limits.least_epsilon
    monkeypatch.setattr(limits, "least_epsilon", lambda reaches: honest(reaches) * Fraction(9, 10))
    answer = people.sql(COUNT, error=20)
    assert answer.error["values"][0][0] > 20


def test_shares_are_shares_of_something_public(people, tmp_path):
    assert people.sql(COUNT, error="5% of 400").guarantee == people.sql(COUNT, error=20).guarantee
    with pytest.raises(Refused) as refused:
        people.sql(COUNT, error="5%")
    assert refused.value.code == "REF-106"
    assert "5% of" in refused.value.hint
    with open_shop(tmp_path, tables=SIZED) as db:
        assert db.sql(COUNT, error="50%").error["values"][0][0] <= 30
        for filtered in (" WHERE age > 3", " WHERE town = 'Riga'"):
            with pytest.raises(Refused):
                db.sql(COUNT + filtered, error="50%")


@pytest.mark.parametrize(
    "value", ["", "five", "-3", 0, "0%", "5% of", "5 of 3", True, "nan", "inf", "1e400", "٥"]
)
def test_what_is_no_error(people, value):
    with pytest.raises(UsageError):
        people.sql(COUNT, error=value)
    with pytest.raises(UsageError):
        people.sql(COUNT, epsilon=1, max_error=value)


def test_an_epsilon_or_an_error(people):
    for both in ({}, {"epsilon": 1, "error": 20}):
        with pytest.raises(UsageError):
            people.sql(COUNT, **both)


def test_errors_that_only_the_answer_knows_are_refused_for_nothing(people):
    spent = people.budget["people"].spent_epsilon
    for text in ("SELECT avg(age) FROM customers", "SELECT stddev(age) FROM customers"):
        for wish in ({"error": 5}, {"epsilon": 1, "max_error": 5}):
            with pytest.raises(Refused) as refused:
                people.sql(text, **wish)
            assert refused.value.code == "REF-106"
    assert people.budget["people"].spent_epsilon == spent


LARGE = SIZED.replace("rows = 60", "rows = 20000")
AVERAGE = "SELECT avg(age) AS a FROM customers"


def test_an_average_has_the_wanted_error_if_as_many_rows_come_as_declared(tmp_path):
    """20,000 people are declared and there: the foreseen error is the printed one, up to how noise moves the count."""
    more = "INSERT INTO customers SELECT 5000 + i, 'x', 'Riga', i % 121, 1, 1 FROM range(20000) AS r(i);"
    make_shop(tmp_path, rows=ROWS + more)
    with open_shop(tmp_path, tables=LARGE) as db:
        answer = db.sql(AVERAGE, error="0.5")
        assert 0.4 < answer.error["values"][0][0] < 0.505
        (told,) = answer.warnings
        assert told.code == "WRN-008"
        assert "20,000 rows" in told.message
        spent = answer.guarantee[0]["epsilon"]
        with pytest.raises(Refused, match="would be about"):
            db.sql(AVERAGE, epsilon=spent / 2, max_error="0.5")
        assert "WRN-008" not in codes(db.explain(AVERAGE, epsilon=1))  # nothing was promised


def test_an_average_over_fewer_rows_than_declared_prints_a_larger_error(tmp_path):
    """What is foreseen of an average is no guarantee; what is printed holds all the same."""
    make_shop(tmp_path)
    with open_shop(tmp_path, tables=LARGE) as db:
        printed = db.sql(AVERAGE, error="0.5").error["values"][0][0]
        assert printed is None or printed > 0.5


def test_an_average_that_drowns_is_told(tmp_path):
    with open_shop(tmp_path, tables=SIZED) as db:
        (told,) = db.explain(AVERAGE, epsilon="0.05").warnings
        assert told.code == "WRN-001"
        assert "(120)" in told.message
        assert "about" in told.message
        assert codes(db.explain(AVERAGE, epsilon=5)) == set()


def test_an_order_statistic_has_the_wanted_error_in_ranks(people, tmp_path):
    text = "SELECT median(age) AS m FROM customers"
    answer = people.sql(text, error=40)
    ranks = answer.error["ranks"][0][0]
    assert 30 < ranks <= 40
    assert people.sql(text, error="10% of 400").error["ranks"][0][0] == ranks
    with pytest.raises(Refused, match="ranks"):
        people.sql(text, epsilon="0.1", max_error=40)
    with open_shop(tmp_path, tables=LARGE) as db:
        assert db.sql(text, error="0.2%").error["ranks"][0][0] == ranks


def test_a_share_of_an_average_is_one_of_the_least_it_can_be(tmp_path):
    """Prices from 10 to 100: 5 % of any of them is 0.5 at least."""
    with open_shop(
        tmp_path, tables=LARGE.replace("age = { range = [0, 120]", "age = { range = [10, 120]")
    ) as db:
        share = db.explain(AVERAGE, error="5%").to_dict()["guarantee"]
        assert share == db.explain(AVERAGE, error="0.5").to_dict()["guarantee"]
    other = tmp_path / "other"
    other.mkdir()
    with open_shop(other, tables=LARGE) as db, pytest.raises(Refused, match="nothing public says"):
        db.explain(AVERAGE, error="5%")


def test_sizes_that_are_declared_speak_of_size(tmp_path):
    """Of 60 customers a quarter is in one of four towns: fifteen, and noise of three is nothing, of 30 too much."""
    text = "SELECT town, count(*) AS n FROM customers GROUP BY town"
    with open_shop(tmp_path, tables=SIZED) as db:
        assert codes(db.explain(text, epsilon=1)) == set()
        (told,) = db.explain(text, epsilon="0.1").warnings
        assert told.code == "WRN-005"
        assert "about 15 rows" in told.message


def test_a_word_that_fits_nothing_hides_no_other_warning(people):
    """q19 of TPC-H names a ship mode that is not declared, and drowns besides."""
    rare = "note = 'a' AND quantity = 3 AND customer = 7"
    text = f"SELECT count(*) FROM orders WHERE status IN ('open', 'OPEN') AND {rare}"
    assert codes(people.explain(text)) == {"WRN-003", "WRN-005"}


def test_a_public_table_is_counted_once_a_question(people, monkeypatch):
    sent: list[str] = []
    honest = DuckDBSession.rows

    def listen(self, statement):
        sent.append(statement)
        return honest(self, statement)

    monkeypatch.setattr(DuckDBSession, "rows", listen)
    rows = "customers JOIN towns ON customers.town = towns.town"
    text = f"SELECT count(*) FROM {rows} WHERE people > 3 AND country = 'LV'"
    people.explain(text, error=50)
    asked = [s for s in sent if "customers" not in s]
    assert asked
    assert len(asked) == len(set(asked))


def test_a_larger_error_than_is_allowed_is_not_paid_for(people):
    spent = people.budget["people"].spent_epsilon
    with pytest.raises(Refused) as refused:
        people.sql(COUNT, epsilon="0.1", max_error=5)
    assert refused.value.code == "REF-106"
    assert people.budget["people"].spent_epsilon == spent
    assert people.sql(COUNT, epsilon=1, max_error=5).rows
    with pytest.raises(Refused):
        people.sql(COUNT, error="0.0001")


def test_explain_finds_the_same_epsilon(people):
    told = people.explain(COUNT, error=20).to_dict()
    assert told["guarantee"][0]["epsilon"] == people.sql(COUNT, error=20).guarantee[0]["epsilon"]


def test_what_is_public_costs_nothing_at_any_error(people):
    answer = people.sql("SELECT count(*) AS n FROM towns", error=1)
    assert answer.rows == [(3,)]


def test_the_grid_rises_in_steps_of_three_digits():
    places = [wanted.grid(p) for p in range(0, wanted._LAST, 97)]
    assert places == sorted(places)
    assert wanted.grid(0) == Fraction(1, 10**6)
    assert wanted.grid(wanted._LAST) == 1000
    assert wanted.least_epsilon(lambda e: e >= Fraction("0.12345")) == Fraction("0.124")


# ── foreseen is printed ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protections", [UNIT, ROWWISE, UNIT.replace("orders = 5", "")])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n, sum(total) AS s, avg(total) AS a FROM orders",
        "SELECT status, count(*) AS n FROM orders GROUP BY status HAVING count(*) > 0 ORDER BY n DESC LIMIT 3",
        "SELECT max(n) AS m, sum(n) AS s FROM (SELECT town, count(*) AS n FROM customers GROUP BY town) AS x",
        (
            "SELECT t.town, x.n + t.people AS n FROM towns AS t"
            " JOIN (SELECT town, count(*) AS n FROM customers GROUP BY town) AS x ON t.town = x.town"
        ),
        "SELECT count(*) AS n FROM customers WHERE age > (SELECT avg(age) FROM customers)",
    ],
)
def test_no_printed_error_is_larger_than_was_foreseen(tmp_path, monkeypatch, protections, text):
    forecast: list[dict] = []
    honest = forecast_errors

    def listen(*given, thorough):
        forecast.append(honest(*given))
        return honest(*given, thorough=thorough)

    monkeypatch.setattr(foreseeing, "forecast_errors", listen)
    with open_shop(tmp_path, protections) as db:
        for _ in range(2):
            answer = db.sql(text, epsilon=1)
            for place, output in enumerate(answer.columns):
                most = forecast[-1].get(output)
                if most is None:
                    continue
                printed = [row[place] for row in answer.error["values"]]
                assert all(e is not None and e <= most * (1 + 1e-9) for e in printed)


def test_nothing_is_foreseen_from_protected_rows(tmp_path):
    """The statements that are sent to find an epsilon name no protected table."""
    path = make_shop(tmp_path)
    with open_shop(tmp_path) as db:
        kept = db.sql(COUNT, error=20).guarantee
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM customers")
    with open_shop(tmp_path) as db:
        assert db.sql(COUNT, error=20).guarantee == kept
