"""The functions that a plan may call: one record each, and what they compute on Python values.

In: argument types and values. Out: result types, values, ranges. Never here: how an engine spells them.
"""
