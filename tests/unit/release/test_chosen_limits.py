"""Limits of what one unit adds: when they are chosen, that choosing is private, that nothing leaks around them."""

import itertools
import math
from fractions import Fraction

import pandas
import pytest

import secant
from apart import apart
from private_shop import ROWWISE, UNIT, compile_release, open_shop
from secant.engines.print.print_sql import lower
from secant.errors import InternalError, Refused
from secant.noise.limited import ClippedNoise, LimitToTally
from secant.noise.mechanisms.limits import choose_limit, race, scores_of
from secant.noise.secrecy import Private
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.facts.facts import Facts
from secant.release.measured import _Reader, in_steps
from secant.release.tallies import read_tallies
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import ClippedContribution
from secant.sensitivity.split import split
from secant.sensitivity.truncation.analysis import TruncationAnalysis
from secant.sql.bind import bind
from secant.stages.open import open_snapshot

FEW = "SELECT count(*), sum(total) FROM orders WHERE status = 'open' AND quantity < 1"
ALL = "SELECT count(*), sum(total) FROM orders"


def policy(mode: str | None = None, limits: bool = True) -> str:
    text = UNIT if limits else UNIT.split("[protections.people.limits]")[0]
    return (
        text if mode is None else text.replace("composition", f'truncation = "{mode}"\ncomposition')
    )


def bounds(directory, protections: str, query: str):
    with open_shop(directory, protections) as db:
        job = compile_release(db, query).job
    (bounded,) = job.prepared.bounded
    (certificate,) = bounded.certificates
    return list(certificate.bounds.values()), job


@pytest.mark.parametrize(
    ("mode", "query", "several"),
    [
        (None, FEW, [True, True]),
        # What rows sum up to is far less than their number times the declared range: no limit of rows says it.
        (None, ALL, [False, True]),
        ("fixed", FEW, [False, False]),
        ("chosen", ALL, [True, True]),
        ("race", ALL, [True, True]),
    ],
)
def test_public_facts_and_the_owner_decide_whether_limits_are_chosen(
    shop_directory, mode, query, several
):
    found, _ = bounds(shop_directory, policy(mode), query)
    assert all(isinstance(b, ClippedContribution) for b in found)
    assert [len(b.limits) > 1 for b in found] == several
    assert [b.race for b in found] == [mode == "race"] * 2


def test_the_largest_limit_is_what_was_declared(shop_directory):
    chosen, _ = bounds(shop_directory, policy("chosen"), ALL)
    fixed, job = bounds(shop_directory, policy("fixed"), ALL)
    assert [b.limits[-1] for b in chosen] == [b.limits[0] for b in fixed] == [5, 5 * 100 * 100]
    assert all(type(n) is ClippedNoise for n in job.noise.noise.values())


def test_a_tally_reaches_down_to_usual_people_however_generous_limits_are(shop_directory):
    """Its lowest octave was half a usual row times the limit of rows: nobody was in it, and noise was for that."""
    text = "SELECT sum(total) AS s FROM orders"
    for limits in (5, 5000):
        generous = policy().replace("orders = 5", f"orders = {limits}")
        assert f"orders = {limits}" in generous
        (bound,), job = bounds(shop_directory, generous, text)
        (noise,) = job.noise.noise.values()
        assert type(noise) is LimitToTally
        assert bound.limits[0] <= 100 * 100 // 8
        assert bound.limits[-1] == limits * 100 * 100


def test_a_tally_sees_units_that_add_one_row(shop_directory):
    found, _ = bounds(shop_directory, policy("chosen"), "SELECT count(*) FROM orders")
    (bound,) = found
    assert bound.octaves
    assert bound.limits[0] == 1


def test_declared_limits_are_kept_to_where_an_error_has_to_be_known(shop_directory):
    """A limit that is chosen is known with the answer only; one that is declared says the error beforehand."""
    text = "SELECT sum(total) AS s FROM orders"
    with open_shop(shop_directory, policy()) as db:
        for numbers in ({"error": 5000}, {"epsilon": 1, "max_error": 10**6}):
            answer = db.sql(text, **numbers)
            assert [m for m in answer.mechanisms if "choosing" in m] == [], numbers
            assert not answer.error["leaves_out"]["measures"][0]["units_cut_at_most"]
        assert [m for m in db.sql(text, epsilon=1).mechanisms if "choosing" in m]


def test_limits_need_not_be_declared(shop_directory):
    with open_shop(shop_directory, policy(limits=False)) as db:
        answer = db.sql(
            "SELECT count(*), sum(total), count(DISTINCT customer) FROM orders", epsilon=50
        )
        assert "leaves_out" in answer.error
        assert {m.get("limit") is not None for m in answer.mechanisms if "choosing" in m} == {True}
        assert "leaves_out" in db.sql("SELECT count(DISTINCT note) FROM orders", epsilon=50).error
        # Where no limit can be chosen for each sum, one of rows is found, and paid once.
        text = "SELECT sum(DISTINCT total) FROM orders"
        # It is said beforehand, at the price of the whole question: in words as to programs.
        told = db.explain(text, epsilon=1)
        (promised,) = told.to_dict()["guarantee"]
        assert promised["epsilon"] == 1
        assert f"  {promised['protection']}: epsilon 1, delta" in str(told)
        first, second = (db.sql(text, epsilon=1) for _ in range(2))
        assert [g["epsilon"] for g in first.guarantee] == [1]
        assert "WRN-009" in {w.code for w in first.warnings}
        assert "WRN-009" not in {w.code for w in second.warnings}
        (found,) = first.error["leaves_out"]["found"]
        assert (found["table"], found["column"], found["low"]) == ("orders", None, None)
    two = ROWWISE + policy(limits=False)
    with open_shop(shop_directory, two) as db, pytest.raises(Refused):
        db.sql("SELECT sum(DISTINCT total) FROM orders", epsilon=1)
    with open_shop(shop_directory, policy("fixed", limits=False)) as db, pytest.raises(Refused):
        db.sql("SELECT count(*) FROM orders", epsilon=1)


def test_a_race_measures_what_each_limit_alone_would(shop_directory):
    found, job = bounds(
        shop_directory, policy("race"), "SELECT status, sum(total) FROM orders GROUP BY status"
    )
    (bound,) = found
    (column,) = [m.column for m in job.prepared.bounded[0].release.measures]
    made = bound.contributions
    customers = [{"id": i, "town": "x", "age": 1} for i in range(3)]
    orders = [
        {"id": i, "customer": i % 3, "status": ("open", "paid")[i % 2], "total": 7 * i}
        for i in range(9)
    ]
    names = {
        f.name.split(".")[-1] for s in _scans(made.raced({column: bound.limits})) for f in s.columns
    }
    tables = {
        "orders": [{c: row.get(c) for c in names} for row in orders],
        "customers": [{c: row.get(c) for c in names} for row in customers],
    }
    raced = {row[0]: row[1:] for row in compiled(made.raced({column: bound.limits}))(tables)}
    for index, limit in enumerate(bound.limits):
        alone = {row[0]: row[1] for row in compiled(made.clipped({column: limit}))(tables)}
        assert {key: values[index] for key, values in raced.items()} == alone


@pytest.mark.parametrize("mode", ["chosen", "race"])
def test_what_is_asked_at_once_is_what_is_asked_apart(shop_directory, mode):
    with open_shop(shop_directory, policy(mode)) as db:
        job = compile_release(
            db, "SELECT count(*), sum(total), sum(big), sum(rate) FROM orders"
        ).job
        (bounded,) = job.prepared.bounded
        (certificate,) = bounded.certificates
        wanted = {c: b for c, b in certificate.bounds.items() if not b.race}
        made = next(iter(wanted.values())).contributions if wanted else None
        if mode == "race":
            assert len(wanted) < len(certificate.bounds)
        assert made is not None
        measures = {m.column: m for m in bounded.release.measures}
        tallies = read_tallies(
            made.at_once,
            apart(db).rows(lower(made.at_once.plan, apart(db).dialect)),
            lambda c, value: in_steps(value, measures[c]),
        )
        for index in range(max(len(b.limits) for b in wanted.values())):
            limits = {c: b.limits[min(index, len(b.limits) - 1)] for c, b in wanted.items()}
            (alone,) = apart(db).rows(lower(made.clipped(limits), apart(db).dialect))
            edges = made.at_once.limits
            cut = {c: b.fine * tallies[c].cut[edges[c].index(limits[c])] for c, b in wanted.items()}
            steps = zip(wanted, alone, strict=True)
            assert cut == {c: in_steps(v, measures[c]) for c, v in steps}


def test_with_one_limit_there_is_nothing_to_count(shop_directory):
    found, _ = bounds(shop_directory, policy("fixed"), ALL)
    assert [b.contributions.at_once or b.contributions.above for b in found] == [None, None]


KEPT = (
    "SELECT status, count(*), sum(total), sum(rate) FROM orders GROUP BY status",
    "SELECT avg(total) FROM orders",
    "SELECT status, avg(total) FROM orders GROUP BY status",
    "SELECT status, count(DISTINCT quantity) FROM orders GROUP BY status",
)


@pytest.mark.parametrize("text", KEPT)
def test_what_each_unit_adds_is_added_up_once_with_the_same_result(shop_directory, text):
    with open_shop(shop_directory, policy("chosen")) as db:
        job = compile_release(db, text).job
        (b,) = job.prepared.bounded
        for units in job.readings[b.release.name].units.values():
            made, limits = units.made, {c: x.bound.limits for c, x in units.clipped.items()}
            assert made.above is not None
            with db._backend.session() as session:
                reader = _Reader(b, job, job.readings[b.release.name], session)
                written = reader._beginning_with(made.each)
                for place in (0, 1, 2):
                    chosen = {c: x[(len(x) - 1) * place // 2] for c, x in limits.items()}
                    for plan in (made.above.plan, made.clipped(chosen)):
                        assert "secant_kept" in written(plan)
                        # A unit's rows are read from what was kept, and from nowhere else.
                        assert "secant_source" not in written(plan)
                        again = session.rows(lower(plan, session.dialect))
                        assert sorted(session.rows(written(plan)), key=repr) == sorted(
                            again, key=repr
                        )


def _scans(plan):
    from secant.plan import nodes as n

    return [s for s in n.walk(plan) if isinstance(s, n.Scan)]


# ── choosing is private ──────────────────────────────────────────────────────────────────────────


def chances(scores, sharpness: Fraction) -> list[float]:
    """Permute-and-flip by its definition: flip in random order until one stands."""
    best = max(scores)
    keep = [math.exp(-float((best - s) * sharpness)) for s in scores]
    found = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * keep[i] / len(orders)
            left *= 1 - keep[i]
    return found


@pytest.mark.parametrize("above", [(9, 4, 1, 0), (3, 3, 3, 3), (40, 12, 2, 1), (1, 0, 0, 0)])
@pytest.mark.parametrize("groups", [1, 7])
def test_one_unit_more_moves_the_choice_by_epsilon_at_most(above, groups):
    limits, choosing, noising = (2, 5, 9, 20), Fraction(1, 2), Fraction(2)
    before = chances(scores_of(limits, above, choosing, noising, groups), choosing)
    for reached in range(len(limits) + 1):
        after = tuple(a + (i < reached) for i, a in enumerate(above))
        moved = chances(scores_of(limits, after, choosing, noising, groups), choosing)
        for a, b in zip(before, moved, strict=True):
            assert abs(math.log(a / b)) <= float(choosing) + 1e-9


def test_counting_a_unit_twice_would_be_noticed():
    """The check above has teeth: counts that move by three break it."""
    limits, choosing, noising = (2, 5, 9, 20), Fraction(1, 2), Fraction(2)
    before = chances(scores_of(limits, (9, 4, 1, 0), choosing, noising, 1), choosing)
    after = chances(scores_of(limits, (12, 7, 4, 0), choosing, noising, 1), choosing)
    worst = max(abs(math.log(a / b)) for a, b in zip(before, after, strict=True))
    assert worst > float(choosing)


def test_clear_cases_are_chosen_well(shop_directory):
    (bound, _), _ = bounds(shop_directory, policy("chosen"), ALL)
    crowd = [100_000 if limit < 3 else 0 for limit in bound.limits]
    assert choose_limit(bound.limits, crowd, Fraction(1), Fraction(4), 1) >= 3


def test_a_race_is_won_from_below():
    limits, truth = (1, 2, 4, 8), 10_000
    values = [[truth // 4, truth // 2, truth, truth]]
    wins = [race(limits, values, Fraction(1, 4))[0] for _ in range(300)]
    assert (
        sum(w > truth for w in wins) <= 90
    )  # 1 in 10 is allowed; 90 of 300 has chance below 1e-15
    assert sorted(wins)[150] > truth * 0.95


# ── nothing goes around ──────────────────────────────────────────────────────────────────────────


def test_beside_another_protection_the_declared_limits_hold(shop_directory):
    both = (
        policy("chosen")
        + '\n[protections.single]\nkind = "rows"\ntables = ["orders"]\nepsilon = 9\n'
    )
    with open_shop(shop_directory, both) as db:
        job = compile_release(db, ALL).job
    (bounded,) = job.prepared.bounded
    for certificate in bounded.certificates:
        assert all(isinstance(b, GlobalBound) for b in certificate.bounds.values())
        assert "truncation.clip" not in {s.rule for s in certificate.derivation}


def test_a_measure_that_moves_is_never_shown_without_noise(shop_directory):
    _, job = bounds(shop_directory, policy("chosen"), ALL)
    noise = next(iter(job.noise.noise.values()))
    with pytest.raises(InternalError):
        noise.draw(Private([3]))
    with pytest.raises(InternalError):
        noise.key_choice(Fraction(1, 10**6), 1, 1)


def test_the_analysis_refuses_other_kinds(shop_directory):
    rows = '\n[protections.single]\nkind = "rows"\ntables = ["orders"]\nepsilon = 9\n'
    with open_shop(shop_directory, rows) as db:
        plan = bind(ALL, db.catalog)
        with open_snapshot(plan, db._source) as snapshot:
            facts = snapshot.facts
            prepared = split(ALL, plan, db.policy, db.policy.protections, db.catalog, facts)
        (bounded,) = prepared.bounded
        from secant.sensitivity.interface import Request

        request = Request(bounded.release, Facts(db.policy, db.catalog), db.policy.protections[0])
    assert TruncationAnalysis().bound(request).rule == "truncation.clip"


def test_people_with_one_row_each_are_seen():
    """A tally whose first octave began above one row saw nobody, and a count of people had an open end."""
    frame = pandas.DataFrame({"person": range(3000)})
    with secant.protect(frame, table="t", unit="person", epsilon=10, ledger=":memory:") as db:
        answer = db.sql("SELECT count(*) FROM t", epsilon=1)
    ((low,),), ((high,),) = answer.low, answer.high
    assert 2900 < low <= high < 3100


def test_a_count_that_no_limit_cuts_keeps_no_average_from_its_usual_error():
    """Where the declared limit of rows was taken for the count, only what the sum lacks is estimated."""
    persons = [p for p in range(3000) for _ in range(1 + p % 20)]
    frame = pandas.DataFrame({"person": persons, "v": [(7 * i) % 161 for i in range(len(persons))]})
    policy = {
        "tables": {"t": {"columns": {"v": {"range": [0, 1000]}}}},
        "protections": {
            "p": {"kind": "unit", "unit": "t.person", "epsilon": 10, "limits": {"t": 20}}
        },
    }
    with secant.connect({"t": frame}, policy=policy, ledger=":memory:") as db:
        answer = db.sql("SELECT avg(v) AS v FROM t", epsilon=1)
    assert answer.error["kind"] == "usual"
    assert 0 < answer.high[0][0] - answer.low[0][0] < 40  # certain ends are 150 apart
