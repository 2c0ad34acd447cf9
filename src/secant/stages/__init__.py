"""The stages that touch a backend or the ledger: ask, open, reserve; and the epsilon that a question leads to.

In: what a caller wrote, a source under a policy. Out: the records that `engine.py` hands from stage to stage. Never
here: a bound, noise. The other stages are modules of their rooms, found by name: `split.py`, `print.py`, `finish.py`.
"""
