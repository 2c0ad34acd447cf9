"""Private statistics of columns: released with the best mechanism, or bounded for one's own use."""

from secant.stats.aggregate import aggregate
from secant.stats.bounded import bounded, bounded_pair
from secant.stats.budget import Allowance
from secant.stats.promises import Bounded, BoundedPair
from secant.stats.registered import register_ordered
from secant.stats.release import (
    count,
    maximum,
    mean,
    median,
    minimum,
    quantile,
    trimmed_mean,
    variance,
)
from secant.stats.results import Release
from secant.stats.triangles import triangles

__all__ = [
    "Allowance",
    "Bounded",
    "BoundedPair",
    "Release",
    "aggregate",
    "bounded",
    "bounded_pair",
    "count",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantile",
    "register_ordered",
    "triangles",
    "trimmed_mean",
    "variance",
]
