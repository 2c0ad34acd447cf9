"""The smt analysis: two neighboring databases as formulas, and a solver that looks for the rows that differ."""
