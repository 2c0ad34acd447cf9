"""Prove how far an answer can move between neighboring databases. Failures here are values, not exceptions.

In: one aggregate of a plan, with declared facts enforced. Out: a certificate with its derivation, or a refusal with
its reason. Never here: noise, an engine, a row. One folder per analysis, each with `PROOFS.md`; analyses never import
each other.
"""
