"""The 99 TPC-DS texts: whether each is planned, printed back to the same answer, and bounded for one customer.

Data and texts come from DuckDB's own generator, in an environment of its own; nothing of them is kept here.
"""
