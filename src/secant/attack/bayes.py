"""Bayes' rule for an attacker who knows a prior of a whole column and no row of it: a simulation, never a guarantee.

In: the mean answer by the value of the row that is guessed, how widely all other rows spread it, and the noise. Out:
how often the best guess is right for an answer (P_Y). The average of that over the noise at one true answer is P_C,
over all databases of the prior P_P. For the owner's eyes; where rows depend on each other it tells too little.
"""

from __future__ import annotations

from collections.abc import Sequence

from secant.attack.priors import Atoms, Prior, spread
from secant.numeric.arrays import Floats, np, required
from secant.records import frozen

FINE = 2_000


@frozen
class Blur:
    """What stands between an answer and the value: other rows, taken for normal, and the noise of the release."""

    spread: float
    """The standard deviation that all other rows cause."""
    scale: float
    """The size of the noise."""
    normal: bool = False
    """Whether the noise is normal; else it is Laplace."""

    def noise(self, generator: np.random.Generator, count: int) -> Floats:
        """Draw the noise of releases."""
        drawn = generator.normal if self.normal else generator.laplace
        return np.asarray(drawn(size=count)) * self.scale

    def log_density(self, gaps: Floats) -> Floats:
        """Give the logarithm of the density of both together, but for a constant."""
        wide, scale = self.spread, self.scale
        if self.normal:
            return -(gaps**2) / (2 * (wide**2 + scale**2))
        if wide < 1e-6 * scale:
            return -np.abs(gaps) / scale
        log_ndtr = required("scipy.special").log_ndtr

        # Normal plus Laplace, in logarithms: two tails of the exponential, each met by the bell.
        tilt = wide / scale
        left = -gaps / scale + log_ndtr(gaps / wide - tilt)
        right = gaps / scale + log_ndtr(-gaps / wide - tilt)
        return np.asarray(np.logaddexp(left, right))


def points_of(prior: Prior, most: int) -> tuple[Floats, Floats]:
    """Give values with their shares: those of the prior, or so many that stand for equal shares of it."""
    values, shares = _table(prior)
    if len(values) <= most:
        return values, shares
    reached = (np.arange(most) + 0.5) / most
    kept = np.minimum(np.searchsorted(np.cumsum(shares), reached), len(values) - 1)
    return values[kept], np.full(most, 1 / most)


def drawn_from(prior: Prior, generator: np.random.Generator, count: int) -> Floats:
    """Draw values from a prior."""
    values, shares = _table(prior)
    return generator.choice(values, size=count, p=shares)


def _table(prior: Prior) -> tuple[Floats, Floats]:
    shape = spread(prior, logarithmic=False)
    if isinstance(shape, Atoms):
        return shape.values, shape.shares / shape.shares.sum()
    edges = np.linspace(shape.edges[0], shape.edges[-1], FINE + 1)
    values = (edges[1:] + edges[:-1]) / 2
    piece = np.searchsorted(shape.edges, values, side="right") - 1
    piece = np.clip(piece, 0, len(shape.heights) - 1)
    logs = shape.heights[piece] + shape.slopes[piece] * (values - shape.edges[piece])
    shares = np.exp(logs - logs.max())
    return values, shares / shares.sum()


def targets_of(values: Floats, radius: float, center: float | None) -> Floats:
    """Give which values count as one guess, one line for every guess that matters."""
    slack = 1e-9 * max(1.0, float(np.abs(values).max()))
    lows = values if center is None else np.array([center - radius])
    above = values[None, :] >= lows[:, None] - slack
    return (above & (values[None, :] <= lows[:, None] + 2 * radius + slack)).astype(float)


def right_guesses(
    means: Floats, shares: Floats, seen: Floats, blur: Blur, targets: Floats
) -> Floats:
    """Give P_Y for each answer that is seen: the chance that the best guess is right."""
    logs = blur.log_density(np.asarray(seen)[:, None] - means[None, :])
    mass = np.exp(logs - logs.max(axis=1, keepdims=True)) * shares
    return np.asarray((mass @ targets.T).max(axis=1) / mass.sum(axis=1))


def mean_of(chances: Sequence[float] | Floats) -> float:
    """Give the average chance."""
    return float(np.mean(chances))
