"""Engines that hold data: sessions, catalogs, dialects, and how a plan is printed and made faster for each.

In: a source as the owner writes it, and plans. Out: rows of statements that were printed here (I1). Never here: the
user's own text, or an engine's message, which could quote a row.
"""
