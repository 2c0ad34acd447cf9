"""Keys that are chosen by weighed units (truncation.keys): all neighbors of small databases, and the law of the choice.

The plan that is bounded runs on every small database and on each of its neighbors. The threshold is held against the
exact law of its noise, for every number of keys that one unit may have. Draws of the choice on a database and on a
neighbor are told apart by no more than (epsilon, delta) allows.
"""

import copy
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from hashlib import sha256

import pandas as pd
import pytest
from directed_cases import PEOPLE, world_of
from directed_cases import rows as database_of
from neighbor_check import Findings, check
from scipy.stats import binom, norm

import secant
from secant.evidence import KINDS
from secant.noise import calibrate
from secant.noise.measure_noise import LaplaceShare, NormalShare, PlainNoise
from secant.noise.mechanisms.whole import WholeNormal, reached
from secant.noise.secrecy import Private, unseal
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.rewrites import weighed_keys
from secant.plan.rewrites.weighed_keys import PARTS, WeighedUnits, weighed_units, weight
from secant.records import replace
from secant.schema import types as t
from secant.verifier import verify

FIELDS = (n.Field("v.who", t.INTEGER), n.Field("v.key", t.INTEGER))
MOST = 3
ROWS = tuple((who, key) for who in (1, 2, None) for key in (1, 2, 3, 4, None))


def plan(rows, most=MOST):
    """Give the weights of units over some rows."""
    keys = (n.Named("q.key", n.Column("v.key", t.INTEGER)),)
    return weighed_units(n.Values(FIELDS, rows), keys, "v.who", "q.keys", most)


def weights(rows, most=MOST):
    """Compute them."""
    return dict(evaluate(plan(rows, most).units, {}))


def moves(compute):
    """Give the largest ℓ1 move and squared length over all databases of two units and rows of nobody."""
    worst_sum = worst_square = 0
    for size in (1, 2, 3, 4, 5):
        for rows in itertools.combinations(ROWS, size):
            whole, less = compute(rows), compute(tuple(r for r in rows if r[0] != 1))
            changes = [abs(whole.get(k, 0) - less.get(k, 0)) for k in {*whole, *less}]
            worst_sum = max(worst_sum, sum(changes))
            worst_square = max(worst_square, sum(x * x for x in changes))
    return worst_sum, worst_square


def test_one_unit_moves_all_weights_by_no_more_than_claimed():
    bound = plan(())
    total, square = moves(weights)
    assert 0.99 * bound.size < total <= bound.size
    assert 0.99 * bound.squared < square <= bound.squared


def test_weights_that_count_each_key_once_would_be_noticed():
    """A planted fault: a unit counts once for each of its keys."""

    def once(rows):
        return {key: PARTS * (number > 0) for key, number in weights(rows).items()}

    assert moves(once)[1] > plan(()).squared


def test_keys_beyond_the_most_weigh_nothing():
    rows = tuple((1, key) for key in range(10))
    assert len(weights(rows)) == MOST
    assert len(weights(rows, 10)) == 10


def test_rows_of_nobody_choose_no_key():
    assert weights(((None, 1), (None, 2))) == {}


@pytest.mark.parametrize("keys", [1, 2, 3, 7, 50, 399, 400, 10**6, 2**40])
def test_a_weight_never_exceeds_its_part(keys):
    assert keys * weight(keys) ** 2 <= PARTS**2 < keys * (weight(keys) + 1) ** 2


VISITS = (
    (1, 1, 0),
    (2, 1, 1),
    (3, 1, 2),
    (4, 1, 3),
    (5, 2, 1),
    (6, 2, 1),
    (7, 2, None),
    (8, None, 2),
)
TEXTS = (
    "SELECT code * 2 AS k, count(*) AS n, sum(cost) AS s FROM visit GROUP BY 1",
    "SELECT code * 2 AS k, count(DISTINCT pid) AS n FROM visit GROUP BY 1",
    "SELECT vid % 3 AS k, age + code AS a, count(*) AS n FROM visit JOIN person ON pid = id GROUP BY 1, 2",
    "SELECT vid % 3 AS k, avg(cost) AS m FROM visit WHERE code IS NOT NULL GROUP BY 1",
)


def attacked():
    """Ask questions with hidden keys of a few databases, and hold all that is claimed against their neighbors."""
    world = world_of(replace(PEOPLE, limits={}))
    people = [(1, "m", 1, "a"), (2, "n", 2, "b"), (3, "o", 2, "b")]
    databases = [
        database_of(person=people, visit=[(*v, 1, "a") for v in VISITS[k:]]) for k in range(4)
    ]
    findings = Findings()
    assert all(check(text, world, databases, findings) for text in TEXTS)
    return findings


def test_no_neighbor_refutes_what_is_claimed_of_hidden_keys():
    findings = attacked()
    assert findings.rules["truncation.keys"] == len(TEXTS)
    assert findings.triples > 20
    assert not findings.violations


def test_a_bound_for_a_part_of_the_weights_would_be_refuted(monkeypatch):
    """A planted fault: a unit is claimed to move the weights by half of their length."""
    monkeypatch.setattr(WeighedUnits, "squared", Fraction(PARTS**2, 4))
    assert any(v.claim == "length" for v in attacked().violations)


class _Release:
    chooses_keys, selector = True, None

    def __init__(self, most):
        self.weighed = plan((), most)
        self.name = "q"


class _Bounded:
    certificates = ()

    def __init__(self, most):
        self.release = _Release(most)


def threshold(most, noise, delta):
    """Give from which weight on keys are shown."""
    return calibrate._key_choice(_Bounded(most), {"q.keys": noise}, delta).threshold


def chance(reach, keys, deviation):
    """Give how likely one of so many keys of one unit alone is shown, by the exact law."""
    one = norm.sf((reach - weight(keys) - 0.5) / deviation)
    return -math.expm1(keys * math.log1p(-one))


@pytest.mark.parametrize("rho", [Fraction(1, 10**4), Fraction(1, 10), Fraction(50)])
@pytest.mark.parametrize("most", [1, 2, 5, 400])
def test_keys_of_one_unit_are_hardly_ever_shown(rho, most):
    share, delta = NormalShare(rho), Fraction(1, 10**6)
    noise = PlainNoise(Fraction(1), share, plan((), most).size, plan(()).squared)
    reach = threshold(most, noise, delta)
    worst = max(chance(reach, keys, float(noise.law.size)) for keys in range(1, most + 1))
    assert worst <= float(delta) * (1 + 1e-9)
    assert reach <= 1.2 * max(
        weight(k) + noise.law.threshold(delta=delta, groups=k, contribution=1)
        for k in range(1, most + 1)
    )


def test_a_threshold_for_one_key_would_be_noticed(monkeypatch):
    """A planted fault: the threshold is that of units with a single key."""
    noise = PlainNoise(
        Fraction(1), NormalShare(Fraction(1, 10**4)), plan((), 400).size, plan(()).squared
    )
    delta = Fraction(1, 10**6)
    alone = threshold(1, noise, delta)
    assert max(chance(alone, keys, float(noise.law.size)) for keys in range(1, 401)) > float(delta)


def test_laplace_noise_is_for_the_sum_of_all_weights():
    noise = PlainNoise(Fraction(1), LaplaceShare(Fraction(1)), plan((), 400).size, plan(()).squared)
    assert noise.law.size >= 20 * PARTS


def shown(numbers, law, reach, draws):
    """Draw which keys are shown, so often."""
    keys = Private([*range(len(numbers))])
    return Counter(tuple(reached(keys, law.add(numbers), reach)[1]) for _ in range(draws))


def told_apart(deviation, draws=40_000):
    """Give the largest log ratio that draws prove on neighbors, less delta: keys 0 and 1 are common, key 2 is u's."""
    part, law = weight(3), WholeNormal(Fraction(deviation))
    reach = PARTS
    one = shown([PARTS + part, part + PARTS // 2, part], law, reach, draws)
    other = shown([PARTS, PARTS // 2], law, reach, draws)
    new = norm.sf((reach - part - 0.5) / float(deviation))
    worst = -math.inf
    for result in {k for k in one if 2 not in k}:
        low = binom.ppf(1e-12, draws, one[result] / draws) / draws - float(new)
        high = (binom.ppf(1 - 1e-12, draws, other[result] / draws) + 30) / draws
        if low > 0:
            worst = max(worst, math.log(low / high))
    return worst


def test_the_choice_is_as_private_as_it_says():
    """Deviation 4.3 for epsilon 1 at a delta of 1e-6: what three keys of one unit move stays below it."""
    assert told_apart(43 * PARTS // 10) <= 1


def test_a_hundredth_of_the_noise_would_be_noticed():
    """A planted fault, and the audit above has teeth."""
    assert told_apart(PARTS // 8) > 1


# ── the whole way ────────────────────────────────────────────────────────────────────────────────


def connected(frame, **limits):
    """Open a frame of which nobody declared anything but whose rows they are."""
    protection = {"kind": "unit", "unit": "v.who", "epsilon": 1000, "delta": 1e-6, **limits}
    return secant.connect(
        {"v": frame}, policy={"protections": {"people": protection}}, ledger=":memory:"
    )


@pytest.fixture
def exact_keys(monkeypatch):
    """Choose keys without noise: which branch is taken is no matter of luck."""
    monkeypatch.setattr(WholeNormal, "add", lambda self, values: list(unseal(values)))


def test_large_groups_are_shown_and_small_ones_are_not(exact_keys):
    people = range(3000)
    frame = pd.DataFrame(
        {
            "who": [p for p in people for _ in range(4)],
            "shop": [f"s{k}" for _ in people for k in range(4)],
        }
    )
    rare = pd.DataFrame({"who": [*range(20)], "shop": ["rare"] * 20})
    with connected(pd.concat([frame, rare])) as db:
        answer = db.sql("SELECT shop, count(*) AS n FROM v GROUP BY shop ORDER BY shop", epsilon=1)
    assert [row[0] for row in answer.rows] == ["s0", "s1", "s2", "s3"]
    assert all(low is not None for low in (row[1] for row in answer.low))
    assert all(high is not None for high in (row[1] for row in answer.high))


def test_units_are_counted_with_a_usual_error(exact_keys):
    """Each of 3,000 people is in four groups: how many of them are in more is estimated."""
    frame = pd.DataFrame(
        {"who": [p for p in range(3000) for _ in range(4)], "shop": [*"abcd"] * 3000}
    )
    with connected(frame) as db:
        text = "SELECT shop, count(DISTINCT who) AS n FROM v GROUP BY shop ORDER BY shop"
        answer = db.sql(text, epsilon=10)
    assert answer.error["kind"] == "usual"
    assert [row[0] for row in answer.rows] == [*"abcd"]
    assert all(abs(row[1] - 3000) < 300 for row in answer.rows)


def test_what_will_be_hidden_is_said_in_units_before(exact_keys):
    frame = pd.DataFrame({"who": [1, 2], "shop": ["a", "b"]})
    told = []
    with connected(frame) as db:
        answer = db.sql(
            "SELECT shop, count(*) AS n FROM v GROUP BY shop", epsilon=1, warn=told.append
        )
    assert not answer.rows
    (hidden,) = [c for c in told if c.code == "WRN-002"]
    assert "where each is in four groups" in hidden.message
    assert int(hidden.message.split("about ")[1].split(" ")[0].replace(",", "")) < 400


def test_where_units_have_few_rows_they_are_counted_as_they_are():
    frame = pd.DataFrame({"who": [1, 2], "shop": ["a", "b"]})
    with connected(frame, limits={"v": weighed_keys.FEW}) as db:
        explained = db.explain("SELECT shop, count(*) AS n FROM v GROUP BY shop", epsilon=1)
    assert "truncation.keys" not in str(explained)


def test_where_limits_are_fixed_units_are_counted_as_they_are():
    frame = pd.DataFrame({"who": [1, 2], "shop": ["a", "b"]})
    with connected(frame, limits={"v": 50}, truncation="fixed") as db:
        explained = db.explain("SELECT shop, count(*) AS n FROM v GROUP BY shop", epsilon=1)
    assert "truncation.keys" not in str(explained)


# ── the papers ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def papers():
    """Give the record and the documents of a release whose keys were chosen by weights."""
    frame = pd.DataFrame({"who": [1, 2, 3], "shop": ["a", "b", "b"]})
    with connected(frame) as db:
        db.sql("SELECT shop, count(*) AS n FROM v GROUP BY shop", epsilon=1)
        (record,) = [r.fields for r in db.ledger.records() if r.fields["kind"] == "reserve"]
        assert db.verify(record["release"]).outcome == "verified"
        bodies = {kind: json.loads(db.ledger.paper(record["papers"][kind])) for kind in KINDS}
    return record, bodies


def test_counts_of_units_are_verified_too():
    frame = pd.DataFrame({"who": [1, 2, 3], "shop": ["a", "b", "b"]})
    with connected(frame) as db:
        db.sql("SELECT shop, count(DISTINCT who) AS n FROM v GROUP BY shop", epsilon=1)
        (record,) = [r.fields for r in db.ledger.records() if r.fields["kind"] == "reserve"]
        assert db.verify(record["release"]).outcome == "verified"


def judged(papers, change):
    """Verify documents that were changed, as if they had been written like this in the first place."""
    record, documents = copy.deepcopy(papers)
    change(documents["certificate"])
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in documents.items()}
    names = {k: sha256(text.encode()).hexdigest() for k, text in bodies.items()}
    return verify({**record, "papers": {**record["papers"], **names}}, bodies).outcome


def lower_threshold(certificate):
    """Show keys from a quarter of the threshold on."""
    certificate["releases"][0]["choice"]["threshold"] //= 4


def lower_bound(certificate):
    """Claim that weights move by half as much."""
    for claim in certificate["releases"][0]["certificates"]:
        claim["bounds"]["secant_r1.keys"] = {"kind": "global", "norm": "l1", "value": str(PARTS)}


def shorten(certificate):
    """Claim that weights move by half the length."""
    for claim in certificate["releases"][0]["certificates"]:
        claim["squares"] = {c: str(PARTS**2 // 4) for c in claim["squares"]}


def let_more_keys_in(certificate):
    """Let units weigh in more keys than the threshold and the bound are for."""
    for kind, fields in certificate["nodes"]:
        if kind == "Truncate":
            fields["limit"] = 4000


def less_noise(certificate):
    """Claim a hundredth of the noise."""
    noise = certificate["releases"][0]["choice"]["weighed"]["noise"]
    noise["size"] = str(Fraction(noise["size"]) / 100)


def weigh_alike(certificate):
    """Let a unit weigh one in each of its keys."""
    for kind, fields in certificate["nodes"]:
        if kind == "Call" and fields["function"] == "sqrt":
            fields["function"] = "ln"


@pytest.mark.parametrize(
    "change", [lower_threshold, lower_bound, shorten, let_more_keys_in, less_noise, weigh_alike]
)
def test_a_fault_in_the_papers_is_seen(papers, change):
    assert judged(papers, lambda certificate: None) == "verified"
    assert judged(papers, change) != "verified"
