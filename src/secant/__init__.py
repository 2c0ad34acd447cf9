"""Secant: private answers with noise that is just enough."""
