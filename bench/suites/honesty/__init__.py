"""Do printed intervals hold? Made-up databases, each released many times and held against the plain answers.

In: generated data. Out: for every question the share of numbers whose printed ends hold the truth of the user's own
text, and how far the numbers are off. The data are generated, so true answers may be used; nothing is charged, and no
ledger is opened.
"""
