"""Plans to plans: normal form, declared facts as operators, what cannot fail, sums that are measured.

In: a plan. Out: a plan that means the same, or one in which declared facts hold by construction (I2). Never here: a
bound.
"""
