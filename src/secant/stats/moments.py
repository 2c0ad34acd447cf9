"""statistic.moments: a covariance matrix and a linear regression, from noisy sums of products.

In: a table of numbers, a public range for each column, ε, perhaps δ. Out: records that are computed from the noisy
number of rows, sums and products alone. What one row adds is known exactly, whatever the rest of the data is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from secant.errors import UsageError, public_api
from secant.noise.mechanisms.gaussian import GaussianNoise, NormalNoise
from secant.noise.mechanisms.laplace import GlobalNoise, LaplaceNoise
from secant.noise.secrecy import Private
from secant.numeric.parameters import Number, delta_of
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.stats.budget import Done, paid
from secant.stats.calls import Terms, guarantee_of, quiet, terms_of
from secant.stats.inputs import (
    bounds_of,
    check_lengths,
    check_values,
    decimal_of,
    numbers_of,
    values_of,
)
from secant.stats.results import (
    ADD_REMOVE,
    REPLACE,
    Cost,
    Guarantee,
    Neighbors,
    closing_lines,
    closing_values,
)

Floats = npt.NDArray[np.float64]
Bounds = Sequence[tuple[Number, Number]]
MOST_COLUMNS = 100
_STEPS = 1 << 18  # from the middle of a range to its end
_CHUNK = 1 << 26  # rows whose products of steps still fit 64 bits
_FINE = 1 << 16


@frozen
class Frame:
    """Public ranges as middles and half widths: the columns are computed with between -1 and 1."""

    middles: tuple[Fraction, ...]
    halves: tuple[Fraction, ...]

    def steps(self, rows: Floats) -> npt.NDArray[np.int64]:
        """Put each value on a public scale by a rule for it alone."""
        middle = np.array([float(m) for m in self.middles])
        half = np.array([float(h) for h in self.halves])
        inside = np.clip((rows - middle) / half, -1.0, 1.0)
        steps: npt.NDArray[np.int64] = np.rint(inside * _STEPS).astype(np.int64)
        return steps


@frozen
class Moments:
    """Noisy number of rows, sums and products of columns between -1 and 1. Released, so public."""

    size: float
    sums: Floats
    products: Floats
    deviation: float
    """Of the noise in each."""


@frozen
class Covariance:
    """A covariance matrix (divided by n), with the means it belongs to."""

    matrix: Floats
    means: Floats
    rows: float
    """The number of rows: public under replace, else as noise made it."""
    deviation: float
    """The standard deviation of the noise in each sum of products of columns that lie between -1 and 1."""
    guarantee: Guarantee
    cost: Cost
    mechanism: str
    why: str

    @property
    def correlation(self) -> Floats:
        """The matrix with ones on its diagonal; 0 where a column does not vary."""
        roots = np.sqrt(np.diag(self.matrix))
        outer = np.outer(roots, roots)
        correlation: Floats = np.divide(
            self.matrix, outer, out=np.zeros_like(outer), where=outer > 0
        )
        return correlation

    def __str__(self) -> str:
        rows = ["  " + "  ".join(f"{entry:>12.6g}" for entry in row) for row in self.matrix]
        return "\n".join(["covariance", *rows, *_ending(self)])

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain values, for JSON."""
        return {
            "statistic": "covariance", "matrix": self.matrix.tolist(), "means": self.means.tolist(),
            "rows": self.rows, **closing_values(self.guarantee, self.cost, delta=True),
        }  # fmt: skip


@frozen
class Regression:
    """A linear regression by least squares, made steady by a public ridge."""

    coefficients: Floats
    intercept: float
    ridge: float
    """What was added to the diagonal, in units of columns between -1 and 1, divided by n."""
    rows: float
    deviation: float
    guarantee: Guarantee
    cost: Cost
    mechanism: str
    why: str

    def predict(self, table: object) -> Floats:
        """Give what the regression says for rows of the explaining columns; nothing is charged."""
        rows = numbers_of(table, columns=len(self.coefficients))
        predictions: Floats = rows @ self.coefficients + self.intercept
        return predictions

    def __str__(self) -> str:
        lines = [f"  column {i}   {c:.6g}" for i, c in enumerate(self.coefficients.tolist())]
        return "\n".join(
            ["regression", *lines, f"  intercept  {self.intercept:.6g}", *_ending(self)]
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain values, for JSON."""
        return {
            "statistic": "regression", "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept, "ridge": self.ridge, "rows": self.rows,
            **closing_values(self.guarantee, self.cost, delta=True),
        }  # fmt: skip


def _ending(result: Covariance | Regression) -> list[str]:
    return [
        f"  rows       about {result.rows:.0f}",
        f"  noise      standard deviation {result.deviation:.4g} in each sum of columns between -1 and 1",
        *closing_lines(result.guarantee, result.cost, result.mechanism, result.why),
    ]


@public_api
def covariance(
    table: object,
    *,
    epsilon: Number,
    bounds: Bounds,
    delta: Number = 0,
    budget: object = None,
    neighbors: Neighbors | None = None,
) -> Covariance:
    """Release the covariance matrix of the columns of a table, and their means.

    Args:
        table: Rows of numbers: a two-dimensional array, or a list of rows.
        epsilon: The price.
        bounds: The public range of each column.
        delta: A small probability; with it normal noise is taken where it is smaller.
        budget: As for `median`.
        neighbors: As for `median`; one row is added, removed or replaced.

    >>> rows = [[i % 10, 2 * (i % 10)] for i in range(5000)]
    >>> found = covariance(rows, epsilon=10, bounds=[(0, 9), (0, 18)])
    >>> bool(abs(found.matrix[0, 1] - 16.5) < 1)
    True
    """
    frame = _frame(bounds)
    terms, slack = _terms(table, epsilon, delta, budget, neighbors)
    columns = len(frame.halves)
    noise = noise_for(columns, terms, slack)
    check_values(table, columns=columns)
    moments, cost, description = _released(
        lambda: values_of(table, columns=columns, missing=_middles(frame, terms)),
        frame, terms, noise, "covariance",
    )  # fmt: skip
    center = moments.sums / moments.size
    spread = _steady(moments.products / moments.size - np.outer(center, center))
    halves = np.array([float(h) for h in frame.halves])
    middles = np.array([float(m) for m in frame.middles])
    return Covariance(
        spread * np.outer(halves, halves), middles + halves * center, moments.size,
        moments.deviation, guarantee_of(terms, delta=noise.delta), cost, *description,
    )  # fmt: skip


@public_api
def regression(
    explaining: object,
    explained: object,
    *,
    epsilon: Number,
    bounds: Bounds,
    explained_bounds: tuple[Number, Number],
    delta: Number = 0,
    ridge: Number | None = None,
    budget: object = None,
    neighbors: Neighbors | None = None,
) -> Regression:
    """Release a linear regression of one column on others, with an intercept.

    Args:
        explaining: Rows of the explaining columns.
        explained: The explained column.
        epsilon: The price.
        bounds: The public range of each explaining column.
        explained_bounds: The public range of the explained column.
        delta: As for `covariance`.
        ridge: What is added to variances of columns between -1 and 1; by default what noise may have made of them.
        budget: As for `median`.
        neighbors: As for `median`; one row is added, removed or replaced.

    >>> rows = [[i % 10] for i in range(20_000)]
    >>> found = regression(
    ...     rows, [3 * row[0] + 1 for row in rows], epsilon=10, bounds=[(0, 9)], explained_bounds=(0, 30)
    ... )
    >>> bool(abs(found.coefficients[0] - 3) < 0.3)
    True
    """
    if not isinstance(bounds, (list, tuple)):
        raise UsageError("USE-001", "bounds are a pair for each explaining column")
    frame = _frame([*bounds, explained_bounds])
    penalty = None if ridge is None else decimal_of(ridge, "ridge")
    if penalty is not None and penalty < 0:
        raise UsageError("USE-001", "a ridge is at least 0")
    terms, slack = _terms(explaining, epsilon, delta, budget, neighbors)
    count = len(frame.halves) - 1
    noise = noise_for(count + 1, terms, slack)
    check_values(explaining, columns=count)
    check_values(explained)
    check_lengths(explaining, explained)
    moments, cost, description = _released(
        lambda: values_of(
            _joined(explaining, explained, count),
            columns=count + 1, missing=_middles(frame, terms),
        ),
        frame, terms, noise, "regression",
    )  # fmt: skip
    center = moments.sums / moments.size
    spread = _steady(moments.products / moments.size - np.outer(center, center))
    extra = (
        moments.deviation * math.sqrt(count) / moments.size if penalty is None else float(penalty)
    )
    regularized = spread[:count, :count] + extra * np.eye(count)
    slopes = np.linalg.lstsq(regularized, spread[:count, count], rcond=None)[0]
    halves = np.array([float(h) for h in frame.halves])
    middles = np.array([float(m) for m in frame.middles])
    coefficients = slopes * halves[count] / halves[:count]
    means = middles + halves * center
    intercept = float(means[count] - coefficients @ means[:count])
    return Regression(
        coefficients, intercept, extra, moments.size, moments.deviation,
        guarantee_of(terms, delta=noise.delta), cost, *description,
    )  # fmt: skip


def _frame(bounds: Bounds) -> Frame:
    if not isinstance(bounds, (list, tuple)) or not 0 < len(bounds) <= MOST_COLUMNS:
        raise UsageError("USE-001", f"bounds are a pair for each of up to {MOST_COLUMNS} columns")
    ends = [bounds_of(pair) for pair in bounds]
    if any(pair is None or pair[0] >= pair[1] for pair in ends):
        raise UsageError("USE-001", "each column needs bounds that differ, the lowest first")
    pairs = [pair for pair in ends if pair is not None]
    halves = tuple((high - low) / 2 for low, high in pairs)
    if any(h < Fraction(1, 10**150) for h in halves):
        raise UsageError("USE-001", "bounds are out of range")
    return Frame(tuple((high + low) / 2 for low, high in pairs), halves)


def _terms(
    table: object, epsilon: Number, delta: Number, budget: object, neighbors: Neighbors | None
) -> tuple[Terms, Fraction]:
    terms = terms_of(table, epsilon=epsilon, budget=budget, neighbors=neighbors, level=0.95)
    return terms, delta_of(decimal_of(delta, "delta"))


def moment_change(columns: int, relation: Neighbors) -> tuple[int, int]:
    """Give how far one row moves all moments together: in l1, and the square of it in l2 (statistic.moments)."""
    products = columns * (columns + 1) // 2
    if relation == ADD_REMOVE:
        return 1 + columns + products, 1 + columns + products
    # sums and mixed products move by 2 at most, squares by 1; the number of rows is public
    mixed = columns * (columns - 1) // 2
    return 2 * columns + 2 * mixed + columns, 4 * columns + 4 * mixed + columns


def noise_for(columns: int, terms: Terms, slack: Fraction) -> GlobalNoise | NormalNoise:
    """Calibrate Laplace noise, or normal noise where δ is given and it is smaller; else δ is not charged."""
    total, square = moment_change(columns, terms.neighbors)
    laplace = LaplaceNoise().calibrate(
        GlobalBound(Fraction(total)), epsilon=terms.epsilon, grid=total / terms.epsilon / _FINE
    )
    if slack:
        root = Fraction(math.isqrt(square << 64) + 1, 1 << 32)
        normal = GaussianNoise().calibrate(
            GlobalBound(root, "l2"), epsilon=terms.epsilon, delta=slack, grid=laplace.grid
        )
        if deviation_of(normal) < deviation_of(laplace):
            return normal
    return laplace


def deviation_of(noise: GlobalNoise | NormalNoise) -> float:
    """Give the standard deviation of the noise."""
    if isinstance(noise, NormalNoise):
        return float(noise.sigma)
    return math.sqrt(2) * float(noise.scale)


def _released(
    read: Callable[[], Floats],
    frame: Frame,
    terms: Terms,
    noise: GlobalNoise | NormalNoise,
    name: str,
) -> tuple[Moments, Cost, tuple[str, str]]:
    columns = len(frame.halves)
    hidden = terms.neighbors == ADD_REMOVE
    cost: Cost
    done = Done(name, noise, {"columns": columns})
    with paid(terms.budget, terms.epsilon, done, delta=noise.delta) as cost, quiet():
        size, sums, products = exact_moments(frame.steps(read()))
        upper = [products[j][k] for j in range(columns) for k in range(j, columns)]
        exact = [*([Fraction(size)] if hidden else []), *sums, *upper]
        drawn = [float(n) for n in noise.draw_many([Private(value) for value in exact])]
    count = max(drawn.pop(0), 1.0) if hidden else float(size)
    square = np.zeros((columns, columns))
    square[np.triu_indices(columns)] = drawn[columns:]
    square = square + np.triu(square, 1).T
    law = "Laplace" if isinstance(noise, GlobalNoise) else "normal"
    why = f"{law} noise on {len(exact)} sums that one row moves together by a known amount"
    return (
        Moments(count, np.array(drawn[:columns]), square, deviation_of(noise)),
        cost,
        (noise.name, why),
    )


def _middles(frame: Frame, terms: Terms) -> list[float] | None:
    """Give what stands for entries that are missing: the number of rows is public, or else their rows are left out."""
    return [float(m) for m in frame.middles] if terms.neighbors == REPLACE else None


def _joined(explaining: object, explained: object, count: int) -> Floats:
    rows, last = numbers_of(explaining, columns=count), numbers_of(explained)
    if len(rows) != len(last):
        raise UsageError("USE-001", "each row needs one explained value")
    return np.column_stack([rows, last])


def exact_moments(
    steps: npt.NDArray[np.int64],
) -> tuple[int, list[Fraction], list[list[Fraction]]]:
    """Give the number of rows, and sums and products of columns between -1 and 1, unrounded."""
    columns = steps.shape[1]
    sums = [0] * columns
    products = [[0] * columns for _ in range(columns)]
    for start in range(0, len(steps), _CHUNK):
        part = steps[start : start + _CHUNK]
        for j in range(columns):
            sums[j] += int(part[:, j].sum())
            for k in range(j, columns):
                products[j][k] += int(part[:, j] @ part[:, k])
    return (
        len(steps),
        [Fraction(total, _STEPS) for total in sums],
        [[Fraction(product, _STEPS**2) for product in row] for row in products],
    )


def _steady(matrix: Floats) -> Floats:
    """Give the nearest matrix that can be a covariance: no negative eigenvalue."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    positive: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive
