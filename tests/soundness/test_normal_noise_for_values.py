"""Normal noise where values move (noise.apart): exact hockey-stick divergences of the product's laws, on all pairs.

Small databases through the product's statements. At distance 1 at most, two laws are (epsilon, delta)-close as charged;
farther apart, as so many steps of it, also where no database lies between. Planted: noise for half of a move, a release
that says "a longer one at its length times epsilon" with a delta, and noise that forgets a measure.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import both_check
import pytest

from naming_public import name_public
from secant.noise import choosing
from secant.noise.measure_noise import LawfulNoise, NormalShare
from secant.policy.check import fit_policy
from secant.policy.file import read_policy
from secant.release.report import protects
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate

CATALOG = catalog(
    Table("r", (("k", t.INTEGER), ("x", t.DOUBLE), ("y", t.DOUBLE), ("n", t.INTEGER)), ())
)
POLICY = """
[database]
source = "duckdb:none"
[tables.r.columns]
k = {{ values = [0, 1] }}
x = {{ range = [0, 4] }}
y = {{ range = [0, 4] }}
n = {{ range = [0, 3] }}
[protections.near]
kind = "cells"
epsilon = 10000
distance = {{ r = "{norm}" }}
"""
EPSILON, DELTA = Fraction(1), Fraction(1, 10**5)
SUMS = ", ".join(f"sum({c} * {k})" for k in range(1, 5) for c in ("x", "y", "n"))
TEXTS = (
    f"SELECT {SUMS} FROM r", f"SELECT k, {SUMS} FROM r GROUP BY k",
    f"SELECT k, {SUMS}, sum(x * x * x) FROM r GROUP BY k",
)  # fmt: skip
NORMS = ("l1(x, y, 0.5*n)", "linf(x, y, 0.5*n)", "l2(x, 2*y, 3*n)")
LENGTHS = {  # written anew: the distance of one row's move
    NORMS[0]: lambda x, y, n: abs(x) + abs(y) + abs(n) / 2,
    NORMS[1]: lambda x, y, n: max(abs(x), abs(y), abs(n) / 2),
    NORMS[2]: lambda x, y, n: math.sqrt(x * x + 4 * y * y + 9 * n * n),
}


def asked(text, norm, delta=DELTA):
    policy = read_policy(POLICY.format(norm=norm))
    policy = fit_policy(name_public(policy, CATALOG), CATALOG)
    return both_check.Question(text, EPSILON, CATALOG, policy, delta)


def databases():
    """Two rows, one of each k; values at the ends, in the middle, and a little beside."""
    values = [(0, 0, 0), (1, 0, 0), (0.5, 0.25, 1), (4, 4, 3), (3.5, 4, 3), (0, 0.5, 0), (1, 1, 2)]
    for one, two in itertools.product(values, repeat=2):
        yield [{"k": k, **dict(zip("xyn", row, strict=True))} for k, row in enumerate((one, two))]


def hockey_stick(epsilon, shift):
    """How far e^epsilon times one standard normal law falls below another that lies `shift` away."""
    if not shift:
        return 0.0

    def below(v):
        return math.erfc(-v / math.sqrt(2)) / 2

    return below(shift / 2 - epsilon / shift) - math.exp(epsilon) * below(
        -shift / 2 - epsilon / shift
    )


def excess(question, norm, allowed):
    """Give by whether a pair is at most 1 apart the largest divergence, over what `allowed(epsilon, delta, d)` says."""
    normal = {
        c: float(x.law.deviation)
        for c, x in question.noise.items()
        if isinstance(x, LawfulNoise) and isinstance(x.share, NormalShare)
    }
    assert len(normal) == 12
    epsilon, delta = map(float, question.calibrated.paid["near"].normal)
    found = {True: 0.0, False: 0.0}
    read = [(rows, question.read({"r": rows})) for rows in databases()]
    for (one, first), (two, second) in itertools.permutations(read, 2):
        moves = [[a[c] - b[c] for c in "xyn"] for a, b in zip(one, two, strict=True)]
        d = sum(LENGTHS[norm](*move) for move in moves)
        squares = [
            ((first[column, key][0] - second[column, key][0]) / normal[column]) ** 2
            for column, key in first
            if column in normal
        ]
        loss, most = allowed(epsilon, delta, d)
        near = d <= 1
        found[near] = max(found[near], hockey_stick(loss, math.sqrt(sum(squares))) / most)
    return found


def in_steps(epsilon, delta, d):
    steps = max(1, math.ceil(d - 1e-12))
    return steps * epsilon, delta * sum(math.exp(j * epsilon) for j in range(steps))


def at_its_length(epsilon, delta, d):
    return max(1, d) * epsilon, delta


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("text", TEXTS)
def test_all_pairs_are_as_close_as_charged(text, norm):
    question = asked(text, norm)
    found = excess(question, norm, in_steps)
    assert 0 < found[True] <= 1, found
    assert 0 < found[False] <= 1, found
    epsilon, delta = question.calibrated.costs["near"]
    assert epsilon <= EPSILON
    assert delta == DELTA


def _half_of_a_move(patch):
    patch.setattr(Certificate, "squared", lambda self, c: self.bounds[c].value ** 2 / 4)


def _one_measure_for_all(patch):
    original = choosing.choose_normal

    def all_of_it(measures, delta):
        found = original(measures, delta)
        return replace(found, rhos=dict.fromkeys(found.rhos, found.rho))

    patch.setattr(choosing, "choose_normal", all_of_it)


FAULTS = (_half_of_a_move, _one_measure_for_all)


@pytest.mark.parametrize("plant", FAULTS)
def test_too_little_noise_is_noticed(plant, monkeypatch):
    plant(monkeypatch)
    assert excess(asked(TEXTS[0], NORMS[1]), NORMS[1], in_steps)[True] > 2


def test_length_times_epsilon_would_be_a_false_promise():
    """With a delta it does not hold, so it is not said."""
    question = asked(TEXTS[0], NORMS[1])
    assert excess(question, NORMS[1], at_its_length)[False] > 2
    (near,) = question.policy.protections
    assert "at its length times epsilon" in protects(near)
    assert "at its length times epsilon" not in protects(near, DELTA)
    assert "one of up to k at k times epsilon and 1 + e^epsilon + " in protects(near, DELTA)
