"""The 17 queries of Laud, Pankova and Pettai, and what their tool made of them.

In: TPC-H data of some scale. Out: for every query what Secant does with it, beside the paper's
numbers. The data are generated, so true answers may be shown. Nothing is released or charged here.
"""
