"""Truncation: each unit's contribution is cut down to a limit that is chosen privately."""
