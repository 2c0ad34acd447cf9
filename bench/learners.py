"""The learners of the sampling paper's figures, as plain functions of records: a linear SVM and a kernel density.

In: records as rows. Out: parameters, or a function on [0, 1]. Both are deterministic, so that they
can be sampled; no package beyond numpy is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BANDS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7)


@dataclass(frozen=True)
class TwoClasses:
    """Records of the sampling paper §7.2: a label ±1 in the last column, features normal around 0.2 or 0.8."""

    dimension: int

    def __call__(self, count: int, generator: Generator) -> Floats:
        labels = np.where(generator.random(count) < 0.5, 1.0, -1.0)
        centers = np.where(labels > 0, 0.2, 0.8)[:, None]
        features = centers + 0.1 * generator.normal(size=(count, self.dimension))
        return np.column_stack([np.clip(features, 0.0, 1.0), labels])


@dataclass(frozen=True)
class TwoBumps:
    """Records of the sampling paper §7.3: 0.4 · N(0.5, 0.02) + 0.6 · N(0.75, 0.005), second numbers variances."""

    def __call__(self, count: int, generator: Generator) -> Floats:
        first = generator.random(count) < 0.4
        wide = generator.normal(0.5, np.sqrt(0.02), count)
        narrow = generator.normal(0.75, np.sqrt(0.005), count)
        return np.where(first, wide, narrow)


@dataclass(frozen=True)
class LinearSvm:
    """Give (w, b) that minimize ½|w|² + (C/n) Σ max(0, 1 - y(w·x + b)); exact up to rounding.

    A hinge rounded off in a band around its corner is minimized by Newton steps, the band is made
    narrower, and as soon as the points in it tell which constraints hold with equality, the linear
    system of those is solved and checked.
    """

    cost: float = 3.0

    def __call__(self, records: Floats) -> Floats:
        features, labels = records[:, :-1], records[:, -1]
        rows = labels[:, None] * np.column_stack([features, np.ones(len(records))])
        weight = self.cost / len(records)
        found = np.zeros(rows.shape[1])
        for band in _BANDS:
            found = _newton(rows, weight, found, band)
            exact = _corner(rows, weight, found, band)
            if exact is not None:
                return exact
        return found


def _newton(rows: Floats, weight: float, start: Floats, band: float) -> Floats:
    ridge = np.ones(len(start))
    ridge[-1] = 0.0

    def loss(at: Floats) -> float:
        gap = 1 - rows @ at
        inner = np.clip(gap + band, 0, 2 * band) ** 2 / (4 * band) + np.maximum(gap - band, 0)
        return float(0.5 * (ridge * at) @ at + weight * inner.sum())

    at, value = start, loss(start)
    for _ in range(60):
        gap = 1 - rows @ at
        slope = np.clip((gap + band) / (2 * band), 0, 1)
        gradient = ridge * at - weight * (slope @ rows)
        inside = rows[np.abs(gap) < band]
        bend = np.diag(ridge + 1e-9) + weight / (2 * band) * inside.T @ inside
        step = np.linalg.solve(bend, gradient)
        # without a point in the band nothing bends the bias: do not leap
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-300))
        size = 1.0
        while size > 1e-9:
            trial = at - size * step
            found = loss(trial)
            if found <= value - 1e-4 * size * float(gradient @ step):
                break
            size /= 2
        else:
            return at
        at, before, value = trial, value, found
        if before - value <= 1e-15 * abs(value):
            return at
    return at


def _corner(rows: Floats, weight: float, near: Floats, band: float) -> Floats | None:
    """Solve for the points that lie on the corner, as the band suggests; None if that is not it."""
    gap = 1 - rows @ near
    on, beyond = np.abs(gap) < band, gap >= band
    count = int(on.sum())
    if not 0 < count <= rows.shape[1]:
        return None
    signs, points = rows[on, -1], rows[on, :-1]
    held = weight * rows[beyond].sum(axis=0)
    system = np.zeros((count + 1, count + 1))
    system[:count, :count] = points @ points.T
    system[:count, count] = system[count, :count] = signs
    right = np.append(1 - points @ held[:-1], -held[-1])
    try:
        found = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return None
    shares = found[:count]
    exact = np.append(held[:-1] + shares @ points, found[count])
    gap = 1 - rows @ exact
    fits = (
        shares.min() >= -1e-12
        and shares.max() <= weight + 1e-12
        and (gap[beyond] >= -1e-9).all()
        and (gap[~on & ~beyond] <= 1e-9).all()
    )
    return exact if fits else None


@dataclass(frozen=True)
class KernelDensity:
    """Give the kernel density estimate with a normal kernel, as a function on [0, 1]."""

    width: float = 0.05

    def __call__(self, records: Floats) -> Callable[[tuple[float, ...]], float]:
        return lambda point: float(self.kernel(point[0] - records).mean())

    def kernel(self, gaps: Floats) -> Floats:
        """Give the normal density of this width."""
        heights: Floats = np.exp(-0.5 * (gaps / self.width) ** 2)
        return heights / (self.width * math.sqrt(2 * math.pi))
