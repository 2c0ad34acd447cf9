"""For the owner: search small databases for neighbors that come close to a certified bound, or refute it.

In: a question, a policy, a catalog. Out: the largest shift of each measure beside what is certified. The databases are
drawn here; no row of the owner's data is read, and nothing is spent.
"""

from secant.audit.search import Claim, Found, audit

__all__ = ["Claim", "Found", "audit"]
