"""Plan in, SQL text out: the only printer of statements that touch data (I1).

In: a plan and a dialect. Out: one statement. Never here: what an engine alone spells otherwise; that stands in its
folder.
"""
