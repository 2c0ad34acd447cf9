"""Rows that come and go and values that move: what is drawn on two databases, against how far apart they are.

The distance is a matching with births and deaths, written anew here. Questions are the product's own: its statements
run in memory, its noise is calibrated. Out: the largest logarithm of the ratio of densities over epsilon times the
distance, and the largest change of a bound over what its smoothness allows.
"""

import itertools
import math
import random
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import numpy as np
from derivative_check import Memory
from derivative_distance import row_length

from secant.noise.calibrate import calibrate
from secant.noise.query_plan import reading_of
from secant.noise.secrecy import unseal
from secant.noise.smooth import CurveNoise
from secant.plan.evaluate.evaluate import prepare as compiled
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import USUAL
from secant.release import measured
from secant.release import print as printing
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.split import Decomposition, prepare
from secant.sql.bind import from_sql

CLOSE = 1e-6
"""What floats may add to a ratio."""


class Question:
    """One release with the noise that is calibrated for it, ready to be read on databases."""

    def __init__(self, text, epsilon, catalog, policy, delta=Fraction(0)):
        self.policy = policy
        plan = normalize(from_sql(text, catalog))
        found = prepare(plan, policy, policy.protections, catalog, PublicFacts(epsilon))
        assert isinstance(found, Decomposition), (text, found)
        (self.bounded,) = found.bounded
        self.calibrated = calibrate(
            found.bounded,
            policy.protections,
            epsilon,
            {p.name: delta for p in policy.protections},
        )
        noise = self.calibrated.noise
        reading = reading_of(self.bounded.release, noise, {})
        self.memory = Memory()
        for name, relation in reading.relations().items():
            self.memory.plans[f"{name}?"] = compiled(relation)
        self.job = SimpleNamespace(
            prepared=Decomposition(found.post, (self.bounded,)),
            noise=self.calibrated,
            statements={name: f"{name}?" for name in reading.relations()},
            readings={self.bounded.release.name: reading},
            groups=USUAL.groups,
        )
        self.noise = noise

    def read(self, database):
        """Give by measure and group: value and scale, in whole steps."""
        self.memory.database = database
        release = self.bounded.release
        keys = printing.look_up_keys(self.job, self.memory)[release.name]
        found = measured.measured(self.bounded, self.job, keys, self.memory)
        made = {}
        for m in release.measures:
            noise, content = found.noise[m.column], unseal(found.values[m.column])
            values = noise.unnoised(content) if isinstance(noise, CurveNoise) else content
            if isinstance(noise, CurveNoise):
                scales = noise.scales(content)
            else:
                scales = [getattr(noise, "size", 0) / noise.epsilon] * len(values)
            for key, value, scale in zip(unseal(found.keys), values, scales, strict=True):
                made[m.column, measured.comparable(key)] = (float(value), float(scale))
        return made


def log_density(v, k):
    """The law with the least noise for smooth bounds."""
    a = (1 - 1 / k) ** (k - 1)
    outer, total, u = a * (1 + 1 / k) ** (k + 1), 1 + 2 * a / k, np.abs(v)
    inside = (k - 1) * np.log1p(-np.minimum(u, 1) / k)
    return np.where(u < 1, inside, np.log(outer) - (k + 1) * np.log1p(u / k)) - np.log(2 * total)


GRID = np.concatenate([-np.logspace(4, -2, 25), [0], np.logspace(-2, 4, 25)])


def losses(noise, f, s, g, r):
    """Give for arrays of pairs (f, s), (g, r) the largest logarithm of the ratio of densities."""
    silent = (s == 0) | (r == 0)
    told = np.where((s == r) & (f == g), 0.0, np.inf)
    s, r = np.where(silent, 1.0, s), np.where(silent, 1.0, r)
    if not isinstance(noise, CurveNoise):
        return np.where(silent, told, np.abs(f - g) / s)
    k = float(noise.smooth.epsilon / noise.smooth.beta)
    worst = np.zeros_like(f)
    for start in (f, g):
        for scale in (s, r):
            for step in GRID:
                y = start + step * scale
                one = log_density((y - f) / s, k) - np.log(s)
                two = log_density((y - g) / r, k) - np.log(r)
                worst = np.maximum(worst, np.abs(one - two))
    return np.where(silent, told, worst)


def changes(s, r):
    """Give how far the logarithms of bounds are apart; infinite where one of them is 0."""
    silent = (s == 0) | (r == 0)
    known = np.abs(np.log(np.where(silent, 1.0, s) / np.where(silent, 1.0, r)))
    return np.where(silent, np.where(s == r, 0.0, np.inf), known)


@cache
def length_of(norm):
    return row_length(norm)


def apart(norm, one, two):
    """Give the length of a move from one row to another; infinite where something moves that the norm does not name."""
    if norm is None:
        return 0.0 if one == two else math.inf
    length, named = length_of(norm)
    if any(one[c] != two[c] for c in one if c not in named):
        return math.inf
    if any((one[c] is None) != (two[c] is None) for c in named):
        return math.inf
    known = [c for c in named if one[c] is not None]
    if len(known) < len(named):
        filled = {**one, **{c: 0.0 for c in named if c not in known}}
        return length(filled, {**two, **{c: 0.0 for c in named if c not in known}})
    return length(one, two)


def distance(before, after, weights, known):
    """Give the distance of two databases; `weights` are, by table, its norm and what a row counts as."""
    total = 0.0
    for table, (norm, weight) in weights.items():
        pair = table, id(before[table]), id(after[table])
        if pair not in known:
            known[pair] = matched(norm, before[table], after[table], float(weight))
        total += known[pair]
    return total


def matched(norm, one, two, weight):
    """Match rows with births and deaths, at the least cost."""
    if not one:
        return weight * len(two)
    first, rest = one[0], one[1:]
    best = weight + matched(norm, rest, two, weight)
    for i, other in enumerate(two):
        step = apart(norm, first, other)
        if step < best:
            best = min(best, step + matched(norm, rest, two[:i] + two[i + 1 :], weight))
    return best


def checked(question, databases, weights, pairs=None):
    """Give the largest loss over ε·d and the largest change of a bound over β·d, over all pairs or some."""
    readings = [question.read(d) for d in databases]
    chosen = pairs or list(itertools.combinations(range(len(databases)), 2))
    measured_before = {}  # databases share their tables
    d = np.array(
        [distance(databases[i], databases[j], weights, measured_before) for i, j in chosen]
    )
    kept = [n for n, x in enumerate(d) if x > 0]
    assert kept, "no two databases are apart"
    d, chosen = d[kept], [chosen[n] for n in kept]
    worst = smooth = 0.0
    for m in question.bounded.release.measures:
        noise = question.noise[m.column]
        total = np.zeros(len(chosen))
        rough = np.zeros(len(chosen))
        for key in {key for r in readings for key in r if key[0] == m.column}:
            f, s = (np.array([readings[i][key][n] for i, _ in chosen]) for n in (0, 1))
            g, r = (np.array([readings[j][key][n] for _, j in chosen]) for n in (0, 1))
            total += losses(noise, f, s, g, r)
            rough += changes(s, r)
        epsilon = float(noise.epsilon)
        worst = max(worst, float((total / (epsilon * d)).max(initial=0.0)))
        if isinstance(noise, CurveNoise):
            # Each of the groups that a row reaches has its share of epsilon, and a bound of its own.
            groups = float(epsilon / noise.smooth.epsilon)
            allowed = groups * float(noise.smooth.beta) * d
            smooth = max(smooth, float((rough / allowed).max(initial=0.0)))
    return worst, smooth


def search(asked, drawn, measure, texts, settings, count, seed):
    """Give the largest share of what is allowed, over drawn pairs, and how many there were."""
    draw = random.Random(seed)
    found = []
    for text in texts:
        for epsilon, weights in settings:
            question = asked(text, weights, epsilon)
            databases = [d for _ in range(count) for d in drawn(draw)]
            pairs = [(2 * i, 2 * i + 1) for i in range(count)]
            pairs += [tuple(draw.sample(range(2 * count), 2)) for _ in range(4 * count)]
            worst = max(measure(question, databases, weights, pairs))
            found.append((worst, text, float(epsilon), weights))
    return max(found), len(found) * 5 * count
