"""The 22 queries of TPC-H as they stand in the specification, asked with one customer protected.

In: generated TPC-H data and a policy. Out: for every query whether it is answered, and how far a
release is from what the user's own text gives. The data are generated, so true answers may be
used. Nothing is charged, and no ledger is opened.
"""
