"""`secant bench joins`: exact sensitivities against brute force, and what becomes of an analysis's survey."""

import itertools
import json
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from bench.suites.joins import cases, exact, measure
from bench.suites.laud import database

from apart import apart
from secant.engines.sources import open_source
from secant.sensitivity import bound as bounding
from secant.sensitivity.certificate import Certificate, Refusal, Survey, Surveyed

VALUES = (0, 1, 2)


@pytest.fixture
def three(monkeypatch):
    """Let the exact formulas give their values at the distances 0, 1 and 2."""
    monkeypatch.setattr(exact, "smooth_of", lambda at, *_: [at(k) for k in range(3)])


def most_at_each_distance(start, further, brings):
    """Search all databases that some rows were added to, for the most that one more row brings."""
    level, found = [start], []
    for _ in range(3):
        found.append(max(brings(d) for d in level))
        level = [e for d in level for e in further(d)]
    return found


# ── exact sensitivities ──────────────────────────────────────────────────────────────────────────


def joined(c, o, last):
    first, end = Counter(c), Counter(last)
    return sum(first[x] * end[y] for x, y in o)


def one_more(d):
    c, o, last = d
    yield from (([*c, v], o, last) for v in VALUES)
    yield from ((c, [*o, pair], last) for pair in itertools.product(VALUES, VALUES))
    yield from ((c, o, [*last, v]) for v in VALUES)


def as_chain(c, o, last):
    first, middle, end = Counter(c), Counter(o), Counter(last)
    pairs = sorted(middle)
    left = {v: i for i, v in enumerate(sorted({p[0] for p in pairs}))}
    right = {v: i for i, v in enumerate(sorted({p[1] for p in pairs}))}
    return exact.Chain(
        np.array([first[p[0]] for p in pairs], dtype=float),
        np.array([middle[p] for p in pairs], dtype=float),
        np.array([end[p[1]] for p in pairs], dtype=float),
        np.array([left[p[0]] for p in pairs], dtype=np.int64),
        np.array([right[p[1]] for p in pairs], dtype=np.int64),
        float(max(first.values(), default=0)),
        float(max(end.values(), default=0)),
    )


def test_the_closed_form_of_a_chain_is_what_a_search_finds(three):
    draw = random.Random(5)  # value 2 is on no row at first: fresh keys are tried, too

    def some():
        return [draw.randrange(2) for _ in range(draw.randrange(4))]

    for _ in range(40):
        start = (some(), list(zip(some(), some(), strict=False)), some())
        found = most_at_each_distance(
            start, one_more, lambda d: max(joined(*e) for e in one_more(d)) - joined(*d)
        )
        assert exact.chain(as_chain(*start), 0.1) == found, start


def count_triangles(edges):
    nodes = sorted({v for e in edges for v in e})
    return sum({(a, b), (b, c), (a, c)} <= edges for a, b, c in itertools.combinations(nodes, 3))


def test_the_formula_for_triangles_is_what_a_search_finds(three):
    draw = random.Random(9)
    pairs = list(itertools.combinations(range(6), 2))

    def further(edges):
        yield edges
        yield from (edges ^ {p} for p in pairs)

    def brings(edges):
        return max(abs(count_triangles(edges ^ {p}) - count_triangles(edges)) for p in pairs)

    for _ in range(12):
        start = frozenset(p for p in pairs if max(p) < 4 and draw.random() < 0.5) | {(0, 1)}
        assert exact.triangles(start, 0.1) == most_at_each_distance(start, further, brings)


def test_pairs_of_a_group(three):
    def further(sizes):
        yield from (tuple(s + (i == at) for i, s in enumerate(sizes)) for at in range(len(sizes)))

    def brings(sizes):
        return max((s + 1) ** 2 - s**2 for s in sizes)

    assert exact.group_pairs((3, 1, 0), 0.1) == most_at_each_distance((3, 1, 0), further, brings)


def test_all_distances_that_matter_are_searched():
    found = exact.smooth_of(lambda k: 1 + k**2, 0.1, 2, "")
    far = max(math.exp(-0.1 * k) * (1 + k**2) for k in range(500))
    assert (found.local, found.smooth) == (1, pytest.approx(far))


# ── analyses ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def parquet(tmp_path_factory):
    return database.parquet_of("0.01", tmp_path_factory.mktemp("bench_joins"))


class Surveying:
    """An analysis whose bound is what its statement counts, over beta."""

    name = "surveying"
    kinds = ("rows",)

    def bound(self, request):
        release = request.release

        def rows(beta, figures):
            (counted,) = figures
            return Fraction(sum(int(row[0]) for row in counted)) / beta

        survey = Survey(self.name, (release.exact,), (bool(release.exact.keys),), rows)
        bounds = {m.column: Surveyed((survey,), Fraction(1), 1) for m in release.measures}
        return Certificate(self.name, request.protection.name, bounds, 0, 1, 1, (), ())


class Refusing:
    """An analysis that cannot."""

    name = "refusing"
    kinds = ("rows",)

    def bound(self, request):
        return Refusal(self.name, "Z-NO", "not here", "ask elsewhere")


def test_every_analysis_is_asked_alone_and_the_choice_is_measured(monkeypatch, parquet):
    monkeypatch.setattr(bounding, "ANALYSES", (Refusing(), Surveying()))
    asked = cases.chosen_cases("group-pairs")
    (row,) = measure.measure(parquet, asked, epsilon=Fraction(1), repeat=1, releases=2)
    (no, yes) = row["analyses"]
    assert (no["analysis"], no["refused"]) == ("refusing", "not here")
    pairs = yes["rows"] / 10  # beta is a tenth
    assert pairs > 6001
    assert row["analysis"] == "surveying"
    assert row["asked"] == ["surveying"]
    assert row["ratio"] == pytest.approx(yes["rows"] / 6001)
    assert (row["local_sensitivity"], row["smooth_sensitivity"]) == (6001, 6001)
    assert {"compile", "plain", "release", "bound"} <= set(row["seconds"])


def test_with_keys_the_worst_group_counts(monkeypatch, parquet):
    monkeypatch.setattr(bounding, "ANALYSES", (Surveying(),))
    (case,) = cases.chosen_cases("chain-by-priority")
    (row,) = measure.measure(parquet, (case,), epsilon=Fraction(1), repeat=1, releases=2)
    engine = apart(open_source(f"parquet:{parquet}"))
    largest = max(count for _, count in engine.rows(case.text))
    engine.close()
    assert row["analyses"][0]["rows"] / 10 == largest
    assert row["local_sensitivity"] <= row["smooth_sensitivity"]


def test_measurements_are_written_in_the_promised_shape(parquet, run, tmp_path):
    target = tmp_path / "out.json"
    words = ("--scale", "0.01", "--data", str(parquet.parent), "--repeat", "1")
    status, out, _ = run(
        "bench", "joins", *words, "--queries", "triangles,heavy-chain", "--json", str(target)
    )
    assert status == 0
    (triangles, chain) = json.loads(target.read_text())["queries"]
    assert (triangles["local_sensitivity"], chain["local_sensitivity"]) == (17, 4856)
    for row in (triangles, chain):
        assert {"query", "status", "relative_error95", "analysis", "seconds"} <= set(row)
        for analysis in row["analyses"]:
            # No sound bound lies below what is exactly true.
            assert "refused" in analysis or analysis["rows"] >= row["smooth_sensitivity"]
    assert "triangles" in out


def test_wrong_use(run, tmp_path):
    status, _, err = run("bench", "joins", "--queries", "squares", "--data", str(tmp_path))
    assert status == 2
    assert "triangles, chain" in err
    assert list(tmp_path.iterdir()) == []
