"""Columns that estimators are compared on; numpy only, so that peers in other environments read it too."""

from __future__ import annotations

import numpy as np

SHAPES: dict[str, tuple[float, float]] = {
    "uniform": (0.0, 1.0),
    "incomes": (0.0, 1e6),
    "bimodal": (0.0, 1.0),
    "outliers": (0.0, 1.0),
}
"""By name: the public bounds."""
SIZES = (1001, 100_000)
EPSILONS = (0.1, 1.0)


def column(shape: str, size: int, number: int) -> np.ndarray:
    """Give the sorted values of one made-up column; the same for everybody who asks."""
    draw = np.random.default_rng([list(SHAPES).index(shape), size, number])
    if shape == "uniform":
        values = draw.random(size)
    elif shape == "incomes":
        values = np.exp(draw.normal(10.5, 0.8, size))
    elif shape == "bimodal":
        values = draw.normal(np.where(draw.random(size) < 0.5, 0.3, 0.7), 0.05)
    else:
        inside = draw.normal(0.5, 0.02, size)
        values = np.where(draw.random(size) < 0.01, draw.random(size), inside)
    return np.sort(np.clip(values, *SHAPES[shape]))


HELD_OUT = ("beta", "exponential", "narrow normal", "ages", "zeros and a tail", "narrow uniform")
"""Shapes on 0 to 1 that nothing in the automatic choice was adjusted to. Keep it so."""


def held_out_column(shape: str, size: int, number: int) -> np.ndarray:
    """Give the sorted values of a column of a held-out shape."""
    draw = np.random.default_rng([100 + HELD_OUT.index(shape), size, number])
    if shape == "beta":
        values = draw.beta(2, 5, size)
    elif shape == "exponential":
        values = draw.exponential(0.1, size)
    elif shape == "narrow normal":
        values = draw.normal(0.5, 0.03, size)
    elif shape == "ages":
        values = np.round(draw.normal(40, 18, size)) / 120
    elif shape == "zeros and a tail":
        values = np.where(draw.random(size) < 0.3, 0.0, draw.pareto(2, size) * 0.02)
    else:
        values = 0.45 + 0.1 * draw.random(size)
    return np.sort(np.clip(values, 0.0, 1.0))


def truths(values: np.ndarray) -> dict[str, float]:
    """Give what is to be estimated."""
    size = len(values)
    cut = int(0.1 * size)
    return {
        "median": float(values[(size + 1) // 2 - 1]),
        "quantile 0.25": float(values[int(np.ceil(size / 4)) - 1]),
        "quantile 0.9": float(values[int(np.ceil(size * 9 / 10)) - 1]),
        "minimum": float(values[0]),
        "maximum": float(values[-1]),
        "mean": float(values.mean()),
        "trimmed mean": float(values[cut : size - cut].mean()),
        "variance": float(values.var()),
    }
