"""What is true of a plan under a policy and a catalog: keys, lineage, regions, ranges, owners, domains of keys.

In: relations and declared facts. Out: facts, each derived here and nowhere else. Never here: a change to a plan, or
data.
"""
