"""Published and made-up questions with the truth beside them: what `secant bench NAME` runs.

They are no part of the package that is installed: texts, policies and expected figures come with a clone.
"""
