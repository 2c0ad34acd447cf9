"""From a bound and an epsilon to a distribution: mechanisms, which one a measure gets, shares of epsilon, their price.

In: certificates, epsilon, delta. Out: noise that is settled before anything is read, with its cost and its error.
Never here: a choice that looks at data. `mechanisms` draws, `choosing` picks, `continual` is for streams.
"""
