"""Passes over a plan before it is printed, each with the same rows and columns: only time changes.

In: a plan. Out: a plan. Chosen by types, declared ranges and the text. Never here: data. Each engine lists the
passes that it takes, in order and with a reason each, in a tuple `OPTIMIZE` beside its dialect.
"""
