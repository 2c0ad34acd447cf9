"""What a release shows and what it costs: keys, order, ranges, prices, grids and stated errors."""

import math
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from scipy.stats import binom

from private_shop import ROWWISE, UNIT, compile_release, make_shop, open_shop, reaches
from secant.errors import SecantError
from secant.noise.mechanisms.whole import WholeNormal

PLAIN = """
INSERT INTO towns VALUES ('Riga', 'LV', 600000), ('Tartu', 'EE', 95000), ('Oslo', 'NO', 700000);
INSERT INTO customers SELECT i, 'n' || i, ['Riga', 'Tartu'][1 + i % 2], 20 + i % 3, 500.25 * i, 20 + i % 3
    FROM range(1, 101) AS r(i);
INSERT INTO orders SELECT i, 1 + i % 100, ['open', 'paid', 'lost'][1 + i % 3], DATE '2024-01-01', 20 + i % 61,
    1 + i % 9, (i % 10) / 10.0, 'x', i % 7 FROM range(1, 401) AS r(i);
"""
BY_STATUS = "SELECT status, count(*) AS n FROM orders GROUP BY status"
KEYS = ["open", "paid", "lost", "void"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plain")
    make_shop(directory, rows=PLAIN)
    return directory


def scales(db, query, **options):
    """Give measure -> noise scale, in units of the answer."""
    compiled = compile_release(db, query, **options)
    steps = {m.column: m.step for b in compiled.job.prepared.bounded for m in b.release.measures}
    return {c: n.law.scale * steps[c] for c, n in compiled.job.noise.noise.items() if not n.still}


# ── keys and what follows the noise ──────────────────────────────────────────────────────────────


def test_every_declared_key_appears_and_no_other(people, single):
    for db in (people, single):
        compiled = compile_release(db, BY_STATUS)
        for _ in range(20):
            assert [row[0] for row in compiled.draw().rows] == [*KEYS, None]


def test_an_empty_group_is_as_noisy_as_any_other(single):
    compiled = compile_release(single, "SELECT status, sum(big) AS s FROM orders GROUP BY status")
    drawn = [dict(compiled.draw().rows)["void"] for _ in range(40)]
    assert len(set(drawn)) > 20
    assert min(drawn) < 0 < max(drawn)


def test_having_order_and_limit_see_the_noisy_numbers(plain):
    with open_shop(plain, ROWWISE) as db:
        ordered = compile_release(db, BY_STATUS + " ORDER BY n DESC", epsilon=Fraction(1, 20))
        chosen = compile_release(db, BY_STATUS + " HAVING count(*) > 133", epsilon=Fraction(1, 20))
        first = compile_release(db, BY_STATUS + " ORDER BY n DESC LIMIT 2", epsilon=Fraction(1, 20))
        orders, sizes = set(), set()
        for _ in range(40):
            rows = ordered.draw().rows
            assert [n for _, n in rows] == sorted((n for _, n in rows), reverse=True)
            orders.add(tuple(status for status, _ in rows))
            kept = chosen.draw().rows
            assert all(n > 133 for _, n in kept)
            sizes.add(len(kept))
            assert len(first.draw().rows) == 2
        assert len(orders) > 1
        assert len(sizes) > 1


def test_arithmetic_over_aggregates_uses_the_same_noisy_numbers(single):
    compiled = compile_release(
        single,
        "SELECT count(*) AS n, count(*) * 2 + 1 AS m, sum(big) AS s, sum(big) - count(*) AS d FROM orders",
    )
    for _ in range(20):
        ((n, m, s, d),) = compiled.draw().rows
        assert m == 2 * n + 1
        assert d == s - n
    assert len(compiled.job.noise.noise) == 2  # equal aggregates are measured and paid once


def test_averages_and_spreads_stay_in_their_range(people):
    compiled = compile_release(
        people,
        "SELECT avg(total), stddev_pop(total), var_pop(total), avg(rate), avg(score) FROM orders "
        "JOIN customers ON customer = customers.id",
        epsilon=Fraction(1, 100),
    )
    seen = set()
    for _ in range(60):
        ((average, deviation, variance, rate, score),) = compiled.draw().rows
        assert 0 <= average <= 100
        assert 0 <= deviation <= 50
        assert 0 <= variance <= 2500
        assert 0 <= rate <= 1
        assert -10 <= score <= 100
        seen.add(average)
    assert len(seen) > 3


def test_counts_are_whole_and_not_negative_and_sums_lie_on_their_grid(people):
    compiled = compile_release(
        people, "SELECT count(*), sum(quantity), sum(total), sum(rate) FROM orders WHERE id < 5"
    )
    steps = {m.words: m.step for b in compiled.job.prepared.bounded for m in b.release.measures}
    (step,) = [s for words, s in steps.items() if "rate" in words]
    assert math.log2(step).is_integer()
    drawn = [compiled.draw().rows[0] for _ in range(30)]
    for count, quantity, total, rate in drawn:
        assert isinstance(count, int)
        assert count >= 0
        assert isinstance(quantity, int)
        assert isinstance(total, Decimal)
        assert -total.as_tuple().exponent == 2
        assert (Fraction(rate) / step).denominator == 1
    for position in range(4):
        assert len({row[position] for row in drawn}) > 5  # noise differs from run to run


# ── sensitivity, seen from outside ───────────────────────────────────────────────────────────────


def test_disjoint_groups_cost_once(people, single):
    for db, want in ((single, 1), (people, 5)):
        assert set(scales(db, "SELECT count(*) FROM orders").values()) == {want}
        assert set(scales(db, BY_STATUS).values()) == {want}
        both = "SELECT status, quantity, count(*) FROM orders GROUP BY 1, 2"
        assert set(scales(db, both, delta="1e-9").values()) >= {want}


def test_a_replaced_row_brings_back_what_it_takes_away(tmp_path):
    with open_shop(tmp_path, ROWWISE + "replace = true\n") as db:
        assert set(scales(db, BY_STATUS).values()) == {2}
        assert set(scales(db, "SELECT count(*) FROM orders WHERE quantity > 3").values()) == {1}
        assert set(scales(db, "SELECT count(DISTINCT note) FROM orders").values()) == {1}
        assert set(scales(db, "SELECT sum(total) FROM orders").values()) == {100}
        assert set(scales(db, "SELECT sum(big) FROM orders").values()) == {2_000}


def test_the_number_of_rows_is_public_where_rows_are_replaced(tmp_path):
    with open_shop(tmp_path, ROWWISE + "replace = true\n") as db:
        answer = db.sql("SELECT count(*) FROM orders", epsilon=1)
        assert answer.rows == [(203,)]
        assert "replaced" in answer.guarantee[0]["protects"]
        assert answer.guarantee[0]["epsilon"] == 0
        assert db.budget["single"].to_dict()["spent"]["epsilon"] == 0
        mean = compile_release(db, "SELECT count(*), sum(total) FROM orders").job.noise
        shares = {n.epsilon for n in mean.noise.values()}
        assert shares == {0, 1}


def test_rows_of_a_unit_beyond_the_limit_do_not_count(tmp_path):
    make_shop(
        tmp_path,
        rows=PLAIN
        + "INSERT INTO orders SELECT 1000 + i, 7, 'open', NULL, 100, 1, 1, 'x', 1 FROM range(50) AS r(i);",
    )
    with open_shop(tmp_path, UNIT) as db:
        (seen,) = db.inspect("SELECT count(*) AS n FROM orders")
        assert seen["exact"] == 450
        assert seen["softened"] == 99 * 4 + 5
        assert seen["noise_scale"] == 5


def test_a_limit_on_groups_is_enforced_and_lowers_the_noise(plain):
    query = "SELECT status, count(DISTINCT customer) AS n FROM orders GROUP BY status"
    with open_shop(plain, UNIT) as db, open_shop(plain, UNIT + "groups = 2\n") as limited:
        assert set(scales(db, query).values()) == {
            5
        }  # as many groups as are listed, and one for NULL
        assert set(scales(limited, query).values()) == {2}
        (_, free) = db.inspect(query)
        (_, kept) = limited.inspect(query)
        assert free["softened"] == [*free["exact"], 0, 0]
        assert sum(free["exact"][:3]) == 300  # every customer has orders in three groups
        assert sum(kept["softened"]) == 200


# ── prices ───────────────────────────────────────────────────────────────────────────────────────


def test_several_protections_charge_each_its_own_price(plain):
    with open_shop(plain, UNIT + ROWWISE) as db:
        answer = db.sql("SELECT count(*) FROM orders", epsilon=1)
        assert {g["protection"]: g["epsilon"] for g in answer.guarantee} == {
            "people": 1,
            "single": 0.4,  # a new row may push an old one of its unit out: two rows differ
        }
        budget = db.budget
        assert budget["people"].spent_epsilon == 1
        assert budget["single"].spent_epsilon == Fraction(2, 5)
        assert budget["people"].spent_delta == budget["single"].spent_delta == 0


def test_epsilon_is_for_the_whole_query_and_not_for_each_column(people):
    compiled = compile_release(
        people, "SELECT count(*), sum(total), avg(rate), stddev(quantity) FROM orders"
    )
    noise = compiled.job.noise
    assert sum(n.epsilon for n in noise.noise.values()) <= 1
    assert noise.costs["people"][0] <= 1
    assert noise.costs["people"][0] > Fraction(999, 1000)


def test_alternatives_are_chosen_by_name_and_named_when_left_out(plain):
    head = 'alternatives = ["people", "single"]\n'
    with open_shop(plain, UNIT + ROWWISE, head=head) as db:
        answer = db.sql("SELECT count(*) FROM orders", epsilon=1, protection="single")
        (guarantee,) = answer.guarantee
        assert guarantee["protection"] == "single"
        assert guarantee["not_covered"] == ["people"]
        assert db.budget["people"].spent_epsilon == 0
        assert db.budget["single"].spent_epsilon == 1
        both = db.sql("SELECT count(*) FROM orders", epsilon=1)
        assert len(both.guarantee) == 2


def test_delta_is_charged_only_when_keys_are_chosen(plain):
    with open_shop(plain, UNIT) as db:
        assert db.sql(BY_STATUS, epsilon=1).guarantee[0]["delta"] == 0
        assert db.budget["people"].spent_delta == 0
        answer = db.sql("SELECT score, count(*) FROM customers GROUP BY score", epsilon=1)
        assert answer.guarantee[0]["delta"] == pytest.approx(1e-5)
        assert db.budget["people"].spent_delta == Fraction(1, 100_000)
        db.sql("SELECT score, count(*) FROM customers GROUP BY score", epsilon=1, delta="1e-6")
        assert db.budget["people"].spent_delta == Fraction(11, 1_000_000)


def test_public_answers_are_exact_and_free(people):
    before = people.budget["people"]
    answer = people.sql("SELECT town, people FROM towns ORDER BY people", epsilon=1)
    assert answer.rows == [("Tartu", 95000), ("Riga", 600000), ("Oslo", 700000)]
    assert answer.release_id is None
    assert answer.error["values"] is None
    assert people.budget["people"] == before


# ── chosen keys ──────────────────────────────────────────────────────────────────────────────────

NAMES = "SELECT {what}, count(*) FROM {table} GROUP BY 1"


def test_a_key_of_one_unit_stays_hidden(people):
    # At delta 1e-13 a run, 300 runs on each of two queries show one with probability below 1e-10.
    towns = compile_release(
        people, "SELECT score, count(*) FROM customers GROUP BY score", delta="1e-13"
    )
    orders = compile_release(
        people, "SELECT note, count(*) FROM orders GROUP BY note", delta="1e-13"
    )
    for _ in range(300):
        assert towns.draw().rows == []
        assert orders.draw().rows == []


def test_keys_of_many_units_are_shown(plain):
    with open_shop(plain, UNIT) as db:
        compiled = compile_release(
            db, "SELECT score, count(*) FROM customers GROUP BY score", epsilon=10
        )
        # 33 units a key; the threshold is 3 and the noise reaches 20 with probability below e^-100.
        assert [score for score, _ in compiled.draw().rows] == [20, 21, 22]


@pytest.mark.parametrize(
    ("protections", "query"),
    [
        (UNIT, "SELECT score, count(*) FROM customers GROUP BY score"),
        (
            UNIT.replace("orders = 5", "orders = 3"),
            "SELECT note, count(*) FROM orders GROUP BY note",
        ),
        (UNIT + "groups = 2\n", "SELECT note, count(*) FROM orders GROUP BY note"),
        (ROWWISE, "SELECT note, count(*) FROM orders GROUP BY note"),
        (ROWWISE + "replace = true\n", "SELECT note, count(*) FROM orders GROUP BY note"),
        (UNIT + ROWWISE, "SELECT note, count(*) FROM orders GROUP BY note"),
    ],
)
def test_the_threshold_keeps_delta_for_all_keys_of_a_unit_together(tmp_path, protections, query):
    with open_shop(tmp_path, protections) as db:
        compiled = compile_release(db, query, epsilon=1, delta=Fraction(1, 1000))
        (bounded,) = compiled.job.prepared.bounded
        (choice,) = compiled.job.noise.choices.values()
        law = compiled.job.noise.noise[bounded.release.selector].law
        reached = max(c.groups for c in bounded.certificates)
        assert choice.groups == reached >= 1
        # What a unit brings alone is seen when the noise reaches what is missing to the threshold.
        missing = choice.threshold - max(c.contribution for c in bounded.certificates)
        allowed = float(choice.delta)
        assert choice.delta * (2 if isinstance(law, WholeNormal) else 1) == Fraction(1, 1000)
        assert 1 - (1 - reaches(law, missing)) ** reached <= allowed
        closer = 1 - (1 - reaches(law, missing - 1)) ** reached
        assert closer > allowed  # and no larger than it must be


# ── stated errors ────────────────────────────────────────────────────────────────────────────────

STATED = (
    "SELECT count(*), sum(total), avg(total), stddev_pop(total), sum(rate) / 2, sum(total) / count(*), "
    "1 + abs(sum(quantity)) FROM orders"
)  # fmt: skip


def missed(compiled, truth, draws):
    """Count, for each output, how often the true value lies outside of the stated error."""
    misses = [0] * len(truth)
    for _ in range(draws):
        shown = compiled.draw()
        for i, (value, error, right) in enumerate(
            zip(shown.rows[0], shown.errors[0], truth, strict=True)
        ):
            misses[i] += error is not None and abs(float(value) - right) > error * (1 + 1e-9)
    return misses


def test_stated_errors_hold_as_often_as_they_say(plain):
    draws = 400
    # More misses than this have probability below 1e-9 if each happens with 5 % at most.
    allowed = int(binom.isf(1e-9, draws, 0.05)) + 1
    with duckdb.connect(str(plain / "shop.duckdb"), read_only=True, config=_LOCKED) as connection:
        truth = [float(v) for v in connection.execute(STATED).fetchone()]
    with open_shop(plain, ROWWISE) as db:
        compiled = compile_release(db, STATED, epsilon=1)
        assert max(missed(compiled, truth, draws)) <= allowed
        # Three times the noise and the same stated errors: the count of misses shows it.
        fault = compiled.with_noise_times(Fraction(3))
        said = compiled.job
        tripled = Stating(fault, said)
        assert missed(tripled, truth, draws)[0] > allowed


_LOCKED = {
    "error_on_division_by_zero": "false", "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false", "enable_external_access": "false", "lock_configuration": "true",
}  # fmt: skip


class Stating:
    """Draw from one job and state the errors of another."""

    def __init__(self, fault, said):
        self.fault, self.said = fault, said

    def draw(self):
        from dataclasses import replace

        shown = self.fault.draw()
        measures = {m.column: m for b in self.said.prepared.bounded for m in b.release.measures}
        count = next(m for m in measures.values() if m.words == "number of rows")
        noise = self.said.noise.noise[count.column]
        error = noise.number(count.step, (0.0, 0.0)).error(self.said.level)
        value = float(shown.rows[0][0])
        ends = [[(value - error, value + error), *([None] * (len(shown.columns) - 1))]]
        return replace(shown, ends=ends)


def test_a_level_moves_the_error(people):
    low, high = (
        people.sql("SELECT count(*) FROM orders", epsilon=1, level=level).error["values"][0][0]
        for level in (0.5, 0.999)
    )
    assert low < high
    with pytest.raises(SecantError):
        people.sql("SELECT count(*) FROM orders", epsilon=1, level=1)
