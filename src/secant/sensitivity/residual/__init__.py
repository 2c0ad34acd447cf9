"""Residual sensitivity: what one row of a join could meet, measured by joins of the others."""
