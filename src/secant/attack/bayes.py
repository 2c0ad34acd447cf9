"""Bayes' rule for an attacker who knows a prior of a whole column and no row of it: a simulation, never a guarantee.

In: what each row adds to a sum by its value, in whole cells of a grid, and the noise. Out: how often the best guess of
one row is right, on average over the noise at one true sum (P_C) and over all databases of the prior (P_P). Rows add
independently of each other, so the law of all other rows is computed, not drawn. For the owner's eyes; where rows
depend on each other it tells too little.
"""

from __future__ import annotations

from collections.abc import Sequence

from secant.attack.priors import Atoms, Prior, spread
from secant.numeric.arrays import Floats, Wholes, np, required
from secant.records import frozen

FINE = 2_000
MOST_CELLS = 1 << 14
TAILS = 40
"""So many sizes of the noise are looked at to either side: beyond lies less than a float tells."""
_NOTHING = 1e-15
"""Added to every chance: where rounding is all that is left, the attacker keeps to the prior."""


@frozen
class Added:
    """Rows that add alike, and what each adds by its value, in whole cells."""

    rows: int
    cells: Wholes


@frozen
class Law:
    """The noise of a release, in cells."""

    size: float
    normal: bool = False
    """Whether it is normal; else it is Laplace."""

    def shares(self, most: int) -> Floats:
        """Give the chances of all whole cells up to `most` to either side."""
        far = np.abs(np.arange(-most, most + 1)) / max(self.size, 1e-6)
        mass = np.exp(-(far**2) / 2 if self.normal else -far)
        return np.asarray(mass / mass.sum())


def points_of(prior: Prior, most: int) -> tuple[Floats, Floats]:
    """Give values with their shares: those of the prior, or so many that stand for equal shares of it."""
    values, shares = _table(prior)
    if len(values) <= most:
        return values, shares
    reached = (np.arange(most) + 0.5) / most
    indices = np.minimum(np.searchsorted(np.cumsum(shares), reached), len(values) - 1)
    return values[indices], np.full(most, 1 / most)


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


def cells_of(kinds: Sequence[tuple[int, Floats]], size: float) -> float:
    """Give how large a cell is, in the unit of what rows add: 1 where all sums and the noise fit into few enough."""
    wide = sum(rows * float(np.ptp(added)) for rows, added in kinds) + 2 * TAILS * size
    return max(1.0, wide / MOST_CELLS)


def chances(
    kinds: Sequence[Added], guessed: int, shares: Floats, law: Law, truth: int, targets: Floats
) -> tuple[float, float]:
    """Give P_C at a true sum, and P_P, for a guess of one row of the kind that is guessed."""
    most = int(np.ceil(TAILS * law.size))
    others = [Added(k.rows - (i == guessed), k.cells) for i, k in enumerate(kinds)]
    others_law = _sum_law([k for k in others if k.rows], shares)
    noisy = np.maximum(required("scipy.signal").fftconvolve(others_law, law.shares(most)), 0.0)
    own = kinds[guessed].cells - kinds[guessed].cells.min()
    # One line for each sum that can be seen: how likely it is, value by value.
    seen = np.zeros((len(noisy) + int(own.max()), len(own)))
    for column, (start, share) in enumerate(zip(own, shares, strict=True)):
        seen[start : start + len(noisy), column] = noisy * share
    seen += _NOTHING * shares
    best = (seen @ targets.T).max(axis=1)
    least = sum(k.rows * int(k.cells.min()) for k in kinds) - most
    places = truth - least + np.arange(-most, most + 1)
    inside = (places >= 0) & (places < len(seen))
    right = np.full(len(places), float((targets @ shares).max()))
    right[inside] = best[places[inside]] / seen[places[inside]].sum(axis=1)
    return float(law.shares(most) @ right), float(best.sum() / seen.sum())


def _sum_law(kinds: Sequence[Added], shares: Floats) -> Floats:
    """Give the law of the sum of many rows, above the least that they can add."""
    wide = sum(k.rows * int(np.ptp(k.cells)) for k in kinds) + 1
    transformed = np.ones(wide // 2 + 1, dtype=complex)
    for kind in kinds:
        one = np.zeros(wide)
        np.add.at(one, kind.cells - kind.cells.min(), shares)
        transformed *= np.fft.rfft(one) ** kind.rows
    mass = np.maximum(np.fft.irfft(transformed, wide), 0.0)
    return np.asarray(mass / mass.sum())
