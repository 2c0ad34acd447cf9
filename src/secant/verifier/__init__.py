"""A second, small program that checks what a release left in the records. It shares no rule with the analyses.

In: the record of a release and its documents, as JSON. Out: a verdict, point by point. What it has no rule for it does
not know, and says so. It imports nothing of Secant: who doubts the rest can read these files alone.
"""

from secant.verifier.verdict import QUESTION, STREAM, Point, Verdict, verify

__all__ = ["QUESTION", "STREAM", "Point", "Verdict", "verify"]
