"""Queries in stages, from the text to the answer: what is charged, what is sent, what is told."""

import re
from fractions import Fraction

import pytest

from apart import apart
from private_shop import (
    ROWS,
    ROWWISE,
    SCHEMA,
    UNIT,
    FreePermit,
    compile_release,
    make_shop,
    no_secret_in,
    open_shop,
    released,
)
from secant.engines.dialect import DUCKDB, Dialect
from secant.engines.postgres.scalars import POSTGRES
from secant.engines.print.print_sql import lower
from secant.errors import Refused
from secant.noise.mechanisms import whole
from secant.noise.secrecy import unseal
from secant.release import draw as drawing
from secant.release import print as printing
from secant.release.staged_tables import placeholders, provided

ABOVE_AVERAGE = "SELECT count(*) FROM orders WHERE total > (SELECT avg(total) FROM orders)"
PUBLIC_ROWS = (
    "SELECT count(*) FROM customers AS c JOIN towns AS t ON c.town = t.town WHERE t.people > 100000 "
    "AND c.age > (SELECT avg(d.age) FROM customers AS d WHERE d.town = t.town)"
)
STAGED = {
    "constant": (ABOVE_AVERAGE, 2),
    "groups": (
        (
            "SELECT status, count(*), sum(quantity) FROM orders "
            "WHERE total > (SELECT avg(total) FROM orders) GROUP BY status ORDER BY 1"
        ),
        2,
    ),
    "public rows": (PUBLIC_ROWS, 2),
    "listed": (
        (
            "SELECT count(*) FROM orders WHERE status IN "
            "(SELECT status FROM orders GROUP BY status HAVING count(*) > 50)"
        ),
        2,
    ),
    "three stages": (
        (
            "SELECT count(*) FROM customers WHERE age > (SELECT avg(age) FROM customers "
            "WHERE age < (SELECT 2 * avg(age) FROM customers))"
        ),
        3,
    ),
    "twice the same": (
        (
            "WITH mean AS (SELECT avg(total) AS m FROM orders) SELECT count(*) FROM orders "
            "WHERE total > (SELECT m FROM mean) AND quantity < (SELECT m FROM mean)"
        ),
        2,
    ),
}
LOOKED_UP = {
    "a count": "SELECT town, (SELECT count(*) FROM customers AS c WHERE c.town = t.town) FROM towns AS t ORDER BY 1",
    "a filter": (
        "SELECT town FROM towns AS t WHERE people > 100000 AND country IN (SELECT country FROM towns WHERE "
        "people > 650000) AND (SELECT sum(age) FROM customers AS c WHERE c.town = t.town) > 10"
    ),
    "an expression": (
        "SELECT town, (SELECT 2 * count(*) FROM customers AS c WHERE lower(c.town) = lower(t.town)) FROM towns AS t"
    ),
    "inside IN": (
        "SELECT country FROM towns AS u WHERE u.town IN (SELECT t.town FROM towns AS t WHERE 5 < "
        "(SELECT count(*) FROM customers AS c WHERE c.town = t.town))"
    ),
    "beside a public one": (
        "SELECT town, (SELECT count(*) FROM towns AS u WHERE u.country = t.country), "
        "(SELECT count(*) FROM customers AS c WHERE c.town = t.town) FROM towns AS t"
    ),
    "an order": (
        "SELECT t.town FROM towns AS t ORDER BY (SELECT count(*) FROM customers AS c WHERE c.town = t.town) LIMIT 3"
    ),
    "a public aggregate around it": (
        "SELECT count(*) FROM towns AS t WHERE 5 < (SELECT count(*) FROM customers AS c WHERE c.town = t.town)"
    ),
}  # fmt: skip
REFUSED = {
    "outer rows are protected": (
        "SELECT count(*) FROM customers AS c WHERE age > (SELECT avg(d.age) FROM customers AS d WHERE d.town = c.town)"
    ),
    "no equality": "SELECT town, (SELECT count(*) FROM customers AS c WHERE c.town <> t.town) FROM towns AS t",
    "keys chosen privately": (
        "SELECT count(*) FROM orders WHERE note IN (SELECT note FROM orders GROUP BY note HAVING count(*) > 50)"
    ),
    "outer rows of an outer query": (
        "SELECT town, (SELECT count(*) + (SELECT count(*) FROM customers AS d WHERE d.town = t.town) "
        "FROM customers AS c WHERE c.town = t.town) FROM towns AS t"
    ),
    "several rows": "SELECT count(*) FROM orders WHERE total > (SELECT total FROM orders)",
    "several groups": (
        "SELECT count(*) FROM orders WHERE total > (SELECT avg(total) FROM orders GROUP BY status)"
    ),
    "no range": "SELECT count(*) FROM orders WHERE total > (SELECT stddev(length(note)) FROM orders)",
    "rows of an inner query": "SELECT count(*) FROM orders WHERE note IN (SELECT note FROM orders)",
}  # fmt: skip


@pytest.fixture(params=[UNIT, ROWWISE], ids=["unit", "rows"])
def shop(request, tmp_path):
    with open_shop(tmp_path, request.param) as db:
        yield db


def spent(db):
    (account,) = db.budget.values()
    return account.spent_epsilon


# ── (a) what is charged ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", STAGED)
def test_the_shares_of_all_stages_add_up_to_what_was_asked(shop, name):
    text, stages = STAGED[name]
    answer = shop.sql(text, epsilon=2)
    told = shop.explain(text, epsilon=2)
    assert len(told.record["releases"]) == stages
    assert Fraction(2) - Fraction(1, 10**6) < spent(shop) <= 2
    assert answer.guarantee[0]["epsilon"] == pytest.approx(2, abs=1e-6)
    shares = [m["epsilon"] for m in answer.mechanisms]
    assert all(share > 0 for share in shares)
    assert sum(shares) == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize("name", LOOKED_UP)
def test_a_lookup_is_one_release(shop, name):
    assert len(shop.explain(LOOKED_UP[name], epsilon=1).record["releases"]) == 1
    shop.sql(LOOKED_UP[name], epsilon=1)
    assert Fraction(1) - Fraction(1, 10**6) < spent(shop) <= 1


@pytest.mark.parametrize("name", [*STAGED, *LOOKED_UP])
def test_little_noise_gives_the_plain_answer(tmp_path, name):
    """Noise of scale 1e-5 moves whole numbers with probability below 1e-40000."""
    text = STAGED[name][0] if name in STAGED else LOOKED_UP[name]
    make_shop(tmp_path, rows=ROWS.split("INSERT INTO customers VALUES")[0] + ROWS_OF_ORDERS)
    protections = UNIT.replace("orders = 5", "orders = 500")
    with open_shop(tmp_path, protections) as db:
        shown = compile_release(db, text, epsilon=10**6).draw().rows
        plain = apart(db).rows(text)
    kept = [row for row in shown if row[0] not in ("void", None)]
    assert sorted(map(repr, kept)) == sorted(map(repr, plain))


ROWS_OF_ORDERS = """
INSERT INTO orders
    SELECT i, 1 + i % 60, ['open', 'paid', 'lost'][1 + i % 3], DATE '2024-01-01' + CAST(i % 300 AS INTEGER),
           10 + i % 90, 1 + i % 9, (i % 10) / 10.0, 'note' || i, i
    FROM range(1, 201) AS r(i);
"""


# ── (c) what is sent ─────────────────────────────────────────────────────────────────────────────


class Watched:
    """A backend that writes down every statement."""

    def __init__(self, inner):
        self.inner, self.dialect, self.sent = inner, inner.dialect, []

    def rows(self, statement):
        self.sent.append(statement)
        return self.inner.rows(statement)


def sent_by(directory, rows, monkeypatch, drawn):
    """Release once over some rows, with all draws replaced by a fixed number; give the statements."""
    make_shop(directory, rows=rows)
    monkeypatch.setattr(
        whole, "add_discrete_laplace", lambda values, *, scale: [drawn for _ in values]
    )
    with open_shop(directory, ROWWISE) as db:
        job = compile_release(db, ABOVE_AVERAGE).job
        watched = Watched(apart(db))
        released(job, printing.look_up_keys(job, apart(db)), watched, FreePermit())
    return watched.sent


OTHER_ROWS = ROWS_OF_ORDERS.replace("10 + i % 90", "90 - i % 30")


def two_runs(tmp_path, monkeypatch):
    found = []
    for index, rows in enumerate((ROWS_OF_ORDERS, OTHER_ROWS)):
        directory = tmp_path / str(index)
        directory.mkdir()
        found.append(sent_by(directory, rows, monkeypatch, 7))
    return found


def test_a_later_statement_knows_of_earlier_rows_what_was_drawn_and_nothing_else(
    tmp_path, monkeypatch
):
    one, two = two_runs(tmp_path, monkeypatch)
    assert one == two
    assert len(one) == 3  # two releases, and what follows them
    assert '"release1" AS (SELECT' in one[1]
    assert "0.07" in one[1]  # seven steps of a hundredth


def test_an_exact_number_in_a_later_statement_is_caught(tmp_path, monkeypatch):
    """The fault: the second stage reads what the first one measured."""
    measured = drawing.measured
    noiseless = {}

    def keep(b, *rest):
        found = measured(b, *rest)
        noiseless[b.release.name] = found
        return found

    table = drawing.table_of

    def leak(b, job, shown, columns):
        exact = noiseless[b.release.name]
        values = [
            [drawing.value_of(w, m) for w in unseal(exact.values[m.column])]
            for m in b.release.measures
        ]
        return table(b, job, shown, values)

    monkeypatch.setattr(drawing, "measured", keep)
    monkeypatch.setattr(drawing, "table_of", leak)
    one, two = two_runs(tmp_path, monkeypatch)
    assert one != two


def test_an_engine_binds_later_statements_before_any_number_is_there(shop):
    told = shop.explain(ABOVE_AVERAGE)
    first, second = told.statements
    assert '"release1"' not in first
    assert '"release1"' in second
    job = compile_release(shop, ABOVE_AVERAGE).job
    printing.check_statements(job, apart(shop))
    fields = {b.release.name: printing.released_fields(b) for b in job.prepared.bounded}
    placed = provided(second, placeholders(fields), DUCKDB)
    assert placed.count("CAST(NULL AS") == len(fields["release1"])


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES], ids=["duckdb", "postgres"])
def test_tables_are_put_before_what_a_statement_has_already(shop, dialect: Dialect):
    job = compile_release(shop, PUBLIC_ROWS).job
    fields = {b.release.name: printing.released_fields(b) for b in job.prepared.bounded}
    written = lower(job.prepared.bounded[1].release.exact, dialect)
    for statement in (written, "WITH t0 AS (SELECT 1) " + written):
        placed = provided(statement, placeholders(fields), dialect)
        assert placed.startswith('WITH "release1" AS (SELECT ')
        assert placed.count("WITH ") == statement.count("WITH ") + (
            not statement.startswith("WITH ")
        )
        assert '"release2" AS (' not in placed
    assert provided("SELECT 1", placeholders(fields), dialect) == "SELECT 1"


# ── (d) what is told ─────────────────────────────────────────────────────────────────────────────


def outcome(db, text):
    try:
        return str(db.explain(text, epsilon=1))
    except Refused as error:
        return error.render()


def test_whether_there_are_stages_and_what_is_refused_hangs_on_public_facts(tmp_path):
    texts = [*(text for text, _ in STAGED.values()), *LOOKED_UP.values(), *REFUSED.values()]
    public = re.search(r"INSERT INTO towns .*?;", ROWS)[0]
    found = []
    for index, rows in enumerate((ROWS, public)):  # all rows, and public ones only
        directory = tmp_path / str(index)
        directory.mkdir()
        make_shop(directory, rows=rows)
        for protections in (UNIT, ROWWISE):
            with open_shop(directory, protections) as db:
                found.append([outcome(db, text) for text in texts])
    assert found[:2] == found[2:]


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_a_hint(shop, name):
    with pytest.raises(Refused) as error:
        shop.sql(REFUSED[name], epsilon=1)
    assert error.value.hint
    assert error.value.details
    assert no_secret_in(error.value.render())
    assert spent(shop) == 0


def test_a_subquery_beside_the_aggregate_is_released_too(shop):
    text = (
        "SELECT town, (SELECT count(*) + (SELECT count(*) FROM customers) FROM customers AS c "
        "WHERE c.town = t.town) FROM towns AS t"
    )
    assert len(shop.explain(text, epsilon=1).record["releases"]) == 2
    assert len(shop.sql(text, epsilon=1).rows) == 3


def test_the_error_of_a_later_stage_is_not_stated(shop):
    staged = shop.sql(ABOVE_AVERAGE, epsilon=1)
    assert staged.error["values"] == [[None]]
    plain = shop.sql("SELECT count(*) FROM orders WHERE total > 20", epsilon=1)
    assert plain.error["values"][0][0] > 0


def test_a_released_table_does_not_hide_a_table_of_the_engine(tmp_path):
    make_shop(tmp_path, rows=ROWS + "CREATE TABLE release1 AS SELECT * FROM orders;")
    assert "release1" not in SCHEMA
    with open_shop(tmp_path, UNIT, copies=("release1",)) as db:
        text = f"{ABOVE_AVERAGE} AND id IN (SELECT id FROM release1)"
        names = re.findall(r"^release (\S+):", str(db.explain(text, epsilon=1)), re.MULTILINE)
        assert names == ["release1_", "release2"]
        assert db.sql(text, epsilon=1).rows


def test_a_subquery_that_a_analysis_bounds_as_it_stands_is_not_released_first(tmp_path):
    with open_shop(tmp_path, UNIT) as db:
        orders = "(SELECT count(*) FROM orders AS o WHERE o.customer = c.id)"
        text = f"SELECT count(*) FROM customers AS c WHERE 2 < {orders}"
        assert len(db.explain(text, epsilon=1).record["releases"]) == 1
