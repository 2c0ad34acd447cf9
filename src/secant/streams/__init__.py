"""Analysis `streams`: a question that is answered step by step, for one price.

In: a stream as the policy declares it. Out: its series so far, every number of which was drawn once and is in the
ledger. `compiling` proves bounds with the analyses of `analysis`, `reading` asks the engine for the sums of steps,
`drawing` adds noise and makes it durable before anybody sees it, `series` says what follows from public numbers.
Proofs are in PROOFS.md beside this file.
"""
