"""What engines offer: types of values, tables with their columns, parts of columns that cannot be asked for whole.

In: what a source says of itself. Out: records that plans, policies and printers share. Never here: a row, or a word
of the owner.
"""
