"""What asks more than one question, or asks about one: scripts, facts found privately, simulation, verification.

In: the stages as functions, a ledger. Out: answers, costs, verdicts. Never here: a bound; statements are bounded whole.
"""
