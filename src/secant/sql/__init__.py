"""Text to plan: what is never run is refused, names are resolved, parameters are read.

In: a text, parameters, a catalog. Out: a plan (`sql.bind`), or an error that points into the text. sqlglot stays
here.
"""
