"""How far a shown number may be from the true one: what it is made of, its ends, forecasts, warnings, consistency.

In: a planned release, released numbers, public facts. Out: ends that hold, warnings before anything is spent. Never
here: a number that noise is not yet on.
"""
