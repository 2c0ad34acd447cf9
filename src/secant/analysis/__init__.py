"""Prove how far an answer can move between neighboring databases. Failures here are values, not exceptions."""
