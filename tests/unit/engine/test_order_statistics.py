"""MEDIAN, quantiles, MIN and MAX over protected rows: what is answered, with which types, and what is refused.

False alarms of tests that draw: at most 1e-9 each.
"""

import datetime
import itertools
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

import secant
from private_shop import ROWWISE, TABLES, UNIT, compile_release, make_shop, no_secret_in, open_shop
from secant.errors import Refused, SqlError
from secant.noise.ranked import exact_index, pieces, rank_noise, read_cells, stray
from secant.plan import nodes as n
from secant.plan.rewrites.order_statistics import Grid, Ranked
from secant.schema import types as t

DATED = TABLES.replace(
    'status = { values = ["open", "paid", "lost", "void"] }',
    'status = { values = ["open", "paid", "lost", "void"] }\n'
    "day = { range = [2024-01-01, 2024-12-31] }",
)
SURE = 20_000  # an epsilon at which draws are certain, but for 1e-9
RICH = [p.replace("epsilon = 100000", "epsilon = 1000000") for p in (ROWWISE, UNIT)]


@pytest.fixture(scope="module", params=RICH, ids=["rows", "unit"])
def db(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("ranks")
    make_shop(directory)
    with open_shop(directory, request.param, tables=DATED) as found:
        yield found


def row(db, text, epsilon=SURE):
    (found,) = db.sql(text, epsilon=epsilon).rows
    return found


# ── values and types ─────────────────────────────────────────────────────────────────────────────


def test_values_have_the_type_of_the_column(db):
    found = row(
        db,
        "SELECT median(total), quantile_disc(quantity, 0.5), min(rate), max(day), median(day), "
        "quantile_cont(quantity, 0.25), max(total) FROM orders",
    )
    assert [type(v) for v in found] == [
        Decimal, int, float, datetime.date, datetime.date, float, Decimal,
    ]  # fmt: skip


def test_with_a_large_epsilon_the_truth_comes_out(db):
    text = "SELECT quantile_disc(quantity, 0.5), quantile_disc(day, 0.25), quantile_disc(total, 0.9) FROM orders"
    (exact,) = compile_release(db, text).backend.rows(
        "SELECT quantile_disc(least(greatest(quantity, 0), 10), 0.5) FILTER (quantity IS NOT NULL), "
        "quantile_disc(least(greatest(day, DATE '2024-01-01'), DATE '2024-12-31'), 0.25) "
        "FILTER (day IS NOT NULL), "
        "quantile_disc(least(greatest(total, 0), 100), 0.9) FILTER (total IS NOT NULL) FROM orders"
    )
    assert row(db, text) == exact


def test_forms_of_one_quantile_are_one_statistic(db):
    text = (
        "SELECT quantile_cont(total, 0.5), percentile_cont(0.5) WITHIN GROUP (ORDER BY total), "
        "median(total), median(total) FILTER (WHERE TRUE) FROM orders"
    )
    job = compile_release(db, text).job
    (bounded,) = job.prepared.bounded
    assert {r.fraction for r in bounded.release.ranked} == {Fraction(1, 2)}
    assert len(bounded.release.ranked) == 2  # with and without FILTER
    # of units it is first tallied how many rows they have
    unit = db.policy.protections[0].kind == "unit"
    assert len(job.statements) == (4 if unit else 2)


def test_a_median_alone_is_one_statement_that_returns_cells(db):
    compiled = compile_release(db, "SELECT median(quantity), max(quantity) FROM orders")
    statements = compiled.job.statements.values()
    # of units an extreme counts one row each, the median all of them, and it is tallied how many they are
    unit = db.policy.protections[0].kind == "unit"
    assert len(statements) == (3 if unit else 1)
    for statement in statements:
        assert len(compiled.backend.rows(statement)) <= 11


@pytest.mark.parametrize(
    "text",
    [
        "SELECT status, median(total), count(*), sum(quantity) FROM orders GROUP BY status ORDER BY status",
        "SELECT c.town, median(c.age) FROM customers c GROUP BY c.town ORDER BY 1",
        "SELECT t.country, max(c.age), count(*) FROM customers c JOIN towns t ON c.town = t.town GROUP BY 1 ORDER BY 1",
        "SELECT quantity, median(rate) FROM orders GROUP BY quantity ORDER BY quantity",
        "SELECT day, median(rate) FROM orders WHERE day < DATE '2024-01-05' GROUP BY day ORDER BY day",
        "SELECT age, median(income) FROM customers GROUP BY age ORDER BY age",
        "SELECT status FROM orders GROUP BY status HAVING median(total) >= 0 ORDER BY max(rate)",
        "SELECT median(total + quantity) - min(total) FROM orders WHERE status = 'open'",
    ],
)
def test_groups_joins_filters_and_what_follows(db, text):
    answer = db.sql(text, epsilon=5)
    assert len(answer.rows) >= 1 or "age" in text
    for guaranteed in answer.guarantee:
        assert 0 < guaranteed["epsilon"] <= 5
    assert no_secret_in(str(answer.rows))


def test_groups_are_each_their_own(db):
    """The shop's open orders have quantities 1, 4, 7, paid ones 2, 5, 8, lost ones 3, 6, 9, void ones none."""
    text = (
        "SELECT status, quantile_disc(quantity, 0.99) FROM orders WHERE id < 9000 GROUP BY status"
    )
    found = dict(db.sql(text, epsilon=SURE).rows)
    assert 0 <= found.pop("void") <= 10
    assert 0 <= found.pop(None) <= 10  # nobody's either
    assert found == {"open": 7, "paid": 8, "lost": 9}
    text = "SELECT status, max(quantity) FROM orders WHERE id < 9000 GROUP BY status"
    found = dict(db.sql(text, epsilon=SURE).rows)
    assert 7 <= found["open"] <= 10
    assert 8 <= found["paid"] <= 10
    assert 9 <= found["lost"] <= 10


# ── nothing there, and values that are none ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "SELECT median(amount) FROM nothing",
        "SELECT min(amount) FROM holes",
        "SELECT max(whole) FROM holes",
        "SELECT median(amount), count(amount) FROM holes WHERE id < 0",
    ],
)
def test_without_values_some_point_of_the_range_comes_out(tmp_path, text):
    with open_shop(tmp_path, ROWWISE) as db:
        found = {row(db, text, epsilon=1)[0] for _ in range(12)}
    assert all(0 <= value <= 10 for value in found)
    assert len(found) > 1  # twelve equal ones of eleven points or more: 1e-11


def test_numbers_that_are_none_count_at_the_upper_end(tmp_path):
    with open_shop(tmp_path, ROWWISE) as db:
        assert row(db, "SELECT max(income) FROM customers WHERE id > 899") == (100000.0,)
        low, high = row(db, "SELECT min(rate), max(rate) FROM orders")
    assert 0 <= low < 0.001
    assert high == 1.0


EXTREME_ROWS = """
CREATE TABLE h (id BIGINT, b BIGINT, f DOUBLE, w DECIMAL(38, 10), d DATE, r REAL, n DECIMAL(4, 4));
INSERT INTO h SELECT i, i, i / 7, i / 3, DATE '2020-01-01' + CAST(i % 100 AS INTEGER), i, 0.5 FROM range(50) AS t(i);
INSERT INTO h VALUES
    (1000, 9223372036854775807, 'nan', 9999999999999999999999999999.9999999999, 'infinity', 'inf', 0.9999),
    (1001, -9223372036854775808, '-inf', -9999999999999999999999999999.9999999999, '-infinity', '-inf', -0.9999),
    (1002, NULL, NULL, NULL, NULL, NULL, NULL), (1003, 0, 1.7e308, 0, '5874897-12-31', 3e38, 0);
"""
RANGES = [
    {"b": "[-9223372036854775807, 9223372036854775807]", "f": "[-1e37, 1e37]", "w": "[-1e27, 1e27]",
     "d": "[0001-01-01, 9999-12-31]", "r": "[0, 100]", "n": "[-5, 5]"},
    {"b": "[0, 0]", "f": "[0.5, 0.5]", "w": "[0, 0.0000000005]", "d": "[2020-01-05, 2020-01-05]",
     "r": "[1e-30, 2e-30]", "n": "[-0.5, 0.5]"},
    {"b": "[4611686018427387900, 4611686018427387910]", "f": "[1e15, 1000000000000001]",
     "w": "[1234567.5, 1234568.5]", "d": "[2020-01-01, 2020-02-01]", "r": "[-1, 1]", "n": "[0, 0.0001]"},
]  # fmt: skip
COMPUTED = (
    "b + 1",
    "b * b",
    "f * 2",
    "w * w",
    "-b",
    "abs(b)",
    "d + 1",
    "CAST(f AS BIGINT)",
    "coalesce(b, 5)",
)


@pytest.mark.parametrize("ranges", RANGES, ids=["widest", "one point", "far out"])
def test_values_at_the_ends_fail_nothing(tmp_path, ranges):
    """Infinities, NaN, the largest of every type, under ranges as wide or narrow as a policy can say."""
    with duckdb.connect(str(tmp_path / "ends.duckdb")) as source:
        source.execute(EXTREME_ROWS)
    columns = "\n".join(f"{name} = {{ range = {ends} }}" for name, ends in ranges.items())
    policy = tmp_path / "ends.toml"
    policy.write_text(
        f'[database]\nsource = "duckdb:ends.duckdb"\n[tables.h]\nkey = "id"\n[tables.h.columns]\n{columns}\n'
        '[protections.single]\nkind = "rows"\nepsilon = 1000\n'
    )
    answered, refused = 0, []
    with secant.connect(policy=policy) as db:
        for argument in (*ranges, *COMPUTED):
            asked = ", ".join(f"{f}({argument})" for f in ("median", "min", "max"))
            try:
                found = row(db, f"SELECT {asked}, quantile_disc({argument}, 0.3) FROM h", epsilon=5)
            except Refused as error:
                refused += error.details
                continue
            answered += 1
            assert None not in found
        ((low, high),) = db.sql("SELECT min(d), max(b) FROM h", epsilon=500).rows
    assert answered >= len(ranges) + 6
    assert all("rewrite.range" in line for line in refused)
    assert isinstance(low, datetime.date)
    assert -(2**63) <= high < 2**63


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def test_ends_lie_within_the_range_and_the_price_is_stated(db):
    answer = db.sql(
        "SELECT median(total), median(total) + count(*), count(*) FROM orders", epsilon=1
    )
    (errors,), (low,), (high,) = (answer.error[x] for x in ("values", "low", "high"))
    ((number, *_),) = answer.rows
    assert 0 <= low[0] <= number <= high[0] <= 100
    certain = answer.certain
    # for every database its declared range: nothing narrower is public
    assert (certain.low[0][0], certain.high[0][0]) == (0, 100)
    assert errors[1] > errors[0] > 0
    assert errors[2] > 0
    assert [g["epsilon"] for g in answer.guarantee] == [pytest.approx(1)]
    named = {m["measure"]: m["mechanism"] for m in answer.mechanisms}
    assert named["median of orders.total"] == "exponential"


def test_mechanisms_follow_the_number_of_points(db):
    compiled = compile_release(db, "SELECT median(quantity), median(rate) FROM orders")
    assert [n.choice.name for n in compiled.job.noise.ranks.values()] == [
        "permute-and-flip",
        "exponential",
    ]


def test_shares_add_up_to_epsilon_and_a_unit_pays_for_its_rows(tmp_path):
    make_shop(tmp_path)
    with open_shop(tmp_path, UNIT, tables=DATED) as db:
        compiled = compile_release(db, "SELECT median(total), max(day), count(*) FROM orders")
        noise = compiled.job.noise
        spent = sum(n.epsilon for n in noise.ranks.values())
        spent += sum(n.epsilon for n in noise.noise.values())
        assert spent <= 1
        assert noise.costs["people"][0] == spent
        median, largest = noise.ranks.values()
        parts = [median.choosing, median.choice.epsilon, median.ends.epsilon]
        assert sum(parts) == median.epsilon
        # the rows of a unit weigh as much as five
        assert median.choice.sharpness == median.choice.epsilon / (5 * median.fine)
        assert median.ends.sharpness == median.ends.epsilon / (5 * median.fine)
        assert largest.choice.sharpness == largest.epsilon  # one extreme of each


def test_several_protections_share_one_draw(tmp_path):
    make_shop(tmp_path)
    with open_shop(tmp_path, UNIT + ROWWISE) as db:
        noise = compile_release(db, "SELECT median(total) FROM orders").job.noise
    # the first five rows of a unit: one row more can push another out, so two rows differ
    assert noise.costs["single"][0] == noise.costs["people"][0] * Fraction(2, 5)


def test_inspect_shows_the_owner_how_far_draws_stray(db):
    found = db.inspect("SELECT median(total), median(day), max(quantity) FROM orders", epsilon=1)
    total, day, quantity = found
    assert total["mechanism"] == "exponential"
    assert day["mechanism"] == "permute-and-flip"
    unit = db.policy.protections[0].kind == "unit"
    assert {r["analysis"] for r in found} == {"stability, truncation" if unit else "stability"}
    assert total["error95"] > 0
    assert day["error95"] > 0
    assert isinstance(day["exact"], str)
    assert quantity["sensitivity"] in (1.0, 5.0)
    # rows of a unit weigh less than one each, as the tally says that was drawn
    assert found[0]["softened"] == pytest.approx(total["exact"], abs=10 if unit else 1)


def test_explain_names_the_rule_and_the_grid(db):
    text = str(db.explain("SELECT quantile_cont(total, 0.9) FROM orders", epsilon=1))
    assert "stability.rank" in text
    assert "10001 points" in text


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "rule", "hint"),
    [
        ("SELECT min(note) FROM orders", "rewrite.range", "a number or a date"),
        ("SELECT median(DISTINCT total) FROM orders", "rewrite.rank", "DISTINCT"),
        ("SELECT mode(note) FROM orders", "rewrite.range", "declare the column's values"),
    ],
)
def test_refusals_say_what_to_do(db, text, rule, hint):
    with pytest.raises(Refused) as caught:
        db.sql(text, epsilon=1)
    assert caught.value.code == "REF-101"
    assert any(rule in line for line in caught.value.details)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT quantile_cont(total, 1.5) FROM orders",
        "SELECT quantile_cont(total, -0.1) FROM orders",
        "SELECT quantile_cont(total, [0.1, 0.2]) FROM orders",
        "SELECT quantile_cont(total, rate) FROM orders",
        "SELECT quantile_disc(total, '0.5') FROM orders",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY total DESC) FROM orders",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY total, rate) FROM orders",
        "SELECT mode(total) WITHIN GROUP (ORDER BY rate) FROM orders",
        "SELECT approx_quantile(total, [0.5, 0.6]) FROM orders",
    ],
)
def test_forms_that_are_not_accepted(db, text):
    with pytest.raises(SqlError) as caught:
        db.sql(text, epsilon=1)
    assert caught.value.code == "SQL-006"


def test_values_and_rows_protected_together_are_refused(tmp_path):
    cells = (
        '[protections.cells]\nkind = "cells"\nepsilon = 1\ndistance = { orders = "l1(total)" }\n'
    )
    with open_shop(tmp_path, ROWWISE + cells) as db:
        with pytest.raises(Refused):
            db.sql("SELECT median(total) FROM orders", epsilon=1)
        assert 0 <= row(db, "SELECT median(quantity) FROM orders", epsilon=1)[0] <= 10


# ── beside other aggregates ──────────────────────────────────────────────────────────────────────


def test_an_extreme_of_shared_groups_is_taken_after_the_noise(tmp_path):
    """A group that many units share has no limit of rows: its count is released, then compared."""
    with open_shop(tmp_path, UNIT) as db:
        text = "SELECT max(n) FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS g"
        assert row(db, text)[0] > 50
        text = "SELECT avg(n) FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS g"
        assert row(db, text)[0] > 40


def test_each_unit_counts_once_in_a_median_of_its_sums(tmp_path):
    with open_shop(tmp_path, UNIT) as db:
        text = "SELECT median(s) FROM (SELECT customer, sum(total) AS s FROM orders GROUP BY customer) AS g"
        compiled = compile_release(db, text)
        (noise,) = compiled.job.noise.ranks.values()
        assert noise.choosing == 0
        assert noise.choice.sharpness + noise.ends.sharpness == noise.epsilon


def test_public_tables_are_answered_exactly(db):
    text = (
        "SELECT median(people), quantile_cont(people, 0.25), quantile_disc(people, 0.25) FROM towns"
    )
    assert row(db, text) == (600000.0, 347500.0, 95000)


# ── many rows ────────────────────────────────────────────────────────────────────────────────────


def test_accuracy_on_many_rows(tmp_path):
    """At most so many rows lie between answer and rank, but for 1e-9; nothing but cells leaves the engine."""
    with duckdb.connect(str(tmp_path / "many.duckdb")) as source:
        source.execute(
            "CREATE TABLE wages AS SELECT i AS id, 1000000 * pow(hash(i) / 18446744073709551615, 3) AS wage "
            "FROM range(100000) AS r(i)"
        )
        values = sorted(v for (v,) in source.execute("SELECT wage FROM wages").fetchall())
    policy = tmp_path / "many.toml"
    policy.write_text(
        '[database]\nsource = "duckdb:many.duckdb"\n[tables.wages]\nkey = "id"\n[tables.wages.columns]\n'
        'wage = { range = [0, 1000000] }\n[protections.single]\nkind = "rows"\nepsilon = 100\n'
    )
    with secant.connect(policy=policy) as db:
        for text, q in (("median(wage)", 0.5), ("quantile_cont(wage, 0.9)", 0.9)):
            compiled = compile_release(db, f"SELECT {text} FROM wages")
            (noise,) = compiled.job.noise.ranks.values()
            (bounded,) = compiled.job.prepared.bounded
            (ranked,) = bounded.release.ranked
            slack = float(ranked.grid.step)
            far = float(noise.choice.error(1 - Fraction(1, 10**10), ranked.grid.count))
            for _ in range(5):
                ((answer,),) = compiled.draw().rows
                below = sum(v < answer - slack for v in values)
                upto = sum(v <= answer + slack for v in values)
                assert below - far <= q * len(values) <= upto + far
            assert abs(answer - values[int(q * len(values))]) < 3000


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────


def ranked_over(count, q):
    return Ranked(
        "c",
        q,
        t.INTEGER,
        Grid(Fraction(0), Fraction(1), count),
        n.Aggregate(n.Released("r", ()), (), ()),
        1.0,
        "a statistic",
    )


@pytest.mark.parametrize(
    "q", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
)
def test_pieces_are_the_definition(q):
    """All ways to put rows on five points, and every farthest distance that matters."""
    for rows in itertools.product(range(3), repeat=5):
        cells = tuple((i, r) for i, r in enumerate(rows) if r)
        total = sum(rows)
        for farthest in (1, 3, 100):
            found = pieces(ranked_over(5, q), cells, farthest)
            distances = [p.distance for p in found for _ in range(p.count)]
            for i, distance in enumerate(distances):
                below, above = sum(rows[:i]), sum(rows[i + 1 :])
                wanted = max(Fraction(0), below - q * total, above - (1 - q) * total)
                wanted = Fraction(below if q == 0 else above) if q in (0, 1) else wanted
                assert distance == min(wanted, farthest)
            assert len(distances) == 5


def test_how_far_draws_stray_in_a_case_that_can_be_counted():
    """One row on the middle of three points, minimum: distances 0, 0, 1 and weights 1, 1, 1/2."""
    ranked = ranked_over(3, Fraction(0))
    noise = rank_noise(ranked, Fraction(1), Fraction(1))
    assert noise.choice.name == "permute-and-flip"
    cells = ((1, 1),)
    assert exact_index(ranked, cells) == 1
    assert stray(ranked, noise, cells, Fraction(30, 100)) == 0
    assert stray(ranked, noise, cells, Fraction(95, 100)) == 1
    assert stray(ranked, noise, (), Fraction(95, 100)) == 2


def test_cells_just_outside_are_moved_onto_the_grid():
    grid = Grid(Fraction(0), Fraction(1), 3)
    found = read_cells([("a", -1, 2), ("a", 0, 1), ("a", 3, 4), ("b", 1, 1)], grid, lambda key: key)
    assert found == {("a",): ((0, 3), (2, 4)), ("b",): ((1, 1),)}
