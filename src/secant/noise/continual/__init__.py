"""Analysis `continual`: answers that go on, step by step, for one price.

In: public facts of a stream, and the exact whole sum of each step once it is complete. Out: which sums are released
when, with which noise, and the series that follows from them with its errors. `choosing.choose` picks the way by public
facts alone; proofs are in PROOFS.md beside this file. Nothing here runs SQL, keeps files or touches a budget.
"""

from secant.noise.continual.choosing import Candidate, Choice, as_it_is, choose
from secant.noise.continual.mechanisms import Mechanism, way_of
from secant.noise.continual.records import Estimate, Output, Point, StreamFacts

__all__ = [
    "Candidate",
    "Choice",
    "Estimate",
    "Mechanism",
    "Output",
    "Point",
    "StreamFacts",
    "as_it_is",
    "choose",
    "way_of",
]
