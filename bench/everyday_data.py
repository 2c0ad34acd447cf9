"""A table that everyday statistics are compared on; numpy only, so that peers in other environments read it too."""

from __future__ import annotations

import numpy as np

ROWS, TABLES = 5000, 12
EPSILONS = (0.1, 1.0)
BOUNDS = [(0.0, 100.0), (0.0, 10.0), (0.0, 300.0)]
EDGES = [float(edge) for edge in range(0, 101, 10)]


def table(number: int) -> np.ndarray:
    """Give ages, years of school, and what depends on both; the same for everybody who asks."""
    draw = np.random.default_rng([77, number])
    ages, school = draw.normal(45, 15, ROWS), draw.normal(5, 1.5, ROWS)
    pay = 2 * ages + 10 * school + draw.normal(0, 20, ROWS)
    rows = np.column_stack([ages, school, pay])
    return np.clip(rows, [low for low, _ in BOUNDS], [high for _, high in BOUNDS])


def truths(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Give what is to be estimated."""
    ages = rows[:, 0]
    design = np.column_stack([rows[:, :2], np.ones(len(rows))])
    return {
        "sum": np.array([ages.sum()]),
        "share": np.array([(ages >= 65).mean()]),
        "deviation": np.array([ages.std()]),
        "histogram": np.histogram(ages, EDGES)[0].astype(float),
        "covariance": np.cov(rows.T, bias=True)[np.triu_indices(3)],
        "regression": np.linalg.lstsq(design, rows[:, 2], rcond=None)[0][:2],
    }
