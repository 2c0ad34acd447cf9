"""Stage `mechanisms`: from a bound to a private release.

In: bounds, ε, δ, a public grid, and private values. Out: noisy values on the grid, choices, keys.
`registry.MECHANISMS` lists every mechanism; which one a measure of a query gets is settled in
`secant.noise.choosing`. The proofs are in PROOFS.md beside this file. Nothing here runs SQL
or touches a budget.
"""
