"""Sums without any declared range (rewrite.wide): all neighbors of small databases with the oddest values there are.

What one person's rows hold moves no count of the tally by more than one, and no sum by more than its limit; no value
makes a statement fail; and no interval is printed where values may lie beyond the range.
"""

import itertools
import math
from decimal import Decimal

import numpy
import pandas
import pyarrow
import pytest

import secant
from secant.accuracy import reported_error
from secant.engines.print.print_sql import lower
from secant.errors import BackendError, Refused
from secant.noise.mechanisms import limits as limit_choices
from secant.plan.rewrites import measures
from secant.release.measured import in_steps
from secant.release.tallies import read_tallies
from secant.sensitivity import split as splitting
from secant.sensitivity.certificate import ClippedContribution
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.truncation import analysis, clipping
from secant.sql.bind import bind

VALUES = {
    "cost": [None, math.nan, math.inf, -math.inf, 1e300, -(2.0**40), 0.3, 1e-9],
    "size": [None, 2**63 - 1, -(2**63), 2**51, 3, -1],
    "amount": [None, Decimal("9999999999.99"), Decimal("-9999999999.99"), Decimal("0.01")],
}
KINDS = {"cost": pyarrow.float64(), "size": pyarrow.int64(), "amount": pyarrow.decimal128(12, 2)}
POLICY = {
    "protections": {"p": {"kind": "unit", "unit": "visits.person", "epsilon": 1000}},
    "tables": {"visits": {"columns": {"kind": {"values": [0, 1]}}}},
}


MANY = 9
"""So many reals at an end of the range come to more than 64 bits hold."""


def worlds(column):
    """All pairs of values of one person with many rows, beside one person with one row, and a row of nobody."""
    for first, second, other in itertools.product(VALUES[column], repeat=3):
        yield [*[(0, 0, first)] * MANY, *[(0, 1, second)] * 2, (1, 0, other), (None, 1, other)]


def connected(rows, column):
    person, kind, value = zip(*rows, strict=True) if rows else ((), (), ())
    table = pyarrow.table(
        {
            "person": pyarrow.array(person, pyarrow.int64()),
            "kind": pyarrow.array(kind, pyarrow.int64()),
            column: pyarrow.array(value, KINDS[column]),
        }
    )
    return secant.connect({"visits": table}, policy=POLICY, ledger=":memory:")


def read(rows, column, text):
    """Give the counts of the tally, and for some limits the sums cut down to them, by group; and the limits."""
    with connected(rows, column) as db:
        plan = bind(text, db.catalog, None)
        held = db.policy.protections
        parts = splitting.split(text, plan, db.policy, held, db.catalog, PublicFacts())
        (bounded,) = parts.bounded
        (measure,) = bounded.release.measures
        assert measure.wide
        bound = bounded.certificates[0].bounds[measure.column]
        assert isinstance(bound, ClippedContribution)
        made = bound.contributions
        with db._backend.session() as session:

            def ask(statement):
                return session.rows(lower(statement, session.dialect))

            tallies = made.at_once or made.above
            found = read_tallies(tallies, ask(tallies.plan), lambda _, x: in_steps(x, measure))
            above = found[measure.column].above
            sums = {}
            for limit in (bound.limits[0], bound.limits[3], bound.limits[-1]):
                rows = ask(made.clipped({measure.column: limit}))
                sums[limit] = {row[:-1]: in_steps(row[-1], measure) for row in rows}
            return above, sums, bound.fine


def moves(column, text, world):
    """Give the largest move of a count, and of a sum as a share of its limit, over all persons that may be missing."""
    above, sums, fine = read(world, column, text)
    counted = cut = 0
    for gone in (0, 1):
        less, others, _ = read([r for r in world if r[0] != gone], column, text)
        apart = [a - b for a, b in zip(above, less, strict=True)]
        assert all(x in (0, 1) for x in apart), (world, gone, apart)
        counted = max(counted, *apart)
        for limit, groups in sums.items():
            keys = groups.keys() | others[limit].keys()
            moved = sum(abs(groups.get(k, 0) - others[limit].get(k, 0)) for k in keys)
            cut = max(cut, moved / (limit * fine))
    return counted, cut


TEXTS = (
    "SELECT sum({0}) AS x FROM visits",
    "SELECT kind, sum({0}) AS x FROM visits GROUP BY kind",
)


@pytest.mark.parametrize("text", TEXTS, ids=["alone", "by group"])
@pytest.mark.parametrize("column", list(VALUES))
def test_one_person_moves_a_sum_by_its_limit_whatever_the_values_are(column, text):
    every = list(worlds(column))
    some = every[:: max(1, len(every) // 24)]
    found = [moves(column, text.format(column), world) for world in some]
    assert max(cut for _, cut in found) <= 1
    assert max(cut for _, cut in found) > 0.9  # the check has teeth
    assert max(counted for counted, _ in found) == 1


def test_cutting_down_to_twice_the_limit_would_be_noticed(monkeypatch):
    """A planted fault: what a unit adds is cut down to twice the limit that noise is drawn for."""
    honest = analysis.cut_down
    monkeypatch.setattr(
        analysis,
        "cut_down",
        lambda a, limits: honest(a, {c: 2 * x for c, x in limits.items()}),
    )
    world = [(0, 0, 2**51), (1, 0, 3)]
    assert moves("size", TEXTS[0].format("size"), world)[1] > 1


def test_steps_that_leave_the_numbers_of_engines_are_refused(monkeypatch):
    """A planted fault: steps so fine that a row has more of them than 64 bits hold."""
    monkeypatch.setattr(measures, "REAL_BITS", 100)
    with pytest.raises(Refused):
        moves("cost", TEXTS[0].format("cost"), [(0, 0, 1e300), (1, 0, 0.5)])


def test_sums_beyond_64_bits_would_be_noticed(monkeypatch):
    """A planted fault: what a unit adds to a group is taken as it is, and the engine fails on somebody's rows."""
    monkeypatch.setattr(clipping, "held", lambda added, measure: added)
    with pytest.raises(BackendError):
        moves("cost", TEXTS[1].format("cost"), [*[(0, 0, -math.inf)] * MANY, (1, 0, 0.5)])


# ── what is said of the error ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def exact(monkeypatch):
    """Draw no noise on tallies, so that which branch is taken is no matter of luck."""
    monkeypatch.setattr(limit_choices, "add_discrete_laplace", lambda values, *, scale: values)


ALONE = {"protections": POLICY["protections"]}


def answered(values, text="SELECT sum(x) AS s FROM visits", **columns):
    frame = pandas.DataFrame({"person": range(len(values)), "x": values, **columns})
    with secant.connect({"visits": frame}, policy=ALONE, ledger=":memory:") as db:
        return db.sql(text, epsilon=1)


USUAL = list(numpy.random.default_rng(3).lognormal(3, 1, 2000))


def test_a_usual_error_is_printed_and_nothing_was_found_first(exact):
    answer = answered(USUAL)
    assert answer.error["kind"] == "usual"
    width = answer.high[0][0] - answer.low[0][0]
    assert width < 0.5 * sum(USUAL)
    assert abs(answer.rows[0][0] - sum(USUAL)) < 10 * width
    assert answer.guarantee[0]["epsilon"] == 1
    assert not answer.error["leaves_out"]["undeclared"]
    assert answer.warnings == ()


def test_certain_ends_are_open(exact):
    certain = answered(USUAL).certain
    assert (certain.low[0][0], certain.high[0][0]) == (None, None)


@pytest.mark.parametrize("size", [1e13, 1e-6])
def test_values_beyond_the_range_or_below_its_steps_have_no_usual_error(exact, size):
    answer = answered([x * size for x in USUAL])
    assert answer.error["kind"] != "usual"
    assert (answer.low[0][0], answer.high[0][0]) == (None, None)


def test_rows_that_cancel_leave_certain_ends_open(exact):
    """Nobody is counted above any limit, and two rows that lie beyond the range cancel in it."""
    answer = answered([*USUAL, 1e18], other=[0.0] * len(USUAL) + [-9e17])
    assert answer.certain.high[0][0] is None
    both = answered([3] * 2000, "SELECT sum(x) AS s FROM visits")
    assert (both.certain.low[0][0], both.certain.high[0][0]) == (None, None)


def test_believing_the_range_would_be_noticed(exact, monkeypatch):
    """A planted fault: what one row adds is taken to be bounded, since a range is enforced."""
    honest = reported_error.below_and_above
    monkeypatch.setattr(reported_error, "below_and_above", lambda *_: (0.0, 0.0))
    certain = answered([3] * 2000).certain
    assert certain.high[0][0] is not None
    monkeypatch.setattr(reported_error, "below_and_above", honest)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(s) AS s FROM (SELECT person, sum(x) AS s FROM visits GROUP BY person)",
        "SELECT sum(x) AS s FROM visits",
        "SELECT kind, sum(x) AS s FROM visits WHERE kind IN (0, 1) GROUP BY kind",
    ],
)
@pytest.mark.parametrize("limits", [{}, {"visits": 1}, {"visits": 5000}])
def test_no_noise_is_for_all_that_a_wide_row_may_add(exact, text, limits):
    frame = pandas.DataFrame({"person": range(2000), "x": numpy.arange(2000) % 50, "kind": 1})
    protection = {**ALONE["protections"]["p"], "limits": limits}
    with secant.connect(
        {"visits": frame}, policy={"protections": {"p": protection}}, ledger=":memory:"
    ) as db:
        answer = db.sql(text, epsilon=1)
        assert abs(answer.rows[-1][-1] - 49_000) < 20_000
        assert answer.high[-1][-1] < 80_000


def test_quotients_and_order_statistics_still_find_what_they_need():
    frame = pandas.DataFrame({"person": range(2000), "x": USUAL, "y": USUAL})
    with secant.connect({"visits": frame}, policy=ALONE, ledger=":memory:") as db:
        answer = db.sql("SELECT stddev(x) AS a, sum(y) AS s FROM visits", epsilon=1)
        assert [w.code for w in answer.warnings] == ["WRN-009"]
        assert answer.error["leaves_out"]["undeclared"] == ["visits.x"]
        assert answer.high[0][0] is None
        assert answer.high[0][1] is not None
        assert db.policy.column("visits", "y").range is None
        # the range that was found for the average does not limit a sum
        after = db.sql("SELECT sum(x) AS s FROM visits", epsilon=1)
        assert not after.error["leaves_out"]["undeclared"]
