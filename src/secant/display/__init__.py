"""Public results as people read them: on a screen, in a notebook, as a picture.

In: numbers that are already public. Out: text, HTML, SVG. Never here: a decision.
"""
