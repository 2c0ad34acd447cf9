"""What the owner says: the policy file, its checks, norms, windows of time, beliefs, and the keys that follow.

In: TOML and a catalog. Out: one frozen `Policy` and answers about it. Never here: a row of data, a plan, a bound.
"""
