"""Private statistics of columns: released with the best mechanism, or bounded for one's own use."""

from secant.numeric.arrays import installed, lacking

if not installed():  # said here in words of ours: what follows would fail on its first import
    raise lacking()

from secant.stats.aggregate import aggregate
from secant.stats.bounded import bounded, bounded_pair
from secant.stats.budget import Allowance
from secant.stats.counting import count
from secant.stats.groups import GroupReleases, Histogram, group_by, histogram
from secant.stats.moments import Covariance, Regression, covariance, regression
from secant.stats.preprocessing.personal import personal
from secant.stats.preprocessing.registered import register_ordered
from secant.stats.promises import Bounded, BoundedPair
from secant.stats.release import (
    maximum,
    mean,
    median,
    minimum,
    proportion,
    quantile,
    std,
    trimmed_mean,
    variance,
)
from secant.stats.release import total as sum
from secant.stats.results import Release
from secant.stats.triangles import triangles

__all__ = [
    "Allowance",
    "Bounded",
    "BoundedPair",
    "Covariance",
    "GroupReleases",
    "Histogram",
    "Regression",
    "Release",
    "aggregate",
    "bounded",
    "bounded_pair",
    "count",
    "covariance",
    "group_by",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "personal",
    "proportion",
    "quantile",
    "register_ordered",
    "regression",
    "std",
    "sum",
    "triangles",
    "trimmed_mean",
    "variance",
]
