"""Sensitivity preprocessing: functions made to move by no more than a chosen amount, for one person or for each.

In: values and limits of individuals. Out: bounded functions of them, exact on a public grid. Never here: noise or
budget.
"""
