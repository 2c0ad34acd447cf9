"""Totals and parts of ROLLUP, CUBE and GROUPING SETS agree, and the errors beside them are those of what is shown."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy.stats import binom

import secant
from secant.accuracy import consistency as agreeing
from secant.errors import Refused
from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace
from secant.release import finish as finishing

POLICY = """
[database]
source = "duckdb:wards.duckdb"
[tables.visits.columns]
ward = {{ values = {wards}, null = false }}
sex = {{ values = ["f", "m"], null = false }}
cost = {{ range = [0, 100] }}
[protections.rows]
kind = "rows"
epsilon = 100000
delta = 1e-6
"""
ALL = '["A", "B", "C"]'
ROLLUP = "SELECT ward, sex, count(*) AS n, sum(cost) AS s FROM visits GROUP BY ROLLUP (ward, sex)"
CUBE = "SELECT ward, sex, count(*) AS n FROM visits GROUP BY CUBE (ward, sex)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("wards")
    with duckdb.connect(str(place / "wards.duckdb")) as db:
        db.execute(
            "CREATE TABLE visits AS SELECT i % 900 AS person, ['A', 'B', 'C'][1 + i % 3] AS ward, "
            "['f', 'm'][1 + i // 5 % 2] AS sex, CAST(i % 97 AS DOUBLE) + 0.25 AS cost FROM range(3000) r(i)"
        )
    return place


def opened(folder, wards=ALL, more=""):
    (folder / "policy.toml").write_text(POLICY.format(wards=wards) + more)
    return secant.connect(policy=folder / "policy.toml", ledger=":memory:")


def by_key(rows, place):
    return {row[:2]: row[place] for row in rows}


@pytest.mark.parametrize("text", [ROLLUP, CUBE])
def test_totals_are_the_sums_of_their_parts(folder, text):
    with opened(folder) as db:
        for _ in range(5):
            rows = db.sql(text, epsilon="0.2").raw
            for place in range(2, len(rows[0])):
                n = by_key(rows, place)
                for ward in "ABC":
                    assert n[ward, None] == pytest.approx(n[ward, "f"] + n[ward, "m"], abs=1e-6)
                assert n[None, None] == pytest.approx(sum(n[w, None] for w in "ABC"), abs=1e-6)
                if text is CUBE:
                    for sex in "fm":
                        assert n[None, sex] == sum(n[w, sex] for w in "ABC")
                    assert all(isinstance(x, int) for x in n.values())


def test_apart_they_would_not_add_up(folder, monkeypatch):
    """Without it: six numbers of noise about 10 each do not add up by chance in five releases."""
    monkeypatch.setattr(finishing, "agree", lambda b, tables, *_, **__: (tables, agreeing.NOTHING))
    with opened(folder) as db:
        found = [by_key(db.sql(CUBE, epsilon="0.2").raw, 2) for _ in range(5)]
    assert any(n[None, None] != sum(n[w, None] for w in "ABC") for n in found)


def test_what_is_foreseen_is_what_is_printed(folder):
    with opened(folder) as db:
        printed = db.sql(CUBE, epsilon="0.2").error["values"]
        most = max(row[2] for row in printed)
        again = db.sql(CUBE, epsilon="0.2", max_error=most + 2).error["values"]
        with pytest.raises(Refused):
            db.sql(CUBE, epsilon="0.2", max_error=most - 3)
    # the grand total's parts may be rounded further, by a step
    assert [row[2] for row in again] == pytest.approx([row[2] for row in printed], abs=2)


def test_rows_without_a_declared_key_leave_totals_as_they_were_drawn(folder):
    with opened(folder, '["A", "B"]') as db:
        answer = db.sql(CUBE, epsilon=1)
        n = by_key(answer.rows, 2)
        assert n[None, None] == pytest.approx(3000, abs=200)
        assert answer.error["leaves_out"]["totals"] == "apart"
        assert "differ by more than noise" in str(answer)
    with opened(folder) as db:
        answer = db.sql(CUBE, epsilon=1)
        assert answer.error["leaves_out"]["totals"] == "agree"
        assert "made to agree" in str(answer)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, count(DISTINCT person) AS n FROM visits GROUP BY ROLLUP (ward)",
        "SELECT ward, avg(cost) AS n FROM visits GROUP BY ROLLUP (ward)",
        "SELECT ward, median(cost) AS n FROM visits GROUP BY ROLLUP (ward)",
        "SELECT ward, count(*) AS n FROM visits GROUP BY ward",
    ],
)
def test_what_does_not_add_up_is_left_alone(folder, text):
    with opened(folder) as db:
        left = db.sql(text, epsilon=1).error["leaves_out"]
    assert left is None or left["totals"] is None


def test_limits_that_are_chosen_leave_each_level_its_own(folder):
    policy = POLICY.format(wards=ALL).replace('"rows"', '"unit"\nunit = "visits.person"')
    (folder / "people.toml").write_text(policy)
    with secant.connect(policy=folder / "people.toml", ledger=":memory:") as db:
        answer = db.sql(CUBE, epsilon=1)
    assert answer.error["leaves_out"]["totals"] is None
    assert all(x is not None for row in answer.error["low"] for x in row[2:])


# ── the estimate and its law ─────────────────────────────────────────────────────────────────────


def fits(folder, monkeypatch, text=CUBE, epsilon=1):
    """Catch what is computed for one release."""
    caught = []
    honest = agreeing._Fit

    def watching(*arguments):
        caught.append(honest(*arguments))
        return caught[-1]

    monkeypatch.setattr(agreeing, "_Fit", watching)
    with opened(folder) as db:
        db.sql(text, epsilon=epsilon)
    monkeypatch.setattr(agreeing, "_Fit", honest)
    return caught[0]


def parts_of(fit):
    """Give which of the finest numbers each number is a sum of, as a matrix."""
    found = np.zeros((len(fit.values), fit.family.sizes[0]))
    for at, inside in enumerate(fit.parts):
        found[at, sorted(inside)] = 1
    return found


def spread(fit):
    """Variance of each number's own noise, by the law of the whole numbers."""
    sizes = fit.family.sizes
    return np.concatenate(
        [np.full(size, _variance(x.law)) for size, x in zip(sizes, fit.noises, strict=True)]
    )


def _variance(law):
    chances = [
        (k, np.exp(-abs(k) / float(law.scale)))
        for k in range(-60 * int(law.scale + 1), 60 * int(law.scale + 1))
    ]
    return sum(k * k * p for k, p in chances) / sum(p for _, p in chances)


@pytest.mark.parametrize("text", [ROLLUP, CUBE])
def test_weights_are_those_of_least_squares(folder, monkeypatch, text):
    """Held against the textbook: project onto what adds up, in the metric of the variances."""
    fit = fits(folder, monkeypatch, text)
    fine, total = fit.family.sizes[0], sum(fit.family.sizes)
    parts = parts_of(fit)
    weights = np.array(fit.weights)
    constraints = np.hstack([-parts[fine:], np.eye(total - fine)])
    v = np.diag(spread(fit))
    projected = (
        np.eye(total)
        - v @ constraints.T @ np.linalg.pinv(constraints @ v @ constraints.T) @ constraints
    )
    assert np.allclose(weights, projected, atol=1e-6)
    truth = parts @ np.arange(5.0, 5.0 + fine)
    assert np.allclose(weights @ truth, truth)
    # never less certain than what was drawn
    after = (weights**2) @ spread(fit)
    assert (after <= spread(fit) * (1 + 1e-9)).all()
    assert after[-1] < 0.8 * spread(fit)[-1]


DRAWS = 400


def held(fit, level, error_of):
    """How often the error of each number holds, over drawn noise: nothing but the law is simulated."""
    scales = [x.law.scale for x in fit.noises]
    fine = fit.family.sizes[0]
    truth = [100 * (i + 1) for i in range(fine)]
    true = [int(x) for x in parts_of(fit) @ np.array(truth)]
    found = np.zeros(len(true), int)
    noises = [
        add_discrete_laplace([0] * DRAWS, scale=scales[fit.family.where(at)[0]])
        for at in range(len(true))
    ]
    for k in range(DRAWS):
        values = [t + noises[at][k] for at, t in enumerate(true)]
        again = agreeing._Fit(fit.family, values, fit.noises)
        shown = again.shown()
        for at, number in enumerate(shown):
            moved = abs(number - again.estimates[at])
            found[at] += abs(number - true[at]) <= error_of(fit, at, moved)
    return found


@pytest.fixture(scope="module")
def errors():
    kept = {}

    def error_of(fit, at, moved):
        key = at, max(1.0, round(moved + 0.005, 2))
        if key not in kept:
            kept[key] = fit.error(at, moved if moved < 1 else key[1], Fraction(1), True)(
                Fraction(9, 10)
            )
        return kept[key]

    return error_of


def test_printed_errors_hold(folder, monkeypatch, errors):
    """At 90 %; a false alarm is rarer than 1e-9. They are not much too wide, either."""
    found = held(fits(folder, monkeypatch, epsilon="0.3"), 0.9, errors)
    assert found.min() >= binom.ppf(1e-10, DRAWS, 0.9)
    assert found.max() <= DRAWS * 0.985


def test_the_law_of_one_number_alone_would_be_noticed(folder, monkeypatch, errors):
    """A planted fault: the error of a number's own noise, shrunk as if all others were exact."""
    fit = fits(folder, monkeypatch, epsilon="0.3")

    def own(again, at, moved):
        return again.noises[again.family.where(at)[0]].law.error(Fraction(9, 10)) * abs(
            again.weights[at][at]
        )

    assert held(fit, 0.9, own).min() < binom.ppf(1e-10, DRAWS, 0.9)
