"""The service: people ask over a network, and never hold the data.

In: requests of users who have logged in. Out: released answers, prices, budgets, as far as the role may see them.
`asking` is the one door to the engine; `users` says who somebody is; fronts (`http`, `postgres`) only translate.
"""
