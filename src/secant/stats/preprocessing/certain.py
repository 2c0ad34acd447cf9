"""preprocess.certain: when limits of individuals change nothing, found without visiting subsets.

In: sorted values, the limits of those present, the center. Out: whether every part of the data is as near to the whole
as its missing members allow; then g = f. Floats decide, with margins for their rounding: "no" means "not known".
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from secant.stats.inputs import Values

_LOOSE = 1 - 2.0**-30
_EPS = float(np.finfo(np.longdouble).eps)


def certain_ordered(
    ordered: Values,
    limits: Sequence[Fraction],
    empty: Fraction,
    *,
    trim: Fraction | None,
    share: Fraction | None,
) -> bool:
    """Say whether g = f is sure for a trimmed mean, or for the quantile at a share."""
    size = int(ordered.size)
    sizes = np.arange(1, size + 1, dtype=np.int64)
    if trim is not None:
        running = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.longdouble)))
        cut = trim.numerator * sizes // trim.denominator
        kept = (sizes - 2 * cut).astype(np.float64)
        least = ((running[sizes - cut] - running[cut]) / kept).astype(np.float64)
        start = size - sizes
        most = ((running[size - cut] - running[start + cut]) / kept).astype(np.float64)
    else:
        assert share is not None
        least = _ranked(ordered, np.zeros(size, dtype=np.int64), sizes, share)
        most = _ranked(ordered, size - sizes, sizes, share)
    margin = 8 * size * size * _EPS * float(np.abs(ordered).max()) + 2.0**-40 * abs(float(empty))
    margin += 2.0**-48 * float(np.abs(ordered).max())
    spare = _cheapest(limits, size)
    target = float(least[-1])
    if abs(target - float(empty)) + margin > float(spare[size]):
        return False
    missing = spare[size - sizes[:-1]]
    above = bool((most[:-1] - target + margin <= missing).all())
    return above and bool((target - least[:-1] + margin <= missing).all())


def certain_variance(ordered: Values, limits: Sequence[Fraction]) -> bool:
    """Say whether g = f is sure for the population variance, with 0 for no values."""
    size = int(ordered.size)
    moved = ordered - ordered[size // 2]
    moved = moved - moved.mean()
    squares = float((moved * moved).sum()) * (1 + 2.0**-30)
    spread = squares / size
    own = np.sort(4.0 * (size * moved * moved + squares) / size**2)[::-1] * (1 + 2.0**-30)
    spare = _cheapest(limits, size)
    # the lower side: each who leaves takes at most their share, while half remain
    if size > 1 and not float(own[0]) <= float(spare[1]):
        return False
    if spread > float(spare[(size + 1) // 2]):
        return False
    # the upper side: what remains has at most n/(n-k) times the variance, and a quarter of the squared range
    widest = (float(moved.max()) - float(moved.min())) ** 2 / 4 * (1 + 2.0**-30)
    gone = np.arange(1, size, dtype=np.float64)
    grown = np.minimum(spread * gone / (size - gone), max(widest - spread * (1 - 2.0**-20), 0.0))
    return bool((grown <= spare[1:size]).all())


def _ranked(
    ordered: Values, start: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], share: Fraction
) -> Values:
    """Give quantiles of windows that begin at `start`."""
    place = (sizes - 1) * share.numerator // share.denominator
    part = ((sizes - 1) * share.numerator % share.denominator) / share.denominator
    below = ordered[start + place]
    above = ordered[np.minimum(start + place + 1, ordered.size - 1)]
    found: Values = below + part * (above - below)
    return found


def _cheapest(limits: Sequence[Fraction], size: int) -> Values:
    """Give the least that 0, 1, 2, … of those present may move together, rounded down."""
    own = np.sort(np.array([float(limit) for limit in limits], dtype=np.float64))
    found: Values = np.concatenate(([0.0], np.cumsum(own))) * (_LOOSE - size * 2.0**-50)
    return found
