"""What a plan gives on Python rows: the oracle that engines and proofs are tested against.

In: a plan and rows. Out: rows. Never here: an engine. In a release it only runs over public numbers.
"""
