"""Passes over a plan before it is printed, each with the same rows and columns: only time changes.

In: a plan. Out: a plan. Chosen by types, declared ranges and the text. Never here: data. A dialect lists the passes
that it takes.
"""
