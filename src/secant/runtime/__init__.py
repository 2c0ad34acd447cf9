"""Of the process that runs: forked children, the collector of garbage, and how much work planning may make.

In: nothing. Out: locks, blocks, counts. Never here: a question, a plan, data.
"""
