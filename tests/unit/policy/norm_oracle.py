"""Norms in plain floats, written apart from the code under test: values, gradients, extremal moves."""

import math
import random
from fractions import Fraction

import numpy as np

from chance import fresh_seed
from secant.policy.norms import ColumnNorm, CombinedNorm, Leaf, ScaledNorm

_GENERATOR = np.random.default_rng(fresh_seed())
POWERS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(7), None)


def values(norm, points):
    """Give the norm of each row of `points`, a dict from column to an array."""
    if isinstance(norm, Leaf):
        return np.abs(points[norm.column])
    if isinstance(norm, ScaledNorm):
        return float(norm.factor) * values(norm.inner, points)
    parts = np.stack([values(part, points) for part in norm.parts])
    largest = parts.max(axis=0)
    if norm.power is None:
        return largest
    safe = np.where(largest > 0, largest, 1.0)
    exponent = float(norm.power)
    return safe * ((parts / safe) ** exponent).sum(axis=0) ** (1 / exponent) * (largest > 0)


def gradient(norm, point):
    """Give (value, subgradient by column) at a point with entries that are not negative."""
    if isinstance(norm, Leaf):
        return point[norm.column], {norm.column: 1.0}
    if isinstance(norm, ScaledNorm):
        value, slopes = gradient(norm.inner, point)
        factor = float(norm.factor)
        return factor * value, {name: factor * slope for name, slope in slopes.items()}
    found = [gradient(part, point) for part in norm.parts]
    sizes = [value for value, _ in found]
    largest = max(sizes)
    if norm.power is None or largest == 0:
        weights = [float(i == sizes.index(largest)) for i in range(len(found))]
        value = largest
    else:
        exponent = float(norm.power)
        value = largest * sum((size / largest) ** exponent for size in sizes) ** (1 / exponent)
        weights = [(size / value) ** (exponent - 1) for size in sizes]
    slopes = {}
    for weight, (_, part) in zip(weights, found, strict=True):
        for name, slope in part.items():
            slopes[name] = slopes.get(name, 0.0) + weight * slope
    return value, slopes


def extremal(norm, slopes):
    """Give a move of length 1 along which a gradient attains its dual norm, and that dual norm."""
    if isinstance(norm, Leaf):
        slope = slopes.get(norm.column, 0.0)
        return {norm.column: math.copysign(1.0, slope)}, abs(slope)
    if isinstance(norm, ScaledNorm):
        moves, dual = extremal(norm.inner, slopes)
        factor = float(norm.factor)
        return {name: move / factor for name, move in moves.items()}, dual / factor
    found = [extremal(part, slopes) for part in norm.parts]
    duals = [dual for _, dual in found]
    if norm.power is None:
        weights = [1.0] * len(found)
    elif norm.power == 1:
        weights = [float(i == duals.index(max(duals))) for i in range(len(found))]
    else:
        power = float(norm.power)
        raw = [(dual / (max(duals) or 1.0)) ** (1 / (power - 1)) for dual in duals]
        whole = sum(one**power for one in raw) ** (1 / power) or 1.0
        weights = [one / whole for one in raw]
    moves = {
        name: weight * move
        for weight, (part, _) in zip(weights, found, strict=True)
        for name, move in part.items()
    }
    return moves, sum(weight * dual for weight, dual in zip(weights, duals, strict=True))


def worst_ratio(query, owner, columns, draws=40, climbs=4):
    """Search for the largest query/owner; the owner's norm names every column once.

    Random points, sparse ones and corners, then from the best of them the climb that maximizes the
    query's linear part over the owner's unit ball, which never goes down.
    """
    spread = _GENERATOR.normal(0, 2, (draws, len(columns)))
    table = np.exp(spread) * (_GENERATOR.random((draws, len(columns))) < 0.7)
    table = np.vstack([table, np.eye(len(columns)), np.ones(len(columns))])
    table = table[table.any(axis=1)]
    points = dict(zip(columns, table.T, strict=True))
    units = values(owner, dict(zip(columns, np.eye(len(columns)), strict=True)))
    points = {c: np.append(points[c], 1 / unit) for c, unit in zip(columns, units, strict=True)}
    ratios = values(query, points) / values(owner, points)
    best = float(ratios.max())
    for start in np.argsort(ratios)[-2:]:
        point = {c: float(points[c][start]) for c in columns}
        for _ in range(climbs):
            moves, _ = extremal(owner, gradient(query, point)[1])
            point = {c: abs(moves.get(c, 0.0)) for c in columns}
            best = max(best, gradient(query, point)[0] / gradient(owner, point)[0])
    return best


def random_norm(columns, powers=POWERS):
    """Draw a norm that names each of the columns once."""
    factor = Fraction(random.choice((1, 1, 1, 2, 3, 10)), random.choice((1, 1, 1, 2, 7, 50)))
    if len(columns) == 1:
        return ScaledNorm(factor, ColumnNorm(columns[0]))
    shuffled = random.sample(columns, len(columns))
    count = random.randint(2, len(columns))
    cuts = sorted(random.sample(range(1, len(columns)), count - 1))
    blocks = [shuffled[i:j] for i, j in zip([0, *cuts], [*cuts, len(columns)], strict=True)]
    parts = tuple(random_norm(block, powers) for block in blocks)
    return ScaledNorm(factor, CombinedNorm(random.choice(powers), parts))


def random_pair(most=5):
    """Draw (query, owner, columns of the owner); the query repeats columns half of the time."""
    columns = list("abcdef")[: random.randint(1, most)]
    named = random.sample(columns, random.randint(1, len(columns)))
    query = random_norm(named)
    if random.random() < 0.5:
        again = random.sample(columns, random.randint(1, len(columns)))
        query = CombinedNorm(random.choice(POWERS), (query, random_norm(again)))
    return query, random_norm(columns), columns
