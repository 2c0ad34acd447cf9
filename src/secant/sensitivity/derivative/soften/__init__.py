"""Queries over values that may move become queries that move no faster than they must.

In: an aggregate with filters on protected values. Out: the same aggregate with soft filters, branch by branch. Never
here: how fast the result moves, which the calculus of the analysis says.
"""
