"""From a bounded plan to an answer: what is read, noise on it, the rest of the query, and the evidence.

In: certificates with their noise, a session, a reservation. Out: answers, explanations, evidence for the ledger.
Never here: the ledger itself, or a choice that looks at data. Only `inspection`, `owner_report` and
`local_components`, for the owner, show the truth.
"""
