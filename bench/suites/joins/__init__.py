"""Joins under row protection: what every analysis bounds, beside what is exactly true.

In: TPC-H data, and made-up graphs and chains with heavy tails. Out: for every query the smooth bound
of each analysis, the true local sensitivity and the exact smooth sensitivity. The data are generated;
nothing is charged, and no ledger is opened.
"""
