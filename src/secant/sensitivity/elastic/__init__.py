"""Elastic sensitivity: how many rows differ, from how many rows of each table agree in a join's columns (E-rules)."""
