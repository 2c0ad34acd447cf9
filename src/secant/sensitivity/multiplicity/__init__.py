"""The multiplicity analysis: how many joined rows a row of one table stands for, pattern by pattern."""
