"""What a question means: immutable nodes, their types, and whether they are well formed.

In: what `sql.bind` and rewrites build. Out: trees that every other room reads through tables of rules. Never here:
text of SQL, an engine, a bound. `functions` says what may be called, `facts` what is known, `rewrites` what may
change, `evaluate` what a plan gives on Python rows.
"""
