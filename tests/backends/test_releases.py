"""Releases from every engine: exact measures are those from DuckDB, and a server that is not there tells nothing."""

from __future__ import annotations

import duckdb
import pytest
from engines import OTHERS, on_engines
from row_compare import difference

import secant
from apart import apart
from chance import LONG
from private_shop import ROWWISE, SECRETS, SHOP, UNIT, make_shop, no_secret_in, shop_policy
from secant.engines.sources import open_source
from secant.errors import BackendError, Refused, UsageError

# A sum beside a constant in a comparison is left out: DuckDB moves it to the other side and then does not overflow.
QUERIES = [
    "SELECT count(*) FROM orders",
    "SELECT count(*), sum(total), avg(rate), stddev(quantity), sum(big), avg(total) FROM orders",
    "SELECT count(*), sum(quantity), sum(total), sum(rate) FROM orders WHERE id < 5",
    "SELECT status, count(*) AS n, sum(big) AS s FROM orders GROUP BY status ORDER BY n DESC",
    "SELECT status, count(DISTINCT customer) AS n FROM orders GROUP BY status",
    "SELECT town, count(*), avg(income), sum(score) FROM customers GROUP BY town",
    "SELECT t.country, count(*) FROM customers AS c JOIN towns AS t ON c.town = t.town GROUP BY t.country",
    "SELECT sum(total * (1 - rate)), sum(total * quantity), sum(quantity * 2 + 1) FROM orders",
    "SELECT count(*) FROM orders WHERE day - DATE '2024-01-01' > 30 AND lower(note) LIKE 'note1%'",
    "SELECT count(*) FROM orders WHERE big * quantity > 100 OR CAST(note AS BIGINT) > 3",
    "SELECT sum(CASE WHEN big * quantity > 0 THEN quantity ELSE 0 END) FROM orders WHERE exp(rate) > 1.5",
    "SELECT min(total), max(rate), min(rate), max(quantity), min(big) FROM orders",
    "SELECT min(amount), max(whole) FROM holes",
    "SELECT max(o.total), min(c.age) FROM customers AS c JOIN orders AS o ON o.customer = c.id",
    "SELECT count(amount), sum(amount), sum(whole) FROM holes",
    "SELECT count(*), sum(amount) FROM nothing",
    "SELECT c.town, count(*) FROM customers AS c JOIN orders AS o ON o.customer = c.id GROUP BY c.town",
    "SELECT count(*) FROM customers WHERE id IN (SELECT customer FROM orders WHERE total > 50)",
    "SELECT note, count(*) FROM orders GROUP BY note",
    "SELECT count(*) FROM (SELECT customer, sum(total) AS s FROM orders GROUP BY customer) AS u WHERE s > 10",
]  # fmt: skip
FIXED = UNIT.replace(
    "composition", 'truncation = "fixed"\ncomposition'
)  # a chosen limit is drawn anew
POLICIES = {"unit": FIXED, "rows": ROWWISE, "grouped": FIXED + "groups = 2\n"}
SPARED = QUERIES if LONG else [QUERIES[1], QUERIES[10], QUERIES[11], QUERIES[16]]
"""What is asked where planning takes long."""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The shop on DuckDB."""
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def there(put, here, engine, kept):
    """The source of the shop at the engine."""

    def make():
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{here}' AS shop (READ_ONLY); USE shop")
            return put(connection, SHOP)

    return kept(engine, "shop", make)


def opened(source, tmp_path, protections):
    policy = tmp_path / "policy.toml"
    policy.write_text(shop_policy(protections), encoding="utf-8")
    ledger = tmp_path / f"{source.partition(':')[0]}.ledger"
    return secant.connect(source, policy=policy, ledger=ledger)


def measured(db, text):
    """Run the statements of a release and give their rows; None for a refusal."""
    try:
        statements = db.explain(text, epsilon=1).to_dict()["statements"]
    except Refused:
        return None
    return [apart(db).rows(statement) for statement in statements]


def quiet(db, text):
    """Give the rows of the answer without noise, as the owner sees them; none where the plain query overflows."""
    try:
        columns = [c["softened"] for c in db.inspect(text)]
    except BackendError:
        return []
    return [*zip(*(c if isinstance(c, list) else [c] for c in columns), strict=True)]


@on_engines("protections", [(name,) for name in POLICIES], few=(), engines=OTHERS)
def test_exact_measures_are_those_of_duckdb(here, there, engine, tmp_path, protections):
    compared, texts = 0, SPARED if engine.sparing else QUERIES
    with (
        opened(there, tmp_path, POLICIES[protections]) as ours,
        opened(f"duckdb:{here}", tmp_path, POLICIES[protections]) as theirs,
    ):
        for text in texts:
            got, want = measured(ours, text), measured(theirs, text)
            assert (got is None) == (want is None)
            for ours_rows, theirs_rows in zip(got or (), want or (), strict=True):
                assert difference(ours_rows, theirs_rows, ordered=False) is None, text
            if got:
                mine, plain = quiet(ours, text), quiet(theirs, text)
                # The plain query of DuckDB may overflow where that of an engine that answers NULL does not.
                never_fails = engine.sparing and not plain
                assert never_fails or difference(mine, plain, ordered=False) is None
                compared += 1
    assert compared >= len(texts) / 2


WIDE = (
    "SELECT sum(id), sum(CAST(id AS DOUBLE) / 7), sum(CAST(id AS DECIMAL(12, 2))) FROM orders",
    "SELECT status, sum(id), sum(id - 1e300), sum(CAST(-id AS DECIMAL(12, 2))) FROM orders GROUP BY status",
)


@on_engines("text", [(text,) for text in WIDE], engines=OTHERS)
def test_sums_without_a_range_are_those_of_duckdb(here, there, engine, tmp_path, text):
    with (
        opened(there, tmp_path, UNIT) as ours,
        opened(f"duckdb:{here}", tmp_path, UNIT) as theirs,
    ):
        assert "rewrite.wide" in str(ours.explain(text, epsilon=1))
        got, want = measured(ours, text), measured(theirs, text)
        assert len(got) == len(want) > 0
        for ours_rows, theirs_rows in zip(got, want, strict=True):
            assert difference(ours_rows, theirs_rows, ordered=False) is None
        assert ours.sql(text, epsilon=1).rows


@on_engines()
def test_the_whole_way(there, engine, tmp_path):
    with opened(there, tmp_path, FIXED) as db:
        answer = db.sql("SELECT status, count(*) AS n FROM orders GROUP BY status", epsilon=1000)
        assert dict(answer.rows)["open"] == pytest.approx(67, abs=10)
        assert db.budget["people"].spent_epsilon == 1000
        shown = db.explain("SELECT sum(total) FROM orders", epsilon=1)
        statements = " ".join(shown.to_dict()["statements"]).lower()
        assert "least(greatest(" in statements or engine not in OTHERS
        (inspected,) = db.inspect("SELECT sum(total) AS s FROM orders WHERE id < 100")
        assert inspected["column"] == "s"
        assert inspected["exact"] == inspected["softened"]


@on_engines(engines=OTHERS)
def test_an_unreachable_server_says_nothing_of_its_address(engine):
    assert engine.unreachable
    for source in engine.unreachable:
        with pytest.raises(BackendError) as raised:
            open_source(source)
        assert raised.value.code == "BAK-001"
        assert no_secret_in(raised.value.render())
    assert SECRETS


@on_engines(engines=OTHERS)
def test_a_source_that_is_not_understood(engine):
    assert engine.misspelled
    for source in engine.misspelled:
        with pytest.raises(UsageError) as raised:
            open_source(source)
        assert raised.value.code == "USE-001"


CENTERED = [
    "SELECT avg(total) FROM orders",
    "SELECT avg(rate), avg(quantity) FROM orders WHERE id > 2",
    "SELECT status, avg(total) FROM orders GROUP BY status",
]
"""Averages that are measured about a center, where nobody declared how many rows a person has (truncation.center)."""


@on_engines("text", [(t,) for t in CENTERED], few=[(CENTERED[2],)], engines=OTHERS)
def test_averages_about_a_center_are_those_of_duckdb(here, there, tmp_path, engine, text):
    people = UNIT.split("[protections.people.limits]")[0]
    with (
        opened(f"duckdb:{here}", tmp_path, people) as ours,
        opened(there, tmp_path, people) as theirs,
    ):
        names = ours.explain(text, epsilon=1).to_dict()["statements"]
        assert len(names) >= 3, "centers, limits and sums are asked apart"
        for one, other in zip(measured(ours, text), measured(theirs, text), strict=True):
            assert difference(one, other, ordered=False) is None
        assert len(theirs.sql(text, epsilon=1).rows) >= 1
