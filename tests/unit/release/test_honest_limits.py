"""Limits of what one person adds: none that nobody declared, averages cut together, and what was cut is said."""

import math
from fractions import Fraction
from types import SimpleNamespace

import duckdb
import pytest
from scipy.stats import binom

import secant
from chance import chance
from secant.accuracy import reported_error as stated
from secant.errors import Refused
from secant.noise.mechanisms.limits import choose_limit, cut_at_most, scores_of
from secant.plan.rewrites import enforce
from secant.plan.rewrites.quotients import quotients_of
from secant.plan.rewrites.rewrite import normalize
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity import split as splitting
from secant.sql.bind import from_sql

PEOPLE, EVENTS = 2_000, 30_000
POLICY = """
[database]
source = "duckdb:events.duckdb"
[tables.hits]
{key}
[tables.hits.columns]
width = {{ range = [0, 4000] }}
day = {{ values = [0, 1, 2], null = false }}
[protections.people]
kind = "unit"
unit = "hits.person"
epsilon = 100000
delta = 1e-6
{limits}
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    with duckdb.connect(str(folder / "events.duckdb")) as db:
        db.execute(
            f"CREATE TABLE hits AS SELECT CAST(hash(i) % {PEOPLE} AS INTEGER) AS person, "
            "CAST(i % 3 AS INTEGER) AS day, 1000.0 + (hash(i * 7) % 1000) AS width "
            f"FROM range({EVENTS}) AS r(i)"
        )
        truth = db.execute(
            "SELECT count(*), sum(width), avg(width), stddev(width) FROM hits"
        ).fetchone()
    return SimpleNamespace(folder=folder, truth=[float(v) for v in truth])


def connect(events, name, limits="", key=""):
    path = events.folder / f"{name}.toml"
    path.write_text(POLICY.format(limits=limits, key=key))
    return secant.connect(policy=path, ledger=events.folder / f"{name}.ledger")


ALL = "SELECT count(*), sum(width), avg(width), stddev(width) FROM hits"


def test_an_event_log_without_any_limit_is_counted_whole(events):
    with connect(events, "bare") as db:
        answer = db.sql(ALL, epsilon=40)  # not noise is looked for, but what is left out
    for shown, truth in zip(answer.rows[0], events.truth, strict=True):
        assert float(shown) == pytest.approx(truth, rel=0.2)
    # What it was before: one row of each person counted, and the average was drawn to zero.
    assert answer.rows[0][0] > 2 * PEOPLE


def test_one_row_of_each_unit_is_what_a_key_says(events):
    with connect(events, "keyed", key='key = "person"') as db:
        told = db.explain("SELECT count(*) FROM hits").text
    assert "at most 1 row of a unit counts" in told
    with connect(events, "unkeyed", key='key = ["person", "day"]') as db:
        told = db.explain("SELECT count(*) FROM hits").text
    assert "rows of a unit are not limited" in told


MEDIAN = "SELECT median(width) FROM hits"


def test_order_statistics_need_no_limit(events):
    with connect(events, "ranks") as db:
        answer = db.sql(MEDIAN, epsilon=20)
    assert [w for w in answer.warnings if w.code == "WRN-009"] == []
    assert not (answer.error["leaves_out"] or {}).get("found")
    assert answer.rows[0][0] == pytest.approx(1500, rel=0.1)
    low, high = answer.low[0][0], answer.high[0][0]
    assert 0 < low <= answer.rows[0][0] <= high < 3000


def test_order_statistics_under_two_protections_ask_for_a_limit(events):
    second = '[protections.rows]\nkind = "rows"\nepsilon = 9'
    with connect(events, "two ranks", second) as db, pytest.raises(Refused) as caught:
        db.sql(MEDIAN, epsilon=1)
    assert "limits.hits" in str(caught.value.details) + str(caught.value.hint)


BINDING = "[protections.people.limits]\nhits = 5"


def test_a_limit_that_binds_hardly_moves_an_average(events):
    with connect(events, "binding", BINDING) as db:
        answer = db.sql("SELECT avg(width), stddev(width) FROM hits", epsilon=20)
    assert answer.rows[0][0] == pytest.approx(events.truth[2], rel=0.02)
    assert answer.rows[0][1] == pytest.approx(events.truth[3], rel=0.2)


def test_separate_limits_for_sum_and_count_would_be_noticed(events, monkeypatch):
    monkeypatch.setattr(enforce, "QUOTIENTS", ())
    with connect(events, "apart", BINDING) as db:
        answer = db.sql("SELECT avg(width) FROM hits", epsilon=20)
    assert answer.rows[0][0] != pytest.approx(events.truth[2], rel=0.02)


QUOTIENTS = (
    "SELECT sum(width) / count(*) FROM hits",
    "SELECT s / n FROM (SELECT sum(width) AS s, count(*) AS n FROM hits) AS x",
    "SELECT sum(width) / nullif(count(*), 0) FROM hits",
)


@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_that_are_written_out_are_cut_together(events, text):
    with connect(events, f"written{QUOTIENTS.index(text)}", BINDING) as db:
        answer = db.sql(text, epsilon=20)
    assert answer.rows[0][0] == pytest.approx(events.truth[2], rel=0.02)


def test_shares_are_cut_together(events):
    text = "SELECT 100.0 * sum(CASE WHEN day = 0 THEN 1 ELSE 0 END) / count(*) FROM hits"
    with connect(events, "share", BINDING) as db:
        assert db.sql(text, epsilon=20).rows[0][0] == pytest.approx(100 / 3, rel=0.05)


def test_separate_limits_of_a_written_quotient_would_be_noticed(events, monkeypatch):
    monkeypatch.setattr(splitting, "quotients_of", lambda plan: ())
    with connect(events, "written apart", BINDING) as db:
        answer = db.sql(QUOTIENTS[0], epsilon=20)
    assert answer.rows[0][0] != pytest.approx(events.truth[2], rel=0.02)


def test_only_sums_over_the_same_rows_share_a_weight():
    known = catalog(Table("hits", (("person", t.INTEGER), ("width", t.DOUBLE))))

    def families(text):
        return [len(f) for f in quotients_of(normalize(from_sql(text, known)))]

    assert families("SELECT sum(width) / count(*) FROM hits") == [2]
    assert families("SELECT sum(width), count(*) FROM hits") == []
    assert families("SELECT count(*) / 2 FROM hits") == []
    apart = "SELECT a.s / b.n FROM (SELECT sum(width) AS s FROM hits) AS a, (SELECT count(*) AS n FROM hits) AS b"
    assert families(apart) == []


def test_averages_of_groups_are_cut_together_too(events):
    with connect(events, "groups") as db:
        answer = db.sql("SELECT day, avg(width) FROM hits GROUP BY day", epsilon=20)
    assert [row[1] for row in answer.rows] == pytest.approx([events.truth[2]] * 3, rel=0.05)


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def test_chosen_limits_say_how_many_units_they_cut(events):
    with connect(events, "said") as db:
        error = db.sql(ALL, epsilon=4, level="0.999999999").error
    left = error["leaves_out"]
    assert set(left) == {
        "units_cut_at_most", "limit", "level", "measures", "groups", "ranges", "moves", "personal", "rows_without_unit",
        "undeclared", "totals",
    }  # fmt: skip
    assert left["level"] == 1 - 5e-10
    assert left["units_cut_at_most"] == max(m["units_cut_at_most"] for m in left["measures"])
    # Nothing bounds what one person may add: for certain, a count has a low end only, an average its range.
    assert error["kind"] == "certain"  # no tally tells what is missed once in a billion
    assert error["high"][0][:2] == [None, None]
    assert error["low"][0][0] <= events.truth[0]
    assert (error["low"][0][2], error["high"][0][2]) == (0.0, 4000.0)
    assert all(x is not None for x in error["noise"][0])


def test_what_a_limit_usually_cuts_is_in_the_error(events):
    with connect(events, "usual") as db:
        error = db.sql("SELECT count(*), sum(width) FROM hits", epsilon=4, level=0.99).error
    assert error["kind"] == "usual"
    assert all(x is not None for side in ("low", "high") for x in error[side][0])
    assert error["certain"]["high"] == [[None, None]]
    assert error["certain"]["low"][0][0] <= error["low"][0][0]
    assert error["not_seen"]["people"] == 18
    assert error["not_seen"]["beyond"] in [m["limit"] for m in error["leaves_out"]["measures"]]


def test_declared_limits_are_said_too(events):
    with connect(events, "declared", "[protections.people.limits]\nhits = 60") as db:
        error = db.sql("SELECT count(*) FROM hits", epsilon=4, level="0.9999999999").error
    assert error["leaves_out"]["units_cut_at_most"] is None
    assert error["leaves_out"]["limit"] == 60
    assert error["low"][0][0] < events.truth[0] < error["high"][0][0]


def test_nothing_is_left_out_where_rows_are_protected(tmp_path, events):
    path = events.folder / "rows.toml"
    path.write_text(
        '[database]\nsource = "duckdb:events.duckdb"\n[protections.rows]\nkind = "rows"\nepsilon = 9\n'
    )
    with secant.connect(policy=path, ledger=tmp_path / "rows.ledger") as db:
        assert db.sql("SELECT count(*) FROM hits", epsilon=1).error["leaves_out"] is None


def test_declared_ranges_are_said_and_so_are_rows_of_nobody(events):
    with connect(events, "ranges") as db:
        left = db.sql("SELECT avg(width), count(*) FROM hits", epsilon=4).error["leaves_out"]
        assert left["ranges"] == [{"measure": "sum of hits.width", "low": 0.0, "high": 4000.0}]
        assert left["rows_without_unit"]
        # What cannot be outside of a range needs no declaration, and no remark.
        text = "SELECT sum(CASE WHEN day = 1 THEN 1 ELSE 0 END) FROM hits"
        assert db.sql(text, epsilon=4).error["leaves_out"]["ranges"] == []


def test_ranges_are_said_where_rows_are_protected(tmp_path, events):
    path = events.folder / "rows_with_range.toml"
    path.write_text(
        '[database]\nsource = "duckdb:events.duckdb"\n[tables.hits.columns]\nwidth = { range = [0, 4000] }\n'
        '[protections.rows]\nkind = "rows"\nepsilon = 9\n'
    )
    with secant.connect(policy=path, ledger=tmp_path / "rows.ledger") as db:
        left = db.sql("SELECT sum(width) FROM hits", epsilon=1).error["leaves_out"]
    assert left["ranges"] == [{"measure": "sum of hits.width", "low": 0.0, "high": 4000.0}]
    assert (left["measures"], left["limit"], left["rows_without_unit"]) == ([], None, False)


GROUPS = "[protections.people.limits]\nhits = 60\ngroups = 2"
BY_DAY = "SELECT day, count(DISTINCT person) FROM hits GROUP BY day"


def test_a_limit_of_groups_leaves_no_sums_out(events):
    with connect(events, "grouped", GROUPS) as db:
        answer = db.sql("SELECT day, count(*) FROM hits GROUP BY day", epsilon=2000)
        told = db.explain("SELECT day, count(*) FROM hits GROUP BY day").text
    assert "groups of a unit" not in told
    assert answer.error["leaves_out"]["groups"] is None
    assert sum(row[1] for row in answer.rows) == pytest.approx(EVENTS, rel=0.001)


def test_where_a_limit_of_groups_may_cut_the_upper_end_is_open(events, monkeypatch):
    with connect(events, "open", GROUPS) as db:
        answer = db.sql(BY_DAY, epsilon=2000)
        assert answer.error["leaves_out"]["groups"] == 2
        assert answer.error["high"] == [[None, None]] * 3
        low = [row[1] for row in answer.error["low"]]
        assert all(end <= PEOPLE for end in low)
        assert all(x is not None for _, x in answer.error["noise"])
        # Most people come on all three days, and count on the first two: the old ends miss the truth.
        monkeypatch.setattr(stated, "groups_cut", lambda release: None)
        blind = db.sql(BY_DAY, epsilon=2000)
    assert blind.error["high"][2][1] < PEOPLE * 0.9


def test_a_limit_of_groups_that_cannot_cut_is_not_said(events):
    with connect(events, "wide", GROUPS.replace("groups = 2", "groups = 3")) as db:
        error = db.sql(BY_DAY, epsilon=20).error
    assert error["leaves_out"]["groups"] is None
    assert error["high"][0][1] is not None


BOUND = (
    ("SELECT median(width) FROM hits", ["median of hits.width", 0.0, 4000.0]),
    ("SELECT day, max(width) FROM hits GROUP BY day", ["maximum of hits.width", 0.0, 4000.0]),
    ("SELECT mode(day) FROM hits", ["most frequent of hits.day", None, None]),
    (
        "SELECT median(s) FROM (SELECT person, sum(CAST(width AS DOUBLE)) AS s FROM hits GROUP BY person) AS x",
        ["inner sum of hits.width", 0.0, 4000.0],
    ),
)


@pytest.mark.parametrize(("text", "kept"), BOUND)
def test_ranks_and_inner_sums_say_which_ranges_they_keep_to(events, text, kept):
    """A median at the end of its range, with nothing said, would be believed."""
    with connect(
        events, f"kept{BOUND.index((text, kept))}", "[protections.people.limits]\nhits = 60"
    ) as db:
        answer = db.sql(text, epsilon=4)
    assert (
        dict(zip(("measure", "low", "high"), kept, strict=True))
        in answer.error["leaves_out"]["ranges"]
    )
    assert kept[0] in str(answer)


def test_ranks_of_what_no_data_can_exceed_say_nothing(events):
    text = "SELECT median(CASE WHEN day = 0 THEN 0 ELSE 1 END) FROM hits"
    with connect(events, "within", "[protections.people.limits]\nhits = 60") as db:
        assert db.sql(text, epsilon=4).error["leaves_out"]["ranges"] == []


# ── the number of units that were cut (truncation.cut) ────────────────────────────────────────────────────

LIMITS = tuple(2**i for i in range(11))
SPENT = CHOOSING, NOISING = Fraction(1, 2), Fraction(2)


def misses(draws, bound_of):
    """Count how often more units were cut than was said, for a heavy tail of units."""
    draw = chance()
    sizes = [min(1024, int(draw.paretovariate(0.8))) for _ in range(400)]
    above = [sum(s > limit for s in sizes) for limit in LIMITS]
    found = 0
    for _ in range(draws):
        limit = choose_limit(LIMITS, above, CHOOSING, NOISING, 1)
        found += above[LIMITS.index(limit)] > bound_of(limit)
    return found


def test_no_more_units_are_cut_than_is_said():
    draws = 2_000
    allowed = int(binom.isf(1e-9, draws, 0.025)) + 1
    assert misses(draws, lambda limit: cut_at_most(LIMITS, limit, *SPENT, 1, 0.025)) <= allowed
    # A bound that forgets how much the choice may stray is found out.
    assert misses(draws, lambda limit: 0) > allowed


def test_the_bound_is_made_of_public_numbers_only():
    loose = cut_at_most(LIMITS, 4, *SPENT, 1, 0.025)
    tight = cut_at_most(LIMITS, 1024, *SPENT, 1, 0.025)
    assert tight < loose
    least = scores_of(LIMITS, [0] * len(LIMITS), CHOOSING, NOISING, 1)
    reach = math.log(len(LIMITS) / 0.025) / float(CHOOSING)
    assert loose >= float(least[2] - least[-1]) + reach
    assert cut_at_most((7,), 7, *SPENT, 1, 0.025) == 0
