"""Rows that come and go and values that move, together: all pairs of small databases through the product's statements.

For each pair, group and measure: the logarithm of
the ratio of the densities of what is drawn is at most ε times the distance, and the bound changes by no more than its
smoothness allows. One table, a table beside a public one, and two protected tables joined on kept keys.
"""

import itertools
from fractions import Fraction
from functools import cache

import both_check
import pytest
from both_check import CLOSE

from chance import LONG
from naming_public import name_public
from secant.noise.measure_noise import PlainNoise
from secant.noise.smooth import CurveNoise
from secant.numeric.optimal_law import mean as mean_noise
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.policy.norms import columns_of
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity import combined
from secant.sensitivity.derivative import space

CATALOG = catalog(
    Table("a", (("k", t.INTEGER), ("g", t.INTEGER), ("x", t.DOUBLE), ("y", t.DOUBLE)), (("k",),)),
    Table("b", (("k", t.INTEGER), ("z", t.DOUBLE)), (("k",),)),
    Table("u", (("g", t.INTEGER), ("q", t.DOUBLE)), (("g",),)),
)
NORMS = {"a": "l1(x, 0.5*y)", "b": "z"}
ROOTED = {"a": "l1(2*sqrt(x), 0.5*y)", "b": "z"}
POLICY = """
[database]
source = "duckdb:none"
[tables.a.columns]
g = {{ values = [1, 2] }}
x = {{ range = [0, 4] }}
y = {{ range = [0, 4] }}
[tables.b.columns]
z = {{ range = [-1, 2] }}
[tables.u.columns]
q = {{ range = [0, 3] }}
[protections.both]
kind = "rows+cells"
epsilon = 10000
softening = {{ kind = "ramp", width = {width} }}
distance = {{ {distance} }}
add_remove = {{ a = {a}, b = {b} }}
"""
ONE = (
    "SELECT sum(x*x) FROM a", "SELECT count(*) FROM a", "SELECT count(*) FROM a WHERE x > 1",
    "SELECT sum(x) FROM a WHERE y > 2", "SELECT g, sum(x*x*x) FROM a GROUP BY g", "SELECT avg(x*x) FROM a",
    "SELECT sum(x*x*u.q) FROM a JOIN u ON a.g = u.g", "SELECT variance(x) FROM a WHERE g = 1",
    "SELECT sum(least(x, y)) FROM a", "SELECT sum(exp(x)) FROM a", "SELECT count(x) FROM a",
    "SELECT sum(x*x*coalesce(u.q, 1)) FROM a LEFT JOIN u ON a.g = u.g", "SELECT min(x*y), max(x) FROM a WHERE g = 1",
    "SELECT sum(t*t) FROM (SELECT g, max(x) AS t FROM a GROUP BY g) AS s",
    "SELECT count(*) FROM (SELECT DISTINCT g FROM a WHERE x > 1) AS s",
)  # fmt: skip
TWO = (
    "SELECT sum(a.x*b.z) FROM a JOIN b ON a.k = b.k", "SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE a.x > b.z",
    "SELECT sum(a.x*a.x) FROM a JOIN b ON a.k = b.k",
    "SELECT sum(t*t) FROM (SELECT x AS t FROM a UNION ALL SELECT z FROM b) AS u",
    "SELECT sum(t*t) FROM (SELECT x AS t FROM a WHERE y > 2 UNION ALL SELECT x FROM a) AS u",
    "SELECT count(*), max(t) FROM (SELECT x AS t FROM a UNION ALL SELECT z FROM b) AS u WHERE t > 1",
)  # fmt: skip
SETTINGS = tuple(
    (Fraction(e), g)
    for e, g in ((1, ("1", "1")), (3, ("1", "0.5")), (4, ("3", "1")), (8, ("1", "2")))
)
PUBLIC = [{"g": 1, "q": 3.0}, {"g": 2, "q": 0.5}]


def world(weights, width="0.5", norms=NORMS):
    distance = ", ".join(f'{table} = "{norm}"' for table, norm in norms.items())
    text = POLICY.format(a=weights[0], b=weights[1], width=width, distance=distance)
    return fit_policy(name_public(read_policy(text), CATALOG), CATALOG)


def asked(text, weights, epsilon, width="0.5", norms=NORMS):
    """Ask in this world."""
    return both_check.Question(text, epsilon, CATALOG, world(weights, width, norms))


def checked(question, databases, weights, pairs=None, norms=NORMS):
    named = {t: (norm, w) for (t, norm), w in zip(norms.items(), weights, strict=True)}
    return both_check.checked(question, databases, named, pairs)


def rows_of_a(values, most, groups=(1, 2)):
    """Give all tables of at most `most` rows with these values; k tells rows apart and is as private as they are."""
    cells = [(x, y) for x in values for y in (1.0, 3.0)][: 2 * len(values)]
    found = [()]
    for size in range(1, most + 1):
        for picked in itertools.combinations_with_replacement(cells, size):
            for shared in groups[:1] if size > 1 else groups:
                found.append(
                    tuple(
                        {"k": i, "g": shared if i == 0 else 1, "x": x, "y": y}
                        for i, (x, y) in enumerate(picked)
                    )
                )
    return found


@cache
def small(two):
    """Give all small databases."""
    if not two:
        tables = rows_of_a((0.0, 1.0, 1.1, 4.0) if LONG else (0.0, 1.0, 4.0), 2)
        return [{"a": rows, "b": [], "u": PUBLIC} for rows in tables]
    firsts = rows_of_a((0.0, 1.0, 4.0) if LONG else (0.5, 4.0), 2, groups=(1,))
    seconds = [
        tuple({"k": i, "z": z} for i, z in enumerate(picked))
        for size in range(3)
        for picked in itertools.product((-1.0, 2.0) if LONG else (2.0,), repeat=size)
    ]
    return [{"a": a, "b": b, "u": PUBLIC} for a in firsts for b in seconds]


@pytest.mark.parametrize("text", [*ONE, *TWO])
def test_all_pairs_of_small_databases(text):
    for epsilon, weights in SETTINGS if LONG else SETTINGS[1:3]:
        question = asked(text, weights, epsilon)
        worst, smooth = checked(question, small(text in TWO), weights)
        assert worst <= 1 + CLOSE, (text, float(epsilon), weights, worst)
        assert smooth <= 1 + CLOSE, (text, float(epsilon), weights, smooth)


@pytest.mark.parametrize("text", [*ONE, *TWO] if LONG else [*ONE[:6], ONE[12], TWO[0]])
def test_all_pairs_where_a_column_moves_in_its_square_root(text):
    for epsilon, weights in SETTINGS if LONG else SETTINGS[2:3]:
        question = asked(text, weights, epsilon, norms=ROOTED)
        worst, smooth = checked(question, small(text in TWO), weights, norms=ROOTED)
        assert worst <= 1 + CLOSE, (text, float(epsilon), weights, worst)
        assert smooth <= 1 + CLOSE, (text, float(epsilon), weights, smooth)


def test_a_square_root_taken_for_the_column_is_noticed_beside_rows(monkeypatch):
    epsilon, weights = Fraction(4), ("3", "1")
    monkeypatch.setattr(space, "measures_of", lambda norm: dict.fromkeys(columns_of(norm), "x"))
    wrong = asked("SELECT sum(x*x) FROM a", weights, epsilon, norms=ROOTED)
    assert checked(wrong, small(False), weights, norms=ROOTED)[0] > 1.05


def drawn(draw):
    """Draw a database of up to four rows, and one near to it."""

    def row(i):
        y = None if draw.random() < 0.1 else draw.uniform(-1, 5)
        return {"k": i, "g": draw.choice((1, 2)), "x": draw.uniform(-1, 5), "y": y}

    a = [row(i) for i in range(draw.randint(0, 4))]
    b = [{"k": i, "z": draw.uniform(-2, 3)} for i in range(draw.randint(0, 3))]
    other = [dict(r) for r in a if draw.random() < 0.8]
    for r in other:
        if draw.random() < 0.5:
            r["x"] += draw.gauss(0, draw.choice((0.01, 0.3, 2)))
    if draw.random() < 0.4:
        other.append(row(7))
    second = [dict(r) for r in b if draw.random() < 0.8]
    return (
        {"a": tuple(a), "b": tuple(b), "u": PUBLIC},
        {"a": tuple(other), "b": tuple(second), "u": PUBLIC},
    )


def search(texts, settings, count, seed="rows and values"):
    return both_check.search(asked, drawn, checked, texts, settings, count, seed)


def test_no_drawn_pair_is_told_apart_better(record_property):
    worst, pairs = search((*ONE, *TWO), SETTINGS if LONG else SETTINGS[2:3], 4000 if LONG else 20)
    record_property("pairs", pairs)
    assert worst[0] <= 1 + CLOSE, worst


STEEP = "SELECT count(*) FROM a WHERE x > 1"
"""Beside a narrow ramp a row that lies on it moves the count 20 times as fast as a row that comes lets it jump."""
FAULTS = {
    "rows that come have no slope": lambda right: lambda s, g, jumps: right(Fraction(0), g, jumps),
    "slopes of local rows only": lambda right: lambda s, g, jumps: right(s / 4, g, jumps),
    "no jumps": lambda right: lambda s, g, jumps: right(s / 40, g, {}),
    "the floor falls twice as fast": lambda right: lambda s, g, jumps: right(s, 2 * g, jumps),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_floor_is_noticed(fault, monkeypatch):
    epsilon, weights = Fraction(5), ("1", "1")
    right = asked(STEEP, weights, epsilon, "0.05")
    assert isinstance(right.noise[right.bounded.release.measures[0].column], CurveNoise)
    worst, smooth = checked(right, small(False), weights)
    assert max(worst, smooth) <= 1 + CLOSE
    assert max(worst, smooth) > 0.95, "the floor should be no higher than it must be"
    monkeypatch.setattr(combined, "_least", FAULTS[fault](combined._least))
    wrong = asked(STEEP, weights, epsilon, "0.05")
    worst, smooth = checked(wrong, small(False), weights)
    assert max(worst, smooth) > 1.05, (worst, smooth)


def test_a_row_that_counts_less_needs_more_noise(monkeypatch):
    """Planted: jumps are not divided by the distance that a row counts as."""
    text, weights, epsilon = "SELECT count(*) FROM a", ("0.5", "1"), Fraction(1)
    assert checked(asked(text, weights, epsilon), small(False), weights)[0] <= 1 + CLOSE
    right = combined._joined

    def unweighed(moving, jumps, *, single):
        return right(moving, {t: (j, Fraction(1)) for t, (j, _) in jumps.items()}, single=single)

    monkeypatch.setattr(combined, "_joined", unweighed)
    assert checked(asked(text, weights, epsilon), small(False), weights)[0] > 1.05


def test_a_row_in_both_branches_of_a_union_counts_twice():
    text = "SELECT sum(x) FROM (SELECT x FROM a UNION ALL SELECT x FROM a) AS t"
    caps = [
        asked(t, ("1", "1"), Fraction(3)).bounded.certificates[0].bounds["release1.m0"].value
        for t in ("SELECT sum(x) FROM a", text)
    ]
    assert caps[1] == 2 * caps[0]


@pytest.mark.parametrize(
    ("epsilon", "cost"), [("0.5", 1), ("1", 1), ("1.2", 1), ("2", 0.81), ("3", 0.50), ("5", 0.18)]
)
def test_cap_or_smooth_by_public_facts(epsilon, cost):
    """Up to εG of 1.2 the cap with Laplace noise is best; beyond, smooth noise costs these parts of it at least."""
    question = asked(STEEP, ("1", "1"), Fraction(epsilon), "0.02")
    (noise,) = question.noise.values()
    assert isinstance(noise, PlainNoise if cost == 1 else CurveNoise)
    if cost < 1:
        curve = noise.curve
        ratio = float(noise.epsilon / noise.beta)
        found = mean_noise(ratio) * float(curve.least(noise.beta) / curve.cap)
        assert found == pytest.approx(cost, abs=0.012)
